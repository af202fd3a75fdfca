//! Destaging: moving what stands in the log to where it belongs, in the order of the capacity devices' addresses.
//!
//! A round takes the oldest part of the log: all that is older than its boundary, and what lies right beside it. What is
//! younger stays, so that writing it again costs nothing. When a round has ended, a checkpoint makes that part of the
//! log free. How much is in flight follows the fill level; while the log has room it is held back for guests who feel it.

use super::Group;
use super::mapping::raise;
use crate::destage::{Begun, Depth, Due, Item, LogRun, RestRun, Visited, Way, log_runs};
use crate::format::batch::{ExtentLocation, Origin, Record};
use crate::format::page::Descriptor;
use crate::io::Output;
use crate::limits;
use crate::log::BatchStart;
use crate::member::Owner;
use crate::part_map::Placement;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::PageWaiter;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;
use base::units::{BLOCK_SIZE, SECTOR_SIZE};
use smallvec::SmallVec;

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
        self.pages_short.clear();
        for key in self.destaging.take_waiting() {
            self.start_destage(key, out);
        }
        self.feed_round(out);
        self.end_round_if_done(out);
        let may_have_space = self.members.iter().any(|(_, member)| member.space.free_count() > 0);
        if self.scarcity.is_felt() && (may_have_space || !self.scarcity.may_end()) {
            self.retry_starved(out);
        }
        if self.is_destaging_stuck() {
            self.refuse_waiting(out);
        }
    }

    /// Whether destaging, or the list of a component's snapshots, without which no checkpoint begins, waits for pages of a device that has lost extents with
    /// damaged pages, and nothing is in flight that could bring it one. Their space comes free when components are deleted.
    fn is_destaging_stuck(&self) -> bool {
        let is_full = |index: u8| {
            let member = &self.members[index];
            member.lost_extents > 0 && member.space.free_count() == 0 && member.chunk.is_none()
        };
        let has_none = |index: &u8| is_full(*index) && !self.members[*index].pools.wants_checkpoint();
        let lacks_pages = self.destaging.only_waits() && self.pages_short.iter().any(has_none);
        let lacks_list = |index: u8| self.has_lists_due() && self.lists_due_on(index) > 0 && is_full(index);
        let lacks_lists = self.destaging.boundary().is_none() && (0..self.members.len()).any(lacks_list);
        (lacks_pages || lacks_lists)
            && self.requests.is_empty()
            && self.buffer.is_empty()
            && !self.buffer.is_writing()
            && self.checkpoint.is_idle()
            && self.compressing.is_idle()
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
            || (self.backfills.wants_destaging && self.log.head() > tail)
            || ((is_draining || wants_room) && self.log.head() > tail)
            || !self.is_destaged_for_leavers(tail)
            || !self.is_destaged_up_to_awaited(tail);
        if !wants_all && !is_due {
            return;
        }
        let head = self.stable_head();
        let blocks = self.destaging.round_blocks(self.log.blocks(), fill);
        let boundary = match wants_all {
            true => head,
            false => self.log.start_at_or_after(tail + blocks, head),
        };
        let boundary = self.boundary_behind_settled(boundary, head);
        self.index.begin_round(boundary.position);
        let queue = self.due(boundary.position);
        self.destaging.begin_round(boundary, queue, wants_all, self.now);
    }

    /// The extents and parts of which the log has anything older than the boundary, in order.
    pub(super) fn due(&mut self, boundary: u64) -> Vec<Due> {
        let mut queue = Vec::new();
        for index in 0..self.members.len() {
            if !self.members[index].is_in_service() {
                self.index.drop_device(index);
                continue;
            }
            queue.extend(self.index.due(index, boundary).map(Due::Extent));
            let part = |part| Due::Part { member: index, part };
            queue.extend(self.index.due_unplaced(index, boundary).map(part));
        }
        queue
    }

    /// Where the next batch that is not yet stable begins.
    pub(super) fn stable_head(&self) -> BatchStart {
        self.buffer.stable_head(&self.log)
    }

    pub(super) fn feed_round(&mut self, out: &mut Vec<Output>) {
        let depth = match self.destaging.is_urgent() {
            true => Depth::MAX,
            false => Depth::at(self.log.fill_percent()).held(self.fill_permille(), self.shares.destage),
        };
        while let Some(due) = self.destaging.next_due(depth) {
            self.begin_destage(due, out);
        }
    }

    fn begin_destage(&mut self, due: Due, out: &mut Vec<Output>) {
        if !self.members[due.member()].is_in_service() {
            return;
        }
        let dirty = match due {
            Due::Extent(location) => self.index.key_at(location),
            Due::Part { part: (component, part), .. } => {
                self.components.contains(component).then(|| self.index.key_of(component, part)).flatten()
            }
        };
        let is_ready = |key: &u32| self.index.get(*key).has_state() && !self.index.get(*key).is_destaging();
        let Some(dirty) = dirty.filter(is_ready) else { return };
        if let Due::Part { part: (component, part), .. } = due
            && self.components[component].record.is_deleting
        {
            return self.index.drop_unplaced(component, part); // It is void, and needs no space.
        }
        self.index.begin_destage(dirty);
        let key = self.destaging.visit(due, dirty, self.index.get(dirty).generation());
        self.start_destage(key, out);
    }

    /// Begins (or, after waiting for its pages or for memory, begins again) to move the blocks of one visit.
    pub(super) fn start_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = self.destaging.get(key);
        let index = destage.due().member();
        if !self.members[index].is_in_service() || destage.is_stale(&self.index) {
            return self.end_destage(key, out);
        }
        let dirty = destage.dirty();
        let way = self.way_of(dirty);
        if let Some(page) = self.page_for_rollback(dirty, way) {
            return self.need_page(index, page, PageWaiter::Destage(key), out);
        }
        let pages = self.pages_of(dirty, way);
        let member = &mut self.members[index];
        if let Some(&page) = pages.iter().find(|page| !member.table.is_ready(**page)) {
            return self.need_page(index, page, PageWaiter::Destage(key), out);
        }
        let destage = self.destaging.get(key);
        let items = destage.due_items(&self.index, way);
        let wanted = match way {
            Way::InPlace => 0,
            Way::Mapped { keeper, .. } => self.pages_wanted(destage.dirty(), keeper, &items),
        };
        let member = &mut self.members[index];
        if wanted > 0 && member.table.free_page_count() < self.destaging.pages_of_visits(index) + wanted {
            self.pages_short.insert(index);
            return self.destaging.wait(key);
        }
        let missing = items.iter().filter(|item| item.is_missing()).map(|item| item.position);
        let runs = log_runs(missing, self.log.blocks());
        let with_buffer = |run: LogRun| Some((run, self.own_pool.take((run.count * BLOCK_SIZE) as usize)?));
        let Some(reads) = runs.into_iter().map(with_buffer).collect::<Option<Vec<_>>>() else {
            return self.destaging.wait(key);
        };
        pages.iter().for_each(|page| member.table.pin(*page));
        self.destaging.begin(key, Begun { way, pinned: pages, pages: wanted }, items, reads.len());
        if reads.is_empty() {
            return self.write_destage(key, out);
        }
        for (run, buffer) in reads {
            let purpose = Purpose::DestageRead { destage: key, run, buffer: buffer.clone() };
            let request = ReadRequest { offset: self.log_offset(run.position), buffer, gentle: true };
            self.issue_read(0, purpose, request, out);
        }
    }

    /// How the oldest segment of what the log has gets its place. In the part's own extent as long as no snapshot sees what stands there and
    /// would be written over.
    fn way_of(&self, dirty: u32) -> Way {
        let dirty = self.index.get(dirty);
        let (born, _) = dirty.oldest_segment();
        let Some((component, _)) = dirty.part() else { return Way::InPlace };
        let component = &self.components[component];
        // What a deleted component has in an extent may be on its way to be freed with that.
        let is_seen = component.lineage.keeper(born).is_some();
        let is_mapped = is_seen || dirty.must_be_mapped() || self.leaves_for_frames(dirty);
        let stays = component.record.is_deleting || !is_mapped;
        match stays && dirty.location().is_placed() {
            true => Way::InPlace,
            false => Way::Mapped { born, keeper: component.lineage.keeper(born) },
        }
    }

    /// The pages that must be in memory for that.
    fn pages_of(&self, dirty: u32, way: Way) -> SmallVec<[u32; 2]> {
        let dirty = self.index.get(dirty);
        let location = dirty.location();
        let table = &self.members[location.member].table;
        let mut pages = SmallVec::new();
        if location.is_placed() {
            pages.push(table.page_of(location.extent).0);
        }
        if let (Way::Mapped { .. }, Some((component, part))) = (way, dirty.part()) {
            if let Some(Placement::Page(page)) = self.index.placement(component, part) {
                pages.push(page);
            }
            let lineage = &self.components[component].lineage;
            let deltas = lineage.deltas_of(part);
            let needed = if lineage.has_late() { deltas } else { &deltas[deltas.len().saturating_sub(1)..] };
            pages.extend(needed.iter().map(|one| one.page));
        }
        pages
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
        let owner = self.owner_of(self.destaging.get(key).dirty());
        for block in damaged.into_iter().filter(|_| !owner.is_free()) {
            // Its descriptor gets the checksum all the same: what stands at rest is older and must not be served.
            self.note_damage(0, (owner.component, owner.part, u16::from(block)), 0, out);
        }
        if is_last {
            self.write_destage(key, out);
        }
    }

    /// The component and part of what the log has.
    pub(super) fn owner_of(&self, dirty: u32) -> Owner {
        let dirty = self.index.get(dirty);
        let location = dirty.location();
        match dirty.part() {
            Some((component, part)) => Owner { component: self.components[component].record.id, part },
            None if location.is_placed() => self.members[location.member].owners[location.extent as usize],
            None => Owner::default(),
        }
    }

    /// All data are read: they get their places and are written there.
    pub(super) fn write_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = self.destaging.get(key);
        if destage.is_stale(&self.index) {
            return self.end_destage(key, out);
        }
        let (index, way) = (destage.due().member(), destage.way());
        let location = self.index.get(destage.dirty()).location();
        match way {
            Way::InPlace => {
                let geometry = self.members[index].geometry;
                for item in self.destaging.items_mut(key) {
                    item.unit = geometry.block_offset(location.extent, usize::from(item.block)) / SECTOR_SIZE;
                }
            }
            Way::Mapped { .. } if self.compress_visit(key, out) => return,
            Way::Mapped { .. } => self.place_items(key, out),
        }
        let runs = self.destaging.begin_writes(key);
        if runs.is_empty() {
            return self.apply_destage(key, out);
        }
        for RestRun { unit, count, buffers } in runs {
            self.counters.destaged_bytes += count * BLOCK_SIZE;
            let (member, offset) = (index, unit * SECTOR_SIZE);
            let io = self.issue(member, Purpose::DestageWrite { destage: key });
            out.push(Output::Write { io, member, offset, buffers, stable: false, gentle: true });
        }
    }

    pub(super) fn destage_write_done(&mut self, key: u32, result: Result<(), ()>, out: &mut Vec<Output>) {
        let index = self.destaging.get(key).due().member();
        if result.is_ok() {
            self.members[index].is_unsynced = true;
        }
        if self.destaging.write_done(key) {
            self.apply_destage(key, out);
        }
    }

    /// The data are where they belong: the descriptor or the map page learns of them, the index forgets them.
    fn apply_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let items = self.destaging.take_items(key);
        let destage = self.destaging.get(key);
        let (due, dirty, way, boundary) = (destage.due(), destage.dirty(), destage.way(), destage.boundary());
        let is_current = !destage.is_stale(&self.index) && self.members[due.member()].is_in_service();
        let is_deleted = |(key, _): (u32, u32)| self.components[key].record.is_deleting;
        let is_void = way != Way::InPlace && self.index.get(dirty).part().is_some_and(is_deleted);
        let is_current = is_current && !is_void;
        match way {
            Way::InPlace if is_current => self.describe(self.index.get(dirty).location(), dirty, &items),
            Way::Mapped { born, keeper } if is_current => {
                self.map_destaged(dirty, (born, keeper, boundary), &items);
            }
            Way::Mapped { .. } => self.give_frames_back(due.member(), items.iter()),
            Way::InPlace => {}
        }
        let part = self.index.get(dirty).part();
        self.end_destage(key, out);
        match (way, due, part) {
            _ if !is_current => {}
            (Way::InPlace, Due::Extent(location), _) => self.free_if_empty(location),
            (Way::Mapped { .. }, _, Some((component, part))) => self.drop_map_if_empty(component, part),
            (Way::InPlace | Way::Mapped { .. }, _, _) => {}
        }
    }

    /// Frames in which blocks were to stand that nobody needs any more.
    pub(super) fn give_frames_back<'a>(&mut self, index: u8, items: impl Iterator<Item = &'a Item>) {
        let member = &mut self.members[index];
        for item in items.filter(|item| item.unit > 0) {
            let slot = member.slot_at(item.unit, item.form.units).expect("it was a frame");
            member.pools.free(slot);
        }
    }

    fn describe(&mut self, location: ExtentLocation, dirty_key: u32, items: &[Item]) {
        let keeps_older = !self.rules.hold(Rule::HideOlderAtRest);
        let member = &mut self.members[location.member];
        let owner = member.owners[location.extent as usize];
        let (page, _) = member.table.page_of(location.extent);
        member.table.mark_dirty(page);
        let descriptor = member.table.descriptor(location.extent).expect("the page of a destaging is pinned");
        let (reset, direct, raised) = self.index.take_whole(dirty_key);
        if reset.is_some() {
            *descriptor = Descriptor::FREE;
        }
        (descriptor.component, descriptor.part) = (owner.component, owner.part);
        if let Some(direct) = direct {
            for (block, checksum) in direct.checksums.iter().enumerate() {
                descriptor.set(block, Some(*checksum), direct.id);
            }
        }
        raise(&mut descriptor.regions, &raised);
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

    pub(super) fn end_destage(&mut self, key: u32, out: &mut Vec<Output>) {
        let Visited { due, dirty, pinned, was_begun, spare } = self.destaging.end(key);
        let index = due.member();
        self.members[index].pools.visit_ended(spare);
        pinned.iter().for_each(|page| self.members[index].table.unpin(*page));
        // By this visit it may have left its extent.
        let part = self.index.get(dirty).part();
        self.index.end_destage(dirty);
        if let Due::Extent(location) = due
            && self.members[index].space.end_writing(location.extent)
        {
            self.release_extent(location, out);
        }
        if was_begun {
            self.visit_next_segment(index, part);
        }
    }

    /// What came behind a snapshot is destaged after what came before it.
    fn visit_next_segment(&mut self, member: u8, part: Option<(u32, u32)>) {
        let is_there = |(component, _): &(u32, u32)| self.components.contains(*component);
        let Some((component, part)) = part.filter(is_there) else { return };
        let Some(boundary) = self.destaging.boundary() else { return };
        let Some(dirty) = self.index.of(component, part) else { return };
        // A part in an extent of its own has segments, too, where a snapshot is being deleted.
        if dirty.is_due(boundary) && !dirty.is_destaging() {
            self.destaging.visit_again(match dirty.location() {
                location if location.is_placed() => Due::Extent(location),
                _ => Due::Part { member, part: (component, part) },
            });
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
