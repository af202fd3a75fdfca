//! Where a series changes its level.
//!
//! Change points by PELT (Killick, Fearnhead, Eckley 2012) on the logarithm, so that a change is a ratio: exact least squares
//! with a penalty per change in the manner of BIC.

use serde::{Deserialize, Serialize};

use crate::samples;

/// The shortest stretch of a long series: a single late second is an outlier and no change.
const STRETCH_MIN: usize = 5;
/// The shortest stretch of a short series, and the part of a series that a stretch may be: a schedule of 12 s has parts of 4 s.
const STRETCH_MIN_SHORT: usize = 2;
const STRETCH_PART: usize = 4;
/// The penalty per change in units of variance * ln n. BIC's is 2 (place and level); samples that hang together need more.
const PENALTY: f64 = 4.0;
/// The noise is never taken to be smaller than this (of the level): else a level without any would break at every ripple.
const NOISE_MIN: f64 = 0.002;

/// More samples than this are first averaged in equal groups: without a change, the search takes the square of their number.
const SAMPLES_MAX: usize = 4_000;

/// A stretch of samples at one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Its first sample, from 0.
    pub from: usize,
    /// The first sample after it.
    pub to: usize,
    /// Its mean.
    pub mean: f64,
}

/// Cuts a series of samples (zero or more each) where its level changes by more than `smallest` (0.05: by 5 %). A series
/// without a change is one stretch; an empty one is none. Samples that are negative or not finite count as zero.
/// Of more than 4,000 samples, cuts are told to the nearest group of n / 4,000.
pub fn stretches(series: &[f64], smallest: f64) -> Vec<Stretch> {
    let usable: Vec<f64> = series.iter().map(|y| if y.is_finite() { y.max(0.0) } else { 0.0 }).collect();
    if usable.is_empty() {
        return Vec::new();
    }
    // A stall has no logarithm: it counts as a hundredth of the median.
    let floor = (samples::median(&usable) / 100.0).max(f64::MIN_POSITIVE);
    let group = usable.len().div_ceil(SAMPLES_MAX);
    let logs: Vec<f64> = usable.chunks(group).map(|part| samples::mean(part).max(floor).ln()).collect();
    let mut cuts = pelt(&logs, PENALTY * noise_variance(&logs) * (logs.len() as f64).ln().max(1.0));
    merge_alike(&logs, &mut cuts, smallest.max(0.0).ln_1p());
    let begins: Vec<usize> = cuts.iter().map(|cut| cut * group).collect();
    let ends = begins.iter().copied().skip(1).chain([usable.len()]);
    begins
        .iter()
        .zip(ends)
        .map(|(&from, to)| Stretch { from, to, mean: samples::mean(&usable[from..to]) })
        .collect()
}

/// The variance of the noise, from the steps between neighbours: changes of level are too few to matter in their median.
fn noise_variance(logs: &[f64]) -> f64 {
    let steps: Vec<f64> = logs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    if steps.is_empty() {
        return NOISE_MIN * NOISE_MIN;
    }
    // The median of |x| is 0.6745 deviations of a normal variable; a step has twice the variance of a sample.
    let deviation = samples::median(&steps) / 0.6745 / std::f64::consts::SQRT_2;
    deviation.max(NOISE_MIN).powi(2)
}

/// The fewest samples of a stretch in a series of `n`.
fn shortest(n: usize) -> usize {
    (n / STRETCH_PART).clamp(STRETCH_MIN_SHORT, STRETCH_MIN).min(n)
}

/// The beginnings of the stretches that cost least: squares around their means, and `penalty` for each.
fn pelt(logs: &[f64], penalty: f64) -> Vec<usize> {
    let n = logs.len();
    let shortest = shortest(n);
    // Around the first sample, so that the squares keep their digits.
    let (mut sums, mut squares) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (at, y) in logs.iter().map(|y| y - logs[0]).enumerate() {
        sums[at + 1] = sums[at] + y;
        squares[at + 1] = squares[at] + y * y;
    }
    let cost = |from: usize, to: usize| {
        let sum: f64 = sums[to] - sums[from];
        (squares[to] - squares[from] - sum * sum / (to - from) as f64).max(0.0)
    };
    let (mut best, mut before) = (vec![f64::INFINITY; n + 1], vec![0usize; n + 1]);
    best[0] = -penalty;
    let mut candidates = vec![0usize];
    for to in shortest..=n {
        let total = |from: usize| best[from] + cost(from, to) + penalty;
        let reachable = candidates.iter().copied().filter(|&from| to - from >= shortest);
        if let Some(from) = reachable.min_by(|&one, &other| total(one).total_cmp(&total(other))) {
            best[to] = total(from);
            before[to] = from;
        }
        // A beginning that costs more even without the penalty can never be the best again.
        let limit = best[to];
        let kept: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&from| to - from < shortest || best[from] + cost(from, to) <= limit)
            .collect();
        candidates = kept;
        let next = (to + 1).saturating_sub(shortest);
        if next > 0 && best[next].is_finite() {
            candidates.push(next);
        }
    }
    let (mut cuts, mut at) = (vec![], n);
    while at > 0 {
        at = before[at];
        cuts.push(at);
    }
    cuts.reverse();
    cuts
}

