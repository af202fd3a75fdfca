//! Changes: locked, numbered, sent to all that count or are brought up to date, acknowledged when all that count have them.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::happened::Known;
use super::in_flights::InFlight;
use super::interface::{Asker, Failure, Input, LeftBecause, Output, Payload, Phase, Reply, Token};
use super::member::{At, Member, OutAs};
use super::member_set::MemberSet;
use super::place::Place;
use super::resync::Resync;
use super::rows::{Sent, layer_of};
use super::work::{ChangeStage, ChangeWork, Key, Reader, Work};
use crate::limits;
use crate::locks::{Hold, LockKey, Range};
use crate::rules::Rule;
use base::{RequestTag, WriteId};
use layout::Target;
use smallvec::SmallVec;
use wire::{Entry, EntryKind, Refusal, Request, layer};

impl Owner {
    pub(crate) fn change(
        &mut self,
        (token, asker): (Token, Asker),
        tag: RequestTag,
        (place, part, block): (u16, u32, u16),
        target: Option<Target>,
        payload: Payload,
    ) {
        let state = &self.places[usize::from(place)];
        if target.is_some() != state.code.is_some() {
            // The layout that it was split by is not the one of this record.
            return self.out.push(Output::Done { token, result: Err(Failure::Unowned) });
        }
        let range = state.range_of(target, (part, block), &payload);
        assert!(range.count >= 1 && block + range.count <= 256, "a change lies within its part");
        let stage = ChangeStage::Waiting { payload, is_abandoned: false };
        let key = self.works.add_change(ChangeWork {
            token,
            place,
            range,
            target,
            tag,
            asker,
            copies: None,
            stage,
        });
        let lock = self.works.changes.lock_key(key);
        if self.locks.lock(lock, Hold::Change, &[(place, range)]) {
            self.change_locked(key);
        }
    }

    /// Whoever asked for changes is gone: what of these has not begun is not begun later. Nothing would be lost by it, for
    /// ranges are given in the order in which they were asked for; but a host that was fenced shall change nothing any more.
    pub(crate) fn abandon(&mut self, token: Token) {
        for change in self.works.changes.iter_mut().filter(|change| change.token == token) {
            if let ChangeStage::Waiting { is_abandoned, .. } = &mut change.stage {
                *is_abandoned = true;
            }
        }
        let is_it = |input: &Input| matches!(input, Input::Change { token: of, .. } if *of == token);
        let held = self.held.len();
        self.held.retain(|input| !is_it(input));
        for _ in self.held.len()..held {
            self.out.push(Output::Done { token, result: Err(Failure::Abandoned) });
        }
    }

    /// A work has its ranges locked.
    pub(crate) fn begin_work(&mut self, lock: LockKey) {
        match self.works.of(lock) {
            Work::Change(key) => self.change_locked(key),
            Work::Read(key) => self.reads_waiting.push_back(Reader::Read(key)),
            Work::Status(key) => self.reads_waiting.push_back(Reader::Status(key)),
            Work::Copy(key) => self.begin_copy(key),
            Work::Fold(key) => self.begin_fold(key),
            Work::RowCheck(key) => self.begin_row_check(key),
        }
    }

    pub(crate) fn change_locked(&mut self, key: Key<ChangeWork>) {
        let place = self.works.changes[key].place;
        self.places[usize::from(place)].waiting.push_back(key);
        self.begin_changes(place);
    }

    /// Begins the changes that have their ranges locked, as far as the window has room.
    pub(crate) fn begin_changes(&mut self, place: u16) {
        let is_held = self.holds_for_snapshot() && self.holds(Rule::HoldForSnapshot);
        while self.has_window_room(place) && !is_held {
            let Some(key) = self.places[place as usize].waiting.pop_front() else { return };
            self.begin_change(key);
        }
    }

    fn has_window_room(&self, place: u16) -> bool {
        let state = &self.places[place as usize];
        let span = state.in_flight.first().map_or(0, |first| state.sequence + 1 - first);
        (span as usize) < limits::WINDOW_CHANGES_MAX && state.in_flight_bytes < limits::WINDOW_BYTES_MAX
    }

    /// Gives the place a change of nothing, if its window has room.
    pub(crate) fn give_mark(&mut self, place: u16) {
        if self.has_window_room(place) {
            let range = Range { part: 0, block: 0, count: 0 };
            self.give(place, None, (range, layer::CONTENT), RequestTag::default(), Sent::nothing());
        }
    }

