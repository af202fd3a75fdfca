//! The map of the group's components: for each part the extent that holds it, and what stands in the log and not yet at rest.
//!
//! What the log has is found by component and part. Where it belongs on the devices (which extent, whether that extent's
//! descriptor counts as empty) is a property of what is found. Extents are a second way in, for those who walk a device:
//! destaging, scrubbing and recovery. An extent that was freed belongs to no part, and its descriptor must still be cleared.

mod dirty;

pub(crate) use dirty::{Direct, Dirty, Goal, IndexEntry, Newest, OfPart, Raised};

use crate::bits::BitSet;
use crate::format::batch::ExtentLocation;
use crate::limits;
use crate::part_map::{PartMap, Placement};
use crate::retained::Retained;
use base::request::Buffers;
use base::units::BLOCK_SIZE;
use base::{Buffer, WriteId};
use dirty::Segment;
use slab::Slab;
use std::collections::BTreeSet;
use std::ops::Range;

/// The second way in: by extent of one device.
#[derive(Debug)]
struct Extents {
    /// Key of what the log has of each extent, or [`CLEAN`].
    keys: Vec<u32>,
    /// Those that have any, for walking them in the order of addresses.
    dirty: BitSet,
    /// Parts of which the log has something that gets its place when it is destaged, and that are in no extent.
    unplaced: BTreeSet<(u32, u32)>,
    /// Frames and pages that are promised to what the log has of mapped parts.
    promised: (u64, u64),
}

/// The log has nothing of the extent.
const CLEAN: u32 = u32::MAX;

impl Extents {
    fn new(count: u32) -> Extents {
        Extents {
            keys: vec![CLEAN; count as usize],
            dirty: BitSet::new(count),
            unplaced: BTreeSet::new(),
            promised: (0, 0),
        }
    }
}

/// The map of a group.
#[derive(Debug)]
pub(crate) struct Index {
    /// By component key.
    parts: Vec<PartMap>,
    /// By the index of the device in the group.
    extents: Vec<Extents>,
    states: Slab<Dirty>,
    /// Entries in all of `states`.
    entry_count: usize,
    retained: Retained,
    /// Parts with blocks that became content too late for the round of destaging under way, and the log positions of these.
    late: Vec<((u32, u32), u64)>,
    /// Blocks without a place that became content: the log position of each, and that of the record by which it did.
    settled: Vec<(u64, u64)>,
    /// Whether what was written before a snapshot is kept apart from what comes behind it: always, but where the simulator removes that rule.
    pub(crate) keeps_segments: bool,
}

impl Index {
    /// An empty map of devices with so many extents, with a bound of the memory for data of the newest batches in bytes.
    pub(crate) fn new(extents: impl Iterator<Item = u32>, retained_bytes_max: usize) -> Index {
        Index {
            parts: Vec::new(),
            extents: extents.map(Extents::new).collect(),
            states: Slab::new(),
            entry_count: 0,
            retained: Retained::new(retained_bytes_max),
            late: Vec::new(),
            settled: Vec::new(),
            keeps_segments: true,
        }
    }

    /// A device comes to the group, or leaves it (no extents).
    pub(crate) fn set_device(&mut self, member: u8, extents: u32) {
        let extents = Extents::new(extents);
        match self.extents.get_mut(member as usize) {
            Some(former) => {
                assert!(former.dirty.count() == 0, "a device leaves when the log has nothing of it");
                *former = extents;
            }
            None => self.extents.push(extents),
        }
        assert!((member as usize) < self.extents.len(), "indices are taken in order");
    }

    /// A component gets its key, which another one may have had before.
    pub(crate) fn add_component(&mut self, component: u32) {
        if component as usize >= self.parts.len() {
            self.parts.resize_with(component as usize + 1, PartMap::default);
        }
        self.parts[component as usize] = PartMap::default();
    }

    /// The extent that holds a part.
    pub(crate) fn extent_of(&self, component: u32, part: u32) -> Option<u32> {
        self.parts[component as usize].extent(part)
    }

