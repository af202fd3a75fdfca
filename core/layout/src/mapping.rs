//! The mapping between a disk's bytes and the bytes of places, in both directions. All copies of a mirror have the same bytes at
//! the same offsets; how those of a place with parity stand in its members is [`rows`](crate::rows).
//!
//! Pure, and frozen: formats and guests' data depend on it. Must never allocate.
//!
//! Worked example, a stripe of two places `A`, `B` with a unit of 1 MiB: disk bytes 0..1 MiB are `A` 0..1 MiB, 1..2
//! MiB are `B` 0..1 MiB, 2..3 MiB are `A` 1..2 MiB, and so on.

use crate::tree::Layout;
use std::cmp::Ordering;
use std::ops::Range;

/// A run of a disk's bytes that stands in one place without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Depth-first index of the place.
    pub place: usize,
    /// First byte of the place.
    pub offset: u64,
    /// First byte on the disk.
    pub disk_offset: u64,
    /// Length in bytes, never zero.
    pub len: u64,
}

/// Where a walk stands: what was passed on the way from the root.
#[derive(Clone, Copy)]
struct Base {
    place: usize,
    disk_offset: u64,
}

impl Layout {
    /// Calls `visit` with the pieces of `offset..offset + len`, in the disk's order. The range must lie within
    /// [`Layout::size`]; nothing is visited when it is empty.
    #[inline]
    pub fn map(&self, offset: u64, len: u64, visit: &mut impl FnMut(Span)) {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.size()),
            "a range lies within its layout"
        );
        if len == 0 {
            return;
        }
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => {
                visit(Span { place: 0, offset, disk_offset: offset, len });
            }
            Layout::Stripe { .. } | Layout::Concatenation { .. } | Layout::Moving { .. } => {
                self.walk(offset, len, Base { place: 0, disk_offset: offset }, visit);
            }
        }
    }

    /// `offset` counts from the start of this node, `base` says what that is on the disk and in the whole tree.
    fn walk(&self, offset: u64, len: u64, base: Base, visit: &mut dyn FnMut(Span)) {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => {
                visit(Span { place: base.place, offset, disk_offset: base.disk_offset, len });
            }
            Layout::Stripe { unit, columns } => walk_stripe(*unit, columns, offset, len, base, visit),
            Layout::Concatenation { parts } => walk_parts(parts, offset, len, base, visit),
            Layout::Moving { sides, boundary } => {
                for (first, range) in counting_sides(sides, *boundary, offset..offset + len) {
                    let base = Base {
                        place: base.place + first,
                        disk_offset: base.disk_offset + (range.start - offset),
                    };
                    let side = if first == 0 { &sides[0] } else { &sides[1] };
                    side.walk(range.start, range.end - range.start, base, visit);
                }
            }
        }
    }

    /// Calls `visit` once for each place that holds some of `offset..offset + len`, with the place and the range of its own
    /// bytes: what stands in a place of a range of the disk has no gap there. The steps grow with the places, and not with
    /// the units of stripes as those of [`Layout::map`] do.
    pub fn map_places(&self, offset: u64, len: u64, visit: &mut impl FnMut(usize, Range<u64>)) {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.size()),
            "a range lies within its layout"
        );
        if len > 0 {
            self.walk_places(offset..offset + len, 0, visit);
        }
    }

    /// `range` counts from the start of this node, whose first place is `place`.
    fn walk_places(&self, range: Range<u64>, place: usize, visit: &mut dyn FnMut(usize, Range<u64>)) {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => visit(place, range),
            Layout::Stripe { unit, columns } => {
                let (count, each) = (columns.len() as u64, columns[0].place_count());
                // Bytes of a column that stand before a byte of the stripe.
                let before = |column: u64, at: u64| {
                    let (number, within) = (at / unit, at % unit);
                    let own = match column.cmp(&(number % count)) {
                        Ordering::Less => *unit,
                        Ordering::Equal => within,
                        Ordering::Greater => 0,
                    };
                    number / count * unit + own
                };
                for (index, column) in columns.iter().enumerate() {
                    let inner = before(index as u64, range.start)..before(index as u64, range.end);
                    if !inner.is_empty() {
                        column.walk_places(inner, place + index * each, visit);
                    }
                }
            }
            Layout::Concatenation { parts } => {
                let (mut start, mut place) = (0, place);
                for part in parts {
                    let end = start + part.size();
                    let inner = range.start.max(start)..range.end.min(end);
                    if !inner.is_empty() {
                        part.walk_places(inner.start - start..inner.end - start, place, visit);
                    }
                    (start, place) = (end, place + part.place_count());
                }
            }
            Layout::Moving { sides, boundary } => {
                for (first, range) in counting_sides(sides, *boundary, range) {
                    let side = if first == 0 { &sides[0] } else { &sides[1] };
                    side.walk_places(range, place + first, visit);
                }
            }
        }
    }

    /// The disk's byte that stands at `offset` of the place with the depth-first index `place`; `None` when there is no
    /// such place or it is smaller.
    pub fn locate(&self, place: usize, offset: u64) -> Option<u64> {
        match self {
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Parity { .. } => {
                (place == 0 && offset < self.size()).then_some(offset)
            }
            Layout::Stripe { unit, columns } => {
                let each = columns[0].place_count();
                let column = place / each;
                let inner = columns.get(column)?.locate(place % each, offset)?;
                Some((inner / unit * columns.len() as u64 + column as u64) * unit + inner % unit)
            }
            Layout::Concatenation { parts } => {
                let (mut index, mut start) = (place, 0);
                for part in parts {
                    let count = part.place_count();
                    if index < count {
                        return part.locate(index, offset).map(|inner| start + inner);
                    }
                    index -= count;
                    start += part.size();
                }
                None
            }
            Layout::Moving { sides, .. } => match place.checked_sub(sides[0].place_count()) {
                None => sides[0].locate(place, offset),
                Some(place) => sides[1].locate(place, offset),
            },
        }
    }
}

