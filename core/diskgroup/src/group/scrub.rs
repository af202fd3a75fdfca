//! Scrubbing: reading and verifying everything at rest, and the table pages, at a set pace or at a share of it.
//!
//! One extent is read at a time: what stands in it, then what the log has newer. What changed while it was read is left to
//! the next round; what does not match is read once more before it is called damaged.

use super::Group;
use crate::format::batch::ExtentPlace;
use crate::format::page::{Copy, Descriptor, PAGE_SIZE, Page, PageContent};
use crate::index::{Entry, Newest};
use crate::io::{Event, Output};
use crate::member::PageWaiter;
use crate::requests::Purpose;
use crate::scrub::{LogBlock, Scrub, Step, pause};
use crate::unreadable::{BadBlocks, ReadRequest};
use base::checksum::crc32c;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{Buffer, Instant};
use std::time::Duration;

/// Extents looked at in one step while looking for one that is in use.
const LOOK_MAX: u32 = 4096;

impl Group {
    pub(super) fn scrub_wake_at(&self) -> Option<Instant> {
        let has_work = self.settings.scrub_bytes_per_second > 0 && !self.components.is_empty();
        (has_work && matches!(self.scrub.step, Step::Idle)).then_some(self.scrub.next_at)
    }

    /// Changes the pace; 0 stops scrubbing after the extent under way.
    pub fn set_scrub_pace(&mut self, bytes_per_second: u64) {
        self.settings.scrub_bytes_per_second = bytes_per_second;
        self.scrub.next_at = self.now;
    }

    /// How far the present round is, 0..=1.
    pub fn scrub_progress(&self) -> f64 {
        let extents = |member: &crate::member::Member| member.owners.len() as f64;
        let all: f64 = self.members.iter().map(extents).sum();
        let before: f64 = self.members.iter().take(self.scrub.member as usize).map(extents).sum();
        if all == 0.0 { 0.0 } else { (before + f64::from(self.scrub.extent)) / all }
    }

    pub(super) fn advance_scrub(&mut self, out: &mut Vec<Output>) {
        let is_due = self.now >= self.scrub.next_at && matches!(self.scrub.step, Step::Idle);
        if !is_due || self.settings.scrub_bytes_per_second == 0 || self.components.is_empty() {
            return;
        }
        for _ in 0..LOOK_MAX {
            let Some(member) = self.members.get(self.scrub.member as usize) else {
                return self.end_scrub_round(out);
            };
            if self.scrub.extent as usize >= member.owners.len() || !member.is_in_service() {
                self.scrub.member += 1;
                self.scrub.extent = 0;
                self.scrub.slot = 0;
                continue;
            }
            if self.scrub.slot < member.geometry.component_slots {
                let (slot, is_written) = (self.scrub.slot, member.versions[self.scrub.slot as usize] > 0);
                self.scrub.slot += 1;
                if is_written {
                    return self.scrub_table_page(self.scrub.member, slot, out);
                }
                continue;
            }
            if self.components.key_of(member.owners[self.scrub.extent as usize].component).is_some() {
                return self.scrub_extent(out);
            }
            self.next_extent();
        }
        self.scrub.next_at = self.now + Duration::from_millis(1);
    }

    fn end_scrub_round(&mut self, out: &mut Vec<Output>) {
        let (bytes, damaged) = (self.scrub.round_bytes, self.scrub.round_damaged);
        self.counters.scrub_rounds += 1;
        out.push(Output::Event(Event::ScrubRound { bytes, damaged }));
        // A round over little data would begin again at once, for ever.
        let wants_checkpoint = self.scrub.wants_checkpoint;
        self.scrub = Scrub { wants_checkpoint, ..Scrub::new(self.now + Duration::from_secs(10)) };
    }

    fn next_extent(&mut self) {
        let bytes = std::mem::take(&mut self.scrub.extent_bytes);
        self.scrub.extent += 1;
        self.scrub.has_checked_page = false;
        self.scrub.step = Step::Idle;
        self.scrub.round_bytes += bytes;
        self.counters.scrubbed_bytes += bytes;
        let pause = pause(bytes, self.settings.scrub_bytes_per_second, self.shares.scrub);
        self.scrub.next_at = self.scrub.next_at.max(self.now) + pause;
    }

