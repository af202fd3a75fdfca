//! Tests of the text: what it says and that it fits.

use super::*;
use crate::analysis::{Analysis, Options};
use crate::builder::CaptureBuilder;
use crate::event::{Action, Event};
use crate::vscsi;
use base::Random;

/// 400 s: `vm` reads at random, slower in the second half; `log` writes in sequence in the second half.
fn traced() -> (Capture, Analyzed) {
    let mut random = Random::new(1);
    let (mut builder, mut analysis) = (CaptureBuilder::new(10.0), Analysis::new(Options::default()));
    for at in 0..40_000u64 {
        let at_ns = at * 10_000_000;
        let late = at >= 20_000;
        let latency_ns = Some(if late { 20_000_000 } else { 5_000_000 } + random.below(1_000_000));
        let read = Event {
            at_ns,
            disk: 0,
            action: Action::Read,
            offset: random.below(10_000) * 8192,
            bytes: 8192,
            latency_ns,
            queued_ns: None,
        };
        let write =
            Event { at_ns, disk: 1, action: Action::Write, offset: at * 65_536, bytes: 65_536, ..read };
        for event in std::iter::once(read).chain(late.then_some(write)) {
            builder.event(&event);
            analysis.event(&event);
        }
    }
    let names = ["vm".to_owned(), "log".to_owned()];
    (builder.finish("trace.txt", &names), analysis.finish(&names))
}

#[test]
fn a_report_says_what_was_found() {
    let (capture, analyzed) = traced();
    let text = report(&capture, Some(&analyzed));
    let parts = [
        "trace.txt: 400 s",
        "p99.9",
        "vm: latency of IOs",
        "reads                  100 % of the I/Os",
        "8 KiB  reads",
        "LRU cache size",
        "log's start at 200 s slowed vm from 5.50 ms to 20.",
        "log slows vm; whether vm slows log is unknown",
        "all disks: 60000 I/Os",
    ];
    for part in parts {
        assert!(text.contains(part), "lacks {part:?}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 240), "{text}");
}

#[test]
fn a_heat_map_shows_where_latency_moved() {
    let (capture, _) = traced();
    let map = heat_map(&capture, 0, Operations::Both, 40).unwrap();
    let rows: Vec<&str> =
        map.lines().filter_map(|line| line.split_once('|').map(|(_, cells)| cells)).collect();
    // The slowest row is dark in the second half alone, the fastest in the first.
    let (top, bottom) = (rows[0], rows[rows.len() - 1]);
    assert!(top.starts_with(&" ".repeat(20)) && top.trim().len() == 20, "{map}");
    assert_eq!(bottom.trim_end().len(), 20, "{map}");
    assert!(map.contains("0 s") && map.trim_end().ends_with("400 s"), "{map}");
    assert_eq!(heat_map(&capture, 2, Operations::Both, 40), None);
    assert_eq!(heat_map(&capture, 0, Operations::Both, 0).map(|map| map.contains('|')), Some(true));
}

#[test]
fn coarse_percentiles_are_told_as_limits() {
    let mut recorder = iostats::Recorder::new();
    for at in 0..100u64 {
        let now = base::Instant(at * 1_000_000);
        let arrival = recorder.arrive(now, iostats::Operation::Read, at, 8);
        let us = if at < 95 { 400 } else { 200_000 };
        recorder.complete(base::Instant(now.0 + us * 1_000), arrival, true);
    }
    let dump =
        vscsi::tests::read_dump("d", &vscsi::tests::write(&recorder.statistics(), 1, 2, "scsi0:0")).unwrap();
    let capture = vscsi::capture("d", &[dump], &[60.0], vscsi::Counting::Cumulative).unwrap();
    let text = overview(&capture);
    assert!(text.contains("≤500 us") && text.contains(">100 ms"), "{text}");
    assert!(heat_map(&capture, 0, Operations::Reads, 10).unwrap().contains("beyond"));
    assert!(overview(&Capture { disks: vec![Disk::default()], ..Capture::default() }).contains('-'));
}
