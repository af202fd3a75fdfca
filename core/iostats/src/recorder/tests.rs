//! Recording against a plain model, and the algebra of statistics.

use super::*;
use crate::buckets::Kind;
use crate::statistics::HistogramView;
use std::time::Duration;

const US: u64 = 1_000;

fn counts(view: &HistogramView) -> Vec<(Option<i32>, u64)> {
    view.buckets.iter().filter(|bucket| bucket.count > 0).map(|bucket| (bucket.limit, bucket.count)).collect()
}

/// Plays a random load of `ios` I/Os into `recorder`, continuing at `now`.
fn play(recorder: &mut Recorder, seed: u64, ios: u32, now: &mut u64) {
    let mut random = base::Random::new(seed);
    let mut under_way = Vec::new();
    for _ in 0..ios {
        *now += random.below(300) * random.below(300) * random.below(50);
        let operation = if random.chance(1, 3) { Operation::Write } else { Operation::Read };
        let high = 1 << random.range(1..37);
        let first = random.below(high);
        under_way.push(recorder.arrive(Instant(*now), operation, first, random.range(1..3000) as u32));
        while !under_way.is_empty() && random.chance(1, 2) {
            let high = 1 << random.range(1..24);
            *now += random.below(high);
            let arrival = under_way.swap_remove(random.below(under_way.len() as u64) as usize);
            recorder.complete(Instant(*now), arrival, random.chance(99, 100));
        }
    }
    for arrival in under_way {
        recorder.complete(Instant(*now), arrival, true);
    }
    recorder.flushed();
    recorder.trimmed(4096);
}

pub(crate) fn sample(seed: u64, ios: u32) -> Statistics {
    let mut recorder = Recorder::new();
    play(&mut recorder, seed, ios, &mut 0);
    recorder.statistics()
}

#[test]
fn a_sequential_read_stream_shows_as_distance_one() {
    let mut recorder = Recorder::new();
    for index in 0..100u64 {
        let arrival = recorder.arrive(Instant(index * 50 * US), Operation::Read, index * 8, 8);
        recorder.complete(Instant(index * 50 * US + 20 * US), arrival, true);
    }
    let statistics = recorder.statistics();
    let of = |kind| counts(&statistics.histogram(kind, Operations::Reads));
    assert_eq!(of(Kind::SeekDistance), [(Some(1), 99)]);
    assert_eq!(of(Kind::SeekDistanceNearest), [(Some(1), 99)]);
    assert_eq!(of(Kind::Length), [(Some(4096), 100)]);
    assert_eq!(of(Kind::Outstanding), [(Some(1), 100)]);
    assert_eq!(of(Kind::Latency), [(Some(100), 100)]);
    assert_eq!(of(Kind::Interarrival), [(Some(100), 99)]);
    assert_eq!(statistics.histogram(Kind::Length, Operations::Writes).count, 0);
    assert_eq!(statistics.bytes(Operations::Both), 409_600);
    assert_eq!(statistics.latency_mean(Operations::Reads), Some(Duration::from_micros(20)));
}

#[test]
fn interleaved_streams_are_far_from_the_last_and_near_to_the_closest_of_sixteen() {
    let mut recorder = Recorder::new();
    for round in 0..10u64 {
        for stream in 0..16u64 {
            let first = stream * 1_000_000 + round * 8;
            let arrival = recorder.arrive(Instant(0), Operation::Write, first, 8);
            recorder.complete(Instant(0), arrival, true);
        }
    }
    let statistics = recorder.statistics();
    let nearest = counts(&statistics.histogram(Kind::SeekDistanceNearest, Operations::Both));
    assert_eq!(nearest, [(Some(1), 144), (None, 15)]);
    let last = counts(&statistics.histogram(Kind::SeekDistance, Operations::Both));
    assert_eq!(last, [(Some(-500_000), 9), (None, 150)]);
}

#[test]
fn reads_and_writes_have_their_own_predecessors() {
    let mut recorder = Recorder::new();
    for (operation, first) in
        [(Operation::Read, 0), (Operation::Write, 100), (Operation::Read, 8), (Operation::Write, 92)]
    {
        let arrival = recorder.arrive(Instant(0), operation, first, 8);
        recorder.complete(Instant(0), arrival, true);
    }
    let statistics = recorder.statistics();
    let of = |operations| counts(&statistics.histogram(Kind::SeekDistance, operations));
    assert_eq!(of(Operations::Reads), [(Some(1), 1)]);
    assert_eq!(of(Operations::Writes), [(Some(-8), 1)]);
    assert_eq!(of(Operations::Both), [(Some(-64), 1), (Some(128), 2)]);
}

