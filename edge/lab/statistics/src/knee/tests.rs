//! The published sweeps, and curves made up to be what published ones are not.

use super::*;
use proptest::prelude::*;

/// Threads, outstanding per thread, IOPS, latency in ms: one VM, 4 KiB random read (published; see the results crate's data).
const DISKSPD: &str = "1,1,2635,0.38 2,1,6956,0.29 4,1,14437,0.28 8,1,26724,0.3 1,2,6088,0.33 2,2,13988,0.29 \
    4,2,26643,0.3 8,2,49155,0.33 1,4,12826,0.31 2,4,26127,0.31 4,4,47915,0.33 8,4,63982,0.5 1,8,24561,0.33 \
    2,8,47682,0.34 4,8,61912,0.52 8,8,66513,0.96 1,16,45080,0.36 2,16,64505,0.49 4,16,68291,0.94 8,16,65743,1.95 \
    1,32,63239,0.51 2,32,65038,0.99 4,32,65670,1.95 8,32,67785,3.78 1,64,68207,0.94 2,64,68190,1.88 4,64,67623,3.79 \
    8,64,67852,7.55 1,128,68506,1.87 2,128,68315,3.75 4,128,67449,7.59 8,128,67596,15.15";
const FIO: &str = "1,1,3427,0.28 2,1,7363,0.26 4,1,14841,0.26 8,1,27375,0.28 1,2,6948,0.28 2,2,14607,0.26 \
    4,2,27189,0.28 8,2,50154,0.31 1,4,13813,0.28 2,4,27095,0.28 4,4,47895,0.32 8,4,64176,0.49 1,8,25251,0.31 \
    2,8,50858,0.3 4,8,62356,0.5 8,8,67370,0.94 1,16,49803,0.31 2,16,67200,0.46 4,16,66784,0.95 8,16,67501,1.89 \
    1,32,62339,0.46 2,32,68106,0.92 4,32,66974,1.9 8,32,69237,3.69 1,64,67339,0.93 2,64,69254,1.83 4,64,66991,3.81 \
    8,64,68644,7.45 1,128,66587,1.9 2,128,69169,3.69 4,128,68420,7.47 8,128,68568,14.92";

pub(crate) fn published(text: &str) -> Vec<SweepPoint> {
    text.split_whitespace()
        .map(|row| {
            let fields: Vec<f64> = row.split(',').map(|field| field.parse().unwrap()).collect();
            SweepPoint {
                outstanding: fields[0] * fields[1],
                throughput: fields[2],
                latency_s: fields[3] / 1e3,
                percentile_s: None,
            }
        })
        .collect()
}

pub(crate) fn diskspd() -> Vec<SweepPoint> {
    published(DISKSPD)
}

fn check(text: &str, unloaded_ms: f64, capacity: f64, knee: f64, sentence: &str) {
    let found = sweep(&published(text), None).unwrap();
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.005, "{found} {expected}");
    near(found.bounds.unloaded_s * 1e3, unloaded_ms);
    near(found.bounds.capacity, capacity);
    assert_eq!(found.bounds.knee.round(), knee);
    assert_eq!((found.knee, found.power, found.peak_from), (Some(32.0), 16.0, 64.0));
    assert_eq!(found.points.len(), 11);
    assert_eq!(found.to_string(), sentence);
}

#[test]
fn the_published_sweeps_have_their_sweet_spot_at_32() {
    check(
        DISKSPD,
        0.312,
        67_800.0,
        21.0,
        "sweet spot N = 32 (93 % of the peak IOPS at 0.50 ms); peak from N = 64, beyond it only latency grows",
    );
    check(
        FIO,
        0.280,
        68_100.0,
        19.0,
        "sweet spot N = 32 (93 % of the peak IOPS at 0.48 ms); peak from N = 64, beyond it only latency grows",
    );
}

