//! One execution of a plan: its stages, their groups, and what each second of them measured.

use crate::compact::Compact;
use crate::expected::Expected;
use crate::series::DiskSeries;
use crate::system::System;
use plan::Plan;
use serde::{Deserialize, Serialize};
use statistics::Histogram;

/// The version of [`Run`] as JSON. A reader refuses a higher one.
pub const VERSION: u32 = 1;

/// One execution of a plan with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`VERSION`] of whoever wrote it.
    pub version: u32,
    /// Which program wrote it, with its version.
    pub program: String,
    /// When it began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// What was run.
    pub plan: Plan,
    /// What it was run on, in the order of the plan's targets.
    pub targets: Vec<TargetFacts>,
    /// The machine, or the machines, that ran it.
    pub machines: Vec<Machine>,
    /// Every stage and repeat, in the order in which they ran.
    pub stages: Vec<StageRun>,
    /// Notes for the reader: what was left out, what went wrong.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Expectations and whether they hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expected>,
    /// Metrics and events of the system under test during the run.
    #[serde(default, skip_serializing_if = "System::is_empty")]
    pub system: System,
    /// The job as it was written, and the files that it includes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceText>,
}

/// A file of a job, word for word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// As it was named: a path, or `command line`.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// A target as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// As the plan names it.
    pub name: String,
    /// What it was opened as: a path or an address.
    pub opened: String,
    /// `file`, `block device`, `NBD export`, `virtual disk`.
    pub kind: String,
    /// Its bytes.
    pub size: u64,
    /// What it is, in lines for people: the policy and the layout of a virtual disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
}

/// A machine that ran workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its kernel.
    pub kernel: String,
    /// Processors available to the generator.
    pub processors: u32,
    /// How far its clock may be off the driver's, in seconds; 0 for the driver itself.
    pub clock_error: f64,
}

/// One execution of one stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRun {
    /// Index of the plan's stage.
    pub stage: usize,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// When its first worker started, in seconds after the run began.
    pub started: f64,
    /// Seconds that were counted.
    pub seconds: f64,
    /// How it ended.
    pub ended: Ended,
    /// The first I/O that failed, of a stage that goes on after errors. The groups have their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// The measured groups in the order of the plan. Groups on lost agents are missing.
    pub groups: Vec<GroupRun>,
    /// I/O histograms of each target, per second.
    #[serde(default)]
    pub disks: Vec<DiskSeries>,
    /// Stalls: times in which nothing completed although I/Os were outstanding.
    #[serde(default)]
    pub stalls: Vec<Stall>,
    /// Processor time of the generator while it counted, in seconds.
    pub cpu_user: f64,
    /// The kernel's part of it.
    pub cpu_system: f64,
    /// Delay from the agreed start to the start of the last thread, in seconds.
    #[serde(default)]
    pub start_late: f64,
    /// The agents that took part; empty for a run of this machine alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentPart>,
}

/// What an agent did in a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentPart {
    /// Which agent.
    pub agent: String,
    /// How far its clock may be off the driver's, in seconds.
    pub clock_error: f64,
    /// Delay from the agreed start to the start of its last thread, in seconds of its own clock.
    pub start_late: f64,
    /// Why its results are excluded, if the agent was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// How a stage ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// As planned.
    Done,
    /// It reached steady state before its time.
    Steady,
    /// Somebody stopped it.
    Stopped,
    /// An error ended it.
    Failed(String),
}

/// What a group of workers did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupRun {
    /// Its name.
    pub name: String,
    /// The virtual machine that it stood for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<String>,
    /// Queue depth: I/Os to keep outstanding.
    pub outstanding: u64,
    /// I/Os that were outstanding on average: the time that each spent within the seconds that counted, added up, by these
    /// seconds. Little's law holds for it by definition. Older programs did not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding_mean: Option<f64>,
    /// Seconds that it was counted.
    pub seconds: f64,
    /// Reads, writes, trims, over the whole time that counted.
    pub operations: [Measured; 3],
    /// Second by second.
    pub intervals: Vec<Interval>,
    /// The largest backlog: I/Os that were due and queued in the generator (open loop).
    #[serde(default)]
    pub backlog_max: f64,
    /// I/Os that were due inside the measured window and never sent (open loop). Each counts in the latencies with its waiting time
    /// up to the end of the stage, so percentiles are lower bounds.
    #[serde(default)]
    pub unsent: u64,
    /// Whether its rate was limited.
    #[serde(default)]
    pub rated: bool,
    /// Result of the verification, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// What verification found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verified {
    /// Blocks compared.
    pub compared: u64,
    /// Blocks that did not hold the written data.
    pub wrong: u64,
}

/// I/Os of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measured {
    /// I/Os that completed without error inside the measured window, whenever they were due. Throughput is this count divided by the
    /// length of the window.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// I/Os that failed.
    pub errors: u64,
    /// Response times, from when each I/O was due to its completion. They cover all I/Os due inside the window, also those that
    /// completed later, so their number differs from `ios`.
    pub latency: Histogram,
    /// Service times, from the submission to the completion, where they differ from the response times (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Histogram>,
}

