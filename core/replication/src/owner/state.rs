//! Places and their members, as an owner holds them.

use super::barrier::Barrier;
use super::change::InFlight;
use super::member::Member;
use super::member_set::MemberSet;
use super::opening::Deciding;
use super::restore::Restore;
use super::resync::Resync;
use super::work::{ChangeWork, Key};
use super::{LeftBecause, Owner, Phase};
use crate::roster::{Role, Standing};
use crate::rules::Rule;
use base::rules::Rules;
use base::{ComponentId, Instant, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Names a member: its place, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) place: u16,
    pub(crate) member: u8,
}

/// A place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) members: Vec<Member>,
    /// The last sequence number given.
    pub(crate) sequence: u64,
    pub(crate) in_flight: BTreeMap<u64, InFlight>,
    pub(crate) in_flight_bytes: u64,
    /// Changes that wait for room in the window.
    pub(crate) waiting: VecDeque<Key<ChangeWork>>,
    pub(crate) deciding: Option<Deciding>,
    pub(crate) restore: Option<Restore>,
    pub(crate) is_ready: bool,
    /// Changes that are not acknowledged before a watermark is stable.
    pub(crate) barrier: Option<Barrier>,
    pub(crate) settle_at: Option<Instant>,
}

impl Place {
    pub(crate) fn new(members: Vec<Member>) -> Place {
        Place {
            members,
            sequence: 0,
            in_flight: BTreeMap::new(),
            in_flight_bytes: 0,
            waiting: VecDeque::new(),
            deciding: None,
            restore: None,
            is_ready: false,
            barrier: None,
            settle_at: None,
        }
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

    /// Whether a component other than `member` is active and open: then `member` may leave.
    pub(crate) fn has_other_open(&self, member: u8) -> bool {
        self.active().any(|(index, other)| index != member && other.is_open() && other.wish.is_none())
    }
}

/// What an owner tells of one component.
#[derive(Debug, Clone)]
pub struct MemberState {
    /// The component.
    pub component: ComponentId,
    /// The node that holds it.
    pub node: NodeId,
    /// The place it belongs to.
    pub place: u16,
    /// Whether it counts.
    pub standing: Standing,
    /// What it is there for.
    pub role: Role,
    /// Whether it serves the owner.
    pub is_open: bool,
    /// Bytes copied so far, and bytes still to be copied as far as they are known, of a resync under way.
    pub resync: Option<(u64, u64)>,
    /// How many MiB of the component that resync has looked through, if not all: what is left was found in these.
    pub looked_through: Option<u32>,
    /// Why it does not count, or could not be brought up to date.
    pub trouble: Option<LeftBecause>,
    /// When it is tried again, from now on; only while that waits because of the trouble.
    pub retry_in: Option<Duration>,
}

/// What an owner tells of itself.
#[derive(Debug, Clone)]
pub struct OwnerState {
    /// Where it is in its life.
    pub phase: Phase,
    /// Its epoch.
    pub epoch: u32,
    /// Its components, by place.
    pub members: Vec<MemberState>,
    /// Whether its clients wait for the directory: it does not serve yet, or cannot reach a component that may count.
    pub waits_for_directory: bool,
    /// Bytes copied by resyncs so far.
    pub copied_bytes: u64,
    /// Damaged blocks that were written again.
    pub repaired_blocks: u64,
}

impl Owner {
    /// The figures of the owner.
    pub fn state(&self) -> OwnerState {
        let of_member = |place: u16, member: &Member| MemberState {
            component: member.component,
            node: member.node,
            place,
            standing: member.standing(),
            role: member.role,
            is_open: member.is_open(),
            resync: member.resync().map(Resync::progress),
            looked_through: member.resync().and_then(Resync::looked_through),
            trouble: member.trouble,
            retry_in: self.retry_in(member),
        };
        let places = (0u16..).zip(&self.places);
        let members = places.flat_map(|(index, place)| place.known().map(move |one| of_member(index, one)));
        OwnerState {
            phase: self.phase,
            epoch: self.epoch,
            members: members.collect(),
            waits_for_directory: !self.recording.is_idle() && self.is_held_up(),
            copied_bytes: self.copied_bytes,
            repaired_blocks: self.repaired_blocks,
        }
    }

    /// Whether nobody is answered before the directory has said what counts.
    fn is_held_up(&self) -> bool {
        let is_missed = |one: &Member| one.may_count() && !one.is_open();
        match self.phase {
            Phase::Claiming | Phase::Opening => true,
            Phase::Serving => self.places.iter().any(|place| place.known().any(is_missed)),
            Phase::Releasing | Phase::Ended => false,
        }
    }

    fn retry_in(&self, member: &Member) -> Option<Duration> {
        member.trouble?;
        let (_, retry_at) = member.is_down()?;
        (retry_at > self.now).then(|| retry_at.since(self.now))
    }

    /// A device has room again: what waits for that does not have to wait any longer.
    pub(crate) fn has_room(&mut self, component: ComponentId) {
        let now = self.now;
        for at in self.all() {
            let member = self.member_mut(at);
            let waits = member.trouble.is_some_and(LeftBecause::is_no_room);
            if member.component == component && waits && !member.is_gone() {
                member.has_room(now);
            }
        }
    }

    pub(crate) fn member(&self, at: At) -> &Member {
        &self.places[at.place as usize].members[at.member as usize]
    }

    pub(crate) fn member_mut(&mut self, at: At) -> &mut Member {
        &mut self.places[at.place as usize].members[at.member as usize]
    }

    /// All members, in order.
    pub(crate) fn all(&self) -> Vec<At> {
        let of_place = |(place, one): (u16, &Place)| {
            (0..one.members.len() as u8).map(move |member| At { place, member })
        };
        (0u16..).zip(&self.places).flat_map(of_place).collect()
    }
}
