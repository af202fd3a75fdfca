//! The table of one device: which pages are in memory, which must be written, and what waits for one to be read.
//!
//! First come the pages of the fixed table, then those of chunks: extents that hold pages (docs/design/0044). A checkpoint writes each page as it
//! was when the checkpoint began: one that changes before its turn is kept as it was.

use crate::bits::BitSet;
use crate::format::map::{DeltaPage, MapPage, SnapshotPage};
use crate::format::page::{DESCRIPTORS_PER_PAGE, Descriptor, PAGES_PER_CHUNK};
use crate::format::superblock::Geometry;
use base::ComponentId;
use base::units::BLOCKS_PER_EXTENT;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The descriptors of one page.
pub(crate) type Descriptors = Box<[Descriptor; DESCRIPTORS_PER_PAGE]>;

/// What a page holds that is not one of a component.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Descriptors(Descriptors),
    Map(Box<MapPage>),
    Delta(Box<DeltaPage>),
    Snapshots(Box<SnapshotPage>),
    /// Nothing: a page of a chunk that is free.
    Empty,
}

/// A page in memory.
#[derive(Debug)]
struct CachedPage {
    content: Content,
    /// Uses under way that need it to stay.
    pins: u32,
    /// Set by use, cleared by the clock hand.
    is_recent: bool,
}

/// Something that waits for a page to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PageWaiter {
    Read(u32),
    Destage(u32),
    Scrub,
    Changed(u32),
    Copy(u32),
    /// A snapshot that is taken apart.
    Delete,
    /// The part that may be written anew.
    Rewrite,
    /// Whoever asked will ask again.
    Nobody,
}

/// The pages of one device: first those of components, one for each slot, then those of descriptors.
#[derive(Debug)]
pub(crate) struct Table {
    /// Version of the newest copy of each page; 0: never written.
    versions: Vec<u64>,
    /// The pages in memory.
    pages: Vec<Option<Box<CachedPage>>>,
    cached_count: usize,
    clock_hand: usize,
    /// Pages (of all kinds) that must be written at the next checkpoint.
    dirty: BitSet,
    /// Pages that the checkpoint under way has yet to write.
    pending: BitSet,
    /// Whether pages are written as they were when a checkpoint began: always, but where the simulator removes that rule.
    pub(crate) freezes: bool,
    /// Those of them that have changed since it began, as they were then.
    frozen: FxHashMap<u32, Content>,
    /// Pages of the fixed table.
    fixed_count: u32,
    /// The extent of each chunk; `None` where a damaged page told which.
    chunks: Vec<Option<u32>>,
    /// Pages of chunks that hold nothing.
    free_pages: BTreeSet<u32>,
    /// The component and part of each map and delta page.
    names: FxHashMap<u32, (ComponentId, u32)>,
    waiters: FxHashMap<u32, Vec<PageWaiter>>,
    /// Which component stands in each slot.
    slots: Vec<Option<u32>>,
    /// Slots whose pages were damaged: extents may belong to components that are not known. Nobody gets such a slot, for its page must
    /// stay damaged, or the next start would find extents of a component that does not exist.
    lost_slots: BTreeSet<u32>,
}

impl Table {
    /// Bytes of memory that the largest page takes there: that of a map, with 16 bytes for each entry.
    pub(crate) const PAGE_BYTES: usize = {
        let (descriptors, entries) =
            (size_of::<[Descriptor; DESCRIPTORS_PER_PAGE]>(), 16 * BLOCKS_PER_EXTENT);
        let map = size_of::<MapPage>() + entries;
        size_of::<CachedPage>() + if map > descriptors { map } else { descriptors }
    };

    /// The table of a device of which nothing is known yet.
    pub(crate) fn new(geometry: &Geometry) -> Table {
        let pages = geometry.page_count() as usize;
        Table {
            versions: vec![0; pages],
            pages: std::iter::repeat_with(|| None).take(pages).collect(),
            cached_count: 0,
            clock_hand: 0,
            dirty: BitSet::new(pages as u32),
            pending: BitSet::new(pages as u32),
            freezes: true,
            frozen: FxHashMap::default(),
            fixed_count: pages as u32,
            chunks: Vec::new(),
            free_pages: BTreeSet::new(),
            names: FxHashMap::default(),
            waiters: FxHashMap::default(),
            slots: vec![None; geometry.component_slots as usize],
            lost_slots: BTreeSet::new(),
        }
    }

    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Pages of components, which come first.
    pub(crate) fn slot_count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Whether it is the page of a slot.
    pub(crate) fn is_slot(&self, page: u32) -> bool {
        page < self.slot_count()
    }

