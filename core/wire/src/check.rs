//! What must hold of every message, sent or received: what the types promise and cannot express.
//!
//! One place for both sides. A message of our own that breaks it is a bug of ours, a received one a fault of the peer.
//! Whether a disk, component or range exists is for those who have it to say.

use crate::flaw::Flaw;
use crate::layer;
use crate::limits::{
    ALLOCATION_PARTS_MAX, CHANGED_PARTS_MAX, COMPONENT_PAYLOAD_SIZE_MAX, DAMAGED_MAX, DISK_LABEL_SIZE_MAX,
    ENTRIES_MAX, GUEST_PAYLOAD_SIZE_MAX, HELD_RANGES_MAX, SNAPSHOTS_MAX,
};
use crate::message::{BackfillRequest, DamagedBlock, Entry, HeldRange, NewComponent, PartVersions};
use base::request::{Buffers, Outcome, Piece, Pieces, Reply, Request, StatusOf, StatusRun};
use base::units::{
    BLOCK_SIZE, BLOCKS_PER_EXTENT, COMPONENT_SIZE_MAX, DISK_SIZE_MAX, EXTENT_SIZE, SECTOR_SIZE,
};
use base::{Buffer, WriteId};

pub(crate) fn check(holds: bool, flaw: &'static str) -> Result<(), Flaw> {
    if holds { Ok(()) } else { Err(Flaw::Fields(flaw)) }
}

pub(crate) fn buffers_size(buffers: &Buffers) -> usize {
    buffers.iter().map(Buffer::len).sum()
}

/// Blocks of one part.
pub(crate) fn blocks(block: u16, count: u16) -> Result<(), Flaw> {
    check(
        count > 0 && usize::from(block) + usize::from(count) <= BLOCKS_PER_EXTENT,
        "its blocks do not lie within one part",
    )
}

/// The blocks of a trim, which may be none: a mark, or a hole that is told of for its id.
pub(crate) fn trim(block: u16, count: u16) -> Result<(), Flaw> {
    check(
        usize::from(block) + usize::from(count) <= BLOCKS_PER_EXTENT
            && usize::from(block) < BLOCKS_PER_EXTENT,
        "its blocks do not lie within one part",
    )
}

/// The marks that come with a change: numbers begin with 1.
pub(crate) fn marks(id: WriteId, marks: u8) -> Result<(), Flaw> {
    check(
        marks == 0 || id.sequence > u64::from(marks),
        "it has more marks than there are numbers before its own",
    )
}

/// The part of a write or trim, with its layer.
pub(crate) fn layered_part(part: u32) -> Result<(), Flaw> {
    check(layer::is_known(layer::split(part).0), "it is for no known layer")
}

/// The part of a read, with its layer.
pub(crate) fn readable_part(part: u32) -> Result<(), Flaw> {
    let (of, _) = layer::split(part);
    check(of == layer::CONTENT || layer::is_of_copies(of), "it is for no layer that is read")
}

/// The part of a question about the content alone.
pub(crate) fn content_part(part: u32) -> Result<(), Flaw> {
    check(layer::split(part).0 == layer::CONTENT, "it is for another layer than the content")
}

/// The part of copies of small changes, with their layer.
pub(crate) fn copied_part(part: u32) -> Result<(), Flaw> {
    check(layer::is_of_copies(layer::split(part).0), "it is for no layer of copies")
}

/// What layers of copies hold.
pub(crate) fn held(ranges: &[HeldRange], next: Option<u32>) -> Result<(), Flaw> {
    check(ranges.len() <= HELD_RANGES_MAX, "it has too many ranges")?;
    for range in ranges {
        copied_part(range.part)?;
        blocks(range.block, range.count)?;
    }
    let part = |range: &HeldRange| layer::split(range.part).1;
    check(ranges.is_sorted_by_key(part), "its parts are not in ascending order")?;
    let is_behind = ranges.last().zip(next).is_none_or(|(last, next)| next > part(last));
    check(is_behind, "it would go on before its own end")
}

/// The blocks of a write to a component.
pub(crate) fn write(block: u16, data: &Buffers, checksum_count: usize) -> Result<(), Flaw> {
    check(checksum_count <= BLOCKS_PER_EXTENT, "it has more checksums than a part has blocks")?;
    blocks(block, checksum_count as u16)?;
    check(
        buffers_size(data) == checksum_count * BLOCK_SIZE as usize,
        "its data and the number of its checksums contradict each other",
    )
}

