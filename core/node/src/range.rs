//! The extent of a request: its range, the blocks that it changes, the blocks at its edges.

use crate::changes::ChangedRange;
use crate::pieces;
use base::checksum::crc32c;
use base::request::{Buffers, Request};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use layout::{Layout, Span, Target};
use smallvec::SmallVec;

/// A run of a disk's bytes that the owner reads or changes at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// The place that it stands in.
    pub(crate) place: u16,
    /// Of rows with parity, what of them.
    pub(crate) target: Option<Target>,
    /// First byte in each component.
    pub(crate) offset: u64,
    /// First byte on the disk.
    pub(crate) disk_offset: u64,
    /// Bytes of the disk, never zero.
    pub(crate) len: u64,
}

impl Stretch {
    /// The bytes of the disk that a block of its components stands for.
    pub(crate) fn bytes_of_column(&self, layout: &Layout) -> u64 {
        match (self.target, layout.place_code(usize::from(self.place))) {
            (Some(Target::Rows), Some(code)) => u64::from(code.data()) * BLOCK_SIZE,
            _ => BLOCK_SIZE,
        }
    }
}

/// What a range is cut up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Whole rows go unit by unit.
    Read,
    /// Whole rows stay together: their parity follows from what is written alone.
    Change,
}

/// Calls `visit` with the stretches of a range of a disk, in order; none goes beyond one part of its components.
pub(crate) fn stretches(layout: &Layout, offset: u64, len: u64, aim: Aim, visit: &mut impl FnMut(Stretch)) {
    layout.map(offset, len, &mut |span: Span| {
        let place = span.place as u16;
        if let Some(code) = layout.place_code(span.place) {
            let range = span.offset..span.offset + span.len;
            return code.pieces(range, aim == Aim::Change, u64::MAX, &mut |piece| {
                visit(Stretch {
                    place,
                    target: Some(piece.target),
                    offset: piece.offset,
                    disk_offset: span.disk_offset + (piece.place_offset - span.offset),
                    len: piece.len,
                });
            });
        }
        let mut done = 0;
        while done < span.len {
            let offset = span.offset + done;
            let len = (span.len - done).min(EXTENT_SIZE - offset % EXTENT_SIZE);
            visit(Stretch { place, target: None, offset, disk_offset: span.disk_offset + done, len });
            done += len;
        }
    });
}

/// CRC-32C of each block, computed where the data enters.
pub(crate) fn checksums(data: &Buffers) -> SmallVec<[u32; 2]> {
    data.iter().flat_map(|buffer| buffer.chunks_exact(BLOCK_SIZE as usize)).map(crc32c).collect()
}

/// First byte and length.
pub(crate) fn range_of(request: &Request) -> (u64, u64) {
    match request {
        Request::Read { offset, len } | Request::View { snapshot: _, offset, len } => {
            (*offset, u64::from(*len))
        }
        Request::Write { offset, data } => (*offset, pieces::len(data)),
        Request::Flush => (0, 0),
        Request::Trim { offset, len } | Request::Status { of: _, offset, len } => (*offset, *len),
        Request::WriteZeroes { offset, len, .. } => (*offset, *len),
    }
}

/// The blocks that a request changes: for a trim the blocks that it covers whole, otherwise all that it touches.
pub(crate) fn change_of(key: u32, request: &Request) -> ChangedRange {
    let (offset, len) = range_of(request);
    let end = offset + len;
    if let Request::Trim { .. } = request {
        let (start, end) = (offset.next_multiple_of(BLOCK_SIZE), end / BLOCK_SIZE * BLOCK_SIZE);
        return ChangedRange { request: key, start, end, reads_first: false, is_apart: false };
    }
    let reads_first = len > 0 && (!offset.is_multiple_of(BLOCK_SIZE) || !end.is_multiple_of(BLOCK_SIZE));
    let start = offset / BLOCK_SIZE * BLOCK_SIZE;
    let end = if len == 0 { start } else { end.next_multiple_of(BLOCK_SIZE) };
    ChangedRange { request: key, start, end, reads_first, is_apart: false }
}

/// First bytes of the blocks that a request covers in part.
pub(crate) fn edges_of(request: &Request) -> SmallVec<[u64; 2]> {
    let (offset, len) = range_of(request);
    let end = offset + len;
    let mut edges = SmallVec::new();
    if !offset.is_multiple_of(BLOCK_SIZE) {
        edges.push(offset / BLOCK_SIZE * BLOCK_SIZE);
    }
    let last = end / BLOCK_SIZE * BLOCK_SIZE;
    if !end.is_multiple_of(BLOCK_SIZE) && !edges.contains(&last) {
        edges.push(last);
    }
    edges
}

/// The part of a component, and the block in it.
pub(crate) fn part_and_block(offset: u64) -> (u32, u16) {
    ((offset / EXTENT_SIZE) as u32, (offset % EXTENT_SIZE / BLOCK_SIZE) as u16)
}
