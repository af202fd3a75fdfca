//! Rows come to rest before their members take a snapshot (docs/design/0054).
//!
//! What a snapshot sees of a member is its content. So that those of all members belong together, parity must count all small changes, and no change may be
//! under way. First parity is made to count what is held while changes go on, none of which is held as copies meanwhile. Then later changes wait until those under way have
//! ended. A change that waits keeps its columns locked, so nothing may be left to fold by then.

use super::Owner;
use base::Instant;

/// How far the places are on the way to a mark of one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calm {
    /// Parity is made to count what is held. Changes go on.
    Folding { since: Instant },
    /// Changes that are under way end. Later ones wait.
    Draining { since: Instant },
    /// All is at rest, and the member is asked. Changes wait.
    Still { since: Instant },
}

impl Calm {
    /// Whether changes wait for it.
    pub(crate) fn holds(self) -> bool {
        match self {
            Calm::Folding { .. } => false,
            Calm::Draining { .. } | Calm::Still { .. } => true,
        }
    }

    /// Since when it is at that.
    pub(crate) fn since(self) -> Instant {
        match self {
            Calm::Folding { since } | Calm::Draining { since } | Calm::Still { since } => since,
        }
    }
}

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
}
