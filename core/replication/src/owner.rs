//! The owner of one virtual disk: it orders all I/O, and keeps the components equal.
//!
//! What keeps data safe here, each rule in one place: nothing is served before the window is decided (`opening`); a
//! change is acknowledged when every component that counts, or may, has it (`change`); a component leaves or joins the active set
//! only by the directory's word (`record`); a read needs the leases of all (`read`, `status`); a resync copies by the delta rule,
//! under range locks, and asks that its component counts only once that has all that was acknowledged (`resync`).

mod asked;
mod barrier;
mod change;
mod copies;
mod copy;
mod happened;
mod lineage;
mod member;
mod member_set;
mod opening;
mod patience;
mod read;
mod record;
mod restore;
mod resync;
mod state;
mod status;
mod work;

use crate::limits;
use crate::locks::Locks;
use crate::roster::{OwnedBy, Roster};
use crate::rules::Rule;
pub(crate) use asked::Asked;
use asked::{Question, Step};
use base::request::{Buffers, Pieces, StatusRun};
use base::rules::Rules;
use base::units::BLOCK_SIZE;
use base::{Buffer, ComponentId, DiskId, Instant, NodeId, RequestTag, WriteId};
use happened::{Happened, Known};
use record::Recording;
use rustc_hash::FxHashMap;
use slab::Slab;
use smallvec::SmallVec;
use state::Place;
pub use state::{MemberState, OwnerState};
use std::collections::{BTreeSet, VecDeque};
use wire::{Answer, Refusal, Request};
use work::{Reader, Works};

/// The caller's name for a change or a read; comes back with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// The owner's name for a request to a component; comes back with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask(pub u32);

/// Until when this node may rely on what each other node granted it.
#[derive(Debug, Default)]
pub struct Leases {
    until: FxHashMap<NodeId, Instant>,
}

impl Leases {
    /// A node answered a message that was sent at `sent`, and granted.
    pub fn granted(&mut self, node: NodeId, sent: Instant) {
        let until = self.until.entry(node).or_default();
        *until = (sent + limits::GRANT - limits::DRIFT_ALLOWANCE).max(*until);
    }

    /// The session with the node is over: what it granted counts no more.
    pub fn lost(&mut self, node: NodeId) {
        self.until.remove(&node);
    }

    fn is_live(&self, node: NodeId, now: Instant) -> bool {
        self.until.get(&node).is_some_and(|until| *until > now)
    }
}

/// What a change does.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Writes whole blocks.
    Write {
        /// Them.
        data: Buffers,
        /// CRC-32C of each, computed where the data entered.
        checksums: SmallVec<[u32; 2]>,
    },
    /// Makes so many blocks read as zeroes.
    Trim {
        /// Blocks.
        count: u16,
    },
}

/// What an owner is run with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A MiB of zeroes: what a stand-in gets for a trim.
    pub zeroes: Buffer,
    /// Whether reads go to a component on the owner's own host when there is one.
    pub prefers_local: bool,
    /// Most blocks that one copy of a resync takes, 1..=256.
    pub copy_blocks_max: u16,
    /// Until when other nodes may be starting as this one did, and the directory be older than what they hold.
    pub starts_until: Instant,
    /// The safety rules that hold: all in a product build.
    pub rules: Rules<Rule>,
}

impl Settings {
    /// So many blocks of zeroes, 1..=256, with their checksums.
    fn zero_blocks(&self, count: u16) -> (Buffers, SmallVec<[u32; 2]>) {
        let zeroes = self.zeroes.slice(0, usize::from(count) * BLOCK_SIZE as usize);
        let checksum = base::checksum::crc32c(&zeroes[..BLOCK_SIZE as usize]);
        (smallvec::smallvec![zeroes], smallvec::smallvec![checksum; usize::from(count)])
    }
}

/// How a link to another node changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange {
    /// It can be used.
    Up,
    /// It broke; requests under way on it are answered `Err(Lost)` first.
    Down,
    /// As `Down`, after the node was silent for so long that nothing more is waited for.
    Silent,
    /// As `Silent`: the process of the node is known to have ended.
    Ended,
}

