//! Is B really faster than A? The answer in words, with its interval, or why there is none.
//!
//! Figures are compared as ratios: on the logarithm, by Welch's t (the runs of A and B may differ in spread). A permutation
//! test stands beside it, and the smallest difference that so many runs could have shown. A figure that was rounded to steps of q has
//! an uncertainty of its own, with a variance of q²/12 (a rectangular distribution: GUM, JCGM 100:2008, 4.3.7). All runs share it as
//! long as they differ by less than a step, so it does not become smaller with more runs.

use serde::{Deserialize, Serialize};

use crate::samples::{self, Mean, mean_of_runs};
use crate::{quantile, words};

mod permutation;
#[cfg(test)]
mod tests;

/// How sure a test shall be to find the effect that is asked for, if it is there.
const POWER: f64 = 0.80;
/// Of so many differences that are claimed among many comparisons, this share at most may be none.
pub const FALSE_DISCOVERIES: f64 = 0.05;
/// No verdict asks for more runs of each than this; it then says "more than".
const RUNS_MAX: usize = 1_000;
/// How a verdict begins that is none.
const CANNOT_TELL: &str = "cannot tell";
/// Where there are too few runs for any.
const ONE_RUN: &str = "one run per side is inconclusive: repeat it at least 3 times";

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Throughput: more is faster.
    Higher,
    /// Latency: less is faster.
    Lower,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Which way is better.
    pub better: Better,
    /// How sure the interval shall be: 0..1, usually 0.95.
    pub confidence: f64,
    /// The smallest difference that matters to who asks: 0.02 for 2 %.
    pub effect: f64,
    /// The steps in which the figures of A and of B were printed: 0.1 where 0.5 stands for all from 0.45 to 0.55. 0 for figures that
    /// were not rounded.
    pub steps: [f64; 2],
}

impl Question {
    /// With 95 % confidence, whether there is a difference of 2 % or more.
    pub fn new(better: Better) -> Question {
        Question { better, confidence: 0.95, effect: 0.02, steps: [0.0; 2] }
    }
}

/// Figures that cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CompareError {
    /// A side without runs.
    #[error("one side has no runs: give at least one result a side")]
    NoRuns,
    /// A ratio needs figures above zero.
    #[error("a figure of {value} cannot be compared as a ratio: leave out runs that failed")]
    NotPositive {
        /// The figure.
        value: f64,
    },
    /// Confidence or effect out of range.
    #[error(
        "the confidence must lie between 0 and 1, and the effect above 0: found {confidence} and {effect}"
    )]
    Question {
        /// The confidence asked for.
        confidence: f64,
        /// The effect asked for.
        effect: f64,
    },
}

/// What B does against A, of A's figure: 0.12 for 12 % more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Ratio of the geometric means, less one.
    pub estimate: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// B is faster: the figure changed by between these shares, both above zero.
    Faster {
        /// At least.
        low: f64,
        /// At most.
        high: f64,
    },
    /// B is slower, as above.
    Slower {
        /// At least.
        low: f64,
        /// At most.
        high: f64,
    },
    /// Whatever difference there is, it is not larger than this share, which does not exceed the effect asked for.
    NoDifference {
        /// The end of the interval that is further from zero.
        larger_than: f64,
    },
    /// Neither a difference nor that there is none.
    CannotTell {
        /// Runs of each that are missing, by the spread seen so far; 1,000 stands for more.
        more_runs: usize,
    },
    /// The figures were printed in steps of this share: that hides the effect asked for, whatever the number of runs.
    Rounded {
        /// The larger of the two sides' steps, of its figure.
        step: f64,
    },
    /// A side has a single run, and nobody knows how far runs differ.
    OneRun,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Verdict::Faster { low, high } => {
                write!(f, "faster by {} to {}", words::percent(*low), words::percent(*high))
            }
            Verdict::Slower { low, high } => {
                write!(f, "slower by {} to {}", words::percent(*low), words::percent(*high))
            }
            Verdict::NoDifference { larger_than } => {
                // Rounded up: the promise is "not larger".
                let up = (larger_than * 1e4).ceil() / 1e4;
                write!(f, "no difference larger than {}", words::percent(up))
            }
            Verdict::CannotTell { more_runs } if *more_runs >= RUNS_MAX => {
                write!(
                    f,
                    "{CANNOT_TELL}: needs more than {RUNS_MAX} more runs of each; find out first why runs differ"
                )
            }
            Verdict::CannotTell { more_runs } => {
                write!(f, "{CANNOT_TELL}: needs {} of each", words::counted(*more_runs, "more run"))
            }
            Verdict::Rounded { step } => {
                let step = words::percent(*step);
                write!(
                    f,
                    "{CANNOT_TELL}: the figures were rounded to steps of {step}; take figures with more digits"
                )
            }
            Verdict::OneRun => write!(f, "{ONE_RUN}"),
        }
    }
}

