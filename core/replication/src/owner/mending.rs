//! Has damage mended that components find: by their scrubbing, or when views of snapshots are read (docs/design/0052).
//!
//! Components are asked now and then what they found. Each block is looked at again, for it may have been written since. What is damaged is read from
//! another component. Of a disk without snapshots, and of rows, it is copied as a read that found it would have it copied. Where snapshots may see the
//! same block, the component takes it for them, too; only if it cannot is the live block alone written again.

use super::Owner;
use super::asked::{self, Asked, Unanswered};
use super::copy::{Holes, Purpose};
use super::data::Data;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::interface::{Event, Output, Phase};
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::mends::{Damage, Mend, MendStep, Mending};
use crate::limits;
use crate::locks::Range;
use base::request::{Buffers, Piece};
use base::{ComponentId, Instant, WriteId};
use wire::{Answer, BackfillRequest, DamagedBlock, Refusal, Request};

impl Owner {
    /// Asks what was found, and goes on with what is known.
    pub(crate) fn advance_mending(&mut self) {
        if self.phase != Phase::Serving {
            self.mending = Mending::default();
            return;
        }
        let now = self.now;
        let ask_at = *self.mending.ask_at.get_or_insert(now + limits::DAMAGE_PERIOD);
        if ask_at <= now {
            self.mending.ask_at = Some(now + limits::DAMAGE_PERIOD);
            self.ask_for_damage();
        }
        if self.mending.now.as_ref().is_some_and(|one| one.asked_at + limits::MEND_PATIENCE <= now) {
            self.mending.now = None;
        }
        while self.mending.now.is_none()
            && let Some(of) = self.mending.waiting.pop_front()
        {
            self.begin_mend(of);
        }
    }

    /// When that is to be called next if nothing happens.
    pub(crate) fn mending_wakes_at(&self) -> Option<Instant> {
        let gives_up = self.mending.now.as_ref().map(|one| one.asked_at + limits::MEND_PATIENCE);
        let wakes = self.mending.ask_at.into_iter().chain(gives_up).min();
        wakes.filter(|_| self.phase == Phase::Serving)
    }

    /// Components of which another one of their place may have the same.
    fn ask_for_damage(&mut self) {
        let epoch = self.epoch;
        for at in self.all() {
            let others = self.places[usize::from(at.place)].active().any(|(index, _)| index != at.member);
            let member = self.member(at);
            if others && member.is_active() && member.is_open() {
                let (node, component) = (member.node, member.component);
                self.send(node, Asked::Damage(at), Request::Damage { component, epoch });
            }
        }
    }

    /// A component told what it found. One that is of an earlier version knows nothing of that.
    pub(crate) fn damage_told(&mut self, at: At, answer: Result<Answer, super::Lost>) {
        if let Ok(Answer::Damage(blocks)) = answer {
            let component = self.member(at).component;
            blocks.into_iter().for_each(|block| self.note_damage(Damage { at, component, block }));
        }
    }

    /// A component could not give a range of a view.
    pub(crate) fn view_is_damaged(&mut self, at: At, range: Range, snapshot: u32) {
        let component = self.member(at).component;
        for block in range.block..range.block + range.count {
            let block = DamagedBlock { part: range.part, block, snapshot };
            self.note_damage(Damage { at, component, block });
        }
    }

    fn note_damage(&mut self, damage: Damage) {
        let Mending { waiting, now, .. } = &mut self.mending;
        let is_known = now.as_ref().is_some_and(|one| one.of == damage) || waiting.contains(&damage);
        if !is_known && waiting.len() < limits::DAMAGE_WAITING_MAX {
            waiting.push_back(damage);
        }
    }

    fn begin_mend(&mut self, of: Damage) {
        let member = self.member(of.at);
        if member.component != of.component || !member.is_active() || !member.is_open() {
            return;
        }
        // What is being given a snapshot does not see what that should see.
        let snapshot = of.block.snapshot;
        if snapshot > 0 && self.lacking(of.at.place, snapshot).contains(of.at.member) {
            return;
        }
        self.attempts += 1;
        let (attempt, asked_at) = (self.attempts, self.now);
        self.mending.now = Some(Mend { of, attempt, tried: MemberSet::of(of.at.member), asked_at });
        self.ask_to_mend(of.at, MendStep::Look, read_of(of.component, self.epoch, of.block));
    }

    fn ask_to_mend(&mut self, at: At, step: MendStep, request: Request) {
        let (now, node) = (self.now, self.member(at).node);
        let Some(one) = &mut self.mending.now else { return };
        one.asked_at = now;
        let attempt = one.attempt;
        self.send(node, Asked::Mend { at, attempt, step }, request);
    }

