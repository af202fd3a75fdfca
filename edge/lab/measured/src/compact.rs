//! A histogram of one second: a few dozen buckets of the 2,624, so a run of days fits in memory.

use serde::{Deserialize, Serialize};
use statistics::Histogram;

/// What [`Histogram`] holds, without its empty buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compact {
    /// Bucket and count, rising.
    buckets: Box<[(u16, u32)]>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u64,
}

impl Compact {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// The largest value in ns; 0 without values.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The sum of the values in ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// As a histogram. What is not one (a file that somebody changed) is as empty as it can be made.
    pub fn histogram(&self) -> Histogram {
        let pairs = self.buckets.iter().map(|&(bucket, count)| (usize::from(bucket), u64::from(count)));
        let mut histogram = Histogram::from_indexed(pairs).unwrap_or_default();
        let count = self.count();
        if count > 0 {
            histogram.set_extremes(self.min_ns, self.max_ns, self.sum_ns as f64 / count as f64);
        }
        histogram
    }
}

impl From<&Histogram> for Compact {
    fn from(histogram: &Histogram) -> Compact {
        let buckets = (histogram.counts().iter().enumerate())
            .filter(|&(_, &count)| count > 0)
            .map(|(bucket, &count)| (bucket as u16, u32::try_from(count).unwrap_or(u32::MAX)))
            .collect();
        Compact {
            buckets,
            min_ns: histogram.min_ns().unwrap_or(0),
            max_ns: histogram.max_ns().unwrap_or(0),
            sum_ns: u64::try_from(histogram.sum_ns()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_histogram_gives_back_what_it_was_made_from() {
        let mut histogram = Histogram::default();
        for ns in [5, 1_000, 1_000, 123_456_789, 20_000_000_000] {
            histogram.record(ns);
        }
        let compact = Compact::from(&histogram);
        assert_eq!(compact.count(), 5);
        let back = compact.histogram();
        assert_eq!(
            (back.counts(), back.min_ns(), back.max_ns()),
            (histogram.counts(), Some(5), Some(20_000_000_000))
        );
        assert_eq!(Compact::from(&Histogram::default()).histogram(), Histogram::default());
    }
}
