//! How fast this node's owners bring components up to date: as fast as their guests do not feel it, and never slower than
//! a floor.
//!
//! Guests' latency is compared with what it was while nothing was copied. Above the goal the rate falls by a quarter,
//! below it rises by a step (additive increase, multiplicative decrease, as TCP does); without guests it doubles. The
//! source of the floor: a resync that never ends is worse than one that is felt (vSAN keeps a fifth of the bandwidth).

use crate::limits;
use base::Instant;
use std::time::Duration;

/// The pace of all copies of one node.
#[derive(Debug)]
pub(crate) struct CopyPace {
    /// Bytes a second.
    rate: u64,
    /// Mean latency of guests' requests while nothing was copied, smoothed; 0 until there was one.
    calm_ns: u64,
    /// Latencies in the period that runs.
    sum_ns: u64,
    count: u64,
    /// The greatest back-pressure of a component in it, 0..=255.
    congestion: u8,
    period_began: Instant,
    granted_at: Option<Instant>,
}

impl CopyPace {
    pub(crate) fn new(now: Instant) -> CopyPace {
        CopyPace {
            rate: limits::COPY_RATE_START,
            calm_ns: 0,
            sum_ns: 0,
            count: 0,
            congestion: 0,
            period_began: now,
            granted_at: None,
        }
    }

    /// A request of a guest ended that this node served.
    pub(crate) fn guest_done(&mut self, took: Duration) {
        self.sum_ns += took.as_nanos() as u64;
        self.count += 1;
    }

    /// Bytes that may be copied from now on, while something is to be copied; nothing before the next grant is due.
    pub(crate) fn grant(&mut self, now: Instant, congestion: u8) -> Option<u64> {
        self.congestion = self.congestion.max(congestion);
        let since = match self.granted_at {
            None => limits::COPY_GRANT_PERIOD,
            Some(at) => now.since(at),
        };
        if since < limits::COPY_GRANT_PERIOD {
            return None;
        }
        if self.granted_at.is_none() {
            self.begin_period(now); // A part of a calm period says little.
        }
        self.granted_at = Some(now);
        self.end_period(now);
        // After a pause there is no burst.
        let since = since.min(limits::COPY_GRANT_PERIOD * 2);
        Some((u128::from(self.rate) * since.as_nanos() / 1_000_000_000) as u64)
    }

    /// Nothing is to be copied now.
    pub(crate) fn rest(&mut self, now: Instant) {
        if self.granted_at.take().is_some() {
            self.begin_period(now); // What was measured belongs to a time of copies.
        } else if now.since(self.period_began) >= limits::COPY_PERIOD {
            self.end_calm(now);
        }
    }

    /// When the next grant is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.granted_at.map(|at| at + limits::COPY_GRANT_PERIOD)
    }

    fn end_calm(&mut self, now: Instant) {
        if let Some(mean) = self.sum_ns.checked_div(self.count) {
            self.calm_ns = if self.calm_ns == 0 { mean } else { (self.calm_ns * 7 + mean) / 8 };
        }
        self.begin_period(now);
    }

    fn begin_period(&mut self, now: Instant) {
        (self.sum_ns, self.count, self.congestion, self.period_began) = (0, 0, 0, now);
    }

    /// Compares a period of copies with the goal.
    fn end_period(&mut self, now: Instant) {
        if now.since(self.period_began) < limits::COPY_PERIOD {
            return;
        }
        let mean = self.sum_ns.checked_div(self.count);
        let is_congested = self.congestion > limits::COPY_CONGESTION_MAX;
        let rate = match mean {
            _ if is_congested => self.rate * 3 / 4,
            None => self.rate * 2,
            Some(mean) if mean > self.goal_ns() => self.rate * 3 / 4,
            Some(_) => self.rate + limits::COPY_RATE_STEP,
        };
        self.rate = rate.clamp(limits::COPY_RATE_FLOOR, limits::COPY_RATE_CEILING);
        self.begin_period(now);
    }

    /// The mean latency that guests may have while something is copied.
    fn goal_ns(&self) -> u64 {
        match self.calm_ns {
            0 => limits::COPY_GOAL_UNKNOWN.as_nanos() as u64,
            calm => (calm * 2).max(calm + limits::COPY_GOAL_SLACK.as_nanos() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = limits::COPY_GRANT_PERIOD;

    struct Bench {
        now: Instant,
        pace: CopyPace,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { now: Instant(1), pace: CopyPace::new(Instant(1)) }
        }

        fn calm(&mut self, latency: Duration) {
            for _ in 0..100 {
                self.now = self.now + STEP;
                self.pace.guest_done(latency);
                self.pace.rest(self.now);
            }
        }

        /// Copies for a second while guests' requests take so long; bytes that might be copied.
        fn copy(&mut self, latency: Option<Duration>, congestion: u8) -> u64 {
            let mut bytes = 0;
            for _ in 0..Duration::from_secs(1).as_millis() / STEP.as_millis() {
                self.now = self.now + STEP;
                latency.into_iter().for_each(|latency| self.pace.guest_done(latency));
                bytes += self.pace.grant(self.now, congestion).expect("a grant is due");
            }
            bytes
        }
    }

    const QUICK: Duration = Duration::from_micros(300);
    const SLOW: Duration = Duration::from_millis(9);

    #[test]
    fn guests_that_feel_it_slow_copies_down_to_the_floor_and_no_further() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let mut rates: Vec<u64> = (0..10).map(|_| bench.copy(Some(SLOW), 0)).collect();
        assert!(rates[0] > rates[1]);
        let last = rates.pop().expect("ten");
        let difference = last.abs_diff(limits::COPY_RATE_FLOOR);
        assert!(difference < limits::COPY_RATE_FLOOR / 100, "{last}");
    }

    #[test]
    fn guests_that_do_not_feel_it_let_copies_become_quicker_step_by_step() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let rates: Vec<u64> = (0..5).map(|_| bench.copy(Some(QUICK * 2), 0)).collect();
        assert!(rates.is_sorted() && rates[4] > rates[0] + 3 * limits::COPY_RATE_STEP, "{rates:?}");
    }

    #[test]
    fn without_guests_copies_are_soon_as_quick_as_they_can_be() {
        let mut bench = Bench::new();
        bench.copy(None, 0);
        // Each grant is rounded down to a byte.
        assert!(limits::COPY_RATE_CEILING - bench.copy(None, 0) < 100);
    }

    #[test]
    fn a_log_that_fills_slows_copies_whatever_guests_feel() {
        let mut bench = Bench::new();
        let before = bench.copy(None, 0);
        for _ in 0..5 {
            bench.copy(None, 255);
        }
        assert!(bench.copy(None, 255) < before / 4);
    }

    #[test]
    fn what_guests_feel_during_copies_does_not_become_the_goal() {
        let mut bench = Bench::new();
        bench.calm(QUICK);
        let goal = bench.pace.goal_ns();
        for _ in 0..3 {
            bench.copy(Some(SLOW), 0);
            bench.pace.rest(bench.now);
        }
        assert_eq!(bench.pace.goal_ns(), goal);
    }

    #[test]
    fn grants_are_not_saved_over_a_pause() {
        let mut bench = Bench::new();
        bench.copy(Some(QUICK), 0);
        bench.now = bench.now + Duration::from_secs(30);
        let granted = bench.pace.grant(bench.now, 0).expect("one is due");
        assert!(granted <= limits::COPY_RATE_CEILING / 20, "{granted}");
        assert_eq!(bench.pace.grant(bench.now, 0), None);
    }
}
