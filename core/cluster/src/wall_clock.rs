//! The time of day, as most hosts have it.
//!
//! The directory's clock is late after restarts, and a single host's may be wrong. The median of the hosts' clocks is neither as long as most
//! are right.

use crate::host::HostRecord;
use crate::liveness::Liveness;
use crate::view::View;
use base::Instant;

/// How far the clocks of hosts that are there are ahead of the directory's, in nanoseconds: the median.
pub(crate) fn ahead_ns(view: &View) -> Option<i64> {
    let there = |host: &&HostRecord| view.liveness(host.id) == Liveness::Alive;
    let mut ahead: Vec<i64> = view.hosts.values().filter(there).map(|host| host.clock_ahead_ns).collect();
    ahead.sort_unstable();
    ahead.get(ahead.len() / 2).copied()
}

/// The time of day in seconds since 1970; `now` by the directory's clock.
pub fn wall_clock(view: &View, now: Instant) -> u64 {
    now.0.saturating_add_signed(ahead_ns(view).unwrap_or(0)) / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, cluster};

    #[test]
    fn one_clock_that_jumps_changes_nothing_among_three() {
        let mut view = cluster(3, 1);
        for (host, ahead) in [(1, 70), (2, 71), (3, 69)] {
            view.host_mut(host).clock_ahead_ns = ahead * 1_000_000_000;
        }
        assert_eq!(wall_clock(&view, at(1000)), 1070);
        view.host_mut(2).clock_ahead_ns = i64::MAX;
        assert_eq!(wall_clock(&view, at(1000)), 1070);
        view.host_mut(2).clock_ahead_ns = i64::MIN;
        assert_eq!(wall_clock(&view, at(1000)), 1069);
        view.host_mut(3).clock_ahead_ns = i64::MIN;
        assert_eq!(wall_clock(&view, at(1000)), 0, "most are wrong, and it does not overflow");
    }
}
