//! Checkpoints: what makes a part of the log free.
//!
//! In this order, each step only when the one before is stable: the capacity devices are flushed, and the log names the
//! pages that are about to be written; the pages are written to the copies that do not count; the devices are flushed
//! again; the anchor is written. A crash at any point leaves either the older pages and the log that leads on from them,
//! or the newer ones.

use super::Group;
use crate::checkpoint::{AnchorCopy, DeletionCheckpoint, NextPage, PageLocation};
use crate::format::FORMAT_PLAIN;
use crate::format::anchor::{ANCHOR_SIZE, Anchor, anchor_offset};
use crate::format::batch::Record;
use crate::format::page::{PAGE_SIZE, Page, PageContent};
use crate::format::superblock::MEMBERS_MAX;
use crate::io::{Completion, Output};
use crate::limits;
use crate::log::BatchStart;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::Content;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;

impl Group {
    pub(super) fn advance_checkpoint(&mut self, out: &mut Vec<Output>) {
        if self.checkpoint.is_idle() {
            self.begin_checkpoint(out);
        }
        self.checkpoint.begin_pages_if_prepared(self.stable_head().number);
        self.write_pages(out);
    }

    fn begin_checkpoint(&mut self, out: &mut Vec<Output>) {
        self.hold_or_catch_up();
        let dirty_pages: usize =
            self.members.iter().map(|(_, member)| member.table.dirty_count() as usize).sum();
        let is_due = self.destaging.finished().is_some()
            || dirty_pages >= limits::dirty_pages_max(self.log.blocks())
            || self.members.failed() != self.log.anchor().failed_members
            || self.scrub.wants_checkpoint()
            || self.leavers_want_checkpoint()
            || self.backfills.wants_checkpoint()
            || self.mapped_parts_want_checkpoint();
        if !is_due || self.has_lists_due() || !self.void_maps.is_empty() {
            return;
        }
        self.scrub.checkpoint_begun();
        self.unmapped.checkpoint_begun();
        self.backfills.checkpoint_begun();
        let here = BatchStart { position: self.log.tail(), number: self.log.anchor().tail_batch };
        let tail = self.destaging.take_finished().unwrap_or(here);
        let stays = [self.away_since(), self.rolling_back_since()].into_iter().flatten();
        let tail = stays.chain([tail]).min_by_key(|start| start.position).unwrap_or(tail);
        let skips_pages = !self.rules.hold(Rule::FreeLogAfterDescriptors);
        let mut pages = Vec::new();
        for index in (0..self.members.len()).filter(|_| !skips_pages) {
            let member = &mut self.members[index];
            if member.is_in_service() {
                let location = |page| PageLocation { member: index, page };
                pages.extend(member.table.begin_checkpoint().into_iter().map(location));
                member.pools.checkpoint_begun();
            }
        }
        let records = pages.len() as u32 + self.tell_again(tail.position);
        for &PageLocation { member, page } in &pages {
            let version = self.members[member].table.version(page) + 1;
            self.submit_for_checkpoint(Record::PageIntent { member, page, version });
        }
        if self.deletion_checkpoint == DeletionCheckpoint::Wanted {
            self.deletion_checkpoint = DeletionCheckpoint::Begun;
        }
        let flushes = self.flush_unsynced(out);
        self.checkpoint.begin(tail, pages, flushes, records);
    }

    /// Where the end of a round would move the tail by less than what windows would be told again, that would go on for ever and gain nothing: the tail
    /// stays until more is destaged, or a watermark has moved on.
    fn hold_or_catch_up(&mut self) {
        let reached =
            self.destaging.finished().map_or(self.destaging.reached(), |finished| finished.position);
        let stays = [self.away_since(), self.rolling_back_since()].into_iter().flatten();
        let reached = stays.map(|since| since.position).fold(reached, u64::min);
        let gain = reached.saturating_sub(self.log.tail());
        let told = 2 * self.retold_blocks(); // Every header has its copy.
        let tail = self.log.tail();
        let is_asked = !self.is_destaged_for_leavers(tail) || !self.is_destaged_up_to_awaited(tail);
        let gains = gain == 0
            || is_asked
            || told <= limits::log_blocks_reserved(self.log.blocks())
            || gain >= 2 * told;
        match (gains, self.destaging.finished().is_some()) {
            (false, true) => self.destaging.hold(),
            (true, false) => self.destaging.end_hold(&self.log),
            (true, true) | (false, false) => {}
        }
    }

