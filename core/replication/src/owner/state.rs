//! Places and their members, as an owner holds them.

use super::barrier::Barrier;
use super::change::InFlight;
use super::lineage::Proof;
use super::member_set::MemberSet;
use super::opening::Deciding;
use super::restore::Restore;
use super::resync::Resync;
use super::work::{ChangeWork, Key};
use super::{LeftBecause, Owner, Phase};
use crate::lanes::Lanes;
use crate::limits;
use crate::roster::{Ceiling, Role, Standing};
use crate::rules::Rule;
use base::rules::Rules;
use base::{ComponentId, Instant, NodeId, WriteId};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::Entry;

/// Names a member: its place, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) place: u16,
    pub(crate) member: u8,
}

/// Whether a component serves this owner's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// It does not, since that time; `retry_at` is when it is asked next.
    Down { since: Instant, retry_at: Instant },
    /// It was asked to.
    Opening,
    /// It does.
    Open,
}

/// What a component said when it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) watermark: WriteId,
    pub(crate) entries: Vec<Entry>,
}

/// A component of a place.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) component: ComponentId,
    pub(crate) node: NodeId,
    /// What the record says, as far as it is known.
    pub(crate) standing: Standing,
    pub(crate) base: WriteId,
    pub(crate) role: Role,
    pub(crate) ceiling: Ceiling,
    /// Whether it holds acknowledged changes that those which count lack: the record shall say so.
    pub(crate) has_diverged: bool,
    /// What it is being asked about what it has.
    pub(crate) proof: Option<Proof>,
    /// What the record shall say.
    pub(crate) wanted: Option<(Standing, LeftBecause)>,
    /// Whether a transaction that counts it as active was begun, of which it is not known what came of it.
    pub(crate) may_join: bool,
    pub(crate) link: Link,
    pub(crate) opened: Option<Opened>,
    pub(crate) resync: Option<Resync>,
    /// When one that counts may be filled again after that failed.
    pub(crate) fill_at: Instant,
    /// The greatest watermark that it was told.
    pub(crate) told: WriteId,
    pub(crate) congestion: u8,
    /// Running average of its reads' latencies, in nanoseconds.
    pub(crate) read_ns: u64,
    /// Since when its node was not heard, unless the process there is known to have ended.
    pub(crate) unheard_since: Option<Instant>,
    /// When it answered a change last, or was opened.
    pub(crate) changed_at: Instant,
    /// Whether it had not ended a change for too long when that was looked at last.
    pub(crate) is_stuck: bool,
    /// Questions that it has not answered and that are not waited for any more.
    pub(crate) late: u32,
    /// Why it could not be brought up to date last.
    pub(crate) trouble: Option<LeftBecause>,
    /// How often it has refused for lack of room, and when it did last.
    pub(crate) no_room: (u32, Instant),
    /// Whether the record names it no more. What was asked of it may still be answered, so it keeps its index until all
    /// that is over; then another may have it.
    pub(crate) is_gone: bool,
}

impl Member {
    pub(crate) fn new(member: &crate::roster::Member, now: Instant) -> Member {
        Member {
            component: member.component,
            node: member.node,
            standing: member.standing,
            base: member.base,
            role: member.role,
            ceiling: member.ceiling,
            has_diverged: false,
            proof: None,
            wanted: None,
            may_join: false,
            link: Link::Down { since: now, retry_at: now },
            opened: None,
            resync: None,
            fill_at: now,
            told: WriteId::default(),
            congestion: 0,
            read_ns: 0,
            unheard_since: None,
            changed_at: now,
            is_stuck: false,
            late: 0,
            trouble: None,
            no_room: (0, now),
            is_gone: false,
        }
    }

    /// Whether the record counts it as active: it may be read from.
    pub(crate) fn is_active(&self) -> bool {
        self.standing == Standing::Active
    }

    /// Whether the record has it as active or as a stand-in: every acknowledgement waits for it.
    pub(crate) fn counts(&self) -> bool {
        self.standing.counts()
    }

