//! Translates between the types of the wire and those of disk groups.

use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::BLOCK_SIZE;
use diskgroup::format::page::ComponentRecord;
use diskgroup::{
    Completion, ComponentKey, Group, GroupError, HeldBlocks, LayerRange, LayerRanges, Origin, ROW_LAYER,
    WindowEntry,
};
use replication::components::{Store, Stored};
use std::ops::Range;
use wire::limits::{ENTRIES_MAX, HELD_RANGES_MAX};
use wire::{Entry, EntryKind, HeldRange, NewComponent, PartVersions, Refusal, Versions, layer};

const _: () = assert!(WindowEntry::SPAN_PART == Entry::SPAN_PART);

/// An entry of a component's window, or a change that happened lately (`has_happened`).
pub(crate) fn entry(one: WindowEntry, has_happened: bool) -> Entry {
    Entry {
        id: one.id,
        part: if one.is_span() { one.part } else { layer::layered(one.layer, one.part) },
        block: u16::from(one.block),
        count: one.count,
        is_trim: one.is_trim,
        has_happened,
        tag: one.tag,
    }
}

/// The answer to an inspection.
pub(crate) fn inspected(result: Result<Completion, GroupError>) -> wire::Answer {
    match result {
        Ok(Completion::Data(pieces, checksums)) => wire::Answer::Data { pieces, checksums },
        Ok(Completion::Checksums(checksums)) => wire::Answer::Checksums(checksums),
        Ok(other) => unreachable!("a read is not answered by {other:?}"),
        Err(error) => wire::Answer::Refused(refusal(error)),
    }
}

/// The entries of one answer, by id: as many changes that have happened as there is room for, and all undecided ones,
/// or the newest after a cut. A component that several owners left behind one after the other may have more entries
/// than an answer takes.
pub(crate) fn fit_into_answer(lately: Vec<Entry>, mut undecided: Vec<Entry>) -> Vec<Entry> {
    if undecided.len() > ENTRIES_MAX {
        let newest = undecided.split_off(undecided.len() - (ENTRIES_MAX - 1));
        let cut = undecided.last().map(|left_out| Entry::cut(left_out.last()));
        undecided = cut.into_iter().chain(newest).collect();
    }
    let room = ENTRIES_MAX - undecided.len();
    let mut entries = lately;
    entries.drain(..entries.len().saturating_sub(room));
    entries.extend(undecided);
    // Entries that a resync let it forget may be newer than those that it has to keep.
    entries.sort_by_key(|entry| entry.id);
    entries
}

pub(crate) fn origin(kind: EntryKind) -> Origin {
    match kind {
        EntryKind::Guest(tag) => Origin::Guest(tag),
        EntryKind::Copy => Origin::Copy,
    }
}

pub(crate) fn record(new: &NewComponent) -> ComponentRecord {
    ComponentRecord {
        id: new.id,
        disk: new.disk,
        size: new.size,
        reservation: new.reservation,
        promised: 0,
        watermark: base::WriteId::default(),
        is_deleting: false,
        compression: diskgroup::format::page::Compression::Off,
        disk_label: new.disk_label.clone(),
    }
}

pub(crate) fn versions((part, versions): (u32, diskgroup::Versions)) -> PartVersions {
    let versions = match versions {
        diskgroup::Versions::Hole(id) => Versions::Hole(id),
        diskgroup::Versions::Regions(regions) => Versions::Regions(regions),
    };
    PartVersions { part, versions }
}

/// What ends with a copy onto the content of some blocks: all that layers of copies hold of these, for whoever copies has counted it, or
/// knows that it does not count.
pub(crate) fn ends_of(group: &Group, key: ComponentKey, part: u32, blocks: &Range<u16>) -> LayerRanges {
    let held = group.held(key, part).into_iter().filter(|one| layer::is_of_copies(one.layer));
    let overlaps = held.filter_map(|one| {
        let first = u16::from(one.block).max(blocks.start);
        let count = (u16::from(one.block) + one.count).min(blocks.end).checked_sub(first)?;
        (count > 0).then_some(LayerRange { layer: one.layer, block: first, count, through: one.id })
    });
    overlaps.collect()
}

/// What layers of copies hold of a component, from a part on: all of as many parts as there is room for.
pub(crate) fn held(group: &Group, key: ComponentKey, from_part: u32) -> Stored {
    let mut ranges: Vec<HeldRange> = Vec::new();
    let parts = group.held_parts(key).into_iter().filter(|part| *part >= from_part);
    for part in parts {
        let first = ranges.len();
        let held = group.held(key, part);
        let copies = held.iter().filter(|one| layer::is_of_copies(one.layer));
        ranges.extend(copies.flat_map(|one| not_overwritten(one, &held)).map(|(of, blocks)| HeldRange {
            part: layer::layered(of.layer, part),
            block: blocks.start,
            count: blocks.end - blocks.start,
            through: of.id,
        }));
        if ranges.len() > HELD_RANGES_MAX {
            ranges.truncate(first);
            return Stored::Held { ranges, next: Some(part) };
        }
    }
    Stored::Held { ranges, next: None }
}

