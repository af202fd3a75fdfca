//! Tells of requests that ended with an error since their disk gave no answer within the time that a client named.

use super::Control;
use crate::events::Kind;
use base::DiskId;
use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::{Duration, Instant};

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(2);
/// The least time between two events about one disk: a guest may retry for as long as the disk is away.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// What was told of a disk.
#[derive(Debug, Default)]
struct Told {
    total: u64,
    at: Option<Instant>,
}

impl Told {
    /// How many requests an event is to tell of; `None` if there is nothing new, or it is too soon.
    fn news(&mut self, total: u64, now: Instant) -> Option<u64> {
        let count = total.saturating_sub(self.total);
        let is_soon = self.at.is_some_and(|at| now.duration_since(at) < TOLD_AGAIN);
        if count == 0 || is_soon {
            return None;
        }
        (self.total, self.at) = (total, Some(now));
        Some(count)
    }
}

/// Tells of them until the engine is gone.
pub(super) async fn watch_overdue(control: Weak<Control>) {
    let mut told: BTreeMap<DiskId, Told> = BTreeMap::new();
    loop {
        tokio::time::sleep(PERIOD).await;
        let Some(control) = control.upgrade() else { return };
        let Ok(states) = control.disk_states(None).await else { return };
        let records = control.records();
        for (id, state) in states.iter().filter(|(_, state)| state.overdue > 0) {
            let news = told.entry(*id).or_default().news(state.overdue, Instant::now());
            let name = records.disks.get(id).map(|entry| entry.record.name.as_str());
            if let (Some(count), Some(name)) = (news, name) {
                let requests = if count == 1 { "request" } else { "requests" };
                control.events.disk(
                    Kind::DiskTimedOut,
                    name,
                    format!(
                        "{count} {requests} ended with an I/O error: the disk gave no answer within the time that the client \
                         named (error-after)"
                    ),
                );
            }
        }
        told.retain(|id, _| states.contains_key(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_and_told_of_once_a_minute() {
        let mut told = Told::default();
        let start = Instant::now();
        assert_eq!(told.news(0, start), None);
        assert_eq!(told.news(3, start), Some(3));
        assert_eq!(told.news(5, start + PERIOD), None, "too soon");
        assert_eq!(told.news(9, start + TOLD_AGAIN), Some(6));
        assert_eq!(told.news(9, start + 3 * TOLD_AGAIN), None);
    }
}
