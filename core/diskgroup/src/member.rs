//! One device of a group: its extents, who owns them, and the cache of its table's pages.

use crate::bits::BitSet;
use crate::effort::Meter;
use crate::format::page::{DESCRIPTORS_PER_PAGE, Descriptor};
use crate::format::superblock::{Geometry, Superblock};
use crate::log::BatchStart;
use crate::space::Space;
use crate::unreadable::FailedReads;
use base::{ComponentId, DeviceId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Who owns an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Owner {
    /// `ComponentId(0)`: nobody.
    pub(crate) component: ComponentId,
    pub(crate) part: u32,
}

impl Owner {
    pub(crate) fn is_free(self) -> bool {
        self.component.0 == 0
    }
}

/// A descriptor page in memory.
#[derive(Debug)]
pub(crate) struct CachedPage {
    pub(crate) descriptors: Box<[Descriptor; DESCRIPTORS_PER_PAGE]>,
    /// Uses under way that need it to stay.
    pub(crate) pins: u32,
    /// Set by use, cleared by the clock hand.
    pub(crate) is_recent: bool,
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

/// Whether a device can be used.
#[derive(Debug)]
pub(crate) enum Standing {
    InService,
    /// It was not there when the group was opened, and may come back whole.
    Away {
        why: String,
        /// The first batch of the log that speaks of it.
        since: Option<BatchStart>,
    },
    /// It is out of service until it is replaced.
    Failed {
        why: String,
    },
}

/// One device of the group. A mere log device has no extents.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) id: DeviceId,
    pub(crate) geometry: Geometry,
    standing: Standing,
    /// While it is being taken out: the position that the log's tail must reach first.
    leaves_at: Option<u64>,
    pub(crate) owners: Vec<Owner>,
    pub(crate) space: Space,
    /// Version of the newest copy of each page; 0: never written.
    pub(crate) versions: Vec<u64>,
    pub(crate) pages: Vec<Option<Box<CachedPage>>>,
    pub(crate) pages_cached: usize,
    pub(crate) clock_hand: usize,
    /// Pages (of both kinds) that must be written at the next checkpoint.
    pub(crate) dirty_pages: BitSet,
    /// Extents of which nobody knows what they hold, since the page that told was damaged. While there are any, a part
    /// without an extent is not known to be a hole.
    pub(crate) lost_extents: u32,
    /// Slots whose pages were damaged: extents may belong to components that are not known. Nobody gets such a slot, for its page must
    /// stay damaged, or the next start would find extents of a component that does not exist.
    pub(crate) lost_slots: BTreeSet<u32>,
    pub(crate) page_waiters: FxHashMap<u32, Vec<PageWaiter>>,
    /// Which component stands in each slot.
    pub(crate) slots: Vec<Option<u32>>,
    pub(crate) component_count: u32,
    /// Whether writes have completed since the last flush was asked for.
    pub(crate) is_unsynced: bool,
    pub(crate) damaged_blocks: u64,
    /// Blocks that its device could not read.
    pub(crate) failed_reads: FailedReads,
    /// How long it works for what it does.
    pub(crate) meter: Meter,
    pub(crate) damaged_named: Vec<(ComponentId, u32, u16)>,
}

impl Member {
    /// The device with that superblock; away, if that stands in for a device which is not there.
    pub(crate) fn new(superblock: &Superblock) -> Member {
        let Superblock { device: id, geometry, .. } = *superblock;
        let standing = match superblock.is_away() {
            true => Standing::Away { why: "it is not there".to_owned(), since: None },
            false => Standing::InService,
        };
        let extents = geometry.extent_count();
        let pages = geometry.page_count() as usize;
        Member {
            id,
            geometry,
            standing,
            leaves_at: None,
            owners: vec![Owner::default(); extents as usize],
            space: Space::new(extents),
            versions: vec![0; pages],
            pages: std::iter::repeat_with(|| None).take(pages).collect(),
            pages_cached: 0,
            clock_hand: 0,
            dirty_pages: BitSet::new(pages as u32),
            lost_extents: 0,
            lost_slots: BTreeSet::new(),
            page_waiters: FxHashMap::default(),
            slots: vec![None; geometry.component_slots as usize],
            component_count: 0,
            is_unsynced: false,
            damaged_blocks: 0,
            failed_reads: FailedReads::default(),
            meter: Meter::default(),
            damaged_named: Vec::new(),
        }
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn is_in_service(&self) -> bool {
        matches!(self.standing, Standing::InService)
    }

    /// Why it is out of service, if it is.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.standing {
            Standing::InService => None,
            Standing::Away { why, .. } | Standing::Failed { why } => Some(why),
        }
    }

    /// It is out of service until it is replaced.
    pub(crate) fn fail(&mut self, why: String) {
        self.standing = Standing::Failed { why };
    }

    /// Says of a member that is away what was found in its place.
    pub(crate) fn note_missing(&mut self, found: &str) {
        if let Standing::Away { why, .. } = &mut self.standing {
            *why = found.to_owned();
        }
    }

    /// The log speaks of it from there on, if it is away.
    pub(crate) fn keep_log_from(&mut self, start: BatchStart) {
        if let Standing::Away { since, .. } = &mut self.standing {
            since.get_or_insert(start);
        }
    }

    /// While it is away: the first batch of the log that speaks of it.
    pub(crate) fn away_since(&self) -> Option<BatchStart> {
        match self.standing {
            Standing::Away { since, .. } => since,
            Standing::InService | Standing::Failed { .. } => None,
        }
    }

    /// It is being taken out once the log's tail has reached `position`: no component may be made on it.
    pub(crate) fn leave_at(&mut self, position: u64) {
        self.leaves_at = Some(position);
    }

    /// While it is being taken out: the position that the log's tail must reach first.
    pub(crate) fn leaves_at(&self) -> Option<u64> {
        self.leaves_at
    }

    /// Whether it stands for a place of the group without a device.
    pub(crate) fn is_empty_place(&self) -> bool {
        self.id == DeviceId(0)
    }

    pub(crate) fn is_capacity(&self) -> bool {
        self.geometry.extent_count() > 0
    }

    /// The page and the place in it of an extent's descriptor.
    pub(crate) fn page_of(&self, extent: u32) -> (u32, usize) {
        let page = self.geometry.component_slots + extent / DESCRIPTORS_PER_PAGE as u32;
        (page, extent as usize % DESCRIPTORS_PER_PAGE)
    }

    /// The descriptor, if its page is in memory. A page never written is free in all its descriptors, without a read.
    pub(crate) fn descriptor(&mut self, extent: u32) -> Option<&mut Descriptor> {
        let (page, place) = self.page_of(extent);
        if self.pages[page as usize].is_none() && self.versions[page as usize] == 0 {
            self.keep_page(page, Box::new([const { Descriptor::FREE }; DESCRIPTORS_PER_PAGE]));
        }
        let cached = self.pages[page as usize].as_mut()?;
        cached.is_recent = true;
        Some(&mut cached.descriptors[place])
    }

    /// The descriptor as it is in memory, without a claim to be kept there.
    pub(crate) fn cached_descriptor(&self, extent: u32) -> Option<&Descriptor> {
        let (page, place) = self.page_of(extent);
        self.pages[page as usize].as_ref().map(|cached| &cached.descriptors[place])
    }

    pub(crate) fn keep_page(&mut self, page: u32, descriptors: Box<[Descriptor; DESCRIPTORS_PER_PAGE]>) {
        assert!(self.pages[page as usize].is_none(), "a page is cached once");
        self.pages[page as usize] = Some(Box::new(CachedPage { descriptors, pins: 0, is_recent: true }));
        self.pages_cached += 1;
    }

    /// Puts a page in memory whose copy does not verify, while the owners of its extents are known: every block counts as
    /// allocated, with a checksum that its data will not match, so that reads say "damaged" until it is written again.
    pub(crate) fn keep_unreadable(&mut self, page: u32) {
        let first = (page - self.geometry.component_slots) * DESCRIPTORS_PER_PAGE as u32;
        let descriptor = |extent: u32| match self.owners.get(extent as usize) {
            Some(owner) if !owner.is_free() => {
                Descriptor { component: owner.component, part: owner.part, ..Descriptor::LOST }
            }
            Some(_) | None => Descriptor::FREE,
        };
        let descriptors = Box::new([descriptor(first), descriptor(first + 1), descriptor(first + 2)]);
        self.keep_page(page, descriptors);
        self.dirty_pages.insert(page);
    }

    pub(crate) fn drop_page(&mut self, page: u32) {
        if self.pages[page as usize].take().is_some() {
            self.pages_cached -= 1;
        }
    }

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

    /// Drops one page that nothing needs, by the clock rule. Says whether one was found.
    pub(crate) fn evict_page(&mut self) -> bool {
        for _ in 0..self.pages.len() * 2 {
            self.clock_hand = (self.clock_hand + 1) % self.pages.len();
            let is_dirty = self.dirty_pages.contains(self.clock_hand as u32);
            let Some(cached) = self.pages[self.clock_hand].as_mut() else { continue };
            if cached.pins > 0 || is_dirty {
                continue;
            }
            if cached.is_recent {
                cached.is_recent = false;
                continue;
            }
            self.pages[self.clock_hand] = None;
            self.pages_cached -= 1;
            return true;
        }
        false
    }
}
