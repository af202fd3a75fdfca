//! A component of a place as its owner sees it: what the record says of it, what is done for it, and whether it serves the owner.
//!
//! The record decides who counts, so [`State`] follows the record alone. What the record is to say is a [`Wish`]; the session with
//! the component's node comes and goes beside both. All transitions are methods here, and each predicate is defined once.

use super::interface::LeftBecause;
use super::member_snapshots::MemberSnapshots;
use super::resync::Resync;
use super::steering::Recent;
use crate::limits;
use crate::roster::{self, Ceiling, Role, Roster, Standing};
use base::{ComponentId, Instant, NodeId, WriteId};
use std::time::Duration;
use wire::{Entry, HeldRange};

/// Names a member: its place, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) place: u16,
    pub(crate) member: u8,
}

/// What a component said when it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) watermark: WriteId,
    pub(crate) entries: Vec<Entry>,
}

/// What the record says of a member, with what is done for it then.
#[derive(Debug)]
enum State {
    /// It has all that was acknowledged: it may be read from.
    Active,
    /// It has all that was changed since the member that it stands in for left. One that is to be a copy gets the rest.
    StandIn { fill: Option<Resync> },
    /// It lacks something. While it is brought up to date, changes go to it.
    Out { standing: OutAs, resync: Option<Resync> },
    /// The record does not name it any more. What was asked of it may still be answered, so it keeps its index until all that is
    /// over; then another may have it.
    Gone,
}

/// As what the record has a member that does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutAs {
    /// It missed changes, or has never counted.
    Absent,
    /// It lost what it had acknowledged.
    Stale,
}

/// As what the record counts a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedAs {
    Active,
    StandIn,
}

/// What the record is to say of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// It counts.
    Join(CountedAs),
    /// It does not count.
    Leave(OutAs, LeftBecause),
}

impl Wish {
    pub(crate) fn standing(self) -> Standing {
        match self {
            Wish::Join(CountedAs::Active) => Standing::Active,
            Wish::Join(CountedAs::StandIn) => Standing::StandIn,
            Wish::Leave(OutAs::Absent, _) => Standing::Absent,
            Wish::Leave(OutAs::Stale, _) => Standing::Stale,
        }
    }
}

/// Whether a component serves this owner's session.
#[derive(Debug)]
enum Session {
    /// It does not, since that time; `retry_at` is when it is asked next.
    Down { since: Instant, retry_at: Instant },
    /// It was asked to.
    Opening,
    /// It does.
    Open {
        /// What it said then, as long as that is of use.
        opened: Option<Opened>,
        /// What it is being asked about what it has.
        proof: Option<Proof>,
    },
    /// The record does not name it any more, and it is not asked again.
    Over,
}

/// What its versions have to tell of a component: whether it has changes after `ceiling` that it knows to be decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof {
    pub(crate) attempt: u32,
    pub(crate) ceiling: WriteId,
    pub(crate) watermark: WriteId,
}

/// A component of a place.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) component: ComponentId,
    pub(crate) node: NodeId,
    /// Which member of each row it is; 0 of a copy.
    pub(crate) position: u8,
    state: State,
    session: Session,
    /// What the record is to say.
    pub(crate) wish: Option<Wish>,
    /// Whether a transaction that counts it was begun, of which it is not known what came of it.
    may_join: bool,
    /// What the record says of it besides, as far as it is known.
    pub(crate) base: WriteId,
    pub(crate) role: Role,
    pub(crate) ceiling: Ceiling,
    /// Whether it holds acknowledged changes that those which count lack: the record shall say so.
    pub(crate) has_diverged: bool,
    /// When one that counts may be filled again after that failed.
    pub(crate) fill_at: Instant,
    /// The greatest watermark sent to it.
    pub(crate) watermark_sent: WriteId,
    pub(crate) congestion: u8,
    /// Running average of its reads' latencies, in nanoseconds.
    pub(crate) read_ns: u64,
    /// What reads of it took lately.
    pub(crate) recent: Recent,
    /// Since when its node was not heard, unless the process there is known to have ended.
    pub(crate) unheard_since: Option<Instant>,
    /// Whether it is known what it holds of small changes, and the last attempt to learn it.
    pub(crate) knows_held: bool,
    pub(crate) held_attempt: u32,
    /// What it has said of that so far.
    pub(crate) held_told: Vec<HeldRange>,
    /// When it answered a change last, or was opened.
    pub(crate) changed_at: Instant,
    /// Whether it had not ended a change for too long when that was looked at last.
    pub(crate) is_stuck: bool,
    /// Questions that it has not answered and that are not waited for any more.
    pub(crate) late: u32,
    /// What is known of its snapshots.
    pub(crate) snapshots: MemberSnapshots,
    /// Why it could not be brought up to date last.
    pub(crate) trouble: Option<LeftBecause>,
    /// How often it has refused for lack of room, and when it did last.
    no_room: (u32, Instant),
}