    /// Where a part stands.
    pub(crate) fn placement(&self, component: u32, part: u32) -> Option<Placement> {
        self.parts[component as usize].placement(part)
    }

    /// The map page of a part.
    pub(crate) fn page_of(&self, component: u32, part: u32) -> Option<u32> {
        self.parts[component as usize].page(part)
    }

    /// The first of some parts that has a place, and that.
    pub(crate) fn first_placed(&self, component: u32, parts: Range<u32>) -> Option<(u32, Placement)> {
        self.parts[component as usize].first_placed(parts)
    }

    /// The parts of a component that are in no extent and of which the log has something, from one on.
    pub(crate) fn unplaced_of(&self, member: u8, component: u32) -> Vec<u32> {
        let unplaced = self.extents[member as usize].unplaced.range((component, 0)..(component + 1, 0));
        unplaced.map(|(_, part)| *part).collect()
    }

    /// The first of some parts of a component that is in no extent and of which the log has something.
    pub(crate) fn first_unplaced(&self, member: u8, component: u32, parts: Range<u32>) -> Option<u32> {
        let range = (component, parts.start)..(component, parts.end);
        self.extents[member as usize].unplaced.range(range).next().map(|(_, part)| *part)
    }

    /// The parts of a component of which the log has something.
    pub(crate) fn parts_with_entries(&self, member: u8, component: u32) -> Vec<u32> {
        let is_of = |part: &(u32, u32)| part.0 == component;
        let extents = &self.extents[member as usize];
        let placed = extents.dirty.iter().filter_map(|extent| {
            let dirty = &self.states[extents.keys[extent as usize] as usize];
            dirty.part.filter(is_of)
        });
        let unplaced = extents.unplaced.range((component, 0)..(component + 1, 0)).copied();
        placed.chain(unplaced).map(|(_, part)| part).collect()
    }

    /// What the log has of a part from a position on is void: gives the blocks, each with its position.
    pub(crate) fn void_since(&mut self, (component, part): (u32, u32), position: u64) -> Vec<(u8, u64)> {
        let Some(key) = self.parts[component as usize].buffered(part) else { return Vec::new() };
        let void = self.states[key as usize].void_since(position);
        self.entry_count -= void.len();
        void.iter().for_each(|entry| self.retained.forget(entry.position));
        self.promise(key);
        void.into_iter().map(|entry| (entry.block, entry.position)).collect()
    }

    /// The next part of a device, behind one, that is in no extent and of which the log has something.
    pub(crate) fn next_unplaced(&self, member: u8, behind: Option<(u32, u32)>) -> Option<(u32, u32)> {
        let from = behind.map_or((0, 0), |(component, part)| (component, part + 1));
        self.extents[member as usize].unplaced.range(from..).next().copied()
    }

    /// Frames and pages that are promised to what the log has of mapped parts of a device.
    pub(crate) fn promised(&self, member: u8) -> (u64, u64) {
        self.extents[member as usize].promised
    }

    /// What is promised to a part changes with what the log has of it.
    fn promise(&mut self, key: u32) {
        let dirty = &mut self.states[key as usize];
        if !dirty.is_mapped {
            return;
        }
        let (before, after) = (dirty.promised, dirty.wanted());
        dirty.promised = after;
        let promised = &mut self.extents[dirty.location.member as usize].promised;
        promised.0 = promised.0 + after.0 - before.0;
        promised.1 = promised.1 + after.1 - before.1;
    }

    /// What the log has of a part.
    pub(crate) fn of(&self, component: u32, part: u32) -> Option<&Dirty> {
        self.parts[component as usize].buffered(part).map(|key| &self.states[key as usize])
    }

    /// What the log has of an extent.
    pub(crate) fn at(&self, location: ExtentLocation) -> Option<&Dirty> {
        self.key_at(location).map(|key| &self.states[key as usize])
    }

    /// The key of what the log has of an extent.
    pub(crate) fn key_at(&self, location: ExtentLocation) -> Option<u32> {
        if !location.is_placed() {
            return None;
        }
        let key = self.extents[location.member as usize].keys[location.extent as usize];
        (key != CLEAN).then_some(key)
    }

