//! Range locks of a disk (invariant 6): overlapping changes wait for one another, and reads for changes.
//!
//! A range lies within one part (MiB), so each part of a place that is in use has a short lane of its own. Waiters start in the order
//! of their arrival: one that overlaps an earlier waiter waits behind it.
//!
//! Who locks ranges in several places asks for all of them at once. So whoever came earlier comes first in each lane, and nobody waits for
//! somebody who waits for it. It begins when it holds them all.
//!
//! Many parts can be locked together for reading. Such a stretch costs nothing for parts that nobody else uses: it stands beside
//! the lanes, and a lane that begins while the stretch is locked begins with a claim of it.

use base::units::{BLOCKS_PER_EXTENT, BLOCKS_PER_REGION};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops;

/// What a range is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// A guest reads, or asks what is allocated.
    Read,
    /// A guest's change that is not acknowledged.
    Change,
    /// A guest's change that is acknowledged, while a component in resync does not have it.
    AcknowledgedChange,
    /// A copy from one component to another.
    Copy,
    /// Members of rows are compared with one another, and nothing is changed.
    Check,
}

impl Hold {
    /// Whether one waits for the other where their ranges overlap.
    fn excludes(self, other: Hold) -> bool {
        match (self, other) {
            (Hold::Read | Hold::AcknowledgedChange, Hold::Read | Hold::AcknowledgedChange) => false,
            (Hold::Read | Hold::Check, Hold::Read | Hold::Check) => false,
            // A component in resync may not have the change yet.
            (Hold::Check, Hold::AcknowledgedChange) | (Hold::AcknowledgedChange, Hold::Check) => true,
            (Hold::Change | Hold::Copy, _) | (_, Hold::Change | Hold::Copy) => true,
        }
    }
}

/// Names who holds ranges or waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LockKey(pub(crate) u32);

/// Who may begin.
pub(crate) type Granted = SmallVec<[LockKey; 4]>;

/// Blocks of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) part: u32,
    pub(crate) block: u16,
    pub(crate) count: u16,
}

impl Range {
    /// What of it is in each row, of members of rows: columns that are folded together.
    pub(crate) fn rows(self) -> impl Iterator<Item = Range> {
        let (of_row, end) = (BLOCKS_PER_REGION as u16, self.block + self.count);
        let rows = self.block / of_row..end.div_ceil(of_row);
        rows.map(move |row| {
            let block = self.block.max(row * of_row);
            Range { block, count: end.min((row + 1) * of_row) - block, ..self }
        })
    }

    fn overlaps(&self, other: &Range) -> bool {
        self.block < other.block + other.count && other.block < self.block + self.count
    }
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    range: Range,
    hold: Hold,
    key: LockKey,
}

impl Claim {
    fn conflicts(&self, other: &Claim) -> bool {
        self.hold.excludes(other.hold) && self.range.overlaps(&other.range)
    }
}

/// All locks of a disk.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    places: Vec<Lanes>,
    /// Claims that whoever waits does not hold yet, where there are any.
    awaited: FxHashMap<LockKey, u32>,
}

impl Locks {
    /// Of a disk with so many places.
    pub(crate) fn new(places: usize) -> Locks {
        let places = (0..places).map(|_| Lanes::default()).collect();
        Locks { places, awaited: FxHashMap::default() }
    }

    /// Locks ranges of places for `key`, at most one of each part, by place and part in ascending order. False if it has to wait; it is
    /// granted once it holds all.
    pub(crate) fn lock(&mut self, key: LockKey, hold: Hold, ranges: &[(u16, Range)]) -> bool {
        let is_ordered = |pair: &[(u16, Range)]| (pair[0].0, pair[0].1.part) < (pair[1].0, pair[1].1.part);
        assert!(ranges.windows(2).all(is_ordered), "ranges are locked in one order");
        let mut waits = 0;
        for (place, range) in ranges {
            waits += u32::from(!self.places[usize::from(*place)].lock(Claim { range: *range, hold, key }));
        }
        self.await_claims(key, waits)
    }

    /// Locks whole parts of a place for `key` to read. False if it has to wait.
    pub(crate) fn lock_parts(&mut self, key: LockKey, place: u16, parts: ops::Range<u32>) -> bool {
        let waits = self.places[usize::from(place)].lock_parts(parts, key);
        self.await_claims(key, waits)
    }

    fn await_claims(&mut self, key: LockKey, waits: u32) -> bool {
        if waits > 0 {
            self.awaited.insert(key, waits);
        }
        waits == 0
    }

    /// Unlocks what [`Locks::lock`] locked; tells who may begin now.
    pub(crate) fn unlock(&mut self, key: LockKey, ranges: &[(u16, Range)]) -> Granted {
        let mut claimed = Granted::new();
        for (place, range) in ranges {
            self.places[usize::from(*place)].unlock(range.part, key, &mut claimed);
        }
        self.granted(claimed)
    }

    /// Unlocks what [`Locks::lock_parts`] locked, all of it; tells who may begin now.
    pub(crate) fn unlock_parts(&mut self, key: LockKey, place: u16) -> Granted {
        let mut claimed = Granted::new();
        self.places[usize::from(place)].unlock_parts(key, &mut claimed);
        self.granted(claimed)
    }

