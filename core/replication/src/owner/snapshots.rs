//! Snapshots of the disk: taken at one moment on all components that count, told the record, and deleted from components where the record
//! does not name them (docs/design/0047).

use super::Owner;
use super::asked::{Asked, Step, Unanswered};
use super::gather::{Gather, GatherFor};
use super::interface::{Event, Failure, Leases, Output, Phase};
use super::looked::{Around, Seen};
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::member_snapshots::MemberSnapshots;
use super::place::Place;
use super::taking::{Stage, Taking};
use super::work::{Key, ReadWork};
use crate::limits;
use crate::locks::Range;
use crate::roster::Roster;
use crate::rules::Rule;
use crate::snapshots::{NotTaken, Together};
use base::{ComponentId, Instant};
use std::time::Duration;
use wire::{Refusal, Request};

impl Owner {
    /// Whether changes do not begin because a snapshot is being taken.
    pub(crate) fn holds_for_snapshot(&self) -> bool {
        self.holds_for_taking() || self.holds_for_late_mark()
    }

    fn holds_for_taking(&self) -> bool {
        self.snapshots.taking.as_ref().is_some_and(Taking::holds)
    }

    /// Takes what is asked for, and has deleted what the record does not name.
    pub(crate) fn advance_snapshots(&mut self) {
        if self.recording.roster.snapshots.last == 0 {
            return;
        }
        if self.phase != Phase::Serving {
            if self.phase == Phase::Releasing {
                self.let_go_for_release();
            }
            return;
        }
        let rests = self.snapshots.rests_until.is_some_and(|until| until > self.now);
        let has_to_look = !rests && self.has_to_look();
        if !rests {
            self.snapshots.rests_until = None;
            self.ask_for_lists();
        }
        if has_to_look {
            self.drop_unnamed();
        }
        if !rests || self.snapshots.taking.is_some() {
            self.advance_taking();
        }
        self.advance_backfill(has_to_look);
    }

    /// Whether anything has changed, since this was asked last, by which snapshots are deleted from components or given to them.
    fn has_to_look(&mut self) -> bool {
        let snapshots = &mut self.snapshots;
        let around = Around {
            version: self.recording.version,
            is_idle: self.recording.is_idle(),
            is_open: self.recording.is_open(),
            taking: snapshots.taking.as_ref().map(|one| one.number),
            backfilling: snapshots.backfilling.as_ref().map(|one| one.attempt),
            is_resting: snapshots.backfills_rest_until.is_some_and(|until| until > self.now),
        };
        let members = self.places.iter().flat_map(|place| &place.members).map(|one| {
            let MemberSnapshots { numbers, dropping, unfit, is_known, .. } = &one.snapshots;
            Seen {
                is_active: one.is_active(),
                is_open: one.is_open(),
                has_wish: one.wish.is_some(),
                is_known: *is_known,
                numbers: [numbers.len(), dropping.len(), unfit.len()],
            }
        });
        snapshots.looked.update(around, members)
    }

    /// When that is to be called next if nothing happens.
    pub(crate) fn snapshots_wake_at(&self) -> Option<Instant> {
        if self.phase != Phase::Serving {
            return None;
        }
        let taking = self.snapshots.taking.as_ref().filter(|taking| taking.stage.is_before_marks());
        let gives_up = taking.map(|taking| taking.since + self.patience(taking));
        let wakes = [self.snapshots.rests_until, gives_up, self.backfill_wakes_at()];
        wakes.into_iter().flatten().min()
    }

    /// Changes that wait for a snapshot go on before the disk is let go of.
    fn let_go_for_release(&mut self) {
        if self.snapshots.taking.as_ref().is_some_and(|taking| taking.stage.is_before_marks()) {
            self.give_up_snapshot(NotTaken::Unready);
        }
        if self.snapshots.backfilling.as_ref().is_some_and(|one| one.calm.is_some()) {
            self.end_backfill(limits::RETRY);
        }
    }

    /// How long an attempt may stay as it is.
    fn patience(&self, taking: &Taking) -> Duration {
        if taking.holds() { self.hold_max() } else { limits::SNAPSHOT_FOLD_MAX }
    }

