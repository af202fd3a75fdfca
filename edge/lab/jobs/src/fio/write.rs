//! A plan as a job file: a section for each group, a stonewall before each stage.

use super::convert::is_device;
use super::job::DEFAULT_SEED;
use super::stages::duration;
use crate::export::Losses;
use crate::mix::{Operation, Part, parts, whole};
use plan::{
    Amount, Arrivals, AtEnd, Content, Cursor, Depth, Distribution, Engine, Extent, Group, Length, Loop, Pace,
    PauseStart, Plan, RateOf, RatePer, Reuse, Seed, Size, Stage, StageEnd, SteadyOf, VerifyWhen, Workers,
    WriteThrough,
};
use std::fmt::{Display, Write};
use std::time::Duration;

/// One section.
struct Section {
    text: String,
}

impl Section {
    fn set(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.text, "{key}={value}");
    }
}

/// The job file of a plan.
pub(crate) fn write(plan: &Plan, losses: &mut Losses) -> String {
    let mut text = String::new();
    let mut first_stage = true;
    let mut elapsed = Some(Duration::ZERO);
    for stage in &plan.stages {
        for _ in 0..stage.repeats.min(1000) {
            let mut first_group = true;
            for group in &stage.groups {
                losses.at = format!("stage {}, group {}", stage.name, group.name);
                for targets in sections(group, losses) {
                    let wall = first_group && !first_stage;
                    text.push_str(&section(plan, stage, group, &targets, (wall, elapsed), losses));
                    first_group = false;
                }
            }
            first_stage = false;
            elapsed = elapsed.zip(duration(stage)).map(|(sum, time)| sum + time);
        }
    }
    text
}

/// The targets of each section: workers of their own targets need one for each.
fn sections(group: &Group, losses: &mut Losses) -> Vec<Vec<usize>> {
    match group.workers {
        Workers::Together(_) => vec![group.targets.clone()],
        Workers::PerTarget(_) => {
            let steps = group.pattern.span.worker_step != Extent::Bytes(0) && group.targets.len() > 1;
            losses.add_if(steps, "each section counts its own clones: workers of the second target begin at the first's offset");
            group.targets.iter().map(|target| vec![*target]).collect()
        }
    }
}

fn section(
    plan: &Plan,
    stage: &Stage,
    group: &Group,
    targets: &[usize],
    (wall, elapsed): (bool, Option<Duration>),
    losses: &mut Losses,
) -> String {
    let name: String = group
        .name
        .chars()
        .map(|letter| if letter == ']' || letter.is_control() { '_' } else { letter })
        .collect();
    let name = match name.trim() {
        "" => "job".to_owned(),
        name if name.starts_with("global") => format!("job-{name}"),
        name => name.to_owned(),
    };
    let mut section = Section { text: format!("[{name}]\n") };
    if wall {
        section.text.push_str("stonewall\n");
    }
    let parts = parts(&group.pattern);
    place(&mut section, plan, group, targets, losses);
    access(&mut section, group, &parts, losses);
    let export = matches!(targets, [target] if plan.targets.get(*target).is_some_and(|target| is_export(&target.name)));
    losses.add_if(export && group.engine != Engine::IoUring, "how I/Os are handed over: NBD has its own way");
    let engine = match group.engine {
        _ if export => "nbd",
        Engine::IoUring => "io_uring",
        Engine::LinuxAio => "libaio",
        Engine::Blocking => "psync",
    };
    section.set("ioengine", engine);
    queue(&mut section, group, targets.len(), losses);
    seed(&mut section, plan.seed);
    delay(&mut section, stage.pause + group.timing.delay, elapsed, losses);
    times(&mut section, group, losses);
    rates(&mut section, group, &parts, losses);
    data(&mut section, group, losses);
    durability(&mut section, group, losses);
    goals(&mut section, stage, losses);
    losses.add_if(group.vm.is_some(), "fio knows no virtual machines");
    losses.add_if(stage.bytes_max.is_some(), "an amount of all jobs together");
    if let Some(share) = group.share {
        match whole(share) {
            Some(share) => section.set("flow", share),
            None => losses.add("a share that is no whole percentage"),
        }
    }
    section.text.push('\n');
    section.text
}

