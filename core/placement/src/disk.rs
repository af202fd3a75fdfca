//! What placement knows of a disk that stands somewhere.

use crate::device::{Footprint, reservation};
use crate::policy::{Percent, Policy};
use base::DiskId;
use base::units::EXTENT_SIZE;
use layout::Layout;
use std::ops::Range;

/// A disk and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct PlacedDisk<'a> {
    /// Its identity.
    pub id: DiskId,
    /// Where it stands.
    pub layout: &'a Layout,
    /// What was asked for.
    pub policy: &'a Policy,
    /// Its size in bytes.
    pub size: u64,
    /// The share of every component that its device sets aside: the policy's, or less when that is a debt.
    pub space_reservation: Percent,
    /// Bytes of data by the index of the place; every copy of a place has the same. Places beyond its end count as
    /// empty.
    pub used_bytes: &'a [u64],
}

impl PlacedDisk<'_> {
    /// What one component of a place takes of its device. The place must be there.
    pub fn footprint(&self, place: usize) -> Footprint {
        let copies = self.layout.place(place).expect("the place is there");
        Footprint {
            data_bytes: self.used_bytes.get(place).map_or(0, |used| used.next_multiple_of(EXTENT_SIZE)),
            reservation_bytes: reservation(copies[0].size, self.space_reservation),
        }
    }
}

/// The places of each part of a layout: of the concatenation's children, or all of them.
pub(crate) fn parts_of(layout: &Layout) -> Vec<Range<usize>> {
    let mut next = 0;
    let range = |part: &Layout| {
        let first = next;
        next += part.place_count();
        first..next
    };
    layout.parts().iter().map(range).collect()
}
