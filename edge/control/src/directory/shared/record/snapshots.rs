//! The snapshots of a disk in its record, from level 4 on (docs/design/0047).

use ::cluster::{Snapshot, Snapshots};
use placement::Every;
use replication::{NotTaken, Numbers, Snapshots as Taken, Together};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The snapshots of a disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSnapshots {
    /// The greatest number that was given.
    last: u32,
    /// The number of one that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<u32>,
    /// The name of the last one that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_asked: Option<String>,
    /// Why the last one was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_taken: Option<StoredNotTaken>,
    /// How far the one is that is asked for, if other disks are to have it at the same moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    together: Option<StoredTogether>,
    /// Whether components may have some that are deleted.
    #[serde(default, skip_serializing_if = "super::disk::is_false")]
    to_sweep: bool,
    /// The schedule for which one is asked for, and when it was due, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_for: Option<(String, u64)>,
    /// When the last one of each schedule was due, in seconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    served: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taken: Vec<StoredSnapshot>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSnapshot {
    number: u32,
    name: String,
    size: u64,
    taken_ns: u64,
    /// The schedule that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<String>,
    #[serde(default, skip_serializing_if = "super::disk::is_false")]
    pinned: bool,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredNotTaken {
    NoSpace,
    Refused,
    Layout,
    NotHeld,
    Unready,
}

impl From<NotTaken> for StoredNotTaken {
    fn from(why: NotTaken) -> StoredNotTaken {
        match why {
            NotTaken::NoSpace => StoredNotTaken::NoSpace,
            NotTaken::Refused => StoredNotTaken::Refused,
            NotTaken::Layout => StoredNotTaken::Layout,
            NotTaken::NotHeld => StoredNotTaken::NotHeld,
            NotTaken::Unready => StoredNotTaken::Unready,
        }
    }
}

impl From<StoredNotTaken> for NotTaken {
    fn from(why: StoredNotTaken) -> NotTaken {
        match why {
            StoredNotTaken::NoSpace => NotTaken::NoSpace,
            StoredNotTaken::Refused => NotTaken::Refused,
            StoredNotTaken::Layout => NotTaken::Layout,
            StoredNotTaken::NotHeld => NotTaken::NotHeld,
            StoredNotTaken::Unready => NotTaken::Unready,
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredTogether {
    Hold,
    Held,
    Mark,
    Marked,
}

impl From<Together> for StoredTogether {
    fn from(said: Together) -> StoredTogether {
        match said {
            Together::Hold => StoredTogether::Hold,
            Together::Held => StoredTogether::Held,
            Together::Mark => StoredTogether::Mark,
            Together::Marked => StoredTogether::Marked,
        }
    }
}

impl From<StoredTogether> for Together {
    fn from(said: StoredTogether) -> Together {
        match said {
            StoredTogether::Hold => Together::Hold,
            StoredTogether::Held => Together::Held,
            StoredTogether::Mark => Together::Mark,
            StoredTogether::Marked => Together::Marked,
        }
    }
}

impl StoredSnapshots {
    /// Those of a disk; none if it never had any.
    pub(super) fn of(numbers: &Taken, named: &Snapshots) -> Option<StoredSnapshots> {
        let stored = |one: &Snapshot| StoredSnapshot {
            number: one.number,
            name: one.name.clone(),
            size: one.size,
            taken_ns: one.taken_ns,
            schedule: one.schedule.map(Every::name),
            pinned: one.is_pinned,
        };
        (numbers.last > 0).then(|| StoredSnapshots {
            last: numbers.last,
            asked: numbers.asked,
            last_asked: named.last_asked.clone(),
            not_taken: numbers.not_taken.map(StoredNotTaken::from),
            together: numbers.together.map(StoredTogether::from),
            to_sweep: numbers.to_sweep,
            asked_for: named.asked_for.map(|(every, due)| (every.name(), due)),
            served: named.served.iter().map(|(every, due)| (every.name(), *due)).collect(),
            taken: named.taken.iter().map(stored).collect(),
        })
    }

    /// What they say, for the roster and for the record.
    pub(super) fn told(self) -> Result<(Taken, Snapshots), String> {
        let numbers = Taken {
            last: self.last,
            asked: self.asked,
            not_taken: self.not_taken.map(NotTaken::from),
            together: self.together.map(Together::from),
            taken: self.taken.iter().map(|one| one.number).collect(),
            to_sweep: self.to_sweep,
        };
        let named = |one: StoredSnapshot| {
            Ok::<_, String>(Snapshot {
                number: one.number,
                name: one.name,
                size: one.size,
                taken_ns: one.taken_ns,
                schedule: one.schedule.as_deref().map(schedule).transpose()?,
                is_pinned: one.pinned,
            })
        };
        let asked_for = self.asked_for.map(|(every, due)| Ok::<_, String>((schedule(&every)?, due)));
        let served = self.served.iter().map(|(every, due)| Ok::<_, String>((schedule(every)?, *due)));
        let snapshots = Snapshots {
            taken: self.taken.into_iter().map(named).collect::<Result<_, _>>()?,
            last_asked: self.last_asked,
            asked_for: asked_for.transpose()?,
            served: served.collect::<Result<_, _>>()?,
        };
        Ok((numbers, snapshots))
    }
}

/// The schedule of a name.
fn schedule(name: &str) -> Result<Every, String> {
    Every::named(name).ok_or_else(|| format!("`{name}` is no schedule of snapshots"))
}

/// Numbers that a component lacks, as stored.
pub(super) fn lacks(ranges: Vec<(u32, u32)>) -> Result<Numbers, String> {
    Numbers::of_ranges(ranges)
        .ok_or_else(|| "the snapshots that a component lacks are no ascending ranges".to_owned())
}
