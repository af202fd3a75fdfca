//! Rows come to rest before their members take a snapshot (docs/design/0054).
//!
//! What a snapshot sees of a member is its content. So that those of all members belong together, parity must count all small changes, and no change may be
//! under way. First parity is made to count what is held while changes go on, none of which is held as copies meanwhile. Then later changes wait until those under way have
//! ended. A change that waits keeps its columns locked, so nothing may be left to fold by then.

use super::Owner;
use super::calm::Calm;
use crate::limits;
use crate::rules::Rule;
use std::time::Duration;

impl Owner {
    /// Whether small changes go to parity at once, and all that is held is folded, for the sake of a snapshot.
    pub(crate) fn folds_for_snapshot(&self) -> bool {
        let taking = self.snapshots.taking.as_ref();
        let late = self.snapshots.backfilling.as_ref().and_then(|one| one.calm);
        taking.is_some_and(|taking| taking.stage.is_before_marks()) || late.is_some()
    }

    /// Whether parity counts everything, as far as this owner knows.
    pub(crate) fn is_folded(&self) -> bool {
        self.places.iter().all(|place| place.held.is_empty() && place.held.folding() == 0)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_drained(&self) -> bool {
        self.places.iter().all(|place| place.all_have_through(place.sequence))
    }

    /// The component is asked; a member of rows once nothing is held, and no change under way.
    pub(crate) fn mark_once_calm(&mut self) {
        let Some(one) = &self.snapshots.backfilling else { return };
        let is_of_copies = self.places[usize::from(one.at.place)].code.is_none();
        if is_of_copies || !self.holds(Rule::RestBeforeLateMark) {
            return self.mark_late();
        }
        let now = self.now;
        let mut calm = one.calm.unwrap_or(Calm::Folding { since: now });
        if matches!(calm, Calm::Folding { .. }) && self.is_folded() {
            calm = Calm::Draining { since: now };
        }
        let is_calm = matches!(calm, Calm::Draining { .. }) && self.is_drained() && self.is_folded();
        if !is_calm && calm.since() + self.calm_patience(calm) <= now {
            return self.end_backfill(limits::RETRY);
        }
        if let Some(one) = &mut self.snapshots.backfilling {
            one.calm = Some(if is_calm { Calm::Still { since: now } } else { calm });
        }
        if is_calm {
            self.mark_late();
        }
    }

    /// Whether changes wait so that a member of rows can be told of a snapshot that it lacks.
    pub(crate) fn holds_for_late_mark(&self) -> bool {
        self.snapshots.backfilling.as_ref().and_then(|one| one.calm).is_some_and(Calm::holds)
    }

    pub(crate) fn calm_patience(&self, calm: Calm) -> Duration {
        if calm.holds() { self.hold_max() } else { limits::SNAPSHOT_FOLD_MAX }
    }

    /// Changes do not wait any more for the sake of a member that lacks a snapshot.
    pub(crate) fn end_calm(&mut self) {
        let held = self.holds_for_late_mark();
        if let Some(one) = &mut self.snapshots.backfilling {
            one.calm = None;
        }
        if held {
            self.go_on_with_changes();
        }
    }
}
