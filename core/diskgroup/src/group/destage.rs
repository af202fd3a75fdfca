//! Destaging: moving what stands in the log to where it belongs, in the order of the capacity devices' addresses.
//!
//! A round takes the oldest part of the log: all that is older than its boundary, and what lies right beside it. What is
//! younger stays, so that writing it again costs nothing. When a round has ended, a checkpoint makes that part of the
//! log free. How much is in flight follows the fill level; while the log has room it is held back for guests who feel it.

use super::Group;
use crate::destage::{Depth, Item, LogRun, RestRun, Visited, log_runs};
use crate::format::batch::{ExtentLocation, Origin, Record};
use crate::format::page::Descriptor;
use crate::index::Raised;
use crate::io::Output;
use crate::limits;
use crate::log::BatchStart;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::PageWaiter;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;
use base::units::BLOCK_SIZE;

impl Group {
    /// Asks for everything in the log to be destaged, as before a clean stop. [`Group::is_drained`] tells when it is.
    pub fn drain(&mut self) {
        self.destaging.drain();
    }

    /// Whether nothing is left in the log that a restart would have to read, but what layers hold.
    pub fn is_drained(&self) -> bool {
        let is_empty = self.log.used_blocks() == 0 || self.has_only_held();
        is_empty && self.is_idle() && self.checkpoint.is_idle()
    }

    /// Whether all that the log has is held, and of that something is.
    fn has_only_held(&self) -> bool {
        !self.held.is_empty() && self.index.is_empty()
    }

    pub(super) fn advance_destaging(&mut self, out: &mut Vec<Output>) {
        if self.destaging.may_begin_round() {
            self.begin_round();
        }
        for key in self.destaging.take_waiting() {
            self.start_destage(key, out);
        }
        self.feed_round(out);
        self.end_round_if_done(out);
        let may_have_space = self.members.iter().any(|(_, member)| member.space.free_count() > 0);
        if self.scarcity.is_felt() && (may_have_space || !self.scarcity.may_end()) {
            self.retry_starved(out);
        }
    }

    /// Where the part of the log begins that no round has taken.
    pub(super) fn round_start(&self) -> u64 {
        self.log.tail().max(self.destaging.reached())
    }

    fn begin_round(&mut self) {
        let tail = self.round_start();
        // What is held stays in the log, wherever it stands.
        let others = (self.log.head() - tail).saturating_sub(self.held.count() as u64);
        let in_log = others * 100 / self.log.blocks();
        let fill = in_log.max(self.index.fill(self.log.blocks(), 100));
        let is_due = fill >= limits::DESTAGE_START_PERCENT;
        // A tail that stays because its move would gain too little: who waits for room has the rest destaged, which gains more. A write
        // that is held may also wait where the log is not full enough for a round: it needs room for what it holds, in one piece.
        let may_gain = self.destaging.is_held() || !self.held.is_empty() || self.buffer.waits_to_hold();
        let wants_room = may_gain && self.waits_for_log();
        let is_draining = self.destaging.is_draining() && !self.has_only_held();
        let wants_all = self.scarcity.wants_destaging()
            || ((is_draining || wants_room) && self.log.head() > tail)
            || !self.is_destaged_for_leavers(tail);
        if !wants_all && !is_due {
            return;
        }
        let head = self.stable_head();
        let blocks = self.destaging.round_blocks(self.log.blocks(), fill);
        let boundary = match wants_all {
            true => head,
            false => self.log.start_at_or_after(tail + blocks, head),
        };
        let queue = self.due_extents(boundary.position);
        self.destaging.begin_round(boundary, queue, wants_all, self.now);
    }

    /// The extents of which the log has anything older than the boundary, in order.
    pub(super) fn due_extents(&mut self, boundary: u64) -> Vec<ExtentLocation> {
        let mut queue = Vec::new();
        for index in 0..self.members.len() {
            if !self.members[index].is_in_service() {
                self.index.drop_device(index);
                continue;
            }
            queue.extend(self.index.due(index, boundary));
        }
        queue
    }

    /// Where the next batch that is not yet stable begins.
    pub(super) fn stable_head(&self) -> BatchStart {
        self.buffer.stable_head(&self.log)
    }

    fn feed_round(&mut self, out: &mut Vec<Output>) {
        let depth = match self.destaging.is_urgent() {
            true => Depth::MAX,
            false => Depth::at(self.log.fill_percent()).held(self.fill_permille(), self.shares.destage),
        };
        while let Some(location) = self.destaging.next_location(depth) {
            self.begin_destage(location, out);
        }
    }

    fn begin_destage(&mut self, location: ExtentLocation, out: &mut Vec<Output>) {
        if !self.members[location.member].is_in_service() {
            return;
        }
        let Some(dirty) = self.index.key_at(location).filter(|&key| self.index.get(key).has_state()) else {
            return;
        };
        self.index.begin_destage(dirty);
        let key = self.destaging.visit(location, dirty, self.index.get(dirty).generation());
        self.start_destage(key, out);
    }

