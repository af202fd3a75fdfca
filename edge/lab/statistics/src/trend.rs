//! Does it rise or fall over time? Mann-Kendall's test, and Sen's slope with its interval.
//!
//! Neither minds outliers or the distribution. Samples from second to second hang together, which would make the test see
//! trends that are none; its variance is widened for that (Yue and Wang 2004, with the lag-one correlation).

use serde::{Deserialize, Serialize};

use crate::{quantile, samples};

/// More samples than this are first averaged in equal groups: the test compares all pairs.
const SAMPLES_MAX: usize = 1_000;

/// What a series does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// It grows.
    Rising,
    /// It falls.
    Falling,
    /// Neither can be said.
    None,
}

/// The trend of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Of all pairs, the share that rises less the share that falls: -1..=1.
    pub tau: f64,
    /// The probability of a tau as far from 0 without a trend.
    pub p_value: f64,
    /// Sen's slope: the median rise per sample.
    pub slope: f64,
    /// Where the slope lies with the confidence asked for.
    pub slope_interval: (f64, f64),
    /// Rising or falling when the test says so at the confidence asked for.
    pub direction: Direction,
}

/// The trend of samples at even distances, at `confidence` (0..1, both excluded). Nothing below eight samples.
pub fn trend(series: &[f64], confidence: f64) -> Option<Trend> {
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
    let reach = quantile::normal(0.5 + confidence / 2.0) * deviation;
    let at = |rank: f64| slopes[rank.clamp(0.0, slopes.len() as f64 - 1.0) as usize] / group as f64;
    let middle = slopes.len() as f64 / 2.0;
    let direction = match (p_value < 1.0 - confidence, score > 0) {
        (true, true) => Direction::Rising,
        (true, false) => Direction::Falling,
        (false, _) => Direction::None,
    };
    Some(Trend {
        tau: score as f64 / slopes.len() as f64,
        p_value,
        slope: slope / group as f64,
        slope_interval: (at(middle - reach / 2.0), at(middle + reach / 2.0)),
        direction,
    })
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

    fn check(series: impl Fn(usize) -> f64, samples: usize, expected: Direction) -> Trend {
        let values: Vec<f64> = (0..samples).map(series).collect();
        let trend = trend(&values, 0.99).unwrap();
        assert_eq!(trend.direction, expected, "{trend:?}");
        trend
    }

    #[test]
    fn a_trend_is_found_beneath_noise() {
        let falling = check(|at| 1_000.0 - 2.0 * at as f64 + 40.0 * noise(at), 120, Direction::Falling);
        assert!(falling.slope_interval.0 < -2.0 && falling.slope_interval.1 > -2.0, "{falling:?}");
        check(|at| 1_000.0 + 0.5 * at as f64 + 40.0 * noise(at), 120, Direction::Rising);
        // More samples than are compared in pairs: the slope is still per sample.
        let long = check(|at| 1_000.0 + 0.5 * at as f64 + 40.0 * noise(at), 5_000, Direction::Rising);
        assert!((long.slope - 0.5).abs() < 0.01, "{long:?}");
    }

    #[test]
    fn noise_and_a_level_have_none() {
        check(|at| 1_000.0 + 40.0 * noise(at), 300, Direction::None);
        check(|_| 1_000.0, 50, Direction::None);
        assert_eq!(trend(&[1.0; 7], 0.95), None);
    }
}
