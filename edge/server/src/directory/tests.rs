//! The directory against reopening, races and foreign files.

use super::*;
use crate::engine::DiskRecord;
use base::{ComponentId, DeviceId};
use layout::{Component, Layout};
use placement::{Percent, Policy};
use std::path::PathBuf;

fn entry(id: u128, name: &str) -> DiskEntry {
    let leaf = Component { id: ComponentId(id as u64), device: DeviceId(9), size: 1 << 20 };
    let record = DiskRecord {
        id: DiskId(id),
        name: name.to_owned(),
        size: 4096,
        policy: Policy::SINGLE,
        space_reservation: Percent::ZERO,
        layout: Layout::Component(leaf),
        epoch: 3,
        read_only: false,
        access: ::cluster::Access::default(),
    };
    DiskEntry { version: 1, state: State::Creating, record, previous: None, created: 77 }
}

fn open(folder: &tempfile::TempDir) -> Directory {
    Directory::open(&folder.path().join("d"), HostId(5)).expect("a directory")
}

#[test]
fn records_are_there_after_reopening() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    let mut changed = entry(1, "b");
    changed.previous = Some(Box::new(entry(1, "a").record));
    changed.state = State::Active;
    directory.replace_disk(changed.clone()).expect("replaced");
    let policy = PolicyEntry { name: "gold".to_owned(), policy: Policy::DEFAULT };
    directory.add_policy(policy.clone()).expect("added");
    let group = GroupEntry { id: GroupId(4), log: PathBuf::from("/l"), capacity: vec![PathBuf::from("/c")] };
    directory.put_group(group.clone()).expect("added");
    directory.set_cluster(ClusterId(8)).expect("set");
    drop(directory);

    let directory = Directory::open(&folder.path().join("d"), HostId(6)).expect("a directory");
    assert_eq!(directory.host, HostId(5), "the host keeps its identity");
    assert_eq!(directory.cluster().expect("read"), Some(ClusterId(8)));
    let records = directory.records();
    assert_eq!(**records.disk("b").expect("the disk"), DiskEntry { version: 2, ..changed });
    assert_eq!(records.disk(&DiskId(1).to_string()), records.disk("b"), "an id names it too");
    assert_eq!(records.disk("a"), None, "the former name is free");
    assert_eq!(records.policies["gold"], policy);
    assert_eq!(records.groups[&GroupId(4)], group);
}

#[test]
fn a_crash_may_forget_that_a_creation_ended_but_not_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    directory.settle_created(DiskEntry { state: State::Active, ..entry(1, "a") }).expect("settled");
    let now = |directory: &Directory| directory.records().disk("a").map(|entry| entry.state);
    assert_eq!(now(&directory), Some(State::Active), "who asks sees it at once");
    let crashed = folder.path().join("crashed");
    std::fs::copy(folder.path().join("d"), &crashed).expect("the file is readable");
    let after_crash = Directory::open(&crashed, HostId(6)).expect("a directory");
    assert!(matches!(now(&after_crash), Some(State::Active | State::Creating)));

    drop(directory);
    assert_eq!(now(&open(&folder)), Some(State::Active), "an orderly end keeps it");
}

#[test]
fn what_a_disk_sets_aside_is_recorded_where_it_is_less_than_its_policy_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    let policy: Policy = "single,space_reservation=50".parse().expect("a policy");
    let share = |percent| Percent::new(percent).expect("at most 100");
    for (id, name, percent) in [(1, "whole", 50), (2, "part", 20), (3, "none", 0)] {
        let mut entry = entry(id, name);
        entry.record.policy = policy;
        entry.record.space_reservation = share(percent);
        directory.add_disk(entry).expect("added");
    }
    drop(directory);
    let records = open(&folder).records();
    for (name, percent) in [("whole", 50), ("part", 20), ("none", 0)] {
        assert_eq!(records.disk(name).expect("there").record.space_reservation, share(percent), "{name}");
    }
}

#[test]
fn a_name_belongs_to_one_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    assert_eq!(directory.add_disk(entry(2, "a")).expect_err("taken").code, Code::Conflict);
    directory.add_disk(entry(2, "b")).expect("added");
    assert_eq!(directory.replace_disk(entry(2, "a")).expect_err("taken").code, Code::Conflict);
    assert_eq!(directory.records().disks.len(), 2);
}

#[test]
fn a_change_that_starts_from_an_old_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    directory.replace_disk(entry(1, "b")).expect("the first change");
    assert_eq!(directory.replace_disk(entry(1, "c")).expect_err("stale").code, Code::Conflict);
    assert_eq!(directory.remove_disk(DiskId(1), 1).expect_err("stale").code, Code::Conflict);
    directory.remove_disk(DiskId(1), 2).expect("removed");
    assert_eq!(directory.remove_disk(DiskId(1), 2).expect_err("gone").code, Code::NotFound);
    directory.add_disk(entry(3, "b")).expect("the name is free again");
}

#[test]
fn several_changes_are_made_together_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    directory.add_disk(entry(2, "b")).expect("added");
    let stale = DiskEntry { version: 9, ..entry(2, "b") };
    directory.replace_disks(vec![entry(1, "x"), stale]).expect_err("one is stale");
    assert!(directory.records().disk("a").is_some());
    drop(directory);
    assert!(open(&folder).records().disk("a").is_some(), "the store was not changed either");
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory
        .change(|transaction, _| {
            transaction.open_table(META).map_err(broke)?.insert(KEY_FORMAT, 2).map_err(broke)?;
            Ok(())
        })
        .expect("changed");
    drop(directory);
    let failure = Directory::open(&folder.path().join("d"), HostId(1)).err().expect("newer");
    assert_eq!(failure.code, Code::Refused);
    assert!(failure.error.contains("format 2"), "{failure}");
}

#[test]
fn what_is_no_directory_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("d"), vec![7u8; 10_000]).expect("written");
    let failure = Directory::open(&folder.path().join("d"), HostId(1)).err().expect("foreign");
    assert!(failure.error.contains("open the directory"), "{failure}");
}

#[test]
fn a_directory_is_open_only_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let _first = open(&folder);
    let failure = Directory::open(&folder.path().join("d"), HostId(1)).err().expect("in use");
    assert_eq!(failure.code, Code::Refused);
}

/// After one write that found no room the store refused all others until the next start, whatever room there was.
#[test]
fn a_store_that_failed_is_opened_anew_and_has_what_was_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = open(&folder);
    directory.add_disk(entry(1, "a")).expect("added");
    let policy = PolicyEntry { name: "gold".to_owned(), policy: Policy::DEFAULT };
    directory.add_policy(policy).expect("added");
    let broken = directory.change(|transaction, records| {
        put_disk(transaction, records, entry(2, "b"))?;
        Err::<(), Failure>(broke("no room"))
    });
    assert_eq!(broken.expect_err("it failed").code, Code::Failed);
    assert!(directory.database.lock().expect("nobody panicked").is_none());
    // What a commit that failed may have left is undone.
    let left = Database::open(folder.path().join("d")).expect("nobody has it open");
    write(&left, Stable::AtOnce, |transaction| put_disk(transaction, &mut Records::default(), entry(2, "b")))
        .expect("written");
    drop(left);
    directory.add_disk(entry(3, "c")).expect("added");
    assert!(directory.records().disk("b").is_none());
    drop(directory);
    let records = open(&folder).records();
    let names: Vec<&str> = records.names.keys().map(String::as_str).collect();
    assert_eq!(names, ["a", "c"]);
    assert!(records.policies.contains_key("gold"));
}
