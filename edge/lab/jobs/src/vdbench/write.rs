//! A plan as a parameter file: devices, workloads, and a run for each stage.

use crate::export::Losses;
use plan::{
    Amount, Arrivals, AtEnd, Content, Cursor, Depth, Distribution, Engine, Extent, Group, Length, Line, Loop,
    Pace, Plan, RateOf, RatePer, Reuse, Seed, Size, Stage, StageEnd, Workers, WriteThrough,
};
use std::fmt::Write;
use std::time::Duration;

/// Definitions so far, each once.
#[derive(Default)]
struct Definitions {
    sds: Vec<String>,
    wds: Vec<String>,
    rds: Vec<String>,
}

/// Lines of a group that are one workload: their share of the group, and what `xfersize=` says.
struct Class<'a> {
    lines: Vec<&'a Line>,
    weight: f64,
}

/// The parameter file of a plan.
pub(crate) fn write(plan: &Plan, losses: &mut Losses) -> String {
    let mut definitions = Definitions::default();
    losses.add_if(plan.seed != Seed::Fresh, "the same I/Os in every run");
    let mut index = 0;
    while index < plan.stages.len() {
        let stage = &plan.stages[index];
        let points = curve(plan, index);
        for _ in 0..stage.repeats.min(1000) {
            run(plan, stage, &points, &mut definitions, losses);
        }
        index += 1 + points.len();
    }
    let mut text = general(plan, losses);
    for (number, sd) in definitions.sds.iter().enumerate() {
        let _ = writeln!(text, "sd=sd{},{sd}", number + 1);
    }
    for (number, wd) in definitions.wds.iter().enumerate() {
        let _ = writeln!(text, "wd=wd{},{wd}", number + 1);
    }
    for (number, rd) in definitions.rds.iter().enumerate() {
        let _ = writeln!(text, "rd=rd{},{rd}", number + 1);
    }
    text
}

/// The percentages of the stages behind this one that are points of its curve.
fn curve(plan: &Plan, base: usize) -> Vec<f64> {
    let stage = &plan.stages[base];
    let bare = |stage: &Stage| -> Vec<Group> {
        (stage.groups.iter()).map(|group| Group { rates: Vec::new(), share: None, ..group.clone() }).collect()
    };
    if stage.repeats != 1 || stage.groups.iter().any(|group| !group.rates.is_empty()) {
        return Vec::new();
    }
    let mut points = Vec::new();
    for next in &plan.stages[base + 1..] {
        let of_base = next.groups.iter().map(|group| match group.rates.as_slice() {
            [rate] => match rate.pace {
                Pace::PercentOf { stage, percent } if stage == base => Some(percent),
                _ => None,
            },
            _ => None,
        });
        let alike = next.repeats == 1
            && (next.pause, next.bytes_max, next.ends) == (stage.pause, stage.bytes_max, stage.ends)
            && bare(next) == bare(stage);
        match of_base.sum::<Option<f64>>().filter(|_| alike) {
            Some(percent) => points.push((percent * 1e6).round() / 1e6),
            None => break,
        }
    }
    points
}

fn general(plan: &Plan, losses: &mut Losses) -> String {
    let mut text = String::new();
    losses.at = "plan".into();
    let writing: Vec<&Group> =
        plan.stages.iter().flat_map(|stage| &stage.groups).filter(|group| group.pattern.writes()).collect();
    let Some(first) = writing.first() else { return text };
    let data = &first.data;
    losses.add_if(
        writing.iter().any(|group| group.data != *data),
        "data of some groups alone: all have that of the first",
    );
    losses.add_if(data.content != Content::Random, "the kind of data: random bytes are written");
    let ratio = |percent: f64| 100.0 / (100.0 - percent.min(99.9999));
    if data.compressible > 0.0 {
        let _ = writeln!(text, "compratio={}", ratio(data.compressible));
    }
    if data.duplicates > 0.0 {
        let _ = writeln!(text, "dedupratio={},dedupunit={}", ratio(data.duplicates), data.unit);
    }
    text
}

