//! A place as its owner holds it: its members, the changes in flight, and what is under way for all of it.

use super::columns::Held;
use super::in_flights::{InFlight, InFlights};
use super::member::Member;
use super::member_set::MemberSet;
use super::resync::Kind;
use super::steering::Steering;
use super::work::{ChangeWork, Key};
use crate::limits;
use crate::locks::Range;
use crate::rules::Rule;
use base::rules::Rules;
use base::{ComponentId, Instant};
use layout::Code;
use std::collections::VecDeque;
use wire::{Entry, HeldRange, layer};

/// A place.
#[derive(Debug)]
pub(crate) struct Place {
    /// How its rows are coded; none of copies.
    pub(crate) code: Option<Code>,
    pub(crate) members: Vec<Member>,
    /// The last sequence number given.
    pub(crate) sequence: u64,
    pub(crate) in_flight: InFlights,
    pub(crate) in_flight_bytes: u64,
    /// Changes that wait for room in the window.
    pub(crate) waiting: VecDeque<Key<ChangeWork>>,
    pub(crate) deciding: Option<Deciding>,
    pub(crate) restore: Option<Restore>,
    /// Of rows: members that have been put together from their stand-ins. The record is asked to count them once they are enough with those that
    /// are left.
    pub(crate) restored: MemberSet,
    pub(crate) is_ready: bool,
    /// Changes that are not acknowledged before a watermark is stable.
    pub(crate) barrier: Option<Barrier>,
    /// No fold and no barrier begins before this time, because a member refused its part in one. A component on the owner's host refuses within
    /// the same step and counts until the record removes it, so an immediate retry would never end the step.
    pub(crate) rests_until: Option<Instant>,
    pub(crate) settle_at: Option<Instant>,
    /// Since when members are owed numbers of changes that they have no part in.
    pub(crate) owed_since: Option<Instant>,
    /// What members hold of small changes that parity does not count.
    pub(crate) held: Held,
    /// Which of its components guests read from.
    pub(crate) steering: Steering,
}

impl Place {
    pub(crate) fn new(code: Option<Code>, members: Vec<Member>) -> Place {
        Place {
            code,
            members,
            sequence: 0,
            in_flight: InFlights::default(),
            in_flight_bytes: 0,
            waiting: VecDeque::new(),
            deciding: None,
            restore: None,
            restored: MemberSet::EMPTY,
            is_ready: false,
            barrier: None,
            rests_until: None,
            settle_at: None,
            owed_since: None,
            held: Held::default(),
            steering: Steering::default(),
        }
    }

    /// A member refused its part in a fold or a barrier: the next attempt waits.
    pub(crate) fn rest(&mut self, now: Instant) {
        self.rests_until = Some(now + limits::RETRY);
    }

