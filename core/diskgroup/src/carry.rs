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
    pub(crate) part: (u32, u32),
    pub(crate) entry: HeldEntry,
    /// `None` until it was read, and for good if it is damaged or trimmed.
    pub(crate) data: Option<Buffer>,
}

/// Blocks that are written again together.
#[derive(Debug)]
struct Chunk {
    blocks: Vec<Carried>,
    /// Reads of the log under way.
    outstanding: usize,
}

/// The blocks that one round writes again.
#[derive(Debug)]
struct Pass {
    /// The log before is wanted back.
    boundary: u64,
    /// The parts that need it, and are not known to be done. None are added: what is held from then on stands behind the boundary.
    parts: VecDeque<(u32, u32)>,
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct Carrying {
    pass: Option<Pass>,
    chunk: Option<Chunk>,
    /// Whether it waits for memory.
    pub(crate) waits_for_memory: bool,
}

impl Carrying {
    /// Whether a round's blocks were looked for.
    pub(crate) fn is_begun(&self) -> bool {
        self.pass.is_some()
    }

    /// A round writes again what these parts hold before the boundary.
    pub(crate) fn begin(&mut self, boundary: u64, parts: Vec<(u32, u32)>) {
        assert!(self.pass.is_none(), "a round looks for its blocks once");
        self.pass = Some(Pass { boundary, parts: parts.into() });
    }

    /// All is written again, or as much as there is room for.
    pub(crate) fn end(&mut self) {
        assert!(!self.is_reading(), "reads come back to it");
        *self = Carrying::default();
    }

    /// The log before is wanted back.
    pub(crate) fn boundary(&self) -> u64 {
        self.pass.as_ref().map_or(0, |pass| pass.boundary)
    }

    /// The parts that are not known to be done.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pass.iter().flat_map(|pass| pass.parts.iter().copied())
    }

    /// Leaves out parts that are done.
    pub(crate) fn retain_parts(&mut self, is_needed: impl Fn((u32, u32)) -> bool) {
        if let Some(pass) = &mut self.pass {
            pass.parts.retain(|part| is_needed(*part));
        }
    }

    /// Blocks begin their way with so many reads of the log.
    pub(crate) fn begin_chunk(&mut self, blocks: Vec<Carried>, reads: usize) {
        assert!(self.chunk.is_none(), "one chunk is under way at a time");
        self.chunk = Some(Chunk { blocks, outstanding: reads });
    }

    /// Whether blocks are being read.
    pub(crate) fn is_reading(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.outstanding > 0)
    }

    /// Whether blocks are read, and not in a batch yet.
    pub(crate) fn is_ready(&self) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| chunk.outstanding == 0)
    }

    /// Takes the blocks that are read.
    pub(crate) fn take_chunk(&mut self) -> Vec<Carried> {
        assert!(!self.is_reading(), "reads come back to it");
        self.chunk.take().map(|chunk| chunk.blocks).unwrap_or_default()
    }

    /// A read of the log brought blocks. Gives back those that are damaged: part and block.
    pub(crate) fn read_done(
        &mut self,
        run: LogRun,
        buffer: &Buffer,
        bad: &BadBlocks,
    ) -> Vec<((u32, u32), u8)> {
        let chunk = self.chunk.as_mut().expect("reads come back to it");
        chunk.outstanding -= 1;
        let positions = run.position..run.position + run.count;
        let mut damaged = Vec::new();
        for block in chunk.blocks.iter_mut().filter(|block| positions.contains(&block.entry.position)) {
            let index = (block.entry.position - run.position) as usize;
            let data = buffer.slice(index * BLOCK_SIZE as usize, BLOCK_SIZE as usize);
            match !bad.contains(index) && crc32c(&data) == block.entry.checksum {
                true => block.data = Some(data),
                false => damaged.push((block.part, block.entry.block)),
            }
        }
        damaged
    }
}