    pub(crate) fn get(&self, key: u32) -> &Dirty {
        &self.states[key as usize]
    }

    /// A part gets an extent, and what the log has of that.
    pub(crate) fn map(&mut self, (component, part): (u32, u32), location: ExtentLocation) {
        let map = &mut self.parts[component as usize];
        map.map(part, location.extent);
        let key = self.extents[location.member as usize].keys[location.extent as usize];
        if key != CLEAN {
            map.set_buffered(part, Some(key));
            self.states[key as usize].part = Some((component, part));
        }
    }

    /// A part loses its extent. What the log has of the extent stays, until its descriptor is cleared.
    pub(crate) fn unmap(&mut self, component: u32, part: u32) {
        let map = &mut self.parts[component as usize];
        if let Some(key) = map.buffered(part) {
            self.states[key as usize].part = None;
        }
        map.unmap(part);
    }

    /// A write or trim of a part is accepted, with so many blocks of data that get their place when they are destaged.
    pub(crate) fn accept(&mut self, part: (u32, u32), location: ExtentLocation, unplaced_blocks: u32) {
        let key = self.key_for(location, Some(part));
        let dirty = &mut self.states[key as usize];
        dirty.pending += 1;
        dirty.pending_blocks += unplaced_blocks;
        dirty.is_mapped |= !location.is_placed();
        self.promise(key);
    }

    /// A write or trim that was accepted is stable.
    pub(crate) fn accepted_is_stable(
        &mut self,
        part: (u32, u32),
        location: ExtentLocation,
        unplaced_blocks: u32,
    ) {
        let key = match location.is_placed() {
            true => self.key_at(location),
            false => self.parts[part.0 as usize].buffered(part.1),
        };
        let key = key.unwrap_or_else(|| panic!("what is installed was accepted: {part:?} at {location:?}"));
        let dirty = &mut self.states[key as usize];
        assert!(dirty.pending > 0, "what is installed was accepted");
        dirty.pending -= 1;
        dirty.pending_blocks -= unplaced_blocks;
        self.promise(key);
    }

    /// The same of a hold, which leaves nothing of the part in what is to be destaged.
    pub(crate) fn accepted_hold_is_stable(
        &mut self,
        part: (u32, u32),
        location: ExtentLocation,
        unplaced_blocks: u32,
    ) {
        self.accepted_is_stable(part, location, unplaced_blocks);
        let key = match location.is_placed() {
            true => self.key_at(location),
            false => self.key_of(part.0, part.1),
        };
        key.into_iter().for_each(|key| self.forget_if_clean(key));
    }

    /// The key of what the log has of an extent, made if there is none.
    fn key_for(&mut self, location: ExtentLocation, part: Option<(u32, u32)>) -> u32 {
        if !location.is_placed() {
            return self.key_for_part(location.member, part.expect("what has no place is of a part"));
        }
        let extents = &mut self.extents[location.member as usize];
        let slot = &mut extents.keys[location.extent as usize];
        if *slot != CLEAN {
            return *slot;
        }
        let key = self.states.insert(Dirty::new(location)) as u32;
        *slot = key;
        extents.dirty.insert(location.extent);
        if let Some((component, number)) = part
            && self.extent_of(component, number) == Some(location.extent)
        {
            self.states[key as usize].part = part;
            self.parts[component as usize].set_buffered(number, Some(key));
        }
        key
    }

    /// The key of what the log has of a part, made if there is none.
    fn key_for_part(&mut self, member: u8, (component, number): (u32, u32)) -> u32 {
        let map = &self.parts[component as usize];
        if let Some(key) = map.buffered(number) {
            return key;
        }
        if let Some(extent) = map.extent(number) {
            return self.key_for(ExtentLocation { member, extent }, Some((component, number)));
        }
        let key = self.states.insert(Dirty::new(ExtentLocation::unplaced(member))) as u32;
        self.states[key as usize].part = Some((component, number));
        self.parts[component as usize].set_buffered(number, Some(key));
        self.extents[member as usize].unplaced.insert((component, number));
        key
    }

