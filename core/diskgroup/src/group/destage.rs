//! Destaging: moving what stands in the log to where it belongs, in the order of the capacity devices' addresses.
//!
//! A round takes the oldest part of the log: all that is older than its boundary, and what lies right beside it. What is
//! younger stays, so that writing it again costs nothing. When a round has ended, a checkpoint makes that part of the
//! log free. How much is in flight follows the fill level; while the log has room it is held back for guests who feel it.

use super::Group;
use crate::destage::{Depth, Destage, Item, Round, due_items};
use crate::format::batch::{ExtentPlace, Origin};
use crate::format::page::Descriptor;
use crate::io::Output;
use crate::limits;
use crate::log::BatchStart;
use crate::member::PageWaiter;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;
use base::checksum::crc32c;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, MIB};

impl Group {
    /// Asks for everything in the log to be destaged, as before a clean stop. [`Group::is_drained`] tells when it is.
    pub fn drain(&mut self) {
        self.destaging.drain = true;
    }

    /// Whether nothing is left in the log that a restart would have to read.
    pub fn is_drained(&self) -> bool {
        self.log.used_blocks() == 0 && self.is_idle() && self.checkpoint.is_idle()
    }

    pub(super) fn advance_destaging(&mut self, out: &mut Vec<Output>) {
        if self.destaging.round.is_none() && self.destaging.finished.is_none() {
            self.begin_round();
        }
        for key in std::mem::take(&mut self.destaging.waiting) {
            self.start_destage(key, out);
        }
        self.feed_round(out);
        self.end_round_if_done(out);
        let may_have_space = self.members.iter().any(|member| member.space.free_count() > 0);
        if self.scarcity.is_felt() && (may_have_space || !self.scarcity.may_end()) {
            self.retry_starved(out);
        }
    }

    fn begin_round(&mut self) {
        let index_percent = self.index.fill(self.log.blocks(), 100);
        let wants_space = self.scarcity.wants_destaging();
        let tail = self.log.tail().max(self.destaging.reached);
        // A tail that stays because its move would gain too little: who waits for room has the rest destaged, which gains more.
        let wants_room = self.destaging.is_held && self.waits_for_log();
        let wants_all = wants_space
            || ((self.destaging.drain || wants_room) && self.log.head() > tail)
            || !self.is_destaged_for_leavers(tail);
        let fill = ((self.log.head() - tail) * 100 / self.log.blocks()).max(index_percent);
        if !wants_all && fill < limits::DESTAGE_START_PERCENT {
            return;
        }
        let head = self.stable_head();
        let boundary = match wants_all {
            true => head,
            false => self.log.start_at_or_after(tail + self.round_blocks(fill), head),
        };
        let mut queue = Vec::new();
        for index in 0..self.members.len() {
            if !self.members[index].is_in_service() {
                self.index.drop_device(index as u8);
                continue;
            }
            queue.extend(self.index.due(index as u8, boundary.position));
        }
        let started = self.now;
        let round = Round { boundary, queue, next: 0, active: 0, started, bytes: 0, covers_all: wants_all };
        self.destaging.round = Some(round);
    }

    /// Log blocks of a round: an eighth of the log; when it fills up, no more than goes in a quarter of a second.
    fn round_blocks(&self, fill: u64) -> u64 {
        let eighth = (self.log.blocks() / 8).max(1);
        if fill < limits::CONGESTION_START_PERCENT || self.destaging.pace == 0.0 {
            return eighth;
        }
        let blocks = self.destaging.pace * limits::DESTAGE_ROUND_SECONDS / BLOCK_SIZE as f64;
        (blocks as u64).clamp(limits::DESTAGE_ROUND_BLOCKS_MIN.min(eighth), eighth)
    }

    /// Where the next batch that is not yet stable begins.
    pub(super) fn stable_head(&self) -> BatchStart {
        self.buffer.stable_head(&self.log)
    }

    fn feed_round(&mut self, out: &mut Vec<Output>) {
        let is_urgent = self.destaging.round.as_ref().is_some_and(|round| round.covers_all);
        let depth = match is_urgent {
            true => Depth::MAX,
            false => Depth::at(self.log.fill_percent()).held(self.fill_permille(), self.shares.destage),
        };
        loop {
            let Some(round) = &mut self.destaging.round else { return };
            let is_full = round.active >= depth.extents || self.destaging.bytes_in_flight >= depth.bytes;
            if is_full || round.next == round.queue.len() {
                return;
            }
            let place = round.queue[round.next];
            round.next += 1;
            self.begin_destage(place, out);
        }
    }

