//! An `.icf` file as a plan: each assigned pattern is a stage, each step of a cycle another.

use super::file::{AccessLine, Cycle, File, Manager, Spec, TestType, Worker};
use crate::builder::{self, Builder};
use crate::error::Fault;
use crate::findings::{Findings, refused};
use crate::limits;
use crate::source::Options;
use plan::{
    Caching, Content, Data, Depth, Extent, Group, Length, Line, NoteKind, Pattern, PauseStart, Plan, Size,
    Span, Stage, Target, Think, Timing, Workers, WriteThrough,
};
use std::time::Duration;

/// Iometer passes the cache of the operating system by.
const DIRECT: Caching = Caching { direct: true, write_through: WriteThrough::No, flush: None };

/// One step of a cycle: how much of what there is takes part.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Workers of each manager.
    workers: usize,
    /// Targets, of what the test type says.
    targets: usize,
    /// In place of the workers' own depth.
    depth: Option<u64>,
}

/// The plan of a file.
pub(crate) fn plan(file: &File, options: &Options<'_>, findings: &mut Findings) -> Plan {
    let plan = Plan { name: file.description.clone(), ..Plan::default() };
    if file.specs.is_empty() {
        findings.fault(refused(
            &file.place,
            "the file has no access specification",
            "Iometer says `You must assign at least one access specification`",
            "add a pattern below 'ACCESS SPECIFICATIONS",
        ));
        return plan;
    }
    if file.managers.iter().all(|manager| manager.workers.is_empty()) {
        return library(file, options, plan, findings);
    }
    remark(file, findings);
    let workers = || file.managers.iter().flat_map(|manager| &manager.workers);
    workers().for_each(|worker| check_worker(worker, file, findings));
    let mut builder = Builder::default();
    builder.plan = plan;
    builder.seed(
        workers().map(|worker| (worker.seed, &worker.place)),
        "workers",
        "fixed seed value",
        findings,
    );
    if findings.faults.is_empty() {
        let added = stages(file, &mut builder);
        findings.take(added);
    }
    builder.plan
}

/// The machine of a manager, where there are several.
fn host<'a>(file: &File, manager: &'a Manager) -> Option<&'a str> {
    (file.managers.len() > 1).then_some(manager.name.as_str())
}

fn remark(file: &File, findings: &mut Findings) {
    if file.test_type == TestType::Normal && file.depth_cycle.is_some_and(|cycle| cycle.end > cycle.start) {
        let text = "the test type NORMAL ignores 'Queue Depth Cycling";
        findings.note(NoteKind::Trap, &file.place, "'Queue Depth Cycling", text);
    }
    if file.test_type != TestType::Normal {
        let text = "each step is a stage; the queue depth changes first, the pattern last";
        findings.note(NoteKind::Default, &file.place, "'Test Type", text);
    }
    if file.run_time.is_zero() {
        let text = "the run time is 0: the first stage runs until you stop it";
        findings.note(NoteKind::Trap, &file.place, "'Run Time", text);
    }
    let data = file.managers.iter().flat_map(|manager| &manager.workers).find(|worker| {
        let writes =
            |name: &str| spec(file, name).is_some_and(|spec| spec.lines.iter().any(|line| line.reads < 100));
        worker.data == 0 && (file.old || worker.specs.iter().any(|(name, _)| writes(name)))
    });
    if let Some(worker) = data {
        let text = "writes repeat one byte, which compresses to almost nothing";
        findings.note(NoteKind::Default, &worker.place, "Data pattern", text);
    }
}

fn check_worker(worker: &Worker, file: &File, findings: &mut Findings) {
    if worker.targets.is_empty() {
        findings.fault(refused(
            &worker.place,
            format!("the worker {} has no target", worker.name),
            "Iometer requires a target",
            "add a target below 'Target assignments",
        ));
    }
    if worker.specs.is_empty() && !file.old {
        findings.fault(refused(
            &worker.place,
            format!("the worker {} has no pattern", worker.name),
            "Iometer says `You must assign at least one access specification`",
            "add a pattern below 'Assigned access specs",
        ));
    }
    for (name, place) in &worker.specs {
        if spec(file, name).is_none() && !name.eq_ignore_ascii_case("idle") {
            let near = crate::keys::nearest(name, file.specs.iter().map(|spec| spec.name.as_str()));
            findings.fault(refused(
                place,
                format!("the file has no access specification `{name}`"),
                "Iometer says that it does not exist",
                near.map_or("write the name of one in the file".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                }),
            ));
        }
    }
}

fn spec<'a>(file: &'a File, name: &str) -> Option<&'a Spec> {
    file.specs.iter().find(|spec| spec.name == name)
}

