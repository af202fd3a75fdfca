//! The histogram of latencies that the whole lab uses: fio's own buckets, nanoseconds, added up and never averaged.
//!
//! [`Histogram::record`] is in the generator's hot path: a few instructions, no branch that depends on the data but one, and
//! no allocation after the first. All else is computed from the counts at the end. Relies on nothing. Must never interpolate within a bucket:
//! what it reports is the middle of a bucket, kept between the exact smallest and largest value.

mod scheme;
mod sparse;
#[cfg(test)]
mod tests;

use serde::Serialize;

use scheme::{BUCKETS, FIO_BUCKETS, bucket_of, middle_of, range_of};

/// The greatest relative error of a percentile, for latencies up to 19 h: half a bucket of 1/64.
pub const PERCENTILE_ERROR: f64 = 1.0 / 128.0;

/// Latencies of one kind of I/O in nanoseconds. 21 KiB once it holds something.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    /// There once something is counted, and only then: most of the histograms that a result holds stay empty.
    counts: Option<Box<[u64; BUCKETS]>>,
    count: u64,
    sum: u128,
    /// `u64::MAX` while there is none.
    min: u64,
    /// 0 while there is none.
    max: u64,
}

/// One bucket that holds something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The smallest latency that falls in it, in ns.
    pub from_ns: u64,
    /// The smallest that no longer does; `u64::MAX` for the topmost.
    pub to_ns: u64,
    /// The latency that stands for it.
    pub middle_ns: u64,
    /// How many fell in it.
    pub count: u64,
}

/// A later histogram lacks what an earlier one of the same series has: they are not of one series, or it was reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the bucket from {from_ns} ns to {to_ns} ns holds {later} in the later histogram and {earlier} in the earlier one: \
     the counters were reset between them, or they are of different series; give them in order, or start after the reset"
)]
pub struct DifferenceError {
    /// First latency of the bucket, in ns.
    pub from_ns: u64,
    /// First latency after it.
    pub to_ns: u64,
    /// Count of the bucket in the later histogram.
    pub later: u64,
    /// Count of the bucket in the earlier one.
    pub earlier: u64,
}

/// Numbers that are no histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// A bucket that fio's scheme does not have.
    #[error("there is no bucket {index}: there are {BUCKETS}, from 0 to {}", BUCKETS - 1)]
    NoSuchBucket {
        /// What was asked for.
        index: usize,
    },
    /// A row of counts of another length.
    #[error(
        "{found} counts, and fio's histogram has {FIO_BUCKETS}: was it written by a fio with other buckets (before 3.0)?"
    )]
    Length {
        /// How many counts there were.
        found: usize,
    },
    /// More than 2^64 values.
    #[error("the counts together exceed 64 bits: no run has as many I/Os; is the file damaged?")]
    TooMany,
    /// Min, max, sum and buckets do not agree.
    #[error("minimum, maximum, sum and buckets contradict each other: the histogram was changed or cut off")]
    Contradiction,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: None, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (min, max) = (self.min_ns(), self.max_ns());
        write!(f, "Histogram {{ count: {}, min_ns: {min:?}, max_ns: {max:?} }}", self.count)
    }
}

impl Histogram {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts the same latency `count` times.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        // A histogram would have to run for centuries for these to wrap.
        let bucket = &mut self.counts_mut()[bucket_of(ns)];
        *bucket = bucket.wrapping_add(count);
        self.count = self.count.wrapping_add(count);
        self.sum = self.sum.wrapping_add(u128::from(ns) * u128::from(count));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    #[inline]
    fn counts_mut(&mut self) -> &mut [u64; BUCKETS] {
        self.counts.get_or_insert_with(no_counts)
    }

    /// Adds the values of `other`: as if both had been recorded in one.
    pub fn merge(&mut self, other: &Histogram) {
        if let Some(more) = &other.counts {
            for (count, more) in self.counts_mut().iter_mut().zip(more.iter()) {
                *count = count.wrapping_add(*more);
            }
        }
        self.count = self.count.wrapping_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// All of these in one; empty when there are none.
    pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Histogram>) -> Histogram {
        let mut all = Histogram::default();
        parts.into_iter().for_each(|part| all.merge(part));
        all
    }

    /// What came since `earlier`, an older state of this same histogram. Counts and sum are exact. Min and max are exact
    /// when they were set since; else they are the tightest that the buckets allow. Fails when a bucket has fewer than it
    /// had.
    pub fn difference(&self, earlier: &Histogram) -> Result<Histogram, DifferenceError> {
        let mut since = Histogram::default();
        for index in 0..BUCKETS {
            let (later, earlier) = (self.counts()[index], earlier.counts()[index]);
            let (from_ns, to_ns) = range_of(index);
            let more =
                later.checked_sub(earlier).ok_or(DifferenceError { from_ns, to_ns, later, earlier })?;
            if more > 0 {
                since.counts_mut()[index] = more;
            }
        }
        since.count = self.count.wrapping_sub(earlier.count);
        if let Some((lowest, highest)) = since.range_allowed() {
            since.min = if self.min < earlier.min { self.min } else { self.min.max(*lowest.start()) };
            since.max = if self.max > earlier.max { self.max } else { self.max.min(*highest.end()) };
            // The counts only grew, so the sum did too, unless the two are of different series in a way the counts do not
            // tell: then it is kept between what min and max allow.
            let count = u128::from(since.count);
            let sum = self.sum.saturating_sub(earlier.sum);
            since.sum = sum.clamp(u128::from(since.min) * count, u128::from(since.max) * count);
        }
        Ok(since)
    }

