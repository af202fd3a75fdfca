//! The latencies of one window, as finely as they are known.

use iostats::FineLatency;
use serde::{Deserialize, Serialize};

/// A bucket that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBin {
    /// The smallest latency that falls in it, in ns.
    pub from_ns: u64,
    /// The smallest that no longer does; `u64::MAX` for the topmost.
    pub to_ns: u64,
    /// How many fell in it.
    pub count: u64,
}

/// Latencies of one kind of I/O: the buckets that hold something, of [`iostats::FineLatency`]'s scheme (64 in each power of
/// two), fastest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Fastest first; none is empty.
    pub bins: Vec<LatencyBin>,
    /// The smallest, in ns; 0 when there is none.
    pub min_ns: u64,
    /// The largest, in ns; 0 when there is none.
    pub max_ns: u64,
}

impl Latencies {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.count))
    }

    /// Adds those of another window, direction or disk.
    pub fn merge(&mut self, other: &Latencies) {
        if other.bins.is_empty() {
            return;
        }
        if self.bins.is_empty() {
            self.clone_from(other);
            return;
        }
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        let mut merged = Vec::with_capacity(self.bins.len() + other.bins.len());
        let (mut mine, mut others) = (self.bins.iter().peekable(), other.bins.iter().peekable());
        loop {
            let next = match (mine.peek(), others.peek()) {
                (Some(one), Some(two)) if one.from_ns == two.from_ns => {
                    let count = one.count.saturating_add(two.count);
                    let bin = LatencyBin { count, ..**one };
                    mine.next();
                    others.next();
                    bin
                }
                (Some(one), Some(two)) if one.from_ns > two.from_ns => {
                    *others.next().expect("it was peeked at")
                }
                (Some(_), _) => *mine.next().expect("it was peeked at"),
                (None, Some(_)) => *others.next().expect("it was peeked at"),
                (None, None) => break,
            };
            merged.push(next);
        }
        self.bins = merged;
    }

    /// The latency in ns that the share `q` (0..=1) of them did not exceed, within [`iostats::PERCENTILE_ERROR`]; nothing when
    /// there is none.
    pub fn percentile(&self, q: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let q = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) };
        // The rank counts from 1: of 100 I/Os, the 99 % point is the 99th.
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        if rank == 1 {
            return Some(self.min_ns);
        }
        if rank == total {
            return Some(self.max_ns);
        }
        let mut seen = 0u64;
        let bin = self.bins.iter().find(|bin| {
            seen = seen.saturating_add(bin.count);
            seen >= rank
        })?;
        let middle =
            if bin.to_ns == u64::MAX { bin.from_ns } else { bin.from_ns + (bin.to_ns - bin.from_ns) / 2 };
        Some(middle.max(self.min_ns).min(self.max_ns))
    }
}

impl From<&FineLatency> for Latencies {
    fn from(fine: &FineLatency) -> Latencies {
        let bins: Vec<LatencyBin> = fine
            .buckets()
            .map(|bucket| LatencyBin { from_ns: bucket.from_ns, to_ns: bucket.to_ns, count: bucket.count })
            .collect();
        if bins.is_empty() {
            return Latencies::default();
        }
        Latencies { bins, min_ns: fine.min_ns, max_ns: fine.max_ns }
    }
}
