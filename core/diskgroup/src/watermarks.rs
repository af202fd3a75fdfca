//! Watermarks that are known to be greater than the log says, and when they go there at the latest.

use crate::limits;
use base::{ComponentId, Instant};

/// Components whose watermark waits for a batch that takes it along.
#[derive(Debug, Default)]
pub(crate) struct Watermarks {
    waiting: Vec<ComponentId>,
    /// When those of an idle group go to the log at the latest.
    due_at: Option<Instant>,
}

impl Watermarks {
    /// A component's watermark waits from now on.
    pub(crate) fn wait(&mut self, component: ComponentId, now: Instant) {
        if !self.waiting.contains(&component) {
            self.waiting.push(component);
        }
        self.due_at.get_or_insert(now + limits::SETTLE_DELAY);
    }

    /// Takes one that waits. Once none does, nothing is due.
    pub(crate) fn take(&mut self) -> Option<ComponentId> {
        let taken = self.waiting.pop();
        if taken.is_none() {
            self.due_at = None;
        }
        taken
    }

    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When they go to the log at the latest.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// The log is lost: none gets there.
    pub(crate) fn clear(&mut self) {
        *self = Watermarks::default();
    }
}
