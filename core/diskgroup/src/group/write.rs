//! Writes, trims and component records: from acceptance through the log to what they change.
//!
//! Accepting takes room in the next batch, and an extent where one is needed, so that what is accepted cannot fail for
//! lack of either. Nothing takes effect, for readers or for tables, before its batch is stable: see `install`.

use super::copy::Whole;
use super::hold::{NewHold, check_layer, check_range};
use super::{Group, Phase};
use crate::buffer::{BatchWrite, Undone};
use crate::component::{Component, parts_of_hole};
use crate::format::batch::{ExtentLocation, Origin, Record, WindowEntry};
use crate::index::Dirty;
use crate::io::{Completion, ComponentKey, GroupError, LayerRanges, Op, Output};
use crate::limits;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::space::Claim;
use crate::work::{Awaiting, Change, OwnRecord, Target, Then, Work, checksums, fail};
use base::request::Buffers;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, EXTENT_SIZE};
use base::{ComponentId, WriteId};
use smallvec::SmallVec;

impl Group {
    /// Takes a write in whose data, if it came with checksums, is as it was where it entered.
    pub(super) fn write(
        &mut self,
        change: Change,
        data: Buffers,
        (expected, ends): (&[u32], LayerRanges),
        out: &mut Vec<Output>,
    ) {
        let checksums = checksums(&data);
        let blocks = checksums.len();
        assert!(blocks >= 1 && change.block as usize + blocks <= 256, "a write lies within its part");
        check_layer(change.layer);
        ends.iter().for_each(check_range);
        if !expected.is_empty() && *expected != *checksums {
            return out.push(Output::Done { op: change.op, result: Err(GroupError::Damaged) });
        }
        if change.origin == Origin::Copy {
            self.counters.copied_bytes += blocks as u64 * BLOCK_SIZE;
        }
        self.submit(Work::Write { change, data, checksums, ends }, out);
    }

    /// Takes a trim in.
    pub(super) fn trim(&mut self, change: Change, count: u16, out: &mut Vec<Output>) {
        assert!(change.block + count <= 256, "a trim lies within its part");
        check_layer(change.layer);
        self.submit(Work::Trim { change, count }, out);
    }

    /// Takes guest work in, in order.
    pub(super) fn submit(&mut self, work: Work, out: &mut Vec<Output>) {
        if self.buffer.has_guests_waiting() {
            self.buffer.wait(work);
        } else if let Some(work) = self.accept(work, out) {
            self.buffer.wait(work);
        }
    }

    /// Takes a record of the group's own in. It may use the room that guests must leave, but what a checkpoint needs.
    pub(super) fn submit_record(&mut self, op: Option<Op>, record: Record) {
        self.submit_own(OwnRecord { op, record, for_checkpoint: false });
    }

    /// As [`Group::submit_record`], for a record that the checkpoint under way waits for.
    pub(super) fn submit_for_checkpoint(&mut self, record: Record) {
        self.submit_own(OwnRecord { op: None, record, for_checkpoint: true });
    }

    fn submit_own(&mut self, record: OwnRecord) {
        if self.buffer.has_waiting_before(&record) {
            self.buffer.wait_record(record);
        } else if let Some(record) = self.accept_own(record) {
            self.buffer.wait_record(record);
        }
    }

    /// Puts a record into the next batch; hands it back if there is no room.
    fn accept_own(&mut self, record: OwnRecord) -> Option<OwnRecord> {
        let reserve = match record.awaiting() {
            Awaiting::Checkpoint => 0,
            Awaiting::Destaging => self.checkpoint_room(),
            Awaiting::Others => self.checkpoint_room() + limits::CHUNK_LOG_BLOCKS,
        };
        if !self.has_room(record.size(), 0, reserve) {
            return Some(record);
        }
        self.buffer.push_own(record);
        None
    }

