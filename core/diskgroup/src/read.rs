//! Reads under way: what each looks for, and where that stands.

use crate::compute::{Computation, ComputeId, Task};
use crate::format::map::Form;
use crate::index::Index as PartIndex;
use crate::io::{Completion, Op};
use crate::limits;
use crate::slots::{SlotRead, Unpacker};
use crate::unreadable::BadBlocks;
use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, SECTOR_SIZE};
use base::{Buffer, ComponentId, Pool};
use slab::Slab;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// Units of a block that is stored as it is.
pub(crate) const UNITS_PER_BLOCK: u64 = BLOCK_SIZE / SECTOR_SIZE;

/// Where the newest version of a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockLocation {
    /// Nowhere: it reads as zeroes.
    Hole,
    /// In the log, at that position.
    Log { position: u64, checksum: u32 },
    /// At rest, at that unit (512 bytes) of the device.
    Rest { member: u8, unit: u64, checksum: u32 },
    /// At rest, compressed, in a slot that begins at that unit of the device.
    Packed { member: u8, unit: u64, form: Form, checksum: u32 },
    /// Nobody knows where: the page that told is damaged.
    Lost,
}

impl BlockLocation {
    pub(crate) fn checksum(self) -> Option<u32> {
        match self {
            BlockLocation::Hole | BlockLocation::Lost => None,
            BlockLocation::Log { checksum, .. }
            | BlockLocation::Rest { checksum, .. }
            | BlockLocation::Packed { checksum, .. } => Some(checksum),
        }
    }

    /// Whether `next` stands right behind this one, `distance` blocks on, so that one device read covers both.
    fn continues(self, next: BlockLocation, distance: u64, log_blocks: u64) -> bool {
        match (self, next) {
            (BlockLocation::Hole, BlockLocation::Hole) => true,
            (BlockLocation::Log { position: a, .. }, BlockLocation::Log { position: b, .. }) => {
                a + distance == b && a % log_blocks + distance == b % log_blocks
            }
            (
                BlockLocation::Rest { member: a, unit: x, .. },
                BlockLocation::Rest { member: b, unit: y, .. },
            ) => a == b && x + distance * UNITS_PER_BLOCK == y,
            (
                BlockLocation::Hole
                | BlockLocation::Log { .. }
                | BlockLocation::Rest { .. }
                | BlockLocation::Packed { .. }
                | BlockLocation::Lost,
                _,
            ) => false,
        }
    }
}

/// Blocks of one part of a component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRange {
    pub(crate) component: u32,
    pub(crate) part: u32,
    pub(crate) layer: u8,
    /// The number of the snapshot that is read; 0: the live disk.
    pub(crate) snapshot: u32,
    pub(crate) block: u16,
    pub(crate) count: u16,
}

/// A block that does not match its checksum, and where it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) block: u16,
    pub(crate) location: BlockLocation,
}

/// A run of blocks that one device read (or none) brings.
#[derive(Debug)]
struct Run {
    /// First block.
    block: u16,
    locations: SmallVec<[BlockLocation; 1]>,
    /// What is or will be the data; `None` for a hole.
    buffer: Option<Buffer>,
    /// Of compressed blocks: the frames that they stand in.
    frames: Option<Frames>,
    /// Whether the data came from memory and was verified when it was written.
    is_verified: bool,
    /// Blocks of it that the device could not read.
    bad: BadBlocks,
}

/// Frames side by side that hold the slots of a run.
#[derive(Debug)]
struct Frames {
    member: u8,
    /// The unit at which the first one begins.
    first: u64,
    buffer: Buffer,
    /// Frames that the device could not read.
    bad: BadBlocks,
    /// Whether the blocks were taken out of their slots.
    is_unpacked: bool,
}

