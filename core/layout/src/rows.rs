//! How the bytes of a place with parity stand in its members.
//!
//! A row is one unit of 64 KiB, a region, of every member at the same offset. Of a row one or two units are parity; which ones
//! goes round from row to row, so that every member has its share of parity and reads in sequence touch all of them. The data units
//! of a row follow one another on the disk. Pure, and frozen: formats and guests' data depend on it. Must never allocate.
//!
//! Worked example, 2+1: row 0 has data in members 0 and 1 and P in member 2; row 1 has P in member 1 and data in 2 and 0; row 2 has P
//! in member 0 and data in 1 and 2.

use crate::code::{Code, Unit};
use base::units::{EXTENT_SIZE, REGION_SIZE};
use std::ops::Range;

/// Bytes of a unit: a region, so that a region's greatest write id is the version of a unit.
pub const UNIT: u64 = REGION_SIZE;

/// What of a row is read or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Some of one data unit.
    Data(u8),
    /// All data units, whole.
    Rows,
}

/// A run of the place's bytes that lies within one part (MiB) of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// What of the rows.
    pub target: Target,
    /// First byte in each member.
    pub offset: u64,
    /// First byte of the place.
    pub place_offset: u64,
    /// Bytes of the place, never zero: of whole rows, those of all data units.
    pub len: u64,
}

impl Code {
    /// Bytes of the place in one row.
    pub fn row_size(self) -> u64 {
        u64::from(self.data()) * UNIT
    }

    /// The member that has a unit of a row.
    pub fn position(self, row: u64, unit: Unit) -> u8 {
        let count = u64::from(self.members());
        let first = count - 1 - row % count;
        let behind = match unit {
            Unit::Parity(number) => number,
            Unit::Data(number) => self.parity() + number,
        };
        ((first + u64::from(behind)) % count) as u8
    }

    /// The unit of a row that a member has.
    pub fn unit(self, row: u64, position: u8) -> Unit {
        assert!(position < self.members(), "a row has no such member");
        let count = u64::from(self.members());
        let first = count - 1 - row % count;
        let behind = ((u64::from(position) + count - first) % count) as u8;
        match behind.checked_sub(self.parity()) {
            Some(number) => Unit::Data(number),
            None => Unit::Parity(behind),
        }
    }

    /// The row of a byte of the members.
    pub fn row(self, offset: u64) -> u64 {
        offset / UNIT
    }

    /// The byte of the place that stands at a byte of a row's data unit.
    pub fn place_offset(self, data: u8, offset: u64) -> u64 {
        self.row(offset) * self.row_size() + u64::from(data) * UNIT + offset % UNIT
    }

    /// The bytes of each member that are units of the rows which a range of the place's bytes touches.
    pub fn bytes_of_members(self, range: &Range<u64>) -> Range<u64> {
        range.start / self.row_size() * UNIT..range.end.div_ceil(self.row_size()) * UNIT
    }

    /// The byte of the place at which the row begins that a byte of the members is in.
    pub fn row_start(self, offset: u64) -> u64 {
        self.row(offset) * self.row_size()
    }

