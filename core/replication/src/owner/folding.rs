//! Folding: parity is made to count the small changes that it does not count yet (docs/design/0040, 16).
//!
//! Of each column every member of the parity gets its new parity, and holds its copies no more, in one batch; then the members of the data
//! let their bases go. Until that is answered nothing changes in the columns, and nobody decodes them. What members hold is known to an
//! owner that has seen it, or has asked for it: of a component that is opened it is asked before anything is folded.

use super::Owner;
use super::asked::{self, Asked, Unanswered};
use super::columns::{Held, Ids, Listed};
use super::data::Data;
use super::fold::{FoldFailure, FoldWork};
use super::fold_plan::{Plan, positions_of};
use super::interface::{Lost, Phase};
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::resync::Run;
use super::rows::row_of;
use super::work::{Key, ReadWork, Reader, Work};
use crate::limits;
use crate::locks::{Hold, LockKey, Range};
use crate::rules::Rule;
use base::checksum::crc32c;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use base::{Instant, WriteId};
use layout::Unit;
use smallvec::SmallVec;
use wire::{Answer, HeldRange, Refusal, Request, layer};

impl Owner {
    /// Asks a member of rows what it holds.
    pub(crate) fn ask_held(&mut self, at: At) {
        self.attempts += 1;
        let attempt = self.attempts;
        let member = self.member_mut(at);
        (member.held_attempt, member.knows_held) = (attempt, false);
        member.held_told.clear();
        self.ask_held_from(at, attempt, 0);
    }

    fn ask_held_from(&mut self, at: At, attempt: u32, from_part: u32) {
        let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
        self.send(node, Asked::Held { at, attempt }, Request::Held { component, epoch, from_part });
    }

    /// Asks all that count what they hold: nothing is served before that is known.
    pub(crate) fn ask_held_of_all(&mut self, place: u16) {
        let counting = self.places[usize::from(place)].counting().filter(|(_, one)| one.is_open());
        let counting: Vec<u8> = counting.map(|(member, _)| member).collect();
        counting.into_iter().for_each(|member| self.ask_held(At { place, member }));
    }

    /// A change was dropped that members may have taken to end what they held, and did not tell of: they may hold anything in its columns, until
    /// they have said.
    pub(crate) fn doubt_held(&mut self, place: u16, range: &Range) {
        let (now, ids) = (self.now, Ids { from: WriteId::default(), through: self.watermark(place) });
        let state = &mut self.places[usize::from(place)];
        let Some(code) = state.code.filter(|_| range.count > 0) else { return };
        for member in (0u8..).zip(&state.members).filter(|(_, one)| one.counts()).map(|(member, _)| member) {
            (0..code.data()).for_each(|unit| state.held.note(now, (member, unit), range, ids));
        }
    }

    pub(crate) fn held_answered(&mut self, at: At, attempt: u32, answer: Result<Listed, Unanswered>) {
        let now = self.now;
        if self.member(at).held_attempt != attempt || !self.member(at).is_open() {
            return;
        }
        let Listed { ranges, next } = match answer {
            Ok(listed) => listed,
            Err(Unanswered::Lost) => return, // The link's change starts over.
            Err(Unanswered::Refused(Refusal::NotOpen)) => return self.lost_session(at),
            Err(Unanswered::Refused(_)) if self.is_restored(at) => return self.not_restored(at),
            Err(Unanswered::Refused(refusal)) => return self.unreadable(at, refusal),
        };
        let member = self.member_mut(at);
        member.held_told.extend(ranges);
        if let Some(from_part) = next {
            return self.ask_held_from(at, attempt, from_part);
        }
        member.knows_held = true;
        let told = std::mem::take(&mut member.held_told);
        if self.is_restored(at) {
            return self.restored_holds(at, &told);
        }
        match self.member(at) {
            one if one.resync().is_some() => self.remake_held(at, &told),
            // What brought it up to date has ended meanwhile: it is asked again with the next attempt.
            one if !one.counts() => {}
            _ => {
                // Until now it was taken to hold all that it may.
                self.doubt_folds(at);
                let held = &mut self.places[usize::from(at.place)].held;
                held.forget(at.member);
                for HeldRange { part, block, count, through } in told {
                    let (of, part) = layer::split(part);
                    let range = Range { part, block, count };
                    held.note(now, (at.member, of - layer::COPY_FIRST), &range, through.into());
                }
            }
        }
        let state = &mut self.places[usize::from(at.place)];
        let is_settled =
            state.deciding.as_ref().is_some_and(|one| one.rolls_left == 0 && one.settles_left == 0);
        if self.phase == Phase::Opening && is_settled && state.counting().all(|(_, one)| one.knows_held) {
            state.is_ready = true;
        }
    }

