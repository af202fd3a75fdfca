//! Gives components the snapshots that they lack, once they count: those that were taken while they were away, or before they were made (docs/design/0051).
//!
//! One snapshot of one component at a time, the newest first: what it has in common with newer ones is there already, then. Nothing is locked, for what
//! snapshots see does not change, and nobody reads it from the component before the record says that it has the snapshot.

use super::Owner;
use super::asked::{self, Asked, Unanswered};
use super::backfilling::{BackfillStep, Backfilling, Filling, Stage, Survey, Surveys};
use super::data::Data;
use super::found::Found;
use super::gather::{Gather, GatherFailure, GatherFor};
use super::interface::{Event, Output, Phase};
use super::member::{At, Member};
use super::member_set::MemberSet;
use super::status::is_beginning;
use crate::limits;
use crate::locks::Range;
use crate::roster::Roster;
use crate::rules::Rule;
use base::Instant;
use base::request::{StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, COMPONENT_SIZE_MAX, EXTENT_SIZE};
use layout::{Layout, Side};
use std::time::Duration;
use wire::limits::ALLOCATION_PARTS_MAX;
use wire::{Answer, Refusal, Request};

/// Parts that a component has at most.
const PARTS_MAX: u32 = (COMPONENT_SIZE_MAX / EXTENT_SIZE) as u32;

impl Owner {
    /// Goes on with giving a component a snapshot, or begins to.
    pub(crate) fn advance_backfill(&mut self, may_begin: bool) {
        if self.snapshots.backfilling.as_ref().is_some_and(|one| !self.may_go_on(one)) {
            self.end_backfill(limits::RETRY);
        }
        if self.snapshots.backfilling.is_none() && may_begin {
            self.begin_backfill();
        }
        let now = self.now;
        let Some(one) = &self.snapshots.backfilling else { return };
        match one.stage {
            Stage::Marking { ask_at: Some(ask_at) } if ask_at <= now => self.mark_once_calm(),
            Stage::Marking { .. } | Stage::Syncing => {}
            Stage::Filling => self.fill(),
            Stage::Recording => self.note_backfilled(),
        }
    }

    /// When that is to be called next if nothing happens.
    pub(crate) fn backfill_wakes_at(&self) -> Option<Instant> {
        match &self.snapshots.backfilling {
            Some(Backfilling { stage: Stage::Marking { ask_at: Some(ask_at) }, calm, .. }) => {
                Some(calm.map_or(*ask_at, |calm| calm.since() + self.calm_patience(calm)))
            }
            Some(one) if one.rests_until > self.now => Some(one.rests_until),
            Some(one) => one.is_asking().then_some(one.heard_at + limits::BACKFILL_PATIENCE),
            None => self.snapshots.backfills_rest_until.filter(|until| *until > self.now),
        }
    }

    fn may_go_on(&self, one: &Backfilling) -> bool {
        let member = self.member(one.at);
        let is_there = member.component == one.component && member.is_active() && member.is_open();
        let is_wanted = self.recording.roster.snapshots.has(one.number);
        let is_heard = one.heard_at + limits::BACKFILL_PATIENCE > self.now || !one.is_asking();
        is_there && is_wanted && is_heard && member.snapshots.filling == Some(one.number)
    }

    fn begin_backfill(&mut self) {
        if self.snapshots.backfills_rest_until.is_some_and(|until| until > self.now) {
            return;
        }
        self.snapshots.backfills_rest_until = None;
        if !self.recording.is_idle() || self.snapshots.taking.is_some() {
            return; // The record that comes may say something else.
        }
        let taken = &self.recording.roster.snapshots.taken;
        let due = taken.iter().rev().find_map(|number| {
            let at = self.all().into_iter().find(|at| self.is_to_get(*at, *number))?;
            Some((at, *number))
        });
        let Some((at, number)) = due else { return };
        self.attempts += 1;
        let (attempt, now) = (self.attempts, self.now);
        let member = self.member_mut(at);
        member.snapshots.filling = Some(number);
        let component = member.component;
        self.snapshots.backfilling = Some(Backfilling::new((at, component), number, attempt, now));
    }

