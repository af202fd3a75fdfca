//! Servicing hosts, and taking those out of the cluster that do not come back.

use super::Cluster;
use crate::directory::shared::record::{ClusterDisk, ClusterHost};
use crate::directory::shared::{Change, Outcome, unwritten};
use crate::events::Kind;
use crate::limits::{DIRECTORY_RETRY, DOUBT_WAIT};
use ::cluster::{Assessment, DiskState, Liveness, Maintenance, Mode, Objection, assess};
use base::{ComponentId, HostId};
use failure::{Code, Failure};
use replication::{Numbers, Roster, Standing};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// The host that people mean.
    ///
    /// # Errors
    /// When there is none.
    pub fn find_host(&self, name: &str) -> Result<Arc<ClusterHost>, Failure> {
        self.view().find_host(name).cloned().ok_or_else(|| {
            Failure::new(Code::NotFound, format!("there is no host `{name}` in this cluster"))
                .hint("see `drystone host list`")
        })
    }

    /// What servicing a host would do to every disk.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn assess(&self, host: HostId, mode: Mode) -> Result<Assessment, Failure> {
        let assess = |facts: &::cluster::View, seed| Ok(assess(facts, host, mode, seed));
        self.assess_by(host, assess).await
    }

    /// Assesses with the facts of now. Where something has nowhere to go while it is not known of a host whether it is there (one whose
    /// machine stood still for a moment takes nothing new), that is waited for.
    ///
    /// # Errors
    /// As `assess`, and when the engine is gone.
    pub(super) async fn assess_by(
        &self,
        host: HostId,
        assess: impl Fn(&::cluster::View, u64) -> Result<Assessment, Failure>,
    ) -> Result<Assessment, Failure> {
        let begun = Instant::now();
        loop {
            let facts = self.facts().await?;
            let settings = self.view().settings.of_repairs();
            let found = assess(&facts, crate::system::blocking_seed()?)?.by(settings);
            let is_unsure = facts.unsure_hosts().any(|unsure| unsure.id != host);
            if found.is_possible() || !is_unsure || begun.elapsed() >= DOUBT_WAIT {
                return Ok(found);
            }
            tokio::time::sleep(DIRECTORY_RETRY).await;
        }
    }

    /// All that decisions are made from, with the sizes of components as hosts tell them now.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn facts(&self) -> Result<::cluster::View, Failure> {
        let state = self.state().await?;
        self.refresh(&state);
        self.refresh_sizes(&state, true).await;
        Ok(self.keeper().facts.clone())
    }

    /// Begins to service a host, ends it, or does it otherwise.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn set_maintenance(&self, host: HostId, maintenance: Maintenance) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some((version, found)) = self.fetch_host(host).await? else {
                return Err(Failure::new(Code::NotFound, format!("there is no host {host} in this cluster")));
            };
            if found.record.maintenance == maintenance {
                return Ok(());
            }
            let mut next = found.clone();
            next.record.maintenance = maintenance;
            if self.commit_host(version, next).await? {
                return Ok(());
            }
        }
        Err(Failure::new(Code::Conflict, "the host's record changes all the time").hint("try again"))
    }

    /// All that had to leave a host has left: it may go.
    pub(super) async fn note_serviced(&self, host: HostId) -> Result<(), Failure> {
        let Some((version, mut found)) = self.fetch_host(host).await? else { return Ok(()) };
        let Maintenance::Entering { mode, .. } = found.record.maintenance else { return Ok(()) };
        found.record.maintenance = Maintenance::On { mode, since: self.directory_now() };
        let text = format!("it is in maintenance ({mode}): it may go");
        self.events.host(Kind::MaintenanceReached, &found.record.name, text);
        self.commit_host(version, found).await.map(drop)
    }

    /// Takes a host out of the cluster that does not come back. What stood on it is made anew elsewhere at once.
    ///
    /// # Errors
    /// When it is there, holds the only copy of something, or the directory does not answer.
    pub async fn remove_host(&self, host: &ClusterHost) -> Result<Vec<String>, Failure> {
        let (id, name) = (host.record.id, &host.record.name);
        self.check_gone(host).await?;
        let lost = self.only_copies(id);
        if !lost.is_empty() {
            return Err(Failure::refused(format!(
                "host {name} holds the only current copy of something of {}",
                lost.join(", ")
            ))
            .hint("bring the host back, or delete these disks"));
        }
        let mut touched = Vec::new();
        let disks: Vec<_> = self.view().disks.keys().copied().collect();
        for disk in disks {
            touched.extend(self.give_up(disk, id).await?);
        }
        let Some((version, _)) = self.fetch_host(id).await? else { return Ok(touched) };
        if let Some(security) = self.certified() {
            // First: a host that is out must not come back by itself.
            let (cluster, name) = (security.cluster(), crate::security::name(name)?);
            self.revoke(&trust::Identity::Host { cluster, host: id, name }).await?;
        }
        let mut changes = vec![Change { key: ClusterHost::key(id), expected: version, value: None }];
        changes.extend(self.program_gone(id).await?);
        match self.directory().commit(changes).await {
            Outcome::Done { .. } => self.catch_up().await?,
            Outcome::Conflict { .. } => {
                return Err(Failure::new(
                    Code::Conflict,
                    format!("the record of host {name} changes: is it back?"),
                )
                .hint("see `drystone host list`"));
            }
            Outcome::Unwritten { why } => return Err(unwritten(why)),
            Outcome::Unknown => {
                return Err(
                    Failure::new(Code::Unreachable, "the directory does not answer").hint("try again")
                );
            }
        }
        Ok(touched)
    }

    /// Only a host that shows no sign of life is removed.
    async fn check_gone(&self, host: &ClusterHost) -> Result<(), Failure> {
        let state = self.state().await?;
        self.refresh(&state);
        let is_linked = host.record.nodes.iter().any(|node| self.is_up(&state, node.id));
        let liveness = self.keeper().facts.liveness(host.record.id);
        let name = &host.record.name;
        match (is_linked, liveness) {
            (false, Liveness::Away { .. }) => Ok(()),
            (true, _) | (_, Liveness::Alive) => Err(Failure::refused(format!("host {name} is there"))
                .hint("`drystone host leave` on it empties it and takes it out")),
            (false, Liveness::Suspect { .. }) => {
                Err(Failure::refused(format!("host {name} may still be there: nobody is sure yet"))
                    .hint("try again in a minute"))
            }
        }
    }

    /// Names of disks of which a host holds the only current copy of some place.
    fn only_copies(&self, host: HostId) -> Vec<String> {
        let view = self.view();
        let is_only = |disk: &&Arc<ClusterDisk>| {
            let record = &disk.record;
            (0..record.layout.place_count()).any(|place| {
                let of_place = record.roster.members.iter().filter(|one| usize::from(one.place) == place);
                let active = of_place.filter(|one| one.standing == Standing::Active);
                let elsewhere = active.filter(|one| one.node.host != host).map(|one| one.component);
                record.left(place, elsewhere) == 0
            })
        };
        let disks = view.disks.values().filter(|disk| disk.record.state != DiskState::Deleting);
        disks.filter(is_only).map(|disk| disk.record.name.clone()).collect()
    }

    /// A host does not come back: of a disk, what was to come to it does not come, what stands on it counts no more and
    /// is replaced at once, and what was to be deleted on it is gone. The disk's name if anything of it was there.
    async fn give_up(&self, id: base::DiskId, host: HostId) -> Result<Option<String>, Failure> {
        for _ in 0..ATTEMPTS {
            let Some(disk) = self.fetch_any(id).await? else { return Ok(None) };
            let next = without_host(&disk, host)
                .map_err(|why| Failure::refused(format!("disk {}: {why}", disk.record.name)))?;
            let Some(next) = next else { return Ok(None) };
            if let Some(next) = self.commit_disk(next, disk.record.version).await? {
                self.tell_disk(&next).await?;
                return Ok(Some(next.record.name));
            }
        }
        Err(Failure::new(Code::Conflict, format!("the record of disk {id} changes all the time"))
            .hint("try again"))
    }
}

