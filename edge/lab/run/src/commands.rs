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

/// Measures any datastore with the jobs that people have.
#[derive(Debug, Clone, Subcommand)]
pub enum LabCommand {
    /// Run a job (of fio, DiskSPD, Vdbench or Iometer) on a target and show what it measured.
    Run(Box<run::RunOptions>),
    /// Show what a job would do, expanded, before anything runs.
    Plan(run::PlanOptions),
    /// Read what an earlier run wrote and verified, after a crash of what is under test or of the generator.
    Verify(verify::VerifyOptions),
    /// Wait for a driver on another machine, and run its jobs' workers here.
    Agent(agent::AgentOptions),
    /// Run an experiment: a written plan of many runs, and what it must show.
    Experiment(Box<experiment::ExperimentOptions>),
    /// List the named workloads that experiments may use.
    Profiles,
    /// Say what can be concluded from results: ours, those of fio, DiskSPD, Vdbench, Iometer and HCIBench, and tables.
    Audit(audit::AuditOptions),
    /// Compare results: is B really faster than A?
    Compare(audit::CompareOptions),
    /// Keep results under a name, for later results to be compared with.
    #[command(subcommand)]
    Baseline(baseline::BaselineCommand),
    /// Write a report of results.
    Report(report::ReportOptions),
    /// Show what disks did: from captures, traces and results, or live (disk:NAME, --live DEVICE).
    Lens(LensOptions),
    /// Write a job as a job file of fio, and say what was lost.
    Convert(convert::ConvertOptions),
}

/// What the commands need of the program that they are part of.
pub struct World<'a> {
    /// Where answers go.
    pub out: &'a mut dyn Write,
    /// Whether JSON is wanted.
    pub json: bool,
    /// Whether a person can be asked.
    pub interactive: bool,
    /// The program's name and version, for results.
    pub program: String,
    /// Who knows virtual disks.
    pub disks: Arc<dyn VirtualDisks>,
    /// Where results are kept that nobody named a file for; none: nowhere.
    pub keep: Option<std::path::PathBuf>,
}

/// What kind of failure a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not well formed.
    Usage,
    /// Cannot be done as things are.
    Refused,
    /// Does not exist.
    NotFound,
    /// Something broke.
    Failed,
}

/// Why a command did not do what it was told.
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
