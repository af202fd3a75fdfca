//! What an experiment's file says.

use plan::Pattern;
use serde::{Deserialize, Serialize};

/// An experiment, as written. Every field that is not known is refused.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub about: String,
    /// Seconds that each run counts.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Seconds before it counts.
    #[serde(default)]
    pub ramp: f64,
    /// Seconds of rest before each run.
    #[serde(default)]
    pub pause: f64,
    /// Runs of every cell.
    #[serde(default = "once")]
    pub repeat: u32,
    /// Whether what the kernel caches of files and devices is dropped before each run.
    #[serde(default)]
    pub drop_caches: bool,
    /// The virtual machines, one by one.
    #[serde(default, rename = "vm")]
    pub vms: Vec<Vm>,
    /// How targets are filled first.
    #[serde(default)]
    pub prepare: Prepare,
    /// What is run until it is steady before anything counts.
    #[serde(default)]
    pub precondition: Option<Precondition>,
    /// What is run.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<Workload>,
    /// What is varied.
    #[serde(default, rename = "sweep")]
    pub sweeps: Vec<Sweep>,
    /// Who runs what from when to when, instead of every workload on every machine.
    #[serde(default)]
    pub schedule: Vec<Schedule>,
    /// Two values of one parameter, run in turns.
    #[serde(default)]
    pub compare: Option<Compare>,
    /// The most that meets a latency.
    #[serde(default)]
    pub search: Option<Search>,
    /// What it must show.
    #[serde(default)]
    pub expect: Vec<Expect>,
}

fn seconds() -> f64 {
    60.0
}

fn once() -> u32 {
    1
}

/// A virtual machine, or several alike.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Vm {
    /// Its name; of several, the number is added.
    pub name: String,
    /// So many of them.
    #[serde(default = "once")]
    pub count: u32,
    /// Disks of each.
    #[serde(default = "once")]
    pub disks: u32,
    /// Size of each disk that is made: `10GiB`.
    #[serde(default)]
    pub size: Option<String>,
    /// The disks' targets, where they are known already: files, devices, NBD addresses, disk:NAME.
    #[serde(default)]
    pub targets: Vec<String>,
}

/// How targets are filled first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// With what.
    #[serde(default)]
    pub fill: Fill,
    /// Fill although a map of the target proves that every byte was written.
    #[serde(default)]
    pub always: bool,
}

/// What targets are filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Nothing.
    #[default]
    None,
    /// Zeroes: space is taken, and any array that knows zeroes takes none.
    Zero,
    /// Random bytes: neither compressible nor duplicate.
    Random,
}

/// What is run until it is steady before anything counts.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// Which of the workloads.
    pub workload: String,
    /// Seconds of a round.
    #[serde(default = "seconds")]
    pub seconds: f64,
    /// Rounds at most; SNIA's rule needs 5, and looks at 25 at most.
    #[serde(default = "rounds")]
    pub rounds: u32,
}

fn rounds() -> u32 {
    25
}

/// One I/O pattern and how much of it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What people call it.
    pub name: String,
    /// A named profile that the other fields change.
    #[serde(default)]
    pub profile: Option<String>,
    /// Bytes of an I/O: `4k`, `1MiB`.
    #[serde(default)]
    pub size: Option<String>,
    /// Percent of reads.
    #[serde(default)]
    pub reads: Option<f64>,
    /// Percent of random I/Os.
    #[serde(default)]
    pub random: Option<f64>,
    /// The pattern in the plan's own words, instead of size, reads and random.
    #[serde(default)]
    pub pattern: Option<Pattern>,
    /// Percent of each disk that is used: the working set.
    #[serde(default)]
    pub span: Option<f64>,
    /// Workers of each disk.
    #[serde(default = "once")]
    pub workers: u32,
    /// I/Os that each worker keeps outstanding.
    #[serde(default = "depth")]
    pub depth: u32,
    /// I/Os per second of each machine, in an open loop with Poisson arrivals: latency counts from when an I/O was due.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Percent of the data that compresses.
    #[serde(default)]
    pub compressible: f64,
    /// Percent of the data that is duplicate.
    #[serde(default)]
    pub duplicates: f64,
}

fn depth() -> u32 {
    1
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// What.
    pub parameter: Parameter,
    /// Its values, in order.
    pub values: Vec<toml::Value>,
}

/// What can be varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// I/Os outstanding in all, over all machines.
    Outstanding,
    /// I/Os outstanding of each worker.
    Depth,
    /// Workers of each disk.
    Workers,
    /// Machines that run, from the first.
    Vms,
    /// Bytes of an I/O.
    Size,
    /// Percent of reads.
    Reads,
    /// Percent of random I/Os.
    Random,
    /// Percent of each disk that is used.
    Span,
    /// I/Os per second of each machine.
    Rate,
    /// Percent of the data that compresses.
    Compressible,
    /// Percent of the data that is duplicate.
    Duplicates,
    /// The one target that all disks stand for (in a comparison).
    Target,
}

