//! Copying a granule: slice by slice from the truth onto the other side, holes as holes.

use crate::changes::ChangedRange;
use crate::interface::{Output, Trouble};
use crate::limits;
use crate::mover::{FIRST_KEY, SLICES, Slice, Stage};
use crate::node::Node;
use crate::pieces;
use crate::range::{Aim, Stretch, checksums, part_and_block, stretches};
use crate::request::Piece;
use base::request::{self, Buffers, Pieces};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use layout::{Layout, Target};
use replication::Rule;
use replication::owner::{Asker, Failure, Input, Payload, Reply};
use std::ops::Range;

impl Node {
    /// Begins slices, or asks for the end of the granule.
    pub(super) fn copy_on(&mut self, disk: u32) -> bool {
        let rules = self.fabric.settings.rules;
        loop {
            let state = &mut self.disks[disk];
            let mover = state.mover.as_deref_mut().expect("it copies");
            let Stage::Copying { granule, next, slices, is_dropped } = &mut mover.stage else { return false };
            // While a component is missing, repair goes first: what is passed is protected by both layouts.
            if *is_dropped || !mover.is_whole {
                return false;
            }
            let is_copied = *next >= granule.range.end && slices.iter().all(Option::is_none);
            if is_copied || !rules.hold(Rule::PassCopied) && *next > granule.range.start {
                self.close(disk);
                return true;
            }
            let free = slices.iter().position(Option::is_none);
            let Some(slot) = free.filter(|_| *next < granule.range.end && mover.budget > 0) else {
                return false;
            };
            let len = slice_bytes(&granule.other).min(granule.range.end - *next);
            let range = *next..*next + len;
            *next += len;
            mover.budget -= len as i64;
            slices[slot] = Some(Slice {
                range: range.clone(),
                outstanding: 0,
                answers: Vec::new(),
                is_written: false,
                failure: None,
            });
            let key = FIRST_KEY + slot as u32;
            if !rules.hold(Rule::CopyApart) || state.changes.begin_or_wait(ChangedRange::apart(key, range)) {
                self.begin_slice(disk, slot);
            }
        }
    }

    fn slice(&mut self, disk: u32, slot: usize) -> Option<&mut Slice> {
        match &mut self.disks.get_mut(disk)?.mover.as_deref_mut()?.stage {
            Stage::Copying { slices, .. } => slices[slot].as_mut(),
            _ => None,
        }
    }

    /// Nobody changes what the slice holds: it is read.
    pub(super) fn begin_slice(&mut self, disk: u32, slot: usize) {
        let Some(slice) = self.slice(disk, slot) else { return };
        let range = slice.range.clone();
        let mut found: Vec<Stretch> = Vec::new();
        let layout = &self.disks[disk].spec.layout;
        stretches(layout, range.start, range.end - range.start, Aim::Read, &mut |one| found.push(one));
        let slice = self.slice(disk, slot).expect("it is there");
        slice.outstanding = found.len() as u32;
        slice.answers.resize(found.len(), Pieces::new());
        for (piece, of) in (0u32..).zip(found) {
            let token = Piece { request: FIRST_KEY + slot as u32, piece }.into();
            let (part, block) = part_and_block(of.offset);
            let unit = match of.target {
                None => None,
                Some(Target::Data(unit)) => Some(unit),
                Some(Target::Rows) => unreachable!("reads go unit by unit"),
            };
            let count = (of.len / BLOCK_SIZE) as u16;
            self.step_owner(
                disk,
                Input::Read { token, place: of.place, part, block, count, unit, snapshot: 0 },
            );
        }
    }

    /// A piece of a slice was read or written.
    pub(super) fn slice_answered(
        &mut self,
        disk: u32,
        slot: usize,
        piece: u32,
        result: Result<Reply, Failure>,
        out: &mut Vec<Output>,
    ) {
        let Some(slice) = self.slice(disk, slot) else { return };
        slice.outstanding -= 1;
        match result {
            Ok(Reply::Data(data)) => slice.answers[piece as usize] = data,
            Ok(Reply::Changed | Reply::Allocation(_)) => {}
            Err(Failure::NoSpace) => slice.failure = Some(Trouble::NoSpace),
            Err(Failure::Damaged) => slice.failure = Some(Trouble::Damaged),
            Err(Failure::Unowned | Failure::Abandoned | Failure::NoSnapshot) => {}
        }
        if slice.outstanding > 0 {
            return;
        }
        if slice.failure.is_none() && !slice.is_written {
            slice.is_written = true;
            let range = slice.range.clone();
            let mut all = Pieces::new();
            std::mem::take(&mut slice.answers).into_iter().for_each(|one| pieces::append(&mut all, one));
            return self.write_slice(disk, slot, &range, &all, out);
        }
        self.end_slice(disk, slot, out);
    }

