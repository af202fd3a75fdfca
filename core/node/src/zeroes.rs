//! Blocks of zeroes in guests' writes: found by their checksums, compared with zeroes, and trimmed instead of written
//! (docs/design/0045).
//!
//! The owner computes the checksum of every block anyway, so a write without zeroes costs one comparison of numbers a block.
//! A checksum alone never decides: other blocks have it, too.

use crate::limits::ZERO_RUN_BLOCKS_MIN;
use crate::origin::REGION_SIZE;
use crate::range::{Stretch, checksums};
use base::checksum::CRC32C_OF_ZERO_BLOCK;
use base::request::{Buffers, Request, cut};
use base::rules::Rules;
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use layout::{Layout, Target};
use replication::Rule;
use replication::owner::Payload;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

const ZERO_BLOCK: [u8; BLOCK_SIZE as usize] = [0; BLOCK_SIZE as usize];

/// What becomes of blocks of zeroes that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zeroes {
    /// They are data: the guest wants to keep their space.
    Kept,
    /// They are trimmed once their bytes are compared with zeroes.
    Trimmed,
    /// The same, but for the first block of each region: of a clone it tells that the region is its own.
    TrimmedInside,
    /// They are trimmed by their checksum alone: a mutant.
    Believed,
}

impl Zeroes {
    pub(crate) fn of(request: &Request, rules: Rules<Rule>) -> Zeroes {
        match request {
            Request::WriteZeroes { allocate: true, .. } => Zeroes::Kept,
            _ if rules.hold(Rule::CompareZeroes) => Zeroes::Trimmed,
            _ => Zeroes::Believed,
        }
    }
}

/// A change and its place.
pub(crate) type Change = (Stretch, Payload);

/// The changes that a write of a stretch becomes: one write or trim of all of it, or several that follow one another.
pub(crate) fn changes_of_write(
    layout: &Layout,
    of: Stretch,
    data: Buffers,
    zeroes: Zeroes,
) -> SmallVec<[Change; 1]> {
    let checksums = checksums(&data);
    if zeroes == Zeroes::Kept || !checksums.contains(&CRC32C_OF_ZERO_BLOCK) {
        return smallvec![(of, Payload::Write { data, checksums })];
    }
    let Some(unit) = Unit::of(layout, of) else {
        return smallvec![(of, Payload::Write { data, checksums })];
    };
    let blocks = data.iter().flat_map(|buffer| buffer.chunks_exact(BLOCK_SIZE as usize));
    let is_zero = |(block, checksum): (&[u8], &u32)| {
        *checksum == CRC32C_OF_ZERO_BLOCK && (zeroes == Zeroes::Believed || *block == ZERO_BLOCK)
    };
    let is_first = |block: u64| (of.disk_offset + block * BLOCK_SIZE).is_multiple_of(REGION_SIZE);
    let keeps = |block: u64| zeroes == Zeroes::TrimmedInside && is_first(block);
    let are_zero = (0..).zip(blocks.zip(&checksums)).map(|(block, one)| is_zero(one) && !keeps(block));
    let are_zero: Vec<bool> = are_zero.collect();
    let columns = of.bytes_of_column(layout) / BLOCK_SIZE;
    let change = |Run { blocks, is_zero }: Run| {
        let (from, len) = (blocks.start as u64 * BLOCK_SIZE, blocks.len() as u64 * BLOCK_SIZE);
        let (offset, disk_offset) = (of.offset + from / columns, of.disk_offset + from);
        let payload = match is_zero {
            true => Payload::Trim { count: blocks.len() as u16 },
            false => Payload::Write {
                data: cut(&data, from as usize, len as usize),
                checksums: checksums[blocks].into(),
            },
        };
        (Stretch { offset, disk_offset, len, ..of }, payload)
    };
    runs(&are_zero, unit).into_iter().map(change).collect()
}

/// What is trimmed as a whole or not at all.
#[derive(Debug, Clone, Copy)]
struct Unit {
    blocks: usize,
    /// Units of the shortest run that is trimmed inside of a stretch.
    run_min: usize,
}

impl Unit {
    /// That of a stretch; none where zeroes stay data. A trim of a part of a row reads the rest of the row before it is
    /// acknowledged, which a small write need not do.
    fn of(layout: &Layout, of: Stretch) -> Option<Unit> {
        match of.target {
            None => Some(Unit { blocks: 1, run_min: ZERO_RUN_BLOCKS_MIN }),
            Some(Target::Rows) => {
                let columns = (of.bytes_of_column(layout) / BLOCK_SIZE) as usize;
                Some(Unit { blocks: columns * BLOCKS_PER_REGION, run_min: 1 })
            }
            Some(Target::Data(_)) => None,
        }
    }
}

/// Blocks of a stretch that are written or trimmed at once.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    blocks: Range<usize>,
    is_zero: bool,
}

/// The runs of a stretch, in order: of zeroes those that are long enough or are all of it.
fn runs(are_zero: &[bool], unit: Unit) -> Vec<Run> {
    let units: Vec<bool> =
        are_zero.chunks(unit.blocks).map(|unit| unit.iter().all(|is_zero| *is_zero)).collect();
    let mut runs: Vec<Run> = Vec::new();
    let mut at = 0;
    while at < units.len() {
        let len = units[at..].iter().take_while(|is_zero| **is_zero).count();
        let is_zero = len >= unit.run_min || len == units.len();
        let end = at + len.max(1);
        let blocks = at * unit.blocks..are_zero.len().min(end * unit.blocks);
        match runs.last_mut() {
            Some(last) if !last.is_zero && !is_zero => last.blocks.end = blocks.end,
            Some(_) | None => runs.push(Run { blocks, is_zero }),
        }
        at = end;
    }
    runs
}

#[cfg(test)]
mod tests;
