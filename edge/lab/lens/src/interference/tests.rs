//! Tests of interference: the published experiments, and all that must not be taken for it.

use super::*;
use crate::capture::Disk;
use base::{Instant, Random};
use iostats::{Operation, Recorder};
use proptest::prelude::*;
use std::collections::VecDeque;

/// What the I/Os of a disk are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Pattern {
    /// 64 KiB reads one after another.
    Sequential,
    /// 8 KiB, two reads a write, anywhere.
    Random,
    /// 4 KiB random and 64 KiB sequential.
    Mixed,
}

/// A disk from a time on: so many I/Os a second with so many outstanding, a closed loop.
#[derive(Debug, Clone, Copy)]
struct Phase {
    from_s: u64,
    iops: f64,
    depth: usize,
    pattern: Pattern,
}

fn phase(from_s: u64, iops: f64, depth: usize, pattern: Pattern) -> Phase {
    Phase { from_s, iops, depth, pattern }
}

const WINDOW_S: f64 = 10.0;

/// One window: a steady closed loop, so that latency is outstanding by pace.
fn window((at_s, seconds): (f64, f64), phase: Phase, noise: f64, random: &mut Random) -> Window {
    let mut recorder = Recorder::new();
    let iops = phase.iops * noise;
    let (interval, count) = ((1e9 / iops) as u64, (iops * seconds) as u64);
    let (mut under_way, mut position) = (VecDeque::new(), 0u64);
    for index in 0..count {
        let now = Instant(index * interval);
        if under_way.len() == phase.depth {
            let arrival = under_way.pop_front().unwrap();
            recorder.complete(now, arrival, true);
        }
        let sequential =
            phase.pattern == Pattern::Sequential || phase.pattern == Pattern::Mixed && random.chance(1, 3);
        let sectors = match (sequential, phase.pattern) {
            (true, _) => 128,
            (false, Pattern::Mixed) => 8,
            (false, _) => 16,
        };
        let sector = if sequential { position } else { random.below(1 << 21) * 8 };
        position = sector + u64::from(sectors);
        let write = phase.pattern == Pattern::Random && random.chance(1, 3);
        let operation = if write { Operation::Write } else { Operation::Read };
        under_way.push_back(recorder.arrive(now, operation, sector, sectors));
    }
    for (index, arrival) in under_way.into_iter().enumerate() {
        recorder.complete(Instant((count + index as u64) * interval), arrival, true);
    }
    Window::from_statistics(at_s, seconds, &recorder.statistics())
}

fn disk(name: &str, seed: u64, end_s: u64, phases: &[Phase]) -> Disk {
    noisy_disk(name, seed, end_s, phases, 40)
}

/// Each window within so many thousandths of its pace.
fn noisy_disk(name: &str, seed: u64, end_s: u64, phases: &[Phase], noise: u64) -> Disk {
    windowed_disk(name, seed, (end_s, WINDOW_S), phases, noise)
}

/// A disk of a schedule of 12 s, with a window for each second as the generator makes them.
fn short_disk(name: &str, seed: u64, phases: &[Phase], noise: u64) -> Disk {
    windowed_disk(name, seed, (12, 1.0), phases, noise)
}

fn windowed_disk(name: &str, seed: u64, (end_s, window_s): (u64, f64), phases: &[Phase], noise: u64) -> Disk {
    let mut random = Random::new(seed);
    let windows = (0..(end_s as f64 / window_s) as u64).filter_map(|index| {
        let at_s = index as f64 * window_s;
        let phase =
            phases.iter().rev().find(|phase| phase.from_s as f64 <= at_s).filter(|phase| phase.iops > 0.0)?;
        let noise = 1.0 + (random.below(2 * noise + 1) as f64 - noise as f64) / 1_000.0;
        Some(window((at_s, window_s), *phase, noise, &mut random))
    });
    Disk { name: name.to_owned(), windows: windows.collect(), gaps: Vec::new() }
}