    /// How long changes wait for the attempt that is under way: longer each time that it was not enough.
    pub(crate) fn hold_max(&self) -> Duration {
        if self.snapshots.taking.as_ref().is_some_and(|taking| taking.is_together) {
            return limits::SNAPSHOT_HOLD_MAX; // There is no other attempt.
        }
        limits::SNAPSHOT_HOLD_MAX.min(limits::SNAPSHOT_HOLD * (1 << self.snapshots.overdue.min(8)))
    }

    fn ask_for_lists(&mut self) {
        for at in self.all() {
            let epoch = self.epoch;
            let member = self.member_mut(at);
            if !member.is_open() || member.snapshots.is_known || member.snapshots.is_asked {
                continue;
            }
            member.snapshots.is_asked = true;
            let (node, component) = (member.node, member.component);
            self.send(node, Asked::Snapshots(at), Request::Snapshots { component, epoch });
        }
    }

    pub(crate) fn snapshots_told(&mut self, at: At, answer: Result<Vec<u32>, Unanswered>) {
        let now = self.now;
        let member = self.member_mut(at);
        member.snapshots.is_asked = false;
        match answer {
            Ok(numbers) => {
                member.snapshots.is_known = true;
                member.snapshots.numbers.extend(numbers);
            }
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(_) => self.snapshots.rests_until = Some(now + limits::RETRY),
        }
    }

    /// Whether the record does not say that a component has a snapshot: it is not what is being taken, nor one that the record cannot know.
    fn is_unnamed(&self, component: ComponentId, number: u32) -> bool {
        let roster = &self.recording.roster;
        let lacks = roster.member(component).is_some_and(|one| one.lacks.contains(number));
        let is_named = roster.snapshots.has(number) && !lacks;
        let is_taking = self.snapshots.taking.as_ref().is_some_and(|taking| taking.number == number)
            || roster.snapshots.is_marked(number)
            || self.is_being_given(component, number);
        number <= roster.snapshots.last && !is_named && !is_taking
    }

    fn is_being_given(&self, component: ComponentId, number: u32) -> bool {
        let given = self.snapshots.backfilling.as_ref();
        given.is_some_and(|one| (one.component, one.number) == (component, number))
    }

    /// Has components delete what the record does not say that they have, but for what is being taken, and what it cannot know.
    fn drop_unnamed(&mut self) {
        if self.recording.is_open() && self.holds(Rule::DropOnlyUnnamed) {
            return; // The record may name one by now.
        }
        let epoch = self.epoch;
        let open: Vec<At> = self.all().into_iter().filter(|at| self.member(*at).is_open()).collect();
        for at in open {
            let member = self.member(at);
            let found = member.snapshots.numbers.difference(&member.snapshots.dropping).copied();
            let unnamed: Vec<u32> =
                found.filter(|number| self.is_unnamed(member.component, *number)).collect();
            let (node, component) = (member.node, member.component);
            for number in unnamed {
                self.member_mut(at).snapshots.dropping.insert(number);
                let request = Request::DropSnapshot { component, epoch, number };
                self.send(node, Asked::DropSnapshot { at, number }, request);
            }
        }
    }

    pub(crate) fn snapshot_dropped(&mut self, at: At, number: u32, answer: Result<u8, Unanswered>) {
        let member = self.member_mut(at);
        member.snapshots.dropping.remove(&number);
        match answer {
            Ok(_) | Err(Unanswered::Refused(Refusal::NoSnapshot)) => {
                member.snapshots.numbers.remove(&number);
            }
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(_) => self.snapshots.rests_until = Some(self.now + limits::RETRY),
        }
    }