    /// The page of an extent's descriptor, and the descriptor's index in it.
    pub(crate) fn page_of(&self, extent: u32) -> (u32, usize) {
        let page = self.slot_count() + extent / DESCRIPTORS_PER_PAGE as u32;
        (page, extent as usize % DESCRIPTORS_PER_PAGE)
    }

    /// The first extent that a descriptor page describes.
    pub(crate) fn first_extent(&self, page: u32) -> u32 {
        (page - self.slot_count()) * DESCRIPTORS_PER_PAGE as u32
    }

    /// Version of the newest copy of a page; 0: never written.
    pub(crate) fn version(&self, page: u32) -> u64 {
        self.versions[page as usize]
    }

    /// Recovery has found that version of a page.
    pub(crate) fn recover_version(&mut self, page: u32, version: u64) {
        self.versions[page as usize] = version;
    }

    /// A page whose newest copy is damaged: that copy counts as one version more. The next one goes over the older copy, which is
    /// valid and not current, so that no later start can fall back to it.
    pub(crate) fn skip_version(&mut self, page: u32) {
        self.versions[page as usize] += 1;
    }

    /// The same of a page of whose two copies the other one is newer and of a checkpoint that did not end: the next version goes over that one, or it
    /// would count with the stamp of a later checkpoint. The page of a lost slot is written, too, and stays damaged by that.
    pub(crate) fn replace_unfinished(&mut self, page: u32) {
        self.versions[page as usize] -= 1;
        if self.lost_slots.contains(&page) {
            self.mark_dirty(page);
        }
    }

    /// The descriptor, if its page is in memory. A page never written is free in all its descriptors, without a read.
    pub(crate) fn descriptor(&mut self, extent: u32) -> Option<&mut Descriptor> {
        let (page, index) = self.page_of(extent);
        if self.pages[page as usize].is_none() && self.versions[page as usize] == 0 {
            let free = Box::new([const { Descriptor::FREE }; DESCRIPTORS_PER_PAGE]);
            self.keep(page, Content::Descriptors(free));
        }
        match self.content(page)? {
            Content::Descriptors(descriptors) => Some(&mut descriptors[index]),
            _ => unreachable!("the fixed table has descriptors"),
        }
    }

    /// A page, if it is in memory. Who changes it says so before, by [`Table::mark_dirty`].
    pub(crate) fn content(&mut self, page: u32) -> Option<&mut Content> {
        let cached = self.pages[page as usize].as_mut()?;
        cached.is_recent = true;
        Some(&mut cached.content)
    }

    /// The map page with that number, if it is in memory.
    pub(crate) fn map(&mut self, page: u32) -> Option<&mut MapPage> {
        match self.content(page)? {
            Content::Map(map) => Some(map),
            _ => unreachable!("a mapped part names a map page"),
        }
    }

    /// The delta page with that number, if it is in memory.
    pub(crate) fn delta(&mut self, page: u32) -> Option<&mut DeltaPage> {
        match self.content(page)? {
            Content::Delta(delta) => Some(delta),
            _ => unreachable!("a part names its delta pages"),
        }
    }

    /// The descriptor as it is in memory, without a claim to be kept there.
    pub(crate) fn cached_descriptor(&self, extent: u32) -> Option<&Descriptor> {
        let (page, index) = self.page_of(extent);
        match &self.pages[page as usize].as_ref()?.content {
            Content::Descriptors(descriptors) => Some(&descriptors[index]),
            _ => unreachable!("the fixed table has descriptors"),
        }
    }

    /// Whether a page is in memory: those of components always are.
    pub(crate) fn is_in_memory(&self, page: u32) -> bool {
        self.is_slot(page) || self.pages[page as usize].is_some()
    }

    /// Whether a page is in memory, or can be without a read: one of the fixed table that was never written is free in all its descriptors.
    pub(crate) fn is_ready(&mut self, page: u32) -> bool {
        if page < self.fixed_count && !self.is_slot(page) {
            let extent = self.first_extent(page);
            return self.descriptor(extent).is_some();
        }
        self.content(page).is_some()
    }

