//! Moving a disk into another layout while it is used (docs/design/0041).
//!
//! The owner's node does it, granule by granule, at the **boundary** between the two layouts. While a granule is copied, what guests
//! change in it happens on its **truth** first, the side that counts, and then on the **other side**; each request ends after both. The
//! table of changes is the only lock: a slice that is copied, and each change in the granule, has its blocks for itself on both sides.
//! Once all is copied, nothing changes in the granule for as long as it takes the record to pass it. So both sides are equal whatever
//! becomes of that transaction, and the side that the record names is the truth.

mod copy;
mod follow;
mod trim;

use crate::changes::ChangedRange;
use crate::disk::Disk;
use crate::interface::{MoveState, Output};
use crate::mover::{FIRST_KEY, Granule, Mover, PASS_KEY, SLICES, Stage, TRIM_KEY, is_mover};
use crate::node::Node;
use base::units::EXTENT_SIZE;
use layout::Side;
use replication::owner::{Failure, Input, Reply};
use replication::{Moved, Rule};

/// Whether no component is missing that the move of a disk needs: of either side, and on the way back of the side that it goes back to alone.
/// What is missing of the other one may be what the move stands still for, and what is copied from there follows from the rest.
fn has_components(disk: &Disk) -> bool {
    let Some(owner) = disk.ownership.owner.as_deref() else { return false };
    match disk.spec.layout.side(Side::New) {
        Some((first_of_new, _)) if disk.spec.course.is_back => owner.is_whole_in(first_of_new),
        Some(_) | None => owner.is_whole(),
    }
}

/// How far a disk that is owned here has moved.
pub(crate) fn move_state(disk: &Disk) -> Option<MoveState> {
    disk.ownership.owner.as_deref()?;
    // Between two granules there is no mover for a moment.
    let mover = disk.mover.as_deref();
    Some(MoveState {
        boundary: disk.spec.layout.boundary()?,
        copied_bytes: disk.progress.copied_bytes,
        awaits_component: mover.is_some() && !has_components(disk),
        trouble: mover.and_then(|mover| mover.trouble),
    })
}

impl Node {
    /// Makes the mover of a disk that is served here and has two layouts; requests are mapped by the boundary that its owner has read.
    pub(crate) fn know_mover(&mut self, disk: u32) {
        let Some(state) = self.disks.get(disk).filter(|one| one.spec.layout.boundary().is_some()) else {
            return;
        };
        let owner = self.owner_number(disk).filter(|_| self.may_start(disk));
        let known = state.mover.as_ref().map(|mover| mover.owner);
        if owner.is_none() || owner == known {
            return;
        }
        let moved = self.owner(disk).and_then(|owner| owner.record().1.moving);
        let (Some(owner), Some(moved)) = (owner, moved) else { return };
        let state = &mut self.disks[disk];
        state.spec.layout.set_boundary(moved.boundary);
        state.mover = Some(Box::new(Mover {
            owner,
            moved,
            course: state.spec.course,
            stage: Stage::Idle,
            number: 0,
            budget: 0,
            retry_at: None,
            is_whole: false,
            trouble: None,
            began: self.now,
        }));
        self.fabric.schedule.touch(disk);
    }

    /// The owner that a mover is of has ended: what it copied is believed by nobody.
    pub(crate) fn drop_mover(&mut self, disk: u32, out: &mut Vec<Output>) {
        if self.disks[disk].mover.take().is_some() {
            self.disks[disk].changes.forget(is_mover);
            self.unblock(disk, out);
        }
    }

    /// Takes the move of a disk on as far as it goes.
    pub(crate) fn advance_move(&mut self, disk: u32, out: &mut Vec<Output>) {
        self.know_mover(disk);
        while self.step_move(disk, out) {}
    }

