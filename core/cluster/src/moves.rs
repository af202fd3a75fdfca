//! Moves of disks into another layout, as seen from outside: what their owners report, since when they stand still, and how many may be
//! under way (docs/design/0041).
//!
//! Data and counts alone: `standstill` puts them into words. Must never decide where a component stands.

use crate::disk::{DiskRecord, DiskState};
use crate::limits::{MOVES_MAX, MOVES_PER_HOST_MAX};
use base::{DiskId, HostId, Instant};
use std::collections::BTreeMap;
use std::fmt;

/// What keeps a move from going on, as the owner of the disk reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hindrance {
    /// A device has no room for the layout that the disk moves to.
    NoSpace,
    /// Blocks of the disk are damaged on all copies.
    Damaged,
    /// A component of the disk is not there or not up to date.
    AwaitsComponent,
}

impl Hindrance {
    const ALL: [Hindrance; 3] = [Hindrance::NoSpace, Hindrance::Damaged, Hindrance::AwaitsComponent];

    /// The hindrance of a text that another host wrote.
    pub fn read(text: &str) -> Option<Hindrance> {
        Hindrance::ALL.into_iter().find(|one| one.to_string() == text)
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hindrance::NoSpace => "no-space",
            Hindrance::Damaged => "damaged",
            Hindrance::AwaitsComponent => "awaits-component",
        })
    }
}

/// A move under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveStatus {
    /// Since when the boundary has not advanced, or the move is paused, by the directory's clock.
    pub still_since: Instant,
    /// What the owner reports.
    pub hindrance: Option<Hindrance>,
}

/// The part of a record that changes whenever a move advances, turns, pauses or goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    boundary: Option<u64>,
    trimmed: u64,
    /// Snapshots that components of the other layout are to get, counted for each of them.
    lacked: usize,
    is_back: bool,
    is_paused: bool,
}

impl Position {
    fn of(disk: &DiskRecord) -> Option<Position> {
        let moving = disk.moving.as_ref()?;
        Some(Position {
            boundary: disk.layout.boundary(),
            trimmed: moving.trimmed,
            lacked: disk.snapshots.taken.iter().map(|one| disk.awaiting(one.number)).sum(),
            is_back: moving.is_back,
            is_paused: moving.is_paused,
        })
    }
}

/// Remembers since when moves stand still.
#[derive(Debug, Default)]
pub struct MoveWatch {
    seen: BTreeMap<DiskId, (Position, Instant)>,
}

impl MoveWatch {
    /// The moves under way, from the records and the reports of owners.
    pub fn step(
        &mut self,
        now: Instant,
        disks: &BTreeMap<DiskId, DiskRecord>,
        reports: &BTreeMap<DiskId, Hindrance>,
    ) -> BTreeMap<DiskId, MoveStatus> {
        let former = std::mem::take(&mut self.seen);
        let mut all = BTreeMap::new();
        for (id, disk) in disks {
            let Some(position) = Position::of(disk) else { continue };
            let before = former.get(id).filter(|(before, _)| *before == position);
            let still_since = before.map_or(now, |(_, since)| *since);
            self.seen.insert(*id, (position, still_since));
            all.insert(*id, MoveStatus { still_since, hindrance: reports.get(id).copied() });
        }
        all
    }
}

/// Counts moves under way. A paused move does not count: it may stay paused for as long as people like.
#[derive(Debug, Clone, Default)]
pub struct MovesUnderWay {
    total: usize,
    of_host: BTreeMap<HostId, usize>,
}

