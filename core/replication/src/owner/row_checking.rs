//! Rows are compared with one another, part by part, while their place is whole (docs/design/0040, 22).
//!
//! A group's scrub verifies each block by its checksum; nobody else verifies that parity agrees with data, which is what keeps data when a
//! member is lost. Members tell which parts they have anything of, then the checksums of a part; of the second parity unit, row by row,
//! those of their blocks times its coefficients. Guests read meanwhile, and changes of the columns wait. Rows that do not agree are read and
//! judged under the lock of a copy, and parity that is wrong is written as a fold writes it. `row_check` decides what agrees.

use super::Owner;
use super::asked::{self, Asked, Step, Unanswered};
use super::found::Found;
use super::interface::{Event, Lost, Output, Phase, RowCheckState};
use super::member::{At, Member};
use super::resync::{self, Listing};
use super::row_check::{Item, RowCheckWork, RowListing, Stage, Verdict, judge, look, sources};
use super::rows::row_of;
use super::work::Key;
use crate::limits;
use crate::locks::{Hold, Range};
use crate::rules::Rule;
use base::checksum::crc32c;
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION};
use base::{Instant, WriteId};
use layout::{Code, Unit};
use std::time::Duration;
use wire::{Answer, Refusal, Request, Versions};

/// How a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It cannot be made now: a member did not answer, or has damaged blocks there, which the scrub of its group finds.
    NotNow,
}

impl Owner {
    /// Rows are compared at so many bytes of a member a second; 0: not at all.
    pub fn set_row_check_pace(&mut self, bytes_per_second: u64) {
        self.row_checks.pace = bytes_per_second;
    }

    /// Whether there are rows to compare.
    pub fn checks_rows(&self) -> bool {
        self.phase == Phase::Serving && self.places.iter().any(|place| place.code.is_some())
    }

    /// What was found.
    pub(crate) fn row_check_state(&self) -> RowCheckState {
        let passed_ago = self.row_checks.passed_at.map(|at| self.now.since(at));
        RowCheckState { passed_ago, ..self.row_checks.state }
    }

    /// Whether a comparison is under way.
    pub(crate) fn is_checking_rows(&self) -> bool {
        self.works.row_checks.iter().next().is_some()
    }

    fn has_row_check_due(&self) -> bool {
        let is_resting = self.row_checks.listing.is_none() && !self.is_checking_rows();
        self.row_checks.pace > 0 && is_resting && self.checks_rows()
    }

    /// When the next comparison is due.
    pub(crate) fn row_checks_wake_at(&self) -> Option<Instant> {
        self.has_row_check_due().then_some(self.row_checks.next_at)
    }

    /// Begins the next comparison, if it is due.
    pub(crate) fn advance_row_checks(&mut self) {
        if !self.has_row_check_due() || self.now < self.row_checks.next_at {
            return;
        }
        match self.row_checks.items.pop_front() {
            Some(item) => self.check_rows(item),
            None => self.list_row_parts(),
        }
    }

    /// Comparing goes on after a rest that keeps the pace.
    fn rest_row_checks(&mut self, bytes: u64) {
        let pace = self.row_checks.pace.max(1);
        let rest = Duration::from_nanos(bytes * 1_000_000_000 / pace);
        self.row_checks.next_at = self.now.max(self.row_checks.next_at) + rest;
    }

    fn put_row_checks_off(&mut self) {
        self.row_checks.next_at = self.now + limits::ROW_CHECK_RETRY;
    }

    /// The code of a place of which every member is there.
    fn code_if_whole(&self, place: u16) -> Option<Code> {
        let state = &self.places[usize::from(place)];
        let is_well = |one: &Member| one.is_active() && one.is_open() && one.wish.is_none() && one.knows_held;
        let code = state.code?;
        let is_whole = state.known().all(is_well) && state.known().count() == usize::from(code.members());
        (is_whole && state.restore.is_none() && self.phase == Phase::Serving).then_some(code)
    }

    fn member_of(&self, place: u16, position: u8) -> At {
        let mut active = self.places[usize::from(place)].active();
        let found = active.find(|(_, one)| one.position == position);
        At { place, member: found.expect("the place is whole").0 }
    }

