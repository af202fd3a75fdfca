//! Whether one disk's latency follows another's load: rank correlation at small lags, against circular shifts.

use serde::Serialize;

/// Windows by which the one may follow the other.
const LAGS: usize = 3;
/// Fewer windows have too few shifts to tell.
const WINDOWS_MIN: usize = 10;

/// How closely one series follows another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Correlation {
    /// Spearman's rank correlation at the best lag, -1..=1.
    pub rank: f64,
    /// By how many windows the one comes after the other, 0..=3.
    pub lag: usize,
    /// The share of circular shifts of the one series that follow at least as closely, at any lag: how likely chance is. Shifts
    /// keep what hangs together from window to window. A shift that a lag undoes is no other order of the series, and does not count.
    pub chance: f64,
}

/// How closely `follower` rises with `leader`; nothing below ten windows or when one does not change.
pub(super) fn follows(follower: &[f64], leader: &[f64]) -> Option<Correlation> {
    let n = follower.len().min(leader.len());
    if n < WINDOWS_MIN {
        return None;
    }
    let (follower, leader) = (ranks(&follower[..n]), ranks(&leader[..n]));
    let best = |shift: usize| -> Option<(usize, f64)> {
        (0..=LAGS)
            .filter_map(|lag| {
                Some((lag, pearson(n, |at| (leader[(at + n - shift - lag) % n], follower[at]), lag)?))
            })
            .max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let (lag, rank) = best(0)?;
    // Equal up to rounding is equal.
    let shifts = 1..n - LAGS;
    let count = shifts.len() + 1;
    let as_close = shifts.filter(|&shift| best(shift).is_some_and(|(_, other)| other >= rank - 1e-9)).count();
    Some(Correlation { rank, lag, chance: (as_close + 1) as f64 / count as f64 })
}

/// The correlation of pairs from `first` on.
fn pearson(n: usize, pair: impl Fn(usize) -> (f64, f64), first: usize) -> Option<f64> {
    let count = (n - first) as f64;
    let (mut sum_x, mut sum_y, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in (first..n).map(pair) {
        (sum_x, sum_y) = (sum_x + x, sum_y + y);
        (xx, yy, xy) = (xx + x * x, yy + y * y, xy + x * y);
    }
    let (x, y) = (xx - sum_x * sum_x / count, yy - sum_y * sum_y / count);
    (x > 1e-9 && y > 1e-9).then(|| (xy - sum_x * sum_y / count) / (x * y).sqrt())
}

/// Ranks from 0; equal values share the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let same = order[from..].iter().take_while(|&&at| values[at] == values[order[from]]).count();
        let middle = from as f64 + (same - 1) as f64 / 2.0;
        order[from..from + same].iter().for_each(|&at| ranks[at] = middle);
        from += same;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0]), [1.5, 0.0, 1.5, 3.0]);
    }

    #[test]
    fn a_series_that_follows_is_found_with_its_lag() {
        let mut random = Random::new(1);
        let leader: Vec<f64> = (0..60).map(|_| random.below(1_000) as f64).collect();
        let follower: Vec<f64> = (0..60)
            .map(|at| if at < 2 { 500.0 } else { leader[at - 2] * 3.0 + random.below(50) as f64 })
            .collect();
        let found = follows(&follower, &leader).unwrap();
        assert_eq!(found.lag, 2);
        assert!(found.rank > 0.9 && found.chance < 0.05, "{found:?}");
    }

    /// Three of the shifts were the series itself, a lag having undone them: of 12 windows chance was never below a third.
    #[test]
    fn a_short_series_that_follows_is_hardly_chance() {
        let leader = [0.0, 1.0, 2.0, 1.0, 170.0, 180.0, 175.0, 178.0, 3.0, 1.0, 0.0, 2.0];
        let found = follows(&leader.map(|load| 5.0 + load / 10.0), &leader).unwrap();
        assert!(found.rank > 0.99 && found.chance < 0.15, "{found:?}");
    }

    #[test]
    fn chance_is_told_as_chance() {
        // Of independent series, about one in ten may have a chance below 0.1.
        let mut random = Random::new(2);
        let mut low = 0;
        for _ in 0..200 {
            let mut series = || -> Vec<f64> { (0..40).map(|_| random.below(1_000_000) as f64).collect() };
            let (one, other) = (series(), series());
            low += usize::from(follows(&one, &other).unwrap().chance <= 0.1);
        }
        assert!((5..=35).contains(&low), "{low} of 200");
        assert_eq!(follows(&[1.0; 40], &[2.0; 40]), None);
        assert_eq!(follows(&[1.0, 2.0], &[1.0, 2.0]), None);
    }
}