    /// Whether a component lacks a snapshot that it can be given now. What is left of a former attempt is deleted first.
    fn is_to_get(&self, at: At, number: u32) -> bool {
        let member = self.member(at);
        let snapshots = &member.snapshots;
        let is_ready = member.is_active() && member.is_open() && member.wish.is_none() && snapshots.is_known;
        is_ready
            && self.lacks(at, number)
            && !snapshots.numbers.contains(&number)
            && !snapshots.unfit.contains(&number)
            && self.has_givers(at, number)
    }

    fn lacks(&self, at: At, number: u32) -> bool {
        let recorded = self.recording.roster.member(self.member(at).component);
        recorded.is_none_or(|one| one.lacks.contains(number))
    }

    /// A component that has the snapshot, and may give it to another one, and where a part of that stands in it. If the disk has just moved into another layout, that is one
    /// of the former layout: it has the snapshots until all of the other one do.
    fn giver(&self, target: At, number: u32, part: u32) -> Option<(At, u32)> {
        if let Some(giver) = self.giver_in(target.place, target, number) {
            return Some((giver, part));
        }
        let layout = self.passed_into(target)?;
        let (place, offset) = layout.on_old_side(usize::from(target.place), u64::from(part) * EXTENT_SIZE)?;
        Some((self.giver_in(place as u16, target, number)?, (offset / EXTENT_SIZE) as u32))
    }

    /// Whether each part of it is given by somebody. Of what some place of the former layout has lost, nothing is begun: it would keep the others waiting.
    fn has_givers(&self, target: At, number: u32) -> bool {
        if self.places[usize::from(target.place)].code.is_some() {
            return self.givers_of_rows(target, number).is_some();
        }
        let has_giver = |place: u16| self.giver_in(place, target, number).is_some();
        let first = || self.passed_into(target)?.side(Side::New).map(|(first, _)| first as u16);
        has_giver(target.place) || first().is_some_and(|first| (0..first).all(has_giver))
    }

    /// The other members of rows that have the snapshot, if they are enough to tell what one sees that lacks it.
    fn givers_of_rows(&self, target: At, number: u32) -> Option<Vec<At>> {
        let state = &self.places[usize::from(target.place)];
        let is_fit = |(member, one): &(u8, &Member)| {
            let at = At { place: target.place, member: *member };
            at != target && one.is_open() && one.wish.is_none() && !self.lacks(at, number)
        };
        let fit = || state.active().filter(is_fit);
        let ats = || fit().map(|(member, _)| At { place: target.place, member }).collect();
        state.is_enough(fit()).then(ats)
    }

    /// Both layouts of the disk, if all that it has now stands in the one that it moves to, and a component is of that.
    fn passed_into(&self, at: At) -> Option<&Layout> {
        let layout = self.settings.moving.as_deref()?;
        let has_passed = self.recording.roster.moving.is_some_and(|moved| moved.boundary == layout.size());
        let (first, _) = layout.side(Side::New)?;
        (has_passed && usize::from(at.place) >= first).then_some(layout)
    }

    fn giver_in(&self, place: u16, target: At, number: u32) -> Option<At> {
        let at = |member: u8| At { place, member };
        let place = &self.places[usize::from(place)];
        let is_fit = |(member, one): &(u8, &Member)| {
            at(*member) != target && one.is_open() && one.wish.is_none() && !self.lacks(at(*member), number)
        };
        let near =
            place.active().filter(is_fit).min_by_key(|(_, one)| (!one.is_prompt(), one.node != self.me.node));
        near.map(|(member, _)| at(member))
    }

    /// What has come of it so far is left to be deleted; it is tried again after a while.
    pub(crate) fn end_backfill(&mut self, rest: Duration) {
        self.end_calm();
        let Some(one) = self.snapshots.backfilling.take() else { return };
        self.snapshots.backfills_rest_until = Some(self.now + rest);
        let member = self.member_mut(one.at);
        if member.component == one.component {
            member.snapshots.filling = None;
        }
    }

    /// The component cannot be given the snapshot in this session.
    fn give_backfill_up(&mut self) {
        if let Some(Backfilling { at, number, .. }) = self.snapshots.backfilling {
            self.member_mut(at).snapshots.unfit.insert(number);
        }
        self.end_backfill(limits::RETRY);
    }

