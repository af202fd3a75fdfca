//! A plan as an `.icf` file.

use crate::export::Losses;
use crate::mix::whole;
use plan::{
    AtEnd, Content, Cursor, Depth, Distribution, Engine, Extent, Group, Length, Plan, Reuse, Seed, Size,
    Stage, StageEnd, Workers, WriteThrough,
};
use std::fmt::Write;
use std::time::Duration;

/// One worker of the file: the stages it works in, by the pattern of each.
struct Worker<'a> {
    name: String,
    vm: Option<&'a str>,
    group: &'a Group,
    targets: Vec<usize>,
    /// By stage.
    specs: Vec<Option<usize>>,
}

/// The file of a plan.
pub(crate) fn write(plan: &Plan, losses: &mut Losses) -> String {
    let mut specs: Vec<(String, String)> = Vec::new();
    let mut workers: Vec<Worker<'_>> = Vec::new();
    let stages: Vec<&Stage> =
        plan.stages.iter().flat_map(|stage| (0..stage.repeats.min(1000)).map(move |_| stage)).collect();
    for (number, stage) in stages.iter().enumerate() {
        for group in &stage.groups {
            losses.at = format!("stage {}, group {}", stage.name, group.name);
            check(plan, stage, group, losses);
            let spec = spec(&mut specs, stage, group, losses);
            for targets in targets(group) {
                join(&mut workers, group, targets, number, spec);
            }
        }
    }
    losses.at = "plan".into();
    let timings: Vec<_> =
        plan.stages.iter().flat_map(|stage| &stage.groups).map(|group| group.timing).collect();
    let Some(first) = timings.first() else { return String::new() };
    losses.add_if(
        timings.iter().any(|timing| timing != first),
        "stages of different times: all have those of the first",
    );
    let mut text = String::from(
        "Version 1.1.0\n'TEST SETUP ====================================================================\n",
    );
    let name: String = plan
        .name
        .chars()
        .map(|letter| if letter.is_control() || letter == ',' { '-' } else { letter })
        .collect();
    let _ = writeln!(text, "'Test Description\n\t{name}");
    let run = match first.length {
        Length::Time(time) => time,
        Length::First { time, .. } => {
            losses.add("an end after an amount");
            time
        }
        Length::UntilStopped => Duration::ZERO,
        Length::Amount(_) => {
            losses.add("an end that is no time: stages take 60 s");
            Duration::from_secs(60)
        }
    };
    losses.add_if(run.subsec_nanos() + first.ramp.subsec_nanos() > 0, "parts of a second");
    let seconds = run.as_secs();
    let _ = writeln!(
        text,
        "'Run Time\n'\thours      minutes    seconds\n\t{}          {}          {}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    let _ = writeln!(text, "'Ramp Up Time (s)\n\t{}", first.ramp.as_secs());
    text.push_str("'Record Results\n\tALL\n'Test Type\n\tNORMAL\n'END test setup\n");
    text.push_str("'ACCESS SPECIFICATIONS =========================================================\n");
    for (name, lines) in &specs {
        let _ = write!(
            text,
            "'Access specification name,default assignment\n\t{name},NONE\n'size,% of size,% reads,% random,delay,burst,align,reply\n{lines}"
        );
    }
    text.push_str("'END access specifications\n'MANAGER LIST ==================================================================\n");
    managers(&mut text, plan, &workers, &specs);
    text.push_str("'END manager list\nVersion 1.1.0\n");
    text
}

/// The targets of each worker.
fn targets(group: &Group) -> Vec<Vec<usize>> {
    match group.workers {
        Workers::Together(count) => (0..count.min(65_536)).map(|_| group.targets.clone()).collect(),
        Workers::PerTarget(count) => (group.targets.iter())
            .flat_map(|target| (0..count.min(65_536)).map(move |_| vec![*target]))
            .collect(),
    }
}

/// Gives the pattern to a worker that has none in this stage and does the same otherwise, or to a new one.
fn join<'a>(workers: &mut Vec<Worker<'a>>, group: &'a Group, targets: Vec<usize>, stage: usize, spec: usize) {
    let vm = group.vm.as_deref();
    let found = workers.iter_mut().find(|worker| {
        worker.specs.len() <= stage
            && worker.vm == vm
            && worker.targets == targets
            && worker.group.depth == group.depth
            && worker.group.data == group.data
            && worker.group.pattern.span == group.pattern.span
    });
    if let Some(worker) = found {
        worker.specs.resize(stage, None);
        worker.specs.push(Some(spec));
        return;
    }
    let mut specs = vec![None; stage];
    specs.push(Some(spec));
    let name = format!("Worker {}", workers.len() + 1);
    workers.push(Worker { name, vm, group, targets, specs });
}