    /// Whether the record may count it: it does, or was asked to.
    pub(crate) fn may_count(&self) -> bool {
        self.counts() || self.is_joining()
    }

    /// Whether it is, or was, asked of the record that it counts, and the answer is not known.
    pub(crate) fn is_joining(&self) -> bool {
        self.may_join || self.wanted.is_some_and(|(standing, _)| standing.counts())
    }

    /// Whether acknowledgements wait for it: it may count, or is about to be asked to.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.may_count() || self.resync.as_ref().is_some_and(Resync::is_ending)
    }

    /// Whether the record shall count it out.
    pub(crate) fn is_leaving(&self) -> bool {
        self.wanted.is_some_and(|(standing, _)| !standing.counts())
    }

    /// Whether changes go to it: it counts, or is being brought up to date.
    pub(crate) fn is_in(&self) -> bool {
        self.counts() || self.resync.is_some()
    }

    /// The component that it stands in for, if it is there for that: what it holds are the blocks that were changed.
    pub(crate) fn stands_in_for(&self) -> Option<ComponentId> {
        if self.is_active() { None } else { self.role.of() }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.link == Link::Open
    }

    /// Whether it owes no answer for long. One that does is asked nothing more, as long as there is another.
    pub(crate) fn is_prompt(&self) -> bool {
        self.late == 0
    }

    /// How long it is left alone after it refused at `now`: longer each time that it has no room. That it counted in
    /// between changes nothing, for what was there already may have been all that it had to take.
    pub(crate) fn rest_after(&mut self, why: LeftBecause, now: Instant) -> Duration {
        if !why.is_no_room() {
            return limits::RESYNC_RETRY;
        }
        let (count, last) = self.no_room;
        let is_recent = now.since(last) <= 2 * limits::NO_ROOM_RETRY_MAX;
        let count = if is_recent { count } else { 0 };
        self.no_room = (count.saturating_add(1), now);
        let doubled = limits::RESYNC_RETRY.saturating_mul(1 << count.min(16));
        doubled.min(limits::NO_ROOM_RETRY_MAX)
    }

    pub(crate) fn down(&mut self, since: Instant, retry_at: Instant) {
        self.link = Link::Down { since, retry_at };
        self.opened = None;
        self.proof = None;
    }
}

/// A place.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) members: Vec<Member>,
    /// The last sequence number given.
    pub(crate) sequence: u64,
    pub(crate) in_flight: BTreeMap<u64, InFlight>,
    pub(crate) in_flight_bytes: u64,
    pub(crate) lanes: Lanes,
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
            lanes: Lanes::default(),
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
        self.members.iter().filter(|member| !member.is_gone).count() == 1
    }

    /// The members that the record names.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_gone)
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
        (0..).zip(&self.members).find(|(_, one)| one.component == component && !one.is_gone)
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
        self.active().any(|(index, other)| index != member && other.is_open() && other.wanted.is_none())
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
            standing: member.standing,
            role: member.role,
            is_open: member.is_open(),
            resync: member.resync.as_ref().map(Resync::progress),
            looked_through: member.resync.as_ref().and_then(Resync::looked_through),
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
        match member.link {
            Link::Down { retry_at, .. } if retry_at > self.now => Some(retry_at.since(self.now)),
            Link::Down { .. } | Link::Opening | Link::Open => None,
        }
    }

    /// A device has room again: what waits for that does not have to wait any longer.
    pub(crate) fn has_room(&mut self, component: ComponentId) {
        let now = self.now;
        for at in self.all() {
            let member = self.member_mut(at);
            let waits = member.trouble.is_some_and(LeftBecause::is_no_room);
            if member.component != component || !waits || member.is_gone {
                continue;
            }
            member.no_room = (0, now);
            member.fill_at = member.fill_at.min(now);
            if let Link::Down { since, retry_at } = member.link {
                member.link = Link::Down { since, retry_at: retry_at.min(now) };
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