fn run(plan: &Plan, stage: &Stage, points: &[f64], definitions: &mut Definitions, losses: &mut Losses) {
    losses.at = format!("stage {}", stage.name);
    let Some(first) = stage.groups.first() else { return };
    let mut names = Vec::new();
    let rates = rates(stage, points, losses);
    let total: f64 = rates.iter().flatten().sum();
    let rated = stage.groups.len() > 1 && rates.iter().all(Option::is_some);
    let shares: Vec<Option<f64>> = (stage.groups.iter().zip(&rates))
        .map(|(group, rate)| match rate {
            Some(rate) if rated => Some(rate / total * 100.0),
            _ => group.share,
        })
        .collect();
    for (group, share) in stage.groups.iter().zip(&shares) {
        losses.at = format!("stage {}, group {}", stage.name, group.name);
        check(stage, group, losses);
        let sds = devices(plan, group, definitions, losses);
        let classes = classes(group);
        for class in &classes {
            let whole = share.unwrap_or(100.0 / stage.groups.len() as f64);
            let skew = (classes.len() > 1 || share.is_some()).then_some(whole * class.weight);
            let text = workload(group, class, &sds, skew, losses);
            names.push(format!("wd{}", once(&mut definitions.wds, text)));
        }
    }
    losses.at = format!("stage {}", stage.name);
    losses
        .add_if(stage.groups.iter().any(|group| group.timing != first.timing), "times of some groups alone");
    let rate = match (points.is_empty(), total) {
        (false, _) => {
            let points: Vec<String> = points.iter().map(f64::to_string).collect();
            format!("curve,curve=({})", points.join(","))
        }
        (true, total) if total > 0.0 => {
            losses.add_if(crate::mix::whole(total).is_none(), "parts of an I/O per second");
            format!("{}", total.round().max(1.0) as u64)
        }
        (true, _) => "max".to_owned(),
    };
    let mut text = format!("wd=({}),iorate={rate}", names.join(","));
    if names.len() == 1 {
        text = format!("wd={},iorate={rate}", names[0]);
    }
    times(&mut text, first, losses);
    if !stage.pause.is_zero() {
        losses.add_if(stage.pause.subsec_nanos() > 0, "parts of a second");
        let _ = write!(text, ",pause={}", stage.pause.as_secs());
    }
    if let Some(bytes) = stage.bytes_max {
        let _ = write!(text, ",maxdata={bytes}");
    }
    let even = stage.groups.iter().flat_map(|group| &group.rates).any(|rate| rate.arrivals == Arrivals::Even);
    if even {
        text.push_str(",distribution=deterministic");
    }
    definitions.rds.push(text);
}

/// The number of a definition of this text: an earlier one, or a new one.
fn once(definitions: &mut Vec<String>, text: String) -> usize {
    match definitions.iter().position(|known| *known == text) {
        Some(index) => index + 1,
        None => {
            definitions.push(text);
            definitions.len()
        }
    }
}

/// The rate of each group, in I/Os per second.
fn rates(stage: &Stage, points: &[f64], losses: &mut Losses) -> Vec<Option<f64>> {
    let several = stage.groups.iter().filter(|group| !group.rates.is_empty()).count();
    losses.add_if(several > 0 && several < stage.groups.len(), "rates of some groups alone");
    let mut arrivals = None;
    (stage.groups.iter())
        .map(|group| {
            losses.add_if(group.rates.len() > 1, "several rates of a group");
            let rate = group.rates.first()?;
            let of_group =
                rate.per == RatePer::Group || (group.worker_count() == 1 && group.targets.len() == 1);
            losses.add_if(!of_group, "a rate of each worker");
            let mixed = !matches!(group.pattern.reads(), 0.0 | 100.0);
            losses.add_if(rate.of != RateOf::All && mixed, "a rate of reads or writes alone");
            losses.add_if(rate.clock == Loop::Open, "latency from when an I/O was meant to begin");
            let first = *arrivals.get_or_insert(rate.arrivals);
            losses.add_if(first != rate.arrivals, "rates of several kinds of arrivals");
            match rate.pace {
                Pace::Iops(iops) => Some(iops),
                Pace::Bytes(_) => {
                    losses.add("a rate in bytes");
                    None
                }
                Pace::PercentOf { .. } => {
                    losses
                        .add_if(points.is_empty(), "a rate in percent of a stage that is not the one before");
                    None
                }
            }
        })
        .collect()
}

