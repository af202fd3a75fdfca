//! Writes, trims and component records: from acceptance through the log to what they change.
//!
//! Accepting takes room in the next batch, and an extent where one is needed, so that what is accepted cannot fail for
//! lack of either. Nothing takes effect, for readers or for tables, before its batch is stable: see `install`.

use super::copy::Whole;
use super::{Group, Phase};
use crate::component::Component;
use crate::format::batch::{BatchHeader, ExtentPlace, Origin, Record, WindowEntry};
use crate::index::Dirty;
use crate::io::{Answer, ComponentKey, GroupError, Op, Output};
use crate::limits;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::space::Claim;
use crate::work::{Change, Sealed, Then, WRITE_RECORD_SIZE, Work, checksums, fail};
use base::request::Buffers;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, EXTENT_SIZE};
use smallvec::SmallVec;
use std::collections::VecDeque;

impl Group {
    /// Takes a write in whose data, if it came with checksums, is as it was where it entered.
    pub(super) fn write(&mut self, change: Change, data: Buffers, expected: &[u32], out: &mut Vec<Output>) {
        let checksums = checksums(&data);
        let blocks = checksums.len();
        assert!(blocks >= 1 && change.block as usize + blocks <= 256, "a write lies within its part");
        if !expected.is_empty() && *expected != *checksums {
            return out.push(Output::Done { op: change.op, result: Err(GroupError::Damaged) });
        }
        if change.origin == Origin::Copy {
            self.counters.copied_bytes += blocks as u64 * BLOCK_SIZE;
        }
        self.submit(Work::Write { change, data, checksums }, out);
    }

    /// Takes guest work in, in order.
    pub(super) fn submit(&mut self, work: Work, out: &mut Vec<Output>) {
        if !self.waiting.is_empty() {
            self.waiting.push_back(work);
        } else if let Some(work) = self.accept(work, out) {
            self.waiting.push_back(work);
        }
    }

    /// Takes a record of the group's own in. It may use the room that guests must leave, but what a checkpoint needs.
    pub(super) fn submit_record(&mut self, op: Option<Op>, record: Record) {
        self.submit_record_work(Work::Record { op, record, for_checkpoint: false });
    }

    /// As [`Group::submit_record`], for a record that the checkpoint under way waits for.
    pub(super) fn submit_for_checkpoint(&mut self, record: Record) {
        self.submit_record_work(Work::Record { op: None, record, for_checkpoint: true });
    }

    /// Puts a small record into the next batch, in which there is room for it.
    pub(super) fn gather_record(&mut self, record: Record) {
        let then = Then { record: record.clone(), op: None, data: Buffers::new(), for_checkpoint: false };
        self.gather.push(&record, then);
    }

    fn submit_record_work(&mut self, work: Work) {
        let queue = self.record_queue(&work);
        if !queue.is_empty() {
            queue.push_back(work);
        } else if let Some(work) = self.accept_record(work) {
            self.record_queue(&work).push_back(work);
        }
    }

    fn record_queue(&mut self, work: &Work) -> &mut VecDeque<Work> {
        match work {
            Work::Record { for_checkpoint: true, .. } => &mut self.checkpoint_waiting,
            _ => &mut self.records_waiting,
        }
    }

    fn accept_record(&mut self, work: Work) -> Option<Work> {
        let Work::Record { op, record, for_checkpoint } = work else {
            unreachable!("only records are submitted as records")
        };
        let bytes = match &record {
            Record::Direct { .. } => WRITE_RECORD_SIZE + BLOCKS_PER_EXTENT * 4,
            Record::Component { .. } => 1024,
            Record::Entry { .. } => limits::ENTRY_RECORD_SIZE,
            _ => WRITE_RECORD_SIZE,
        };
        let reserve = if for_checkpoint { 0 } else { self.checkpoint_room() };
        if !self.has_room(bytes, 0, reserve) {
            return Some(Work::Record { op, record, for_checkpoint });
        }
        self.gather.push(&record, Then { record: record.clone(), op, data: Buffers::new(), for_checkpoint });
        None
    }

    /// Does what can be done with the work now; hands it back if there is no room in the log.
    pub(super) fn accept(&mut self, work: Work, out: &mut Vec<Output>) -> Option<Work> {
        if let Phase::Failed = self.phase {
            fail(&work, GroupError::DeviceLost, out);
            return None;
        }
        let (component, part) = match &work {
            Work::Write { change, .. } | Work::Trim { change, .. } => (change.component, change.part),
            Work::Record { .. } => unreachable!("the group's own records are not guest work"),
        };
        if let Err(error) = self.check_component(component, part) {
            fail(&work, error, out);
            return None;
        }
        if self.exclusive.contains(&(component, part)) {
            self.parked.entry((component, part)).or_default().push_back(work);
            return None;
        }
        match work {
            Work::Write { change, data, checksums } => self.accept_write(change, data, checksums, out),
            Work::Trim { change, count } => self.accept_trim(change, count, out),
            Work::Record { .. } => unreachable!("excluded above"),
        }
    }

