//! One form for what every tool writes: sets of runs, each with figures per direction.
//!
//! Figures that a tool did not write are `None`, never zero. Rates are per second and latencies in seconds, as `f64`; counts are
//! `u64`.

use serde::{Deserialize, Serialize};
use statistics::{BoundedHistogram, Histogram};
use std::collections::BTreeMap;

/// Who wrote a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// axboe/fio.
    Fio,
    /// microsoft/diskspd.
    Diskspd,
    /// Oracle's Vdbench.
    Vdbench,
    /// Iometer.
    Iometer,
    /// VMware's HCIBench, which drives fio or Vdbench.
    Hcibench,
    /// VMware's esxtop in batch mode.
    Esxtop,
    /// Our own lab.
    Drystone,
    /// A table of figures that names no tool, or one that is not known.
    Unknown,
}

impl Tool {
    /// The tool that a table names, in any case.
    pub fn named(name: &str) -> Tool {
        match name.trim().to_ascii_lowercase().as_str() {
            "fio" => Tool::Fio,
            "diskspd" => Tool::Diskspd,
            "vdbench" => Tool::Vdbench,
            "iometer" => Tool::Iometer,
            "hcibench" => Tool::Hcibench,
            "esxtop" => Tool::Esxtop,
            "drystone" => Tool::Drystone,
            _ => Tool::Unknown,
        }
    }
}

impl std::fmt::Display for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Tool::Fio => "fio",
            Tool::Diskspd => "DiskSPD",
            Tool::Vdbench => "Vdbench",
            Tool::Iometer => "Iometer",
            Tool::Hcibench => "HCIBench",
            Tool::Esxtop => "esxtop",
            Tool::Drystone => "Drystone",
            Tool::Unknown => "unnamed tool",
        })
    }
}

/// What one file, or one folder, holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultSet {
    /// The file or folder, as the caller named it.
    pub source: String,
    /// Who wrote it.
    pub tool: Tool,
    /// The tool's version, as printed.
    pub version: Option<String>,
    /// Its runs, in the file's order.
    pub runs: Vec<Run>,
    /// Notes about the whole.
    pub notes: Vec<Note>,
}

impl ResultSet {
    /// A set without version and notes.
    pub(crate) fn new(source: &str, tool: Tool, runs: Vec<Run>) -> ResultSet {
        ResultSet { source: source.to_owned(), tool, version: None, runs, notes: vec![] }
    }
}

/// One measurement of one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Run {
    /// What the tool calls it: job, run definition, access specification, or a table's row.
    pub label: String,
    /// The line of the file it begins in, from 1, where lines mean something.
    pub line: Option<usize>,
    /// The tool of this row, where a table mixes several.
    pub tool: Option<Tool>,
    /// VMs or hosts that worked together.
    pub vms: Option<u32>,
    /// Threads or jobs that worked together, over all VMs.
    pub workers: Option<u32>,
    /// The workload.
    pub job: Job,
    /// Length of the measured window in seconds.
    pub seconds: Option<f64>,
    /// The figures. [`Direction::Total`] stands here only when the tool printed it; see [`Run::total`].
    pub directions: BTreeMap<Direction, Figures>,
    /// Throughput as printed in "MB/s", which may be MB/s or MiB/s.
    pub megabytes_printed: Option<f64>,
    /// I/Os per second of each worker, where they were printed.
    pub workers_iops: Vec<f64>,
    /// The runs of each VM, where the run covers several VMs.
    pub parts: Vec<Run>,
    /// Figures per interval, oldest first.
    pub intervals: Vec<Interval>,
    /// Notes about the run.
    pub notes: Vec<Note>,
}

/// The workload of a run, as far as the result names it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Job {
    /// The pattern in the words of the file ("4k random write").
    pub pattern: Option<String>,
    /// Bytes per I/O.
    pub block_bytes: Option<u64>,
    /// The share of reads, 0..=1.
    pub read_share: Option<f64>,
    /// The share of random I/Os, 0..=1.
    pub random_share: Option<f64>,
    /// Threads per VM.
    pub threads: Option<u32>,
    /// Outstanding I/Os per thread.
    pub depth: Option<u32>,
    /// Outstanding I/Os in total, over all threads and VMs.
    pub outstanding: Option<f64>,
    /// The requested IOPS, where the rate was limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Further properties that distinguish it from other jobs: "engine libaio".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// The direction of I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
    /// All together.
    Total,
}

