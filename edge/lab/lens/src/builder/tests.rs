//! Tests of captures from events.

use super::*;
use crate::event::Action;
use iostats::Operations;
use proptest::prelude::*;

fn read(at_ms: u64, latency_ms: u64) -> Event {
    Event {
        at_ns: at_ms * 1_000_000,
        disk: 0,
        action: Action::Read,
        offset: at_ms * 4096,
        bytes: 4096,
        latency_ns: Some(latency_ms * 1_000_000),
        queued_ns: None,
    }
}

fn build(events: &[Event]) -> Capture {
    let mut builder = CaptureBuilder::new(1.0);
    events.iter().for_each(|event| builder.event(event));
    builder.finish("a trace", &["vm".to_owned()])
}

#[test]
fn events_fall_in_the_windows_in_which_they_were_asked_for() {
    let capture = build(&[read(0, 2), read(10, 2_500), read(2_100, 30), read(2_110, 30)]);
    let windows = &capture.disks[0].windows;
    let ios: Vec<u64> = windows.iter().map(|window| window.total(Operations::Both).ios).collect();
    assert_eq!((capture.disks[0].name.as_str(), ios), ("vm", vec![2, 0, 2]));
    // The long one ends in the last window, and it is under way when the last two come.
    let timed =
        |window: &Window| window.counts(Kind::Latency, Operations::Reads).unwrap().iter().sum::<u64>();
    assert_eq!(windows.iter().map(timed).collect::<Vec<_>>(), [1, 0, 3]);
    assert_eq!(windows[2].outstanding_mean, Some(2.5));
    assert_eq!(windows[2].percentile_s(Operations::Both, 1.0), Some(2.5));
}

#[test]
fn what_has_no_latency_has_no_latency_histogram_and_still_counts() {
    let events: Vec<Event> = (0..10).map(|at| Event { latency_ns: None, ..read(at, 0) }).collect();
    let capture = build(&events);
    let window = &capture.disks[0].windows[0];
    assert_eq!(window.total(Operations::Both), Total { ios: 10, bytes: 40_960, timed: 0, latency_ns: 0 });
    assert_eq!((window.counts(Kind::Latency, Operations::Both), window.outstanding_mean), (None, None));
    assert_eq!(window.counts(Kind::Length, Operations::Both).unwrap()[4], 10);
}

#[test]
fn a_disk_that_comes_later_was_quiet_before() {
    let capture = build(&[read(0, 1), Event { disk: 1, ..read(5_500, 1) }]);
    let disk = &capture.disks[1];
    assert_eq!((disk.name.as_str(), disk.windows.len()), ("disk 1", 6));
    assert_eq!(disk.windows[4].total(Operations::Both).ios, 0);
}

#[test]
fn a_week_has_no_more_windows_than_an_hour() {
    let hour = 3_600_000;
    let events: Vec<Event> = (0..168).map(|at| read(at * hour, 5)).collect();
    let capture = build(&events);
    let disk = &capture.disks[0];
    assert!(disk.windows.len() <= WINDOWS_MAX, "{}", disk.windows.len());
    assert_eq!(disk.windows[0].seconds, 256.0);
    assert_eq!(disk.whole().unwrap().total(Operations::Both).ios, 168);
    // The last event there can be is no reason to try for ever.
    assert!(
        build(&[read(0, 1), Event { at_ns: u64::MAX, ..read(0, 1) }]).disks[0].windows.len() <= WINDOWS_MAX
    );
}

proptest! {
    // Each case joins thousands of windows.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn every_io_is_in_exactly_one_window(mut times in prop::collection::vec((0u64..40_000_000, 0u64..50_000, 0u32..3), 1..200)) {
        times.sort_unstable();
        let events: Vec<Event> =
            times.iter().map(|&(at, latency, disk)| Event { disk, ..read(at, latency) }).collect();
        let capture = build(&events);
        for disk in 0..3 {
            let mine: Vec<&Event> = events.iter().filter(|event| event.disk == disk).collect();
            let Some(found) = capture.disks.get(disk as usize) else {
                prop_assert!(mine.is_empty());
                continue;
            };
            for pair in found.windows.windows(2) {
                prop_assert!((pair[0].end_s() - pair[1].at_s).abs() < 1e-6);
            }
            let whole = found.whole().unwrap();
            for kind in [Kind::Length, Kind::Latency, Kind::Outstanding] {
                let counted = whole.counts(kind, Operations::Both).map_or(0, |counts| counts.iter().sum());
                prop_assert_eq!(counted, mine.len() as u64, "{}", kind.name());
            }
            for window in &found.windows {
                let inside = |event: &&&Event| {
                    let at_s = event.at_ns as f64 / 1e9;
                    at_s >= window.at_s - 1e-9 && at_s < window.end_s() - 1e-9
                };
                let expected = mine.iter().filter(inside).count() as u64;
                // The last window of all ends with the last I/O.
                if window.end_s() < found.windows.last().unwrap().end_s() {
                    prop_assert_eq!(window.total(Operations::Both).ios, expected);
                }
            }
        }
    }
}
