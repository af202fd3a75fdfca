//! The commands `drystone lab …`: what they are told, what they do, what they show.
//!
//! The program gives them the [`World`]: where answers go, and how virtual disks are found. Answers go to `out`, progress and notes
//! to the standard error output.

mod agent;
mod audit;
mod baseline;
mod convert;
mod disks;
mod experiment;
mod job;
mod kept;
mod lens;
mod live;
mod ours;
mod own_disks;
mod prepare;
mod progress;
mod report;
mod run;
mod show;
mod threshold;
mod verify;
mod watch;
mod watching;

pub use disks::{FoundDisk, MetricsText, NoDisks, VirtualDisks};
pub use job::JobOptions;
pub use lens::{LensOptions, capture_of, lens};

use clap::Subcommand;
use std::io::Write;
use std::sync::Arc;

/// Measure any datastore with the job files that you have.
#[derive(Debug, Clone, Subcommand)]
pub enum LabCommand {
    /// Run a job (of fio, DiskSPD, Vdbench or Iometer) on a target and show what it measured.
    Run(Box<run::RunOptions>),
    /// Show what a job would do, without running it.
    Plan(run::PlanOptions),
    /// Verify the data of an earlier run, after a crash of the system under test or of the generator.
    Verify(verify::VerifyOptions),
    /// Wait for a driver on another machine and run its workers here.
    Agent(agent::AgentOptions),
    /// Run an experiment: a file that describes many runs and the results they must show.
    Experiment(Box<experiment::ExperimentOptions>),
    /// List the named workloads for experiments.
    Profiles,
    /// Audit results of this lab, fio, DiskSPD, Vdbench, Iometer or HCIBench, and tables: which conclusions they support.
    Audit(audit::AuditOptions),
    /// Compare results: is B faster than A, and how certain is it?
    Compare(audit::CompareOptions),
    /// Keep results under a name, to compare later results with.
    #[command(subcommand)]
    Baseline(baseline::BaselineCommand),
    /// Write a report of results.
    Report(report::ReportOptions),
    /// Show the workload of disks, from captures, traces and results, or live (disk:NAME, --live DEVICE).
    Lens(LensOptions),
    /// Convert a job to a job file of fio, and tell which settings fio cannot express.
    Convert(convert::ConvertOptions),
}

/// What the commands need from the program that they belong to.
pub struct World<'a> {
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Whether JSON is wanted.
    pub json: bool,
    /// Whether a person can answer questions.
    pub interactive: bool,
    /// The program's name and version, for results.
    pub program: String,
    /// Access to virtual disks.
    pub disks: Arc<dyn VirtualDisks>,
    /// Folder of results without a file of their own; none: they are not kept.
    pub keep: Option<std::path::PathBuf>,
}

/// Kind of a command's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is malformed.
    Usage,
    /// The present state forbids it.
    Refused,
    /// The thing does not exist.
    NotFound,
    /// An operation failed.
    Failed,
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CommandError {
    /// Its kind.
    pub kind: ErrorKind,
    /// What was found.
    pub text: String,
    /// The way out.
    pub hint: Option<String>,
}

impl CommandError {
    /// A failure with no hint.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> CommandError {
        CommandError { kind, text: text.into(), hint: None }
    }

    /// Something broke while doing something.
    pub fn failed(doing: impl std::fmt::Display, source: impl std::fmt::Display) -> CommandError {
        CommandError::new(ErrorKind::Failed, format!("{doing}: {source}"))
    }

    /// With a way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> CommandError {
        self.hint = Some(hint.into());
        self
    }
}

/// Does what is told.
///
/// # Errors
/// When it cannot be done; what was done up to then is shown.
pub fn perform(command: LabCommand, world: &mut World) -> Result<(), CommandError> {
    match command {
        LabCommand::Run(options) => run::run(&options, world),
        LabCommand::Plan(options) => run::plan(&options, world),
        LabCommand::Verify(options) => verify::verify(&options, world),
        LabCommand::Agent(options) => agent::agent(&options, world),
        LabCommand::Experiment(options) => experiment::experiment(&options, world),
        LabCommand::Profiles => convert::profiles(world),
        LabCommand::Audit(options) => audit::audit(&options, world),
        LabCommand::Compare(options) => audit::compare(&options, world),
        LabCommand::Baseline(command) => baseline::baseline(&command, world),
        LabCommand::Report(options) => report::report(&options, world),
        LabCommand::Lens(options) => lens(&options, world),
        LabCommand::Convert(options) => convert::convert(&options, world),
    }
}

impl World<'_> {
    /// Writes an answer. A reader that has seen enough is no failure.
    fn say(&mut self, text: &str) -> Result<(), CommandError> {
        match writeln!(self.out, "{}", text.trim_end()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(CommandError::failed("write the answer", error))
            }
            _ => Ok(()),
        }
    }

    fn say_json(&mut self, answer: &impl serde::Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(answer)
            .map_err(|error| CommandError::failed("write JSON", error))?;
        self.say(&text)
    }
}