    /// Flushes every device with completed writes that are not known to be stable. Says how many.
    fn flush_unsynced(&mut self, out: &mut Vec<Output>) -> u32 {
        if !self.rules.hold(Rule::FlushBeforePages) {
            return 0;
        }
        let mut flushes = 0;
        for member in 0..self.members.len() {
            if std::mem::take(&mut self.members[member].is_unsynced) {
                let io = self.issue(member, Purpose::CheckpointFlush);
                out.push(Output::Flush { io, member });
                flushes += 1;
            }
        }
        flushes
    }

    pub(super) fn checkpoint_flushed(&mut self, out: &mut Vec<Output>) {
        self.checkpoint.flushed();
        if self.checkpoint.is_writing() {
            return self.write_anchor(out);
        }
        self.advance_checkpoint(out);
    }

    fn write_pages(&mut self, out: &mut Vec<Output>) {
        loop {
            match self.checkpoint.next_page() {
                NextPage::Nothing => return,
                NextPage::AllWritten => {
                    let flushes = self.flush_unsynced(out);
                    self.checkpoint.begin_flushing(flushes);
                    return self.write_anchor(out);
                }
                NextPage::Page(location) if !self.members[location.member].is_in_service() => {
                    self.checkpoint.take_page(false);
                }
                NextPage::Page(location) => {
                    let Some(buffer) = self.own_pool.take(PAGE_SIZE) else { return };
                    self.checkpoint.take_page(true);
                    self.write_page(location, buffer, out);
                }
            }
        }
    }

    /// Writes the next version of a page as it is now. It stays in memory until that is done.
    fn write_page(
        &mut self,
        PageLocation { member: index, page }: PageLocation,
        mut buffer: Buffer,
        out: &mut Vec<Output>,
    ) {
        let member = &mut self.members[index];
        let content = if member.table.is_slot(page) {
            let key = member.table.component_in(page);
            let stable = key.map(|key| &self.components[key]).filter(|component| component.is_stable);
            PageContent::Component(
                stable.map(|component| (component.record.clone(), component.holes().to_vec())),
            )
        } else {
            match member.table.written_content(page) {
                Content::Descriptors(descriptors) => PageContent::Descriptors(descriptors),
                Content::Map(map) => PageContent::Map(map),
                Content::Delta(delta) => PageContent::Delta(delta),
                Content::Snapshots(list) => PageContent::Snapshots(list),
                Content::Empty => PageContent::Component(None),
            }
        };
        let version = member.table.begin_write(page);
        let stamp = if self.log.format() > FORMAT_PLAIN { self.checkpoint.stamp() } else { 0 };
        let bytes = Page { device: member.id, number: page, version, stamp, content }.encode();
        buffer.bytes_mut().copy_from_slice(&bytes);
        if member.table.is_lost_slot(page) {
            buffer.bytes_mut()[PAGE_SIZE - 1] ^= 0xff; // Its checksum does not match.
        }
        let offset = member.page_offset(page, version & 1).expect("a page that is written has its extent");
        self.counters.pages_written += 1;
        let io = self.issue(index, Purpose::PageWrite { member: index, page });
        out.push(Output::Write {
            io,
            member: index,
            offset,
            buffers: smallvec::smallvec![buffer],
            stable: false,
            gentle: false,
        });
    }

    pub(super) fn page_written(&mut self, member: u8, page: u32, out: &mut Vec<Output>) {
        let state = &mut self.members[member];
        state.table.end_write(page);
        state.is_unsynced = state.is_in_service();
        self.checkpoint.page_written();
        self.write_pages(out);
    }