    /// Begins (or, after waiting for its page or for memory, begins again) to move one extent.
    pub(super) fn start_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = self.destaging.get(key);
        let location = destage.location();
        let member = &mut self.members[location.member];
        if !member.is_in_service() || destage.is_stale(&self.index) {
            return self.end_destage(key, out);
        }
        if member.table.descriptor(location.extent).is_none() {
            let (page, _) = member.table.page_of(location.extent);
            return self.need_page(location.member, page, PageWaiter::Destage(key), out);
        }
        let items = destage.due_items(&self.index);
        let missing = items.iter().filter(|item| item.is_missing()).map(|item| item.position);
        let runs = log_runs(missing, self.log.blocks());
        let with_buffer = |run: LogRun| Some((run, self.own_pool.take((run.count * BLOCK_SIZE) as usize)?));
        let Some(reads) = runs.into_iter().map(with_buffer).collect::<Option<Vec<_>>>() else {
            return self.destaging.wait(key);
        };
        member.table.pin(location.extent);
        self.destaging.begin(key, items, reads.len());
        if reads.is_empty() {
            return self.write_destage(key, out);
        }
        for (run, buffer) in reads {
            let purpose = Purpose::DestageRead { destage: key, run, buffer: buffer.clone() };
            let request = ReadRequest { offset: self.log_offset(run.position), buffer, gentle: true };
            self.issue_read(0, purpose, request, out);
        }
    }

    pub(super) fn destage_read_done(
        &mut self,
        key: u32,
        run: LogRun,
        buffer: &Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let bad = result.expect("a failed log device closes the group");
        let (damaged, is_last) = self.destaging.read_done(key, run, buffer, &bad);
        let location = self.destaging.get(key).location();
        let owner = self.members[location.member].owners[location.extent as usize];
        for block in damaged {
            // Its descriptor gets the checksum all the same: what stands at rest is older and must not be served.
            self.note_damage(0, owner.component, owner.part, u16::from(block), out);
        }
        if is_last {
            self.write_destage(key, out);
        }
    }

    fn write_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let ExtentLocation { member, extent } = self.destaging.get(key).location();
        let runs = self.destaging.begin_writes(key);
        if runs.is_empty() {
            return self.apply_destage(key, out);
        }
        for RestRun { block, count, buffers } in runs {
            self.counters.destaged_bytes += count * BLOCK_SIZE;
            let offset = self.members[member].geometry.block_offset(extent, block as usize);
            let io = self.issue(member, Purpose::DestageWrite { destage: key });
            out.push(Output::Write { io, member, offset, buffers, stable: false, gentle: true });
        }
    }

    pub(super) fn destage_write_done(&mut self, key: u32, result: Result<(), ()>, out: &mut Vec<Output>) {
        let location = self.destaging.get(key).location();
        if result.is_ok() {
            self.members[location.member].is_unsynced = true;
        }
        if self.destaging.write_done(key) {
            self.apply_destage(key, out);
        }
    }

    /// The data are where they belong: the descriptor learns of them, the index forgets them.
    fn apply_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let items = self.destaging.take_items(key);
        let destage = self.destaging.get(key);
        let (location, dirty) = (destage.location(), destage.dirty());
        let is_current = !destage.is_stale(&self.index) && self.members[location.member].is_in_service();
        if is_current {
            self.describe(location, dirty, &items);
        }
        self.end_destage(key, out);
        if is_current {
            self.free_if_empty(location);
        }
    }

    fn describe(&mut self, location: ExtentLocation, dirty_key: u32, items: &[Item]) {
        let keeps_older = !self.rules.hold(Rule::HideOlderAtRest);
        let member = &mut self.members[location.member];
        let owner = member.owners[location.extent as usize];
        let (page, _) = member.table.page_of(location.extent);
        member.table.mark_dirty(page);
        let descriptor = member.table.descriptor(location.extent).expect("the page of a destaging is pinned");
        let (is_reset, direct, raised) = self.index.take_whole(dirty_key);
        if is_reset {
            *descriptor = Descriptor::FREE;
        }
        (descriptor.component, descriptor.part) = (owner.component, owner.part);
        if let Some(direct) = direct {
            for (block, checksum) in direct.checksums.iter().enumerate() {
                descriptor.set(block, Some(*checksum), direct.id);
            }
        }
        for Raised { region, id, .. } in raised {
            let version = &mut descriptor.regions[usize::from(region)];
            *version = id.max(*version);
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
        let Visited { location, dirty, is_pinned } = self.destaging.end(key);
        if is_pinned {
            self.members[location.member].table.unpin(location.extent);
        }
        self.index.end_destage(dirty);
        if self.members[location.member].space.end_writing(location.extent) {
            self.release_extent(location, out);
        }
    }

    /// An extent in which nothing is left is given back.
    fn free_if_empty(&mut self, location: ExtentLocation) {
        let member = &mut self.members[location.member];
        let owner = member.owners[location.extent as usize];
        let has_dirty = self.index.key_at(location).is_some();
        let Some(key) = self.components.key_of(owner.component) else { return };
        let Some(descriptor) = member.table.descriptor(location.extent) else { return };
        let is_promised = self.held.touches(key, owner.part) && self.rules.hold(Rule::KeepPromisedSpace);
        if owner.is_free() || has_dirty || is_promised || !descriptor.is_empty() {
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
                    location,
                    id,
                    origin: Origin::Copy,
                },
            );
        }
    }

    fn end_round_if_done(&mut self, out: &mut Vec<Output>) {
        let Some(boundary) = self.destaging.visited() else { return };
        let Some(boundary) = self.finish_sweep(boundary, out) else { return };
        if self.destaging.end_round(boundary, self.now) {
            self.scarcity.settle_trims();
        }
        self.advance_checkpoint(out);
    }
}