/// The link over which a request went broke before its answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// The result of a compare-and-set.
#[derive(Debug, Clone)]
pub enum Committed {
    /// The record is as asked, with this version now.
    Done {
        /// It.
        version: u64,
    },
    /// The record has another version; this is what it says.
    Conflict {
        /// Its version.
        version: u64,
        /// What it says of replication.
        roster: Roster,
    },
    /// Nobody knows.
    Unknown,
}

/// What happens to an owner.
#[derive(Debug)]
pub enum Input {
    /// Change blocks of one part of a place.
    Change {
        /// Comes back with the end.
        token: Token,
        /// The place.
        place: u16,
        /// Which MiB of it.
        part: u32,
        /// First block.
        block: u16,
        /// The guest's request that it is part of.
        tag: RequestTag,
        /// Whether another node forwarded it: then it may be submitted again.
        is_forwarded: bool,
        /// What.
        payload: Payload,
    },
    /// Read blocks of one part of a place.
    Read {
        /// Comes back with the end.
        token: Token,
        /// The place.
        place: u16,
        /// Which MiB of it.
        part: u32,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
    },
    /// Tell which blocks of some parts of a place are allocated.
    Status {
        /// Comes back with the end.
        token: Token,
        /// The place.
        place: u16,
        /// The first part.
        part: u32,
        /// Parts, 1..=[`wire::limits::ALLOCATION_PARTS_MAX`].
        count: u16,
    },
    /// A request was answered.
    Answered {
        /// Which.
        ask: Ask,
        /// How.
        answer: Result<Answer, Lost>,
    },
    /// A link changed.
    Link {
        /// To which node.
        node: NodeId,
        /// How.
        change: LinkChange,
    },
    /// A component promised a greater epoch.
    Superseded,
    /// A compare-and-set ended.
    Committed(Committed),
    /// The record as it is, because it was asked for or because somebody else changed it; `None` if the disk is gone.
    Recorded {
        /// Version and roster.
        record: Option<(u64, Roster)>,
    },
    /// The directory did not answer.
    FetchFailed,
    /// So many bytes more may be copied to components that are brought up to date.
    Pace {
        /// Bytes.
        bytes: u64,
    },
    /// Whether guests of this node use the disk.
    Used {
        /// It.
        is_used: bool,
    },
    /// The device of a component has room again.
    Room {
        /// The component.
        component: ComponentId,
    },
    /// Whoever asked for these changes is gone: those that have not begun are not to happen any more.
    Abandon {
        /// Which.
        token: Token,
    },
    /// Let go of the disk.
    Release,
}

/// What an owner wants done.
#[derive(Debug)]
pub enum Output {
    /// A request for a component on that node, which may be the owner's own.
    Send {
        /// The node.
        node: NodeId,
        /// Comes back with the answer.
        ask: Ask,
        /// What.
        request: Request,
    },
    /// A change or read ended.
    Done {
        /// Which.
        token: Token,
        /// How.
        result: Result<Reply, Failure>,
    },
    /// Set the record if it still has that version.
    Commit {
        /// The version.
        expected: u64,
        /// What it shall say.
        roster: Roster,
    },
    /// Read the record.
    Fetch,
    /// Something happened.
    Event(Event),
}

/// How a change or read ended well.
#[derive(Debug, Clone)]
pub enum Reply {
    /// It is stable on all that count.
    Changed,
    /// What was read.
    Data(Pieces),
    /// What is allocated, in runs of bytes that cover the first parts of what was asked for: at least one.
    Allocation(Vec<StatusRun>),
}

/// How a change or read ended badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No component has room.
    NoSpace,
    /// The blocks are damaged on every component that counts.
    Damaged,
    /// This node owns the disk no more: to be asked of the owner then. It may have happened.
    Unowned,
    /// Whoever asked is gone. It has not happened.
    Abandoned,
}

