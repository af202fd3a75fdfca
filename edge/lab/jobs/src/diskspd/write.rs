//! A plan as command lines or an XML profile.

use super::settings::{Access, Buffer, Cache, Target, Throughput};
use crate::export::Losses;
use crate::mix::{Operation, parts, whole};
use plan::{
    Arrivals, AtEnd, Content, Cursor, Depth, Distribution, Engine, Extent, Group, Length, Loop, Pace, Place,
    Plan, RateOf, RatePer, Reuse, Seed, Size, Stage, StageEnd, Think, Workers, WriteThrough,
};
use std::fmt::Write;
use std::time::Duration;

/// A line for each stage.
pub(crate) fn write_commands(plan: &Plan, losses: &mut Losses) -> String {
    let mut text = String::new();
    for stage in &plan.stages {
        losses.at = format!("stage {}", stage.name);
        losses.add_if(
            stage.groups.len() > 1,
            "a command line has one kind of workers: the others are left out; write XML",
        );
        let Some(group) = stage.groups.first() else { continue };
        let (mut target, paths) = settings(plan, stage, group, losses);
        if shares_depth(group) && (target.throughput.is_some() || target.burst.is_some()) {
            losses.add("a rate or pauses of workers that share their I/Os over several targets: DiskSPD refuses them");
            (target.throughput, target.burst, target.think_ms) = (None, None, None);
        }
        let line = command(plan, group, &target, &paths, losses);
        for _ in 0..stage.repeats.min(1000) {
            text.push_str(&line);
        }
    }
    text
}

/// Whether workers keep their I/Os outstanding on all their targets together.
fn shares_depth(group: &Group) -> bool {
    matches!((group.workers, group.depth), (Workers::Together(_), Depth::PerWorker(_)))
        && group.targets.len() > 1
}

fn seconds(duration: Duration, losses: &mut Losses) -> u64 {
    losses.add_if(duration.subsec_nanos() != 0, "parts of a second");
    duration.as_secs()
}

fn length(group: &Group, losses: &mut Losses) -> u64 {
    match group.timing.length {
        Length::Time(time) => seconds(time, losses).max(1),
        Length::First { time, .. } => {
            losses.add("an end after an amount");
            seconds(time, losses).max(1)
        }
        Length::Amount(_) | Length::UntilStopped => {
            losses.add("an end that is no time: the run takes 60 s");
            60
        }
    }
}

fn command(plan: &Plan, group: &Group, target: &Target, paths: &[&str], losses: &mut Losses) -> String {
    let mut line = format!("diskspd -b{} -d{}", target.block, length(group, losses));
    let _ = write!(line, " -W{}", seconds(group.timing.ramp, losses));
    if !group.timing.cooldown.is_zero() {
        let _ = write!(line, " -C{}", seconds(group.timing.cooldown, losses));
    }
    match group.workers {
        Workers::PerTarget(threads) => line += &format!(" -t{threads}"),
        Workers::Together(1) if paths.len() == 1 => {}
        Workers::Together(threads) => line += &format!(" -F{threads}"),
    }
    let (Depth::PerWorker(depth) | Depth::PerTarget(depth)) = group.depth;
    line += &if shares_depth(group) { format!(" -O{depth}") } else { format!(" -o{depth}") };
    line += &access(target);
    if target.thread_stride > 0 {
        line += &format!(" -T{}", target.thread_stride);
    }
    if target.base > 0 || target.length.is_some() {
        let length = target.length.map_or(String::new(), |length| format!(":{length}"));
        line += &format!(" -B{}{length}", target.base);
    }
    line += &format!(" -w{}", target.writes);
    line += match (target.cache.direct, target.cache.write_through) {
        (true, true) => " -Sh",
        (true, false) => " -Su",
        (false, true) => " -Sw",
        (false, false) => "",
    };
    match target.buffer {
        Buffer::Counting => {}
        Buffer::Zeroes => line += " -Z",
        Buffer::Random => line += " -Zr",
        Buffer::Window(bytes) => line += &format!(" -Z{bytes}"),
    }
    match target.throughput {
        Some(Throughput::BytesPerMillisecond(bytes)) => line += &format!(" -g{bytes}"),
        Some(Throughput::Iops(iops)) => line += &format!(" -g{iops}i"),
        None => {}
    }
    if let (Some(burst), Some(pause)) = (target.burst, target.think_ms) {
        line += &format!(" -i{burst} -j{pause}");
    }
    line += &zones(target);
    match plan.seed {
        Seed::Fixed(0) => {}
        Seed::Fixed(seed) => line += &format!(" -z{seed}"),
        Seed::Fresh => line += " -z",
    }
    if let Some(size) = target.create {
        line += &format!(" -c{size}");
    }
    line += " -L";
    for path in paths {
        match path.contains([' ', '|', '>']) {
            true => line += &format!(" \"{path}\""),
            false => line += &format!(" {path}"),
        }
    }
    line.push('\n');
    line
}

