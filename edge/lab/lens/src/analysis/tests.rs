//! Tests of the whole analysis.

use super::*;
use base::Random;

fn event(at_ns: u64, action: Action, offset: u64, bytes: u64) -> Event {
    Event { at_ns, disk: 0, action, offset, bytes, latency_ns: Some(1_000_000), queued_ns: None }
}

fn analyzed(events: impl IntoIterator<Item = Event>) -> Analyzed {
    let mut analysis = Analysis::new(Options::default());
    events.into_iter().for_each(|event| analysis.event(&event));
    analysis.finish(&["vm".to_owned()])
}

#[test]
fn a_mix_is_counted_by_ios_and_by_bytes() {
    let mut events: Vec<Event> = (0..70).map(|at| event(at, Action::Read, at * 8192, 8192)).collect();
    events.extend((0..30).map(|at| event(100 + at, Action::Write, (1 << 30) + at * 65_536 + 512, 65_536)));
    events.push(event(200, Action::Flush, 0, 0));
    events.push(event(201, Action::Trim, 0, 1 << 20));
    let found = analyzed(events);
    let mix = &found.disks[0].mix;
    assert_eq!((mix.reads, mix.writes, mix.flushes, mix.trims), (70, 30, 1, 1));
    assert_eq!((mix.read_share(), mix.misaligned_4k, found.disks[0].ios), (0.7, 0.3, 100));
    let bytes = 70.0 * 8192.0 / (70.0 * 8192.0 + 30.0 * 65_536.0);
    assert!((mix.read_byte_share() - bytes).abs() < 1e-12);
    let size = |action, bytes, count| SizeShare { action, bytes, count, random: 1 };
    assert_eq!(mix.sizes, [size(Action::Read, 8192, 70), size(Action::Write, 65_536, 30)]);
    assert_eq!(found.overall.mix, *mix);
}

#[test]
fn a_closed_loop_agrees_with_littles_law_and_a_lie_does_not() {
    // Four outstanding: each I/O takes four intervals.
    let closed =
        |latency_ns| {
            analyzed((0..10_000).map(|at| Event {
                latency_ns: Some(latency_ns),
                ..event(at * 250_000, Action::Read, 0, 4096)
            }))
        };
    let found = closed(1_000_000).disks[0].outstanding.unwrap();
    assert!((found.mean - 4.0).abs() < 0.01 && (found.at_arrival - 4.0).abs() < 0.01, "{found:?}");
    assert!(found.residual.abs() < 0.01 && found.variation < 0.02 && found.most == 4, "{found:?}");
    let without = analyzed([Event { latency_ns: None, ..event(0, Action::Read, 0, 512) }]);
    assert_eq!(without.disks[0].outstanding, None);
}

#[test]
fn disks_are_kept_apart_and_added_up() {
    let mut random = Random::new(1);
    let events = (0..20_000u64).map(|at| Event {
        disk: (at % 2) as u32,
        ..event(at * 1_000, Action::Write, random.below(1_000) * 4096, 4096)
    });
    let found = analyzed(events);
    let near =
        |bytes: u64, blocks: f64| assert!((bytes as f64 / 4096.0 / blocks - 1.0).abs() < 0.03, "{bytes}");
    near(found.disks[0].working_set.bytes, 1_000.0);
    near(found.disks[1].working_set.bytes_written, 1_000.0);
    near(found.overall.working_set.bytes, 2_000.0);
    assert_eq!((found.disks.len(), found.disks[1].name.as_str(), found.overall.ios), (2, "disk 1", 20_000));
    // All but the first write of each block.
    assert!((found.overall.overwrites.share - 0.9).abs() < 1e-9, "{:?}", found.overall.overwrites);
    let hits = found.overall.reuse.for_hits[0].unwrap() / 4096;
    // 90 % can hit at most, and by chance all sizes are alike: 8/9 of the 2,000 blocks.
    assert!((1_600..=1_950).contains(&hits), "{hits}");
}

#[test]
fn no_event_makes_it_panic() {
    (2..12).for_each(extremes);
    assert_eq!(analyzed([]).overall.ios, 0);
}

fn extremes(seed: u64) {
    let mut random = Random::new(seed);
    let mut analysis = Analysis::new(Options { block: 0, window_s: 0.0, sampling: Sampling::Rate(0.0) });
    let mut at_ns = 0u64;
    let extreme = |random: &mut Random| random.bits() >> random.below(64);
    for _ in 0..300 {
        at_ns = at_ns.saturating_add(extreme(&mut random));
        let action = [Action::Read, Action::Write, Action::Trim, Action::Flush][random.below(4) as usize];
        let latency_ns = random.chance(1, 2).then(|| extreme(&mut random));
        let (offset, bytes) = (extreme(&mut random), extreme(&mut random));
        let disk = extreme(&mut random) as u32;
        analysis.event(&Event { at_ns, disk, action, offset, bytes, latency_ns, queued_ns: latency_ns });
    }
    let found = analysis.finish(&[]);
    assert!(found.disks.len() <= DISKS_MAX);
    for disk in &found.disks {
        assert!(crate::text::profile(disk).contains(&disk.name));
    }
    let fitted = crate::fit::fit(&found, "extremes", 0);
    assert!(fitted.plan.targets.len() <= DISKS_MAX);
}