    /// Parts of which a component that is brought up to date holds small changes are made anew, whatever it has there.
    fn remake_held(&mut self, at: At, told: &[HeldRange]) {
        let most = self.settings.copy_blocks_max;
        if !self.holds(Rule::RemakeHeld) {
            return;
        }
        let resync = self.member_mut(at).resync_mut().expect("it is brought up to date");
        told.iter().for_each(|one| resync.note_held(layer::split(one.part).1, one.through));
        for (part, id) in resync.held.clone() {
            for block in (0..BLOCKS_PER_EXTENT as u16).step_by(usize::from(most)) {
                let count = most.min(BLOCKS_PER_EXTENT as u16 - block);
                resync.runs.push_back(Run { range: Range { part, block, count }, id });
            }
        }
    }

    /// Whether a small change of a data unit is held as copies, and its parity computed later: all members are there, and hold the same of
    /// these columns.
    pub(crate) fn takes_copies(&self, place: u16, range: &Range, unit: u8) -> bool {
        let state = &self.places[usize::from(place)];
        let Some(code) = state.code else { return false };
        let is_well = |one: &Member| one.is_active() && one.is_open() && one.wish.is_none() && one.knows_held;
        let has_room = state.held.full_until.is_none_or(|until| until <= self.now)
            && state.held.blocks() < limits::HELD_BLOCKS_MAX;
        if !has_room
            || self.folds_for_snapshot()
            || self.phase != Phase::Serving
            || !state.known().all(is_well)
            || self.settings.fold_after.is_none()
        {
            return false;
        }
        let row = row_of(range.part, range.block);
        let members = |unit| self.members_of(place, row, unit);
        let mut of_unit = members(unit).iter().map(|member| state.held.holds(member, unit, range));
        let first = of_unit.next().flatten();
        let is_even = of_unit.all(|one| one == first) && state.held.is_even(range, members, code.data());
        first.is_some() && (is_even || !self.holds(Rule::EvenBeforeChange))
    }

    /// The members that hold small changes of a data unit: its own, and those of the parity.
    fn members_of(&self, place: u16, row: u64, unit: u8) -> MemberSet {
        let state = &self.places[usize::from(place)];
        let Some(code) = state.code else { return MemberSet::EMPTY };
        let positions: MemberSet = positions_of(code, row, unit).collect();
        state.active().filter(|(_, one)| positions.contains(one.position)).map(|(member, _)| member).collect()
    }

    /// A small change of a data unit goes to a member, or is there: it holds it.
    pub(crate) fn note_copy(&mut self, at: At, (of, range): (u8, &Range), id: WriteId) {
        let now = self.now;
        let state = &mut self.places[usize::from(at.place)];
        let (Some(code), true) = (state.code, layer::is_of_copies(of)) else { return };
        let (unit, position) = (of - layer::COPY_FIRST, state.members[usize::from(at.member)].position);
        let is_its = positions_of(code, row_of(range.part, range.block), unit).any(|one| one == position);
        if is_its && state.members[usize::from(at.member)].counts() {
            state.held.note(now, (at.member, unit), range, id.into());
        }
    }

