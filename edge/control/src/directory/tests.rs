//! What a host keeps against reopening, failed writes, foreign files, and files of the release before.

use super::file::broke;
use super::host::META;
use super::shared::record::{ClusterDisk, ClusterLevel, DISKS, OURS};
use super::shared::{Change, Outcome, Store};
use super::*;
use ::cluster::DiskState;
use base::DiskId;
use base::{ClusterId, ComponentId, DeviceId, GroupId, HostId};
use failure::{Code, Failure};
use layout::{Component, Layout};
use redb::{Database, TableDefinition};
use std::path::PathBuf;

fn open(folder: &tempfile::TempDir) -> HostStore {
    HostStore::open(&folder.path().join("d"), HostId(5)).expect("a directory")
}

fn group() -> GroupEntry {
    GroupEntry { id: GroupId(4), log: PathBuf::from("/l"), capacity: vec![PathBuf::from("/c")] }
}

#[test]
fn what_a_host_keeps_is_there_after_reopening() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder);
    store.put_group(group(), &[]).expect("added");
    store.set_cluster(ClusterId(8)).expect("set");
    let first = store.next_incarnation().expect("a number");
    drop(store);

    let store = HostStore::open(&folder.path().join("d"), HostId(6)).expect("a directory");
    assert_eq!(store.host, HostId(5), "the host keeps its identity");
    assert_eq!(store.cluster().expect("read"), Some(ClusterId(8)));
    assert_eq!(store.groups()[&GroupId(4)], group());
    assert!(store.next_incarnation().expect("a number") >= first + INCARNATION_STEP);
    let other = GroupEntry { id: GroupId(7), ..group() };
    store.put_group(other.clone(), &[GroupId(4)]).expect("it takes the place of the former");
    assert_eq!(store.groups().values().collect::<Vec<_>>(), [&other]);
    store.remove_group(GroupId(7)).expect("removed");
    drop(store);
    assert!(open(&folder).groups().is_empty());
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder);
    let raise = |transaction: &redb::WriteTransaction| {
        transaction.open_table(META).map_err(broke)?.insert("format", 3).map_err(broke)?;
        Ok(())
    };
    store.file().write(raise).expect("changed");
    drop(store);
    let failure = HostStore::open(&folder.path().join("d"), HostId(1)).err().expect("newer");
    assert_eq!(failure.code, Code::Refused);
    assert!(failure.error.contains("format 3"), "{failure}");
}

#[test]
fn what_is_no_directory_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("d"), vec![7u8; 10_000]).expect("written");
    let failure = HostStore::open(&folder.path().join("d"), HostId(1)).err().expect("foreign");
    assert!(failure.error.contains("open the directory"), "{failure}");
}

#[test]
fn a_directory_is_open_only_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let _first = open(&folder);
    let failure = HostStore::open(&folder.path().join("d"), HostId(1)).err().expect("in use");
    assert_eq!(failure.code, Code::Refused);
}

/// After one write that found no room the store refused all others until the next start, whatever room there was.
#[test]
fn a_store_that_failed_is_opened_anew_and_has_what_was_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(&folder);
    store.put_group(group(), &[]).expect("added");
    let records = Store::within(store.file(), ClusterId(8)).expect("a store");
    let set = |key: &str, expected| Change { key: key.to_owned(), expected, value: Some(7.into()) };
    assert!(matches!(records.commit(&[set("a", 0)]), Ok(Outcome::Done { version: 2 })));
    let broken = store.file().write(|_| Err::<(), Failure>(broke("no room")));
    assert_eq!(broken.expect_err("it failed").code, Code::Failed);
    assert!(matches!(records.commit(&[set("a", 2)]), Ok(Outcome::Done { version: 3 })));
    store.set_cluster(ClusterId(8)).expect("it takes changes again");
    assert_eq!(store.groups()[&GroupId(4)], group());
}

/// A disk of one component of `size` MiB, as release 0.1 wrote it.
fn former_disk(id: u128, name: &str, size: u64) -> serde_json::Value {
    let leaf = Component { id: ComponentId(id as u64), device: DeviceId(9), size: size << 20, position: 0 };
    let layout = base::hex(&Layout::Component(leaf).encode());
    serde_json::json!({
        "id": DiskId(id).to_string(), "name": name, "size": size << 20, "policy": "single", "layout": layout,
        "epoch": 41, "read_only": name == "frozen",
    })
}