impl Run {
    /// The frames are read, but those that are bad: takes each block out of its slot.
    fn unpack(&mut self, unpacker: &mut Unpacker) {
        let Frames { first, buffer: frames, bad, .. } =
            self.frames.as_ref().expect("its blocks are compressed");
        let blocks = self.buffer.as_mut().expect("it is no hole").bytes_mut();
        let blocks = blocks.chunks_exact_mut(BLOCK_SIZE as usize);
        for ((block, location), index) in blocks.zip(&self.locations).zip(0..) {
            let BlockLocation::Packed { unit, form, .. } = *location else {
                unreachable!("all blocks of the run are compressed")
            };
            let slot = SlotRead { unit: (unit - first) as u32, form };
            let is_read = !bad.contains(slot.frame());
            if !is_read || !unpacker.unpack(slot.bytes(frames), form.algorithm, block) {
                self.bad.note(index);
            }
        }
    }

    /// The slots of its blocks among what was read.
    fn slots(&self) -> impl Iterator<Item = SlotRead> {
        let first = self.frames.as_ref().map_or(0, |frames| frames.first);
        self.locations.iter().map(move |location| match *location {
            BlockLocation::Packed { unit, form, .. } => SlotRead { unit: (unit - first) as u32, form },
            _ => unreachable!("all blocks of the run are compressed"),
        })
    }

    /// Whether its blocks are still in their slots.
    fn is_packed(&self) -> bool {
        self.frames.as_ref().is_some_and(|frames| !frames.is_unpacked)
    }
}

/// How many of the first blocks, which are compressed, are read at once, the unit at which the first of their frames begins, and how many frames
/// these are: no more than blocks, so that no more is read than if they were not compressed. `None` if the first is not compressed.
fn packed_run(locations: &[BlockLocation]) -> Option<(usize, u64, usize)> {
    let device = |location: &BlockLocation| match location {
        BlockLocation::Packed { member, .. } => Some(*member),
        _ => None,
    };
    let own = device(&locations[0])?;
    let mut count = locations.iter().take_while(|location| device(location) == Some(own)).count();
    loop {
        let frame = |location: &BlockLocation| match location {
            BlockLocation::Packed { unit, .. } => unit / UNITS_PER_BLOCK,
            _ => unreachable!("all of them are compressed"),
        };
        let frames = locations[..count].iter().map(frame);
        let (first, last) = (frames.clone().min().expect("at least one"), frames.max().expect("the same"));
        let span = (last - first + 1) as usize;
        if span <= count {
            return Some((count, first * UNITS_PER_BLOCK, span));
        }
        count = count.div_ceil(2);
    }
}

/// A device read that a run needs.
#[derive(Debug)]
pub(crate) struct RunRead {
    pub(crate) run: u16,
    /// Where its first block stands.
    pub(crate) location: BlockLocation,
    pub(crate) buffer: Buffer,
}

/// What a read brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    /// The blocks, compared with their checksums.
    Verified,
    /// The blocks, whatever their checksums are.
    Unverified,
    /// The checksums alone.
    Checksums,
}

/// One read under way.
#[derive(Debug)]
pub(crate) struct ReadState {
    op: Op,
    range: BlockRange,
    /// Whose the key was when it began: another component may have it by now.
    component: Option<ComponentId>,
    wants: Wants,
    runs: SmallVec<[Run; 1]>,
    outstanding: u32,
    retries: u8,
    has_failed: bool,
    /// The block that did not match last time.
    suspect: Option<Mismatch>,
}

impl ReadState {
    pub(crate) fn new(op: Op, range: BlockRange, verify: bool) -> ReadState {
        ReadState::of(op, range, if verify { Wants::Verified } else { Wants::Unverified })
    }

    /// A read of the checksums alone.
    pub(crate) fn of_checksums(op: Op, range: BlockRange) -> ReadState {
        ReadState::of(op, range, Wants::Checksums)
    }