    /// Asks the members of a place which parts they have anything of, or ends the pass.
    fn list_row_parts(&mut self) {
        let rest = self.places.iter().skip(usize::from(self.row_checks.place));
        let Some(skipped) = rest.into_iter().position(|place| place.code.is_some()) else {
            return self.end_row_pass();
        };
        self.row_checks.place += skipped as u16;
        let (place, from_part) = (self.row_checks.place, self.row_checks.from_part);
        let Some(code) = self.code_if_whole(place) else { return self.await_whole_place(place) };
        self.attempts += 1;
        let (attempt, left) = (self.attempts, usize::from(code.members()));
        self.row_checks.listing = Some(RowListing { attempt, told: Vec::new(), left });
        for position in 0..code.members() {
            let at = self.member_of(place, position);
            let (node, component, epoch) = (self.member(at).node, self.member(at).component, self.epoch);
            let request = Request::Changed { component, epoch, since: WriteId::default(), from_part };
            self.send(node, Asked::RowParts { at, attempt }, request);
        }
    }

    /// A member of a place is missing: it is waited for, then the other places have their turn.
    fn await_whole_place(&mut self, place: u16) {
        self.put_row_checks_off();
        let checks = &mut self.row_checks;
        checks.waits += 1;
        if checks.waits < limits::ROW_CHECK_WAITS {
            return;
        }
        checks.items.retain(|one| one.place != place);
        (checks.waits, checks.has_passed_over) = (0, true);
        if checks.place == place {
            (checks.place, checks.from_part) = (place + 1, 0);
        }
    }

    fn end_row_pass(&mut self) {
        let checks = &mut self.row_checks;
        (checks.place, checks.from_part) = (0, 0);
        if std::mem::take(&mut checks.has_passed_over) {
            return self.rest_row_checks(limits::ROW_PASS_BYTES);
        }
        checks.passed_at = Some(self.now);
        let (state, before) = (checks.state, std::mem::replace(&mut checks.before, checks.state));
        self.out.push(Output::Event(Event::RowsChecked {
            rows: state.checked - before.checked,
            disagreeing: state.disagreeing - before.disagreeing,
            skipped: state.skipped - before.skipped,
        }));
        self.rest_row_checks(limits::ROW_PASS_BYTES);
    }

    /// A member told which parts it has anything of.
    pub(crate) fn row_parts_listed(&mut self, at: At, attempt: u32, answer: Result<Listing, Unanswered>) {
        let Some(listing) = self.row_checks.listing.as_mut().filter(|one| one.attempt == attempt) else {
            return;
        };
        let Ok(told) = answer else {
            self.row_checks.listing = None;
            self.put_row_checks_off();
            return self.note_unanswered(at, answer.err());
        };
        listing.told.push(told);
        listing.left -= 1;
        if listing.left > 0 {
            return;
        }
        let told = self.row_checks.listing.take().expect("it was just found").told;
        let Listing { parts, next } = resync::joined(told);
        let place = self.row_checks.place;
        let is_there = |versions: &Versions| matches!(versions, Versions::Regions(_));
        let parts = parts.into_iter().filter(|one| is_there(&one.versions));
        self.row_checks.items.extend(parts.map(|one| Item::part(place, one.part)));
        match next {
            Some(part) => self.row_checks.from_part = part,
            None => (self.row_checks.place, self.row_checks.from_part) = (place + 1, 0),
        }
    }

    fn check_rows(&mut self, item: Item) {
        let Some(code) = self.code_if_whole(item.place) else {
            self.row_checks.items.push_front(item);
            return self.await_whole_place(item.place);
        };
        self.row_checks.waits = 0;
        let is_clear = self.places[usize::from(item.place)].held.is_clear(&item.range);
        if !is_clear && usize::from(item.range.count) > BLOCKS_PER_REGION {
            return self.check_row_by_row(&item);
        }
        if !is_clear {
            return self.check_rows_later(item);
        }
        let key = self.works.add_row_check(RowCheckWork::new(item));
        self.works.row_checks[key].stage = Stage::Look { sources: sources(code, &item) };
        self.lock_row_check(key, Hold::Check);
    }

    /// Small changes are held of some rows of a part: the others do not wait for them.
    fn check_row_by_row(&mut self, item: &Item) {
        let rows: Vec<u16> = item.rows().collect();
        rows.into_iter().rev().for_each(|row| self.row_checks.items.push_front(item.row(row, item.parity)));
    }

    fn check_rows_later(&mut self, item: Item) {
        let tries = item.tries + 1;
        match tries < limits::ROW_CHECK_TRIES {
            true => self.row_checks.items.push_back(Item { tries, ..item }),
            false => self.row_checks.state.skipped += item.rows().count() as u64,
        }
        self.put_row_checks_off();
    }

    fn lock_row_check(&mut self, key: Key<RowCheckWork>, hold: Hold) {
        let Item { place, range, .. } = self.works.row_checks[key].item;
        let lock = self.works.row_checks.lock_key(key);
        if !self.holds(Rule::CheckApart) || self.locks.lock(lock, hold, &[(place, range)]) {
            self.begin_row_check(key);
        }
    }