    fn begin_change(&mut self, key: Key<ChangeWork>) {
        let change = &mut self.works.changes[key];
        let (place, range, tag, target, known, layer) =
            (change.place, change.range, change.tag, change.target, change.known(), change.layer());
        let stage = std::mem::replace(&mut change.stage, ChangeStage::InFlight);
        let payload = match stage {
            ChangeStage::Waiting { payload, is_abandoned: false } => payload,
            ChangeStage::Waiting { .. } => return self.end_change_work(key, Err(Failure::Abandoned)),
            ChangeStage::Ready { sent } => {
                return self.give(place, Some(key), (range, layer), tag, sent);
            }
            ChangeStage::Gathering { .. }
            | ChangeStage::InFlight
            | ChangeStage::AcknowledgedPendingResync => unreachable!("a change begins once"),
        };
        // Looked up when its range is its own: it may have been under way when it was submitted again.
        if self.has_happened(&known) {
            return self.end_change_work(key, Ok(Reply::Changed));
        }
        match target {
            None => self.give(place, Some(key), (range, layer::CONTENT), tag, Sent::Same(payload)),
            Some(target) => self.begin_rows(key, target, payload),
        }
    }

    /// Gives a change the next number, and sends it to all that count or are brought up to date.
    fn give(
        &mut self,
        place: u16,
        work: Option<Key<ChangeWork>>,
        (range, layer): (Range, u8),
        tag: RequestTag,
        sent: Sent,
    ) {
        let counts_resync = self.holds(Rule::WaitForResyncing);
        let counts_stand_ins = self.holds(Rule::WaitForStandIns);
        let state = &mut self.places[place as usize];
        state.sequence += 1;
        let sequence = state.sequence;
        state.in_flight_bytes += sent.bytes();
        let mut waiting = MemberSet::EMPTY;
        for (member, one) in (0u8..).zip(&state.members).filter(|(_, one)| one.takes_changes()) {
            let is_waited_for = if one.stands_in_for().is_some() { counts_stand_ins } else { counts_resync };
            if one.is_active() || is_waited_for {
                waiting.insert(member);
            }
        }
        let targets: SmallVec<[u8; 4]> = (0u8..)
            .zip(&state.members)
            .filter(|(_, one)| one.takes_changes() && one.is_open())
            .map(|(member, _)| member)
            .collect();
        let apart: MemberSet = match layer::is_of_copies(layer) {
            true => {
                targets.iter().copied().filter(|member| !state.has_part(*member, layer, &range)).collect()
            }
            false => MemberSet::EMPTY,
        };
        if !apart.is_empty() {
            state.owed_since.get_or_insert(self.now);
        }
        let replaces = state.held.is_held(layer, &range);
        let (full, resends, is_taken_back, falls_back) = (MemberSet::EMPTY, 0, false, false);
        let in_flight = InFlight {
            work,
            range,
            tag,
            sent,
            layer,
            waiting,
            apart,
            owed: apart,
            full,
            resends,
            is_taken_back,
            replaces,
            falls_back,
        };
        state.in_flight.push(sequence, in_flight);
        if layer::is_of_copies(layer) {
            let id = WriteId { epoch: self.epoch, sequence };
            let members = 0..self.places[usize::from(place)].members.len() as u8;
            members.for_each(|member| self.note_copy(At { place, member }, (layer, &range), id));
        }
        for member in targets.into_iter().filter(|member| !apart.contains(*member)) {
            self.send_change(At { place, member }, sequence);
        }
        self.check_change(place, sequence);
    }