/// The index of a group's pattern among the access specifications.
fn spec(specs: &mut Vec<(String, String)>, stage: &Stage, group: &Group, losses: &mut Losses) -> usize {
    let lines = lines(group, losses);
    if let Some(index) = specs.iter().position(|(_, known)| *known == lines) {
        return index;
    }
    let plain: String = stage
        .name
        .chars()
        .map(|letter| if letter.is_control() || letter == '\'' { ' ' } else { letter })
        .collect();
    let plain = if plain.trim().is_empty() { group.pattern.describe() } else { plain.trim().to_owned() };
    let mut name = plain.clone();
    let mut number = 2;
    while specs.iter().any(|(known, _)| *known == name) || name.eq_ignore_ascii_case("idle") {
        name = format!("{plain} ({number})");
        number += 1;
    }
    specs.push((name, lines));
    specs.len() - 1
}

fn lines(group: &Group, losses: &mut Losses) -> String {
    let total: f64 = group.pattern.lines.iter().map(|line| line.weight).sum();
    let mut text = String::new();
    let used: Vec<&plan::Line> = group.pattern.lines.iter().filter(|line| line.weight > 0.0).collect();
    let mut left = 100u64;
    for (index, line) in used.iter().enumerate() {
        let mut number = |value: f64, what: &str| {
            whole(value).unwrap_or_else(|| {
                losses.add(format!("{what} that is no whole percentage"));
                value.round() as u64
            })
        };
        let mut share = number(line.weight / total * 100.0, "a share of a size").min(left);
        let (reads, random) =
            (number(line.reads, "a share of reads"), number(line.random, "a share of random I/O"));
        if index + 1 == used.len() {
            share = left;
        }
        left -= share;
        let (delay, burst) = match line.think {
            None => (0, 1),
            Some(think) => {
                losses
                    .add_if(think.pause.subsec_nanos() % 1_000_000 != 0, "parts of a millisecond of a pause");
                losses.add_if(think.spin, "a pause that keeps the processor busy");
                (think.pause.as_millis(), think.after)
            }
        };
        let align = match line.align {
            None => line.size.max(),
            Some(512) => 0,
            Some(align) => align,
        };
        losses.add_if(matches!(line.size, Size::Range { .. }), "a range of sizes: all have the largest");
        losses.add_if(line.trims > 0.0, "trims become writes");
        let _ = writeln!(text, "\t{},{share},{reads},{random},{delay},{burst},{align},0", line.size.max());
    }
    text
}