/// The blocks of a run that no later row write covers. Where one does, the copies end with it once it is decided, and whoever sent it knows
/// so: what is told then would count for longer than it does. If it is dropped, its owner asks anew.
fn not_overwritten<'a>(
    run: &'a HeldBlocks,
    held: &[HeldBlocks],
) -> impl Iterator<Item = (&'a HeldBlocks, Range<u16>)> + use<'a> {
    let blocks_of = |one: &HeldBlocks| u16::from(one.block)..u16::from(one.block) + one.count;
    let rows: Vec<Range<u16>> =
        held.iter().filter(|one| one.layer == ROW_LAYER && one.id > run.id).map(blocks_of).collect();
    let is_left = |block: &u16| !rows.iter().any(|row| row.contains(block));
    let mut left: Vec<Range<u16>> = Vec::new();
    for block in blocks_of(run).filter(is_left) {
        match left.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            Some(_) | None => left.push(block..block + 1),
        }
    }
    left.into_iter().map(move |blocks| (run, blocks))
}

pub(crate) fn refusal(error: GroupError) -> Refusal {
    match error {
        GroupError::NoSpace => Refusal::NoSpace,
        // What is undecided is so for seconds.
        GroupError::Full => Refusal::Busy,
        GroupError::Damaged => Refusal::Damaged,
        GroupError::DeviceLost => Refusal::DeviceLost,
        GroupError::NoComponent => Refusal::NoComponent,
        GroupError::NoSlot | GroupError::Malformed => Refusal::NoSlot,
        GroupError::NoSnapshot => Refusal::NoSnapshot,
        GroupError::NotConverted | GroupError::NotYet => Refusal::Busy,
        GroupError::SnapshotRefused => Refusal::SnapshotRefused,
    }
}

pub(crate) fn damaged(found: diskgroup::DamagedBlock) -> wire::DamagedBlock {
    let diskgroup::DamagedBlock { part, block, snapshot } = found;
    wire::DamagedBlock { part, block, snapshot }
}

/// The checksum of each block times a coefficient, in the field of the parity; none in a hole.
pub(crate) fn checksums_of_products(pieces: &Pieces, coefficient: u8) -> Vec<Option<u32>> {
    let mut checksums = Vec::new();
    let mut product = [0u8; BLOCK_SIZE as usize];
    for piece in pieces {
        match piece {
            Piece::Hole(len) => {
                checksums.extend(std::iter::repeat_n(None, (u64::from(*len) / BLOCK_SIZE) as usize));
            }
            Piece::Bytes(buffer) => {
                for block in buffer.chunks_exact(BLOCK_SIZE as usize) {
                    product.fill(0);
                    layout::code::add(&mut product, block, coefficient);
                    checksums.push(Some(crc32c(&product)));
                }
            }
        }
    }
    checksums
}

/// The part that a store concerns, if any.
pub(crate) fn part_of(store: &Store) -> Option<u32> {
    match store {
        Store::Write { part, .. } | Store::Trim { part, .. } | Store::Read { part, .. } => Some(*part),
        Store::State | Store::Promise { .. } | Store::Settle { .. } | Store::Forget { .. } => None,
        Store::Allocation { .. } => None, // Nothing is allocated behind the end.
        Store::Promote { part, .. } | Store::Checksums { part, .. } | Store::View { part, .. } => Some(*part),
        Store::Backfill(backfill) | Store::Mend(backfill) => Some(backfill.part),
        Store::Snapshot { .. } | Store::DropSnapshot { .. } | Store::Snapshots => None,
        Store::LateSnapshot { .. } | Store::SyncBackfill { .. } | Store::Damage => None,
        Store::Held { .. } | Store::Changed { .. } | Store::Create(_) | Store::Update(_) | Store::Delete => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::WriteId;

    fn entries(epoch: u32, count: u64, has_happened: bool) -> Vec<Entry> {
        let entry = |sequence| Entry {
            id: WriteId { epoch, sequence },
            part: 0,
            block: 0,
            count: 1,
            is_trim: false,
            has_happened,
            tag: base::RequestTag(sequence),
        };
        (1..=count).map(entry).collect()
    }

    #[test]
    fn an_answer_names_what_is_undecided_before_what_has_happened() {
        let all = fit_into_answer(entries(1, 500, true), entries(2, 4000, false));
        assert_eq!(all.len(), 4500);
        let most = fit_into_answer(entries(1, 500, true), entries(2, 4400, false));
        assert_eq!(most.len(), ENTRIES_MAX);
        assert_eq!(most.iter().filter(|one| !one.has_happened).count(), 4400);
        assert_eq!(most[0].id.sequence, 293, "the oldest of what has happened are left out");
    }

    #[test]
    fn an_answer_that_has_no_room_for_all_undecided_changes_says_so() {
        let cut = fit_into_answer(entries(1, 500, true), entries(2, 9000, false));
        assert_eq!(cut.len(), ENTRIES_MAX);
        let left_out = 9000 - (ENTRIES_MAX as u64 - 1);
        assert!(cut[0].is_cut());
        assert_eq!((cut[0].id.sequence, cut[1].id.sequence), (left_out, left_out + 1));
        assert!(cut.iter().all(|one| !one.has_happened));
    }
}