/// The answer to a read of a component.
pub(crate) fn data(pieces: &Pieces, checksum_count: usize) -> Result<(), Flaw> {
    let (bytes, holes) = pieces_size(pieces, BLOCK_SIZE)?;
    check(
        bytes == checksum_count as u64 * BLOCK_SIZE,
        "its data and the number of its checksums contradict each other",
    )?;
    check(
        (1..=COMPONENT_PAYLOAD_SIZE_MAX as u64).contains(&(bytes + holes)),
        "its blocks are none or more than a part has",
    )
}

/// Bytes and zeroes of the answer to a read; each piece a multiple of `unit`.
fn pieces_size(pieces: &Pieces, unit: u64) -> Result<(u64, u64), Flaw> {
    let (mut bytes, mut holes) = (0, 0);
    for piece in pieces {
        let (sum, len) = match piece {
            Piece::Bytes(buffer) => (&mut bytes, buffer.len() as u64),
            Piece::Hole(len) => (&mut holes, u64::from(*len)),
        };
        check(len.is_multiple_of(unit), "a piece of it is no whole number of units")?;
        *sum += len;
    }
    Ok((bytes, holes))
}

pub(crate) fn component(new: &NewComponent) -> Result<(), Flaw> {
    check(new.id.0 != 0, "the component has no identity")?;
    check(
        (1..=COMPONENT_SIZE_MAX).contains(&new.size) && new.size.is_multiple_of(EXTENT_SIZE),
        "the component's size is none that a component may have",
    )?;
    check(new.reservation <= new.size, "more is to be set aside for the component than it has")?;
    check(new.disk_label.len() <= DISK_LABEL_SIZE_MAX, "the disk's label is too long")
}

pub(crate) fn entries(entries: &[Entry]) -> Result<(), Flaw> {
    check(entries.len() <= ENTRIES_MAX, "it has too many entries")?;
    check(entries.is_sorted_by_key(|entry| entry.id), "its entries are not in ascending order")?;
    entries.iter().try_for_each(|entry| match entry.is_trim {
        true => trim(entry.block, entry.count),
        false => blocks(entry.block, entry.count),
    })
}

pub(crate) fn changed(parts: &[PartVersions], next: Option<u32>) -> Result<(), Flaw> {
    check(parts.len() <= CHANGED_PARTS_MAX, "it has too many parts")?;
    check(parts.is_sorted_by(|a, b| a.part < b.part), "its parts are not in ascending order")?;
    let is_behind = match (parts.last(), next) {
        (Some(last), Some(next)) => next > last.part,
        (None, _) | (_, None) => true,
    };
    check(is_behind, "it would go on before its own end")
}

/// Checksums of blocks of a component.
pub(crate) fn checksums(checksums: &[Option<u32>]) -> Result<(), Flaw> {
    check((1..=BLOCKS_PER_EXTENT).contains(&checksums.len()), "its blocks are none or more than a part has")
}

/// The number of a snapshot.
pub(crate) fn snapshot(number: u32) -> Result<(), Flaw> {
    check(number != 0, "no snapshot has the number 0")
}

/// What a snapshot is given: blocks, or holes.
pub(crate) fn backfill(backfill: &BackfillRequest) -> Result<(), Flaw> {
    let BackfillRequest { number, part, block, count, data, checksums, as_seen_by, .. } = backfill;
    check(as_seen_by.is_none_or(|newer| newer > *number), "the other snapshot is no newer one")?;
    content_part(*part)?;
    blocks(*block, *count)?;
    if data.is_empty() && checksums.is_empty() {
        return Ok(());
    }
    check(
        usize::from(*count) == checksums.len(),
        "its blocks and the number of its checksums contradict each other",
    )?;
    write(*block, data, checksums.len())
}

/// The snapshots that a question about states of blocks is about.
pub(crate) fn status_of(of: StatusOf) -> Result<(), Flaw> {
    match of {
        StatusOf::Disk => Ok(()),
        StatusOf::Snapshot(number) => snapshot(number),
        StatusOf::Changes { since, snapshot: number } => {
            snapshot(number)?;
            check(since != 0 && since < number, "it asks for changes since a snapshot that is no older")
        }
    }
}