/// Takes out cuts between stretches whose levels are nearer than `smallest`, the nearest first.
fn merge_alike(logs: &[f64], cuts: &mut Vec<usize>, smallest: f64) {
    loop {
        let level = |index: usize| {
            let to = cuts.get(index + 1).copied().unwrap_or(logs.len());
            samples::mean(&logs[cuts[index]..to])
        };
        let nearest = (1..cuts.len())
            .map(|index| (index, (level(index) - level(index - 1)).abs()))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        match nearest {
            Some((index, step)) if step < smallest => drop(cuts.remove(index)),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(at: usize) -> f64 {
        let bits = (at as u64 + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((bits ^ (bits >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    }

    fn check(level: impl Fn(usize) -> f64, samples: usize, expected: &[usize]) {
        let series: Vec<f64> = (0..samples).map(|at| level(at) * (1.0 + 0.04 * noise(at))).collect();
        let found: Vec<usize> = stretches(&series, 0.05).iter().map(|stretch| stretch.from).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.abs_diff(*expected) <= 1, "{found} for {expected}");
        }
    }

    #[test]
    fn a_level_is_one_stretch() {
        check(|_| 50_000.0, 300, &[0]);
        check(|_| 50_000.0, 3, &[0]);
        check(|_| 50_000.0, 1, &[0]);
        assert_eq!(stretches(&[], 0.05), []);
        assert_eq!(stretches(&[1_000.0; 50], 0.05), [Stretch { from: 0, to: 50, mean: 1_000.0 }]);
    }

    #[test]
    fn changes_are_found_where_they_are() {
        check(|at| if at < 180 { 40_000.0 } else { 12_000.0 }, 300, &[0, 180]);
        check(|at| [600.0, 117.0, 590.0][at / 60], 180, &[0, 60, 120]);
        // A stall of ten seconds is a stretch of its own; one of two seconds is not.
        check(|at| if (100..110).contains(&at) { 0.0 } else { 9_000.0 }, 200, &[0, 100, 110]);
    }

    #[test]
    fn the_shortest_stretch_follows_the_length_of_the_series() {
        check(|at| [600.0, 250.0, 600.0][at / 4], 12, &[0, 4, 8]);
    }

    #[test]
    fn a_day_of_seconds_is_cut_to_the_nearest_group() {
        let series: Vec<f64> = (0..86_400)
            .map(|at| if at < 50_000 { 9_000.0 } else { 4_000.0 } * (1.0 + 0.04 * noise(at)))
            .collect();
        let found = stretches(&series, 0.05);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].from.abs_diff(50_000) <= 22 && found[1].to == 86_400, "{found:?}");
    }

    #[test]
    fn a_change_smaller_than_asked_for_is_none() {
        check(|at| if at < 150 { 10_000.0 } else { 10_300.0 }, 300, &[0]);
    }

    #[test]
    fn the_stretches_cost_no_more_than_any_other_single_cut() {
        // The plain search over all single cuts as the model.
        let series: Vec<f64> = (0..80).map(|at| if at < 33 { 5.0 } else { 5.4 } + 0.1 * noise(at)).collect();
        let squares = |part: &[f64]| {
            let mean = samples::mean(part);
            part.iter().map(|y| (y - mean).powi(2)).sum::<f64>()
        };
        let best = (STRETCH_MIN..=80 - STRETCH_MIN)
            .min_by(|&one, &other| {
                let cost = |cut: usize| squares(&series[..cut]) + squares(&series[cut..]);
                cost(one).total_cmp(&cost(other))
            })
            .unwrap();
        assert_eq!(pelt(&series, 0.3), [0, best]);
    }
}
