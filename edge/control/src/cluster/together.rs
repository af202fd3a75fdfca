//! Snapshots of several disks at one moment (docs/design/0047, "Several disks").
//!
//! The records of the disks say how far each is; owners follow them. Here it is seen that all owners hold changes back at one time, and that
//! in the end all disks have the snapshot, by one transaction, or none has. Whoever does this may be gone at any time: owners let go by
//! themselves, and the host that decides for the cluster calls off what is left. Must hold no rule of its own.

use super::Cluster;
use super::change::{objection, restless, unknown};
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Change, Outcome, now_ns, unwritten};
use crate::events::Kind;
use crate::limits::{
    SIZE_POLL, SNAPSHOT_WAIT, TOGETHER_ATTEMPTS, TOGETHER_HOLD_WAIT, TOGETHER_MARK_WAIT, TOGETHER_PAUSE,
};
use ::cluster::{Objection, Transition};
use base::DiskId;
use engine::{ClusterCommand, Command};
use failure::{Code, Failure};
use replication::{NotTaken, Together};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often a change is tried again that another one came before.
const TRIES: usize = 20;

/// The number of the snapshot that each disk is to have.
type Numbers = BTreeMap<DiskId, u32>;

/// Why an attempt ended without a snapshot.
struct Ended {
    /// What is told if there is no other attempt.
    failure: Failure,
    /// Whether another attempt may succeed: a disk group is being converted, or an owner has just begun.
    is_worth_another: bool,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended { failure, is_worth_another: false }
    }
}

impl Cluster {
    /// Takes a snapshot of several disks at one moment, of all or of none.
    ///
    /// # Errors
    /// When one of them cannot have it now, or its owner does not hold changes back in time: nothing is left behind.
    pub async fn take_together(&self, ids: &[DiskId], name: &str) -> Result<(), Failure> {
        self.check_snapshot_level()?;
        for attempt in 1.. {
            self.await_owners(ids).await?;
            match self.attempt_together(ids, name).await {
                Ok(()) => {
                    let text = format!("snapshot {name} of {} disks was taken at one moment", ids.len());
                    ids.iter().for_each(|id| self.log(*id, Kind::SnapshotTaken, text.clone()));
                    return Ok(());
                }
                Err(ended) if ended.is_worth_another && attempt < TOGETHER_ATTEMPTS => {
                    tracing::debug!("{}: tried again", ended.failure);
                    tokio::time::sleep(TOGETHER_PAUSE).await;
                }
                Err(ended) => return Err(ended.failure),
            }
        }
        unreachable!("attempts are counted")
    }

    /// Sees that each disk has an owner, for one that begins to own a disk needs longer than others may hold changes back.
    async fn await_owners(&self, ids: &[DiskId]) -> Result<(), Failure> {
        let until = Instant::now() + SNAPSHOT_WAIT;
        for id in ids {
            loop {
                let disk = self.changeable(*id).await?;
                if disk.record.roster.owner.is_some() {
                    break;
                }
                if Instant::now() >= until {
                    let text =
                        format!("disk {}: no host owns it, and none becomes its owner", disk.record.name);
                    return Err(Failure::new(Code::Unreachable, text)
                        .hint("`drystone health` says what it waits for"));
                }
                self.engine.tell(Command::cluster(ClusterCommand::Claim { disk: *id }))?;
                tokio::time::sleep(SIZE_POLL).await;
            }
        }
        Ok(())
    }

    async fn attempt_together(&self, ids: &[DiskId], name: &str) -> Result<(), Ended> {
        let asked = self.change_all(ids, |disk| disk.record.ask_together(name)).await?;
        let numbers: Numbers = asked
            .iter()
            .filter_map(|disk| Some((disk.record.id, disk.record.roster.snapshots.asked?)))
            .collect();
        let done = self.take_asked(&numbers).await;
        if done.is_err() {
            self.call_off(&numbers).await;
        }
        done
    }

    /// Sees an attempt to its end, once all are asked for.
    async fn take_asked(&self, numbers: &Numbers) -> Result<(), Ended> {
        let ids: Vec<DiskId> = numbers.keys().copied().collect();
        let holds = |said| matches!(said, Together::Held | Together::Mark | Together::Marked);
        self.await_said(numbers, holds, TOGETHER_HOLD_WAIT, NotTaken::NotHeld).await?;
        let number = |disk: &ClusterDisk| numbers.get(&disk.record.id).copied().unwrap_or(0);
        self.change_all(&ids, |disk| disk.record.mark_together(number(disk))).await.map_err(gone)?;
        let is_marked = |said| said == Together::Marked;
        self.await_said(numbers, is_marked, TOGETHER_MARK_WAIT, NotTaken::Unready).await?;
        let taken_ns = now_ns();
        self.change_all(&ids, |disk| disk.record.finish_together(number(disk), taken_ns))
            .await
            .map_err(gone)?;
        Ok(())
    }