    fn of(op: Op, range: BlockRange, wants: Wants) -> ReadState {
        ReadState {
            op,
            range,
            component: None,
            wants,
            runs: SmallVec::new(),
            outstanding: 0,
            retries: 0,
            has_failed: false,
            suspect: None,
        }
    }

    pub(crate) fn range(&self) -> BlockRange {
        self.range
    }

    /// It begins to read that component.
    pub(crate) fn begin(&mut self, component: Option<ComponentId>) {
        self.component = component;
    }

    /// The component that it began to read.
    pub(crate) fn component(&self) -> Option<ComponentId> {
        self.component
    }

    /// Whether only the checksums are wanted.
    pub(crate) fn is_of_checksums(&self) -> bool {
        self.wants == Wants::Checksums
    }

    /// Whether blocks are compared with their checksums.
    pub(crate) fn verifies(&self) -> bool {
        self.wants == Wants::Verified
    }

    /// Gathers the locations of its blocks into runs, each with its buffer. False, with none, if memory is short.
    pub(crate) fn plan(
        &mut self,
        locations: &[BlockLocation],
        index: &PartIndex,
        pool: &Pool,
        log_blocks: u64,
    ) -> bool {
        let mut at = 0;
        while at < locations.len() {
            if let Some((count, first, frames)) = packed_run(&locations[at..]) {
                let blocks = SmallVec::from_slice(&locations[at..at + count]);
                if !self.plan_packed(at, blocks, (first, frames), pool) {
                    self.runs.clear();
                    return false;
                }
                at += count;
                continue;
            }
            let retained = match locations[at] {
                BlockLocation::Log { position, .. } => index.retained(position).cloned(),
                BlockLocation::Hole
                | BlockLocation::Rest { .. }
                | BlockLocation::Packed { .. }
                | BlockLocation::Lost => None,
            };
            let mut end = at + 1;
            while retained.is_none()
                && end < locations.len()
                && locations[at].continues(locations[end], (end - at) as u64, log_blocks)
                && !matches!(locations[end], BlockLocation::Log { position, .. } if index.retained(position).is_some())
            {
                end += 1;
            }
            let is_verified = retained.is_some();
            let buffer = match (retained, locations[at]) {
                (Some(buffer), _) => Some(buffer),
                (None, BlockLocation::Hole) => None,
                (None, BlockLocation::Lost) => {
                    unreachable!("a read of a lost block ends when it is looked up")
                }
                (None, BlockLocation::Packed { .. }) => unreachable!("these have runs of their own"),
                (None, BlockLocation::Log { .. } | BlockLocation::Rest { .. }) => {
                    match pool.take((end - at) * BLOCK_SIZE as usize) {
                        Some(buffer) => Some(buffer),
                        None => {
                            self.runs.clear();
                            return false;
                        }
                    }
                }
            };
            let block = self.range.block + at as u16;
            let locations = SmallVec::from_slice(&locations[at..end]);
            let (frames, bad) = (None, BadBlocks::default());
            self.runs.push(Run { block, locations, buffer, frames, is_verified, bad });
            at = end;
        }
        true
    }

    /// A run of compressed blocks, with buffers for them and for the frames that hold them. False if memory is short.
    fn plan_packed(
        &mut self,
        at: usize,
        locations: SmallVec<[BlockLocation; 1]>,
        (first, frames): (u64, usize),
        pool: &Pool,
    ) -> bool {
        let BlockLocation::Packed { member, .. } = locations[0] else { unreachable!("they are compressed") };
        let Some(buffer) = pool.take(locations.len() * BLOCK_SIZE as usize) else { return false };
        let Some(read) = pool.take(frames * BLOCK_SIZE as usize) else { return false };
        let frames =
            Some(Frames { member, first, buffer: read, bad: BadBlocks::default(), is_unpacked: false });
        let (block, bad) = (self.range.block + at as u16, BadBlocks::default());
        self.runs.push(Run { block, locations, buffer: Some(buffer), frames, is_verified: false, bad });
        true
    }