    fn ask_for_backfill(&mut self, at: At, step: BackfillStep, request: Request) {
        let now = self.now;
        let Some(one) = &mut self.snapshots.backfilling else { return };
        one.heard_at = now;
        let (attempt, node) = (one.attempt, self.member(at).node);
        self.send(node, Asked::Backfill { at, attempt, step }, request);
    }

    pub(crate) fn mark_late(&mut self) {
        let epoch = self.epoch;
        let Some(one) = &mut self.snapshots.backfilling else { return };
        one.stage = Stage::Marking { ask_at: None };
        let (at, component, number) = (one.at, one.component, one.number);
        self.member_mut(at).snapshots.numbers.insert(number);
        self.ask_for_backfill(at, BackfillStep::Mark, Request::LateSnapshot { component, epoch, number });
    }

    /// Asks what may differ, and compares that.
    fn fill(&mut self) {
        let Some(one) = &self.snapshots.backfilling else { return };
        if one.surveys.is_none() && one.next_part < PARTS_MAX && one.ranges.len() < limits::BACKFILL_RANGES {
            self.survey();
        }
        while self.allowance > 0
            && let Some(one) = &mut self.snapshots.backfilling
            && one.rests_until <= self.now
            && one.fillings.len() < limits::BACKFILLS_MAX
            && let Some(range) = one.ranges.pop_front()
        {
            one.fillings.push(Filling::new(range));
            self.allowance -= (u64::from(range.count) * BLOCK_SIZE) as i64;
            self.compare(range.part, range.block);
        }
        let Some(one) = &mut self.snapshots.backfilling else { return };
        if one.surveys.is_none() && one.next_part >= PARTS_MAX && !one.wants_pace() {
            let (at, component, number, epoch) = (one.at, one.component, one.number, self.epoch);
            let is_awaited = self.settings.rules.hold(Rule::RecordStableBackfills);
            one.stage = if is_awaited { Stage::Syncing } else { Stage::Recording };
            self.ask_for_backfill(at, BackfillStep::Sync, Request::SyncBackfill { component, epoch, number });
        }
    }

    /// Asks both sides which blocks the snapshot sees otherwise than another one that all have; if there is none, which it has.
    fn survey(&mut self) {
        let Some(one) = &self.snapshots.backfilling else { return };
        let (at, number, from) = (one.at, one.number, one.next_part);
        let of_rows = self.places[usize::from(at.place)].code.is_some();
        let Some(givers) = self.givers(at, number, from) else { return self.end_backfill(limits::RETRY) };
        let of = self.survey_of(at, givers.iter().map(|((giver, _), _)| *giver), number);
        let counts = givers.iter().map(|(_, count)| *count);
        let count: u32 = if of_rows { counts.max().unwrap_or_default() } else { counts.sum() };
        let (asks_target, epoch) = (self.holds(Rule::SurveyBoth), self.epoch);
        let Some(one) = &mut self.snapshots.backfilling else { return };
        if givers.is_empty() {
            one.next_part = PARTS_MAX;
            return;
        }
        let of_givers = givers.iter().map(|(_, parts)| Survey { parts: *parts, runs: None }).collect();
        let nothing = || vec![StatusRun { len: u64::from(count) * EXTENT_SIZE, is_set: false }];
        one.surveys = Some(Surveys { from, of_rows, of_givers, of_target: (!asks_target).then(nothing) });
        let of_givers = (0u16..).zip(givers).map(|(index, (giver, count))| (Some(index), giver, count));
        let of_target = asks_target.then_some((None, (at, from), count));
        for (giver, (asked, part), count) in of_givers.chain(of_target) {
            let component = self.member(asked).component;
            let request = Request::Allocation { component, epoch, of, part, count: count as u16 };
            self.ask_for_backfill(asked, BackfillStep::Survey { giver }, request);
        }
    }

