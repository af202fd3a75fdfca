//! How many I/Os are outstanding, and what Little's law says to that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

/// I/Os under way at a time; with more, the one that ends first counts as ended.
const UNDER_WAY_MAX: usize = 65_536;

/// How many I/Os are outstanding, where the trace tells latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outstanding {
    /// On average over time: by Little's law, pace times mean latency.
    pub mean: f64,
    /// What arriving I/Os found, themselves among them, on average. A closed loop of n finds n; independent arrivals find one
    /// more than the mean over time.
    pub at_arrival: f64,
    /// The standard deviation of that by its mean: near 0 in a closed loop.
    pub variation: f64,
    /// The most that an I/O found.
    pub most: u64,
    /// (`at_arrival` - `mean`) by `at_arrival`: 0 in a closed loop, up to 1 / `at_arrival` for arrivals on their own, more where
    /// there is idle time between bursts. Below 0, times or latencies of the trace are not what they say.
    pub residual: f64,
}

#[derive(Debug, Default)]
pub(super) struct Depth {
    under_way: BinaryHeap<Reverse<u64>>,
    count: u64,
    sum: f64,
    squares: f64,
    most: u64,
    latency_s: f64,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Depth {
    pub(super) fn io(&mut self, at_ns: u64, latency_ns: u64) {
        while self.under_way.peek().is_some_and(|end| end.0 <= at_ns) || self.under_way.len() >= UNDER_WAY_MAX
        {
            self.under_way.pop();
        }
        let end = at_ns.saturating_add(latency_ns);
        self.under_way.push(Reverse(end));
        let found = self.under_way.len() as u64;
        self.count += 1;
        self.sum += found as f64;
        self.squares += (found as f64).powi(2);
        self.most = self.most.max(found);
        self.latency_s += latency_ns as f64 / 1e9;
        self.first_ns.get_or_insert(at_ns);
        self.last_ns = self.last_ns.max(end);
    }

    pub(super) fn finish(&self) -> Option<Outstanding> {
        let seconds = self.last_ns.checked_sub(self.first_ns?)? as f64 / 1e9;
        if seconds <= 0.0 {
            return None;
        }
        let n = self.count as f64;
        let (mean, at_arrival) = (self.latency_s / seconds, self.sum / n);
        let variation = (self.squares / n - at_arrival * at_arrival).max(0.0).sqrt() / at_arrival;
        let residual = (at_arrival - mean) / at_arrival;
        Some(Outstanding { mean, at_arrival, variation, most: self.most, residual })
    }
}
