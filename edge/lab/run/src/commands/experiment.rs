//! `lab experiment`.

use super::agent::AgentsOptions;
use super::live::Live;
use super::own_disks::{self, OwnDisks, Rules, Wanted};
use super::prepare::{self, Consent};
use super::progress::Progress;
use super::watching::WatchOptions;
use super::{CommandError, ErrorKind, World, run};
use crate::agents::{DriveSettings, Driver, Invitation};
use crate::experiment::{Bench, Conditions, Experiment, Here, There, execute, expand};
use crate::generator::stage::Settings;
use crate::runner::Event;
use crate::target::Target;
use clap::Args;
use measured::ExperimentRun;
use plan::{Plan, format_seconds};
use statistics::words::counted;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of `lab experiment`.
#[derive(Debug, Clone, Args)]
pub struct ExperimentOptions {
    /// File of the experiment.
    pub file: PathBuf,
    /// A folder for disks that have no target: a file for each, made and filled as needed.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Target of a disk of the experiment: DISK=TARGET, or TARGET for all disks.
    #[arg(long = "target", short = 't', value_name = "TARGET")]
    pub targets: Vec<String>,
    /// Create a virtual disk for every disk that has no target, with this policy, and delete it at the end: a policy's name, rules, or
    /// both, as `drystone disk create --policy` takes them; DISK:POLICY for one of them.
    #[arg(long = "create-disks", value_name = "[DISK:]POLICY", num_args = 0..=1, default_missing_value = "")]
    pub create_disks: Vec<String>,
    /// Keep the created disks at the end.
    #[arg(long, requires = "create_disks")]
    pub keep_disks: bool,
    /// Size of every disk, in place of the file's.
    #[arg(long, value_name = "SIZE", value_parser = base::units::parse_bytes)]
    pub size: Option<u64>,
    /// Overwrite this target although it is in use or holds data, which is destroyed.
    #[arg(long = "destroy-data", value_name = "TARGET")]
    pub destroy: Vec<String>,
    /// Metrics to watch during the runs.
    #[command(flatten)]
    pub watch: WatchOptions,
    /// Machines that run it, instead of this one; folders and targets are theirs.
    #[command(flatten)]
    pub agents: AgentsOptions,
    /// Measured seconds of every run, in place of the file's. Schedules are scaled to this duration.
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Ramp-up seconds of every run, in place of the file's.
    #[arg(long)]
    pub ramp: Option<f64>,
    /// Seconds between runs, in place of the file's.
    #[arg(long)]
    pub pause: Option<f64>,
    /// Number of runs of every cell, in place of the file's.
    #[arg(long)]
    pub repeat: Option<u32>,
    /// File for the results with their raw histograms [default: a file in the user's data directory].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Show the runs without starting any.
    #[arg(long, short = 'n')]
    pub dry_run: bool,
}

/// Runs an experiment.
pub fn experiment(options: &ExperimentOptions, world: &mut World) -> Result<(), CommandError> {
    let source = std::fs::read_to_string(&options.file).map_err(|error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Failed
        };
        CommandError::new(kind, format!("read {}: {error}", options.file.display()))
    })?;
    let usage = |error: crate::experiment::ExperimentError| {
        CommandError::new(ErrorKind::Usage, format!("{}: {error}", options.file.display()))
    };
    let mut experiment = Experiment::parse(&source).map_err(usage)?;
    change(&mut experiment, options);
    let plans = expand(&experiment).map_err(usage)?;
    tell(&experiment, &plans);
    let wanted = match options.create_disks.is_empty() {
        true => Vec::new(),
        false => {
            let rules = Rules::parse(&options.create_disks)?;
            let is_named = |disk: &str| given(disk, options).is_some();
            own_disks::wanted(&experiment.name, plans.iter().map(|of| &of.plan), &rules, &is_named)?
        }
    };
    tell_disks(&wanted);
    if options.dry_run {
        return Ok(());
    }
    let own = OwnDisks::create(world.disks.clone(), wanted, options.keep_disks)?;
    let invitations = options.agents.invitations()?;
    let interrupted = run::on_signals();
    let done = match invitations.is_empty() {
        true => run_here(&experiment, &source, (options, &own), &interrupted, world),
        false => run_there(&experiment, &source, (options, &own), &invitations, &interrupted, world),
    };
    run::end_signals(&interrupted);
    drop(own);
    show(&done?, options, world)
}