/// Why an owner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Released,
    /// Another took over, or the claim was lost to another.
    Superseded,
    /// A component has promised a greater epoch than this owner's, or was told of changes of its epoch before it served. The record
    /// that names an owner in that epoch came before the promise. A record that knows none is older than the component.
    SupersededBy {
        /// Which.
        component: ComponentId,
        /// The epoch that a record has at least which is not older.
        epoch: u32,
    },
    /// A component holds acknowledged changes that those which count lack: a person decides which are kept.
    Diverged,
    /// The disk is gone.
    Deleted,
    /// The record has places that it had not before: the disk is to be opened anew.
    Reshaped,
    /// No active component of a place can be reached any more, and one that was absent is there again, with its stand-in: the
    /// disk is to be opened anew.
    Restoring,
}

/// Something that people, or the node, should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The disk is served from now on.
    Serving {
        /// In this epoch.
        epoch: u32,
        /// Changes that were rolled forward.
        rolled: u32,
    },
    /// The owner is over; its requests are returned.
    Ended(End),
    /// A component is out of the active set.
    Left {
        /// Which.
        component: ComponentId,
        /// Why.
        why: LeftBecause,
    },
    /// A component is in the active set again.
    Joined {
        /// Which.
        component: ComponentId,
        /// Bytes that were copied for it.
        copied_bytes: u64,
        /// When its resync began.
        began: Instant,
    },
    /// A component stands in for another: together they have all that was acknowledged.
    StandsIn {
        /// Which.
        component: ComponentId,
        /// For which.
        of: ComponentId,
        /// Bytes that were copied for it.
        copied_bytes: u64,
        /// When that began.
        began: Instant,
    },
    /// No active component of a place can be reached: what is left is put together from a component and its stand-in.
    RestoreBegan {
        /// The component that becomes active.
        component: ComponentId,
        /// Its stand-in.
        stand_in: ComponentId,
    },
    /// A component holds acknowledged changes that those which count lack.
    Diverged {
        /// Which.
        component: ComponentId,
    },
    /// A component is being brought up to date.
    ResyncBegan {
        /// Which.
        component: ComponentId,
        /// Whether from nothing.
        is_rebuild: bool,
    },
    /// A component cannot be brought up to date now.
    ResyncFailed {
        /// Which.
        component: ComponentId,
        /// Why.
        why: LeftBecause,
    },
    /// A damaged range was written again from another component.
    Repaired {
        /// Where it was damaged.
        component: ComponentId,
        /// Blocks.
        blocks: u16,
    },
}

/// Why a component does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeftBecause {
    /// Its node cannot be reached.
    #[error("its host cannot be reached")]
    Unreachable,
    /// Its node answers, and it does not: its device hangs.
    #[error("it does not answer, though its host does: its device hangs")]
    Stuck,
    /// Its node refused.
    #[error("{0}")]
    Refused(Refusal),
    /// It lacks changes that all components which counted had acknowledged: its device lost them, or it did not count then and the
    /// record is older than that.
    #[error(
        "it lacks acknowledged changes: its device lost writes, or the directory is older than the devices"
    )]
    LostWrites,
    /// It holds acknowledged changes that those which count lack.
    #[error("it holds acknowledged changes that the other copies lack: the disk is diverged")]
    Diverged,
    /// The directory says so.
    #[error("the directory says so")]
    Directory,
}

impl LeftBecause {
    /// Whether its device has no room for it.
    pub fn is_no_room(self) -> bool {
        matches!(self, LeftBecause::Refused(Refusal::NoSpace | Refusal::NoSlot))
    }
}

/// Where an owner is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The record does not name it yet.
    Claiming,
    /// Components are being opened, or the window is being decided.
    Opening,
    /// Changes and reads are served.
    Serving,
    /// What is under way ends; then the record is told.
    Releasing,
    /// It is over.
    Ended,
}