    /// Puts a page in memory.
    pub(crate) fn keep(&mut self, page: u32, content: Content) {
        assert!(self.pages[page as usize].is_none(), "a page is cached once");
        self.pages[page as usize] = Some(Box::new(CachedPage { content, pins: 0, is_recent: true }));
        self.cached_count += 1;
    }

    /// Forgets a page that was in memory.
    pub(crate) fn forget(&mut self, page: u32) {
        if self.pages[page as usize].take().is_some() {
            self.cached_count -= 1;
        }
    }

    /// A page, which is in memory, stays there until [`Table::unpin`].
    pub(crate) fn pin(&mut self, page: u32) {
        self.pages[page as usize].as_mut().expect("only a page in memory is pinned").pins += 1;
    }

    pub(crate) fn unpin(&mut self, page: u32) {
        let cached = self.pages[page as usize].as_mut().expect("a pinned page stays in memory");
        assert!(cached.pins > 0, "a pin is taken before it is dropped");
        cached.pins -= 1;
    }

    /// A checkpoint begins: gives the pages that it is to write, in order. They need not be written again, unless they change.
    pub(crate) fn begin_checkpoint(&mut self) -> Vec<u32> {
        assert!(self.pending.count() == 0 && self.frozen.is_empty(), "a checkpoint writes all its pages");
        std::mem::swap(&mut self.dirty, &mut self.pending);
        self.pending.iter().collect()
    }

    /// A page is written as its next version, which this gives.
    pub(crate) fn begin_write(&mut self, page: u32) -> u64 {
        self.pending.remove(page);
        self.versions[page as usize] += 1;
        self.versions[page as usize]
    }

    /// What a page that is about to be written holds, as of the checkpoint's beginning. The page stays in memory until [`Table::end_write`].
    pub(crate) fn written_content(&mut self, page: u32) -> Content {
        let cached = self.pages[page as usize].as_mut().expect("a dirty page stays in memory");
        cached.pins += 1;
        self.frozen.remove(&page).unwrap_or_else(|| cached.content.clone())
    }

    /// A page is written.
    pub(crate) fn end_write(&mut self, page: u32) {
        if let Some(cached) = self.pages[page as usize].as_mut() {
            cached.pins -= 1;
        }
    }

    /// Drops one page that nothing needs, by the clock rule. Says whether one was found.
    pub(crate) fn evict(&mut self) -> bool {
        for _ in 0..self.pages.len() * 2 {
            self.clock_hand = (self.clock_hand + 1) % self.pages.len();
            let hand = self.clock_hand as u32;
            let is_dirty = self.dirty.contains(hand) || self.pending.contains(hand);
            let Some(cached) = self.pages[self.clock_hand].as_mut() else { continue };
            if cached.pins > 0 || is_dirty {
                continue;
            }
            if cached.is_recent {
                cached.is_recent = false;
                continue;
            }
            self.pages[self.clock_hand] = None;
            self.cached_count -= 1;
            return true;
        }
        false
    }

    /// Pages in memory.
    pub(crate) fn cached_count(&self) -> usize {
        self.cached_count
    }

    /// Bytes of memory, estimated: pages, those among them that changed while a checkpoint waits to write them as they were, and what is known of each page.
    pub(crate) fn memory_bytes(&self) -> usize {
        let name = size_of::<(u32, (ComponentId, u32))>() + 1;
        (self.cached_count + self.frozen.len()) * Table::PAGE_BYTES
            + self.pages.len() * (size_of::<u64>() + size_of::<Option<Box<CachedPage>>>())
            + self.names.capacity() * name
            + self.free_pages.len() * size_of::<u32>()
    }

    /// A page is about to change, or must be written again for another reason: the next checkpoint writes it.
    pub(crate) fn mark_dirty(&mut self, page: u32) {
        self.dirty.insert(page);
        if self.freezes
            && self.pending.contains(page)
            && let Some(cached) = &self.pages[page as usize]
        {
            self.frozen.entry(page).or_insert_with(|| cached.content.clone());
        }
    }

    /// Pages in memory that no checkpoint has to write, or nearly so many.
    pub(crate) fn clean_count(&self) -> usize {
        self.cached_count.saturating_sub((self.dirty.count() + self.pending.count()) as usize)
    }

    /// Pages that must be written at the next checkpoint.
    pub(crate) fn dirty_count(&self) -> u32 {
        self.dirty.count()
    }

    /// No page will be written any more.
    pub(crate) fn forget_dirty(&mut self) {
        self.dirty = BitSet::new(self.pages.len() as u32);
        self.pending = BitSet::new(self.pages.len() as u32);
        self.frozen.clear();
    }

