//! Samples of one run: what they say against its mean.

use crate::samples::{mean, variance};
use crate::trend::trend;
use serde::{Deserialize, Serialize};

/// A coefficient of variation of one-second samples above this is flagged (VMFleet's `Process-DiskSpd.ps1`).
pub const NOISE_WITHIN_MAX: f64 = 0.10;
/// A change over a whole run of less than this is no matter (SNIA's limit for a line over its window).
pub const DRIFT_MIN: f64 = 0.10;
/// How sure it must be that a run rises or falls.
const DRIFT_CONFIDENCE: f64 = 0.99;
/// Fewer samples within a run say nothing of its noise or its drift.
pub const SAMPLES_MIN: usize = 10;

/// What the samples of a run say against its mean, by the limits of this module: the same for runs of our own and of others.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Doubts {
    /// Standard deviation by mean, where it exceeds [`NOISE_WITHIN_MAX`].
    pub noise: Option<f64>,
    /// How much the figure rises (falls: below zero) from the first sample to the last, by the mean, where that is sure and at least
    /// [`DRIFT_MIN`].
    pub drift: Option<f64>,
}

/// Judges the samples of a run, at even distances. Fewer than [`SAMPLES_MIN`] raise no doubt.
pub fn doubts(samples: &[f64]) -> Doubts {
    let usable = samples.len() >= SAMPLES_MIN && samples.iter().all(|value| value.is_finite());
    if !usable || mean(samples) <= 0.0 {
        return Doubts::default();
    }
    let (mean, variation) = (mean(samples), variance(samples).sqrt() / mean(samples));
    let drift = trend(samples, DRIFT_CONFIDENCE).map(|slope| slope * (samples.len() as f64 - 1.0) / mean);
    Doubts {
        noise: Some(variation).filter(|variation| *variation > NOISE_WITHIN_MAX),
        drift: drift.filter(|drift| drift.abs() >= DRIFT_MIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same 60 seconds were steady in a run of our own and drifting in one of others, by limits of 10 % and 5 %.
    #[test]
    fn one_set_of_limits_judges_a_run() {
        let line = |share: f64| {
            (0..60).map(|at| 1_000.0 * (1.0 + share * f64::from(at) / 59.0)).collect::<Vec<f64>>()
        };
        assert_eq!(doubts(&line(0.07)), Doubts::default());
        let drift = doubts(&line(0.15)).drift.unwrap();
        assert!((drift - 0.14).abs() < 0.005, "0.15 of the first is 0.14 of the mean: {drift}");
        assert!(doubts(&line(-0.5)).drift.unwrap() < -0.5);
        let swing: Vec<f64> = (0..60).map(|at| if at % 2 == 0 { 700.0 } else { 1_300.0 }).collect();
        assert_eq!(doubts(&swing).noise.map(|noise| (noise * 10.0).round()), Some(3.0));
        assert_eq!(doubts(&swing[..SAMPLES_MIN - 1]), Doubts::default());
    }
}
