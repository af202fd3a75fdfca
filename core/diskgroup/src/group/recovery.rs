//! Opening a group: the anchor, the tables, then the log from its tail to its end.
//!
//! The log is read batch by batch. A batch counts once the next one is found (only the last one may be torn) or its own
//! data has been verified. Where no further batch is found, the space behind is searched (`beyond`): for the copy of a
//! header that is damaged, and for a later batch, which tells that the log is damaged in the middle.
//!
//! Records are put in force in the order of the log over whatever the pages say. A page may already contain the effect
//! of some of them; the last record for each block and each extent decides, so putting them in force again is harmless.

use super::table::content_of;
use super::{Group, Phase};
use crate::component::{Component, Stability};
use crate::compute::{ComputeId, Task};
use crate::format::FORMAT_PLAIN;
use crate::format::anchor::{ANCHOR_SIZE, Anchor, anchor_offset};
use crate::format::batch::{BatchHeader, ExtentLocation, Record, blocks_of_one};
use crate::format::map::Entry;
use crate::format::page::{
    Copy, DESCRIPTORS_PER_PAGE, Descriptor, PAGE_SIZE, PAGES_PER_CHUNK, Page, PageContent,
};
use crate::index::Dirty;
use crate::io::{Event, OpenError, Output};
use crate::limits;
use crate::log::BatchStart;
use crate::member::Owner;
use crate::pools::Slot;
use crate::recovery::{Batch, Recovery, Stage, Told};
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::Content;
use crate::unreadable::{BadBlocks, Ended, ReadRequest};
use base::units::BLOCK_SIZE;
use base::{Buffer, ComponentId};

/// What stands in the place of a block that cannot be read: no page, no anchor and no header, nor a blank one.
const UNREADABLE: [u8; BLOCK_SIZE as usize] = [0xff; BLOCK_SIZE as usize];

impl Group {
    pub(super) fn start_recovery(&mut self, out: &mut Vec<Output>) {
        self.spare = self.own_pool.take(ANCHOR_SIZE);
        self.recovery_read(0, anchor_offset(0), 2 * ANCHOR_SIZE as u64, out);
    }

    pub(super) fn recovery(&mut self) -> &mut Recovery {
        match &mut self.phase {
            Phase::Opening(recovery) => recovery,
            Phase::Open | Phase::Failed => unreachable!("recovery happens while the group opens"),
        }
    }

    pub(super) fn recovery_read(&mut self, member: u8, offset: u64, len: u64, out: &mut Vec<Output>) {
        let buffer = self.own_pool.take(len as usize).expect("recovery uses one buffer at a time");
        let purpose = Purpose::Recovery { buffer: buffer.clone() };
        self.issue_read(member, purpose, ReadRequest { offset, buffer, gentle: false }, out);
    }

    pub(super) fn open_failed(&mut self, error: OpenError, out: &mut Vec<Output>) {
        self.phase = Phase::Failed;
        out.push(Output::Event(Event::OpenFailed(error)));
    }

    pub(super) fn recovery_done(&mut self, member: u8, buffer: &Buffer, ended: Ended, out: &mut Vec<Output>) {
        let bad = match ended {
            Ok(bad) => bad,
            Err(why) if member == 0 => {
                let error = match self.recovery().stage() {
                    Stage::MendAnchor | Stage::MendLog => OpenError::Write { member, why },
                    _ => OpenError::Read { member, why },
                };
                return self.open_failed(error, out);
            }
            Err(why) => return self.lose_member(member, why, out),
        };
        for index in bad.indices() {
            buffer.fill_from(index * BLOCK_SIZE as usize, &UNREADABLE);
        }
        match self.recovery().end_stage() {
            Stage::Anchor => self.recover_anchor(buffer, out),
            Stage::Tables { member, page } => self.recover_pages(member, page, buffer, out),
            Stage::Log { position } => self.recover_log(position, (buffer, &bad), out),
            Stage::LastBatch { block } => self.verify_last_batch(block, buffer.clone(), bad, out),
            Stage::Verifying { .. } => unreachable!("nothing is read while checksums are computed"),
            Stage::Beyond { position, end } => self.recover_beyond(position, end, (buffer, &bad), out),
            Stage::HeaderCopy { position, end } => self.recover_header_copy(position, end, buffer, out),
            Stage::MendLog => self.mend_log(out),
            Stage::MendAnchor => self.finish_recovery(out),
        }
    }

