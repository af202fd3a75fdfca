//! Series as they are kept, over ends of the process and damage.

use super::*;
use base::DiskId;
use base::Instant;
use iostats::{Operation, Recorder};
use std::fs::OpenOptions;
use std::io::Write;

const WEB: Subject = Subject::Disk(DiskId(7));
/// A slot's beginning.
const START: u64 = 20_000 * 86_400;

/// What a disk did that was written to so often, each time so long.
pub(crate) fn writes(count: u64, micros: u64) -> Interval {
    let mut recorder = Recorder::new();
    for _ in 0..count {
        let arrival = recorder.arrive(Instant(0), Operation::Write, 0, 8);
        recorder.complete(Instant(micros * 1000), arrival, true);
    }
    Interval::of(&recorder.statistics())
}

fn both(count: u64) -> BTreeMap<Subject, Interval> {
    BTreeMap::from([(Subject::Host, writes(count, 100)), (WEB, writes(count, 100))])
}

fn counts(steps: &Steps) -> Vec<(usize, u64)> {
    steps.intervals.iter().map(|(index, interval)| (*index, interval.write.count())).collect()
}

#[test]
fn an_hour_of_seconds_is_kept_and_no_more() {
    let folder = tempfile::tempdir().expect("room");
    let series = Series::new(folder.path().to_owned());
    for second in 1..=4000 {
        series.take(START + second, 1, &both(u64::from(second % 10 == 0) * second));
    }
    let range = |start, step, count| Range { start: START + start, step, count };
    let steps = series.steps(WEB, range(3990, 1, 10)).expect("it is in memory");
    assert_eq!((steps.seconds.clone(), counts(&steps)), (vec![1; 10], vec![(9, 4000)]));
    let steps = series.steps(WEB, range(3900, 50, 2)).expect("it is in memory");
    assert_eq!(
        counts(&steps),
        [(0, 3910 + 3920 + 3930 + 3940 + 3950), (1, 3960 + 3970 + 3980 + 3990 + 4000)]
    );
    assert_eq!(steps.seconds, [50, 50]);
    let steps = series.steps(WEB, range(0, 100, 40)).expect("it is in memory");
    let unknown = steps.seconds.iter().take_while(|seconds| **seconds == 0).count();
    assert_eq!((unknown, steps.seconds[4..].iter().all(|seconds| *seconds == 100)), (3, true));
    assert!(steps.intervals.keys().all(|index| *index >= 3), "{:?}", steps.intervals.keys());
    let other = series.steps(Subject::Disk(DiskId(8)), range(3990, 1, 10)).expect("it is in memory");
    assert_eq!((counts(&other), other.seconds), (vec![], vec![1; 10]), "it is known that it was idle");
}

#[test]
fn rows_outlive_the_process_and_tell_when_the_host_ran() {
    let folder = tempfile::tempdir().expect("room");
    let range = Range { start: START, step: 300, count: 6 };
    let series = Series::new(folder.path().to_owned());
    for second in 1..=600 {
        series.take(START + second, 1, &both(2));
    }
    series.close();
    let series = Series::new(folder.path().to_owned());
    // It was down for ten minutes; then its guests do nothing.
    for second in 1201..=1350 {
        series.take(START + second, 1, &BTreeMap::new());
    }
    let steps = series.steps(WEB, range).expect("it can be read");
    assert_eq!(steps.seconds, [300, 300, 0, 0, 150, 0]);
    assert_eq!(counts(&steps), [(0, 600), (1, 600)]);
    let hours = series.steps(WEB, Range { start: START, step: 3600, count: 1 }).expect("it can be read");
    assert_eq!((hours.seconds.clone(), counts(&hours)), (vec![750], vec![(0, 1200)]));
    let p99 = hours.intervals[&0].write.percentile(0.99).expect("there are some").as_nanos();
    assert!((94_000..106_000).contains(&p99), "{p99}");
}

#[test]
fn a_row_that_was_cut_short_spoils_none_that_follow() {
    let folder = tempfile::tempdir().expect("room");
    let range = Range { start: START, step: 300, count: 3 };
    for (round, expected) in [(0, vec![(0, 600)]), (1, vec![(0, 600), (1, 600)])] {
        let series = Series::new(folder.path().to_owned());
        for second in 1..=300 {
            series.take(START + round * 300 + second, 1, &both(2));
        }
        series.close();
        assert_eq!(counts(&series.steps(WEB, range).expect("it can be read")), expected);
        let path = folder.path().join("series/20000.rows");
        let mut file = OpenOptions::new().append(true).open(&path).expect("it is there");
        let torn = Row { start: START + 600, seconds: 9, subject: WEB, interval: writes(9, 1) }.encode();
        file.write_all(&torn[..torn.len() - 3]).expect("room");
    }
    // Damage in the middle hides what follows it, and nothing fails.
    let path = folder.path().join("series/20000.rows");
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[60] ^= 1;
    std::fs::write(&path, &bytes).expect("room");
    let series = Series::new(folder.path().to_owned());
    assert_eq!(counts(&series.steps(WEB, range).expect("it can be read")), []);
}

#[test]
fn the_oldest_days_go() {
    let folder = tempfile::tempdir().expect("room");
    let series = Series::new(folder.path().to_owned());
    for day in 0..100 {
        series.take(START + day * 86_400 + 1, 1, &both(1));
    }
    series.close();
    let mut days: Vec<String> = std::fs::read_dir(folder.path().join("series"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a text"))
        .collect();
    days.sort();
    assert_eq!((days.len(), days[0].as_str(), days[90].as_str()), (91, "20009.rows", "20099.rows"));
}

#[test]
fn what_cannot_be_written_is_said_and_the_hour_goes_on() {
    let folder = tempfile::tempdir().expect("room");
    std::fs::write(folder.path().join("series"), "a file").expect("room");
    let series = Series::new(folder.path().to_owned());
    for second in 1..=700 {
        series.take(START + second, 1, &both(1));
    }
    assert!(series.trouble().is_some());
    let steps = series.steps(WEB, Range { start: START + 690, step: 1, count: 10 }).expect("it is in memory");
    assert_eq!(steps.intervals.len(), 10);
}
