//! A layout that a disk moves out of, and the one that it moves into (docs/design/0041).

use crate::tree::Layout;
use std::ops::Range;

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

    /// The layout that the disk had before it began to move, or has.
    pub fn settled(&self) -> &Layout {
        self.side(Side::Old).map_or(self, |(_, old)| old)
    }

    /// The layout that counts nowhere but on this side: as if all had moved there.
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

    /// Which side counts for parts of a range of a disk that moves, in order. One part where nothing moves.
    pub fn counting(&self, range: Range<u64>) -> impl Iterator<Item = (Side, Range<u64>)> {
        let edge = self.boundary().unwrap_or(0).clamp(range.start, range.end);
        let parts = [(Side::New, range.start..edge), (Side::Old, edge..range.end)];
        parts.into_iter().filter(|(_, range)| !range.is_empty())
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
