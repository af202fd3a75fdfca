//! Is it steady? The rule of SNIA's Performance Test Specification, and fio's own beside it.
//!
//! SNIA PTS: within a window of the last five rounds, the tracked figure may spread by at most 20 % of its mean, and its
//! least-squares line may rise or fall by at most 10 % of it over the window; within 25 rounds. fio's `ss=` is another rule
//! (a running window of one-second samples against their mean), and the two are not to be confused.

use serde::{Deserialize, Serialize};

use crate::words;

/// Rounds of a window.
pub const WINDOW: usize = 5;
/// Rounds within which steady state is to be reached.
pub const ROUNDS_MAX: usize = 25;
/// How far a window may spread, of its mean.
const SPREAD_MAX: f64 = 0.20;
/// How far its line may rise or fall from the first to the last round, of its mean.
const DRIFT_MAX: f64 = 0.10;

/// Five rounds and what the rule makes of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The first round of the window, from 1.
    pub first: usize,
    /// The figures of its rounds.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// The slope of their least-squares line, per round.
    pub slope: f64,
    /// Largest less smallest, of the mean; steady up to 0.20.
    pub spread: f64,
    /// What the line does over the window, of the mean; steady up to 0.10.
    pub drift: f64,
}

impl Window {
    fn of(rounds: &[f64], last: usize) -> Window {
        let values = &rounds[last + 1 - WINDOW..=last];
        let mean = values.iter().sum::<f64>() / WINDOW as f64;
        let slope =
            values.iter().enumerate().map(|(at, y)| (at as f64 - 2.0) * (y - mean)).sum::<f64>() / 10.0;
        let (low, high) =
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), y| (low.min(*y), high.max(*y)));
        Window {
            first: last + 2 - WINDOW,
            values: values.to_vec(),
            mean,
            slope,
            spread: (high - low) / mean.abs(),
            drift: slope.abs() * (WINDOW as f64 - 1.0) / mean.abs(),
        }
    }

    /// True when both limits hold.
    pub fn is_steady(&self) -> bool {
        self.spread <= SPREAD_MAX && self.drift <= DRIFT_MAX
    }
}

/// What the rounds show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyState {
    /// Steady in this window, the first that is.
    Reached {
        /// The window to publish.
        window: Window,
        /// The round (from 1) whose window is the first that is no longer steady, if there is one.
        left_in_round: Option<usize>,
    },
    /// No window within 25 rounds is steady. May be published, with this label.
    NotReached {
        /// The last window looked at.
        window: Window,
        /// Rounds looked at, at most 25.
        rounds: usize,
    },
    /// Fewer than five rounds, or figures that are not positive.
    TooFew {
        /// Rounds there are.
        rounds: usize,
    },
}

/// Applies the rule to one figure per round, oldest first.
pub fn steady_state(rounds: &[f64]) -> SteadyState {
    let usable = rounds.iter().all(|value| value.is_finite() && *value > 0.0);
    if rounds.len() < WINDOW || !usable {
        return SteadyState::TooFew { rounds: rounds.len() };
    }
    let considered = rounds.len().min(ROUNDS_MAX);
    let reached = (WINDOW - 1..considered).find(|&last| Window::of(rounds, last).is_steady());
    match reached {
        Some(last) => SteadyState::Reached {
            window: Window::of(rounds, last),
            left_in_round: (last + 1..rounds.len())
                .find(|&later| !Window::of(rounds, later).is_steady())
                .map(|later| later + 1),
        },
        None => SteadyState::NotReached { window: Window::of(rounds, considered - 1), rounds: considered },
    }
}

impl std::fmt::Display for SteadyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SteadyState::Reached { window, left_in_round } => {
                let (first, last) = (window.first, window.first + WINDOW - 1);
                write!(
                    f,
                    "steady in rounds {first} to {last}: mean {}, spread {}, drift {}",
                    words::number(window.mean),
                    words::percent(window.spread),
                    words::percent(window.drift)
                )?;
                left_in_round.map_or(Ok(()), |round| write!(f, "; steady state lost in round {round}"))
            }
            SteadyState::NotReached { window, rounds } => write!(
                f,
                "not steady within {rounds} rounds: in the last {WINDOW} it spreads by {} (20 % allowed) and drifts by {} \
                 (10 % allowed)",
                words::percent(window.spread),
                words::percent(window.drift)
            ),
            SteadyState::TooFew { rounds } => {
                write!(f, "cannot tell whether it is steady: the rule needs {WINDOW} rounds, found {rounds}")
            }
        }
    }
}