    fn advance_taking(&mut self) {
        let asked = self.recording.roster.snapshots.asked;
        match self.snapshots.taking.as_ref().map(|taking| (&taking.stage, taking.since)) {
            None => {
                let together = self.recording.roster.snapshots.together;
                let marks_late = together == Some(Together::Mark) && !self.holds(Rule::MarkInOneHold);
                let is_fresh = |number: &u32| {
                    *number > self.snapshots.burned || !self.holds(Rule::NumberAttempts) || marks_late
                };
                let Some(number) = asked.filter(is_fresh).filter(|_| self.snapshots.not_taken.is_none())
                else {
                    return;
                };
                let is_ready =
                    |place: &Place| place.counting().all(|(_, one)| one.is_open() && one.wish.is_none());
                if !self.recording.is_idle()
                    || self.recording.is_unsettled
                    || !self.places.iter().all(is_ready)
                {
                    return; // The record that comes may say something else, and nothing is held back for what cannot be done.
                }
                if self.recording.roster.moving.is_some() {
                    self.snapshots.not_taken = Some(NotTaken::Layout);
                    return self.advance_record();
                }
                if together.is_some_and(|said| said != Together::Hold) && !marks_late {
                    return; // Who held changes back for it has let go.
                }
                self.snapshots.burned = self.snapshots.burned.max(number);
                let is_together = together.is_some();
                self.snapshots.taking =
                    Some(Taking { number, since: self.now, stage: Stage::Folding, is_together });
                self.advance_taking();
            }
            Some((Stage::Folding, since)) => {
                if self.is_folded() {
                    let (now, taking) = (self.now, self.snapshots.taking.as_mut().expect("it is under way"));
                    (taking.stage, taking.since) = (Stage::Draining, now);
                    self.advance_taking();
                } else if since + limits::SNAPSHOT_FOLD_MAX <= self.now {
                    self.give_up_snapshot(NotTaken::Unready);
                }
            }
            Some((Stage::Draining, since)) => {
                let is_drained = self.is_drained() && self.is_folded();
                if is_drained || !self.holds(Rule::DrainBeforeSnapshot) {
                    self.drained();
                } else if since + self.hold_max() <= self.now {
                    self.give_up_overdue();
                }
            }
            Some((Stage::Holding, since)) => {
                if self.recording.roster.snapshots.together == Some(Together::Mark) {
                    self.mark_all();
                } else if since + self.hold_max() <= self.now {
                    self.give_up_overdue();
                }
            }
            Some((Stage::Marking { .. }, since)) => {
                self.advance_marking();
                if self.holds_for_taking() && since + self.hold_max() <= self.now {
                    self.give_up_overdue();
                }
            }
            Some((Stage::Recording { .. } | Stage::AwaitingOthers { .. }, _)) => {}
        }
    }

    /// Nothing is under way any more: the snapshot is taken, or what is said of it is heard first.
    fn drained(&mut self) {
        let waits = self.holds(Rule::HoldTogether);
        match &mut self.snapshots.taking {
            Some(taking) if taking.is_together && waits => taking.stage = Stage::Holding,
            _ => self.mark_all(),
        }
    }

    /// Everything that was given is with all that count: these take the snapshot.
    fn mark_all(&mut self) {
        let Some(number) = self.snapshots.taking.as_ref().map(|taking| taking.number) else { return };
        let epoch = self.epoch;
        let active: Vec<At> = self.all().into_iter().filter(|at| self.member(*at).is_active()).collect();
        for &at in &active {
            let member = self.member(at);
            let (node, component) = (member.node, member.component);
            self.send(node, Asked::Snapshot { at, number }, Request::Snapshot { component, epoch, number });
        }
        if let Some(taking) = &mut self.snapshots.taking {
            taking.stage = Stage::Marking { waiting: active, marked: Vec::new() };
        }
    }

    pub(crate) fn snapshot_answered(&mut self, at: At, number: u32, answer: Result<u8, Unanswered>) {
        if answer.is_ok() {
            self.member_mut(at).snapshots.numbers.insert(number);
        }
        let component = self.member(at).component;
        let taking = self.snapshots.taking.as_mut().filter(|taking| taking.number == number);
        let is_current = taking.is_some();
        match answer {
            Ok(_) => {
                if let Some(Taking { stage: Stage::Marking { waiting, marked }, .. }) = taking {
                    waiting.retain(|one| *one != at);
                    marked.push(component);
                }
            }
            Err(Unanswered::Refused(Refusal::NotOpen)) => {
                self.lost_session(at);
                self.give_up(is_current);
            }
            // It may hold what was not known of.
            Err(Unanswered::Refused(Refusal::SnapshotRefused)) if self.may_be_held(at, is_current) => {
                self.ask_held_of_all(at.place);
                self.give_up(is_current);
            }
            Err(Unanswered::Refused(refusal @ (Refusal::NoSpace | Refusal::SnapshotRefused))) => {
                if is_current {
                    let is_full = refusal == Refusal::NoSpace;
                    self.snapshots.not_taken =
                        Some(if is_full { NotTaken::NoSpace } else { NotTaken::Refused });
                }
                self.give_up(is_current);
            }
            // Its disk group is being converted, or opened.
            Err(Unanswered::Refused(Refusal::Busy)) => self.give_up(is_current),
            Err(Unanswered::Refused(refusal)) => {
                self.failed(at, refusal);
                self.give_up(is_current);
            }
            Err(Unanswered::Lost) => self.give_up(is_current),
        }
    }

