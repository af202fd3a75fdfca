//! Disks and policies as people ask for them, and the parts of their JSON form that all records of them share.
//!
//! Sizes are numbers, ids and layouts are hexadecimal, policies are their text. Fields may be added; a reader gives
//! those that it misses a default and refuses those that it does not know, because they may change the meaning.

use engine::DiskRecord;
use layout::Layout;
use placement::{Percent, Policy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far a disk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Recorded; its components may be there or not. Nobody was told that it exists.
    Creating,
    /// There.
    Active,
    /// Its components go; nobody can use it.
    Deleting,
}

/// A disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskEntry {
    /// Grows with every change; a change names the one that it starts from.
    pub version: u64,
    /// How far it has come.
    pub state: State,
    /// The disk as the engine takes it.
    pub record: DiskRecord,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// What people and programs say of it, by key.
    pub labels: BTreeMap<String, String>,
}

/// A policy that somebody made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyEntry {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub policy: Policy,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRecord {
    id: String,
    name: String,
    size: u64,
    policy: String,
    /// Percent; not there when it is what the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space_reservation: Option<u8>,
    layout: String,
    epoch: u32,
    read_only: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPolicy {
    name: String,
    rules: String,
}

impl From<&DiskRecord> for StoredRecord {
    fn from(record: &DiskRecord) -> StoredRecord {
        StoredRecord {
            id: record.id.to_string(),
            name: record.name.clone(),
            size: record.size,
            policy: record.policy.to_string(),
            space_reservation: (record.space_reservation != record.policy.space_reservation)
                .then(|| record.space_reservation.get()),
            layout: to_hex(&record.layout.encode()),
            epoch: record.epoch,
            read_only: record.read_only,
        }
    }
}

impl TryFrom<StoredRecord> for DiskRecord {
    type Error = String;

    fn try_from(stored: StoredRecord) -> Result<DiskRecord, String> {
        let name = stored.name;
        let bytes =
            from_hex(&stored.layout).ok_or_else(|| format!("the layout of {name} is not hexadecimal"))?;
        let layout = Layout::decode(&bytes).map_err(|error| format!("disk {name}: {error}"))?;
        let policy: Policy = stored.policy.parse().map_err(|error| format!("disk {name}: {error}"))?;
        let share = |percent| {
            Percent::new(percent)
                .ok_or_else(|| format!("disk {name} sets aside {percent} percent of its size"))
        };
        let space_reservation = stored.space_reservation.map(share).transpose()?;
        Ok(DiskRecord {
            id: stored.id.parse().map_err(|error| format!("disk {name}: {error}"))?,
            size: stored.size,
            policy,
            space_reservation: space_reservation.unwrap_or(policy.space_reservation),
            layout,
            epoch: stored.epoch,
            read_only: stored.read_only,
            access: ::cluster::Access::default(),
            spins: false,
            course: engine::Course::default(),
            shape: 0,
            snapshots: Vec::new(),
            origin: None,
            name,
        })
    }
}

impl From<&PolicyEntry> for StoredPolicy {
    fn from(entry: &PolicyEntry) -> StoredPolicy {
        StoredPolicy { name: entry.name.clone(), rules: entry.policy.to_string() }
    }
}

impl TryFrom<StoredPolicy> for PolicyEntry {
    type Error = String;

    fn try_from(stored: StoredPolicy) -> Result<PolicyEntry, String> {
        let policy = stored.rules.parse().map_err(|error| format!("policy {}: {error}", stored.name))?;
        Ok(PolicyEntry { name: stored.name, policy })
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    bytes.iter().flat_map(digits).map(char::from).collect()
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let byte = |start: usize| u8::from_str_radix(text.get(start..start + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