fn capture(disks: Vec<Disk>) -> Capture {
    Capture { source: "test".to_owned(), disks, notes: Vec::new() }
}

fn check(disks: Vec<Disk>, verdict: Verdict, parts: &[&str]) -> Interference {
    let found = interference(&capture(disks));
    let text = found.sentences.join("\n");
    assert_eq!(found.verdict, verdict, "{text}\n{:#?}", found.relations);
    for part in parts {
        assert!(text.contains(part), "lacks {part:?}:\n{text}\n{found:#?}");
    }
    found
}

const NONE: Pattern = Pattern::Random;

fn test_a() -> Vec<Disk> {
    let mixed = |from, iops| phase(from, iops, 8, Pattern::Mixed);
    vec![
        disk("VM1", 1, 1_200, &[mixed(0, 600.0), mixed(300, 250.0), phase(900, 0.0, 1, NONE)]),
        disk("VM2", 2, 1_200, &[phase(0, 0.0, 1, NONE), mixed(300, 240.0), mixed(900, 600.0)]),
    ]
}

fn test_b() -> Vec<Disk> {
    let sequential = |from, iops| phase(from, iops, 4, Pattern::Sequential);
    let random = |from, iops| phase(from, iops, 8, Pattern::Random);
    vec![
        disk("VM1", 3, 1_200, &[sequential(0, 600.0), sequential(360, 117.0), phase(900, 0.0, 1, NONE)]),
        disk("VM2", 4, 1_200, &[phase(0, 0.0, 1, NONE), random(360, 180.0), random(900, 186.0)]),
    ]
}

#[test]
fn the_same_mixed_load_in_two_machines_slows_both() {
    let found = check(
        test_a(),
        Verdict::Interference,
        &["VM1 and VM2 slow each other", "VM1 alone", "sensitive to the order of I/Os"],
    );
    assert_eq!(found.relations.len(), 1);
    assert_eq!(found.relations[0].kind, RelationKind::Mutual);
}

#[test]
fn a_random_neighbour_is_the_cause_and_a_sequential_stream_the_victim() {
    let parts = [
        "VM2's start at 360 s cut VM1 from 599 to 116 IOPS (-81 %)",
        "VM1's size and distance histograms did not change (JS divergence 0.00)",
        "VM2 changed little when VM1 stopped",
        "VM2 is the cause, VM1 the victim",
    ];
    let found = check(test_b(), Verdict::Interference, &parts);
    let relation = &found.relations[0];
    assert_eq!((relation.one, relation.other, relation.kind), (1, 0, RelationKind::CauseAndVictim));
    // ln(600 / 117)
    assert!((relation.effect - 1.635).abs() < 0.05, "{relation:?}");
    assert!(relation.follows.unwrap().chance < 0.1, "{relation:?}");
}

#[test]
fn a_disk_that_stops_by_itself_is_nobodys_victim() {
    let disks = vec![
        disk("VM1", 5, 900, &[phase(0, 400.0, 4, Pattern::Mixed), phase(450, 0.0, 1, NONE)]),
        disk("VM2", 6, 900, &[phase(0, 300.0, 4, Pattern::Random)]),
    ];
    check(
        disks,
        Verdict::NoInterference,
        &["VM1 stopped (4", "no other disk changed", "No disk slows another"],
    );
}

#[test]
fn less_load_is_no_harm() {
    // VM1 asks for less at the moment at which VM2 starts: half the pace with half outstanding.
    let disks = vec![
        disk("VM1", 7, 900, &[phase(0, 600.0, 8, Pattern::Mixed), phase(450, 300.0, 4, Pattern::Mixed)]),
        disk("VM2", 8, 900, &[phase(0, 0.0, 1, NONE), phase(450, 300.0, 4, Pattern::Random)]),
    ];
    check(disks, Verdict::CannotTell, &["VM1 decreased its load", "VM2 started", "changed together"]);
}