    /// Sends a change in flight to one component, and with it the numbers before it that this is owed.
    pub(crate) fn send_change(&mut self, at: At, sequence: u64) {
        let watermark = self.watermark(at.place);
        let epoch = self.epoch;
        let id = WriteId { epoch, sequence };
        let place = &mut self.places[at.place as usize];
        let member = &mut place.members[at.member as usize];
        // A component that is about to join keeps its window from the base on that the record will name; one that returns
        // keeps what may be void until that is undone. One that leaves knows no more than its ceiling says.
        let keeps_window = member.is_joining()
            || (member.is_leaving() && self.settings.rules.hold(Rule::TellLeavingNothing))
            || member.resync().is_some_and(Resync::keeps_window);
        let watermark = if keeps_window { WriteId::default() } else { watermark };
        let takes_holes =
            member.stands_in_for().is_none() || !self.settings.rules.hold(Rule::ZeroStandInsForTrims);
        member.note_told(watermark);
        let (node, component) = (member.node, member.component);
        let marks = place.in_flight.take_owed(at.member, sequence);
        let in_flight = place.in_flight.get_mut(sequence).expect("it is in flight");
        in_flight.owed.remove(at.member);
        let Range { part, block, .. } = in_flight.range;
        let kind = EntryKind::Guest(in_flight.tag);
        let is_apart = in_flight.apart.contains(at.member) && !in_flight.is_taken_back;
        let nothing = Payload::Trim { count: 0 };
        let payload = if is_apart { &nothing } else { in_flight.sent.to(member.position) };
        // Of rows of which its unit stays as it is, it gets the number alone. What is taken back it is told by the range of that.
        let of_rows =
            match self.settings.rules.hold(Rule::KeepReplaced) || layer::is_of_copies(in_flight.layer) {
                true => in_flight.layer,
                false => layer::CONTENT,
            };
        let has_no_part = payload.blocks() == 0 && !in_flight.is_taken_back;
        let (part, block) = if has_no_part { (0, 0) } else { (layer::layered(of_rows, part), block) };
        let request = match payload {
            Payload::Write { data, checksums } => Request::Write {
                component,
                epoch,
                id,
                watermark,
                marks,
                kind,
                part,
                block,
                data: data.clone(),
                checksums: checksums.clone(),
            },
            // What a stand-in holds are the blocks that were changed, so it must not take a hole for a change.
            Payload::Trim { count } if *count > 0 && !takes_holes => {
                let (data, checksums) = self.settings.zero_blocks(*count);
                Request::Write { component, epoch, id, watermark, marks, kind, part, block, data, checksums }
            }
            Payload::Trim { count } => {
                Request::Trim { component, epoch, id, watermark, marks, kind, part, block, count: *count }
            }
        };
        self.send(node, Asked::Change { at, sequence, marks }, request);
    }

    /// Sends what is in flight to a component that serves again, or that is being brought up to date from now on, but
    /// for what it has already.
    pub(crate) fn send_in_flight(&mut self, at: At, held: &[Entry]) {
        let epoch = self.epoch;
        let sequences: Vec<u64> =
            self.places[at.place as usize].in_flight.iter().map(|(sequence, _)| sequence).collect();
        for sequence in sequences {
            let id = WriteId { epoch, sequence };
            let counts = self.member(at).counts();
            let place = &mut self.places[at.place as usize];
            let Some(in_flight) = place.in_flight.get(sequence) else { continue };
            let is_apart = place.is_apart(at.member, in_flight);
            let in_flight = place.in_flight.get_mut(sequence).expect("it is in flight");
            let has_it = |entry: &Entry| entry.id == id && (entry.count == 0 || !in_flight.is_taken_back);
            if held.iter().any(has_it) {
                in_flight.is_with(at.member);
                self.check_change(at.place, sequence);
            } else if in_flight.owed.contains(at.member) {
                // It goes with a later one, or in a moment.
                place.owed_since.get_or_insert(self.now);
            } else if !counts || in_flight.waiting.contains(at.member) {
                in_flight.waiting.insert(at.member);
                if is_apart {
                    in_flight.apart.insert(at.member);
                }
                self.send_change(at, sequence);
            }
        }
    }