    /// Does what can be done with the work now; hands it back if there is no room in the log.
    pub(super) fn accept(&mut self, work: Work, out: &mut Vec<Output>) -> Option<Work> {
        if let Phase::Failed = self.phase {
            fail(&work, GroupError::DeviceLost, out);
            return None;
        }
        let Target { component, part, .. } = work.target();
        if let Err(error) = self.check_component(component, part) {
            fail(&work, error, out);
            return None;
        }
        // A mark is of no part, and is stable before what comes after it.
        let is_of_component =
            matches!(work, Work::Snapshot { .. } | Work::Rollback { .. } | Work::Compress { .. });
        let is_of_part = !work.is_mark() && !is_of_component;
        if is_of_part && self.exclusive.is_held((component, part)) {
            self.exclusive.park((component, part), work);
            return None;
        }
        if !self.decide_rows(&work) {
            return Some(work);
        }
        match work {
            Work::Write { change, data, checksums, ends } if change.layer > 0 => {
                self.accept_hold(change, NewHold::Data(data, checksums), ends, out)
            }
            Work::Trim { change, count } if change.layer > 0 && count > 0 => {
                self.accept_hold(change, NewHold::Trim(count), LayerRanges::new(), out)
            }
            Work::Trim { change, count: 0 } if change.layer > 0 => self.accept_drop(change),
            Work::Write { change, data, checksums, ends } => {
                self.accept_write(change, data, (checksums, ends), out)
            }
            Work::Trim { change, count } => self.accept_trim(change, count, out),
            Work::Order { target, order, ranges } => self.accept_order(target, order, ranges),
            Work::Snapshot { change, number, is_late } => {
                self.accept_snapshot(change, (number, is_late), out)
            }
            Work::Rollback { change, number } => self.accept_rollback(change, number, out),
            Work::Compress { target, compression } => self.accept_compress(target, compression, out),
        }
    }

    /// Whether the component can serve that part.
    pub(super) fn check_component(&self, component: u32, part: u32) -> Result<(), GroupError> {
        if !matches!(self.phase, Phase::Open) {
            return Err(GroupError::DeviceLost);
        }
        let component = self.components.get(component).ok_or(GroupError::NoComponent)?;
        if !component.is_stable || component.record.is_deleting {
            return Err(GroupError::NoComponent);
        }
        assert!(part < component.part_count(), "a request lies within its component");
        match self.members[component.member].is_in_service() {
            true => Ok(()),
            false => Err(GroupError::DeviceLost),
        }
    }

    fn accept_write(
        &mut self,
        change: Change,
        data: Buffers,
        (checksums, ends): (SmallVec<[u32; 2]>, LayerRanges),
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let change = self.not_lessened(change, checksums.len() as u16);
        let Change { op, component, part, block, id, origin, .. } = change;
        let blocks = checksums.len();
        let is_whole = blocks == BLOCKS_PER_EXTENT && ends.is_empty();
        if self.is_unplaced(component, part) && !(is_whole && self.may_become_plain(component, part)) {
            return self.accept_unplaced_write(change, data, (checksums, ends), out);
        }
        // A write that ends something goes through the log, for both must be in one batch.
        if is_whole {
            match self.whole(change) {
                Whole::At(id) => {
                    if let Some(extent) = self.allocate(component) {
                        self.write_direct(Change { id, ..change }, extent, data, &checksums, out);
                        return None;
                    }
                }
                Whole::Needs { member, page } => {
                    self.hold_copy((member, page), Work::Write { change, data, checksums, ends }, out);
                    return None;
                }
                Whole::Unknown => {}
            }
        }
        if self.is_unplaced(component, part) {
            return self.accept_unplaced_write(change, data, (checksums, ends), out);
        }
        if !self.has_room_for_records(1 + ends.len(), blocks as u64, blocks as u64) {
            return Some(Work::Write { change, data, checksums, ends });
        }
        let Some(location) = self.take_location(component, part) else {
            self.starve(Work::Write { change, data, checksums, ends }, out);
            return None;
        };
        self.push_ends((component, part), &ends, out);
        self.index.accept((component, part), location, 0);
        let component = self.components[component].record.id;
        let record = Record::Write { component, part, location, block: block as u8, id, origin, checksums };
        self.buffer.push(record, Some(op), data);
        None
    }

