//! Blocks that a device cannot read: bad sectors.
//!
//! A read that fails is narrowed: each of its blocks is read by itself, so that one bad sector damages one block. The
//! block counts as damaged, as if its checksum did not match: reads are served from another copy, and a write replaces
//! it. A device goes out of service when too many of its blocks fail within a short time
//! ([`limits::UNREADABLE_BLOCKS_MAX`]), and at once when a write or a flush fails.

use crate::limits;
use base::{Buffer, Instant};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Blocks of one read that could not be read, by their index in the buffer. What the buffer holds there means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BadBlocks(SmallVec<[u16; 4]>);

impl BadBlocks {
    /// The only block of a read.
    pub(crate) fn only() -> BadBlocks {
        BadBlocks(smallvec::smallvec![0])
    }

    /// Notes a block, wherever it stands among the others.
    pub(crate) fn note(&mut self, index: u16) {
        let at = self.0.partition_point(|noted| *noted < index);
        self.0.insert(at, index);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, index: usize) -> bool {
        self.0.iter().any(|bad| usize::from(*bad) == index)
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|bad| usize::from(*bad))
    }
}

/// How a device request ended: for a read, with the blocks that could not be read; or why the device failed.
pub(crate) type Ended = Result<BadBlocks, String>;

/// What a read asked of its device.
#[derive(Debug, Clone)]
pub(crate) struct ReadRequest {
    pub(crate) offset: u64,
    pub(crate) buffer: Buffer,
    pub(crate) gentle: bool,
}

/// Blocks of a device that failed reads a short while ago, each named once.
#[derive(Debug, Default)]
pub(crate) struct FailedReads {
    recent: VecDeque<(Instant, u64)>,
    /// How many were noted since the group was opened.
    count: u64,
}

impl FailedReads {
    /// How many were noted since the group was opened.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Notes that the block at `offset` failed. Says whether the device fails too many blocks now. A block that is tried
    /// again and again counts once.
    pub(crate) fn note(&mut self, now: Instant, offset: u64) -> bool {
        self.recent.retain(|(at, _)| now.since(*at) < limits::UNREADABLE_WINDOW);
        if !self.recent.iter().any(|(_, noted)| *noted == offset) {
            self.recent.push_back((now, offset));
            self.count += 1;
        }
        self.recent.len() > limits::UNREADABLE_BLOCKS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_block_that_fails_again_and_again_takes_no_device_out_and_many_blocks_do() {
        let mut reads = FailedReads::default();
        let most = limits::UNREADABLE_BLOCKS_MAX as u64;
        assert!((0..1000).all(|turn| !reads.note(Instant(turn), 4096)), "it is one block");
        assert!((1..most).all(|block| !reads.note(Instant(1000 + block), block << 20)));
        assert!(reads.note(Instant(2000), most << 20), "one more than the limit");
        let later = Instant(2000 + limits::UNREADABLE_WINDOW.as_nanos() as u64);
        assert!(!reads.note(later, 0), "those of a while ago do not count");
        assert_eq!(reads.count, most + 2);
    }
}
