//! A file of format 1, in which a host that stood alone kept its disks, policies and silences in tables of their own, made into
//! records of a cluster of one. Part of the transaction that raises the format: all of it happens, or nothing.
//!
//! Must stay able to read every file that release 0.1 wrote (`tests/fixtures`).

use super::PolicyEntry;
use super::file::broke;
use super::record::{State, StoredPolicy, StoredRecord};
use super::shared::record::{ClusterDisk, ClusterLevel, OURS, Silences, policy_key, policy_value};
use super::shared::{Change, put_all};
use ::cluster::{Access, DiskRecord, DiskState, Growth};
use base::{HostId, NodeId, WriteId};
use engine::DiskRecord as EngineRecord;
use failure::Failure;
use layout::Layout;
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use replication::{Ceiling, Member, Role, Roster, Standing};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const DISKS: TableDefinition<u128, &[u8]> = TableDefinition::new("disks");
const POLICIES: TableDefinition<&str, &[u8]> = TableDefinition::new("policies");
/// Single records by their names.
const SINGLE: TableDefinition<&str, &[u8]> = TableDefinition::new("single");
const KEY_SILENCES: &str = "silences";

/// The start that a converted disk which was being made is said to be of: earlier than any.
pub const BEFORE_ALL: u64 = 0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormerDisk {
    #[serde(rename = "version")]
    _version: u64,
    state: State,
    record: StoredRecord,
    /// What it was before a change that the devices may not have.
    #[serde(default)]
    previous: Option<StoredRecord>,
    created: u64,
}

/// Makes records of what the former tables hold, and drops them.
///
/// # Errors
/// When one of them is damaged, or the store fails.
pub fn convert(transaction: &WriteTransaction, host: HostId) -> Result<(), Failure> {
    let mut changes = vec![ClusterLevel::default().raise(OURS.highest())?];
    for former in rows::<FormerDisk>(transaction, DISKS)? {
        let disk = converted(former, host).map_err(broke)?;
        let id = Value::String(disk.record.id.to_string());
        let key = ClusterDisk::name_key(&disk.record.name);
        changes.push(Change { key, expected: 0, value: Some(id) });
        changes.push(disk.change(0)?);
    }
    for stored in rows::<StoredPolicy>(transaction, POLICIES)? {
        let policy = PolicyEntry::try_from(stored).map_err(broke)?;
        let value = policy_value(&policy).map_err(broke)?;
        changes.push(Change { key: policy_key(&policy.name), expected: 0, value: Some(value) });
    }
    let single = transaction.open_table(SINGLE).map_err(broke)?;
    if let Some(bytes) = single.get(KEY_SILENCES).map_err(broke)? {
        changes.push(decode::<Silences>(bytes.value())?.change(0)?);
    }
    drop(single);
    put_all(transaction, &changes, 1)?;
    transaction.delete_table(DISKS).map_err(broke)?;
    transaction.delete_table(POLICIES).map_err(broke)?;
    transaction.delete_table(SINGLE).map_err(broke)?;
    Ok(())
}

fn rows<T: DeserializeOwned>(
    transaction: &WriteTransaction,
    definition: TableDefinition<'_, impl redb::Key + 'static, &[u8]>,
) -> Result<Vec<T>, Failure> {
    let table = transaction.open_table(definition).map_err(broke)?;
    let rows = table.iter().map_err(broke)?;
    rows.map(|row| decode(row.map_err(broke)?.1.value())).collect()
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes).map_err(|error| Failure::failed("read a record", error))
}

/// A disk whose every component counts. One that was being made larger goes on with that; one that was being made smaller gives
/// back what lies beyond its end.
fn converted(former: FormerDisk, host: HostId) -> Result<ClusterDisk, String> {
    let node = NodeId { host, shard: 0 };
    let record = EngineRecord::try_from(former.record)?;
    let before = former.previous.map(EngineRecord::try_from).transpose()?;
    let (mut layout, mut size) = (record.layout.clone(), record.size);
    let (mut growth, mut surplus) = (None, None);
    if let Some(before) = before {
        if before.size > size {
            surplus = Some(before.size);
        } else if before.size < size {
            let known: BTreeSet<_> = before.layout.components().map(|(_, one)| one.id).collect();
            let new = layout.components().map(|(_, one)| one.id).filter(|id| !known.contains(id));
            let nodes: BTreeMap<_, _> = new.map(|id| (id, node)).collect();
            growth = Some(Growth { size, layout, nodes });
            size = before.size;
        }
        layout = before.layout;
    }
    let state = match former.state {
        State::Creating => DiskState::Creating,
        State::Active => DiskState::Active,
        State::Deleting => DiskState::Deleting,
    };
    let roster =
        Roster { epoch: record.epoch, owner: None, members: members(&layout, node), ..Roster::default() };
    let disk = DiskRecord {
        version: 0,
        id: record.id,
        name: record.name,
        size,
        policy: record.policy,
        space_reservation: record.space_reservation,
        layout,
        read_only: record.read_only,
        access: Access::default(),
        state,
        roster,
        incoming: Vec::new(),
        stand_ins: Vec::new(),
        growth,
        moving: None,
        surplus,
        follows: None,
        rollback: None,
        snapshots: Default::default(),
        origin: None,
        clones: BTreeMap::new(),
        debts: Vec::new(),
    };
    disk.check().map_err(|error| format!("disk {}: {error}", disk.name))?;
    Ok(ClusterDisk {
        record: disk,
        created: former.created,
        maker: (host, BEFORE_ALL),
        gone: BTreeSet::new(),
        labels: BTreeMap::new(),
    })
}

/// Every component of a layout as an active member on one node.
pub fn members(layout: &Layout, node: NodeId) -> Vec<Member> {
    let member = |place: usize, component: base::ComponentId| Member {
        component,
        node,
        place: place as u16,
        rows: None,
        standing: Standing::Active,
        base: WriteId::default(),
        role: Role::Copy,
        ceiling: Ceiling::Unknown,
        lacks: Default::default(),
    };
    let places = layout.places();
    places.flat_map(|(place, copies)| copies.iter().map(move |copy| member(place, copy.id))).collect()
}