    /// Pages of the fixed table.
    pub(crate) fn fixed_count(&self) -> u32 {
        self.fixed_count
    }

    /// Chunks, those among them whose extent is not known.
    pub(crate) fn chunk_count(&self) -> u32 {
        self.chunks.len() as u32
    }

    /// The extent with a page of a chunk, and which of its pages that is; `None` for one of the fixed table.
    pub(crate) fn chunk_of(&self, page: u32) -> Option<(Option<u32>, u32)> {
        let beyond = page.checked_sub(self.fixed_count)?;
        Some((self.chunks[(beyond / PAGES_PER_CHUNK) as usize], beyond % PAGES_PER_CHUNK))
    }

    /// The extent of a chunk.
    pub(crate) fn extent_of_chunk(&self, number: u32) -> Option<u32> {
        self.chunks.get(number as usize).copied().flatten()
    }

    /// A page that is in memory, without a claim to be kept there.
    pub(crate) fn peek(&self, page: u32) -> Option<&Content> {
        Some(&self.pages[page as usize].as_ref()?.content)
    }

    /// A delta page that is in memory, without a claim to be kept there.
    pub(crate) fn peek_delta(&self, page: u32) -> Option<&DeltaPage> {
        match &self.pages[page as usize].as_ref()?.content {
            Content::Delta(delta) => Some(delta),
            _ => unreachable!("a part names its delta pages"),
        }
    }

    /// A map page that is in memory, likewise.
    pub(crate) fn peek_map(&self, page: u32) -> Option<&MapPage> {
        match &self.pages[page as usize].as_ref()?.content {
            Content::Map(map) => Some(map),
            _ => unreachable!("a mapped part names a map page"),
        }
    }

    /// A page holds something else from now on, whatever it held.
    pub(crate) fn replace(&mut self, page: u32, content: Content) {
        self.mark_dirty(page);
        self.set_content(page, content);
    }

    /// A chunk gets its extent. Its pages hold nothing.
    pub(crate) fn add_chunk(&mut self, number: u32, extent: u32) {
        if number as usize >= self.chunks.len() {
            self.chunks.resize(number as usize + 1, None);
            let pages = (self.fixed_count + self.chunks.len() as u32 * PAGES_PER_CHUNK) as usize;
            self.versions.resize(pages, 0);
            self.pages.resize_with(pages, || None);
            self.dirty.grow(pages as u32);
            self.pending.grow(pages as u32);
        }
        assert!(self.chunks[number as usize].is_none(), "a chunk has one extent");
        self.chunks[number as usize] = Some(extent);
    }

    /// Pages of a chunk can be taken.
    pub(crate) fn free_chunk(&mut self, number: u32) {
        let first = self.fixed_count + number * PAGES_PER_CHUNK;
        self.free_pages.extend(first..first + PAGES_PER_CHUNK);
    }

    /// Pages that can be taken.
    pub(crate) fn free_page_count(&self) -> u32 {
        self.free_pages.len() as u32
    }

    /// Takes a free page for something.
    pub(crate) fn take_page(&mut self, content: Content) -> Option<u32> {
        let page = self.free_pages.pop_first()?;
        self.mark_dirty(page);
        self.set_content(page, content);
        Some(page)
    }

    /// A page, which is in memory or was never written, holds nothing any more.
    pub(crate) fn give_page_back(&mut self, page: u32) {
        self.mark_dirty(page);
        self.set_content(page, Content::Empty);
        self.names.remove(&page);
        self.free_pages.insert(page);
    }

    /// A map or delta page is about that part.
    pub(crate) fn name(&mut self, page: u32, part: (ComponentId, u32)) {
        self.names.insert(page, part);
    }

    /// A page is about no part any more: gives the one that it was about.
    pub(crate) fn take_name(&mut self, page: u32) -> Option<(ComponentId, u32)> {
        self.names.remove(&page)
    }

    /// The component and part of a map or delta page.
    pub(crate) fn name_of(&self, page: u32) -> Option<(ComponentId, u32)> {
        self.names.get(&page).copied()
    }

    /// Puts something in memory in the place of a page that cannot be read. The next checkpoint writes it.
    pub(crate) fn keep_damaged(&mut self, page: u32, content: Content) {
        self.set_content(page, content);
        self.mark_dirty(page);
    }

