//! Little's law as an audit: what is outstanding on average is throughput times mean latency, whoever measured it.
//!
//! A closed loop holds as much outstanding as it was asked to. A figure that implies another number was measured otherwise
//! than its caption says, or averaged wrongly, or lost something.

use serde::{Deserialize, Serialize};

use crate::words;

/// A ratio above this needs an explanation.
const RATIO_MAX: f64 = 1.05;
/// A ratio below this needs one.
const RATIO_MIN: f64 = 0.95;
/// How near a ratio must be to a whole multiple to be called one: this, and never so wide that neighbours nearly touch.
const MULTIPLE_TOLERANCE: f64 = 0.07;
/// Greater multiples are not told from a coincidence.
const MULTIPLE_MAX: u32 = 64;

/// On which side of what was asked for the outstanding I/Os of a figure lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// More than 5 % short of it.
    Short,
    /// Within 5 %.
    Agrees,
    /// More than 5 % above it.
    Above,
}

/// Judges a ratio of implied to claimed, of which `slack` may come from rounding alone.
pub fn side_of(ratio: f64, slack: f64) -> Side {
    if ratio + slack < RATIO_MIN {
        Side::Short
    } else if ratio - slack > RATIO_MAX {
        Side::Above
    } else {
        Side::Agrees
    }
}

/// A figure to be audited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// I/Os per second, of all members together.
    pub throughput: f64,
    /// The mean latency in seconds.
    pub latency_s: f64,
    /// What was outstanding in total by the caption or the job; `None` when nobody says.
    pub claimed: Option<f64>,
    /// VMs, hosts or workers that the figure is of: with one, nothing can be unequal between them.
    pub members: u32,
}

/// What the law says of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LittleAudit {
    /// Throughput times latency: what was outstanding on average.
    pub implied: f64,
    /// What was claimed.
    pub claimed: Option<f64>,
    /// Implied by claimed.
    pub ratio: Option<f64>,
    /// What that means.
    pub verdict: LittleVerdict,
}

/// What a ratio of implied to claimed means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LittleVerdict {
    /// Within 5 %: the figure is what it says.
    Agrees,
    /// Near a whole multiple: so many times the outstanding that is claimed.
    TimesClaimed {
        /// The multiple, at least 2.
        times: u32,
    },
    /// Near a whole part: a 1/n of what is claimed.
    PartOfClaimed {
        /// The n, at least 2.
        parts: u32,
    },
    /// Above 5 % and no multiple, several members: they were unequal, and the latency was averaged without weights.
    Unequal,
    /// Above 5 %, no multiple, and one member: the latency is not the mean of the I/Os that the throughput counts.
    LatencyOverstated,
    /// More than 5 % short: samples lost, idle time, or a rate limit.
    Short,
    /// Nothing was claimed, so nothing is contradicted.
    NoClaim,
}

/// Applies the law. Nothing when throughput or latency are not above zero and finite, or the claim is not above zero.
pub fn audit(figure: &Figure) -> Option<LittleAudit> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let usable = positive(figure.throughput) && positive(figure.latency_s);
    if !usable || figure.claimed.is_some_and(|claimed| !positive(claimed)) {
        return None;
    }
    let implied = figure.throughput * figure.latency_s;
    let ratio = figure.claimed.map(|claimed| implied / claimed);
    let verdict = ratio.map_or(LittleVerdict::NoClaim, |ratio| verdict_of(ratio, figure.members));
    Some(LittleAudit { implied, claimed: figure.claimed, ratio, verdict })
}

fn verdict_of(ratio: f64, members: u32) -> LittleVerdict {
    if side_of(ratio, 0.0) == Side::Agrees {
        return LittleVerdict::Agrees;
    }
    if let Some(times) = whole_multiple(ratio) {
        return LittleVerdict::TimesClaimed { times };
    }
    if let Some(parts) = whole_multiple(1.0 / ratio) {
        return LittleVerdict::PartOfClaimed { parts };
    }
    match (ratio > 1.0, members > 1) {
        (true, true) => LittleVerdict::Unequal,
        (true, false) => LittleVerdict::LatencyOverstated,
        (false, _) => LittleVerdict::Short,
    }
}

/// The whole number from 2 to 64 that `ratio` is nearly, if there is one: within 7 % of it, and within a quarter of the way
/// to the next.
pub fn whole_multiple(ratio: f64) -> Option<u32> {
    let nearest = ratio.round();
    if !(2.0..=f64::from(MULTIPLE_MAX)).contains(&nearest) {
        return None;
    }
    let tolerance = MULTIPLE_TOLERANCE.min(0.25 / nearest);
    ((ratio / nearest - 1.0).abs() <= tolerance).then_some(nearest as u32)
}

impl std::fmt::Display for LittleAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "implies {} outstanding", words::number(self.implied))?;
        let (Some(claimed), Some(ratio)) = (self.claimed, self.ratio) else { return Ok(()) };
        let off = words::percent((ratio - 1.0).abs());
        write!(f, ", claimed {}", words::number(claimed))?;
        match self.verdict {
            LittleVerdict::Agrees | LittleVerdict::NoClaim => write!(f, ": agrees"),
            LittleVerdict::TimesClaimed { times } => {
                write!(f, ": {times} times the outstanding that is claimed")
            }
            LittleVerdict::PartOfClaimed { parts } => {
                write!(f, ": 1/{parts} of the outstanding that is claimed")
            }
            LittleVerdict::Unequal => {
                write!(f, ": the members were unequal, and the latency is overstated by {off}")
            }
            LittleVerdict::LatencyOverstated => {
                write!(
                    f,
                    ": the latency is {off} more than these I/Os can have had; was it averaged without weights?"
                )
            }
            LittleVerdict::Short => write!(f, ": {off} short; samples lost, idle time, or a rate limit"),
        }
    }
}

