//! Parts that are written anew to take less space (docs/design/0049): which blocks of a part are worth it, the walk over components, and the part under way.

use crate::compute::{ComputeId, Repacked};
use crate::format::map::{Algorithm, Entry};
use crate::format::page::{ComponentRecord, Compression};
use crate::pools::Frame;
use crate::read::UNITS_PER_BLOCK;
use crate::slots::{Border, SlotRead, pack};
use crate::unreadable::BadBlocks;
use base::units::{BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{Buffer, ComponentId, DeviceId, Instant};
use std::collections::{BTreeMap, VecDeque};

/// A part is written anew if it then takes an eighth fewer frames.
const GAIN_SHARE: u64 = 8;
/// Units of a frame that are used at most for its blocks to be moved: with more, nothing to speak of fits beside them.
const SPARSE_UNITS_MAX: u32 = 4;
/// Units that a block counts with that nobody has compressed yet.
const UNITS_HOPED_FOR: u8 = 1;

/// What of a part is to be written anew.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The blocks, ascending, with their entries.
    pub(crate) blocks: Vec<(u8, Entry)>,
    /// Frames that all live blocks of the part take.
    pub(crate) frames: u64,
    /// Frames that the chosen blocks take at best.
    pub(crate) frames_hoped_for: u64,
}

/// The frame of a block, by its number on the device.
pub(crate) fn frame_of(entry: &Entry) -> Option<u64> {
    entry.unit().map(|unit| unit / UNITS_PER_BLOCK)
}

/// Chooses the blocks of a part that may take less space: those that nobody has tried to compress, and those in frames that are at most half used.
/// `used` tells the units of a frame that are used. Nothing if too little would be gained.
pub(crate) fn choose(
    entries: &[(u8, Entry)],
    is_untried: impl Fn(u8) -> bool,
    used: impl Fn(u64) -> u8,
) -> Option<Choice> {
    let mut own: BTreeMap<u64, u8> = BTreeMap::new();
    for (_, entry) in entries {
        if let Some(frame) = frame_of(entry) {
            *own.entry(frame).or_default() |= units_of(entry);
        }
    }
    let is_sparse = |frame: u64| {
        let used = used(frame);
        used.count_ones() <= SPARSE_UNITS_MAX && own.get(&frame) == Some(&used)
    };
    let is_chosen = |(block, entry): &&(u8, Entry)| match (frame_of(entry), entry.algorithm()) {
        (None, _) => false,
        (Some(_), Algorithm::Plain) => is_untried(*block),
        (Some(frame), Algorithm::Lz4 | Algorithm::Zstd) => is_sparse(frame),
    };
    let blocks: Vec<(u8, Entry)> = entries.iter().filter(is_chosen).copied().collect();
    let hoped_for = |(_, entry): &(u8, Entry)| match entry.algorithm() {
        Algorithm::Plain => UNITS_HOPED_FOR,
        Algorithm::Lz4 | Algorithm::Zstd => entry.units(),
    };
    let units: Vec<u8> = blocks.iter().map(hoped_for).collect();
    let (frames, frames_hoped_for) = (own.len() as u64, pack(&units, Border::Kept).1 as u64);
    let chosen = blocks.iter().map(|(_, entry)| entry);
    is_worth(frames, frames_freed(chosen, used), frames_hoped_for).then_some(Choice {
        blocks,
        frames,
        frames_hoped_for,
    })
}

/// The units of its frame that a block takes.
fn units_of(entry: &Entry) -> u8 {
    let first = entry.unit().unwrap_or_default() % UNITS_PER_BLOCK;
    u8::MAX >> (8 - entry.units()) << first
}

/// Frames in which nothing but these blocks stands.
pub(crate) fn frames_freed<'a>(blocks: impl Iterator<Item = &'a Entry>, used: impl Fn(u64) -> u8) -> u64 {
    let mut moved: BTreeMap<u64, u8> = BTreeMap::new();
    for entry in blocks {
        if let Some(frame) = frame_of(entry) {
            *moved.entry(frame).or_default() |= units_of(entry);
        }
    }
    moved.iter().filter(|(frame, units)| used(**frame) == **units).count() as u64
}

/// Whether a part of so many frames is written anew which then frees and takes so many.
pub(crate) fn is_worth(frames: u64, freed: u64, taken: u64) -> bool {
    freed > taken && (freed - taken) * GAIN_SHARE >= frames
}

/// What a part was like when it was tried last, by region. Eight bits of each: what has changed is found out in 255 cases of 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Likeness([u8; REGIONS_PER_EXTENT]);