    /// The change that `key` locked a range for is acknowledged; tells who may begin now.
    pub(crate) fn acknowledge(&mut self, key: LockKey, place: u16, range: Range) -> Granted {
        let mut claimed = Granted::new();
        self.places[usize::from(place)].acknowledge(range.part, key, &mut claimed);
        self.granted(claimed)
    }

    /// Those that got a claim just now and hold all that they wait for.
    fn granted(&mut self, mut claimed: Granted) -> Granted {
        claimed.retain(|key| {
            let awaited = self.awaited.get_mut(key).expect("who gets a claim later waits for it");
            *awaited -= 1;
            let is_granted = *awaited == 0;
            if is_granted {
                self.awaited.remove(key);
            }
            is_granted
        });
        claimed
    }
}

#[derive(Debug, Default)]
struct Lane {
    held: SmallVec<[Claim; 4]>,
    waiting: VecDeque<Claim>,
}

/// Parts that are locked together for reading.
#[derive(Debug)]
struct Stretch {
    parts: ops::Range<u32>,
    key: LockKey,
}

impl Stretch {
    fn claim(&self, part: u32) -> Claim {
        let range = Range { part, block: 0, count: BLOCKS_PER_EXTENT as u16 };
        Claim { range, hold: Hold::Read, key: self.key }
    }
}

/// All lanes of a place.
#[derive(Debug, Default)]
struct Lanes {
    lanes: FxHashMap<u32, Lane>,
    stretches: Vec<Stretch>,
}

impl Lanes {
    /// Says whether the claim is held now.
    fn lock(&mut self, claim: Claim) -> bool {
        let part = claim.range.part;
        let stretches = &self.stretches;
        let lane = self.lanes.entry(part).or_insert_with(|| {
            let over = stretches.iter().filter(|stretch| stretch.parts.contains(&part));
            Lane { held: over.map(|stretch| stretch.claim(part)).collect(), waiting: VecDeque::new() }
        });
        lane.lock(claim)
    }

    /// Says for how many of the parts it has to wait.
    fn lock_parts(&mut self, parts: ops::Range<u32>, key: LockKey) -> u32 {
        let stretch = Stretch { parts, key };
        let mut waits = 0;
        for part in self.used(&stretch.parts) {
            let lane = self.lanes.get_mut(&part).expect("its part is in use");
            waits += u32::from(!lane.lock(stretch.claim(part)));
        }
        self.stretches.push(stretch);
        waits
    }

    fn unlock_parts(&mut self, key: LockKey, begin: &mut Granted) {
        let index = self.stretches.iter().position(|stretch| stretch.key == key);
        let stretch = self.stretches.swap_remove(index.expect("what is unlocked was locked"));
        for part in self.used(&stretch.parts) {
            self.unlock(part, key, begin);
        }
    }

    /// The parts of a range that have a lane, in ascending order.
    fn used(&self, parts: &ops::Range<u32>) -> SmallVec<[u32; 16]> {
        let is_few = parts.len() < self.lanes.len();
        let mut used: SmallVec<[u32; 16]> = match is_few {
            true => parts.clone().filter(|part| self.lanes.contains_key(part)).collect(),
            // Sorted below, so the order does not matter.
            false => self.lanes.keys().copied().filter(|part| parts.contains(part)).collect(),
        };
        used.sort_unstable();
        used
    }

    fn unlock(&mut self, part: u32, key: LockKey, begin: &mut Granted) {
        let lane = self.lanes.get_mut(&part).expect("what is unlocked was locked");
        let index = lane.held.iter().position(|claim| claim.key == key);
        lane.held.swap_remove(index.expect("what is unlocked was locked"));
        lane.begin_waiting(begin);
        if lane.held.is_empty() && lane.waiting.is_empty() {
            self.lanes.remove(&part);
        }
    }

    fn acknowledge(&mut self, part: u32, key: LockKey, begin: &mut Granted) {
        let lane = self.lanes.get_mut(&part).expect("what is acknowledged was locked");
        let claim = lane.held.iter_mut().find(|claim| claim.key == key);
        claim.expect("what is acknowledged was locked").hold = Hold::AcknowledgedChange;
        lane.begin_waiting(begin);
    }
}

impl Lane {
    fn lock(&mut self, claim: Claim) -> bool {
        let is_free = !self.held.iter().chain(&self.waiting).any(|other| other.conflicts(&claim));
        match is_free {
            true => self.held.push(claim),
            false => self.waiting.push_back(claim),
        }
        is_free
    }