    fn begin_destage(&mut self, place: ExtentPlace, out: &mut Vec<Output>) {
        if !self.members[place.member as usize].is_in_service() {
            return;
        }
        let Some(key) = self.index.key_at(place).filter(|&key| self.index.get(key).has_state()) else {
            return;
        };
        let round = self.destaging.round.as_mut().expect("destaging happens in rounds");
        self.index.begin_destage(key);
        round.active += 1;
        let destage = Destage {
            place,
            dirty: key,
            generation: self.index.get(key).generation(),
            boundary: round.boundary.position,
            items: Vec::new(),
            outstanding: 0,
            bytes: 0,
            is_pinned: false,
        };
        let key = self.destages.insert(destage) as u32;
        self.start_destage(key, out);
    }

    /// Begins (or, after waiting for its page or for memory, begins again) to move one extent.
    pub(super) fn start_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let Destage { place, dirty, boundary, .. } = self.destages[key as usize];
        let member = &mut self.members[place.member as usize];
        let is_stale = self.index.get(dirty).generation() != self.destages[key as usize].generation;
        if !member.is_in_service() || is_stale {
            return self.end_destage(key, out);
        }
        if member.descriptor(place.extent).is_none() {
            let (page, _) = member.page_of(place.extent);
            return self.need_page(place.member, page, PageWaiter::Destage(key), out);
        }
        let mut items = due_items(self.index.get(dirty), boundary);
        for item in items.iter_mut().filter(|item| item.checksum.is_some()) {
            item.data = self.index.retained(item.position).cloned();
        }
        let Some(reads) = self.plan_log_reads(&items) else {
            self.destaging.waiting.push(key);
            return;
        };
        self.members[place.member as usize].pin(place.extent);
        let bytes = items.iter().filter(|item| item.checksum.is_some()).count() as u64 * BLOCK_SIZE;
        self.destaging.bytes_in_flight += bytes;
        let destage = &mut self.destages[key as usize];
        destage.items = items;
        destage.is_pinned = true;
        destage.bytes = bytes;
        destage.outstanding = reads.len() as u32;
        if reads.is_empty() {
            return self.write_destage(key, out);
        }
        for (position, count, buffer) in reads {
            let purpose =
                Purpose::DestageRead { destage: key, positions: (position, count), buffer: buffer.clone() };
            let request = ReadRequest { offset: self.log_offset(position), buffer, gentle: true };
            self.issue_read(0, purpose, request, out);
        }
    }

    /// Log reads for the items that are not in memory, neighbours together. `None` if memory is short.
    fn plan_log_reads(&self, items: &[Item]) -> Option<Vec<(u64, u64, Buffer)>> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for item in items.iter().filter(|item| item.checksum.is_some() && item.data.is_none()) {
            match runs.last_mut() {
                Some((start, count))
                    if *start + *count == item.position
                        && *count < MIB / BLOCK_SIZE
                        && !item.position.is_multiple_of(self.log.blocks()) =>
                {
                    *count += 1;
                }
                Some(_) | None => runs.push((item.position, 1)),
            }
        }
        let read = |(start, count): (u64, u64)| {
            let buffer = self.own_pool.take((count * BLOCK_SIZE) as usize)?;
            Some((start, count, buffer))
        };
        runs.into_iter().map(read).collect()
    }

    pub(super) fn destage_read_done(
        &mut self,
        key: u32,
        (start, count): (u64, u64),
        buffer: &Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let bad = result.expect("a failed log device closes the group");
        let destage = &mut self.destages[key as usize];
        let mut damaged = Vec::new();
        let within =
            |item: &&mut Item| item.checksum.is_some() && (start..start + count).contains(&item.position);
        for item in destage.items.iter_mut().filter(within) {
            let index = (item.position - start) as usize;
            let data = buffer.slice(index * BLOCK_SIZE as usize, BLOCK_SIZE as usize);
            match !bad.contains(index) && Some(crc32c(&data)) == item.checksum {
                true => item.data = Some(data),
                false => damaged.push(item.block),
            }
        }
        destage.outstanding -= 1;
        let (place, is_last) = (destage.place, destage.outstanding == 0);
        let owner = self.members[place.member as usize].owners[place.extent as usize];
        for block in damaged {
            // Its descriptor gets the checksum all the same: what stands at rest is older and must not be served.
            self.note_damage(0, owner.component, owner.part, u16::from(block), out);
        }
        if is_last {
            self.write_destage(key, out);
        }
    }

    fn write_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let place = self.destages[key as usize].place;
        let mut runs: Vec<(u8, u64, Buffers)> = Vec::new();
        for item in &self.destages[key as usize].items {
            let Some(data) = &item.data else { continue };
            match runs.last_mut() {
                Some((block, count, buffers)) if u64::from(*block) + *count == u64::from(item.block) => {
                    *count += 1;
                    if !buffers.last_mut().is_some_and(|last| last.try_join(data)) {
                        buffers.push(data.clone());
                    }
                }
                Some(_) | None => runs.push((item.block, 1, smallvec::smallvec![data.clone()])),
            }
        }
        self.destages[key as usize].outstanding = runs.len() as u32;
        if runs.is_empty() {
            return self.apply_destage(key, out);
        }
        for (block, count, buffers) in runs {
            self.counters.destaged_bytes += count * BLOCK_SIZE;
            let offset =
                self.members[place.member as usize].geometry.block_offset(place.extent, block as usize);
            let io = self.issue(place.member, Purpose::DestageWrite { destage: key });
            out.push(Output::Write {
                io,
                member: place.member,
                offset,
                buffers,
                stable: false,
                gentle: true,
            });
        }
    }

    pub(super) fn destage_write_done(&mut self, key: u32, result: Result<(), ()>, out: &mut Vec<Output>) {
        let destage = &mut self.destages[key as usize];
        destage.outstanding -= 1;
        let (place, is_last) = (destage.place, destage.outstanding == 0);
        if result.is_ok() {
            self.members[place.member as usize].is_unsynced = true;
        }
        if is_last {
            self.apply_destage(key, out);
        }
    }

    /// The data are where they belong: the descriptor learns of them, the index forgets them.
    fn apply_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = &mut self.destages[key as usize];
        let items = std::mem::take(&mut destage.items);
        let (place, dirty_key) = (destage.place, destage.dirty);
        let is_current = self.index.get(dirty_key).generation() == destage.generation
            && self.members[place.member as usize].is_in_service();
        if is_current {
            self.describe(place, dirty_key, &items);
        }
        self.end_destage(key, out);
        if is_current {
            self.free_if_empty(place);
        }
    }

    fn describe(&mut self, place: ExtentPlace, dirty_key: u32, items: &[Item]) {
        let keeps_older = !self.rules.hold(Rule::HideOlderAtRest);
        let member = &mut self.members[place.member as usize];
        let owner = member.owners[place.extent as usize];
        let (page, _) = member.page_of(place.extent);
        member.dirty_pages.insert(page);
        let descriptor = member.descriptor(place.extent).expect("the page of a destaging is pinned");
        let (is_reset, direct) = self.index.take_whole(dirty_key);
        if is_reset {
            *descriptor = Descriptor::FREE;
        }
        (descriptor.component, descriptor.part) = (owner.component, owner.part);
        if let Some(direct) = direct {
            for (block, checksum) in direct.checksums.iter().enumerate() {
                descriptor.set(block, Some(*checksum), direct.id);
            }
        }
        for item in items {
            let is_damaged = item.checksum.is_some() && item.data.is_none();
            if !(keeps_older && is_damaged) {
                descriptor.set(item.block as usize, item.checksum, item.id);
            }
        }
        for item in items {
            self.index.take_block(dirty_key, item.block, item.position);
        }
    }

    fn end_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = self.destages.remove(key as usize);
        let place = destage.place;
        self.destaging.bytes_in_flight -= destage.bytes;
        if destage.is_pinned {
            self.members[place.member as usize].unpin(place.extent);
        }
        let round = self.destaging.round.as_mut().expect("a round lasts until its last extent is done");
        round.active -= 1;
        round.bytes += destage.bytes;
        self.index.end_destage(destage.dirty);
        if self.members[place.member as usize].space.end_writing(place.extent) {
            self.release_extent(place, out);
        }
    }

    /// An extent in which nothing is left is given back.
    fn free_if_empty(&mut self, place: ExtentPlace) {
        use crate::format::batch::Record;
        let member = &mut self.members[place.member as usize];
        let owner = member.owners[place.extent as usize];
        let has_dirty = self.index.key_at(place).is_some();
        let Some(&key) = self.keys.get(&owner.component) else { return };
        let Some(descriptor) = member.descriptor(place.extent) else { return };
        if owner.is_free() || has_dirty || !descriptor.is_empty() {
            return;
        }
        let id = descriptor.write_id();
        if self.exclusive.hold((key, owner.part)) {
            self.scarcity.begin_free();
            self.submit_record(
                None,
                Record::Free {
                    component: owner.component,
                    part: owner.part,
                    place,
                    id,
                    origin: Origin::Copy,
                },
            );
        }
    }

    fn end_round_if_done(&mut self, out: &mut Vec<Output>) {
        let is_done = |round: &Round| round.active == 0 && round.next == round.queue.len();
        if !self.destaging.round.as_ref().is_some_and(is_done) {
            return;
        }
        let round = self.destaging.round.take().expect("just seen");
        let seconds = self.now.since(round.started).as_secs_f64();
        if round.bytes > 0 && seconds > 0.0 {
            self.destaging.pace = round.bytes as f64 / seconds;
        }
        if round.covers_all {
            self.scarcity.settle_trims();
        }
        self.destaging.reached = round.boundary.position;
        self.destaging.finished = Some(round.boundary);
        self.advance_checkpoint(out);
    }
}