/// What counts of a range of a moving layout, in the disk's order: the first place of each side with its part of the range.
fn counting_sides(
    sides: &[Layout; 2],
    boundary: u64,
    range: Range<u64>,
) -> impl Iterator<Item = (usize, Range<u64>)> {
    let edge = boundary.clamp(range.start, range.end);
    let new = (sides[0].place_count(), range.start..edge);
    [new, (0, edge..range.end)].into_iter().filter(|(_, range)| !range.is_empty())
}

fn walk_stripe(
    unit: u64,
    columns: &[Layout],
    offset: u64,
    len: u64,
    base: Base,
    visit: &mut dyn FnMut(Span),
) {
    let count = columns.len() as u64;
    let each = columns[0].place_count();
    let mut done = 0;
    while done < len {
        let (number, within) = ((offset + done) / unit, (offset + done) % unit);
        let (column, row) = ((number % count) as usize, number / count);
        let piece = (unit - within).min(len - done);
        let base = Base { place: base.place + column * each, disk_offset: base.disk_offset + done };
        columns[column].walk(row * unit + within, piece, base, visit);
        done += piece;
    }
}

fn walk_parts(parts: &[Layout], offset: u64, len: u64, base: Base, visit: &mut dyn FnMut(Span)) {
    let (mut start, mut place, mut done) = (0, base.place, 0);
    for part in parts {
        let (size, position) = (part.size(), offset + done);
        if position < start + size {
            let piece = (start + size - position).min(len - done);
            let base = Base { place, disk_offset: base.disk_offset + done };
            part.walk(position - start, piece, base, visit);
            done += piece;
            if done == len {
                return;
            }
        }
        start += size;
        place += part.place_count();
    }
    unreachable!("the range was checked to lie within the layout");
}

#[cfg(test)]
mod tests;
