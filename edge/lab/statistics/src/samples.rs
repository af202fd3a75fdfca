//! Runs of one experiment: what their mean is worth.
//!
//! The unit of replication is the run: samples of one run depend on one another from second to second, so no interval comes from them.

use serde::{Deserialize, Serialize};

use crate::quantile;

/// A coefficient of variation between runs above this asks for more runs before any claim.
pub const NOISE_BETWEEN_MAX: f64 = 0.05;

/// The mean of runs and how far it can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// How many runs.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1 in the divisor); missing for one run.
    pub stddev: Option<f64>,
    /// Where the true mean lies with the confidence asked for, by Student's t. Missing for one run, and where no run is below
    /// zero but the interval would be: such runs are too few, or differ too much, for one.
    pub interval: Option<(f64, f64)>,
    /// Standard deviation by mean; missing for one run or a mean of zero.
    pub variation: Option<f64>,
}

impl Mean {
    /// True when the runs differ by more than [`NOISE_BETWEEN_MAX`] of their mean: more runs, before any claim.
    pub fn is_noisy(&self) -> bool {
        self.variation.is_some_and(|variation| variation > NOISE_BETWEEN_MAX)
    }
}

/// The mean of one figure per run with its interval at `confidence` (0..1, both excluded). Nothing for no runs, figures that
/// are not finite, or another confidence.
pub fn mean_of_runs(runs: &[f64], confidence: f64) -> Option<Mean> {
    let valid = runs.iter().all(|value| value.is_finite()) && confidence > 0.0 && confidence < 1.0;
    if runs.is_empty() || !valid {
        return None;
    }
    let mean = mean(runs);
    let stddev = (runs.len() > 1).then(|| variance(runs).sqrt());
    let interval = stddev.map(|stddev| {
        let t = quantile::student(0.5 + confidence / 2.0, runs.len() as f64 - 1.0);
        let reach = t * stddev / (runs.len() as f64).sqrt();
        (mean - reach, mean + reach)
    });
    // Nobody serves fewer than no I/Os: what reaches below zero is no interval of a rate or a time.
    let is_possible = |&(low, _): &(f64, f64)| low >= 0.0 || runs.iter().any(|&value| value < 0.0);
    let interval = interval.filter(is_possible);
    let variation = stddev.filter(|_| mean != 0.0).map(|stddev| stddev / mean.abs());
    Some(Mean { runs: runs.len(), mean, stddev, interval, variation })
}

/// The mean; the caller has at least one value.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance with n - 1 in the divisor; the caller has at least two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)
}

/// The middle value; the mean of the two middle ones of an even number. The caller has at least one value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// The correlation of each value with the next; 0 for values that are all the same.
pub(crate) fn autocorrelation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    if squares <= f64::EPSILON * mean * mean * values.len() as f64 {
        return 0.0;
    }
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    (products / squares).clamp(-0.99, 0.99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_three_runs_is_students() {
        // Mean 100, deviation 2: the reach is 4.302653 * 2 / sqrt(3) = 4.9683.
        let mean = mean_of_runs(&[98.0, 100.0, 102.0], 0.95).unwrap();
        assert_eq!((mean.runs, mean.mean, mean.stddev), (3, 100.0, Some(2.0)));
        let (low, high) = mean.interval.unwrap();
        assert!((low - 95.0317).abs() < 1e-3 && (high - 104.9683).abs() < 1e-3, "{low} {high}");
        assert!(!mean.is_noisy());
        assert!(mean_of_runs(&[80.0, 100.0, 120.0], 0.95).unwrap().is_noisy());
    }

    #[test]
    fn an_interval_of_rates_never_reaches_below_zero() {
        // Two runs of 500 and 1,500 IOPS: Student's t would say -5,353 to 7,353.
        let mean = mean_of_runs(&[500.0, 1_500.0], 0.95).unwrap();
        assert_eq!((mean.mean, mean.interval), (1_000.0, None));
        assert!(mean.is_noisy());
        // Differences may be negative, and so may their interval.
        let (low, high) = mean_of_runs(&[-500.0, 1_500.0], 0.95).unwrap().interval.unwrap();
        assert!(low < -500.0 && high > 1_500.0, "{low} {high}");
    }

    #[test]
    fn one_run_has_no_interval_and_none_has_no_mean() {
        assert_eq!(mean_of_runs(&[5.0], 0.95).unwrap().interval, None);
        assert_eq!(mean_of_runs(&[], 0.95), None);
        assert_eq!(mean_of_runs(&[1.0, f64::NAN], 0.95), None);
    }
}
