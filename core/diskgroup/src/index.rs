//! The map of the group's components: for each part the extent that holds it, and what stands in the log and not yet at rest.
//!
//! What the log has is found by component and part. Where it belongs on the devices (which extent, whether that extent's
//! descriptor counts as empty) is a property of what is found. Extents are a second way in, for those who walk a device:
//! destaging, scrubbing and recovery. An extent that was freed belongs to no part, and its descriptor must still be cleared.

use crate::bits::BitSet;
use crate::format::batch::ExtentLocation;
use crate::limits;
use crate::part_map::PartMap;
use crate::retained::Retained;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{Buffer, WriteId};
use slab::Slab;
use std::ops::Range;

/// What the newest version of a block in the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newest {
    /// Data, at the entry's position in the log.
    Data,
    /// Nothing: it was trimmed.
    Trim,
}

/// The newest version of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    pub(crate) id: WriteId,
    /// Log block of the data, or of the batch with the trim.
    pub(crate) position: u64,
    pub(crate) checksum: u32,
    pub(crate) block: u8,
    pub(crate) newest: Newest,
}

/// A whole extent written in place, known to the log but not yet to the extent's descriptor.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) checksums: Box<[u32; BLOCKS_PER_EXTENT]>,
    pub(crate) id: WriteId,
    pub(crate) position: u64,
}

/// A version that a region has by something that is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raised {
    pub(crate) region: u8,
    pub(crate) id: WriteId,
    /// Log position of what is gone.
    position: u64,
}

/// All that the log knows of one extent beyond its descriptor. What is in force, oldest first: the descriptor, unless
/// `reset`; then `direct`; then `entries`.
#[derive(Debug)]
pub(crate) struct Dirty {
    location: ExtentLocation,
    /// The component's key and the part that has the extent. `None`: it was freed, or the group is still being opened.
    part: Option<(u32, u32)>,
    /// Log position of the record since which the descriptor counts as empty.
    reset: Option<u64>,
    direct: Option<Direct>,
    /// Sorted by block.
    entries: Vec<IndexEntry>,
    /// Versions that regions have although nothing in the log or at rest tells them: of held blocks that ended.
    raised: Vec<Raised>,
    /// Writes and trims that are accepted but not yet stable.
    pending: u32,
    is_destaging: bool,
    /// Grows when the extent is freed, so that a destaging under way knows that it came too late.
    generation: u32,
}

impl Dirty {
    fn new(location: ExtentLocation) -> Dirty {
        Dirty {
            location,
            part: None,
            reset: None,
            direct: None,
            entries: Vec::new(),
            raised: Vec::new(),
            pending: 0,
            is_destaging: false,
            generation: 0,
        }
    }

    /// What the log has of single blocks, by block.
    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    pub(crate) fn direct(&self) -> Option<&Direct> {
        self.direct.as_ref()
    }

    /// Versions of regions that nothing else tells.
    pub(crate) fn raised(&self) -> &[Raised] {
        &self.raised
    }

    /// Whether the descriptor counts as empty.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// Whether writes or trims are accepted that are not stable yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    pub(crate) fn is_destaging(&self) -> bool {
        self.is_destaging
    }

    /// Grows when the extent is freed.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it can be forgotten.
    fn is_clean(&self) -> bool {
        !self.has_state() && self.pending == 0 && !self.is_destaging
    }

    /// Whether the descriptor lacks anything that the log has.
    pub(crate) fn has_state(&self) -> bool {
        self.reset.is_some() || self.direct.is_some() || !self.entries.is_empty() || !self.raised.is_empty()
    }

    /// Whether the log tells whose the extent is, or that it is free: trims alone do not.
    pub(crate) fn tells_owner(&self) -> bool {
        let is_data = |entry: &IndexEntry| entry.newest == Newest::Data;
        self.reset.is_some() || self.direct.is_some() || self.entries.iter().any(is_data)
    }

    /// The oldest log position that it needs.
    fn oldest(&self) -> Option<u64> {
        let entries = self.entries.iter().map(|entry| entry.position);
        let raised = self.raised.iter().map(|raised| raised.position);
        entries
            .chain(raised)
            .chain(self.reset)
            .chain(self.direct.as_ref().map(|direct| direct.position))
            .min()
    }

    pub(crate) fn find(&self, block: u8) -> Option<&IndexEntry> {
        self.entries.binary_search_by_key(&block, |entry| entry.block).ok().map(|index| &self.entries[index])
    }

    /// Puts `entry` instead of any older one of its block. Returns that older one. The block keeps the greatest id of
    /// both: a copy may come with a lesser one than a guest's change that went before, and contains that change.
    fn insert(&mut self, entry: IndexEntry) -> Option<IndexEntry> {
        match self.entries.binary_search_by_key(&entry.block, |other| other.block) {
            Ok(index) => {
                let id = entry.id.max(self.entries[index].id);
                Some(std::mem::replace(&mut self.entries[index], IndexEntry { id, ..entry }))
            }
            Err(index) => {
                self.entries.insert(index, entry);
                None
            }
        }
    }
}

/// The second way in: by extent of one device.
#[derive(Debug)]
struct Extents {
    /// Key of what the log has of each extent, or [`CLEAN`].
    keys: Vec<u32>,
    /// Those that have any, for walking them in the order of addresses.
    dirty: BitSet,
}

/// The log has nothing of the extent.
const CLEAN: u32 = u32::MAX;