    pub(crate) fn change_answered(&mut self, at: At, sequence: u64, answer: Result<u8, Unanswered>) {
        let place = &mut self.places[at.place as usize];
        let Some(in_flight) = place.in_flight.get_mut(sequence) else { return };
        let is_apart = in_flight.apart.contains(at.member) && !in_flight.is_taken_back;
        match answer {
            Ok(congestion) => {
                in_flight.is_with(at.member);
                let of_copies = (in_flight.layer, in_flight.range);
                let is_made = !in_flight.is_taken_back;
                self.member_mut(at).congestion = congestion;
                if is_made && layer::is_of_copies(of_copies.0) {
                    let id = WriteId { epoch: self.epoch, sequence };
                    self.note_copy(at, (of_copies.0, &of_copies.1), id);
                }
                self.check_change(at.place, sequence);
            }
            Err(Unanswered::Lost) => {} // It is sent again when the component serves again, unless that leaves first.
            Err(Unanswered::Refused(Refusal::NoSpace)) if !is_apart => {
                in_flight.full.insert(at.member);
                self.check_change(at.place, sequence);
            }
            Err(Unanswered::Refused(Refusal::Damaged)) if in_flight.resends < limits::RESENDS_MAX => {
                in_flight.resends += 1;
                self.send_change(at, sequence);
            }
            Err(Unanswered::Refused(Refusal::Busy)) if place.code.is_some() => self.busy(at, sequence),
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(Unanswered::Refused(refusal)) => self.failed(at, refusal),
        }
    }

    /// A component holds as much as its group may that is not decided, or not counted by the parity. The watermark follows, and makes room;
    /// unless what other disks hold there waits for room that this one takes elsewhere. So the change is taken back after a while, by which all
    /// before and after it are decided, and is made again.
    fn busy(&mut self, at: At, sequence: u64) {
        let may_count = self.member(at).may_count();
        let place = &mut self.places[usize::from(at.place)];
        let Some(in_flight) = place.in_flight.get_mut(sequence) else { return };
        let is_of_copies = layer::is_of_copies(in_flight.layer);
        let most = if is_of_copies { limits::HELD_RESENDS_MAX } else { limits::ROW_RESENDS_MAX };
        let is_open = |key| matches!(self.works.changes[key].stage, ChangeStage::InFlight);
        let waits = in_flight.waiting_for_blocks().contains(at.member) && !in_flight.is_taken_back;
        let is_over = in_flight.resends >= most && waits && !in_flight.replaces;
        match in_flight.work {
            Some(key) if is_over && may_count && is_open(key) => {
                in_flight.falls_back = true;
                in_flight.full.insert(at.member);
                if is_of_copies {
                    place.held.full_until = Some(self.now + limits::HELD_PAUSE);
                }
                self.check_change(at.place, sequence);
            }
            _ => {
                in_flight.resends = in_flight.resends.saturating_add(u8::from(waits));
                self.resends.push((at, sequence));
                self.resend_at = self.now + limits::RETRY;
                place.settle_at.get_or_insert(self.now + limits::SETTLE_DELAY);
            }
        }
    }

    /// Sends changes again that a component could not take.
    pub(crate) fn send_again(&mut self) {
        if self.resend_at > self.now {
            return;
        }
        for (at, sequence) in std::mem::take(&mut self.resends) {
            let in_flight = self.places[usize::from(at.place)].in_flight.get(sequence);
            let waits = in_flight.is_some_and(|one| one.waiting.contains(at.member));
            if waits && self.member(at).is_open() {
                self.send_change(at, sequence);
            }
        }
    }

    /// A component cannot do what one that counts must: it leaves, or its resync is over.
    pub(crate) fn failed(&mut self, at: At, refusal: Refusal) {
        let why = LeftBecause::Refused(refusal);
        let now = self.now;
        self.member_mut(at).trouble = Some(why);
        match self.member(at).may_count() {
            true => self.want_out(at, OutAs::Absent, why),
            false => {
                let member = self.member_mut(at);
                let rest = member.rest_after(why, now);
                member.down(now, now + rest);
                self.drop_resync(at, why);
            }
        }
    }