#[test]
fn outstanding_counts_the_new_one_and_a_failed_one_leaves_only_an_error() {
    let mut recorder = Recorder::new();
    let read = recorder.arrive(Instant(0), Operation::Read, 0, 8);
    let write = recorder.arrive(Instant(0), Operation::Write, 0, 8);
    assert_eq!(recorder.outstanding(Operations::Both), 2);
    recorder.complete(Instant(5), read, false);
    recorder.complete(Instant(5), write, true);
    assert_eq!(recorder.outstanding(Operations::Both), 0);
    let statistics = recorder.statistics();
    assert_eq!(
        counts(&statistics.histogram(Kind::Outstanding, Operations::Both)),
        [(Some(1), 1), (Some(2), 1)]
    );
    assert_eq!(counts(&statistics.histogram(Kind::Outstanding, Operations::Writes)), [(Some(1), 1)]);
    assert_eq!((statistics.errors(Operations::Reads), statistics.completed(Operations::Both)), (1, 1));
    assert_eq!(statistics.percentile(Operations::Reads, 0.5), None);
}

#[test]
#[should_panic(expected = "an I/O completes once")]
fn an_io_completes_once() {
    let mut recorder = Recorder::new();
    let arrival = recorder.arrive(Instant(0), Operation::Read, 0, 8);
    recorder.complete(Instant(1), arrival, true);
    recorder.complete(Instant(1), arrival, true);
}

#[test]
fn extreme_values_are_recorded_without_overflow() {
    let mut recorder = Recorder::new();
    for (now, first) in [(0, 0), (u64::MAX, i64::MAX as u64), (0, 0), (u64::MAX, i64::MAX as u64)] {
        let arrival = recorder.arrive(Instant(now), Operation::Write, first, u32::MAX);
        recorder.complete(Instant(u64::MAX), arrival, true);
    }
    let statistics = recorder.statistics();
    assert_eq!(statistics.completed(Operations::Writes), 4);
    assert_eq!(statistics.percentile(Operations::Both, 1.0), Some(Duration::from_nanos(u64::MAX)));
}

/// Everything that must be exact: all but the minima and maxima.
fn exact(statistics: &Statistics) -> Vec<(Vec<u64>, Option<f64>)> {
    statistics
        .histograms()
        .map(|view| (view.buckets.iter().map(|bucket| bucket.count).collect(), view.mean))
        .chain([Operations::Reads, Operations::Writes].map(|operations| {
            let fine = statistics.latency_fine(operations);
            (fine.counts.to_vec(), Some(fine.sum_ns as f64))
        }))
        .collect()
}

#[test]
fn merging_what_came_later_into_what_was_gives_what_is() {
    for seed in 0..20 {
        let (mut recorder, mut now) = (Recorder::new(), 0);
        play(&mut recorder, seed, 200, &mut now);
        let earlier = recorder.statistics();
        play(&mut recorder, seed + 1000, 300, &mut now);
        let later = recorder.statistics();
        let since = later.difference(&earlier);
        let mut merged = earlier.clone();
        merged.merge(&since);
        assert_eq!(merged, later, "seed {seed}");
        assert_eq!(later.difference(&later), Statistics::default());
        assert_eq!(later.difference(&Statistics::default()), later);
    }
}

#[test]
fn taking_away_what_was_merged_leaves_the_rest_exact_and_merging_knows_no_order() {
    for seed in 0..20 {
        let (a, b) = (sample(seed, 100), sample(seed + 77, 150));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        assert_eq!(ab, ba);
        assert_eq!(exact(&ab.difference(&a)), exact(&b), "seed {seed}");
        assert_eq!(ab.difference(&a).counters, b.counters);
        for (found, real) in ab.difference(&a).histograms().zip(b.histograms()) {
            assert!(found.min <= real.min && found.max >= real.max, "{:?}", found.kind);
        }
    }
}

#[test]
fn histograms_come_in_vscsi_order_and_both_is_the_sum_of_reads_and_writes() {
    let statistics = sample(3, 500);
    let all: Vec<_> = statistics.histograms().collect();
    assert_eq!(all.len(), 16);
    for kind in [Kind::Length, Kind::Latency] {
        let of = |operations| statistics.histogram(kind, operations);
        let (both, reads, writes) = (of(Operations::Both), of(Operations::Reads), of(Operations::Writes));
        assert_eq!(both.count, reads.count + writes.count);
        assert_eq!(both.min, reads.min.min(writes.min));
    }
    assert_eq!(
        all[6].kind.title(all[6].operations),
        "distance (in LBNs) between each command from the closest of previous 16"
    );
}

#[test]
fn the_memory_of_one_disk_is_within_its_bound() {
    let fine = 2 * size_of::<[u64; crate::latency::FINE_BUCKETS]>();
    assert!(size_of::<Statistics>() + fine <= 32 << 10, "{} bytes", size_of::<Statistics>() + fine);
}
