//! `lab run` and `lab plan`.

use super::agent::{AgentsOptions, Conditions, run_on_agents};
use super::job::{self, Job, JobOptions};
use super::prepare::{self, Consent};
use super::progress::Progress;
use super::threshold::{self, Threshold};
use super::watching::WatchOptions;
use super::{CommandError, ErrorKind, World, show};
use crate::agents::Invitation;
use crate::generator::stage::Settings;
use crate::runner::{self, Event};
use crate::system::Watching;
use crate::target::Target;
use clap::Args;
use measured::{Ended, Run};
use plan::Plan;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of `lab run`.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// Job to run.
    #[command(flatten)]
    pub job: JobOptions,
    /// Overwrite this target although it is in use or holds data, which is destroyed.
    #[arg(long = "destroy-data", value_name = "TARGET")]
    pub destroy: Vec<String>,
    /// File for the result with its raw histograms [default: a file in the user's data directory].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Count failed I/Os and continue; otherwise the first failure ends the run.
    #[arg(long)]
    pub continue_on_error: bool,
    /// Folder for records of verified writes, which `lab verify` checks after a crash.
    #[arg(long, value_name = "FOLDER")]
    pub record: Option<PathBuf>,
    /// Bound of a figure, for one stage or for all: p99<=5ms, iops>=10k, STAGE:errors<=0. The command fails (exit code 3)
    /// if the bound does not hold. Figures: iops, mib_per_second, mean, p50, p99, p99.9, cpu_us_per_io, fairness, errors.
    #[arg(long = "expect", value_name = "[STAGE:]FIGURE<=N", value_parser = threshold::parse)]
    pub expect: Vec<Threshold>,
    /// Metrics to watch during the run.
    #[command(flatten)]
    pub watch: WatchOptions,
    /// Agents that run the job in place of this machine.
    #[command(flatten)]
    pub agents: AgentsOptions,
    /// Number of generator threads [default: one per processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// Options of `lab plan`.
#[derive(Debug, Clone, Args)]
pub struct PlanOptions {
    /// Job to show.
    #[command(flatten)]
    pub job: JobOptions,
}

/// Set by a signal: the run ends when the I/Os in flight have completed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupt(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Runs a job and shows its result.
pub fn run(options: &RunOptions, world: &mut World) -> Result<(), CommandError> {
    let Job { plan, sources } = job::read(&options.job)?;
    let invitations = options.agents.invitations()?;
    let mut run = match invitations.is_empty() {
        true => {
            let consent = Consent { destroy: options.destroy.clone() };
            eprint!("{}", plan_text(&plan, &prepare::preview(&plan, world), options.job.verbose));
            let targets = prepare::targets(&plan, &consent, world)?;
            let watching = options.watch.begin(&plan, &*world.disks)?;
            Watching::over(watching, || execute(&plan, &targets, options, world))?
        }
        false => {
            let watching = options.watch.begin(&plan, &*world.disks)?;
            Watching::over(watching, || drive(&plan, &invitations, options, world))?
        }
    };
    run.sources = sources;
    run.expectations = threshold::judge(&options.expect, &plan, &run);
    let kept = keep(&run, options.out.as_deref(), world)?;
    match world.json {
        true => {
            let summary = show::summary(&run, kept);
            world.say_json(&summary)?;
        }
        false => {
            world.say(&show::text(&run))?;
            if let Some(kept) = kept {
                eprintln!("lab: the result with raw histograms is in {kept}");
            }
        }
    }
    end_of(&run)?;
    broken(&run.expectations)
}

/// Ends the command as failed where expectations do not hold.
pub(super) fn broken(expectations: &[measured::Expected]) -> Result<(), CommandError> {
    match expectations.iter().filter(|of| !of.holds).count() {
        0 => Ok(()),
        1 => Err(CommandError::new(ErrorKind::Refused, "1 expectation does not hold")),
        count => Err(CommandError::new(ErrorKind::Refused, format!("{count} expectations do not hold"))),
    }
}

fn execute(
    plan: &Plan,
    targets: &[Target],
    options: &RunOptions,
    world: &World,
) -> Result<Run, CommandError> {
    let ledgers = match &options.record {
        None => Vec::new(),
        Some(folder) => crate::verification::records(plan, targets, Some(folder))
            .map_err(|error| CommandError::new(ErrorKind::Refused, error.to_string()))?,
    };
    if options.record.is_some() && ledgers.is_empty() {
        return Err(CommandError::new(
            ErrorKind::Usage,
            "the job has no verification, so there is nothing to record",
        )
        .hint("add --verify, or verify=… to the job"));
    }
    let interrupted = on_signals();
    let machine = runner::this_machine();
    let settings = Settings {
        processors: options.threads.unwrap_or(machine.processors) as usize,
        go_on: options.continue_on_error,
        interrupted: interrupted.clone(),
        ledgers,
        gate: None,
    };
    let mut progress = Progress::new(std::io::stderr().is_terminal(), options.watch.live(&*world.disks)?);
    let run = runner::run(plan, targets, &settings, &world.program, &mut |event| match event {
        Event::Begins { stage, repeat } => progress.begins(plan, stage, repeat),
        Event::Second(second) => progress.second(&second),
        Event::Ended(_) => progress.ended(),
    });
    end_signals(&interrupted);
    run.map_err(|error| CommandError::new(ErrorKind::Failed, error.to_string()))
}