    /// A change of whole rows is with all that count: nothing else is held of its columns any more.
    pub(crate) fn note_rows(&mut self, place: u16, range: &Range) {
        let state = &mut self.places[usize::from(place)];
        if state.held.is_clear(range) {
            return;
        }
        (0..state.members.len() as u8).for_each(|member| state.held.ended(member, None, range));
    }

    /// Whether all that count can be asked, and what they hold is known.
    fn can_fold(&self, place: u16) -> bool {
        let state = &self.places[usize::from(place)];
        let is_there = |one: &Member| one.is_open() && one.knows_held;
        state.active().all(|(_, one)| is_there(one)) && state.is_enough(state.active())
    }

    /// Folds columns of a row. Who waits for it without the lock of these is locked again after it.
    pub(crate) fn fold(&mut self, place: u16, range: Range, waiter: Option<LockKey>) {
        let key = self.works.add_fold(FoldWork::new(place, range, waiter));
        let lock = self.works.folds.lock_key(key);
        let of_waiter = waiter.map(|waiter| self.works.of(waiter));
        let has_lock = matches!(of_waiter, Some(Work::Change(_) | Work::Copy(_)));
        if has_lock || self.locks.lock(lock, Hold::Copy, &[(place, range)]) {
            self.begin_fold(key);
        }
    }

    /// The columns are locked.
    pub(crate) fn begin_fold(&mut self, key: Key<FoldWork>) {
        let (place, range) = (self.works.folds[key].place, self.works.folds[key].now);
        if self.places[usize::from(place)].held.is_clear(&range) {
            return self.fold_next(key);
        }
        if !self.can_fold(place) || self.places[usize::from(place)].rests(self.now) {
            return self.end_fold(key, Err(FoldFailure::NotNow));
        }
        let state = &self.places[usize::from(place)];
        match self.works.folds[key].plan(state, &state.held) {
            Plan::Promote => self.promote_folded(key),
            Plan::Impossible => self.end_fold(key, Err(FoldFailure::Damaged)),
            Plan::Narrow => {
                self.works.folds[key].now.count = 1;
                self.begin_fold(key);
            }
            Plan::Read(sources) => {
                let Range { part, block, count } = range;
                let asked: Vec<(u8, u8)> = sources.iter().map(|one| (one.member, one.layer)).collect();
                let fold = &mut self.works.folds[key];
                (fold.sources, fold.outstanding, fold.failure) = (sources, asked.len() as u8, None);
                for (source, (member, of)) in (0u8..).zip(asked) {
                    let at = At { place, member };
                    let (node, component, epoch) =
                        (self.member(at).node, self.member(at).component, self.epoch);
                    let part = layer::layered(of, part);
                    let request = Request::Read { component, epoch, part, block, count, verify: true };
                    self.send(node, Asked::FoldRead { fold: key, at, source }, request);
                }
            }
        }
    }

    fn fold_read(&mut self, key: Key<FoldWork>, at: At, source: u8, answer: Result<Data, Unanswered>) {
        let fold = &mut self.works.folds[key];
        fold.outstanding -= 1;
        let of = fold.sources[usize::from(source)].layer;
        match answer {
            Ok(data) if data.is_intact() => fold.sources[usize::from(source)].data = Some(data),
            Err(Unanswered::Refused(Refusal::Damaged)) => fold.damaged.push((at.member, of)),
            Ok(_) | Err(Unanswered::Lost) => fold.failure = Some(FoldFailure::NotNow),
            Err(Unanswered::Refused(refusal)) => {
                fold.failure = Some(FoldFailure::NotNow);
                match refusal {
                    Refusal::NotOpen | Refusal::Busy => self.lost_session(at),
                    Refusal::NoComponent | Refusal::DeviceLost => self.unreadable(at, refusal),
                    _ => {}
                }
            }
        }
        let fold = &self.works.folds[key];
        match (fold.outstanding, fold.failure) {
            (0, Some(failure)) => self.end_fold(key, Err(failure)),
            (0, None) if fold.sources.iter().any(|source| source.data.is_none()) => self.begin_fold(key),
            (0, None) if !self.holds(Rule::PromoteAfterFold) && self.has_bases(key) => {
                self.promote_folded(key)
            }
            (0, None) => self.write_folded(key),
            _ => {}
        }
    }

