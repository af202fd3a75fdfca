//! A member of rows that is restored from its stand-in, as far as that differs from a copy (docs/design/0040, "Stand-ins").
//!
//! With as many others as are left it makes up what rows need. A change that was acknowledged is with all of these and with every stand-in, so
//! whatever one of them does not tell of is dropped. The record counts all that are put together at once, in the place of all that are lost:
//! one of those that came back afterwards could have a change dropped that stands in what was put together. What else the member holds is either
//! decided by what the stand-in has, or known to be right, or in doubt: then nothing is guessed.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::member::{At, CountedAs, Member, Wish};
use super::member_set::MemberSet;
use super::place::{Roll, RollFrom};
use super::rows::row_of;
use super::windows::{RowRules, decided, opened, row_rolls};
use crate::locks::Range;
use crate::rules::Rule;
use base::units::BLOCKS_PER_REGION;
use layout::Unit;
use wire::{Entry, HeldRange, Refusal, Request, layer};

impl Owner {
    /// Whether a member is being restored, and what it holds is not known yet.
    pub(crate) fn is_restored(&self, at: At) -> bool {
        let place = &self.places[usize::from(at.place)];
        let is_it = place.restore.as_ref().is_some_and(|restore| restore.member == at.member);
        is_it && place.code.is_some() && self.member(at).resync().is_none()
    }

    /// Changes go on that all tell of who are left, and the stand-in; the member gets those, as the stand-in has them. All others are dropped,
    /// and on the member also those that were decided without it: what it has there is what they replaced.
    pub(crate) fn roll_rows_for_restore(&mut self, at: At) {
        let place = &self.places[usize::from(at.place)];
        let (Some(code), Some(restore)) = (place.code, place.restore.as_ref()) else { return };
        let stand_in = restore.stand_in;
        let is_left = |(_, one): &(u8, &Member)| one.counts() && one.opened().is_some();
        let left: Vec<(u8, &Member)> = (0u8..).zip(&place.members).filter(is_left).collect();
        let all: MemberSet = left.iter().map(|(member, _)| *member).collect();
        let is_enough = |holders: MemberSet| all.without(holders).is_empty();
        let mut members = left;
        members.push((at.member, self.member(at)));
        let decided = decided(place);
        let are_some_away = self.holds(Rule::MarkOnlyKnown);
        let rules = RowRules { code, source: Some(stand_in), is_enough: &is_enough, are_some_away };
        let mut rolls = row_rolls(&rules, &members, decided);
        let member = self.member(at);
        let is_void = |entry: &&Entry| {
            let is_of_rows = layer::split(entry.part).0 >= layer::UNIT_FIRST && !entry.is_span();
            is_of_rows
                && entry.id > member.base
                && entry.id <= decided
                && entry.count > 0
                && !entry.has_happened
        };
        rolls.extend(opened(member).entries.iter().filter(is_void).map(|entry| Roll {
            entry: Entry { count: 0, is_trim: true, ..*entry },
            from: RollFrom::Nothing,
            target: at.member,
        }));
        self.decide(at.place, rolls, Some(at.member));
    }

    /// A member has been put together. The record is asked to count it, and others like it, once they are enough with those that are left.
    pub(crate) fn put_together(&mut self, at: At) {
        let place = &mut self.places[usize::from(at.place)];
        place.restored.insert(at.member);
        let restored = place.restored;
        let is_there = |(index, one): &(u8, &Member)| {
            restored.contains(*index) || one.is_active() && one.opened().is_some()
        };
        if !place.is_enough((0u8..).zip(&place.members).filter(is_there)) {
            return; // The next one follows.
        }
        for member in restored.iter() {
            place.members[usize::from(member)].wish = Some(Wish::Join(CountedAs::Active));
        }
    }

    /// The active members of rows in whose place others count that were put together; none if the member is none of those.
    pub(crate) fn lost_beside(&self, at: At) -> Vec<At> {
        let place = &self.places[usize::from(at.place)];
        if !place.restored.contains(at.member) || !self.holds(Rule::TakeOutLost) {
            return Vec::new();
        }
        let lost = place.active().filter(|(_, one)| one.opened().is_none());
        lost.map(|(member, _)| At { place: at.place, member }).collect()
    }

    /// What the member holds of small changes: as the member of a data unit it has what is newest, if that was decided while it counted. As a
    /// member of the parity it has what the others have folded since, so that its parity is none; and anything later is in doubt.
    pub(crate) fn restored_holds(&mut self, at: At, told: &[HeldRange]) {
        let (base, position) = (self.member(at).base, self.member(at).position);
        let believes = !self.holds(Rule::RestoreNothingHeld);
        let place = &mut self.places[usize::from(at.place)];
        let (Some(code), Some(restore)) = (place.code, place.restore.as_mut()) else { return };
        for one in told {
            let part = layer::split(one.part).1;
            let (mut block, end) = (one.block, one.block + one.count);
            while block < end {
                let next = end.min((block / BLOCKS_PER_REGION as u16 + 1) * BLOCKS_PER_REGION as u16);
                let range = Range { part, block, count: next - block };
                match code.unit(row_of(part, block), position) {
                    Unit::Data(_) if one.through <= base => {
                        restore.held.push(HeldRange { block, count: range.count, ..*one });
                    }
                    Unit::Parity(_) if believes => {}
                    Unit::Data(_) | Unit::Parity(_) => restore.doubtful.push(range),
                }
                block = next;
            }
        }
        self.ask_doubtful(at);
    }

    /// The member has what its stand-in has; what it holds besides becomes its content. False if there is nothing like that.
    pub(crate) fn promote_restored(&mut self, at: At) -> bool {
        let Some(restore) = self.places[usize::from(at.place)].restore.as_mut() else { return false };
        if restore.promotes_left > 0 {
            return true;
        }
        let held = std::mem::take(&mut restore.held);
        restore.promotes_left = held.len() as u32;
        let attempt = restore.attempt;
        let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
        let is_any = !held.is_empty();
        for HeldRange { part, block, count, through } in held {
            let request = Request::Promote { component, epoch, part, block, count, through };
            self.send(node, Asked::Restored { at, attempt }, request);
        }
        is_any
    }

    pub(crate) fn restored_promoted(&mut self, at: At, attempt: u32, answer: Result<u8, Unanswered>) {
        let restore = self.places[usize::from(at.place)].restore.as_mut();
        let Some(restore) = restore.filter(|restore| restore.attempt == attempt) else { return };
        match answer {
            Ok(_) => {
                restore.promotes_left -= 1;
                if restore.promotes_left == 0 {
                    self.restored(at);
                }
            }
            Err(Unanswered::Lost) => {} // The link's change starts over.
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(Unanswered::Refused(_)) => self.not_restored(at),
        }
    }
}