    /// Waits until the owners of all disks have said that they are so far.
    async fn await_said(
        &self,
        numbers: &Numbers,
        is_there: impl Fn(Together) -> bool,
        patience: Duration,
        late: NotTaken,
    ) -> Result<(), Ended> {
        let mut changed = self.revision.subscribe();
        let until = Instant::now() + patience;
        loop {
            changed.borrow_and_update();
            let view = self.view();
            let mut waits_for = None;
            for (id, number) in numbers {
                let Some(disk) = view.disks.get(id) else {
                    let text = format!("disk {id} was deleted while a snapshot of it was taken");
                    return Err(Ended::from(Failure::new(Code::Conflict, text)));
                };
                let snapshots = &disk.record.roster.snapshots;
                match snapshots.together.filter(|_| snapshots.asked == Some(*number)) {
                    Some(said) if is_there(said) => {}
                    Some(_) => waits_for = Some(disk.record.name.clone()),
                    None if snapshots.last < *number => waits_for = Some(disk.record.name.clone()),
                    None => return Err(ended(&disk.record.name, snapshots.not_taken)),
                }
            }
            let Some(name) = waits_for else { return Ok(()) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ended(&name, Some(late)));
            }
            // A record that this host has written itself is no change that the watch tells of.
            let _ = tokio::time::timeout(left.min(SIZE_POLL), changed.changed()).await;
        }
    }

    /// Calls off what is asked for still; what cannot be called off now, the host that decides calls off.
    async fn call_off(&self, numbers: &Numbers) {
        for (id, number) in numbers {
            let cancel = |disk: &ClusterDisk| match disk.record.roster.snapshots.asked == Some(*number) {
                true => disk.record.cancel_snapshot(),
                false => Err(Objection::Snapshot(::cluster::NoSnapshot::NotAsked)),
            };
            if let Err(failure) = self.change_all(&[*id], cancel).await {
                tracing::debug!("{failure}");
            }
        }
    }

    /// Changes the records of several disks by one transaction, as they are now; tells owners, and what they are then.
    async fn change_all(
        &self,
        ids: &[DiskId],
        change: impl Fn(&ClusterDisk) -> Result<Transition, Objection>,
    ) -> Result<Vec<ClusterDisk>, Failure> {
        for attempt in 0..TRIES {
            let view = self.view();
            let (mut next, mut changes): (Vec<ClusterDisk>, Vec<Change>) = (Vec::new(), Vec::new());
            for id in ids {
                let disk = match view.disks.get(id).filter(|_| attempt == 0) {
                    Some(known) => ClusterDisk::clone(known),
                    None => self.changeable(*id).await?,
                };
                let changed = change(&disk).map_err(|why| {
                    let failure = objection(why);
                    Failure { error: format!("disk {}: {}", disk.record.name, failure.error), ..failure }
                })?;
                let version = disk.record.version;
                let disk = disk.with(changed.record);
                changes.push(disk.change(version)?);
                next.push(disk);
            }
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    for disk in &mut next {
                        disk.record.version = version;
                        self.note(disk);
                    }
                    for disk in &next {
                        self.tell_disk(disk).await?;
                    }
                    return Ok(next);
                }
                Outcome::Conflict { .. } => {}
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => return Err(unknown(&next[0].record.name)),
            }
        }
        Err(restless(ids[0]))
    }
}

/// An attempt ended because a record is not as it was: its owner has let go, or somebody has called it off.
fn gone(failure: Failure) -> Ended {
    Ended { failure, is_worth_another: false }
}

/// An attempt ended since one of the disks does not have the snapshot.
fn ended(disk: &str, why: Option<NotTaken>) -> Ended {
    let is_worth_another = why == Some(NotTaken::Unready);
    let why = why.map_or_else(|| "it is not asked for any more".to_owned(), |why| why.to_string());
    let failure = Failure::refused(format!("disk {disk}: {why}; no disk has the snapshot"));
    let hint = "`drystone disk show` and `drystone health` say what the disk waits for; then try again";
    Ended { failure: failure.hint(hint), is_worth_another }
}
