//! The permutation test: if A and B were the same, any split of all runs into two groups would be as likely as the one seen.

use crate::samples::mean;

/// Up to so many splits all are tried; beyond, as many are drawn.
const SPLITS_MAX: u64 = 20_000;

/// The share of splits whose means differ at least as much as those of `a` and `b`. Neither side is empty.
pub(super) fn p_value(a: &[f64], b: &[f64]) -> f64 {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let total: f64 = all.iter().sum();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let distance = |sum_a: f64| (sum_a / n - (total - sum_a) / m).abs();
    // Sums of the same runs in another order may differ in the last digits.
    let seen = (mean(a) - mean(b)).abs() * (1.0 - 1e-9);
    if splits(all.len() as u64, a.len() as u64).is_some_and(|splits| splits <= SPLITS_MAX) {
        let (mut extreme, mut tried) = (0u64, 0u64);
        every_sum(&all, a.len(), 0.0, &mut |sum| {
            tried += 1;
            extreme += u64::from(distance(sum) >= seen);
        });
        return extreme as f64 / tried as f64;
    }
    let (mut state, mut shuffled, mut extreme) = (0x5eed, all, 0u64);
    for _ in 0..SPLITS_MAX {
        for at in 0..a.len() {
            let other = at + (next(&mut state) % (shuffled.len() - at) as u64) as usize;
            shuffled.swap(at, other);
        }
        extreme += u64::from(distance(shuffled[..a.len()].iter().sum()) >= seen);
    }
    // The split seen is one of those possible: the share is never zero.
    (extreme + 1) as f64 / (SPLITS_MAX + 1) as f64
}

/// How many ways there are to take `taken` of `all`; nothing when there are too many to count.
fn splits(all: u64, taken: u64) -> Option<u64> {
    (0..taken.min(all - taken)).try_fold(1u64, |ways, step| Some(ways.checked_mul(all - step)? / (step + 1)))
}

/// Calls `visit` with the sum of every way to take `taken` of `values`.
fn every_sum(values: &[f64], taken: usize, sum: f64, visit: &mut impl FnMut(f64)) {
    if taken == 0 {
        return visit(sum);
    }
    for first in 0..=values.len() - taken {
        every_sum(&values[first + 1..], taken - 1, sum + values[first], visit);
    }
}

/// splitmix64: the draws are the same each time.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_are_split_in_every_way() {
        // Of 20 splits of six, the two that part low from high are as extreme.
        assert_eq!(p_value(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        assert_eq!(p_value(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(splits(6, 3), Some(20));
        assert_eq!(splits(400, 200), None);
    }

    #[test]
    fn many_runs_are_split_by_draw() {
        let a: Vec<f64> = (0..40).map(f64::from).collect();
        let shifted: Vec<f64> = a.iter().map(|value| value + 40.0).collect();
        assert!(p_value(&a, &shifted) < 0.001);
        let same: Vec<f64> = a.iter().map(|value| value + 0.1).collect();
        assert!(p_value(&a, &same) > 0.9);
    }
}
