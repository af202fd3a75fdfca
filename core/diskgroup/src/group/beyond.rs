//! The end of the log at a start: what stands behind the last batch that was found.
//!
//! Usually what an earlier round of the ring left. It may also be a batch whose header is damaged: what it said stands a
//! second time behind it, and is taken from there. A later batch without the one that is missing means that acknowledged writes are
//! lost, and nobody can tell which: the group stays closed.

use super::Group;
use crate::format::batch::{BatchHeader, HEADER_BLOCKS_MAX};
use crate::io::{OpenError, Output};
use crate::limits;
use crate::log::BatchStart;
use crate::recovery::{Batch, Mend, Stage, Told};
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::unreadable::BadBlocks;
use base::Buffer;
use base::units::BLOCK_SIZE;

impl Group {
    /// Searches where the batch that is missing, or a later one, would stand if it was damaged rather than never written.
    pub(super) fn look_beyond(&mut self, out: &mut Vec<Output>) {
        let batch = limits::batch_blocks_max(self.log.blocks()) + HEADER_BLOCKS_MAX;
        let window = 2 * batch; // The missing one may have wrapped.
        let start = self.log.head();
        let end = start + window.min(self.log.free_blocks());
        self.read_beyond(start, end, out);
    }

    fn read_beyond(&mut self, position: u64, end: u64, out: &mut Vec<Output>) {
        if position >= end {
            return match self.recovery().is_doubtful() && self.rules.hold(Rule::ProveUnreadableEnd) {
                true => self.log_damaged(out),
                false => self.mend_log(out),
            };
        }
        let to_wrap = self.log.blocks() - position % self.log.blocks();
        let blocks = (end - position).min(to_wrap).min(limits::RECOVERY_READ_SIZE / BLOCK_SIZE);
        self.recovery().begin(Stage::Beyond { position, end });
        self.recovery_read(0, self.log_offset(position), blocks * BLOCK_SIZE, out);
    }

    fn log_damaged(&mut self, out: &mut Vec<Output>) {
        let number = self.recovery().number();
        self.open_failed(OpenError::LogDamaged { number }, out);
    }