/// How many I/Os are outstanding, how they are handed over, and by how many clones.
fn queue(section: &mut Section, group: &Group, targets: usize, losses: &mut Losses) {
    let (Workers::Together(workers) | Workers::PerTarget(workers)) = group.workers;
    let depth = match group.depth {
        Depth::PerWorker(depth) => depth,
        Depth::PerTarget(depth) => {
            losses.add_if(targets > 1, "outstanding I/Os are of all files of a job together, not of each");
            depth.saturating_mul(u32::try_from(targets).unwrap_or(u32::MAX))
        }
    };
    section.set("iodepth", depth);
    if group.batch.submit != 1 {
        section.set("iodepth_batch_submit", group.batch.submit);
    }
    if group.batch.complete != 1 {
        section.set("iodepth_batch_complete_min", group.batch.complete);
    }
    if workers != 1 {
        section.set("numjobs", workers);
    }
}

/// A delay behind the stages before, where their length is known.
fn delay(section: &mut Section, delay: Duration, elapsed: Option<Duration>, losses: &mut Losses) {
    if !delay.is_zero() {
        match elapsed {
            // fio counts it from its own start.
            Some(elapsed) => section.set("startdelay", time(elapsed + delay)),
            None => {
                losses.add("a pause behind a stage whose end is not known: fio counts from its own start")
            }
        }
    }
}

fn seed(section: &mut Section, seed: Seed) {
    match seed {
        Seed::Fixed(DEFAULT_SEED) => {}
        Seed::Fixed(seed) => section.set("randseed", seed),
        Seed::Fresh => section.set("randrepeat", 0),
    }
}

fn place(section: &mut Section, plan: &Plan, group: &Group, targets: &[usize], losses: &mut Losses) {
    let all: Vec<&plan::Target> = targets.iter().filter_map(|index| plan.targets.get(*index)).collect();
    let exports = all.iter().filter(|target| is_export(&target.name)).count();
    losses.add_if(exports > 0 && all.len() > 1, "NBD beside other targets in one job");
    if exports == 1 && all.len() == 1 {
        section.set("uri", &all[0].name);
    } else {
        let names: Vec<String> = all.iter().map(|target| target.name.replace(':', "\\:")).collect();
        section.set("filename", names.join(":"));
    }
    let sizes: Vec<Option<u64>> =
        all.iter().map(|target| target.size.filter(|_| !is_device(&target.name))).collect();
    losses.add_if(sizes.iter().any(|size| *size != sizes[0]), "files of several sizes in one job");
    let span = &group.pattern.span;
    match span.offset {
        Extent::Bytes(0) => {}
        offset => section.set("offset", extent(offset, 1, losses)),
    }
    if span.worker_step != Extent::Bytes(0) {
        section.set("offset_increment", extent(span.worker_step, 1, losses));
    }
    let size = sizes.first().copied().flatten();
    if let Some(size) = size {
        section.set("filesize", size);
    }
    let length = span.length.or(match (size, span.offset) {
        (Some(size), Extent::Bytes(offset)) => Some(Extent::Bytes(size.saturating_sub(offset))),
        _ => None,
    });
    let unsized_file = size.is_none() && all.iter().any(|target| !is_device(&target.name));
    losses.add_if(
        unsized_file && matches!(length, Some(Extent::Bytes(_))),
        "a file as large as it is: fio makes it as large as the span",
    );
    if let Some(length) = length {
        section.set("size", extent(length, all.len() as u64, losses));
    }
    losses.add_if(group.pattern.hits.is_some(), "an area for hits");
}

/// Whether a target is an export of NBD, for which fio has an engine of its own.
fn is_export(name: &str) -> bool {
    name.starts_with("nbd:") || name.starts_with("nbd+")
}

fn extent(extent: Extent, times: u64, losses: &mut Losses) -> String {
    match extent {
        Extent::Bytes(bytes) => bytes.saturating_mul(times).to_string(),
        Extent::Percent(percent) => format!("{}%", percentage(percent, losses)),
    }
}

/// A whole percentage: fio's are.
fn percentage(percent: f64, losses: &mut Losses) -> u64 {
    whole(percent).unwrap_or_else(|| {
        losses.add(format!("{percent} % is rounded"));
        percent.round().clamp(0.0, 100.0) as u64
    })
}