/// Settings of the command line in place of those of the file.
fn change(experiment: &mut Experiment, options: &ExperimentOptions) {
    experiment.ramp = options.ramp.unwrap_or(experiment.ramp);
    experiment.pause = options.pause.unwrap_or(experiment.pause);
    experiment.repeat = options.repeat.unwrap_or(experiment.repeat);
    if let Some(seconds) = options.seconds {
        experiment.seconds = seconds;
        let end = experiment.schedule.iter().map(|part| part.stop).fold(0.0, f64::max);
        for part in experiment.schedule.iter_mut().filter(|_| end > 0.0) {
            (part.start, part.stop) = (part.start * seconds / end, part.stop * seconds / end);
        }
    }
    if let Some(size) = options.size {
        experiment.vms.iter_mut().for_each(|vm| vm.size = Some(size.to_string()));
    }
}

/// One line for disks of one size and policy.
fn tell_disks(wanted: &[Wanted]) {
    for alike in wanted.chunk_by(|one, next| (one.size, &one.policy) == (next.size, &next.policy)) {
        let names = match alike {
            [one] => format!("disk {}", one.name),
            [first, .., last] => format!("{} disks {} to {}", alike.len(), first.name, last.name),
            [] => continue,
        };
        let size = base::units::format_bytes(alike[0].size);
        eprintln!("  created for the experiment: {names}, {size}, policy {}", or_default(&alike[0].policy));
    }
}

fn or_default(policy: &str) -> &str {
    if policy.is_empty() { "by default" } else { policy }
}

fn run_here(
    experiment: &Experiment,
    source: &str,
    (options, own): (&ExperimentOptions, &OwnDisks),
    interrupted: &Arc<AtomicBool>,
    world: &mut World,
) -> Result<ExperimentRun, CommandError> {
    let settings = Settings {
        processors: crate::runner::this_machine().processors as usize,
        go_on: false,
        interrupted: interrupted.clone(),
        ledgers: Vec::new(),
        gate: None,
    };
    let consent = Consent { destroy: options.destroy.clone() };
    let program = world.program.clone();
    let live = options.watch.live(&*world.disks)?;
    let disks = world.disks.clone();
    let watch = |plan: &Plan| {
        let named = name_targets(plan, (options, own));
        named.and_then(|plan| options.watch.begin(&plan, &*disks)).map_err(|error| error.to_string())
    };
    let mut find =
        |plan: &Plan| find(plan, (options, own), &consent, world).map_err(|error| error.to_string());
    let mut bench = Here { find: &mut find, watch: &watch, settings, program: program.clone() };
    run_on(&mut bench, experiment, source, interrupted, (program, live))
}

fn run_there(
    experiment: &Experiment,
    source: &str,
    (options, own): (&ExperimentOptions, &OwnDisks),
    invitations: &[Invitation],
    interrupted: &Arc<AtomicBool>,
    world: &World,
) -> Result<ExperimentRun, CommandError> {
    let driver = Driver::connect(invitations)
        .map_err(|error| CommandError::new(ErrorKind::Failed, error.to_string()))?;
    let mut name = |plan: &Plan| name_targets(plan, (options, own)).map_err(|error| error.to_string());
    let settings =
        DriveSettings { program: world.program.clone(), go_on: false, interrupted: interrupted.clone() };
    let live = options.watch.live(&*world.disks)?;
    let watch = |plan: &Plan| options.watch.begin(plan, &*world.disks).map_err(|error| error.to_string());
    let mut bench = There {
        driver,
        name: &mut name,
        watch: &watch,
        by_hand: options.agents.place.clone(),
        destroy: options.destroy.clone(),
        settings,
    };
    run_on(&mut bench, experiment, source, interrupted, (world.program.clone(), live))
}