    /// Blocks were written or trimmed when the component's newest snapshot was `born`.
    pub(crate) fn insert(
        &mut self,
        location: ExtentLocation,
        (part, born): OfPart,
        entries: impl Iterator<Item = IndexEntry>,
    ) {
        let key = self.key_for(location, part);
        let dirty = &mut self.states[key as usize];
        dirty.is_mapped |= !location.is_placed();
        if born > dirty.born && !self.keeps_segments {
            dirty.born = born;
        }
        if born > dirty.born {
            let former = std::mem::take(&mut dirty.entries);
            if !former.is_empty() {
                dirty.former.push(Segment { born: dirty.born, entries: former });
            }
            dirty.born = born;
        }
        for entry in entries {
            if let Some(part) = part.filter(|_| entry.is_late) {
                self.late.push((part, entry.position));
            }
            dirty.data_count += u32::from(entry.wants_frame());
            match dirty.insert(entry) {
                None => self.entry_count += 1,
                Some(old) if old.newest == Newest::Data => {
                    dirty.data_count -= u32::from(old.wants_frame());
                    self.retained.forget(old.position);
                }
                Some(_) => {}
            }
        }
        self.promise(key);
    }

    /// The extent was freed by the record at `position`: its descriptor counts as empty, and what the log had of it is void.
    pub(crate) fn reset(&mut self, location: ExtentLocation, part: Option<(u32, u32)>, position: u64) -> u32 {
        let key = self.key_for(location, part);
        let dirty = &mut self.states[key as usize];
        self.entry_count -= dirty.all_entries().count();
        for entry in dirty.all_entries() {
            self.retained.forget(entry.position);
        }
        dirty.entries.clear();
        dirty.former.clear();
        dirty.data_count = 0;
        dirty.raised.clear();
        dirty.direct = None;
        dirty.reset = Some(position);
        dirty.generation += 1;
        // Whoever has the extent next has other snapshots, or none.
        (dirty.born, dirty.is_mapped) = (0, false);
        let former = std::mem::take(&mut dirty.promised);
        let promised = &mut self.extents[location.member as usize].promised;
        (promised.0, promised.1) = (promised.0 - former.0, promised.1 - former.1);
        key
    }

    /// The extent, which was free, was written as a whole before the record that tells so.
    pub(crate) fn put_direct(&mut self, location: ExtentLocation, part: Option<(u32, u32)>, direct: Direct) {
        let key = self.reset(location, part, direct.position);
        self.states[key as usize].direct = Some(direct);
    }

    /// A region keeps a version whose change, at `position` of the log, is gone.
    pub(crate) fn raise(
        &mut self,
        location: ExtentLocation,
        part: Option<(u32, u32)>,
        (region, id): (u8, WriteId),
        position: u64,
    ) {
        let key = self.key_for(location, part);
        let raised = &mut self.states[key as usize].raised;
        match raised.iter_mut().find(|raised| raised.region == region) {
            Some(raised) => {
                (raised.id, raised.position) = (raised.id.max(id), raised.position.min(position));
            }
            None => raised.push(Raised { region, id, position }),
        }
        self.promise(key);
    }

    /// The extents of a device of which the log has anything older than `boundary`, in the order of addresses.
    pub(crate) fn due(&self, member: u8, boundary: u64) -> impl Iterator<Item = ExtentLocation> {
        let Extents { keys, dirty, .. } = &self.extents[member as usize];
        let states = dirty.iter().map(|extent| &self.states[keys[extent as usize] as usize]);
        let is_due = move |dirty: &&Dirty| dirty.is_due(boundary);
        states.filter(is_due).map(|dirty| dirty.location)
    }

    /// The parts of a device that are in no extent and of which the log has anything older than `boundary`, in order.
    pub(crate) fn due_unplaced(&self, member: u8, boundary: u64) -> impl Iterator<Item = (u32, u32)> {
        let parts = self.extents[member as usize].unplaced.iter().copied();
        parts.filter(move |(component, part)| {
            self.of(*component, *part).is_some_and(|dirty| dirty.is_due(boundary))
        })
    }

