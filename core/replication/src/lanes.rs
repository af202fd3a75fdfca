//! Range locks of one place (invariant 6): overlapping changes wait for one another, and reads for changes.
//!
//! A range lies within one part (MiB), so each part has a short lane of its own. Waiters start in the order of their
//! arrival: one that overlaps an earlier waiter waits behind it.
//!
//! Many parts can be locked together for reading. Such a stretch costs nothing for parts that nobody else uses: it stands beside
//! the lanes, and a lane that begins while the stretch is locked begins with a claim of it.

use base::units::BLOCKS_PER_EXTENT;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops;

/// What a range is locked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Others may read at the same time.
    Shared,
    /// Nobody else.
    Exclusive,
}

/// Names what holds or waits for ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockKey(pub(crate) u32);

/// Blocks of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) part: u32,
    pub(crate) block: u16,
    pub(crate) count: u16,
}

impl Range {
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
        (self.hold == Hold::Exclusive || other.hold == Hold::Exclusive) && self.range.overlaps(&other.range)
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
        Claim { range, hold: Hold::Shared, key: self.key }
    }
}

/// All lanes of a place.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: FxHashMap<u32, Lane>,
    stretches: Vec<Stretch>,
}

impl Lanes {
    /// Locks the range for `key`, or lets it wait; says whether it is locked now.
    pub(crate) fn lock(&mut self, range: Range, hold: Hold, key: LockKey) -> bool {
        let part = range.part;
        let stretches = &self.stretches;
        let lane = self.lanes.entry(part).or_insert_with(|| {
            let over = stretches.iter().filter(|stretch| stretch.parts.contains(&part));
            Lane { held: over.map(|stretch| stretch.claim(part)).collect(), waiting: VecDeque::new() }
        });
        lane.lock(Claim { range, hold, key })
    }

    /// Locks whole parts for `key` to read; says for how many of them it has to wait. It begins once for each of these.
    pub(crate) fn lock_parts(&mut self, parts: ops::Range<u32>, key: LockKey) -> u32 {
        let stretch = Stretch { parts, key };
        let mut waits = 0;
        for part in self.used(&stretch.parts) {
            let lane = self.lanes.get_mut(&part).expect("its part is in use");
            waits += u32::from(!lane.lock(stretch.claim(part)));
        }
        self.stretches.push(stretch);
        waits
    }

