//! Who is there, and what is to be done about what is not: heartbeats, and the decisions of the crate `cluster`.
//!
//! Every host sees all records and comes to the same decisions; it carries out those that are for itself, each as one
//! compare-and-set of one record. Nothing is concluded while the directory does not answer. Must hold no rule of its own.

use super::gather::{hindrance, hindrance_told, owner_state};
use super::kept::{Keeper, LastBeat};
use super::{Cluster, Locals, View};
use crate::directory::shared::{Beat, now_ns};
use crate::limits::{BALANCE_PERIOD, BEAT_OWNED_MAX, BEAT_PERIOD, KEEP_PAUSE, SIZES_LIFE};
use crate::system::{blocking_seed, component_ids};
use ::cluster::{Action, Directory, DiskRecord, Known, LinkReport, Liveness, Maintenance, progress};
use base::{DiskId, HostId};
use engine::{ClusterCommand, ClusterState, Command};
use failure::Failure;
use replication::Standing;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

impl Keeper {
    /// Now, by the directory's clock; by this host's until the directory has told its own.
    pub(super) fn now(&self) -> base::Instant {
        match &self.last_beat {
            Some(last) => base::Instant(last.attendees.now_ns) + last.came.elapsed(),
            None => base::Instant(now_ns()),
        }
    }