    /// Who gives the parts of a component from one on, as many as are asked for at once: runs of parts that stand side by side in one that gives. None if some are given by nobody
    /// now; no runs beyond the end of the disk, which another layout does not have.
    fn givers(&self, at: At, number: u32, from: u32) -> Option<Vec<((At, u32), u32)>> {
        let end = from + (PARTS_MAX - from).min(ALLOCATION_PARTS_MAX as u32);
        if self.places[usize::from(at.place)].code.is_some() {
            // What changes of one member changes of another one, too: parity with data, and data with parity.
            let givers = self.givers_of_rows(at, number)?;
            return Some(givers.into_iter().map(|giver| ((giver, from), end - from)).collect());
        }
        if let Some(giver) = self.giver_in(at.place, at, number) {
            return Some(vec![((giver, from), end - from)]);
        }
        let layout = self.passed_into(at)?;
        let mut runs: Vec<((At, u32), u32)> = Vec::new();
        for part in from..end {
            if layout.on_old_side(usize::from(at.place), u64::from(part) * EXTENT_SIZE).is_none() {
                break;
            }
            let (giver, there) = self.giver(at, number, part)?;
            let is_full = runs.len() == limits::BACKFILL_SURVEYS;
            match runs.last_mut() {
                Some(((of, first), count)) if *of == giver && *first + *count == there => *count += 1,
                _ if is_full => break,
                _ => runs.push(((giver, there), 1)),
            }
        }
        Some(runs)
    }

    /// The nearest snapshot that all have tells the least, a newer one before an older one.
    fn survey_of(&self, at: At, givers: impl Iterator<Item = At>, number: u32) -> StatusOf {
        let roster = &self.recording.roster;
        let givers: Vec<At> = givers.collect();
        let has = |other: &&u32| {
            let is_told = self.member(at).snapshots.numbers.contains(other);
            is_told && !self.lacks(at, **other) && !givers.iter().any(|giver| self.lacks(*giver, **other))
        };
        let taken = roster.snapshots.taken.iter();
        let newer = taken.clone().filter(|other| **other > number).find(has);
        match newer.or_else(|| taken.rev().filter(|other| **other < number).find(has)) {
            Some(other) => StatusOf::Changes { since: number.min(*other), snapshot: number.max(*other) },
            None => StatusOf::Snapshot(number),
        }
    }

    /// Reads a range of both.
    fn compare(&mut self, part: u32, block: u16) {
        let Some(one) = &mut self.snapshots.backfilling else { return };
        let (at, number) = (one.at, one.number);
        let Some(count) = one.filling(part, block).map(|filling| filling.range.count) else { return };
        if self.places[usize::from(at.place)].code.is_some() {
            return self.compare_rows(Range { part, block, count });
        }
        let Some(giver) = self.giver(at, number, part) else { return self.end_backfill(limits::RETRY) };
        let epoch = self.epoch;
        for ((asked, there), of_target) in [(giver, false), ((at, part), true)] {
            let component = self.member(asked).component;
            let request = Request::View { component, epoch, snapshot: number, part: there, block, count };
            self.ask_for_backfill(asked, BackfillStep::View { part, block, of_target }, request);
        }
    }

    /// Reads a range of a member of rows, and puts together what it should be.
    fn compare_rows(&mut self, range: Range) {
        let Some(one) = &self.snapshots.backfilling else { return };
        let (at, number, attempt, epoch) = (one.at, one.number, one.attempt, self.epoch);
        let Range { part, block, count } = range;
        let (component, position) = (self.member(at).component, self.member(at).position);
        let request = Request::View { component, epoch, snapshot: number, part, block, count };
        self.ask_for_backfill(at, BackfillStep::View { part, block, of_target: true }, request);
        let except = self.lacking(at.place, number).iter().chain([at.member]).collect();
        let wanted_by = GatherFor::Backfill { attempt, part, block };
        let gather = Gather::new(at.place, range, MemberSet::of(position), except, wanted_by);
        self.gather(gather.seen_by(number));
    }

    /// What a member of rows should see of a range is known, or cannot be.
    pub(crate) fn backfill_gathered(
        &mut self,
        attempt: u32,
        (part, block): (u32, u16),
        result: Result<Found, GatherFailure>,
    ) {
        let now = self.now;
        let Some(one) = self.snapshots.backfilling.as_mut().filter(|one| one.attempt == attempt) else {
            return;
        };
        one.heard_at = now;
        let at = one.at;
        let position = self.member(at).position;
        match result {
            Ok(mut found) => self.viewed((part, block), false, found.take(position)),
            // Its members tell of it, too, and once it is mended this is tried again.
            Err(GatherFailure::Damaged) => self.give_backfill_up(),
            Err(GatherFailure::Unreachable | GatherFailure::Memory) => self.end_backfill(limits::RETRY),
        }
    }

