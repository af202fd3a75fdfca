//! The most that keeps a latency, from the points of a search: over outstanding I/Os, or over the rate of an open loop.
//!
//! A search over a rate has no knee: the same number may be outstanding at every point, and the latency says where the target is full.
//! The answer is the highest value below the lowest that fails, so a lucky point beyond a failure is no answer.

use serde::{Deserialize, Serialize};

/// One point that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SearchPoint {
    /// What was varied: outstanding I/Os, or I/Os per second that were due.
    pub value: f64,
    /// I/Os per second that completed.
    pub throughput: f64,
    /// The percentile asked for, in seconds, from the merged histograms of all runs of the point; missing when nothing completed.
    pub percentile_s: Option<f64>,
    /// False when a rate was not kept: what was due had to wait in the generator.
    pub is_kept: bool,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The highest point that keeps the latency, with none below it that fails.
    pub highest: Option<SearchPoint>,
    /// The lowest point that fails.
    pub failing: Option<SearchPoint>,
}

/// The highest of `points` that keeps `target_s`. Points may come in any order.
pub fn highest(points: &[SearchPoint], target_s: f64) -> Limit {
    let holds = |point: &SearchPoint| {
        point.is_kept && point.percentile_s.is_some_and(|percentile_s| percentile_s <= target_s)
    };
    let by_value = |one: &&SearchPoint, other: &&SearchPoint| one.value.total_cmp(&other.value);
    let failing = points.iter().filter(|point| !holds(point)).min_by(by_value).copied();
    let is_below = |point: &&SearchPoint| failing.is_none_or(|failing| point.value < failing.value);
    let highest = points.iter().filter(is_below).max_by(by_value).copied();
    Limit { highest, failing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_search_is_the_highest_point_below_the_first_that_fails() {
        let point = |value: f64, ms: f64| SearchPoint {
            value,
            throughput: value,
            percentile_s: Some(ms / 1e3),
            is_kept: true,
        };
        let found = |points: &[SearchPoint]| {
            let found = highest(points, 0.001);
            (found.highest.map(|of| of.value), found.failing.map(|of| of.value))
        };
        assert_eq!(
            found(&[point(100.0, 0.4), point(800.0, 2.0), point(400.0, 0.9)]),
            (Some(400.0), Some(800.0))
        );
        // 1,200 did keep it, by luck: 800 did not.
        assert_eq!(
            found(&[point(400.0, 0.9), point(1_200.0, 0.8), point(800.0, 2.0)]),
            (Some(400.0), Some(800.0))
        );
        let behind = SearchPoint { is_kept: false, ..point(600.0, 0.5) };
        assert_eq!(found(&[point(400.0, 0.9), behind]), (Some(400.0), Some(600.0)));
        assert_eq!(found(&[point(400.0, 0.9)]), (Some(400.0), None));
        assert_eq!(found(&[point(400.0, 9.0)]), (None, Some(400.0)));
        assert_eq!(found(&[]), (None, None));
    }
}
