//! The fine latency histogram: log-linear, for percentiles.
//!
//! Every power of two from 1,024 ns to 2^37 ns (137 s) is cut into 64 equal buckets. What is faster falls in one bucket
//! below, what is slower in the topmost. A percentile is the middle of its bucket, so it is off by at most half of 1/64 of
//! its value: [`PERCENTILE_ERROR`].

use std::time::Duration;

/// log2 of the buckets per power of two.
const SUB_BITS: u32 = 6;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
/// The lowest value with a bucket of its own is 2^10 ns.
const LOW_BITS: u32 = 10;
const HIGH_BITS: u32 = 37;
/// One for all that is faster, then 64 for each power of two.
pub(crate) const FINE_BUCKETS: usize = 1 + (HIGH_BITS - LOW_BITS) as usize * SUB_BUCKETS;

/// log2 of the fine buckets that are one coarse bucket.
const COARSE_BITS: u32 = 3;
/// As [`FINE_BUCKETS`], with eight for each power of two.
pub(crate) const COARSE_BUCKETS: usize = 1 + (FINE_BUCKETS - 1) / (1 << COARSE_BITS);

/// The greatest relative error of [`FineLatency::percentile`] for latencies of 1.024 us to 137 s.
pub const PERCENTILE_ERROR: f64 = 1.0 / (2 * SUB_BUCKETS) as f64;

// Two of them and the vSCSI histograms stay within 32 KiB per disk.
const _: () = assert!(FINE_BUCKETS * size_of::<u64>() <= 14 << 10);

/// Latencies of one kind of I/O in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FineLatency {
    pub(crate) counts: Box<[u64; FINE_BUCKETS]>,
    /// Number of latencies.
    pub count: u64,
    /// The smallest, in ns; `u64::MAX` while there is none.
    pub min_ns: u64,
    /// The largest, in ns; 0 while there is none.
    pub max_ns: u64,
    /// The sum in ns.
    pub sum_ns: u128,
}

/// One bucket of a [`FineLatency`] that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FineBucket {
    /// The smallest latency that falls in it, in ns.
    pub from_ns: u64,
    /// The smallest that no longer does; `u64::MAX` for the topmost.
    pub to_ns: u64,
    /// How many fell in it.
    pub count: u64,
}

impl Default for FineLatency {
    fn default() -> Self {
        FineLatency { counts: Box::new([0; FINE_BUCKETS]), count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }
}

impl FineLatency {
    /// One more latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.saturating_add(*more);
        }
        self.count = self.count.saturating_add(other.count);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }

    /// What came since `earlier`; for min and max see `Histogram::difference`.
    pub fn difference(&self, earlier: &Self) -> Self {
        let mut result = Self::default();
        let (mut first, mut last) = (None, 0);
        for (index, count) in result.counts.iter_mut().enumerate() {
            *count = self.counts[index].saturating_sub(earlier.counts[index]);
            if *count > 0 {
                first = first.or(Some(index));
                last = index;
                result.count = result.count.saturating_add(*count);
            }
        }
        let Some(first) = first else { return result };
        result.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        result.min_ns =
            if self.min_ns < earlier.min_ns { self.min_ns } else { self.min_ns.max(range_of(first).0) };
        result.max_ns =
            if self.max_ns > earlier.max_ns { self.max_ns } else { self.max_ns.min(range_of(last).1 - 1) };
        result
    }

    /// The latency that the share `q` (0..=1) of all I/Os did not exceed; nothing when there was none.
    /// `q` = 0 and 1 give the exact smallest and largest; others are within [`PERCENTILE_ERROR`].
    pub fn percentile(&self, q: f64) -> Option<Duration> {
        percentile_of(&[self], q)
    }

    /// The exact mean.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_nanos((self.sum_ns / u128::from(self.count)) as u64))
    }

    /// Counts by coarse bucket.
    pub(crate) fn coarse(&self) -> [u64; COARSE_BUCKETS] {
        let mut coarse = [0u64; COARSE_BUCKETS];
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let place = &mut coarse[if index == 0 { 0 } else { 1 + ((index - 1) >> COARSE_BITS) }];
            *place = place.saturating_add(*count);
        }
        coarse
    }

    /// All buckets that are not empty, fastest first.
    pub fn buckets(&self) -> impl Iterator<Item = FineBucket> + '_ {
        self.counts.iter().enumerate().filter(|&(_, &count)| count > 0).map(|(index, &count)| {
            let (from_ns, to_ns) = range_of(index);
            FineBucket { from_ns, to_ns, count }
        })
    }
}