    /// Whether a member of rows refuses a mark because it may hold something, and is worth another attempt.
    fn may_be_held(&mut self, at: At, is_current: bool) -> bool {
        let is_worth = is_current && self.snapshots.refused < limits::SNAPSHOT_REFUSALS;
        let is_so = is_worth && self.places[usize::from(at.place)].code.is_some();
        self.snapshots.refused += u32::from(is_so);
        is_so
    }

    /// Whether those that have taken it are enough to read it from.
    fn is_enough_marked(&self, marked: &[ComponentId]) -> bool {
        self.places
            .iter()
            .all(|place| place.is_enough(place.active().filter(|(_, one)| marked.contains(&one.component))))
    }

    fn advance_marking(&mut self) {
        let gone: Vec<At> = self.all().into_iter().filter(|at| !self.member(*at).is_active()).collect();
        let now = self.now;
        let Some(taking) = &mut self.snapshots.taking else { return };
        let Stage::Marking { waiting, marked } = &mut taking.stage else { return };
        // The record has one out that was asked: it lacks the snapshot, and the others have it.
        waiting.retain(|at| !gone.contains(at));
        if !waiting.is_empty() {
            return;
        }
        let (marked, held_ns) = (std::mem::take(marked), now.since(taking.since).as_nanos() as u64);
        let is_together = taking.is_together;
        if !self.is_enough_marked(&marked) {
            return self.give_up_snapshot(NotTaken::Unready);
        }
        if let Some(taking) = &mut self.snapshots.taking {
            taking.stage = match is_together {
                true => Stage::AwaitingOthers { marked, held_ns },
                false => Stage::Recording { marked, held_ns },
            };
        }
        self.go_on_with_changes();
    }

    fn give_up(&mut self, is_current: bool) {
        if is_current && self.holds_for_taking() {
            self.give_up_snapshot(NotTaken::Unready);
        }
    }

    /// An attempt has failed. The next one begins in a while, under another number; of one for several disks there is none, and the record
    /// shall say why.
    fn give_up_snapshot(&mut self, why: NotTaken) {
        let was_together = self.snapshots.taking.take().is_some_and(|taking| taking.is_together);
        if was_together && self.holds(Rule::MarkInOneHold) {
            // Somebody else asks for the next one: who rests then keeps the other disks waiting in vain.
            self.snapshots.not_taken.get_or_insert(why);
        } else {
            self.snapshots.rests_until = Some(self.now + limits::RETRY);
        }
        self.go_on_with_changes();
    }

    /// Changes have waited for as long as they may. They go on for longer than that before the next attempt.
    fn give_up_overdue(&mut self) {
        if self.snapshots.taking.as_ref().is_some_and(|taking| taking.is_together) {
            return self.give_up_snapshot(NotTaken::NotHeld);
        }
        let rest = 4 * self.hold_max();
        self.snapshots.overdue += 1;
        self.give_up_snapshot(NotTaken::NotHeld);
        self.snapshots.rests_until = Some(self.now + rest);
    }

    pub(crate) fn go_on_with_changes(&mut self) {
        (0..self.places.len() as u16).for_each(|place| self.begin_changes(place));
    }

    /// Has the record say what came of the snapshot that is asked for, or under which number it is tried next. Says whether there is
    /// something to say.
    pub(crate) fn tell_snapshots(&self, roster: &mut Roster) -> bool {
        let is_swept = roster.snapshots.to_sweep && self.is_swept();
        roster.snapshots.to_sweep &= !is_swept;
        is_swept | self.tell_taken(roster) | self.tell_backfilled(roster)
    }

    /// Whether all components that count have deleted what the record does not name. The others do so when they are there again.
    fn is_swept(&self) -> bool {
        let has_named_alone = |one: &Member| {
            let is_known = one.is_open() && one.snapshots.is_known;
            is_known && one.snapshots.numbers.iter().all(|number| !self.is_unnamed(one.component, *number))
        };
        let mut counting = self.places.iter().flat_map(|place| place.counting());
        self.phase == Phase::Serving
            && self.snapshots.taking.is_none()
            && counting.all(|(_, one)| has_named_alone(one))
    }

