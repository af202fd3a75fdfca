//! The extent of a request: its range, the blocks that it changes, the blocks at its edges.

use crate::changes::ChangedRange;
use crate::pieces;
use base::checksum::crc32c;
use base::request::{Buffers, Request};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use layout::{Layout, Span, Target};
use smallvec::SmallVec;
use std::ops::Range;

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
        Request::Read { offset, len }
        | Request::View { snapshot: _, offset, len }
        | Request::CopyUp { offset, len } => (*offset, u64::from(*len)),
        Request::Write { offset, data } => (*offset, pieces::len(data)),
        Request::Flush => (0, 0),
        Request::Trim { offset, len } | Request::Status { of: _, offset, len } => (*offset, *len),
        Request::WriteZeroes { offset, len, .. } => (*offset, *len),
    }
}

/// The bytes that a request changes: of a trim those of the blocks that it covers whole. What a clone copies of its origin changes nothing.
pub(crate) fn covered(request: &Request) -> Range<u64> {
    let (offset, len) = range_of(request);
    let end = offset + len;
    match request {
        Request::Trim { .. } => {
            let start = offset.next_multiple_of(BLOCK_SIZE);
            start..(end / BLOCK_SIZE * BLOCK_SIZE).max(start)
        }
        Request::CopyUp { .. } => offset..offset,
        _ => offset..end,
    }
}

/// The blocks that a request changes, in part or as a whole.
pub(crate) fn change_of(key: u32, request: &Request) -> ChangedRange {
    let bytes = covered(request);
    let start = bytes.start / BLOCK_SIZE * BLOCK_SIZE;
    let end = if bytes.is_empty() { start } else { bytes.end.next_multiple_of(BLOCK_SIZE) };
    let reads_first = !edges_of(request).is_empty();
    ChangedRange { request: key, start, end, reads_first, is_apart: false }
}

/// The blocks that a request covers in part, as ranges of bytes.
pub(crate) fn edges_of(request: &Request) -> SmallVec<[Range<u64>; 2]> {
    let bytes = covered(request);
    let mut edges = SmallVec::new();
    if bytes.is_empty() {
        return edges;
    }
    let block = |at: u64| at / BLOCK_SIZE * BLOCK_SIZE..(at / BLOCK_SIZE + 1) * BLOCK_SIZE;
    if !bytes.start.is_multiple_of(BLOCK_SIZE) {
        edges.push(block(bytes.start));
    }
    if !bytes.end.is_multiple_of(BLOCK_SIZE) && edges.last() != Some(&block(bytes.end)) {
        edges.push(block(bytes.end));
    }
    edges
}

/// The part of a component, and the block in it.
pub(crate) fn part_and_block(offset: u64) -> (u32, u16) {
    ((offset / EXTENT_SIZE) as u32, (offset % EXTENT_SIZE / BLOCK_SIZE) as u16)
}