impl Likeness {
    /// That of a part with these blocks.
    pub(crate) fn of(entries: &[(u8, Entry)]) -> Likeness {
        let mut regions = [0u64; REGIONS_PER_EXTENT];
        for (block, entry) in entries {
            let region = &mut regions[usize::from(*block) / BLOCKS_PER_REGION];
            for value in [u64::from(*block), entry.unit().unwrap_or_default(), u64::from(entry.checksum)] {
                *region = (*region ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
        }
        Likeness(regions.map(|region| (region >> 56) as u8))
    }

    /// Whether the region of a block is as it was.
    pub(crate) fn has_region_of(&self, block: u8, former: &Likeness) -> bool {
        let region = usize::from(block) / BLOCKS_PER_REGION;
        self.0[region] == former.0[region]
    }
}

/// A component whose parts are looked at, one after the other.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) component: u32,
    pub(crate) id: ComponentId,
    /// The part to look at next.
    pub(crate) part: u32,
    /// Whether somebody asked for it: it goes ahead of the others, and faster.
    pub(crate) is_asked: bool,
    /// It begins once the log is destaged up to this position: until then parts that were written as wholes have entries there, and would be passed over.
    pub(crate) after: u64,
}

/// How far the part under way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// So many reads of its frames are under way.
    Reading(usize),
    /// Its blocks are compressed elsewhere.
    Computing(ComputeId),
    /// So many writes of its new frames are under way.
    Writing(usize),
    /// The new frames are written, and are to be named.
    Written,
}

/// A block that is moved, and where to.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) block: u8,
    pub(crate) from: Entry,
    pub(crate) to: Entry,
}

/// The part under way.
#[derive(Debug)]
pub(crate) struct RewriteWork {
    pub(crate) component: u32,
    pub(crate) id: ComponentId,
    pub(crate) part: u32,
    pub(crate) member: u8,
    /// The device: another one may have its index when requests end.
    pub(crate) device: DeviceId,
    pub(crate) choice: Choice,
    /// The frames that are read, ascending, by their numbers on the device; one after the other in the buffer.
    pub(crate) frames: Vec<u64>,
    pub(crate) buffer: Buffer,
    pub(crate) bad: BadBlocks,
    /// Once its new frames are taken: what goes where.
    pub(crate) moves: Vec<Move>,
    pub(crate) stage: Stage,
    /// Whether the device failed meanwhile.
    pub(crate) has_failed: bool,
}

impl RewriteWork {
    /// Where the blocks stand in what is read.
    pub(crate) fn slots(&self) -> Box<[SlotRead]> {
        let slot = |(_, entry): &(u8, Entry)| {
            let frame = frame_of(entry).expect("only blocks that stand somewhere are chosen");
            let at = self.frames.binary_search(&frame).expect("their frames are read") as u64;
            let unit = at * UNITS_PER_BLOCK + entry.unit().unwrap_or_default() % UNITS_PER_BLOCK;
            SlotRead { unit: unit as u32, form: entry.form() }
        };
        self.choice.blocks.iter().map(slot).collect()
    }

    /// The chosen blocks that take less than a frame, with the bytes of their slots: neither those that could not be read, nor those that stand as they are and
    /// do not become smaller.
    pub(crate) fn packed<'a>(&self, repacked: &'a [Repacked]) -> Vec<((u8, Entry), &'a Repacked)> {
        let slots = self.slots();
        let blocks = self.choice.blocks.iter().zip(slots).zip(repacked);
        let is_moved = |((_, slot), found): &((_, SlotRead), &Repacked)| {
            found.is_packed() && !self.bad.contains(slot.frame())
        };
        blocks.filter(is_moved).map(|((block, _), found)| (*block, found)).collect()
    }

    /// Bytes that were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.buffer.len() as u64
    }
}

/// The state of rewriting.
#[derive(Debug, Default)]
pub(crate) struct Rewriting {
    walks: VecDeque<Walk>,
    pub(crate) work: Option<RewriteWork>,
    /// Parts, by component key and number, that were tried, with what they were like after that.
    tried: BTreeMap<(u32, u32), Likeness>,
    /// When the next part is looked at, if none is under way.
    pub(crate) next_at: Instant,
    /// Whether a page is being read for it.
    pub(crate) waits_for_page: bool,
    /// The device on which it waits for a page of the table.
    pub(crate) seeks_page: Option<u8>,
    /// Parts that were written anew since a checkpoint began: the frames that they had are free after one.
    pub(crate) parts_unsettled: u32,
}