    /// All is known: members of the parity get what it is from now on.
    fn write_folded(&mut self, key: Key<FoldWork>) {
        let (place, range) = (self.works.folds[key].place, self.works.folds[key].now);
        if !self.can_fold(place) {
            return self.end_fold(key, Err(FoldFailure::NotNow)); // A member that counts was lost meanwhile.
        }
        let state = &self.places[usize::from(place)];
        let fold = &self.works.folds[key];
        let units = fold.parity_with_copies(state, &state.held);
        let Some(sums) = fold.parity(state, &state.held, &units, &self.settings.pool) else {
            return self.end_fold(key, Err(FoldFailure::NotNow));
        };
        if units.is_empty() {
            return self.promote_folded(key); // Those that held copies count no more.
        }
        let checksums: Vec<SmallVec<[u32; 2]>> =
            sums.iter().map(|sum| sum.chunks_exact(BLOCK_SIZE as usize).map(crc32c).collect()).collect();
        if !fold.is_proven(state, &units, &checksums) {
            return self.end_fold(key, Err(FoldFailure::Damaged)); // Memory fails, or the sum is wrong.
        }
        let id = state.held.through(range.part);
        let fold = &mut self.works.folds[key];
        (fold.sources, fold.outstanding) = (Vec::new(), units.len() as u8);
        for (((_, member), sum), checksums) in units.into_iter().zip(sums).zip(checksums) {
            let at = At { place, member };
            let data = smallvec::smallvec![sum];
            let request = self.copy_of_data(at, id, (range.part, range.block), data, checksums);
            let node = self.member(at).node;
            self.send(node, Asked::FoldWrite { fold: key, at }, request);
        }
    }

    fn fold_written(&mut self, key: Key<FoldWork>, at: At, answer: Result<u8, Unanswered>) {
        let range = self.works.folds[key].now;
        self.folded_blocks += if answer.is_ok() { u64::from(range.count) } else { 0 };
        self.fold_step(key, at, answer, |held, member| held.ended(member, None, &range));
        if self.works.folds.contains(key) && self.works.folds[key].outstanding == 0 {
            self.promote_folded(key);
        }
    }

    /// The data units of which members keep bases in what is folded now, with these members.
    fn bases(&self, key: Key<FoldWork>) -> Vec<(u8, u8)> {
        let fold = &self.works.folds[key];
        let state = &self.places[usize::from(fold.place)];
        let code = state.code.expect("it has parity");
        let of = |unit: u8| fold.members_of(state, Unit::Data(unit)).map(move |member| (unit, member));
        let units = (0..code.data()).flat_map(of);
        let holds = |(unit, member): &(u8, u8)| state.held.holds(*member, *unit, &fold.now) != Some(false);
        units.filter(holds).collect()
    }

    fn has_bases(&self, key: Key<FoldWork>) -> bool {
        !self.bases(key).is_empty()
    }

    /// Parity counts what was held: bases go.
    fn promote_folded(&mut self, key: Key<FoldWork>) {
        let (place, range) = (self.works.folds[key].place, self.works.folds[key].now);
        if !self.can_fold(place) {
            return self.end_fold(key, Err(FoldFailure::NotNow));
        }
        let units = self.bases(key);
        let state = &self.places[usize::from(place)];
        let through = state.held.through(range.part);
        self.works.folds[key].outstanding = units.len() as u8;
        if units.is_empty() {
            return self.fold_next(key);
        }
        for (unit, member) in units {
            let at = At { place, member };
            let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
            let Range { part, block, count } = range;
            let part = layer::layered(layer::COPY_FIRST + unit, part);
            let request = Request::Promote { component, epoch, part, block, count, through };
            self.send(node, Asked::FoldPromote { fold: key, at, unit }, request);
        }
    }