    /// A component answered something that was asked for the sake of a snapshot that another one, or it, gets.
    pub(crate) fn backfill_answered(
        &mut self,
        (at, attempt, step): (At, u32, BackfillStep),
        answer: Result<Answer, super::Lost>,
    ) {
        let now = self.now;
        let Some(one) = self.snapshots.backfilling.as_mut().filter(|one| one.attempt == attempt) else {
            return;
        };
        one.heard_at = now;
        if step == BackfillStep::Mark {
            self.end_calm();
        }
        let failed = match step {
            BackfillStep::Mark => asked::done(answer).map(|_| self.marked_late()).err(),
            BackfillStep::Survey { giver } => {
                asked::allocation(answer).map(|runs| self.surveyed(giver, runs)).err()
            }
            BackfillStep::View { part, block, of_target } => {
                asked::data(answer).map(|data| self.viewed((part, block), of_target, data)).err()
            }
            BackfillStep::Put { part, block } => {
                asked::done(answer).map(|_| self.put_next(part, block)).err()
            }
            BackfillStep::Sync => asked::done(answer).map(|_| self.synced()).err(),
        };
        if let Some(failed) = failed {
            self.backfill_refused(at, step, failed);
        }
    }

    fn backfill_refused(&mut self, at: At, step: BackfillStep, failed: Unanswered) {
        let now = self.now;
        let again = match step {
            BackfillStep::View { part, block, .. } | BackfillStep::Put { part, block } => Some((part, block)),
            BackfillStep::Mark | BackfillStep::Survey { .. } | BackfillStep::Sync => None,
        };
        match (failed, step) {
            (Unanswered::Refused(Refusal::NotOpen), _) => {
                self.lost_session(at);
                self.end_backfill(limits::RETRY);
            }
            // What came before it is being destaged, or its group is being converted, or what had the number before is being deleted.
            (Unanswered::Refused(Refusal::Busy | Refusal::SnapshotRefused), BackfillStep::Mark) => {
                if let Some(one) = &mut self.snapshots.backfilling {
                    one.stage = Stage::Marking { ask_at: Some(now + limits::RETRY) };
                    let place = one.at.place;
                    if self.places[usize::from(place)].code.is_some() {
                        self.ask_held_of_all(place);
                    }
                }
            }
            (Unanswered::Refused(Refusal::NoSpace | Refusal::DeviceLost | Refusal::NoComponent), _) => {
                self.end_backfill(limits::NO_ROOM_RETRY);
            }
            (Unanswered::Refused(Refusal::Damaged), _) => {
                let damaged = again.and_then(|(part, block)| self.range_of_giver(at, part, block));
                self.give_backfill_up();
                // Another one may have it whole; then it is tried again.
                if let Some((range, number)) = damaged {
                    self.view_is_damaged(at, range, number);
                }
            }
            // An older snapshot was deleted, or something came to rest meanwhile.
            (Unanswered::Refused(_), _)
                if again.is_some_and(|(part, block)| self.compare_again(part, block)) => {}
            (Unanswered::Refused(_) | Unanswered::Lost, _) => self.end_backfill(limits::RETRY),
        }
    }

    /// A range that is compared as it stands in the component that was asked for it, and of which snapshot.
    fn range_of_giver(&mut self, asked: At, part: u32, block: u16) -> Option<(Range, u32)> {
        let one = self.snapshots.backfilling.as_mut()?;
        let (at, number) = (one.at, one.number);
        let range = one.filling(part, block)?.range;
        let there = self
            .giver(at, number, part)
            .filter(|(giver, _)| *giver == asked)
            .map_or(part, |(_, there)| there);
        Some((Range { part: there, ..range }, number))
    }