fn check(stage: &Stage, group: &Group, losses: &mut Losses) {
    let pattern = &group.pattern;
    let (random, sequential) = (pattern.random() > 0.0, pattern.random() < 100.0);
    losses.add_if(pattern.trims() > 0.0, "trims become writes");
    losses.add_if(
        random && pattern.distribution != Distribution::Uniform,
        "the distribution: I/Os go everywhere alike",
    );
    losses.add_if(
        random && pattern.reuse == Reuse::EachBlockOnce,
        "each block once: Vdbench draws each I/O alone",
    );
    losses.add_if(pattern.follow > 0, "sequences behind each random I/O");
    losses.add_if(sequential && pattern.sequence.stride.is_some(), "a stride");
    let several = group.worker_count() > 1 && sequential && !matches!(group.workers, Workers::PerTarget(1));
    losses.add_if(
        several && pattern.sequence.cursor == Cursor::PerWorker,
        "a position of each worker: all share one",
    );
    losses.add_if(several && pattern.sequence.worker_step > 0, "distances between the starts of workers");
    losses.add_if(
        pattern.span.worker_step != Extent::Bytes(0) && group.worker_count() > 1,
        "a span for each worker",
    );
    losses.add_if(pattern.lines.iter().any(|line| line.think.is_some()), "pauses");
    losses.add_if(group.verify.is_some(), "verification");
    losses.add_if(group.vm.is_some(), "virtual machines");
    losses.add_if(group.engine != Engine::IoUring, "how I/Os are handed to the kernel");
    losses.add_if(group.batch.complete > 1 || group.batch.submit > 1, "batches");
    losses.add_if(!group.timing.cooldown.is_zero(), "a cool-down");
    losses.add_if(!group.timing.delay.is_zero(), "a start that is later than that of others");
    losses.add_if(stage.ends == StageEnd::First, "an end with the first group");
    losses
        .add_if(stage.steady.is_some() || stage.search.is_some(), "an end that depends on what is measured");
    let flush = group.caching.flush;
    losses.add_if(flush.is_some_and(|flush| flush.every > 0 || flush.data_only), "flushes between writes");
}

/// The storage definitions of a group.
fn devices(plan: &Plan, group: &Group, definitions: &mut Definitions, losses: &mut Losses) -> Vec<String> {
    let (Workers::PerTarget(workers) | Workers::Together(workers)) = group.workers;
    let (Depth::PerTarget(depth) | Depth::PerWorker(depth)) = group.depth;
    let shared = matches!((group.workers, group.depth), (Workers::Together(_), Depth::PerWorker(_)));
    losses.add_if(
        shared && group.targets.len() > 1,
        "outstanding I/Os over all targets: Vdbench's are of each device",
    );
    losses.add_if(workers > 1, "several workers of a device: their outstanding I/Os are those of one");
    let sizes =
        || group.targets.iter().filter_map(|index| plan.targets.get(*index)).map(|target| target.size);
    losses.add_if(
        !group.rates.is_empty() && sizes().any(|size| Some(size) != sizes().next()),
        "a rate of devices of several sizes together: each has its part of it",
    );
    let threads = u64::from(workers).saturating_mul(u64::from(depth)).min(1 << 20);
    let mut names = Vec::new();
    for target in group.targets.iter().filter_map(|index| plan.targets.get(*index)) {
        let quoted = target.name.contains([' ', ',', '=', '-', '(', ')']);
        let lun = if quoted { format!("\"{}\"", target.name) } else { target.name.clone() };
        let mut text = format!("lun={lun},threads={threads}");
        let size = target.size.filter(|_| !crate::fio::is_device(&target.name));
        if let Some(size) = size {
            let _ = write!(text, ",size={size}");
        }
        area(&mut text, group, size, losses);
        let mut flags = Vec::new();
        flags.extend(group.caching.direct.then_some("o_direct"));
        match group.caching.write_through {
            WriteThrough::No => {}
            WriteThrough::Data => flags.push("o_dsync"),
            WriteThrough::All => flags.push("o_sync"),
        }
        flags.extend(group.caching.flush.map(|_| "fsync"));
        match flags.as_slice() {
            [] => {}
            [one] => text += &format!(",openflags={one}"),
            several => text += &format!(",openflags=({})", several.join(",")),
        }
        if let Some(hits) = group.pattern.hits {
            let _ = write!(text, ",hitarea={}", hits.bytes);
        }
        let aligns: Vec<Option<u64>> = group.pattern.lines.iter().map(|line| line.align).collect();
        losses.add_if(aligns.iter().any(|align| *align != aligns[0]), "alignments of some lines alone");
        if let Some(align) = aligns.first().copied().flatten() {
            let _ = write!(text, ",align={align}");
        }
        names.push(format!("sd{}", once(&mut definitions.sds, text)));
    }
    names
}