    fn fold_promoted(&mut self, key: Key<FoldWork>, at: At, unit: u8, answer: Result<u8, Unanswered>) {
        let range = self.works.folds[key].now;
        self.fold_step(key, at, answer, |held, member| held.ended(member, Some(unit), &range));
        if self.works.folds.contains(key) && self.works.folds[key].outstanding == 0 {
            self.fold_next(key);
        }
    }

    /// A member answered a step of a fold; the last answer ends one that failed.
    fn fold_step(
        &mut self,
        key: Key<FoldWork>,
        at: At,
        answer: Result<u8, Unanswered>,
        note: impl FnOnce(&mut Held, u8),
    ) {
        self.works.folds[key].outstanding -= 1;
        match answer {
            Ok(_) => note(&mut self.places[usize::from(at.place)].held, at.member),
            Err(why) => {
                self.works.folds[key].failure = Some(FoldFailure::NotNow);
                if matches!(why, Unanswered::Refused(_)) {
                    self.places[usize::from(at.place)].rest(self.now);
                }
                match why {
                    Unanswered::Refused(Refusal::NotOpen) => self.lost_session(at),
                    Unanswered::Refused(Refusal::Busy | Refusal::Damaged) => {}
                    Unanswered::Refused(refusal) => self.failed(at, refusal),
                    // It may have done it: what it holds is not known until it has said so.
                    Unanswered::Lost if self.member(at).is_open() => self.ask_held(at),
                    Unanswered::Lost => {}
                }
            }
        }
        let fold = &self.works.folds[key];
        if let (0, Some(failure)) = (fold.outstanding, fold.failure) {
            self.end_fold(key, Err(failure));
        }
    }

    /// The next columns, or the end.
    fn fold_next(&mut self, key: Key<FoldWork>) {
        match self.works.folds[key].go_on() {
            true => self.begin_fold(key),
            false => self.end_fold(key, Ok(())),
        }
    }

    fn end_fold(&mut self, key: Key<FoldWork>, result: Result<(), FoldFailure>) {
        let (lock, FoldWork { place, range, waiter, .. }) = self.works.remove_fold(key);
        let waiter = waiter.map(|waiter| self.works.of(waiter));
        if let Some(Work::Change(change)) = waiter {
            return self.change_folded(change, result);
        }
        if let Some(Work::Copy(copy)) = waiter {
            return self.copy_folded(copy, result);
        }
        if let Some(Work::Read(read)) = waiter {
            self.unlock(lock, place, range);
            return self.read_folded(read, result);
        }
        let held = &mut self.places[usize::from(place)].held;
        held.give_back(&range);
        if let Err(failure) = result {
            let pause = match failure {
                FoldFailure::NotNow => limits::RETRY,
                FoldFailure::Damaged => limits::RESYNC_RETRY,
            };
            held.retry_at = Some(self.now + pause);
        }
        self.unlock(lock, place, range);
    }

    /// The parity of columns that a read decodes counts all, or cannot be made to now.
    fn read_folded(&mut self, key: Key<ReadWork>, result: Result<(), FoldFailure>) {
        self.works.reads[key].is_lost = result == Err(FoldFailure::Damaged);
        let (lock, ReadWork { place, range, .. }) = (self.works.reads.lock_key(key), &self.works.reads[key]);
        if self.locks.lock(lock, Hold::Read, &[(*place, *range)]) {
            self.reads_waiting.push_back(Reader::Read(key));
        }
    }

    /// Begins the folds that are due: of what has been held for long, and of all where a member is missing or the disk is let go of.
    pub(crate) fn advance_folds(&mut self) {
        // Before the windows are decided nobody knows what is to be counted.
        if !matches!(self.phase, Phase::Serving | Phase::Releasing) || !self.has_served {
            return;
        }
        for place in 0..self.places.len() as u16 {
            while self.fold_is_due(place) {
                let Some(range) = self.places[usize::from(place)].held.take_row() else { break };
                self.fold(place, range, None);
            }
        }
    }