    /// Puts what was read onto the other side.
    fn write_slice(
        &mut self,
        disk: u32,
        slot: usize,
        range: &Range<u64>,
        all: &Pieces,
        out: &mut Vec<Output>,
    ) {
        let mut found: Vec<Stretch> = Vec::new();
        let mover = self.disks[disk].mover.as_deref().expect("it copies");
        let Stage::Copying { granule, .. } = &mover.stage else { unreachable!("it copies") };
        let len = range.end - range.start;
        stretches(&granule.other, range.start, len, Aim::Change, &mut |one| found.push(one));
        let mut puts: Vec<(Stretch, Option<Buffers>)> = Vec::new();
        for of in found {
            let here = pieces::trim(all.clone(), (of.disk_offset - range.start) as u32, of.len as u32);
            self.puts_of(of, here, &mut puts);
        }
        if !self.fabric.settings.rules.hold(Rule::CopyHoles) {
            puts.retain(|(_, data)| data.is_some());
        }
        let slice = self.slice(disk, slot).expect("it is there");
        slice.outstanding = puts.len() as u32;
        if puts.is_empty() {
            return self.end_slice(disk, slot, out);
        }
        let tag = self.next_tag();
        for (of, data) in puts {
            let token = Piece { request: FIRST_KEY + slot as u32, piece: 0 }.into();
            let payload = match data {
                Some(data) => Payload::Write { checksums: checksums(&data), data },
                None => Payload::Trim { count: (of.len / BLOCK_SIZE) as u16 },
            };
            let (part, block) = part_and_block(of.offset);
            let Stretch { place, target, .. } = of;
            let asker = Asker::Move;
            self.step_owner(disk, Input::Change { token, place, part, block, target, tag, asker, payload });
        }
    }

    /// What is put into a stretch of the other side: runs of data and of holes; of whole rows all together.
    fn puts_of(&self, of: Stretch, here: Pieces, puts: &mut Vec<(Stretch, Option<Buffers>)>) {
        let is_hole = |piece: &request::Piece| matches!(piece, request::Piece::Hole(_));
        if here.iter().all(is_hole) {
            return puts.push((of, None));
        }
        if of.target == Some(Target::Rows) {
            let mut data = Buffers::new();
            for piece in here {
                match piece {
                    request::Piece::Bytes(bytes) => data.push(bytes),
                    request::Piece::Hole(len) => data.extend(self.zero_buffers(u64::from(len))),
                }
            }
            return puts.push((of, Some(data)));
        }
        let mut at = 0;
        for piece in here {
            let (len, data) = match piece {
                request::Piece::Bytes(bytes) => (bytes.len() as u64, Some(smallvec::smallvec![bytes])),
                request::Piece::Hole(len) => (u64::from(len), None),
            };
            let run = Stretch { offset: of.offset + at, disk_offset: of.disk_offset + at, len, ..of };
            puts.push((run, data));
            at += len;
        }
    }

    fn end_slice(&mut self, disk: u32, slot: usize, out: &mut Vec<Output>) {
        let now = self.now;
        let state = &mut self.disks[disk];
        state.changes.end(FIRST_KEY + slot as u32);
        let mover = state.mover.as_deref_mut().expect("it copies");
        if let Stage::Copying { slices, .. } = &mut mover.stage
            && let Some(slice) = slices[slot].take()
        {
            match slice.failure {
                Some(trouble) => mover.drop_granule(now, Some(trouble)),
                None => state.progress.copied_bytes += slice.range.end - slice.range.start,
            }
        }
        self.unblock(disk, out);
        self.fabric.schedule.touch(disk);
    }

    /// A mover may copy so many bytes more.
    pub(crate) fn pace_mover(&mut self, disk: u32, bytes: u64) {
        if let Some(mover) = self.disks.get_mut(disk).and_then(|state| state.mover.as_deref_mut()) {
            mover.budget =
                (mover.budget + bytes as i64).min(limits::MOVE_SLICE_BYTES_MAX as i64 * SLICES as i64);
            self.fabric.schedule.touch(disk);
        }
    }
}

/// Bytes of a slice: a full stripe of the other side, so that rows are written whole.
fn slice_bytes(other: &Layout) -> u64 {
    other.full_stripe().clamp(EXTENT_SIZE, limits::MOVE_SLICE_BYTES_MAX)
}