    pub(super) fn accept_trim(&mut self, change: Change, count: u16, out: &mut Vec<Output>) -> Option<Work> {
        let change = self.not_lessened(change, count);
        let Change { op, component: key, part, layer, block, id, origin } = change;
        let is_there = self.has_content(key, part) || self.held.touches(key, part);
        if count > 0 && self.is_unplaced(key, part) && is_there {
            return self.accept_unplaced_trim(change, count, out);
        }
        let Component { member, ref record, .. } = self.components[key];
        let component = record.id;
        let mapped = self.index.extent_of(key, part).filter(|_| count > 0);
        let is_whole = count as usize == BLOCKS_PER_EXTENT;
        let frees = is_whole && origin != Origin::Copy && !self.held.touches(key, part);
        let entries = if mapped.is_some() && !frees { u64::from(count) } else { 0 };
        if !self.has_guest_room(entries) {
            return Some(Work::Trim { change, count });
        }
        let record = match mapped.map(|extent| ExtentLocation { member, extent }) {
            None if origin == Origin::Copy && self.is_hole_since(key, part, id) => {
                out.push(Output::Done { op, result: Ok(Completion::Done) });
                return None;
            }
            None if origin == Origin::Copy => Record::Hole { member, component, part, id },
            // Nothing changes, but that there was such a trim may be asked for, and what is copied over it counts as it does.
            None => {
                let Origin::Guest(tag) = origin else { unreachable!("copies are done") };
                let entry = WindowEntry { id, part, layer, block: block as u8, count, is_trim: true, tag };
                Record::Entry { member, component, entry }
            }
            Some(location) if frees => {
                self.exclusive.hold((key, part));
                self.scarcity.begin_free();
                if !self.rules.hold(Rule::ReuseOnlyFreed) {
                    self.members[location.member].space.release(location.extent);
                }
                Record::Free { component, part, location, id, origin }
            }
            Some(location) => {
                self.index.accept((key, part), location, 0);
                let count_less_one = (count - 1) as u8;
                Record::Trim { component, part, location, block: block as u8, count_less_one, id, origin }
            }
        };
        self.buffer.push(record, Some(op), Buffers::new());
        None
    }

    /// Whether a hole has a version no less than that, which no crash takes back: of a part that was emptied, the page with that is written by the next checkpoint.
    fn is_hole_since(&self, key: u32, part: u32, id: WriteId) -> bool {
        let is_settled = || !self.unmapped.contains_any(key, parts_of_hole(part));
        id <= self.components[key].hole(part) && (is_settled() || !self.rules.hold(Rule::KeepHoleId))
    }

    /// Writes a whole extent to a fresh one; its record follows when that is stable.
    fn write_direct(
        &mut self,
        change: Change,
        extent: u32,
        data: Buffers,
        checksums: &[u32],
        out: &mut Vec<Output>,
    ) {
        let Change { op, component, part, id, origin, .. } = change;
        let Component { member, ref record, .. } = self.components[component];
        let replaced = self.index.extent_of(component, part);
        let checksums = Box::new(checksums.try_into().expect("a whole extent has 256 checksums"));
        let location = ExtentLocation { member, extent };
        let direct = Record::Direct { component: record.id, part, location, replaced, id, origin, checksums };
        self.exclusive.hold((component, part));
        let record = OwnRecord { op: Some(op), record: direct, for_checkpoint: false };
        let key = self.directs.insert(record) as u32;
        let io = self.issue(member, Purpose::Direct(key));
        let offset = self.members[member].geometry.block_offset(extent, 0);
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
        let OwnRecord { op, record, .. } = self.directs.remove(key as usize);
        if result.is_ok() {
            return self.submit_record(op, record);
        }
        let (Some(op), Record::Direct { component, part, .. }) = (op, record) else {
            unreachable!("a direct write is an operation")
        };
        out.push(Output::Done { op, result: Err(GroupError::DeviceLost) });
        // What came to the part meanwhile is answered, too.
        if let Some(key) = self.components.key_of(component) {
            self.end_exclusive((key, part));
        }
    }

