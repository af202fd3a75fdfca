//! What was read of some members of rows, by position, and what follows from it of the others.

use super::data::Data;
use super::member_set::MemberSet;
use super::rows::{bytes_in, row_of};
use crate::locks::Range;
use base::Pool;
use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use layout::code::{self, UNITS_MAX};
use layout::{Code, Unit};
use smallvec::SmallVec;

const BLOCK: usize = BLOCK_SIZE as usize;

/// What was read, by position.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    range: Range,
    of: [Option<Data>; UNITS_MAX],
}

impl Found {
    /// Nothing of a range.
    pub(crate) fn nothing(range: Range) -> Found {
        Found { range, of: Default::default() }
    }

    pub(crate) fn positions(&self) -> MemberSet {
        (0..UNITS_MAX as u8).filter(|position| self.of[usize::from(*position)].is_some()).collect()
    }

    /// Adds what a position has, times a coefficient, to a sum of the range's length.
    pub(crate) fn add_to(&self, sum: &mut [u8], position: u8, coefficient: u8) {
        let data = self.of[usize::from(position)].as_ref().expect("it was read");
        bytes_in(&data.pieces, &mut |at, bytes| {
            code::add(&mut sum[at..at + bytes.len()], bytes, coefficient);
        });
    }

    /// What a position has, if it was read.
    pub(crate) fn get(&self, position: u8) -> Option<&Data> {
        self.of[usize::from(position)].as_ref()
    }

    /// Whether a position was read, and has nothing.
    pub(crate) fn is_hole(&self, position: u8) -> bool {
        self.get(position).is_some_and(|data| data.pieces.iter().all(|one| matches!(one, Piece::Hole(_))))
    }

    /// A position was read, or put together.
    pub(crate) fn put(&mut self, position: u8, data: Data) {
        self.of[usize::from(position)] = Some(data);
    }

    /// What a position has, which is there.
    pub(crate) fn take(&mut self, position: u8) -> Data {
        self.of[usize::from(position)].take().expect("what was wanted was found")
    }

    /// What a position has, put together from what was read of others. None if memory is short.
    pub(crate) fn decode(&self, code: Code, position: u8, pool: &Pool) -> Option<Data> {
        let mut data = Data { pieces: Pieces::new(), checksums: SmallVec::new() };
        let blocks = usize::from(self.range.count);
        let mut block = 0;
        while block < blocks {
            let at = usize::from(self.range.block) + block;
            let count = (BLOCKS_PER_REGION - at % BLOCKS_PER_REGION).min(blocks - block);
            let row = row_of(self.range.part, at as u16);
            let bytes = block * BLOCK..(block + count) * BLOCK;
            self.decode_row(code, (row, position), bytes, pool, &mut data)?;
            block += count;
        }
        Some(data)
    }

    fn decode_row(
        &self,
        code: Code,
        (row, position): (u64, u8),
        bytes: std::ops::Range<usize>,
        pool: &Pool,
        data: &mut Data,
    ) -> Option<()> {
        let units: SmallVec<[Unit; UNITS_MAX]> =
            self.positions().iter().map(|one| code.unit(row, one)).collect();
        let coefficients =
            code.decode(code.unit(row, position), &units).expect("as many were read as there are data units");
        let mut sum = pool.take_zeroed(bytes.len())?;
        let mut has_bytes: SmallVec<[bool; BLOCKS_PER_REGION]> =
            smallvec::smallvec![false; bytes.len() / BLOCK];
        for unit in &units {
            let coefficient = coefficients[code.index(*unit)];
            if coefficient == 0 {
                continue;
            }
            let source = self.of[usize::from(code.position(row, *unit))].as_ref().expect("it was read");
            bytes_in(&source.pieces, &mut |at, run| {
                let (from, to) = (bytes.start.max(at), bytes.end.min(at + run.len()));
                if from < to {
                    let target = from - bytes.start..to - bytes.start;
                    has_bytes[target.start / BLOCK..target.end / BLOCK].fill(true);
                    code::add(&mut sum.bytes_mut()[target], &run[from - at..to - at], coefficient);
                }
            });
        }
        // Where nothing was ever written to any of them, there is nothing.
        let mut first = 0;
        while first < has_bytes.len() {
            let is_data = has_bytes[first];
            let count = has_bytes[first..].iter().take_while(|one| **one == is_data).count();
            if is_data {
                let run = sum.slice(first * BLOCK, count * BLOCK);
                data.checksums.extend(run.chunks_exact(BLOCK).map(crc32c));
                data.pieces.push(Piece::Bytes(run));
            } else {
                data.pieces.push(Piece::Hole((count * BLOCK) as u32));
            }
            first += count;
        }
        Some(())
    }
}