    /// Reads the extent at the cursor, or its table page first.
    fn scrub_extent(&mut self, out: &mut Vec<Output>) {
        let (index, extent) = (self.scrub.member, self.scrub.extent);
        let member = &mut self.members[index as usize];
        let (page, place) = member.page_of(extent);
        if !self.scrub.has_checked_page && (place == 0 || extent == 0) && member.versions[page as usize] > 0 {
            self.scrub.has_checked_page = true;
            return self.scrub_table_page(index, page, out);
        }
        if member.descriptor(extent).is_none() {
            self.scrub.step = Step::Page;
            return self.need_page(index, page, PageWaiter::Scrub, out);
        }
        let Some(descriptor) = self.at_rest(index, extent) else { return self.scrub_log(out) };
        let Some(first) = (0..BLOCKS_PER_EXTENT).find(|&block| descriptor.is_allocated(block)) else {
            return self.scrub_log(out);
        };
        let last = (first..BLOCKS_PER_EXTENT).rfind(|&block| descriptor.is_allocated(block)).unwrap_or(first);
        let len = (last - first + 1) * BLOCK_SIZE as usize;
        let Some(buffer) = self.own_pool.take(len) else {
            self.scrub.next_at = self.now + Duration::from_millis(10);
            return;
        };
        self.scrub.step = Step::Extent { descriptor: Box::new(descriptor), first, is_retry: false };
        self.scrub_read(first, buffer, out);
    }

    /// What stands in an extent whose descriptor is in memory, be it that the log alone tells so. Nothing while it is
    /// being written, or when it was freed and the log has all that came since.
    fn at_rest(&mut self, index: u8, extent: u32) -> Option<Descriptor> {
        let member = &mut self.members[index as usize];
        let owner = member.owners[extent as usize];
        let descriptor = member.descriptor(extent)?.clone();
        let Some(dirty) = self.index.at(ExtentPlace { member: index, extent }) else {
            return Some(descriptor);
        };
        match dirty.direct() {
            _ if dirty.is_destaging() => None,
            Some(direct) => Some(Descriptor {
                component: owner.component,
                part: owner.part,
                allocated: [u64::MAX; BLOCKS_PER_EXTENT / 64],
                checksums: *direct.checksums,
                ..Descriptor::FREE
            }),
            None if dirty.is_reset() => None,
            None => Some(descriptor),
        }
    }

    /// Goes on with what the log has of the extent at the cursor.
    fn scrub_log(&mut self, out: &mut Vec<Output>) {
        let in_log = |entry: &Entry| {
            let Entry { block, position, checksum, .. } = *entry;
            (entry.newest == Newest::Data).then_some(LogBlock { block, position, checksum })
        };
        let dirty = self.index.at(self.scrub.place());
        let queue = dirty.map_or(Vec::new(), |dirty| dirty.entries().iter().filter_map(in_log).collect());
        self.scrub_next_in_log(queue, false, out);
    }

    fn scrub_next_in_log(&mut self, queue: Vec<LogBlock>, is_retry: bool, out: &mut Vec<Output>) {
        let Some(&LogBlock { position, .. }) = queue.last() else { return self.next_extent() };
        let Some(buffer) = self.own_pool.take(BLOCK_SIZE as usize) else { return self.next_extent() };
        self.scrub.step = Step::Log { queue, is_retry };
        let offset = self.log_offset(position);
        self.scrub_issue(0, offset, buffer, out);
    }