    /// A capacity device fails while its table is read: its components are lost, and the others are served.
    fn lose_member(&mut self, member: u8, why: String, out: &mut Vec<Output>) {
        self.members.fail(member, why.clone());
        self.recovery().forget_suspects(member);
        out.push(Output::Event(Event::MemberFailed { member, why }));
        self.next_table(member + 1, 0, out);
    }

    fn recover_anchor(&mut self, buffer: &Buffer, out: &mut Vec<Output>) {
        let mark = self.log.anchor().log_mark;
        let copies = [&buffer[..ANCHOR_SIZE], &buffer[ANCHOR_SIZE..]];
        match Anchor::choose(copies, mark) {
            Ok(anchor) => {
                let is_stale = |bytes: &&[u8]| Anchor::decode(bytes, mark) != Ok(anchor);
                let stale_copy = copies.iter().position(is_stale).map(|copy| copy as u64);
                self.log.recover(anchor);
                self.members.recover_failed(anchor.failed_members);
                self.recovery().anchor_found(anchor.tail_batch, stale_copy);
                self.next_table(0, 0, out);
            }
            Err(error) => self.open_failed(OpenError::Anchor(error), out),
        }
    }

    fn next_table(&mut self, member: u8, page: u32, out: &mut Vec<Output>) {
        let Some(state) = self.members.get_mut(member) else {
            if let Err(what) = self.take_suspects() {
                return self.open_failed(OpenError::Contradiction(what), out);
            }
            let position = self.log.tail();
            return self.read_log(position, out);
        };
        let fixed = state.table.fixed_count();
        if page == fixed
            && state.table.chunk_count() == 0
            && let Err(what) = state.find_chunks()
        {
            return self.open_failed(OpenError::Contradiction(what), out);
        }
        if page >= state.table.page_count() as u32 || !state.is_in_service() {
            return self.next_table(member + 1, 0, out);
        }
        let most = (limits::RECOVERY_READ_SIZE / (2 * PAGE_SIZE as u64)) as u32;
        let count = if page < fixed { (fixed - page).min(most) } else { PAGES_PER_CHUNK };
        let Some(offset) = state.page_offset(page, 0) else {
            return self.next_table(member, page + count, out);
        };
        self.recovery().begin(Stage::Tables { member, page });
        self.recovery_read(member, offset, u64::from(count) * 2 * PAGE_SIZE as u64, out);
    }

    fn recover_pages(&mut self, member: u8, first: u32, buffer: &Buffer, out: &mut Vec<Output>) {
        let mut page = first;
        for copies in buffer.chunks_exact(2 * PAGE_SIZE) {
            let recovered = self.recover_page(member, page, &copies[..PAGE_SIZE], &copies[PAGE_SIZE..]);
            if let Err(what) = recovered {
                return self.open_failed(OpenError::Contradiction(what), out);
            }
            page += 1;
        }
        self.trim_caches();
        self.next_table(member, page, out);
    }