fn access(section: &mut Section, group: &Group, parts: &[Part], losses: &mut Losses) {
    let pattern = &group.pattern;
    let of = |operation: Operation| -> Vec<&Part> {
        parts.iter().filter(|part| part.operation == operation).collect()
    };
    let (reads, writes, trims) = (of(Operation::Read), of(Operation::Write), of(Operation::Trim));
    let mixed_trims = !trims.is_empty() && parts.len() > trims.len();
    losses.add_if(mixed_trims, "trims among reads and writes are left out");
    let random = parts.iter().any(|part| part.random > 0.0);
    let word = match (reads.is_empty(), writes.is_empty(), random) {
        (false, true, false) => "read",
        (true, false, false) => "write",
        (false, false, false) => "rw",
        (true, true, false) => "trim",
        (false, true, true) => "randread",
        (true, false, true) => "randwrite",
        (false, false, true) => "randrw",
        (true, true, true) => "randtrim",
    };
    let single = parts.iter().all(|part| part.size == parts[0].size).then(|| parts[0].size);
    let jump = match (random, pattern.follow, pattern.sequence.stride, single) {
        (true, 1.., _, _) => format!(":{}", u64::from(pattern.follow) + 1),
        (false, _, Some(stride), Some(Size::Fixed(size))) => {
            match stride.saturating_sub(i64::try_from(size).unwrap_or(i64::MAX)) {
                0 => String::new(),
                gap => format!(":{gap}"),
            }
        }
        _ => String::new(),
    };
    let goes_on = !random_only(parts) || pattern.follow > 0;
    losses.add_if(random && goes_on && pattern.sequence.stride.is_some(), "a stride beside random I/Os");
    section.set("rw", format!("{word}{jump}"));
    if !reads.is_empty() && !writes.is_empty() {
        let (read, write): (f64, f64) =
            (reads.iter().map(|part| part.weight).sum(), writes.iter().map(|part| part.weight).sum());
        section.set("rwmixread", percentage(read / (read + write) * 100.0, losses));
    }
    let used: Vec<Vec<&Part>> =
        if reads.is_empty() && writes.is_empty() { vec![trims] } else { vec![reads, writes] };
    let used: Vec<&[&Part]> = used.iter().map(Vec::as_slice).collect();
    sizes(section, &used, losses);
    if random {
        shares(section, &used, losses);
        scatter(section, pattern, losses);
    }
    if let Some(think) = parts[0].think {
        section.set("thinktime", format!("{}us", think.pause.as_micros()));
        section.set("thinktime_blocks", think.after);
        if think.start == PauseStart::Drained {
            section.set("thinktime_blocks_type", "issue");
        }
        losses.add_if(
            think.start == PauseStart::Issued && group.outstanding() > group.worker_count(),
            "pauses in which the I/Os in flight go on: fio waits for them first",
        );
        if think.spin {
            section.set("thinktime_spin", format!("{}us", think.pause.as_micros()));
        }
    }
    losses.add_if(
        parts.iter().any(|part| part.think != parts[0].think),
        "pauses of some lines of the mix alone",
    );
    losses.add_if(pattern.sequence.at_end == AtEnd::Stop, "an end of the job at the end of the span");
    let several = group.worker_count() > 1 && !random_only(parts);
    losses
        .add_if(several && pattern.sequence.cursor == Cursor::PerTarget, "a position that all workers share");
    losses.add_if(several && pattern.sequence.worker_step != 0, "distances between the starts of workers");
}

fn random_only(parts: &[Part]) -> bool {
    parts.iter().all(|part| part.random >= 100.0)
}

/// Sizes of reads and of writes; one list where they are alike.
fn sizes(section: &mut Section, used: &[&[&Part]], losses: &mut Losses) {
    let ranged = used.iter().any(|parts| parts.iter().any(|part| matches!(part.size, Size::Range { .. })));
    let texts: Vec<String> = (used.iter())
        .map(|parts| match (parts, ranged) {
            ([], _) => String::new(),
            ([part], true) => {
                let step = match part.size {
                    Size::Range { min, step, .. } => step == min || step == 1,
                    Size::Fixed(_) => true,
                };
                losses.add_if(!step, "sizes in steps that are not the smallest size");
                format!("{}-{}", part.size.min(), part.size.max())
            }
            (several, true) => {
                losses.add("a range of sizes beside other sizes");
                let min = several.iter().map(|part| part.size.min()).min().unwrap_or(4096);
                let max = several.iter().map(|part| part.size.max()).max().unwrap_or(4096);
                format!("{min}-{max}")
            }
            ([part], false) => part.size.max().to_string(),
            (several, false) => {
                let whole_weight: f64 = several.iter().map(|part| part.weight).sum();
                let entries: Vec<String> = (several.iter())
                    .map(|part| {
                        format!(
                            "{}/{}",
                            part.size.max(),
                            percentage(part.weight / whole_weight * 100.0, losses)
                        )
                    })
                    .collect();
                entries.join(":")
            }
        })
        .collect();
    let split = !ranged && used.iter().any(|parts| parts.len() > 1);
    let unaligned = used
        .iter()
        .flat_map(|parts| parts.iter())
        .any(|part| matches!(part.size, Size::Range { min, step: 1, .. } if min != 1));
    if unaligned {
        section.set("bs_unaligned", 1);
    }
    let key = if ranged {
        "bsrange"
    } else if split {
        "bssplit"
    } else {
        "bs"
    };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    match texts.as_slice() {
        [one] | [one, ""] => section.set(key, one),
        ["", two] => section.set(key, two),
        [one, two] if one == two => section.set(key, one),
        [one, two] if split => {
            // A list of one size needs its percentage beside another list.
            let full = |text: &str| if text.contains('/') { text.to_owned() } else { format!("{text}/100") };
            section.set(key, format!("{},{}", full(one), full(two)));
        }
        several => section.set(key, several.join(",")),
    }
}

