//! Plans by chance: any that make sense, and what is left of them in the words of one dialect.

use plan::{
    Amount, Arrivals, AtEnd, Batch, Caching, Content, Cursor, Data, Depth, Distribution, Engine, Extent,
    FlushRule, Group, HitArea, LatencyTarget, Length, Line, Loop, Pace, Pattern, PauseStart, Plan, Rate,
    RateOf, RatePer, Reuse, Seed, Sequence, Size, Span, Stage, StageEnd, Steady, SteadyOf, Target, Think,
    Timing, Verify, VerifyWhen, Workers, WriteThrough, Zone,
};
use proptest::prelude::*;
use std::time::Duration;

const NAMES: [&str; 6] =
    ["/dev/sdb", "/dev/nvme0n1", "/data/file", "/data/with space", "/data/a,b", "/data/x=1"];

fn percent() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => Just(0.0),
        2 => Just(100.0),
        3 => (0u32..=100).prop_map(f64::from),
        1 => (0u32..=1000).prop_map(|tenths| f64::from(tenths) / 10.0),
    ]
}

fn sectors(most: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(4096), Just(8192), Just(65_536), (1..=most).prop_map(|count| count * 512)]
}

fn extent() -> impl Strategy<Value = Extent> {
    prop_oneof![
        (0u64..=1 << 20).prop_map(|sectors| Extent::Bytes(sectors * 512)),
        (0u32..=50).prop_map(|percent| Extent::Percent(f64::from(percent))),
    ]
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (2u64..=100_000).prop_map(Duration::from_secs),
        1 => (2000u64..=100_000).prop_map(Duration::from_millis),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![
        4 => sectors(2048).prop_map(Size::Fixed),
        1 => (1u64..=64, 1u64..=64, any::<bool>()).prop_map(|(one, more, fine)| {
            let min = one * 512;
            Size::Range { min, max: min * (1 + more), step: if fine { 512.min(min) } else { min } }
        }),
    ]
}

prop_compose! {
    fn line()(
        weight in 1u32..=100,
        size in size(),
        reads in percent(),
        trims in prop_oneof![6 => Just(0.0), 1 => percent()],
        random in percent(),
        align in prop::option::weighted(0.2, sectors(64)),
        think in prop::option::weighted(0.2, (1u32..=64, 1u64..=5_000, any::<bool>(), prop::sample::select(vec![PauseStart::Drained, PauseStart::Completed]))),
    ) -> Line {
        let trims = if reads + trims > 100.0 { 100.0 - reads } else { trims };
        let think = think.map(|(after, millis, spin, start)| Think { after, pause: Duration::from_millis(millis), spin, start });
        Line { trims, align, think, ..Line::new(f64::from(weight), size, reads, random) }
    }
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let center = || prop::option::weighted(0.3, (0u32..=100).prop_map(|percent| f64::from(percent) / 100.0));
    let zones = prop::collection::vec((1u32..=40, 1u32..=30), 1..=3).prop_map(|parts| {
        let (mut ios, mut length) = (100, 100);
        let mut zones: Vec<Zone> = (parts.into_iter())
            .filter_map(|(share, size)| {
                if share >= ios || size >= length {
                    return None;
                }
                ios -= share;
                length -= size;
                Some(Zone { ios: f64::from(share), length: Extent::Percent(f64::from(size)) })
            })
            .collect();
        zones.push(Zone { ios: f64::from(ios), length: Extent::Percent(f64::from(length)) });
        Distribution::Zoned(zones)
    });
    prop_oneof![
        4 => Just(Distribution::Uniform),
        1 => (1u32..=300, center()).prop_filter_map("theta is not 1", |(theta, center)| {
            (theta != 100).then(|| Distribution::Zipf { theta: f64::from(theta) / 100.0, center })
        }),
        1 => (1u32..=99, center()).prop_map(|(h, center)| Distribution::Pareto { h: f64::from(h) / 100.0, center }),
        1 => (1u32..=100, center())
            .prop_map(|(deviation, center)| Distribution::Normal { deviation: f64::from(deviation), center }),
        2 => zones,
    ]
}

