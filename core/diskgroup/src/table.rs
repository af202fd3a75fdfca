//! The table of one device: which pages are in memory, which must be written, and what waits for one to be read.

use crate::bits::BitSet;
use crate::format::page::{DESCRIPTORS_PER_PAGE, Descriptor};
use crate::format::superblock::Geometry;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The descriptors of one page.
pub(crate) type Descriptors = Box<[Descriptor; DESCRIPTORS_PER_PAGE]>;

/// A descriptor page in memory.
#[derive(Debug)]
struct CachedPage {
    descriptors: Descriptors,
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
    /// Whoever asked will ask again.
    Nobody,
}

/// The pages of one device: first those of components, one for each slot, then those of descriptors.
#[derive(Debug)]
pub(crate) struct Table {
    /// Version of the newest copy of each page; 0: never written.
    versions: Vec<u64>,
    /// The descriptor pages in memory.
    pages: Vec<Option<Box<CachedPage>>>,
    cached_count: usize,
    clock_hand: usize,
    /// Pages (of both kinds) that must be written at the next checkpoint.
    dirty: BitSet,
    waiters: FxHashMap<u32, Vec<PageWaiter>>,
    /// Which component stands in each slot.
    slots: Vec<Option<u32>>,
    /// Slots whose pages were damaged: extents may belong to components that are not known. Nobody gets such a slot, for its page must
    /// stay damaged, or the next start would find extents of a component that does not exist.
    lost_slots: BTreeSet<u32>,
}

impl Table {
    /// Bytes of memory that a descriptor page takes there.
    pub(crate) const PAGE_BYTES: usize =
        size_of::<CachedPage>() + size_of::<[Descriptor; DESCRIPTORS_PER_PAGE]>();

    /// The table of a device of which nothing is known yet.
    pub(crate) fn new(geometry: &Geometry) -> Table {
        let pages = geometry.page_count() as usize;
        Table {
            versions: vec![0; pages],
            pages: std::iter::repeat_with(|| None).take(pages).collect(),
            cached_count: 0,
            clock_hand: 0,
            dirty: BitSet::new(pages as u32),
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

    /// The descriptor, if its page is in memory. A page never written is free in all its descriptors, without a read.
    pub(crate) fn descriptor(&mut self, extent: u32) -> Option<&mut Descriptor> {
        let (page, index) = self.page_of(extent);
        if self.pages[page as usize].is_none() && self.versions[page as usize] == 0 {
            self.keep(page, Box::new([const { Descriptor::FREE }; DESCRIPTORS_PER_PAGE]));
        }
        let cached = self.pages[page as usize].as_mut()?;
        cached.is_recent = true;
        Some(&mut cached.descriptors[index])
    }

    /// The descriptor as it is in memory, without a claim to be kept there.
    pub(crate) fn cached_descriptor(&self, extent: u32) -> Option<&Descriptor> {
        let (page, index) = self.page_of(extent);
        self.pages[page as usize].as_ref().map(|cached| &cached.descriptors[index])
    }

    /// Whether a page is in memory: those of components always are.
    pub(crate) fn is_in_memory(&self, page: u32) -> bool {
        self.is_slot(page) || self.pages[page as usize].is_some()
    }

    /// Puts a page in memory.
    pub(crate) fn keep(&mut self, page: u32, descriptors: Descriptors) {
        assert!(self.pages[page as usize].is_none(), "a page is cached once");
        self.pages[page as usize] = Some(Box::new(CachedPage { descriptors, pins: 0, is_recent: true }));
        self.cached_count += 1;
    }

    /// Forgets a page that was in memory.
    pub(crate) fn forget(&mut self, page: u32) {
        if self.pages[page as usize].take().is_some() {
            self.cached_count -= 1;
        }
    }

    /// The page of an extent, which is in memory, stays there until [`Table::unpin`].
    pub(crate) fn pin(&mut self, extent: u32) {
        let (page, _) = self.page_of(extent);
        self.pages[page as usize].as_mut().expect("only a page in memory is pinned").pins += 1;
    }

    pub(crate) fn unpin(&mut self, extent: u32) {
        let (page, _) = self.page_of(extent);
        let cached = self.pages[page as usize].as_mut().expect("a pinned page stays in memory");
        assert!(cached.pins > 0, "a pin is taken before it is dropped");
        cached.pins -= 1;
    }

    /// A page is written as its next version, which this gives. It need not be written again, unless it changes.
    pub(crate) fn begin_write(&mut self, page: u32) -> u64 {
        self.dirty.remove(page);
        self.versions[page as usize] += 1;
        self.versions[page as usize]
    }

    /// The descriptors of a page that is about to be written. They stay in memory until [`Table::end_write`].
    pub(crate) fn written_descriptors(&mut self, page: u32) -> Descriptors {
        let cached = self.pages[page as usize].as_mut().expect("a dirty page stays in memory");
        cached.pins += 1;
        cached.descriptors.clone()
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
            let is_dirty = self.dirty.contains(self.clock_hand as u32);
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

    /// Descriptor pages in memory.
    pub(crate) fn cached_count(&self) -> usize {
        self.cached_count
    }

    /// A page must be written at the next checkpoint.
    pub(crate) fn mark_dirty(&mut self, page: u32) {
        self.dirty.insert(page);
    }

    /// Pages that must be written at the next checkpoint.
    pub(crate) fn dirty_count(&self) -> u32 {
        self.dirty.count()
    }

    /// The same, in order.
    pub(crate) fn dirty_pages(&self) -> impl Iterator<Item = u32> {
        self.dirty.iter()
    }

    /// No page will be written any more.
    pub(crate) fn forget_dirty(&mut self) {
        self.dirty = BitSet::new(self.pages.len() as u32);
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