#[test]
fn two_disks_on_one_schedule_are_no_cause_of_each_other() {
    let busy = |seed, name: &str| {
        let phases = [
            phase(0, 300.0, 4, Pattern::Mixed),
            phase(300, 600.0, 8, Pattern::Mixed),
            phase(600, 300.0, 4, Pattern::Mixed),
        ];
        disk(name, seed, 900, &phases)
    };
    check(
        vec![busy(9, "VM1"), busy(10, "VM2")],
        Verdict::CannotTell,
        &["they changed together", "Cannot tell"],
    );
}

#[test]
fn one_disk_alone_tells_nothing() {
    let slows =
        disk("VM1", 11, 900, &[phase(0, 600.0, 8, Pattern::Mixed), phase(450, 200.0, 8, Pattern::Mixed)]);
    check(vec![slows], Verdict::CannotTell, &["cause lies outside the capture", "at least two disks"]);
    check(vec![], Verdict::CannotTell, &["at least two disks"]);
}

#[test]
fn where_nothing_changes_nothing_can_be_told() {
    let steady = |seed, name: &str| disk(name, seed, 600, &[phase(0, 300.0, 4, Pattern::Mixed)]);
    check(vec![steady(12, "VM1"), steady(13, "VM2")], Verdict::CannotTell, &["no disk changed its load"]);
}

#[test]
fn what_slows_all_at_once_is_none_of_them() {
    let slows = |seed, name: &str| {
        disk(name, seed, 900, &[phase(0, 600.0, 8, Pattern::Mixed), phase(450, 200.0, 8, Pattern::Mixed)])
    };
    check(
        vec![slows(14, "VM1"), slows(15, "VM2")],
        Verdict::CannotTell,
        &["the cause lies outside the capture"],
    );
}

#[test]
fn of_two_possible_causes_none_is_accused() {
    let starts = |seed, name: &str| {
        disk(name, seed, 900, &[phase(0, 0.0, 1, NONE), phase(450, 200.0, 8, Pattern::Random)])
    };
    let victim =
        disk("VM1", 16, 900, &[phase(0, 600.0, 8, Pattern::Mixed), phase(450, 200.0, 8, Pattern::Mixed)]);
    let disks = vec![victim, starts(17, "VM2"), starts(18, "VM3")];
    check(disks, Verdict::CannotTell, &["VM2 started", "VM3 started", "several disks may be the cause"]);
}

#[test]
fn a_third_disk_that_does_not_care_is_left_out() {
    let mut disks = test_b();
    disks.insert(1, disk("VM3", 19, 1_200, &[phase(0, 50.0, 1, Pattern::Random)]));
    let found = check(disks, Verdict::Interference, &["VM2 is the cause, VM1 the victim"]);
    assert_eq!(found.relations.len(), 1, "{:#?}", found.relations);
}

#[test]
fn at_a_fixed_rate_only_the_latency_tells() {
    // The pace stays; what is outstanding grows with the latency.
    let disks = vec![
        disk("VM1", 20, 900, &[phase(0, 300.0, 2, Pattern::Random), phase(450, 300.0, 6, Pattern::Random)]),
        disk("VM2", 21, 900, &[phase(0, 0.0, 1, NONE), phase(450, 500.0, 8, Pattern::Random)]),
    ];
    check(
        disks,
        Verdict::Interference,
        &["VM2's start at 450 s slowed VM1 from 6.", "VM2 slows VM1; whether VM1 slows VM2 is unknown"],
    );
}

#[test]
fn without_latencies_nobody_is_accused() {
    let mut disks = test_b();
    for window in disks.iter_mut().flat_map(|disk| &mut disk.windows) {
        window
            .histograms
            .retain(|one| !matches!(one.kind, iostats::Kind::Latency | iostats::Kind::Outstanding));
        (window.latencies, window.outstanding_mean) = (None, None);
        window.totals.iter_mut().for_each(|total| (total.timed, total.latency_ns) = (0, 0));
    }
    check(disks, Verdict::CannotTell, &["without latencies"]);
}