/// How a command line says where I/Os go.
fn access(target: &Target) -> String {
    let mut line = String::new();
    match target.access {
        Access::Random(percent) => {
            if percent < 100 {
                line += &format!(" -rs{percent}");
            }
            match target.step {
                Some(step) => line += &format!(" -r{step}"),
                None if percent == 100 => line += " -r",
                None => {}
            }
        }
        Access::Interlocked => {
            line += &format!(" -si{}", target.step.map_or(String::new(), |step| step.to_string()))
        }
        Access::Sequential => {
            if let Some(step) = target.step {
                line += &format!(" -s{step}");
            }
        }
    }
    line
}

fn zones(target: &Target) -> String {
    let texts: Vec<String> = (target.zones.iter())
        .map(|zone| match zone.length {
            Extent::Percent(percent) => format!("{}/{percent}", zone.ios),
            Extent::Bytes(bytes) => format!("{}/{bytes}", zone.ios),
        })
        .collect();
    let kind =
        if target.zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_))) { "abs" } else { "pct" };
    if texts.is_empty() { String::new() } else { format!(" -rd{kind}{}", texts.join(":")) }
}

/// A group as a target's settings, with its paths.
fn settings<'a>(plan: &'a Plan, stage: &Stage, group: &Group, losses: &mut Losses) -> (Target, Vec<&'a str>) {
    let place = Place { file: String::new(), line: 1, column: 1 };
    let mut target = Target::new("", place);
    let targets: Vec<&plan::Target> =
        group.targets.iter().filter_map(|index| plan.targets.get(*index)).collect();
    mix(group, &mut target, losses);
    area(group, &mut target, losses);
    let (Depth::PerTarget(depth) | Depth::PerWorker(depth)) = group.depth;
    target.depth = u64::from(depth);
    let (Workers::PerTarget(threads) | Workers::Together(threads)) = group.workers;
    target.threads = u64::from(threads);
    target.cache = Cache {
        direct: group.caching.direct,
        write_through: group.caching.write_through != WriteThrough::No,
    };
    losses.add_if(group.caching.write_through == WriteThrough::All, "write-through is of data alone");
    losses.add_if(group.caching.flush.is_some(), "flushes between writes");
    target.buffer = match &group.data.content {
        Content::Counting => Buffer::Counting,
        Content::Zeroes => Buffer::Zeroes,
        Content::Window(bytes) if *bytes >= target.block => Buffer::Window(*bytes),
        Content::Random => Buffer::Random,
        Content::Scrambled | Content::Pattern(_) | Content::Window(_) => {
            losses.add_if(group.pattern.writes(), "the kind of data: random bytes are written");
            Buffer::Random
        }
    };
    let reduced = group.data.compressible > 0.0 || group.data.duplicates > 0.0;
    losses.add_if(reduced && group.pattern.writes(), "compressible or repeated data");
    rate(group, targets.len(), &mut target, losses);
    let sizes: Vec<Option<u64>> = targets.iter().map(|target| target.size).collect();
    losses.add_if(sizes.iter().any(|size| *size != sizes[0]), "files of several sizes");
    target.create = sizes
        .first()
        .copied()
        .flatten()
        .filter(|_| targets.iter().all(|target| !crate::fio::is_device(&target.name)));
    common(stage, group, losses);
    (target, targets.into_iter().map(|target| target.name.as_str()).collect())
}

fn common(stage: &Stage, group: &Group, losses: &mut Losses) {
    losses.add_if(!stage.pause.is_zero() || !group.timing.delay.is_zero(), "a pause before the start");
    losses.add_if(stage.ends == StageEnd::First, "an end with the first group");
    losses.add_if(stage.bytes_max.is_some(), "an end after an amount");
    losses
        .add_if(stage.steady.is_some() || stage.search.is_some(), "an end that depends on what is measured");
    losses.add_if(group.share.is_some(), "shares between groups");
    losses.add_if(group.verify.is_some(), "verification");
    losses.add_if(group.vm.is_some(), "virtual machines");
    losses.add_if(group.engine != Engine::IoUring, "how I/Os are handed to the kernel");
    losses.add_if(group.batch.complete > 1 || group.batch.submit > 1, "batches");
}