    /// Takes the copy of a page that counts, and notes whether the other could have been newer.
    fn recover_page(
        &mut self,
        index: u8,
        number: u32,
        first: &[u8],
        second: &[u8],
    ) -> Result<(), &'static str> {
        let device = self.members[index].id;
        let copies = (Page::decode(first, device, number), Page::decode(second, device, number));
        let counted = match self.rules.hold(Rule::CountFinishedPages) {
            true => self.log.anchor().stamps[index as usize],
            false => u64::MAX,
        };
        let copies = (finished(copies.0, counted), finished(copies.1, counted));
        let unfinished = copies.0.as_ref().err().or(copies.1.as_ref().err()).copied();
        let (chosen, other) = match copies {
            (Ok(one), Err(version)) | (Err(version), Ok(one)) => match one {
                Copy::Valid(page) => (Some(page), Copy::Blank),
                Copy::Blank => (None, Copy::Blank),
                Copy::Invalid(_) => {
                    self.members[index].table.recover_version(number, version - 1);
                    self.recovery().note_damaged(index, number);
                    return Ok(());
                }
            },
            (Err(_), Err(_)) => return Err("both copies of a page are of a checkpoint that did not end"),
            (Ok(Copy::Valid(a)), Ok(Copy::Valid(b))) if a.version > b.version => (Some(a), Copy::Valid(b)),
            (Ok(a @ Copy::Valid(_)), Ok(Copy::Valid(b))) => (Some(b), a),
            (Ok(Copy::Valid(one)), Ok(other)) | (Ok(other), Ok(Copy::Valid(one))) => (Some(one), other),
            (Ok(Copy::Blank), Ok(Copy::Blank)) => (None, Copy::Blank),
            (Ok(Copy::Invalid(version)), Ok(_)) | (Ok(_), Ok(Copy::Invalid(version))) => {
                (None, Copy::Invalid(version))
            }
        };
        let version = chosen.as_ref().map_or(0, |page| page.version);
        // The next version must be written over the copy that does not count. The other copy may be blank although that one is of version 2: version 1 was
        // skipped because the blank copy for version 2 was damaged.
        let version = unfinished.map_or(version, |unfinished| unfinished - 1);
        let is_suspect = may_be_newer(&other, version);
        let slots = self.slots(index);
        let table = &mut self.members[index].table;
        table.recover_version(number, version);
        let is_of_chunk = number >= table.fixed_count();
        if is_suspect && is_of_chunk {
            self.recovery().suspect_in_chunk(index, number, chosen.map(|page| page.content));
            return Ok(());
        }
        if is_suspect {
            self.recovery().suspect(index, number);
        }
        let table = &mut self.members[index].table;
        let is_due = is_suspect || unfinished.is_some();
        if chosen.is_none() && is_of_chunk {
            if is_due {
                table.keep(number, Content::Empty);
            }
            table.recover_free_page(number);
        } else if chosen.is_none() && is_due && number >= slots {
            let free = Box::new([const { Descriptor::FREE }; DESCRIPTORS_PER_PAGE]);
            table.keep(number, Content::Descriptors(free));
        }
        let recovered = chosen.map_or(Ok(()), |page| self.recover_content(index, number, page.content));
        if is_due {
            // A torn copy must be written over before its intent is forgotten, or it would look damaged then; one of a checkpoint that did not
            // end before the stamp of another one lets it count.
            self.members[index].table.mark_dirty(number);
        }
        recovered
    }

    /// Takes over what a page says.
    pub(super) fn recover_content(
        &mut self,
        index: u8,
        number: u32,
        content: PageContent,
    ) -> Result<(), &'static str> {
        let slots = self.slots(index);
        let is_of_chunk = number >= self.members[index].table.fixed_count();
        match content {
            PageContent::Descriptors(descriptors) if number >= slots && !is_of_chunk => {
                self.recover_descriptors(index, number, descriptors);
            }
            PageContent::Component(Some((record, holes))) if number < slots => {
                self.insert_component(Component::new(record, (index, number), holes, Stability::Stable));
            }
            PageContent::Component(None) if is_of_chunk => {
                let table = &mut self.members[index].table;
                table.keep(number, Content::Empty);
                table.recover_free_page(number);
            }
            content if is_of_chunk => return self.recover_map_page(index, number, content),
            PageContent::Component(None) if number < slots => {}
            _ => return Err("a page of the table holds what belongs elsewhere"),
        }
        Ok(())
    }

    fn slots(&self, member: u8) -> u32 {
        self.members[member].geometry.component_slots
    }

    fn recover_descriptors(
        &mut self,
        index: u8,
        number: u32,
        descriptors: Box<[Descriptor; DESCRIPTORS_PER_PAGE]>,
    ) {
        let first = (number - self.slots(index)) * DESCRIPTORS_PER_PAGE as u32;
        let member = &mut self.members[index];
        for (extent, descriptor) in (first..).zip(descriptors.iter()) {
            if let Some(owner) = member.owners.get_mut(extent as usize) {
                *owner = Owner { component: descriptor.component, part: descriptor.part };
            }
        }
        member.table.keep(number, Content::Descriptors(descriptors));
    }

    /// Takes over what a page of a chunk says of a mapped part, or of a component's snapshots.
    pub(super) fn recover_map_page(
        &mut self,
        index: u8,
        number: u32,
        content: PageContent,
    ) -> Result<(), &'static str> {
        let (component, part) = match &content {
            PageContent::Map(map) => (map.component, map.part),
            PageContent::Delta(delta) => (delta.component, delta.part),
            PageContent::Snapshots(list) => (list.component, 0),
            PageContent::Descriptors(_) | PageContent::Component(_) => {
                return Err("a page of a chunk holds what belongs elsewhere");
            }
        };
        let slots = self.slots(index);
        if component == Descriptor::LOST.component {
            let member = &mut self.members[index];
            (member.lost_extents, member.lost_pages) = (member.lost_extents + 1, member.lost_pages + 1);
            member.table.keep(number, content_of(content));
            return Ok(());
        }
        let Some(key) = self.components.key_of(component).filter(|key| self.components[*key].member == index)
        else {
            return self.keep_orphan((index, slots), number, component, content);
        };
        if part >= self.components[key].part_count() {
            return Err("a page belongs to a part that its component does not have");
        }
        let mut entries: Vec<Entry> = Vec::new();
        match &content {
            PageContent::Map(map) => {
                if self.index.page_of(key, part).is_some() {
                    return Err("two map pages claim the same part of a component");
                }
                entries.extend(map.entries.iter());
                let born = map
                    .entries
                    .iter()
                    .map(|entry| entry.born)
                    .filter(|born| *born < u32::MAX)
                    .max()
                    .unwrap_or_default();
                self.components[key].lineage.note_number(born);
                self.components[key].lineage.note_rolled_back(part, map.rolled_back);
                self.recovery().note_map(component, part, map.through);
                self.index.set_page((key, part), index, number);
                self.components[key].had_pages = true;
                self.with_reservation(key, Component::take_extent);
            }
            PageContent::Delta(delta) => {
                let lineage = &mut self.components[key].lineage;
                lineage.note_delta(number, delta);
                for group in &delta.groups {
                    lineage.count(group.snapshot, group.entries.len() as i64);
                    lineage.note_number(group.snapshot);
                    entries.extend(group.entries.iter().map(|(_, entry)| *entry));
                }
            }
            PageContent::Snapshots(list) => {
                self.components[key].lineage.recover(number, list.last_number, &list.snapshots);
            }
            PageContent::Descriptors(_) | PageContent::Component(_) => unreachable!("told apart above"),
        }
        let member = &mut self.members[index];
        if !matches!(content, PageContent::Snapshots(_)) {
            member.table.name(number, (component, part));
        }
        member.table.keep(number, content_of(content));
        self.occupy_named((key, index), &entries)
    }

    /// No slot tells of the component of a page: it counts as lost, where that may be because the page of a slot is.
    fn keep_orphan(
        &mut self,
        (index, slots): (u8, u32),
        number: u32,
        component: ComponentId,
        content: PageContent,
    ) -> Result<(), &'static str> {
        if !self.members[index].table.has_lost_slots() && !self.recovery().has_suspect_slot(index, slots) {
            return Err("a page belongs to a component that does not exist");
        }
        self.members[index].lost_extents += 1;
        self.members[index].table.keep(number, content_of(content));
        self.recovery().note_orphan(index, number, component);
        Ok(())
    }

    /// The slots that a page names are used.
    fn occupy_named(&mut self, (key, index): (u32, u8), entries: &[Entry]) -> Result<(), &'static str> {
        entries.iter().for_each(|entry| self.components[key].packed.add(*entry));
        let member = &mut self.members[index];
        let slots: Vec<Slot> = entries.iter().filter_map(|entry| member.slot_of(*entry)).collect();
        for slot in slots {
            if !member.pools.contains(slot.frame().extent) {
                member.pools.add(slot.frame().extent);
            }
            if !member.pools.occupy(slot) {
                return Err("two blocks claim the same place");
            }
        }
        Ok(())
    }

    pub(super) fn read_log(&mut self, position: u64, out: &mut Vec<Output>) {
        let left = (self.log.blocks() - position % self.log.blocks()) * BLOCK_SIZE;
        self.recovery().begin(Stage::Log { position });
        self.recovery_read(0, self.log_offset(position), left.min(limits::RECOVERY_READ_SIZE), out);
    }

    /// Takes all batches whose headers lie in what was read from `start` on; then reads on where they lead.
    fn recover_log(&mut self, start: u64, (buffer, bad): (&Buffer, &BadBlocks), out: &mut Vec<Output>) {
        let mut position = start;
        loop {
            let at = (position - start) * BLOCK_SIZE;
            let bytes = buffer.get(at as usize..).unwrap_or_default();
            if bytes.len() < BLOCK_SIZE as usize {
                return self.read_log(position, out);
            }
            match self.decode_batch(position, bytes) {
                Found::Batch(batch) => position = self.take_batch(batch),
                Found::NeedsMore => return self.read_log(position, out),
                Found::Nothing => {
                    // A header that can be read and does not verify is torn, whatever stands in the place of its copy.
                    let header = self.expected_header(position, bytes);
                    let blocks = header.map(|header| blocks_of_one(header.record_bytes as usize));
                    let first = (position - start) as usize;
                    let end = first + blocks.unwrap_or(1) as usize;
                    if (first..end).any(|index| bad.contains(index)) {
                        let told_twice = header.filter(BatchHeader::has_copy).and(blocks);
                        let ring = self.log.blocks();
                        let region_end = position - position % ring + ring;
                        self.recovery().note_unreadable(position, told_twice, region_end);
                    }
                    return self.try_wrapped(position, out);
                }
            }
        }
    }

    /// The next batch is found, so the one before counts. Says where this one ends.
    pub(super) fn take_batch(&mut self, batch: Batch) -> u64 {
        let end = batch.start.position + batch.header.blocks();
        if let Some(before) = self.recovery().found(batch) {
            self.replay(before);
        }
        end
    }

    /// No batch follows at `position`: it may stand at the region's start, because it did not fit before the end.
    fn try_wrapped(&mut self, position: u64, out: &mut Vec<Output>) {
        let wrapped = position.next_multiple_of(self.log.blocks());
        let tail = self.log.tail();
        let end = |last: &Batch| last.start.position + last.header.blocks();
        let expected = self.recovery().last().map_or(tail, end);
        let is_first_try = position == expected;
        if is_first_try && wrapped != position {
            return self.read_log(wrapped, out);
        }
        self.end_of_log(out);
    }

    /// The header of the batch that is looked for, not yet verified.
    fn expected_header(&mut self, position: u64, bytes: &[u8]) -> Option<BatchHeader> {
        let number = self.recovery().number();
        BatchHeader::peek(bytes, self.log.anchor().log_mark)
            .filter(|header| header.number == number && header.position == position)
            .filter(|header| header.blocks() <= self.log.blocks() - position % self.log.blocks())
    }

    fn decode_batch(&mut self, position: u64, bytes: &[u8]) -> Found {
        let Some(header) = self.expected_header(position, bytes) else { return Found::Nothing };
        let len = header.header_blocks as usize * BLOCK_SIZE as usize;
        let Some(bytes) = bytes.get(..len) else {
            return Found::NeedsMore;
        };
        match header.decode_records(bytes) {
            Ok(records) if records.iter().all(|record| self.is_plausible(record)) => {
                let start = BatchStart { position, number: header.number };
                let told = if header.is_told_twice(bytes) { Told::Twice } else { Told::ByHeader };
                Found::Batch(Batch { start, header, records, told })
            }
            Ok(_) | Err(_) => Found::Nothing,
        }
    }

    /// Whether the record names extents and devices that exist.
    pub(super) fn is_plausible(&self, record: &Record) -> bool {
        if self.members.is_absent(record.member()) {
            return true; // Nobody can tell.
        }
        let extent = |member: u8, extent: u32| {
            self.members.get(member).is_some_and(|member| extent < member.geometry.extent_count())
        };
        let slot = |member: u8, slot: u32| {
            self.members.get(member).is_some_and(|member| slot < member.geometry.component_slots)
        };
        match record {
            Record::Write { location, .. }
            | Record::Trim { location, .. }
            | Record::Hold { location, .. }
            | Record::HoldTrim { location, .. }
            | Record::HoldDamaged { location, .. }
                if !location.is_placed() =>
            {
                self.log.format() > FORMAT_PLAIN && self.members.get(location.member).is_some()
            }
            Record::Snapshot { member, .. }
            | Record::Rollback { member, .. }
            | Record::SnapshotGone { member, .. } => self.members.get(*member).is_some(),
            Record::Write { location, .. }
            | Record::Trim { location, .. }
            | Record::Chunk { location, .. }
            | Record::PoolGone { location }
            | Record::Hold { location, .. }
            | Record::HoldTrim { location, .. }
            | Record::HoldDamaged { location, .. }
            | Record::Free { location, .. } => extent(location.member, location.extent),
            Record::Direct { location, replaced, .. } => {
                extent(location.member, location.extent)
                    && replaced.is_none_or(|one| extent(location.member, one))
            }
            Record::Component { member, slot: at, .. } | Record::ComponentGone { member, slot: at } => {
                slot(*member, *at)
            }
            // These may speak of a device that has left the group since; nothing follows from it then.
            Record::PageIntent { .. } | Record::Watermark { .. } => true,
            Record::Entry { .. } | Record::Hole { .. } => true,
            Record::Promote(_) | Record::End(_) => true,
        }
    }

    /// Whether a checkpoint whose intents stand in that batch may not have ended for a device. While another device is away, the anchor keeps all intents
    /// since it went; which checkpoints have ended for this one, the stamp tells.
    fn is_unfinished_in(&self, member: u8, batch: u64) -> bool {
        let Anchor { intents_from, stamps, .. } = *self.log.anchor();
        let finished =
            stamps.get(usize::from(member)).filter(|_| self.rules.hold(Rule::ExcuseOnlyUnfinished));
        batch >= intents_from && finished.is_none_or(|stamp| batch >= *stamp)
    }

    fn replay(&mut self, batch: Batch) {
        let mut position = batch.start.position + u64::from(batch.header.header_blocks);
        for record in &batch.records {
            let data_position = position;
            position += record.data_blocks();
            if self.members.is_absent(record.member()) {
                let member = &mut self.members[record.member()];
                member.keep_log_from(batch.start);
                continue;
            }
            if let Record::PageIntent { member, page, version } = record
                && self.is_unfinished_in(*member, batch.start.number)
            {
                self.recovery().note_intent(*member, *page, *version);
            }
            if !self.rules.hold(Rule::ReplayTrims) && matches!(record, Record::Trim { .. }) {
                continue;
            }
            self.install(record, batch.start.position, data_position);
        }
        self.log.recover_batch(batch.start, batch.start.position + batch.header.blocks());
    }

    /// No further batch was found. The last one may be torn.
    fn end_of_log(&mut self, out: &mut Vec<Output>) {
        let drops_torn = self.rules.hold(Rule::DropTornBatch);
        let Some(last) = self.recovery().last() else {
            return self.look_beyond(out);
        };
        let sums = |record: &Record| match record {
            Record::Write { checksums, .. } | Record::Hold { checksums, .. } => checksums.to_vec(),
            _ => Vec::new(),
        };
        let checksums: Vec<u32> = last.records.iter().flat_map(sums).collect();
        let has_data = !checksums.is_empty() && drops_torn;
        self.recovery().expect(checksums);
        match has_data {
            true => self.read_last_batch(0, out),
            false => self.keep_last(out),
        }
    }

    fn read_last_batch(&mut self, block: u64, out: &mut Vec<Output>) {
        let last = self.recovery().last().expect("there is a last batch");
        let position = last.start.position + u64::from(last.header.header_blocks) + block;
        let left = (u64::from(last.header.data_blocks) - block) * BLOCK_SIZE;
        self.recovery().begin(Stage::LastBatch { block });
        self.recovery_read(0, self.log_offset(position), left.min(limits::RECOVERY_READ_SIZE), out);
    }

    /// Data of the last batch are read: their checksums are computed.
    fn verify_last_batch(
        &mut self,
        block: u64,
        buffer: Buffer,
        unreadable: BadBlocks,
        out: &mut Vec<Output>,
    ) {
        let id = self.compute_ids.next();
        self.recovery().begin(Stage::Verifying { id, block, unreadable });
        out.push(Output::Compute { id, task: Task::checksums(buffer) });
    }

    pub(super) fn recovery_computed(&mut self, id: ComputeId, checksums: &[u32], out: &mut Vec<Output>) {
        match self.recovery().end_stage() {
            Stage::Verifying { id: expected, block, unreadable } if expected == id => {
                self.recover_last_batch(block, checksums, &unreadable, out);
            }
            other => self.recovery().begin(other),
        }
    }

    /// Judges data of the last batch by their checksums. A block that cannot be read tells nothing: if all others are whole, the
    /// batch counts, and the block is damaged. That it was torn and never acknowledged is possible too, and then nothing is owed.
    fn recover_last_batch(
        &mut self,
        block: u64,
        checksums: &[u32],
        unreadable: &BadBlocks,
        out: &mut Vec<Output>,
    ) {
        let may_excuse = self.rules.hold(Rule::KeepUnreadableBatch);
        let count = checksums.len() as u64;
        let expected = &self.recovery().expected()[block as usize..(block + count) as usize];
        let is_whole = |(index, (found, expected)): (usize, (&u32, &u32))| {
            found == expected || (may_excuse && unreadable.contains(index))
        };
        let is_whole = checksums.iter().zip(expected).enumerate().all(is_whole);
        let total = self.recovery().expected().len() as u64;
        match is_whole {
            true if block + count < total => self.read_last_batch(block + count, out),
            true => self.keep_last(out),
            false => {
                // Torn, so never acknowledged: the next batch takes its number. If that was longer it did not fit before
                // the region's end and stands at its start, while the torn one was left where it is.
                let start = self.recovery().drop_torn();
                let wrapped = start.next_multiple_of(self.log.blocks());
                match start == self.log.head() && wrapped != start {
                    true => self.read_log(wrapped, out),
                    false => self.look_beyond(out),
                }
            }
        }
    }

    fn keep_last(&mut self, out: &mut Vec<Output>) {
        if let Some(last) = self.recovery().take_last() {
            self.mend_last(&last);
            self.replay(last);
        }
        self.look_beyond(out);
    }

    /// Power failed between the two copies of an anchor, or one cannot be read. What the newer one says to be free is written over from now on, so
    /// it must not be the only copy: with the older one alone, nobody would find the log's end.
    pub(super) fn mend_anchor(&mut self, out: &mut Vec<Output>) {
        let stale = self.recovery().take_stale_anchor();
        let Some(copy) = stale.filter(|_| self.rules.hold(Rule::MendOlderAnchor)) else {
            return self.finish_recovery(out);
        };
        let mut buffer = self.own_pool.take(ANCHOR_SIZE).expect("recovery uses one buffer at a time");
        buffer.bytes_mut().copy_from_slice(&self.log.anchor().encode());
        self.recovery().begin(Stage::MendAnchor);
        let io = self.issue(0, Purpose::Recovery { buffer: buffer.clone() });
        let (offset, buffers) = (anchor_offset(copy), smallvec::smallvec![buffer]);
        out.push(Output::Write { io, member: 0, offset, buffers, stable: true, gentle: false });
    }

    /// All is read: pages that are damaged are told from torn ones, the maps are built.
    fn finish_recovery(&mut self, out: &mut Vec<Output>) {
        self.drop_aside();
        let recovery = std::mem::take(self.recovery());
        for &(member, page) in recovery.suspects() {
            // Torn only if the intent is for the very version that would follow the valid copy: else it is that copy's
            // successor, once stable, that does not verify, and falling back would lose what it said.
            let next = self.members[member].table.version(page) + 1;
            let is_torn =
                recovery.is_intended(member, page, next) || !self.rules.hold(Rule::TornOnlyByIntent);
            if is_torn {
                self.members[member].table.recover_torn(page);
                continue;
            }
            if page < self.slots(member) && !recovery.is_made(member, page) {
                self.lose_component(member, page);
            }
            self.lose_page(member, page, out);
        }
        // What is written next goes over the older copy: over the other one, by a checkpoint that does not end, that one would count at the next start.
        for &(member, page) in recovery.contradicting() {
            self.lose_page(member, page, out);
        }
        for &(member, page) in recovery.damaged() {
            self.lose_page(member, page, out);
            self.members[member].table.replace_unfinished(page);
        }
        for index in 0..self.members.len() {
            if self.members[index].is_in_service()
                && let Err(what) = self.build_maps(index, &recovery)
            {
                return self.open_failed(OpenError::Contradiction(what), out);
            }
        }
        self.members.forget_failed_leavers();
        self.go_on_dropping();
        self.recover_rollbacks();
        self.merge_segments();
        self.components.end_recovery();
        self.recover_held();
        // Trims replayed may leave extents empty; a destaging round will tell.
        self.scarcity.note_trim();
        self.phase = Phase::Open;
        out.push(Output::Event(Event::Ready));
    }

    /// The newest copy of a page is damaged: what it said is not known. Records in the log may still tell of some.
    fn lose_page(&mut self, index: u8, page: u32, out: &mut Vec<Output>) {
        out.push(Output::Event(Event::PageDamaged { member: index, page }));
        let slots = self.slots(index);
        let member = &mut self.members[index];
        member.table.skip_version(page);
        if page < slots {
            if member.table.component_in(page).is_none() {
                member.table.lose_slot(page);
            }
            return;
        }
        if page >= member.table.fixed_count() {
            return self.lose_chunk_page(index, page);
        }
        member.table.forget(page);
        let first = (page - slots) * DESCRIPTORS_PER_PAGE as u32;
        for extent in first..(first + DESCRIPTORS_PER_PAGE as u32).min(member.owners.len() as u32) {
            let location = ExtentLocation { member: index, extent };
            if self.index.at(location).is_some_and(Dirty::tells_owner) || self.holds_for(location) {
                continue;
            }
            let member = &mut self.members[index];
            member.owners[extent as usize] = Owner { component: Descriptor::LOST.component, part: 0 };
            self.index.drop_at(location);
        }
        let member = &mut self.members[index];
        let lost = Box::new([const { Descriptor::LOST }; DESCRIPTORS_PER_PAGE]);
        member.table.keep(page, Content::Descriptors(lost));
        member.table.mark_dirty(page);
    }
}

/// Whether the copy of a page that does not count may have been newer than that version.
fn may_be_newer(other: &Copy, version: u64) -> bool {
    match other {
        Copy::Invalid(Some(other)) => *other > version,
        Copy::Invalid(None) => true,
        Copy::Blank | Copy::Valid(_) => false,
    }
}

/// A copy of a page, or the version of one that does not count: it is of a checkpoint that did not end.
fn finished(copy: Copy, counted: u64) -> Result<Copy, u64> {
    match copy {
        Copy::Valid(page) if page.stamp > counted => Err(page.version),
        copy => Ok(copy),
    }
}

/// What stands at a position of the log.
enum Found {
    Batch(Batch),
    /// A header that is longer than what was read.
    NeedsMore,
    Nothing,
}