#[test]
fn a_change_that_helps_once_and_does_nothing_once_is_contradictory() {
    // VM2's start comes with VM1's fall; its stop does not bring VM1 back.
    let disks = vec![
        disk("VM1", 22, 1_200, &[phase(0, 600.0, 8, Pattern::Mixed), phase(400, 200.0, 8, Pattern::Mixed)]),
        disk(
            "VM2",
            23,
            1_200,
            &[phase(0, 0.0, 1, NONE), phase(400, 200.0, 8, Pattern::Random), phase(800, 0.0, 1, NONE)],
        ),
    ];
    check(
        disks,
        Verdict::CannotTell,
        &["at other times the same change had no effect", "cannot tell whether VM2 slows VM1"],
    );
}

#[test]
fn noise_of_a_quarter_hides_no_cause() {
    for seed in 0..12 {
        let sequential = |from, iops| phase(from, iops, 4, Pattern::Sequential);
        let random = |from, iops| phase(from, iops, 8, Pattern::Random);
        let one = [sequential(0, 300.0), sequential(360, 60.0), phase(900, 0.0, 1, NONE)];
        let two = [phase(0, 0.0, 1, NONE), random(360, 90.0), random(900, 93.0)];
        let disks =
            vec![noisy_disk("VM1", seed, 1_200, &one, 250), noisy_disk("VM2", seed + 100, 1_200, &two, 250)];
        // So noisy a VM2 may seem to gain from VM1's end: then it is unknown whether VM1 slows it.
        let found = check(disks, Verdict::Interference, &["VM2's start at 360 s cut VM1"]);
        let of = &found.relations[0];
        assert_eq!(
            (of.one, of.other, of.kind),
            (1, 0, RelationKind::CauseAndVictim),
            "{:?}",
            found.sentences
        );
    }
}

/// Changes of level were looked for among stretches of at least five windows. Each part of a schedule of 12 s has four, so nothing was
/// found although the charts showed it.
#[test]
fn a_schedule_of_twelve_seconds_shows_who_slows_whom() {
    let mixed = |from, iops| phase(from, iops, 8, Pattern::Mixed);
    for seed in 0..12 {
        let one = [mixed(0, 600.0), mixed(4, 250.0), phase(8, 0.0, 1, NONE)];
        let two = [phase(0, 0.0, 1, NONE), mixed(4, 240.0), mixed(8, 600.0)];
        let disks = vec![short_disk("VM1", seed, &one, 60), short_disk("VM2", seed + 100, &two, 60)];
        check(disks, Verdict::Interference, &["VM1 and VM2 slow each other"]);
        let one = [phase(0, 600.0, 4, Pattern::Sequential), phase(4, 117.0, 4, Pattern::Sequential)];
        let two = [phase(0, 0.0, 1, NONE), phase(4, 180.0, 8, Pattern::Random), phase(8, 0.0, 1, NONE)];
        let back = [one[0], one[1], phase(8, 600.0, 4, Pattern::Sequential)];
        let disks = vec![short_disk("VM1", seed, &back, 60), short_disk("VM2", seed + 100, &two, 60)];
        check(disks, Verdict::Interference, &["VM2 slows VM1; whether VM1 slows VM2 is unknown"]);
    }
}

#[test]
fn in_twelve_seconds_disks_that_share_nothing_are_not_accused() {
    for seed in 0..400 {
        let load = |from, depth: usize| phase(from, 50.0 * depth as f64, depth.max(1), Pattern::Random);
        let one = [load(0, 8), load(8, 0)];
        let two = [load(0, 0), load(4, 8)];
        // Every fourth time with noise that a level of four windows may hide in.
        let noise = [40, 80, 150, 250][seed as usize % 4];
        let disks = vec![short_disk("VM1", seed, &one, noise), short_disk("VM2", seed + 1_000, &two, noise)];
        let found = interference(&capture(disks));
        let accused = found.relations.iter().any(|relation| relation.kind != RelationKind::Unclear);
        assert!(!accused && found.verdict != Verdict::Interference, "seed {seed}: {:#?}", found.sentences);
    }
}