    /// One step; whether it led to another stage.
    fn step_move(&mut self, disk: u32, out: &mut Vec<Output>) -> bool {
        let now = self.now;
        let is_whole = self.disks.get(disk).is_some_and(has_components);
        let Some(state) = self.disks.get_mut(disk) else { return false };
        let (course, size) = (state.spec.course, state.spec.layout.size());
        let Some(mover) = state.mover.as_deref_mut() else { return false };
        if mover.course.is_back != course.is_back {
            // What stands on the side that it moves to now is not known: all of it is trimmed.
            mover.moved.trimmed = if course.is_back { size } else { 0 };
        }
        mover.is_whole = is_whole;
        let is_turned = std::mem::replace(&mut mover.course, course) != course;
        if is_turned {
            mover.trouble = None; // It was met on the way that is left.
            mover.trim_anew();
        }
        match &mut mover.stage {
            Stage::Idle => self.leave_idle(disk),
            Stage::Trimming(_) => self.trim_on(disk),
            Stage::Copying { slices, is_dropped, .. } => {
                if is_turned {
                    mover.drop_granule(now, None);
                    return true;
                }
                if *is_dropped && slices.iter().all(Option::is_none) {
                    mover.stage = Stage::Idle;
                    return true;
                }
                self.copy_on(disk)
            }
            Stage::Passing { .. } => self.pass_on(disk, out),
            Stage::Closing { .. } => false,
        }
    }

    /// Begins to trim, or the next granule.
    fn leave_idle(&mut self, disk: u32) -> bool {
        let now = self.now;
        let rules = self.fabric.settings.rules;
        let state = &mut self.disks[disk];
        let layout = &state.spec.layout;
        let size = layout.size();
        let Some(mover) = state.mover.as_deref_mut() else { return false };
        if mover.retry_at.is_some_and(|at| at > now) {
            return false;
        }
        mover.retry_at = None;
        let Moved { boundary, trimmed } = mover.moved;
        let is_done = boundary == if mover.course.is_back { 0 } else { size };
        // Beyond the boundary where the move was turned: what stands there is not known, and all of it is trimmed.
        let to_trim = match (mover.course.is_back, trimmed > boundary) {
            (false, false) => trimmed..boundary,
            (false, true) => 0..boundary,
            (true, true) => boundary..trimmed,
            (true, false) if trimmed < boundary => boundary..size,
            (true, false) => boundary..boundary,
        };
        if !to_trim.is_empty() && !is_done {
            return self.begin_trim(disk, to_trim);
        }
        let mover = self.disks[disk].mover.as_deref_mut().expect("it is there");
        if is_done || mover.course.is_paused || !mover.is_whole {
            return false;
        }
        let layout = &self.disks[disk].spec.layout;
        // A part of a disk that is as small as in a trial.
        let step = match self.disks[disk].progress.granule_of(size, &self.fabric.settings.move_granules) {
            bytes if bytes < EXTENT_SIZE => bytes,
            bytes => bytes.next_multiple_of(layout.full_stripe()),
        };
        let range = match self.disks[disk].spec.course.is_back {
            false => boundary..((boundary / step + 1) * step).min(size),
            true => (boundary - 1) / step * step..boundary,
        };
        let truth = if self.disks[disk].spec.course.is_back { Side::New } else { Side::Old };
        let other = layout.only(truth.other());
        let state = &mut self.disks[disk];
        state.changes.keep_apart(range.clone());
        let mover = state.mover.as_deref_mut().expect("it is there");
        mover.number += 1;
        mover.began = now;
        let is_copied = !rules.hold(Rule::CopyAnew) && mover.number == 1;
        let next = if is_copied { range.end } else { range.start };
        let slices = [const { None }; SLICES];
        let granule = Granule { range, truth, other };
        mover.stage = Stage::Copying { granule, next, slices, is_dropped: false };
        true
    }

