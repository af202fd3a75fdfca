//! Before the first change is acknowledged that a component which has just left lacks, the others make durable that it is decided.
//!
//! A component that left may come back with a directory that still counts it: an old snapshot of etcd. Then it alone, or a record that
//! was made from what it holds, tells how far the changes of the place go ([`crate::Ceiling`]). A component that knows of a later decided
//! change shows that this is not the whole story. It has to know so from the first such change on, and over a loss of power: its
//! watermark, which otherwise follows the changes by a moment, must have passed what the other one holds before anybody relies
//! on more (docs/design/0023).

use super::state::{At, Place};
use super::{Asked, LeftBecause, Lost, Owner, Phase};
use crate::mutant::Mutant;
use base::WriteId;
use wire::{Answer, Refusal, Request};

/// Changes of a place that wait for a watermark to be stable.
#[derive(Debug)]
pub(crate) struct Barrier {
    /// The first change that a component which left lacks: this one and later ones are not acknowledged yet.
    pub(crate) sequence: u64,
    /// The watermark that is being made stable.
    attempt: Option<u32>,
    /// Components that have not made it stable.
    waiting: u8,
}

impl Place {
    /// Whether a change may not be acknowledged yet, whoever has it.
    pub(crate) fn holds_back(&self, sequence: u64) -> bool {
        self.barrier.as_ref().is_some_and(|barrier| sequence >= barrier.sequence)
    }
}

impl Owner {
    /// A component that counted is out, and what it had not answered waits for it no more.
    pub(crate) fn raise_barrier(&mut self, at: At) {
        let place = &mut self.places[usize::from(at.place)];
        if !self.has_served || place.is_single() || self.settings.is(Mutant::AcknowledgeBeforeBarrier) {
            return;
        }
        let lacks = place.in_flight.iter().find(|(_, change)| change.names(1 << at.member));
        let sequence = lacks.map_or(place.sequence + 1, |(sequence, _)| *sequence);
        let before = place.barrier.as_ref().map_or(sequence, |barrier| barrier.sequence);
        place.barrier = Some(Barrier { sequence: sequence.min(before), attempt: None, waiting: 0 });
    }

    /// Makes watermarks stable that changes wait for.
    pub(crate) fn advance_barriers(&mut self) {
        if !matches!(self.phase, Phase::Serving | Phase::Releasing) {
            return;
        }
        for index in 0..self.places.len() as u16 {
            let place = &self.places[usize::from(index)];
            let waits = place.barrier.as_ref().filter(|barrier| barrier.attempt.is_none());
            if let Some(sequence) = waits.map(|barrier| barrier.sequence)
                && place.all_have_through(sequence)
            {
                self.make_stable(index, sequence);
            }
        }
    }

    fn make_stable(&mut self, index: u16, sequence: u64) {
        self.attempts += 1;
        let (attempt, epoch) = (self.attempts, self.epoch);
        let watermark = WriteId { epoch, sequence };
        let place = &mut self.places[usize::from(index)];
        let targets: Vec<_> =
            place.counting().map(|(member, one)| (member, one.node, one.component)).collect();
        let waiting = targets.iter().fold(0, |bits, (member, ..)| bits | 1 << member);
        place.barrier = Some(Barrier { sequence, attempt: Some(attempt), waiting });
        for (member, node, component) in targets {
            let at = At { place: index, member };
            self.member_mut(at).told = watermark;
            let request = Request::Settle { component, epoch, watermark, from_epoch: epoch, stable: true };
            self.send(node, Asked::Barrier { at, attempt }, request);
        }
    }

    /// A component made the watermark stable that changes wait for, or could not.
    pub(crate) fn barrier_answered(&mut self, at: At, attempt: u32, answer: Result<Answer, Lost>) {
        let place = &mut self.places[usize::from(at.place)];
        let Some(barrier) = place.barrier.as_mut().filter(|one| one.attempt == Some(attempt)) else { return };
        match answer {
            Ok(Answer::Done { .. }) => {
                barrier.waiting &= !(1 << at.member);
                if barrier.waiting == 0 {
                    place.barrier = None;
                    self.check_all_changes(at.place);
                }
            }
            // Another attempt is made when it serves again, or is out.
            Err(Lost) => barrier.attempt = None,
            Ok(Answer::Refused(Refusal::NotOpen)) => {
                barrier.attempt = None;
                self.lost_session(at);
            }
            Ok(Answer::Refused(refusal)) => {
                barrier.attempt = None;
                let why = LeftBecause::Refused(refusal);
                self.member_mut(at).trouble = Some(why);
                self.want_out(at, crate::roster::Standing::Absent, why);
            }
            Ok(other) => unreachable!("a watermark is not answered by {other:?}"),
        }
    }
}

impl Place {
    /// Whether all that count serve, and have every change up to that one; a change that is not given yet is waited for.
    fn all_have_through(&self, sequence: u64) -> bool {
        let waited_for = self.waited_for(None);
        self.sequence >= sequence
            && self.counting().all(|(_, one)| one.is_open() && one.wanted.is_none())
            && self.in_flight.range(..=sequence).all(|(_, change)| change.is_with_all(waited_for))
    }
}