impl Verdict {
    /// The whole sentence, without its full stop: "B is faster by 12 % to 19 %", "A and B: no difference larger than 1.5 %".
    pub fn sentence(&self, a: &str, b: &str) -> String {
        match self {
            Verdict::Faster { .. } | Verdict::Slower { .. } => format!("{b} is {self}"),
            Verdict::NoDifference { .. } => format!("{a} and {b}: {self}"),
            Verdict::CannotTell { .. } | Verdict::Rounded { .. } => {
                let rest = self.to_string();
                let needs = rest.strip_prefix(CANNOT_TELL).expect("its own words begin so");
                format!("{CANNOT_TELL} whether {b} differs from {a}{needs}")
            }
            Verdict::OneRun => self.to_string(),
        }
    }

    /// In a word or two, for a table.
    pub fn outcome(&self) -> Outcome {
        match self {
            Verdict::Faster { .. } => Outcome::Faster,
            Verdict::Slower { .. } => Outcome::Slower,
            Verdict::NoDifference { .. } => Outcome::NoDifference,
            Verdict::CannotTell { .. } | Verdict::Rounded { .. } | Verdict::OneRun => Outcome::CannotTell,
        }
    }
}

/// A verdict without its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// B is faster.
    Faster,
    /// B is slower.
    Slower,
    /// None that matters.
    NoDifference,
    /// Neither is shown.
    CannotTell,
}

impl Outcome {
    /// In a word or two, of B.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Faster => "faster",
            Outcome::Slower => "slower",
            Outcome::NoDifference => "no difference",
            Outcome::CannotTell => CANNOT_TELL,
        }
    }
}

/// A against B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The runs of A.
    pub a: Mean,
    /// The runs of B.
    pub b: Mean,
    /// What B does against A; missing when a side has one run.
    pub change: Option<Change>,
    /// The probability of a difference as large if there were none, by Welch's t; missing when a side has one run.
    pub p_welch: Option<f64>,
    /// The same by exchanging runs between A and B: exact where there are few. With three runs each it cannot fall below
    /// 0.1.
    pub p_permutation: Option<f64>,
    /// The smallest difference that so many runs would find in four of five cases (share of A).
    pub smallest_seen: Option<f64>,
    /// Runs of each that the effect asked for would need beyond those there are; missing when a side has one run, and where rounding
    /// hides the effect from any number of runs.
    pub more_runs: Option<usize>,
    /// True when the runs of a side differ by more than 5 % among themselves.
    pub noisy: bool,
    /// The answer.
    pub verdict: Verdict,
    /// What an answer at another level of confidence is reckoned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    welch: Option<Welch>,
}