/// What the record says of it, and shall say.
impl Member {
    pub(crate) fn new(recorded: &roster::Member, now: Instant) -> Member {
        Member {
            component: recorded.component,
            node: recorded.node,
            position: recorded.rows.map_or(0, |rows| rows.position),
            state: State::of(recorded.standing, None),
            session: Session::Down { since: now, retry_at: now },
            wish: None,
            may_join: false,
            base: recorded.base,
            role: recorded.role,
            ceiling: recorded.ceiling,
            has_diverged: false,
            fill_at: now,
            watermark_sent: WriteId::default(),
            congestion: 0,
            read_ns: 0,
            recent: Recent::default(),
            unheard_since: None,
            knows_held: false,
            held_attempt: 0,
            held_told: Vec::new(),
            changed_at: now,
            is_stuck: false,
            late: 0,
            snapshots: MemberSnapshots::default(),
            trouble: None,
            no_room: (0, now),
        }
    }

    /// What the record says; of one that it does not name, that it is absent.
    pub(crate) fn standing(&self) -> Standing {
        match self.state {
            State::Active => Standing::Active,
            State::StandIn { .. } => Standing::StandIn,
            State::Out { standing: OutAs::Absent, .. } | State::Gone => Standing::Absent,
            State::Out { standing: OutAs::Stale, .. } => Standing::Stale,
        }
    }

    /// Whether the record does not name it any more.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.state, State::Gone)
    }

    /// Whether the record counts it as active: it may be read from.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state, State::Active)
    }

    /// Whether the record has it as active or as a stand-in: every acknowledgement waits for it.
    pub(crate) fn counts(&self) -> bool {
        match self.state {
            State::Active | State::StandIn { .. } => true,
            State::Out { .. } | State::Gone => false,
        }
    }

    /// Whether it missed changes, or has never counted, and may come back.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.state, State::Out { standing: OutAs::Absent, .. })
    }

    /// Whether it lost what it had acknowledged.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self.state, State::Out { standing: OutAs::Stale, .. })
    }

    /// Whether it is, or was, asked of the record that it counts, and the answer is not known.
    pub(crate) fn is_joining(&self) -> bool {
        self.may_join || matches!(self.wish, Some(Wish::Join(_)))
    }

    /// Whether the record may count it: it does, or was asked to.
    pub(crate) fn may_count(&self) -> bool {
        self.counts() || self.is_joining()
    }

    /// Whether acknowledgements wait for it: it may count, or is about to be asked to.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.may_count() || self.resync().is_some_and(Resync::is_ending)
    }

    /// Whether the record shall count it out.
    pub(crate) fn is_leaving(&self) -> bool {
        matches!(self.wish, Some(Wish::Leave(..)))
    }

    /// Whether changes go to it: it counts, or is being brought up to date.
    pub(crate) fn takes_changes(&self) -> bool {
        self.counts() || self.resync().is_some()
    }

    /// The component that it stands in for, if it is there for that: what it holds are the blocks that were changed.
    pub(crate) fn stands_in_for(&self) -> Option<ComponentId> {
        if self.is_active() { None } else { self.role.of() }
    }

    /// The record says this of it now. If it did not count and does now, or the other way round, what brought it up to date is over and
    /// given back, and nothing is asked of what it has.
    pub(crate) fn record(&mut self, standing: Standing) -> Option<Resync> {
        assert!(!self.is_gone(), "the record does not name it");
        let resync = self.take_resync();
        match self.standing().counts() == standing.counts() && standing != Standing::Active {
            true => {
                self.state = State::of(standing, resync);
                None
            }
            false => {
                self.state = State::of(standing, None);
                self.set_proof(None);
                resync
            }
        }
    }

    /// The record does not name it any more, and it does not come back.
    pub(crate) fn forget(&mut self) {
        (self.state, self.session) = (State::Gone, Session::Over);
        (self.wish, self.may_join) = (None, false);
    }

    /// Notes what was found out of what it may know; says whether that has to be recorded at once.
    pub(crate) fn tell_ceiling(&self, roster: &mut Roster) -> bool {
        let Some(recorded) = roster.members.iter_mut().find(|one| one.component == self.component) else {
            return false;
        };
        recorded.ceiling =
            if self.has_diverged { Ceiling::Passed } else { self.ceiling.max(recorded.ceiling) };
        self.has_diverged
    }

    /// It is told that everything up to there is decided. What it was told before, in another session or for a barrier, it may know still.
    pub(crate) fn note_told(&mut self, watermark: WriteId) {
        self.watermark_sent = self.watermark_sent.max(watermark);
    }

    /// A transaction is begun that counts it.
    pub(crate) fn begin_join(&mut self) {
        self.may_join = true;
    }

    /// It is known what came of the transactions that were to count it.
    pub(crate) fn settle_join(&mut self) {
        self.may_join = false;
    }
}