/// Figures of one direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// I/Os done.
    pub ios: Option<u64>,
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// The mean latency in seconds.
    pub latency_s: Option<f64>,
    /// The latencies' distribution.
    pub latencies: Latencies,
    /// The rounding of the figures.
    #[serde(default)]
    pub steps: Steps,
}

/// The steps that figures were printed in: 0.01 where two digits stand after the point. 0 where they were not rounded.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Steps {
    /// Of the I/Os per second.
    pub iops: f64,
    /// Of the mean latency, in seconds.
    pub latency_s: f64,
}

/// What is known of a distribution.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latencies {
    /// Nothing.
    #[default]
    None,
    /// Every latency, to fio's buckets: can be added to others.
    Exact(Histogram),
    /// Latencies to fio's buckets, some of them in its last one, which holds all from 17.2 s on: of those no more is known.
    Open(Histogram),
    /// Counts in few buckets: can be added to the like; percentiles are bounds.
    Bounded(BoundedHistogram),
    /// (share, seconds) only: cannot be added to anything.
    Percentiles(Vec<(f64, f64)>),
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, in seconds from the run's beginning.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Of which direction.
    pub direction: Direction,
    /// I/Os per second.
    pub iops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// The mean latency in seconds.
    pub latency_s: Option<f64>,
    /// All latencies, where they are known.
    pub histogram: Option<Histogram>,
}

/// A note about a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The line it is about, from 1.
    pub line: Option<usize>,
    /// A sentence.
    pub text: String,
}

impl Note {
    /// A note about the whole.
    pub fn new(text: impl Into<String>) -> Note {
        Note { line: None, text: text.into() }
    }

    /// A note about a line.
    pub fn at(line: usize, text: impl Into<String>) -> Note {
        Note { line: Some(line), text: text.into() }
    }
}

impl Run {
    /// The figures of all directions together: as printed, or else computed. Counts and rates are added, the mean latency is
    /// weighted by I/Os (by rate where they were not counted), histograms are merged. Percentile lists are not: of several
    /// directions none is left.
    pub fn total(&self) -> Figures {
        if let Some(printed) = self.directions.get(&Direction::Total) {
            return printed.clone();
        }
        Figures::together(self.directions.values())
    }

    /// The tool of this run within its set.
    pub fn tool_in(&self, set: &ResultSet) -> Tool {
        self.tool.unwrap_or(set.tool)
    }
}

impl Figures {
    /// True when nothing was done.
    pub fn is_idle(&self) -> bool {
        self.ios == Some(0) || (self.ios.is_none() && self.iops == Some(0.0))
    }

    /// Several parts of one whole (directions, workers or VMs) as one; see [`Run::total`].
    pub fn together<'a>(parts: impl Iterator<Item = &'a Figures> + Clone) -> Figures {
        let active = parts.filter(|part| !part.is_idle());
        let weight = |part: &Figures| part.ios.map(|ios| ios as f64).or(part.iops);
        let latency_s = active.clone().try_fold((0.0, 0.0), |(sum, weights), part| {
            let weight = weight(part)?;
            Some((sum + part.latency_s? * weight, weights + weight))
        });
        Figures {
            ios: sum(active.clone().map(|part| part.ios), |one, other| one.checked_add(other)),
            bytes: sum(active.clone().map(|part| part.bytes), |one, other| one.checked_add(other)),
            iops: sum(active.clone().map(|part| part.iops), |one, other| Some(one + other)),
            bytes_per_s: sum(active.clone().map(|part| part.bytes_per_s), |one, other| Some(one + other)),
            latency_s: latency_s.filter(|(_, weights)| *weights > 0.0).map(|(sum, weights)| sum / weights),
            steps: active.clone().fold(Steps::default(), |of, part| Steps {
                iops: of.iops.max(part.steps.iops),
                latency_s: of.latency_s.max(part.steps.latency_s),
            }),
            latencies: Latencies::together(active.map(|part| &part.latencies)),
        }
    }
}

/// The sum of what is all known; nothing of nothing.
fn sum<T>(mut parts: impl Iterator<Item = Option<T>>, add: impl Fn(T, T) -> Option<T>) -> Option<T> {
    let first = parts.next()??;
    parts.try_fold(first, |all, part| add(all, part?))
}

impl Latencies {
    /// A histogram that fio wrote.
    pub(crate) fn of_fio(histogram: Histogram) -> Latencies {
        let counts = histogram.counts();
        if counts[FIO_LAST..].iter().any(|&count| count > 0) {
            Latencies::Open(histogram)
        } else {
            Latencies::Exact(histogram)
        }
    }

