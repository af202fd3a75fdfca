//! Components that do not answer although their nodes do: a device that hangs takes what it is asked, and ends nothing of it.
//!
//! A read is asked of another component after a moment, and what the first answers later is dropped. A component that has not
//! ended a change for as long as a node may be silent leaves the active set, as those of a silent node do. Neither happens where no
//! other component could do it: then the disk waits.
//!
//! Looked at ten times a second, while anything is under way. A component leaves only if it is found so twice in a row: an owner
//! that stood still itself has all answers before it the second time.
//!
//! Nothing is lost by not waiting. A component that left is opened anew before it is written to again, and answers that only
//! when all that it was asked before has ended (`Stage::Draining` in `components.rs`); what it holds beyond is undone as after any
//! other absence. So the range of a copy is let go of only when its target serves this owner no more.

use super::Owner;
use super::asked::{Asked, Question, Step, Unanswered};
use super::interface::LeftBecause;
use super::member::{At, Member, OutAs};
use super::work::{Key, ReadWork, Reader};
use crate::limits;
use crate::rules::Rule;
use base::Instant;
use std::time::Duration;

impl Owner {
    /// Looks whether something has been under way for too long, if it is time to.
    pub(crate) fn advance_patience(&mut self) {
        if self.asks.is_empty() || self.now < self.look_at {
            return;
        }
        self.look_at = self.now + limits::LOOK_PERIOD;
        self.find_stuck();
        self.give_up_late();
    }

    /// When that is the next time.
    pub(crate) fn patience_wake_at(&self) -> Option<Instant> {
        (!self.asks.is_empty()).then_some(self.look_at)
    }

    /// A change was answered by a component, or was lost with its link.
    pub(crate) fn note_progress(&mut self, asked: &Asked) {
        let now = self.now;
        if let Some(at) = self.changes(asked) {
            let member = self.member_mut(at);
            (member.changed_at, member.is_stuck) = (now, false);
        }
    }

    /// What was asked of a component was not waited for any more, and is answered now.
    pub(crate) fn late_answered(&mut self, at: At) {
        let member = self.member_mut(at);
        member.late = member.late.saturating_sub(1);
    }

    /// The component that makes a change for this question, if it is one of that kind.
    fn changes(&self, asked: &Asked) -> Option<At> {
        match asked {
            Asked::Change { at, .. } | Asked::FirstSettle { at, .. } => Some(*at),
            Asked::Barrier { at, .. } | Asked::RollWrite { at, .. } => Some(*at),
            // A fold has its columns for itself.
            Asked::FoldRead { at, .. } | Asked::FoldWrite { at, .. } | Asked::FoldPromote { at, .. } => {
                Some(*at)
            }
            Asked::RowMend { at, .. } => Some(*at),
            Asked::Step(Step::CopyWrite { work }) => Some(self.works.copies[*work].target),
            Asked::Step(Step::Read { .. } | Step::Status { .. } | Step::CopyRead { .. }) => None,
            Asked::Step(Step::Gather { .. } | Step::RowCheck { .. }) | Asked::RowParts { .. } => None,
            Asked::RollRead { .. } | Asked::Open(_) | Asked::Settle | Asked::Changed { .. } => None,
            Asked::Held { .. }
            | Asked::Snapshots(_)
            | Asked::Snapshot { .. }
            | Asked::DropSnapshot { .. }
            | Asked::Backfill { .. }
            | Asked::Damage(_)
            | Asked::Mend { .. }
            | Asked::Doubtful { .. }
            | Asked::Restored { .. }
            | Asked::Proof { .. }
            | Asked::Close
            | Asked::GivenUp(_) => None,
        }
    }

    /// Takes out components that are stuck, where another one is not.
    fn find_stuck(&mut self) {
        let overdue: Vec<At> = self.asks.iter().filter_map(|(_, one)| self.overdue(one)).collect();
        for at in self.all() {
            let is_overdue = overdue.contains(&at);
            let member = self.member_mut(at);
            let was_stuck = std::mem::replace(&mut member.is_stuck, is_overdue);
            let stays = !self.holds(Rule::TakeOutStuck);
            if is_overdue && was_stuck && self.has_other_well(at) && !stays {
                self.leave_behind(at);
            }
        }
    }