    /// Whether the component can serve that part.
    pub(super) fn check_component(&self, component: u32, part: u32) -> Result<(), GroupError> {
        if !matches!(self.phase, Phase::Open) {
            return Err(GroupError::DeviceLost);
        }
        let component = self.components.get(component as usize).ok_or(GroupError::NoComponent)?;
        if !component.is_stable || component.record.is_deleting {
            return Err(GroupError::NoComponent);
        }
        assert!(part < component.part_count(), "a request lies within its component");
        match self.members[component.member as usize].is_in_service() {
            true => Ok(()),
            false => Err(GroupError::DeviceLost),
        }
    }

    fn accept_write(
        &mut self,
        change: Change,
        data: Buffers,
        checksums: SmallVec<[u32; 2]>,
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let change = self.not_lessened(change, checksums.len() as u16);
        let Change { op, component, part, block, id, origin } = change;
        let blocks = checksums.len();
        let mapped = self.index.extent_of(component, part);
        if blocks == BLOCKS_PER_EXTENT {
            match self.whole(change) {
                Whole::At(id) => {
                    if let Some(extent) = self.allocate(component) {
                        self.write_direct(Change { id, ..change }, extent, data, &checksums, out);
                        return None;
                    }
                }
                Whole::Needs { member, page } => {
                    self.hold_copy((member, page), Work::Write { change, data, checksums }, out);
                    return None;
                }
                Whole::Unknown => {}
            }
        }
        if !self.has_guest_room(blocks as u64) {
            return Some(Work::Write { change, data, checksums });
        }
        let extent = match mapped {
            Some(extent) => extent,
            None => match self.allocate(component) {
                Some(extent) => {
                    self.map(component, part, extent);
                    extent
                }
                None => {
                    self.starve(Work::Write { change, data, checksums }, out);
                    return None;
                }
            },
        };
        let place = ExtentPlace { member: self.components[component as usize].member, extent };
        self.gather.data.extend(data.iter().cloned());
        self.index.accept((component, part), place);
        let component = self.components[component as usize].record.id;
        let record = Record::Write { component, part, place, block: block as u8, id, origin, checksums };
        let then = Then { record: record.clone(), op: Some(op), data, for_checkpoint: false };
        self.gather.push(&record, then);
        None
    }

    fn accept_trim(&mut self, change: Change, count: u16, out: &mut Vec<Output>) -> Option<Work> {
        let change = self.not_lessened(change, count);
        let Change { op, component: key, part, block, id, origin } = change;
        let Component { member, ref record, .. } = self.components[key as usize];
        let component = record.id;
        let mapped = self.index.extent_of(key, part).filter(|_| count > 0);
        let frees = count as usize == BLOCKS_PER_EXTENT && origin != Origin::Copy;
        let entries = if mapped.is_some() && !frees { u64::from(count) } else { 0 };
        if !self.has_guest_room(entries) {
            return Some(Work::Trim { change, count });
        }
        let record = match mapped.map(|extent| ExtentPlace { member, extent }) {
            None if origin == Origin::Alone
                || (origin == Origin::Copy && id <= self.components[key as usize].hole(part)) =>
            {
                out.push(Output::Done { op, result: Ok(Answer::Done) });
                return None;
            }
            None if origin == Origin::Copy => Record::Hole { member, component, part, id },
            // Nothing changes, but that there was such a trim may be asked for, and what is copied over it counts as it does.
            None => {
                let Origin::Guest(tag) = origin else {
                    unreachable!("copies and disks without an owner are done")
                };
                let entry = WindowEntry { id, part, block: block as u8, count, is_trim: true, tag };
                Record::Entry { member, component, entry }
            }
            Some(place) if frees => {
                self.exclusive.insert((key, part));
                self.frees_pending += 1;
                if !self.rules.hold(Rule::ReuseOnlyFreed) {
                    self.members[place.member as usize].space.release(place.extent);
                }
                Record::Free { component, part, place, id, origin }
            }
            Some(place) => {
                self.index.accept((key, part), place);
                let count_less_one = (count - 1) as u8;
                Record::Trim { component, part, place, block: block as u8, count_less_one, id, origin }
            }
        };
        let data = Buffers::new();
        self.gather.push(&record, Then { record: record.clone(), op: Some(op), data, for_checkpoint: false });
        None
    }

