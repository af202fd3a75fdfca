//! Scrubbing: reading and verifying everything at rest, and the table pages, at a set pace or at a share of it.
//!
//! One extent is read at a time: what stands in it, then what the log has newer. What changed while it was read and its checksums
//! were computed is left to the next round; what does not match is read once more before it is called damaged.

use super::Group;
use super::table::content_of;
use crate::compute::{ComputeId, Computed, Task};
use crate::format::batch::ExtentLocation;
use crate::format::page::{Copy, Descriptor, PAGE_SIZE, Page};
use crate::held::HeldEntry;
use crate::index::{Dirty, IndexEntry, Newest};
use crate::io::{Event, Output};
use crate::member::Owner;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::scrub::{ExtentRead, LogBlock, Scrubbed, ScrubbedLog, Step, Verification};
use crate::table::PageWaiter;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::checksum::crc32c;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{Buffer, Instant};
use std::time::Duration;

/// Extents looked at in one step while looking for one that is in use.
const LOOK_MAX: u32 = 4096;
/// How long it rests where memory is short.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);

impl Group {
    pub(super) fn scrub_wake_at(&self) -> Option<Instant> {
        let has_work = self.settings.scrub_bytes_per_second > 0 && !self.components.is_empty();
        (has_work && self.scrub.is_idle()).then_some(self.scrub.next_at())
    }

    /// Changes the pace; 0 stops scrubbing after the extent under way.
    pub fn set_scrub_pace(&mut self, bytes_per_second: u64) {
        self.settings.scrub_bytes_per_second = bytes_per_second;
        self.scrub.go_on_at(self.now);
    }

    /// How far the present round is, 0..=1.
    pub fn scrub_progress(&self) -> f64 {
        let ExtentLocation { member, extent } = self.scrub.location();
        let extents = |member: &crate::member::Member| member.owners.len() as f64;
        let all: f64 = self.members.iter().map(|(_, member)| extents(member)).sum();
        let before = self.members.iter().take(member as usize);
        let before: f64 = before.map(|(_, member)| extents(member)).sum();
        // Behind the extents come mapped parts, as long as those are.
        if all == 0.0 { 0.0 } else { ((before + f64::from(extent)) / all).min(1.0) }
    }

    pub(super) fn advance_scrub(&mut self, out: &mut Vec<Output>) {
        let is_due = self.now >= self.scrub.next_at() && self.scrub.is_idle();
        if !is_due || self.settings.scrub_bytes_per_second == 0 || self.components.is_empty() {
            return;
        }
        for _ in 0..LOOK_MAX {
            let ExtentLocation { member: index, extent } = self.scrub.location();
            let Some(member) = self.members.get(index) else {
                return self.end_scrub_round(out);
            };
            if !member.is_in_service() {
                self.scrub.next_member();
                continue;
            }
            if let Some(beyond) = extent.checked_sub(member.owners.len() as u32) {
                if self.scrub_beyond(index, beyond, out) {
                    return;
                }
                continue;
            }
            if let Some(slot) = self.scrub.next_slot(member.geometry.component_slots) {
                if member.table.version(slot) > 0 {
                    return self.scrub_table_page(index, slot, out);
                }
                continue;
            }
            if self.components.key_of(member.owners[extent as usize].component).is_some() {
                return self.scrub_extent(out);
            }
            self.next_extent();
        }
        self.scrub.go_on_at(self.now + Duration::from_millis(1));
    }

    fn end_scrub_round(&mut self, out: &mut Vec<Output>) {
        let (bytes, damaged) = self.scrub.end_round(self.now);
        self.counters.scrub_rounds += 1;
        self.begin_rewrite_round();
        out.push(Output::Event(Event::ScrubRound { bytes, damaged }));
    }

    pub(super) fn next_extent(&mut self) {
        let pace = self.settings.scrub_bytes_per_second;
        self.counters.scrubbed_bytes += self.scrub.next_extent(self.now, pace, self.shares.scrub);
    }