    fn write_anchor(&mut self, out: &mut Vec<Output>) {
        let Some((tail, intents_from)) = self.checkpoint.begin_anchor_if_flushed() else { return };
        let stamps = self.stamps(intents_from);
        // A member that is away may have torn pages, which the intents in the log must tell when it is back: those since the last
        // checkpoint before it went. Earlier ones would excuse damage to pages that are stable since.
        let intents_from = match self.away_since() {
            Some(since) if !self.rules.hold(Rule::ExcuseOnlyUnfinished) => since.number.min(intents_from),
            Some(_) => self.log.anchor().intents_from,
            None => intents_from,
        };
        let anchor = Anchor {
            revision: self.log.anchor().revision + 1,
            log_mark: self.log.anchor().log_mark,
            tail: tail.position,
            tail_batch: tail.number,
            intents_from,
            failed_members: self.members.failed(),
            stamps,
        };
        let mut buffer = match self.own_pool.take(ANCHOR_SIZE) {
            Some(buffer) => buffer,
            None => self.spare.take().expect("one spare buffer is kept for the anchor"),
        };
        buffer.bytes_mut().copy_from_slice(&anchor.encode());
        // What stands there now is read first, for the one copy that can be read must not be written over first.
        match self.own_pool.take(2 * ANCHOR_SIZE) {
            Some(found) => {
                let purpose = Purpose::AnchorCheck { anchor, buffer };
                let request = ReadRequest { offset: anchor_offset(0), buffer: found, gentle: false };
                self.issue_read(0, purpose, request, out);
            }
            None => self
                .write_anchor_copy(AnchorCopy { anchor, buffer, of: anchor.revision, is_first: true }, out),
        }
    }

    /// By member: the stamps of pages that count once the anchor of this checkpoint is stable. What a device has that is away was written by an
    /// earlier one.
    fn stamps(&self, stamp: u64) -> [u64; MEMBERS_MAX] {
        let mut stamps = self.log.anchor().stamps;
        if self.log.format() > FORMAT_PLAIN {
            let present = self.members.iter().filter(|(_, member)| member.is_in_service());
            present.for_each(|(index, _)| stamps[index as usize] = stamp);
        }
        stamps
    }

    /// The copies of the former anchor were read: the one that cannot be read is written first.
    pub(super) fn anchor_checked(
        &mut self,
        anchor: Anchor,
        buffer: Buffer,
        bad: &BadBlocks,
        out: &mut Vec<Output>,
    ) {
        let of = bad.indices().next().map_or(anchor.revision, |copy| copy as u64);
        self.write_anchor_copy(AnchorCopy { anchor, buffer, of, is_first: true }, out);
    }

    fn write_anchor_copy(&mut self, copy: AnchorCopy, out: &mut Vec<Output>) {
        let (buffer, offset) = (copy.buffer.clone(), anchor_offset(copy.of));
        let io = self.issue(0, Purpose::Anchor(copy));
        out.push(Output::Write {
            io,
            member: 0,
            offset,
            buffers: smallvec::smallvec![buffer],
            stable: true,
            gentle: false,
        });
    }

    /// A copy of the anchor is stable. Once both are, what lies before its tail may be written over: with the former anchor
    /// alone, as when a sector of the newer one cannot be read, nobody would find the log's end in what came since.
    pub(super) fn anchor_written(
        &mut self,
        AnchorCopy { anchor, buffer, of, is_first }: AnchorCopy,
        out: &mut Vec<Output>,
    ) {
        if is_first && self.rules.hold(Rule::AnchorInBothCopies) {
            let second = AnchorCopy { anchor, buffer, of: of + 1, is_first: false };
            return self.write_anchor_copy(second, out);
        }
        drop(buffer);
        self.log.advance(anchor);
        self.counters.checkpoints += 1;
        self.checkpoint.end();
        self.release_frames();
        let done = |op| Output::Done { op, result: Ok(Completion::Done) };
        out.extend(self.backfills.checkpoint_ended().into_iter().map(done));
        if self.spare.is_none() {
            self.spare = self.own_pool.take(ANCHOR_SIZE);
        }
        self.retry_waiting(out);
    }
}
