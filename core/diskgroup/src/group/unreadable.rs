//! Reads that fail are narrowed: each of their blocks is read by itself (`unreadable.rs`).

use super::Group;
use crate::io::Output;
use crate::limits;
use crate::requests::Narrowed;
use crate::requests::Purpose;
use crate::unreadable::{BadBlocks, Ended, ReadRequest};
use base::units::BLOCK_SIZE;

impl Group {
    /// Asks a member's device for a read.
    pub(super) fn issue_read(
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
    pub(super) fn narrow(&mut self, member: u8, purpose: Purpose, read: ReadRequest, out: &mut Vec<Output>) {
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
    pub(super) fn block_unreadable(&mut self, member: u8, offset: u64, why: &str) -> Ended {
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
    pub(super) fn block_ended(&mut self, key: u32, index: u16, ended: Ended) -> Option<(Purpose, Ended)> {
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
