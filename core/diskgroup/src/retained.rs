//! Data of the newest batches, kept in memory: reads of it and its destaging need no device.

use base::Buffer;
use base::units::BLOCK_SIZE;
use std::collections::VecDeque;

/// Blocks by log position, the oldest dropped first.
#[derive(Debug)]
pub(crate) struct Retained {
    blocks: VecDeque<Option<Buffer>>,
    /// Log position of the first of `blocks`.
    start: u64,
    blocks_max: usize,
}

impl Retained {
    pub(crate) fn new(bytes_max: usize) -> Retained {
        Retained { blocks: VecDeque::new(), start: 0, blocks_max: bytes_max / BLOCK_SIZE as usize }
    }

    /// Slots held, empty ones among them.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Keeps the block at `position`, which is greater than all before.
    pub(crate) fn push(&mut self, position: u64, block: Buffer) {
        let next = self.start + self.blocks.len() as u64;
        assert!(position >= next, "positions grow");
        if self.blocks.is_empty() {
            self.start = position;
        } else {
            self.blocks.extend(std::iter::repeat_with(|| None).take((position - next) as usize));
        }
        self.blocks.push_back(Some(block));
        while self.blocks.len() > self.blocks_max {
            self.drop_oldest();
        }
    }

    pub(crate) fn get(&self, position: u64) -> Option<&Buffer> {
        let index = position.checked_sub(self.start)?;
        self.blocks.get(index as usize)?.as_ref()
    }

    /// The block is not needed any more: it was destaged or written again.
    pub(crate) fn forget(&mut self, position: u64) {
        let Some(index) = position.checked_sub(self.start) else { return };
        if let Some(block) = self.blocks.get_mut(index as usize) {
            *block = None;
        }
        while self.blocks.front().is_some_and(Option::is_none) {
            self.drop_oldest();
        }
    }

    /// Gives up to `count` blocks back because memory is short. Says whether there were any.
    pub(crate) fn give_back(&mut self, count: usize) -> bool {
        let had_some = !self.blocks.is_empty();
        for _ in 0..count.min(self.blocks.len()) {
            self.drop_oldest();
        }
        had_some
    }

    fn drop_oldest(&mut self) {
        self.blocks.pop_front();
        self.start += 1;
    }
}