fn check(plan: &Plan, stage: &Stage, group: &Group, losses: &mut Losses) {
    let pattern = &group.pattern;
    let random = pattern.random() > 0.0;
    losses.add_if(!group.rates.is_empty(), "rates: Iometer has pauses alone");
    losses.add_if(group.share.is_some(), "shares between groups");
    losses.add_if(group.verify.is_some(), "verification");
    losses.add_if(!group.caching.direct, "I/O through the page cache");
    let writes = pattern.writes();
    losses.add_if(writes && group.caching.write_through != WriteThrough::No, "write-through");
    losses.add_if(writes && group.caching.flush.is_some(), "flushes");
    losses.add_if(group.engine != Engine::IoUring, "how I/Os are handed to the kernel");
    losses.add_if(group.batch.complete > 1 || group.batch.submit > 1, "batches");
    losses.add_if(!group.timing.cooldown.is_zero(), "a cool-down");
    losses.add_if(!stage.pause.is_zero() || !group.timing.delay.is_zero(), "a pause before the start");
    losses.add_if(stage.ends == StageEnd::First, "an end with the first group");
    losses.add_if(stage.bytes_max.is_some(), "an end after an amount");
    losses
        .add_if(stage.steady.is_some() || stage.search.is_some(), "an end that depends on what is measured");
    losses.add_if(
        random && pattern.distribution != Distribution::Uniform,
        "the distribution: I/Os go everywhere alike",
    );
    losses.add_if(
        random && pattern.reuse == Reuse::EachBlockOnce,
        "each block once: Iometer draws each I/O alone",
    );
    losses.add_if(pattern.follow > 0, "sequences behind each random I/O");
    losses.add_if(pattern.hits.is_some(), "an area for hits");
    let sequence = &pattern.sequence;
    let several = group.worker_count() > 1 && pattern.random() < 100.0;
    losses.add_if(
        several && (sequence.cursor == Cursor::PerTarget || sequence.worker_step > 0),
        "where workers begin",
    );
    losses.add_if(
        pattern.random() < 100.0 && (sequence.stride.is_some() || sequence.at_end == AtEnd::Stop),
        "a stride, or an end at the end of the span",
    );
    losses.add_if(
        pattern.span.worker_step != Extent::Bytes(0) && group.worker_count() > 1,
        "a span for each worker",
    );
    let sectors = |extent: Extent| matches!(extent, Extent::Bytes(bytes) if bytes % 512 == 0);
    let fits = sectors(pattern.span.offset) && pattern.span.length.is_none_or(sectors);
    losses.add_if(!fits, "a span that is no whole number of sectors");
    let sized = group
        .targets
        .iter()
        .filter_map(|index| plan.targets.get(*index))
        .any(|target| target.size.is_some() && !crate::fio::is_device(&target.name));
    losses.add_if(sized, "the size of files");
    let data = &group.data;
    losses.add_if(
        writes && (data.compressible > 0.0 || data.duplicates > 0.0),
        "compressible or repeated data",
    );
    let known = matches!(data.content, Content::Random | Content::Scrambled)
        || data.content == Content::Pattern(vec![0x5a]);
    losses.add_if(writes && !known, "the kind of data: one byte is repeated");
    let shared = matches!((group.workers, group.depth), (Workers::Together(_), Depth::PerWorker(_)))
        && group.targets.len() > 1;
    losses.add_if(shared, "outstanding I/Os over all targets: Iometer's are of each target");
}

fn managers(text: &mut String, plan: &Plan, workers: &[Worker<'_>], specs: &[(String, String)]) {
    let mut names: Vec<Option<&str>> = Vec::new();
    for worker in workers {
        if !names.contains(&worker.vm) {
            names.push(worker.vm);
        }
    }
    let stages = workers.iter().map(|worker| worker.specs.len()).max().unwrap_or(0);
    for (index, name) in names.iter().enumerate() {
        let _ = writeln!(
            text,
            "'Manager ID, manager name\n\t{},{}\n'Manager network address\n\t",
            index + 1,
            name.unwrap_or("HOST")
        );
        for worker in workers.iter().filter(|worker| worker.vm == *name) {
            self::worker(text, plan, worker, specs, stages);
        }
        text.push_str("'End manager\n");
    }
}

fn worker(text: &mut String, plan: &Plan, worker: &Worker<'_>, specs: &[(String, String)], stages: usize) {
    let (Depth::PerTarget(depth) | Depth::PerWorker(depth)) = worker.group.depth;
    let (fixed, seed) = match plan.seed {
        Seed::Fixed(seed) => ("ENABLED", seed),
        Seed::Fresh => ("DISABLED", 0),
    };
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes / 512,
        Extent::Percent(_) => 0,
    };
    let span = &worker.group.pattern.span;
    let data = match worker.group.data.content {
        Content::Random => 2,
        Content::Scrambled => 1,
        Content::Zeroes | Content::Pattern(_) | Content::Counting | Content::Window(_) => 0,
    };
    let _ = write!(
        text,
        "'Worker\n\t{}\n'Worker type\n\tDISK\n'Default target settings for worker\n\
         'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value\n\
         \t{depth},DISABLED,1,{fixed},{seed}\n'Disk maximum size,starting sector,Data pattern\n\t{},{},{data}\n\
         'End default target settings for worker\n'Assigned access specs\n",
        worker.name,
        span.length.map_or(0, bytes),
        bytes(span.offset),
    );
    for stage in 0..stages {
        let name = match worker.specs.get(stage).copied().flatten() {
            Some(index) => specs[index].0.as_str(),
            None => "Idle",
        };
        let _ = writeln!(text, "\t{name}");
    }
    text.push_str("'End assigned access specs\n'Target assignments\n");
    for target in worker.targets.iter().filter_map(|index| plan.targets.get(*index)) {
        let _ = writeln!(text, "'Target\n\t{}\n'Target type\n\tDISK\n'End target", target.name);
    }
    text.push_str("'End target assignments\n'End worker\n");
}
