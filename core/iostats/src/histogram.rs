//! One histogram of `N` buckets, with the exact smallest and largest value and the exact sum.

/// Counts per bucket, and exact figures beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram<const N: usize> {
    /// How many values fell in each bucket.
    pub counts: [u64; N],
    /// The smallest value; `i64::MAX` while there is none.
    pub min: i64,
    /// The largest value; `i64::MIN` while there is none.
    pub max: i64,
    /// The sum of all values: seeks over 64 TiB overflow 64 bits within an hour.
    pub sum: i128,
}

impl<const N: usize> Default for Histogram<N> {
    fn default() -> Self {
        Histogram { counts: [0; N], min: i64::MAX, max: i64::MIN, sum: 0 }
    }
}

impl<const N: usize> Histogram<N> {
    /// Counts `value` in its bucket of `limits`. Called nine times per I/O: inlined, that is 4 KiB of code in the data path
    /// and no faster.
    #[inline(never)]
    pub(crate) fn record(&mut self, limits: &Limits<N>, value: i64) {
        self.counts[limits.bucket_of(value)] += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += i128::from(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Adds the values of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// What came since `earlier`. Counts and sum are exact. Min and max are exact if they were set since; else they are
    /// the tightest that the buckets and the exact figures over all time allow.
    pub(crate) fn difference(&self, earlier: &Self, limits: &Limits<N>) -> Self {
        let mut result = Self::default();
        for (index, count) in result.counts.iter_mut().enumerate() {
            *count = self.counts[index].saturating_sub(earlier.counts[index]);
        }
        result.sum = self.sum.saturating_sub(earlier.sum);
        let Some(first) = result.counts.iter().position(|&count| count > 0) else {
            return Self::default();
        };
        let last = result.counts.iter().rposition(|&count| count > 0).unwrap_or(first);
        let above_previous = if first == 0 { i64::MIN } else { i64::from(limits.values[first - 1]) + 1 };
        let limit = if last == N - 1 { i64::MAX } else { i64::from(limits.values[last]) };
        result.min = if self.min < earlier.min { self.min } else { self.min.max(above_previous) };
        result.max = if self.max > earlier.max { self.max } else { self.max.min(limit) };
        result
    }
}

/// Bucket limits with a table that finds a value's bucket in a few instructions and no branch: recording is in the data path.
#[derive(Debug)]
pub(crate) struct Limits<const N: usize> {
    /// The upper limits; the last is `i32::MAX`.
    pub(crate) values: [i32; N],
    /// Per [`octave_of`] a value, the bucket of the octave's smallest value.
    first: [u8; OCTAVES],
    /// Per octave, the limits of that bucket and the next ones; `i32::MAX` beyond the last.
    next: [[i32; LIMITS_PER_OCTAVE]; OCTAVES],
}

/// Octaves of negative values, zero, octaves of positive values.
const OCTAVES: usize = 64;
/// No octave has more limits than this: 16, 20, 24 and 28 of the outstanding I/Os lie in one.
const LIMITS_PER_OCTAVE: usize = 4;

/// Values in order: 0 is -2^31, 31 is -1, 32 is 0, 33 is 1, 34 is 2..=3, 35 is 4..=7 ….
#[inline]
const fn octave_of(value: i32) -> usize {
    let bits = 32 - value.unsigned_abs().leading_zeros() as usize;
    if value < 0 { 32 - bits } else { 32 + bits }
}

impl<const N: usize> Limits<N> {
    pub(crate) const fn new(values: [i32; N]) -> Limits<N> {
        assert!(values[N - 1] == i32::MAX);
        let mut first = [0; OCTAVES];
        let mut next = [[i32::MAX; LIMITS_PER_OCTAVE]; OCTAVES];
        let mut octave = 0;
        while octave < OCTAVES {
            let smallest = match octave {
                // The octave of magnitudes 2^(31 - octave) and more, but twice that: its smallest value has the greatest.
                0..=31 => -((1i64 << (32 - octave)) - 1),
                32 => 0,
                _ => 1i64 << (octave - 33),
            };
            let mut bucket = 0;
            while (values[bucket] as i64) < smallest {
                bucket += 1;
            }
            first[octave] = bucket as u8;
            let mut step = 0;
            while step < LIMITS_PER_OCTAVE && bucket + step < N {
                next[octave][step] = values[bucket + step];
                step += 1;
            }
            octave += 1;
        }
        Limits { values, first, next }
    }

    /// The first bucket whose limit is not below `value`.
    #[inline]
    pub(crate) fn bucket_of(&self, value: i64) -> usize {
        let value = value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        let octave = octave_of(value);
        let below = self.next[octave].iter().map(|&limit| u32::from(limit < value)).sum::<u32>();
        self.first[octave] as usize + below as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::{Kind, LENGTH_LIMITS, SEEK_LIMITS, TIME_LIMITS};

    #[test]
    fn a_value_falls_in_the_first_bucket_whose_limit_is_not_below_it() {
        for (value, bucket) in [
            (0, 0),
            (512, 0),
            (513, 1),
            (4095, 3),
            (4096, 4),
            (4097, 5),
            (524_288, 16),
            (524_289, 17),
            (i64::MAX, 17),
        ] {
            assert_eq!(LENGTH_LIMITS.bucket_of(value), bucket, "{value} bytes");
        }
        for (value, bucket) in
            [(i64::MIN, 0), (-500_000, 0), (-499_999, 1), (-1, 15), (0, 16), (1, 17), (2, 18), (500_001, 33)]
        {
            assert_eq!(SEEK_LIMITS.bucket_of(value), bucket, "{value} sectors");
        }
    }

    #[test]
    fn every_limit_is_the_last_value_of_its_bucket() {
        for (index, &limit) in Kind::Latency.limits().iter().enumerate() {
            assert_eq!(TIME_LIMITS.bucket_of(i64::from(limit)), index);
            assert_eq!(TIME_LIMITS.bucket_of(i64::from(limit) + 1), index + 1);
        }
    }

    #[test]
    fn a_difference_is_exact_in_count_and_sum_and_as_tight_as_buckets_allow_in_min_and_max() {
        let mut earlier = Histogram::default();
        earlier.record(&TIME_LIMITS, 3);
        earlier.record(&TIME_LIMITS, 7_000);
        let mut later = earlier.clone();
        later.record(&TIME_LIMITS, 60);
        later.record(&TIME_LIMITS, 90);
        let since = later.difference(&earlier, &TIME_LIMITS);
        assert_eq!((since.count(), since.sum, since.min, since.max), (2, 150, 11, 100));
        later.record(&TIME_LIMITS, 2);
        later.record(&TIME_LIMITS, 9_000);
        let since = later.difference(&earlier, &TIME_LIMITS);
        assert_eq!((since.min, since.max), (2, 9_000));
        assert_eq!(later.difference(&later, &TIME_LIMITS), Histogram::default());
    }
}
