//! Before the first change is acknowledged that a component which has just left lacks, the others make durable that it is decided.
//!
//! A component that left may come back with a directory that still counts it: an old snapshot of etcd. Then it alone, or a record that
//! was made from what it holds, tells how far the changes of the place go ([`crate::Ceiling`]). A component that knows of a later decided
//! change shows that this is not the whole story. It has to know so from the first such change on, and over a loss of power: its
//! watermark, which otherwise follows the changes by a moment, must have passed what the other one holds before anybody relies
//! on more (docs/design/0023).
//!
//! Nobody knows which of the changes that were under way the other one got. So the place is given a change of nothing, which it cannot have,
//! and the watermark is made stable up to that. Where the window has no room for it, the changes under way come first.

use super::Owner;
use super::asked::{Asked, Unanswered};
use super::interface::{LeftBecause, Phase};
use super::member::{At, OutAs};
use super::member_set::MemberSet;
use super::place::Barrier;
use crate::rules::Rule;
use base::{Instant, WriteId};
use wire::{Refusal, Request};

impl Owner {
    /// A component that counted is out, and what it had not answered waits for it no more.
    pub(crate) fn raise_barrier(&mut self, at: At) {
        let place = &mut self.places[usize::from(at.place)];
        if !self.has_served || place.is_single() || !self.settings.rules.hold(Rule::RaiseBarrier) {
            return;
        }
        let lacks = place.in_flight.iter().find(|(_, change)| change.names(at.member));
        let sequence = lacks.map_or(place.sequence + 1, |(sequence, _)| sequence);
        let before = place.barrier.as_ref().map_or(sequence, |barrier| barrier.sequence);
        let (sequence, last) = (sequence.min(before), place.sequence);
        place.barrier = Some(Barrier { sequence, last, stage: None, waiting: MemberSet::EMPTY });
        place.rests_until = None; // The member that refused may be the one that left.
    }

    /// Makes watermarks stable that changes wait for.
    pub(crate) fn advance_barriers(&mut self) {
        if !matches!(self.phase, Phase::Serving | Phase::Releasing) {
            return;
        }
        for index in 0..self.places.len() as u16 {
            let Some(Barrier { sequence, last, .. }) = self.raised(index) else { continue };
            if self.places[usize::from(index)].sequence == last {
                self.give_mark(index);
            }
            let place = &self.places[usize::from(index)];
            let through = place.sequence.min(last + 1);
            if through >= sequence && place.all_have_through(through) {
                self.make_stable(index, through);
            }
        }
    }

    /// A barrier that has no attempt in flight and may begin one now.
    fn raised(&self, index: u16) -> Option<Barrier> {
        let place = &self.places[usize::from(index)];
        place.barrier.filter(|barrier| barrier.stage.is_none() && !place.rests(self.now))
    }

    /// When the next refused barrier is tried again.
    pub(crate) fn barriers_wake_at(&self) -> Option<Instant> {
        let raised = self.places.iter().filter(|place| place.barrier.is_some_and(|one| one.stage.is_none()));
        raised.filter(|place| place.rests(self.now)).filter_map(|place| place.rests_until).min()
    }

    fn make_stable(&mut self, index: u16, sequence: u64) {
        self.attempts += 1;
        let (attempt, epoch) = (self.attempts, self.epoch);
        let watermark = WriteId { epoch, sequence };
        let place = &mut self.places[usize::from(index)];
        let targets: Vec<_> =
            place.counting().map(|(member, one)| (member, one.node, one.component)).collect();
        let waiting = targets.iter().map(|(member, ..)| *member).collect();
        if let Some(barrier) = &mut place.barrier {
            (barrier.stage, barrier.waiting) = (Some((sequence, attempt)), waiting);
        }
        for (member, node, component) in targets {
            let at = At { place: index, member };
            self.member_mut(at).note_told(watermark);
            let request = Request::Settle { component, epoch, watermark, from_epoch: epoch, stable: true };
            self.send(node, Asked::Barrier { at, attempt }, request);
        }
    }

    /// A component made the watermark stable that changes wait for, or could not.
    pub(crate) fn barrier_answered(&mut self, at: At, attempt: u32, answer: Result<u8, Unanswered>) {
        let place = &mut self.places[usize::from(at.place)];
        let Some(barrier) = &mut place.barrier else { return };
        let Some((through, _)) = barrier.stage.filter(|(_, current)| *current == attempt) else { return };
        match answer {
            Ok(_) => {
                barrier.waiting.remove(at.member);
                if barrier.waiting.is_empty() {
                    (barrier.sequence, barrier.stage) = (through + 1, None);
                    if through > barrier.last {
                        place.barrier = None;
                    }
                    self.check_all_changes(at.place);
                }
            }
            // Another attempt is made when it serves again, or is out.
            Err(Unanswered::Lost) => barrier.stage = None,
            Err(Unanswered::Refused(Refusal::NotOpen)) => {
                barrier.stage = None;
                self.lost_session(at);
            }
            Err(Unanswered::Refused(refusal)) => {
                barrier.stage = None;
                place.rest(self.now);
                let why = LeftBecause::Refused(refusal);
                self.member_mut(at).trouble = Some(why);
                self.want_out(at, OutAs::Absent, why);
            }
        }
    }
}