impl Measured {
    /// Adds what another worker measured.
    pub fn merge(&mut self, other: &Measured) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency.merge(&other.latency);
        if let Some(more) = &other.service {
            self.service.get_or_insert_default().merge(more);
        }
    }
}

/// One second of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "KeptInterval")]
pub struct Interval {
    /// When it began, in seconds after the stage started to count.
    pub at: f64,
    /// Reads, writes and trims that completed in it, inside the measured window.
    pub ios: [u64; 3],
    /// Latencies of those that ended in it and were due while the group counted.
    pub latency: [Compact; 3],
    /// Bytes of each that completed.
    pub bytes: [u64; 3],
    /// Reads, writes, trims that failed in it. Older programs did not tell when.
    #[serde(skip_serializing_if = "is_none")]
    pub errors: [u64; 3],
}

fn is_none(errors: &[u64; 3]) -> bool {
    *errors == [0; 3]
}

/// An interval as it stands in files. Older programs took the number of latencies for the number of I/Os.
#[derive(Deserialize)]
struct KeptInterval {
    at: f64,
    ios: Option<[u64; 3]>,
    latency: [Compact; 3],
    bytes: [u64; 3],
    #[serde(default)]
    errors: [u64; 3],
}

impl From<KeptInterval> for Interval {
    fn from(kept: KeptInterval) -> Interval {
        let KeptInterval { at, ios, latency, bytes, errors } = kept;
        let ios = ios.unwrap_or_else(|| latency.each_ref().map(Compact::count));
        Interval { at, ios, latency, bytes, errors }
    }
}

impl Interval {
    /// I/Os of all kinds that completed in it.
    pub fn completed(&self) -> u64 {
        self.ios.iter().sum()
    }

    /// Whether any I/O ended in it, inside or after the measured window.
    pub fn is_busy(&self) -> bool {
        self.completed() > 0 || self.latency.iter().any(|of| of.count() > 0)
    }
}

/// A time in which nothing completed although I/Os were outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// When it began, in seconds after the stage started to count.
    pub at: f64,
    /// How long, in seconds.
    pub seconds: f64,
    /// I/Os that waited.
    pub waiting: u32,
}

impl Run {
    /// Metrics and events of the system under test inside the measured window of a stage, on the stage's time.
    pub fn system_of(&self, stage: &StageRun) -> System {
        let groups = self.plan.stages.get(stage.stage).map_or(&[][..], |planned| &planned.groups);
        let ramps = groups.iter().map(|group| (group.timing.delay + group.timing.ramp).as_secs_f64());
        let from = stage.started + ramps.reduce(f64::min).unwrap_or(0.0);
        self.system.within(from, from + stage.seconds)
    }
}

impl GroupRun {
    /// Reads, writes and trims together.
    pub fn total(&self) -> Measured {
        let mut total = Measured::default();
        self.operations.iter().for_each(|of| total.merge(of));
        total
    }

    /// I/Os per second.
    pub fn iops(&self) -> f64 {
        per_second(self.operations.iter().map(|of| of.ios).sum(), self.seconds)
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.operations.iter().map(|of| of.bytes).sum(), self.seconds)
    }
}

impl StageRun {
    /// All groups together: counts add up, latencies are merged.
    pub fn total(&self) -> Measured {
        let mut total = Measured::default();
        self.groups.iter().flat_map(|group| &group.operations).for_each(|of| total.merge(of));
        total
    }

    /// The same part on the clock of its stage, if its measured window began so many seconds later.
    #[must_use]
    pub fn begun_later(mut self, seconds: f64) -> StageRun {
        let intervals = self.groups.iter_mut().flat_map(|group| &mut group.intervals);
        intervals.for_each(|interval| interval.at += seconds);
        self.stalls.iter_mut().for_each(|stall| stall.at += seconds);
        let samples = self.disks.iter_mut().flat_map(|disk| &mut disk.samples);
        samples.for_each(|sample| sample.at += seconds);
        self.seconds += seconds;
        self
    }

    /// I/Os per second of all groups over the stage's own seconds: groups that ran one after another never had the sum of their rates.
    pub fn iops(&self) -> f64 {
        per_second(self.operations().map(|of| of.ios).sum(), self.seconds)
    }

    /// Bytes per second of all groups, in the same way.
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.operations().map(|of| of.bytes).sum(), self.seconds)
    }

    fn operations(&self) -> impl Iterator<Item = &Measured> {
        self.groups.iter().flat_map(|group| &group.operations)
    }

    /// Queue depth of all groups together.
    pub fn outstanding(&self) -> u64 {
        self.groups.iter().map(|group| group.outstanding).sum()
    }

    /// The generator's processor time for each I/O, in microseconds; nothing without I/Os.
    pub fn cpu_us_per_io(&self) -> Option<f64> {
        let ios: u64 = self.operations().map(|of| of.ios).sum();
        (ios > 0).then(|| (self.cpu_user + self.cpu_system) * 1e6 / ios as f64)
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
