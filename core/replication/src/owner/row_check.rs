//! One comparison of rows: whether the parity of some columns is what follows from their data (docs/design/0040, 22).
//!
//! CRC-32C is affine: the checksum of a sum of blocks follows from the checksums of the summands. So parity is compared by four bytes a
//! block, and no data are read or sent. Where that disagrees, the data of all members are judged. Must not ask members, nor lock
//! (`row_checking`).

use super::data::Data;
use super::found::Found;
use super::interface::{Payload, RowCheckState};
use super::resync::Listing;
use super::rows::row_of;
use crate::locks::Range;
use base::checksum::crc32c;
use base::request::Piece;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{Buffer, Instant, Pool};
use layout::code::{self, PARITY_MAX, UNITS_MAX};
use layout::{Code, Unit};
use smallvec::SmallVec;
use std::collections::VecDeque;

const BLOCK: usize = BLOCK_SIZE as usize;

/// Where comparing is, and what it found.
#[derive(Debug, Default)]
pub(crate) struct RowChecks {
    /// Bytes of a member that are compared in a second; 0: none.
    pub(crate) pace: u64,
    pub(crate) next_at: Instant,
    /// The place that is compared, and the part from which its members are asked next what they have anything of.
    pub(crate) place: u16,
    pub(crate) from_part: u32,
    pub(crate) listing: Option<RowListing>,
    pub(crate) items: VecDeque<Item>,
    pub(crate) state: RowCheckState,
    /// What was found when the pass began.
    pub(crate) before: RowCheckState,
    pub(crate) passed_at: Option<Instant>,
    /// How often it was waited lately for a place to be whole, and whether this pass has passed one over.
    pub(crate) waits: u8,
    pub(crate) has_passed_over: bool,
}

/// Members are asked which parts they have anything of.
#[derive(Debug)]
pub(crate) struct RowListing {
    pub(crate) attempt: u32,
    pub(crate) told: Vec<Listing>,
    pub(crate) left: usize,
}

/// Rows that are to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) place: u16,
    /// Columns of one part: of one row, or of all rows of the part where the coefficients of the parity unit are all one.
    pub(crate) range: Range,
    /// The parity unit that is compared.
    pub(crate) parity: u8,
    /// How often that could not be done.
    pub(crate) tries: u8,
}

impl Item {
    /// All rows of a part, by their first parity unit.
    pub(crate) fn part(place: u16, part: u32) -> Item {
        let range = Range { part, block: 0, count: BLOCKS_PER_EXTENT as u16 };
        Item { place, range, parity: 0, tries: 0 }
    }

    /// One row of these, by a parity unit.
    pub(crate) fn row(&self, row: u16, parity: u8) -> Item {
        let count = BLOCKS_PER_REGION as u16;
        let range = Range { part: self.range.part, block: row * count, count };
        Item { place: self.place, range, parity, tries: 0 }
    }

    /// The rows, by their number in the part.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u16> + use<> {
        let rows = BLOCKS_PER_REGION as u16;
        self.range.block / rows..(self.range.block + self.range.count).div_ceil(rows)
    }
}

/// Checksums that are asked of the member of a position: of its blocks times a coefficient.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) position: u8,
    pub(crate) coefficient: u8,
    pub(crate) checksums: Option<Vec<Option<u32>>>,
}

/// How far a comparison is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Members are asked for checksums, under a lock that lets guests read.
    Look { sources: Vec<Source> },
    /// They did not agree: the data of all members are read, under the lock of a copy.
    Read { found: Box<Found> },
    /// Parity that did not agree is written.
    Mend,
}

/// A comparison under way.
#[derive(Debug)]
pub(crate) struct RowCheckWork {
    pub(crate) item: Item,
    pub(crate) stage: Stage,
    pub(crate) outstanding: u8,
    pub(crate) has_failed: bool,
}

impl RowCheckWork {
    pub(crate) fn new(item: Item) -> RowCheckWork {
        RowCheckWork { item, stage: Stage::Look { sources: Vec::new() }, outstanding: 0, has_failed: false }
    }
}

/// What is asked for, so that a parity unit of some rows can be compared by checksums.
pub(crate) fn sources(code: Code, item: &Item) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for row in item.rows() {
        let row = row_of(item.range.part, row * BLOCKS_PER_REGION as u16);
        for (position, coefficient) in summands(code, row, item.parity) {
            let is_there = |one: &Source| (one.position, one.coefficient) == (position, coefficient);
            if !sources.iter().any(is_there) {
                sources.push(Source { position, coefficient, checksums: None });
            }
        }
    }
    sources
}

/// The positions, with coefficients, whose units of a row add up to nothing where a parity unit agrees: that of the parity and those of the
/// data.
fn summands(code: Code, row: u64, parity: u8) -> impl Iterator<Item = (u8, u8)> {
    let data = (0..code.data()).map(move |unit| (Unit::Data(unit), code.coefficient(parity, unit)));
    let all = std::iter::once((Unit::Parity(parity), 1)).chain(data);
    all.map(move |(unit, coefficient)| (code.position(row, unit), coefficient))
}

/// What checksums tell of rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    /// Rows of which a member has a block, by their number in the part.
    pub(crate) rows: SmallVec<[u16; REGIONS_PER_EXTENT]>,
    /// Of these, the rows of which a block of parity does not agree.
    pub(crate) disagreeing: SmallVec<[u16; REGIONS_PER_EXTENT]>,
}

