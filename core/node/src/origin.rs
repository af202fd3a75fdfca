//! What the owner of a clone knows of its regions: which are the clone's own, and where the origin has anything
//! (docs/design/0050).
//!
//! A region is the clone's own if its first block is allocated in the clone. That block is never trimmed, so a region that is the
//! clone's own stays so; and a region that is not has nothing in the clone. What the origin has may be told too generously, now and not
//! then: nothing but speed may depend on it.

use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION, EXTENT_SIZE, REGIONS_PER_EXTENT};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a region.
pub(crate) const REGION_SIZE: u64 = BLOCKS_PER_REGION as u64 * BLOCK_SIZE;
/// Chunks that are known at most: beyond, what is known is forgotten.
const CHUNKS_MAX: usize = 1 << 20;

/// The number of a region of a disk.
pub(crate) type Region = u64;

/// Where the blocks of a region stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is not known whether the region is the clone's own.
    Unread,
    /// It is not, and it is to be asked whether the origin has anything there.
    Unasked,
    /// The region is the clone's own.
    Own,
    /// It is the origin's.
    Inherited,
    /// It is not the clone's own, and the origin has nothing there: zeroes.
    Empty,
}

/// Which regions of a MiB are known, and which of these are set.
#[derive(Debug, Default, Clone, Copy)]
struct Bits {
    known: u16,
    set: u16,
}

impl Bits {
    fn get(self, bit: u32) -> Option<bool> {
        (self.known >> bit & 1 == 1).then_some(self.set >> bit & 1 == 1)
    }

    fn put(&mut self, bit: u32, value: Option<bool>) {
        let mask = 1 << bit;
        self.known = if value.is_some() { self.known | mask } else { self.known & !mask };
        self.set = if value == Some(true) { self.set | mask } else { self.set & !mask };
    }
}

/// The regions of a clone.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// The owner that what is known of the live disk is of.
    owner: Option<u64>,
    /// By MiB: where the origin has anything.
    backed: BTreeMap<u64, u16>,
    /// By snapshot of the clone (0: the live disk) and MiB: which regions' first blocks are allocated.
    own: BTreeMap<(u32, u64), Bits>,
    /// Lessons about the live disk under way, and regions that a change has ended in meanwhile.
    lessons: usize,
    touched: BTreeMap<Region, u64>,
    changes: u64,
}

/// The regions that some bytes lie in.
pub(crate) fn regions_of(bytes: &Range<u64>) -> Range<Region> {
    bytes.start / REGION_SIZE..bytes.end.div_ceil(REGION_SIZE)
}

/// The bytes of a region.
pub(crate) fn bytes_of(region: Region) -> Range<u64> {
    region * REGION_SIZE..(region + 1) * REGION_SIZE
}

fn chunk_of(region: Region) -> (u64, u32) {
    (region / REGIONS_PER_EXTENT as u64, (region % REGIONS_PER_EXTENT as u64) as u32)
}

impl Regions {
    /// Another owner: what one before knew of the live disk may not be so any more.
    pub(crate) fn reign(&mut self, owner: Option<u64>) {
        if self.owner != owner || self.own.len() + self.backed.len() > CHUNKS_MAX {
            self.owner = owner;
            self.own.retain(|(snapshot, _), _| *snapshot > 0);
        }
        if self.own.len() + self.backed.len() > CHUNKS_MAX {
            (self.own, self.backed) = Default::default();
        }
    }

    /// Forgets all that is known: of another origin other things are so.
    pub(crate) fn forget(&mut self) {
        self.changes += 1;
        let (lessons, changes) = (self.lessons, self.changes);
        *self = Regions { lessons, changes, ..Regions::default() };
    }

    /// A region of the clone as it is, or as one of its snapshots (not 0) has it; `size`: of the origin.
    pub(crate) fn state(&self, snapshot: u32, region: Region, size: u64) -> State {
        let (chunk, bit) = chunk_of(region);
        let own = self.own.get(&(snapshot, chunk)).and_then(|bits| bits.get(bit));
        match (own, self.backed.get(&chunk)) {
            (None, _) => State::Unread,
            (Some(true), _) => State::Own,
            (Some(false), _) if bytes_of(region).start >= size => State::Empty,
            (Some(false), None) => State::Unasked,
            (Some(false), Some(backed)) if backed >> bit & 1 == 1 => State::Inherited,
            (Some(false), Some(_)) => State::Empty,
        }
    }

