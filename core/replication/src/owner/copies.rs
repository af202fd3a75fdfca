//! Copies: what stands in a range of a place, read from one component and put on another, under the range's lock.
//!
//! They are read and sent in slices: what guests ask of the device, of the link and of the node on either side never stands behind more
//! than one of those. The slices of a whole part go out as each is read, and the node that gets them puts them together again (`node`'s
//! `gather`): only a whole part goes straight to where it stays.

use super::member_set::MemberSet;
use super::resync::Kind;
use super::state::{At, Member};
use super::work::{Holes, Work};
use super::{Asked, Event, Failure, LeftBecause, Lost, Owner, Reply};
use crate::lanes::{Hold, Range};
use crate::limits;
use crate::rules::Rule;
use base::WriteId;
use base::request::{Buffers, Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use smallvec::SmallVec;
use wire::{Answer, EntryKind, Refusal, Request};

impl Owner {
    /// Copies a range to a component, under its lock.
    pub(crate) fn copy(&mut self, target: At, range: Range, id: WriteId, attempt: Option<u32>) {
        let member = self.member(target);
        let resync = member.resync.as_ref().filter(|resync| Some(resync.attempt) == attempt);
        let source = resync.filter(|resync| resync.kind == Kind::Restore).map(|resync| resync.source);
        let holes = match resync.map(|resync| resync.kind) {
            Some(Kind::Restore) => Holes::Skip,
            Some(Kind::Fill) if !self.holds(Rule::FillWithHoles) => Holes::Skip,
            // With their versions: what missed a freeing may be brought up to date from it later.
            Some(Kind::StandIn | Kind::Fill) if self.holds(Rule::ZeroStandInsForTrims) => Holes::Zero,
            Some(Kind::StandIn | Kind::Fill | Kind::Return) | None => Holes::Trim,
        };
        let work = Work::Copy {
            target,
            range,
            id,
            attempt,
            source,
            holes,
            tried: MemberSet::EMPTY,
            damaged: MemberSet::EMPTY,
            is_narrowed: false,
            is_damaged: false,
            read: 0,
            put: 0,
            is_reading: true,
            pieces: Pieces::new(),
            checksums: Vec::new(),
            outstanding: 0,
            bytes: 0,
            has_failed: false,
        };
        let key = self.works.insert(work) as u32;
        let is_locked = !self.holds(Rule::CopyUnderLock)
            || self.places[target.place as usize].lanes.lock(range, Hold::Exclusive, key);
        if is_locked {
            self.begin_copy(key);
        }
    }

    /// The range is locked: what stands there is read from an active component.
    pub(crate) fn begin_copy(&mut self, key: u32) {
        let Work::Copy { range, .. } = self.works[key as usize] else { unreachable!("only copies copy") };
        match range.count {
            0 => self.note_hole(key),
            _ => self.read_on(key),
        }
    }

    /// Reads the next slice.
    fn read_on(&mut self, key: u32) {
        let Work::Copy { target, range, tried, damaged, is_narrowed, source: only, read, put, .. } =
            self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        let place = &self.places[target.place as usize];
        let may_give = |index: u8, one: &Member| match only {
            _ if tried.union(damaged).contains(index) => false,
            Some(only) => index == only && one.counts(),
            None => one.is_active() && index != target.member,
        };
        let source = self.copy_source(target.place, range.part, may_give);
        let Some(member) = source else { return self.narrow_copy(key) };
        let one = &place.members[usize::from(member)];
        let (node, component) = (one.node, one.component);
        let (part, block) = (range.part, range.block + read);
        // Block by block up to the end of the slice, where that is narrowed.
        let left = (range.count - read).min(slice_of(range) - (read - put) % slice_of(range));
        let count = if is_narrowed { 1 } else { left };
        let at = At { place: target.place, member };
        let request = Request::Read { component, epoch: self.epoch, part, block, count };
        self.send(node, Asked::CopyRead { work: key, at }, request);
    }

    /// None can give all that is asked for. Where that is because each has a damaged block there, the slice is read block by block:
    /// they may be different ones.
    fn narrow_copy(&mut self, key: u32) {
        let narrows = self.holds(Rule::CopyBlockByBlock);
        let Work::Copy { range, damaged, is_narrowed, is_damaged, read, .. } = &mut self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        let has_several = !*is_narrowed && slice_of(*range).min(range.count - *read) > 1;
        if !damaged.is_empty() && has_several && narrows {
            (*damaged, *is_narrowed) = (MemberSet::EMPTY, true);
            return self.read_on(key);
        }
        *is_damaged = !damaged.is_empty();
        self.stop_reading(key, true);
    }

    /// Tells a component of a freeing that changes none of its blocks.
    fn note_hole(&mut self, key: u32) {
        let Work::Copy { target, range, id, outstanding, is_reading, .. } = &mut self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        (*outstanding, *is_reading) = (1, false);
        let (target, part, id) = (*target, range.part, *id);
        let (node, component) = (self.member(target).node, self.member(target).component);
        let (epoch, watermark, kind) = (self.epoch, WriteId::default(), EntryKind::Copy);
        let request = Request::Trim { component, epoch, id, watermark, kind, part, block: 0, count: 0 };
        self.send(node, Asked::CopyWrite { work: key }, request);
    }

    pub(crate) fn copy_read(&mut self, key: u32, at: At, answer: Result<Answer, Lost>) {
        match answer {
            Ok(Answer::Data { pieces, checksums }) if super::read::verify(&pieces, &checksums) => {
                self.note_read(key, pieces, &checksums);
            }
            Ok(Answer::Refused(Refusal::Damaged)) => {
                let Work::Copy { damaged, .. } = &mut self.works[key as usize] else {
                    unreachable!("only copies copy")
                };
                damaged.insert(at.member);
                self.read_on(key);
            }
            // What was read before stays true: the range is locked, and whoever gave it was active.
            Ok(Answer::Data { .. } | Answer::Refused(_)) | Err(Lost) => {
                let Work::Copy { tried, .. } = &mut self.works[key as usize] else {
                    unreachable!("only copies copy")
                };
                tried.insert(at.member);
                self.read_on(key);
            }
            Ok(other) => unreachable!("a read is not answered by {other:?}"),
        }
    }

    fn note_read(&mut self, key: u32, found: Pieces, sums: &[u32]) {
        let Work::Copy {
            range, holes, damaged, is_narrowed, read, put, pieces, checksums, has_failed, ..
        } = &mut self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        *read += blocks_of(&found);
        *damaged = MemberSet::EMPTY;
        pieces.extend(found);
        checksums.extend_from_slice(sums);
        let is_all = *read == range.count;
        let is_slice = (*read - *put).is_multiple_of(slice_of(*range));
        *is_narrowed &= !is_slice;
        let is_due = is_all || (is_slice && goes_in_slices(*range, *holes));
        if *has_failed {
            return self.stop_reading(key, true);
        }
        if is_due {
            let begin = range.block + *put;
            *put = *read;
            let (pieces, checksums) = (std::mem::take(pieces), std::mem::take(checksums));
            self.put(key, begin, pieces, &checksums);
        }
        match is_all {
            true => self.stop_reading(key, false),
            false => self.read_on(key),
        }
    }

    /// No more is read, because all was or because it cannot be. What is on its way to the target is waited for.
    fn stop_reading(&mut self, key: u32, failed: bool) {
        let Work::Copy { is_reading, has_failed, .. } = &mut self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        *is_reading = false;
        *has_failed |= failed;
        self.check_copy(key);
    }

    /// Ends a copy of which nothing is under way.
    fn check_copy(&mut self, key: u32) {
        if let Work::Copy { is_reading: false, outstanding: 0, has_failed, .. } = self.works[key as usize] {
            self.end_copy(key, !has_failed);
        }
    }

    /// Puts what was read, from that block on, where it is missing, whatever stands there.
    fn put(&mut self, key: u32, begin: u16, pieces: Pieces, checksums: &[u32]) {
        let Work::Copy { target, range, id, holes, ref mut has_failed, .. } = self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        let member = &self.places[usize::from(target.place)].members[usize::from(target.member)];
        let node = member.node;
        if !member.is_open() {
            *has_failed = true;
            return;
        }
        let mut block = begin;
        let mut sums = checksums;
        let mut requests: SmallVec<[Request; 2]> = SmallVec::new();
        let mut copied = 0;
        for run in runs_of(pieces) {
            let at = (range.part, block);
            match run {
                Ok(data) => {
                    let len: usize = data.iter().map(|buffer| buffer.len()).sum();
                    let count = (len as u64 / BLOCK_SIZE) as u16;
                    let (mine, rest) = sums.split_at(count as usize);
                    sums = rest;
                    copied += len as u64;
                    let checksums = SmallVec::from_slice(mine);
                    requests.push(self.copy_of_data(target, id, at, data, checksums));
                    block += count;
                }
                Err(count) => {
                    requests.extend(self.copy_of_hole(target, id, at, (count, holes)));
                    block += count;
                }
            }
        }
        let Work::Copy { outstanding, bytes, .. } = &mut self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        *outstanding += requests.len() as u32;
        *bytes += copied;
        for request in requests {
            self.send(node, Asked::CopyWrite { work: key }, request);
        }
    }

    fn copy_of_data(
        &self,
        target: At,
        id: WriteId,
        (part, block): (u32, u16),
        data: Buffers,
        checksums: SmallVec<[u32; 2]>,
    ) -> Request {
        let (component, epoch) = (self.member(target).component, self.epoch);
        let (watermark, kind) = (WriteId::default(), EntryKind::Copy);
        Request::Write { component, epoch, id, watermark, kind, part, block, data, checksums }
    }

    fn copy_of_hole(
        &self,
        target: At,
        id: WriteId,
        (part, block): (u32, u16),
        (count, holes): (u16, Holes),
    ) -> Option<Request> {
        let (component, epoch) = (self.member(target).component, self.epoch);
        let (watermark, kind) = (WriteId::default(), EntryKind::Copy);
        match holes {
            Holes::Trim => Some(Request::Trim { component, epoch, id, watermark, kind, part, block, count }),
            Holes::Zero => {
                let (data, checksums) = self.settings.zero_blocks(count);
                Some(self.copy_of_data(target, id, (part, block), data, checksums))
            }
            Holes::Skip => None,
        }
    }

    pub(crate) fn copy_written(&mut self, key: u32, answer: Result<Answer, Lost>) {
        let Work::Copy { target, outstanding, has_failed, attempt, .. } = &mut self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        let (target, attempt) = (*target, *attempt);
        *outstanding -= 1;
        let refusal = match answer {
            Ok(Answer::Done { .. }) => None,
            Ok(Answer::Refused(refusal)) => Some(refusal),
            Err(Lost) => {
                *has_failed = true;
                None
            }
            Ok(other) => unreachable!("a write is not answered by {other:?}"),
        };
        *has_failed |= refusal.is_some();
        let is_current = self.member(target).resync.as_ref().is_some_and(|one| Some(one.attempt) == attempt);
        if let Some(refusal) = refusal.filter(|_| is_current) {
            self.abort_resync(target, LeftBecause::Refused(refusal));
        }
        self.check_copy(key);
    }

    fn end_copy(&mut self, key: u32, is_done: bool) {
        let Work::Copy { target, range, attempt, bytes, is_damaged, .. } = self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        self.end_work(key, if is_done { Ok(Reply::Changed) } else { Err(Failure::Damaged) });
        let component = self.member(target).component;
        if attempt.is_none() && is_done {
            self.repaired_blocks += u64::from(range.count);
            self.out.push(super::Output::Event(Event::Repaired { component, blocks: range.count }));
        }
        if is_done && attempt.is_some() {
            self.copied_bytes += bytes;
        }
        let resync = self.member_mut(target).resync.as_mut();
        if let Some(resync) = resync.filter(|resync| attempt == Some(resync.attempt)) {
            resync.copies -= 1;
            resync.copied_bytes += bytes;
            if !is_done {
                let damaged = LeftBecause::Refused(Refusal::Damaged);
                self.abort_resync(target, if is_damaged { damaged } else { LeftBecause::Unreachable });
            }
        }
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

/// Runs of bytes, or of blocks without any.
fn runs_of(pieces: Pieces) -> Vec<Result<Buffers, u16>> {
    let mut runs: Vec<Result<Buffers, u16>> = Vec::new();
    for piece in pieces {
        match (runs.last_mut(), piece) {
            (Some(Ok(data)), Piece::Bytes(buffer)) => data.push(buffer),
            (Some(Err(count)), Piece::Hole(len)) => *count += (u64::from(len) / BLOCK_SIZE) as u16,
            (_, Piece::Bytes(buffer)) => runs.push(Ok(smallvec::smallvec![buffer])),
            (_, Piece::Hole(len)) => runs.push(Err((u64::from(len) / BLOCK_SIZE) as u16)),
        }
    }
    runs
}