    /// Recovery found that the newest copy of a page is torn: what it says is what the older one does, if there is one.
    pub(crate) fn recover_torn(&mut self, page: u32) {
        let is_empty =
            self.pages[page as usize].as_ref().is_some_and(|one| matches!(one.content, Content::Empty));
        if is_empty && page >= self.fixed_count {
            self.free_pages.insert(page);
        }
    }

    /// Recovery found a page that holds nothing.
    pub(crate) fn recover_free_page(&mut self, page: u32) {
        self.free_pages.insert(page);
    }

    fn set_content(&mut self, page: u32, content: Content) {
        match &mut self.pages[page as usize] {
            Some(cached) => cached.content = content,
            None => self.keep(page, content),
        }
    }

    /// Something waits for a page. Says whether it is the first.
    pub(crate) fn wait(&mut self, page: u32, waiter: PageWaiter) -> bool {
        let waiters = self.waiters.entry(page).or_default();
        waiters.push(waiter);
        waiters.len() == 1
    }

    /// Gives back what waits for a page, in order.
    pub(crate) fn take_waiters(&mut self, page: u32) -> Vec<PageWaiter> {
        self.waiters.remove(&page).unwrap_or_default()
    }

    /// Gives back all that waits, by page and in order.
    pub(crate) fn take_all_waiters(&mut self) -> Vec<PageWaiter> {
        let mut waiting: Vec<_> = std::mem::take(&mut self.waiters).into_iter().collect();
        waiting.sort_unstable_by_key(|(page, _)| *page);
        waiting.into_iter().flat_map(|(_, waiters)| waiters).collect()
    }

    /// The key of the component in a slot.
    pub(crate) fn component_in(&self, slot: u32) -> Option<u32> {
        self.slots[slot as usize]
    }

    /// A component gets a slot, or leaves it.
    pub(crate) fn set_component(&mut self, slot: u32, component: Option<u32>) {
        self.slots[slot as usize] = component;
    }

    /// A slot without a component. `keeps_lost`: none whose page was damaged.
    pub(crate) fn free_slot(&self, keeps_lost: bool) -> Option<u32> {
        let is_lost = |slot: u32| keeps_lost && self.lost_slots.contains(&slot);
        (0..self.slot_count()).find(|&slot| self.slots[slot as usize].is_none() && !is_lost(slot))
    }

    /// The page of a slot is damaged, and no record tells whose it is: it stays damaged, so that the next start knows too.
    pub(crate) fn lose_slot(&mut self, slot: u32) {
        self.lost_slots.insert(slot);
        self.dirty.remove(slot);
    }

    pub(crate) fn is_lost_slot(&self, slot: u32) -> bool {
        self.lost_slots.contains(&slot)
    }

    pub(crate) fn has_lost_slots(&self) -> bool {
        !self.lost_slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::units::MIB;

    /// A page that changes while a checkpoint waits to write it is there twice, which no figure of memory told. Dropped pages are gone from it.
    #[test]
    fn memory_counts_every_page_that_is_kept() {
        let geometry = Geometry::plan(40 * MIB, None, true).expect("it fits");
        let mut table = Table::new(&geometry);
        let blank = table.memory_bytes();
        assert!(table.descriptor(0).is_some() && table.descriptor(3).is_some(), "never written: free");
        let (page, _) = table.page_of(0);
        assert_eq!(table.memory_bytes(), blank + 2 * Table::PAGE_BYTES);
        table.mark_dirty(page);
        assert_eq!(table.begin_checkpoint(), [page]);
        assert_eq!(table.memory_bytes(), blank + 2 * Table::PAGE_BYTES);
        table.mark_dirty(page);
        assert_eq!(table.memory_bytes(), blank + 3 * Table::PAGE_BYTES, "as it was, and as it is");
        while table.evict() {}
        assert_eq!(table.memory_bytes(), blank + 2 * Table::PAGE_BYTES, "what must be written stays");
    }

    #[test]
    fn no_page_takes_more_memory_than_is_counted_for_it() {
        let map = MapPage::empty(ComponentId(1), 0);
        let (entries, page) = (size_of_val(&*map.entries), size_of::<CachedPage>());
        assert!(page + size_of::<MapPage>() + entries <= Table::PAGE_BYTES);
        assert!(page + size_of::<[Descriptor; DESCRIPTORS_PER_PAGE]>() <= Table::PAGE_BYTES);
    }
}
