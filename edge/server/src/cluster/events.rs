//! What happened to the disks that a host owned: the newest, in memory.

use crate::api::types::EventView;
use crate::limits::EVENTS_KEPT;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The newest events, oldest first.
#[derive(Default)]
pub struct EventLog {
    events: Mutex<VecDeque<EventView>>,
}

impl EventLog {
    /// Adds one; the oldest goes when there are too many.
    pub fn add(&self, event: EventView) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() == EVENTS_KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }

    /// All of them.
    pub fn all(&self) -> Vec<EventView> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
