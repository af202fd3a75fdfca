//! Which releases the hosts run, and the step to the next level of the records; and the end of a host that was left behind.
//!
//! Whether the step may be taken is decided by `core/cluster`. Must never take it where a host is in the way.

use super::Cluster;
use crate::directory::shared::record::{ClusterHost, Program};
use crate::directory::shared::{Change, Outcome, unwritten};
use crate::events::Kind;
use ::cluster::{Level, Levels, Raise, RecordLevels, TooEarly};
use api::types::{HostVersionsView, VersionsView};
use base::HostId;
use failure::{Code, Failure};

impl Cluster {
    /// Which releases the hosts run, what they understand, and what stands in the way of the next level.
    pub fn versions(&self) -> VersionsView {
        let view = self.view();
        let known = view.record_levels();
        let host = |(id, levels): (&HostId, &Levels)| {
            let record = view.host(*id).map(|host| &host.record);
            HostVersionsView {
                name: view.host_name(*id),
                id: id.to_string(),
                release: record.map(|record| record.release.clone()).unwrap_or_default(),
                lowest: levels.lowest().number(),
                highest: levels.highest().number(),
            }
        };
        let mut hosts: Vec<HostVersionsView> = known.hosts.iter().map(host).collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        let (to, obstacles) = match known.raise() {
            Raise::Nothing => (None, Vec::new()),
            Raise::Possible { to } => (Some(to.number()), Vec::new()),
            Raise::Waits { to, hosts } => (Some(to.number()), self.in_the_way(&known, &hosts)),
        };
        VersionsView { level: known.level.number(), to, is_raised: false, hosts, obstacles }
    }

    /// In words: what hosts run that do not understand the next level.
    fn in_the_way(&self, known: &RecordLevels, hosts: &[HostId]) -> Vec<String> {
        let view = self.view();
        let text = |id: &HostId| {
            let host = view.host(*id)?;
            let levels = known.hosts.get(id)?;
            let (name, release) = (&host.record.name, &host.record.release);
            Some(format!("host {name} last ran drystone {release}, which understands {levels}"))
        };
        hosts.iter().filter_map(text).collect()
    }

    /// Refuses what hosts of a former release could not read: `what` as in "a label".
    ///
    /// # Errors
    /// While the records are of a lower level than it needs.
    pub(super) fn expect_level(&self, what: &'static str, needs: Level) -> Result<(), Failure> {
        let level = self.view().level.level;
        if level >= needs {
            return Ok(());
        }
        Err(Failure::refused(TooEarly { rule: what, needs, level }.to_string())
            .hint("`drystone cluster upgrade` raises it once all hosts run this release"))
    }

    /// Raises the level of the records to the next, if all hosts understand it; nothing where none understands a later one.
    ///
    /// # Errors
    /// When hosts are in the way, or the directory does not answer.
    pub async fn upgrade(&self) -> Result<VersionsView, Failure> {
        self.catch_up().await?;
        let view = self.view();
        let to = match view.record_levels().raise() {
            Raise::Nothing => return Ok(self.versions()),
            Raise::Waits { to, .. } => return Err(waits(to, &self.versions().obstacles)),
            Raise::Possible { to } => to,
        };
        match self.directory().commit(vec![view.level.raise(to)?]).await {
            Outcome::Done { .. } => {
                let text =
                    format!("its records are written at {to} from now on; they were at {}", view.level.level);
                self.events.other(Kind::ClusterUpgraded, "cluster", text);
                self.catch_up().await?;
                Ok(VersionsView { is_raised: true, ..self.versions() })
            }
            Outcome::Conflict { .. } => {
                Err(Failure::new(Code::Conflict, "somebody else raised the level at the same time")
                    .hint("see `drystone cluster upgrade --dry-run`"))
            }
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => Err(Failure::new(
                Code::Unreachable,
                format!("the directory did not answer: nobody knows whether its records are at {to} now"),
            )
            .hint("see `drystone cluster upgrade --dry-run` once it answers")),
        }
    }

    /// Whether the directory has, as far as is known, what this start of the host told of its program.
    pub(super) fn has_told_program(&self) -> bool {
        let view = self.view();
        view.programs.get(&self.me).is_some_and(|(_, told)| *told == Program::ours(self.incarnation))
    }

    /// Sets this host's own record and, if that is not there yet, what its program understands; false when one of them
    /// changed meanwhile. Both at once, so that nobody sees the one of this start with the other of a former one.
    pub(super) async fn commit_own(&self, expected: u64, host: ClusterHost) -> Result<bool, Failure> {
        if self.has_told_program() {
            return self.commit_host(expected, host).await;
        }
        let program = Program::ours(self.incarnation);
        let former = self.directory().get(&Program::key(self.me)).await?.map_or(0, |entry| entry.version);
        let changes = vec![program.change(self.me, former)?];
        let Some(version) = self.commit_host_with(changes, expected, host).await? else { return Ok(false) };
        self.note_program(version, program);
        Ok(true)
    }

    /// The change that takes out what a host's program understands; nothing where it told nothing.
    pub(super) async fn program_gone(&self, host: HostId) -> Result<Option<Change>, Failure> {
        let key = Program::key(host);
        let found = self.directory().get(&key).await?;
        Ok(found.map(|entry| Change { key, expected: entry.version, value: None }))
    }

    /// The records are at a level that this program does not understand, which nobody can have raised them to as long as
    /// this host was asked: it must neither read nor write any more.
    pub(super) fn outgrow(&self, why: Failure) {
        let is_new = self.outgrown.send_if_modified(|known| {
            let is_new = known.is_none();
            let why = Failure { error: format!("this host stops serving: {}", why.error), ..why };
            known.get_or_insert(why);
            is_new
        });
        if let Some(why) = self.outgrown.borrow().as_ref().filter(|_| is_new) {
            self.events.here(Kind::HostStopping, why.error.clone());
        }
    }

    /// Completes when the records are at a level that this host's program does not understand, with the reason to end.
    pub async fn outgrown(&self) -> Failure {
        let mut outgrown = self.outgrown.subscribe();
        let why = outgrown.wait_for(Option::is_some).await.map(|why| why.clone());
        // The sender lives as long as the cluster.
        why.ok().flatten().unwrap_or_else(|| Failure::new(Code::Failed, "the host has ended"))
    }
}

fn waits(to: Level, obstacles: &[String]) -> Failure {
    Failure::refused(format!("not all hosts understand {to} of the records: {}", obstacles.join("; "))).hint(
        "upgrade and start these hosts, one after another; one that does not come back is taken out by `drystone host remove`",
    )
}