    /// Begins the first device read that its runs need from `run` on.
    pub(crate) fn begin_run(&mut self, run: u16) -> Option<RunRead> {
        let mut runs = self.runs.iter().enumerate().skip(usize::from(run));
        let read = runs.find_map(|(index, run)| {
            if let Some(Frames { member, first: unit, buffer, .. }) = &run.frames {
                let location = BlockLocation::Rest { member: *member, unit: *unit, checksum: 0 };
                return Some(RunRead { run: index as u16, location, buffer: buffer.clone() });
            }
            let buffer = run.buffer.clone().filter(|_| !run.is_verified)?;
            Some(RunRead { run: index as u16, location: run.locations[0], buffer })
        });
        self.outstanding += u32::from(read.is_some());
        read
    }

    /// Whether device reads are under way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.outstanding > 0
    }

    /// The device read of a run ended.
    pub(crate) fn run_done(&mut self, run: u16, result: Result<BadBlocks, ()>) {
        self.outstanding -= 1;
        let run = &mut self.runs[usize::from(run)];
        match (result, &mut run.frames) {
            (Ok(bad), Some(frames)) => frames.bad = bad,
            (Ok(bad), None) => run.bad = bad,
            (Err(()), _) => self.has_failed = true,
        }
    }

    /// Compressed blocks, whose frames are read, are taken out of their slots: that takes about 1 µs with LZ4 and 5 µs with zstd for a block. Those that
    /// are none count as blocks that could not be read. Gives the work if there is much of it; it waits for the result then.
    pub(crate) fn unpack(&mut self, unpacker: &mut Unpacker) -> Option<Task> {
        let packed = self.runs.iter().filter(|run| run.is_packed());
        if packed.clone().map(|run| run.locations.len()).sum::<usize>() > limits::UNPACKED_AT_ONCE_MAX {
            let of_run = |(at, run): (u16, _)| Run::slots(run).map(move |slot| (at, slot));
            let slots = (0..).zip(packed.clone()).flat_map(of_run).collect();
            let frames = packed.filter_map(|run| Some(run.frames.as_ref()?.buffer.clone()));
            let task = Task { computation: Computation::Unpack(slots), data: frames.collect() };
            self.outstanding += 1;
            return Some(task);
        }
        for run in self.runs.iter_mut().filter(|run| run.is_packed()) {
            run.unpack(unpacker);
            run.frames.as_mut().expect("its blocks are compressed").is_unpacked = true;
        }
        None
    }

    /// That work ended: takes the blocks, and which of them are none.
    pub(crate) fn unpacked(&mut self, blocks: &[u8], bad: &[u16]) {
        self.outstanding -= 1;
        let mut next = 0;
        for run in self.runs.iter_mut().filter(|run| run.is_packed()) {
            let slots: SmallVec<[SlotRead; 16]> = run.slots().collect();
            let buffer = run.buffer.as_mut().expect("it is no hole");
            let len = buffer.len();
            let first = next / BLOCK_SIZE as usize;
            buffer.bytes_mut().copy_from_slice(&blocks[next..next + len]);
            next += len;
            let frames = run.frames.as_mut().expect("its blocks are compressed");
            frames.is_unpacked = true;
            for (index, slot) in slots.iter().enumerate() {
                if bad.binary_search(&((first + index) as u16)).is_ok() || frames.bad.contains(slot.frame()) {
                    run.bad.note(index as u16);
                }
            }
        }
    }

    /// Whether a device failed under it.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// The first block that does not match its checksum, or could not be read.
    pub(crate) fn first_mismatch(&self, trusts_packed: bool) -> Option<Mismatch> {
        for run in self.runs.iter().filter(|run| !run.is_verified) {
            let Some(buffer) = &run.buffer else { continue };
            let blocks = buffer.chunks_exact(BLOCK_SIZE as usize).zip(&run.locations);
            for (index, (bytes, location)) in blocks.enumerate() {
                let is_trusted = trusts_packed && run.frames.is_some();
                if run.bad.contains(index) || (location.checksum() != Some(crc32c(bytes)) && !is_trusted) {
                    return Some(Mismatch { block: run.block + index as u16, location: *location });
                }
            }
        }
        None
    }

    /// The first block that could not be read.
    pub(crate) fn first_unreadable(&self) -> Option<Mismatch> {
        self.runs.iter().find_map(|run| {
            let index = run.bad.indices().next()?;
            Some(Mismatch { block: run.block + index as u16, location: run.locations[index] })
        })
    }

    /// Whether its blocks were looked up at these locations.
    pub(crate) fn stood_at(&self, locations: &[BlockLocation]) -> bool {
        self.runs.iter().flat_map(|run| run.locations.iter()).eq(locations.iter())
    }

    /// Whether a block is damaged: it did not match at the same location before, or locations change all the time. Else it is looked up
    /// once more.
    pub(crate) fn is_damaged(&mut self, mismatch: Mismatch) -> bool {
        let is_same = self.suspect.replace(mismatch) == Some(mismatch);
        is_same || !self.may_retry()
    }

    /// Whether it may start over once more.
    pub(crate) fn may_retry(&self) -> bool {
        self.retries < limits::READ_RETRIES_MAX
    }

    /// It starts over.
    pub(crate) fn restart(&mut self) {
        self.retries += 1;
        self.runs.clear();
    }

    /// Its data, and the checksums of the blocks that are not in a hole.
    pub(crate) fn deliver(&mut self) -> Completion {
        let mut pieces = Pieces::new();
        let mut checksums = SmallVec::new();
        for run in self.runs.drain(..) {
            checksums.extend(run.locations.iter().filter_map(|location| location.checksum()));
            let len = run.locations.len() as u32 * BLOCK_SIZE as u32;
            pieces.push(run.buffer.map_or(Piece::Hole(len), Piece::Bytes));
        }
        Completion::Data(pieces, checksums)
    }
}

