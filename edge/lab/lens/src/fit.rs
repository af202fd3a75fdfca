//! A job like a trace: what the generator has to do so that its I/O looks as the trace's does.
//!
//! A plan has sizes, shares, streams, zones, a rate or a depth, and pauses. What it cannot have (how one I/O depends on another,
//! how the mix changes over time) is lost, and told.

use std::time::Duration;

use plan::{
    Arrivals, Distribution, Extent, Group, Line, Loop, Pace, Pattern, Plan, Rate, RateOf, RatePer, Seed,
    Size, Span, Stage, Target, Think, Timing, Zone,
};
use serde::Serialize;
use statistics::words;

use crate::analysis::{Analyzed, Profile, SizeShare, ZONES};
use crate::event::Action;

/// Lines of a pattern: the most frequent sizes.
const LINES_MAX: usize = 16;
/// Larger I/Os are left out, for no plan may have them.
const IO_SIZE_MAX: u64 = 1 << 30;
/// Zones whose densities differ by less than this (by their mean) are even.
const EVEN: f64 = 0.15;
/// A zone with so many times its share is more than a few hot blocks.
const ZONE_FACTOR: f64 = 2.5;
/// A skew below this is none.
const ZIPF_MIN: f64 = 0.2;
/// Outstanding I/Os that vary less than this belong to a closed loop.
const CLOSED_MAX: f64 = 0.25;
/// Times between I/Os that vary less than this are even.
const REGULAR_MAX: f64 = 0.35;
/// Depth of a group that has a rate: enough that the rate is what limits.
const DEPTH_MAX: u32 = 1_024;
/// Streams that become workers.
const STREAMS_MAX: f64 = 32.0;

/// A job made of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fitted {
    /// One stage with one group for each disk.
    pub plan: Plan,
    /// What the plan leaves out or takes to be otherwise, as sentences.
    pub notes: Vec<String>,
}