fn mix(group: &Group, target: &mut Target, losses: &mut Losses) {
    let parts = parts(&group.pattern);
    let first = parts[0];
    losses.add_if(parts.iter().any(|part| part.operation == Operation::Trim), "trims become writes");
    losses.add_if(parts.iter().any(|part| part.size != first.size), "other sizes than the largest");
    losses.add_if(matches!(first.size, Size::Range { .. }), "a range of sizes: all have the largest");
    target.block = group.pattern.size_max();
    let reads = group.pattern.reads();
    let writes = whole(100.0 - reads);
    losses.add_if(writes.is_none(), "a share of reads that is no whole percentage");
    target.writes = writes.unwrap_or((100.0 - reads).round() as u64);
    let mean = group.pattern.random();
    losses.add_if(
        parts.iter().any(|part| (part.random - mean).abs() > 1e-6),
        "random shares of some I/Os alone",
    );
    let random = whole(mean);
    losses.add_if(random.is_none(), "a share of random I/O that is no whole percentage");
    let random = random.unwrap_or(mean.round() as u64);
    let sequence = &group.pattern.sequence;
    let several = group.worker_count() > 1;
    target.access = match (random, sequence.cursor) {
        (0, Cursor::PerTarget) if several => Access::Interlocked,
        (0, _) => Access::Sequential,
        (random, _) => Access::Random(random),
    };
    losses.add_if(
        (1..100).contains(&random) && several && sequence.cursor == Cursor::PerTarget,
        "a shared position beside random I/O",
    );
    let plain = Some(i64::try_from(target.block).unwrap_or(i64::MAX));
    let stride = sequence.stride.filter(|stride| Some(*stride) != plain);
    losses.add_if(
        stride.is_some_and(|stride| stride < 0) || (random > 0 && random < 100 && stride.is_some()),
        "a stride",
    );
    target.step = match random {
        0 => stride.and_then(|stride| u64::try_from(stride).ok()),
        _ => first.align,
    };
    losses.add_if(parts.iter().any(|part| part.align != first.align), "alignments of some I/Os alone");
    // DiskSPD counts the threads of a target, and refuses -T where there is one, or where they share a position.
    let beside = match group.workers {
        Workers::PerTarget(threads) => threads > 1,
        Workers::Together(_) => several,
    };
    if random == 0 && beside && target.access == Access::Sequential {
        target.thread_stride = sequence.worker_step;
    } else {
        losses.add_if(
            random < 100 && several && sequence.worker_step > 0,
            "distances between the starts of workers",
        );
    }
    if let Some(think) = first.think {
        pauses(think, target, losses);
    }
    losses.add_if(parts.iter().any(|part| part.think != first.think), "pauses of some I/Os alone");
    losses.add_if(sequence.at_end == AtEnd::Stop && random < 100, "an end at the end of the span");
    losses.add_if(group.pattern.follow > 0, "sequences behind each random I/O");
    losses.add_if(group.pattern.hits.is_some(), "an area for hits");
    let once =
        group.pattern.reuse == Reuse::EachBlockOnce && group.pattern.distribution == Distribution::Uniform;
    losses.add_if(once && random > 0, "each block once: DiskSPD draws each I/O alone");
}

fn pauses(think: Think, target: &mut Target, losses: &mut Losses) {
    target.burst = Some(u64::from(think.after));
    let pause = think.pause;
    losses.add_if(
        !pause.subsec_nanos().is_multiple_of(1_000_000) || pause.is_zero(),
        "parts of a millisecond of a pause",
    );
    target.think_ms = Some(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX).max(1));
    losses.add_if(think.spin, "a pause that keeps the processor busy");
}