    /// The component that is stuck, if that is what a question says.
    fn overdue(&self, one: &Question) -> Option<At> {
        if let Asked::Open(at) = one.asked {
            let is_late = one.since + limits::OPENING_PATIENCE <= self.now;
            return Some(at).filter(|at| is_late && self.member(*at).is_opening());
        }
        let at = self.changes(&one.asked)?;
        let since = one.since.max(self.member(at).changed_at);
        let is_late = since + limits::SILENCE <= self.now;
        Some(at).filter(|at| is_late && self.member(*at).is_open())
    }

    /// Whether another active component of the place could serve without this one.
    fn has_other_well(&self, at: At) -> bool {
        let is_well = |one: &Member| one.is_open() && one.wish.is_none() && !one.is_stuck;
        let place = &self.places[usize::from(at.place)];
        let is_other_well = |(index, one): &(u8, &Member)| *index != at.member && is_well(one);
        place.is_enough(place.active().filter(is_other_well))
    }

    /// A component is stuck: it leaves, or what fills it ends.
    fn leave_behind(&mut self, at: At) {
        let (now, why) = (self.now, LeftBecause::Stuck);
        let member = self.member_mut(at);
        if member.is_gone() || member.is_leaving() {
            return;
        }
        match (member.may_count(), member.resync().is_some()) {
            (true, _) => {
                member.trouble = Some(why);
                self.want_out(at, OutAs::Absent, why);
            }
            (false, true) => {
                member.down(now, now + limits::RESYNC_RETRY);
                self.drop_resync(at, why);
            }
            // Nothing waits for it.
            (false, false) => {}
        }
    }

    /// Reads that take long are asked elsewhere, if there is an elsewhere; what was under way with a component that serves this
    /// owner no more is not waited for.
    fn give_up_late(&mut self) {
        let late = self.asks.iter().filter_map(|(key, one)| Some((key, self.given_up(one)?)));
        for (key, (step, at)) in late.collect::<Vec<_>>() {
            self.asks[key].asked = Asked::GivenUp(at);
            self.member_mut(at).late += 1;
            match step {
                Step::Read { work, at } => self.read_elsewhere(work, at),
                Step::Status { work, at } => self.status_answered(work, at, Err(Unanswered::Lost)),
                Step::CopyRead { work, at } => self.copy_read(work, at, Err(Unanswered::Lost)),
                Step::CopyWrite { work } => self.copy_written(work, Err(Unanswered::Lost)),
                Step::Gather { gather, at } => self.gather_answered(gather, at, Err(Unanswered::Lost)),
                Step::RowCheck { check, .. } => self.row_check_failed(check),
            }
        }
    }

    fn read_elsewhere(&mut self, key: Key<ReadWork>, at: At) {
        let took = self.now.since(self.works.reads[key].began).as_nanos() as u64;
        let now = self.now;
        self.member_mut(at).recent.note(now, took);
        // What the first one took is not the next one's.
        self.works.reads[key].began = self.now;
        self.reads_waiting.push_back(Reader::Read(key));
    }

    /// What a question was for that is not waited for any more, and the component that was asked.
    fn given_up(&self, one: &Question) -> Option<(Step, At)> {
        let Asked::Step(step) = one.asked else { return None };
        let (at, is_read) = match step {
            Step::Read { at, .. } | Step::Status { at, .. } | Step::CopyRead { at, .. } => (at, true),
            Step::Gather { at, .. } | Step::RowCheck { at, .. } => (at, true),
            Step::CopyWrite { work } => (self.works.copies[work].target, false),
        };
        let is_late = is_read && one.since + self.read_patience(at) <= self.now;
        // A check can wait, and what guests change in its range waits for it.
        let can_wait = matches!(step, Step::RowCheck { .. }) || self.has_other_prompt(at);
        let is_given_up = !self.member(at).is_open() || (is_late && can_wait);
        is_given_up.then_some((step, at))
    }

    /// How long a read may take at a component: longer where they all take long, for then it is loaded.
    fn read_patience(&self, at: At) -> Duration {
        let usual = Duration::from_nanos(self.member(at).read_ns) * limits::READ_PATIENCE_FACTOR;
        usual.clamp(limits::READ_PATIENCE, limits::SILENCE)
    }

    /// Whether another active component of the place can be read from, and answers.
    fn has_other_prompt(&self, at: At) -> bool {
        let is_prompt = |one: &Member| one.is_open() && one.is_prompt();
        let place = &self.places[usize::from(at.place)];
        let is_other_prompt = |(index, one): &(u8, &Member)| *index != at.member && is_prompt(one);
        place.is_enough(place.active().filter(is_other_prompt))
    }
}