/// A claim of "x more throughput and y less latency", audited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GainAudit {
    /// The gain in throughput that is claimed: 0.635 for +63.5 %.
    pub gain: f64,
    /// The fall in latency that is claimed: 0.398 for -39.8 %.
    pub fall: f64,
    /// The fall that the gain alone brings at the same outstanding: 1 - 1 / (1 + gain).
    pub fall_implied: f64,
    /// (1 + gain) (1 - fall): near 1 at the same outstanding.
    pub product: f64,
    /// True when claimed and implied fall are within 1.5 points: a closed loop, and the two figures are one finding.
    pub one_finding: bool,
}

/// How far claimed and implied fall may differ: rounding, and median against mean.
const GAIN_POINTS_MAX: f64 = 0.015;

/// Are a gain in throughput and a fall in latency (shares) one finding? At the same outstanding (1 + gain)(1 - fall) is 1.
/// Nothing for a gain of -100 % or less, or a fall of 100 % or more.
pub fn audit_gains(gain: f64, fall: f64) -> Option<GainAudit> {
    let sensible = gain.is_finite() && fall.is_finite() && gain > -1.0 && fall < 1.0;
    sensible.then(|| {
        let fall_implied = 1.0 - 1.0 / (1.0 + gain);
        let one_finding = (fall - fall_implied).abs() <= GAIN_POINTS_MAX;
        GainAudit { gain, fall, fall_implied, product: (1.0 + gain) * (1.0 - fall), one_finding }
    })
}

impl std::fmt::Display for GainAudit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let points = |share: f64| format!("{:+.1} %", share * 100.0);
        let (gain, fall) = (points(self.gain), points(-self.fall));
        let implied = points(-self.fall_implied);
        if self.one_finding {
            write!(
                f,
                "{gain} throughput and {fall} latency are one finding, not two: at the same outstanding the gain alone is \
                 {implied} latency"
            )
        } else {
            write!(
                f,
                "{gain} throughput and {fall} latency do not fit together: at the same outstanding the gain alone is \
                 {implied} latency, so the outstanding differed, or the figures are of different runs"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(throughput: f64, latency_ms: f64, claimed: f64, members: u32, expected: LittleVerdict) {
        let figure = Figure { throughput, latency_s: latency_ms / 1e3, claimed: Some(claimed), members };
        let audit = audit(&figure).unwrap();
        assert_eq!(audit.verdict, expected, "{audit}");
    }

    #[test]
    fn published_figures_are_judged() {
        // One VM of the striping tables: DiskSPD holds what its caption says, fio four times that.
        check(67_054.0, 0.95, 64.0, 1, LittleVerdict::Agrees);
        check(63_732.0, 4.01, 64.0, 1, LittleVerdict::TimesClaimed { times: 4 });
        check(35_904.0, 7.55, 64.0, 1, LittleVerdict::TimesClaimed { times: 4 });
        // Three VMs, 4 KiB write: 381 where 192 could be. And twelve with fio: 4,530 where 3,072 could be.
        check(40_882.0, 9.32, 192.0, 3, LittleVerdict::TimesClaimed { times: 2 });
        check(52_155.0, 86.87, 3_072.0, 12, LittleVerdict::Unequal);
        // 652,900 IOPS at 2.98 ms, 64 for each of 32 hosts.
        check(652_900.0, 2.98, 2_048.0, 32, LittleVerdict::Agrees);
        check(652_900.0, 2.78, 2_048.0, 32, LittleVerdict::Short);
        check(1_000.0, 16.0, 64.0, 1, LittleVerdict::PartOfClaimed { parts: 4 });
        check(1_000.0, 80.0, 64.0, 1, LittleVerdict::LatencyOverstated);
    }

    #[test]
    fn only_what_is_near_a_whole_number_is_a_multiple() {
        for (ratio, expected) in [
            (1.0, None),
            (1.9, Some(2)),
            (1.8, None),
            (2.5, None),
            (4.235, Some(4)),
            (8.2, Some(8)),
            (8.4, None),
        ] {
            assert_eq!(whole_multiple(ratio), expected, "{ratio}");
        }
        assert_eq!(whole_multiple(f64::NAN), None);
    }

    #[test]
    fn what_cannot_be_audited_is_not() {
        let figure = Figure { throughput: 0.0, latency_s: 1.0, claimed: None, members: 1 };
        assert_eq!(audit(&figure), None);
        let silent = Figure { throughput: 100.0, ..figure };
        assert_eq!(audit(&silent).unwrap().to_string(), "implies 100 outstanding");
    }

    #[test]
    fn gain_and_fall_of_a_closed_loop_are_one_finding() {
        for (gain, fall, implied) in [
            (0.635, 0.398, 0.388),
            (0.285, 0.225, 0.222),
            (0.86, 0.477, 0.462),
            (0.523, 0.356, 0.343),
            (0.744, 0.44, 0.427),
        ] {
            let audit = audit_gains(gain, fall).unwrap();
            assert!(audit.one_finding, "{audit}");
            assert!((audit.fall_implied - implied).abs() < 0.001, "{audit:?}");
        }
        assert!(!audit_gains(0.50, 0.50).unwrap().one_finding);
        assert_eq!(audit_gains(0.5, 1.0), None);
    }
}
