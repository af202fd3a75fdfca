//! The records that hosts keep in the directory that they share: hosts, disks, the names of disks, policies.
//!
//! JSON as in the directory of one host. A disk's name is a record of its own, so that no two disks get one name.

use super::super::record::{StoredPolicy, StoredRecord};
use super::super::{DiskEntry, PolicyEntry, State};
use super::{Change, Entry};
use crate::engine::DiskRecord;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, NodeId, WriteId};
use placement::DeviceSpace;
use replication::{Member, OwnedBy, Roster, Standing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::SocketAddr;

/// Where the records of hosts begin.
pub const HOSTS: &str = "hosts/";
/// Where the records of disks begin.
pub const DISKS: &str = "disks/";
/// Where the names of disks begin.
pub const NAMES: &str = "names/";
/// Where the records of policies begin.
pub const POLICIES: &str = "policies/";

/// A host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostEntry {
    /// Its identity.
    #[serde(with = "text")]
    pub id: HostId,
    /// Its name.
    pub name: String,
    /// Version of its program.
    pub version: String,
    /// Which start of it wrote this.
    pub incarnation: u64,
    /// Where other hosts connect.
    pub peers: SocketAddr,
    /// Where clients of the API connect.
    pub api: Vec<String>,
    /// Where clients of NBD connect.
    pub nbd: Vec<String>,
    /// Whether those over TCP must encrypt.
    pub nbd_tls: bool,
    /// What fails together with it.
    pub fault_domain: Option<String>,
    /// Its capacity devices.
    pub devices: Vec<DeviceEntry>,
}

/// A capacity device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceEntry {
    /// Its identity.
    #[serde(with = "text")]
    pub id: DeviceId,
    /// Where its host opened it.
    pub path: String,
    /// Its group.
    #[serde(with = "text")]
    pub group: GroupId,
    /// Bytes that extents can take in all.
    pub capacity_bytes: u64,
    /// Bytes of these that no extent has taken.
    pub free_bytes: u64,
    /// Bytes of the free ones that are promised.
    pub reserved_bytes: u64,
    /// Components on it.
    pub component_count: u32,
    /// Components that it can hold.
    pub component_count_max: u32,
    /// Why it is out of service, if it is.
    pub failure: Option<String>,
}

impl HostEntry {
    /// Its node. A host has one.
    pub fn node(&self) -> NodeId {
        NodeId { host: self.id, shard: 0 }
    }

    /// Its devices as placement sees them.
    pub fn spaces(&self, is_reachable: bool) -> impl Iterator<Item = DeviceSpace> {
        self.devices.iter().map(move |device| DeviceSpace {
            id: device.id,
            name: format!("{}:{}", self.name, device.path),
            host: self.id,
            host_name: self.name.clone(),
            fault_domain: self.fault_domain.clone(),
            group: device.group,
            capacity_bytes: device.capacity_bytes,
            free_bytes: device.free_bytes,
            reserved_bytes: device.reserved_bytes,
            component_count: device.component_count,
            component_count_max: device.component_count_max,
            in_service: is_reachable && device.failure.is_none(),
        })
    }
}