impl MovesUnderWay {
    /// The moves of these disks.
    pub fn of<'a>(disks: impl Iterator<Item = &'a DiskRecord>) -> MovesUnderWay {
        let mut all = MovesUnderWay::default();
        let is_under_way = |disk: &&DiskRecord| {
            disk.state == DiskState::Active && disk.moving.as_ref().is_some_and(|moving| !moving.is_paused)
        };
        disks.filter(is_under_way).for_each(|disk| all.add(disk));
        all
    }

    /// Counts one more.
    pub fn add(&mut self, disk: &DiskRecord) {
        self.total += 1;
        if let Some(owner) = disk.roster.owner {
            *self.of_host.entry(owner.node.host).or_default() += 1;
        }
    }

    /// Why a disk that follows a named policy does not begin to move yet; none if it may begin.
    pub fn bound_on(&self, disk: &DiskRecord) -> Option<String> {
        let host = disk.roster.owner.map(|owner| owner.node.host);
        let of_host = host.and_then(|host| self.of_host.get(&host)).copied().unwrap_or(0);
        let wait = "it waits for other moves";
        match () {
            () if self.total >= MOVES_MAX => {
                Some(format!("{wait}: {} are under way, at most {MOVES_MAX} at once", self.total))
            }
            () if of_host >= MOVES_PER_HOST_MAX => Some(format!(
                "{wait}: {of_host} are under way on the host that owns it, at most {MOVES_PER_HOST_MAX} at once"
            )),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, cluster, node, policy};
    use crate::view::View;
    use replication::OwnedBy;

    /// Disks 1 to `count` of a cluster; the first `moving` of them move into rows with parity.
    fn moving(count: u128, moving: u128) -> View {
        let mut view = cluster(5, 2);
        for id in 1..=count {
            let disk = view.add_disk(id, "default,stripes=1");
            if id <= moving {
                view.begin_move(disk.id, &policy("method=parity,stripes=1"));
            }
        }
        view
    }

    #[test]
    fn a_move_stands_still_since_its_boundary_advanced_last() {
        let mut view = moving(2, 1);
        let mut watch = MoveWatch::default();
        let report = BTreeMap::from([(DiskId(1), Hindrance::NoSpace)]);
        let mut since = |second, disks: &_, reports: &_| {
            let found = watch.step(at(second), disks, reports);
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), [DiskId(1)], "the other one does not move");
            (found[&DiskId(1)].still_since, found[&DiskId(1)].hindrance)
        };
        assert_eq!(since(10, &view.disks, &BTreeMap::new()), (at(10), None));
        assert_eq!(since(20, &view.disks, &report), (at(10), Some(Hindrance::NoSpace)));
        view.advance_move(DiskId(1), 1 << 30);
        assert_eq!(since(30, &view.disks, &BTreeMap::new()), (at(30), None));
        assert_eq!(since(40, &view.disks, &BTreeMap::new()), (at(30), None));
        let paused = view.disk(1).steer_move(false, true).expect("it moves").record;
        view.disks.insert(DiskId(1), paused);
        assert_eq!(since(50, &view.disks, &BTreeMap::new()), (at(50), None));
    }

    #[test]
    fn moves_are_bounded_by_host_and_in_all() {
        let mut view = moving(18, 17);
        let bound = |view: &View| MovesUnderWay::of(view.disks.values()).bound_on(view.disk(18));
        assert!(bound(&view).is_some_and(|why| why.contains("at most 16 at once")), "{:?}", bound(&view));
        for id in 1..=17 {
            let owner = OwnedBy { node: node(id % 5 + 1), incarnation: 1 };
            view.disks.get_mut(&DiskId(id)).expect("it is there").roster.owner = Some(owner);
            if id > 9 {
                let paused = view.disk(id).steer_move(false, true).expect("it moves").record;
                view.disks.insert(DiskId(id), paused);
            }
        }
        assert_eq!(bound(&view), None, "one of each host but host 1, and paused ones do not count");
        for id in 1..=4 {
            let owner = OwnedBy { node: node(1), incarnation: 1 };
            view.disks.get_mut(&DiskId(id)).expect("it is there").roster.owner = Some(owner);
        }
        assert!(
            bound(&view).is_some_and(|why| why.contains("host that owns it, at most 4")),
            "{:?}",
            bound(&view)
        );
        let mut counted = MovesUnderWay::default();
        assert_eq!(counted.bound_on(view.disk(18)), None);
        (0..4).for_each(|_| counted.add(view.disk(18)));
        assert!(counted.bound_on(view.disk(18)).is_some());
    }

    #[test]
    fn hindrances_are_understood_by_the_host_that_reads_them() {
        for one in Hindrance::ALL {
            assert_eq!(Hindrance::read(&one.to_string()), Some(one));
        }
        assert_eq!(Hindrance::read("it rains"), None);
    }
}
