//! With real processes of etcd: what the records promise, and what becomes of it when members end, compact and return.

use etcd::testing::Members;
use etcd::{Change, Committed, Error, Etcd, News, Options, Tls};
use std::path::Path;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(300);
/// Asked once.
const WAIT: Duration = Duration::ZERO;
/// Longer than an election.
const LONG: Duration = Duration::from_secs(20);

async fn client(cluster: &Members) -> etcd_client::Client {
    etcd_client::Client::connect([cluster.url(0)], None).await.expect("etcd")
}

fn set(key: &str, expected: u64, value: &str) -> Change {
    Change { key: key.to_owned(), expected, value: Some(value.as_bytes().to_vec()) }
}

fn remove(key: &str, expected: u64) -> Change {
    Change { key: key.to_owned(), expected, value: None }
}

async fn done(etcd: &Etcd, changes: &[Change]) -> u64 {
    match etcd.commit(changes, WAIT).await.expect("etcd answers") {
        Committed::Done { version } => version,
        Committed::Conflict { current } => panic!("{current:?}"),
    }
}

/// Asks until an answer comes: an election takes a second or two.
async fn patiently<T>(what: impl AsyncFn() -> Result<T, Error>) -> T {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        match what().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn keys(news: &News) -> Vec<&str> {
    news.records.iter().map(|record| record.key.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_happen_as_a_whole_or_not_at_all_and_versions_never_return() {
    let cluster = Members::start(1).await;
    let etcd = cluster.etcd("/t/");
    let first = done(&etcd, &[set("a", 0, "1"), set("b", 0, "2")]).await;
    let Committed::Conflict { current } =
        etcd.commit(&[set("a", first, "3"), set("b", 0, "4")], WAIT).await.expect("it answers")
    else {
        panic!("b is there already")
    };
    assert_eq!(current.len(), 2);
    assert_eq!(etcd.get("a").await.expect("it answers").map(|record| record.value), Some(b"1".to_vec()));
    let second = done(&etcd, &[set("a", first, "3"), remove("b", first)]).await;
    assert_eq!(etcd.get("b").await.expect("it answers"), None);
    assert!(done(&etcd, &[set("b", 0, "5")]).await > second && second > first);
    // Another cluster's records beside these are none of these.
    done(&cluster.etcd("/tt/"), &[set("a", 0, "x")]).await;
    assert_eq!(keys(&etcd.list().await.expect("it answers")), ["a", "b"]);
    let many: Vec<Change> = (0..=etcd::CHANGES_MAX).map(|n| set(&n.to_string(), 0, "")).collect();
    assert!(matches!(etcd.commit(&many, WAIT).await, Err(Error::TooMany(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_records_than_a_page_are_read_as_of_one_revision() {
    let cluster = Members::start(1).await;
    let etcd = cluster.etcd("/t/");
    for at in 0..25 {
        let some: Vec<Change> = (0..90).map(|n| set(&format!("{at:02}/{n:02}"), 0, "v")).collect();
        done(&etcd, &some).await;
    }
    let all = etcd.list().await.expect("it answers");
    assert!(all.is_complete);
    assert_eq!(all.records.len(), 25 * 90);
    assert!(all.records.windows(2).all(|pair| pair[0].key < pair[1].key));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_it_was_and_reads_all_when_that_is_forgotten() {
    let cluster = Members::start(1).await;
    let etcd = cluster.etcd("/t/");
    let version = done(&etcd, &[set("a", 0, "1")]).await;
    let first = etcd.watch(None, SHORT).await.expect("it answers");
    assert!(first.is_complete && keys(&first) == ["a"]);
    let quiet = etcd.watch(Some(first.revision), SHORT).await.expect("it answers");
    assert!(!quiet.is_complete && quiet.records.is_empty() && quiet.revision >= first.revision);
    let waiting = etcd.watch(Some(quiet.revision), Duration::from_secs(10));
    let changing = async {
        tokio::time::sleep(SHORT).await;
        done(&cluster.etcd("/t/"), &[set("b", 0, "2"), remove("a", version)]).await
    };
    let (news, changed) = tokio::join!(waiting, changing);
    let news = news.expect("it answers");
    assert_eq!(
        (keys(&news), news.gone.as_slice(), news.revision),
        (vec!["b"], ["a".to_owned()].as_slice(), changed)
    );
    // Somebody else's watch, from before: what etcd still knows comes one by one, what it has compacted as a whole.
    let other = cluster.etcd("/t/");
    assert_eq!(keys(&other.watch(Some(first.revision), SHORT).await.expect("it answers")), ["b"]);
    let last = done(&etcd, &[set("b", changed, "3")]).await;
    client(&cluster).await.compact(last as i64, None).await.expect("compacted");
    let late = cluster.etcd("/t/").watch(Some(first.revision), SHORT).await.expect("it answers");
    assert!(late.is_complete && keys(&late) == ["b"], "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_may_end_one_after_another_and_nothing_is_missed() {
    let mut cluster = Members::start(3).await;
    let etcd = cluster.etcd("/t/");
    let mut revision = etcd.watch(None, SHORT).await.expect("it answers").revision;
    for index in 0..3 {
        cluster.kill(index);
        // A change without an answer may have happened: then the record is there.
        let key = format!("k{index}");
        let until = Instant::now() + Duration::from_secs(20);
        while patiently(async || etcd.get(&key).await).await.is_none() {
            let _ = etcd.commit(&[set(&key, 0, "v")], WAIT).await;
            assert!(Instant::now() < until, "two of three members take changes");
        }
        let mut seen = Vec::new();
        while !seen.contains(&key) {
            let news = patiently(async || etcd.watch(Some(revision), SHORT).await).await;
            assert!(!news.is_complete, "nothing was compacted");
            revision = news.revision;
            seen.extend(news.records.into_iter().map(|record| record.key));
            assert!(Instant::now() < until, "{seen:?}");
        }
        cluster.run(index);
    }
}

/// Right after its leader had ended, a disk was made and nobody knew whether it was.
#[tokio::test(flavor = "multi_thread")]
async fn who_changes_records_while_members_end_knows_how_each_change_ended() {
    let mut cluster = Members::start(3).await;
    let etcd = std::sync::Arc::new(cluster.etcd("/t/"));
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = |name: &'static str| {
        let (etcd, is_over) = (etcd.clone(), is_over.clone());
        tokio::spawn(async move {
            let (mut version, mut count) = (0, 0);
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let change = set(name, version, &count.to_string());
                let Committed::Done { version: next } =
                    etcd.commit(&[change], LONG).await.expect("it is known")
                else {
                    panic!("{name} has one writer, and it knows the version")
                };
                (version, count) = (next, count + 1);
            }
            count
        })
    };
    let writers = ["a", "b", "c"].map(writer);
    for index in [0, 1, 2, 0, 1, 2] {
        cluster.kill(index);
        tokio::time::sleep(Duration::from_millis(700)).await;
        cluster.run(index);
        patiently(async || etcd.get("a").await).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    for (name, writer) in ["a", "b", "c"].into_iter().zip(writers) {
        let count = writer.await.expect("each change was done");
        let record = etcd.get(name).await.expect("it answers").expect("it is there");
        assert_eq!(record.value, (count - 1).to_string().into_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_told_and_so_is_an_etcd_that_has_lost_changes() {
    let mut cluster = Members::start(1).await;
    let etcd = cluster.etcd("/t/");
    for n in 0..5 {
        done(&etcd, &[set(&format!("k{n}"), 0, "v")]).await;
    }
    let revision = etcd.watch(None, SHORT).await.expect("it answers").revision;
    cluster.kill(0);
    let mut error = etcd.get("k0").await.expect_err("nobody is there");
    assert!(error.to_string().contains("no member of etcd answers (http://127.0.0.1:"), "{error}");
    // The request during which the former connection ended tells of that; the next makes a connection anew.
    if !error.to_string().contains("refused") {
        error = etcd.get("k0").await.expect_err("nobody is there");
    }
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(matches!(etcd.commit(&[set("x", 0, "v")], WAIT).await, Err(Error::Silent(_))));
    assert!(etcd.watch(Some(revision), SHORT).await.is_err());
    cluster.run(0);
    patiently(async || etcd.get("k0").await).await.expect("it was stable");
    cluster.wipe();
    let fresh = cluster.etcd("/t/");
    patiently(async || fresh.get("k0").await).await;
    for _ in 0..2 {
        assert!(matches!(etcd.get("k0").await, Err(Error::Older { .. })));
        assert!(matches!(etcd.list().await, Err(Error::Older { .. })));
        assert!(matches!(etcd.watch(Some(revision), SHORT).await, Err(Error::Older { .. })));
        assert!(matches!(etcd.beat("me", b"1").await, Err(Error::Older { .. })));
    }
    let error = etcd.commit(&[set("x", 0, "v")], WAIT).await.expect_err("it has lost changes");
    assert!(error.to_string().contains(&format!("was at revision {revision} before")), "{error}");
    // It comes to later revisions by other changes: these are not what was seen.
    for n in 0..revision + 3 {
        done(&fresh, &[set(&format!("other{n}"), 0, "v")]).await;
    }
    assert!(matches!(etcd.get("other0").await, Err(Error::Older { .. })));
    let past = etcd.history(revision).await.expect("it answers").expect("nothing was compacted");
    assert!(past.iter().any(|record| record.key == "other0") && past.iter().all(|record| record.key != "k0"));
    assert!(etcd.history(revision + 1000).await.is_err(), "it has not come to that");
    etcd.is_trusted_again();
    assert!(etcd.get("other0").await.expect("it answers").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_another_cluster_are_neither_read_nor_changed() {
    let mut cluster = Members::start(1).await;
    let etcd = cluster.etcd("/t/");
    done(&etcd, &[set("cluster", 0, "ours")]).await;
    let version = done(&etcd, &[set("a", 0, "1")]).await;
    etcd.bind(&etcd.get("cluster").await.expect("it answers").expect("it is there"));
    let version = done(&etcd, &[set("a", version, "2")]).await;
    let conflict = etcd.commit(&[set("a", 0, "3")], WAIT).await.expect("it answers");
    let Committed::Conflict { current } = conflict else { panic!("it is there already") };
    assert_eq!(current.iter().map(|record| record.key.as_str()).collect::<Vec<_>>(), ["a"]);
    let revision = etcd.watch(None, SHORT).await.expect("it answers").revision;
    cluster.wipe();
    let other = cluster.etcd("/t/");
    patiently(async || other.get("a").await).await;
    for at in 0..10 {
        assert!(matches!(etcd.get("a").await, Err(Error::Foreign(_))));
        assert!(matches!(etcd.commit(&[set("b", 0, "1")], WAIT).await, Err(Error::Foreign(_))));
        assert!(matches!(etcd.commit(&[remove("a", version)], WAIT).await, Err(Error::Foreign(_))));
        assert!(matches!(etcd.list().await, Err(Error::Foreign(_))));
        assert!(matches!(etcd.watch(Some(revision), SHORT).await, Err(Error::Foreign(_))));
        assert!(matches!(etcd.beat("me", b"1").await, Err(Error::Foreign(_))));
        // Nothing is there at first; then another cluster's records, with revisions beyond those that were seen.
        let _ = other.commit(&[set("cluster", 0, "theirs"), set(&format!("x{at}"), 0, "1")], WAIT).await;
        done(&other, &[set(&format!("y{at}"), 0, "1")]).await;
    }
    assert!(other.list().await.expect("it answers").revision > revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_there_is_known_by_leases_and_the_clock_is_one_for_all() {
    let cluster = Members::start(1).await;
    let (a, b) = (cluster.etcd("/t/"), cluster.etcd("/t/"));
    let first = a.beat("a", b"1").await.expect("it answers");
    assert_eq!(first.members.len(), 1);
    let second = b.beat("b", b"1").await.expect("it answers");
    assert!(second.now_ns.abs_diff(first.now_ns) < 5_000_000_000);
    let written =
        client(&cluster).await.get("x", None).await.expect("a read").header().expect("it").revision();
    for _ in 0..3 {
        a.beat("a", b"1").await.expect("it answers");
        b.beat("b", b"1").await.expect("it answers");
    }
    let after = client(&cluster).await.get("x", None).await.expect("a read").header().expect("it").revision();
    assert_eq!(after, written, "signs of life that say nothing new write nothing");
    a.beat("a", b"2").await.expect("it answers");
    let seen = b.beat("b", b"1").await.expect("it answers");
    let of_a =
        |seen: &etcd::Attendance| seen.members.iter().find(|(who, ..)| who == "a").cloned().expect("a");
    assert_eq!(of_a(&seen).2, b"2");
    // a says nothing more.
    let until = Instant::now() + Duration::from_secs(20);
    let mut last = seen;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let seen = b.beat("b", b"1").await.expect("it answers");
        assert!(seen.now_ns >= last.now_ns, "the clock never goes back");
        if of_a(&seen).1 < seen.now_ns - 2_000_000_000 {
            break;
        }
        assert!(Instant::now() < until, "its lease ends");
        last = seen;
    }
    // And is back.
    let back = a.beat("a", b"3").await.expect("it answers");
    assert_eq!(of_a(&back).1, back.now_ns);
    // Signs of life wake no watch of the records.
    assert!(a.list().await.expect("it answers").records.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_a_password_are_given_where_etcd_asks_for_them() {
    let cluster = Members::start(1).await;
    let mut client = client(&cluster).await;
    client.role_add("drystone").await.expect("a role");
    let permission = etcd_client::Permission::read_write("/t").with_prefix();
    client.role_grant_permission("drystone", permission).await.expect("granted");
    client.user_add("drystone", "secret", None).await.expect("a user");
    client.user_grant_role("drystone", "drystone").await.expect("granted");
    client.user_add("root", "root", None).await.expect("a user");
    client.user_grant_role("root", "root").await.expect("granted");
    client.auth_enable().await.expect("enabled");
    let with = |user: Option<(&str, &str)>, prefix: &str| {
        let user = user.map(|(name, password)| (name.to_owned(), password.to_owned()));
        Etcd::new(Options { user, ..cluster.options(prefix) }).expect("no file is read")
    };
    let etcd = with(Some(("drystone", "secret")), "/t/");
    done(&etcd, &[set("a", 0, "1")]).await;
    assert_eq!(etcd.beat("a", b"1").await.expect("it may").members.len(), 1);
    assert_eq!(keys(&etcd.watch(None, SHORT).await.expect("it may")), ["a"]);
    let refused = |error: Result<Option<etcd::Record>, Error>, expected: &str| {
        let text = error.expect_err(expected).to_string();
        assert!(text.contains(expected), "{text}");
    };
    refused(with(Some(("drystone", "wrong")), "/t/").get("a").await, "authentication failed");
    refused(with(None, "/t/").get("a").await, "user name is empty");
    refused(with(Some(("drystone", "secret")), "/other/").get("a").await, "permission denied");
}

/// An authority and a certificate for this machine that it signed, as files.
fn files(folder: &Path, name: &str) -> Tls {
    let key = || rcgen::KeyPair::generate().expect("a key");
    let mut asked = rcgen::CertificateParams::default();
    asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    asked.distinguished_name.push(rcgen::DnType::CommonName, name);
    let authority = rcgen::CertifiedIssuer::self_signed(asked, key()).expect("an authority");
    let own_key = key();
    let names = vec!["127.0.0.1".to_owned()];
    let own = rcgen::CertificateParams::new(names).expect("an address").signed_by(&own_key, &authority);
    let write = |kind: &str, text: String| {
        let path = folder.join(format!("{name}-{kind}.pem"));
        std::fs::write(&path, text).expect("room");
        path
    };
    Tls {
        authorities: write("authorities", authority.pem()),
        own: Some((
            write("certificate", own.expect("a certificate").pem()),
            write("key", own_key.serialize_pem()),
        )),
        name: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_both_ways_with_the_authorities_that_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (files(folder.path(), "ours"), files(folder.path(), "theirs"));
    let cluster = Members::start_with_tls(&ours);
    let with = |tls: Tls| Etcd::new(Options { tls: Some(tls), ..cluster.options("/t/") }).expect("files");
    let etcd = with(ours.clone());
    patiently(async || etcd.get("a").await).await;
    done(&etcd, &[set("a", 0, "1")]).await;
    assert_eq!(keys(&etcd.watch(None, SHORT).await.expect("it answers")), ["a"]);
    assert_eq!(etcd.beat("a", b"1").await.expect("it answers").members.len(), 1);
    for (other, expected) in [
        (Tls { authorities: theirs.authorities.clone(), ..ours.clone() }, "invalid peer certificate"),
        (Tls { own: theirs.own, ..ours.clone() }, "transport error"),
        (Tls { own: None, ..ours }, "transport error"),
    ] {
        let error = with(other).get("a").await.expect_err(expected);
        assert!(matches!(error, Error::Silent(_)) && error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn files_for_tls_that_are_not_there_are_named() {
    let tls = etcd::Tls { authorities: Path::new("/nowhere/ca.pem").to_owned(), own: None, name: None };
    let options = Options {
        endpoints: vec!["https://127.0.0.1:1".to_owned()],
        prefix: "/t/".to_owned(),
        tls: Some(tls),
        user: None,
    };
    let error = Etcd::new(options).err().expect("no such file").to_string();
    assert!(error.contains("read /nowhere/ca.pem"), "{error}");
}