    /// The histogram of these (latency in ns, count) pairs, as in the `bins` of fio's JSON+: every latency there is the
    /// middle of its bucket, so min, max and mean are to the bucket, until [`Histogram::set_extremes`] tells better.
    pub fn from_fio_bins(bins: impl IntoIterator<Item = (u64, u64)>) -> Result<Histogram, HistogramError> {
        Histogram::from_indexed(bins.into_iter().map(|(ns, count)| (bucket_of(ns), count)))
    }

    /// The histogram of a row of counts, one per bucket, as in a line of fio's `clat_hist` log.
    pub fn from_counts(counts: &[u64]) -> Result<Histogram, HistogramError> {
        if counts.len() != FIO_BUCKETS {
            return Err(HistogramError::Length { found: counts.len() });
        }
        Histogram::from_indexed(counts.iter().copied().enumerate())
    }

    /// The histogram of (bucket index, count) pairs; an index may come more than once. Min, max and sum are of the middles.
    pub fn from_indexed(pairs: impl IntoIterator<Item = (usize, u64)>) -> Result<Histogram, HistogramError> {
        let mut histogram = Histogram::default();
        for (index, count) in pairs {
            if index >= BUCKETS {
                return Err(HistogramError::NoSuchBucket { index });
            }
            // The total bounds every bucket, and the sum stays far below 128 bits.
            histogram.count.checked_add(count).ok_or(HistogramError::TooMany)?;
            histogram.record_many(middle_of(index), count);
        }
        Ok(histogram)
    }

    /// Takes the exact smallest, largest and mean latency that a tool printed beside the buckets, as far as the buckets
    /// allow: a figure outside its bucket is not taken, and the middles stay. True when all were taken.
    pub fn set_extremes(&mut self, min_ns: u64, max_ns: u64, mean_ns: f64) -> bool {
        let Some((lowest, highest)) = self.range_allowed() else { return false };
        if lowest.contains(&min_ns) {
            self.min = min_ns;
        }
        if highest.contains(&max_ns) {
            self.max = max_ns;
        }
        let mean_fits = mean_ns.is_finite() && mean_ns >= self.min as f64 && mean_ns <= self.max as f64;
        if mean_fits {
            let count = u128::from(self.count);
            let sum = (mean_ns * self.count as f64) as u128;
            self.sum = sum.clamp(u128::from(self.min) * count, u128::from(self.max) * count);
        }
        self.min == min_ns && self.max == max_ns && mean_fits
    }

    /// Where the smallest and the largest value must lie, by the buckets alone.
    fn range_allowed(&self) -> Option<(std::ops::RangeInclusive<u64>, std::ops::RangeInclusive<u64>)> {
        let first = self.counts().iter().position(|&count| count > 0)?;
        let last = self.counts().iter().rposition(|&count| count > 0)?;
        let inclusive = |index: usize| match range_of(index) {
            (from, u64::MAX) => from..=u64::MAX,
            (from, to) => from..=to - 1,
        };
        Some((inclusive(first), inclusive(last)))
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// True while there is no value.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The sum of all values in ns.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The smallest value in ns.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value in ns.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The exact mean in ns.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The latency in ns that the share `p` (0..=1; what is outside counts as the nearer end) of all values did not exceed:
    /// the first bucket whose cumulative count reaches p * N, by its middle. 0 and 1 give the exact smallest and largest.
    /// Nothing when there are no values.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        (self.count > 0).then(|| self.value_at(rank_of(p, self.count)))
    }

    /// All buckets that hold something, fastest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts().iter().enumerate().filter(|&(_, &count)| count > 0).map(|(index, &count)| {
            let (from_ns, to_ns) = range_of(index);
            Bucket { from_ns, to_ns, middle_ns: middle_of(index), count }
        })
    }

    /// All counts, one per bucket: fio's, and those that go on from there.
    pub fn counts(&self) -> &[u64] {
        static NONE: [u64; BUCKETS] = [0; BUCKETS];
        self.counts.as_deref().unwrap_or(&NONE)
    }

    /// The value of a rank, which counts from 1 to the number of values.
    fn value_at(&self, rank: u64) -> u64 {
        if rank <= 1 {
            return self.min;
        }
        if rank >= self.count {
            return self.max;
        }
        let mut seen = 0u64;
        for (index, count) in self.counts().iter().enumerate() {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return middle_of(index).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

#[cold]
fn no_counts() -> Box<[u64; BUCKETS]> {
    vec![0; BUCKETS].into_boxed_slice().try_into().expect("it was made of that length")
}

/// The rank of a percentile, from 1: of 100 values, the 99 % point is the 99th.
pub(crate) fn rank_of(p: f64, count: u64) -> u64 {
    let p = if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let exact = p * count as f64;
    // 0.07 * 100 is 7.000000000000001 in binary: a percentile must not move by a rank for that.
    ((exact - exact * 1e-12).ceil() as u64).clamp(1, count.max(1))
}
