//! A run as a stage: groups of workloads that share devices.

use super::expand::Run;
use super::settings::{Flags, Part, Sd, Transfer, Wd};
use crate::builder::{self, Builder};
use crate::findings::{Findings, refused, unsupported};
use plan::{
    Amount, AtEnd, Caching, Content, Cursor, Data, Depth, Extent, FlushRule, Group, HitArea, Length, Line,
    Loop, NoteKind, Pace, Pattern, Rate, RateOf, RatePer, Sequence, Size, Span, Stage, Timing, Workers,
};
use std::time::Duration;

/// A storage definition on one of its hosts; none where there is one host.
#[derive(Clone, Copy)]
struct Device<'a> {
    sd: &'a Sd,
    host: Option<&'a str>,
    lun: &'a str,
    /// Its part of the definition's threads: Vdbench divides them among the hosts.
    threads: u32,
}

/// Devices of the same settings that the same workloads use.
struct Share<'a> {
    devices: Vec<Device<'a>>,
    wds: Vec<usize>,
}

/// The stage of a run.
pub(crate) fn stage(run: &Run<'_>, builder: &mut Builder, findings: &mut Findings) -> Option<Stage> {
    let skews = skews(&run.wds);
    let skewed = run.wds.iter().any(|wd| wd.skew.is_some());
    let devices = devices(run);
    if !has_work(run, &devices, findings) {
        return None;
    }
    let shares = shares(run, &devices);
    let mut groups = Vec::new();
    for share in &shares {
        let part = |&wd: &usize| {
            let all = devices.iter().filter(|device| uses(&run.wds[wd], device)).count().max(1);
            skews[wd] * share.devices.len() as f64 / all as f64
        };
        let alike = share.wds.windows(2).all(|pair| same_area(&run.wds[pair[0]], &run.wds[pair[1]]));
        if alike {
            let percent: f64 = share.wds.iter().map(part).sum();
            let weights: Vec<f64> = share.wds.iter().map(part).collect();
            groups.push((group(run, share, &share.wds, &weights, None, builder), percent));
        } else {
            let whole: f64 = share.wds.iter().map(part).sum();
            let text =
                "workloads use different areas of one device: the threads of the device are divided by skew";
            findings.note(NoteKind::Changed, &run.rd.place, "threads", text);
            for &wd in &share.wds {
                let percent = part(&wd);
                let threads = share.devices[0].threads;
                let own = (f64::from(threads) * percent / whole).round().max(1.0) as u32;
                groups.push((group(run, share, &[wd], &[1.0], Some(own), builder), percent));
            }
        }
    }
    remark(run, &devices, findings);
    let several = groups.len() > 1;
    let groups = (groups.into_iter())
        .map(|(mut group, percent)| {
            group.rates.extend(run.pace.map(|pace| rate(run, pace, percent)));
            group.share = (several && skewed && run.pace.is_none()).then_some(percent);
            group
        })
        .collect();
    let mut stage = Stage::new(&run.label, groups);
    stage.pause = Duration::from_secs(run.rd.pause);
    stage.bytes_max = bytes_max(run, &devices, findings);
    if run.wds.iter().any(|wd| wd.flags.is_some() && run.rd.flags.is_some()) {
        findings.fault(unsupported(
            &run.rd.place,
            "a workload and its run both have openflags=",
            "write openflags= once",
        ));
    }
    Some(stage)
}

/// Whether every workload has a device on one of its hosts; a workload without one is a fault.
fn has_work(run: &Run<'_>, devices: &[Device<'_>], findings: &mut Findings) -> bool {
    if let Some(wd) = run.wds.iter().find(|wd| !devices.iter().any(|device| uses(wd, device))) {
        findings.fault(refused(
            &wd.place,
            format!("the hosts of wd={} have none of its devices", wd.name),
            "Vdbench gives the workload nothing to do",
            "write the same host= for the devices and the workload",
        ));
        return false;
    }
    true
}

/// What Vdbench refuses of a device on Linux.
fn remark(run: &Run<'_>, devices: &[Device<'_>], findings: &mut Findings) {
    for device in devices {
        let flags = run.rd.flags.or(run.wds.iter().find(|wd| uses(wd, device)).and_then(|wd| wd.flags));
        if device.lun.starts_with("/dev/") && flags.unwrap_or(device.sd.flags) == Flags::default() {
            let text = "Vdbench 5.04.06 on Linux rejects a device below /dev without openflags=o_direct; the lab uses the page cache";
            findings.note(NoteKind::Trap, &device.sd.place, "openflags", text);
        }
    }
}