    /// The log must stay from there on for what became content too late for the round under way.
    pub(crate) fn oldest_late(&self) -> Option<u64> {
        self.late.iter().map(|(_, position)| *position).min()
    }

    /// A block without a place became content by a record at that position.
    pub(crate) fn note_settled(&mut self, position: u64, record: u64) {
        self.settled.push((position, record));
    }

    /// A position behind the records by which all blocks from before a boundary became content, if that lies behind it.
    pub(crate) fn behind_settled(&self, boundary: u64) -> Option<u64> {
        let records =
            self.settled.iter().filter(|(position, _)| *position < boundary).map(|(_, record)| *record);
        records.max().filter(|record| *record >= boundary).map(|record| record + 1)
    }

    /// A round begins: it takes what came too late for the one before.
    pub(crate) fn begin_round(&mut self, boundary: u64) {
        self.settled.retain(|(_, record)| *record >= boundary);
        let parts: BTreeSet<(u32, u32)> =
            std::mem::take(&mut self.late).into_iter().map(|(part, _)| part).collect();
        for (component, part) in parts {
            if let Some(key) = self.parts[component as usize].buffered(part) {
                self.states[key as usize].forget_late();
            }
        }
    }

    /// The key of what the log has of a part.
    pub(crate) fn key_of(&self, component: u32, part: u32) -> Option<u32> {
        self.parts[component as usize].buffered(part)
    }

    /// A part gets a map page, in the place of its extent if it has one.
    pub(crate) fn set_page(&mut self, (component, part): (u32, u32), member: u8, page: u32) {
        let former = self.parts[component as usize].extent(part);
        self.parts[component as usize].set_page(part, Some(page));
        let Some(extent) = former else { return };
        let extents = &mut self.extents[member as usize];
        let key = std::mem::replace(&mut extents.keys[extent as usize], CLEAN);
        extents.dirty.remove(extent);
        if key != CLEAN {
            extents.unplaced.insert((component, part));
            let dirty = &mut self.states[key as usize];
            dirty.location = ExtentLocation::unplaced(member);
            dirty.is_mapped = true;
            self.promise(key);
        }
    }

    /// A mapped part has nothing in it any more.
    pub(crate) fn drop_page(&mut self, component: u32, part: u32) {
        self.parts[component as usize].set_page(part, None);
    }

    /// A part leaves its map page for an extent: what the log has of it is void.
    pub(crate) fn leave_page(&mut self, component: u32, part: u32) {
        self.drop_unplaced(component, part);
        if let Some(key) = self.parts[component as usize].buffered(part) {
            // A visit of destaging finds out that it came too late.
            let dirty = &mut self.states[key as usize];
            assert!(dirty.pending == 0, "records of a part are stable in their order");
            dirty.part = None;
            self.extents[dirty.location.member as usize].unplaced.remove(&(component, part));
            self.parts[component as usize].set_buffered(part, None);
        }
        self.drop_page(component, part);
    }

    /// After recovery: a part of which the log has something without a place stands in that extent.
    pub(crate) fn attach(&mut self, (component, part): (u32, u32), location: ExtentLocation) {
        let Some(key) = self.parts[component as usize].buffered(part) else {
            return self.map((component, part), location);
        };
        self.extents[location.member as usize].unplaced.remove(&(component, part));
        self.parts[component as usize].set_buffered(part, None);
        self.map((component, part), location);
        let Some(own) = self.key_at(location) else {
            let extents = &mut self.extents[location.member as usize];
            extents.keys[location.extent as usize] = key;
            extents.dirty.insert(location.extent);
            self.states[key as usize].location = location;
            self.parts[component as usize].set_buffered(part, Some(key));
            return;
        };
        let later = self.states.remove(key as usize);
        let promised = &mut self.extents[location.member as usize].promised;
        (promised.0, promised.1) = (promised.0 - later.promised.0, promised.1 - later.promised.1);
        let before = self.states[own as usize].all_entries().count() + later.all_entries().count();
        self.states[own as usize].join(later);
        self.entry_count -= before - self.states[own as usize].all_entries().count();
        self.promise(own);
    }