prop_compose! {
    fn sequence()(
        shared in any::<bool>(),
        stride in prop::option::weighted(0.2, sectors(4096).prop_map(|bytes| bytes as i64)),
        worker_step in prop_oneof![3 => Just(0), 1 => sectors(4096)],
        stops in prop::bool::weighted(0.2),
    ) -> Sequence {
        Sequence {
            cursor: if shared { Cursor::PerTarget } else { Cursor::PerWorker },
            stride,
            worker_step,
            at_end: if stops { AtEnd::Stop } else { AtEnd::Wrap },
        }
    }
}

prop_compose! {
    fn pattern()(
        lines in prop_oneof![3 => prop::collection::vec(line(), 1), 2 => prop::collection::vec(line(), 2..=4)],
        distribution in distribution(),
        once in any::<bool>(),
        follow in prop_oneof![4 => Just(0), 1 => 1u32..=16],
        sequence in sequence(),
        offset in prop_oneof![2 => Just(Extent::Bytes(0)), 1 => extent()],
        length in prop::option::of(extent().prop_filter("a span is not empty", |extent| {
            !matches!(extent, Extent::Bytes(0..=4_194_303) | Extent::Percent(0.0))
        })),
        worker_step in prop_oneof![3 => Just(Extent::Bytes(0)), 1 => extent()],
        hits in prop::option::weighted(0.1, (1u64..=1024, 0u32..=100, 0u32..=100)),
    ) -> Pattern {
        Pattern {
            lines,
            distribution,
            reuse: if once { Reuse::EachBlockOnce } else { Reuse::Draws },
            follow,
            sequence,
            span: Span { offset, length, worker_step },
            hits: hits.map(|(mib, reads, writes)| {
                HitArea { bytes: mib << 20, reads: f64::from(reads), writes: f64::from(writes) }
            }),
        }
    }
}

prop_compose! {
    fn rate()(
        pace in prop_oneof![
            (1u32..=100_000).prop_map(|iops| Pace::Iops(f64::from(iops))),
            (1u32..=1_000_000).prop_map(|kilobytes| Pace::Bytes(f64::from(kilobytes) * 1000.0)),
            (1u32..=1000).prop_map(|tenths| Pace::Iops(f64::from(tenths) / 10.0)),
        ],
        per in prop_oneof![Just(RatePer::WorkerAndTarget), Just(RatePer::Worker), Just(RatePer::Group)],
        of in prop_oneof![3 => Just(RateOf::All), 1 => Just(RateOf::Reads), 1 => Just(RateOf::Writes)],
        poisson in any::<bool>(),
        open in any::<bool>(),
    ) -> Rate {
        Rate {
            pace,
            per,
            of,
            arrivals: if poisson { Arrivals::Poisson } else { Arrivals::Even },
            clock: if open { Loop::Open } else { Loop::Closed },
        }
    }
}

fn data() -> impl Strategy<Value = Data> {
    let content = prop_oneof![
        3 => Just(Content::Random),
        1 => Just(Content::Scrambled),
        1 => Just(Content::Zeroes),
        1 => Just(Content::Counting),
        1 => Just(Content::Pattern(vec![0x5a])),
        1 => prop::collection::vec(any::<u8>(), 1..=16).prop_map(Content::Pattern),
        1 => (1u64..=64).prop_map(|mib| Content::Window(mib << 20)),
    ];
    let share = || prop_oneof![3 => Just(0.0), 1 => (0u32..=95).prop_map(f64::from)];
    (content, share(), share(), 9u32..=16).prop_map(|(content, compressible, duplicates, power)| Data {
        content,
        compressible,
        duplicates,
        unit: if compressible > 0.0 || duplicates > 0.0 { 1 << power } else { 4096 },
    })
}

prop_compose! {
    fn timing()(
        delay in prop_oneof![4 => Just(Duration::ZERO), 1 => duration()],
        ramp in prop_oneof![1 => Just(Duration::ZERO), 2 => duration()],
        time in duration(),
        amount in prop_oneof![
            (1u64..=1 << 30).prop_map(|sectors| Amount::Bytes(sectors * 512)),
            (1u32..=300).prop_map(|percent| Amount::Passes(f64::from(percent) / 100.0)),
        ],
        kind in 0..8,
        cooldown in prop_oneof![5 => Just(Duration::ZERO), 1 => duration()],
    ) -> Timing {
        let length = match kind {
            0 => Length::Amount(amount),
            1 => Length::First { time, amount },
            2 => Length::UntilStopped,
            _ => Length::Time(time),
        };
        Timing { delay, ramp, length, cooldown }
    }
}

