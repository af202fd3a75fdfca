//! The sweet spot of a sweep over outstanding I/Os: several estimators, one sentence.
//!
//! A closed loop depends on its total outstanding N alone (threads x depth x disks x VMs), so points of equal N are one
//! point. Estimators: the knee (the first N from which on a doubling gains less than 20 %), asymptotic bounds (throughput is at most
//! N / R0 and at most C; they meet at N* = C R0), power (throughput by latency, Kleinrock 1979), and the largest throughput within a
//! latency. The knee looks at gains between points alone, so it stays where it is when the sweep begins earlier or goes on longer;
//! Kneedle (Satopää et al. 2011), which scales the curve to its range, does not.

use serde::{Deserialize, Serialize};

use crate::{samples, words};

#[cfg(test)]
pub(crate) mod tests;

/// The first N with this share of the best throughput is where the peak begins: what is left is noise.
const PEAK_SHARE: f64 = 0.98;
/// Points within this share of the best throughput make up the plateau, whose mean is the capacity C.
const PLATEAU_SHARE: f64 = 0.97;
/// Up to so many times the smallest N nothing queues yet: there R0 is taken.
const UNLOADED_TIMES: f64 = 4.0;
/// A last step that gains less than this has reached the plateau.
const GAIN_MIN: f64 = 0.03;
/// A doubling of N that gains less than this is past the knee. It costs 67 % in latency then: by Little, R = N / X doubles by 1.2.
const DOUBLING_GAIN: f64 = 0.20;

/// One measured point of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// Total outstanding I/Os, above zero.
    pub outstanding: f64,
    /// I/Os per second, above zero.
    pub throughput: f64,
    /// Mean latency in seconds, above zero.
    pub latency_s: f64,
    /// The percentile that an objective is about, in seconds, when it was measured.
    pub percentile_s: Option<f64>,
}

/// The latency that must hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The mean, in seconds.
    Mean(f64),
    /// The percentile that the points carry, in seconds.
    Percentile(f64),
}

/// The asymptotic bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// R0: the latency without queueing, N / throughput at the smallest N, in seconds.
    pub unloaded_s: f64,
    /// C: the throughput of the plateau.
    pub capacity: f64,
    /// N*: where they meet, C R0.
    pub knee: f64,
}

/// How the sweep ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Throughput has stopped growing: only latency does.
    Plateau,
    /// It falls: by this share of the best at the last point.
    Falling(f64),
    /// It still grew with the last step, by this share: the peak lies further on.
    Growing(f64),
}

/// All that a sweep tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// One point per N, rising: mean throughput, latencies weighted by it.
    pub points: Vec<SweepPoint>,
    /// The best throughput.
    pub peak: f64,
    /// The smallest N within 2 % of it.
    pub peak_from: f64,
    /// The asymptotic bounds.
    pub bounds: Bounds,
    /// The first N from which on every doubling gains less than 20 %; missing when no N has a point at twice of it or more that shows
    /// it.
    pub knee: Option<f64>,
    /// The N with the best ratio of IOPS to latency.
    pub power: f64,
    /// The N with the most throughput within the objective, when there is an objective and a point that meets it.
    pub objective: Option<f64>,
    /// How the sweep ends.
    pub end: End,
    /// The N to take: what meets the objective if one was asked for; else the knee, else the one nearest to N*.
    pub sweet_spot: SweepPoint,
}

/// Points that are no sweep.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// Fewer than three different N.
    #[error("a sweep needs at least 3 different numbers of outstanding I/Os, found {found}")]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// A figure that is not above zero and finite.
    #[error("point {index}: outstanding, throughput and latency must be above zero")]
    NotPositive {
        /// Which point, from 0.
        index: usize,
    },
    /// No point is fast enough.
    #[error(
        "no point keeps the latency objective of {target_ms:.3} ms: the lowest latency is {best_ms:.3} ms"
    )]
    ObjectiveNotMet {
        /// The objective in ms.
        target_ms: f64,
        /// The lowest latency in ms.
        best_ms: f64,
    },
    /// An objective about a percentile that no point has.
    #[error(
        "the objective is a percentile, and no point has percentiles: give a mean, or use results with percentiles"
    )]
    NoPercentile,
}