/// `range=`, `offset=` or `size=` of a span.
fn area(text: &mut String, group: &Group, size: Option<u64>, losses: &mut Losses) {
    let span = &group.pattern.span;
    let _ = match (span.offset, span.length, size) {
        (Extent::Bytes(0), None, _) => Ok(()),
        (Extent::Bytes(0), Some(Extent::Bytes(length)), Some(size)) if length == size => Ok(()),
        (Extent::Bytes(low), Some(Extent::Bytes(length)), _) => {
            write!(text, ",range=({low},{})", low.saturating_add(length))
        }
        (Extent::Bytes(low), None, Some(size)) => write!(text, ",range=({low},{size})"),
        (Extent::Bytes(low), None, None) => write!(text, ",offset={low}"),
        (Extent::Percent(low), length, _) => {
            let high = match length {
                Some(Extent::Percent(length)) => low + length,
                None => 100.0,
                Some(Extent::Bytes(_)) => {
                    losses.add("a span of bytes from a percentage on");
                    100.0
                }
            };
            write!(text, ",range=({low},{high})")
        }
        (Extent::Bytes(low), Some(Extent::Percent(length)), _) => {
            losses.add_if(low > 0, "a percentage of the device from a byte on");
            write!(text, ",range=(0,{length})")
        }
    };
}

/// Lines of the same reads and random share: each is a workload.
fn classes(group: &Group) -> Vec<Class<'_>> {
    let total: f64 = group.pattern.lines.iter().map(|line| line.weight).sum();
    let mut classes: Vec<Class<'_>> = Vec::new();
    for line in group.pattern.lines.iter().filter(|line| line.weight > 0.0) {
        let fixed = |line: &Line| matches!(line.size, Size::Fixed(_));
        let found = classes.iter_mut().find(|class| {
            let first = class.lines[0];
            first.reads == line.reads && first.random == line.random && fixed(first) && fixed(line)
        });
        match found {
            Some(class) => {
                class.lines.push(line);
                class.weight += line.weight / total;
            }
            None => classes.push(Class { lines: vec![line], weight: line.weight / total }),
        }
    }
    classes
}

fn workload(
    group: &Group,
    class: &Class<'_>,
    sds: &[String],
    skew: Option<f64>,
    losses: &mut Losses,
) -> String {
    let first = class.lines[0];
    let size = match (class.lines.as_slice(), first.size) {
        ([_], Size::Fixed(size)) => size.to_string(),
        ([_], Size::Range { min, max, step }) => format!("({min},{max},{step})"),
        (several, _) => {
            let total: f64 = several.iter().map(|line| line.weight).sum();
            let pairs: Vec<String> = several
                .iter()
                .map(|line| format!("{},{}", line.size.max(), line.weight / total * 100.0))
                .collect();
            format!("({})", pairs.join(","))
        }
    };
    losses.add_if(
        class.lines.iter().any(|line| line.size.min() % 512 != 0),
        "sizes that are no whole number of sectors",
    );
    let stops = group.pattern.sequence.at_end == AtEnd::Stop;
    losses.add_if(stops && first.random > 0.0, "an end at the end of the span");
    let seek = if stops && first.random == 0.0 { "eof".to_owned() } else { first.random.to_string() };
    let sds = if sds.len() == 1 { sds[0].clone() } else { format!("({})", sds.join(",")) };
    let mut text = format!("sd={sds},xfersize={size},rdpct={},seekpct={seek}", first.reads);
    if let Some(hits) = group.pattern.hits {
        let _ = write!(text, ",rhpct={},whpct={}", hits.reads, hits.writes);
    }
    if let Some(skew) = skew {
        let _ = write!(text, ",skew={skew}");
    }
    text
}

fn times(text: &mut String, group: &Group, losses: &mut Losses) {
    let stops = group.pattern.sequence.at_end == AtEnd::Stop && group.pattern.random() == 0.0;
    let time = match group.timing.length {
        Length::Time(time) => time,
        Length::First { time, amount: Amount::Passes(1.0) } if stops => time,
        Length::First { time, .. } => {
            losses.add("an end after an amount");
            time
        }
        Length::Amount(_) | Length::UntilStopped => {
            losses.add("an end that is no time: the run takes 60 s");
            Duration::from_secs(60)
        }
    };
    let ramp = group.timing.ramp;
    losses.add_if(
        ramp.is_zero(),
        "a run that counts from its first second: Vdbench leaves out the first interval",
    );
    losses.add_if(time.subsec_nanos() + ramp.subsec_nanos() > 0, "parts of a second");
    losses.add_if(time.as_secs() < 2, "a run of less than two intervals");
    let elapsed = time.as_secs().max(2);
    let _ = write!(text, ",elapsed={elapsed},interval=1");
    if !ramp.is_zero() {
        let _ = write!(text, ",warmup={}", ramp.as_secs().max(1));
    }
}