    /// A component answered what it was asked for so that a block is mended.
    pub(crate) fn mend_answered(
        &mut self,
        (at, attempt, step): (At, u32, MendStep),
        answer: Result<Answer, super::Lost>,
    ) {
        if self.mending.now.as_ref().is_none_or(|one| one.attempt != attempt) {
            return;
        }
        match step {
            MendStep::Look => match asked::data(answer) {
                Err(Unanswered::Refused(Refusal::Damaged)) => self.fetch_to_mend(),
                Ok(_) | Err(_) => self.mending.now = None,
            },
            MendStep::Fetch => match asked::data(answer) {
                Ok(data) if data.is_intact() => self.put_to_mend(data),
                Ok(_) | Err(_) => {
                    if let Some(one) = &mut self.mending.now {
                        one.tried.insert(at.member);
                    }
                    self.fetch_to_mend();
                }
            },
            MendStep::Put => self.mend_put(asked::done(answer).is_ok()),
        }
    }

    /// The block is damaged: another component is asked for it, the next one if one could not give it.
    fn fetch_to_mend(&mut self) {
        let Some(Mend { of, tried, attempt, .. }) = &self.mending.now else { return };
        let (Damage { at, block, .. }, tried, attempt) = (*of, *tried, *attempt);
        let place = &self.places[usize::from(at.place)];
        let is_alone = self.recording.roster.snapshots.taken.is_empty() || place.code.is_some();
        if is_alone && block.snapshot == 0 {
            return self.mend_live();
        }
        let lacking = match block.snapshot {
            0 => MemberSet::EMPTY,
            snapshot => self.lacking(at.place, snapshot),
        };
        if place.code.is_some() {
            let range = Range { part: block.part, block: block.block, count: 1 };
            let (wanted, except) =
                (MemberSet::of(self.member(at).position), tried.iter().chain(lacking.iter()).collect());
            let gather = Gather::new(at.place, range, wanted, except, GatherFor::Mend { attempt });
            return self.gather(gather.seen_by(block.snapshot));
        }
        let may_give =
            |index: u8, one: &Member| one.is_active() && !tried.contains(index) && !lacking.contains(index);
        let Some(giver) = self.copy_source(at.place, block.part, may_give) else {
            self.mending.now = None; // It is told again when it is found again.
            return;
        };
        let giver = At { place: at.place, member: giver };
        let request = read_of(self.member(giver).component, self.epoch, block);
        self.ask_to_mend(giver, MendStep::Fetch, request);
    }

    /// What a snapshot sees of a damaged block was put together from other members of the row, or cannot be.
    pub(crate) fn mend_gathered(&mut self, attempt: u32, result: Result<Found, GatherFailure>) {
        let Some(one) = self.mending.now.as_ref().filter(|one| one.attempt == attempt) else { return };
        let position = self.member(one.of.at).position;
        match result {
            Ok(mut found) => self.put_to_mend(found.take(position)),
            Err(_) => self.mending.now = None, // It is told again when it is found again.
        }
    }

    fn put_to_mend(&mut self, data: Data) {
        let Some(Mend { of: Damage { at, component, block }, .. }) = self.mending.now else { return };
        let DamagedBlock { part, block, snapshot: number } = block;
        let bytes = |piece| match piece {
            Piece::Bytes(buffer) => Some(buffer),
            Piece::Hole(_) => None,
        };
        let blocks: Buffers = data.pieces.into_iter().filter_map(bytes).collect();
        let (epoch, checksums) = (self.epoch, data.checksums);
        let mend = BackfillRequest {
            component,
            epoch,
            number,
            part,
            block,
            count: 1,
            as_seen_by: None,
            data: blocks,
            checksums,
        };
        self.ask_to_mend(at, MendStep::Put, Request::Mend(mend));
    }

    fn mend_put(&mut self, is_mended: bool) {
        let Some(Mend { of: Damage { at: At { place, .. }, component, block }, .. }) = self.mending.now
        else {
            return;
        };
        match is_mended {
            true => {
                self.mending.now = None;
                self.repaired_blocks += 1;
                // Snapshots that could not be given for the sake of this block can be.
                self.places[usize::from(place)]
                    .members
                    .iter_mut()
                    .for_each(|one| one.snapshots.unfit.clear());
                self.out.push(Output::Event(Event::Repaired { component, blocks: 1 }));
            }
            false if block.snapshot == 0 => self.mend_live(),
            false => self.mending.now = None,
        }
    }

    /// The live block is written again, as a read that found it damaged would have it.
    fn mend_live(&mut self) {
        let Some(Mend { of: Damage { at, block, .. }, .. }) = self.mending.now.take() else { return };
        let range = Range { part: block.part, block: block.block, count: 1 };
        self.copy(at, range, WriteId::default(), Purpose::Repair, Holes::Trim);
    }
}

/// A verified read of one block, as a snapshot sees it or as it is.
fn read_of(component: ComponentId, epoch: u32, of: DamagedBlock) -> Request {
    let DamagedBlock { part, block, snapshot } = of;
    match snapshot {
        0 => Request::Read { component, epoch, part, block, count: 1, verify: true },
        snapshot => Request::View { component, epoch, snapshot, part, block, count: 1 },
    }
}