    pub(super) fn recover_beyond(
        &mut self,
        start: u64,
        end: u64,
        (buffer, bad): (&Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let (missing, mark, ring) = (self.recovery().number(), self.log.anchor().log_mark, self.log.blocks());
        for (index, bytes) in buffer.chunks_exact(BLOCK_SIZE as usize).enumerate() {
            let position = start + index as u64;
            if bad.contains(index) {
                self.recovery().note_unreadable_beyond(position);
            }
            // Whole rounds of the ring further, too, as where the anchor that was found is not the newest.
            let is_later = |header: BatchHeader, stands_at: u64| {
                header.number > missing && stands_at % ring == position % ring
            };
            let header = BatchHeader::peek(bytes, mark);
            let copy = BatchHeader::peek_copy(bytes, mark);
            if header.is_some_and(|header| is_later(header, header.position))
                || copy.is_some_and(|copy| is_later(copy, copy.copy_position()))
            {
                return self.log_damaged(out);
            }
            let is_here =
                |header: &BatchHeader, stands_at: u64| header.number == missing && stands_at == position;
            let copy = copy.filter(|copy| is_here(copy, copy.copy_position()));
            let is_left = copy.is_some() || header.is_some_and(|header| is_here(&header, header.position));
            if is_left && self.rules.hold(Rule::EraseRemains) {
                self.recovery().note_mend(position, Mend::Erase);
            }
            if copy.is_some_and(|copy| self.is_missing(&copy)) {
                return self.read_header_copy(position, end, out);
            }
        }
        self.read_beyond(start + buffer.len() as u64 / BLOCK_SIZE, end, out);
    }

    /// The end of the log is known. Puts it right, one write after the other, before the group opens.
    ///
    /// What is left of a batch that does not count is written over: the next batch gets its number and its place, so power that fails amid that
    /// batch could complete the former one, sector by sector, and what this start takes for never written would count with the next start.
    ///
    /// Of the last batch that counts, the one of header and copy that power tore is written again (`mend_last`).
    pub(super) fn mend_log(&mut self, out: &mut Vec<Output>) {
        let Some((position, mend)) = self.recovery().next_mend() else { return self.mend_anchor(out) };
        let bytes = match mend {
            // Zeroes could complete a header, too: most of its sectors are zeroes.
            Mend::Erase => vec![0xff; BLOCK_SIZE as usize],
            Mend::Header(bytes) => bytes,
        };
        let mut buffer = self.own_pool.take(bytes.len()).expect("recovery uses one buffer at a time");
        buffer.bytes_mut().copy_from_slice(&bytes);
        self.recovery().begin(Stage::MendLog);
        let io = self.issue(0, Purpose::Recovery { buffer: buffer.clone() });
        let (offset, buffers) = (self.log_offset(position), smallvec::smallvec![buffer]);
        out.push(Output::Write { io, member: 0, offset, buffers, stable: true, gentle: false });
    }

    /// The last batch counts. If power tore its header or the copy, that is to be written again: from now on it is not the last, and a single sector that
    /// cannot be read later would take acknowledged writes away. The one that is whole is not touched.
    pub(super) fn mend_last(&mut self, last: &Batch) {
        if last.told == Told::Twice || !self.rules.hold(Rule::MendLastHeader) {
            return;
        }
        let header = &last.header;
        let mut bytes = header.encode_records(&last.records);
        let copy = bytes.split_off((header.copy_position() - header.position) as usize * BLOCK_SIZE as usize);
        match last.told {
            Told::Twice => {}
            Told::ByHeader => self.recovery().note_mend(header.copy_position(), Mend::Header(copy)),
            Told::ByCopy => self.recovery().note_mend(header.position, Mend::Header(bytes)),
        }
    }

    /// Whether the header is that of the batch which is looked for, at the position that it would have.
    fn is_missing(&mut self, header: &BatchHeader) -> bool {
        if !self.rules.hold(Rule::ReadHeaderCopy) {
            return false;
        }
        let (head, ring) = (self.log.head(), self.log.blocks());
        let left = ring - head % ring;
        let expected = if header.blocks() > left { head + left } else { head };
        let recovery = self.recovery();
        header.number == recovery.number() && header.position == expected && !recovery.is_torn(expected)
    }

    fn read_header_copy(&mut self, position: u64, end: u64, out: &mut Vec<Output>) {
        let left = self.log.blocks() - position % self.log.blocks();
        let blocks = left.min(HEADER_BLOCKS_MAX / 2);
        self.recovery().begin(Stage::HeaderCopy { position, end });
        self.recovery_read(0, self.log_offset(position), blocks * BLOCK_SIZE, out);
    }

    /// Takes the batch whose header is damaged, if its copy verifies.
    pub(super) fn recover_header_copy(
        &mut self,
        position: u64,
        end: u64,
        buffer: &Buffer,
        out: &mut Vec<Output>,
    ) {
        let header = BatchHeader::peek_copy(buffer, self.log.anchor().log_mark);
        let found = header.and_then(|header| {
            let len = (position - header.position) * BLOCK_SIZE;
            let records = header.decode_copy(buffer.get(..len as usize)?).ok()?;
            Some((header, records))
        });
        match found {
            Some((header, records)) if records.iter().all(|record| self.is_plausible(record)) => {
                let start = BatchStart { position: header.position, number: header.number };
                let next = self.take_batch(Batch { start, header, records, told: Told::ByCopy });
                self.read_log(next, out);
            }
            // Torn, as its batch then is: or a block of it cannot be read, which is noted on the way.
            Some(_) | None => self.read_beyond(position + 1, end, out),
        }
    }
}