/// Random shares and alignments of reads and of writes.
fn shares(section: &mut Section, used: &[&[&Part]], losses: &mut Losses) {
    let mut percents = Vec::new();
    let mut aligns: Vec<Option<u64>> = Vec::new();
    for parts in used.iter().filter(|parts| !parts.is_empty()) {
        let weight: f64 = parts.iter().map(|part| part.weight).sum();
        let mean = parts.iter().map(|part| part.random * part.weight).sum::<f64>() / weight;
        losses.add_if(
            parts.iter().any(|part| (part.random - mean).abs() > 1e-6),
            "random shares of some sizes alone: all have the mean",
        );
        percents.push(percentage(mean, losses));
        // An alignment of the I/O's own size is not kept with it, but may be that of all.
        let align = parts.iter().find_map(|part| part.align);
        let own = |part: &&Part| part.align.unwrap_or(part.size.min());
        losses.add_if(
            align.is_some_and(|align| parts.iter().any(|part| own(part) != align)),
            "alignments of some sizes alone",
        );
        aligns.push(align);
    }
    let reads_only_writes = used.len() == 2 && used[0].is_empty();
    let join = |values: Vec<String>| match values.as_slice() {
        [one] => one.clone(),
        [one, two] if one == two => one.clone(),
        several => several.join(","),
    };
    let percents: Vec<String> = percents.iter().map(u64::to_string).collect();
    let text = join(percents);
    if text != "100" {
        section.set("percentage_random", text);
    }
    if aligns.iter().any(Option::is_some) {
        losses.add_if(
            aligns.iter().any(|align| *align != aligns[0]) && (reads_only_writes || aligns.contains(&None)),
            "an alignment of reads or writes alone",
        );
        section.set("blockalign", join(aligns.iter().flatten().map(u64::to_string).collect()));
    }
}

fn scatter(section: &mut Section, pattern: &plan::Pattern, losses: &mut Losses) {
    let center = |center: Option<f64>| center.map_or(String::new(), |center| format!("/{center}"));
    match &pattern.distribution {
        Distribution::Uniform => {}
        Distribution::Zipf { theta, center: at } => {
            section.set("random_distribution", format!("zipf:{theta}{}", center(*at)))
        }
        Distribution::Pareto { h, center: at } => {
            section.set("random_distribution", format!("pareto:{h}{}", center(*at)))
        }
        Distribution::Normal { deviation, center: at } => {
            section.set("random_distribution", format!("normal:{deviation}{}", center(*at)));
        }
        Distribution::Zoned(zones) => {
            let absolute = zones.iter().any(|zone| matches!(zone.length, Extent::Bytes(_)));
            let texts: Vec<String> = (zones.iter().enumerate())
                .map(|(index, zone)| {
                    let ios = percentage(zone.ios, losses);
                    match zone.length {
                        Extent::Bytes(bytes) => format!("{ios}/{bytes}"),
                        Extent::Percent(100.0) if absolute && index + 1 == zones.len() => {
                            losses.add("a last zone over all that is left: fio wants its size");
                            format!("{ios}/{}", rest(pattern, zones))
                        }
                        Extent::Percent(percent) => {
                            losses.add_if(absolute, "zones in bytes beside zones in percent");
                            format!("{ios}/{}", percentage(percent, losses))
                        }
                    }
                })
                .collect();
            let kind = if absolute { "zoned_abs" } else { "zoned" };
            section.set("random_distribution", format!("{kind}:{}", texts.join(":")));
        }
    }
    if pattern.distribution == Distribution::Uniform {
        let aligned =
            pattern.lines.iter().any(|line| line.align.is_some_and(|align| align != pattern.size_min()));
        losses.add_if(
            aligned && pattern.reuse == Reuse::EachBlockOnce,
            "each block once: fio draws I/Os alone that are aligned otherwise than to their size",
        );
        if pattern.reuse == Reuse::Draws {
            section.set("norandommap", 1);
        }
    }
}