    /// What is known beside the facts.
    pub(super) fn known(&self) -> Known<'_> {
        let directory = match self.away_since {
            None => Directory::Reachable,
            Some(since) => Directory::Unreachable { since },
        };
        Known { now: self.now(), directory, repairs: &self.repairs }
    }

    /// Takes over what the records say, and who is there.
    fn refresh(&mut self, view: &View, me: HostId, state: &ClusterState) {
        let of_record = |(id, known): (&HostId, &super::view::KnownHost)| (*id, known.host.record.clone());
        self.facts.hosts = view.hosts.iter().map(of_record).collect();
        self.note_beats();
        self.refresh_disks(view);
        self.facts.owners.clear();
        let beats = self.last_beat.iter().flat_map(|last| &last.attendees.heard);
        let told =
            beats.filter(|heard| heard.beat.host != me.to_string()).flat_map(|heard| &heard.beat.owned);
        let mut hindrances = BTreeMap::new();
        for told in told {
            self.facts.owners.extend(owner_state(view, told));
            hindrances.extend(hindrance_told(told));
        }
        for (id, disk) in &state.disks {
            let Some(owner) = disk.owner.clone() else { continue };
            self.facts.owners.insert(*id, owner);
            hindrances.remove(id);
            hindrances.extend(disk.moving.as_ref().and_then(hindrance).map(|found| (*id, found)));
        }
        let now = self.now();
        self.facts.moves = self.moves.step(now, &self.facts.disks, &hindrances);
        if self.away_since.is_none() && self.last_beat.is_some() {
            self.attended = self.attendance.step(now, &self.facts.hosts);
        }
        self.count_on_reached(now, state.links_of_hosts(me));
        let unreached = &self.unreached;
        self.facts.returning = self.attendance.returning();
        self.facts.returning.retain(|host| !unreached.contains_key(host));
        self.facts.liveness.insert(me, Liveness::Alive);
    }

    /// What this host does not reach, it does not count on, whatever others say, for as long as that lasts.
    fn count_on_reached(&mut self, now: base::Instant, links: impl Iterator<Item = (HostId, bool)>) {
        self.facts.liveness.clone_from(&self.attended);
        let former = std::mem::take(&mut self.unreached);
        let down = links.filter(|(_, is_up)| !is_up).map(|(host, _)| host);
        self.unreached = down.map(|host| (host, former.get(&host).copied().unwrap_or(now))).collect();
        for (host, since) in &self.unreached {
            let liveness = self.facts.liveness.get_mut(host);
            if let Some(liveness) = liveness.filter(|liveness| **liveness == Liveness::Alive) {
                *liveness = Liveness::Suspect { since: *since };
            }
        }
    }

    /// Hosts' last heartbeats, and what they say of their links.
    fn note_beats(&mut self) {
        let now = self.now();
        let Some(last) = &self.last_beat else { return };
        let mut reports = Vec::new();
        let mut heard_at = BTreeMap::new();
        for host in self.facts.hosts.values_mut() {
            host.last_seen = base::Instant(last.attendees.since_ns);
        }
        for heard in &last.attendees.heard {
            let Ok(id) = heard.beat.host.parse::<HostId>() else { continue };
            let at = base::Instant(heard.at_ns);
            heard_at.insert(id, at);
            if let Some(host) = self.facts.hosts.get_mut(&id) {
                host.last_seen = at;
                host.clock_ahead_ns = heard.beat.clock_ahead_ns;
                host.data_trouble.clone_from(&heard.beat.data_trouble);
                host.reports = heard.beat.devices.read();
            }
            for (about, is_up) in &heard.beat.links {
                if let Ok(about) = about.parse() {
                    let report = LinkReport { reporter: id, about, is_up: *is_up, at };
                    self.attendance.reported(report);
                    reports.push(report);
                }
            }
        }
        self.links.step(now, &reports, &heard_at);
    }

    /// Most records are as they were: only those that changed are taken over.
    fn refresh_disks(&mut self, view: &View) {
        let policies = view.records.policies.values();
        self.facts.level = view.level.level;
        self.facts.policies = policies.map(|one| (one.name.clone(), one.policy)).collect();
        self.facts.disks.retain(|id, _| view.disks.contains_key(id));
        for (id, disk) in &view.disks {
            let known = self.facts.disks.get(id);
            if known.is_none_or(|known| known.version != disk.record.version) {
                self.facts.disks.insert(*id, disk.record.clone());
            }
        }
    }

    /// The one host that decides what needs no owner: of those that are there, the one with the least id.
    pub(super) fn coordinator(&self) -> Option<HostId> {
        let alive = self.facts.liveness.iter().filter(|(_, liveness)| **liveness == Liveness::Alive);
        alive.map(|(id, _)| *id).next()
    }

    /// Whether anything is under way, or will be, for which it matters how much data disks have.
    fn needs_sizes(&self, me: HostId) -> bool {
        let is_moving = |disk: &DiskRecord| {
            !disk.incoming.is_empty()
                || disk.roster.members.iter().any(|one| one.standing != Standing::Active)
                || !disk.debts.is_empty()
        };
        let is_serviced = self.facts.hosts.values().any(|host| host.maintenance != Maintenance::Off);
        let balances = self.coordinator() == Some(me) && self.balance_is_due();
        is_serviced || balances || self.facts.disks.values().any(is_moving)
    }

    /// Whether this host has looked at how even devices are.
    pub(super) fn has_balanced(&self) -> bool {
        self.balanced.is_some()
    }

    fn balance_is_due(&self) -> bool {
        self.balanced.is_none_or(|at| at.elapsed() >= BALANCE_PERIOD)
    }

    /// What this host is to do now.
    fn decide(&mut self, me: HostId, view: &View, seed: u64) -> Vec<Action> {
        let now = self.now();
        let mut ids = component_ids(seed);
        self.repairs.set(view.settings.of_repairs());
        let decisions = self.repairs.step(now, &self.facts, &mut ids, seed);
        let mut actions = decisions.actions;
        let (facts, is_wanted) = (&self.facts, view.settings.stand_ins);
        let decisions = self.stand_ins.step(now, facts, &self.repairs, is_wanted, &mut ids, seed);
        actions.extend(decisions.actions);
        actions.retain(|action| action.actor.host == me);
        if self.coordinator() == Some(me) && self.balance_is_due() {
            self.balanced = Some(Instant::now());
            let moves = self.balancer.step(&self.facts, &mut ids, seed);
            let takes = view.settings.evens_out(self.balancer.balance());
            actions.extend(moves.into_iter().filter(|_| takes));
        }
        actions
    }

    /// Hosts on their way into maintenance that may go now.
    fn serviced(&self, me: HostId) -> Vec<HostId> {
        if self.coordinator() != Some(me) {
            return Vec::new();
        }
        let entering = self.facts.hosts.values();
        let entering = entering.filter(|host| matches!(host.maintenance, Maintenance::Entering { .. }));
        entering.map(|host| host.id).filter(|id| progress(&self.facts, *id).is_done()).collect()
    }
}

