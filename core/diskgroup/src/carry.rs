//! The state of carrying held blocks forward: which parts are still to be written again, and the blocks that are on their way.

use crate::destage::LogRun;
use crate::held::HeldEntry;
use crate::unreadable::BadBlocks;
use base::Buffer;
use base::checksum::crc32c;
use base::units::BLOCK_SIZE;
use std::collections::VecDeque;

/// A held block on its way.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) entry: HeldEntry,
    /// `None` until it was read, and for good if it is damaged or trimmed.
    pub(crate) data: Option<Buffer>,
}

/// Blocks of one part that are written again together.
#[derive(Debug)]
struct Chunk {
    part: (u32, u32),
    blocks: Vec<Carried>,
    /// Reads of the log under way.
    outstanding: usize,
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Carrying {
    /// The parts that needed the log before the boundary when that was looked for, and are not known to be done. None are added: what
    /// is held from then on stands behind the boundary.
    queue: Option<VecDeque<(u32, u32)>>,
    chunk: Option<Chunk>,
    /// Whether it waits for memory.
    pub(crate) waits_for_memory: bool,
}

impl Carrying {
    /// The parts that are to be written again; looked for once in a round.
    pub(crate) fn begin(&mut self, find: impl FnOnce() -> Vec<(u32, u32)>) {
        self.queue.get_or_insert_with(|| find().into());
    }

    /// All is written again, or as much as there is room for.
    pub(crate) fn end(&mut self) {
        assert!(self.chunk.as_ref().is_none_or(|chunk| chunk.outstanding == 0), "reads come back to it");
        *self = Carrying::default();
    }

    /// The part to look at next.
    pub(crate) fn next_part(&self) -> Option<(u32, u32)> {
        self.queue.as_ref().and_then(|queue| queue.front().copied())
    }

    /// Parts that are not known to be done.
    pub(crate) fn parts_left(&self) -> usize {
        self.queue.as_ref().map_or(0, VecDeque::len)
    }

    /// The part needs nothing of the log before the boundary any more.
    pub(crate) fn part_done(&mut self) {
        self.queue.as_mut().map(VecDeque::pop_front);
    }

    /// The part must wait: others go first.
    pub(crate) fn part_waits(&mut self) {
        if let Some(queue) = &mut self.queue
            && let Some(part) = queue.pop_front()
        {
            queue.push_back(part);
        }
    }

    /// Blocks of a part begin their way with so many reads of the log.
    pub(crate) fn begin_chunk(&mut self, part: (u32, u32), blocks: Vec<Carried>, reads: usize) {
        assert!(self.chunk.is_none(), "one part is written again at a time");
        self.chunk = Some(Chunk { part, blocks, outstanding: reads });
    }

    /// Whether blocks are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.outstanding > 0)
    }

    /// The part whose blocks are all read.
    pub(crate) fn ready_part(&self) -> Option<(u32, u32)> {
        self.chunk.as_ref().filter(|chunk| chunk.outstanding == 0).map(|chunk| chunk.part)
    }

    /// The blocks that are all read.
    pub(crate) fn take_chunk(&mut self) -> Vec<Carried> {
        self.chunk.take().map(|chunk| chunk.blocks).unwrap_or_default()
    }

    /// A read of the log brought blocks. Gives back the part, and those of its blocks that are damaged.
    pub(crate) fn read_done(
        &mut self,
        run: LogRun,
        buffer: &Buffer,
        bad: &BadBlocks,
    ) -> ((u32, u32), Vec<u8>) {
        let chunk = self.chunk.as_mut().expect("reads come back to it");
        chunk.outstanding -= 1;
        let positions = run.position..run.position + run.count;
        let mut damaged = Vec::new();
        for block in chunk.blocks.iter_mut().filter(|block| positions.contains(&block.entry.position)) {
            let index = (block.entry.position - run.position) as usize;
            let data = buffer.slice(index * BLOCK_SIZE as usize, BLOCK_SIZE as usize);
            match !bad.contains(index) && crc32c(&data) == block.entry.checksum {
                true => block.data = Some(data),
                false => damaged.push(block.entry.block),
            }
        }
        (chunk.part, damaged)
    }
}
