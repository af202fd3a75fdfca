//! The changes of a place that are in flight, by their numbers.
//!
//! Numbers are given one after the other, and at most a window of them is in flight: a ring holds them, so that a change costs no
//! search and no memory of its own.

use super::member_set::MemberSet;
use super::rows::Sent;
use super::work::{ChangeWork, Key};
use crate::locks::Range;
use base::RequestTag;
use std::collections::VecDeque;
use std::ops::Index;

/// A change that some component has not answered.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// The work that holds its range; none of a change of nothing.
    pub(crate) work: Option<Key<ChangeWork>>,
    pub(crate) range: Range,
    pub(crate) tag: RequestTag,
    pub(crate) sent: Sent,
    /// The layer in which members hold it until it is decided; of copies that is their content.
    pub(crate) layer: u8,
    /// Whether it is taken back: it has no room, and members that have it drop it.
    pub(crate) is_taken_back: bool,
    /// Whether it takes the place of copies: it is not taken back, for these would be gone with it. Groups never refuse it.
    pub(crate) replaces: bool,
    /// Whether it is made again in another way once it is taken back.
    pub(crate) falls_back: bool,
    /// Members that have not answered.
    pub(crate) waiting: MemberSet,
    /// Members that get its number alone: it is acknowledged without them.
    pub(crate) apart: MemberSet,
    /// Those of them to which nothing was sent yet.
    pub(crate) owed: MemberSet,
    /// Members that have no room.
    pub(crate) full: MemberSet,
    pub(crate) resends: u8,
}

impl InFlight {
    /// Whether the member is waited for, or has no room.
    pub(crate) fn names(&self, member: u8) -> bool {
        self.waiting.union(self.full).contains(member)
    }

    /// Whether all of these members have it.
    pub(crate) fn is_with_all(&self, members: MemberSet) -> bool {
        !self.waiting.intersects(members)
    }

    /// Members with a part in it that have not answered.
    pub(crate) fn waiting_for_blocks(&self) -> MemberSet {
        self.waiting.without(self.apart)
    }

    /// A member has it, or is waited for no more.
    pub(crate) fn is_with(&mut self, member: u8) {
        for of in [&mut self.waiting, &mut self.full, &mut self.owed] {
            of.remove(member);
        }
    }
}

/// They, in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct InFlights {
    /// The number of the first slot; that one is never empty.
    first: u64,
    slots: VecDeque<Option<InFlight>>,
}

impl InFlights {
    /// The first number in flight.
    pub(crate) fn first(&self) -> Option<u64> {
        (!self.slots.is_empty()).then_some(self.first)
    }

    /// Adds the change with the next number.
    pub(crate) fn push(&mut self, number: u64, change: InFlight) {
        if self.slots.is_empty() {
            self.first = number;
        }
        // Between may be numbers of changes that have ended.
        while self.first + (self.slots.len() as u64) < number {
            self.slots.push_back(None);
        }
        assert_eq!(self.first + self.slots.len() as u64, number, "numbers are given in order");
        self.slots.push_back(Some(change));
    }

    /// The last number that a member is owed.
    pub(crate) fn last_owed(&self, member: u8) -> Option<u64> {
        let slot =
            self.slots.iter().rposition(|slot| slot.as_ref().is_some_and(|one| one.owed.contains(member)))?;
        Some(self.first + slot as u64)
    }

    /// The numbers directly before one that a member is owed, at most 255 of them: it is owed them no more.
    pub(crate) fn take_owed(&mut self, member: u8, number: u64) -> u8 {
        let mut taken = 0;
        while taken < u8::MAX
            && let Some(before) = self.get_mut(number.wrapping_sub(u64::from(taken) + 1))
            && before.owed.contains(member)
        {
            before.owed.remove(member);
            taken += 1;
        }
        taken
    }

    fn slot(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first).map(|slot| slot as usize)
    }

    pub(crate) fn get(&self, number: u64) -> Option<&InFlight> {
        self.slots.get(self.slot(number)?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut InFlight> {
        let slot = self.slot(number)?;
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<InFlight> {
        let slot = self.slot(number)?;
        let removed = self.slots.get_mut(slot)?.take();
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first += 1;
        }
        removed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &InFlight)> {
        (self.first..).zip(&self.slots).filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut InFlight)> {
        (self.first..).zip(&mut self.slots).filter_map(|(number, slot)| Some((number, slot.as_mut()?)))
    }
}

impl Index<u64> for InFlights {
    type Output = InFlight;

    fn index(&self, number: u64) -> &InFlight {
        self.get(number).expect("the change is in flight")
    }
}
