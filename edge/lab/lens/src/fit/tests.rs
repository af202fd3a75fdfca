//! Tests of fitting: events of a known process, and what is recovered of it.

use super::*;
use crate::analysis::zipf;
use crate::analysis::{Analysis, Options};
use crate::event::Event;
use base::Random;

const GIB: u64 = 1 << 30;

fn io(at_ns: u64, action: Action, offset: u64, bytes: u64, latency_ns: Option<u64>) -> Event {
    Event { at_ns, disk: 0, action, offset, bytes, latency_ns, queued_ns: None }
}

fn fitted(events: &[Event]) -> (Fitted, Group) {
    let mut analysis = Analysis::new(Options::default());
    events.iter().for_each(|event| analysis.event(event));
    let fitted = fit(&analysis.finish(&["vm".to_owned()]), "like a trace", 60);
    assert_eq!(fitted.plan.problems(), [], "{:?}", fitted.plan);
    let group = fitted.plan.stages[0].groups[0].clone();
    (fitted, group)
}

fn exponential(random: &mut Random, mean_ns: f64) -> u64 {
    let uniform = ((random.bits() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    (-uniform.ln() * mean_ns) as u64
}

/// 70 % reads of 8 KiB, 30 % writes: 3 of 4 of 4 KiB, else 64 KiB; random in a GiB; independent arrivals, 2,000 a second.
fn oltp(seed: u64, count: usize) -> Vec<Event> {
    let mut random = Random::new(seed);
    let mut at = 0;
    (0..count)
        .map(|_| {
            at += exponential(&mut random, 500_000.0);
            let (action, bytes) = match random.below(1_000) {
                0..700 => (Action::Read, 8192),
                700..925 => (Action::Write, 4096),
                _ => (Action::Write, 65_536),
            };
            let latency = exponential(&mut random, 2_000_000.0);
            io(at, action, random.below(GIB / 65_536) * 65_536, bytes, Some(latency))
        })
        .collect()
}

#[test]
fn an_open_mix_of_sizes_is_recovered() {
    let (_, group) = fitted(&oltp(1, 50_000));
    let pattern = &group.pattern;
    assert!((pattern.reads() - 70.0).abs() < 1.0, "{}", pattern.reads());
    assert!((pattern.random() - 100.0).abs() < 0.5, "{}", pattern.random());
    assert!((pattern.size_mean() - (0.7 * 8192.0 + 0.225 * 4096.0 + 0.075 * 65_536.0)).abs() < 200.0);
    let weights: Vec<(u64, f64)> =
        pattern.lines.iter().map(|line| (line.size.max(), line.weight.round())).collect();
    assert_eq!(
        weights.iter().map(|(size, _)| *size).collect::<Vec<_>>(),
        [8192, 4096, 65_536],
        "{weights:?}"
    );
    assert_eq!(pattern.distribution, Distribution::Uniform);
    let rate = &group.rates[0];
    assert!(matches!(rate.pace, Pace::Iops(iops) if (iops - 2_000.0).abs() < 40.0), "{rate:?}");
    assert_eq!((rate.arrivals, rate.clock), (Arrivals::Poisson, Loop::Open));
}

#[test]
fn a_closed_loop_of_streams_gives_depth_and_workers() {
    // Four streams of 128 KiB reads that take turns, eight outstanding.
    let events: Vec<Event> = (0..40_000u64)
        .map(|at| {
            let offset = (at % 4) * 4 * GIB + at / 4 * 131_072;
            io(at * 100_000, Action::Read, offset, 131_072, Some(800_000))
        })
        .collect();
    let (_, group) = fitted(&events);
    assert_eq!((group.worker_count(), group.outstanding(), group.rates.len()), (4, 8, 0));
    assert!(group.pattern.random() < 0.1 && group.pattern.reads() == 100.0, "{:?}", group.pattern.lines);
    assert_eq!(group.pattern.size_mean(), 131_072.0);
    assert!(group.pattern.sequence.worker_step > GIB, "{:?}", group.pattern.sequence);
}

#[test]
fn zones_and_skew_are_recovered() {
    let mut random = Random::new(3);
    let zoned: Vec<Event> = (0..40_000u64)
        .map(|at| {
            // 80 % in the first quarter.
            let offset = if random.below(10) < 8 {
                random.below(GIB / 4)
            } else {
                GIB / 4 + random.below(GIB / 4 * 3)
            };
            io(at * 1_000_000, Action::Write, offset & !4095, 4096, None)
        })
        .collect();
    let (fit, group) = fitted(&zoned);
    let Distribution::Zoned(zones) = &group.pattern.distribution else {
        panic!("{:?}", group.pattern.distribution)
    };
    assert!((zones[0].ios - 80.0).abs() < 1.0 && zones[0].length == Extent::Percent(25.0), "{zones:?}");
    assert!(fit.notes[0].contains("no latencies"), "{:?}", fit.notes);
    assert_eq!(group.rates[0].arrivals, Arrivals::Even);

    let skewed: Vec<Event> = zipf(&mut random, 20_000, 0.9, 200_000)
        .into_iter()
        .enumerate()
        .map(|(at, block)| io(at as u64 * 1_000_000, Action::Read, block % 262_144 * 4096, 4096, None))
        .collect();
    match fitted(&skewed).1.pattern.distribution {
        Distribution::Zipf { theta, center: None } => assert!((theta - 0.9).abs() < 0.08, "{theta}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bursts_become_pauses() {
    let mut random = Random::new(4);
    let mut at = 0;
    let events: Vec<Event> = (0..30_000)
        .map(|index| {
            at += if index % 100 == 0 { 500_000_000 } else { 200_000 };
            io(at, Action::Read, random.below(GIB / 4096) * 4096, 4096, Some(150_000))
        })
        .collect();
    let (_, group) = fitted(&events);
    let think = group.pattern.lines[0].think.unwrap();
    assert_eq!(think.after, 100);
    assert!((think.pause.as_secs_f64() - 0.5).abs() < 0.01, "{think:?}");
}

#[test]
fn a_trace_of_nothing_is_a_plan_of_nothing() {
    let found = fit(&Analysis::new(Options::default()).finish(&[]), "none", 60);
    assert!(found.plan.stages.is_empty() && found.notes.is_empty());
}
