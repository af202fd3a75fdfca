//! Numbers of small changes for the members that have no part in them (docs/design/0040, "Marks").
//!
//! A small change of rows that is held as copies is of the member of its data unit and of those of the parity. The others get its number
//! all the same, so that each member shows every number, but nobody waits for that: it goes with the next change that they have a part in,
//! or by itself in a moment. Until all have it the change stays in flight, so that no watermark passes it.

use super::Owner;
use super::asked::Unanswered;
use super::in_flights::InFlight;
use super::interface::Phase;
use super::member::At;
use super::member_set::MemberSet;
use super::place::Place;
use super::rows::{is_touched, row_of};
use crate::limits;
use crate::locks::Range;
use crate::rules::Rule;
use base::Instant;
use base::rules::Rules;
use layout::Unit;
use wire::layer;

impl Place {
    /// Whether a member has a part in a change of rows, by the layer of that.
    pub(crate) fn has_part(&self, member: u8, of: u8, range: &Range) -> bool {
        let position = self.members[usize::from(member)].position;
        let first = (layer::layered(of, range.part), range.block);
        self.code.is_none_or(|code| is_touched(code, first, position))
    }

    /// Whether a member gets the number of a change alone that is in flight: it has no part in it, or all that have are done. Who is brought
    /// up to date then gets its blocks from those.
    pub(crate) fn is_apart(&self, member: u8, change: &InFlight) -> bool {
        layer::is_of_copies(change.layer)
            && (change.work.is_none() || !self.has_part(member, change.layer, &change.range))
    }

    /// The members without which a change is not acknowledged, as far as they have a part in it.
    pub(crate) fn awaited_for(&self, change: &InFlight, rules: Rules<Rule>) -> MemberSet {
        let waited_for = self.waited_for(rules);
        let (Some(code), false) = (self.code, rules.hold(Rule::WaitForParity)) else { return waited_for };
        let row = row_of(change.range.part, change.range.block);
        let is_of_parity = |member: &u8| {
            matches!(code.unit(row, self.members[usize::from(*member)].position), Unit::Parity(_))
        };
        match layer::is_of_copies(change.layer) {
            true => waited_for.iter().filter(|member| !is_of_parity(member)).collect(),
            false => waited_for,
        }
    }

    /// Whether members are owed numbers that should not wait any longer.
    fn marks_are_due(&self, now: Instant) -> bool {
        let Some(since) = self.owed_since else { return false };
        let is_whole = self.known().all(|one| one.is_active() && one.is_open() && one.wish.is_none());
        since + limits::MARK_DELAY <= now || !is_whole || self.is_window_half_used()
    }

    fn is_window_half_used(&self) -> bool {
        let span = self.in_flight.first().map_or(0, |first| self.sequence + 1 - first);
        2 * span >= limits::WINDOW_CHANGES_MAX as u64 || 2 * self.in_flight_bytes >= limits::WINDOW_BYTES_MAX
    }
}

impl Owner {
    /// Sends members the numbers that they are owed, where these have waited for long or are waited for.
    pub(crate) fn advance_marks(&mut self) {
        if !matches!(self.phase, Phase::Serving | Phase::Releasing) {
            return;
        }
        let is_letting_go = self.phase == Phase::Releasing || self.recording.to_pass.is_some();
        let ends = is_letting_go || self.folds_for_snapshot();
        for place in 0..self.places.len() as u16 {
            let state = &self.places[usize::from(place)];
            if state.marks_are_due(self.now) || ends && state.owed_since.is_some() {
                self.send_marks(place);
            }
        }
    }

    /// Numbers that went with a change are there, or have to go again.
    pub(crate) fn marks_answered(
        &mut self,
        at: At,
        (last, marks): (u64, u8),
        answer: &Result<u8, Unanswered>,
    ) {
        for number in last - u64::from(marks)..last {
            let place = &mut self.places[usize::from(at.place)];
            let Some(in_flight) = place.in_flight.get_mut(number) else { continue };
            match answer {
                Ok(_) => {
                    in_flight.is_with(at.member);
                    self.check_change(at.place, number);
                }
                Err(Unanswered::Lost) => {} // It is sent again when the component serves again, unless that leaves first.
                Err(Unanswered::Refused(_)) if in_flight.waiting.contains(at.member) => {
                    in_flight.owed.insert(at.member);
                    place.owed_since.get_or_insert(self.now);
                }
                Err(Unanswered::Refused(_)) => {}
            }
        }
    }

    fn send_marks(&mut self, place: u16) {
        let state = &mut self.places[usize::from(place)];
        state.owed_since = None;
        let members = 0..state.members.len() as u8;
        for at in members.map(|member| At { place, member }) {
            // The last one takes those directly before it with it.
            while self.member(at).is_open()
                && let Some(last) = self.places[usize::from(place)].in_flight.last_owed(at.member)
            {
                self.send_change(at, last);
            }
        }
    }

    /// When members get the numbers that they are owed, at the latest.
    pub(crate) fn marks_wake_at(&self) -> Option<Instant> {
        let since = self.places.iter().filter_map(|place| place.owed_since).min();
        since.map(|since| since + limits::MARK_DELAY)
    }
}
