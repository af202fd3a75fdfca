//! Events are kept, found again, and bounded.

use super::*;
use crate::limits::EVENT_FILE_BYTES_MAX;
use std::collections::BTreeSet;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &TempDir) -> EventLog {
    EventLog::open(folder.path(), "a").expect("it opens")
}

fn texts(log: &EventLog, query: &EventQuery) -> Vec<String> {
    log.find(query).into_iter().map(|event| event.text).collect()
}

#[test]
fn every_kind_has_a_text_of_its_own() {
    let texts: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(texts.len(), Kind::ALL.len());
    assert!(texts.iter().all(|text| text.split('.').count() == 2), "{texts:?}");
}

#[test]
fn events_outlive_their_process_and_are_counted_on() {
    let folder = folder();
    open(&folder).disk(Kind::DiskCreated, "web", "made");
    let again = open(&folder);
    again.here(Kind::HostStarted, "it serves");
    let all = again.find(&EventQuery::default());
    let seen: Vec<(u64, &str, &str)> =
        all.iter().map(|one| (one.number, one.kind.as_str(), one.subject.as_str())).collect();
    assert_eq!(seen, [(1, "disk.created", "disk web"), (2, "host.started", "host a")]);
    assert_eq!((all[0].disk.as_str(), all[1].disk.as_str()), ("web", ""));
}

#[test]
fn a_line_that_was_cut_short_spoils_no_other() {
    let folder = folder();
    open(&folder).disk(Kind::DiskCreated, "web", "first");
    let path = folder.path().join("events.jsonl");
    let whole = std::fs::read(&path).expect("it is there");
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("room");
        open(&folder).disk(Kind::DiskDeleted, "web", "second");
        let left = texts(&open(&folder), &EventQuery::default());
        let expected: &[&str] = if length + 1 == whole.len() { &["first", "second"] } else { &["second"] };
        assert_eq!(left, expected, "{length} of {} bytes", whole.len());
    }
}

#[test]
fn what_is_asked_for_is_found() {
    let folder = folder();
    let log = open(&folder);
    log.disk(Kind::CopyLeft, "web", "1");
    log.disk(Kind::CopyJoined, "web", "2");
    log.disk(Kind::CopyLeft, "db", "3");
    log.other(Kind::HealthFound, "device /dev/sdb of host a", "4");
    let query = |about: Option<&str>, kind: Option<&str>, limit| EventQuery {
        about: about.map(str::to_owned),
        kind: kind.map(str::to_owned),
        since: Some(3600),
        limit,
    };
    for (query, expected) in [
        (query(None, None, None), &["1", "2", "3", "4"][..]),
        (query(Some("web"), None, None), &["1", "2"]),
        (query(Some("disk db"), None, None), &["3"]),
        (query(Some("/dev/sdb"), None, None), &["4"]),
        (query(None, Some("copy.left"), None), &["1", "3"]),
        (query(None, Some("copy"), Some(2)), &["2", "3"]),
        (query(Some("web"), Some("health"), None), &[]),
    ] {
        check(&query).expect("it makes sense");
        assert_eq!(texts(&log, &query), expected, "{query:?}");
    }
    let failure = check(&query(None, Some("cop"), None)).expect_err("no such kind");
    assert!(failure.hint.is_some_and(|hint| hint.contains("copy.left")));
}

#[test]
fn two_files_are_written_in_turn_and_never_take_more_than_they_may() {
    let folder = folder();
    let log = open(&folder);
    let long = "x".repeat(64 << 10);
    let count = 3 * EVENT_FILE_BYTES_MAX / (64 << 10);
    for _ in 0..count {
        log.disk(Kind::DiskChanged, "web", long.clone());
    }
    let size = |name: &str| std::fs::metadata(folder.path().join(name)).expect("it is there").len();
    for name in ["events.jsonl", "events.1.jsonl"] {
        assert!(size(name) <= EVENT_FILE_BYTES_MAX, "{name} has {} bytes", size(name));
    }
    let numbers: Vec<u64> =
        open(&folder).find(&EventQuery::default()).into_iter().map(|one| one.number).collect();
    assert_eq!(numbers.last(), Some(&count));
    assert!(
        numbers.is_sorted() && numbers.len() as u64 * (64 << 10) >= EVENT_FILE_BYTES_MAX / 2,
        "{numbers:?}"
    );
}

#[test]
fn events_of_several_hosts_are_one_list() {
    let event = |host: &str, time_ms, number| EventView {
        number,
        time: time_ms / 1000,
        time_ms,
        host: host.to_owned(),
        kind: "disk.changed".to_owned(),
        subject: "disk web".to_owned(),
        disk: "web".to_owned(),
        text: String::new(),
        who: None,
    };
    let all = vec![event("b", 5, 1), event("b", 9, 2), event("a", 5, 8), event("a", 5, 7)];
    let order: Vec<(String, u64)> =
        merged(all, Some(3)).into_iter().map(|one| (one.host, one.number)).collect();
    assert_eq!(order, [("a".to_owned(), 8), ("b".to_owned(), 1), ("b".to_owned(), 2)]);
}

/// A data directory that was full once left events in memory until the next start, which lost them.
#[test]
fn events_that_could_not_be_written_are_written_once_they_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("d");
    std::fs::create_dir(&own).expect("room");
    let log = EventLog::open(&own, "a").expect("it opens");
    log.disk(Kind::DiskCreated, "web", "first");
    std::fs::rename(&own, folder.path().join("gone")).expect("it moves");
    // The file that is open still takes lines; the next one cannot be made.
    let long = "x".repeat(64 << 10);
    let count = EVENT_FILE_BYTES_MAX / (64 << 10) + 2;
    for _ in 0..count {
        log.disk(Kind::DiskChanged, "web", long.clone());
    }
    let trouble = log.trouble().expect("it tells");
    assert!(trouble.contains("in memory alone"), "{trouble}");
    log.disk(Kind::DiskDeleted, "web", "last");
    std::fs::rename(folder.path().join("gone"), &own).expect("it moves");
    assert!(log.trouble().is_some(), "it is not tried without end");
    log.lock().write_missing(Instant::now() + EVENTS_RETRY);
    assert_eq!(log.trouble(), None);
    let again = EventLog::open(&own, "a").expect("it opens");
    let numbers: Vec<u64> = again.find(&EventQuery::default()).iter().map(|one| one.number).collect();
    assert_eq!(numbers, (1..=count + 2).collect::<Vec<u64>>(), "none is missing and none is there twice");
}