/// As [`FineLatency::percentile`], of several together.
pub(crate) fn percentile_of(parts: &[&FineLatency], q: f64) -> Option<Duration> {
    let total = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.count));
    let min = parts.iter().map(|part| part.min_ns).min().unwrap_or(u64::MAX);
    let max = parts.iter().map(|part| part.max_ns).max().unwrap_or(0);
    if total == 0 {
        return None;
    }
    let q = if q.is_nan() { 1.0 } else { q.clamp(0.0, 1.0) };
    // The rank counts from 1: of 100 I/Os, the 99 % point is the 99th.
    let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
    if rank == 1 {
        return Some(Duration::from_nanos(min));
    }
    if rank == total {
        return Some(Duration::from_nanos(max));
    }
    let mut seen = 0u64;
    for index in 0..FINE_BUCKETS {
        seen = seen
            .saturating_add(parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.counts[index])));
        if seen >= rank {
            let (from, to) = range_of(index);
            let middle = if to == u64::MAX { from } else { from + (to - from) / 2 };
            return Some(Duration::from_nanos(middle.max(min).min(max)));
        }
    }
    Some(Duration::from_nanos(max))
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < 1 << LOW_BITS {
        return 0;
    }
    let octave = 63 - ns.leading_zeros();
    if octave >= HIGH_BITS {
        return FINE_BUCKETS - 1;
    }
    // The six bits after the leading one.
    let sub = (ns >> (octave - SUB_BITS)) as usize & (SUB_BUCKETS - 1);
    1 + (octave - LOW_BITS) as usize * SUB_BUCKETS + sub
}

/// First value of a bucket, and first value after it.
fn range_of(index: usize) -> (u64, u64) {
    if index == 0 {
        return (0, 1 << LOW_BITS);
    }
    let octave = LOW_BITS + ((index - 1) / SUB_BUCKETS) as u32;
    let width = 1u64 << (octave - SUB_BITS);
    let from = (1u64 << octave) + ((index - 1) % SUB_BUCKETS) as u64 * width;
    (from, if index == FINE_BUCKETS - 1 { u64::MAX } else { from + width })
}

/// The same of a coarse bucket; the topmost ends where its fine ones would.
pub(crate) fn coarse_range(index: usize) -> (u64, u64) {
    if index == 0 {
        return range_of(0);
    }
    let first = 1 + ((index - 1) << COARSE_BITS);
    let last = first + (1 << COARSE_BITS) - 1;
    let end = range_of(last).1;
    (range_of(first).0, if end == u64::MAX { 1 << HIGH_BITS } else { end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    #[test]
    fn buckets_join_without_gap_and_every_value_lies_in_its_own() {
        for index in 0..FINE_BUCKETS {
            let (from, to) = range_of(index);
            assert_eq!((bucket_of(from), bucket_of(to - 1)), (index, index));
            if index + 1 < FINE_BUCKETS {
                assert_eq!(range_of(index + 1).0, to);
            }
        }
        assert_eq!(bucket_of(u64::MAX), FINE_BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_within_the_stated_error() {
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut latency = FineLatency::default();
            let mut values: Vec<u64> = (0..random.range(1..3_000))
                .map(|_| {
                    let high = 1u64 << random.range(11..37);
                    random.range(1 << 10..high)
                })
                .collect();
            values.iter().for_each(|&value| latency.record(value));
            values.sort_unstable();
            for q in [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1] as f64;
                let found = latency.percentile(q).expect("there are values").as_nanos() as f64;
                assert!(
                    (found - exact).abs() <= exact * PERCENTILE_ERROR + 1.0,
                    "seed {seed} q {q}: {found} {exact}"
                );
            }
            assert_eq!(latency.percentile(0.0), Some(Duration::from_nanos(values[0])));
            assert_eq!(latency.percentile(1.0), values.last().map(|&ns| Duration::from_nanos(ns)));
        }
        assert_eq!(FineLatency::default().percentile(0.5), None);
    }
}
