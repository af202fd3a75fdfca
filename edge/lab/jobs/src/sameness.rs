//! Whether two plans do the same work, however they are grouped and named.
//!
//! Plans are the same when their stages, one after another, have the same workers: each with the same targets, outstanding
//! I/Os, kinds of I/O, places, rates, data, caching and times. Left out are names, notes, and what has no effect:
//! the alignment of sequential I/Os, data where nothing is written, a shared position of one worker, the depth of blocking
//! calls, whether one or all ready I/Os are handed over with a call, the size of a device. A stage that is repeated is so many
//! stages, a pause is a delay of all its workers, and a span without a length ends with its file.

use crate::fio::is_device;
use crate::mix::{Operation, parts};
use plan::{
    Cursor, Depth, Distribution, Engine, Extent, Group, Length, Pace, Plan, Rate, RateOf, RatePer, Reuse,
    Stage, Workers,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most workers of a group that are compared one by one; larger groups are compared as a whole.
const WORKERS_MAX: u64 = 4096;

/// Whether two plans do the same work.
pub fn same_work(one: &Plan, other: &Plan) -> bool {
    difference(one, other).is_none()
}

/// The first thing in which two plans differ, in words for developers; none where they do the same work.
pub fn difference(one: &Plan, other: &Plan) -> Option<String> {
    if one.seed != other.seed {
        return Some(format!("seed {:?} and {:?}", one.seed, other.seed));
    }
    let (first, second) = (stages(one), stages(other));
    for (index, (left, right)) in first.iter().zip(&second).enumerate() {
        if left == right {
            continue;
        }
        let mut text = format!("stage {}:", index + 1);
        for (worker, count) in left.iter().filter(|(worker, count)| right.get(*worker) != Some(count)) {
            let _ = write!(text, " [{count} of {worker}]");
        }
        text.push_str(" and");
        for (worker, count) in right.iter().filter(|(worker, count)| left.get(*worker) != Some(count)) {
            let _ = write!(text, " [{count} of {worker}]");
        }
        return Some(text);
    }
    (first.len() != second.len()).then(|| format!("{} stages and {}", first.len(), second.len()))
}

type Workforce = BTreeMap<String, u64>;

/// What each stage is made of, and how often.
fn stages(plan: &Plan) -> Vec<Workforce> {
    let mut starts = Vec::new();
    let mut count = 0usize;
    for stage in &plan.stages {
        starts.push(count);
        count += stage.repeats as usize;
    }
    let mut all = Vec::new();
    for stage in &plan.stages {
        let mut force = Workforce::new();
        let own = format!(
            "stage ends {:?} bytes {:?} steady {:?} search {:?}",
            stage.ends, stage.bytes_max, stage.steady, stage.search
        );
        force.insert(own, 1);
        for group in &stage.groups {
            for (worker, count) in workers(plan, stage, group, &starts) {
                *force.entry(worker).or_default() += count;
            }
        }
        all.extend((0..stage.repeats.min(10_000)).map(|_| force.clone()));
    }
    all
}

/// The workers of a group in words, with how many there are of each.
fn workers(plan: &Plan, stage: &Stage, group: &Group, starts: &[usize]) -> Vec<(String, u64)> {
    let common = common(stage, group, starts);
    let shared = group.worker_count() > WORKERS_MAX
        || group.share.is_some()
        || (group.rates.iter().any(|rate| rate.per == RatePer::Group) && group.worker_count() > 1);
    if shared {
        let places = place(plan, group, &group.targets, 0);
        return vec![(format!("{:?} {common} {places}", group.workers), 1)];
    }
    let mut found = Vec::new();
    match group.workers {
        Workers::Together(count) => {
            found.extend((0..count).map(|worker| (place(plan, group, &group.targets, worker), 1)));
        }
        Workers::PerTarget(count) => {
            for (index, target) in group.targets.iter().enumerate() {
                let first = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(count);
                found.extend((0..count).map(|worker| (place(plan, group, &[*target], first + worker), 1)));
            }
        }
    }
    found.into_iter().map(|(place, count)| (format!("{common} {place}"), count)).collect()
}

/// What all workers of a group have in common.
fn common(stage: &Stage, group: &Group, starts: &[usize]) -> String {
    let pattern = &group.pattern;
    let parts = parts(pattern);
    let (random, sequential) =
        (parts.iter().any(|part| part.random > 0.0), parts.iter().any(|part| part.random < 100.0));
    let writes = parts.iter().any(|part| part.operation == Operation::Write);
    let mut kinds: Vec<String> = (parts.iter())
        .map(|part| {
            format!(
                "{:?} {:?} {:?} {:?} {} {}",
                part.operation,
                part.size,
                part.align,
                part.think,
                rounded(part.weight),
                rounded(part.random)
            )
        })
        .collect();
    kinds.sort();
    let mut text = format!("vm {:?} {kinds:?} hits {:?}", group.vm, pattern.hits);
    if random {
        let reuse = match pattern.distribution {
            Distribution::Uniform => pattern.reuse,
            _ => Reuse::Draws,
        };
        let _ = write!(text, " {:?} {reuse:?} follow {}", pattern.distribution, pattern.follow);
    }
    if sequential || pattern.follow > 0 {
        let alone = group.worker_count() == 1 || matches!(group.workers, Workers::PerTarget(1));
        let cursor = if alone { Cursor::PerWorker } else { pattern.sequence.cursor };
        let size = (parts.iter().all(|part| part.size == parts[0].size)).then(|| parts[0].size.max());
        let stride = pattern
            .sequence
            .stride
            .filter(|stride| size.and_then(|size| i64::try_from(size).ok()) != Some(*stride));
        let step = if alone { 0 } else { pattern.sequence.worker_step };
        let _ = write!(text, " {cursor:?} {stride:?} {step} {:?}", pattern.sequence.at_end);
    }
    let mut rates: Vec<String> =
        group.rates.iter().map(|rate| self::rate(rate, group, &parts, starts)).collect();
    rates.sort();
    let _ = write!(text, " {rates:?} share {:?}", group.share.map(rounded));
    if writes {
        let mut data = group.data.clone();
        if data.compressible == 0.0 && data.duplicates == 0.0 {
            data.unit = 4096;
        }
        let _ = write!(text, " {data:?} {:?} {:?}", group.caching.write_through, group.caching.flush);
    }
    let _ = write!(text, " {:?} direct {} {:?}", group.verify, group.caching.direct, group.engine);
    if group.engine != Engine::Blocking {
        let _ = write!(text, " batch {} {}", group.batch.submit.max(1), group.batch.complete);
    }
    let timing = group.timing;
    let length = match timing.length {
        Length::Time(_) | Length::Amount(_) | Length::First { .. } | Length::UntilStopped => timing.length,
    };
    let delay = timing.delay + stage.pause;
    let _ = write!(text, " {delay:?} {:?} {length:?} {:?}", timing.ramp, timing.cooldown);
    text
}

fn rate(rate: &Rate, group: &Group, parts: &[crate::mix::Part], starts: &[usize]) -> String {
    let only = |operation: Operation| parts.iter().all(|part| part.operation == operation);
    let of = match rate.of {
        RateOf::Reads if only(Operation::Read) => RateOf::All,
        RateOf::Writes if only(Operation::Write) => RateOf::All,
        RateOf::Trims if only(Operation::Trim) => RateOf::All,
        of => of,
    };
    let one_target = group.targets.len() == 1 || matches!(group.workers, Workers::PerTarget(_));
    let per = match rate.per {
        RatePer::WorkerAndTarget if one_target => RatePer::Worker,
        RatePer::Group if group.worker_count() == 1 => RatePer::Worker,
        per => per,
    };
    let pace = match rate.pace {
        Pace::Iops(iops) => format!("{} iops", rounded(iops)),
        Pace::Bytes(bytes) => format!("{} bytes", rounded(bytes)),
        Pace::PercentOf { stage, percent } => {
            format!("{} percent of {}", rounded(percent), starts.get(stage).copied().unwrap_or(usize::MAX))
        }
    };
    format!("{pace} {per:?} {of:?} {:?} {:?}", rate.arrivals, rate.clock)
}

/// Where a worker works: its targets with their spans, and how many I/Os it keeps outstanding there.
fn place(plan: &Plan, group: &Group, targets: &[usize], worker: u32) -> String {
    let depth = match (group.engine, group.depth) {
        (Engine::Blocking, _) => "one".to_owned(),
        (_, Depth::PerTarget(depth)) if targets.len() > 1 => format!("{depth} each"),
        (_, Depth::PerTarget(depth) | Depth::PerWorker(depth)) => format!("{depth}"),
    };
    let span = &group.pattern.span;
    let offset = moved(span.offset, span.worker_step, worker);
    let mut text = format!("depth {depth}");
    for target in targets {
        let Some(target) = plan.targets.get(*target) else { continue };
        let size = target.size.filter(|_| !is_device(&target.name));
        // What reaches the end of the file need not say so.
        let open = match (span.offset, span.length) {
            (Extent::Percent(from), Some(Extent::Percent(part))) => from + part >= 100.0,
            (_, Some(Extent::Percent(part))) => part >= 100.0,
            _ => false,
        };
        let length = span.length.filter(|_| !open).or(match (size, span.offset) {
            (Some(size), Extent::Bytes(offset)) => Some(Extent::Bytes(size.saturating_sub(offset))),
            (Some(size), Extent::Percent(_)) => Some(Extent::Bytes(size)),
            (None, _) => None,
        });
        let _ = write!(text, " {} {size:?} {offset} {length:?}", target.name);
    }
    text
}

fn moved(offset: Extent, step: Extent, worker: u32) -> String {
    match (offset, step) {
        (Extent::Bytes(offset), Extent::Bytes(step)) => {
            format!("{}", offset.saturating_add(step.saturating_mul(u64::from(worker))))
        }
        (offset, Extent::Bytes(0)) => format!("{offset:?}"),
        (offset, step) => format!("{offset:?} + {worker} * {step:?}"),
    }
}

/// Six digits: shares are quotients in one dialect and percentages in another.
fn rounded(value: f64) -> String {
    format!("{:.6}", value + 0.0)
}
