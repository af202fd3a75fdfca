//! Reads that fail are narrowed: each of their blocks is read by itself (`unreadable.rs`).

use super::Group;
use crate::io::Output;
use crate::limits;
use crate::requests::{PendingIo, Purpose};
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
        let io = self.begin(PendingIo { begun: self.now, member, purpose, read: Some(request) });
        out.push(Output::Read { io, member, offset, buffer, gentle });
    }

    /// A read of several blocks failed: each block is read by itself.
    pub(super) fn narrow(&mut self, member: u8, purpose: Purpose, read: ReadRequest, out: &mut Vec<Output>) {
        let count = read.buffer.len() / BLOCK_SIZE as usize;
        let key = self.requests.narrow(purpose, count);
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
        match self.members[member].failed_reads.note(self.now, offset) {
            false => Ok(BadBlocks::only()),
            true => Err(format!(
                "more than {} blocks could not be read within {} s, the last one at byte {offset}: {why}",
                limits::UNREADABLE_BLOCKS_MAX,
                limits::UNREADABLE_WINDOW.as_secs()
            )),
        }
    }
}
