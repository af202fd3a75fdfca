//! Frames: the blocks of extents that belong to no part, in which the blocks of mapped parts stand (docs/design/0044).
//!
//! Nothing here is stored. An extent is a pool because map and delta pages name blocks in it, and a frame is used because one of them names
//! it. A frame that is freed is used again only after a checkpoint whose pages do not name it any more.
//!
//! Compressed blocks share frames: each has a slot of whole units. A frame is free when its last slot is, and is written as a whole once
//! (docs/design/0049).

use base::units::BLOCKS_PER_EXTENT;
use std::collections::{BTreeMap, BTreeSet};

const WORDS: usize = BLOCKS_PER_EXTENT / 64;
/// All units of a frame.
const WHOLE: u8 = u8::MAX;

/// A frame of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Frame {
    pub(crate) extent: u32,
    pub(crate) block: u8,
}

/// Units of a frame in which one block stands, or several do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    frame: Frame,
    /// Bit *i*: unit *i*.
    units: u8,
}

impl Slot {
    /// So many units of a frame from one on.
    pub(crate) fn of(frame: Frame, first: u8, count: u8) -> Slot {
        assert!(count > 0, "a slot has units");
        Slot { frame, units: WHOLE >> (8 - count.min(8)) << first }
    }

    /// These units of a frame, by their bits.
    pub(crate) fn of_units(frame: Frame, units: u8) -> Slot {
        assert!(units != 0, "a slot has units");
        Slot { frame, units }
    }

    /// All of a frame.
    pub(crate) fn whole(frame: Frame) -> Slot {
        Slot { frame, units: WHOLE }
    }

    pub(crate) fn frame(self) -> Frame {
        self.frame
    }

    /// Bit *i*: unit *i* of its frame.
    pub(crate) fn units(self) -> u8 {
        self.units
    }
}

/// Frames side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameRun {
    pub(crate) first: Frame,
    pub(crate) count: u16,
}

#[derive(Debug, Default, Clone)]
struct Pool {
    used: [u64; WORDS],
    count: u16,
    /// The units of each used frame that are used; without it, all of them are.
    units: Option<Box<[u8; BLOCKS_PER_EXTENT]>>,
}

impl Pool {
    fn contains(&self, block: u8) -> bool {
        self.used[usize::from(block) / 64] >> (block % 64) & 1 == 1
    }

    /// The units of a frame that are used.
    fn units(&self, block: u8) -> u8 {
        match &self.units {
            _ if !self.contains(block) => 0,
            Some(units) => units[usize::from(block)],
            None => WHOLE,
        }
    }

    fn set_units(&mut self, block: u8, units: u8) {
        if units != WHOLE || self.units.is_some() {
            self.units.get_or_insert_with(|| Box::new([WHOLE; BLOCKS_PER_EXTENT]))[usize::from(block)] =
                units;
        }
    }

    fn set(&mut self, block: u8, units: u8) {
        self.used[usize::from(block) / 64] |= 1 << (block % 64);
        self.count += 1;
        self.set_units(block, units);
    }

    fn clear(&mut self, block: u8) {
        self.used[usize::from(block) / 64] &= !(1 << (block % 64));
        self.count -= 1;
    }

    fn is_full(&self) -> bool {
        usize::from(self.count) == BLOCKS_PER_EXTENT
    }

    /// The first run of free frames, no longer than `max`.
    fn first_free(&self, max: u16) -> Option<(u8, u16)> {
        let first = (0..=u8::MAX).find(|block| !self.contains(*block))?;
        let end = (u16::from(first)..BLOCKS_PER_EXTENT as u16)
            .take(usize::from(max))
            .take_while(|block| !self.contains(*block as u8));
        Some((first, end.count() as u16))
    }
}

/// The pools of a device.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pools: BTreeMap<u32, Pool>,
    /// Those with free frames.
    with_room: BTreeSet<u32>,
    /// Those with no used frame.
    empty: BTreeSet<u32>,
    /// Free frames of all of them.
    free: u64,
    /// What was freed since the checkpoint under way began, or the last one, if none is.
    freed: Vec<Slot>,
    /// What was freed before the checkpoint under way began: its pages do not name it.
    releasing: Vec<Slot>,
    /// Frames that were promised to blocks of visits under way and that these, compressed, did not need.
    spare: u64,
    /// The same of visits that have ended since the checkpoint under way began, or the last one, if none is: after a crash these frames are
    /// promised again, so nobody else may have them.
    spared: u64,
    /// The same of visits that had ended before the checkpoint under way began.
    settling: u64,
    /// Whether a frame is free once any of its slots is: never, but where the simulator removes that rule.
    pub(crate) frees_shared_early: bool,
}

