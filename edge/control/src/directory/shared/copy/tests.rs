//! What a host keeps of the directory: all that it was told, or nothing.

use super::*;
use serde_json::json;

const BOND_OF_TESTS: (&[u8], u64) = (b"{\"id\":\"1\"}", 1);

fn entry(key: &str, version: u64) -> Entry {
    Entry { key: key.to_owned(), version, value: json!(version) }
}

fn changes(revision: u64, entries: &[(&str, u64)], gone: &[&str]) -> Changes {
    Changes {
        cluster: "1".to_owned(),
        revision,
        is_complete: false,
        entries: entries.iter().map(|(key, version)| entry(key, *version)).collect(),
        gone: gone.iter().map(|key| (*key).to_owned()).collect(),
    }
}

fn all(revision: u64, entries: &[(&str, u64)]) -> Changes {
    Changes { is_complete: true, ..changes(revision, entries, &[]) }
}

/// Its revision and its records, as a start would find them after a crash, and as they are told now.
#[track_caller]
fn check(copied: &Copied, path: &Path, revision: u64, records: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> = records.iter().map(|(key, at)| ((*key).to_owned(), *at)).collect();
    let of = |contents: Contents| {
        let entries = contents.entries.into_iter().map(|entry| (entry.key, entry.version));
        (contents.revision, entries.collect::<BTreeMap<_, _>>())
    };
    assert_eq!(of(copied.contents(false).expect("there is one")), (revision, expected.clone()));
    let crashed = path.with_extension("crashed");
    std::fs::copy(path, &crashed).expect("room for a file");
    let found = Copied::open(&crashed).contents(false).expect("it can be read");
    assert_eq!(of(found), (revision, expected));
}

#[test]
fn what_was_told_is_in_the_file_and_what_was_learned_ahead_is_not_undone_by_the_watch() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy.redb");
    let copied = Copied::open(&path);
    assert!(copied.wants_all() && copied.contents(false).is_none());
    let first = all(5, &[("cluster", 1), ("disks/1", 2), ("disks/2", 5), ("hosts/1", 3)]);
    copied.take(BOND_OF_TESTS, &first).expect("not sealed");
    check(&copied, &path, 5, &[("disks/1", 2), ("disks/2", 5), ("hosts/1", 3)]);
    copied.note(BOND_OF_TESTS.0, &[entry("disks/1", 9), entry("disks/3", 4)]).expect("not sealed");
    check(&copied, &path, 5, &[("disks/1", 9), ("disks/2", 5), ("hosts/1", 3)]);
    copied.take(BOND_OF_TESTS, &changes(8, &[("disks/1", 7)], &["disks/2"])).expect("not sealed");
    check(&copied, &path, 8, &[("disks/1", 9), ("hosts/1", 3)]);
    copied.take(BOND_OF_TESTS, &all(8, &[("hosts/1", 3)])).expect("not sealed");
    check(&copied, &path, 8, &[("disks/1", 9), ("hosts/1", 3)]);
    copied.take(BOND_OF_TESTS, &all(10, &[("hosts/1", 3)])).expect("not sealed");
    check(&copied, &path, 10, &[("hosts/1", 3)]);
}

/// Whoever reads everything may hear of it later than the watch of what was removed since.
#[test]
fn what_was_read_before_a_removal_does_not_bring_it_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy.redb");
    let copied = Copied::open(&path);
    let first = all(5, &[("disks/1", 2), ("disks/2", 5)]);
    copied.take(BOND_OF_TESTS, &first).expect("not sealed");
    copied.take(BOND_OF_TESTS, &changes(6, &[], &["disks/2"])).expect("not sealed");
    copied.take(BOND_OF_TESTS, &first).expect("not sealed");
    check(&copied, &path, 6, &[("disks/1", 2)]);
    copied.take(BOND_OF_TESTS, &changes(5, &[("disks/2", 5)], &["disks/1"])).expect("not sealed");
    check(&copied, &path, 6, &[("disks/1", 2)]);
}

#[test]
fn records_of_known_hosts_wait_for_the_next_change_that_matters() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy.redb");
    let copied = Copied::open(&path);
    copied.take(BOND_OF_TESTS, &all(5, &[("hosts/1", 3)])).expect("not sealed");
    copied.take(BOND_OF_TESTS, &changes(6, &[("hosts/1", 6)], &[])).expect("not sealed");
    assert_eq!(copied.is_at(), Some((1, 6)));
    let crashed = path.with_extension("crashed");
    std::fs::copy(&path, &crashed).expect("room for a file");
    assert_eq!(Copied::open(&crashed).is_at(), Some((1, 5)), "complete up to there");
    copied.take(BOND_OF_TESTS, &changes(7, &[("hosts/2", 7)], &[])).expect("not sealed");
    check(&copied, &path, 7, &[("hosts/1", 6), ("hosts/2", 7)]);
}

#[test]
fn a_copy_that_was_given_away_takes_nothing_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let copied = Copied::open(&folder.path().join("copy.redb"));
    copied.take(BOND_OF_TESTS, &all(5, &[("disks/1", 2)])).expect("not sealed");
    let given = copied.contents(true).expect("there is one");
    assert!(copied.take(BOND_OF_TESTS, &changes(6, &[("disks/1", 6)], &[])).is_err());
    assert!(copied.note(BOND_OF_TESTS.0, &[entry("disks/1", 6)]).is_err());
    assert_eq!(copied.contents(false), Some(given));
}

#[test]
fn a_new_generation_replaces_the_copy_once_all_of_it_is_known_and_the_former_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("copy.redb");
    let copied = Copied::open(&path);
    copied.take(BOND_OF_TESTS, &all(50, &[("disks/1", 42)])).expect("not sealed");
    let next: (&[u8], u64) = (b"{\"id\":\"1\",\"generation\":2}", 2);
    copied.take(next, &changes(3, &[("disks/1", 2)], &[])).expect("not sealed");
    assert_eq!(copied.is_at(), Some((1, 50)), "parts are no copy");
    copied.take(next, &all(3, &[("disks/1", 2)])).expect("not sealed");
    assert_eq!(copied.is_at(), Some((2, 3)));
    check(&copied, &path, 3, &[("disks/1", 2)]);
    assert_eq!(Copied::open(&former_path(&path)).is_at(), Some((1, 50)));
}

#[test]
fn a_copy_that_cannot_be_written_is_none_and_is_made_anew_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("not-there/copy.redb");
    let copied = Copied::open(&path);
    copied.take(BOND_OF_TESTS, &all(5, &[("disks/1", 2)])).expect("it stops nobody");
    assert!(copied.trouble().is_some() && copied.is_at().is_none());
    assert!(!copied.wants_all(), "not at once");
    copied.note(BOND_OF_TESTS.0, &[entry("disks/1", 6)]).expect("it stops nobody");
    std::fs::create_dir(folder.path().join("not-there")).expect("room for a folder");
    copied.take(BOND_OF_TESTS, &all(7, &[("disks/1", 6)])).expect("not sealed");
    check(&copied, &path, 7, &[("disks/1", 6)]);
}
