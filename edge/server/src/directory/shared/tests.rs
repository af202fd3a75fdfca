//! The shared directory: versions, all or none, watches that go on, and over its socket.

use super::*;
use serde_json::json;

fn set(key: &str, expected: u64, value: u64) -> Change {
    Change { key: key.to_owned(), expected, value: Some(json!(value)) }
}

fn open(folder: &tempfile::TempDir) -> Arc<Store> {
    Arc::new(Store::open(&folder.path().join("d"), ClusterId(7)).expect("a store"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let shared = Shared::Embedded(open(&folder));
    assert_eq!(shared.commit(vec![set("a", 0, 1), set("b", 0, 2)]).await, Outcome::Done { version: 1 });
    let Outcome::Conflict { current } = shared.commit(vec![set("a", 1, 3), set("b", 0, 4)]).await else {
        panic!("b is there already")
    };
    assert_eq!(current.len(), 2);
    assert_eq!(shared.get("a").await.expect("it answers").map(|entry| entry.value), Some(json!(1)));
    let gone = Change { key: "b".to_owned(), expected: 1, value: None };
    assert_eq!(shared.commit(vec![set("a", 1, 3), gone]).await, Outcome::Done { version: 2 });
    assert_eq!(shared.get("b").await, Ok(None));
    assert_eq!(
        shared.commit(vec![set("b", 0, 5)]).await,
        Outcome::Done { version: 3 },
        "no version comes back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_where_it_was_and_over_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    {
        let shared = Shared::Embedded(open(&folder));
        shared.commit(vec![set("a", 0, 1)]).await;
        let first = shared.watch(None).await.expect("it answers");
        assert!(first.is_complete);
        assert_eq!((first.revision, first.entries.len()), (1, 1));
        let waiting = tokio::spawn({
            let shared = shared.clone();
            async move { shared.watch(Some(1)).await }
        });
        shared.commit(vec![set("b", 0, 2)]).await;
        let second = waiting.await.expect("no panic").expect("it answers");
        assert!(!second.is_complete);
        assert_eq!(second.entries.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["b"]);
        shared.commit(vec![Change { key: "a".to_owned(), expected: 1, value: None }]).await;
        assert_eq!(shared.watch(Some(2)).await.expect("it answers").gone, ["a"]);
    }
    let shared = Shared::Embedded(open(&folder));
    let changes = shared.watch(Some(1)).await.expect("it answers");
    assert!(changes.is_complete, "what went before the start is not known");
    assert_eq!((changes.revision, changes.cluster), (3, ClusterId(7).to_string()));
    assert_eq!(changes.entries.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_its_socket_it_is_the_same_and_its_absence_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("s");
    let shared = Shared::Remote(Remote::new(socket.clone()));
    assert_eq!(shared.commit(vec![set("a", 0, 1)]).await, Outcome::Unknown);
    let failure = shared.get("a").await.expect_err("nobody is there");
    assert!(failure.error.contains("the directory does not answer"), "{failure}");
    let listener = tokio::net::UnixListener::bind(&socket).expect("bound");
    tokio::spawn(async move { axum::serve(listener, router(open(&folder))).await });
    assert_eq!(shared.commit(vec![set("hosts/a b", 0, 1)]).await, Outcome::Done { version: 1 });
    assert!(shared.get("hosts/a b").await.expect("it answers").is_some());
    assert!(matches!(shared.commit(vec![set("hosts/a b", 0, 1)]).await, Outcome::Conflict { .. }));
    assert_eq!(shared.watch(None).await.expect("it answers").entries.len(), 1);
}
