//! A plan, run from its first stage to its last.

use crate::generator::stage::{self, Second, Settings, StageError};
use crate::target::Target;
use crate::verification;
use crate::{clock, depth};
use measured::{Ended, Machine, Run, StageRun, TargetFacts, VERSION};
use plan::Plan;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is told while a plan runs.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// A stage begins.
    Begins {
        /// Index of the plan's stage.
        stage: usize,
        /// Which repeat, from 0.
        repeat: u32,
    },
    /// A second of a thread of a stage.
    Second(Second),
    /// A stage has ended.
    Ended(&'a measured::StageRun),
}

/// Runs `plan` on `targets` (one for each of the plan's).
///
/// # Errors
/// When a stage cannot begin. What fails while it runs ends the run and is part of the result.
pub fn run(
    plan: &Plan,
    targets: &[Target],
    settings: &Settings,
    program: &str,
    observe: &mut dyn FnMut(Event),
) -> Result<Run, StageError> {
    let mut settings = settings.clone();
    if settings.ledgers.is_empty() {
        // Of the whole plan: a stage may verify what an earlier one wrote.
        settings.ledgers = verification::records(plan, targets, None)?;
    }
    let started_unix_ms = unix_ms();
    let origin = clock::now();
    let mut stages = Vec::new();
    let mut reached: Vec<f64> = Vec::new();
    let mut notes = Vec::new();
    'stages: for (index, stage) in plan.stages.iter().enumerate() {
        let mut best = 0.0;
        let mut searched = None;
        if let Some(target) = stage.search {
            let found = depth::search(plan, index, target, |plan| {
                run_stage(plan, index, targets, &reached, settings.clone(), &mut |second| {
                    observe(Event::Second(second));
                })
            })?;
            notes.push(found.sentence);
            searched = Some(depth::at_depth(plan, index, found.depth));
        }
        let planned = searched.as_ref().unwrap_or(plan);
        for repeat in 0..stage.repeats {
            pause(stage.pause, &settings);
            if settings.interrupted.load(Ordering::Relaxed) {
                break 'stages;
            }
            observe(Event::Begins { stage: index, repeat });
            let began = clock::now();
            let mut run = run_stage(planned, index, targets, &reached, settings.clone(), &mut |second| {
                observe(Event::Second(second));
            })?;
            run.repeat = repeat;
            run.started = (began - origin) as f64 / 1e9;
            best = run.iops();
            observe(Event::Ended(&run));
            let failed = matches!(run.ended, Ended::Failed(_));
            stages.push(run);
            if failed && !settings.go_on {
                break 'stages;
            }
        }
        reached.push(best);
    }
    Ok(Run { stages, notes, ..nothing_yet(plan, targets, program, started_unix_ms) })
}

/// A run that has measured nothing.
fn nothing_yet(plan: &Plan, targets: &[Target], program: &str, started_unix_ms: u64) -> Run {
    let named = plan.targets.iter().zip(targets);
    Run {
        version: VERSION,
        program: program.to_owned(),
        started_unix_ms,
        plan: plan.clone(),
        targets: named.map(|(planned, target)| facts(&planned.name, target)).collect(),
        machines: vec![this_machine()],
        stages: Vec::new(),
        notes: Vec::new(),
        system: measured::System::default(),
        expectations: Vec::new(),
        sources: Vec::new(),
    }
}

/// Runs one stage, and then reads again what it is to verify by the records of `settings`.
///
/// # Errors
/// When it cannot begin.
pub fn run_stage(
    plan: &Plan,
    index: usize,
    targets: &[Target],
    reached: &[f64],
    mut settings: Settings,
    second: &mut dyn FnMut(Second),
) -> Result<StageRun, StageError> {
    let mut run = stage::run(plan, index, targets, reached, &settings, second)?;
    let again = verification::reading(&plan.stages[index], &settings.ledgers, targets);
    if let Some(again) = again.filter(|_| run.ended != Ended::Stopped) {
        let reading = Plan { stages: vec![again], ..plan.clone() };
        settings.gate = None;
        let read = stage::run(&reading, 0, targets, &[], &settings, &mut |_| ())?;
        verification::add(&mut run, &read);
    }
    verification::judge(&plan.stages[index], &mut run);
    Ok(run)
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What a run says of a target that it used.
pub fn facts(name: &str, target: &Target) -> TargetFacts {
    TargetFacts {
        name: name.to_owned(),
        opened: target.name.clone(),
        kind: target.kind().to_owned(),
        size: target.size,
        about: target.about.clone(),
    }
}

fn pause(time: Duration, settings: &Settings) {
    let until = clock::now().saturating_add(clock::ns(time));
    while clock::now() < until && !settings.interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20).min(time));
    }
}

/// The machine that this runs on.
pub fn this_machine() -> Machine {
    let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    Machine {
        name: line("/proc/sys/kernel/hostname"),
        kernel: line("/proc/sys/kernel/osrelease"),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u32),
        clock_error: 0.0,
    }
}
