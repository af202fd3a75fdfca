//! A layout that a disk moves out of, and the one that it moves into (docs/design/0041).

use crate::limits::{MOVE_GRANULES, MOVE_GRANULES_OF_DISK};
use crate::tree::Layout;

/// One of the two layouts of a disk that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The layout that the disk had, which counts from the boundary on.
    Old,
    /// The layout that it gets, which counts below the boundary.
    New,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Old => Side::New,
            Side::New => Side::Old,
        }
    }
}

impl Layout {
    /// A layout of which nothing has moved into `new` yet.
    #[must_use]
    pub fn moving_to(self, new: Layout) -> Layout {
        Layout::Moving { sides: Box::new([self, new]), boundary: 0 }
    }

    /// Below which byte of the disk the new layout counts; none where nothing moves.
    pub fn boundary(&self) -> Option<u64> {
        match self {
            Layout::Moving { boundary, .. } => Some(*boundary),
            _ => None,
        }
    }

    /// Takes the boundary to another byte, where there is one.
    pub fn set_boundary(&mut self, to: u64) {
        if let Layout::Moving { boundary, .. } = self {
            *boundary = to;
        }
    }

    /// One side of a disk that moves, with the first of its places.
    pub fn side(&self, side: Side) -> Option<(usize, &Layout)> {
        let Layout::Moving { sides, .. } = self else { return None };
        Some(match side {
            Side::Old => (0, &sides[0]),
            Side::New => (sides[0].place_count(), &sides[1]),
        })
    }

    /// This layout as if one side counted everywhere.
    #[must_use]
    pub fn only(&self, side: Side) -> Layout {
        match self {
            Layout::Moving { sides, .. } => {
                let boundary = if side == Side::Old { 0 } else { self.size() };
                Layout::Moving { sides: sides.clone(), boundary }
            }
            other => other.clone(),
        }
    }

    /// Where a byte of a component of the new side stands on the old side: the place, and the byte in each component of that. None beyond the end of the disk, of a place of
    /// the old side, and where nothing moves. What stands in one part of 1 MiB on one side does so on the other, where neither has rows with parity.
    pub fn on_old_side(&self, place: usize, offset: u64) -> Option<(usize, u64)> {
        let (first, _) = self.side(Side::New)?;
        let Layout::Moving { sides, .. } = self else { return None };
        let at = self.locate(place, offset).filter(|at| place >= first && *at < self.size())?;
        let mut found = None;
        sides[0]
            .map(at, crate::limits::UNIT_STEP, &mut |span| found = found.or(Some((span.place, span.offset))));
        found
    }

    /// Bytes of the disk after which all columns and rows begin anew: what is cut at a multiple of them leaves whole extents.
    pub fn full_stripe(&self) -> u64 {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } => crate::limits::STRIPE_UNIT,
            Layout::Parity { code, .. } => crate::limits::STRIPE_UNIT * u64::from(code.data()),
            Layout::Stripe { unit, columns } => {
                common(columns[0].full_stripe(), *unit) * columns.len() as u64
            }
            Layout::Concatenation { .. } | Layout::Moving { .. } => {
                self.children().iter().map(Layout::full_stripe).fold(1, common)
            }
        }
    }

    /// The most bytes of a disk that moves between these sides which stand on both at once.
    pub fn granule_max(&self) -> u64 {
        let granule = self.size() / MOVE_GRANULES_OF_DISK;
        let granule = granule.clamp(*MOVE_GRANULES.start(), *MOVE_GRANULES.end());
        granule.next_multiple_of(self.full_stripe()).min(self.size())
    }
}