impl Extents {
    fn new(count: u32) -> Extents {
        Extents { keys: vec![CLEAN; count as usize], dirty: BitSet::new(count) }
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

    /// The first of some parts that has an extent, and that extent.
    pub(crate) fn first_mapped(&self, component: u32, parts: Range<u32>) -> Option<(u32, u32)> {
        self.parts[component as usize].first_mapped(parts)
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

    /// A write or trim of a mapped part is accepted.
    pub(crate) fn accept(&mut self, part: (u32, u32), location: ExtentLocation) {
        let key = self.key_for(location, Some(part));
        self.states[key as usize].pending += 1;
    }

    /// A write or trim that was accepted is stable.
    pub(crate) fn accepted_is_stable(&mut self, location: ExtentLocation) {
        let key = self.extents[location.member as usize].keys[location.extent as usize];
        assert!(key != CLEAN, "what is installed was accepted");
        let pending = &mut self.states[key as usize].pending;
        assert!(*pending > 0, "what is installed was accepted");
        *pending -= 1;
    }

    /// The same of a hold, which leaves nothing of the extent in the log.
    pub(crate) fn accepted_hold_is_stable(&mut self, location: ExtentLocation) {
        self.accepted_is_stable(location);
        if let Some(key) = self.key_at(location) {
            self.forget_if_clean(key);
        }
    }

    /// The key of what the log has of an extent, made if there is none.
    fn key_for(&mut self, location: ExtentLocation, part: Option<(u32, u32)>) -> u32 {
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

    /// Blocks were written or trimmed.
    pub(crate) fn insert(
        &mut self,
        location: ExtentLocation,
        part: Option<(u32, u32)>,
        entries: impl Iterator<Item = IndexEntry>,
    ) {
        let key = self.key_for(location, part);
        let dirty = &mut self.states[key as usize];
        for entry in entries {
            match dirty.insert(entry) {
                None => self.entry_count += 1,
                Some(old) if old.newest == Newest::Data => self.retained.forget(old.position),
                Some(_) => {}
            }
        }
    }

    /// The extent was freed by the record at `position`: its descriptor counts as empty, and what the log had of it is void.
    pub(crate) fn reset(&mut self, location: ExtentLocation, part: Option<(u32, u32)>, position: u64) -> u32 {
        let key = self.key_for(location, part);
        let dirty = &mut self.states[key as usize];
        self.entry_count -= dirty.entries.len();
        for entry in &dirty.entries {
            self.retained.forget(entry.position);
        }
        dirty.entries.clear();
        dirty.raised.clear();
        dirty.direct = None;
        dirty.reset = Some(position);
        dirty.generation += 1;
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
    }

    /// The extents of a device of which the log has anything older than `boundary`, in the order of addresses.
    pub(crate) fn due(&self, member: u8, boundary: u64) -> impl Iterator<Item = ExtentLocation> {
        let Extents { keys, dirty } = &self.extents[member as usize];
        let states = dirty.iter().map(|extent| &self.states[keys[extent as usize] as usize]);
        let is_due = move |dirty: &&Dirty| dirty.oldest().is_some_and(|oldest| oldest < boundary);
        states.filter(is_due).map(|dirty| dirty.location)
    }

    /// An extent begins to be destaged.
    pub(crate) fn begin_destage(&mut self, key: u32) {
        let dirty = &mut self.states[key as usize];
        assert!(!dirty.is_destaging, "a round visits an extent once");
        dirty.is_destaging = true;
    }

    /// The descriptor takes over that it counts as empty, if it does, what was written as a whole since, and versions that nothing else
    /// tells.
    pub(crate) fn take_whole(&mut self, key: u32) -> (bool, Option<Direct>, Vec<Raised>) {
        let dirty = &mut self.states[key as usize];
        (dirty.reset.take().is_some(), dirty.direct.take(), std::mem::take(&mut dirty.raised))
    }

    /// The descriptor has taken over a block as it stands at that position of the log.
    pub(crate) fn take_block(&mut self, key: u32, block: u8, position: u64) {
        let dirty = &mut self.states[key as usize];
        if let Ok(index) = dirty.entries.binary_search_by_key(&block, |entry| entry.block)
            && dirty.entries[index].position == position
        {
            dirty.entries.remove(index);
            self.entry_count -= 1;
            self.retained.forget(position);
        }
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
    }

    /// Forgets what the log has of one extent, if it has anything.
    pub(crate) fn drop_at(&mut self, location: ExtentLocation) {
        let Some(key) = self.key_at(location) else { return };
        let dirty = &mut self.states[key as usize];
        self.entry_count -= dirty.entries.len();
        dirty.entries.clear();
        dirty.raised.clear();
        dirty.direct = None;
        dirty.reset = None;
        dirty.generation += 1;
        self.forget_if_clean(key);
    }

    fn forget_if_clean(&mut self, key: u32) {
        let Dirty { location, part, .. } = self.states[key as usize];
        if !self.states[key as usize].is_clean() {
            return;
        }
        let extents = &mut self.extents[location.member as usize];
        extents.keys[location.extent as usize] = CLEAN;
        extents.dirty.remove(location.extent);
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
                map.buffered(part) == Some(key) && map.extent(part) == Some(dirty.location.extent)
            });
            is_found && self.key_at(dirty.location) == Some(key)
        })
    }
}

fn entries_max(log_blocks: u64) -> usize {
    log_blocks as usize * limits::INDEX_ENTRIES_PER_LOG_BLOCK
}