    /// Locks what nothing before it is in the way of any more.
    fn begin_waiting(&mut self, begin: &mut Granted) {
        let mut at = 0;
        while at < self.waiting.len() {
            let claim = self.waiting[at];
            let earlier = self.waiting.iter().take(at);
            if self.held.iter().chain(earlier).any(|other| other.conflicts(&claim)) {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.held.push(claim);
            begin.push(claim.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: u16 = 0;

    fn range(block: u16, count: u16) -> Range {
        Range { part: 7, block, count }
    }

    struct Bench(Locks);

    impl Bench {
        fn new() -> Bench {
            Bench(Locks::new(2))
        }

        fn lock(&mut self, range: Range, hold: Hold, key: u32) -> bool {
            self.0.lock(LockKey(key), hold, &[(PLACE, range)])
        }

        fn unlock(&mut self, part: u32, key: u32) -> Vec<u32> {
            let range = Range { part, ..range(0, 1) };
            numbers(self.0.unlock(LockKey(key), &[(PLACE, range)]))
        }

        fn lanes(&self) -> usize {
            self.0.places.iter().map(|place| place.lanes.len()).sum()
        }

        fn is_free(&self) -> bool {
            self.lanes() == 0 && self.0.awaited.is_empty() && self.0.places[0].stretches.is_empty()
        }
    }

    fn numbers(granted: Granted) -> Vec<u32> {
        granted.into_iter().map(|LockKey(key)| key).collect()
    }

    #[test]
    fn overlapping_changes_go_one_after_the_other_and_waiters_are_not_overtaken() {
        let mut bench = Bench::new();
        assert!(bench.lock(range(0, 4), Hold::Change, 1));
        assert!(bench.lock(range(4, 4), Hold::Change, 2));
        assert!(!bench.lock(range(2, 4), Hold::Change, 3), "overlaps both");
        assert!(!bench.lock(range(5, 8), Hold::Read, 4), "behind 3 and 2");
        assert!(bench.lock(range(20, 1), Hold::Read, 5));
        assert!(bench.unlock(7, 1).is_empty());
        assert_eq!(bench.unlock(7, 2), [3]);
        assert_eq!(bench.unlock(7, 3), [4]);
    }

    #[test]
    fn what_is_acknowledged_may_be_read_and_not_changed() {
        let mut bench = Bench::new();
        assert!(bench.lock(range(0, 4), Hold::Change, 1));
        assert!(!bench.lock(range(2, 1), Hold::Read, 2));
        assert!(!bench.lock(range(3, 1), Hold::Copy, 3));
        assert_eq!(numbers(bench.0.acknowledge(LockKey(1), PLACE, range(0, 4))), [2]);
        assert!(bench.lock(range(0, 1), Hold::Read, 4));
        assert_eq!(bench.unlock(7, 1), [3]);
    }

    /// Each of the two would hold one place and wait for the other.
    #[test]
    fn two_that_lock_the_same_two_places_do_not_wait_for_each_other() {
        let mut bench = Bench::new();
        let both = [(0, range(0, 4)), (1, range(8, 4))];
        assert!(bench.0.lock(LockKey(1), Hold::Read, &[(1, range(9, 1))]));
        assert!(!bench.0.lock(LockKey(2), Hold::Change, &both), "it holds the first");
        assert!(!bench.0.lock(LockKey(3), Hold::Change, &both));
        assert!(!bench.lock(range(3, 1), Hold::Read, 4), "behind 2, which waits for another place");
        assert_eq!(numbers(bench.0.unlock(LockKey(1), &[(1, range(9, 1))])), [2]);
        assert!(numbers(bench.0.unlock(LockKey(2), &both)) == [3], "the read is behind it");
        assert_eq!(numbers(bench.0.unlock(LockKey(3), &both)), [4]);
        assert!(bench.unlock(7, 4).is_empty() && bench.is_free());
    }

    #[test]
    fn a_stretch_of_parts_costs_only_the_lanes_in_use_and_keeps_changes_out_of_all() {
        let mut bench = Bench::new();
        assert!(bench.lock(range(0, 4), Hold::Change, 1));
        assert!(!bench.0.lock_parts(LockKey(2), PLACE, 0..1 << 16), "it waits for the change");
        assert_eq!(bench.lanes(), 1);
        let other = Range { part: 99, block: 3, count: 1 };
        assert!(!bench.lock(other, Hold::Change, 3), "the stretch was there before");
        assert!(!bench.lock(range(9, 1), Hold::Change, 4), "behind the stretch, which waits");
        assert!(!bench.0.lock_parts(LockKey(5), PLACE, 7..100), "behind the changes");
        assert_eq!(bench.unlock(7, 1), [2]);
        assert_eq!(numbers(bench.0.unlock_parts(LockKey(2), PLACE)), [4, 3]);
        assert!(bench.unlock(99, 3).is_empty(), "it waits for another change");
        assert_eq!(bench.unlock(7, 4), [5]);
        assert_eq!(bench.lanes(), 2);
        assert!(numbers(bench.0.unlock_parts(LockKey(5), PLACE)).is_empty() && bench.is_free());
    }

    #[test]
    fn reads_share_and_an_empty_lane_is_forgotten() {
        let mut bench = Bench::new();
        assert!(bench.lock(range(0, 4), Hold::Read, 1));
        assert!(bench.lock(range(2, 4), Hold::Read, 2));
        assert!(bench.unlock(7, 1).is_empty() && bench.unlock(7, 2).is_empty());
        assert!(bench.is_free());
    }
}