    /// The columns are locked.
    pub(crate) fn begin_row_check(&mut self, key: Key<RowCheckWork>) {
        let Item { place, range, .. } = self.works.row_checks[key].item;
        let is_clear = self.places[usize::from(place)].held.is_clear(&range);
        let Some(code) = self.code_if_whole(place).filter(|_| is_clear) else {
            return self.end_row_check(key, Outcome::NotNow);
        };
        let Range { part, block, count } = range;
        let epoch = self.epoch;
        let asked: Vec<(u8, u8)> = match &self.works.row_checks[key].stage {
            Stage::Look { sources } => sources.iter().map(|one| (one.position, one.coefficient)).collect(),
            Stage::Read { .. } => (0..code.members()).map(|position| (position, 0)).collect(),
            Stage::Mend => unreachable!("it has the lock"),
        };
        self.works.row_checks[key].outstanding = asked.len() as u8;
        for (source, (position, coefficient)) in (0u8..).zip(asked) {
            let at = self.member_of(place, position);
            let (node, component) = (self.member(at).node, self.member(at).component);
            let request = match coefficient {
                0 => Request::Read { component, epoch, part, block, count, verify: true },
                _ => Request::Checksums { component, epoch, part, block, count, coefficient },
            };
            self.send(node, Asked::Step(Step::RowCheck { check: key, at, source }), request);
        }
    }

    /// A member told checksums, or gave data.
    pub(crate) fn row_check_answered(
        &mut self,
        key: Key<RowCheckWork>,
        (at, source): (At, u8),
        answer: Result<Answer, Lost>,
    ) {
        let position = self.member(at).position;
        let failure = match &mut self.works.row_checks[key].stage {
            Stage::Look { sources } => match asked::checksums(answer) {
                Ok(checksums) => {
                    sources[usize::from(source)].checksums = Some(checksums);
                    None
                }
                Err(why) => Some(why),
            },
            Stage::Read { found } => match asked::data(answer) {
                Ok(data) if data.is_intact() => {
                    found.put(position, data);
                    None
                }
                Ok(_) => Some(Unanswered::Lost),
                Err(why) => Some(why),
            },
            Stage::Mend => unreachable!("nothing is asked for any more"),
        };
        match failure {
            None => self.row_check_step(key),
            Some(why) => {
                self.note_unanswered(at, Some(why));
                self.row_check_failed(key);
            }
        }
    }