/// The state machine.
#[derive(Debug)]
pub struct Owner {
    pub(crate) disk: DiskId,
    pub(crate) me: OwnedBy,
    pub(crate) settings: Settings,
    pub(crate) now: Instant,
    pub(crate) phase: Phase,
    pub(crate) epoch: u32,
    pub(crate) recording: Recording,
    pub(crate) places: Vec<Place>,
    pub(crate) locks: Locks,
    pub(crate) works: Works,
    pub(crate) asks: Slab<Question>,
    /// When it is looked next whether something has been under way for too long.
    pub(crate) look_at: Instant,
    /// Nodes whose links are up.
    pub(crate) up: BTreeSet<NodeId>,
    /// Whether guests of this node use the disk.
    pub(crate) is_used: bool,
    /// Changes and reads that wait until the disk is served.
    pub(crate) held: VecDeque<Input>,
    /// Reads that wait for a lease or a component.
    pub(crate) reads_waiting: VecDeque<Reader>,
    /// Closes under way in a release.
    pub(crate) closes: u32,
    pub(crate) has_closed: bool,
    /// Whether the windows were decided.
    pub(crate) has_served: bool,
    /// Whether components were told the first watermark of the epoch.
    pub(crate) has_settled: bool,
    /// Until when other nodes may be starting as this one did.
    pub(crate) starts_until: Instant,
    pub(crate) attempts: u32,
    pub(crate) rolled: u32,
    /// Whether members that the record names wait for room in the table.
    pub(crate) has_newcomers: bool,
    /// Reads that belonged to a slow component.
    pub(crate) passed_over: u64,
    /// Changes that are not done again.
    pub(crate) happened: Happened,
    /// Bytes that may be copied now; below zero after a copy that was longer than what was granted.
    pub(crate) allowance: i64,
    pub(crate) copied_bytes: u64,
    pub(crate) repaired_blocks: u64,
    pub(crate) out: Vec<Output>,
}