impl Parameter {
    /// As written in files.
    pub fn name(self) -> &'static str {
        match self {
            Parameter::Outstanding => "outstanding",
            Parameter::Depth => "depth",
            Parameter::Workers => "workers",
            Parameter::Vms => "vms",
            Parameter::Size => "size",
            Parameter::Reads => "reads",
            Parameter::Random => "random",
            Parameter::Span => "span",
            Parameter::Rate => "rate",
            Parameter::Compressible => "compressible",
            Parameter::Duplicates => "duplicates",
            Parameter::Target => "target",
        }
    }
}

/// Who runs what from when to when.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Which machine.
    pub vm: String,
    /// Which workload.
    pub workload: String,
    /// From this second on.
    #[serde(default)]
    pub start: f64,
    /// To this second.
    pub stop: f64,
}

/// Two values of one parameter, run in turns: A B B A.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// What differs.
    pub parameter: Parameter,
    /// On side A.
    pub a: toml::Value,
    /// On side B.
    pub b: toml::Value,
    /// The smallest difference that matters, in percent.
    #[serde(default = "effect")]
    pub effect: f64,
}

fn effect() -> f64 {
    2.0
}

/// The most that meets a latency.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is searched over.
    pub over: Over,
    /// Percent of the I/Os that must meet the latency: 99.
    pub percentile: f64,
    /// The latency.
    pub latency_ms: f64,
    /// The least that is tried.
    #[serde(default = "least")]
    pub from: f64,
    /// The most that is tried.
    pub to: f64,
}

fn least() -> f64 {
    1.0
}

/// What a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// I/Os outstanding in all.
    Outstanding,
    /// I/Os per second of each machine, in an open loop.
    Rate,
}

/// What an experiment must show.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Of this workload; none: of every one.
    #[serde(default)]
    pub workload: Option<String>,
    /// With these parameters; none: of every cell.
    #[serde(default, rename = "where")]
    pub parameters: std::collections::BTreeMap<String, toml::Value>,
    /// Which figure.
    pub figure: Figure,
    /// It is at least so much.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// It is at most so much.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// It is so much, within the tolerance.
    #[serde(default)]
    pub equals: Option<f64>,
    /// In percent, of `equals`, and of what `at_least` and `at_most` allow beyond.
    #[serde(default)]
    pub tolerance: f64,
}

impl Expect {
    /// Of this figure, of every cell, without a bound.
    pub fn of(figure: Figure) -> Expect {
        Expect {
            workload: None,
            parameters: std::collections::BTreeMap::new(),
            figure,
            at_least: None,
            at_most: None,
            equals: None,
            tolerance: 0.0,
        }
    }
}

/// A figure of a cell: the mean of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// I/Os per second.
    Iops,
    /// MiB per second.
    MibPerSecond,
    /// Mean latency.
    MeanMs,
    /// 50th percentile.
    P50Ms,
    /// 99th percentile.
    P99Ms,
    /// 99.9th percentile.
    P999Ms,
    /// The generator's processor time for an I/O.
    CpuUsPerIo,
    /// Jain's index of the machines' IOPS: 1 when all are equal.
    Fairness,
    /// I/Os that failed.
    Errors,
}

impl Figure {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Iops => "IOPS",
            Figure::MibPerSecond => "MiB/s",
            Figure::MeanMs => "mean latency (ms)",
            Figure::P50Ms => "p50 latency (ms)",
            Figure::P99Ms => "p99 latency (ms)",
            Figure::P999Ms => "p99.9 latency (ms)",
            Figure::CpuUsPerIo => "CPU an I/O (us)",
            Figure::Fairness => "fairness (Jain)",
            Figure::Errors => "errors",
        }
    }

    /// Whether a value of it can be at all.
    pub fn can_be(self, value: f64) -> bool {
        match self {
            Figure::Fairness => (0.0..=1.0).contains(&value),
            _ => value.is_finite() && value >= 0.0,
        }
    }
}

/// Why an experiment cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExperimentError {
    /// The file is not one.
    #[error("{0}")]
    Malformed(String),
    /// It makes no sense.
    #[error("{at}: {found}: {remedy}")]
    Senseless {
        /// Where.
        at: String,
        /// What was found.
        found: String,
        /// What to do.
        remedy: String,
    },
}