/// The share of each workload: what is given, and what is left for the others.
fn skews(wds: &[Wd]) -> Vec<f64> {
    let given: f64 = wds.iter().filter_map(|wd| wd.skew).sum();
    let open = wds.iter().filter(|wd| wd.skew.is_none()).count().max(1) as f64;
    wds.iter().map(|wd| wd.skew.unwrap_or((100.0 - given).max(0.0) / open)).collect()
}

/// The devices of a run, on every host that has them and does a workload on them.
fn devices<'a>(run: &'a Run<'_>) -> Vec<Device<'a>> {
    let mut devices = Vec::new();
    for sd in &run.sds {
        let first = devices.len();
        for (lun, hosts) in sd.places() {
            let device = |host: Option<&'a str>| Device { sd, host, lun, threads: sd.threads };
            if run.hosts.len() < 2 {
                devices.push(device(None));
                continue;
            }
            let named = run.hosts.iter().filter(|host| hosts.is_empty() || hosts.contains(host));
            devices.extend(
                named
                    .map(|host| device(Some(host)))
                    .filter(|device| run.wds.iter().any(|wd| uses(wd, device))),
            );
        }
        let parts = u32::try_from(devices.len() - first).unwrap_or(u32::MAX).max(1);
        devices[first..].iter_mut().for_each(|device| device.threads = sd.threads.div_ceil(parts));
    }
    devices
}

/// Whether a workload goes to a device.
fn uses(wd: &Wd, device: &Device<'_>) -> bool {
    let here = match (&wd.hosts, device.host) {
        (Some(hosts), Some(host)) => hosts.iter().any(|name| name == host),
        _ => true,
    };
    here && wd.sds.as_ref().is_some_and(|names| names.contains(&device.sd.name))
}

/// `maxdata=`: below 100 it counts the size of all devices.
fn bytes_max(run: &Run<'_>, devices: &[Device<'_>], findings: &mut Findings) -> Option<u64> {
    let limit = run.rd.bytes_max?;
    if limit >= 100 {
        return Some(limit);
    }
    let sizes = devices.iter().map(|device| device.sd.size).collect::<Option<Vec<u64>>>();
    if sizes.is_none() {
        findings.fault(unsupported(
            &run.rd.place,
            format!("maxdata={limit} is {limit} times the size of all devices, and a device has no size="),
            "add size= to every sd=, or write maxdata= in bytes",
        ));
    }
    sizes.map(|sizes| sizes.into_iter().fold(0, u64::saturating_add).saturating_mul(limit))
}

/// Devices in parts: those of one part have the same settings and the same workloads.
fn shares<'a>(run: &'a Run<'_>, devices: &[Device<'a>]) -> Vec<Share<'a>> {
    let mut shares: Vec<Share<'a>> = Vec::new();
    for device in devices {
        let wds: Vec<usize> =
            (run.wds.iter().enumerate()).filter(|(_, wd)| uses(wd, device)).map(|(index, _)| index).collect();
        match shares.iter_mut().find(|share| share.wds == wds && same_settings(&share.devices[0], device)) {
            Some(share) => share.devices.push(*device),
            None => shares.push(Share { devices: vec![*device], wds }),
        }
    }
    shares
}

fn same_settings(one: &Device<'_>, other: &Device<'_>) -> bool {
    let settings = |sd: &Sd| (sd.size, sd.flags, sd.part, sd.hit_area, sd.offset, sd.align);
    (one.host, one.threads) == (other.host, other.threads) && settings(one.sd) == settings(other.sd)
}

/// Whether two workloads may be lines of one mix.
fn same_area(one: &Wd, other: &Wd) -> bool {
    one.part == other.part
        && one.read_hits == other.read_hits
        && one.write_hits == other.write_hits
        && one.flags == other.flags
        && one.seek.stops == other.seek.stops
}