prop_compose! {
    fn group()(
        targets in prop::sample::subsequence(vec![0usize, 1, 2], 1..=3),
        workers in (1u32..=8, any::<bool>()),
        depth in (1u32..=64, any::<bool>()),
        pattern in pattern(),
        rates in prop::collection::vec(rate(), 0..=2),
        data in data(),
        verify in prop::option::weighted(0.1, (0u32..=32, any::<bool>(), prop::option::of(9u32..=16))),
        caching in (any::<bool>(), 0usize..3, prop::option::weighted(0.2, (0u32..=32, any::<bool>(), any::<bool>()))),
        engine in prop_oneof![2 => Just(Engine::IoUring), 1 => Just(Engine::LinuxAio), 1 => Just(Engine::Blocking)],
        batch in prop_oneof![2 => Just((0, 1)), 1 => (0u32..=16, 1u32..=8)],
        timing in timing(),
        vm in prop::option::weighted(0.1, 1u32..=3),
    ) -> Group {
        let (direct, through, flush) = caching;
        let mut group = Group::new("group", 0, 1, pattern, timing);
        group.targets = targets;
        group.workers = if workers.1 { Workers::PerTarget(workers.0) } else { Workers::Together(workers.0) };
        group.depth = if depth.1 { Depth::PerTarget(depth.0) } else { Depth::PerWorker(depth.0) };
        group.rates = rates;
        group.data = data;
        group.verify = verify.map(|(backlog, fatal, interval)| Verify {
            when: if backlog == 0 { VerifyWhen::After } else { VerifyWhen::Backlog(backlog) },
            interval: interval.map(|power| 1 << power),
            fatal,
        });
        let write_through = [WriteThrough::No, WriteThrough::Data, WriteThrough::All][through];
        let flush = flush.map(|(every, data_only, at_end)| FlushRule { every, data_only, at_end });
        group.caching = Caching { direct, write_through, flush };
        group.engine = engine;
        group.batch = Batch { submit: batch.0, complete: batch.1, complete_max: 0 };
        group.vm = vm.map(|number| format!("vm{number}"));
        group
    }
}

prop_compose! {
    fn stage()(
        groups in prop_oneof![3 => prop::collection::vec(group(), 1), 1 => prop::collection::vec(group(), 2..=3)],
        pause in prop_oneof![3 => Just(Duration::ZERO), 1 => duration()],
        repeats in prop_oneof![5 => Just(1u32), 1 => 2u32..=3],
        first in prop::bool::weighted(0.1),
        bytes_max in prop::option::weighted(0.1, sectors(1 << 20)),
        goal in 0..20,
        shared in prop::bool::weighted(0.1),
    ) -> Stage {
        let mut stage = Stage::new("stage", groups);
        stage.pause = pause;
        stage.repeats = repeats;
        stage.ends = if first { StageEnd::First } else { StageEnd::All };
        stage.bytes_max = bytes_max;
        let window = Duration::from_secs(10);
        match goal {
            0 => stage.steady = Some(Steady { of: SteadyOf::Iops, slope: true, limit: 0.3, window }),
            1 => {
                stage.search = Some(LatencyTarget { percentile: 99.0, latency: Duration::from_millis(2), window });
            }
            _ => {}
        }
        if shared && stage.groups.len() == 2 {
            stage.groups[0].share = Some(30.0);
            stage.groups[1].share = Some(70.0);
        }
        stage
    }
}

prop_compose! {
    /// Any plan that makes sense.
    pub fn any_plan()(
        stages in prop::collection::vec(stage(), 1..=3),
        names in prop::sample::subsequence(NAMES.to_vec(), 3),
        size in prop::option::of((1u64..=64).prop_map(|gib| gib << 30)),
        seed in prop_oneof![Just(Seed::Fresh), any::<u32>().prop_map(|seed| Seed::Fixed(seed.into()))],
    ) -> Plan {
        let targets = (names.into_iter())
            .map(|name| Target { size: size.filter(|_| !name.starts_with("/dev/")), ..Target::named(name) })
            .collect();
        Plan { name: "plan".into(), targets, stages, seed, notes: Vec::new() }
    }
}

