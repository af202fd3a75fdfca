//! How fast and how long: rates, arrivals, pauses, ramps, ends.

use crate::seconds;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A limit on I/Os. A group may have several, as for reads and writes apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// How much.
    pub pace: Pace,
    /// What shares it.
    pub per: RatePer,
    /// Which I/Os count.
    #[serde(default)]
    pub of: RateOf,
    /// When they are meant to begin.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// What happens when one cannot begin when it is meant to.
    #[serde(default, rename = "loop")]
    pub clock: Loop,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// I/Os per second.
    Iops(f64),
    /// Bytes per second.
    Bytes(f64),
    /// Percent of the IOPS that the plan's stage of this index reached (Vdbench's `curve`).
    PercentOf {
        /// Index of an earlier stage.
        stage: usize,
        /// Percent; may exceed 100.
        percent: f64,
    },
}

/// What shares a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatePer {
    /// Each worker on each of its targets has the rate (DiskSPD).
    WorkerAndTarget,
    /// Each worker has it (fio).
    Worker,
    /// The whole group has it (Vdbench).
    Group,
}

/// Which I/Os count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateOf {
    /// All.
    #[default]
    All,
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Trims.
    Trims,
}

/// When I/Os of a rate are meant to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// In equal intervals.
    #[default]
    Even,
    /// In exponentially distributed intervals.
    Poisson,
}

/// What happens when an I/O cannot begin when it is meant to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// It begins later, and the time that it waited for a free place is not part of its latency.
    #[default]
    Closed,
    /// It waits in a backlog; its latency counts from when it was meant to begin.
    Open,
}

/// A pause after a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// After so many I/Os.
    pub after: u32,
    /// So long, in seconds.
    #[serde(with = "seconds")]
    pub pause: Duration,
    /// Whether the processor is kept busy meanwhile.
    #[serde(default)]
    pub spin: bool,
    /// When it begins, where several I/Os are in flight.
    #[serde(default)]
    pub start: PauseStart,
}

/// When a pause begins, where several I/Os are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseStart {
    /// When the I/Os are issued: those in flight go on during the pause (DiskSPD's `-i`, Iometer's burst).
    #[default]
    Issued,
    /// When all I/Os in flight have completed after the last one was issued (fio's `thinktime_blocks_type=issue`).
    Drained,
    /// The I/Os are counted when they complete, and then all in flight must complete too (fio's `complete`, its default).
    Completed,
}

/// When a group starts, when it counts, when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// After the start of the stage.
    #[serde(default, with = "seconds")]
    pub delay: Duration,
    /// Runs so long before it counts.
    #[serde(default, with = "seconds")]
    pub ramp: Duration,
    /// How long it counts.
    pub length: Length,
    /// Runs on so long after it counted.
    #[serde(default, with = "seconds")]
    pub cooldown: Duration,
}

impl Timing {
    /// Counts for so long, from the start.
    pub fn seconds(seconds: u64) -> Timing {
        Timing {
            delay: Duration::ZERO,
            ramp: Duration::ZERO,
            length: Length::Time(Duration::from_secs(seconds)),
            cooldown: Duration::ZERO,
        }
    }

    /// The longest that the group can take, if time bounds it at all.
    pub fn longest(&self) -> Option<Duration> {
        let counted = match self.length {
            Length::Time(time) | Length::First { time, .. } => time,
            Length::Amount(_) | Length::UntilStopped => return None,
        };
        Some(self.delay + self.ramp + counted + self.cooldown)
    }
}

/// How long a group counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// So long.
    Time(#[serde(with = "seconds")] Duration),
    /// Until each worker has moved so much.
    Amount(Amount),
    /// Whichever comes first.
    First {
        /// So long.
        #[serde(with = "seconds")]
        time: Duration,
        /// Each worker so much.
        amount: Amount,
    },
    /// Until somebody stops it.
    UntilStopped,
}

impl Length {
    /// The amount, if there is one.
    pub fn amount(self) -> Option<Amount> {
        match self {
            Length::Amount(amount) | Length::First { amount, .. } => Some(amount),
            Length::Time(_) | Length::UntilStopped => None,
        }
    }
}

/// How much a worker moves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// So many times the bytes of its span.
    Passes(f64),
}

/// A latency to be met, by searching for the largest depth that meets it (fio's `latency_target`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyTarget {
    /// So many percent of the I/Os, 0 < p <= 100.
    pub percentile: f64,
    /// Take at most so long, in seconds.
    #[serde(with = "seconds")]
    pub latency: Duration,
    /// Each step of the search lasts so long, in seconds.
    #[serde(with = "seconds")]
    pub window: Duration,
}

/// A stage ends early when a quantity is steady, by fio's `steadystate` rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// The quantity.
    pub of: SteadyOf,
    /// Whether its slope is judged, rather than its greatest deviation from the mean.
    pub slope: bool,
    /// The limit in percent of the mean.
    pub limit: f64,
    /// The window in seconds.
    #[serde(with = "seconds")]
    pub window: Duration,
}

/// A quantity that may be steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyOf {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency.
    Latency,
}