    /// The origin told where it has anything in a whole MiB: `has` of each region, from the first on.
    pub(crate) fn learn_backed(&mut self, chunk: u64, has: u16) {
        self.backed.insert(chunk, has);
    }

    /// A lesson about the live disk begins; its stamp.
    pub(crate) fn begin_lesson(&mut self) -> u64 {
        self.lessons += 1;
        self.changes
    }

    /// A lesson ends. What is told with its stamp counts only up to now.
    pub(crate) fn end_lesson(&mut self) {
        self.lessons -= 1;
        if self.lessons == 0 {
            self.touched.clear();
        }
    }

    /// The first block of a region was read. Of the live disk it counts only if no change has ended there since.
    pub(crate) fn learn_own(&mut self, (snapshot, region): (u32, Region), is_own: bool, stamp: u64) {
        if snapshot == 0 && self.touched.get(&region).is_some_and(|at| *at > stamp) {
            return;
        }
        let (chunk, bit) = chunk_of(region);
        self.own.entry((snapshot, chunk)).or_default().put(bit, Some(is_own));
    }

    /// A change of a region has ended: its first block is allocated now, or nobody knows.
    pub(crate) fn changed(&mut self, region: Region, is_own: Option<bool>) {
        self.changes += 1;
        if self.lessons > 0 {
            self.touched.insert(region, self.changes);
        }
        let (chunk, bit) = chunk_of(region);
        self.own.entry((0, chunk)).or_default().put(bit, is_own);
    }
}

/// Which regions of a MiB, the first bytes of which these runs tell, have anything; those that they do not tell have.
pub(crate) fn backed_of(runs: impl Iterator<Item = (Range<u64>, bool)>, chunk: u64) -> u16 {
    let start = chunk * EXTENT_SIZE;
    let (mut has, mut told) = (0u16, start);
    for (bytes, is_set) in runs {
        let (from, to) = (bytes.start.max(start), bytes.end.min(start + EXTENT_SIZE));
        if from >= to {
            continue;
        }
        told = told.max(to);
        if is_set {
            (from / REGION_SIZE..to.div_ceil(REGION_SIZE))
                .for_each(|region| has |= 1 << (region % REGIONS_PER_EXTENT as u64));
        }
    }
    let untold = (told - start) / REGION_SIZE;
    (untold..REGIONS_PER_EXTENT as u64).for_each(|region| has |= 1 << region);
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_inherited_until_their_first_block_is_allocated() {
        let mut regions = Regions::default();
        assert_eq!(regions.state(0, 17, 1 << 30), State::Unread);
        let stamp = regions.begin_lesson();
        (16..18).for_each(|region| regions.learn_own((0, region), false, stamp));
        regions.end_lesson();
        assert_eq!(regions.state(0, 17, 1 << 30), State::Unasked);
        regions.learn_backed(1, 0b10);
        assert_eq!(regions.state(0, 16, 1 << 30), State::Empty);
        assert_eq!(regions.state(0, 17, 1 << 30), State::Inherited);
        assert_eq!(regions.state(0, 17, 1 << 20), State::Empty, "beyond the origin");
        regions.changed(17, Some(true));
        assert_eq!(regions.state(0, 17, 1 << 30), State::Own);
        assert_eq!(regions.state(3, 17, 1 << 30), State::Unread, "a snapshot is asked about apart");
        regions.reign(Some(2));
        assert_eq!(regions.state(0, 17, 1 << 30), State::Unread);
    }

    #[test]
    fn what_was_read_before_a_change_ended_does_not_count() {
        let mut regions = Regions::default();
        regions.learn_backed(0, 1);
        let stamp = regions.begin_lesson();
        regions.changed(0, None);
        regions.learn_own((0, 0), false, stamp);
        assert_eq!(regions.state(0, 0, 1 << 20), State::Unread);
        let later = regions.begin_lesson();
        regions.learn_own((0, 0), true, later);
        assert_eq!(regions.state(0, 0, 1 << 20), State::Own);
    }

    #[test]
    fn what_the_origin_does_not_tell_counts_as_something() {
        let mib = EXTENT_SIZE;
        let runs = [(mib..mib + 4096, true), (mib + 4096..mib + 10 * REGION_SIZE, false)];
        assert_eq!(backed_of(runs.into_iter(), 1), 0b1111_1100_0000_0001);
    }
}