impl Pools {
    /// Whether an extent is a pool.
    pub(crate) fn contains(&self, extent: u32) -> bool {
        self.pools.contains_key(&extent)
    }

    /// Extents that so many promised frames and pages may need, where chunks have so many free pages.
    pub(crate) fn extents_wanted(&self, (frames, pages): (u64, u64), free_pages: u32) -> u32 {
        let frames = (frames + self.withheld()).saturating_sub(self.free);
        let pages = pages.saturating_sub(u64::from(free_pages));
        let per_chunk = u64::from(crate::format::page::PAGES_PER_CHUNK);
        (frames.div_ceil(BLOCKS_PER_EXTENT as u64) + pages.div_ceil(per_chunk)) as u32
    }

    /// An extent with nothing in it becomes a pool.
    pub(crate) fn add(&mut self, extent: u32) {
        let former = self.pools.insert(extent, Pool::default());
        assert!(former.is_none(), "an extent becomes a pool once");
        self.with_room.insert(extent);
        self.empty.insert(extent);
        self.free += BLOCKS_PER_EXTENT as u64;
    }

    /// Takes up to `count` frames side by side. `None` if no pool has a free one.
    pub(crate) fn take(&mut self, count: u16) -> Option<FrameRun> {
        let extent = *self.with_room.first()?;
        let pool = self.pools.get_mut(&extent).expect("what has room is a pool");
        let (block, count) = pool.first_free(count).expect("it has room");
        self.empty.remove(&extent);
        let first = Frame { extent, block };
        (u16::from(block)..u16::from(block) + count).for_each(|block| pool.set(block as u8, WHOLE));
        self.free -= u64::from(count);
        if pool.is_full() {
            self.with_room.remove(&extent);
        }
        Some(FrameRun { first, count })
    }

    /// Of a frame that was taken, these units alone are used: no others ever are before it is free.
    pub(crate) fn narrow(&mut self, slots: Slot) {
        let pool = self.pools.get_mut(&slots.frame.extent).expect("frames are those of pools");
        pool.set_units(slots.frame.block, slots.units);
    }

    /// A slot of a pool is known to be used. Says whether none of its units was known before.
    pub(crate) fn occupy(&mut self, Slot { frame, units }: Slot) -> bool {
        let Frame { extent, block } = frame;
        let pool = self.pools.get_mut(&extent).expect("frames are those of pools");
        let known = pool.units(block);
        if known & units != 0 {
            return false;
        }
        if known != 0 {
            pool.set_units(block, known | units);
            return true;
        }
        pool.set(block, units);
        self.free -= 1;
        self.empty.remove(&extent);
        if pool.is_full() {
            self.with_room.remove(&extent);
        }
        true
    }

    /// The units of a frame of a pool that are used.
    pub(crate) fn used_units(&self, Frame { extent, block }: Frame) -> u8 {
        self.pools.get(&extent).map_or(0, |pool| pool.units(block))
    }

    /// Whether any unit of a slot is known to be used.
    pub(crate) fn is_used(&self, Slot { frame, units }: Slot) -> bool {
        self.pools.get(&frame.extent).is_some_and(|pool| pool.units(frame.block) & units != 0)
    }

    /// In recovery: a slot was taken for used by a page that does not count. An extent of which no other frame is used is no pool.
    pub(crate) fn void(&mut self, slot: Slot) {
        self.release(slot);
        let extent = slot.frame.extent;
        if self.empty.remove(&extent) {
            self.pools.remove(&extent);
            self.with_room.remove(&extent);
            self.free -= BLOCKS_PER_EXTENT as u64;
        }
    }

    /// A slot is not needed any more; it is free once a checkpoint has said so.
    pub(crate) fn free(&mut self, slot: Slot) {
        self.freed.push(slot);
    }

