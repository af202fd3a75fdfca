//! The ring of log blocks: what is free, what is live, and the batch that is being gathered.

use crate::format::anchor::Anchor;
use crate::format::batch::{Record, blocks_of_one};
use crate::format::superblock::Superblock;
use crate::limits;
use base::Buffer;
use base::bytes::Writer;
use base::request::Buffers;
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
    /// The version of the group's format, which is that of new batches.
    format: u32,
    blocks: u64,
    /// Where the next batch goes.
    head: u64,
    next_number: u64,
    /// The last anchor written; its tail bounds what may be reused.
    anchor: Anchor,
    /// Starts of the batches from the tail on that are stable, oldest first.
    starts: VecDeque<BatchStart>,
}

impl Log {
    /// The log on the device with that superblock, of which nothing is known yet.
    pub(crate) fn before_recovery(superblock: &Superblock) -> Log {
        Log {
            format: superblock.format,
            blocks: superblock.geometry.log.len / BLOCK_SIZE,
            head: 0,
            next_number: 1,
            anchor: Anchor { log_mark: superblock.log_mark, ..Anchor::default() },
            starts: VecDeque::new(),
        }
    }

    /// The version of the group's format.
    pub(crate) fn format(&self) -> u32 {
        self.format
    }

    /// The group was converted: new batches are of that version.
    pub(crate) fn convert(&mut self, format: u32) {
        self.format = format;
    }

    /// Blocks of the ring.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Where the next batch goes.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// Where the next batch goes, and its number.
    pub(crate) fn next_start(&self) -> BatchStart {
        BatchStart { position: self.head, number: self.next_number }
    }

    /// The last anchor written.
    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// Before this position, the log may be written over.
    pub(crate) fn tail(&self) -> u64 {
        self.anchor.tail
    }

    /// Recovery begins at the tail that the anchor tells.
    pub(crate) fn recover(&mut self, anchor: Anchor) {
        (self.head, self.next_number, self.anchor) = (anchor.tail, anchor.tail_batch, anchor);
        assert!(self.starts.is_empty(), "recovery begins at the anchor");
    }

    /// Recovery has found a batch that ends at `end`.
    pub(crate) fn recover_batch(&mut self, start: BatchStart, end: u64) {
        assert!(start.position >= self.head && end > start.position, "batches follow each other");
        self.starts.push_back(start);
        (self.head, self.next_number) = (end, start.number + 1);
    }

    /// The batch that begins there, and all before it, are stable.
    pub(crate) fn stable(&mut self, start: BatchStart) {
        self.starts.push_back(start);
    }

    /// A later anchor is stable: what lies before its tail may be written over.
    pub(crate) fn advance(&mut self, anchor: Anchor) {
        assert!(anchor.tail >= self.anchor.tail && anchor.tail <= self.head, "the tail moves forward");
        self.anchor = anchor;
        while self.starts.front().is_some_and(|start| start.position < anchor.tail) {
            self.starts.pop_front();
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

    /// Takes the position of a batch of `blocks`.
    pub(crate) fn take_position(&mut self, blocks: u64) -> BatchStart {
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

    /// The start of the stable batch in which that position lies.
    pub(crate) fn start_of(&self, position: u64) -> BatchStart {
        let behind = self.starts.partition_point(|start| start.position <= position);
        self.starts[behind.checked_sub(1).expect("it lies in a live batch")]
    }

    /// The start of the first stable batch at or after `position`, or `head`, where the next one will be.
    pub(crate) fn start_at_or_after(&self, position: u64, head: BatchStart) -> BatchStart {
        let index = self.starts.partition_point(|start| start.position < position);
        self.starts.get(index).copied().unwrap_or(head)
    }
}

/// What becomes the next batch. `T` is what the group wants back when the batch is stable.
#[derive(Debug)]
pub(crate) struct Gather<T> {
    records: Writer,
    record_count: u32,
    data: Vec<Buffer>,
    data_blocks: u64,
    then: Vec<T>,
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

    pub(crate) fn record_count(&self) -> u32 {
        self.record_count
    }

    /// The records, encoded.
    pub(crate) fn records(&self) -> &[u8] {
        self.records.as_bytes()
    }

    pub(crate) fn data_blocks(&self) -> u64 {
        self.data_blocks
    }

    /// What is wanted back.
    pub(crate) fn then(&self) -> &[T] {
        &self.then
    }

    /// Adds a record with its data, and what is wanted back when it is stable.
    pub(crate) fn push(&mut self, then: T, parts: impl FnOnce(&T) -> (&Record, &Buffers)) {
        let (record, data) = parts(&then);
        self.data.extend(data.iter().cloned());
        record.encode(&mut self.records);
        self.record_count += 1;
        self.data_blocks += record.data_blocks();
        self.then.push(then);
    }

    /// Empties it, keeping memory: the batch's buffers with its header in front, and what is wanted back.
    pub(crate) fn take(&mut self, header: Buffer) -> (Buffers, Vec<T>) {
        let mut buffers = Buffers::with_capacity(1 + self.data.len());
        buffers.push(header);
        buffers.extend(self.data.drain(..));
        self.records.clear();
        (self.record_count, self.data_blocks) = (0, 0);
        (buffers, std::mem::take(&mut self.then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(head: u64, tail: u64) -> Log {
        let anchor = Anchor { tail, ..Anchor::default() };
        let format = crate::format::FORMAT_PLAIN;
        Log { format, blocks: 100, head, next_number: 1, anchor, starts: VecDeque::new() }
    }

    #[test]
    fn a_batch_never_wraps_around_the_end() {
        let mut log = log(195, 150);
        assert_eq!((log.free_blocks(), log.cost(5), log.cost(6)), (55, 5, 11));
        assert_eq!(log.take_position(6), BatchStart { position: 200, number: 1 });
        assert_eq!((log.head, log.free_blocks()), (206, 44));
    }

    #[test]
    #[should_panic(expected = "sealed only when it fits")]
    fn live_batches_are_never_overwritten() {
        log(195, 100).take_position(6);
    }
}