/// A disk of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterDisk {
    /// The disk; its version is that of the record, its epoch that of the roster.
    pub entry: DiskEntry,
    /// Who owns it, and which components count.
    pub roster: Roster,
    /// The host that made it, and in which of its starts: a creation that was cut short is its to undo.
    pub maker: (HostId, u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDisk {
    state: State,
    record: StoredRecord,
    created: u64,
    maker: (String, u64),
    roster: StoredRoster,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRoster {
    epoch: u32,
    owner: Option<StoredOwner>,
    members: Vec<StoredMember>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOwner {
    host: String,
    shard: u8,
    incarnation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMember {
    component: String,
    host: String,
    shard: u8,
    place: u16,
    standing: StoredStanding,
    base: (u32, u64),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredStanding {
    Active,
    Absent,
    Stale,
}

impl ClusterDisk {
    /// The key of its record.
    pub fn key(id: DiskId) -> String {
        format!("{DISKS}{id}")
    }

    /// The key of a disk's name.
    pub fn name_key(name: &str) -> String {
        format!("{NAMES}{name}")
    }

    /// The record as it is stored.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        let record = DiskRecord { epoch: 0, ..self.entry.record.clone() };
        serde_json::to_value(StoredDisk {
            state: self.entry.state,
            record: StoredRecord::from(&record),
            created: self.entry.created,
            maker: (self.maker.0.to_string(), self.maker.1),
            roster: StoredRoster::from(&self.roster),
        })
    }

    /// The change that makes this the record, if it still has the version that this one has.
    pub fn change(&self) -> Result<Change, serde_json::Error> {
        let key = ClusterDisk::key(self.entry.record.id);
        Ok(Change { key, expected: self.entry.version, value: Some(self.value()?) })
    }

    /// The disk that a record tells of.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<ClusterDisk, String> {
        let stored: StoredDisk = serde_json::from_value(entry.value.clone())
            .map_err(|error| format!("the record {}: {error}", entry.key))?;
        let StoredDisk { state, record, created, maker, roster } = stored;
        let roster = roster.roster()?;
        let record = DiskRecord { epoch: roster.epoch, ..DiskRecord::try_from(record)? };
        let entry = DiskEntry { version: entry.version, state, record, previous: None, created };
        Ok(ClusterDisk { entry, roster, maker: (parsed(&maker.0)?, maker.1) })
    }
}

impl From<&Roster> for StoredRoster {
    fn from(roster: &Roster) -> StoredRoster {
        let member = |member: &Member| StoredMember {
            component: member.component.to_string(),
            host: member.node.host.to_string(),
            shard: member.node.shard,
            place: member.place,
            standing: match member.standing {
                Standing::Active => StoredStanding::Active,
                Standing::Absent => StoredStanding::Absent,
                Standing::Stale => StoredStanding::Stale,
            },
            base: (member.base.epoch, member.base.sequence),
        };
        let owner = |owner: OwnedBy| StoredOwner {
            host: owner.node.host.to_string(),
            shard: owner.node.shard,
            incarnation: owner.incarnation,
        };
        StoredRoster {
            epoch: roster.epoch,
            owner: roster.owner.map(owner),
            members: roster.members.iter().map(member).collect(),
        }
    }
}

impl StoredRoster {
    fn roster(self) -> Result<Roster, String> {
        let member = |stored: StoredMember| {
            Ok::<Member, String>(Member {
                component: parsed::<ComponentId>(&stored.component)?,
                node: NodeId { host: parsed(&stored.host)?, shard: stored.shard },
                place: stored.place,
                standing: match stored.standing {
                    StoredStanding::Active => Standing::Active,
                    StoredStanding::Absent => Standing::Absent,
                    StoredStanding::Stale => Standing::Stale,
                },
                base: WriteId { epoch: stored.base.0, sequence: stored.base.1 },
            })
        };
        let owner = |stored: StoredOwner| {
            let node = NodeId { host: parsed(&stored.host)?, shard: stored.shard };
            Ok::<OwnedBy, String>(OwnedBy { node, incarnation: stored.incarnation })
        };
        Ok(Roster {
            epoch: self.epoch,
            owner: self.owner.map(owner).transpose()?,
            members: self.members.into_iter().map(member).collect::<Result<_, _>>()?,
        })
    }
}

/// The key of a policy.
pub fn policy_key(name: &str) -> String {
    format!("{POLICIES}{name}")
}

/// A policy's record.
///
/// # Errors
/// Never in practice: it is plain text.
pub fn policy_value(policy: &PolicyEntry) -> Result<Value, serde_json::Error> {
    serde_json::to_value(StoredPolicy::from(policy))
}

/// The policy that a record tells of.
///
/// # Errors
/// When it makes no sense.
pub fn read_policy(entry: &Entry) -> Result<PolicyEntry, String> {
    let stored: StoredPolicy = serde_json::from_value(entry.value.clone())
        .map_err(|error| format!("the record {}: {error}", entry.key))?;
    PolicyEntry::try_from(stored)
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Ids as text.
mod text {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<T: Display, S: Serializer>(id: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