impl Owner {
    /// Claims the disk: the record, of that version, is to name this node in the next epoch. `up`: the nodes that can be
    /// reached now.
    pub fn claim(
        disk: DiskId,
        me: OwnedBy,
        (version, roster): (u64, Roster),
        up: BTreeSet<NodeId>,
        settings: Settings,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Owner {
        let mut owner = Owner {
            disk,
            me,
            settings,
            now,
            phase: Phase::Claiming,
            epoch: roster.epoch + 1,
            recording: Recording::new(version, roster, now),
            places: Vec::new(),
            locks: Locks::default(),
            works: Works::default(),
            asks: Slab::new(),
            look_at: now,
            up,
            is_used: false,
            held: VecDeque::new(),
            reads_waiting: VecDeque::new(),
            closes: 0,
            has_closed: false,
            has_served: false,
            has_settled: false,
            starts_until: Instant(0),
            attempts: 0,
            rolled: 0,
            has_newcomers: false,
            passed_over: 0,
            happened: Happened::default(),
            allowance: 0,
            copied_bytes: 0,
            repaired_blocks: 0,
            out: Vec::new(),
        };
        owner.starts_until = match owner.holds(Rule::WaitForStarts) {
            true => owner.settings.starts_until,
            false => now,
        };
        owner.begin_claim();
        out.append(&mut owner.out);
        owner
    }

    /// Takes one input.
    pub fn step(&mut self, now: Instant, input: Input, leases: &Leases, out: &mut Vec<Output>) {
        self.now = now;
        match input {
            Input::Change { .. } | Input::Read { .. } | Input::Status { .. } => self.guest(input, leases),
            Input::Answered { ask, answer } => self.answered(ask, answer, leases),
            Input::Link { node, change } => self.link_changed(node, change),
            Input::Superseded => self.end(End::Superseded),
            Input::Committed(committed) => self.committed(committed),
            Input::Recorded { record } => self.recorded(record),
            Input::FetchFailed => self.fetch_failed(),
            Input::Pace { bytes } => self.paced(bytes),
            Input::Used { is_used } => self.is_used = is_used,
            Input::Room { component } => self.has_room(component),
            Input::Abandon { token } => self.abandon(token),
            Input::Release => self.release(),
        }
        out.append(&mut self.out);
    }

    /// Moves everything on that waits for time, a lease or a component: to be called after each batch of inputs, and at
    /// [`Owner::wake_at`].
    pub fn advance(&mut self, now: Instant, leases: &Leases, out: &mut Vec<Output>) {
        self.now = now;
        if self.phase != Phase::Ended {
            if self.has_newcomers {
                self.take_in_new_members();
            }
            self.advance_patience();
            self.advance_members();
            self.advance_opening();
            self.advance_restores();
            self.advance_resyncs();
            self.advance_barriers();
            self.advance_settling();
            self.advance_record();
            self.advance_release();
            self.retry_reads(leases);
        }
        out.append(&mut self.out);
    }

    /// Where it is in its life.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Its epoch: the one it claims, until it is served.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The disk.
    pub fn disk(&self) -> DiskId {
        self.disk
    }

    /// The record that it knows.
    pub fn record(&self) -> (u64, &Roster) {
        (self.recording.version, &self.recording.roster)
    }

    /// Places of the disk, as far as this owner serves them.
    pub fn place_count(&self) -> usize {
        self.places.len()
    }

    /// Back-pressure of the components, 0..=255: the greatest of all that changes are sent to. One in resync is among them: it must
    /// follow before it can count.
    pub fn congestion(&self) -> u8 {
        let members = self.places.iter().flat_map(|place| &place.members);
        members.filter(|member| member.takes_changes()).map(|member| member.congestion).max().unwrap_or(0)
    }

    /// Whether reads wait for a lease or a component.
    pub fn has_waiting_reads(&self) -> bool {
        !self.reads_waiting.is_empty()
    }

    pub(crate) fn holds(&self, rule: Rule) -> bool {
        self.settings.rules.hold(rule)
    }

    pub(crate) fn send(&mut self, node: NodeId, asked: Asked, request: Request) {
        if self.asks.is_empty() {
            self.look_at = self.now + limits::LOOK_PERIOD;
        }
        let ask = Ask(self.asks.insert(Question { asked, since: self.now }) as u32);
        self.out.push(Output::Send { node, ask, request });
    }

    fn guest(&mut self, input: Input, leases: &Leases) {
        // A place that the disk has got since, or one that an earlier record named.
        let is_unknown = match &input {
            Input::Change { place, .. } | Input::Read { place, .. } | Input::Status { place, .. } => {
                usize::from(*place) >= self.places.len()
            }
            _ => unreachable!("only guests' requests come here"),
        };
        match (self.phase, input) {
            (Phase::Serving, input) if is_unknown => self.refuse_unowned(&input),
            (Phase::Serving, Input::Change { token, place, part, block, tag, is_forwarded, payload }) => {
                self.change((token, is_forwarded), Known { tag, place, part, block }, payload);
            }
            (Phase::Serving, Input::Read { token, place, part, block, count }) => {
                self.read(token, place, part, block, count, leases);
            }
            (Phase::Serving, Input::Status { token, place, part, count }) => {
                self.status(token, place, (part, count), leases);
            }
            (Phase::Claiming | Phase::Opening | Phase::Releasing, input) => self.held.push_back(input),
            (_, input) => self.refuse_unowned(&input),
        }
    }

    fn refuse_unowned(&mut self, input: &Input) {
        if let Input::Change { token, .. } | Input::Read { token, .. } | Input::Status { token, .. } = input {
            self.out.push(Output::Done { token: *token, result: Err(Failure::Unowned) });
        }
    }

    fn answered(&mut self, ask: Ask, answer: Result<Answer, Lost>, leases: &Leases) {
        let Some(Question { asked, .. }) = self.asks.try_remove(ask.0 as usize) else { return };
        if self.phase == Phase::Ended {
            return;
        }
        self.note_progress(&asked);
        if let Ok(Answer::Refused(Refusal::Superseded { epoch })) = answer
            && epoch > self.epoch
        {
            let component = asked.member().map(|at| self.member(at).component);
            return self
                .end(component.map_or(End::Superseded, |component| End::SupersededBy { component, epoch }));
        }
        match asked {
            Asked::Open(at) => self.opened(at, asked::opened(answer)),
            Asked::Change { at, sequence } => self.change_answered(at, sequence, asked::done(answer)),
            Asked::Step(step) => self.step_answered(step, answer, leases),
            Asked::FirstSettle { at, attempt } => self.first_settled(at, attempt, asked::done(answer)),
            Asked::Settle => {}
            Asked::Barrier { at, attempt } => self.barrier_answered(at, attempt, asked::done(answer)),
            Asked::RollRead { at, attempt, roll } => self.roll_read(at, attempt, roll, asked::data(answer)),
            Asked::RollWrite { at, attempt, roll } => {
                self.roll_written(at, attempt, roll, asked::done(answer));
            }
            Asked::Changed { at, attempt, of_target } => {
                self.listed(at, attempt, of_target, asked::listing(answer));
            }
            Asked::Doubtful { at, attempt } => self.doubt_answered(at, attempt, asked::data(answer)),
            Asked::Proof { at, attempt } => self.proof_answered(at, attempt, asked::listing(answer)),
            Asked::Close => self.closes -= 1,
            Asked::GivenUp(at) => self.late_answered(at),
        }
    }

    fn step_answered(&mut self, step: Step, answer: Result<Answer, Lost>, leases: &Leases) {
        match step {
            Step::Read { work, at } => self.read_answered(work, at, asked::data(answer), leases),
            Step::Status { work, at } => self.status_answered(work, at, asked::allocation(answer)),
            Step::CopyRead { work, at } => self.copy_read(work, at, asked::data(answer)),
            Step::CopyWrite { work } => self.copy_written(work, asked::done(answer)),
        }
    }

    /// The end: whatever was asked of it is returned.
    pub(crate) fn end(&mut self, end: End) {
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        for input in std::mem::take(&mut self.held) {
            self.refuse_unowned(&input);
        }
        let works = std::mem::take(&mut self.works);
        for token in works.tokens() {
            self.out.push(Output::Done { token, result: Err(Failure::Unowned) });
        }
        self.asks.clear();
        self.places.clear();
        self.locks = Locks::default();
        self.reads_waiting.clear();
        self.out.push(Output::Event(Event::Ended(end)));
    }

    fn release(&mut self) {
        match self.phase {
            Phase::Claiming | Phase::Opening | Phase::Serving => self.phase = Phase::Releasing,
            Phase::Releasing | Phase::Ended => {}
        }
    }

    /// In a release: once nothing is under way, the components are closed, then the record is told.
    fn advance_release(&mut self) {
        if self.phase != Phase::Releasing || !self.recording.is_idle() {
            return;
        }
        for at in self.all() {
            let member = self.member_mut(at);
            if member.take_resync().is_some() && !member.may_count() {
                self.excuse(at);
            }
        }
        if self.works.tokens().next().is_some() {
            return;
        }
        if !self.has_closed {
            self.has_closed = true;
            let open = |place: &Place| {
                place
                    .members
                    .iter()
                    .filter(|one| one.is_open())
                    .map(|one| (one.node, one.component))
                    .collect::<Vec<_>>()
            };
            let open: Vec<_> = self.places.iter().flat_map(open).collect();
            for (node, component) in open {
                self.closes += 1;
                self.send(node, Asked::Close, Request::Close { component, epoch: self.epoch });
            }
        }
        if self.closes == 0 {
            self.commit_release();
        }
    }

    /// When [`Owner::advance`] wants to be called at the latest.
    pub fn wake_at(&self) -> Option<Instant> {
        if self.phase == Phase::Ended {
            return None;
        }
        let members = self.all().into_iter().filter_map(|at| self.member_wake_at(at));
        let is_serving = self.phase == Phase::Serving;
        let places = self.places.iter().filter_map(|place| place.settle_at.filter(|_| is_serving));
        let reads = (!self.reads_waiting.is_empty()).then(|| self.now + limits::RETRY);
        let patience = self.patience_wake_at();
        members.chain(places).chain(reads).chain(self.recording.retry_at).chain(patience).min()
    }

    /// The watermark of a place: all ids up to it are decided.
    pub(crate) fn watermark(&self, place: u16) -> WriteId {
        let place = &self.places[place as usize];
        let sequence = place.in_flight.keys().next().map_or(place.sequence, |first| first - 1);
        WriteId { epoch: self.epoch, sequence }
    }
}

#[cfg(test)]
mod tests;