/// Turns what a trace is like into a plan that runs for `seconds` (at least 1). Disks without I/O are left out.
pub fn fit(analyzed: &Analyzed, name: &str, seconds: u64) -> Fitted {
    let (mut targets, mut groups, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for profile in analyzed.disks.iter().filter(|profile| profile.ios > 0) {
        let size = profile.working_set.span.and_then(|(_, to)| to.checked_next_multiple_of(1 << 20));
        targets.push(Target { size, ..Target::named(&profile.name) });
        groups.push(group(profile, targets.len() - 1, seconds.max(1), &mut notes));
    }
    if analyzed.beyond > 0 {
        notes.push(format!(
            "{} left out: their disks are beyond the limit of disks that are analysed.",
            words::counted(analyzed.beyond, "I/O")
        ));
    }
    let stages = if groups.is_empty() { Vec::new() } else { vec![Stage::new(name, groups)] };
    let plan = Plan { name: name.to_owned(), targets, stages, seed: Seed::Fixed(1), notes: Vec::new() };
    Fitted { plan, notes }
}

fn group(profile: &Profile, target: usize, seconds: u64, notes: &mut Vec<String>) -> Group {
    let streams = profile.sequentiality.streams.round().clamp(1.0, STREAMS_MAX) as u32;
    let workers = if profile.sequentiality.in_streams > 0.1 { streams } else { 1 };
    let pattern = pattern(profile, workers, notes);
    let timing = Timing::seconds(seconds);
    let mut group = Group::new(profile.name.clone(), target, 1, pattern, timing);
    group.workers = plan::Workers::PerTarget(workers);
    let depth = pace(profile, &mut group, notes);
    group.depth = plan::Depth::PerTarget(depth.div_ceil(workers));
    if profile.mix.trims + profile.mix.flushes > 0 {
        let (trims, flushes) = (profile.mix.trims, profile.mix.flushes);
        notes.push(format!(
            "{}: {} and {flushes} flushes are left out.",
            profile.name,
            words::counted(trims, "trim")
        ));
    }
    group
}

/// Sets rates and pauses, and returns how many I/Os may be outstanding.
fn pace(profile: &Profile, group: &mut Group, notes: &mut Vec<String>) -> u32 {
    let burstiness = &profile.burstiness;
    let most =
        profile.outstanding.map_or(1.0, |outstanding| outstanding.at_arrival.round()).clamp(1.0, 1e6) as u32;
    let closed = profile.outstanding.is_some_and(|outstanding| outstanding.variation < CLOSED_MAX);
    if let Some(bursts) = burstiness.bursts {
        // A worker's line counts its own I/Os alone.
        let workers = f64::from(group_workers(group));
        let weights: f64 = group.pattern.lines.iter().map(|line| line.weight).sum();
        for line in &mut group.pattern.lines {
            let after = bursts.ios * line.weight / weights / workers;
            let pause = Duration::from_secs_f64(bursts.pause_s.clamp(0.0, 3_600.0));
            line.think = Some(Think {
                after: after.round().clamp(1.0, 1e9) as u32,
                pause,
                spin: false,
                start: plan::PauseStart::Issued,
            });
        }
        if group.pattern.lines.len() > 1 || workers > 1.0 {
            notes.push(format!(
                "{}: the job pauses each I/O size and worker by itself; the trace pauses all together.",
                profile.name
            ));
        }
        return most;
    }
    if closed {
        return most;
    }
    if profile.outstanding.is_none() {
        notes.push(format!("{}: the trace has no latencies, so the job has a fixed rate.", profile.name));
    }
    if let Some(interarrival_s) = burstiness.interarrival_s.filter(|seconds| *seconds > 0.0) {
        let variation = burstiness.interarrival_variation.unwrap_or(1.0);
        let arrivals = if variation < REGULAR_MAX { Arrivals::Even } else { Arrivals::Poisson };
        if variation > 1.5 {
            notes.push(format!(
                "{}: the arrivals are burstier (coefficient of variation {variation:.1}) than the random arrivals of the job (1).",
                profile.name
            ));
        }
        group.rates.push(Rate {
            pace: Pace::Iops(1.0 / interarrival_s),
            per: RatePer::Group,
            of: RateOf::All,
            arrivals,
            clock: Loop::Open,
        });
    }
    let peak =
        profile.outstanding.map_or(64, |outstanding| outstanding.most.min(u64::from(DEPTH_MAX)) as u32);
    peak.max(1)
}

fn group_workers(group: &Group) -> u32 {
    u32::try_from(group.worker_count()).unwrap_or(u32::MAX).max(1)
}

fn pattern(profile: &Profile, workers: u32, notes: &mut Vec<String>) -> Pattern {
    let sizes = &profile.mix.sizes;
    let used: Vec<&SizeShare> = sizes.iter().filter(|size| (1..=IO_SIZE_MAX).contains(&size.bytes)).collect();
    let kept = &used[..used.len().min(LINES_MAX)];
    let (all, told): (u64, u64) =
        (used.iter().map(|size| size.count).sum(), kept.iter().map(|size| size.count).sum());
    if told < all {
        let share = words::percent((all - told) as f64 / all as f64);
        notes.push(format!("{}: {share} of the I/Os are left out: their sizes are rare.", profile.name));
    }
    let line = |size: &&SizeShare| {
        let reads = if size.action == Action::Read { 100.0 } else { 0.0 };
        // Each stream begins with a jump, and that is no random I/O.
        let random = size.random.saturating_sub(if size.random * 100 < size.count { size.random } else { 0 });
        let random = random as f64 / size.count as f64 * 100.0;
        let mut line =
            Line::new(size.count as f64 / told as f64 * 100.0, Size::Fixed(size.bytes), reads, random);
        // An I/O of a strange size begins where others of its disk may.
        line.align = (!size.bytes.is_power_of_two()).then_some(alignment(profile));
        line
    };
    let mut lines: Vec<Line> = kept.iter().map(line).collect();
    if lines.is_empty() {
        lines.push(Line::new(1.0, Size::Fixed(4096), 100.0, 100.0));
    }
    let mut pattern = Pattern::simple(4096, 100.0, 100.0);
    pattern.lines = lines;
    let (from, to) = profile.working_set.span.unwrap_or((0, 1 << 20));
    pattern.span = Span {
        offset: Extent::Bytes(from),
        length: Some(Extent::Bytes((to - from).max(1))),
        worker_step: Extent::Bytes(0),
    };
    if workers > 1 {
        // Workers would walk behind one another: each begins in a part of its own.
        pattern.sequence.worker_step = ((to - from) / u64::from(workers)) & !4095;
    }
    pattern.distribution = distribution(profile);
    pattern
}

fn alignment(profile: &Profile) -> u64 {
    if profile.mix.misaligned_4k > 0.01 { 512 } else { 4096 }
}

/// Where random I/Os go: zones where they are uneven, else Zipf's law where blocks are.
fn distribution(profile: &Profile) -> Distribution {
    let zones = &profile.random_zones;
    let total: f64 = zones.iter().sum();
    let mean = total / ZONES as f64;
    // Chance alone makes counts differ by their root.
    let even = |count: &f64| (count - mean).abs() <= EVEN * mean + 3.0 * mean.sqrt();
    // A few hot blocks make their zones stand out a little; that is skew, and no zones.
    let theta = profile.heat.zipf.filter(|theta| *theta >= ZIPF_MIN);
    let pronounced = zones.iter().any(|count| *count > ZONE_FACTOR * mean);
    if total > 0.0 && !zones.iter().all(even) && (pronounced || theta.is_none()) {
        let length = 100.0 / ZONES as f64;
        let mut joined: Vec<(f64, usize)> = Vec::new();
        for &count in zones {
            match joined.last_mut() {
                Some((sum, parts))
                    if (count - *sum / *parts as f64).abs() <= EVEN * mean + 3.0 * mean.sqrt() =>
                {
                    (*sum, *parts) = (*sum + count, *parts + 1);
                }
                _ => joined.push((count, 1)),
            }
        }
        let zone = |(count, parts): (f64, usize)| Zone {
            ios: count / total * 100.0,
            length: Extent::Percent(length * parts as f64),
        };
        return Distribution::Zoned(joined.into_iter().map(zone).collect());
    }
    match theta {
        // 1 itself has no sum that converges, and the generators refuse it.
        Some(theta) => {
            let theta = if (theta - 1.0).abs() < 0.01 { 0.99 } else { theta };
            Distribution::Zipf { theta, center: None }
        }
        None => Distribution::Uniform,
    }
}

#[cfg(test)]
mod tests;