    fn tell_taken(&self, roster: &mut Roster) -> bool {
        let Some(asked) = roster.snapshots.asked else { return false };
        match &self.snapshots.taking {
            Some(Taking { number, stage: Stage::Recording { marked, .. }, .. }) if *number == asked => {
                roster.snapshots.taken.push(asked);
                (roster.snapshots.asked, roster.snapshots.not_taken) = (None, None);
                let unmarked = |one: &&mut crate::Member| !marked.contains(&one.component);
                roster.members.iter_mut().filter(unmarked).for_each(|one| one.lacks.add(asked));
                true
            }
            Some(taking) if taking.number == asked => Owner::tell_together(taking, roster),
            Some(_) => false,
            None if roster.snapshots.is_marked(asked) => false,
            None if self.snapshots.not_taken.is_some() => {
                (roster.snapshots.asked, roster.snapshots.not_taken) = (None, self.snapshots.not_taken);
                (roster.snapshots.to_sweep, roster.snapshots.together) = (true, None);
                true
            }
            // An owner before this one held changes back, or this one has let go since.
            None if roster.snapshots.together.is_some() && self.has_let_go(roster, asked) => {
                (roster.snapshots.asked, roster.snapshots.not_taken) = (None, Some(NotTaken::Unready));
                (roster.snapshots.to_sweep, roster.snapshots.together) = (true, None);
                true
            }
            None if roster.snapshots.together.is_some() => false,
            None if asked <= self.snapshots.burned && self.phase == Phase::Serving => {
                if !self.holds(Rule::NumberAttempts) {
                    return false;
                }
                roster.snapshots.last += 1;
                roster.snapshots.asked = Some(roster.snapshots.last);
                true
            }
            None => false,
        }
    }

    /// Whether nobody holds changes back any more for a snapshot of several disks.
    fn has_let_go(&self, roster: &Roster, asked: u32) -> bool {
        let is_begun = asked <= self.snapshots.burned;
        let is_wrong = self.holds(Rule::MarkInOneHold);
        self.phase == Phase::Serving
            && is_wrong
            && (is_begun || roster.snapshots.together != Some(Together::Hold))
    }

    /// Has the record say how far the part of this disk is of a snapshot of several disks.
    fn tell_together(taking: &Taking, roster: &mut Roster) -> bool {
        let said = &mut roster.snapshots.together;
        match (&taking.stage, *said) {
            (Stage::Holding, Some(Together::Hold)) => *said = Some(Together::Held),
            (
                Stage::AwaitingOthers { marked, .. },
                Some(Together::Hold | Together::Held | Together::Mark),
            ) => {
                *said = Some(Together::Marked);
                let unmarked = |one: &&mut crate::Member| !marked.contains(&one.component);
                roster.members.iter_mut().filter(unmarked).for_each(|one| one.lacks.add(taking.number));
            }
            _ => return false,
        }
        true
    }

    /// The record was read: what it says of the snapshot that is being taken.
    pub(crate) fn note_snapshots(&mut self) {
        let known = &self.recording.roster.snapshots;
        let asked = known.asked;
        if let Some(why) = self.snapshots.not_taken.filter(|_| asked.is_none()) {
            self.snapshots.not_taken = None;
            self.out.push(Output::Event(Event::SnapshotNotTaken { why }));
        }
        let Some(Taking { number, stage, .. }) = &self.snapshots.taking else { return };
        let (number, is_held) = (*number, self.holds_for_taking());
        if self.recording.roster.snapshots.has(number) {
            let held_ns = match stage {
                Stage::Recording { held_ns, .. } | Stage::AwaitingOthers { held_ns, .. } => *held_ns,
                Stage::Folding | Stage::Draining | Stage::Holding | Stage::Marking { .. } => 0,
            };
            (self.snapshots.taking, self.snapshots.overdue, self.snapshots.refused) = (None, 0, 0);
            let held = Duration::from_nanos(held_ns);
            self.out.push(Output::Event(Event::SnapshotTaken { number, held }));
        } else if asked != Some(number) && !self.recording.is_open() {
            // Nobody wants it any more.
            self.snapshots.taking = None;
            if is_held {
                self.go_on_with_changes();
            }
        }
    }