    /// Ends a change that nobody is waited for any more.
    pub(crate) fn check_change(&mut self, place: u16, sequence: u64) {
        let state = &self.places[place as usize];
        let Some(in_flight) = state.in_flight.get(sequence) else { return };
        let is_held_back = state.holds_back(sequence);
        let is_with_all =
            !in_flight.waiting_for_blocks().intersects(state.awaited_for(in_flight, self.settings.rules));
        if is_with_all && !is_held_back && !in_flight.is_taken_back && state.is_enough(state.active()) {
            self.acknowledge(place, sequence);
            self.finish(place, sequence);
        }
        let state = &self.places[place as usize];
        let Some(in_flight) = state.in_flight.get(sequence) else { return };
        let unanswered = in_flight.waiting.without(in_flight.full);
        let asked = unanswered.without(in_flight.owed);
        if !asked.is_empty() || in_flight.full.is_empty() && !unanswered.is_empty() {
            return;
        }
        if in_flight.waiting.is_empty() && is_held_back && !in_flight.is_taken_back {
            return; // Looked at again once it may be acknowledged.
        }
        if in_flight.waiting.is_empty() {
            return self.end_change(place, sequence);
        }
        // All have answered, and some have no room. If none has it, it has not happened; else they must leave.
        let has_it = |(member, _): &(u8, &Member)| !in_flight.full.contains(*member);
        let mut joining = (0..).zip(&state.members).filter(|(_, one)| one.is_joining());
        let is_taken_back = in_flight.falls_back || self.yields_to_room(state, in_flight);
        let can_go_on = !is_taken_back && state.is_enough(state.active().filter(has_it));
        if joining.any(|one| has_it(&one)) && !can_go_on {
            return; // Nobody knows whether it counts: that is told with the record.
        }
        if can_go_on {
            let full = in_flight.full;
            for member in full.iter() {
                self.failed(At { place, member }, Refusal::NoSpace);
            }
            return;
        }
        if state.code.is_some() {
            return self.take_back(place, sequence);
        }
        // What a stand-in has then has never been: it must not count when the guest is told so.
        let with_room = state.counting().filter(has_it).map(|(member, _)| member);
        let with_room: SmallVec<[u8; 4]> = with_room.collect();
        if !with_room.is_empty() {
            let refused = |member| (At { place, member }, LeftBecause::Refused(Refusal::NoSpace));
            for (at, why) in with_room.into_iter().map(refused) {
                self.want_out(at, OutAs::Absent, why);
            }
            return;
        }
        self.turn_into_mark(place, sequence);
    }

    /// Whether a change of rows is refused before a member that counts leaves for want of room: what has moved already would lose its
    /// protection to what is copied.
    fn yields_to_room(&self, place: &Place, in_flight: &InFlight) -> bool {
        let is_optional = |key| {
            let change: &ChangeWork = &self.works.changes[key];
            change.asker == Asker::Move && matches!(change.stage, ChangeStage::InFlight)
        };
        let counts = |(member, _): (u8, &Member)| in_flight.full.contains(member);
        place.code.is_some()
            && !in_flight.replaces
            && in_flight.work.is_some_and(is_optional)
            && place.active().any(counts)
    }

    /// Nothing holds the changes of a place back any more.
    pub(crate) fn check_all_changes(&mut self, place: u16) {
        let sequences: Vec<u64> =
            self.places[usize::from(place)].in_flight.iter().map(|(sequence, _)| sequence).collect();
        sequences.into_iter().for_each(|sequence| self.check_change(place, sequence));
    }

    /// The record has changed: what waits for nothing but whether a component counts is decided.
    pub(crate) fn check_full_changes(&mut self) {
        for place in 0..self.places.len() as u16 {
            let full = self.places[place as usize].in_flight.iter().filter(|(_, one)| !one.full.is_empty());
            let sequences: Vec<u64> = full.map(|(sequence, _)| sequence).collect();
            sequences.into_iter().for_each(|sequence| self.check_change(place, sequence));
        }
    }

    /// Nobody has room: the guest is told, and the id becomes that of a change of nothing, so that none is missing.
    fn turn_into_mark(&mut self, place: u16, sequence: u64) {
        let state = &mut self.places[place as usize];
        let in_flight = state.in_flight.get_mut(sequence).expect("it is in flight");
        state.in_flight_bytes -= in_flight.sent.bytes();
        in_flight.sent = Sent::nothing();
        let full = std::mem::take(&mut in_flight.full);
        let waiting = in_flight.waiting;
        let work = in_flight.work.take();
        // One that is being brought up to date may have had room: what it holds now has never been.
        let resyncing =
            (0u8..).zip(&state.members).filter(|(_, one)| one.resync().is_some() && !one.counts());
        let has_it: SmallVec<[u8; 4]> =
            resyncing.map(|(member, _)| member).filter(|member| !full.contains(*member)).collect();
        for member in has_it {
            self.abort_resync(At { place, member }, LeftBecause::Refused(Refusal::NoSpace));
        }
        for member in waiting.iter() {
            if self.member(At { place, member }).is_open() {
                self.send_change(At { place, member }, sequence);
            }
        }
        if let Some(key) = work {
            self.end_change_work(key, Err(Failure::NoSpace));
        }
    }