fn area(group: &Group, target: &mut Target, losses: &mut Losses) {
    let span = &group.pattern.span;
    match span.offset {
        Extent::Bytes(bytes) => target.base = bytes,
        Extent::Percent(percent) => losses.add_if(percent > 0.0, "an offset in percent"),
    }
    match span.length {
        Some(Extent::Bytes(bytes)) => target.length = Some(bytes),
        Some(Extent::Percent(percent)) => losses.add_if(percent < 100.0, "a span in percent"),
        None => {}
    }
    losses.add_if(span.worker_step != Extent::Bytes(0) && group.worker_count() > 1, "a span for each worker");
    if let Distribution::Zoned(zones) = &group.pattern.distribution {
        let fine = zones.iter().all(|zone| {
            whole(zone.ios).is_some()
                && match zone.length {
                    Extent::Percent(percent) => whole(percent).is_some(),
                    Extent::Bytes(_) => true,
                }
        });
        losses.add_if(!fine, "zones that are no whole percentages");
        target.zones.clone_from(zones);
        // The rest of the I/Os goes to the rest of the target without being said.
        let absolute = zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_)));
        if absolute && matches!(zones.last().map(|zone| zone.length), Some(Extent::Percent(100.0))) {
            target.zones.pop();
        }
        losses.add_if(
            absolute && target.zones.iter().any(|zone| matches!(zone.length, Extent::Percent(_))),
            "zones in bytes beside zones in percent",
        );
    } else {
        let uniform = group.pattern.distribution == Distribution::Uniform;
        losses.add_if(!uniform && group.pattern.random() > 0.0, "the distribution: I/Os go everywhere alike");
    }
    if !matches!(target.access, Access::Random(_)) {
        target.zones.clear();
    }
}

fn rate(group: &Group, targets: usize, target: &mut Target, losses: &mut Losses) {
    losses.add_if(group.rates.len() > 1, "several rates");
    let Some(rate) = group.rates.first() else { return };
    let one_target = targets == 1 || matches!(group.workers, Workers::PerTarget(_));
    let fits = match rate.per {
        RatePer::WorkerAndTarget => true,
        RatePer::Worker => one_target,
        RatePer::Group => group.worker_count() == 1 && targets == 1,
    };
    losses.add_if(!fits, "a rate that is not of each worker on each target");
    losses.add_if(
        rate.of != RateOf::All && !matches!(group.pattern.reads(), 0.0 | 100.0),
        "a rate of reads or writes alone",
    );
    losses.add_if(rate.arrivals == Arrivals::Poisson, "random intervals between I/Os");
    losses.add_if(rate.clock == Loop::Open, "latency from when an I/O was meant to begin");
    target.throughput = match rate.pace {
        Pace::Iops(iops) => {
            losses.add_if(whole(iops).is_none(), "parts of an I/O per second");
            Some(Throughput::Iops(iops.round().max(1.0) as u64))
        }
        Pace::Bytes(bytes) => {
            losses.add_if(
                whole(bytes / 1000.0).is_none(),
                "a rate that is no whole number of bytes per millisecond",
            );
            Some(Throughput::BytesPerMillisecond((bytes / 1000.0).round().max(1.0) as u64))
        }
        Pace::PercentOf { .. } => {
            losses.add("a rate in percent of another stage's");
            None
        }
    };
}

/// An XML profile: a time span for each stage.
pub(crate) fn write_profile(plan: &Plan, losses: &mut Losses) -> String {
    let mut xml = Xml { text: "<Profile>\n".into(), level: 1 };
    xml.open("TimeSpans");
    for stage in &plan.stages {
        losses.at = format!("stage {}", stage.name);
        for _ in 0..stage.repeats.min(1000) {
            span(&mut xml, plan, stage, losses);
        }
    }
    xml.close("TimeSpans");
    xml.text.push_str("</Profile>\n");
    xml.text
}

struct Xml {
    text: String,
    level: usize,
}

impl Xml {
    fn open(&mut self, name: &str) {
        let _ = writeln!(self.text, "{:width$}<{name}>", "", width = self.level * 2);
        self.level += 1;
    }

    fn close(&mut self, name: &str) {
        self.level -= 1;
        let _ = writeln!(self.text, "{:width$}</{name}>", "", width = self.level * 2);
    }

    fn leaf(&mut self, name: &str, value: impl ToString) {
        let value = value.to_string();
        let value = quick_xml::escape::escape(value.as_str());
        let _ = writeln!(self.text, "{:width$}<{name}>{value}</{name}>", "", width = self.level * 2);
    }
}