/// Writes a file of format 1 with those disks: state, record, and what it was before a change.
fn write_former(folder: &tempfile::TempDir, disks: &[(&str, serde_json::Value, Option<serde_json::Value>)]) {
    const DISKS: TableDefinition<u128, &[u8]> = TableDefinition::new("disks");
    const POLICIES: TableDefinition<&str, &[u8]> = TableDefinition::new("policies");
    let database = Database::create(folder.path().join("d")).expect("a file");
    let transaction = database.begin_write().expect("a transaction");
    {
        let mut meta = transaction.open_table(META).expect("a table");
        meta.insert("format", 1).expect("written");
        meta.insert("host", 5).expect("written");
        let mut table = transaction.open_table(DISKS).expect("a table");
        for (number, (state, record, previous)) in (1u128..).zip(disks) {
            let mut stored =
                serde_json::json!({"version": 3, "state": state, "record": record, "created": 77});
            if let Some(previous) = previous {
                stored["previous"] = previous.clone();
            }
            table.insert(number, stored.to_string().as_bytes()).expect("written");
        }
        let mut policies = transaction.open_table(POLICIES).expect("a table");
        let gold = br#"{"name":"gold","rules":"default,stripes=2"}"#;
        policies.insert("gold", &gold[..]).expect("written");
    }
    transaction.commit().expect("stable");
}

#[tokio::test]
async fn disks_of_a_host_of_the_release_before_become_those_of_a_cluster_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    write_former(
        &folder,
        &[
            ("active", former_disk(1, "plain", 4), None),
            ("active", former_disk(2, "frozen", 4), None),
            ("creating", former_disk(3, "new", 4), None),
            ("deleting", former_disk(4, "old", 4), None),
            ("active", former_disk(5, "grows", 8), Some(former_disk(5, "grows", 4))),
            ("active", former_disk(6, "shrinks", 4), Some(former_disk(6, "shrinks", 8))),
        ],
    );
    let store = HostStore::open(&folder.path().join("d"), HostId(9)).expect("it is converted");
    assert_eq!(store.host, HostId(5));
    let changes = Store::within(store.file(), ClusterId(8)).expect("a store").watch(None).await;
    assert_eq!(ClusterLevel::among(&changes.entries).expect("a level").level, OURS.highest());
    assert!(changes.entries.iter().any(|entry| entry.key == "policies/gold"));
    let disks = changes.entries.iter().filter(|entry| entry.key.starts_with(DISKS));
    let disks: Vec<ClusterDisk> = disks.map(|entry| ClusterDisk::read(entry).expect("a disk")).collect();
    let disk = |name: &str| disks.iter().find(|disk| disk.record.name == name).expect("it is there");
    for one in &disks {
        let key = ClusterDisk::name_key(&one.record.name);
        let name = changes.entries.iter().find(|entry| entry.key == key).expect("its name is taken");
        assert_eq!(name.value, one.record.id.to_string());
        assert_eq!((one.record.roster.epoch, one.record.roster.owner, one.created), (41, None, 77));
    }
    assert!(disk("frozen").record.read_only && !disk("plain").record.read_only);
    let states = ["plain", "new", "old"].map(|name| disk(name).record.state);
    assert_eq!(states, [DiskState::Active, DiskState::Creating, DiskState::Deleting]);
    assert_eq!(disk("new").maker, (HostId(5), BEFORE_ALL));
    let grows = &disk("grows").record;
    assert_eq!((grows.size, grows.growth.as_ref().map(|one| one.size)), (4 << 20, Some(8 << 20)));
    let shrinks = &disk("shrinks").record;
    assert_eq!((shrinks.size, shrinks.surplus, shrinks.layout.size()), (4 << 20, Some(8 << 20), 8 << 20));
}

#[test]
fn a_file_that_cannot_be_converted_stays_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut damaged = former_disk(1, "plain", 4);
    damaged["layout"] = "00".into();
    write_former(&folder, &[("active", damaged, None)]);
    for _ in 0..2 {
        let failure = HostStore::open(&folder.path().join("d"), HostId(9)).err().expect("it is damaged");
        assert!(failure.error.contains("convert it from format 1"), "{failure}");
    }
}