#[test]
fn disks_that_share_nothing_are_never_accused() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        // Each takes 20 ms whatever the others do: the pace is what is outstanding times 50.
        let disks = (0..random.range(2..4)).map(|index| {
            let mut from_s = 0;
            let phases: Vec<Phase> = (0..random.range(1..5))
                .map(|_| {
                    let depth = [0, 1, 2, 4, 8][random.below(5) as usize];
                    let phase = phase(from_s, 50.0 * depth as f64, depth.max(1), Pattern::Random);
                    from_s += random.range(6..30) * WINDOW_S as u64;
                    phase
                })
                .collect();
            noisy_disk(&format!("disk {index}"), random.bits(), 900, &phases, 150)
        });
        let found = interference(&capture(disks.collect()));
        let accused = found.relations.iter().any(|relation| relation.kind != RelationKind::Unclear);
        assert!(!accused && found.verdict != Verdict::Interference, "seed {seed}: {:#?}", found.sentences);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_order_and_the_names_of_disks_change_the_names_alone(
        seed in 0u64..1_000,
        paces in prop::collection::vec(prop::collection::vec(0usize..4, 3), 3),
        turn in 1usize..3,
    ) {
        let disks: Vec<Disk> = paces.iter().enumerate().map(|(index, paces)| {
            let phases: Vec<Phase> = paces.iter().enumerate().map(|(part, &pace)| {
                phase(part as u64 * 200, [0.0, 60.0, 110.0, 200.0][pace], 1 + pace % 2 * 3, Pattern::Mixed)
            }).collect();
            disk(&format!("disk {index}"), seed + index as u64, 600, &phases)
        }).collect();
        let one = interference(&capture(disks.clone()));
        let mut turned = disks.clone();
        turned.rotate_left(turn);
        let other = interference(&capture(turned));
        prop_assert_eq!(one.verdict, other.verdict);
        let pairs = |found: &Interference, shift: usize| {
            let mut pairs: Vec<(usize, usize)> = found.relations.iter()
                .map(|relation| ((relation.one + shift) % 3, (relation.other + shift) % 3)).collect();
            pairs.sort_unstable();
            pairs
        };
        prop_assert_eq!(pairs(&one, 0), pairs(&other, turn));
        let mut renamed = disks;
        for (index, disk) in renamed.iter_mut().enumerate() {
            disk.name = format!("name {}", 2 - index);
        }
        let sentences: Vec<String> = one.sentences.iter().map(|text| {
            text.replace("disk 0", "name 2").replace("disk 1", "name 1").replace("disk 2", "name 0")
        }).collect();
        prop_assert_eq!(interference(&capture(renamed)).sentences, sentences);
    }
}

/// Two alike loads, of which one ends before the windows of the other say for certain that it gained: that it "changed little" made
/// the one the cause and the other the victim.
#[test]
fn a_gain_that_may_be_chance_is_no_proof_that_there_was_none() {
    let one = short_disk(
        "VM1",
        5,
        &[phase(0, 800.0, 4, NONE), phase(5, 320.0, 4, NONE), phase(10, 0.0, 4, NONE)],
        40,
    );
    let other = short_disk("VM2", 6, &[phase(5, 320.0, 4, NONE), phase(10, 440.0, 4, NONE)], 450);
    let found =
        check(vec![one, other], Verdict::Interference, &["VM2 slows VM1", "may be chance", "is unknown"]);
    assert_eq!((found.relations[0].one, found.relations[0].effect_back), (1, None));
}