fn group(
    run: &Run<'_>,
    share: &Share<'_>,
    wds: &[usize],
    weights: &[f64],
    threads: Option<u32>,
    builder: &mut Builder,
) -> Group {
    let sd = share.devices[0].sd;
    let first = &run.wds[wds[0]];
    let names: Vec<&str> = wds.iter().map(|&wd| run.wds[wd].name.as_str()).collect();
    let mut lines = Vec::new();
    for (&wd, &weight) in wds.iter().zip(weights) {
        let part = if wds.len() == 1 { 1.0 } else { weight };
        lines_of(&run.wds[wd], sd, part, &mut lines);
    }
    let mut pattern = Pattern::simple(4096, 100.0, 100.0);
    pattern.lines = lines;
    pattern.span = span(sd, first.part.or(sd.part));
    pattern.sequence = Sequence {
        cursor: Cursor::PerTarget,
        at_end: if first.seek.stops { AtEnd::Stop } else { AtEnd::Wrap },
        ..Sequence::default()
    };
    pattern.hits = (first.read_hits > 0.0 || first.write_hits > 0.0).then_some(HitArea {
        bytes: sd.hit_area,
        reads: first.read_hits,
        writes: first.write_hits,
    });
    let targets = (share.devices.iter())
        .map(|device| {
            let size = device.sd.size.map(|size| size.saturating_add(device.sd.offset));
            builder.target(device.host, device.lun, size)
        })
        .collect();
    let caching = caching(run.rd.flags.or(first.flags).unwrap_or(sd.flags));
    let timing = timing(run, first.seek.stops);
    let mut group = builder::group(names.join("+"), targets, pattern, timing, caching);
    group.vm = share.devices[0].host.map(str::to_owned);
    group.workers = Workers::PerTarget(1);
    group.depth = Depth::PerTarget(threads.unwrap_or(share.devices[0].threads));
    group.data = data(run);
    group
}

fn lines_of(wd: &Wd, sd: &Sd, part: f64, lines: &mut Vec<Line>) {
    let mut line = |weight: f64, size: Size| {
        lines.push(Line { align: sd.align, ..Line::new(weight, size, wd.reads, wd.seek.random) });
    };
    match &wd.transfer {
        Transfer::Mix(mix) => match mix.as_slice() {
            [(size, _)] => line(part, Size::Fixed(*size)),
            several => {
                several.iter().for_each(|(size, percent)| line(part * percent / 100.0, Size::Fixed(*size)))
            }
        },
        Transfer::Range { min, max, step } => line(part, Size::Range { min: *min, max: *max, step: *step }),
    }
}

fn span(sd: &Sd, part: Option<Part>) -> Span {
    let at = |bytes: u64| Extent::Bytes(sd.offset.saturating_add(bytes));
    let (offset, length) = match (part, sd.size) {
        (None, None) => (at(0), None),
        (None, Some(size)) => (at(0), Some(Extent::Bytes(size))),
        (Some(Part::Bytes(low, high)), _) => (at(low), Some(Extent::Bytes(high - low))),
        (Some(Part::Percent(low, high)), Some(size)) => {
            let (low, high) = (Extent::Percent(low).of(size), Extent::Percent(high).of(size));
            (at(low), Some(Extent::Bytes(high - low)))
        }
        (Some(Part::Percent(low, high)), None) => (Extent::Percent(low), Some(Extent::Percent(high - low))),
    };
    Span { offset, length, ..Span::default() }
}

fn timing(run: &Run<'_>, stops: bool) -> Timing {
    // Without a warm-up the first interval is left out of every average.
    let (ramp, counted) = match run.rd.warmup {
        Some(warmup) if warmup > 0 => (warmup, run.rd.elapsed),
        _ => (run.rd.interval, run.rd.elapsed - run.rd.interval),
    };
    let time = Duration::from_secs(counted);
    let length = match stops {
        true => Length::First { time, amount: Amount::Passes(1.0) },
        false => Length::Time(time),
    };
    Timing { delay: Duration::ZERO, ramp: Duration::from_secs(ramp), length, cooldown: Duration::ZERO }
}

/// A group's part of the run's rate.
fn rate(run: &Run<'_>, pace: Pace, percent: f64) -> Rate {
    let pace = match pace {
        Pace::Iops(iops) => Pace::Iops(iops * percent / 100.0),
        Pace::Bytes(bytes) => Pace::Bytes(bytes * percent / 100.0),
        Pace::PercentOf { stage, percent: of } => Pace::PercentOf { stage, percent: of * percent / 100.0 },
    };
    Rate { pace, per: RatePer::Group, of: RateOf::All, arrivals: run.rd.arrivals, clock: Loop::Closed }
}

fn data(run: &Run<'_>) -> Data {
    // In millionths, so that a ratio and its percentage are one number in both directions.
    let percent = |ratio: f64| ((1.0 - 1.0 / ratio) * 1e6).round() / 1e4;
    let duplicates = percent(run.general.deduplication);
    Data {
        content: Content::Random,
        compressible: percent(run.general.compression),
        duplicates,
        unit: if duplicates > 0.0 { run.general.unit.next_power_of_two().min(1 << 30) } else { 4096 },
    }
}

fn caching(flags: Flags) -> Caching {
    let flush = flags.flush_end.then_some(FlushRule { every: 0, data_only: false, at_end: true });
    Caching { direct: flags.direct, write_through: flags.through, flush }
}