    /// A range begins anew in a while, unless too many have.
    fn compare_again(&mut self, part: u32, block: u16) -> bool {
        let now = self.now;
        let Some(one) = &mut self.snapshots.backfilling else { return false };
        let found = one.fillings.iter().position(|one| (one.range.part, one.range.block) == (part, block));
        let Some(found) = found.filter(|_| one.again < limits::BACKFILL_TRIES) else { return false };
        let Filling { range, .. } = one.fillings.swap_remove(found);
        one.ranges.push_back(range);
        (one.again, one.rests_until) = (one.again + 1, now + limits::RETRY);
        true
    }

    fn marked_late(&mut self) {
        if let Some(one) = &mut self.snapshots.backfilling {
            one.stage = Stage::Filling;
        }
    }

    fn surveyed(&mut self, giver: Option<u16>, runs: Vec<StatusRun>) {
        let Some(one) = &mut self.snapshots.backfilling else { return };
        let Some(surveys) = &mut one.surveys else { return };
        let all: u32 = surveys.of_givers.iter().map(|survey| survey.parts).sum();
        let (parts, told) = match giver {
            Some(index) => {
                let survey = &mut surveys.of_givers[usize::from(index)];
                (survey.parts, &mut survey.runs)
            }
            None => (all, &mut surveys.of_target),
        };
        if !is_beginning(&runs, u64::from(parts) * EXTENT_SIZE) {
            return self.end_backfill(limits::RETRY); // No node says so that can be relied on.
        }
        *told = Some(runs);
        one.take_surveys();
    }

    fn viewed(&mut self, (part, block): (u32, u16), of_target: bool, data: Data) {
        let epoch = self.epoch;
        let Some(one) = &mut self.snapshots.backfilling else { return };
        let (at, component, number) = (one.at, one.component, one.number);
        let of_snapshots = &self.places[usize::from(at.place)].members[usize::from(at.member)].snapshots;
        let there = of_snapshots.numbers.difference(&of_snapshots.dropping);
        let older = there.copied().filter(|other| *other < number).max();
        let Some(filling) = one.filling(part, block) else { return };
        if !data.is_intact() {
            self.compare_again(part, block);
            return;
        }
        *(if of_target { &mut filling.of_target } else { &mut filling.of_source }) = Some(data);
        if filling.compare((component, epoch, number), older) {
            self.put_next(part, block);
        }
    }

    /// Gives what is next of a range; at its end the next range begins.
    fn put_next(&mut self, part: u32, block: u16) {
        let Some(one) = &mut self.snapshots.backfilling else { return };
        let at = one.at;
        let Some(filling) = one.filling(part, block) else { return };
        match filling.orders.pop_front() {
            Some(order) => {
                one.copied_bytes += order.checksums.len() as u64 * BLOCK_SIZE;
                self.ask_for_backfill(at, BackfillStep::Put { part, block }, Request::Backfill(order));
            }
            None => one.fillings.retain(|one| (one.range.part, one.range.block) != (part, block)),
        }
    }

    fn synced(&mut self) {
        if let Some(one) = &mut self.snapshots.backfilling {
            one.stage = Stage::Recording;
        }
    }

    /// Has the record say that a component has a snapshot that it lacked. Says whether there is something to say.
    pub(crate) fn tell_backfilled(&self, roster: &mut Roster) -> bool {
        let Some(one) = self.snapshots.backfilling.as_ref().filter(|one| one.stage == Stage::Recording)
        else {
            return false;
        };
        let (taken, asked) = (&roster.snapshots.taken, roster.snapshots.asked);
        let is_meant = |number: u32| taken.binary_search(&number).is_ok() || asked == Some(number);
        let recorded = roster.members.iter_mut().find(|member| member.component == one.component);
        let Some(recorded) = recorded.filter(|recorded| recorded.lacks.contains(one.number)) else {
            return false;
        };
        recorded.lacks = recorded.lacks.without(one.number, is_meant);
        true
    }

    /// The record says so.
    fn note_backfilled(&mut self) {
        let Some(Backfilling { at, component, number, copied_bytes, began, .. }) = self.snapshots.backfilling
        else {
            return;
        };
        if self.phase == Phase::Serving && !self.lacks(at, number) {
            self.snapshots.backfilling = None;
            self.member_mut(at).snapshots.filling = None;
            self.out.push(Output::Event(Event::Backfilled { component, number, copied_bytes, began }));
        }
    }
}