impl State {
    fn of(standing: Standing, resync: Option<Resync>) -> State {
        match standing {
            Standing::Active => State::Active,
            Standing::StandIn => State::StandIn { fill: resync },
            Standing::Absent => State::Out { standing: OutAs::Absent, resync },
            Standing::Stale => State::Out { standing: OutAs::Stale, resync },
        }
    }
}

/// What brings it up to date.
impl Member {
    pub(crate) fn resync(&self) -> Option<&Resync> {
        match &self.state {
            State::StandIn { fill: resync } | State::Out { resync, .. } => resync.as_ref(),
            State::Active | State::Gone => None,
        }
    }

    pub(crate) fn resync_mut(&mut self) -> Option<&mut Resync> {
        match &mut self.state {
            State::StandIn { fill: resync } | State::Out { resync, .. } => resync.as_mut(),
            State::Active | State::Gone => None,
        }
    }

    pub(crate) fn take_resync(&mut self) -> Option<Resync> {
        match &mut self.state {
            State::StandIn { fill: resync } | State::Out { resync, .. } => resync.take(),
            State::Active | State::Gone => None,
        }
    }

    /// It begins to be brought up to date. It is not complete, and the record names it.
    pub(crate) fn begin_resync(&mut self, begun: Resync) {
        match &mut self.state {
            State::StandIn { fill: resync } | State::Out { resync, .. } => *resync = Some(begun),
            State::Active | State::Gone => panic!("a complete member, or one that is gone, is not filled"),
        }
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

    /// Its device has room again: it does not wait for that any longer.
    pub(crate) fn has_room(&mut self, now: Instant) {
        self.no_room = (0, now);
        self.fill_at = self.fill_at.min(now);
        self.retry_by(now);
    }
}

/// Whether it serves.
impl Member {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.session, Session::Open { .. })
    }

    /// Whether it was asked to serve, and has not answered.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.session, Session::Opening)
    }

    /// Since when it does not serve, and when it is asked to next; none if it serves, was asked to, or is gone.
    pub(crate) fn is_down(&self) -> Option<(Instant, Instant)> {
        match self.session {
            Session::Down { since, retry_at } => Some((since, retry_at)),
            Session::Opening | Session::Open { .. } | Session::Over => None,
        }
    }

    /// Whether it owes no answer for long. One that does is asked nothing more, as long as there is another.
    pub(crate) fn is_prompt(&self) -> bool {
        self.late == 0
    }

    /// It is asked to serve.
    pub(crate) fn begin_opening(&mut self) {
        self.session = Session::Opening;
        self.snapshots = MemberSnapshots::default();
        (self.knows_held, self.held_attempt) = (false, 0);
    }

    /// It serves from now on, and said what it has.
    pub(crate) fn open(&mut self, now: Instant, opened: Opened) {
        self.session = Session::Open { opened: Some(opened), proof: None };
        (self.changed_at, self.is_stuck) = (now, false);
    }

    /// It does not serve, since that time, and is asked to at `retry_at`. One that is gone is not asked again.
    pub(crate) fn down(&mut self, since: Instant, retry_at: Instant) {
        if !self.is_gone() {
            self.session = Session::Down { since, retry_at };
        }
    }

    /// If it does not serve, it did not since that time, either.
    pub(crate) fn down_since(&mut self, time: Instant) {
        if let Session::Down { since, .. } = &mut self.session {
            *since = time.min(*since);
        }
    }

    /// If it does not serve, it is asked to at that time at the latest.
    pub(crate) fn retry_by(&mut self, time: Instant) {
        if let Session::Down { retry_at, .. } = &mut self.session {
            *retry_at = time.min(*retry_at);
        }
    }

    /// What it said when it was opened, as long as that is of use.
    pub(crate) fn opened(&self) -> Option<&Opened> {
        match &self.session {
            Session::Open { opened, .. } => opened.as_ref(),
            Session::Down { .. } | Session::Opening | Session::Over => None,
        }
    }

    pub(crate) fn opened_mut(&mut self) -> Option<&mut Opened> {
        match &mut self.session {
            Session::Open { opened, .. } => opened.as_mut(),
            Session::Down { .. } | Session::Opening | Session::Over => None,
        }
    }

    pub(crate) fn take_opened(&mut self) -> Option<Opened> {
        match &mut self.session {
            Session::Open { opened, .. } => opened.take(),
            Session::Down { .. } | Session::Opening | Session::Over => None,
        }
    }

    /// What it has is known from elsewhere now.
    pub(crate) fn replace_opened(&mut self, known: Opened) {
        if let Session::Open { opened, .. } = &mut self.session {
            *opened = Some(known);
        }
    }

    /// What it is being asked about what it has.
    pub(crate) fn proof(&self) -> Option<Proof> {
        match self.session {
            Session::Open { proof, .. } => proof,
            Session::Down { .. } | Session::Opening | Session::Over => None,
        }
    }

    pub(crate) fn set_proof(&mut self, asked: Option<Proof>) {
        if let Session::Open { proof, .. } = &mut self.session {
            *proof = asked;
        }
    }
}