/// Compares one figure per run of A with those of B. Runs should have been made in turns (ABBA), or drift counts as a
/// difference.
pub fn compare(a: &[f64], b: &[f64], question: &Question) -> Result<Comparison, CompareError> {
    let Question { better, confidence, effect, steps } = *question;
    let asked = confidence > 0.0 && confidence < 1.0 && effect > 0.0 && effect.is_finite();
    if !asked {
        return Err(CompareError::Question { confidence, effect });
    }
    if let Some(value) = a.iter().chain(b).find(|value| !value.is_finite() || **value <= 0.0) {
        return Err(CompareError::NotPositive { value: *value });
    }
    let means = (mean_of_runs(a, confidence), mean_of_runs(b, confidence));
    let (Some(mean_a), Some(mean_b)) = means else { return Err(CompareError::NoRuns) };
    let noisy = mean_a.is_noisy() || mean_b.is_noisy();
    let mut comparison = Comparison {
        a: mean_a,
        b: mean_b,
        change: None,
        p_welch: None,
        p_permutation: None,
        smallest_seen: None,
        more_runs: None,
        noisy,
        verdict: Verdict::OneRun,
        welch: None,
    };
    if a.len() < 2 || b.len() < 2 {
        return Ok(comparison);
    }
    let logs = |runs: &[f64]| runs.iter().map(|value| value.ln()).collect::<Vec<f64>>();
    let welch = Welch::new(&logs(a), &logs(b), steps, effect);
    let (low, high) = welch.interval(confidence);
    let change = Change { estimate: welch.difference.exp_m1(), low: low.exp_m1(), high: high.exp_m1() };
    comparison.change = Some(change);
    comparison.p_welch = Some(welch.p_value());
    comparison.p_permutation = Some(permutation::p_value(&logs(a), &logs(b)));
    comparison.smallest_seen = Some(welch.smallest_seen(confidence).exp_m1());
    comparison.more_runs = welch.runs_missing(confidence);
    comparison.verdict = verdict(&change, better, &welch, confidence);
    comparison.welch = Some(welch);
    Ok(comparison)
}

fn verdict(change: &Change, better: Better, welch: &Welch, confidence: f64) -> Verdict {
    let larger_than = change.low.abs().max(change.high.abs());
    if larger_than <= welch.effect {
        return Verdict::NoDifference { larger_than };
    }
    let faster = |rises: bool| rises == (better == Better::Higher);
    let (low, high) = (change.low.abs().min(change.high.abs()), larger_than);
    if change.low > 0.0 || change.high < 0.0 {
        let rises = change.low > 0.0;
        return if faster(rises) { Verdict::Faster { low, high } } else { Verdict::Slower { low, high } };
    }
    welch.unknown(confidence)
}

/// The difference of two means whose spreads may differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Welch {
    /// Mean of B less mean of A.
    difference: f64,
    /// Its standard error.
    error: f64,
    freedom: f64,
    /// Standard deviation of a single run, of both sides together.
    deviation: f64,
    /// The variance of the difference that comes from rounding alone.
    rounding: f64,
    /// The larger of the two sides' steps, of its figure.
    step: f64,
    /// Runs of the side that has fewer.
    runs: usize,
    /// The smallest difference that matters.
    effect: f64,
}

impl Welch {
    /// Of logarithms; each side has at least two. `steps` are those of the figures themselves.
    fn new(a: &[f64], b: &[f64], steps: [f64; 2], effect: f64) -> Welch {
        let (n, m) = (a.len() as f64, b.len() as f64);
        let [step_a, step_b] = [steps[0] / samples::mean(a).exp(), steps[1] / samples::mean(b).exp()];
        let [rounding_a, rounding_b] = [step_a, step_b].map(|step| step.powi(2) / 12.0);
        let (of_a, of_b) = (samples::variance(a) / n + rounding_a, samples::variance(b) / m + rounding_b);
        let error = (of_a + of_b).sqrt();
        let spread = of_a.powi(2) / (n - 1.0) + of_b.powi(2) / (m - 1.0);
        // Runs that are all equal have no spread to judge by: all of them count.
        let freedom = if spread > 0.0 { (of_a + of_b).powi(2) / spread } else { n + m - 2.0 };
        Welch {
            difference: samples::mean(b) - samples::mean(a),
            error,
            freedom: freedom.max(1.0),
            deviation: ((samples::variance(a) + samples::variance(b)) / 2.0).sqrt(),
            rounding: rounding_a + rounding_b,
            step: step_a.max(step_b),
            runs: a.len().min(b.len()),
            effect,
        }
    }