    /// Several distributions as one, if they can be added.
    fn together<'a>(parts: impl Iterator<Item = &'a Latencies>) -> Latencies {
        let mut all: Option<Latencies> = None;
        for part in parts {
            all = Some(match (all, part) {
                (None, part) => part.clone(),
                (Some(Latencies::Exact(mut all)), Latencies::Exact(part)) => {
                    all.merge(part);
                    Latencies::Exact(all)
                }
                (
                    Some(Latencies::Exact(mut all) | Latencies::Open(mut all)),
                    Latencies::Exact(part) | Latencies::Open(part),
                ) => {
                    all.merge(part);
                    Latencies::Open(all)
                }
                (Some(Latencies::Bounded(mut all)), Latencies::Bounded(part)) => {
                    if all.merge(part).is_err() {
                        return Latencies::None;
                    }
                    Latencies::Bounded(all)
                }
                _ => return Latencies::None,
            });
        }
        all.unwrap_or_default()
    }

    /// The percentile in seconds, where it is known to the bucket.
    pub fn percentile_s(&self, share: f64) -> Option<f64> {
        let seconds = |histogram: &Histogram| histogram.percentile(share).map(|ns| ns as f64 / 1e9);
        match self {
            Latencies::Exact(histogram) => seconds(histogram),
            Latencies::Open(histogram) => seconds(histogram).filter(|_| !is_beyond(histogram, share)),
            Latencies::None | Latencies::Bounded(_) | Latencies::Percentiles(_) => None,
        }
    }

    /// The percentile in words: "1.23 ms", "between 5 and 10 ms", or "> 17.2 s". Of a list, only a percentile that stands in it.
    pub fn percentile(&self, share: f64) -> Option<String> {
        let milliseconds = statistics::words::milliseconds;
        match self {
            Latencies::None => None,
            Latencies::Exact(_) => self.percentile_s(share).map(milliseconds),
            Latencies::Open(histogram) if is_beyond(histogram, share) => Some(BEYOND.to_owned()),
            Latencies::Open(_) => self.percentile_s(share).map(milliseconds),
            Latencies::Bounded(histogram) => histogram.percentile(share).map(|bound| bound.to_string()),
            Latencies::Percentiles(list) => {
                let (_, seconds) = list.iter().find(|(of, _)| (of - share).abs() < 1e-9)?;
                let is_last = (seconds / FIO_LAST_S - 1.0).abs() < 1e-9;
                Some(if is_last { BEYOND.to_owned() } else { milliseconds(*seconds) })
            }
        }
    }
}

/// fio's last bucket: its 29 groups of 64 end at 2^34 ns, and it holds all that is slower, too (`plat_val_to_idx` of its stat.c).
const FIO_LAST: usize = 29 * 64 - 1;
/// The middle of that bucket in seconds, by which fio prints it.
pub(crate) const FIO_LAST_S: f64 = 17.112_760_32;
/// What is said of a value in it.
const BEYOND: &str = "> 17.2 s";

/// True when the percentile lies in fio's last bucket.
fn is_beyond(histogram: &Histogram, share: f64) -> bool {
    let below: u64 = histogram.counts()[..FIO_LAST].iter().sum();
    share * histogram.count() as f64 > below as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ios: u64, latency_ms: f64) -> Figures {
        Figures {
            ios: Some(ios),
            iops: Some(ios as f64 / 10.0),
            latency_s: Some(latency_ms / 1e3),
            ..Figures::default()
        }
    }

    #[test]
    fn the_total_is_weighted_by_ios_and_leaves_out_what_was_idle() {
        let mut run = Run::default();
        run.directions.insert(Direction::Read, figures(900, 1.0));
        run.directions.insert(Direction::Write, figures(100, 11.0));
        // Nothing was trimmed: its mean of zero must not count.
        run.directions.insert(Direction::Trim, figures(0, 0.0));
        let total = run.total();
        assert_eq!((total.ios, total.iops, total.latency_s), (Some(1_000), Some(100.0), Some(0.002)));
        assert_eq!(total.bytes, None);
    }

    #[test]
    fn percentiles_of_two_directions_are_not_joined() {
        let part = |latencies| Figures { latencies, ..figures(5, 1.0) };
        let list = part(Latencies::Percentiles(vec![(0.5, 0.001)]));
        assert_eq!(Figures::together([&list].into_iter()).latencies, list.latencies);
        assert_eq!(Figures::together([&list, &list].into_iter()).latencies, Latencies::None);
    }
}
