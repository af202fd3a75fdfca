//! Quantiles of the distributions that intervals are made of.
//!
//! Relies on `statrs`. The parameters come from counts of measurements, so none of these can fail.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal, StudentsT};

/// The value that a standard normal variable stays below with probability `p` (0..1, both excluded).
pub(crate) fn normal(p: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("a standard deviation of one is allowed").inverse_cdf(p)
}

/// The probability that a standard normal variable stays below `x`.
pub(crate) fn normal_below(x: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("a standard deviation of one is allowed").cdf(x)
}

/// As [`normal`], of Student's t with `freedom` degrees of freedom, which may be broken and must be above zero.
pub(crate) fn student(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above zero").inverse_cdf(p)
}

/// The probability of a |t| of at least this, with `freedom` degrees of freedom above zero.
pub(crate) fn student_two_sided(t: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above zero");
    (2.0 * student.cdf(-t.abs())).clamp(0.0, 1.0)
}

/// The ranks (from 1) between whose values the `p` quantile lies with probability `confidence`; 0 and `count` + 1 stand for
/// "no bound".
pub(crate) fn order_ranks(count: u64, p: f64, confidence: f64) -> (u64, u64) {
    let tail = (1.0 - confidence) / 2.0;
    let n = count as f64;
    let spread = (n * p * (1.0 - p)).sqrt();
    // Beyond some hundreds on both sides the normal approximation is off by less than a rank in spread.
    if spread > 30.0 {
        let reach = normal(1.0 - tail) * spread;
        return ((n * p - reach).floor().max(0.0) as u64, (n * p + reach).ceil() as u64 + 1);
    }
    let below = Binomial::new(p, count).expect("p is a probability");
    // The number of values below the quantile is binomial: the r-th is above it when fewer than r are below.
    let at = |k: i64| if k < 0 { 0.0 } else { below.cdf(k as u64) };
    let start = (n * p - 6.0 * spread - 40.0).floor().max(0.0) as i64;
    let end = ((n * p + 6.0 * spread + 40.0).ceil()).min(n) as i64;
    let lower = (start..=end).take_while(|&rank| at(rank - 1) <= tail).last().unwrap_or(0);
    let upper = (start..=end).find(|&rank| at(rank - 1) >= 1.0 - tail).unwrap_or(count as i64 + 1);
    (lower.max(0) as u64, (upper.max(1) as u64).min(count + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (found, expected) in [
            (normal(0.975), 1.959_964),
            (student(0.975, 2.0), 4.302_653),
            (student(0.975, 4.0), 2.776_445),
            (student_two_sided(4.302_653, 2.0), 0.05),
        ] {
            assert!((found - expected).abs() < 1e-4, "{found} {expected}");
        }
    }

    #[test]
    fn ranks_around_a_median_are_those_of_the_sign_test() {
        // Of ten values, the median lies between the 2nd and the 9th with 97.9 % (Conover, table of the binomial).
        assert_eq!(order_ranks(10, 0.5, 0.95), (2, 9));
        // Five values cannot bound it at 95 %: 2 * 0.5^5 = 6.25 %.
        assert_eq!(order_ranks(5, 0.5, 0.95), (0, 6));
    }

    #[test]
    fn both_ways_to_ranks_agree_where_they_meet() {
        // 3,500 values have a spread just below 30, 3,700 just above: the distances from the middle must hardly differ.
        let reach = |count: u64| {
            let (lower, upper) = order_ranks(count, 0.5, 0.95);
            (upper - lower) as f64 / (count as f64).sqrt()
        };
        assert!((reach(3_500) - reach(3_700)).abs() < 0.05, "{} {}", reach(3_500), reach(3_700));
    }
}