/// Evaluates a sweep. Points may come in any order, several per N.
pub fn sweep(points: &[SweepPoint], objective: Option<Objective>) -> Result<Sweep, SweepError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let valid = |point: &SweepPoint| {
        positive(point.outstanding) && positive(point.throughput) && positive(point.latency_s)
    };
    if let Some(index) = points.iter().position(|point| !valid(point)) {
        return Err(SweepError::NotPositive { index });
    }
    let combined = combined(points);
    if combined.len() < 3 {
        return Err(SweepError::TooFew { found: combined.len() });
    }
    let peak = combined.iter().map(|point| point.throughput).fold(0.0, f64::max);
    let peak_from = combined.iter().find(|point| point.throughput >= PEAK_SHARE * peak);
    let power = combined.iter().max_by(|one, other| power_of(one).total_cmp(&power_of(other)));
    let bounds = bounds(points);
    let knee = knee(&combined);
    let within = objective.map(|objective| within(&combined, objective)).transpose()?;
    let wanted = within.or(knee).unwrap_or(bounds.knee);
    let distance = |point: &SweepPoint| (point.outstanding / wanted).ln().abs();
    let sweet_spot = combined.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
    let named = "a sweep has points";
    Ok(Sweep {
        peak,
        peak_from: peak_from.expect(named).outstanding,
        bounds,
        knee,
        power: power.expect(named).outstanding,
        objective: within,
        end: end_of(&combined, peak),
        sweet_spot: *sweet_spot.expect(named),
        points: combined,
    })
}

/// One point per N: the mean throughput; latencies weighted by throughput, as every I/O counts once.
fn combined(points: &[SweepPoint]) -> Vec<SweepPoint> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|one, other| one.outstanding.total_cmp(&other.outstanding));
    let weighted = |same: &[SweepPoint], of: &dyn Fn(&SweepPoint) -> f64| {
        let sum: f64 = same.iter().map(|point| of(point) * point.throughput).sum();
        sum / same.iter().map(|point| point.throughput).sum::<f64>()
    };
    sorted
        .chunk_by(|one, other| one.outstanding == other.outstanding)
        .map(|same| {
            // Percentiles of several runs cannot be joined into one: the worst of them is what may be promised.
            let worst =
                same.iter().map(|point| point.percentile_s).reduce(|one, other| Some(one?.max(other?)));
            SweepPoint {
                outstanding: same[0].outstanding,
                throughput: same.iter().map(|point| point.throughput).sum::<f64>() / same.len() as f64,
                latency_s: weighted(same, &|point| point.latency_s),
                percentile_s: worst.flatten(),
            }
        })
        .collect()
}

fn power_of(point: &SweepPoint) -> f64 {
    point.throughput / point.latency_s
}

fn bounds(points: &[SweepPoint]) -> Bounds {
    let smallest = points.iter().map(|point| point.outstanding).fold(f64::INFINITY, f64::min);
    let best = points.iter().map(|point| point.throughput).fold(0.0, f64::max);
    let mean_where = |belongs: &dyn Fn(&SweepPoint) -> bool, of: &dyn Fn(&SweepPoint) -> f64| {
        samples::mean(&points.iter().filter(|point| belongs(point)).map(of).collect::<Vec<f64>>())
    };
    // By Little, N / X is the latency, with more digits than tables print.
    let unloaded_s = mean_where(&|point| point.outstanding <= UNLOADED_TIMES * smallest, &|point| {
        point.outstanding / point.throughput
    });
    let capacity = mean_where(&|point| point.throughput >= PLATEAU_SHARE * best, &|point| point.throughput);
    Bounds { unloaded_s, capacity, knee: capacity * unloaded_s }
}