impl Cluster {
    pub(super) fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, by the directory's clock.
    pub fn directory_now(&self) -> base::Instant {
        self.keeper().now()
    }

    /// Looks after the cluster until the engine is gone: every second, and soon after a record changed.
    pub(super) async fn keep(self: Arc<Cluster>) {
        let mut changed = self.revision.subscribe();
        let mut beat = Instant::now();
        loop {
            let Ok(state) = self.state().await else { return };
            if beat.elapsed() >= BEAT_PERIOD || self.keeper().last_beat.is_none() {
                beat = Instant::now();
                self.beat(&state).await;
            }
            if let Err(failure) = self.keep_once(&state).await {
                tracing::debug!("{failure}");
            }
            tokio::time::sleep(KEEP_PAUSE).await;
            let _ = tokio::time::timeout(BEAT_PERIOD - KEEP_PAUSE, changed.changed()).await;
        }
    }

    /// Whether this host decides what needs no owner.
    pub fn decides(&self) -> bool {
        self.keeper().coordinator() == Some(self.me)
    }

    async fn keep_once(&self, state: &ClusterState) -> Result<(), Failure> {
        self.refresh(state);
        if self.keeper().away_since.is_some() {
            return Ok(());
        }
        self.refresh_sizes(state, false).await;
        let seed = blocking_seed()?;
        let view = self.view();
        let (actions, serviced) = {
            let mut keeper = self.keeper();
            (keeper.decide(self.me, &view, seed), keeper.serviced(self.me))
        };
        for action in actions {
            self.carry_out(action).await;
        }
        self.tell_of_room()?;
        for host in serviced {
            self.note_serviced(host).await?;
        }
        self.tend(state).await
    }

    /// Has components tried again that waited for room on their devices.
    fn tell_of_room(&self) -> Result<(), Failure> {
        let found = {
            let mut keeper = self.keeper();
            let Keeper { room, facts, .. } = &mut *keeper;
            let mut found = room.step(facts);
            let is_owned_here = |id: &DiskId| {
                let owner = facts.disks.get(id).and_then(|disk| disk.roster.owner);
                owner.is_some_and(|owner| owner.node.host == self.me)
            };
            found.retain(|(disk, _)| is_owned_here(disk));
            found
        };
        for (disk, component) in found {
            self.engine.tell(Command::cluster(ClusterCommand::Room { disk, component }))?;
        }
        Ok(())
    }

    /// Takes over what is known now.
    pub(super) fn refresh(&self, state: &ClusterState) {
        let view = self.view();
        self.keeper().refresh(&view, self.me, state);
    }

    /// Asks all hosts how much data components have, if that matters and is not known, or `always`.
    pub(super) async fn refresh_sizes(&self, state: &ClusterState, always: bool) {
        let is_due = {
            let keeper = self.keeper();
            let is_old = keeper.sized.is_none_or(|at| at.elapsed() >= SIZES_LIFE);
            always || (is_old && keeper.needs_sizes(self.me))
        };
        if is_due {
            self.refresh_sizes_of(&self.locals(state).await);
        }
    }

    /// Takes over how much data components have, as hosts tell it.
    pub fn refresh_sizes_of(&self, locals: &Locals) {
        let sizes = super::gather::used_bytes(&self.view(), locals);
        let mut keeper = self.keeper();
        keeper.facts.used_bytes = sizes;
        keeper.sized = Some(Instant::now());
    }