    /// A member did not tell what it was asked for.
    fn note_unanswered(&mut self, at: At, why: Option<Unanswered>) {
        match why {
            Some(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Some(Unanswered::Refused(refusal @ (Refusal::NoComponent | Refusal::DeviceLost))) => {
                self.unreadable(at, refusal);
            }
            Some(Unanswered::Refused(_) | Unanswered::Lost) | None => {}
        }
    }

    /// What a comparison asked for is not answered.
    pub(crate) fn row_check_failed(&mut self, key: Key<RowCheckWork>) {
        self.works.row_checks[key].has_failed = true;
        self.row_check_step(key);
    }

    fn row_check_step(&mut self, key: Key<RowCheckWork>) {
        let check = &mut self.works.row_checks[key];
        check.outstanding -= 1;
        match (check.outstanding, check.has_failed, &check.stage) {
            (1.., _, _) => {}
            (0, true, _) => self.end_row_check(key, Outcome::NotNow),
            (0, false, Stage::Look { .. }) => self.rows_looked(key),
            (0, false, Stage::Read { .. }) => self.row_read(key),
            (0, false, Stage::Mend) => {
                self.row_checks.state.mended += 1;
                self.end_row_check(key, Outcome::Done);
            }
        }
    }

    /// All checksums are there.
    fn rows_looked(&mut self, key: Key<RowCheckWork>) {
        let check = &self.works.row_checks[key];
        let (item, Stage::Look { sources }) = (check.item, &check.stage) else {
            unreachable!("members were asked for checksums")
        };
        let code = self.places[usize::from(item.place)].code.expect("it is of rows");
        let Some(looked) = look(code, &item, sources) else {
            return self.end_row_check(key, Outcome::NotNow);
        };
        let blocks = looked.rows.len() as u64 * BLOCKS_PER_REGION as u64;
        self.rest_row_checks((blocks * BLOCK_SIZE).max(limits::ROW_CHECK_BYTES_MIN));
        let is_last = item.parity + 1 == code.parity();
        let agrees = |row: &u16| !looked.disagreeing.contains(row);
        match is_last {
            true => {
                self.row_checks.state.checked += looked.rows.iter().filter(|row| agrees(row)).count() as u64;
            }
            // Also of rows of which nothing was found: the next parity unit may have a block all the same.
            false => {
                for row in item.rows().collect::<Vec<u16>>().into_iter().rev().filter(agrees) {
                    self.row_checks.items.push_front(item.row(row, item.parity + 1));
                }
            }
        }
        let Some((first, others)) = looked.disagreeing.split_first() else {
            return self.end_row_check(key, Outcome::Done);
        };
        others.iter().for_each(|row| self.row_checks.items.push_front(item.row(*row, item.parity)));
        // Guests read while checksums are compared, but not while it is found out what is right.
        let lock = self.works.row_checks.lock_key(key);
        let row = Item { tries: item.tries, ..item.row(*first, item.parity) };
        let check = &mut self.works.row_checks[key];
        (check.item, check.stage) = (row, Stage::Read { found: Box::new(Found::nothing(row.range)) });
        if self.holds(Rule::CheckApart) {
            self.unlock(lock, item.place, item.range);
        }
        self.lock_row_check(key, Hold::Copy);
    }

    /// The data of all members of a row are there.
    fn row_read(&mut self, key: Key<RowCheckWork>) {
        let check = &self.works.row_checks[key];
        let (Item { place, range, .. }, Stage::Read { found }) = (check.item, &check.stage) else {
            unreachable!("the row was read")
        };
        let Some(code) = self.code_if_whole(place) else { return self.end_row_check(key, Outcome::NotNow) };
        let Some(verdict) = judge(code, range, found, &self.settings.pool) else {
            return self.end_row_check(key, Outcome::NotNow);
        };
        self.row_checks.state.checked += 1;
        self.rest_row_checks(u64::from(range.count) * BLOCK_SIZE);
        match verdict.wrong.is_empty() {
            true => self.end_row_check(key, Outcome::Done),
            false => self.mend_row(key, code, verdict),
        }
    }

    /// Parity of a row does not agree with the data: it is made anew from these.
    fn mend_row(&mut self, key: Key<RowCheckWork>, code: Code, Verdict { wrong, implied }: Verdict) {
        let Item { place, range, .. } = self.works.row_checks[key].item;
        let row = row_of(range.part, range.block);
        let at_of = |owner: &Owner, unit| owner.member_of(place, code.position(row, unit));
        self.row_checks.state.disagreeing += 1;
        let first = wrong.first().expect("parity of it is wrong");
        let component = self.member(at_of(self, Unit::Parity(first.parity))).component;
        let implied = implied.map(|unit| self.member(at_of(self, Unit::Data(unit))).component);
        let (part, blocks) = (range.part, first.blocks);
        self.out.push(Output::Event(Event::RowDisagrees { component, part, blocks, implied }));
        let check = &mut self.works.row_checks[key];
        (check.stage, check.outstanding) = (Stage::Mend, wrong.len() as u8);
        for one in wrong {
            let at = at_of(self, Unit::Parity(one.parity));
            let checksums = one.right.chunks_exact(BLOCK_SIZE as usize).map(crc32c).collect();
            let (block, data) = ((one.range.part, one.range.block), smallvec::smallvec![one.right]);
            let request = self.copy_of_data(at, WriteId::default(), block, data, checksums);
            let node = self.member(at).node;
            self.send(node, Asked::RowMend { check: key, at }, request);
        }
    }

    /// A member was told parity that was made anew.
    pub(crate) fn row_mend_answered(
        &mut self,
        key: Key<RowCheckWork>,
        at: At,
        answer: Result<u8, Unanswered>,
    ) {
        match answer {
            Ok(_) => {}
            Err(Unanswered::Refused(Refusal::NotOpen)) => self.lost_session(at),
            Err(Unanswered::Refused(Refusal::Busy | Refusal::Damaged) | Unanswered::Lost) => {}
            Err(Unanswered::Refused(refusal)) => self.failed(at, refusal),
        }
        self.row_mended(key, answer.is_ok());
    }

    /// Parity that was made anew is on a member, or that is waited for no more.
    pub(crate) fn row_mended(&mut self, key: Key<RowCheckWork>, is_done: bool) {
        match is_done {
            true => self.row_check_step(key),
            false => self.row_check_failed(key),
        }
    }

    fn end_row_check(&mut self, key: Key<RowCheckWork>, outcome: Outcome) {
        let (lock, RowCheckWork { item, .. }) = self.works.remove_row_check(key);
        if self.holds(Rule::CheckApart) {
            self.unlock(lock, item.place, item.range);
        }
        match outcome {
            Outcome::Done => {}
            Outcome::NotNow => self.check_rows_later(item),
        }
    }
}
