//! Time spans as stages.

use super::settings::{Access, Buffer, Span, Target, Throughput};
use crate::builder::{self, Builder};
use crate::findings::{Findings, refused, unsupported};
use plan::{
    Arrivals, AtEnd, Caching, Content, Cursor, Data, Depth, Distribution, Extent, Group, Length, Line, Loop,
    NoteKind, Pace, Pattern, PauseStart, Plan, Rate, RateOf, RatePer, Reuse, Sequence, Size, Stage, Think,
    Timing, Workers, WriteThrough, Zone,
};
use std::time::Duration;

/// What DiskSPD refuses of a time span as a whole.
pub(crate) fn check(span: &Span, findings: &mut Findings) {
    for target in &span.targets {
        let end = target.stop.or(target.length.map(|length| target.base.saturating_add(length)));
        if end.is_some_and(|end| end <= target.base) {
            findings.fault(refused(
                &target.place,
                format!("the span of {} ends at or before its start {}", target.path, target.base),
                "DiskSPD requires an end above the base offset",
                "write a larger -f, or a smaller -B",
            ));
        }
        if target.stop.is_some() && target.length.is_some() {
            findings.fault(refused(
                &target.place,
                "-f and the length of -B both set the end of the span",
                "DiskSPD rejects both together",
                "remove one of them",
            ));
        }
        let threads = span.threads.unwrap_or(target.threads);
        if threads > 1 && target.access == Access::Sequential && target.thread_stride == 0 {
            let text = "several threads access the same blocks in sequence: DiskSPD warns that the pattern is not sequential; \
                        add -si or -T";
            findings.note(NoteKind::Trap, &target.place, "-t", text);
        }
        if target.writes > 0 && target.buffer == Buffer::Counting {
            let text =
                "writes repeat the bytes 0 to 255, which compress to almost nothing; -Zr writes random bytes";
            findings.note(NoteKind::Default, &target.place, "-Z", text);
        }
        if target.cache.direct != Some(true) {
            let text =
                "I/Os use the page cache, so the run measures memory too; add -Sh or -Su for direct I/O";
            findings.note(NoteKind::Default, &target.place, "-S", text);
        }
    }
}

/// Zones with one more for what is left of the I/Os, over what is left of the target.
pub(crate) fn closed(mut zones: Vec<Zone>) -> Result<Vec<Zone>, &'static str> {
    let ios: f64 = zones.iter().map(|zone| zone.ios).sum();
    let percent: f64 = (zones.iter())
        .map(|zone| if let Extent::Percent(percent) = zone.length { percent } else { 0.0 })
        .sum();
    if ios > 100.0 || percent > 100.0 {
        return Err("DiskSPD rejects a distribution that exceeds 100 %");
    }
    if ios < 100.0 {
        if percent >= 100.0 {
            return Err("DiskSPD finds no part of the target for the rest of the I/Os");
        }
        let absolute = zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_)));
        // A zone ends with the span, so a last one of 100 % is all that is left.
        let length = Extent::Percent(if absolute { 100.0 } else { 100.0 - percent });
        zones.push(Zone { ios: 100.0 - ios, length });
    }
    Ok(zones)
}

/// The plan of these time spans.
pub(crate) fn plan(spans: &[Span], findings: &mut Findings) -> Plan {
    let mut builder = Builder::default();
    builder.seed(spans.iter().map(|span| (span.seed, &span.place)), "time spans", "-z", findings);
    for (number, span) in spans.iter().enumerate() {
        let count = span.targets.len();
        let added = builder.room(1, count, count, &span.place).and_then(|()| {
            let groups = groups(span, &mut builder, findings);
            builder.stage(Stage::new(format!("span {}", number + 1), groups), &span.place)
        });
        if findings.take(added).is_none() {
            break;
        }
    }
    builder.plan
}

/// The groups of a time span: targets of the same settings are one.
fn groups(span: &Span, builder: &mut Builder, findings: &mut Findings) -> Vec<Group> {
    let mut members: Vec<(&Target, Group)> = Vec::new();
    for target in &span.targets {
        let index = builder.target(None, &target.path, target.create);
        match members.last_mut().filter(|(last, _)| alike(last, target)) {
            Some((_, last)) => last.targets.push(index),
            None => members.push((target, group(span, target, index, findings))),
        }
    }
    if members.len() > 1 {
        shared(span, findings);
    }
    members.into_iter().map(|(_, group)| group).collect()
}

