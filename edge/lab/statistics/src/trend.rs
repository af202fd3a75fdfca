//! Does it rise or fall over time? Mann-Kendall's test, and Sen's slope.
//!
//! Neither minds outliers or the distribution. Samples from second to second hang together, which would make the test see
//! trends that are none; its variance is widened for that (Yue and Wang 2004, with the lag-one correlation).

use crate::{quantile, samples};

/// More samples than this are first averaged in equal groups: the test compares all pairs.
const SAMPLES_MAX: usize = 1_000;

/// How much samples at even distances rise (fall: below 0) per sample, by Sen's slope, where Mann and Kendall's test is sure that they do
/// at `confidence` (0..1, both excluded). Nothing below eight samples.
pub(crate) fn trend(series: &[f64], confidence: f64) -> Option<f64> {
    if series.len() < 8 || series.iter().any(|y| !y.is_finite()) || confidence <= 0.0 || confidence >= 1.0 {
        return None;
    }
    let group = series.len().div_ceil(SAMPLES_MAX);
    let values: Vec<f64> = series.chunks_exact(group).map(samples::mean).collect();
    let (mut score, mut slopes) = (0i64, Vec::with_capacity(values.len() * (values.len() - 1) / 2));
    for (from, early) in values.iter().enumerate() {
        for (distance, late) in values[from + 1..].iter().enumerate() {
            score += i64::from(late > early) - i64::from(late < early);
            slopes.push((late - early) / (distance + 1) as f64);
        }
    }
    slopes.sort_by(f64::total_cmp);
    let slope = slopes[slopes.len() / 2];
    let variance = score_variance(&values) * widening(&values, slope);
    let deviation = variance.sqrt();
    // One is taken off the score as it moves in whole steps.
    let z = if variance > 0.0 { (score.abs() as f64 - 1.0).max(0.0) / deviation } else { 0.0 };
    let p_value = 2.0 * quantile::normal_below(-z);
    (p_value < 1.0 - confidence).then_some(slope / group as f64)
}

/// The variance of Mann-Kendall's score without a trend, with its correction for equal values.
fn score_variance(values: &[f64]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|one, other| one == other).map(|equal| term(equal.len() as f64)).sum();
    (term(values.len() as f64) - ties) / 18.0
}

/// By how much what hangs together widens the variance: never less than 1.
fn widening(values: &[f64], slope: f64) -> f64 {
    let level: Vec<f64> = values.iter().enumerate().map(|(at, y)| y - slope * at as f64).collect();
    let r = samples::autocorrelation(&level).max(0.0);
    (1.0 + r) / (1.0 - r)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of -1..1 that depends on its place alone.
    fn noise(at: usize) -> f64 {
        let bits = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    }

    fn found(series: impl Fn(usize) -> f64, samples: usize) -> Option<f64> {
        trend(&(0..samples).map(series).collect::<Vec<f64>>(), 0.99)
    }

    #[test]
    fn a_trend_is_found_beneath_noise() {
        let falling = found(|at| 1_000.0 - 2.0 * at as f64 + 40.0 * noise(at), 120).unwrap();
        assert!((falling + 2.0).abs() < 0.2, "{falling}");
        assert!(found(|at| 1_000.0 + 0.5 * at as f64 + 40.0 * noise(at), 120).unwrap() > 0.0);
        // More samples than are compared in pairs: the slope is still per sample.
        let long = found(|at| 1_000.0 + 0.5 * at as f64 + 40.0 * noise(at), 5_000).unwrap();
        assert!((long - 0.5).abs() < 0.01, "{long}");
    }

    #[test]
    fn noise_and_a_level_have_none() {
        assert_eq!(found(|at| 1_000.0 + 40.0 * noise(at), 300), None);
        assert_eq!(found(|_| 1_000.0, 50), None);
        assert_eq!(found(|at| at as f64, 7), None);
    }
}