    /// Writes a whole extent to a fresh place; its record follows when that is stable.
    fn write_direct(
        &mut self,
        change: Change,
        extent: u32,
        data: Buffers,
        checksums: &[u32],
        out: &mut Vec<Output>,
    ) {
        let Change { op, component, part, id, origin, .. } = change;
        let Component { member, ref record, .. } = self.components[component as usize];
        let replaced = self.index.extent_of(component, part);
        let checksums = Box::new(checksums.try_into().expect("a whole extent has 256 checksums"));
        let place = ExtentPlace { member, extent };
        let direct = Record::Direct { component: record.id, part, place, replaced, id, origin, checksums };
        self.exclusive.insert((component, part));
        let key =
            self.directs.insert(Work::Record { op: Some(op), record: direct, for_checkpoint: false }) as u32;
        let io = self.issue(member, Purpose::Direct(key));
        let offset = self.members[member as usize].geometry.block_offset(extent, 0);
        self.counters.direct_bytes += EXTENT_SIZE;
        out.push(Output::Write {
            io,
            member,
            offset,
            buffers: data,
            stable: true,
            gentle: origin == Origin::Copy,
        });
    }

    pub(super) fn direct_done(&mut self, key: u32, result: Result<(), ()>, out: &mut Vec<Output>) {
        let Work::Record { op, record, .. } = self.directs.remove(key as usize) else {
            unreachable!("only records wait for direct writes")
        };
        if result.is_ok() {
            return self.submit_record(op, record);
        }
        let (Some(op), Record::Direct { component, part, .. }) = (op, record) else {
            unreachable!("a direct write is an operation")
        };
        out.push(Output::Done { op, result: Err(GroupError::DeviceLost) });
        // What came to the part meanwhile is answered, too.
        if let Some(&key) = self.keys.get(&component) {
            self.end_exclusive(key, part);
        }
    }

    /// An extent for a component: from its own reservation, else from what nobody has reserved.
    fn allocate(&mut self, component: u32) -> Option<u32> {
        let component = &self.components[component as usize];
        let member = &mut self.members[component.member as usize];
        if member.lost_extents > 0 {
            return None; // A lost extent may be the one that holds this very part.
        }
        let claim = if component.reserved_extents() > 0 { Claim::Reserved } else { Claim::Unreserved };
        let promise = member.space.promise(claim)?;
        Some(member.space.place(promise))
    }

    pub(super) fn map(&mut self, component: u32, part: u32, extent: u32) {
        self.with_reservation(component, Component::take_extent);
        let member = self.components[component as usize].member;
        self.index.map((component, part), ExtentPlace { member, extent });
    }

    fn unmap(&mut self, component: u32, part: u32) {
        self.with_reservation(component, Component::give_extent_back);
        self.index.unmap(component, part);
    }

    /// Runs a change to a component that may change how much is still set aside for it.
    pub(super) fn with_reservation(&mut self, component: u32, change: impl FnOnce(&mut Component)) {
        let component = &mut self.components[component as usize];
        let member = &mut self.members[component.member as usize];
        let before = component.reserved_extents();
        change(component);
        member.space.reserve(before, component.reserved_extents());
    }

    /// No extent is free. Waits if trims or frees under way may bring some, else says so.
    fn starve(&mut self, work: Work, out: &mut Vec<Output>) {
        if self.may_gain_space() {
            self.starved.push_back(work);
        } else {
            let (Work::Write { change, .. } | Work::Trim { change, .. }) = &work else {
                unreachable!("only guests need space")
            };
            let member = self.components[change.component as usize].member;
            let has_lost = self.members[member as usize].lost_extents > 0;
            fail(&work, if has_lost { GroupError::Damaged } else { GroupError::NoSpace }, out);
        }
    }

    /// Whether frees, discards or trims under way may yet bring a free extent.
    pub(super) fn may_gain_space(&self) -> bool {
        self.frees_pending > 0 || self.discards_pending > 0 || self.trims_unsettled
    }