/// Threads and depths over targets that differ cannot be said.
fn shared(span: &Span, findings: &mut Findings) {
    if span.depth.is_some() {
        findings.fault(unsupported(
            &span.place,
            "threads share their outstanding I/Os over targets with different settings",
            "write RequestCount in each target, or the same settings in all targets",
        ));
    } else if span.threads.is_some() {
        let text = "threads over all targets become threads of each kind of target: a slow target does not delay the others";
        findings.note(NoteKind::Changed, &span.place, "ThreadCount", text);
    }
}

/// Whether two targets differ in nothing but where they are.
fn alike(one: &Target, other: &Target) -> bool {
    Target { path: one.path.clone(), place: one.place.clone(), create: one.create, ..other.clone() } == *one
}

fn group(span: &Span, target: &Target, index: usize, findings: &mut Findings) -> Group {
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let timing = Timing {
        delay: Duration::ZERO,
        ramp: Duration::from_secs(span.warmup),
        length: Length::Time(Duration::from_secs(span.duration)),
        cooldown: Duration::from_secs(span.cooldown),
    };
    let write_through = if target.cache.write_through { WriteThrough::Data } else { WriteThrough::No };
    let caching = Caching { direct: target.cache.direct.unwrap_or(false), write_through, flush: None };
    let mut group = builder::group(&target.path, vec![index], pattern(target), timing, caching);
    group.workers = match span.threads {
        Some(threads) => Workers::Together(small(threads)),
        None => Workers::PerTarget(small(target.threads)),
    };
    group.depth = match span.depth {
        Some(depth) => Depth::PerWorker(small(depth)),
        None => Depth::PerTarget(small(target.depth)),
    };
    group.rates = rate(target, findings).into_iter().collect();
    let content = match target.buffer {
        Buffer::Counting => Content::Counting,
        Buffer::Zeroes => Content::Zeroes,
        Buffer::Random => Content::Random,
        Buffer::Window(bytes) => Content::Window(bytes),
    };
    group.data = Data { content, ..Data::default() };
    group
}

fn rate(target: &Target, findings: &mut Findings) -> Option<Rate> {
    let pace = match target.throughput? {
        Throughput::BytesPerMillisecond(bytes) => Pace::Bytes(bytes as f64 * 1000.0),
        Throughput::Iops(iops) => {
            let rounded = iops.saturating_mul(target.block) / 1000 * 1000 / target.block;
            if rounded != iops {
                let text = format!(
                    "DiskSPD rounds the rate to whole bytes per millisecond, about {rounded} IOPS; the lab keeps {iops} IOPS"
                );
                findings.note(NoteKind::Changed, &target.place, "-g", text);
            }
            Pace::Iops(iops as f64)
        }
    };
    Some(Rate {
        pace,
        per: RatePer::WorkerAndTarget,
        of: RateOf::All,
        arrivals: Arrivals::Even,
        clock: Loop::Closed,
    })
}

fn pattern(target: &Target) -> Pattern {
    let random = match target.access {
        Access::Random(percent) => percent as f64,
        Access::Sequential | Access::Interlocked => 0.0,
    };
    let mut pattern = Pattern::simple(target.block, 100.0 - target.writes as f64, random);
    let think = target.burst.zip(target.think_ms).map(|(burst, pause)| Think {
        after: u32::try_from(burst).unwrap_or(u32::MAX),
        pause: Duration::from_millis(pause),
        spin: false,
        start: PauseStart::Issued,
    });
    let step = target.step.filter(|&step| step != target.block && step > 0);
    let line: &mut Line = &mut pattern.lines[0];
    line.size = Size::Fixed(target.block);
    line.think = think;
    let random_access = matches!(target.access, Access::Random(_));
    line.align = step.filter(|_| random_access);
    pattern.reuse = Reuse::Draws;
    pattern.sequence = Sequence {
        cursor: if target.access == Access::Interlocked { Cursor::PerTarget } else { Cursor::PerWorker },
        stride: step.filter(|_| !random_access).and_then(|step| i64::try_from(step).ok()),
        worker_step: target.thread_stride,
        at_end: AtEnd::Wrap,
    };
    pattern.span.offset = Extent::Bytes(target.base);
    let length = target.length.or(target.stop.map(|stop| stop.saturating_sub(target.base)));
    pattern.span.length = length.map(Extent::Bytes);
    if !target.zones.is_empty() {
        pattern.distribution = Distribution::Zoned(target.zones.clone());
    }
    pattern
}
