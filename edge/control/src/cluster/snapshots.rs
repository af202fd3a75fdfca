//! Snapshots of disks (docs/design/0047): asked for and deleted here; owners take them. Must hold no rule of its own.

use super::Cluster;
use super::change::{objection, restless, unknown};
use crate::directory::shared::record::ClusterDisk;
use crate::events::Kind;
use crate::limits::{SIZE_POLL, SNAPSHOT_WAIT};
use ::cluster::{Clones, Level, Objection, Transition};
use base::DiskId;
use failure::{Code, Failure};
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Takes a snapshot of a disk: asks for it, and waits until the owner has taken it.
    ///
    /// # Errors
    /// When the disk cannot have one, or its owner does not take it in time; it is not asked for any more then.
    pub async fn take_snapshot(&self, id: DiskId, name: &str) -> Result<(), Failure> {
        let level = self.view().level.level;
        self.take_snapshot_by(id, name, |disk| disk.record.ask_snapshot(name, level)).await
    }

    /// The same with the transition that asks for it.
    pub(super) async fn take_snapshot_by(
        &self,
        id: DiskId,
        name: &str,
        ask: impl Fn(&ClusterDisk) -> Result<Transition, Objection>,
    ) -> Result<(), Failure> {
        self.check_snapshot_level()?;
        self.ask_snapshot(id, ask).await?;
        let until = Instant::now() + SNAPSHOT_WAIT;
        loop {
            let disk = self.changeable(id).await?;
            let (record, asked) = (&disk.record, disk.record.roster.snapshots.asked);
            if record.snapshots.named(name).is_some() {
                return Ok(());
            }
            if asked.is_none() || record.snapshots.last_asked.as_deref() != Some(name) {
                let why = record.roster.snapshots.not_taken.map(|why| why.to_string());
                let why = why.unwrap_or_else(|| "it is not asked for any more".to_owned());
                return Err(Failure::refused(format!(
                    "snapshot {name} of disk {} was not taken: {why}",
                    record.name
                )));
            }
            if Instant::now() >= until {
                let cancelled = self.change_snapshots(id, |disk| disk.record.cancel_snapshot()).await;
                if cancelled.is_err() && self.changeable(id).await?.record.snapshots.named(name).is_some() {
                    return Ok(()); // It was taken in this very moment.
                }
                cancelled?;
                return Err(Failure::new(
                    Code::Unreachable,
                    format!(
                        "snapshot {name} of disk {} was not taken within {} s, and is not asked for any more",
                        record.name,
                        SNAPSHOT_WAIT.as_secs()
                    ),
                )
                .hint("`drystone disk show` and `drystone health` say what the disk waits for"));
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    /// Refuses snapshots while the records of the cluster are at a level that has none.
    pub(super) fn check_snapshot_level(&self) -> Result<(), Failure> {
        let level = self.view().level.level;
        if level >= Level::SNAPSHOTS {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "snapshots need records of {}, and those of this cluster are at {level}",
            Level::SNAPSHOTS
        ))
        .hint("`drystone cluster upgrade` raises it once all hosts run this release"))
    }

    /// Asks for a snapshot, once the one of a schedule is taken that is being taken.
    async fn ask_snapshot(
        &self,
        id: DiskId,
        ask: impl Fn(&ClusterDisk) -> Result<Transition, Objection>,
    ) -> Result<(), Failure> {
        let until = Instant::now() + SNAPSHOT_WAIT;
        loop {
            let is_scheduled = |disk: ClusterDisk| disk.record.snapshots.asked_for.is_some();
            if Instant::now() >= until || !is_scheduled(self.changeable(id).await?) {
                return self.change_snapshots(id, ask).await;
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
    }

    /// Gives a snapshot another name, or pins it; it belongs to no schedule once it is renamed.
    ///
    /// # Errors
    /// When there is none of that name, or the other name is taken.
    pub async fn change_snapshot(
        &self,
        id: DiskId,
        name: &str,
        (to, pinned): (Option<&str>, Option<bool>),
    ) -> Result<(), Failure> {
        if let Some(is_pinned) = pinned {
            self.change_snapshots(id, |disk| disk.record.pin_snapshot(name, is_pinned)).await?;
            let text = match is_pinned {
                true => format!("snapshot {name} is pinned: no schedule deletes it"),
                false => format!("snapshot {name} is pinned no more"),
            };
            self.log(id, Kind::SnapshotChanged, text);
        }
        if let Some(to) = to {
            self.change_snapshots(id, |disk| disk.record.rename_snapshot(name, to)).await?;
            self.log(id, Kind::SnapshotChanged, format!("snapshot {name} is named {to}"));
        }
        Ok(())
    }

    /// Deletes a snapshot of a disk.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn delete_snapshot(&self, id: DiskId, name: &str) -> Result<(), Failure> {
        self.change_snapshots(id, |disk| disk.record.delete_snapshot(name, &self.clones())).await?;
        self.log(id, Kind::SnapshotDeleted, format!("snapshot {name} is deleted"));
        Ok(())
    }

    /// What disks are clones of, as far as this host has heard. The record of an origin counts those that were made since.
    pub(super) fn clones(&self) -> Clones {
        Clones::of(self.view().disks.values().filter_map(|disk| disk.record.origin))
    }

    pub(super) async fn change_snapshots(
        &self,
        id: DiskId,
        change: impl Fn(&ClusterDisk) -> Result<Transition, Objection>,
    ) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let disk = self.changeable(id).await?;
            let (name, version) = (disk.record.name.clone(), disk.record.version);
            let next = change(&disk).map_err(|why| {
                let failure = objection(why);
                Failure { error: format!("disk {name}: {}", failure.error), ..failure }
            })?;
            let committed = self.commit_disk(disk.with(next.record), version).await;
            if let Some(next) = committed.map_err(|_| unknown(&name))? {
                self.tell_disk(&next).await?;
                return Ok(());
            }
            tokio::time::sleep(SIZE_POLL).await;
        }
        Err(restless(id))
    }
}
