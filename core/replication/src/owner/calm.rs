//! How far rows are on the way to rest, before a member is told of a snapshot that it lacks (docs/design/0054).

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