    fn interval(&self, confidence: f64) -> (f64, f64) {
        let reach = quantile::student(0.5 + confidence / 2.0, self.freedom) * self.error;
        (self.difference - reach, self.difference + reach)
    }

    fn p_value(&self) -> f64 {
        if self.error == 0.0 {
            return if self.difference == 0.0 { 1.0 } else { 0.0 };
        }
        quantile::student_two_sided(self.difference / self.error, self.freedom)
    }

    fn smallest_seen(&self, confidence: f64) -> f64 {
        reach_of_test(confidence, self.freedom) * self.error
    }

    /// Runs of each that are missing to see the effect; nothing when rounding hides it from any number of them.
    fn runs_missing(&self, confidence: f64) -> Option<usize> {
        let enough = |runs: usize| {
            let n = runs as f64;
            let error = (self.deviation.powi(2) * 2.0 / n + self.rounding).sqrt();
            reach_of_test(confidence, 2.0 * (n - 1.0)) * error <= self.effect.ln_1p()
        };
        let normal = quantile::normal(0.5 + confidence / 2.0) + quantile::normal(POWER);
        if normal * self.rounding.sqrt() > self.effect.ln_1p() {
            return None;
        }
        let most = self.runs + RUNS_MAX;
        Some((self.runs..most).find(|&runs| enough(runs)).map_or(RUNS_MAX, |runs| runs - self.runs))
    }

    /// That there is no answer at this confidence, and what would bring one.
    fn unknown(&self, confidence: f64) -> Verdict {
        match self.runs_missing(confidence) {
            Some(more_runs) => Verdict::CannotTell { more_runs: more_runs.max(1) },
            None => Verdict::Rounded { step: self.step },
        }
    }
}

/// How many standard errors a difference must have to be found in [`POWER`] of all cases.
fn reach_of_test(confidence: f64, freedom: f64) -> f64 {
    quantile::student(0.5 + confidence / 2.0, freedom) + quantile::student(POWER, freedom)
}

/// p-values of many cells, adjusted after Benjamini and Hochberg: taking those up to 0.05 as findings, one in twenty of the
/// findings is expected to be none. In the order given.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[other].total_cmp(&p_values[one]));
    let mut result = vec![1.0; p_values.len()];
    let mut least = 1.0f64;
    for (from_top, &index) in order.iter().enumerate() {
        let rank = p_values.len() - from_top;
        least = least.min(p_values[index] * p_values.len() as f64 / rank as f64);
        result[index] = least;
    }
    result
}

/// Takes back those "faster" and "slower" among many comparisons that may well be there by chance alone: whose adjusted
/// p-value exceeds `rate` (0.05). They become "cannot tell". Returns how many were taken back.
///
/// The more comparisons there are, the surer each must be, so the runs that are missing are those for the level that one more finding
/// would have to reach: `rate` (found + 1) / all.
pub fn control_chance(comparisons: &mut [Comparison], rate: f64) -> usize {
    let tested: Vec<usize> =
        (0..comparisons.len()).filter(|&index| comparisons[index].p_welch.is_some()).collect();
    let p_values: Vec<f64> = tested.iter().filter_map(|&index| comparisons[index].p_welch).collect();
    let adjusted = adjusted(&p_values);
    let found = adjusted.iter().filter(|p_value| **p_value <= rate).count();
    let level = rate * ((found + 1) as f64 / tested.len().max(1) as f64).min(1.0);
    let mut taken_back = 0;
    for (index, p_value) in tested.into_iter().zip(adjusted) {
        let comparison = &mut comparisons[index];
        let claims = matches!(comparison.verdict, Verdict::Faster { .. } | Verdict::Slower { .. });
        let is_taken_back = claims && p_value > rate;
        taken_back += usize::from(is_taken_back);
        let Some(welch) = comparison.welch.filter(|_| p_value > rate) else { continue };
        comparison.more_runs = welch.runs_missing(1.0 - level);
        if is_taken_back || matches!(comparison.verdict, Verdict::CannotTell { .. }) {
            comparison.verdict = welch.unknown(1.0 - level);
        }
    }
    taken_back
}
