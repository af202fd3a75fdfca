//! Delays of requests: by the policy's I/O limit, and by the congestion of the groups.

use crate::limits::{CONGESTION_DELAY_MAX, IOPS_LIMIT_UNIT};
use base::Instant;
use std::time::Duration;

/// The I/O limit of one disk, in I/Os of up to 32 KiB. Larger ones count several times.
#[derive(Debug, Default)]
pub(crate) struct IopsLimit {
    per_second: Option<u64>,
    next: Instant,
}

impl IopsLimit {
    pub(crate) fn new(per_second: Option<u64>) -> IopsLimit {
        IopsLimit { per_second, next: Instant(0) }
    }

    /// When a request of `len` bytes that arrives now may begin. Requests of 0.1 s may begin in a burst.
    pub(crate) fn admit(&mut self, now: Instant, len: u64) -> Instant {
        let Some(limit) = self.per_second else { return now };
        let cost = len.div_ceil(IOPS_LIMIT_UNIT).max(1);
        let burst = Duration::from_millis(100);
        let at = self.next.max(now - burst);
        self.next = at + Duration::from_nanos(cost * 1_000_000_000 / limit.max(1));
        at.max(now)
    }
}

/// How long a write waits for a group of that congestion.
pub(crate) fn congestion_delay(congestion: u8) -> Duration {
    let share = u64::from(congestion);
    let nanos = CONGESTION_DELAY_MAX.as_nanos() as u64;
    Duration::from_nanos(nanos * (share * share * share) / (255 * 255 * 255))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_requests_count_several_times() {
        let mut limit = IopsLimit::new(Some(100));
        let start = Instant(10_000_000_000);
        let mut last = start;
        for _ in 0..110 {
            last = limit.admit(start, 64 << 10);
        }
        // 110 requests count 220 times; 10 of those come at once.
        let waited = last.since(start).as_secs_f64();
        assert!((2.0..2.2).contains(&waited), "{waited}");
    }

    #[test]
    fn congestion_delays_little_at_first_and_smoothly_more() {
        assert_eq!(congestion_delay(0), Duration::ZERO);
        assert!(congestion_delay(32) < Duration::from_millis(1));
        assert_eq!(congestion_delay(255), CONGESTION_DELAY_MAX);
        assert!((1..255).all(|c| congestion_delay(c) < congestion_delay(c + 1)));
    }
}