    /// Turns what has been gathered into one write of the log, unless one is under way.
    pub(super) fn seal(&mut self, out: &mut Vec<Output>) {
        if self.sealed.is_some() || self.gather.is_empty() {
            return;
        }
        self.gather_watermarks();
        let header_blocks = self.header_to_seal();
        let Some(mut header) = self.own_pool.take((header_blocks * BLOCK_SIZE) as usize) else { return };
        let blocks = header_blocks + self.gather.data_blocks;
        let start = self.log.place(blocks);
        let fixed = BatchHeader {
            log_mark: self.log.anchor.log_mark,
            number: start.number,
            position: start.position,
            header_blocks: header_blocks as u32,
            data_blocks: self.gather.data_blocks as u32,
            record_bytes: self.gather.records.len() as u32,
            record_count: self.gather.record_count,
        };
        fixed.encode(self.gather.records.as_bytes(), header.bytes_mut());
        let mut buffers = Buffers::with_capacity(1 + self.gather.data.len());
        buffers.push(header);
        buffers.extend(self.gather.data.drain(..));
        let then = std::mem::take(&mut self.gather.then);
        self.gather.clear();
        self.note_leavers(then.iter().map(|one| &one.record));
        if !self.rules.hold(Rule::AcknowledgeOnlyStable) {
            for one in &then {
                if let (Some(op), Record::Write { .. }) = (one.op, &one.record) {
                    out.push(Output::Done { op, result: Ok(Answer::Done) });
                }
            }
        }
        self.sealed = Some(Sealed { start, header_blocks, then });
        self.counters.batches += 1;
        self.counters.batch_bytes += blocks * BLOCK_SIZE;
        let io = self.issue(0, Purpose::Batch);
        out.push(Output::Write {
            io,
            member: 0,
            offset: self.log_offset(start.position),
            buffers,
            stable: true,
            gentle: false,
        });
    }

    /// Whether a record that names the place is on its way to the log and has none there yet.
    pub(super) fn is_place_gathered(&self, place: u8) -> bool {
        let waiting = self.records_waiting.iter().chain(&self.checkpoint_waiting);
        let waiting = waiting.filter_map(|work| match work {
            Work::Record { record, .. } => Some(record),
            Work::Write { .. } | Work::Trim { .. } => None,
        });
        let mut records = self.gather.then.iter().map(|one| &one.record).chain(waiting);
        records.any(|record| record.place_named() == Some(place))
    }

    /// The batch is stable, and so are all before it: its records take effect and its operations are answered.
    pub(super) fn batch_done(&mut self, out: &mut Vec<Output>) {
        let sealed = self.sealed.take().expect("a batch that completes was sealed");
        self.log.starts.push_back(sealed.start);
        let mut position = sealed.start.position + sealed.header_blocks;
        for Then { record, op, data, for_checkpoint } in sealed.then {
            let data_position = position;
            position += record.data_blocks();
            self.index.retain(data_position, &data);
            let answer = self.live_effects(&record, out);
            self.install(&record, sealed.start.position, data_position);
            if !self.rules.hold(Rule::AcknowledgeOnlyStable) && matches!(record, Record::Write { .. }) {
                continue;
            }
            if for_checkpoint {
                self.checkpoint_record_stable();
            }
            if let Some(op) = op {
                let result =
                    if self.is_record_lost(&record) { Err(GroupError::DeviceLost) } else { Ok(answer) };
                out.push(Output::Done { op, result });
            }
        }
    }

    /// Whether the device that the record speaks of failed while its batch was under way.
    fn is_record_lost(&self, record: &Record) -> bool {
        !self.members[record.member() as usize].is_in_service()
    }

    /// What a record changes in operation only: recovery rebuilds these from the whole at its end.
    fn live_effects(&mut self, record: &Record, out: &mut Vec<Output>) -> Answer {
        match record {
            Record::Write { place, .. } => self.index.accepted_is_stable(*place),
            Record::Trim { place, .. } => {
                self.index.accepted_is_stable(*place);
                self.trims_unsettled = true;
            }
            Record::Direct { component, part, place, replaced, .. } => {
                let key = self.keys[component];
                if replaced.is_some() {
                    self.unmap(key, *part);
                }
                self.map(key, *part, place.extent);
                if let Some(extent) = replaced {
                    self.release_replaced(ExtentPlace { member: place.member, extent: *extent }, out);
                }
                self.end_exclusive(key, *part);
            }
            Record::Free { component, part, place, .. } => {
                let key = self.keys[component];
                self.unmap(key, *part);
                self.frees_pending -= 1;
                let component = &mut self.components[key as usize];
                component.frees_pending = component.frees_pending.saturating_sub(1);
                self.release_extent(*place, out);
                self.end_exclusive(key, *part);
            }
            Record::Component { member, slot, .. } => {
                let key = self.members[*member as usize].slots[*slot as usize]
                    .expect("a slot is held until it is gone");
                return Answer::Component(ComponentKey(key));
            }
            Record::ComponentGone { .. } | Record::PageIntent { .. } => {}
            Record::Watermark { .. } | Record::Entry { .. } | Record::Hole { .. } => {}
        }
        Answer::Done
    }