    fn fold_is_due(&mut self, place: u16) -> bool {
        let (now, is_releasing) = (self.now, self.phase == Phase::Releasing);
        let fold_after = self.settings.fold_after.unwrap_or_default();
        let (can_fold, for_snapshot) = (self.can_fold(place), self.folds_for_snapshot());
        let state = &mut self.places[usize::from(place)];
        let Some(oldest) = state.held.oldest() else { return false };
        let is_whole = state.known().all(|one| one.is_active() && one.is_open() && one.wish.is_none());
        let is_due = !is_whole
            || is_releasing
            || for_snapshot
            || oldest + fold_after <= now
            || state.held.blocks() >= limits::HELD_BLOCKS_MAX / 2
            || state.held.full_until.is_some_and(|until| until > now);
        can_fold
            && is_due
            && state.held.folding() < limits::FOLDS_MAX
            && state.held.retry_at.is_none_or(|at| at <= now)
    }

    /// When a fold is due next.
    pub(crate) fn folds_wake_at(&self) -> Option<Instant> {
        let fold_after = self.settings.fold_after.unwrap_or_default();
        let due = |held: &Held| match held.retry_at.filter(|at| *at > self.now) {
            Some(at) => Some(at),
            None => held.oldest().map(|since| since + fold_after),
        };
        // What is due already goes on with what it waits for.
        self.places.iter().filter_map(|place| due(&place.held)).filter(|at| *at > self.now).min()
    }

    /// A member does not count any more: what it holds does not matter.
    pub(crate) fn forget_held(&mut self, at: At) {
        self.places[usize::from(at.place)].held.forget(at.member);
        self.fail_folds(at);
    }

    /// What a member holds is not what it was taken to be when folds were planned that it gave something to: what that counts is not known.
    fn doubt_folds(&mut self, at: At) {
        let is_of_it = |fold: &&mut FoldWork| {
            fold.place == at.place && fold.sources.iter().any(|source| source.member == at.member)
        };
        for fold in self.works.folds.iter_mut().filter(is_of_it) {
            fold.failure = Some(FoldFailure::NotNow);
        }
    }

    /// A member is waited for no more: what folds asked of it is not answered.
    pub(crate) fn fail_folds(&mut self, at: At) {
        self.doubt_folds(at);
        let is_of_fold = |asked: &Asked| {
            matches!(asked, Asked::FoldRead { .. } | Asked::FoldWrite { .. } | Asked::FoldPromote { .. })
                || matches!(asked, Asked::RowMend { .. })
        };
        let asks =
            self.asks.iter().filter(|(_, one)| one.asked.member() == Some(at) && is_of_fold(&one.asked));
        let asks: Vec<usize> = asks.map(|(index, _)| index).collect();
        for index in asks {
            let asked = std::mem::replace(&mut self.asks[index].asked, Asked::GivenUp(at));
            self.member_mut(at).late += 1;
            match asked {
                Asked::RowMend { check, .. } => self.row_mended(check, false),
                asked => self.fold_answered(asked, Err(Lost)),
            }
        }
    }

    /// A step of a fold was answered.
    pub(crate) fn fold_answered(&mut self, asked: Asked, answer: Result<Answer, Lost>) {
        match asked {
            Asked::FoldRead { fold, at, source } => self.fold_read(fold, at, source, asked::data(answer)),
            Asked::FoldWrite { fold, at } => self.fold_written(fold, at, asked::done(answer)),
            Asked::FoldPromote { fold, at, unit } => self.fold_promoted(fold, at, unit, asked::done(answer)),
            _ => unreachable!("it is of a fold"),
        }
    }

    /// Whether folds are under way, or can be begun, that a release waits for.
    pub(crate) fn has_folds_left(&self) -> bool {
        self.has_served
            && (0..self.places.len() as u16).any(|place| {
                let held = &self.places[usize::from(place)].held;
                held.folding() > 0 || !held.is_empty() && held.retry_at.is_none() && self.can_fold(place)
            })
    }
}