    /// Too few have room for a change of rows, and others have it: those drop it, and its number becomes that of a change of nothing
    /// (docs/design/0040, "A change that a member has no room for").
    fn take_back(&mut self, place: u16, sequence: u64) {
        let state = &mut self.places[usize::from(place)];
        let in_flight = state.in_flight.get_mut(sequence).expect("it is in flight");
        state.in_flight_bytes -= in_flight.sent.bytes();
        let sent = std::mem::replace(&mut in_flight.sent, Sent::nothing());
        in_flight.is_taken_back = true;
        if let (Some(key), true) = (in_flight.work, in_flight.falls_back) {
            let change = &mut self.works.changes[key];
            change.stage = match change.copies.take() {
                Some(_) => ChangeStage::Waiting { payload: sent.into_payload(), is_abandoned: false },
                // Its range is still its own: what each member gets follows from the same blocks.
                None => ChangeStage::Ready { sent },
            };
        }
        (in_flight.full, in_flight.owed) = (MemberSet::EMPTY, MemberSet::EMPTY);
        let taking = (0u8..).zip(&state.members).filter(|(_, one)| one.takes_changes());
        in_flight.waiting = taking.map(|(member, _)| member).collect();
        for member in in_flight.waiting.iter() {
            if self.member(At { place, member }).is_open() {
                self.send_change(At { place, member }, sequence);
            }
        }
    }

    /// All that count have it: whoever asked for it is answered, though a component in resync may not have it yet. That one is waited
    /// for before it counts (docs/design/0021).
    fn acknowledge(&mut self, place: u16, sequence: u64) {
        let in_flight = &self.places[place as usize].in_flight[sequence];
        let Some(key) = in_flight.work else { return };
        let lock = self.works.changes.lock_key(key);
        let change = &mut self.works.changes[key];
        if matches!(change.stage, ChangeStage::AcknowledgedPendingResync) {
            return;
        }
        change.stage = ChangeStage::AcknowledgedPendingResync;
        let (token, range, asker, known) = (change.token, change.range, change.asker, change.known());
        if asker == Asker::Forwarded {
            self.note_ended(known);
        }
        self.out.push(Output::Done { token, result: Ok(Reply::Changed) });
        let granted = self.locks.acknowledge(lock, place, range);
        granted.into_iter().for_each(|lock| self.begin_work(lock));
    }

    /// A change that was acknowledged and is with all that have a part in it: others may change its range. It stays in flight until all have its
    /// number.
    fn finish(&mut self, place: u16, sequence: u64) {
        let in_flight = self.places[usize::from(place)].in_flight.get_mut(sequence);
        let Some(in_flight) = in_flight.filter(|one| !one.apart.is_empty()) else { return };
        if in_flight.waiting_for_blocks().is_empty()
            && in_flight.full.is_empty()
            && let Some(key) = in_flight.work.take()
        {
            self.end_change_work(key, Ok(Reply::Changed));
        }
    }

    /// Whether a change was acknowledged that a component has not got yet.
    pub(crate) fn has_trailing(&self, at: At) -> bool {
        let is_trailing = |one: &InFlight| {
            let stage = one.work.map(|key| &self.works.changes[key].stage);
            one.names(at.member) && matches!(stage, Some(ChangeStage::AcknowledgedPendingResync))
        };
        self.places[usize::from(at.place)].in_flight.iter().any(|(_, one)| is_trailing(one))
    }

    fn end_change(&mut self, place: u16, sequence: u64) {
        let is_taken_back = self.places[usize::from(place)].in_flight[sequence].is_taken_back;
        if !is_taken_back {
            self.acknowledge(place, sequence);
        }
        let state = &mut self.places[place as usize];
        let in_flight = state.in_flight.remove(sequence).expect("it is in flight");
        state.in_flight_bytes -= in_flight.sent.bytes();
        state.settle_at = Some(self.now + limits::SETTLE_DELAY);
        match is_taken_back {
            false if in_flight.layer >= layer::UNIT_FIRST => self.note_rows(place, &in_flight.range),
            // What members hold of the columns now is for them to say.
            true => {
                self.doubt_held(place, &in_flight.range);
                self.ask_held_of_all(place);
            }
            _ => {}
        }
        match in_flight.work {
            // Where the member without room has left instead, the rest have it.
            Some(key) if is_taken_back && in_flight.falls_back => self.change_locked(key),
            Some(key) if is_taken_back => self.end_change_work(key, Err(Failure::NoSpace)),
            Some(key) => self.end_change_work(key, Ok(Reply::Changed)),
            None => {}
        }
        self.begin_changes(place);
    }