    /// The same, at once: what the rule is for, when it is removed.
    pub(crate) fn free_early(&mut self, slot: Slot) {
        if self.pools.get(&slot.frame.extent).is_some_and(|pool| pool.count > 1) {
            self.release(slot);
        } else {
            self.free(slot);
        }
    }

    /// A checkpoint begins: none of its pages names the frames that are freed by now.
    pub(crate) fn checkpoint_begun(&mut self) {
        assert!(self.releasing.is_empty(), "one checkpoint is under way at a time");
        self.releasing = std::mem::take(&mut self.freed);
        self.settling = std::mem::take(&mut self.spared);
    }

    /// That checkpoint has ended.
    pub(crate) fn checkpoint_ended(&mut self) {
        self.settling = 0;
        std::mem::take(&mut self.releasing).into_iter().for_each(|slot| self.release(slot));
    }

    /// Frames that nobody may have before the next checkpoint.
    fn withheld(&self) -> u64 {
        self.spare + self.spared + self.settling
    }

    /// A visit has taken so many frames less than were promised to its blocks.
    pub(crate) fn spare(&mut self, frames: u64) {
        self.spare += frames;
    }

    /// That visit has ended.
    pub(crate) fn visit_ended(&mut self, frames: u64) {
        self.spare -= frames;
        self.spared += frames;
    }

    /// Pools with no used frame cease to be pools, as long as `promised` frames are free without them. Gives their extents.
    pub(crate) fn dissolve(&mut self, promised: u64) -> Vec<u32> {
        let mut extents = Vec::new();
        let promised = promised + self.withheld();
        while self.free >= promised + BLOCKS_PER_EXTENT as u64
            && let Some(extent) = self.empty.pop_first()
        {
            self.pools.remove(&extent);
            self.with_room.remove(&extent);
            self.free -= BLOCKS_PER_EXTENT as u64;
            extents.push(extent);
        }
        extents
    }

    /// Whether frames become free by a checkpoint.
    pub(crate) fn wants_checkpoint(&self) -> bool {
        !self.freed.is_empty() || self.spared > 0
    }

    fn release(&mut self, Slot { frame, units }: Slot) {
        let Frame { extent, block } = frame;
        let is_free = |pool: Option<&Pool>| pool.is_none_or(|pool| pool.units(block) & units != units);
        if self.frees_shared_early && is_free(self.pools.get(&extent)) {
            return;
        }
        let pool = self.pools.get_mut(&extent).expect("a pool stays until its last frame is free");
        let used = pool.units(block);
        assert!(used & units == units, "a slot is freed once");
        if used != units && !self.frees_shared_early {
            return pool.set_units(block, used & !units);
        }
        pool.clear(block);
        self.free += 1;
        self.with_room.insert(extent);
        if pool.count == 0 {
            self.empty.insert(extent);
        }
    }

    /// Frames with units that are used and not freed, each with these, for comparison with what pages name.
    pub(crate) fn live_frames(&self) -> BTreeMap<Frame, u8> {
        let of = |(extent, pool): (&u32, &Pool)| {
            let (extent, pool) = (*extent, pool.clone());
            let used = (0..=u8::MAX).map(move |block| (Frame { extent, block }, pool.units(block)));
            used.filter(|(_, units)| *units != 0)
        };
        let mut frames: BTreeMap<Frame, u8> = self.pools.iter().flat_map(of).collect();
        for slot in self.freed.iter().chain(&self.releasing) {
            if let Some(units) = frames.get_mut(&slot.frame) {
                *units &= !slot.units;
            }
        }
        frames.retain(|_, units| *units != 0);
        frames
    }