#[test]
fn every_number_of_threads_tells_the_same_knee_and_power() {
    for text in [DISKSPD, FIO] {
        for threads in ["1,", "2,", "4,", "8,"] {
            let rows: Vec<&str> = text.split_whitespace().filter(|row| row.starts_with(threads)).collect();
            let found = sweep(&published(&rows.join(" ")), None).unwrap();
            assert_eq!((found.knee, found.power), (Some(32.0), 16.0), "{threads}");
        }
    }
}

/// Kneedle scales the curve to the range that was swept: of the same points, it found a knee at 32 from 1 to 1,024, one at 64 from 16
/// to 1,024, and none from 1 to 64.
#[test]
fn the_knee_stays_where_it_is_when_the_sweep_goes_on_longer_or_begins_earlier() {
    for text in [DISKSPD, FIO] {
        for (from, to) in
            [(1.0, 64.0), (1.0, 128.0), (1.0, 1_024.0), (8.0, 64.0), (16.0, 1_024.0), (4.0, 256.0)]
        {
            let mut points = published(text);
            points.retain(|point| (from..=to).contains(&point.outstanding));
            assert_eq!(sweep(&points, None).unwrap().knee, Some(32.0), "{from} to {to}");
        }
    }
}

#[test]
fn an_objective_moves_the_sweet_spot() {
    let points = diskspd();
    let found = sweep(&points, Some(Objective::Mean(0.001))).unwrap();
    assert_eq!((found.objective, found.sweet_spot.outstanding), (Some(64.0), 64.0));
    let found = sweep(&points, Some(Objective::Mean(0.000_4))).unwrap();
    assert_eq!(found.objective, Some(16.0));
    assert!(matches!(
        sweep(&points, Some(Objective::Mean(0.000_1))),
        Err(SweepError::ObjectiveNotMet { .. })
    ));
    assert_eq!(sweep(&points, Some(Objective::Percentile(0.001))), Err(SweepError::NoPercentile));
}

#[test]
fn a_sweep_that_stops_too_early_says_so() {
    let points: Vec<SweepPoint> = diskspd().into_iter().filter(|point| point.outstanding <= 16.0).collect();
    let sentence = sweep(&points, None).unwrap().to_string();
    assert!(
        sentence.starts_with("no knee up to N = 16")
            && sentence.contains("still grew")
            && sentence.ends_with("sweep beyond N = 16"),
        "{sentence}"
    );
}

#[test]
fn a_sweep_that_falls_says_so() {
    let mut points = diskspd();
    let last = SweepPoint { outstanding: 2048.0, throughput: 50_000.0, latency_s: 0.041, percentile_s: None };
    points.push(last);
    let sentence = sweep(&points, None).unwrap().to_string();
    assert!(sentence.contains("throughput falls, by 26 % at the last point"), "{sentence}");
}

#[test]
fn too_few_points_are_no_sweep() {
    let points = diskspd();
    assert_eq!(sweep(&points[..2], None), Err(SweepError::TooFew { found: 2 }));
    let odd = SweepPoint { throughput: 0.0, ..points[0] };
    assert_eq!(sweep(&[points[0], odd], None), Err(SweepError::NotPositive { index: 1 }));
}

proptest! {
    #[test]
    fn no_points_make_it_panic_and_the_sweet_spot_is_one_of_them(
        raw in prop::collection::vec((1u32..2_000, 1.0f64..1e6, 1e-5f64..10.0), 0..40),
    ) {
        let points: Vec<SweepPoint> = raw
            .iter()
            .map(|&(n, throughput, latency_s)| SweepPoint {
                outstanding: f64::from(n), throughput, latency_s, percentile_s: None,
            })
            .collect();
        if let Ok(found) = sweep(&points, None) {
            prop_assert!(points.iter().any(|point| point.outstanding == found.sweet_spot.outstanding));
            prop_assert!(found.points.windows(2).all(|pair| pair[0].outstanding < pair[1].outstanding));
            prop_assert!(!found.to_string().is_empty());
        }
    }
}
