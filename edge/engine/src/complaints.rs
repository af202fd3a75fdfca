//! Things that go wrong again and again, each told once: in the log, not in a flood of it.

use crate::limits::COMPLAINTS_MAX;
use std::collections::BTreeMap;

/// Complaints by how often there was a reason.
#[derive(Debug, Default)]
pub struct Complaints {
    said: BTreeMap<String, u32>,
}

impl Complaints {
    /// Logs a complaint, once.
    pub fn complain(&mut self, text: String) {
        self.complain_at(1, text);
    }

    /// Logs a complaint, once, when there is a reason to for the `time`th time.
    pub fn complain_at(&mut self, time: u32, text: String) {
        if self.said.len() >= COMPLAINTS_MAX && !self.said.contains_key(&text) {
            return;
        }
        let times = self.said.get(&text).map_or(1, |before| before.saturating_add(1));
        if times == time {
            tracing::warn!("{text}");
        }
        self.said.insert(text, times);
    }
}