    /// After recovery: what the log has of a part in an extent of its own goes there, as far as no snapshot sees what it replaces: segments with
    /// these numbers. What was promised to others since then must not be promised again.
    pub(crate) fn settle_in_place(&mut self, component: u32, part: u32, is_in_place: impl Fn(u32) -> bool) {
        let key = self.parts[component as usize].buffered(part);
        if let Some(key) = key.filter(|key| self.states[*key as usize].location.is_placed()) {
            self.states[key as usize].settle_in_place(is_in_place);
            self.promise(key);
        }
    }

    /// After recovery: segments of a part that nobody needs apart, as `is_one` says of their numbers, are put together.
    pub(crate) fn merge_segments(&mut self, component: u32, part: u32, is_one: impl Fn(u32, u32) -> bool) {
        let Some(key) = self.parts[component as usize].buffered(part) else { return };
        let dirty = &mut self.states[key as usize];
        let before = dirty.all_entries().count();
        dirty.merge_segments(is_one);
        self.entry_count -= before - dirty.all_entries().count();
        self.promise(key);
    }

    /// The component is being deleted: what the log has of a part that is in no extent is void.
    pub(crate) fn drop_unplaced(&mut self, component: u32, part: u32) {
        if let Some(key) = self.parts[component as usize].buffered(part) {
            self.forget_entries(key);
            self.forget_if_clean(key);
        }
    }

    fn forget_entries(&mut self, key: u32) {
        let dirty = &mut self.states[key as usize];
        self.entry_count -= dirty.all_entries().count();
        for entry in dirty.former.iter().flat_map(|segment| segment.entries.iter()).chain(&dirty.entries) {
            self.retained.forget(entry.position);
        }
        dirty.entries.clear();
        dirty.former.clear();
        dirty.data_count = 0;
        dirty.raised.clear();
        dirty.direct = None;
        dirty.reset = None;
        dirty.generation += 1;
        self.promise(key);
    }

    /// An extent begins to be destaged.
    pub(crate) fn begin_destage(&mut self, key: u32) {
        let dirty = &mut self.states[key as usize];
        assert!(!dirty.is_destaging, "a round visits an extent once");
        dirty.is_destaging = true;
    }

    /// The descriptor takes over that it counts as empty, if it does, since that position of the log, what was written as a whole since, and versions that nothing else
    /// tells.
    pub(crate) fn take_whole(&mut self, key: u32) -> (Option<u64>, Option<Direct>, Vec<Raised>) {
        let dirty = &mut self.states[key as usize];
        (dirty.reset.take(), dirty.direct.take(), std::mem::take(&mut dirty.raised))
    }

    /// These blocks, at these positions of the log, get their frames now.
    pub(crate) fn begin_move(&mut self, key: u32, blocks: Vec<(u8, u64)>) {
        let dirty = &mut self.states[key as usize];
        for (block, position) in blocks {
            let former = dirty.former.iter_mut().map(|segment| &mut segment.entries);
            for entries in former.chain(std::iter::once(&mut dirty.entries)) {
                if let Ok(index) = entries.binary_search_by_key(&block, |entry| entry.block)
                    && entries[index].position == position
                {
                    dirty.data_count -= u32::from(entries[index].wants_frame());
                    entries[index].goal = Goal::Place;
                    break;
                }
            }
        }
        self.promise(key);
    }

    /// The descriptor has taken over a block as it stands at that position of the log.
    pub(crate) fn take_block(&mut self, key: u32, block: u8, position: u64) {
        let dirty = &mut self.states[key as usize];
        let former = dirty.former.iter_mut().map(|segment| &mut segment.entries);
        for entries in former.chain(std::iter::once(&mut dirty.entries)) {
            if let Ok(index) = entries.binary_search_by_key(&block, |entry| entry.block)
                && entries[index].position == position
            {
                let entry = entries.remove(index);
                dirty.data_count -= u32::from(entry.wants_frame());
                self.entry_count -= 1;
                self.retained.forget(position);
                break;
            }
        }
        if dirty.former.first().is_some_and(|segment| segment.entries.is_empty()) {
            dirty.former.remove(0);
        }
        self.promise(key);
    }