/// The disk without what stands on a host that does not come back; nothing if nothing does.
fn without_host(disk: &ClusterDisk, host: HostId) -> Result<Option<ClusterDisk>, Objection> {
    let here = disk.record.components().into_iter().filter(|(node, _)| node.host == host);
    let here: BTreeSet<ComponentId> = here.map(|(_, component)| component.id).collect();
    if here.is_empty() {
        return Ok(None);
    }
    if disk.record.state != DiskState::Active {
        let gone = disk.gone.union(&here).copied().collect();
        return Ok((disk.gone != gone).then(|| ClusterDisk { gone, ..disk.clone() }));
    }
    let mut record = disk.record.clone();
    let coming: Vec<ComponentId> = record.incoming.iter().map(|one| one.component.id).collect();
    let stand_ins: Vec<ComponentId> = record.stand_ins.iter().map(|one| one.component.id).collect();
    for component in coming.into_iter().chain(stand_ins).filter(|id| here.contains(id)) {
        record = record.call_off(component)?.record;
    }
    let mut roster: Roster = record.roster.clone();
    for member in roster.members.iter_mut().filter(|member| here.contains(&member.component)) {
        member.standing = Standing::Stale;
        member.lacks = Numbers::through(record.roster.snapshots.last);
    }
    if record.roster != roster {
        record = record.with_roster(&roster, 0)?.record;
    }
    Ok((record != disk.record).then(|| disk.with(record)))
}