impl Rewriting {
    /// When it goes on by itself.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let waits = self.work.is_some() || self.waits_for_page;
        (!waits && !self.walks.is_empty()).then_some(self.next_at)
    }

    /// Whether frames of a device are taken that no page names yet, or will be freed if none ever does.
    pub(crate) fn has_frames_on(&self, member: u8) -> bool {
        self.work.as_ref().is_some_and(|work| work.member == member && !work.moves.is_empty())
    }

    /// Whether frames of any device are taken that no page names yet.
    pub(crate) fn has_frames(&self) -> bool {
        self.work.as_ref().is_some_and(|work| !work.moves.is_empty())
    }

    /// Whether the processor works for it.
    pub(crate) fn is_computing(&self) -> bool {
        self.work.as_ref().is_some_and(|work| matches!(work.stage, Stage::Computing(_)))
    }

    /// A component is to be walked over: ahead of others, from its first part, and also what was tried before if somebody asks for it. Who asks again before
    /// that has begun waits for no more of the log.
    pub(crate) fn ask(&mut self, component: u32, id: ComponentId, (now, after): (Instant, u64)) {
        let is_to_begin = |walk: &&Walk| walk.component == component && walk.is_asked && walk.part == 0;
        let after = self.walks.iter().find(is_to_begin).map_or(after, |walk| walk.after);
        self.walks.retain(|walk| walk.component != component);
        self.tried.retain(|(of, _), _| *of != component);
        self.walks.push_front(Walk { component, id, part: 0, is_asked: true, after });
        self.next_at = self.next_at.min(now);
    }

    /// All these components are to be walked over, but for those that are already, once the log is destaged up to a position. Says whether there are any.
    pub(crate) fn begin_round(
        &mut self,
        components: impl Iterator<Item = (u32, ComponentId)>,
        after: u64,
    ) -> bool {
        let before = self.walks.len();
        for (component, id) in components {
            if !self.walks.iter().any(|walk| walk.component == component) {
                self.walks.push_back(Walk { component, id, part: 0, is_asked: false, after });
            }
        }
        self.walks.len() > before
    }

    /// The component that is walked over now.
    pub(crate) fn walk(&self) -> Option<&Walk> {
        self.walks.front()
    }

    /// The part to look at next of that component.
    pub(crate) fn go_on_from(&mut self, part: u32) {
        if let Some(walk) = self.walks.front_mut() {
            walk.part = part;
        }
    }

    /// All of that component was looked at, or it is gone.
    pub(crate) fn end_walk(&mut self) {
        self.walks.pop_front();
    }

    /// The part of a component that is looked at next, if somebody asked for that.
    pub(crate) fn asked(&self, component: u32) -> Option<u32> {
        let walk = self.walks.iter().find(|walk| walk.component == component && walk.is_asked);
        walk.map(|walk| walk.part)
    }

    /// What a part was like when it was tried last.
    pub(crate) fn tried(&self, part: (u32, u32)) -> Option<&Likeness> {
        self.tried.get(&part)
    }

    /// A part was tried, and is like that now.
    pub(crate) fn note_tried(&mut self, part: (u32, u32), like: Likeness) {
        self.tried.insert(part, like);
    }

    /// A component is gone: another one may get its key.
    pub(crate) fn forget(&mut self, component: u32) {
        self.walks.retain(|walk| walk.component != component);
        self.tried.retain(|(of, _), _| *of != component);
    }

    /// Bytes of memory, estimated.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tried.len() * 48
    }
}

/// Whether blocks of a component are compressed when they are destaged.
pub(crate) fn compresses(record: &ComponentRecord) -> bool {
    record.compression != Compression::Off
}

/// The frame with that number on a device is one of a pool: its units that are used. One of an extent that belongs to a part is used as a whole.
pub(crate) fn used_units(frame: Option<Frame>, pools: &crate::pools::Pools) -> u8 {
    match frame {
        Some(frame) if pools.contains(frame.extent) => pools.used_units(frame),
        Some(_) | None => u8::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compressed blocks, each in a frame of its own.
    fn lone(count: u8, units: u8) -> Vec<(u8, Entry)> {
        let entry = |block: u8| Entry::stored(8 * (100 + u64::from(block)), units, Algorithm::Lz4, 7);
        (0..count).map(|block| (block, entry(block))).collect()
    }

    fn plain(count: u8) -> Vec<(u8, Entry)> {
        (0..count).map(|block| (block, Entry::plain(8 * (100 + u64::from(block)), 7, 0))).collect()
    }

    #[test]
    fn lone_blocks_that_fit_together_are_chosen_and_those_that_do_not_are_left() {
        let found = choose(&lone(8, 3), |_| true, |_| 0b111).expect("they take half the frames");
        assert_eq!((found.blocks.len(), found.frames, found.frames_hoped_for), (8, 8, 4));
        assert_eq!(choose(&lone(8, 5), |_| true, |_| 0b1_1111), None);
        assert_eq!(choose(&lone(1, 1), |_| true, |_| 0b1), None, "alone it gains nothing");
    }

    #[test]
    fn a_frame_in_which_others_stand_is_not_gained() {
        assert_eq!(choose(&lone(8, 3), |_| true, |_| 0b1111), None);
    }

    #[test]
    fn blocks_that_were_tried_are_not_chosen_and_an_eighth_must_be_gained() {
        let entries = plain(64);
        let all = choose(&entries, |_| true, |_| u8::MAX).expect("nobody tried");
        assert_eq!((all.blocks.len(), all.frames, all.frames_hoped_for), (64, 64, 8));
        assert_eq!(choose(&entries, |_| false, |_| u8::MAX), None);
        assert_eq!(choose(&entries, |block| block < 8, |_| u8::MAX), None, "7 of 64");
        assert!(choose(&entries, |block| block < 10, |_| u8::MAX).is_some(), "8 of 64");
    }

    #[test]
    fn what_changed_in_a_region_is_told_apart() {
        let before = plain(64);
        let mut after = before.clone();
        after[20].1 = Entry::plain(4000, 7, 0);
        let (was, is) = (Likeness::of(&before), Likeness::of(&after));
        assert!(is.has_region_of(0, &was) && is.has_region_of(63, &was));
        assert!(!is.has_region_of(16, &was) && !is.has_region_of(31, &was));
    }
}