    /// Where a part stands; it gets an extent if it has none.
    pub(super) fn take_location(&mut self, component: u32, part: u32) -> Option<ExtentLocation> {
        let extent = match self.index.extent_of(component, part) {
            Some(extent) => extent,
            None => {
                let extent = self.allocate(component)?;
                self.map(component, part, extent);
                extent
            }
        };
        Some(ExtentLocation { member: self.components[component].member, extent })
    }

    /// An extent for a component: from its own reservation, else from what nobody has reserved.
    fn allocate(&mut self, component: u32) -> Option<u32> {
        self.refresh_space(self.components[component].member);
        let component = &self.components[component];
        let member = &mut self.members[component.member];
        if member.lost_extents > 0 {
            return None; // A lost extent may be the one that holds this very part.
        }
        let claim = if component.reserved_extents() > 0 { Claim::Reserved } else { Claim::Unreserved };
        let promise = member.space.promise(claim)?;
        Some(member.space.choose(promise))
    }

    pub(super) fn map(&mut self, component: u32, part: u32, extent: u32) {
        self.with_reservation(component, Component::take_extent);
        let member = self.components[component].member;
        self.index.map((component, part), ExtentLocation { member, extent });
    }

    fn unmap(&mut self, component: u32, part: u32) {
        self.with_reservation(component, Component::give_extent_back);
        self.index.unmap(component, part);
    }

    /// Runs a change to a component that may change how much is still set aside for it.
    pub(super) fn with_reservation(&mut self, component: u32, change: impl FnOnce(&mut Component)) {
        let component = &mut self.components[component];
        let member = &mut self.members[component.member];
        let before = component.reserved_extents();
        change(component);
        member.space.reserve(before, component.reserved_extents());
    }

    /// No extent is free. Waits if trims or frees under way may bring some, else says so.
    pub(super) fn starve(&mut self, work: Work, out: &mut Vec<Output>) {
        let member = self.components[work.target().component].member;
        let may_come = self.members[member].pools.wants_checkpoint() || self.rewriting.has_frames_on(member);
        if self.scarcity.may_end() || may_come {
            self.scarcity.wait(work);
        } else {
            let has_lost = self.members[member].lost_extents > 0;
            fail(&work, if has_lost { GroupError::Damaged } else { GroupError::NoSpace }, out);
        }
    }