/// Compares what was answered. None if an answer is not of as many blocks as were asked for.
pub(crate) fn look(code: Code, item: &Item, sources: &[Source]) -> Option<Looked> {
    let zeroes = checksum_of_zeroes();
    let of = |position: u8, coefficient: u8| {
        let mut sources = sources.iter();
        let source = sources.find(|one| (one.position, one.coefficient) == (position, coefficient))?;
        source.checksums.as_ref().filter(|checksums| checksums.len() == usize::from(item.range.count))
    };
    let mut looked = Looked { rows: SmallVec::new(), disagreeing: SmallVec::new() };
    for row in item.rows() {
        let first = row * BLOCKS_PER_REGION as u16;
        let (mut sum, mut has_blocks) = ([0; BLOCKS_PER_REGION], false);
        for (position, coefficient) in summands(code, row_of(item.range.part, first), item.parity) {
            let checksums = of(position, coefficient)?;
            let of_row = &checksums[usize::from(first - item.range.block)..][..BLOCKS_PER_REGION];
            has_blocks |= of_row.iter().any(Option::is_some);
            for (sum, checksum) in sum.iter_mut().zip(of_row) {
                *sum ^= checksum.unwrap_or(zeroes) ^ zeroes;
            }
        }
        if has_blocks {
            looked.rows.push(row);
        }
        if sum.iter().any(|sum| *sum != 0) {
            looked.disagreeing.push(row);
        }
    }
    Some(looked)
}

/// The checksum of a block of zeroes.
fn checksum_of_zeroes() -> u32 {
    static ZEROES: [u8; BLOCK] = [0; BLOCK];
    crc32c(&ZEROES)
}

/// Parity of a row that is not what follows from the data.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) parity: u8,
    /// The columns from the first to the last that disagree.
    pub(crate) range: Range,
    /// How many of them do.
    pub(crate) blocks: u16,
    /// What the parity of these columns is to be.
    pub(crate) right: Buffer,
}

/// What the data of a row say of its parity.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// The parity units that are wrong; none if all agree.
    pub(crate) wrong: SmallVec<[Wrong; PARITY_MAX]>,
    /// The data unit that two parity units imply to be another one, both the same.
    pub(crate) implied: Option<u8>,
}

/// Compares the parity of a row with its data, all of which was read. None if memory is short.
pub(crate) fn judge(code: Code, range: Range, found: &Found, pool: &Pool) -> Option<Verdict> {
    let row = row_of(range.part, range.block);
    let len = usize::from(range.count) * BLOCK;
    let mut verdict = Verdict { wrong: SmallVec::new(), implied: None };
    let mut differences: SmallVec<[Vec<u8>; PARITY_MAX]> = SmallVec::new();
    for parity in 0..code.parity() {
        let mut right = pool.take_zeroed(len)?;
        for unit in 0..code.data() {
            let position = code.position(row, Unit::Data(unit));
            found.add_to(right.bytes_mut(), position, code.coefficient(parity, unit));
        }
        let mut difference = right.to_vec();
        found.add_to(&mut difference, code.position(row, Unit::Parity(parity)), 1);
        let bad: Vec<usize> = (0..usize::from(range.count)).filter(|at| !is_zero(&difference, *at)).collect();
        if let (Some(first), Some(last)) = (bad.first().copied(), bad.last().copied()) {
            let count = last - first + 1;
            let columns = Range { block: range.block + first as u16, count: count as u16, ..range };
            let right = right.slice(first * BLOCK, count * BLOCK);
            verdict.wrong.push(Wrong { parity, range: columns, blocks: bad.len() as u16, right });
        }
        differences.push(difference);
    }
    if let [of_p, of_q] = &differences[..] {
        verdict.implied = (0..code.data()).find(|unit| {
            let mut product = vec![0; len];
            code::add(&mut product, of_p, code.coefficient(1, *unit));
            product == *of_q && verdict.wrong.len() == 2
        });
    }
    Some(verdict)
}

fn is_zero(bytes: &[u8], block: usize) -> bool {
    bytes[block * BLOCK..(block + 1) * BLOCK].iter().all(|byte| *byte == 0)
}

/// Whether the new first parity unit of some columns has the checksums that follow from those of the data units. `of`: the checksums of
/// what a position has or gets, by column. What is not known of a position proves nothing, and refutes nothing.
pub(crate) fn is_proven(code: Code, range: Range, of: &[Option<Vec<Option<u32>>>; UNITS_MAX]) -> bool {
    let zeroes = checksum_of_zeroes();
    (0..range.count).all(|column| {
        let row = row_of(range.part, range.block + column);
        let of_unit = |(position, _): (u8, u8)| {
            let checksums = of[usize::from(position)].as_ref()?;
            Some(checksums.get(usize::from(column))?.unwrap_or(zeroes) ^ zeroes)
        };
        let sum = summands(code, row, 0).map(of_unit).try_fold(0, |sum, one| Some(sum ^ one?));
        sum.is_none_or(|sum| sum == 0)
    })
}

/// The checksums of what was read, by block; none in a hole.
pub(crate) fn by_block(data: &Data) -> Vec<Option<u32>> {
    let mut checksums = data.checksums.iter().copied();
    let mut found = Vec::new();
    for piece in &data.pieces {
        match piece {
            Piece::Hole(len) => found.extend(std::iter::repeat_n(None, *len as usize / BLOCK)),
            Piece::Bytes(buffer) => found.extend(checksums.by_ref().take(buffer.len() / BLOCK).map(Some)),
        }
    }
    found
}

/// The checksums of what a change gives a member, by block.
pub(crate) fn by_block_of(payload: &Payload) -> Vec<Option<u32>> {
    match payload {
        Payload::Write { checksums, .. } => checksums.iter().copied().map(Some).collect(),
        Payload::Trim { count } => vec![None; usize::from(*count)],
    }
}

#[cfg(test)]
mod tests;