/// The least common multiple.
fn common(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;
    use crate::mapping::Span;
    use crate::tree::{Component, Invalid};
    use base::units::MIB;
    use base::{ComponentId, DeviceId};

    fn component(id: u64, size: u64, position: u8) -> Component {
        Component { id: ComponentId(id), device: DeviceId(id.into()), size, position }
    }

    /// A stripe of two mirrors of 3 MiB each that moves into rows of 2+1 with 4 MiB each.
    fn moving() -> Layout {
        let mirror = |first: u64| Layout::Mirror {
            copies: vec![component(first, 3 * MIB, 0), component(first + 1, 3 * MIB, 0)],
        };
        let old = Layout::Stripe { unit: MIB, columns: vec![mirror(1), mirror(3)] };
        let code = Code::new(2, 1).expect("it is one of them");
        let members = (0..3).map(|index| component(5 + index, 4 * MIB, index as u8)).collect();
        old.moving_to(Layout::Parity { code, members })
    }

    fn spans(layout: &Layout, offset: u64, len: u64) -> Vec<Span> {
        let mut found = Vec::new();
        layout.map(offset, len, &mut |span| found.push(span));
        found
    }

    #[test]
    fn below_the_boundary_the_new_layout_counts_and_behind_it_the_old_one() {
        let mut layout = moving();
        assert_eq!((layout.size(), layout.place_count(), layout.full_stripe()), (6 * MIB, 3, 2 * MIB));
        for boundary in [0, 4096, MIB, 2 * MIB + 4096, 6 * MIB] {
            layout.set_boundary(boundary);
            assert_eq!(layout.validate(), Ok(()));
            for (offset, len) in [(0, 6 * MIB), (4096, 3 * MIB), (2 * MIB, 8192)] {
                let mut at = offset;
                for span in spans(&layout, offset, len) {
                    let end = span.disk_offset + span.len;
                    assert_eq!(span.disk_offset, at, "without a gap");
                    assert!(if span.place == 2 { end <= boundary } else { span.disk_offset >= boundary });
                    assert_eq!(layout.locate(span.place, span.offset), Some(span.disk_offset));
                    at = end;
                }
                assert_eq!(at, offset + len);
                let mut places = std::collections::BTreeSet::new();
                layout.map_places(offset, len, &mut |place, _| places.extend([place]));
                assert_eq!(places, spans(&layout, offset, len).iter().map(|span| span.place).collect());
            }
        }
        assert!(spans(&layout.only(Side::Old), 0, 6 * MIB).iter().all(|span| span.place < 2));
        assert!(spans(&layout.only(Side::New), 0, 6 * MIB).iter().all(|span| span.place == 2));
    }

    #[test]
    fn each_part_of_the_new_side_stands_in_one_of_the_old_side() {
        let stripe = |first: u64, columns: u64, mib: u64| Layout::Stripe {
            unit: MIB,
            columns: (first..first + columns)
                .map(|id| Layout::Component(component(id, mib * MIB, 0)))
                .collect(),
        };
        let old = Layout::Concatenation {
            parts: vec![stripe(1, 2, 3), Layout::Component(component(3, 6 * MIB, 0))],
        };
        let layout = old.moving_to(stripe(10, 3, 4));
        for at in 0..12u64 {
            let (column, row) = (at % 3, at / 3);
            let expected = if at < 6 { (at % 2, at / 2) } else { (2, at - 6) };
            let found = layout.on_old_side(3 + column as usize, row * MIB + 4096);
            assert_eq!(found, Some((expected.0 as usize, expected.1 * MIB + 4096)), "MiB {at}");
        }
        assert_eq!(layout.on_old_side(3, 4 * MIB), None, "beyond the end");
        assert_eq!(layout.on_old_side(0, 0), None, "a place of the old side");
        assert_eq!(stripe(1, 2, 3).on_old_side(0, 0), None, "nothing moves");
    }

    #[test]
    fn a_granule_is_a_sixteenth_of_the_disk_within_bounds_and_consists_of_full_stripes() {
        let granule = |mib: u64| {
            let one = |id| Layout::Component(component(id, mib * MIB, 0));
            let three = (0..3).map(|id| Layout::Component(component(5 + id, mib / 3 * MIB, 0))).collect();
            one(1).moving_to(Layout::Stripe { unit: MIB, columns: three }).granule_max() / MIB
        };
        for (disk, expected) in [(30, 30), (300, 66), (3000, 189), (15_000, 939), (300_000, 1026)] {
            assert_eq!(granule(disk), expected, "{disk} MiB");
        }
    }

    #[test]
    fn a_layout_that_moves_is_read_as_it_was_written_and_moves_at_its_root_alone() {
        let mut layout = moving();
        layout.set_boundary(2 * MIB);
        assert_eq!(Layout::decode(&layout.encode()).as_ref(), Ok(&layout));
        assert_eq!(layout.place_code(1), None);
        assert_eq!(layout.place_code(2), Code::new(2, 1));
        layout.set_boundary(6 * MIB + 4096);
        assert_eq!(layout.validate(), Err(Invalid::Boundary));
        let twice = moving().moving_to(Layout::Component(component(9, 6 * MIB, 0)));
        assert_eq!(twice.validate(), Err(Invalid::Boundary));
        assert!(Layout::decode(&twice.encode()).is_err());
    }
}
