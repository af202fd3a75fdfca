//! How evenly several share: Jain's index, the smallest against the middle, and what Little's law gives away.

use serde::{Deserialize, Serialize};

use crate::samples::median;
use crate::words;

/// How evenly the members of a group were served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Members.
    pub members: usize,
    /// Jain's index: (sum)^2 / (n * sum of squares). 1 when all are equal, 1/n when one has everything.
    pub jain: f64,
    /// The smallest by the median.
    pub smallest: f64,
    /// The largest by the median.
    pub largest: f64,
}

/// Members are unequal when the smallest has less than this of the median. Jain's index would hide one that starves among many.
pub const SMALLEST_MIN: f64 = 0.90;

impl Fairness {
    /// True when a member got so much less than the others that a mean over all hides it.
    pub fn is_unequal(&self) -> bool {
        self.members > 1 && self.smallest < SMALLEST_MIN
    }
}

impl std::fmt::Display for Fairness {
    /// "the slowest reached 40 % of the median, the fastest 120 % (Jain's index 0.87)".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (smallest, largest) = (words::percent(self.smallest), words::percent(self.largest));
        write!(
            f,
            "the slowest reached {smallest} of the median, the fastest {largest} (Jain's index {:.2})",
            self.jain
        )
    }
}

/// The fairness of figures of one kind, one per member. Nothing when there is none, when a figure is negative or not finite,
/// or when the median is zero.
pub fn fairness(figures: &[f64]) -> Option<Fairness> {
    let valid = figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0);
    if figures.is_empty() || !valid || median(figures) == 0.0 {
        return None;
    }
    let (sum, squares) = figures.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    let middle = median(figures);
    Some(Fairness {
        members: figures.len(),
        jain: sum * sum / (figures.len() as f64 * squares),
        smallest: figures.iter().copied().fold(f64::INFINITY, f64::min) / middle,
        largest: figures.iter().copied().fold(0.0, f64::max) / middle,
    })
}

/// What a table of totals gives away of a group's imbalance: total throughput (per second) times plainly averaged latency
/// (seconds), by what the members together could have outstanding. Each holds N0, so X = N0 / R, and the sum of X times the
/// plain mean of R is N0 * n times (arithmetic / harmonic mean of R): 1 when all are equal, more when not.
/// Nothing when nothing can be outstanding.
pub fn excess(throughput: f64, latency_s: f64, members: f64, outstanding_each: f64) -> Option<f64> {
    let possible = members * outstanding_each;
    (possible > 0.0 && possible.is_finite()).then(|| throughput * latency_s / possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair_and_one_taking_all_is_not() {
        let equal = fairness(&[10.0; 4]).unwrap();
        assert_eq!((equal.jain, equal.smallest, equal.largest), (1.0, 1.0, 1.0));
        let uneven = fairness(&[1.0, 2.0, 3.0]).unwrap();
        assert!((uneven.jain - 36.0 / 42.0).abs() < 1e-12);
        assert_eq!((uneven.smallest, uneven.largest), (0.5, 1.5));
        assert!(uneven.is_unequal() && !equal.is_unequal());
        // Among 20, one that starves leaves Jain's index at 0.95.
        let mut starved = [10.0; 20];
        starved[7] = 0.5;
        assert!(fairness(&starved).unwrap().is_unequal());
        assert_eq!(fairness(&[0.0, 0.0, 5.0]), None);
        assert_eq!(fairness(&[]), None);
    }

    #[test]
    fn unequal_members_show_in_totals() {
        // Two hold 64 each, at 1 ms and at 9 ms: 64,000 + 7,111 IOPS, plain mean 5 ms.
        let (fast, slow) = (64.0 / 0.001, 64.0 / 0.009);
        let found = excess(fast + slow, 0.005, 2.0, 64.0).unwrap();
        // Arithmetic mean 5, harmonic mean 1.8.
        assert!((found - 5.0 / 1.8).abs() < 1e-9);
        assert!((excess(2.0 * fast, 0.001, 2.0, 64.0).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(excess(1.0, 1.0, 0.0, 64.0), None);
    }
}