/// What zones in bytes leave of a span, in bytes; 1 GiB where that is not known.
fn rest(pattern: &plan::Pattern, zones: &[plan::Zone]) -> u64 {
    let bytes = |extent: Extent| match extent {
        Extent::Bytes(bytes) => bytes,
        Extent::Percent(_) => 0,
    };
    let used: u64 = zones.iter().map(|zone| bytes(zone.length)).fold(0, u64::saturating_add);
    match pattern.span.length {
        Some(Extent::Bytes(length)) if length > used => length - used,
        _ => 1 << 30,
    }
}

fn times(section: &mut Section, group: &Group, losses: &mut Losses) {
    let timing = &group.timing;
    if !timing.ramp.is_zero() {
        section.set("ramp_time", time(timing.ramp));
    }
    losses.add_if(!timing.cooldown.is_zero(), "a cool-down");
    let mut amount = |amount: Amount| match amount {
        Amount::Bytes(bytes) => section.set("io_size", bytes),
        Amount::Passes(passes) => match (whole(passes), whole(passes * 100.0)) {
            (Some(1), _) => {}
            (Some(loops), _) if loops > 0 => section.set("loops", loops),
            (_, Some(percent)) if (1..100).contains(&percent) => {
                section.set("io_size", format!("{percent}%"))
            }
            _ => losses.add(format!("{passes} passes")),
        },
    };
    match timing.length {
        Length::Time(length) => {
            section.set("runtime", time(length));
            section.text.push_str("time_based\n");
        }
        Length::Amount(of) => amount(of),
        Length::First { time: length, amount: of } => {
            amount(of);
            section.set("runtime", time(length));
        }
        Length::UntilStopped => {
            losses.add("a run until it is stopped: the job ends after a day");
            section.set("runtime", 86_400);
            section.text.push_str("time_based\n");
        }
    }
}

fn time(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        duration.as_secs().to_string()
    } else {
        format!("{}us", duration.as_micros())
    }
}

fn rates(section: &mut Section, group: &Group, parts: &[Part], losses: &mut Losses) {
    let operations: Vec<Operation> = [Operation::Read, Operation::Write, Operation::Trim]
        .into_iter()
        .filter(|operation| parts.iter().any(|part| part.operation == *operation))
        .collect();
    let mut values: [[Option<u64>; 3]; 2] = [[None; 3]; 2];
    for rate in &group.rates {
        let alone = group.worker_count() == 1;
        let per_worker = match rate.per {
            RatePer::Worker => true,
            RatePer::Group => alone,
            RatePer::WorkerAndTarget => {
                group.targets.len() == 1 || matches!(group.workers, Workers::PerTarget(_))
            }
        };
        losses.add_if(!per_worker, "a rate that is not of each worker");
        let (kind, number) = match rate.pace {
            Pace::Bytes(bytes) => (0, bytes),
            Pace::Iops(iops) => (1, iops),
            Pace::PercentOf { .. } => {
                losses.add("a rate in percent of another stage's");
                continue;
            }
        };
        let slots: &[usize] = match rate.of {
            RateOf::All if operations.len() == 1 => &[0, 1, 2],
            RateOf::All => {
                losses.add("a rate of reads and writes together: fio has one for each");
                continue;
            }
            RateOf::Reads => &[0],
            RateOf::Writes => &[1],
            RateOf::Trims => &[2],
        };
        losses.add_if(!is_done(rate.of, &operations), "a rate of I/Os that are not done");
        let number = whole(number).unwrap_or_else(|| {
            losses.add(format!("the rate {number} is rounded"));
            number.round().max(1.0) as u64
        });
        for slot in slots {
            values[kind][*slot] = Some(number);
        }
    }
    if values.iter().all(|values| values.iter().any(Option::is_some)) {
        losses.add("a rate in bytes beside one in I/Os: fio takes one of them");
        values[0] = [None; 3];
    }
    for (key, values) in ["rate", "rate_iops"].into_iter().zip(values) {
        match values {
            [None, None, None] => {}
            [Some(one), Some(two), Some(three)] if one == two && two == three => section.set(key, one),
            several => {
                let text = |value: Option<u64>| value.unwrap_or(0).to_string();
                section.set(key, several.map(text).join(","));
            }
        }
    }
    if let Some(first) = group.rates.first() {
        let alike =
            group.rates.iter().all(|rate| (rate.arrivals, rate.clock) == (first.arrivals, first.clock));
        losses.add_if(!alike, "rates of several kinds of arrivals");
        if first.arrivals == Arrivals::Poisson {
            section.set("rate_process", "poisson");
        }
        if first.clock == Loop::Open {
            section.set("io_submit_mode", "offload");
        }
    }
}

