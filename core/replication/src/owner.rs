//! The owner of one virtual disk: it orders all I/O, and keeps the components equal.
//!
//! What keeps data safe here, each rule in one place: nothing is served before the window is decided (`opening`); a
//! change is acknowledged when every component that counts, or may, has it (`change`); a component leaves or joins the active set
//! only by the directory's word (`record`); a read needs the leases of all (`read`, `status`); a resync copies by the delta rule,
//! under range locks, and asks that its component counts only once that has all that was acknowledged (`resync`).

mod asked;
mod backfill;
mod backfilling;
mod barrier;
mod calm;
mod calming;
mod catching_up;
mod change;
mod columns;
mod copies;
mod copy;
mod data;
mod fold;
mod fold_plan;
mod folding;
mod found;
mod gather;
mod gathering;
mod happened;
mod in_flights;
mod interface;
mod lineage;
mod looked;
mod marks;
mod member;
mod member_set;
mod member_snapshots;
mod mending;
mod mends;
mod opening;
mod patience;
mod place;
mod read;
mod record;
mod recording;
mod report;
mod restore;
mod resync;
mod row_change;
mod row_check;
mod row_checking;
mod row_restore;
mod rows;
mod snapshots;
mod status;
mod steering;
mod taking;
mod windows;
mod work;

use crate::limits;
use crate::locks::{Locks, Range};
use crate::roster::{OwnedBy, Roster};
use crate::rules::Rule;
pub(crate) use asked::Asked;
use asked::{Question, Step};
use base::{ComponentId, DiskId, Instant, NodeId, WriteId};
use gather::Gather;
use happened::Happened;
use in_flights::InFlight;
pub use interface::{
    Ask, Asker, Committed, End, Event, Failure, Input, Leases, LeftBecause, LinkChange, Lost, MemberState,
    Output, OwnerState, Payload, Phase, Reply, RowCheckState, Settings, Token,
};
use member::{At, Member};
use mends::Mending;
use place::Place;
use recording::Recording;
use row_check::RowChecks;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
pub use steering::Reading;
use taking::SnapshotsUnderWay;
use wire::{Answer, Refusal, Request};
use work::{ChangeWork, Key, Reader, Works};

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
    /// What is read of several members of rows.
    pub(crate) gathers: Slab<Gather>,
    /// Changes of rows that wait for members that can be read, or for memory.
    pub(crate) stalled: Vec<Key<ChangeWork>>,
    /// Changes that a component cannot take now, by their numbers, and when they are sent again.
    pub(crate) resends: Vec<(At, u64)>,
    pub(crate) resend_at: Instant,
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
    /// Until when no request tries again, for the memory that it needs was short: others end meanwhile.
    pub(crate) short_until: Instant,
    /// Closes under way in a release.
    pub(crate) closes: u32,
    pub(crate) has_closed: bool,
    /// The shape that its places are of.
    pub(crate) shape: u32,
    /// Whether it goes on in the epoch of the one before it, and does not serve yet; or ended for such a one.
    pub(crate) goes_on: bool,
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
    pub(crate) folded_blocks: u64,
    pub(crate) row_checks: RowChecks,
    pub(crate) snapshots: SnapshotsUnderWay,
    pub(crate) mending: Mending,
    pub(crate) out: Vec<Output>,
}

impl Owner {
    /// Claims the disk: the record, of that version, is to name this node in the next epoch. `up`: the nodes that can be
    /// reached now.
    pub fn claim(
        disk: DiskId,
        me: OwnedBy,
        record: (u64, Roster),
        up: BTreeSet<NodeId>,
        settings: Settings,
        now: Instant,
        out: &mut Vec<Output>,
    ) -> Owner {
        let mut owner = Owner::new(disk, me, record, up, settings, now);
        owner.epoch += 1;
        owner.begin_claim();
        out.append(&mut owner.out);
        owner
    }

