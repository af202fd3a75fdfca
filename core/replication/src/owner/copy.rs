//! One copy: a range of a place that is read from one component, slice by slice, and put on another, under the range's lock.
//!
//! It decides what is read next, from whom, and when what was read is put; the owner asks the components.

use super::member::{At, Member};
use super::member_set::MemberSet;
use crate::limits;
use crate::locks::Range;
use base::WriteId;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};

/// What a copy makes of blocks that are not allocated where it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holes {
    /// They are not allocated at the target either.
    Trim,
    /// They are zeroes at the target, for it holds what was changed, and a hole would say "not changed".
    Zero,
    /// Nothing: the target keeps what it has.
    Skip,
}

/// What a copy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Blocks that are damaged on the target are written again.
    Repair,
    /// The target is brought up to date, by that attempt.
    Resync {
        attempt: u32,
        /// The only member that may give it; any active one if none.
        source: Option<u8>,
    },
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for its range, or is being read.
    Reading,
    /// No more is read. What is on its way to the target is waited for.
    Draining,
}

/// Why a copy cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyFailure {
    /// A block is damaged on all members that could give it.
    Damaged,
    /// No member that could give it answers, or the target does not take it.
    Unreachable,
}

/// What was read and is to be put on the target.
#[derive(Debug)]
pub(crate) struct Slice {
    /// The first block.
    pub(crate) block: u16,
    pub(crate) pieces: Pieces,
    /// CRC-32C of the blocks that are not holes.
    pub(crate) checksums: Vec<u32>,
}

/// What is to be done after a slice was read.
#[derive(Debug)]
pub(crate) struct NoteRead {
    /// What is to be put now.
    pub(crate) due: Option<Slice>,
    /// Whether more is to be read.
    pub(crate) goes_on: bool,
}

/// A copy under way.
#[derive(Debug)]
pub(crate) struct CopyWork {
    pub(crate) target: At,
    pub(crate) range: Range,
    /// What the regions of the target shall count as.
    pub(crate) id: WriteId,
    pub(crate) purpose: Purpose,
    pub(crate) holes: Holes,
    stage: Stage,
    failure: Option<CopyFailure>,
    /// Members that cannot give it.
    tried: MemberSet,
    /// Members on which a block of what is being read is damaged.
    damaged: MemberSet,
    /// Whether the present slice is read block by block, for all have damaged blocks in it.
    is_narrowed: bool,
    /// Blocks that were read, from its beginning, and how many of these were put.
    read: u16,
    put: u16,
    /// What was read and not put yet, and the checksums of that.
    pieces: Pieces,
    checksums: Vec<u32>,
    /// Writes to the target that are under way.
    outstanding: u32,
    /// Bytes that were put, without holes.
    pub(crate) bytes: u64,
}

impl CopyWork {
    pub(crate) fn new(target: At, range: Range, id: WriteId, purpose: Purpose, holes: Holes) -> CopyWork {
        CopyWork {
            target,
            range,
            id,
            purpose,
            holes,
            stage: Stage::Reading,
            failure: None,
            tried: MemberSet::EMPTY,
            damaged: MemberSet::EMPTY,
            is_narrowed: false,
            read: 0,
            put: 0,
            pieces: Pieces::new(),
            checksums: Vec::new(),
            outstanding: 0,
            bytes: 0,
        }
    }

    /// Whether it is about a member, or remembers something of it.
    pub(crate) fn names(&self, at: At) -> bool {
        let is_source = matches!(self.purpose, Purpose::Resync { source, .. } if source == Some(at.member));
        let is_named = self.tried.union(self.damaged).contains(at.member) || is_source;
        self.target == at || (self.target.place == at.place && is_named)
    }

    /// The attempt of the resync that it is part of.
    pub(crate) fn attempt(&self) -> Option<u32> {
        match self.purpose {
            Purpose::Repair => None,
            Purpose::Resync { attempt, .. } => Some(attempt),
        }
    }

    /// Whether one member alone may give it.
    pub(crate) fn has_source(&self) -> bool {
        matches!(self.purpose, Purpose::Resync { source: Some(_), .. })
    }

