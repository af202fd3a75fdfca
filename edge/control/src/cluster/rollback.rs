//! The record of a disk that is rolled back to a snapshot (docs/design/0047, "Rolling back").
//!
//! It says so before the first block is copied, and until the last one is. Must never end a rollback of another attempt.

use super::Cluster;
use super::change::{objection, restless, unknown};
use crate::directory::shared::{Outcome, unwritten};
use crate::limits::{ROLLBACK_RETRY, SIZE_POLL};
use ::cluster::{Claim, NoSnapshot, Objection, Rollback};
use base::DiskId;
use failure::{Code, Failure};

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

/// How the copying ended.
#[derive(Debug, Clone, Copy)]
enum Ending {
    /// Everything is copied.
    Done,
    /// It cannot go on.
    CutShort,
}

impl Cluster {
    /// Refuses what must not be done with a disk that may hold parts of two states.
    ///
    /// # Errors
    /// While its rollback is not done.
    pub fn expect_not_rolling_back(&self, id: DiskId) -> Result<(), Failure> {
        let view = self.view();
        let Some(record) = view.disks.get(&id).map(|disk| &disk.record) else { return Ok(()) };
        record
            .expect_not_rolling_back()
            .map_err(|why| Failure::refused(format!("disk {}: {why}", record.name)))
    }

    /// The rollback of a disk and the process that copies for it; none copies where it was cut short.
    pub fn rollback(&self, id: DiskId) -> Option<(Rollback, Option<Claim>)> {
        let view = self.view();
        let record = &view.disks.get(&id)?.record;
        Some((record.rollback?, self.keeper().facts.rolls_back(record)))
    }

    /// Takes the snapshot that a rollback takes first.
    ///
    /// # Errors
    /// When the disk cannot have one, or its owner does not take it in time.
    pub async fn take_before_rollback(&self, id: DiskId, name: &str) -> Result<(), Failure> {
        self.take_snapshot_by(id, name, |disk| disk.record.ask_before_rollback(name)).await
    }

    /// Has the record of a locked disk say that it is rolled back from now on. One transaction names the claim, too: a client that attached
    /// meanwhile at another host prevents it.
    ///
    /// # Errors
    /// When another host has the disk by now, a snapshot is gone, or the directory does not answer.
    pub async fn begin_rollback(
        &self,
        id: DiskId,
        snapshots: (u32, u32),
        (keeps, was_shared): (bool, bool),
    ) -> Result<Rollback, Failure> {
        for _ in 0..ATTEMPTS {
            let attached = self.fetch_attached(id).await?;
            let disk = self.changeable(id).await?;
            let name = &disk.record.name;
            if attached.claims != [self.me()] {
                let text = format!("another host attached disk {name} meanwhile");
                return Err(
                    Failure::new(Code::Conflict, text).hint("see `drystone disk show`, and try again")
                );
            }
            let begun = disk.record.begin_rollback(snapshots, (keeps, was_shared), self.me(), &self.clones());
            let begun = begun.map_err(objection)?.record;
            let Some(rollback) = begun.rollback else { return Err(restless(id)) };
            let mut next = disk.with(begun);
            let changes = vec![next.change(disk.record.version)?, attached.change(id, &attached.claims)?];
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    next.record.version = version;
                    self.note(&next);
                    self.tell_disk(&next).await?;
                    return Ok(rollback);
                }
                Outcome::Conflict { .. } => tokio::time::sleep(SIZE_POLL).await,
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => return Err(unknown(name)),
            }
        }
        Err(restless(id))
    }

    /// Whether this process still is the one that copies: not when another one has begun since, or has the disk.
    pub fn is_rolling_back(&self, id: DiskId, since: u32) -> bool {
        let view = self.view();
        let rollback = view.disks.get(&id).and_then(|disk| disk.record.rollback);
        let is_mine = rollback.is_some_and(|one| one.since == since && one.by == Some(self.me()));
        let claims = view.attached.get(&id).map(|attached| attached.claims.clone()).unwrap_or_default();
        is_mine && (self.directory_away().is_some() || claims == [self.me()])
    }

    /// Has the record say that everything is copied. Tries until the directory says what became of it.
    ///
    /// # Errors
    /// When another attempt has begun since, or the engine is gone.
    pub async fn finish_rollback(&self, id: DiskId, since: u32) -> Result<(), Failure> {
        self.end_rollback(id, since, Ending::Done).await
    }

    /// Has the record say that nobody copies. Tries until the directory says what became of it.
    ///
    /// # Errors
    /// When another attempt has begun since, or the engine is gone.
    pub async fn stop_rollback(&self, id: DiskId, since: u32) -> Result<(), Failure> {
        self.end_rollback(id, since, Ending::CutShort).await
    }

    async fn end_rollback(&self, id: DiskId, since: u32, ending: Ending) -> Result<(), Failure> {
        let mut is_unknown = false;
        loop {
            self.state().await?;
            if let Ok(found) = self.fetch(id).await {
                let Some(disk) = found else { return Ok(()) };
                let changed = match ending {
                    Ending::Done => disk.record.finish_rollback(since, &self.clones()),
                    Ending::CutShort => disk.record.stop_rollback(since),
                };
                let next = match changed {
                    Ok(next) => disk.with(next.record),
                    // It was written, and the answer was lost.
                    Err(Objection::Snapshot(NoSnapshot::NoRollback)) if is_unknown => return Ok(()),
                    Err(why) => return Err(objection(why)),
                };
                match self.commit_disk(next, disk.record.version).await {
                    Ok(Some(next)) => return Ok(self.tell_disk(&next).await?),
                    Ok(None) => {}
                    Err(_) => is_unknown = true,
                }
            }
            tokio::time::sleep(ROLLBACK_RETRY).await;
        }
    }
}