/// What fio's `ss=` looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FioCriterion {
    /// `iops:x%`: no sample is further from the window's mean than x of it.
    Deviation,
    /// `iops_slope:x%`: the window's line rises or falls by less than x of the mean per sample.
    Slope,
}

/// When fio's own rule would have ended the job: the number of samples (one a second) after which a window of `window`
/// samples meets `limit` (a share: 0.05 for 5 %). Nothing when none does, or the window is empty.
pub fn fio_steady_after(
    samples: &[f64],
    window: usize,
    criterion: FioCriterion,
    limit: f64,
) -> Option<usize> {
    if window == 0 {
        return None;
    }
    let meets = |values: &[f64]| {
        let mean = crate::samples::mean(values);
        let found = match criterion {
            FioCriterion::Deviation => values.iter().map(|y| (y - mean).abs()).fold(0.0, f64::max) / mean,
            FioCriterion::Slope => slope(values).abs() / mean,
        };
        found < limit
    };
    samples.windows(window).position(meets).map(|first| first + window)
}

/// The slope of the least-squares line, per sample; 0 for fewer than two.
pub(crate) fn slope(values: &[f64]) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mean = crate::samples::mean(values);
    let products: f64 = values.iter().enumerate().map(|(at, y)| (at as f64 - middle) * (y - mean)).sum();
    let squares: f64 = (0..values.len()).map(|at| (at as f64 - middle).powi(2)).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_of(rounds: &[f64]) -> (usize, Option<usize>) {
        match steady_state(rounds) {
            SteadyState::Reached { window, left_in_round } => (window.first, left_in_round),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn it_is_steady_when_spread_and_drift_are_small() {
        assert_eq!(window_of(&[100.0, 101.0, 99.0, 100.0, 100.0]), (1, None));
        // A fresh device falls: 400 and 200 must have left the window.
        assert_eq!(window_of(&[400.0, 200.0, 105.0, 102.0, 101.0, 100.0, 100.0]), (3, None));
        assert_eq!(window_of(&[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 60.0]), (1, Some(7)));
    }

    #[test]
    fn the_limits_are_those_of_the_specification() {
        // Spread 20 of a mean of 100: allowed. The line: -2 * (90 - 100) + 2 * (110 - 100) = 40 / 10 = 4 a round, 16 % in all.
        let line = [90.0, 95.0, 100.0, 105.0, 110.0];
        let SteadyState::NotReached { window, rounds } = steady_state(&line) else { panic!("it drifts") };
        assert_eq!((rounds, window.mean, window.slope), (5, 100.0, 5.0));
        assert!((window.spread - 0.2).abs() < 1e-9 && (window.drift - 0.2).abs() < 1e-9);
        // The same figures in another order spread as much and do not drift.
        assert_eq!(window_of(&[110.0, 90.0, 100.0, 95.0, 105.0]), (1, None));
        assert!(matches!(steady_state(&[111.0, 90.0, 100.0, 94.0, 105.0]), SteadyState::NotReached { .. }));
    }

    #[test]
    fn after_25_rounds_it_is_too_late() {
        let mut rounds: Vec<f64> = (0..22).map(|at| if at % 2 == 0 { 100.0 } else { 200.0 }).collect();
        rounds.extend([100.0; 4]);
        // The first window of five equal rounds would end in round 27.
        rounds.push(100.0);
        assert!(matches!(steady_state(&rounds), SteadyState::NotReached { rounds: 25, .. }));
        assert!(matches!(steady_state(&[1.0; 4]), SteadyState::TooFew { rounds: 4 }));
        assert!(matches!(steady_state(&[0.0; 9]), SteadyState::TooFew { rounds: 9 }));
    }

    #[test]
    fn fio_has_another_rule() {
        let ramp: Vec<f64> = (0..30).map(|at| (100.0 * f64::from(at + 1)).min(1_000.0)).collect();
        assert_eq!(fio_steady_after(&ramp, 5, FioCriterion::Deviation, 0.05), Some(14));
        // 4 % a second is a "steady" slope to fio while SNIA sees 16 % in a window.
        let climbing = [92.0, 96.0, 100.0, 104.0, 108.0];
        assert_eq!(fio_steady_after(&climbing, 5, FioCriterion::Slope, 0.05), Some(5));
        assert!(matches!(steady_state(&climbing), SteadyState::NotReached { .. }));
    }
}