/// The first N from which on throughput grows slower than by a fifth per doubling, judged by all points at 2 N and beyond: what lies
/// nearer is too near for noise.
fn knee(points: &[SweepPoint]) -> Option<f64> {
    let slowest = (1.0 + DOUBLING_GAIN).ln() / std::f64::consts::LN_2;
    let is_past = |from: &SweepPoint| {
        let beyond = || points.iter().filter(|to| to.outstanding >= 2.0 * from.outstanding);
        let growth = |to: &SweepPoint| {
            (to.throughput / from.throughput).ln() / (to.outstanding / from.outstanding).ln()
        };
        beyond().next().is_some() && beyond().all(|to| growth(to) < slowest)
    };
    points.iter().find(|point| is_past(point)).map(|point| point.outstanding)
}

fn within(points: &[SweepPoint], objective: Objective) -> Result<f64, SweepError> {
    let (Objective::Mean(target) | Objective::Percentile(target)) = objective;
    let latency = |point: &SweepPoint| match objective {
        Objective::Mean(_) => Some(point.latency_s),
        Objective::Percentile(_) => point.percentile_s,
    };
    let best = points.iter().filter_map(latency).min_by(f64::total_cmp).ok_or(SweepError::NoPercentile)?;
    points
        .iter()
        .filter(|point| latency(point).is_some_and(|latency| latency <= target))
        .max_by(|one, other| one.throughput.total_cmp(&other.throughput))
        .map(|point| point.outstanding)
        .ok_or(SweepError::ObjectiveNotMet { target_ms: target * 1e3, best_ms: best * 1e3 })
}

fn end_of(points: &[SweepPoint], peak: f64) -> End {
    let [.., before, last] = points else { return End::Plateau };
    let gain = last.throughput / before.throughput - 1.0;
    let below = 1.0 - last.throughput / peak;
    if last.throughput >= peak && gain > GAIN_MIN {
        End::Growing(gain)
    } else if below > 1.0 - RETROGRADE_SHARE {
        End::Falling(below)
    } else {
        End::Plateau
    }
}

/// A last point below this share of the best has fallen: what lies between is noise.
const RETROGRADE_SHARE: f64 = 0.95;

impl std::fmt::Display for Sweep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let spot = &self.sweet_spot;
        let n = |value: f64| words::number(value);
        let last = n(self.points.last().map_or(0.0, |point| point.outstanding));
        if self.knee.is_none() && self.objective.is_none() {
            write!(f, "no knee up to N = {last}")?;
        } else {
            write!(
                f,
                "sweet spot N = {} ({} of the peak IOPS at {})",
                n(spot.outstanding),
                words::percent(spot.throughput / self.peak),
                words::milliseconds(spot.latency_s)
            )?;
        }
        match self.end {
            End::Plateau => write!(f, "; peak from N = {}, beyond it only latency grows", n(self.peak_from)),
            End::Falling(below) => write!(
                f,
                "; peak from N = {}, beyond it throughput falls, by {} at the last point",
                n(self.peak_from),
                words::percent(below)
            ),
            End::Growing(gain) => write!(
                f,
                "; throughput still grew by {} in the last step: extend the sweep beyond N = {}",
                words::percent(gain),
                last
            ),
        }
    }
}

impl Sweep {
    /// What each estimator says, one line each.
    pub fn estimators(&self) -> Vec<String> {
        let Bounds { unloaded_s, capacity, knee } = self.bounds;
        let mut lines = vec![format!(
            "asymptotic bounds: R0 = {:.3} ms, C = {} IOPS, N* = {:.0}",
            unloaded_s * 1e3,
            words::rate(capacity),
            knee
        )];
        let gain = words::percent(DOUBLING_GAIN);
        lines.push(match self.knee {
            Some(knee) => format!("knee (a doubling gains less than {gain}): {}", words::number(knee)),
            None => format!("knee (a doubling gains less than {gain}): none"),
        });
        lines.push(format!("best ratio of IOPS to latency: {}", words::number(self.power)));
        if let Some(objective) = self.objective {
            lines.push(format!("most throughput within the latency objective: {}", words::number(objective)));
        }
        lines.push(format!("within 2 % of the peak from: {}", words::number(self.peak_from)));
        lines
    }
}
