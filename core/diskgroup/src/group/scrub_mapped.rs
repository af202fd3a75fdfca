//! Scrubbing of mapped parts (docs/design/0044): behind the extents of a device come the pages of its chunks, with the frames that each names for the live
//! disk or for snapshots, and then the parts that stand in no extent, with what the log has of them.
//!
//! A block is judged only if its page still names the frame once its checksum is computed: else it was replaced meanwhile, and the frame may hold
//! something else.

use super::Group;
use crate::compute::{Computation, Task};
use crate::io::Output;
use crate::read::UNITS_PER_BLOCK;
use crate::rules::Rule;
use crate::scrub::{FramesRead, NamedFrame, Scrubbed, ScrubbedLog, Step, Verification};
use crate::slots::SlotRead;
use crate::table::{Content, PageWaiter};
use crate::unreadable::BadBlocks;
use base::Buffer;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};

impl Group {
    /// Goes on behind the extents of a device. Says whether something was begun.
    pub(super) fn scrub_beyond(&mut self, index: u8, at: u32, out: &mut Vec<Output>) -> bool {
        let table = &self.members[index].table;
        let page = table.fixed_count() + at;
        if (page as usize) < table.page_count() {
            return self.scrub_chunk_page(index, page, out);
        }
        match self.index.next_unplaced(index, self.scrub.part()) {
            Some(part) => {
                self.scrub.go_to_part(part);
                self.scrub_log_of(ScrubbedLog::Part(part), out);
                true
            }
            None => {
                self.scrub.next_member();
                false
            }
        }
    }

    fn scrub_chunk_page(&mut self, index: u8, page: u32, out: &mut Vec<Output>) -> bool {
        let table = &mut self.members[index].table;
        let is_known = table.chunk_of(page).is_some_and(|(extent, _)| extent.is_some());
        if !is_known || table.version(page) == 0 {
            self.next_extent();
            return false;
        }
        if self.scrub.takes_page() {
            self.scrub_table_page(index, page, out);
            return true;
        }
        if table.name_of(page).is_none() {
            self.next_extent();
            return false;
        }
        if table.content(page).is_none() {
            self.scrub.begin(Step::Page);
            self.need_page(index, page, PageWaiter::Scrub, out);
            return true;
        }
        self.tell_lost_blocks(index, page);
        self.scrub_frames(page, self.frames_named(index, page), false, out);
        true
    }

    /// The frames that a page in memory names, by their places.
    fn frames_named(&self, index: u8, page: u32) -> Vec<NamedFrame> {
        let mut frames: Vec<NamedFrame> = match self.members[index].table.peek(page) {
            Some(Content::Map(map)) => {
                let entries = (0..=u8::MAX).zip(map.entries.iter());
                entries.map(|(block, entry)| NamedFrame { snapshot: 0, block, entry: *entry }).collect()
            }
            Some(Content::Delta(delta)) => {
                let named = |snapshot| {
                    move |(block, entry): &(u8, _)| NamedFrame { snapshot, block: *block, entry: *entry }
                };
                delta
                    .groups
                    .iter()
                    .flat_map(|group| group.entries.iter().map(named(group.snapshot)))
                    .collect()
            }
            Some(Content::Descriptors(_) | Content::Snapshots(_) | Content::Empty) | None => Vec::new(),
        };
        frames.retain(|frame| frame.entry.unit().is_some());
        frames.sort_unstable_by_key(|frame| std::cmp::Reverse(frame.entry.unit()));
        frames
    }

