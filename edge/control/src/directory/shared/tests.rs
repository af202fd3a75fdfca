//! The shared directory: one suite for every place where it may stand, and what is special to each.

use super::record::Authorities;
use super::*;
use ::cluster::Level;
use ::etcd::testing::Members;
use base::ClusterId;
use base::HostId;
use failure::Code;
use serde_json::json;
use std::time::Duration;

fn set(key: &str, expected: u64, value: u64) -> Change {
    Change { key: key.to_owned(), expected, value: Some(json!(value)) }
}

fn remove(key: &str, expected: u64) -> Change {
    Change { key: key.to_owned(), expected, value: None }
}

fn open(folder: &tempfile::TempDir, name: &str) -> Arc<Store> {
    Arc::new(Store::open(&folder.path().join(name), ClusterId(7)).expect("a store"))
}

/// Every place with a directory in it, and what keeps it there.
struct Places {
    folder: tempfile::TempDir,
    etcd: Members,
    all: Vec<(&'static str, Shared)>,
}

fn record() -> ClusterRecord {
    ClusterRecord {
        id: ClusterId(7).to_string(),
        name: "test".to_owned(),
        created: 1,
        generation: 1,
        versions_from: 0,
    }
}

async fn places() -> Places {
    let folder = tempfile::tempdir().expect("a folder");
    let embedded = Shared::Embedded(open(&folder, "embedded"));
    let socket = folder.path().join("s");
    let listener = tokio::net::UnixListener::bind(&socket).expect("bound");
    let served = router(open(&folder, "served"));
    tokio::spawn(async move { axum::serve(listener, served).await });
    let etcd = Members::start(1).await;
    let Ok(Shared::Etcd(in_etcd)) = Shared::in_etcd(&etcd.options("/d/"), None) else {
        panic!("it is in etcd")
    };
    in_etcd.make(&record(), &Authorities::default()).await.expect("made");
    let in_etcd = Shared::Etcd(in_etcd);
    in_etcd.watch(None).await.expect("it is read before anything is changed");
    let socket = Shared::Remote(Remote::new(socket));
    Places { folder, etcd, all: vec![("embedded", embedded), ("socket", socket), ("etcd", in_etcd)] }
}

async fn done(shared: &Shared, changes: Vec<Change>) -> u64 {
    match shared.commit(changes).await {
        Outcome::Done { version } => version,
        other => panic!("{other:?}"),
    }
}

fn keys(changes: &Changes) -> Vec<&str> {
    let keys = changes.entries.iter().map(|entry| entry.key.as_str());
    keys.filter(|key| ![record::CLUSTER, record::AUTHORITIES, record::LEVEL, record::SETTINGS].contains(key))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let places = places().await;
    for (place, shared) in &places.all {
        let first = done(shared, vec![set("hosts/a b", 0, 1), set("b", 0, 2)]).await;
        let Outcome::Conflict { current } =
            shared.commit(vec![set("hosts/a b", first, 3), set("b", 0, 4)]).await
        else {
            panic!("{place}: b is there already")
        };
        assert_eq!(current.len(), 2, "{place}");
        let read = shared.get("hosts/a b").await.expect("it answers").expect("it is there");
        assert_eq!((read.version, read.value), (first, json!(1)), "{place}");
        let second = done(shared, vec![set("hosts/a b", first, 3), remove("b", first)]).await;
        assert!(second > first, "{place}");
        assert_eq!(shared.get("b").await, Ok(None), "{place}");
        assert!(done(shared, vec![set("b", 0, 5)]).await > second, "{place}: no version comes back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_raise_the_level_at_once_one_does_and_nothing_changes_it_back() {
    let places = places().await;
    for (place, shared) in &places.all {
        let level = |number| Level::new(number).expect("a level");
        let heard = |changes: Changes| record::ClusterLevel::among(&changes.entries).expect("a level");
        let before = heard(shared.watch(None).await.expect("it answers"));
        // Where it was made by `cluster init` it is at the highest that the program understands, and elsewhere at the first.
        let made = *place == "etcd" && record::OURS.highest() > Level::FIRST;
        let first = if made { record::OURS.highest() } else { Level::FIRST };
        assert_eq!((before.level, before.version > 0), (first, made), "{place}");
        let raise = |from: record::ClusterLevel, to| vec![from.raise(level(to)).expect("plain text")];
        let (one, other) = tokio::join!(shared.commit(raise(before, 5)), shared.commit(raise(before, 5)));
        let version = match (&one, &other) {
            (Outcome::Done { version }, Outcome::Conflict { current })
            | (Outcome::Conflict { current }, Outcome::Done { version }) => {
                assert_eq!(
                    record::ClusterLevel::among(current).map(|now| now.level),
                    Ok(level(5)),
                    "{place}"
                );
                *version
            }
            _ => panic!("{place}: {one:?} {other:?}"),
        };
        let now = heard(shared.watch(None).await.expect("it answers"));
        assert_eq!(now, record::ClusterLevel { version, level: level(5) }, "{place}");
        // Who has not heard of it raises nothing, whatever to.
        assert!(matches!(shared.commit(raise(before, 6)).await, Outcome::Conflict { .. }), "{place}");
        done(shared, raise(now, 6)).await;
        assert!(matches!(shared.commit(raise(now, 5)).await, Outcome::Conflict { .. }), "{place}");
        let read = shared.get(record::LEVEL).await.expect("it answers").expect("it is there");
        assert_eq!(record::ClusterLevel::read(&read).map(|now| now.level), Ok(level(6)), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_it_was() {
    let places = places().await;
    for (place, shared) in &places.all {
        let version = done(shared, vec![set("a", 0, 1)]).await;
        let first = shared.watch(None).await.expect("it answers");
        assert!(first.is_complete && keys(&first) == ["a"], "{place}: {first:?}");
        assert_eq!(cluster_of(&first), Ok(ClusterId(7)), "{place}");
        // The watch begins first: what is joined begins in order.
        let (second, _) =
            tokio::join!(shared.watch(Some(first.revision)), done(shared, vec![set("b", 0, 2)]));
        let second = second.expect("it answers");
        assert!(!second.is_complete && keys(&second) == ["b"], "{place}: {second:?}");
        done(shared, vec![remove("a", version)]).await;
        let third = shared.watch(Some(second.revision)).await.expect("it answers");
        assert_eq!(third.gone, ["a"], "{place}");
        // Who begins late, or begins again, misses nothing.
        let again = shared.watch(Some(first.revision)).await.expect("it answers");
        assert!(keys(&again) == ["b"] && (again.is_complete || again.gone == ["a"]), "{place}: {again:?}");
    }
}

/// Whoever read everything while the watch took up a change was told that etcd had lost changes: its answer was of a moment before.
#[tokio::test(flavor = "multi_thread")]
async fn who_reads_everything_beside_a_watch_is_not_told_that_changes_were_lost() {
    let places = places().await;
    let copied = Arc::new(Copied::open(&places.folder.path().join("copy.redb")));
    let options = places.etcd.options("/d/");
    let shared = Shared::in_etcd(&options, Some(Arc::clone(&copied))).expect("no file is read");
    let mut revision = shared.watch(None).await.expect("it answers").revision;
    let (end, until) = (tokio::sync::watch::channel(false), Duration::from_secs(1));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (shared, end) = (shared.clone(), end.1.clone());
            tokio::spawn(async move {
                while !*end.borrow() {
                    shared.watch(None).await.expect("nothing was lost");
                }
            })
        })
        .collect();
    let began = std::time::Instant::now();
    while began.elapsed() < until {
        let version = done(&shared, vec![set("a", 0, 1)]).await;
        revision = shared.watch(Some(revision)).await.expect("it answers").revision;
        done(&shared, vec![remove("a", version)]).await;
        revision = shared.watch(Some(revision)).await.expect("it answers").revision;
    }
    end.0.send(true).expect("they listen");
    for reader in readers {
        reader.await.expect("nothing was lost");
    }
    let kept = copied.contents(false).expect("there is one");
    assert!(kept.entries.iter().all(|entry| entry.key != "a"), "{kept:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_beats_is_heard_by_all() {
    let places = places().await;
    for (place, shared) in &places.all {
        for host in ["1", "2"] {
            let _ = shared.commit(vec![set(&format!("{}{host}", record::HOSTS), 0, 1)]).await;
        }
        let beat = |host: &str, ahead: i64| Beat {
            host: host.to_owned(),
            links: [("9".to_owned(), true)].into(),
            clock_ahead_ns: ahead * -500_000_000,
            owned: Vec::new(),
            data_trouble: Vec::new(),
            devices: super::presence::DeviceBeat::default(),
        };
        shared.beat(&beat("1", 5)).await.expect("it answers");
        let heard = shared.beat(&beat("2", 0)).await.expect("it answers");
        let one = heard.heard.iter().find(|heard| heard.beat.host == "1").expect("it was heard");
        assert_eq!(one.beat, beat("1", 5), "{place}");
        assert!(one.at_ns <= heard.now_ns && heard.since_ns <= heard.now_ns, "{place}");
        assert!(heard.now_ns.abs_diff(now_ns()) < 60_000_000_000, "{place}: it is now");
        let heard = shared.beat(&beat("1", 6)).await.expect("it answers");
        assert!(heard.heard.iter().any(|heard| heard.beat == beat("1", 6)), "{place}");
        assert_eq!(heard.heard.len(), 2, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_that_say_nothing_new_write_nothing_in_etcd() {
    let mut places = places().await;
    let (_, shared) = places.all.pop().expect("etcd");
    let beat = |ahead| Beat {
        host: "1".to_owned(),
        links: [("9".to_owned(), true)].into(),
        clock_ahead_ns: ahead,
        owned: Vec::new(),
        data_trouble: Vec::new(),
        devices: super::presence::DeviceBeat::default(),
    };
    shared.beat(&beat(0)).await.expect("it answers");
    let before = done(&shared, vec![set("a", 0, 1)]).await;
    for ahead in [-200_000_000, -1, 3_000, 1_700_000_000] {
        shared.beat(&beat(ahead)).await.expect("it answers");
    }
    assert_eq!(done(&shared, vec![set("b", 0, 1)]).await, before + 1, "no revision between");
    let heard = shared.beat(&beat(3_900_000_000)).await.expect("it answers");
    assert_eq!(heard.heard[0].beat.clock_ahead_ns, 2_500_000_000);
    assert_eq!(done(&shared, vec![set("c", 0, 1)]).await, before + 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_one_is_the_same_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let shared = Shared::Embedded(open(&folder, "d"));
        done(&shared, vec![set("a", 0, 1)]).await;
        done(&shared, vec![set("b", 0, 1), remove("a", 1)]).await;
    }
    let shared = Shared::Embedded(open(&folder, "d"));
    let changes = shared.watch(Some(1)).await.expect("it answers");
    assert!(changes.is_complete, "what went before the start is not known");
    assert_eq!((changes.revision, keys(&changes)), (2, vec!["b"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn absence_is_told() {
    let mut places = places().await;
    let nobody = Shared::Remote(Remote::new(places.folder.path().join("nobody")));
    assert_eq!(nobody.commit(vec![set("a", 0, 1)]).await, Outcome::Unknown);
    let failure = nobody.get("a").await.expect_err("nobody is there");
    assert!(failure.error.contains("the directory does not answer"), "{failure}");
    let (_, shared) = places.all.pop().expect("etcd");
    let revision = shared.watch(None).await.expect("it answers").revision;
    places.etcd.kill(0);
    assert_eq!(shared.commit(vec![set("a", 0, 1)]).await, Outcome::Unknown);
    for failure in [
        shared.get("a").await.expect_err("nobody is there"),
        shared.watch(Some(revision)).await.expect_err("nobody is there"),
    ] {
        assert_eq!(failure.code, Code::Unreachable, "{failure}");
        assert!(failure.error.contains(places.etcd.url(0)), "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_without_the_cluster_is_no_empty_directory() {
    let mut places = places().await;
    let (_, shared) = places.all.pop().expect("etcd");
    done(&shared, vec![set("disks/1", 0, 1)]).await;
    let revision = shared.watch(None).await.expect("it answers").revision;
    places.etcd.wipe();
    let mut failure = shared.get("disks/1").await.err();
    while failure.as_ref().is_none_or(|failure| failure.code == Code::Unreachable) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        failure = shared.get("disks/1").await.err();
    }
    let told = failure.expect("it is not there").error;
    assert!(told.contains("does not hold the records of this cluster `test`"), "{told}");
    assert!(shared.watch(Some(revision)).await.is_err());
    assert_eq!(shared.commit(vec![set("disks/2", 0, 1)]).await, Outcome::Unknown);
    // Another cluster's records there are none of ours either.
    let Ok(Shared::Etcd(other)) = Shared::in_etcd(&places.etcd.options("/d/"), None) else {
        panic!("it is in etcd")
    };
    let early = Shared::Etcd(Arc::clone(&other)).watch(None).await.expect_err("no cluster");
    assert!(early.hint.as_deref().unwrap_or_default().contains("drystone cluster init"), "{early}");
    let theirs = ClusterRecord { id: ClusterId(8).to_string(), ..record() };
    other.make(&theirs, &Authorities::default()).await.expect("made");
    let twice = other.make(&record(), &Authorities::default()).await.expect_err("there is one");
    assert_eq!(twice.code, Code::Conflict, "{twice}");
    Shared::Etcd(Arc::clone(&other)).watch(None).await.expect("it is there");
    for at in 0..20 {
        done(&Shared::Etcd(Arc::clone(&other)), vec![set(&format!("disks/{at}"), 0, 1)]).await;
    }
    assert!(shared.watch(Some(revision)).await.is_err());
    assert!(shared.watch(None).await.is_err());
    assert!(shared.get("disks/1").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_records_move_takes_no_change_and_tells_who_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder, "d");
    let shared = Shared::Embedded(Arc::clone(&store));
    done(&shared, vec![set("disks/1", 0, 1)]).await;
    let hold = store.hold().expect("nobody holds it");
    assert!(store.hold().is_none(), "one at a time");
    assert_eq!((hold.records.len(), hold.revision), (1, 1));
    let held = shared.commit(vec![set("disks/1", 1, 2)]).await;
    assert!(matches!(&held, Outcome::Unwritten { why } if why.contains("moving")), "{held:?}");
    drop(hold);
    assert_eq!(done(&shared, vec![set("disks/1", 1, 2)]).await, 2, "they did not move after all");
    let hold = store.hold().expect("nobody holds it");
    let begun = std::time::Instant::now();
    // The watch begins first: what is joined begins in order.
    let (waiting, ()) = tokio::join!(shared.watch(Some(2)), async { hold.keep() });
    waiting.expect("it answers");
    assert!(begun.elapsed() < crate::limits::WATCH_WAIT, "whoever waits is answered");
    let late = shared.commit(vec![set("disks/2", 0, 1)]).await;
    assert!(matches!(late, Outcome::Unwritten { .. }), "never again: {late:?}");
}

fn record_of_a_host(host: u128) -> Entry {
    let key = format!("{}{}", record::HOSTS, HostId(host));
    Entry { key, version: 9, value: json!({}) }
}

/// The host heard nothing of the end of its first attempt, stood alone on, and changed its records.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_host_that_stands_alone_left_in_etcd_is_replaced_unless_another_host_uses_it() {
    let etcd = Members::start(1).await;
    let alone = Alone { cluster: ClusterId(7), host: HostId(1) };
    let grown = ClusterRecord { versions_from: 900, ..record() };
    let one = |value: u64| {
        vec![Entry { key: "disks/1".to_owned(), version: 9, value: json!(value) }, record_of_a_host(1)]
    };
    let in_etcd = || match Shared::in_etcd(&etcd.options("/d/"), None) {
        Ok(Shared::Etcd(in_etcd)) => in_etcd,
        Ok(_) | Err(_) => panic!("it is in etcd"),
    };
    for value in [1, 2] {
        in_etcd().ground(Some(alone)).await.expect("free, or its own");
        let done = in_etcd().take_over(&grown, (alone, "a"), one(value), &Authorities::default()).await;
        done.expect("taken over");
    }
    let shared = Shared::Etcd(in_etcd());
    let changes = shared.watch(None).await.expect("it is read");
    let disk = changes.entries.iter().find(|one| one.key == "disks/1").expect("the disk");
    assert_eq!(disk.value, json!(2));
    assert!(disk.version > 900 && changes.revision >= disk.version, "versions go on: {disk:?}");
    // A version of the time before is none that the record has, whatever etcd counts.
    let stale = shared.commit(vec![set("disks/1", disk.version - 900, 3)]).await;
    assert!(matches!(stale, Outcome::Conflict { .. }), "{stale:?}");
    let version = done(&shared, vec![set("disks/1", disk.version, 3)]).await;
    assert_eq!(shared.watch(Some(changes.revision)).await.expect("news").revision, version);
    // Another host has joined, or it is another host's cluster: nothing is touched.
    let joined = record_of_a_host(2);
    done(&shared, vec![Change { key: joined.key, expected: 0, value: Some(joined.value) }]).await;
    let stranger = Alone { cluster: ClusterId(8), host: HostId(1) };
    for whose in [Some(alone), Some(stranger), None] {
        let refused = in_etcd().ground(whose).await.expect_err("it is used");
        assert_eq!(refused.code, Code::Conflict, "{refused}");
    }
    let refused = in_etcd().take_over(&grown, (alone, "a"), one(4), &Authorities::default()).await;
    assert_eq!(refused.expect_err("it is used").code, Code::Conflict);
    assert_eq!(shared.get("disks/1").await.expect("it answers").expect("it is there").value, json!(3));
}
