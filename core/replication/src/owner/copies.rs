//! Copies: what stands in a range of a place, read from one component and put on another, under the range's lock.
//!
//! They are read and sent in slices: what guests ask of the device, of the link and of the node on either side never stands behind more
//! than one of those. The slices of a whole part go out as each is read, and the node that gets them puts them together again (`node`'s
//! `gather`): only a whole part goes straight to where it stays.

use super::Owner;
use super::asked::{Asked, Step, Unanswered};
use super::copy::{CopyFailure, CopyWork, Holes, NoteRead, Purpose, Slice};
use super::data::Data;
use super::fold::FoldFailure;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::interface::{Event, LeftBecause, Output};
use super::member::At;
use super::member_set::MemberSet;
use super::resync::Kind;
use super::work::Key;
use crate::locks::{Hold, Range};
use crate::rules::Rule;
use base::WriteId;
use base::request::{Buffers, Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use smallvec::SmallVec;
use wire::{EntryKind, Refusal, Request};

/// Blocks of one kind, one after the other.
enum Run {
    Data(Buffers),
    /// So many that are not allocated.
    Hole(u16),
}

impl Owner {
    /// What copies of a resync make of holes.
    pub(crate) fn holes_of(&self, kind: Kind) -> Holes {
        match kind {
            Kind::Restore => Holes::Skip,
            Kind::Fill if !self.holds(Rule::FillWithHoles) => Holes::Skip,
            // With their versions: what missed a freeing may be brought up to date from it later.
            Kind::StandIn | Kind::Fill if self.holds(Rule::ZeroStandInsForTrims) => Holes::Zero,
            Kind::StandIn | Kind::Fill | Kind::Return => Holes::Trim,
        }
    }

    /// Copies a range to a component, under its lock.
    pub(crate) fn copy(&mut self, target: At, range: Range, id: WriteId, purpose: Purpose, holes: Holes) {
        let key = self.works.add_copy(CopyWork::new(target, range, id, purpose, holes));
        let lock = self.works.copies.lock_key(key);
        let is_locked =
            !self.holds(Rule::CopyUnderLock) || self.locks.lock(lock, Hold::Copy, &[(target.place, range)]);
        if is_locked {
            self.begin_copy(key);
        }
    }

    /// The range is locked: what stands there is read from an active component.
    pub(crate) fn begin_copy(&mut self, key: Key<CopyWork>) {
        let CopyWork { target, range, purpose, .. } = self.works.copies[key];
        // What is decoded is what the parity counts, and a copy ends what its target holds over that.
        let is_clear = self.places[usize::from(target.place)].held.is_clear(&range);
        match range.count {
            0 => self.note_hole(key),
            _ if purpose == Purpose::Repair && !is_clear && self.holds(Rule::FoldBeforeDecoding) => {
                self.fold_for_copy(key);
            }
            _ => self.read_on(key),
        }
    }

    /// Folds the first row of the range of which anything is held.
    fn fold_for_copy(&mut self, key: Key<CopyWork>) {
        let CopyWork { target, range, .. } = self.works.copies[key];
        let held = &self.places[usize::from(target.place)].held;
        let first = range.rows().find(|row| !held.is_clear(row)).expect("something is held");
        let lock = self.works.copies.lock_key(key);
        self.fold(target.place, first, Some(lock));
    }

    /// The parity counts what was held of a row, or cannot be made to now.
    pub(crate) fn copy_folded(&mut self, key: Key<CopyWork>, result: Result<(), FoldFailure>) {
        if result.is_ok() {
            return self.begin_copy(key);
        }
        let copy = &mut self.works.copies[key];
        copy.fail();
        copy.stop_reading();
        self.check_copy(key);
    }

    /// Reads the next slice.
    fn read_on(&mut self, key: Key<CopyWork>) {
        let copy = &self.works.copies[key];
        let place = copy.target.place;
        // Its stand-in gives a member that is restored what it has.
        if self.places[usize::from(place)].code.is_some() && !copy.has_source() {
            let wanted = MemberSet::of(self.member(copy.target).position);
            let gather = Gather::new(place, copy.next_read(), wanted, copy.excepted(), GatherFor::Copy(key));
            return self.gather(gather);
        }
        let source = self.copy_source(place, copy.range.part, |index, one| copy.may_be_given_by(index, one));
        let Some(member) = source else { return self.narrow_copy(key) };
        let Range { part, block, count } = copy.next_read();
        let at = At { place, member };
        let (node, component) = (self.member(at).node, self.member(at).component);
        let request = Request::Read { component, epoch: self.epoch, part, block, count, verify: true };
        self.send(node, Asked::Step(Step::CopyRead { work: key, at }), request);
    }

    /// What a member of rows shall have was put together from the others, or cannot be.
    pub(crate) fn copy_gathered(&mut self, key: Key<CopyWork>, result: Result<Found, GatherFailure>) {
        let target = self.works.copies[key].target;
        match result {
            Ok(mut found) => {
                let Data { pieces, checksums } = found.take(self.member(target).position);
                self.copy_given(key, pieces, &checksums);
            }
            Err(GatherFailure::Damaged) => {
                self.works.copies[key].note_damaged(target.member);
                self.narrow_copy(key);
            }
            Err(GatherFailure::Unreachable | GatherFailure::Memory) => self.narrow_copy(key),
        }
    }

    /// What was asked for is there.
    fn copy_given(&mut self, key: Key<CopyWork>, pieces: Pieces, checksums: &[u32]) {
        let NoteRead { due, goes_on } = self.works.copies[key].note_read(pieces, checksums);
        if let Some(slice) = due {
            self.put(key, slice);
        }
        match goes_on {
            true => self.read_on(key),
            false => self.check_copy(key),
        }
    }

    fn narrow_copy(&mut self, key: Key<CopyWork>) {
        let may_narrow = self.holds(Rule::CopyBlockByBlock);
        match self.works.copies[key].narrow(may_narrow) {
            true => self.read_on(key),
            false => self.check_copy(key),
        }
    }

    /// Tells a component of a freeing that changes none of its blocks.
    fn note_hole(&mut self, key: Key<CopyWork>) {
        let copy = &mut self.works.copies[key];
        copy.note_sent(1, 0);
        copy.stop_reading();
        let (target, at, id) = (copy.target, (copy.range.part, 0), copy.id);
        let node = self.member(target).node;
        let request = self.copy_of_hole(target, id, at, 0);
        self.send(node, Asked::Step(Step::CopyWrite { work: key }), request);
    }

    pub(crate) fn copy_read(&mut self, key: Key<CopyWork>, at: At, answer: Result<Data, Unanswered>) {
        match answer {
            Ok(data) if data.is_intact() => {
                return self.copy_given(key, data.pieces, &data.checksums);
            }
            Err(Unanswered::Refused(Refusal::Damaged)) => self.works.copies[key].note_damaged(at.member),
            // What was read before stays true: the range is locked, and whoever gave it was active.
            Ok(_) | Err(Unanswered::Refused(_) | Unanswered::Lost) => {
                self.works.copies[key].note_tried(at.member);
            }
        }
        self.read_on(key);
    }

    /// Puts what was read where it is missing, whatever stands there.
    fn put(&mut self, key: Key<CopyWork>, slice: Slice) {
        let CopyWork { target, range, id, holes, .. } = self.works.copies[key];
        let member = self.member(target);
        let node = member.node;
        if !member.is_open() {
            return self.works.copies[key].fail();
        }
        let mut block = slice.block;
        let mut checksums = &slice.checksums[..];
        let mut requests: SmallVec<[Request; 2]> = SmallVec::new();
        let mut copied = 0;
        for run in runs_of(slice.pieces) {
            let at = (range.part, block);
            match run {
                Run::Data(data) => {
                    let len: usize = data.iter().map(|buffer| buffer.len()).sum();
                    let count = (len as u64 / BLOCK_SIZE) as u16;
                    let (of_run, rest) = checksums.split_at(usize::from(count));
                    checksums = rest;
                    copied += len as u64;
                    requests.push(self.copy_of_data(target, id, at, data, SmallVec::from_slice(of_run)));
                    block += count;
                }
                Run::Hole(count) => {
                    match holes {
                        Holes::Trim => requests.push(self.copy_of_hole(target, id, at, count)),
                        Holes::Zero => {
                            for (block, count) in self.zeroed_of(block, count) {
                                let (data, checksums) = self.settings.zero_blocks(count);
                                let at = (range.part, block);
                                requests.push(self.copy_of_data(target, id, at, data, checksums));
                            }
                        }
                        Holes::Skip => {}
                    }
                    block += count;
                }
            }
        }
        self.works.copies[key].note_sent(requests.len(), copied);
        for request in requests {
            self.send(node, Asked::Step(Step::CopyWrite { work: key }), request);
        }
    }

    /// The blocks of a hole that become zeroes in a copy: all of them, but of a clone those that tell whose their region is.
    fn zeroed_of(&self, block: u16, count: u16) -> SmallVec<[(u16, u16); 1]> {
        if !self.settings.is_clone || !self.holds(Rule::KeepFirstHoles) {
            return smallvec::smallvec![(block, count)];
        }
        let of_region = BLOCKS_PER_REGION as u16;
        let end = block + count;
        let mut runs = SmallVec::new();
        let mut at = block;
        while at < end {
            at += u16::from(at.is_multiple_of(of_region));
            let to = end.min(at.next_multiple_of(of_region));
            if at < to {
                runs.push((at, to - at));
            }
            at = to;
        }
        runs
    }

    /// A copy onto the content of a component.
    pub(crate) fn copy_of_data(
        &self,
        target: At,
        id: WriteId,
        (part, block): (u32, u16),
        data: Buffers,
        checksums: SmallVec<[u32; 2]>,
    ) -> Request {
        let (component, epoch) = (self.member(target).component, self.epoch);
        let (watermark, kind) = (WriteId::default(), EntryKind::Copy);
        Request::Write { marks: 0, component, epoch, id, watermark, kind, part, block, data, checksums }
    }

    fn copy_of_hole(&self, target: At, id: WriteId, (part, block): (u32, u16), count: u16) -> Request {
        let (component, epoch) = (self.member(target).component, self.epoch);
        let (watermark, kind) = (WriteId::default(), EntryKind::Copy);
        Request::Trim { marks: 0, component, epoch, id, watermark, kind, part, block, count }
    }

    pub(crate) fn copy_written(&mut self, key: Key<CopyWork>, answer: Result<u8, Unanswered>) {
        let copy = &mut self.works.copies[key];
        copy.note_written(answer.is_ok());
        let (target, attempt) = (copy.target, copy.attempt());
        let is_current = self.member(target).resync().is_some_and(|one| Some(one.attempt) == attempt);
        if let Err(Unanswered::Refused(refusal)) = answer
            && is_current
        {
            self.abort_resync(target, LeftBecause::Refused(refusal));
        }
        self.check_copy(key);
    }

    /// Ends a copy of which nothing is under way.
    fn check_copy(&mut self, key: Key<CopyWork>) {
        if let Some(outcome) = self.works.copies[key].outcome() {
            self.end_copy(key, outcome);
        }
    }

    fn end_copy(&mut self, key: Key<CopyWork>, outcome: Result<(), CopyFailure>) {
        let (lock, copy) = self.works.remove_copy(key);
        let CopyWork { target, range, bytes, .. } = copy;
        if self.holds(Rule::CopyUnderLock) {
            self.unlock(lock, target.place, range);
        }
        let component = self.member(target).component;
        match (copy.attempt(), outcome) {
            (None, Ok(())) => {
                self.repaired_blocks += u64::from(range.count);
                self.out.push(Output::Event(Event::Repaired { component, blocks: range.count }));
            }
            (Some(_), Ok(())) => self.copied_bytes += bytes,
            (_, Err(_)) => {}
        }
        let resync = self.member_mut(target).resync_mut();
        if let Some(resync) = resync.filter(|resync| copy.attempt() == Some(resync.attempt)) {
            resync.copies -= 1;
            resync.copied_bytes += bytes;
            match outcome {
                Ok(()) => {}
                Err(CopyFailure::Damaged) => {
                    self.abort_resync(target, LeftBecause::Refused(Refusal::Damaged));
                }
                Err(CopyFailure::Unreachable) => self.abort_resync(target, LeftBecause::Unreachable),
            }
        }
    }
}

fn runs_of(pieces: Pieces) -> Vec<Run> {
    let blocks = |len: u32| (u64::from(len) / BLOCK_SIZE) as u16;
    let mut runs: Vec<Run> = Vec::new();
    for piece in pieces {
        match (runs.last_mut(), piece) {
            (Some(Run::Data(data)), Piece::Bytes(buffer)) => data.push(buffer),
            (Some(Run::Hole(count)), Piece::Hole(len)) => *count += blocks(len),
            (_, Piece::Bytes(buffer)) => runs.push(Run::Data(smallvec::smallvec![buffer])),
            (_, Piece::Hole(len)) => runs.push(Run::Hole(blocks(len))),
        }
    }
    runs
}