    /// Whether folds and barriers wait because a member refused its part in one.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| until > now)
    }

    /// Whether it has one copy only, and none that could come back.
    pub(crate) fn is_single(&self) -> bool {
        self.members.iter().filter(|member| !member.is_gone()).count() == 1
    }

    /// The members that the record names.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_gone())
    }

    /// The members that acknowledgements wait for: active ones and stand-ins.
    pub(crate) fn counting(&self) -> impl Iterator<Item = (u8, &Member)> {
        (0..).zip(&self.members).filter(|(_, member)| member.counts())
    }

    /// The members without which no change is acknowledged.
    pub(crate) fn waited_for(&self, rules: Rules<Rule>) -> MemberSet {
        let forgets_joining = !rules.hold(Rule::WaitForJoining);
        let is_waited_for = |one: &Member| if forgets_joining { one.counts() } else { one.is_waited_for() };
        let waited_for = (0u8..).zip(&self.members).filter(|(_, one)| is_waited_for(one));
        waited_for.map(|(member, _)| member).collect()
    }

    /// A member that the record names, by its component.
    pub(crate) fn find(&self, component: ComponentId) -> Option<(u8, &Member)> {
        (0..).zip(&self.members).find(|(_, one)| one.component == component && !one.is_gone())
    }

    /// The stand-in of a member that is not active, if the record counts it.
    pub(crate) fn stand_in_of(&self, component: ComponentId) -> Option<(u8, &Member)> {
        self.counting().find(|(_, one)| one.stands_in_for() == Some(component))
    }

    pub(crate) fn active(&self) -> impl Iterator<Item = (u8, &Member)> {
        (0..).zip(&self.members).filter(|(_, member)| member.is_active())
    }

    /// Whether members hold small changes that parity does not count, or such a change is in flight.
    pub(crate) fn has_copies(&self) -> bool {
        let is_of_copies = |change: &InFlight| layer::is_of_copies(change.layer);
        !self.held.is_empty()
            || self.code.is_some() && self.in_flight.iter().any(|(_, one)| is_of_copies(one))
    }

    /// Whether some members have all data among them: one copy has, and of rows as many members as there are data units (invariant 19).
    pub(crate) fn is_enough<'a>(&self, members: impl IntoIterator<Item = (u8, &'a Member)>) -> bool {
        let mut members = members.into_iter();
        match self.code {
            None => members.next().is_some(),
            Some(code) => {
                let positions: MemberSet = members.map(|(_, one)| one.position).collect();
                positions.iter().count() >= usize::from(code.data())
            }
        }
    }

    /// Whether components other than `member` are active and open, and enough: then `member` may leave.
    pub(crate) fn has_other_open(&self, member: u8) -> bool {
        let is_other = |(index, one): &(u8, &Member)| *index != member && one.is_open() && one.wish.is_none();
        self.is_enough(self.active().filter(is_other))
    }

    /// Whether a change may not be acknowledged yet, whoever has it.
    pub(crate) fn holds_back(&self, sequence: u64) -> bool {
        self.barrier.as_ref().is_some_and(|barrier| sequence >= barrier.sequence)
    }

    /// Whether all that count serve, and have every change up to that one; a change that is not given yet is waited for.
    pub(crate) fn all_have_through(&self, sequence: u64) -> bool {
        let waited_for = self.waited_for(Rules::ALL);
        self.sequence >= sequence
            && self.counting().all(|(_, one)| one.is_open() && one.wish.is_none())
            && self
                .in_flight
                .iter()
                .take_while(|(number, _)| *number <= sequence)
                .all(|(_, change)| change.is_with_all(waited_for))
    }

    /// All members but these.
    pub(crate) fn others(&self, members: MemberSet) -> MemberSet {
        (0..self.members.len() as u8).filter(|member| !members.contains(*member)).collect()
    }

    /// What was being put together is to be looked at anew.
    pub(crate) fn end_restore(&mut self) {
        self.restore = None;
        let restored = std::mem::replace(&mut self.restored, MemberSet::EMPTY);
        for (index, member) in (0u8..).zip(&mut self.members) {
            if restored.contains(index) {
                member.wish = None; // A transaction of unknown outcome is ruled out, or has counted it.
            }
            if member.resync().is_some_and(|resync| resync.kind == Kind::Restore) {
                member.take_resync();
            }
        }
    }
}

/// Changes of a place that wait for a watermark to be stable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Barrier {
    /// The first change that a component which left may lack: this one and later ones are not acknowledged yet.
    pub(crate) sequence: u64,
    /// The last change that it may have.
    pub(crate) last: u64,
    /// The watermark that is being made stable, and which attempt this is.
    pub(crate) stage: Option<(u64, u32)>,
    /// Components that have not made it stable.
    pub(crate) waiting: MemberSet,
}

/// A change that a component lacks, or has to be rid of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Roll {
    /// What it tells of the change once that is decided.
    pub(crate) entry: Entry,
    pub(crate) from: RollFrom,
    pub(crate) target: u8,
}

/// Where the blocks of a change come from that is rolled forward.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RollFrom {
    /// This member has the same ones.
    Copy(u8),
    /// They follow from what these members of the row have.
    Row(MemberSet),
    /// There are none: the target has no part in it, or drops it.
    Nothing,
}

/// The window of a place being decided.
#[derive(Debug)]
pub(crate) struct Deciding {
    pub(crate) attempt: u32,
    pub(crate) rolls: Vec<Roll>,
    /// Rolls that have not ended.
    pub(crate) rolls_left: usize,
    /// Components that have not made the first watermark stable.
    pub(crate) settles_left: u32,
    /// The member that is restored when all is rolled forward, instead of that.
    pub(crate) restores: Option<u8>,
}

/// A place that is being put together.
#[derive(Debug)]
pub(crate) struct Restore {
    pub(crate) attempt: u32,
    /// The component that becomes active.
    pub(crate) member: u8,
    /// Its stand-in.
    pub(crate) stand_in: u8,
    /// What the component may have got wrong, until it is asked for.
    pub(crate) doubtful: Vec<Range>,
    /// Questions whether the stand-in has that which are not answered.
    pub(crate) checks_left: u32,
    /// Of rows: what the component holds that the others have counted since, and that is right where the stand-in has nothing.
    pub(crate) held: Vec<HeldRange>,
    /// Of that, what is being promoted.
    pub(crate) promotes_left: u32,
}

impl Restore {
    pub(crate) fn new(attempt: u32, (member, stand_in): (u8, u8), doubtful: Vec<Range>) -> Restore {
        Restore { attempt, member, stand_in, doubtful, checks_left: 0, held: Vec::new(), promotes_left: 0 }
    }
}