    /// Unlocks what [`Lanes::lock_parts`] locked, all of it, and tells who may begin now.
    pub(crate) fn unlock_parts(&mut self, key: LockKey, begin: &mut SmallVec<[LockKey; 4]>) {
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

    /// Unlocks what `key` holds in that part, and tells who may begin now.
    pub(crate) fn unlock(&mut self, part: u32, key: LockKey, begin: &mut SmallVec<[LockKey; 4]>) {
        let lane = self.lanes.get_mut(&part).expect("what is unlocked was locked");
        let index = lane.held.iter().position(|claim| claim.key == key);
        lane.held.swap_remove(index.expect("what is unlocked was locked"));
        lane.begin_waiting(begin);
        if lane.held.is_empty() && lane.waiting.is_empty() {
            self.lanes.remove(&part);
        }
    }

    /// Lets others read what `key` holds in that part, and tells who may begin now.
    pub(crate) fn share(&mut self, part: u32, key: LockKey, begin: &mut SmallVec<[LockKey; 4]>) {
        let lane = self.lanes.get_mut(&part).expect("what is shared was locked");
        let claim = lane.held.iter_mut().find(|claim| claim.key == key);
        claim.expect("what is shared was locked").hold = Hold::Shared;
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
    fn begin_waiting(&mut self, begin: &mut SmallVec<[LockKey; 4]>) {
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

    fn range(block: u16, count: u16) -> Range {
        Range { part: 7, block, count }
    }

    #[test]
    fn overlapping_changes_go_one_after_the_other_and_waiters_are_not_overtaken() {
        let mut lanes = Lanes::default();
        assert!(lanes.lock(range(0, 4), Hold::Exclusive, LockKey(1)));
        assert!(lanes.lock(range(4, 4), Hold::Exclusive, LockKey(2)));
        assert!(!lanes.lock(range(2, 4), Hold::Exclusive, LockKey(3)), "overlaps both");
        assert!(!lanes.lock(range(5, 8), Hold::Shared, LockKey(4)), "behind 3 and 2");
        assert!(lanes.lock(range(20, 1), Hold::Shared, LockKey(5)));
        let mut begin = SmallVec::new();
        lanes.unlock(7, LockKey(1), &mut begin);
        assert!(begin.is_empty());
        lanes.unlock(7, LockKey(2), &mut begin);
        assert_eq!(begin.to_vec(), [3].map(LockKey));
        begin.clear();
        lanes.unlock(7, LockKey(3), &mut begin);
        assert_eq!(begin.to_vec(), [4].map(LockKey));
    }

    #[test]
    fn what_is_shared_may_be_read_and_not_changed() {
        let mut lanes = Lanes::default();
        assert!(lanes.lock(range(0, 4), Hold::Exclusive, LockKey(1)));
        assert!(!lanes.lock(range(2, 1), Hold::Shared, LockKey(2)));
        assert!(!lanes.lock(range(3, 1), Hold::Exclusive, LockKey(3)));
        let mut begin = SmallVec::new();
        lanes.share(7, LockKey(1), &mut begin);
        assert_eq!(begin.to_vec(), [2].map(LockKey));
        assert!(lanes.lock(range(0, 1), Hold::Shared, LockKey(4)));
        begin.clear();
        lanes.unlock(7, LockKey(1), &mut begin);
        assert_eq!(begin.to_vec(), [3].map(LockKey));
    }

    #[test]
    fn a_stretch_of_parts_costs_only_the_lanes_in_use_and_keeps_changes_out_of_all() {
        let mut lanes = Lanes::default();
        assert!(lanes.lock(range(0, 4), Hold::Exclusive, LockKey(1)));
        assert_eq!(lanes.lock_parts(0..1 << 16, LockKey(2)), 1, "it waits for the change");
        assert_eq!(lanes.lanes.len(), 1);
        let other = Range { part: 99, block: 3, count: 1 };
        assert!(!lanes.lock(other, Hold::Exclusive, LockKey(3)), "the stretch was there before");
        assert!(!lanes.lock(range(9, 1), Hold::Exclusive, LockKey(4)), "behind the stretch, which waits");
        assert_eq!(lanes.lock_parts(7..100, LockKey(5)), 2, "behind the changes");
        let mut begin = SmallVec::new();
        lanes.unlock(7, LockKey(1), &mut begin);
        assert_eq!(begin.to_vec(), [2].map(LockKey));
        begin.clear();
        lanes.unlock_parts(LockKey(2), &mut begin);
        assert_eq!(begin.to_vec(), [4, 3].map(LockKey));
        begin.clear();
        lanes.unlock(99, LockKey(3), &mut begin);
        lanes.unlock(7, LockKey(4), &mut begin);
        assert_eq!(begin.to_vec(), [5, 5].map(LockKey), "once for each that it waited for");
        begin.clear();
        assert_eq!(lanes.lanes.len(), 2);
        lanes.unlock_parts(LockKey(5), &mut begin);
        assert!(begin.is_empty() && lanes.lanes.is_empty() && lanes.stretches.is_empty());
    }

    #[test]
    fn reads_share_and_an_empty_lane_is_forgotten() {
        let mut lanes = Lanes::default();
        assert!(lanes.lock(range(0, 4), Hold::Shared, LockKey(1)));
        assert!(lanes.lock(range(2, 4), Hold::Shared, LockKey(2)));
        let mut begin = SmallVec::new();
        lanes.unlock(7, LockKey(1), &mut begin);
        lanes.unlock(7, LockKey(2), &mut begin);
        assert!(begin.is_empty() && lanes.lanes.is_empty());
    }
}