fn span(xml: &mut Xml, plan: &Plan, stage: &Stage, losses: &mut Losses) {
    let Some(first) = stage.groups.first() else { return };
    xml.open("TimeSpan");
    let timing = first.timing;
    losses.add_if(stage.groups.iter().any(|group| group.timing != timing), "times of some groups alone");
    xml.leaf("Duration", length(first, losses));
    xml.leaf("Warmup", seconds(timing.ramp, losses));
    xml.leaf("Cooldown", seconds(timing.cooldown, losses));
    match plan.seed {
        Seed::Fixed(seed) => xml.leaf("RandSeed", seed),
        Seed::Fresh => losses.add("other I/Os in every run"),
    }
    let together = |group: &Group| matches!(group.workers, Workers::Together(_)) && group.targets.len() > 1;
    let shared = stage.groups.iter().any(together);
    losses.add_if(shared && stage.groups.len() > 1, "workers over all their targets beside other groups");
    if shared && stage.groups.len() == 1 {
        if let Workers::Together(threads) = first.workers {
            xml.leaf("ThreadCount", threads);
        }
        if let Depth::PerWorker(depth) = first.depth {
            xml.leaf("RequestCount", depth);
        }
    }
    xml.open("Targets");
    for group in &stage.groups {
        losses.at = format!("stage {}, group {}", stage.name, group.name);
        let (target, paths) = settings(plan, stage, group, losses);
        for path in paths {
            target_element(xml, &target, path);
        }
    }
    xml.close("Targets");
    xml.close("TimeSpan");
}

fn target_element(xml: &mut Xml, target: &Target, path: &str) {
    xml.open("Target");
    xml.leaf("Path", path);
    xml.leaf("BlockSize", target.block);
    xml.leaf("BaseFileOffset", target.base);
    if let Some(length) = target.length {
        xml.leaf("MaxFileSize", target.base.saturating_add(length));
    }
    if let Some(size) = target.create {
        xml.leaf("FileSize", size);
    }
    match target.access {
        Access::Random(percent) => {
            xml.leaf("Random", target.step.unwrap_or(target.block));
            if percent < 100 {
                xml.leaf("RandomRatio", percent);
            }
        }
        Access::Interlocked | Access::Sequential => {
            if let Some(step) = target.step {
                xml.leaf("StrideSize", step);
            }
            xml.leaf("InterlockedSequential", target.access == Access::Interlocked);
        }
    }
    xml.leaf("DisableOSCache", target.cache.direct);
    xml.leaf("WriteThrough", target.cache.write_through);
    buffer_element(xml, &target.buffer);
    xml.leaf("ThreadStride", target.thread_stride);
    xml.leaf("ThreadsPerFile", target.threads);
    xml.leaf("RequestCount", target.depth);
    xml.leaf("WriteRatio", target.writes);
    if let (Some(burst), Some(pause)) = (target.burst, target.think_ms) {
        xml.leaf("BurstSize", burst);
        xml.leaf("ThinkTime", pause);
    }
    let (value, unit) = match target.throughput {
        Some(Throughput::Iops(iops)) => (iops, " unit=\"IOPS\""),
        Some(Throughput::BytesPerMillisecond(bytes)) => (bytes, ""),
        None => (0, ""),
    };
    if value > 0 {
        let _ =
            writeln!(xml.text, "{:width$}<Throughput{unit}>{value}</Throughput>", "", width = xml.level * 2);
    }
    if !target.zones.is_empty() {
        let absolute = target.zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_)));
        let kind = if absolute { "Absolute" } else { "Percent" };
        xml.open("Distribution");
        xml.open(kind);
        for zone in &target.zones {
            let size = number(zone.length);
            let _ = writeln!(
                xml.text,
                "{:width$}<Range IO=\"{}\">{size}</Range>",
                "",
                zone.ios,
                width = xml.level * 2
            );
        }
        xml.close(kind);
        xml.close("Distribution");
    }
    xml.close("Target");
}

/// The number of an extent, whichever unit it has.
fn number(extent: Extent) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(percent) => percent.round().max(0.0) as u64,
    }
}

fn buffer_element(xml: &mut Xml, buffer: &Buffer) {
    let (pattern, size) = match buffer {
        Buffer::Counting => ("sequential", None),
        Buffer::Zeroes => ("zero", None),
        Buffer::Random => ("random", None),
        Buffer::Window(bytes) => ("random", Some(*bytes)),
    };
    xml.open("WriteBufferContent");
    xml.leaf("Pattern", pattern);
    if let Some(size) = size {
        xml.open("RandomDataSource");
        xml.leaf("SizeInBytes", size);
        xml.close("RandomDataSource");
    }
    xml.close("WriteBufferContent");
}
