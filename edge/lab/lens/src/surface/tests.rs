//! Tests of the surfaces.

use super::*;
use base::Instant;
use iostats::{Operation, Recorder, Statistics};

/// A second with `count` reads of `sectors` that took `us` microseconds each.
fn second(count: u64, sectors: u32, us: u64) -> Statistics {
    let mut recorder = Recorder::new();
    for index in 0..count {
        let now = Instant(index * 1_000_000);
        let arrival = recorder.arrive(now, Operation::Read, index * 8, sectors);
        recorder.complete(Instant(now.0 + us * 1_000), arrival, true);
    }
    recorder.statistics()
}

fn capture(name: &str, seconds: &[Statistics]) -> Capture {
    let samples = seconds.iter().enumerate().map(|(at, statistics)| (at as f64, 1.0, statistics));
    Capture { disks: vec![Disk::from_statistics(name, samples)], ..Capture::default() }
}

fn group(groups: &[SurfaceGroup], kind: Kind, resolution: Resolution) -> &SurfaceGroup {
    let same = |group: &&SurfaceGroup| {
        (group.kind, group.operations, group.resolution) == (kind, Operations::Reads, resolution)
    };
    groups.iter().find(same).expect("it is known")
}

#[test]
fn a_surface_has_every_io_in_its_second_and_bucket() {
    let groups = surfaces(&capture("a", &[second(10, 8, 200), second(30, 16, 2_000)]));
    // All 16 histograms and, for there are no writes, two fine ones.
    assert_eq!(groups.len(), 18);
    let lengths = group(&groups, Kind::Length, Resolution::Coarse);
    let z = &lengths.surfaces[0].z;
    assert_eq!((lengths.z_max, lengths.used), (30.0, Some((4, 6))));
    assert_eq!((lengths.y[4].as_str(), z[0][4], z[0][6]), ("≤ 4096", 10.0, 0.0));
    assert_eq!((lengths.y[6].as_str(), z[1][4], z[1][6]), ("≤ 8192", 0.0, 30.0));
    let fine = group(&groups, Kind::Latency, Resolution::Fine);
    for (column, count) in fine.surfaces[0].z.iter().zip([10.0, 30.0]) {
        assert_eq!(column.iter().sum::<f64>(), count);
    }
    // 200 us lies in 196,608 ..= 229,375 ns.
    assert_eq!((fine.y[0].as_str(), fine.limits[0]), ("< 229 us", Some(229_376)));
}

#[test]
fn a_fine_bucket_holds_what_is_below_its_limit_and_not_below_the_one_before() {
    for bucket in 1..100 {
        let bin = |from_ns| LatencyBin { from_ns, to_ns: from_ns + 1, count: 1 };
        assert_eq!(fine_bucket(&bin(fine_limit(bucket - 1))), bucket);
        assert_eq!(fine_bucket(&bin(fine_limit(bucket) - 1)), bucket);
    }
}

#[test]
fn joined_columns_keep_all_ios() {
    let capture = capture("a", &vec![second(10, 8, 200); 1_000]);
    let groups = surfaces_within(&capture, 7);
    let lengths = group(&groups, Kind::Length, Resolution::Coarse);
    let surface = &lengths.surfaces[0];
    assert_eq!(surface.x.len(), 7);
    let ios: f64 = surface.z.iter().zip(&surface.seconds).map(|(z, seconds)| z[4] * seconds).sum();
    assert!((ios - 10_000.0).abs() < 1e-6, "{ios}");
}
