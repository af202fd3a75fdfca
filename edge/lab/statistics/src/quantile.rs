//! Quantiles of the distributions that intervals are made of.
//!
//! Relies on `statrs`. The parameters come from counts of measurements, so none of these can fail.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The value that a standard normal variable stays below with probability `p` (0..1, both excluded).
pub(crate) fn normal(p: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("a standard deviation of one is allowed").inverse_cdf(p)
}

/// The probability that a standard normal variable stays below `x`.
pub(crate) fn normal_below(x: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("a standard deviation of one is allowed").cdf(x)
}

/// The value that Student's t stays below with probability `p` (0..1, both excluded). `freedom`, the degrees of freedom, need not be
/// whole and must be above zero.
///
/// # Panics
/// If `freedom` is not above zero.
pub fn student(p: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above zero").inverse_cdf(p)
}

/// The probability of a |t| of at least this, with `freedom` degrees of freedom above zero.
pub(crate) fn student_two_sided(t: f64, freedom: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are above zero");
    (2.0 * student.cdf(-t.abs())).clamp(0.0, 1.0)
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
}
