//! Frames: the blocks of extents that belong to no part, in which the blocks of mapped parts stand (docs/design/0044).
//!
//! Nothing here is stored. An extent is a pool because map and delta pages name blocks in it, and a frame is used because one of them names
//! it. A frame that is freed is used again only after a checkpoint whose pages do not name it any more.

use base::units::BLOCKS_PER_EXTENT;
use std::collections::{BTreeMap, BTreeSet};

const WORDS: usize = BLOCKS_PER_EXTENT / 64;

/// A frame of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Frame {
    pub(crate) extent: u32,
    pub(crate) block: u8,
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
}

impl Pool {
    fn contains(&self, block: u8) -> bool {
        self.used[usize::from(block) / 64] >> (block % 64) & 1 == 1
    }

    fn set(&mut self, block: u8) {
        self.used[usize::from(block) / 64] |= 1 << (block % 64);
        self.count += 1;
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
    /// Frames that were freed since the checkpoint under way began, or the last one, if none is.
    freed: Vec<Frame>,
    /// Frames that were freed before the checkpoint under way began: its pages do not name them.
    releasing: Vec<Frame>,
}

impl Pools {
    /// Whether an extent is a pool.
    pub(crate) fn contains(&self, extent: u32) -> bool {
        self.pools.contains_key(&extent)
    }

    /// Extents that so many promised frames and pages may need, where chunks have so many free pages.
    pub(crate) fn extents_wanted(&self, (frames, pages): (u64, u64), free_pages: u32) -> u32 {
        let frames = frames.saturating_sub(self.free);
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
        (u16::from(block)..u16::from(block) + count).for_each(|block| pool.set(block as u8));
        self.free -= u64::from(count);
        if pool.is_full() {
            self.with_room.remove(&extent);
        }
        Some(FrameRun { first, count })
    }

    /// A frame of a pool is known to be used. Says whether it was not known before.
    pub(crate) fn occupy(&mut self, Frame { extent, block }: Frame) -> bool {
        let pool = self.pools.get_mut(&extent).expect("frames are those of pools");
        if pool.contains(block) {
            return false;
        }
        pool.set(block);
        self.free -= 1;
        self.empty.remove(&extent);
        if pool.is_full() {
            self.with_room.remove(&extent);
        }
        true
    }

    /// Whether a frame is known to be used.
    pub(crate) fn is_used(&self, Frame { extent, block }: Frame) -> bool {
        self.pools.get(&extent).is_some_and(|pool| pool.contains(block))
    }

    /// In recovery: a frame was taken for used by a page that does not count. An extent of which no other frame is used is no pool.
    pub(crate) fn void(&mut self, frame: Frame) {
        self.release(frame);
        if self.empty.remove(&frame.extent) {
            self.pools.remove(&frame.extent);
            self.with_room.remove(&frame.extent);
            self.free -= BLOCKS_PER_EXTENT as u64;
        }
    }

    /// A frame is not needed any more; it is free once a checkpoint has said so.
    pub(crate) fn free(&mut self, frame: Frame) {
        self.freed.push(frame);
    }

    /// The same, at once: what the rule is for, when it is removed.
    pub(crate) fn free_early(&mut self, frame: Frame) {
        if self.pools.get(&frame.extent).is_some_and(|pool| pool.count > 1) {
            self.release(frame);
        } else {
            self.free(frame);
        }
    }

    /// A checkpoint begins: none of its pages names the frames that are freed by now.
    pub(crate) fn checkpoint_begun(&mut self) {
        assert!(self.releasing.is_empty(), "one checkpoint is under way at a time");
        self.releasing = std::mem::take(&mut self.freed);
    }

    /// That checkpoint has ended.
    pub(crate) fn checkpoint_ended(&mut self) {
        std::mem::take(&mut self.releasing).into_iter().for_each(|frame| self.release(frame));
    }

    /// Pools with no used frame cease to be pools, as long as `promised` frames are free without them. Gives their extents.
    pub(crate) fn dissolve(&mut self, promised: u64) -> Vec<u32> {
        let mut extents = Vec::new();
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
        !self.freed.is_empty()
    }

    fn release(&mut self, Frame { extent, block }: Frame) {
        let pool = self.pools.get_mut(&extent).expect("a pool stays until its last frame is free");
        assert!(pool.contains(block), "a frame is freed once");
        pool.clear(block);
        self.free += 1;
        self.with_room.insert(extent);
        if pool.count == 0 {
            self.empty.insert(extent);
        }
    }

    /// Frames that are used and not freed, for comparison with what pages name.
    pub(crate) fn live_frames(&self) -> BTreeSet<Frame> {
        let of = |(extent, pool): (&u32, &Pool)| {
            let (extent, pool) = (*extent, pool.clone());
            (0..=u8::MAX).filter(move |block| pool.contains(*block)).map(move |block| Frame { extent, block })
        };
        let mut frames: BTreeSet<Frame> = self.pools.iter().flat_map(of).collect();
        for frame in self.freed.iter().chain(&self.releasing) {
            frames.remove(frame);
        }
        frames
    }

    /// Bytes of memory, estimated.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.pools.len() * 64 + (self.freed.len() + self.releasing.len()) * size_of::<Frame>()
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
        pools.free(Frame { extent: 7, block: 9 });
        assert_eq!(pools.take(1), None);
        pools.checkpoint_begun();
        pools.free(Frame { extent: 7, block: 10 });
        pools.checkpoint_ended();
        let run = pools.take(5).expect("one is free");
        assert_eq!((run.first.block, run.count), (9, 1), "what was freed meanwhile is named by its pages");
    }

    #[test]
    fn a_pool_whose_last_frame_is_free_is_an_extent_again() {
        let mut pools = Pools::default();
        pools.add(3);
        let run = pools.take(2).expect("it is empty");
        assert_eq!(run.count, 2);
        (0..2).for_each(|block| pools.free(Frame { extent: 3, block }));
        pools.checkpoint_begun();
        pools.checkpoint_ended();
        assert!(pools.dissolve(1).is_empty(), "one of its frames is promised");
        assert_eq!(pools.dissolve(0), [3]);
        assert!(!pools.contains(3) && pools.extents_wanted((1, 0), 0) == 1);
    }

    #[test]
    fn promises_speak_for_extents_beyond_what_is_free_in_pools_and_chunks() {
        let mut pools = Pools::default();
        pools.add(1);
        assert_eq!(pools.extents_wanted((256, 3), 3), 0);
        assert_eq!((pools.extents_wanted((256, 3), 2), pools.extents_wanted((257, 3), 0)), (1, 2));
    }
}