    /// An extent is not destaged any more.
    pub(crate) fn end_destage(&mut self, key: u32) {
        self.states[key as usize].is_destaging = false;
        self.forget_if_clean(key);
    }

    /// Forgets what the log has of all extents of a device, which will not get it.
    pub(crate) fn drop_device(&mut self, member: u8) {
        let extents: Vec<u32> = self.extents[member as usize].dirty.iter().collect();
        for extent in extents {
            self.drop_at(ExtentLocation { member, extent });
        }
        for (component, part) in std::mem::take(&mut self.extents[member as usize].unplaced) {
            self.extents[member as usize].unplaced.insert((component, part));
            self.drop_unplaced(component, part);
        }
    }

    /// Forgets what the log has of one extent, if it has anything.
    pub(crate) fn drop_at(&mut self, location: ExtentLocation) {
        let Some(key) = self.key_at(location) else { return };
        self.forget_entries(key);
        self.forget_if_clean(key);
    }

    fn forget_if_clean(&mut self, key: u32) {
        let Dirty { location, part, .. } = self.states[key as usize];
        if !self.states[key as usize].is_clean() {
            return;
        }
        self.promise(key);
        let extents = &mut self.extents[location.member as usize];
        if location.is_placed() {
            extents.keys[location.extent as usize] = CLEAN;
            extents.dirty.remove(location.extent);
        } else if let Some(part) = part {
            extents.unplaced.remove(&part);
        }
        if let Some((component, part)) = part {
            self.parts[component as usize].set_buffered(part, None);
        }
        self.states.remove(key as usize);
    }

    /// Keeps data of a batch in memory, whose first block stands at `position` of the log.
    pub(crate) fn retain(&mut self, mut position: u64, data: &Buffers) {
        for buffer in data {
            for at in (0..buffer.len()).step_by(BLOCK_SIZE as usize) {
                self.retained.push(position, buffer.slice(at, BLOCK_SIZE as usize));
                position += 1;
            }
        }
    }

    /// The block at a position of the log, if it is in memory.
    pub(crate) fn retained(&self, position: u64) -> Option<&Buffer> {
        self.retained.get(position)
    }

    /// Gives the memory of up to `count` blocks back. Says whether there were any.
    pub(crate) fn give_back(&mut self, count: usize) -> bool {
        self.retained.give_back(count)
    }

    /// Whether the log has nothing of any extent.
    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Blocks of which the log has the newest version.
    pub(crate) fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// Whether `blocks` more fit its bound, for a log of so many blocks.
    pub(crate) fn has_room(&self, blocks: u64, log_blocks: u64) -> bool {
        self.entry_count + blocks as usize <= entries_max(log_blocks)
    }

    /// How full it is, in so many parts of a whole.
    pub(crate) fn fill(&self, log_blocks: u64, whole: usize) -> u64 {
        (self.entry_count * whole / entries_max(log_blocks)) as u64
    }

    /// Bytes of memory, estimated, without tables.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.entry_count * size_of::<IndexEntry>()
            + self.states.len() * size_of::<Dirty>()
            + self.retained.len() * BLOCK_SIZE as usize
    }

    /// Whether what is found by part and what is found by extent is the same.
    pub(crate) fn is_consistent(&self) -> bool {
        self.states.iter().all(|(key, dirty)| {
            let key = key as u32;
            let is_found = dirty.part.is_none_or(|(component, part)| {
                let map = &self.parts[component as usize];
                let is_there = match dirty.location.is_placed() {
                    true => map.extent(part) == Some(dirty.location.extent),
                    false => map.extent(part).is_none(),
                };
                map.buffered(part) == Some(key) && is_there
            });
            is_found && (!dirty.location.is_placed() || self.key_at(dirty.location) == Some(key))
        })
    }
}

fn entries_max(log_blocks: u64) -> usize {
    log_blocks as usize * limits::INDEX_ENTRIES_PER_LOG_BLOCK
}