/// Patterns without workers are a library: they are listed, and one of them runs where it is named.
fn library(file: &File, options: &Options<'_>, mut plan: Plan, findings: &mut Findings) -> Plan {
    let variable = |name: &str| {
        let found = options.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    let named = variable("pattern");
    let Some(spec) = named.and_then(|name| spec(file, name)) else {
        let listed: Vec<String> = (file.specs.iter())
            .map(|spec| format!("\n    {}: {}", spec.name, pattern(spec, 0, 0).describe()))
            .collect();
        let first = file.specs.first().map_or("", |spec| spec.name.as_str());
        let found = match named {
            Some(name) => format!("there is no pattern `{name}` among the {} of the file", listed.len()),
            None => {
                format!("the file is a library of {} patterns, without a worker that runs them", listed.len())
            }
        };
        findings.fault(refused(
            &file.place,
            found,
            "Iometer says `You must assign at least one access specification`",
            format!(
                "choose a pattern and a queue depth with --define 'pattern={first}' --define depth=16; the patterns are{}",
                listed.concat()
            ),
        ));
        return plan;
    };
    let depth =
        variable("depth").and_then(|depth| depth.parse().ok()).filter(|depth| *depth > 0).unwrap_or(1);
    plan.targets.push(Target::named("disk"));
    let mut group = Group::new("worker", 0, depth, pattern(spec, 0, 0), timing(file));
    group.caching = DIRECT;
    plan.stages.push(Stage::new(&spec.name, vec![group]));
    plan
}

fn timing(file: &File) -> Timing {
    let length = if file.run_time.is_zero() { Length::UntilStopped } else { Length::Time(file.run_time) };
    Timing { delay: Duration::ZERO, ramp: file.ramp, length, cooldown: Duration::ZERO }
}

fn stages(file: &File, builder: &mut Builder) -> Result<(), Fault> {
    let workers = || file.managers.iter().flat_map(|manager| &manager.workers);
    let rounds = match file.old {
        true => file.specs.len(),
        false => workers().map(|worker| worker.specs.len()).max().unwrap_or(0),
    };
    let steps = steps(file);
    let count = rounds.saturating_mul(steps.len());
    let assignments = workers().map(|worker| worker.targets.len()).sum();
    builder.room(
        count,
        count.saturating_mul(workers().count()),
        count.saturating_mul(assignments),
        &file.place,
    )?;
    // All targets come first, in the order of the file, whichever a step takes.
    for manager in &file.managers {
        for name in manager.workers.iter().flat_map(|worker| &worker.targets) {
            builder.target(host(file, manager), name, None);
        }
    }
    let mut idle = Duration::ZERO;
    for round in 0..rounds {
        for step in &steps {
            let mut stage = Stage::new(stage_name(file, round, step), groups(file, round, step, builder));
            if stage.groups.is_empty() {
                // All workers are idle: the stage is a pause before the next.
                idle += file.ramp + file.run_time;
                continue;
            }
            stage.pause = std::mem::take(&mut idle);
            builder.stage(stage, &file.place)?;
        }
    }
    Ok(())
}

fn stage_name(file: &File, round: usize, step: &Step) -> String {
    let workers = || file.managers.iter().flat_map(|manager| &manager.workers);
    let name = match file.old {
        true => file.specs[round].name.as_str(),
        false => workers().find_map(|worker| worker.specs.get(round)).map_or("", |(name, _)| name),
    };
    let mut name = name.to_owned();
    if step.workers != usize::MAX {
        name += &format!(", {} workers", step.workers);
    }
    if step.targets != usize::MAX {
        name += &format!(", {} targets", step.targets);
    }
    if let Some(depth) = step.depth {
        name += &format!(", depth {depth}");
    }
    name
}

/// The steps of the cycle that the test type asks for; one of everything where it asks for none.
fn steps(file: &File) -> Vec<Step> {
    use TestType::{CycleDepth, CycleDepthAndTargets, CycleTargets, CycleWorkers, CycleWorkersAndTargets};
    let managers = &file.managers;
    let each = |manager: &Manager| manager.workers.iter().map(|worker| worker.targets.len()).max();
    let all = |manager: &Manager| manager.workers.iter().map(|worker| worker.targets.len()).sum();
    let most_targets = match file.test_type {
        TestType::Normal | CycleWorkers | CycleDepth => None,
        CycleTargets | CycleWorkersAndTargets | CycleDepthAndTargets => {
            managers.iter().filter_map(each).max()
        }
        TestType::IncrementParallel => managers.iter().map(all).max(),
        TestType::IncrementSerial => Some(managers.iter().map(all).sum()),
    };
    let cycles_workers = matches!(file.test_type, CycleWorkers | CycleWorkersAndTargets);
    let most_workers = managers.iter().map(|manager| manager.workers.len()).max().filter(|_| cycles_workers);
    let one_by_one = |cycle: Option<Cycle>, most: Option<usize>| -> Vec<usize> {
        let Some(most) = most else { return vec![usize::MAX] };
        let steps = cycle.map_or_else(|| (1..=most as u64).collect(), |cycle| cycle.steps(most as u64));
        steps.into_iter().map(|step| usize::try_from(step).unwrap_or(usize::MAX)).collect()
    };
    let cycles_depth = matches!(file.test_type, CycleDepth | CycleDepthAndTargets);
    let depths: Vec<Option<u64>> = match file.depth_cycle.filter(|_| cycles_depth) {
        Some(cycle) => cycle.steps(cycle.end.max(cycle.start)).into_iter().map(Some).collect(),
        None => vec![cycles_depth.then_some(1)],
    };
    let (workers, targets) =
        (one_by_one(file.worker_cycle, most_workers), one_by_one(file.target_cycle, most_targets));
    let (targets, depths) = (&targets, &depths);
    let pairs = workers.iter().flat_map(|&workers| targets.iter().map(move |&targets| (workers, targets)));
    let steps = pairs
        .flat_map(|(workers, targets)| depths.iter().map(move |&depth| Step { workers, targets, depth }));
    steps.take(limits::STAGES_MAX + 1).collect()
}

/// The groups of a stage: workers that do the same beside each other are one group.
fn groups(file: &File, round: usize, step: &Step, builder: &mut Builder) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut used_everywhere = 0;
    for manager in &file.managers {
        let mut used_here = 0;
        for worker in manager.workers.iter().take(step.workers) {
            let before = match file.test_type {
                TestType::IncrementParallel => used_here,
                TestType::IncrementSerial => used_everywhere,
                _ => 0,
            };
            let count = step.targets.saturating_sub(before).min(worker.targets.len());
            used_here += worker.targets.len();
            used_everywhere += worker.targets.len();
            let spec = match file.old {
                true => file.specs.get(round),
                false => worker.specs.get(round).and_then(|(name, _)| spec(file, name)),
            };
            let (Some(spec), true) = (spec, count > 0) else { continue };
            let host = host(file, manager);
            let vm = host.map(str::to_owned);
            let indices =
                worker.targets.iter().take(count).map(|name| builder.target(host, name, None)).collect();
            let group = group(file, worker, spec, step.depth, vm, indices);
            match groups.last_mut() {
                Some(last) if same_but_name(last, &group) => {
                    if let Workers::Together(count) = &mut last.workers {
                        *count += 1;
                    }
                }
                _ => groups.push(group),
            }
        }
    }
    groups
}