    /// Reads the extent at the cursor, or its table page first.
    fn scrub_extent(&mut self, out: &mut Vec<Output>) {
        let ExtentLocation { member: index, extent } = self.scrub.location();
        let member = &mut self.members[index];
        let (page, number) = member.table.page_of(extent);
        if (number == 0 || extent == 0) && member.table.version(page) > 0 && self.scrub.takes_page() {
            return self.scrub_table_page(index, page, out);
        }
        if member.table.descriptor(extent).is_none() {
            self.scrub.begin(Step::Page);
            return self.need_page(index, page, PageWaiter::Scrub, out);
        }
        let Some(descriptor) = self.at_rest(index, extent) else { return self.scrub_log(out) };
        let Some(first) = (0..BLOCKS_PER_EXTENT).find(|&block| descriptor.is_allocated(block)) else {
            return self.scrub_log(out);
        };
        let last = (first..BLOCKS_PER_EXTENT).rfind(|&block| descriptor.is_allocated(block)).unwrap_or(first);
        let len = (last - first + 1) * BLOCK_SIZE as usize;
        let Some(buffer) = self.own_pool.take(len) else {
            return self.scrub.go_on_at(self.now + MEMORY_PAUSE);
        };
        let read = ExtentRead { descriptor: Box::new(descriptor), first, is_retry: false };
        self.scrub_read(read, buffer, out);
    }