    /// Tells the directory that this host is there, and hears who else is.
    pub(super) async fn beat(&self, state: &ClusterState) {
        let beat = Beat {
            host: self.me.to_string(),
            links: state.links_of_hosts(self.me).map(|(host, is_up)| (host.to_string(), is_up)).collect(),
            clock_ahead_ns: self.clock_ahead_ns(),
            owned: self.owned_to_tell(state),
            data_trouble: self.data_trouble(),
            devices: self.device_reports(),
        };
        let answer = self.directory().beat(&beat).await;
        let mut keeper = self.keeper();
        match answer {
            Ok(attendees) => {
                keeper.last_beat = Some(LastBeat { attendees, came: Instant::now() });
                if keeper.away_since.take().is_some() {
                    let now = keeper.now();
                    keeper.attendance.directory_is_back(now);
                }
            }
            Err(failure) => {
                tracing::debug!("{failure}");
                let now = keeper.now();
                keeper.away_since.get_or_insert(now);
            }
        }
    }

    fn clock_ahead_ns(&self) -> i64 {
        let keeper = self.keeper();
        let Some(last) = &keeper.last_beat else { return 0 };
        if !last.attendees.is_certain {
            // How old the time was that this host began with is not known yet. Others know.
            let others = last.attendees.heard.iter().filter(|heard| heard.beat.host != self.me.to_string());
            let mut ahead: Vec<i64> = others.map(|heard| heard.beat.clock_ahead_ns).collect();
            ahead.sort_unstable();
            return ahead.get(ahead.len() / 2).copied().unwrap_or(0);
        }
        let theirs = base::Instant(last.attendees.now_ns) + last.came.elapsed();
        i64::try_from(i128::from(now_ns()) - i128::from(theirs.0)).unwrap_or(0)
    }

    /// What others should know of disks that are owned here: of those that are not whole or move, as many as a heartbeat takes.
    fn owned_to_tell(&self, state: &ClusterState) -> Vec<api::types::ReplicationView> {
        let owned = state.disks.iter().filter_map(|(id, disk)| Some((*id, disk.owner.as_ref()?)));
        let rests = |(id, owner): &(DiskId, &replication::owner::OwnerState)| {
            owner.phase == replication::owner::Phase::Serving
                && owner.members.iter().all(|one| one.standing == Standing::Active)
                && state.disks[id].moving.is_none()
        };
        let mut owned: Vec<_> = owned.filter(|one| !rests(one)).collect();
        // Those that are being filled first: others wait for them.
        owned.sort_by_key(|(_, owner)| !owner.members.iter().any(|one| one.resync.is_some()));
        owned.truncate(BEAT_OWNED_MAX);
        owned.into_iter().map(|(id, owner)| self.replication_view(id, owner, state)).collect()
    }
}

/// Disks by their ids.
pub(super) type Disks = BTreeMap<DiskId, DiskRecord>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_reached_again_is_counted_on_again_while_the_directory_is_away() {
        let (host, at) = (HostId(2), base::Instant);
        let mut keeper = Keeper {
            attended: BTreeMap::from([(host, Liveness::Alive)]),
            away_since: Some(at(1)),
            ..Keeper::default()
        };
        let mut seen = |now, is_up| {
            keeper.count_on_reached(at(now), [(host, is_up)].into_iter());
            keeper.facts.liveness(host)
        };
        assert_eq!(seen(1, true), Liveness::Alive);
        assert_eq!(seen(2, false), Liveness::Suspect { since: at(2) });
        assert_eq!(seen(3, false), Liveness::Suspect { since: at(2) }, "since it was found");
        assert_eq!(seen(4, true), Liveness::Alive);
        assert_eq!(seen(5, false), Liveness::Suspect { since: at(5) });
    }
}
