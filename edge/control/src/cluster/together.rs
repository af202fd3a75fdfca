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

/// The longest pause between two attempts, in units of [`TOGETHER_PAUSE`].
const PAUSES_MAX: u32 = 3;

/// The number of the snapshot that each disk is to have.
type Numbers = BTreeMap<DiskId, u32>;

/// Why an attempt ended without a snapshot.
struct Ended {
    /// What is told if there is no other attempt.
    failure: Failure,
    /// Whether another attempt may succeed: a disk group is being converted, an owner has just begun, or one was too slow.
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
        let began = Instant::now();
        for attempt in 1.. {
            self.await_owners(ids).await?;
            match self.attempt_together(ids, name).await {
                Ok(()) => {
                    let text = format!("snapshot {name} of {} disks was taken at one moment", ids.len());
                    ids.iter().for_each(|id| self.log(*id, Kind::SnapshotTaken, text.clone()));
                    return Ok(());
                }
                Err(ended) => match pause_after(attempt, began.elapsed(), &ended) {
                    Some(pause) => {
                        tracing::debug!("{}: tried again", ended.failure);
                        tokio::time::sleep(pause).await;
                    }
                    None => return Err(told(ended.failure, attempt)),
                },
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
        let level = self.view().level.level;
        let asked = self.change_all(ids, |disk| disk.record.ask_together(name, level)).await?;
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

/// An attempt ended because a record is not as it was: its owner has let go in this very moment, or somebody has called it off. Both are worth
/// another attempt, but not where nobody knows what became of the transaction.
fn gone(failure: Failure) -> Ended {
    let is_worth_another = failure.code == Code::Refused;
    Ended { failure, is_worth_another }
}

/// The pause before the next attempt after one that has failed; none if there is to be no other. Each attempt may make guests wait for a second, so
/// the pauses grow: guests get most of the time. What a further attempt takes at most has to be left of the time that somebody waits.
fn pause_after(attempt: usize, elapsed: Duration, ended: &Ended) -> Option<Duration> {
    let pause = TOGETHER_PAUSE * u32::try_from(attempt).unwrap_or(u32::MAX).min(PAUSES_MAX);
    let is_time_left = elapsed + pause + TOGETHER_HOLD_WAIT + TOGETHER_MARK_WAIT <= SNAPSHOT_WAIT;
    (ended.is_worth_another && attempt < TOGETHER_ATTEMPTS && is_time_left).then_some(pause)
}

/// What is told of the last attempt.
fn told(failure: Failure, attempts: usize) -> Failure {
    match attempts {
        1 => failure,
        _ => Failure { error: format!("{} ({attempts} attempts)", failure.error), ..failure },
    }
}

/// An attempt ended since one of the disks does not have the snapshot.
fn ended(disk: &str, why: Option<NotTaken>) -> Ended {
    let is_worth_another = matches!(why, Some(NotTaken::Unready | NotTaken::NotHeld));
    let why = why.map_or_else(|| "it is not asked for any more".to_owned(), |why| why.to_string());
    let failure = Failure::refused(format!("disk {disk}: {why}; no disk has the snapshot"));
    let hint = "`drystone disk show` and `drystone health` say what the disk waits for; then try again";
    Ended { failure: failure.hint(hint), is_worth_another }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Attempts that all take as long as one can, as they are made until there is no other; and how long that takes.
    fn all(why: Option<NotTaken>, each: Duration) -> (usize, Duration) {
        let mut elapsed = Duration::ZERO;
        for attempt in 1.. {
            elapsed += each;
            match pause_after(attempt, elapsed, &ended("web", why)) {
                Some(pause) => elapsed += pause,
                None => return (attempt, elapsed),
            }
        }
        unreachable!("attempts end")
    }

    /// On a loaded machine 1 of 15 attempts found an owner that had to let go after 1 s, and that was what people were told.
    #[test]
    fn what_another_attempt_may_mend_is_tried_again_within_the_time_that_somebody_waits() {
        for why in [NotTaken::NotHeld, NotTaken::Unready] {
            assert_eq!(all(Some(why), SECOND), (5, 14 * SECOND), "{why}");
            let (attempts, elapsed) = all(Some(why), TOGETHER_HOLD_WAIT + TOGETHER_MARK_WAIT);
            assert!(attempts >= 3 && elapsed <= SNAPSHOT_WAIT, "{attempts} attempts in {elapsed:?}");
            assert!(all(Some(why), SECOND / 100).0 <= TOGETHER_ATTEMPTS);
        }
        for why in [NotTaken::NoSpace, NotTaken::Refused, NotTaken::Layout] {
            assert_eq!(all(Some(why), SECOND).0, 1, "{why}");
        }
        assert_eq!(all(None, SECOND).0, 1, "somebody has called it off");
    }

    #[test]
    fn a_record_that_has_changed_is_worth_another_attempt_and_an_unknown_outcome_is_none() {
        assert!(gone(Failure::refused("no snapshot of the disk is being taken")).is_worth_another);
        assert!(!gone(unknown("web")).is_worth_another);
        assert!(!gone(Failure::new(Code::NotFound, "it is deleted")).is_worth_another);
    }

    #[test]
    fn people_are_told_how_often_it_was_tried() {
        let failure = ended("web", Some(NotTaken::NotHeld)).failure;
        assert!(!told(failure.clone(), 1).error.contains("attempt"));
        assert!(told(failure, 4).error.ends_with("no disk has the snapshot (4 attempts)"));
    }
}