/// The numbers of a component's snapshots.
pub(crate) fn snapshots(numbers: &[u32]) -> Result<(), Flaw> {
    let is_ascending = numbers.windows(2).all(|two| two[0] < two[1]);
    check(numbers.len() <= SNAPSHOTS_MAX, "it has too many snapshots")?;
    check(
        is_ascending && numbers.first() != Some(&0),
        "its snapshots are not numbered in their order from 1 on",
    )
}

/// Blocks that a component has damaged.
pub(crate) fn damage(found: &[DamagedBlock]) -> Result<(), Flaw> {
    check(found.len() <= DAMAGED_MAX, "it has too many blocks")?;
    found.iter().try_for_each(|one| {
        content_part(one.part)?;
        blocks(one.block, 1)
    })
}

/// Parts of a component.
pub(crate) fn parts(part: u32, count: u16) -> Result<(), Flaw> {
    check(
        (1..=ALLOCATION_PARTS_MAX).contains(&usize::from(count)) && part.checked_add(count.into()).is_some(),
        "its parts are none or too many",
    )
}

/// What is allocated of parts.
pub(crate) fn allocation(runs: &[StatusRun]) -> Result<(), Flaw> {
    status(runs)?;
    check(runs.iter().all(|run| run.len.is_multiple_of(BLOCK_SIZE)), "a run is no whole number of blocks")?;
    let len: u64 = runs.iter().map(|run| run.len).sum();
    let most = ALLOCATION_PARTS_MAX as u64 * EXTENT_SIZE;
    check(len > 0 && len <= most && len.is_multiple_of(EXTENT_SIZE), "its parts are none or too many")
}

/// A guest's request.
pub(crate) fn guest_request(request: &Request) -> Result<(), Flaw> {
    let (offset, len) = match request {
        Request::Read { offset, len }
        | Request::View { snapshot: _, offset, len }
        | Request::CopyUp { offset, len } => (*offset, u64::from(*len)),
        Request::Write { offset, data } => (*offset, buffers_size(data) as u64),
        Request::Flush => (0, 0),
        Request::Trim { offset, len }
        | Request::WriteZeroes { offset, len, allocate: _ }
        | Request::Status { of: _, offset, len } => (*offset, *len),
    };
    let moves_data = match request {
        Request::Read { .. } | Request::View { .. } | Request::CopyUp { .. } | Request::Write { .. } => true,
        Request::Flush | Request::Trim { .. } | Request::WriteZeroes { .. } | Request::Status { .. } => false,
    };
    if let Request::Status { of, .. } = request {
        status_of(*of)?;
    }
    check(!moves_data || len <= GUEST_PAYLOAD_SIZE_MAX as u64, "it is larger than a guest's request may be")?;
    check(
        offset.is_multiple_of(SECTOR_SIZE) && len.is_multiple_of(SECTOR_SIZE),
        "its range does not begin or end with a sector",
    )?;
    let end = offset.checked_add(len);
    check(end.is_some_and(|end| end <= DISK_SIZE_MAX), "its range reaches beyond the largest disk")
}

/// How a guest's request ended.
pub(crate) fn guest_outcome(outcome: &Outcome) -> Result<(), Flaw> {
    match outcome {
        Ok(Reply::Done) | Err(_) => Ok(()),
        Ok(Reply::Data(pieces)) => {
            let (bytes, holes) = pieces_size(pieces, SECTOR_SIZE)?;
            check(
                bytes + holes <= GUEST_PAYLOAD_SIZE_MAX as u64,
                "it is larger than a guest's request may be",
            )
        }
        Ok(Reply::Status(runs)) => status(runs),
    }
}

fn status(runs: &[StatusRun]) -> Result<(), Flaw> {
    let mut rest = DISK_SIZE_MAX;
    for run in runs {
        check(run.len > 0, "a run is empty")?;
        rest = rest.checked_sub(run.len).ok_or(Flaw::Fields("its range reaches beyond the largest disk"))?;
    }
    let differ = runs.is_sorted_by(|a, b| a.is_set != b.is_set);
    check(differ, "neighbouring runs do not differ")
}
