//! The ring of log blocks: what is free, what is live, and the batch that is being gathered.

use crate::format::anchor::Anchor;
use crate::format::batch::{Record, blocks_of_one};
use crate::format::superblock::Superblock;
use crate::limits;
use base::Buffer;
use base::bytes::Writer;
use base::units::BLOCK_SIZE;
use std::collections::VecDeque;

/// The start of a batch that is (or was, when installed) in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchStart {
    pub(crate) position: u64,
    pub(crate) number: u64,
}

/// The ring. Positions count log blocks since the log's first use; the block on the device is the position modulo
/// `blocks`. A batch never wraps around the end of the region.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) blocks: u64,
    /// Where the next batch goes.
    pub(crate) head: u64,
    pub(crate) next_number: u64,
    /// The last anchor written; its tail bounds what may be reused.
    pub(crate) anchor: Anchor,
    /// Starts of the batches from the tail on that are stable, oldest first.
    pub(crate) starts: VecDeque<BatchStart>,
}

impl Log {
    /// The log on the device with that superblock, of which nothing is known yet.
    pub(crate) fn before_recovery(superblock: &Superblock) -> Log {
        Log {
            blocks: superblock.geometry.log.len / BLOCK_SIZE,
            head: 0,
            next_number: 1,
            anchor: Anchor { log_mark: superblock.log_mark, ..Anchor::default() },
            starts: VecDeque::new(),
        }
    }

    pub(crate) fn used_blocks(&self) -> u64 {
        self.head - self.anchor.tail
    }

    pub(crate) fn free_blocks(&self) -> u64 {
        self.blocks - self.used_blocks()
    }

    /// Log blocks that a batch of `blocks` costs now: itself, and what is left at the region's end if it must wrap.
    pub(crate) fn cost(&self, blocks: u64) -> u64 {
        let left = self.blocks - self.head % self.blocks;
        if blocks > left { left + blocks } else { blocks }
    }

    /// Takes the place of a batch of `blocks`.
    pub(crate) fn place(&mut self, blocks: u64) -> BatchStart {
        assert!(self.cost(blocks) <= self.free_blocks(), "a batch is sealed only when it fits");
        let left = self.blocks - self.head % self.blocks;
        if blocks > left {
            self.head += left;
        }
        let start = BatchStart { position: self.head, number: self.next_number };
        self.head += blocks;
        self.next_number += 1;
        start
    }

    /// Used share in percent of the ring, rounded down.
    pub(crate) fn fill_percent(&self) -> u64 {
        self.used_blocks() * 100 / self.blocks
    }

    /// Used share in thousandths of the ring, rounded down.
    pub(crate) fn fill_permille(&self) -> u64 {
        self.used_blocks() * 1000 / self.blocks
    }

    /// The start of the first stable batch at or after `position`, or where the next one will be.
    pub(crate) fn start_at_or_after(&self, position: u64, head: BatchStart) -> BatchStart {
        let index = self.starts.partition_point(|start| start.position < position);
        self.starts.get(index).copied().unwrap_or(head)
    }

    /// Forgets the starts before `tail`.
    pub(crate) fn forget_before(&mut self, tail: u64) {
        while self.starts.front().is_some_and(|start| start.position < tail) {
            self.starts.pop_front();
        }
    }
}

/// What becomes the next batch. `T` is what the group wants back when the batch is stable.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    pub(crate) records: Writer,
    pub(crate) record_count: u32,
    pub(crate) data: Vec<Buffer>,
    pub(crate) data_blocks: u64,
    pub(crate) then: Vec<T>,
}

impl<T> Default for Gather<T> {
    fn default() -> Gather<T> {
        Gather {
            records: Writer::default(),
            record_count: 0,
            data: Vec::new(),
            data_blocks: 0,
            then: Vec::new(),
        }
    }
}

impl<T> Gather<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.record_count == 0
    }

    /// Blocks of the header without its copy.
    pub(crate) fn header_blocks(&self, more_record_bytes: usize) -> u64 {
        blocks_of_one(self.records.len() + more_record_bytes)
    }

    /// Whether `data_blocks` and records of `record_bytes` more still fit one batch.
    pub(crate) fn has_room(&self, record_bytes: usize, data_blocks: u64, log_blocks: u64) -> bool {
        self.is_empty()
            || (self.records.len() + record_bytes <= limits::RECORD_BYTES_MAX
                && self.data_blocks + data_blocks <= limits::batch_blocks_max(log_blocks))
    }

    /// Empties it, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.record_count = 0;
        self.data.clear();
        self.data_blocks = 0;
        self.then.clear();
    }

    /// Adds a record whose data (if any) has been pushed to `data`.
    pub(crate) fn push(&mut self, record: &Record, then: T) {
        record.encode(&mut self.records);
        self.record_count += 1;
        self.data_blocks += record.data_blocks();
        self.then.push(then);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(head: u64, tail: u64) -> Log {
        let anchor = Anchor { tail, ..Anchor::default() };
        Log { blocks: 100, head, next_number: 1, anchor, starts: VecDeque::new() }
    }

    #[test]
    fn a_batch_never_wraps_around_the_end() {
        let mut log = log(195, 150);
        assert_eq!((log.free_blocks(), log.cost(5), log.cost(6)), (55, 5, 11));
        assert_eq!(log.place(6), BatchStart { position: 200, number: 1 });
        assert_eq!((log.head, log.free_blocks()), (206, 44));
    }

    #[test]
    #[should_panic(expected = "sealed only when it fits")]
    fn live_batches_are_never_overwritten() {
        log(195, 100).place(6);
    }
}