    /// Ends a guest's change: answers, unless that is done, and unlocks its range.
    pub(crate) fn end_change_work(&mut self, key: Key<ChangeWork>, result: Result<Reply, Failure>) {
        let (lock, ChangeWork { token, place, range, stage, .. }) = self.works.remove_change(key);
        match stage {
            ChangeStage::AcknowledgedPendingResync => {}
            ChangeStage::Waiting { .. }
            | ChangeStage::Gathering { .. }
            | ChangeStage::Ready { .. }
            | ChangeStage::InFlight => {
                self.out.push(Output::Done { token, result });
            }
        }
        self.unlock(lock, place, range);
    }

    /// Unlocks a range: others begin.
    pub(crate) fn unlock(&mut self, lock: LockKey, place: u16, range: Range) {
        let granted = self.locks.unlock(lock, &[(place, range)]);
        granted.into_iter().for_each(|lock| self.begin_work(lock));
    }

    /// Nothing waits for a component any more: it left, or its resync is over.
    pub(crate) fn excuse(&mut self, at: At) {
        let place = &mut self.places[at.place as usize];
        let mut excused = Vec::new();
        for (sequence, in_flight) in place.in_flight.iter_mut() {
            if in_flight.waiting.contains(at.member) {
                in_flight.is_with(at.member);
                excused.push(sequence);
            }
        }
        for sequence in excused {
            self.check_change(at.place, sequence);
        }
    }

    /// Tells quiet places' components the watermark.
    pub(crate) fn advance_settling(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        let tells_leaving = !self.holds(Rule::TellLeavingNothing);
        for index in 0..self.places.len() as u16 {
            let place = &self.places[index as usize];
            if place.settle_at.is_none_or(|at| at > self.now) {
                continue;
            }
            let watermark = self.watermark(index);
            self.places[index as usize].settle_at = None;
            let count = self.places[index as usize].members.len() as u8;
            for at in (0..count).map(|member| At { place: index, member }) {
                let settles = !self.holds(Rule::SettleAfterResync) && self.member(at).resync().is_some();
                let member = self.member_mut(at);
                let takes = (member.counts() && (!member.is_leaving() || tells_leaving)) || settles;
                if takes && member.is_open() && member.watermark_sent < watermark {
                    member.note_told(watermark);
                    let (node, component) = (member.node, member.component);
                    let epoch = self.epoch;
                    let request =
                        Request::Settle { component, epoch, watermark, from_epoch: epoch, stable: false };
                    self.send(node, Asked::Settle, request);
                }
            }
        }
    }

    /// Whether a change has happened already.
    pub(crate) fn has_happened(&self, change: &Known) -> bool {
        self.holds(Rule::ApplyOnce) && self.happened.contains(change)
    }

    /// Whether any part of a request is known to have happened.
    pub fn knows(&self, tag: RequestTag) -> bool {
        self.holds(Rule::ApplyOnce) && self.happened.of(tag).next().is_some()
    }

    /// The blocks of a part of a request that are known to have happened in a place, of rows in what of them `target` says. They
    /// were cut as they are now, or otherwise, if the disk has moved since.
    pub fn happened(
        &self,
        tag: RequestTag,
        (place, target): (u16, Option<Target>),
        (part, blocks): (u32, std::ops::Range<u16>),
    ) -> impl Iterator<Item = std::ops::Range<u16>> {
        let part = layer::layered(layer_of(target), part);
        let count = blocks.end - blocks.start;
        let change = Known { tag, place, part, block: blocks.start, count };
        let found: SmallVec<[_; 1]> = self.happened.within(&change).collect();
        found.into_iter()
    }

    /// A change of another node's guest has ended. Those of this node's own guests are not submitted to this owner again.
    pub(crate) fn note_ended(&mut self, change: Known) {
        if change.tag != RequestTag::default() {
            self.happened.ended(change);
        }
    }
}