/// Whether there are I/Os that a rate is of.
fn is_done(of: RateOf, operations: &[Operation]) -> bool {
    match of {
        RateOf::All => true,
        RateOf::Reads => operations.contains(&Operation::Read),
        RateOf::Writes => operations.contains(&Operation::Write),
        RateOf::Trims => operations.contains(&Operation::Trim),
    }
}

fn data(section: &mut Section, group: &Group, losses: &mut Losses) {
    if !group.pattern.writes() {
        return;
    }
    let reduced = group.data.compressible > 0.0 || group.data.duplicates > 0.0;
    match &group.data.content {
        Content::Scrambled => losses.add_if(reduced, "reducible data whose random part is repeated"),
        Content::Random => {
            if !reduced {
                section.set("refill_buffers", 1);
            }
        }
        Content::Zeroes => section.set("zero_buffers", 1),
        Content::Pattern(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            section.set("buffer_pattern", format!("0x{hex}"));
            losses.add_if(bytes.len() > 512, "a pattern of more than 512 bytes");
        }
        Content::Counting => {
            let hex: String = (0..=255u8).map(|byte| format!("{byte:02x}")).collect();
            section.set("buffer_pattern", format!("0x{hex}"));
            losses.add("bytes that count become a pattern of the same bytes");
        }
        Content::Window(_) => {
            section.set("refill_buffers", 1);
            losses.add("parts of a random buffer become new random bytes");
        }
    }
    if group.data.compressible > 0.0 {
        section.set("buffer_compress_percentage", percentage(group.data.compressible, losses));
    }
    if group.data.duplicates > 0.0 {
        section.set("dedupe_percentage", percentage(group.data.duplicates, losses));
    }
    if reduced {
        section.set("buffer_compress_chunk", group.data.unit);
    }
}

fn durability(section: &mut Section, group: &Group, losses: &mut Losses) {
    section.set("direct", u8::from(group.caching.direct));
    match group.caching.write_through {
        WriteThrough::No => {}
        WriteThrough::Data => section.set("sync", "dsync"),
        WriteThrough::All => section.set("sync", "sync"),
    }
    if let Some(flush) = group.caching.flush {
        if flush.every > 0 {
            section.set(if flush.data_only { "fdatasync" } else { "fsync" }, flush.every);
        }
        losses.add_if(flush.every == 0 && flush.data_only, "a flush of data alone at the end");
        if flush.at_end {
            section.set("end_fsync", 1);
        }
    }
    let Some(verify) = &group.verify else { return };
    section.set("verify", "crc32c");
    match verify.when {
        VerifyWhen::After => {}
        VerifyWhen::Backlog(writes) => section.set("verify_backlog", writes),
        VerifyWhen::Later => section.set("do_verify", 0),
        VerifyWhen::Only => section.set("verify_only", 1),
    }
    if let Some(interval) = verify.interval {
        section.set("verify_interval", interval);
    }
    if verify.fatal {
        section.set("verify_fatal", 1);
    }
}

fn goals(section: &mut Section, stage: &Stage, losses: &mut Losses) {
    if stage.ends == StageEnd::First {
        section.set("exitall", 1);
    }
    if let Some(search) = stage.search {
        section.set("latency_target", format!("{}us", search.latency.as_micros()));
        section.set("latency_window", format!("{}us", search.window.as_micros()));
        section.set("latency_percentile", search.percentile);
    }
    if let Some(steady) = stage.steady {
        let kind = match steady.of {
            SteadyOf::Iops => "iops",
            SteadyOf::Bandwidth => "bw",
            SteadyOf::Latency => "lat",
        };
        let slope = if steady.slope { "_slope" } else { "" };
        section.set("steadystate", format!("{kind}{slope}:{}%", steady.limit));
        section.set("steadystate_duration", time(steady.window));
    }
    losses.add_if(
        stage.groups.len() > 1 && (stage.search.is_some() || stage.steady.is_some()),
        "a goal of several jobs together",
    );
}
