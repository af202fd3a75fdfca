//! Once a second, while somebody watches: what has changed, and what the guests of all hosts did.
//!
//! One watch serves all who look at this host; other hosts send it what their guests did over one connection each. With nobody
//! watching, nothing is asked or compared. Must never hold anything up: who is too slow is told that everything may have changed.

pub(super) mod beat;
mod load;
mod seen;

use crate::limits::BEATS_KEPT;
use api::types::Changed;
pub use load::{Loads, Of};
use std::sync::Arc;
use tokio::sync::{Notify, broadcast};

/// Where beats are heard.
pub struct Pulse {
    beats: broadcast::Sender<Arc<Beat>>,
    somebody: Notify,
}

/// What has happened since the beat before.
pub struct Beat {
    /// What has changed.
    pub changed: Vec<Changed>,
    /// What guests did in the last second; nothing where it is not over.
    pub loads: Option<Loads>,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse { beats: broadcast::channel(BEATS_KEPT).0, somebody: Notify::new() }
    }
}

impl Pulse {
    /// Hears every beat from now on.
    pub fn watch(&self) -> broadcast::Receiver<Arc<Beat>> {
        let beats = self.beats.subscribe();
        self.somebody.notify_one();
        beats
    }

    /// Whether anybody does.
    fn is_watched(&self) -> bool {
        self.beats.receiver_count() > 0
    }
}
