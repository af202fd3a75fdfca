//! Who may use how much of the log.
//!
//! Only a checkpoint makes room in the log, and it needs some itself: it logs which pages it writes, and tells again what is still in the
//! windows of components and stands in the part that the log lets go. What guests, and the group's other records, take must leave as
//! much, or the group stands still for good. Windows may hold far more than their usual few milliseconds of writes, as when the
//! directory is away and no watermark moves on, so what they need is counted. Before a checkpoint destaging may need pages, and a chunk for them is a
//! record, too: for those there is room that nothing else may take. A start that finds such a record in the log makes that chunk, so that
//! starts that follow each other do not fill the room up.

use super::Group;
use crate::format::batch::HEADER_BLOCKS_MAX;
use crate::limits;
use crate::rules::Rule;
use crate::work::WRITE_RECORD_SIZE;
use base::units::BLOCK_SIZE;

impl Group {
    /// As [`crate::buffer::WriteBuffer::has_room`].
    pub(super) fn has_room(&self, record_bytes: usize, data_blocks: u64, reserve: u64) -> bool {
        self.buffer.has_room(&self.log, record_bytes, data_blocks, reserve)
    }

    /// Whether a guest's record fits: beside the room in the log, it must leave some to the group, and the index must
    /// not outgrow its bound.
    pub(super) fn has_guest_room(&self, blocks: u64) -> bool {
        self.has_room_for_records(1, blocks, blocks)
    }

    /// The same for several records with so many blocks of data, which put so many entries into the index.
    pub(super) fn has_room_for_records(&self, records: usize, blocks: u64, entries: u64) -> bool {
        self.has_room_for(records, blocks, entries, 0)
    }

    /// The same for records that hold so many blocks.
    pub(super) fn has_room_for_hold(&self, records: usize, blocks: u64, held: u64) -> bool {
        self.has_room_for(records, blocks, 0, held)
    }

    fn has_room_for(&self, records: usize, blocks: u64, entries: u64, held: u64) -> bool {
        let own = limits::log_blocks_reserved(self.log.blocks());
        let destaging = limits::CHUNK_LOG_BLOCKS + self.carry_room(held);
        let reserve = own + self.checkpoint_room() + destaging;
        !self.buffer.has_records_waiting()
            && self.index.has_room(entries, self.log.blocks())
            && self.has_room(records * WRITE_RECORD_SIZE + blocks as usize * 4, blocks, reserve)
    }

    /// Log blocks that it takes at most to write again what is held in the oldest batch, so that the tail can pass that, once
    /// `more` blocks are held.
    fn carry_room(&self, more: u64) -> u64 {
        let held = self.held.count() as u64 + more;
        let blocks = held.min(limits::batch_blocks_max(self.log.blocks()));
        if blocks == 0 {
            return 0;
        }
        // Each of its batches has a header of one block with a copy, and one may have to go to the start of the ring. A batch that is
        // written again in several takes more room than before: what that adds up to is little beside a thirty-second of the log.
        let batches = blocks.div_ceil(limits::CARRIED_BLOCKS_MAX as u64);
        let wrapped = limits::CARRIED_BLOCKS_MAX as u64 + 2;
        blocks + 2 * batches + wrapped + self.log.blocks() / 32
    }

    /// Log blocks that the next checkpoint takes at most.
    pub(super) fn checkpoint_room(&self) -> u64 {
        if !self.rules.hold(Rule::LeaveRoomForWindows) {
            return 0;
        }
        // What a change under way adds to a window is no longer than its own record.
        let gathered = self.buffer.gathered_header_blocks();
        let sealed = self.buffer.sealed_header_blocks();
        // Every header has its copy.
        let told = self.retold_blocks() + gathered + limits::intent_blocks_max(self.log.blocks());
        let blocks = 2 * told + sealed;
        // One of its batches may have to go to the start of the ring, for want of room at the end.
        blocks + blocks.min(HEADER_BLOCKS_MAX)
    }

    /// Log blocks that the windows take at most when they are told again, without copies of headers.
    pub(super) fn retold_blocks(&self) -> u64 {
        let entries = self.components.window_entries() * limits::ENTRY_RECORD_SIZE;
        let watermarks = self.components.len() * limits::WATERMARK_RECORD_SIZE;
        ((entries + watermarks) as u64).div_ceil(BLOCK_SIZE)
    }
}
