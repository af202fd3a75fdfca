//! A map by part of one component, in two levels, so that a large thin component costs little.

use std::ops::Range;

/// No number.
const NONE: u32 = u32::MAX;
/// Parts in one leaf of the map.
const LEAF: usize = 512;

/// Set in the number of a map page, to tell it from that of an extent.
const MAPPED: u32 = 1 << 31;

/// Where a part stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// In an extent of its own.
    Extent(u32),
    /// Where the entries of that page of the table say.
    Page(u32),
}

/// What is known of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The extent that holds it, or its map page.
    place: u32,
    /// Key of what the log has of it.
    buffered: u32,
}

impl Slot {
    const EMPTY: Slot = Slot { place: NONE, buffered: NONE };

    fn placement(self) -> Option<Placement> {
        match self.place {
            NONE => None,
            place if place & MAPPED != 0 => Some(Placement::Page(place & !MAPPED)),
            place => Some(Placement::Extent(place)),
        }
    }
}

/// For each part its extent, and the key of what the log has of it. A leaf without either is not there.
#[derive(Debug, Default)]
pub(crate) struct PartMap {
    leaves: Vec<Option<Box<[Slot; LEAF]>>>,
}

impl PartMap {
    fn slot(&self, part: u32) -> Slot {
        match self.leaves.get(part as usize / LEAF) {
            Some(Some(leaf)) => leaf[part as usize % LEAF],
            Some(None) | None => Slot::EMPTY,
        }
    }

    fn slot_mut(&mut self, part: u32) -> &mut Slot {
        let index = part as usize / LEAF;
        if index >= self.leaves.len() {
            self.leaves.resize_with(index + 1, || None);
        }
        let leaf = self.leaves[index].get_or_insert_with(|| Box::new([Slot::EMPTY; LEAF]));
        &mut leaf[part as usize % LEAF]
    }

    /// Where the part stands.
    pub(crate) fn placement(&self, part: u32) -> Option<Placement> {
        self.slot(part).placement()
    }

    /// The extent that holds the part.
    pub(crate) fn extent(&self, part: u32) -> Option<u32> {
        match self.placement(part) {
            Some(Placement::Extent(extent)) => Some(extent),
            Some(Placement::Page(_)) | None => None,
        }
    }

    /// The map page of the part.
    pub(crate) fn page(&self, part: u32) -> Option<u32> {
        match self.placement(part) {
            Some(Placement::Page(page)) => Some(page),
            Some(Placement::Extent(_)) | None => None,
        }
    }

    /// The key of what the log has of the part.
    pub(crate) fn buffered(&self, part: u32) -> Option<u32> {
        Some(self.slot(part).buffered).filter(|&key| key != NONE)
    }

    /// The part gets an extent.
    pub(crate) fn map(&mut self, part: u32, extent: u32) {
        let slot = self.slot_mut(part);
        assert!(slot.place == NONE, "a part is placed once");
        assert!(extent & MAPPED == 0, "a device has fewer extents");
        slot.place = extent;
    }

    /// The part loses its extent, and with it what the log has of it.
    pub(crate) fn unmap(&mut self, part: u32) {
        let slot = self.slot_mut(part);
        assert!(slot.place != NONE, "only a part with a place loses it");
        *slot = Slot::EMPTY;
    }

    /// The part gets a map page, in the place of its extent if it has one, or loses it.
    pub(crate) fn set_page(&mut self, part: u32, page: Option<u32>) {
        let slot = self.slot_mut(part);
        slot.place = page.map_or(NONE, |page| page | MAPPED);
    }

    /// Sets the key of what the log has of a part.
    pub(crate) fn set_buffered(&mut self, part: u32, key: Option<u32>) {
        self.slot_mut(part).buffered = key.unwrap_or(NONE);
    }

    /// The first of some parts that has a place, and that.
    pub(crate) fn first_placed(&self, parts: Range<u32>) -> Option<(u32, Placement)> {
        let mut part = parts.start;
        while part < parts.end && (part as usize / LEAF) < self.leaves.len() {
            if self.leaves[part as usize / LEAF].is_none() {
                part = (part / LEAF as u32 + 1) * LEAF as u32;
                continue;
            }
            if let Some(placement) = self.placement(part) {
                return Some((part, placement)).filter(|(part, _)| *part < parts.end);
            }
            part += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_without_extents_are_passed_over() {
        let mut map = PartMap::default();
        map.map(3, 30);
        map.map(5_000, 7);
        assert_eq!(map.first_placed(0..u32::MAX), Some((3, Placement::Extent(30))));
        assert_eq!(map.first_placed(4..u32::MAX), Some((5_000, Placement::Extent(7))));
        assert_eq!(map.first_placed(4..5_000), None);
        assert_eq!(map.leaves.iter().flatten().count(), 2);
    }

    #[test]
    fn what_the_log_has_of_a_part_goes_with_its_extent() {
        let mut map = PartMap::default();
        map.map(1, 10);
        map.set_buffered(1, Some(4));
        assert_eq!((map.extent(1), map.buffered(1)), (Some(10), Some(4)));
        map.set_page(1, Some(6));
        assert_eq!((map.extent(1), map.page(1), map.buffered(1)), (None, Some(6), Some(4)));
        map.unmap(1);
        map.map(1, 11);
        assert_eq!((map.extent(1), map.buffered(1)), (Some(11), None));
    }
}