fn group(
    file: &File,
    worker: &Worker,
    spec: &Spec,
    depth: Option<u64>,
    vm: Option<String>,
    targets: Vec<usize>,
) -> Group {
    let depth = u32::try_from(depth.unwrap_or(worker.depth)).unwrap_or(u32::MAX);
    let pattern = pattern(spec, worker.start, worker.sectors);
    let mut group = builder::group(&worker.name, targets, pattern, timing(file), DIRECT);
    group.vm = vm;
    group.depth = Depth::PerTarget(depth);
    group.data = Data { content: content(worker.data), ..Data::default() };
    group
}

/// Whether two groups differ in nothing but their names and how many workers they have.
fn same_but_name(one: &Group, other: &Group) -> bool {
    let mut copy = other.clone();
    copy.name.clone_from(&one.name);
    copy.workers = one.workers;
    copy == *one
}

fn content(data: u64) -> Content {
    match data {
        0 => Content::Pattern(vec![0x5a]),
        1 => Content::Scrambled,
        _ => Content::Random,
    }
}

fn pattern(spec: &Spec, start: u64, sectors: u64) -> Pattern {
    let mut pattern = Pattern::simple(4096, 100.0, 100.0);
    pattern.lines = spec.lines.iter().filter(|line| line.percent > 0).map(line).collect();
    pattern.span = Span {
        offset: Extent::Bytes(start.saturating_mul(512)),
        length: (sectors > 0).then(|| Extent::Bytes(sectors.saturating_mul(512))),
        ..Span::default()
    };
    pattern
}

fn line(line: &AccessLine) -> Line {
    let align = match line.align {
        0 => Some(512),
        align if align == line.size => None,
        align => Some(align),
    };
    let think = (line.delay > 0).then(|| Think {
        after: u32::try_from(line.burst.max(1)).unwrap_or(u32::MAX),
        pause: Duration::from_millis(line.delay.min(1 << 40)),
        spin: false,
        start: PauseStart::Issued,
    });
    Line {
        weight: line.percent as f64,
        size: Size::Fixed(line.size),
        reads: line.reads as f64,
        trims: 0.0,
        random: line.random as f64,
        align,
        think,
    }
}
