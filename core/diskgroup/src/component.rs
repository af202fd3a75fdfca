//! A component as its group knows it.

use crate::format::map::Entry;
use crate::format::page::{ComponentRecord, Compression, HOLES_MAX, PARTS_PER_HOLE};
use crate::lineage::Lineage;
use crate::window::Window;
use base::WriteId;
use base::units::EXTENT_SIZE;
use std::ops::Range;

/// The parts that share the version of holes with one.
pub(crate) fn parts_of_hole(part: u32) -> Range<u32> {
    let first = part - part % PARTS_PER_HOLE;
    first..first + PARTS_PER_HOLE
}

/// Whether the record of a component is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stability {
    OnItsWay,
    Stable,
}

/// What compressed blocks of a component take that its pages name, for the live disk and for snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    pub(crate) blocks: u64,
    pub(crate) units: u64,
}

impl Packed {
    /// A page names a block from now on.
    pub(crate) fn add(&mut self, entry: Entry) {
        if entry.form().is_packed() {
            self.blocks += 1;
            self.units += u64::from(entry.units());
        }
    }

    /// No page names that block any more. Where a page was lost, it may be of what that told.
    pub(crate) fn remove(&mut self, entry: Entry) {
        if entry.form().is_packed() {
            self.blocks = self.blocks.saturating_sub(1);
            self.units = self.units.saturating_sub(u64::from(entry.units()));
        }
    }
}

/// One component of a group.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) record: ComponentRecord,
    /// The member it stands on, and its slot there.
    pub(crate) member: u8,
    pub(crate) slot: u32,
    /// Parts that have an extent or a map page.
    pub(crate) used: u32,
    /// How its record, or one that is on its way, asks for blocks to be stored.
    pub(crate) compression_asked: Compression,
    /// What its compressed blocks take.
    pub(crate) packed: Packed,
    /// Whether any part of it had a map page since the group was opened.
    pub(crate) had_pages: bool,
    /// Its snapshots, and what they see beside the live parts.
    pub(crate) lineage: Lineage,
    /// Whether its record is stable: only then it may be used.
    pub(crate) is_stable: bool,
    /// While it is being deleted: the next part to give back.
    pub(crate) delete_cursor: u32,
    /// Free records of its deletion that are under way.
    pub(crate) frees_pending: u32,
    /// Changed by [`crate::components::Components`] alone, which counts what is in it.
    window: Window,
    /// For each GiB the greatest id of a free of an extent in it: what a resync must know of parts without an extent.
    holes: Vec<WriteId>,
}

impl Component {
    /// A component at that member and slot.
    pub(crate) fn new(
        record: ComponentRecord,
        (member, slot): (u8, u32),
        holes: Vec<WriteId>,
        stability: Stability,
    ) -> Component {
        assert!(holes.len() <= HOLES_MAX, "a component has at most 255 GiB");
        Component {
            compression_asked: record.compression,
            packed: Packed::default(),
            had_pages: false,
            record,
            member,
            slot,
            used: 0,
            lineage: Lineage::default(),
            is_stable: stability == Stability::Stable,
            delete_cursor: 0,
            frees_pending: 0,
            window: Window::default(),
            holes,
        }
    }

    /// Parts of it, whether or not they have an extent.
    pub(crate) fn part_count(&self) -> u32 {
        (self.record.size / EXTENT_SIZE) as u32
    }

    /// Extents set aside for it that it has not taken yet.
    pub(crate) fn reserved_extents(&self) -> u32 {
        (self.record.reservation.div_ceil(EXTENT_SIZE) as u32).saturating_sub(self.used)
    }

    /// One of its parts gets an extent.
    pub(crate) fn take_extent(&mut self) {
        self.used += 1;
        assert!(self.used <= self.part_count(), "a part has one extent");
    }

    /// One of its parts loses its extent.
    pub(crate) fn give_extent_back(&mut self) {
        assert!(self.used > 0, "only what was taken is given back");
        self.used -= 1;
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    pub(crate) fn take_window(&mut self) -> Window {
        std::mem::take(&mut self.window)
    }

    pub(crate) fn holes(&self) -> &[WriteId] {
        &self.holes
    }

    /// The greatest id of a free in the GiB of `part`.
    pub(crate) fn hole(&self, part: u32) -> WriteId {
        self.holes.get((part / PARTS_PER_HOLE) as usize).copied().unwrap_or_default()
    }

    /// Notes that an extent of `part` was freed by (or after) write `id`.
    pub(crate) fn note_hole(&mut self, part: u32, id: WriteId) {
        let index = (part / PARTS_PER_HOLE) as usize;
        if index >= self.holes.len() {
            self.holes.resize(index + 1, WriteId::default());
        }
        self.holes[index] = self.holes[index].max(id);
    }
}