    /// All of a granule is copied: what changes in it is waited for.
    fn close(&mut self, disk: u32) {
        let state = &mut self.disks[disk];
        let mover = state.mover.as_deref_mut().expect("it copied");
        let Stage::Copying { granule, .. } = std::mem::replace(&mut mover.stage, Stage::Idle) else {
            unreachable!("it copied")
        };
        let range = granule.range.clone();
        mover.stage = Stage::Closing { granule };
        mover.trouble = None;
        state.progress.copied(self.now.since(mover.began), &self.fabric.settings.move_granules);
        state.changes.forget(|key| key == PASS_KEY); // Of a granule that was dropped.
        let is_apart = state.changes.begin_or_wait(ChangedRange::apart(PASS_KEY, range));
        if is_apart || !self.fabric.settings.rules.hold(Rule::PassApart) {
            self.ask_to_pass(disk);
        }
    }

    /// Nothing changes in the granule: the record shall pass it, unless a change did not get onto the other side meanwhile.
    fn ask_to_pass(&mut self, disk: u32) {
        let mover = self.disks[disk].mover.as_deref_mut().expect("it copied");
        let Stage::Closing { granule } = &mover.stage else { return };
        let boundary = match granule.truth {
            Side::Old => granule.range.end,
            Side::New => granule.range.start,
        };
        let to = Moved { boundary, trimmed: mover.moved.trimmed };
        mover.stage = Stage::Passing { to };
        self.step_owner(disk, Input::Pass { moved: to });
    }

    /// Looks whether the record has passed the granule, and its owner goes on: where it ended, its successor maps by the record from the
    /// start.
    fn pass_on(&mut self, disk: u32, out: &mut Vec<Output>) -> bool {
        let recorded = self.owner(disk).and_then(|owner| owner.record().1.moving);
        let mover = self.disks[disk].mover.as_deref().expect("it asked");
        let Stage::Passing { to } = mover.stage else { unreachable!("it asked") };
        if recorded != Some(to) {
            return false;
        }
        self.drop_mover(disk, out);
        self.know_mover(disk);
        true
    }

    /// Whether no component has left since all of a granule was copied: else it starts over once none is missing.
    fn is_whole_to_pass(&mut self, disk: u32) -> bool {
        let now = self.now;
        let is_whole = has_components(&self.disks[disk]);
        if let Some(mover) = self.disks[disk].mover.as_deref_mut().filter(|_| !is_whole) {
            mover.drop_granule(now, None);
        }
        is_whole
    }

    /// Changes of the granule go on.
    fn let_go(&mut self, disk: u32, out: &mut Vec<Output>) {
        self.disks[disk].changes.forget(|key| key == PASS_KEY);
        self.unblock(disk, out);
    }

    /// A range of the mover is its own now.
    pub(crate) fn mover_may_begin(&mut self, disk: u32, key: u32, out: &mut Vec<Output>) {
        match key {
            PASS_KEY => {
                let stage = self.disks[disk].mover.as_deref().map(|mover| &mover.stage);
                let is_closing = matches!(stage, Some(Stage::Closing { .. }));
                match is_closing && self.is_whole_to_pass(disk) {
                    true => self.ask_to_pass(disk),
                    false => self.let_go(disk, out),
                }
            }
            key => self.begin_slice(disk, (key - FIRST_KEY) as usize),
        }
    }

    /// Something that a mover asked of its owner ended.
    pub(crate) fn piece_of_mover(
        &mut self,
        disk: u32,
        (key, piece): (u32, u32),
        result: Result<Reply, Failure>,
        out: &mut Vec<Output>,
    ) {
        if matches!(result, Err(Failure::Unowned)) {
            return self.drop_mover(disk, out);
        }
        if self.disks.get(disk).is_none_or(|one| one.mover.is_none()) {
            return;
        }
        match key {
            TRIM_KEY => self.trimmed(disk, &result),
            key => self.slice_answered(disk, (key - FIRST_KEY) as usize, piece, result, out),
        }
        self.fabric.schedule.touch(disk);
    }
}