fn run_on(
    bench: &mut dyn Bench,
    experiment: &Experiment,
    source: &str,
    interrupted: &Arc<AtomicBool>,
    (program, live): (String, Option<Arc<Live>>),
) -> Result<ExperimentRun, CommandError> {
    let mut progress = Progress::new(std::io::stderr().is_terminal(), live);
    let mut conditions = Conditions {
        bench,
        interrupted: interrupted.clone(),
        program,
        observe: &mut |plan, event| match event {
            Event::Begins { stage, repeat } => progress.begins(plan, stage, repeat),
            Event::Second(second) => progress.second(&second),
            Event::Ended(_) => progress.ended(),
        },
        tell: &mut |text| eprintln!("lab: {text}"),
    };
    execute(experiment, source, &mut conditions).map_err(|error| CommandError::new(ErrorKind::Failed, error))
}

/// Shows what the experiment will do.
fn tell(experiment: &Experiment, plans: &[crate::experiment::CellPlan]) {
    let runs = plans.len() * experiment.repeat as usize;
    let each = experiment.pause + experiment.ramp + experiment.seconds;
    let time = match (&experiment.search, experiment.schedule.is_empty()) {
        (Some(_), _) => "a search, as long as it takes".to_owned(),
        (None, true) => format_seconds(each * runs as f64),
        (None, false) => {
            let end = experiment.schedule.iter().map(|part| part.stop).fold(0.0, f64::max);
            format_seconds((end + experiment.pause) * f64::from(experiment.repeat))
        }
    };
    let counts = (counted(plans.len(), "cell"), counted(runs, "run"));
    eprintln!("{}: {}, {}, {time}", experiment.name, counts.0, counts.1);
    const SHOWN: usize = 20;
    for plan in plans.iter().take(SHOWN) {
        let load = (counted(plan.cell.vms, "machine"), counted(plan.cell.outstanding, "I/O"));
        eprintln!("  {}: {}, {} in flight", plan.cell.label(), load.0, load.1);
    }
    if plans.len() > SHOWN {
        eprintln!("  and {} more", plans.len() - SHOWN);
    }
}

/// Targets of a plan: those that are given, and files of the folder for the others.
fn find(
    plan: &Plan,
    naming: (&ExperimentOptions, &OwnDisks),
    consent: &Consent,
    world: &mut World,
) -> Result<Vec<Target>, CommandError> {
    prepare::targets(&name_targets(plan, naming)?, consent, world)
}

/// The plan with targets in the place of its disks.
fn name_targets(plan: &Plan, (options, own): (&ExperimentOptions, &OwnDisks)) -> Result<Plan, CommandError> {
    let mut named = plan.clone();
    let disks: Vec<&str> = plan.targets.iter().map(|target| target.name.as_str()).collect();
    for target in &mut named.targets {
        target.name = match own.target_of(&target.name) {
            Some(made) => made,
            None => stands_for(&target.name, &disks, options)?,
        };
    }
    Ok(named)
}

/// The target that the options name for a disk, if they do.
fn given(disk: &str, options: &ExperimentOptions) -> Option<String> {
    let own = options.targets.iter().find_map(|text| text.split_once('=').filter(|(name, _)| *name == disk));
    // `vm1=TARGET` is of another disk; an address may have a `=` too.
    let is_for_all = |text: &&String| !text.split_once('=').is_some_and(|(name, _)| is_plain_name(name));
    own.map(|(_, target)| target.to_owned()).or_else(|| options.targets.iter().find(is_for_all).cloned())
}