    /// Goes on in the epoch that the owner before on this node, which has ended, has had the record say ([`End::Passed`]).
    pub fn go_on(
        disk: DiskId,
        me: OwnedBy,
        record: (u64, Roster),
        up: BTreeSet<NodeId>,
        settings: Settings,
        now: Instant,
    ) -> Owner {
        let mut owner = Owner::new(disk, me, record, up, settings, now);
        owner.recording.is_claimed = true;
        owner.goes_on = true;
        owner.start_opening();
        owner
    }

    /// An owner in the epoch of the record.
    fn new(
        disk: DiskId,
        me: OwnedBy,
        (version, roster): (u64, Roster),
        up: BTreeSet<NodeId>,
        settings: Settings,
        now: Instant,
    ) -> Owner {
        let mut owner = Owner {
            disk,
            me,
            settings,
            now,
            phase: Phase::Claiming,
            epoch: roster.epoch,
            recording: Recording::new(version, roster, now),
            places: Vec::new(),
            locks: Locks::default(),
            works: Works::default(),
            asks: Slab::new(),
            gathers: Slab::new(),
            stalled: Vec::new(),
            resends: Vec::new(),
            resend_at: now,
            look_at: now,
            up,
            is_used: false,
            held: VecDeque::new(),
            reads_waiting: VecDeque::new(),
            short_until: Instant(0),
            closes: 0,
            has_closed: false,
            shape: 0,
            goes_on: false,
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
            folded_blocks: 0,
            row_checks: RowChecks::default(),
            snapshots: SnapshotsUnderWay::default(),
            mending: Mending::default(),
            out: Vec::new(),
        };
        owner.starts_until = match owner.holds(Rule::WaitForStarts) {
            true => owner.settings.starts_until,
            false => now,
        };
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
            Input::Reading(reading) => self.settings.reading = reading,
            Input::Room { component } => self.has_room(component),
            Input::Abandon { token } => self.abandon(token),
            Input::Pass { moved } => self.recording.to_pass = Some(moved),
            Input::Reshaped => self.end(End::Reshaped),
            Input::Release => self.release(),
        }
        self.hand_out(out);
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
            self.advance_row_checks();
            // One that begins has all folded, and all numbers told.
            self.advance_snapshots();
            self.advance_folds();
            self.advance_marks();
            self.advance_barriers();
            self.advance_settling();
            self.advance_mending();
            self.advance_record();
            self.advance_release();
            if self.short_until <= self.now {
                self.retry_stalled();
                self.retry_reads(leases);
            }
            self.send_again();
        }
        self.hand_out(out);
    }

    /// Gives what is wanted to whoever gave the input. Most take what they were given before: then nothing is copied.
    fn hand_out(&mut self, out: &mut Vec<Output>) {
        match out.is_empty() {
            true => std::mem::swap(out, &mut self.out),
            false => out.append(&mut self.out),
        }
    }

    /// Where it is in its life.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether what it is asked for waits for a moment: it goes on in the next epoch of this node ([`End::Passed`]).
    pub fn goes_on(&self) -> bool {
        self.goes_on
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

    /// Whether it serves, and every component that the record names counts, serves and is to stay.
    pub fn is_whole(&self) -> bool {
        self.is_whole_in(self.places.len())
    }

    /// The same of the components of its first places.
    pub fn is_whole_in(&self, places: usize) -> bool {
        let counts = |member: &Member| member.counts() && member.is_open() && member.wish.is_none();
        let mut places = self.places.iter().take(places);
        self.phase == Phase::Serving && places.all(|place| place.known().all(counts))
    }

    /// Memory is short: what needed some tries again in a while, and not in the same step for ever.
    pub(crate) fn memory_is_short(&mut self) {
        self.short_until = self.now + limits::MEMORY_RETRY;
    }

    /// The shape that its places are of ([`Roster::shape`]).
    pub fn shape(&self) -> u32 {
        self.shape
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
            (Phase::Serving, Input::Change { token, place, part, block, target, tag, asker, payload }) => {
                self.change((token, asker), tag, (place, part, block), target, payload);
            }
            (Phase::Serving, Input::Read { token, place, part, block, count, unit, snapshot }) => {
                self.read((token, snapshot), place, Range { part, block, count }, unit, leases);
            }
            (Phase::Serving, Input::Status { token, of, place, part, count }) => {
                self.status((token, of), place, (part, count), leases);
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
            Asked::Change { at, sequence, marks } => {
                let answer = asked::done(answer);
                self.marks_answered(at, (sequence, marks), &answer);
                self.change_answered(at, sequence, answer);
            }
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
            Asked::Restored { at, attempt } => self.restored_promoted(at, attempt, asked::done(answer)),
            Asked::Doubtful { at, attempt } => self.doubt_answered(at, attempt, asked::data(answer)),
            Asked::Proof { at, attempt } => self.proof_answered(at, attempt, asked::listing(answer)),
            Asked::Held { at, attempt } => self.held_answered(at, attempt, asked::held(answer)),
            asked @ (Asked::FoldRead { .. } | Asked::FoldWrite { .. } | Asked::FoldPromote { .. }) => {
                self.fold_answered(asked, answer);
            }
            Asked::RowParts { at, attempt } => self.row_parts_listed(at, attempt, asked::listing(answer)),
            Asked::RowMend { check, at } => self.row_mend_answered(check, at, asked::done(answer)),
            Asked::Snapshots(at) => self.snapshots_told(at, asked::snapshots(answer)),
            Asked::Snapshot { at, number } => self.snapshot_answered(at, number, asked::done(answer)),
            Asked::DropSnapshot { at, number } => {
                self.snapshot_dropped(at, number, asked::done(answer));
            }
            Asked::Backfill { at, attempt, step } => self.backfill_answered((at, attempt, step), answer),
            Asked::Damage(at) => self.damage_told(at, answer),
            Asked::Mend { at, attempt, step } => self.mend_answered((at, attempt, step), answer),
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
            Step::Gather { gather, at } => self.gather_answered(gather, at, asked::data(answer)),
            Step::RowCheck { check, at, source } => self.row_check_answered(check, (at, source), answer),
        }
    }

    /// The end: whatever was asked of it is returned.
    pub(crate) fn end(&mut self, end: End) {
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        self.goes_on = end == End::Passed;
        for input in std::mem::take(&mut self.held) {
            self.refuse_unowned(&input);
        }
        let works = std::mem::take(&mut self.works);
        for token in works.tokens() {
            self.out.push(Output::Done { token, result: Err(Failure::Unowned) });
        }
        self.asks.clear();
        self.gathers.clear();
        self.stalled.clear();
        self.resends.clear();
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
        if self.works.tokens().next().is_some()
            || (self.has_folds_left() || self.is_checking_rows()) && !self.has_closed
        {
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
        let waits = !self.reads_waiting.is_empty() || !self.stalled.is_empty();
        let is_short = self.short_until > self.now;
        let reads = waits.then(|| if is_short { self.short_until } else { self.now + limits::RETRY });
        let patience = self.patience_wake_at();
        let resends = (!self.resends.is_empty()).then_some(self.resend_at);
        let folds = self.folds_wake_at();
        members
            .chain(places)
            .chain(folds)
            .chain(self.marks_wake_at())
            .chain(self.barriers_wake_at())
            .chain(self.row_checks_wake_at())
            .chain(self.snapshots_wake_at())
            .chain(self.mending_wakes_at())
            .chain(resends)
            .chain(reads)
            .chain(self.recording.retry_at)
            .chain(patience)
            .min()
    }

    /// The watermark of a place: all ids up to it are decided.
    pub(crate) fn watermark(&self, place: u16) -> WriteId {
        let place = &self.places[place as usize];
        // What only a barrier holds back is with all.
        let is_owed = |(_, one): &(u64, &InFlight)| !one.waiting.is_empty();
        let first = place.in_flight.iter().find(is_owed);
        let sequence = first.map_or(place.sequence, |(first, _)| first - 1);
        WriteId { epoch: self.epoch, sequence }
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
    pub(crate) fn all(&self) -> SmallVec<[At; 8]> {
        let of_place = |(place, one): (u16, &Place)| {
            (0..one.members.len() as u8).map(move |member| At { place, member })
        };
        (0u16..).zip(&self.places).flat_map(of_place).collect()
    }
}

#[cfg(test)]
mod tests;