    /// Whether a member may give what is to be read next.
    pub(crate) fn may_be_given_by(&self, index: u8, member: &Member) -> bool {
        if self.tried.union(self.damaged).contains(index) {
            return false;
        }
        match self.purpose {
            Purpose::Resync { source: Some(source), .. } => index == source && member.counts(),
            Purpose::Resync { source: None, .. } | Purpose::Repair => {
                member.is_active() && index != self.target.member
            }
        }
    }

    /// Members of rows that are not asked for what is put on the target.
    pub(crate) fn excepted(&self) -> MemberSet {
        let mut excepted = self.tried.union(self.damaged);
        excepted.insert(self.target.member);
        excepted
    }

    /// What is to be read next: up to the end of the slice, or one block of it where that is narrowed.
    pub(crate) fn next_read(&self) -> Range {
        let Range { part, block, count } = self.range;
        let slice = slice_of(self.range);
        let left = (count - self.read).min(slice - (self.read - self.put) % slice);
        Range { part, block: block + self.read, count: if self.is_narrowed { 1 } else { left } }
    }

    /// A member cannot give what it was asked for.
    pub(crate) fn note_tried(&mut self, member: u8) {
        self.tried.insert(member);
    }

    /// A block of what a member was asked for is damaged there.
    pub(crate) fn note_damaged(&mut self, member: u8) {
        self.damaged.insert(member);
    }

    /// None can give all that is asked for. Where that is because each has a damaged block there, the slice is read block by block:
    /// they may be different ones. False if no more can be read.
    pub(crate) fn narrow(&mut self, may_narrow: bool) -> bool {
        let has_several = !self.is_narrowed && slice_of(self.range).min(self.range.count - self.read) > 1;
        if !self.damaged.is_empty() && has_several && may_narrow {
            (self.damaged, self.is_narrowed) = (MemberSet::EMPTY, true);
            return true;
        }
        let why = if self.damaged.is_empty() { CopyFailure::Unreachable } else { CopyFailure::Damaged };
        self.failure = if why == CopyFailure::Damaged { Some(why) } else { self.failure.or(Some(why)) };
        self.stop_reading();
        false
    }

    /// What a member gave.
    pub(crate) fn note_read(&mut self, found: Pieces, checksums: &[u32]) -> NoteRead {
        self.read += blocks_of(&found);
        self.damaged = MemberSet::EMPTY;
        self.pieces.extend(found);
        self.checksums.extend_from_slice(checksums);
        let is_all = self.read == self.range.count;
        let is_slice = (self.read - self.put).is_multiple_of(slice_of(self.range));
        self.is_narrowed &= !is_slice;
        if self.failure.is_some() {
            self.stop_reading();
            return NoteRead { due: None, goes_on: false };
        }
        let is_due = is_all || (is_slice && goes_in_slices(self.range, self.holes));
        let due = is_due.then(|| self.take_due());
        if is_all {
            self.stop_reading();
        }
        NoteRead { due, goes_on: !is_all }
    }

    fn take_due(&mut self) -> Slice {
        let block = self.range.block + self.put;
        self.put = self.read;
        let (pieces, checksums) = (std::mem::take(&mut self.pieces), std::mem::take(&mut self.checksums));
        Slice { block, pieces, checksums }
    }

    /// No more is read.
    pub(crate) fn stop_reading(&mut self) {
        self.stage = Stage::Draining;
    }

    /// Writes to the target were sent.
    pub(crate) fn note_sent(&mut self, requests: usize, bytes: u64) {
        self.outstanding += requests as u32;
        self.bytes += bytes;
    }

    /// A write to the target ended.
    pub(crate) fn note_written(&mut self, is_done: bool) {
        self.outstanding -= 1;
        if !is_done {
            self.fail();
        }
    }

    /// The target does not take it.
    pub(crate) fn fail(&mut self) {
        self.failure = self.failure.or(Some(CopyFailure::Unreachable));
    }

    /// How it ended, if nothing of it is under way.
    pub(crate) fn outcome(&self) -> Option<Result<(), CopyFailure>> {
        let is_over = self.stage == Stage::Draining && self.outstanding == 0;
        is_over.then_some(self.failure.map_or(Ok(()), Err))
    }
}