fn drive(
    plan: &Plan,
    invitations: &[Invitation],
    options: &RunOptions,
    world: &World,
) -> Result<Run, CommandError> {
    eprint!("{}", plan_text(plan, &plan.outline(&[]), options.job.verbose));
    let interrupted = on_signals();
    let conditions = Conditions {
        program: world.program.clone(),
        go_on: options.continue_on_error,
        interrupted: interrupted.clone(),
    };
    let mut progress = Progress::new(std::io::stderr().is_terminal(), options.watch.live(&*world.disks)?);
    let run = run_on_agents(
        plan,
        invitations,
        &options.agents,
        &options.destroy,
        conditions,
        &mut |plan, event| match event {
            Event::Begins { stage, repeat } => progress.begins(plan, stage, repeat),
            Event::Second(second) => progress.second(&second),
            Event::Ended(_) => progress.ended(),
        },
    );
    end_signals(&interrupted);
    run
}

/// From now on SIGINT and SIGTERM end what runs, with what was measured so far.
pub(super) fn on_signals() -> Arc<AtomicBool> {
    // SAFETY: the handler stores a flag and does nothing else.
    unsafe {
        let handler = interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::signal(libc::SIGINT, handler);
        libc::signal(libc::SIGTERM, handler);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    let watched = interrupted.clone();
    std::thread::spawn(move || {
        while !watched.load(Ordering::Relaxed) {
            if INTERRUPTED.load(Ordering::Relaxed) {
                watched.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    interrupted
}

/// Nobody watches for signals any more.
pub(super) fn end_signals(interrupted: &AtomicBool) {
    interrupted.store(true, Ordering::Relaxed);
}

/// A plan and its notes, folded to a screen or in full.
fn plan_text(plan: &Plan, outline: &plan::Outline, is_full: bool) -> String {
    let mut text = if is_full { format!("{outline:#}") } else { outline.to_string() };
    for note in plan::fold_notes(&plan.notes, is_full) {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

fn keep(run: &Run, out: Option<&Path>, world: &World) -> Result<Option<String>, CommandError> {
    let name = format!("{}-{}.run.json", run.started_unix_ms, plain_name(&run.plan.name));
    keep_json(run, &name, out, world)
}

/// Writes a result to the file that is named, or under `name` where results are kept. Returns where it is.
pub(super) fn keep_json(
    result: &impl serde::Serialize,
    name: &str,
    out: Option<&Path>,
    world: &World,
) -> Result<Option<String>, CommandError> {
    let path = match (out, &world.keep) {
        (Some(out), _) => out.to_owned(),
        (None, Some(folder)) => folder.join(name),
        (None, None) => return Ok(None),
    };
    let failed = |error: &dyn std::fmt::Display| {
        CommandError::failed(format!("keep the result in {}", path.display()), error)
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    }
    let text = serde_json::to_string(result).map_err(|error| failed(&error))?;
    std::fs::write(&path, text).map_err(|error| failed(&error))?;
    Ok(Some(path.display().to_string()))
}

/// A name that any file system takes.
pub(super) fn plain_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).take(60).collect()
}

/// A run that did not end as planned ends the command so.
pub(super) fn end_of(run: &Run) -> Result<(), CommandError> {
    let ended = run.stages.iter().find_map(|stage| match &stage.ended {
        Ended::Failed(error) => Some(error.clone()),
        Ended::Stopped => Some("it was stopped early".to_owned()),
        Ended::Done | Ended::Steady => None,
    });
    let lost: Vec<&str> = (run.stages.iter().flat_map(|stage| &stage.agents))
        .filter(|part| part.lost.is_some())
        .map(|part| part.agent.as_str())
        .collect();
    match (ended, lost.first()) {
        (Some(error), _) => Err(CommandError::new(ErrorKind::Failed, error)),
        (None, Some(agent)) => Err(CommandError::new(
            ErrorKind::Failed,
            format!("agent {agent} was lost; the results of the other agents are kept"),
        )),
        (None, None) => Ok(()),
    }
}

/// Shows what a job would do.
pub fn plan(options: &PlanOptions, world: &mut World) -> Result<(), CommandError> {
    let plan = job::read(&options.job)?.plan;
    let outline = prepare::preview(&plan, world);
    if world.json {
        #[derive(serde::Serialize)]
        struct Answer<'a> {
            outline: &'a plan::Outline,
            plan: &'a Plan,
        }
        return world.say_json(&Answer { outline: &outline, plan: &plan });
    }
    world.say(&plan_text(&plan, &outline, options.job.verbose))
}