/// The plan with what fio cannot say put into what it can.
pub fn in_words_of_fio(mut plan: Plan) -> Plan {
    plan.stages.iter_mut().for_each(fio);
    for target in plan.targets.iter_mut().filter(|target| !target.name.starts_with("/dev/")) {
        target.size = target.size.or(Some(1 << 36));
    }
    plan
}

fn fio(stage: &mut Stage) {
    stage.bytes_max = None;
    stage.pause = Duration::ZERO;
    if stage.groups.len() > 1 {
        (stage.steady, stage.search) = (None, None);
    }
    for group in &mut stage.groups {
        group.vm = None;
        group.share = None;
        group.pattern.hits = None;
        group.timing.cooldown = Duration::ZERO;
        group.timing.delay = Duration::ZERO;
        if group.timing.length == Length::UntilStopped {
            group.timing.length = Length::Amount(Amount::Passes(2.0));
        }
        if let Length::Amount(Amount::Passes(passes)) | Length::First { amount: Amount::Passes(passes), .. } =
            &mut group.timing.length
            && *passes > 1.0
        {
            *passes = passes.round();
        }
        group.depth = match group.depth {
            Depth::PerTarget(depth) | Depth::PerWorker(depth) => Depth::PerWorker(depth),
        };
        if group.targets.len() > 1 {
            group.targets.truncate(1);
        }
        group.rates.truncate(1);
        fio_pattern(&mut group.pattern);
        for rate in &mut group.rates {
            rate.per = RatePer::Worker;
            let mixed = !matches!(group.pattern.reads(), 0.0 | 100.0);
            rate.of = match (mixed, rate.of) {
                (true, RateOf::All) => RateOf::Reads,
                (true, of) => of,
                (false, _) => RateOf::All,
            };
            if let Pace::Iops(iops) = &mut rate.pace {
                *iops = iops.ceil();
            }
        }
        let data = &mut group.data;
        if matches!(data.content, Content::Counting | Content::Window(_)) {
            data.content = Content::Random;
        }
        if data.content != Content::Random {
            *data = Data { content: data.content.clone(), ..Data::default() };
        }
        if let Some(flush) = &mut group.caching.flush {
            flush.data_only &= flush.every > 0;
            flush.at_end |= flush.every == 0;
        }
        if !group.pattern.writes() {
            group.verify = None;
        }
    }
}

fn fio_pattern(pattern: &mut Pattern) {
    pattern.sequence = Sequence { stride: pattern.sequence.stride, ..Sequence::default() };
    let first = pattern.lines[0].clone();
    let (reads, random) = (first.reads.round(), first.random.round());
    pattern.lines.truncate(4);
    let count = pattern.lines.len();
    let fixed = pattern.lines.iter().all(|line| matches!(line.size, Size::Fixed(_)));
    if count > 1 && !fixed {
        pattern.lines.truncate(1);
    }
    // Whole percentages for each size.
    let shares: [&[f64]; 4] = [&[100.0], &[30.0, 70.0], &[10.0, 20.0, 70.0], &[1.0, 2.0, 3.0, 94.0]];
    let shares = shares[pattern.lines.len() - 1];
    for (line, share) in pattern.lines.iter_mut().zip(shares) {
        (line.weight, line.reads, line.random, line.trims) = (*share, reads, random, 0.0);
        line.align = first.align;
        line.think = first.think;
        if let Size::Range { min, max, step } = line.size {
            line.size = Size::Range { min, max, step: if step == min { min } else { 1 } };
        }
    }
    let mut sizes: Vec<u64> = pattern.lines.iter().map(|line| line.size.min()).collect();
    sizes.dedup();
    if random == 0.0 {
        pattern.follow = 0;
        pattern.lines.iter_mut().for_each(|line| line.align = None);
        if pattern.lines.len() > 1 || !fixed {
            pattern.sequence.stride = None;
        }
    } else {
        pattern.sequence.stride = None;
        if pattern.lines.iter().any(|line| line.align.is_some()) {
            pattern.reuse = Reuse::Draws;
        }
    }
}
