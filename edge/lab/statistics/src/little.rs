//! Little's law as an audit: what is outstanding on average is throughput times mean latency, whoever measured it.
//!
//! A closed loop holds as much outstanding as it was asked to. A figure that implies another number was measured otherwise
//! than its caption says, or averaged wrongly, or lost something.

use serde::{Deserialize, Serialize};

/// A ratio above this needs an explanation.
const RATIO_MAX: f64 = 1.05;
/// A ratio below this needs one.
const RATIO_MIN: f64 = 0.95;
/// How near a ratio must be to a whole multiple to be called one: this, and never so wide that neighbours nearly touch.
const MULTIPLE_TOLERANCE: f64 = 0.07;
/// Greater multiples are not told from a coincidence.
const MULTIPLE_MAX: u32 = 64;

/// On which side of what was asked for the outstanding I/Os of a figure lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// More than 5 % short of it.
    Short,
    /// Within 5 %.
    Agrees,
    /// More than 5 % above it.
    Above,
}

/// Judges a ratio of implied to claimed, of which `slack` may come from rounding alone.
pub fn side_of(ratio: f64, slack: f64) -> Side {
    if ratio + slack < RATIO_MIN {
        Side::Short
    } else if ratio - slack > RATIO_MAX {
        Side::Above
    } else {
        Side::Agrees
    }
}

/// The whole number from 2 to 64 that `ratio` is nearly, if there is one: within 7 % of it, and within a quarter of the way
/// to the next.
pub fn whole_multiple(ratio: f64) -> Option<u32> {
    let nearest = ratio.round();
    if !(2.0..=f64::from(MULTIPLE_MAX)).contains(&nearest) {
        return None;
    }
    let tolerance = MULTIPLE_TOLERANCE.min(0.25 / nearest);
    ((ratio / nearest - 1.0).abs() <= tolerance).then_some(nearest as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_judged() {
        let check = |throughput: f64, latency_ms: f64, claimed: f64, expected: (Side, Option<u32>)| {
            let ratio = throughput * latency_ms / 1e3 / claimed;
            assert_eq!((side_of(ratio, 0.0), whole_multiple(ratio)), expected, "{ratio}");
        };
        // One VM of the striping tables: DiskSPD holds what its caption says, fio four times that.
        check(67_054.0, 0.95, 64.0, (Side::Agrees, None));
        check(63_732.0, 4.01, 64.0, (Side::Above, Some(4)));
        check(35_904.0, 7.55, 64.0, (Side::Above, Some(4)));
        // Twelve VMs with fio: 4,530 where 3,072 could be.
        check(52_155.0, 86.87, 3_072.0, (Side::Above, None));
        // 652,900 IOPS at 2.98 ms, 64 for each of 32 hosts.
        check(652_900.0, 2.98, 2_048.0, (Side::Agrees, None));
        check(652_900.0, 2.78, 2_048.0, (Side::Short, None));
    }

    /// 0.26 ms may be 0.255 ms: what rounding may do to a ratio is no difference.
    #[test]
    fn a_difference_that_rounding_explains_is_none() {
        assert_eq!(side_of(1.06, 0.02), Side::Agrees);
        assert_eq!(side_of(0.94, 0.02), Side::Agrees);
        assert_eq!(side_of(1.06, 0.005), Side::Above);
    }

    #[test]
    fn only_what_is_near_a_whole_number_is_a_multiple() {
        for (ratio, expected) in [
            (1.0, None),
            (1.9, Some(2)),
            (1.8, None),
            (2.5, None),
            (4.235, Some(4)),
            (8.2, Some(8)),
            (8.4, None),
        ] {
            assert_eq!(whole_multiple(ratio), expected, "{ratio}");
        }
        assert_eq!(whole_multiple(f64::NAN), None);
    }
}