/// All reads under way.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    under_way: Slab<ReadState>,
    /// Those that wait for memory, in order.
    waiting: VecDeque<u32>,
    /// Those whose blocks are taken out of their slots elsewhere.
    unpacking: Vec<(ComputeId, u32)>,
}

impl Reads {
    pub(crate) fn begin(&mut self, read: ReadState) -> u32 {
        self.under_way.insert(read) as u32
    }

    pub(crate) fn end(&mut self, key: u32) -> Op {
        self.under_way.remove(key as usize).op
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Its blocks are taken out of their slots elsewhere.
    pub(crate) fn await_unpacking(&mut self, id: ComputeId, key: u32) {
        self.unpacking.push((id, key));
    }

    /// That work ended: gives the read, if one waits for it.
    pub(crate) fn end_unpacking(&mut self, id: ComputeId) -> Option<u32> {
        let at = self.unpacking.iter().position(|(of, _)| *of == id)?;
        Some(self.unpacking.swap_remove(at).1)
    }

    /// A read waits for memory.
    pub(crate) fn wait(&mut self, key: u32) {
        self.waiting.push_back(key);
    }

    /// Whether that read is the last that waits.
    pub(crate) fn is_last_waiting(&self, key: u32) -> bool {
        self.waiting.back() == Some(&key)
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// The group is lost: gives back the operations of all reads.
    pub(crate) fn take_all(&mut self) -> Vec<Op> {
        self.waiting.clear();
        self.unpacking.clear();
        self.under_way.drain().map(|read| read.op).collect()
    }
}

impl Index<u32> for Reads {
    type Output = ReadState;

    fn index(&self, key: u32) -> &ReadState {
        &self.under_way[key as usize]
    }
}

impl IndexMut<u32> for Reads {
    fn index_mut(&mut self, key: u32) -> &mut ReadState {
        &mut self.under_way[key as usize]
    }
}