    /// Reads the frames at the end of the list that stand side by side. Several compressed blocks may stand in one.
    fn scrub_frames(&mut self, page: u32, mut left: Vec<NamedFrame>, is_retry: bool, out: &mut Vec<Output>) {
        let frame_of = |named: &NamedFrame| named.entry.unit().map(|unit| unit / UNITS_PER_BLOCK);
        let mut frames: Vec<NamedFrame> = Vec::new();
        let Some(first) = left.last().and_then(frame_of) else { return self.next_extent() };
        let mut last = first;
        while let Some(frame) = left.last().and_then(frame_of)
            && frame <= last + 1
            && frame - first < BLOCKS_PER_EXTENT as u64
        {
            frames.extend(left.pop());
            last = frame;
        }
        let Some(buffer) = self.own_pool.take(((last - first + 1) * BLOCK_SIZE) as usize) else {
            return self.next_extent(); // The next round comes here again.
        };
        let member = self.scrub.location().member;
        let slot = |named: &NamedFrame| SlotRead {
            unit: (named.entry.unit().unwrap_or_default() - first * UNITS_PER_BLOCK) as u32,
            form: named.entry.form(),
        };
        let slots = frames.iter().map(slot).collect();
        self.scrub.begin(Step::Frames(FramesRead { page, frames, slots, left, is_retry }));
        self.scrub_issue(member, first * BLOCK_SIZE, buffer, out);
    }

    /// Frames are read: their checksums are computed.
    pub(super) fn scrub_frames_read(
        &mut self,
        read: FramesRead,
        (buffer, unreadable): (Buffer, BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let device = self.members[self.scrub.location().member].id;
        let id = self.compute_ids.next();
        let computation = Computation::SlotChecksums(read.slots.clone());
        let task = Task { computation, data: smallvec::smallvec![buffer.clone()] };
        out.push(Output::Compute { id, task });
        let read = Scrubbed::Frames(read);
        self.scrub.begin(Step::Verifying(Verification { id, device, read, buffer, unreadable }));
    }

    pub(super) fn scrub_verify_frames(
        &mut self,
        read: FramesRead,
        checksums: &[Option<u32>],
        (buffer, unreadable): (Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let index = self.scrub.location().member;
        let FramesRead { page, frames, slots, mut left, is_retry } = read;
        let name = self.members[index].table.name_of(page);
        let is_bad = |(at, frame): &(usize, &NamedFrame)| {
            let is_wrong =
                unreadable.contains(slots[*at].frame()) || checksums[*at] != Some(frame.entry.checksum);
            is_wrong && self.is_named(index, page, frame)
        };
        let bad: Vec<NamedFrame> =
            frames.iter().enumerate().filter(is_bad).map(|(_, frame)| *frame).collect();
        let Some((component, part)) = name.filter(|_| !bad.is_empty()) else {
            self.scrub.note_read(buffer.len() as u64);
            return self.scrub_frames(page, left, false, out);
        };
        if !is_retry {
            // Only those side by side are read at once: the list is taken from its end.
            left.extend(frames.into_iter().rev());
            drop(buffer);
            return self.scrub_frames(page, left, true, out);
        }
        self.scrub.note_read(buffer.len() as u64);
        self.scrub.note_damaged(bad.len() as u64);
        for NamedFrame { snapshot, block, entry } in bad {
            // The live disk may have something newer in the log.
            let snapshot = self.seer((component, part), block, (snapshot, entry.born));
            self.note_damage(index, (component, part, u16::from(block)), snapshot, out);
        }
        self.scrub_frames(page, left, false, out);
    }

    /// Whether a page still names a frame. One that is not in memory may have changed.
    fn is_named(&self, index: u8, page: u32, frame: &NamedFrame) -> bool {
        if !self.rules.hold(Rule::JudgeOnlyUnchanged) {
            return true;
        }
        let NamedFrame { snapshot, block, entry } = *frame;
        match self.members[index].table.peek(page) {
            Some(Content::Map(map)) => snapshot == 0 && map.entries[usize::from(block)] == entry,
            Some(Content::Delta(delta)) => delta.find(snapshot, block) == Some(entry),
            Some(Content::Descriptors(_) | Content::Snapshots(_) | Content::Empty) | None => false,
        }
    }
}