fn stands_for(disk: &str, disks: &[&str], options: &ExperimentOptions) -> Result<String, CommandError> {
    if let Some(target) = given(disk, options) {
        return Ok(target);
    }
    let is_target = disk.contains('/') || disk.contains(':');
    match &options.dir {
        _ if is_target => Ok(disk.to_owned()),
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| {
                CommandError::failed(format!("make the folder {}", folder.display()), error)
            })?;
            Ok(folder.join(format!("{disk}.img")).display().to_string())
        }
        None => Err(CommandError::new(
            ErrorKind::Usage,
            format!("the disk `{disk}` has no target (disks of the experiment: {})", disks.join(", ")),
        )
        .hint(format!(
            "add --dir FOLDER for files, --create-disks POLICY for virtual disks, or --target {disk}=TARGET"
        ))),
    }
}

/// Whether a text can be the name of a disk: paths and addresses cannot.
fn is_plain_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' '))
}

fn show(done: &ExperimentRun, options: &ExperimentOptions, world: &mut World) -> Result<(), CommandError> {
    let name = format!("{}-{}.experiment.json", done.started_unix_ms, run::plain_name(&done.name));
    let kept = run::keep_json(done, &name, options.out.as_deref(), world)?;
    if world.json {
        #[derive(serde::Serialize)]
        struct Answer<'a> {
            name: &'a str,
            cells: Vec<CellAnswer>,
            conclusions: &'a [measured::Conclusion],
            expectations: &'a [measured::Expected],
            notes: &'a [String],
            kept: Option<String>,
        }
        #[derive(serde::Serialize)]
        struct CellAnswer {
            label: String,
            outstanding: u64,
            runs: Vec<RunAnswer>,
        }
        #[derive(serde::Serialize)]
        struct RunAnswer {
            iops: f64,
            mean_ms: f64,
            p99_ms: f64,
        }
        let cells = (done.cells.iter())
            .map(|cell| CellAnswer {
                label: cell.label(),
                outstanding: cell.outstanding,
                runs: rows(cell)
                    .into_iter()
                    .map(|(iops, mean_ms, p99_ms)| RunAnswer { iops, mean_ms, p99_ms })
                    .collect(),
            })
            .collect();
        let (conclusions, expectations) = (&done.conclusions[..], &done.expectations[..]);
        world.say_json(&Answer {
            name: &done.name,
            cells,
            conclusions,
            expectations,
            notes: &done.notes,
            kept,
        })?;
    } else {
        world.say(&text(done))?;
        if let Some(kept) = kept {
            eprintln!("lab: the results with raw histograms are in {kept}");
        }
    }
    run::broken(&done.expectations)
}

/// IOPS, mean and p99 latency (ms) of each run.
fn rows(cell: &measured::Cell) -> Vec<(f64, f64, f64)> {
    let stages = cell.runs.iter().filter_map(|run| run.stages.first());
    stages
        .map(|stage| {
            let total = stage.total();
            let p99 = total.latency.percentile(0.99).unwrap_or(0) as f64 / 1e6;
            (stage.iops(), total.latency.mean_ns().unwrap_or(0.0) / 1e6, p99)
        })
        .collect()
}

/// An experiment as text for a terminal.
pub(super) fn text(done: &ExperimentRun) -> String {
    let mut text = format!("{}\n", done.name);
    for cell in &done.cells {
        for (iops, mean, p99) in rows(cell) {
            text.push_str(&format!(
                "  {}: {} IOPS, mean {:.3} ms, p99 {:.3} ms\n",
                cell.label(),
                statistics::words::rate(iops),
                mean,
                p99
            ));
        }
        if cell.workload == "schedule"
            && let Some(stage) = cell.runs.first().and_then(|run| run.stages.first())
        {
            for group in &stage.groups {
                text.push_str(&format!(
                    "    {}: {} IOPS\n",
                    group.name,
                    statistics::words::rate(group.iops())
                ));
            }
        }
    }
    for conclusion in &done.conclusions {
        text.push_str(&format!("- {}: {}\n", conclusion.about, conclusion.text));
    }
    for note in &done.notes {
        text.push_str(&format!("- {note}\n"));
    }
    text.push_str(&super::show::expectations(&done.expectations));
    text
}