    fn scrub_verify_in_log(
        &mut self,
        mut queue: Vec<LogBlock>,
        is_retry: bool,
        (buffer, unreadable): (&Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let read = *queue.last().expect("a block was read");
        let member = &self.members[self.scrub.member as usize];
        let owner = member.owners[self.scrub.extent as usize];
        let entry = self.index.at(self.scrub.place()).and_then(|dirty| dirty.find(read.block));
        let is_current = entry.is_some_and(|entry| entry.position == read.position);
        let is_bad = is_current && (!unreadable.is_empty() || crc32c(buffer) != read.checksum);
        if is_bad && !is_retry {
            return self.scrub_next_in_log(queue, true, out);
        }
        if is_bad {
            self.scrub.round_damaged += 1;
            self.note_damage(0, owner.component, owner.part, u16::from(read.block), out);
        }
        self.scrub.extent_bytes += BLOCK_SIZE;
        queue.pop();
        self.scrub_next_in_log(queue, false, out);
    }

    fn scrub_read(&mut self, first: usize, buffer: Buffer, out: &mut Vec<Output>) {
        let member = self.scrub.member;
        let offset = self.members[member as usize].geometry.block_offset(self.scrub.extent, first);
        self.scrub_issue(member, offset, buffer, out);
    }

    fn scrub_issue(&mut self, member: u8, offset: u64, buffer: Buffer, out: &mut Vec<Output>) {
        let purpose = Purpose::Scrub { buffer: buffer.clone() };
        self.issue_read(member, purpose, ReadRequest { offset, buffer, gentle: true }, out);
    }

    fn scrub_table_page(&mut self, member: u8, page: u32, out: &mut Vec<Output>) {
        let Some(buffer) = self.own_pool.take(2 * PAGE_SIZE) else {
            self.scrub.next_at = self.now + Duration::from_millis(10);
            return;
        };
        let state = &self.members[member as usize];
        let version = state.versions[page as usize];
        let offset = state.geometry.page_offset(page, 0);
        self.scrub.step = Step::TablePage { page, version };
        self.scrub_issue(member, offset, buffer, out);
    }

    /// The descriptor that scrubbing waited for is there (or its device is not any more).
    pub(super) fn scrub_page_ready(&mut self) {
        self.scrub.step = Step::Idle;
    }

    pub(super) fn scrub_read_done(
        &mut self,
        buffer: &Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let step = std::mem::replace(&mut self.scrub.step, Step::Idle);
        let Ok(bad) = result else { return self.next_extent() };
        if !self.members[self.scrub.member as usize].is_in_service() {
            return self.next_extent();
        }
        match step {
            Step::Extent { descriptor, first, is_retry } => {
                self.scrub_verify(&descriptor, first, is_retry, (buffer, &bad), out);
            }
            Step::TablePage { page, version } => self.scrub_verify_page(page, version, (buffer, &bad), out),
            Step::Log { queue, is_retry } => self.scrub_verify_in_log(queue, is_retry, (buffer, &bad), out),
            Step::Idle | Step::Page => unreachable!("a scrub read belongs to its step"),
        }
    }

    fn scrub_verify(
        &mut self,
        before: &Descriptor,
        first: usize,
        is_retry: bool,
        (buffer, unreadable): (&Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let (index, extent) = (self.scrub.member, self.scrub.extent);
        let is_unchanged = self.at_rest(index, extent).is_some_and(|now| now == *before);
        // What the log has newer is not judged: after a crash its older version at rest may be torn.
        let dirty = self.index.at(self.scrub.place());
        let is_newer_in_log = |block: usize| dirty.is_some_and(|dirty| dirty.find(block as u8).is_some());
        let blocks = buffer.chunks_exact(BLOCK_SIZE as usize).enumerate();
        let is_bad = |&(at, bytes): &(usize, &[u8])| {
            let block = first + at;
            let is_wrong = unreadable.contains(at) || crc32c(bytes) != before.checksums[block];
            before.is_allocated(block) && is_wrong && !is_newer_in_log(block)
        };
        let bad: Vec<u16> = blocks.filter(is_bad).map(|(at, _)| (first + at) as u16).collect();
        if !is_unchanged || bad.is_empty() {
            self.scrub.extent_bytes += buffer.len() as u64;
            return self.scrub_log(out);
        }
        if !is_retry {
            self.scrub.step = Step::Extent { descriptor: Box::new(before.clone()), first, is_retry: true };
            return self.scrub_read(first, buffer.clone(), out);
        }
        self.scrub.round_damaged += bad.len() as u64;
        for block in bad {
            self.note_damage(index, before.component, before.part, block, out);
        }
        self.scrub.extent_bytes += buffer.len() as u64;
        self.scrub_log(out);
    }

    /// A page that is in memory is simply written again; one that is not is found out when it is read. The copy that does
    /// not count is verified, too: at a start, nobody could tell a damaged one from the newest.
    fn scrub_verify_page(
        &mut self,
        page: u32,
        version: u64,
        (buffer, unreadable): (&Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let index = self.scrub.member;
        let member = &mut self.members[index as usize];
        let is_lost = member.lost_slots.contains(&page);
        if member.versions[page as usize] != version || self.checkpoint.is_writing() || is_lost {
            return;
        }
        let copy = |which: usize| match unreadable.contains(which) {
            true => Copy::Invalid(None),
            false => Page::decode(&buffer[which * PAGE_SIZE..(which + 1) * PAGE_SIZE], member.id, page),
        };
        let (newest, older) = (copy((version & 1) as usize), copy((version & 1 ^ 1) as usize));
        let is_component = page < member.geometry.component_slots;
        let is_in_memory = is_component || member.pages[page as usize].is_some();
        match newest {
            Copy::Valid(found) if found.version == version => {
                if matches!(older, Copy::Valid(_) | Copy::Blank) {
                    return;
                }
                if let (false, PageContent::Descriptors(descriptors)) = (is_in_memory, found.content) {
                    member.keep_page(page, descriptors);
                }
                member.dirty_pages.insert(page);
            }
            Copy::Valid(_) | Copy::Blank | Copy::Invalid(_) => {
                out.push(Output::Event(Event::PageDamaged { member: index, page }));
                if is_in_memory {
                    member.dirty_pages.insert(page);
                } else {
                    member.keep_unreadable(page);
                }
            }
        }
        self.scrub.wants_checkpoint = true;
    }
}