    pub(super) fn end_exclusive(&mut self, component: u32, part: u32) {
        self.exclusive.remove(&(component, part));
        if let Some(parked) = self.parked.remove(&(component, part)) {
            for work in parked.into_iter().rev() {
                self.waiting.push_front(work);
            }
        }
    }

    /// As [`Group::release_extent`], for an extent whose place another one has taken: it is used next.
    fn release_replaced(&mut self, place: ExtentPlace, out: &mut Vec<Output>) {
        let is_destaging = self.index.at(place).is_some_and(Dirty::is_destaging);
        if is_destaging || !self.members[place.member as usize].space.release_warm(place.extent) {
            self.release_extent(place, out);
        }
    }

    /// Makes an extent free whose freeing is stable, once nothing writes to it any more.
    pub(super) fn release_extent(&mut self, place: ExtentPlace, out: &mut Vec<Output>) {
        if self.index.at(place).is_some_and(Dirty::is_destaging) {
            return self.members[place.member as usize].space.release_later(place.extent);
        }
        let member = &self.members[place.member as usize];
        if self.settings.discard && member.is_in_service() {
            let offset = member.geometry.block_offset(place.extent, 0);
            let io =
                self.issue(place.member, Purpose::Discard { member: place.member, extent: place.extent });
            out.push(Output::Discard { io, member: place.member, offset, len: EXTENT_SIZE });
            self.discards_pending += 1;
        } else {
            self.members[place.member as usize].space.release(place.extent);
        }
    }

    pub(super) fn discarded(&mut self, member: u8, extent: u32) {
        self.discards_pending -= 1;
        self.members[member as usize].space.release(extent);
    }

    /// Tries the waiting work again: what a checkpoint waits for first, for it makes room; then the group's other records.
    pub(super) fn retry_waiting(&mut self, out: &mut Vec<Output>) {
        while let Some(work) =
            self.checkpoint_waiting.pop_front().or_else(|| self.records_waiting.pop_front())
        {
            if let Some(work) = self.accept_record(work) {
                self.record_queue(&work).push_front(work);
                return;
            }
        }
        while let Some(work) = self.waiting.pop_front() {
            if let Some(work) = self.accept(work, out) {
                self.waiting.push_front(work);
                return;
            }
        }
    }

    /// Space may have come free (or is known not to): starved work tries again.
    pub(super) fn retry_starved(&mut self, out: &mut Vec<Output>) {
        for work in std::mem::take(&mut self.starved) {
            self.submit(work, out);
        }
    }

    /// The group is lost: everything under way fails.
    pub(super) fn fail_everything(&mut self, out: &mut Vec<Output>) {
        let sealed = self.sealed.take().map(|sealed| sealed.then).unwrap_or_default();
        let gathered = std::mem::take(&mut self.gather.then);
        for op in sealed.into_iter().chain(gathered).filter_map(|then| then.op) {
            out.push(Output::Done { op, result: Err(GroupError::DeviceLost) });
        }
        self.gather.clear();
        let parked = std::mem::take(&mut self.parked);
        let mut parked: Vec<_> = parked.into_iter().collect();
        parked.sort_unstable_by_key(|(place, _)| *place);
        let mut works: Vec<Work> = parked.into_iter().flat_map(|(_, queue)| queue).collect();
        works.extend(std::mem::take(&mut self.waiting));
        works.extend(std::mem::take(&mut self.checkpoint_waiting));
        works.extend(std::mem::take(&mut self.records_waiting));
        works.extend(std::mem::take(&mut self.starved));
        works.extend(self.directs.drain());
        works.extend(self.copies_held.drain());
        works.iter().for_each(|work| fail(work, GroupError::DeviceLost, out));
        for read in self.reads.drain() {
            if let Some(op) = read.op() {
                out.push(Output::Done { op, result: Err(GroupError::DeviceLost) });
            }
        }
        self.reads_waiting.clear();
        for question in self.changed.drain() {
            out.push(Output::Done { op: question.op(), result: Err(GroupError::DeviceLost) });
        }
        self.settling.clear();
        self.settle_at = None;
    }

    /// A capacity device is lost: what only it could still do is dropped, so that the log does not wait for it.
    pub(super) fn fail_member_work(&mut self, member: u8, out: &mut Vec<Output>) {
        self.index.drop_device(member);
        let pages: Vec<u32> = self.members[member as usize].dirty_pages.iter().collect();
        for page in pages {
            self.members[member as usize].dirty_pages.remove(page);
        }
        self.members[member as usize].is_unsynced = false;
        self.fail_page_waiters(member, out);
        self.retry_starved(out);
    }
}