impl ExperimentError {
    pub(super) fn senseless(
        at: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ExperimentError {
        ExperimentError::Senseless { at: at.into(), found: found.into(), remedy: remedy.into() }
    }
}

impl Experiment {
    /// Reads a file and refuses what cannot be.
    ///
    /// # Errors
    /// With the line where it is no TOML or has an unknown field, or with what makes no sense.
    pub fn parse(text: &str) -> Result<Experiment, ExperimentError> {
        let experiment: Experiment =
            toml::from_str(text).map_err(|error| ExperimentError::Malformed(error.to_string()))?;
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), ExperimentError> {
        let sense = |at: &str, found: &str, remedy: &str| ExperimentError::senseless(at, found, remedy);
        if self.workloads.is_empty() {
            return Err(sense("the experiment", "it has no [[workload]]", "write at least one"));
        }
        if self.vms.is_empty() {
            return Err(sense("the experiment", "it has no [[vm]]", "write at least one, with its disks"));
        }
        if !(self.seconds > 0.0 && self.seconds.is_finite() && self.ramp >= 0.0 && self.pause >= 0.0) {
            return Err(sense(
                "the experiment",
                "negative durations, or 0 s to measure",
                "write seconds above 0",
            ));
        }
        if self.repeat == 0 || self.repeat > 1000 {
            return Err(sense("repeat", &format!("{} runs", self.repeat), "1 to 1000 are possible"));
        }
        for vm in &self.vms {
            let wanted = vm.count as usize * vm.disks as usize;
            if vm.count == 0 || vm.disks == 0 || (!vm.targets.is_empty() && vm.targets.len() != wanted) {
                return Err(sense(
                    &format!("vm {}", vm.name),
                    &format!("{} machines of {} disks, and {} targets", vm.count, vm.disks, vm.targets.len()),
                    "write at least one machine and one disk, and a target for every disk or for none",
                ));
            }
        }
        if self.compare.is_some() && self.search.is_some() {
            return Err(sense("the experiment", "both [compare] and [search]", "write one of them"));
        }
        self.check_names()?;
        self.check_search()?;
        self.expect.iter().enumerate().try_for_each(|(index, expect)| self.check_expectation(index, expect))
    }

    fn check_names(&self) -> Result<(), ExperimentError> {
        let known = |name: &str| self.workloads.iter().any(|workload| workload.name == name);
        let named = (self.precondition.iter().map(|of| ("precondition", &of.workload)))
            .chain(self.schedule.iter().map(|of| ("schedule", &of.workload)));
        for (at, name) in named {
            if !known(name) {
                let names: Vec<&str> = self.workloads.iter().map(|workload| workload.name.as_str()).collect();
                return Err(ExperimentError::senseless(
                    at,
                    format!("unknown workload `{name}`"),
                    format!("name one of: {}", names.join(", ")),
                ));
            }
        }
        let machines = super::expand::machine_names(self);
        for part in &self.schedule {
            if !machines.contains(&part.vm) {
                return Err(ExperimentError::senseless(
                    "schedule",
                    format!("unknown machine `{}`", part.vm),
                    format!("name one of: {}", machines.join(", ")),
                ));
            }
            if !(part.start >= 0.0 && part.stop > part.start) {
                return Err(ExperimentError::senseless(
                    format!("schedule of {}", part.vm),
                    format!("it starts at {} s and stops at {} s", part.start, part.stop),
                    "write a stop after the start",
                ));
            }
        }
        Ok(())
    }

    fn check_search(&self) -> Result<(), ExperimentError> {
        let Some(search) = &self.search else { return Ok(()) };
        let possible = search.percentile > 0.0
            && search.percentile < 100.0
            && search.latency_ms > 0.0
            && search.from > 0.0
            && search.to > search.from;
        match possible {
            true => Ok(()),
            false => Err(ExperimentError::senseless(
                "search",
                format!(
                    "p{} within {} ms, from {} to {}",
                    search.percentile, search.latency_ms, search.from, search.to
                ),
                "write a percentile between 0 and 100, a latency above 0, and a rising range",
            )),
        }
    }

    fn check_expectation(&self, index: usize, expect: &Expect) -> Result<(), ExperimentError> {
        let at = format!("expect {}", index + 1);
        let values = [expect.at_least, expect.at_most, expect.equals];
        if values.iter().all(Option::is_none) {
            return Err(ExperimentError::senseless(
                at,
                "it expects nothing",
                "write at_least, at_most or equals",
            ));
        }
        if let Some(value) = values.into_iter().flatten().find(|&value| !expect.figure.can_be(value)) {
            let found = format!("{} can never be {value}", expect.figure.name());
            return Err(ExperimentError::senseless(at, found, "write a value that the figure can have"));
        }
        if let (Some(least), Some(most)) = (expect.at_least, expect.at_most)
            && least > most
        {
            let found = format!("at least {least} and at most {most} contradict each other");
            return Err(ExperimentError::senseless(at, found, "exchange them"));
        }
        if !(0.0..=1000.0).contains(&expect.tolerance) {
            let found = format!("a tolerance of {} %", expect.tolerance);
            return Err(ExperimentError::senseless(at, found, "write 0 to 1000 %"));
        }
        if let Some(name) = &expect.workload
            && !self.workloads.iter().any(|workload| workload.name == *name)
        {
            let found = format!("unknown workload `{name}`");
            return Err(ExperimentError::senseless(at, found, "name one of the experiment's"));
        }
        let swept = |name: &str| self.sweeps.iter().any(|sweep| sweep.parameter.name() == name);
        match expect.parameters.keys().find(|name| !swept(name)) {
            Some(name) => Err(ExperimentError::senseless(
                at,
                format!("`{name}` is not varied"),
                "name a parameter of a [[sweep]]",
            )),
            None => Ok(()),
        }
    }
}