    /// Bytes of memory, estimated.
    pub(crate) fn memory_bytes(&self) -> usize {
        let packed = self.pools.values().filter(|pool| pool.units.is_some()).count();
        let freed = (self.freed.len() + self.releasing.len()) * size_of::<Slot>();
        self.pools.len() * 64 + packed * BLOCKS_PER_EXTENT + freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_was_freed_is_taken_again_only_after_a_checkpoint_that_began_later() {
        let mut pools = Pools::default();
        pools.add(7);
        let run = pools.take(256).expect("it is empty");
        assert_eq!((run.first, run.count), (Frame { extent: 7, block: 0 }, 256));
        pools.free(Slot::whole(Frame { extent: 7, block: 9 }));
        assert_eq!(pools.take(1), None);
        pools.checkpoint_begun();
        pools.free(Slot::whole(Frame { extent: 7, block: 10 }));
        pools.checkpoint_ended();
        let run = pools.take(5).expect("one is free");
        assert_eq!((run.first.block, run.count), (9, 1), "what was freed meanwhile is named by its pages");
    }

    #[test]
    fn a_frame_is_free_when_its_last_slot_is_and_no_slot_of_it_is_used_again_before() {
        let mut pools = Pools::default();
        pools.add(7);
        let frame = pools.take(1).expect("it is empty").first;
        let (one, other) = (Slot::of(frame, 0, 3), Slot::of(frame, 3, 2));
        pools.narrow(Slot::of(frame, 0, 5));
        let end_checkpoint = |pools: &mut Pools| {
            pools.checkpoint_begun();
            pools.checkpoint_ended();
        };
        pools.free(one);
        assert_eq!(pools.live_frames(), BTreeMap::from([(frame, 0b1_1000)]));
        end_checkpoint(&mut pools);
        assert!(pools.is_used(other) && !pools.is_used(one));
        assert_eq!(pools.take(1).map(|run| run.first.block), Some(1), "the other slot is used");
        pools.free(other);
        assert!(pools.live_frames().contains_key(&Frame { extent: 7, block: 1 }));
        end_checkpoint(&mut pools);
        assert_eq!(pools.take(1).map(|run| run.first), Some(frame));
        assert!(pools.is_used(Slot::of(frame, 7, 1)), "it is taken as a whole");
    }

    #[test]
    fn slots_of_one_frame_are_found_one_by_one_and_those_that_overlap_contradict() {
        let mut pools = Pools::default();
        pools.add(7);
        let frame = Frame { extent: 7, block: 200 };
        assert!(pools.occupy(Slot::of(frame, 0, 3)) && pools.occupy(Slot::of(frame, 3, 5)));
        assert!(!pools.occupy(Slot::of(frame, 2, 2)) && !pools.occupy(Slot::whole(frame)));
        assert_eq!(pools.free, 255);
        pools.void(Slot::of(frame, 0, 3));
        assert!(pools.contains(7) && pools.free == 255);
        pools.void(Slot::of(frame, 3, 5));
        assert!(!pools.contains(7) && pools.free == 0);
    }

    #[test]
    fn a_pool_whose_last_frame_is_free_is_an_extent_again() {
        let mut pools = Pools::default();
        pools.add(3);
        let run = pools.take(2).expect("it is empty");
        assert_eq!(run.count, 2);
        (0..2).for_each(|block| pools.free(Slot::whole(Frame { extent: 3, block })));
        pools.checkpoint_begun();
        pools.checkpoint_ended();
        assert!(pools.dissolve(1).is_empty(), "one of its frames is promised");
        assert_eq!(pools.dissolve(0), [3]);
        assert!(!pools.contains(3) && pools.extents_wanted((1, 0), 0) == 1);
    }

    #[test]
    fn frames_that_compressed_blocks_did_not_need_are_nobodys_before_a_checkpoint_that_has_these_blocks() {
        let mut pools = Pools::default();
        pools.add(1);
        pools.take(10);
        assert_eq!(pools.extents_wanted((246, 0), 0), 0);
        pools.spare(30);
        assert_eq!(pools.extents_wanted((216, 0), 0), 0);
        assert_eq!(pools.extents_wanted((217, 0), 0), 1);
        pools.checkpoint_begun();
        pools.visit_ended(30);
        pools.checkpoint_ended();
        assert_eq!(pools.extents_wanted((217, 0), 0), 1, "its pages do not have the blocks");
        assert!(pools.wants_checkpoint());
        pools.checkpoint_begun();
        assert_eq!(pools.extents_wanted((217, 0), 0), 1);
        pools.checkpoint_ended();
        assert_eq!(pools.extents_wanted((246, 0), 0), 0);
    }

    #[test]
    fn promises_speak_for_extents_beyond_what_is_free_in_pools_and_chunks() {
        let mut pools = Pools::default();
        pools.add(1);
        assert_eq!(pools.extents_wanted((256, 3), 3), 0);
        assert_eq!((pools.extents_wanted((256, 3), 2), pools.extents_wanted((257, 3), 0)), (1, 2));
    }
}
