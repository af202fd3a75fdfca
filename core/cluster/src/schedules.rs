//! Scheduled snapshots: which are due, and which are kept no longer (docs/design/0047, "Schedules").
//!
//! What was taken stands in the records of disks, so that a host that begins to decide knows what its predecessor did: a snapshot
//! and the time at which it was due are recorded by one transaction. [`Scheduler`] remembers only what keeps it from trying too often.

use crate::disk::{Clones, DiskRecord, DiskState, NoSnapshot, Objection};
use crate::health::Provisioned;
use crate::levels::Level;
use crate::limits::{
    SCHEDULED_AT_ONCE_MAX, SCHEDULED_FREE_MIN, SCHEDULED_LATE, SCHEDULED_PATIENCE, SCHEDULED_RETRY,
};
use crate::view::View;
use crate::words::duration;
use base::calendar::minute_name;
use base::{DiskId, Instant};
use placement::{Every, Schedule};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What is to be done about scheduled snapshots of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheduled {
    /// A snapshot is to be asked for.
    Ask {
        /// Its schedule.
        every: Every,
        /// Its name.
        name: String,
    },
    /// Its owner has not taken it, or whoever wanted it of several disks is gone: it is asked for no more.
    Cancel,
    /// A snapshot is deleted: its schedule keeps newer ones.
    Delete {
        /// Its name.
        name: String,
        /// Its schedule.
        schedule: Schedule,
    },
}

/// What a snapshot is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A schedule, and when it was due.
    Scheduled(Every, u64),
    /// To have it together with other disks; its number.
    Together(u32),
}

impl Wanted {
    /// What the one is asked for that a disk is to have; none if a person waits for it, or there is none.
    fn of(disk: &DiskRecord) -> Option<Wanted> {
        let number = disk.roster.snapshots.asked?;
        match (disk.snapshots.asked_for, disk.roster.snapshots.together) {
            (Some((every, due)), _) => Some(Wanted::Scheduled(every, due)),
            (None, Some(_)) => Some(Wanted::Together(number)),
            (None, None) => None,
        }
    }
}

/// Decides about scheduled snapshots. It remembers recent attempts; after a restart it only tries again sooner.
#[derive(Debug, Clone, Default)]
pub struct Scheduler {
    /// When a snapshot of a schedule was last asked for here, and when that was due.
    tried: BTreeMap<(DiskId, Every), (u64, Instant)>,
    /// Since when a snapshot is asked for by a schedule, or for several disks, and which.
    asked: BTreeMap<DiskId, (Wanted, Instant)>,
    /// When the last one of a schedule was due by the record, and since when the record says so.
    served: BTreeMap<(DiskId, Every), (u64, Option<Instant>)>,
}

impl Scheduler {
    /// Decides. `seconds`: the time of day since 1970; `steady`: a clock that never jumps.
    pub fn step(&mut self, seconds: u64, steady: Instant, view: &View) -> Vec<(DiskId, Scheduled)> {
        self.note(steady, view);
        let mut found = Vec::new();
        let clones = Clones::of(view.disks.values().filter_map(|disk| disk.origin));
        for disk in view.disks.values().filter(|disk| disk.state == DiskState::Active) {
            let deleted = disk.expired_snapshots(&clones).into_iter().filter_map(|one| {
                let schedule = disk.policy.snapshots.of(one.schedule?)?;
                Some((disk.id, Scheduled::Delete { name: one.name.clone(), schedule }))
            });
            found.extend(deleted);
        }
        let patience = |since: Instant| steady.since(since) >= SCHEDULED_PATIENCE;
        let overdue = self.asked.iter().filter(|(_, (_, since))| patience(*since));
        found.extend(overdue.map(|(id, _)| (*id, Scheduled::Cancel)));
        if has_little_space(view) {
            return found;
        }
        let places = SCHEDULED_AT_ONCE_MAX.saturating_sub(self.asked.len());
        let due = view
            .disks
            .values()
            .filter_map(|disk| Some((disk, self.due(disk, view.level, (seconds, steady))?)));
        let due: Vec<_> = due.take(places).collect();
        for (disk, (every, due)) in due {
            self.tried.insert((disk.id, every), (due, steady));
            found.push((disk.id, Scheduled::Ask { every, name: name_of(disk, every, seconds) }));
        }
        found
    }

