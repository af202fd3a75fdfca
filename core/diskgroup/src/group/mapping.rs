//! Mapped parts: what is written to them gets its place when it is destaged, and what it replaces stays for the snapshots that
//! see it (docs/design/0044).

use super::hold_mapped::Promise;
use super::{Group, Phase};
use crate::checkpoint::DeletionCheckpoint;
use crate::component::Component;
use crate::destage::Item;
use crate::format::batch::{ExtentLocation, Record};
use crate::format::map::{DeltaPage, Entry, MapPage};
use crate::format::page::Descriptor;
use crate::held::HeldPart;
use crate::index::{Dirty, Raised};
use crate::io::{LayerRanges, Output};
use crate::part_map::Placement;
use crate::pools::{Frame, Slot};
use crate::rules::Rule;
use crate::table::Content;
use crate::work::{Change, Work};
use base::request::Buffers;
use base::units::{BLOCKS_PER_EXTENT, BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{ComponentId, WriteId};
use smallvec::SmallVec;
use std::ops::Range;

/// Pages that a change may add to what is promised to its part: a map page, and a delta page for each of two segments.
const PAGES_PER_CHANGE: u64 = 3;

impl Group {
    /// Whether a write or trim of a part gets its place when it is destaged.
    pub(super) fn is_unplaced(&self, component: u32, part: u32) -> bool {
        self.components[component].lineage.has_living()
            || self.is_mapped(component, part)
            || self.is_to_be_compressed(component, part)
    }

    /// Whether a part has a map page, or had or may get one by what the log has of it, or by what layers hold of it.
    pub(super) fn is_mapped(&self, component: u32, part: u32) -> bool {
        self.index.page_of(component, part).is_some()
            || self.held.of(component, part).is_some_and(HeldPart::has_unplaced)
            || self.index.of(component, part).is_some_and(Dirty::is_mapped)
            || self.unmapped.contains((component, part))
    }

    /// Whether a part has a place, or the log has anything of it.
    pub(super) fn has_content(&self, component: u32, part: u32) -> bool {
        self.index.placement(component, part).is_some() || self.index.of(component, part).is_some()
    }

    /// The first of some parts that has a place, or of which the log has anything.
    pub(super) fn first_with_content(&self, component: u32, parts: Range<u32>) -> Option<u32> {
        let placed = self.index.first_placed(component, parts.clone()).map(|(part, _)| part);
        let member = self.components[component].member;
        let unplaced = self.index.first_unplaced(member, component, parts.clone());
        let held = self.held.first_of(component, parts);
        placed.into_iter().chain(unplaced).chain(held).min()
    }

    /// Whether a map page has all that a record at that position of the log says of a part: recovery passes such a record over.
    pub(super) fn is_contained(&self, component: ComponentId, part: u32, position: u64) -> bool {
        match &self.phase {
            Phase::Opening(recovery) => {
                recovery.through(component, part).is_some_and(|through| position < through)
            }
            Phase::Open | Phase::Failed => false,
        }
    }

    /// Frames and pages of a device that are promised to what the log has of mapped parts, and to what layers hold.
    pub(crate) fn promised(&self, index: u8) -> (u64, u64) {
        let ((frames, pages), held) = (self.index.promised(index), self.held.promised(index));
        match self.rules.hold(Rule::PromiseHeldFrames) {
            true => (frames + held.0, pages + held.1),
            false => (frames, pages),
        }
    }

    /// Tells the space of a device how many extents promises of frames and pages may need.
    pub(super) fn refresh_space(&mut self, index: u8) {
        let (frames, pages) = self.promised(index);
        let lists = self.lists_due_on(index);
        let member = &mut self.members[index];
        let wanted = member.pools.extents_wanted((frames, pages + lists), member.pages_had());
        member.space.set_spoken_for(wanted);
    }

    /// Whether the frames that are promised are free, or there are extents for them. Where pages are lost, that may not be.
    pub(super) fn keeps_promises(&self) -> bool {
        self.members.iter().filter(|(_, member)| member.is_in_service()).all(|(index, member)| {
            let (frames, _) = self.promised(index);
            let wanted = member.pools.extents_wanted((frames, 0), 0);
            member.lost_extents > 0 || wanted <= member.space.free_count()
        })
    }

    /// Whether frames for so many blocks of a part, and pages that it may need, can be promised.
    pub(super) fn may_promise(&mut self, component: u32, part: u32, frames: u64) -> bool {
        let index = self.components[component].member;
        let is_there = self.has_content(component, part);
        if self.members[index].lost_extents > 0 && !is_there {
            return false; // A lost extent or page may be the one that tells of this very part.
        }
        let pages = PAGES_PER_CHANGE + self.lists_due_on(index);
        let set_aside = u64::from(self.components[component].reserved_extents());
        self.has_space_for(index, (frames, pages), set_aside)
    }

    /// Whether so many frames and pages are there beside those that are promised, or extents for them; so many extents that are set aside may be used.
    pub(super) fn has_space_for(&mut self, index: u8, (frames, pages): (u64, u64), set_aside: u64) -> bool {
        self.refresh_space(index);
        let (now_frames, now_pages) = self.promised(index);
        let member = &self.members[index];
        let needed = (now_frames + frames, now_pages + pages);
        let wanted = member.pools.extents_wanted(needed, member.pages_had());
        let more = u64::from(wanted.saturating_sub(member.space.spoken_for()));
        member.space.covers(wanted) && (more == 0 || member.space.unreserved() + set_aside >= more)
    }

    pub(super) fn accept_unplaced_write(
        &mut self,
        change: Change,
        data: Buffers,
        (checksums, ends): (SmallVec<[u32; 2]>, LayerRanges),
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Change { op, component, part, block, id, origin, .. } = change;
        let blocks = checksums.len();
        if !self.has_room_for_records(1 + ends.len(), blocks as u64, blocks as u64) {
            return Some(Work::Write { change, data, checksums, ends });
        }
        match self.promise_over(&change, block..block + blocks as u16, &ends) {
            Promise::Had => {}
            Promise::Waits => return Some(Work::Write { change, data, checksums, ends }),
            Promise::Lacks => {
                self.starve(Work::Write { change, data, checksums, ends }, out);
                return None;
            }
        }
        self.push_ends((component, part), &ends, out);
        let location = ExtentLocation::unplaced(self.components[component].member);
        self.index.accept((component, part), location, blocks as u32);
        let component = self.components[component].record.id;
        let record = Record::Write { component, part, location, block: block as u8, id, origin, checksums };
        self.buffer.push(record, Some(op), data);
        None
    }

    pub(super) fn accept_unplaced_trim(
        &mut self,
        change: Change,
        count: u16,
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Change { op, component: key, part, block, id, origin, .. } = change;
        if !self.has_guest_room(u64::from(count)) {
            return Some(Work::Trim { change, count });
        }
        if !self.may_promise(key, part, 0) {
            self.starve(Work::Trim { change, count }, out);
            return None;
        }
        let location = ExtentLocation::unplaced(self.components[key].member);
        self.index.accept((key, part), location, 0);
        let (component, count_less_one) = (self.components[key].record.id, (count - 1) as u8);
        let record =
            Record::Trim { component, part, location, block: block as u8, count_less_one, id, origin };
        self.buffer.push(record, Some(op), Buffers::new());
        None
    }

    /// Pages that a visit takes which gives these blocks their places, where that snapshot may see what they replace: a map page if the part has none, and
    /// a delta page if the last one has no room for what is kept. The pages that tell are in memory.
    pub(super) fn pages_wanted(&self, dirty: u32, keeper: Option<u32>, items: &[Item]) -> u32 {
        let Some((key, part)) = self.index.get(dirty).part() else { return 0 };
        let component = &self.components[key];
        let table = &self.members[component.member].table;
        let page = self.index.page_of(key, part);
        let map = page.map(|page| table.peek_map(page).expect("it is in memory"));
        let Some(keeper) = keeper else { return u32::from(page.is_none()) };
        let is_late = component.lineage.has_late();
        let is_kept = |item: &&Item| {
            is_late || map.is_none_or(|map| map.entries[usize::from(item.block)].born < keeper)
        };
        let kept = items.iter().filter(is_kept).count();
        let last = component.lineage.deltas_of(part).last();
        let room = last.map_or(0, |last| table.peek_delta(last.page).expect("it is in memory").room());
        u32::from(page.is_none()) + u32::from(kept > room)
    }

    /// Takes frames for so many blocks, side by side as far as there are any. Where pages are lost, and the device is full, there may be fewer.
    pub(super) fn take_frames(&mut self, index: u8, count: usize) -> Vec<Frame> {
        let member = &mut self.members[index];
        let mut frames = Vec::with_capacity(count);
        while frames.len() < count {
            let wanted = (count - frames.len()).min(BLOCKS_PER_EXTENT) as u16;
            let Some(run) = member.pools.take(wanted) else {
                let Some(extent) = member.space.take() else {
                    assert!(member.lost_extents > 0, "frames were promised when the blocks were accepted");
                    break; // What pages told that are lost may come from the log once more, which nobody was promised.
                };
                member.pools.add(extent);
                continue;
            };
            let of_run = (0..run.count).map(|at| Frame { block: run.first.block + at as u8, ..run.first });
            frames.extend(of_run);
        }
        frames
    }

    /// An entry of a component is not seen any more.
    pub(super) fn free_entry(&mut self, key: u32, entry: Entry) {
        let component = &mut self.components[key];
        component.packed.remove(entry);
        let index = component.member;
        self.free_slot(index, entry);
    }

    /// What an entry tells of is not needed, and no page tells it any more.
    pub(super) fn free_slot(&mut self, index: u8, entry: Entry) {
        let member = &mut self.members[index];
        let Some(slot) = member.slot_of(entry) else { return };
        match self.rules.hold(Rule::FreeLate) {
            true => member.pools.free(slot),
            false => member.pools.free_early(slot),
        }
    }

    /// A checkpoint has ended: frames that its pages do not name are free, and pools without any other are extents again.
    pub(super) fn release_frames(&mut self) {
        self.unmapped.checkpoint_ended();
        for index in 0..self.members.len() {
            self.members[index].pools.checkpoint_ended();
            self.dissolve_pools(index);
        }
        self.forget_promotions();
        self.deletion_checkpoint = match self.deletion_checkpoint {
            DeletionCheckpoint::Begun => DeletionCheckpoint::Done,
            other => other,
        };
    }

    /// Pools with nothing in them are extents again, but those whose frames are promised. A record tells: the log may still say whose such an
    /// extent was before it was a pool, and that must not count for whoever has it next.
    pub(super) fn dissolve_pools(&mut self, index: u8) {
        let (promised, _) = self.promised(index);
        for extent in self.members[index].pools.dissolve(promised) {
            self.scarcity.begin_free();
            self.submit_record(None, Record::PoolGone { location: ExtentLocation { member: index, extent } });
        }
    }

    /// Whether work waits for frames that a checkpoint would free, or a deletion for its pages to be empty on the device.
    pub(super) fn mapped_parts_want_checkpoint(&self) -> bool {
        let frees = || self.members.iter().any(|(_, member)| member.pools.wants_checkpoint());
        let is_short = self.scarcity.is_felt() || self.backfills.waits_for_frames;
        self.deletion_checkpoint == DeletionCheckpoint::Wanted || (is_short && frees())
    }

    /// Blocks of a mapped part, or of one that becomes mapped by this, are in their frames: its map page learns of them.
    pub(super) fn map_destaged(
        &mut self,
        dirty_key: u32,
        (born, keeper, boundary): (u32, Option<u32>, u64),
        items: &[Item],
    ) {
        let dirty = self.index.get(dirty_key);
        let (key, part) = dirty.part().expect("only parts are mapped");
        let index = self.components[key].member;
        let page = self.page_for(key, part, Some(dirty_key));
        let mut map = self.members[index].table.map(page).expect("its page is pinned").clone();
        // It may have been deleted since.
        let keeper = keeper.and_then(|keeper| self.components[key].lineage.keeper(keeper));
        let keeper = keeper.filter(|_| self.rules.hold(Rule::KeepReplaced));
        let late = keeper.and_then(|keeper| self.seen_by_late(key, part, keeper));
        let mut kept: Vec<(u8, Entry)> = Vec::new();
        let dirty = self.index.get(dirty_key);
        // What was written again meanwhile, or undone, is not needed.
        let (items, void): (Vec<&Item>, Vec<&Item>) =
            items.iter().partition(|item| dirty.has_at(item.block, item.position));
        self.give_frames_back(index, void.into_iter());
        for item in &items {
            let entry = match (item.checksum, item.is_damaged()) {
                (None, _) => Entry::hole(born),
                (Some(_), true) => Entry::LOST.born(born),
                (Some(checksum), false) => item.form.entry_at(item.unit, checksum).born(born),
            };
            let old = std::mem::replace(&mut map.entries[usize::from(item.block)], entry);
            let region = &mut map.regions[usize::from(item.block) / BLOCKS_PER_REGION];
            *region = item.id.max(*region);
            match keeper {
                _ if old.is_hole() && entry.is_hole() => map.entries[usize::from(item.block)] = old,
                Some(keeper) if late.map_or(old.born < keeper, |seen| seen[usize::from(item.block)]) => {
                    kept.push((item.block, old));
                }
                Some(_) | None => self.free_entry(key, old),
            }
            self.components[key].packed.add(entry);
        }
        if let Some(keeper) = keeper {
            self.keep_entries((key, part), keeper, &kept);
        }
        for item in &items {
            self.index.take_block(dirty_key, item.block, item.position);
        }
        let (_, _, raised) = self.index.take_whole(dirty_key);
        raise(&mut map.regions, &raised);
        let oldest = self.index.get(dirty_key).oldest_due();
        let through = oldest.map_or(boundary, |oldest| self.log.start_of(oldest).position.min(boundary));
        // A version that was raised by an older record may be all that there was to settle: the page keeps what it has of later ones.
        map.through = map.through.max(through);
        let lineage = &self.components[key].lineage;
        if let Some(rollback) = lineage.rollback().filter(|_| !lineage.is_due(part)) {
            map.rolled_back = rollback.position;
        }
        self.members[index].table.replace(page, Content::Map(Box::new(map)));
    }

    /// Of a late snapshot: the blocks of a part of which it sees what is live, those that neither it nor a later one has for itself. Numbers do not tell: it may have got
    /// what a later one had that was deleted, and a start counts what was written between that one and itself as older than both. Of any other snapshot they tell.
    fn seen_by_late(&self, key: u32, part: u32, keeper: u32) -> Option<[bool; BLOCKS_PER_EXTENT]> {
        let component = &self.components[key];
        let mut pages = component.lineage.seen_by(part, keeper);
        let table = &self.members[component.member].table;
        let mut seen = component.lineage.is_late(keeper).then_some([true; BLOCKS_PER_EXTENT])?;
        pages.try_for_each(|page| {
            // One that came since the visit began, which pinned no page for it, may not be in memory: then numbers have to do.
            let delta = table.peek_delta(page)?;
            let own = delta.groups.iter().filter(|group| group.snapshot >= keeper);
            own.flat_map(|group| &group.entries).for_each(|(block, _)| seen[usize::from(*block)] = false);
            Some(())
        })?;
        Some(seen)
    }

    /// The map page of a part, made if there is none: of nothing, or from the descriptor of its extent, which is a pool from now on, and what the log has
    /// of the part, if that has anything.
    pub(super) fn page_for(&mut self, key: u32, part: u32, dirty_key: Option<u32>) -> u32 {
        let component = &self.components[key];
        let (index, id) = (component.member, component.record.id);
        let map = match self.index.placement(key, part) {
            Some(Placement::Page(page)) => return page,
            Some(Placement::Extent(extent)) => {
                let map = self.map_of_extent(key, part, (index, extent), dirty_key);
                match dirty_key {
                    Some(_) => map,
                    // The log has nothing of the part that is not at rest.
                    None => MapPage { through: self.stable_head().position, ..map },
                }
            }
            None => {
                self.with_reservation(key, Component::take_extent);
                match self.members[index].lost_extents {
                    0 => MapPage::empty(id, part),
                    // A lost extent or page may be the one that tells of this very part.
                    _ => MapPage::lost(id, part),
                }
            }
        };
        let table = &mut self.members[index].table;
        let page =
            table.take_page(Content::Map(Box::new(map))).expect("pages were had before blocks were written");
        table.name(page, (id, part));
        self.unmapped.note((key, part));
        self.components[key].had_pages = true;
        self.index.set_page((key, part), index, page);
        page
    }

    /// The map of a part as it stands in an extent of its own. The extent is a pool from now on.
    fn map_of_extent(
        &mut self,
        key: u32,
        part: u32,
        (index, extent): (u8, u32),
        dirty_key: Option<u32>,
    ) -> MapPage {
        let id = self.components[key].record.id;
        let whole = dirty_key.map(|dirty_key| self.index.take_whole(dirty_key));
        let (reset, direct, raised) = whole.unwrap_or_default();
        // They may stand behind the boundary of the round. A start that put them in force again would make the page void.
        let whole_at = reset.max(direct.as_ref().map(|direct| direct.position));
        let member = &mut self.members[index];
        let (page, _) = member.table.page_of(extent);
        member.table.mark_dirty(page);
        let descriptor = member.table.descriptor(extent).expect("its page is pinned");
        let mut found = std::mem::replace(descriptor, Descriptor::FREE);
        if reset.is_some() {
            found = Descriptor::FREE;
        }
        if let Some(direct) = direct {
            (0..BLOCKS_PER_EXTENT)
                .for_each(|block| found.set(block, Some(direct.checksums[block]), direct.id));
        }
        raise(&mut found.regions, &raised);
        member.owners[extent as usize] = crate::member::Owner::default();
        member.pools.add(extent);
        let through = whole_at.map_or(0, |position| position + 1);
        let mut map = MapPage { regions: found.regions, through, ..MapPage::empty(id, part) };
        for block in 0..BLOCKS_PER_EXTENT {
            let frame = Frame { extent, block: block as u8 };
            member.pools.occupy(Slot::whole(frame));
            match found.is_allocated(block) {
                true => map.entries[block] = Entry::plain(member.unit_of(frame), found.checksums[block], 0),
                false => member.pools.free(Slot::whole(frame)),
            }
        }
        map
    }

    /// Entries that the live disk does not have any more go to the delta of a snapshot.
    fn keep_entries(&mut self, (key, part): (u32, u32), snapshot: u32, entries: &[(u8, Entry)]) {
        let component = &mut self.components[key];
        let (index, id) = (component.member, component.record.id);
        component.lineage.count(snapshot, entries.len() as i64);
        let mut page = component.lineage.deltas_of(part).last().map(|one| one.page);
        let mut void: Vec<Entry> = Vec::new();
        let mut entries = entries.iter().peekable();
        while entries.peek().is_some() {
            let table = &mut self.members[index].table;
            let mut delta = match page {
                Some(page) => table.delta(page).expect("its page is pinned").clone(),
                None => DeltaPage::empty(id, part),
            };
            while let Some((block, entry)) = entries.peek() {
                if delta.find(snapshot, *block) == Some(Entry::LOST_PAGE) {
                    void.push(*entry);
                    entries.next();
                    continue;
                }
                if !delta.put(snapshot, *block, *entry) {
                    break;
                }
                entries.next();
            }
            let content = Content::Delta(Box::new(delta.clone()));
            let number = match page {
                Some(page) => {
                    table.replace(page, content);
                    page
                }
                None => {
                    let page = table.take_page(content).expect("pages were had before blocks were written");
                    table.name(page, (id, part));
                    page
                }
            };
            self.components[key].lineage.note_delta(number, &delta);
            page = None;
        }
        void.into_iter().for_each(|entry| self.free_entry(key, entry));
    }

    /// A mapped part of which nothing is left, for the live disk or any snapshot, needs no page.
    pub(super) fn drop_map_if_empty(&mut self, key: u32, part: u32) {
        let index = self.components[key].member;
        let Some(page) = self.index.page_of(key, part) else { return };
        let has_deltas = !self.components[key].lineage.deltas_of(part).is_empty();
        let is_used = has_deltas
            || self.index.of(key, part).is_some()
            || self.held.touches(key, part)
            || self.promotions.contains_key(&(key, part));
        let member = &mut self.members[index];
        let Some(map) = member.table.peek_map(page).filter(|_| !is_used) else { return };
        if !map.entries.iter().all(|entry| entry.is_hole()) {
            return;
        }
        let id = map.write_id();
        member.table.give_page_back(page);
        self.index.drop_page(key, part);
        self.unmapped.note((key, part));
        self.with_reservation(key, Component::give_extent_back);
        self.note_hole_of(key, part, id);
    }

    /// All that a component that is being deleted has in mapped parts is given back. False as long as a page must be read first.
    pub(super) fn free_mapped_part(&mut self, key: u32, part: u32, page: u32, out: &mut Vec<Output>) -> bool {
        let index = self.components[key].member;
        let member = &mut self.members[index];
        let mut pages = vec![page];
        pages.extend(self.components[key].lineage.deltas_of(part).iter().map(|one| one.page));
        if let Some(&page) = pages.iter().find(|page| member.table.content(**page).is_none()) {
            self.need_page(index, page, crate::table::PageWaiter::Delete, out);
            return false;
        }
        let mut entries: Vec<Entry> = member.table.peek_map(page).expect("it is in memory").entries.to_vec();
        for &page in &pages[1..] {
            let delta = member.table.peek_delta(page).expect("it is in memory").clone();
            entries
                .extend(delta.groups.iter().flat_map(|group| group.entries.iter().map(|(_, entry)| *entry)));
            let empty = DeltaPage::empty(delta.component, delta.part);
            self.components[key].lineage.note_delta(page, &empty);
        }
        pages.iter().for_each(|page| member.table.give_page_back(*page));
        entries.into_iter().for_each(|entry| self.free_entry(key, entry));
        self.index.drop_unplaced(key, part);
        self.index.drop_page(key, part);
        self.with_reservation(key, Component::give_extent_back);
        true
    }

    /// Puts a page of a chunk in memory whose copy does not verify: what it told counts as damaged.
    pub(super) fn keep_unreadable_map(&mut self, index: u8, page: u32) {
        let member = &mut self.members[index];
        let Some((id, part)) = member.table.name_of(page) else {
            // A page of a list of snapshots, which are known, or one that holds nothing.
            member.table.keep_damaged(page, Content::Empty);
            let is_listed = |one: &(u32, &Component)| {
                one.1.member == index && one.1.is_stable && one.1.lineage.list_pages.contains(&page)
            };
            let key = self.components.iter().find(is_listed).map(|(key, _)| key);
            return key.into_iter().for_each(|key| self.update_list(key));
        };
        let key = self.components.key_of(id);
        let is_map = key.is_some_and(|key| self.index.page_of(key, part) == Some(page));
        if is_map {
            let map = MapPage { through: self.contained_by(id, part), ..MapPage::lost(id, part) };
            let member = &mut self.members[index];
            return member.table.keep_damaged(page, Content::Map(Box::new(map)));
        }
        // All snapshots up to the newest that it told of see blocks that nobody knows.
        let mut delta = DeltaPage::empty(id, part);
        let lineage = key.map(|key| &mut self.components[key].lineage);
        let refs = lineage.as_ref().map_or(&[][..], |lineage| lineage.deltas_of(part));
        let newest = refs.iter().find(|one| one.page == page).and_then(|one| one.snapshots.last().copied());
        if let (Some(newest), Some(lineage)) = (newest, lineage) {
            (0..=u8::MAX)
                .for_each(|block| assert!(delta.put(newest, block, Entry::LOST_PAGE), "they fit one page"));
            lineage.note_delta(page, &delta);
        }
        member.table.keep_damaged(page, Content::Delta(Box::new(delta)));
    }

    /// Up to where in the log all that there is of a part is destaged, or lost.
    fn contained_by(&self, component: ComponentId, part: u32) -> u64 {
        let key = self.components.key_of(component);
        let oldest = key.and_then(|key| self.index.of(key, part)).and_then(Dirty::oldest);
        let head = self.stable_head().position;
        oldest.map_or(head, |oldest| self.log.start_of(oldest).position.min(head))
    }

    /// The greatest version of some blocks of a mapped part that its map page tells, if it is in memory.
    pub(super) fn greatest_in_map(&self, index: u8, page: u32, blocks: &Range<u16>) -> WriteId {
        let Some(map) = self.members[index].table.peek_map(page).filter(|_| !blocks.is_empty()) else {
            return WriteId::default();
        };
        let of = |block: u16| usize::from(block) / BLOCKS_PER_REGION;
        let regions = &map.regions[of(blocks.start)..=of(blocks.end - 1)];
        let known = regions.iter().filter(|id| **id != Descriptor::LOST.write_id());
        known.copied().max().unwrap_or_default()
    }
}

/// Regions keep versions that nothing else tells.
pub(super) fn raise(regions: &mut [WriteId; REGIONS_PER_EXTENT], raised: &[Raised]) {
    for Raised { region, id, .. } in raised {
        let version = &mut regions[usize::from(*region)];
        *version = (*version).max(*id);
    }
}
