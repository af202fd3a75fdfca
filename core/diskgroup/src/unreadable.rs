//! Blocks that a device cannot read: bad sectors.
//!
//! A read that fails is narrowed: each of its blocks is read by itself, so that one bad sector damages one block. The
//! block counts as damaged, as if its checksum did not match: reads are served from another copy, and a write replaces
//! it. A device goes out of service when too many of its blocks fail within a short time
//! ([`limits::UNREADABLE_BLOCKS_MAX`]), and at once when a write or a flush fails.

use crate::group::{Group, Purpose};
use crate::io::Output;
use crate::limits;
use base::units::BLOCK_SIZE;
use base::{Buffer, Instant};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Blocks of one read that could not be read, by their index in the buffer. What the buffer holds there means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BadBlocks(SmallVec<[u16; 4]>);

impl BadBlocks {
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

/// A read whose blocks are being read one by one.
#[derive(Debug)]
pub(crate) struct Narrowed {
    purpose: Purpose,
    outstanding: usize,
    bad: BadBlocks,
    failure: Option<String>,
}

/// Blocks of a device that failed reads a short while ago, each named once.
#[derive(Debug, Default)]
pub(crate) struct FailedReads {
    recent: VecDeque<(Instant, u64)>,
    /// How many were noted since the group was opened.
    pub(crate) count: u64,
}

impl FailedReads {
    /// Notes that the block at `offset` failed. Says whether the device fails too many blocks now. A block that is tried
    /// again and again counts once.
    fn note(&mut self, now: Instant, offset: u64) -> bool {
        self.recent.retain(|(at, _)| now.since(*at) < limits::UNREADABLE_WINDOW);
        if !self.recent.iter().any(|(_, noted)| *noted == offset) {
            self.recent.push_back((now, offset));
            self.count += 1;
        }
        self.recent.len() > limits::UNREADABLE_BLOCKS_MAX
    }
}

impl Group {
    /// Asks a member's device for a read.
    pub(crate) fn issue_read(
        &mut self,
        member: u8,
        purpose: Purpose,
        request: ReadRequest,
        out: &mut Vec<Output>,
    ) {
        let ReadRequest { offset, buffer, gentle } = request.clone();
        let io = self.issue(member, purpose);
        self.io[io.0 as usize].read = Some(request);
        out.push(Output::Read { io, member, offset, buffer, gentle });
    }

    /// A read of several blocks failed: each block is read by itself.
    pub(crate) fn narrow(&mut self, member: u8, purpose: Purpose, read: ReadRequest, out: &mut Vec<Output>) {
        let count = read.buffer.len() / BLOCK_SIZE as usize;
        let narrowed = Narrowed { purpose, outstanding: count, bad: BadBlocks::default(), failure: None };
        let key = self.narrowed.insert(narrowed) as u32;
        for index in 0..count {
            let at = index * BLOCK_SIZE as usize;
            let request = ReadRequest {
                offset: read.offset + at as u64,
                buffer: read.buffer.slice(at, BLOCK_SIZE as usize),
                gentle: read.gentle,
            };
            self.issue_read(member, Purpose::Block { narrowed: key, index: index as u16 }, request, out);
        }
    }

    /// A single block could not be read.
    pub(crate) fn block_unreadable(&mut self, member: u8, offset: u64, why: &str) -> Ended {
        match self.members[member as usize].failed_reads.note(self.now, offset) {
            false => Ok(BadBlocks(smallvec::smallvec![0])),
            true => Err(format!(
                "more than {} blocks could not be read within {} s, the last one at byte {offset}: {why}",
                limits::UNREADABLE_BLOCKS_MAX,
                limits::UNREADABLE_WINDOW.as_secs()
            )),
        }
    }

    /// A block of a narrowed read ended. Gives back what the whole was for and how it ended, with its last block.
    pub(crate) fn block_ended(&mut self, key: u32, index: u16, ended: Ended) -> Option<(Purpose, Ended)> {
        let narrowed = &mut self.narrowed[key as usize];
        narrowed.outstanding -= 1;
        match ended {
            Ok(bad) if bad.is_empty() => {}
            Ok(_) => narrowed.bad.0.push(index),
            Err(why) => drop(narrowed.failure.get_or_insert(why)),
        }
        if narrowed.outstanding > 0 {
            return None;
        }
        let Narrowed { purpose, mut bad, failure, .. } = self.narrowed.remove(key as usize);
        bad.0.sort_unstable();
        Some((purpose, failure.map_or(Ok(bad), Err)))
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