    /// Turns what has been gathered into one write of the log, unless one is under way.
    pub(super) fn seal(&mut self, out: &mut Vec<Output>) {
        if self.buffer.is_writing() || self.buffer.is_empty() {
            return;
        }
        self.gather_watermarks();
        let header_blocks = self.buffer.header_to_seal(&self.log);
        let Some(header) = self.own_pool.take((header_blocks * BLOCK_SIZE) as usize) else { return };
        let BatchWrite { start, blocks, buffers } = self.buffer.seal(&mut self.log, header_blocks, header);
        self.note_leavers();
        if !self.rules.hold(Rule::AcknowledgeOnlyStable) {
            for one in self.buffer.sealed() {
                if let (Some(op), Record::Write { .. }) = (one.op, &one.record) {
                    out.push(Output::Done { op, result: Ok(Completion::Done) });
                }
            }
        }
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

    /// The batch is stable, and so are all before it: its records take effect and its operations are answered.
    pub(super) fn batch_done(&mut self, out: &mut Vec<Output>) {
        let sealed = self.buffer.take_stable(&mut self.log);
        let mut position = sealed.start.position + sealed.header_blocks;
        for Then { record, op, data, for_checkpoint } in sealed.then {
            let data_position = position;
            position += record.data_blocks();
            self.index.retain(data_position, &data);
            let answer = self.live_effects(&record, out);
            self.layer_record_is_stable(&record);
            self.install(&record, sealed.start.position, data_position);
            if let Record::Promote(blocks) = &record {
                self.free_if_trimmed(blocks);
            }
            if !self.rules.hold(Rule::AcknowledgeOnlyStable) && matches!(record, Record::Write { .. }) {
                continue;
            }
            if for_checkpoint {
                self.checkpoint.record_stable();
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
        !self.members[record.member()].is_in_service()
    }

    /// What a record changes in operation only: recovery rebuilds these from the whole at its end.
    fn live_effects(&mut self, record: &Record, out: &mut Vec<Output>) -> Completion {
        match record {
            Record::Write { component, part, location, checksums, .. } => {
                let blocks = if location.is_placed() { 0 } else { checksums.len() as u32 };
                self.accepted_is_stable((*component, *part), *location, blocks);
            }
            Record::Trim { component, part, location, .. } => {
                self.accepted_is_stable((*component, *part), *location, 0);
                self.scarcity.note_trim();
            }
            Record::Direct { component, part, location, replaced, .. } => {
                let key =
                    self.components.key_of(*component).expect("a component stays until its parts are free");
                match replaced {
                    Some(_) => self.unmap(key, *part),
                    None => self.leave_map(key, *part),
                }
                self.map(key, *part, location.extent);
                if let Some(extent) = replaced {
                    self.release_replaced(ExtentLocation { member: location.member, extent: *extent }, out);
                }
                self.end_exclusive((key, *part));
            }
            Record::Free { component, part, location, .. } => {
                let key =
                    self.components.key_of(*component).expect("a component stays until its parts are free");
                self.unmap(key, *part);
                self.scarcity.end_free();
                let component = &mut self.components[key];
                component.frees_pending = component.frees_pending.saturating_sub(1);
                self.release_extent(*location, out);
                self.end_exclusive((key, *part));
            }
            Record::Component { member, slot, .. } => {
                let key =
                    self.members[*member].table.component_in(*slot).expect("a slot is held until it is gone");
                return Completion::Component(ComponentKey(key));
            }
            Record::ComponentGone { .. } | Record::PageIntent { .. } => {}
            Record::Watermark { .. } | Record::Entry { .. } | Record::Hole { .. } => {}
            Record::Chunk { location, number } => self.chunk_is_stable(*location, *number),
            Record::PoolGone { location } => {
                self.scarcity.end_free();
                self.release_extent(*location, out);
            }
            Record::Snapshot { .. } | Record::Rollback { .. } | Record::SnapshotGone { .. } => {}
            Record::Hold { .. } | Record::HoldTrim { .. } | Record::HoldDamaged { .. } => {
                self.accepted_hold_is_stable(record);
            }
            // What they were about may leave an extent empty.
            Record::Promote(_) | Record::End(_) => self.scarcity.note_trim(),
        }
        Completion::Done
    }

    fn accepted_is_stable(
        &mut self,
        (component, part): (ComponentId, u32),
        location: ExtentLocation,
        blocks: u32,
    ) {
        let key = self.components.key_of(component).expect("a component stays until its records are stable");
        self.index.accepted_is_stable((key, part), location, blocks);
    }

    /// The change that had a part for itself has ended: what waited for it goes next.
    pub(super) fn end_exclusive(&mut self, part: (u32, u32)) {
        for work in self.exclusive.end(part).into_iter().rev() {
            self.buffer.wait_first(work);
        }
    }

    /// As [`Group::release_extent`], for an extent that another one has replaced: it is used next.
    fn release_replaced(&mut self, location: ExtentLocation, out: &mut Vec<Output>) {
        let is_destaging = self.index.at(location).is_some_and(Dirty::is_destaging);
        if is_destaging || !self.members[location.member].space.release_warm(location.extent) {
            self.release_extent(location, out);
        }
    }

    /// Makes an extent free whose freeing is stable, once nothing writes to it any more.
    pub(super) fn release_extent(&mut self, location: ExtentLocation, out: &mut Vec<Output>) {
        if self.index.at(location).is_some_and(Dirty::is_destaging) {
            return self.members[location.member].space.release_later(location.extent);
        }
        let member = &self.members[location.member];
        if self.settings.discard && member.is_in_service() {
            let offset = member.geometry.block_offset(location.extent, 0);
            let io = self.issue(
                location.member,
                Purpose::Discard { member: location.member, extent: location.extent },
            );
            out.push(Output::Discard { io, member: location.member, offset, len: EXTENT_SIZE });
            self.scarcity.begin_discard();
        } else {
            self.members[location.member].space.release(location.extent);
        }
    }

    pub(super) fn discarded(&mut self, member: u8, extent: u32) {
        self.scarcity.end_discard();
        self.members[member].space.release(extent);
    }

    /// Tries the waiting work again: what a checkpoint waits for first, for it makes room; then the group's other records.
    pub(super) fn retry_waiting(&mut self, out: &mut Vec<Output>) {
        while let Some(record) = self.buffer.next_record_waiting() {
            if let Some(record) = self.accept_own(record) {
                return self.buffer.wait_record_first(record);
            }
        }
        while let Some(work) = self.buffer.next_waiting() {
            if let Some(work) = self.accept(work, out) {
                return self.buffer.wait_first(work);
            }
        }
    }

    /// Space may have come free (or is known not to): starved work tries again.
    pub(super) fn retry_starved(&mut self, out: &mut Vec<Output>) {
        for work in self.scarcity.take_starved() {
            self.submit(work, out);
        }
    }

    /// What waits for room or space fails: none comes, for too much is lost with damaged pages.
    pub(super) fn refuse_waiting(&mut self, out: &mut Vec<Output>) {
        for work in self.buffer.take_waiting().into_iter().chain(self.scarcity.take_starved()) {
            fail(&work, GroupError::Damaged, out);
        }
    }

    /// The group is lost: everything under way fails.
    pub(super) fn fail_everything(&mut self, out: &mut Vec<Output>) {
        let lost = |op| Output::Done { op, result: Err(GroupError::DeviceLost) };
        let Undone { gathered, waiting, records } = self.buffer.take_all();
        out.extend(gathered.into_iter().map(lost));
        let guests = self.exclusive.take_parked().chain(waiting).map(|work| work.target().op);
        out.extend(guests.map(lost));
        out.extend(records.into_iter().filter_map(|record| record.op).map(lost));
        out.extend(self.scarcity.take_starved().into_iter().map(|work| lost(work.target().op)));
        out.extend(self.directs.drain().filter_map(|record| record.op).map(lost));
        out.extend(self.copies_held.drain().map(|work| lost(work.target().op)));
        out.extend(self.reads.take_all().into_iter().map(lost));
        out.extend(self.backfills.take_all().into_iter().map(lost));
        for question in self.changed.drain() {
            out.push(Output::Done { op: question.op(), result: Err(GroupError::DeviceLost) });
        }
        self.watermarks.clear();
    }

    /// A capacity device is lost: what only it could still do is dropped, so that the log does not wait for it.
    pub(super) fn fail_member_work(&mut self, member: u8, out: &mut Vec<Output>) {
        self.index.drop_device(member);
        self.void_maps.retain(|(of, _)| *of != member);
        self.drop_held_on(member);
        self.members[member].table.forget_dirty();
        self.members[member].is_unsynced = false;
        self.fail_page_waiters(member, out);
        self.retry_starved(out);
    }
}