    /// Calls `visit` with the pieces of a range of the place's bytes, in order. Whole rows are one piece if `joins_rows`, as
    /// many as one part of the members and `rows_max` bytes of the place hold; all else goes unit by unit.
    pub fn pieces(self, range: Range<u64>, joins_rows: bool, rows_max: u64, visit: &mut impl FnMut(Piece)) {
        let mut at = range.start;
        while at < range.end {
            let (row, within) = (at / self.row_size(), at % self.row_size());
            let rows_in_part = EXTENT_SIZE / UNIT - row % (EXTENT_SIZE / UNIT);
            let whole =
                ((range.end - at) / self.row_size()).min(rows_in_part).min(rows_max / self.row_size());
            let piece = if joins_rows && within == 0 && whole > 0 {
                let len = whole * self.row_size();
                Piece { target: Target::Rows, offset: row * UNIT, place_offset: at, len }
            } else {
                let data = (within / UNIT) as u8;
                let len = (UNIT - within % UNIT).min(range.end - at);
                let offset = row * UNIT + within % UNIT;
                Piece { target: Target::Data(data), offset, place_offset: at, len }
            };
            visit(piece);
            at += piece.len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::units::{BLOCK_SIZE, MIB};
    use proptest::prelude::*;

    fn pieces(code: Code, range: Range<u64>, joins_rows: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        code.pieces(range, joins_rows, MIB, &mut |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn every_member_has_one_unit_of_each_row_and_its_share_of_parity() {
        for code in Code::ALL {
            let mut parity = vec![0; usize::from(code.members())];
            for row in 0..u64::from(code.members()) {
                let mut seen = std::collections::BTreeSet::new();
                for unit in code.units() {
                    let position = code.position(row, unit);
                    assert_eq!(code.unit(row, position), unit);
                    assert!(seen.insert(position));
                    if matches!(unit, Unit::Parity(_)) {
                        parity[usize::from(position)] += 1;
                    }
                }
            }
            assert!(parity.iter().all(|count| *count == code.parity()), "{parity:?}");
        }
    }

    /// The example of the head.
    #[test]
    fn rows_stand_as_they_always_did() {
        let code = Code::TWO_AND_ONE;
        let of_row =
            |row| [Unit::Data(0), Unit::Data(1), Unit::Parity(0)].map(|unit| code.position(row, unit));
        assert_eq!([0, 1, 2, 3].map(of_row), [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2]]);
        let code = Code::FOUR_AND_TWO;
        let units = [0, 1, 2, 3].map(Unit::Data).into_iter().chain([Unit::Parity(0), Unit::Parity(1)]);
        let of_row = |row| units.clone().map(|unit| code.position(row, unit)).collect::<Vec<u8>>();
        assert_eq!(of_row(0), [1, 2, 3, 4, 5, 0]);
        assert_eq!(of_row(1), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn whole_rows_of_a_long_change_are_one_piece() {
        let code = Code::THREE_AND_ONE;
        let row = code.row_size();
        let found = pieces(code, UNIT..UNIT + MIB, true);
        let kinds: Vec<(Target, u64, u64)> =
            found.iter().map(|one| (one.target, one.offset, one.len)).collect();
        let expected = [
            (Target::Data(1), 0, UNIT),
            (Target::Data(2), 0, UNIT),
            (Target::Rows, UNIT, 4 * row),
            (Target::Data(0), 5 * UNIT, UNIT),
            (Target::Data(1), 5 * UNIT, UNIT),
        ];
        assert_eq!(kinds, expected);
        // Not across a part of the members.
        let found = pieces(code, 14 * row..18 * row, true);
        assert_eq!(found.iter().map(|one| one.len / row).collect::<Vec<u64>>(), [2, 2]);
        assert!(pieces(code, 0..2 * row, false).iter().all(|one| one.target != Target::Rows));
    }

    proptest! {
        #[test]
        fn pieces_are_the_range_and_lead_back(
            code in prop::sample::select(Code::ALL.to_vec()), a in 0u64..9000, b in 1u64..600, joins in any::<bool>()
        ) {
            let range = a * BLOCK_SIZE..(a + b) * BLOCK_SIZE;
            let mut next = range.start;
            for piece in pieces(code, range.clone(), joins) {
                prop_assert_eq!(piece.place_offset, next);
                let in_members = match piece.target {
                    Target::Rows => {
                        prop_assert_eq!(code.place_offset(0, piece.offset), piece.place_offset);
                        prop_assert!(piece.len <= MIB && piece.len % code.row_size() == 0);
                        piece.len / u64::from(code.data())
                    }
                    Target::Data(data) => {
                        prop_assert_eq!(code.place_offset(data, piece.offset), piece.place_offset);
                        prop_assert_eq!(code.row(piece.offset), code.row(piece.offset + piece.len - 1));
                        piece.len
                    }
                };
                prop_assert_eq!(piece.offset / EXTENT_SIZE, (piece.offset + in_members - 1) / EXTENT_SIZE);
                next += piece.len;
            }
            prop_assert_eq!(next, range.end);
        }
    }
}
