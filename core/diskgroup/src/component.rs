//! A component as its group knows it: which extent holds which part of it.

use crate::format::page::{ComponentRecord, HOLES_MAX, PARTS_PER_HOLE};
use crate::window::Window;
use base::WriteId;
use base::units::EXTENT_SIZE;
use std::ops::Range;

/// No extent.
const NONE: u32 = u32::MAX;
/// Parts in one leaf of the map.
const LEAF: usize = 512;

/// Which extent holds which part; two levels, so that a large thin component costs little.
#[derive(Debug, Default)]
struct PartMap {
    leaves: Vec<Option<Box<[u32; LEAF]>>>,
}

impl PartMap {
    fn get(&self, part: u32) -> Option<u32> {
        let leaf = self.leaves.get(part as usize / LEAF)?.as_ref()?;
        Some(leaf[part as usize % LEAF]).filter(|&extent| extent != NONE)
    }

    fn set(&mut self, part: u32, extent: Option<u32>) {
        let index = part as usize / LEAF;
        if index >= self.leaves.len() {
            self.leaves.resize_with(index + 1, || None);
        }
        let leaf = self.leaves[index].get_or_insert_with(|| Box::new([NONE; LEAF]));
        leaf[part as usize % LEAF] = extent.unwrap_or(NONE);
    }
}

/// One component of a group.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) record: ComponentRecord,
    /// The member it stands on, and its slot there.
    pub(crate) member: u8,
    pub(crate) slot: u32,
    /// Extents taken.
    pub(crate) used: u32,
    /// Whether its record is stable: only then it may be used.
    pub(crate) is_stable: bool,
    /// While it is being deleted: the next part to give back.
    pub(crate) delete_cursor: u32,
    /// Free records of its deletion that are under way.
    pub(crate) frees_pending: u32,
    pub(crate) window: Window,
    parts: PartMap,
    /// For each GiB the greatest id of a free of an extent in it: what a resync must know of parts without an extent.
    holes: Vec<WriteId>,
}

impl Component {
    pub(crate) fn new(record: ComponentRecord, member: u8, slot: u32, holes: Vec<WriteId>) -> Component {
        assert!(holes.len() <= HOLES_MAX, "a component has at most 255 GiB");
        Component {
            record,
            member,
            slot,
            used: 0,
            is_stable: false,
            delete_cursor: 0,
            frees_pending: 0,
            window: Window::default(),
            parts: PartMap::default(),
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

    pub(crate) fn extent_of(&self, part: u32) -> Option<u32> {
        self.parts.get(part)
    }

    pub(crate) fn map(&mut self, part: u32, extent: u32) {
        let before = self.parts.get(part);
        assert!(before.is_none(), "a part is mapped once");
        self.parts.set(part, Some(extent));
        self.used += 1;
    }

    pub(crate) fn unmap(&mut self, part: u32) {
        assert!(self.parts.get(part).is_some(), "only a mapped part is unmapped");
        self.parts.set(part, None);
        self.used -= 1;
    }

    /// The next part at or after `from` that has an extent.
    pub(crate) fn next_mapped(&self, from: u32) -> Option<(u32, u32)> {
        let mut part = from;
        while (part as usize) < self.parts.leaves.len() * LEAF {
            if self.parts.leaves[part as usize / LEAF].is_none() {
                part = (part / LEAF as u32 + 1) * LEAF as u32;
                continue;
            }
            if let Some(extent) = self.parts.get(part) {
                return Some((part, extent));
            }
            part += 1;
        }
        None
    }

    /// The first of some parts that has an extent.
    pub(crate) fn first_mapped(&self, parts: Range<u32>) -> Option<u32> {
        let mut part = parts.start;
        while part < parts.end && (part as usize / LEAF) < self.parts.leaves.len() {
            if self.parts.leaves[part as usize / LEAF].is_none() {
                part = (part / LEAF as u32 + 1) * LEAF as u32;
            } else if self.parts.get(part).is_some() {
                return Some(part);
            } else {
                part += 1;
            }
        }
        None
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