    /// Takes over what records say.
    fn note(&mut self, steady: Instant, view: &View) {
        let (asked, served) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.served));
        for disk in view.disks.values() {
            if let Some(wanted) = Wanted::of(disk) {
                let since =
                    asked.get(&disk.id).filter(|(before, _)| *before == wanted).map(|(_, since)| *since);
                self.asked.insert(disk.id, (wanted, since.unwrap_or(steady)));
            }
            for (every, due) in &disk.snapshots.served {
                let now = match served.get(&(disk.id, *every)) {
                    Some(before) if before.0 == *due => *before,
                    Some(_) => (*due, Some(steady)),
                    None => (*due, None),
                };
                self.served.insert((disk.id, *every), now);
            }
        }
        self.tried
            .retain(|(id, _), (_, at)| view.disks.contains_key(id) && steady.since(*at) < SCHEDULED_RETRY);
    }

    /// The schedule of a disk whose snapshot is to be asked for now, and when it was due.
    fn due(
        &self,
        disk: &DiskRecord,
        level: Level,
        (seconds, steady): (u64, Instant),
    ) -> Option<(Every, u64)> {
        if disk.policy.snapshots.is_empty()
            || disk.roster.snapshots.asked.is_some()
            || disk.expect_snapshots_possible(level).is_err()
        {
            return None;
        }
        disk.policy.snapshots.iter().find_map(|schedule| {
            let every = schedule.every;
            let due = disk.snapshot_due(every, seconds)?;
            let key = (disk.id, every);
            let was_tried = self.tried.get(&key).is_some_and(|(tried, _)| *tried == due);
            // A clock that jumps to and fro takes one snapshot in each period at most, or retention would delete what is worth keeping.
            let since = self.served.get(&key).and_then(|(_, since)| *since);
            let is_fresh = since.is_some_and(|since| steady.since(since) < every.period());
            let is_jump = disk.is_served_ahead(every, seconds) && is_fresh;
            (!was_tried && !is_jump).then_some((every, due))
        })
    }
}

/// The name of a snapshot of a schedule: it tells when it was asked for.
fn name_of(disk: &DiskRecord, every: Every, seconds: u64) -> String {
    let name = format!("{}-{}", every.name(), minute_name(seconds));
    let is_taken = |name: &String| disk.snapshots.named(name).is_some();
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).expect("numbers do not end")
}

/// Whether so little space is free in the whole cluster that no scheduled snapshot is taken.
fn has_little_space(view: &View) -> bool {
    let Provisioned { capacity_bytes, used_bytes, .. } = Provisioned::of(view);
    let free = capacity_bytes.saturating_sub(used_bytes);
    u128::from(free) * 100 < u128::from(capacity_bytes) * u128::from(SCHEDULED_FREE_MIN)
}

/// Why a scheduled snapshot is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Late {
    /// The disk cannot have it.
    Impossible(Objection),
    /// Too little space is free.
    LittleSpace,
    /// Its owner could not take the last one.
    NotTaken(replication::NotTaken),
    /// It was due so long ago, and nothing is known that is in the way.
    For(Duration),
}

/// The scheduled snapshot of a disk that is missing and will not come by itself soon: its schedule, and why; at `seconds` since 1970.
pub fn late_snapshot(view: &View, disk: &DiskRecord, seconds: u64) -> Option<(Every, Late)> {
    let missing = disk.policy.snapshots.iter().filter_map(|one| {
        let due = disk.snapshot_due(one.every, seconds)?;
        // Nobody knows since when a schedule that has taken none is there.
        let is_known = disk.snapshots.served.contains_key(&one.every);
        Some((one.every, is_known.then(|| Duration::from_secs(seconds - due))))
    });
    let missing: Vec<(Every, Option<Duration>)> = missing.collect();
    let (every, since) = missing.into_iter().max_by_key(|(_, since)| *since)?;
    let why = match disk.expect_snapshots_possible(view.level) {
        Err(Objection::State(_)) => return None,
        Err(objection) => Late::Impossible(objection),
        Ok(()) if has_little_space(view) => Late::LittleSpace,
        Ok(()) => match (disk.roster.snapshots.not_taken, since) {
            (Some(why), _) => Late::NotTaken(why),
            (None, Some(late)) if late >= SCHEDULED_LATE => Late::For(late),
            (None, _) => return None,
        },
    };
    Some((every, why))
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Late::Impossible(objection) => write!(f, "{objection}"),
            Late::LittleSpace => write!(f, "less than {SCHEDULED_FREE_MIN} % of the cluster's space is free"),
            Late::NotTaken(why) => write!(f, "{why}"),
            Late::For(late) => write!(f, "the last one has been due for {}", duration(*late)),
        }
    }
}

impl Late {
    /// What can be done about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Late::Impossible(Objection::Snapshot(NoSnapshot::TooMany)) => {
                "delete snapshots that are needed no more (`drystone disk snapshot list`), or have the policy keep fewer"
            }
            Late::Impossible(Objection::Snapshot(NoSnapshot::RollingBack(_))) => {
                "wait until the rollback is done, or repeat it if it was cut short"
            }
            Late::Impossible(Objection::Moving) => "wait until the disk has moved",
            Late::Impossible(_) => {
                "give the disk a policy without a schedule (`snapshots=none`) and back it up otherwise"
            }
            Late::LittleSpace => "delete snapshots or disks that are needed no more, or add devices",
            Late::NotTaken(replication::NotTaken::NoSpace) => {
                "free space on the devices that hold the disk; it is tried again each minute"
            }
            Late::NotTaken(_) => {
                "wait until deleted snapshots have given back their space; it is tried again each minute"
            }
            Late::For(_) => {
                "`drystone disk show` says what the disk waits for; it is tried again each minute"
            }
        }
    }
}

#[cfg(test)]
mod tests;