/// Blocks that are read at a time. The first slice of a whole part says by its size that others follow: a copy that is no more than such
/// a slice comes in halves, so that nobody waits for the rest.
fn slice_of(range: Range) -> u16 {
    if is_like_a_first_slice(range) { limits::COPY_SLICE_BLOCKS / 2 } else { limits::COPY_SLICE_BLOCKS }
}

/// Whether each slice goes to the target once it is read. It does where the target can put them together again, and where each tells of
/// all its blocks.
fn goes_in_slices(range: Range, holes: Holes) -> bool {
    let is_whole = usize::from(range.count) == BLOCKS_PER_EXTENT;
    (is_whole && holes != Holes::Skip) || is_like_a_first_slice(range)
}

fn is_like_a_first_slice(range: Range) -> bool {
    range.block == 0 && range.count == limits::COPY_SLICE_BLOCKS
}

fn blocks_of(pieces: &Pieces) -> u16 {
    let bytes = |piece: &Piece| match piece {
        Piece::Bytes(buffer) => buffer.len() as u64,
        Piece::Hole(len) => u64::from(*len),
    };
    (pieces.iter().map(bytes).sum::<u64>() / BLOCK_SIZE) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: At = At { place: 0, member: 1 };

    fn copy(count: u16, holes: Holes) -> CopyWork {
        let range = Range { part: 3, block: 0, count };
        let purpose = Purpose::Resync { attempt: 1, source: None };
        CopyWork::new(TARGET, range, WriteId::default(), purpose, holes)
    }

    fn hole(blocks: u16) -> Pieces {
        [Piece::Hole(u32::from(blocks) * BLOCK_SIZE as u32)].into_iter().collect()
    }

    /// Reads all, and says in which slices it is put.
    fn slices(mut copy: CopyWork) -> Vec<(u16, u16)> {
        let mut slices = Vec::new();
        loop {
            let NoteRead { due, goes_on } = copy.note_read(hole(copy.next_read().count), &[]);
            slices.extend(due.map(|slice| (slice.block, blocks_of(&slice.pieces))));
            if !goes_on {
                assert_eq!(copy.outcome(), Some(Ok(())));
                return slices;
            }
        }
    }

    #[test]
    fn a_whole_part_is_put_in_slices_and_anything_else_at_once() {
        let whole: Vec<(u16, u16)> = (0..8).map(|slice| (slice * 32, 32)).collect();
        assert_eq!(slices(copy(256, Holes::Trim)), whole);
        assert_eq!(slices(copy(256, Holes::Skip)), [(0, 256)]);
        assert_eq!(slices(copy(64, Holes::Trim)), [(0, 64)]);
        assert_eq!(slices(copy(32, Holes::Trim)), [(0, 16), (16, 16)], "nobody waits for the rest of a part");
    }

    #[test]
    fn a_slice_that_is_damaged_on_all_is_read_block_by_block_and_the_next_one_whole() {
        let mut copy = copy(64, Holes::Trim);
        copy.note_damaged(0);
        assert!(copy.narrow(true));
        for block in 0..32 {
            assert_eq!((copy.next_read().block, copy.next_read().count), (block, 1));
            copy.note_read(hole(1), &[]);
        }
        assert_eq!((copy.next_read().block, copy.next_read().count), (32, 32));
        copy.note_damaged(0);
        assert!(!copy.narrow(false));
        assert_eq!(copy.outcome(), Some(Err(CopyFailure::Damaged)));
    }

    #[test]
    fn a_copy_that_failed_ends_once_nothing_of_it_is_under_way() {
        let mut copy = copy(256, Holes::Trim);
        assert!(copy.note_read(hole(32), &[]).due.is_some());
        copy.note_sent(2, 0);
        copy.note_written(false);
        assert_eq!(copy.outcome(), None, "a slice is being read");
        let NoteRead { due, goes_on } = copy.note_read(hole(32), &[]);
        assert!(due.is_none() && !goes_on);
        assert_eq!(copy.outcome(), None, "a write is under way");
        copy.note_written(true);
        assert_eq!(copy.outcome(), Some(Err(CopyFailure::Unreachable)));
    }
}
