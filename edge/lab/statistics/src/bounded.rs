//! Histograms that somebody else counted in few, wide buckets: Iometer's 21, Vdbench's, vSCSI's.
//!
//! A percentile is told as the bucket that it lies in ("between 5 and 10 ms"). Must never interpolate: where in the bucket
//! the values lie is not known.

use serde::{Deserialize, Serialize};

/// Counts between limits. Limits are nanoseconds, rising; the first bucket begins at `from_ns`, the last may be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundedHistogram {
    /// Where the first bucket begins, in ns.
    pub from_ns: u64,
    /// Per bucket, where it ends in ns (`None`: open above, only as the last) and how many values fell in it.
    pub buckets: Vec<(Option<u64>, u64)>,
}

/// What is known of a figure: it lies between these, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// At least this.
    pub from_ns: u64,
    /// At most this; `None` when the bucket is open above.
    pub to_ns: Option<u64>,
}

/// Buckets that are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// A limit is not above the one before it.
    #[error("bucket {index} ends at or before its beginning: limits must rise")]
    NotRising {
        /// Which, from 0.
        index: usize,
    },
    /// A bucket without end is not the last.
    #[error("bucket {index} has no end and is not the last")]
    OpenInside {
        /// Which, from 0.
        index: usize,
    },
    /// Two histograms with different limits cannot be added.
    #[error("the two histograms have different bucket limits: they cannot be added without guessing")]
    OtherLimits,
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.to_ns {
            Some(to) => write!(f, "between {} and {} ms", ms(self.from_ns), ms(to)),
            None => write!(f, "above {} ms", ms(self.from_ns)),
        }
    }
}

/// Milliseconds without zeroes at the end.
fn ms(ns: u64) -> String {
    let text = format!("{:.6}", ns as f64 / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl BoundedHistogram {
    /// A histogram that begins at `from_ns`, of (end, count) pairs. Fails unless ends rise and only the last is open.
    pub fn new(from_ns: u64, buckets: Vec<(Option<u64>, u64)>) -> Result<BoundedHistogram, BoundsError> {
        let mut begin = from_ns;
        for (index, (end, _)) in buckets.iter().enumerate() {
            match end {
                Some(end) if *end <= begin => return Err(BoundsError::NotRising { index }),
                Some(end) => begin = *end,
                None if index + 1 < buckets.len() => return Err(BoundsError::OpenInside { index }),
                None => {}
            }
        }
        Ok(BoundedHistogram { from_ns, buckets })
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Adds the values of `other`, which must have the same limits.
    pub fn merge(&mut self, other: &BoundedHistogram) -> Result<(), BoundsError> {
        let limits = |of: &BoundedHistogram| of.buckets.iter().map(|(end, _)| *end).collect::<Vec<_>>();
        if self.from_ns != other.from_ns || limits(self) != limits(other) {
            return Err(BoundsError::OtherLimits);
        }
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.saturating_add(*more);
        }
        Ok(())
    }

    /// Every bucket with what it spans, fastest first; also those that are empty.
    pub fn spans(&self) -> impl Iterator<Item = (Bound, u64)> + '_ {
        let mut begin = self.from_ns;
        self.buckets.iter().map(move |&(to_ns, count)| {
            let bound = Bound { from_ns: begin, to_ns };
            begin = to_ns.unwrap_or(begin);
            (bound, count)
        })
    }

    /// Between what the percentile `p` (0..=1) lies: the bucket of the value of that rank. Nothing when there are no values.
    pub fn percentile(&self, p: f64) -> Option<Bound> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = crate::histogram::rank_of(p, count);
        let mut seen = 0u64;
        self.spans()
            .find(|&(_, count)| {
                seen = seen.saturating_add(count);
                seen >= rank
            })
            .map(|(bound, _)| bound)
    }

    /// Between what the mean lies, in ns: every value at the beginning of its bucket, and every value at the end.
    pub fn mean(&self) -> Option<Bound> {
        let total = u128::from(self.count());
        if total == 0 {
            return None;
        }
        let weighted = |of: &dyn Fn(&Bound) -> Option<u64>| {
            self.spans().filter(|&(_, count)| count > 0).try_fold(0u128, |sum, (bound, count)| {
                Some(sum.saturating_add(u128::from(of(&bound)?) * u128::from(count)))
            })
        };
        let from_ns = (weighted(&|bound| Some(bound.from_ns))? / total) as u64;
        let to_ns = weighted(&|bound| bound.to_ns).map(|sum| sum.div_ceil(total) as u64);
        Some(Bound { from_ns, to_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn some() -> BoundedHistogram {
        BoundedHistogram::new(0, vec![(Some(MS), 90), (Some(5 * MS), 0), (Some(10 * MS), 9), (None, 1)])
            .unwrap()
    }

    #[test]
    fn percentiles_are_told_as_bounds() {
        let check = |p: f64, expected: &str| {
            assert_eq!(some().percentile(p).unwrap().to_string(), expected, "percentile {p}");
        };
        check(0.5, "between 0 and 1 ms");
        check(0.9, "between 0 and 1 ms");
        check(0.95, "between 5 and 10 ms");
        check(0.99, "between 5 and 10 ms");
        check(0.999, "above 10 ms");
        assert_eq!(BoundedHistogram::new(0, vec![]).unwrap().percentile(0.5), None);
    }

    #[test]
    fn limits_must_rise_and_only_the_last_may_be_open() {
        assert_eq!(
            BoundedHistogram::new(5, vec![(Some(5), 0)]).unwrap_err(),
            BoundsError::NotRising { index: 0 }
        );
        assert_eq!(
            BoundedHistogram::new(0, vec![(None, 0), (Some(5), 0)]).unwrap_err(),
            BoundsError::OpenInside { index: 0 }
        );
        let mut one = some();
        let other = BoundedHistogram::new(0, vec![(Some(7), 1)]).unwrap();
        assert_eq!(one.merge(&other).unwrap_err(), BoundsError::OtherLimits);
    }

    proptest! {
        #[test]
        fn what_was_counted_lies_within_its_bounds(mut values in prop::collection::vec(0u64..100, 1..200), p in 0.0..=1.0) {
            let limits = [Some(3), Some(10), Some(40), None];
            let mut from = 0;
            let buckets = limits.map(|to| {
                let count = values.iter().filter(|&&value| value >= from && to.is_none_or(|to| value < to)).count();
                from = to.unwrap_or(from);
                (to, count as u64)
            });
            let mut twice = BoundedHistogram::new(0, buckets.to_vec()).unwrap();
            twice.merge(&twice.clone()).unwrap();
            values.sort_unstable();
            let exact = values[crate::histogram::rank_of(p, values.len() as u64) as usize - 1];
            let bound = BoundedHistogram::new(0, buckets.to_vec()).unwrap().percentile(p).unwrap();
            prop_assert!(bound.from_ns <= exact && bound.to_ns.is_none_or(|to| exact < to));
            let mean = values.iter().sum::<u64>() / values.len() as u64;
            let bound = twice.mean().unwrap();
            prop_assert!(bound.from_ns <= mean && bound.to_ns.is_none_or(|to| mean <= to));
        }
    }
}