    /// What stands in an extent whose descriptor is in memory, be it that the log alone tells so. Nothing while it is
    /// being written, or when it was freed and the log has all that came since.
    fn at_rest(&mut self, index: u8, extent: u32) -> Option<Descriptor> {
        let member = &mut self.members[index];
        let owner = member.owners[extent as usize];
        let descriptor = member.table.descriptor(extent)?.clone();
        let Some(dirty) = self.index.at(ExtentLocation { member: index, extent }) else {
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
        self.scrub_log_of(ScrubbedLog::Extent, out);
    }

    /// What the log has of what is looked at.
    fn dirty_of(&self, of: ScrubbedLog) -> Option<&Dirty> {
        match of {
            ScrubbedLog::Extent => self.index.at(self.scrub.location()),
            ScrubbedLog::Part((component, part)) => {
                self.components.contains(component).then(|| self.index.of(component, part)).flatten()
            }
        }
    }

    /// What layers hold of it.
    fn held_of(&self, of: ScrubbedLog) -> &[HeldEntry] {
        let part = match of {
            ScrubbedLog::Extent => {
                let ExtentLocation { member, extent } = self.scrub.location();
                let owner = self.members[member].owners[extent as usize];
                self.components.key_of(owner.component).map(|key| (key, owner.part))
            }
            ScrubbedLog::Part(part) => {
                Some(part).filter(|(component, _)| self.components.contains(*component))
            }
        };
        let held = part.and_then(|(component, part)| self.held.of(component, part));
        held.map_or(&[], |held| held.entries())
    }

    pub(super) fn scrub_log_of(&mut self, of: ScrubbedLog, out: &mut Vec<Output>) {
        let in_log = |entry: &IndexEntry| {
            let IndexEntry { block, position, checksum, .. } = *entry;
            (entry.newest == Newest::Data).then_some(LogBlock { block, position, checksum })
        };
        let dirty = self.dirty_of(of);
        let mut queue: Vec<LogBlock> =
            dirty.map_or(Vec::new(), |dirty| dirty.all_entries().filter_map(in_log).collect());
        queue.extend(
            self.held_of(of)
                .iter()
                .filter(|entry| entry.newest == Newest::Data)
                .map(|&HeldEntry { block, position, checksum, .. }| LogBlock { block, position, checksum }),
        );
        self.scrub_next_in_log(of, queue, false, out);
    }

    fn scrub_next_in_log(
        &mut self,
        of: ScrubbedLog,
        queue: Vec<LogBlock>,
        is_retry: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(&LogBlock { position, .. }) = queue.last() else { return self.next_extent() };
        let Some(buffer) = self.own_pool.take(BLOCK_SIZE as usize) else { return self.next_extent() };
        self.scrub.begin(Step::Log { of, queue, is_retry });
        let offset = self.log_offset(position);
        self.scrub_issue(0, offset, buffer, out);
    }

    /// A single block is verified here: that is done sooner than asked for.
    fn scrub_verify_in_log(
        &mut self,
        of: ScrubbedLog,
        (mut queue, is_retry): (Vec<LogBlock>, bool),
        (buffer, unreadable): (&Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let read = *queue.last().expect("a block was read");
        let dirty = self.dirty_of(of);
        let is_current = dirty
            .is_some_and(|dirty| dirty.all_entries().any(|entry| entry.position == read.position))
            || self.held_of(of).iter().any(|entry| entry.position == read.position);
        let is_bad = is_current && (!unreadable.is_empty() || crc32c(buffer) != read.checksum);
        if is_bad && !is_retry {
            return self.scrub_next_in_log(of, queue, true, out);
        }
        if is_bad {
            let owner = match of {
                ScrubbedLog::Extent => {
                    let ExtentLocation { member, extent } = self.scrub.location();
                    self.members[member].owners[extent as usize]
                }
                ScrubbedLog::Part((component, part)) => {
                    Owner { component: self.components[component].record.id, part }
                }
            };
            self.scrub.note_damaged(1);
            self.note_damage(0, (owner.component, owner.part, u16::from(read.block)), 0, out);
        }
        self.scrub.note_read(BLOCK_SIZE);
        queue.pop();
        self.scrub_next_in_log(of, queue, false, out);
    }

    fn scrub_read(&mut self, read: ExtentRead, buffer: Buffer, out: &mut Vec<Output>) {
        let ExtentLocation { member, extent } = self.scrub.location();
        let offset = self.members[member].geometry.block_offset(extent, read.first);
        self.scrub.begin(Step::Extent(read));
        self.scrub_issue(member, offset, buffer, out);
    }

    pub(super) fn scrub_issue(&mut self, member: u8, offset: u64, buffer: Buffer, out: &mut Vec<Output>) {
        let purpose = Purpose::Scrub { buffer: buffer.clone() };
        self.issue_read(member, purpose, ReadRequest { offset, buffer, gentle: true }, out);
    }

    pub(super) fn scrub_table_page(&mut self, member: u8, page: u32, out: &mut Vec<Output>) {
        let Some(buffer) = self.own_pool.take(2 * PAGE_SIZE) else {
            return self.scrub.go_on_at(self.now + MEMORY_PAUSE);
        };
        let state = &self.members[member];
        let version = state.table.version(page);
        let offset = state.page_offset(page, 0).expect("scrubbing looks at chunks that are known");
        self.scrub.begin(Step::TablePage { page, version });
        self.scrub_issue(member, offset, buffer, out);
    }

    /// The descriptor that scrubbing waited for is there (or its device is not any more).
    pub(super) fn scrub_page_ready(&mut self) {
        self.scrub.end_step();
    }

    pub(super) fn scrub_read_done(
        &mut self,
        buffer: Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let step = self.scrub.end_step();
        let Ok(bad) = result else { return self.next_extent() };
        let member = &self.members[self.scrub.location().member];
        if !member.is_in_service() {
            return self.next_extent();
        }
        match step {
            Step::Extent(read) => {
                let (id, device) = (self.compute_ids.next(), member.id);
                let task = Task::checksums(buffer.clone());
                out.push(Output::Compute { id, task });
                let read = Scrubbed::Extent(read);
                let verification = Verification { id, device, read, buffer, unreadable: bad };
                self.scrub.begin(Step::Verifying(verification));
            }
            Step::Frames(read) => self.scrub_frames_read(read, (buffer, bad), out),
            Step::TablePage { page, version } => self.scrub_verify_page(page, version, (&buffer, &bad), out),
            Step::Log { of, queue, is_retry } => {
                self.scrub_verify_in_log(of, (queue, is_retry), (&buffer, &bad), out);
            }
            Step::Idle | Step::Page | Step::Verifying(_) => {
                unreachable!("a scrub read belongs to its step")
            }
        }
    }

    /// The checksums of an extent are computed. Nothing is said of a device that has left the group meanwhile.
    pub(super) fn scrub_computed(&mut self, id: ComputeId, computed: &Computed, out: &mut Vec<Output>) {
        let Some(Verification { device, read, buffer, unreadable, .. }) = self.scrub.end_verification(id)
        else {
            return;
        };
        let member = &self.members[self.scrub.location().member];
        if member.id != device || !member.is_in_service() {
            return self.next_extent();
        }
        match (read, computed) {
            (Scrubbed::Extent(read), Computed::Checksums(checksums)) => {
                self.scrub_verify(read, checksums, (buffer, &unreadable), out);
            }
            (Scrubbed::Frames(read), Computed::SlotChecksums(checksums)) => {
                self.scrub_verify_frames(read, checksums, (buffer, &unreadable), out);
            }
            (Scrubbed::Extent(_) | Scrubbed::Frames(_), _) => unreachable!("a result is what was asked for"),
        }
    }

    fn scrub_verify(
        &mut self,
        read: ExtentRead,
        checksums: &[u32],
        (buffer, unreadable): (Buffer, &BadBlocks),
        out: &mut Vec<Output>,
    ) {
        let ExtentLocation { member: index, extent } = self.scrub.location();
        let ExtentRead { descriptor: before, first, is_retry } = read;
        let judges_changed = !self.rules.hold(Rule::JudgeOnlyUnchanged);
        let is_unchanged = self.at_rest(index, extent).is_some_and(|now| now == *before) || judges_changed;
        // What the log has newer is not judged: after a crash its older version at rest may be torn.
        let dirty = self.index.at(self.scrub.location());
        let is_newer_in_log = |block: usize| dirty.is_some_and(|dirty| dirty.find(block as u8).is_some());
        let is_bad = |&(at, checksum): &(usize, &u32)| {
            let block = first + at;
            let is_wrong = unreadable.contains(at) || *checksum != before.checksums[block];
            before.is_allocated(block) && is_wrong && !is_newer_in_log(block)
        };
        let bad = checksums.iter().enumerate().filter(is_bad);
        let bad: Vec<u16> = bad.map(|(at, _)| (first + at) as u16).collect();
        if !is_unchanged || bad.is_empty() {
            self.scrub.note_read(buffer.len() as u64);
            return self.scrub_log(out);
        }
        if !is_retry {
            return self.scrub_read(ExtentRead { descriptor: before, first, is_retry: true }, buffer, out);
        }
        self.scrub.note_damaged(bad.len() as u64);
        for block in bad {
            self.note_damage(index, (before.component, before.part, block), 0, out);
        }
        self.scrub.note_read(buffer.len() as u64);
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
        let index = self.scrub.location().member;
        let member = &mut self.members[index];
        let is_lost = member.table.is_lost_slot(page);
        if member.table.version(page) != version || self.checkpoint.is_writing() || is_lost {
            return;
        }
        let copy = |which: usize| match unreadable.contains(which) {
            true => Copy::Invalid(None),
            false => Page::decode(&buffer[which * PAGE_SIZE..(which + 1) * PAGE_SIZE], member.id, page),
        };
        let (newest, older) = (copy((version & 1) as usize), copy((version & 1 ^ 1) as usize));
        let is_in_memory = member.table.is_in_memory(page);
        match newest {
            Copy::Valid(found) if found.version == version => {
                if matches!(older, Copy::Valid(_) | Copy::Blank) {
                    return;
                }
                if !is_in_memory {
                    member.table.keep(page, content_of(found.content));
                }
                member.table.mark_dirty(page);
            }
            Copy::Valid(_) | Copy::Blank | Copy::Invalid(_) => {
                out.push(Output::Event(Event::PageDamaged { member: index, page }));
                match is_in_memory {
                    true => member.table.mark_dirty(page),
                    false => self.keep_unreadable(index, page),
                }
            }
        }
        self.scrub.want_checkpoint();
    }
}