    /// Asks a component for a part of a view, if that may be done now.
    pub(crate) fn try_view(&mut self, key: Key<ReadWork>, leases: &Leases) -> bool {
        let ReadWork { place, damaged, snapshot, position, .. } = self.works.reads[key];
        // Another owner may have taken it that this one does not know of.
        if self.holds(Rule::ReadUnderLeases) && !self.has_leases(place, leases) {
            return false;
        }
        let lacking = self.lacking(place, snapshot);
        let state = &self.places[usize::from(place)];
        let is_enough_but =
            |set: MemberSet| state.is_enough(state.active().filter(|(one, _)| !set.contains(*one)));
        if !self.has_snapshot(snapshot) || !is_enough_but(lacking) {
            self.view_is_gone(key);
            return true;
        }
        let except: MemberSet = damaged.iter().chain(lacking.iter()).collect();
        if !is_enough_but(except) {
            self.read_narrower(key, leases);
            return true;
        }
        let range = self.works.reads[key].next();
        let Range { part, block, count } = range;
        let member = match position {
            None => self.choose(place, part, except),
            Some(position) => self.choose_at(place, position, except),
        };
        let Some(member) = member else {
            return position.is_some_and(|position| self.gather_view(key, (position, range), except));
        };
        let at = At { place, member };
        let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
        let request = Request::View { component, epoch, snapshot, part, block, count };
        self.send(node, Asked::Step(Step::Read { work: key, at }), request);
        true
    }

    /// What a snapshot sees of a member of rows is put together from what it sees of others, if enough can be asked.
    fn gather_view(&mut self, key: Key<ReadWork>, (position, range): (u8, Range), except: MemberSet) -> bool {
        let ReadWork { place, damaged, snapshot, .. } = self.works.reads[key];
        let state = &self.places[usize::from(place)];
        let is_fit = |(member, one): &(u8, &Member)| one.is_open() && !except.contains(*member);
        if !state.is_enough(state.active().filter(is_fit)) || !self.may_gather(place, range) {
            return false;
        }
        let wanted = MemberSet::of(position);
        let mut gather = Gather::new(place, range, wanted, except, GatherFor::Read(key)).seen_by(snapshot);
        gather.is_damaged = !damaged.is_empty();
        self.gather(gather);
        true
    }

    /// Whether the disk has a snapshot, as far as this owner knows. One that waits for other disks may be there by now.
    pub(crate) fn has_snapshot(&self, snapshot: u32) -> bool {
        let recorded = &self.recording.roster.snapshots;
        recorded.has(snapshot) || recorded.is_marked(snapshot) || self.recorded_now(snapshot).is_some()
    }

    /// The members of a place that lack a snapshot. One that the record may name already, though this owner has not heard so, is on those that
    /// were marked.
    pub(crate) fn lacking(&self, place: u16, snapshot: u32) -> MemberSet {
        let roster = &self.recording.roster;
        let lacks = |component: ComponentId| match self.recorded_now(snapshot) {
            Some(marked) => !marked.contains(&component),
            None => roster.member(component).is_none_or(|one| one.lacks.contains(snapshot)),
        };
        let is_asked = self.holds(Rule::ViewFromWhole);
        let members = (0u8..).zip(&self.places[usize::from(place)].members);
        members.filter(|(_, one)| is_asked && lacks(one.component)).map(|(index, _)| index).collect()
    }

    /// The components that have a snapshot of which the record is just being told.
    fn recorded_now(&self, snapshot: u32) -> Option<&[ComponentId]> {
        let taking = self.snapshots.taking.as_ref().filter(|taking| taking.number == snapshot)?;
        match &taking.stage {
            Stage::Recording { marked, .. } | Stage::AwaitingOthers { marked, .. } => Some(marked),
            Stage::Folding | Stage::Draining | Stage::Holding | Stage::Marking { .. } => None,
        }
    }

    /// The snapshot that a read is of was deleted, or nobody who counts has it.
    fn view_is_gone(&mut self, key: Key<ReadWork>) {
        let (lock, read) = self.works.remove_read(key);
        self.out.push(Output::Done { token: read.token, result: Err(Failure::NoSnapshot) });
        if self.holds(Rule::ReadAfterWrites) {
            self.unlock(lock, read.place, read.range);
        }
    }
}
