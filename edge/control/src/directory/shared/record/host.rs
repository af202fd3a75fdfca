//! A host of the cluster.

use super::super::{Change, Entry};
#[cfg(feature = "next-level")]
use super::level::OURS;
use super::level::unread;
use super::{HOSTS, parsed, read};
use ::cluster::{DeviceRecord, DeviceState, HostRecord, Leaving, Level, Maintenance, Mode, NodeRecord};
use base::{HostId, Instant, NodeId};
use failure::Failure;
use serde::{Deserialize, Serialize};

/// A host of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterHost {
    /// What it tells of itself. When it was heard of and how its clock goes is no part of the record: that comes with its
    /// heartbeats.
    pub record: HostRecord,
    /// Where clients of its API connect.
    pub api: Vec<String>,
    /// Where clients of NBD connect.
    pub nbd: Vec<String>,
    /// Whether those over TCP must encrypt.
    pub nbd_tls: bool,
    /// Its certificate; nothing in a cluster whose hosts have none.
    pub certificate: Option<HostCertificate>,
    /// Where its member of etcd is reached by other members, or would be; nothing where the cluster does not run etcd by itself.
    pub member: Option<String>,
    /// The level that its record is of.
    pub level: Level,
}

/// What a host tells of its certificate, and of whom it believes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCertificate {
    /// The authority that signed it, by SHA-256 of its certificate.
    pub authority: String,
    /// When it was made, in nanoseconds since 1970.
    pub issued_ns: u64,
    /// When it ends, in nanoseconds since 1970.
    pub expires_ns: u64,
    /// The authorities that the host believes.
    pub believes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredHost {
    id: String,
    name: String,
    version: String,
    incarnation: u64,
    peers: String,
    /// Where other hosts connect to the nodes beyond the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    more_peers: Vec<String>,
    api: Vec<String>,
    nbd: Vec<String>,
    nbd_tls: bool,
    fault_domain: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    maintenance: Option<StoredMaintenance>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<HostCertificate>,
    /// Where its member of etcd is reached by other members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etcd_member: Option<String>,
    devices: Vec<StoredDevice>,
    /// What level 2 of the tests has and level 1 does not know: the level that the record is of.
    #[cfg(feature = "next-level")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    level: Option<u16>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMaintenance {
    mode: StoredMode,
    is_on: bool,
    since_ns: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredMode {
    EnsureAccessibility,
    FullEvacuation,
    None,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDevice {
    id: String,
    path: String,
    group: String,
    #[serde(default, skip_serializing_if = "is_first")]
    shard: u8,
    capacity_bytes: u64,
    free_bytes: u64,
    reserved_bytes: u64,
    component_count: u32,
    component_count_max: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    away_since_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<(u64, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaving: Option<StoredLeaving>,
    /// From level 3 on.
    #[serde(default, skip_serializing_if = "is_false")]
    spins: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLeaving {
    since_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

fn is_first(shard: &u8) -> bool {
    *shard == 0
}

impl ClusterHost {
    /// The key of its record.
    pub fn key(id: HostId) -> String {
        format!("{HOSTS}{id}")
    }

    /// Where other hosts connect to its nodes, in their order.
    pub fn peers(&self) -> impl Iterator<Item = &str> {
        self.record.nodes.iter().map(|node| node.peer_addresses.first().map_or("", String::as_str))
    }

    /// The change that makes this the record, if it has version `expected` still.
    ///
    /// # Errors
    /// Never in practice: it is plain text.
    pub fn change(&self, expected: u64) -> Result<Change, Failure> {
        let value = serde_json::to_value(StoredHost::from(self))
            .map_err(|error| Failure::failed("write a record", error))?;
        Ok(Change { key: ClusterHost::key(self.record.id), expected, value: Some(value) })
    }

    /// The host that a record tells of.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn read(entry: &Entry) -> Result<ClusterHost, String> {
        let stored: StoredHost = read(entry)?;
        stored.host().map_err(|error| unread(&entry.key, error))
    }
}

impl From<&ClusterHost> for StoredHost {
    fn from(host: &ClusterHost) -> StoredHost {
        let record = &host.record;
        let maintenance = |mode: Mode, is_on, since: Instant| StoredMaintenance {
            mode: match mode {
                Mode::EnsureAccessibility => StoredMode::EnsureAccessibility,
                Mode::FullEvacuation => StoredMode::FullEvacuation,
                Mode::NoAction => StoredMode::None,
            },
            is_on,
            since_ns: since.0,
        };
        StoredHost {
            id: record.id.to_string(),
            name: record.name.clone(),
            version: record.release.clone(),
            incarnation: record.nodes.first().map_or(0, |node| node.incarnation),
            peers: host.peers().next().unwrap_or_default().to_owned(),
            more_peers: host.peers().skip(1).map(str::to_owned).collect(),
            api: host.api.clone(),
            nbd: host.nbd.clone(),
            nbd_tls: host.nbd_tls,
            certificate: host.certificate.clone(),
            etcd_member: host.member.clone(),
            fault_domain: record.fault_domain.clone(),
            maintenance: match record.maintenance {
                Maintenance::Off => None,
                Maintenance::Entering { mode, since } => Some(maintenance(mode, false, since)),
                Maintenance::On { mode, since } => Some(maintenance(mode, true, since)),
            },
            devices: record.devices.iter().map(StoredDevice::from).collect(),
            #[cfg(feature = "next-level")]
            level: (host.level >= OURS.highest()).then(|| host.level.number()),
        }
    }
}

impl StoredHost {
    fn host(self) -> Result<ClusterHost, String> {
        #[cfg(feature = "next-level")]
        let level = self.level.map_or(Some(Level::FIRST), Level::new).ok_or("there is no level 0")?;
        #[cfg(not(feature = "next-level"))]
        let level = Level::FIRST;
        let id: HostId = parsed(&self.id)?;
        let incarnation = self.incarnation;
        let node = |(shard, address): (u8, String)| NodeRecord {
            id: NodeId { host: id, shard },
            peer_addresses: vec![address],
            incarnation,
        };
        let peers = std::iter::once(self.peers).chain(self.more_peers);
        let maintenance = match self.maintenance {
            None => Maintenance::Off,
            Some(StoredMaintenance { mode, is_on, since_ns }) => {
                let mode = match mode {
                    StoredMode::EnsureAccessibility => Mode::EnsureAccessibility,
                    StoredMode::FullEvacuation => Mode::FullEvacuation,
                    StoredMode::None => Mode::NoAction,
                };
                let since = Instant(since_ns);
                if is_on { Maintenance::On { mode, since } } else { Maintenance::Entering { mode, since } }
            }
        };
        Ok(ClusterHost {
            record: HostRecord {
                id,
                name: self.name,
                nodes: (0u8..).zip(peers).map(node).collect(),
                api_address: self.api.first().cloned().unwrap_or_default(),
                fault_domain: self.fault_domain,
                maintenance,
                devices: self.devices.into_iter().map(|one| one.device(id)).collect::<Result<_, _>>()?,
                release: self.version,
                clock_ahead_ns: 0,
                data_trouble: Vec::new(),
                reports: ::cluster::DeviceReports::default(),
                last_seen: Instant(0),
            },
            api: self.api,
            nbd: self.nbd,
            nbd_tls: self.nbd_tls,
            certificate: self.certificate,
            member: self.etcd_member,
            level,
        })
    }
}

impl From<&DeviceRecord> for StoredDevice {
    fn from(device: &DeviceRecord) -> StoredDevice {
        let (away_since_ns, failed) = match &device.state {
            DeviceState::InService => (None, None),
            DeviceState::Away { since } => (Some(since.0), None),
            DeviceState::Failed { since, error } => (None, Some((since.0, error.clone()))),
        };
        StoredDevice {
            id: device.id.to_string(),
            path: device.name.clone(),
            group: device.group.to_string(),
            shard: device.node.shard,
            capacity_bytes: device.capacity_bytes,
            free_bytes: device.free_bytes,
            reserved_bytes: device.reserved_bytes,
            component_count: device.component_count,
            component_count_max: device.component_count_max,
            away_since_ns,
            failed,
            leaving: device
                .leaving
                .as_ref()
                .map(|leaving| StoredLeaving { since_ns: leaving.since.0, fault: leaving.fault.clone() }),
            spins: device.spins,
        }
    }
}

impl StoredDevice {
    fn device(self, host: HostId) -> Result<DeviceRecord, String> {
        Ok(DeviceRecord {
            id: parsed(&self.id)?,
            name: self.path,
            group: parsed(&self.group)?,
            node: NodeId { host, shard: self.shard },
            capacity_bytes: self.capacity_bytes,
            free_bytes: self.free_bytes,
            reserved_bytes: self.reserved_bytes,
            component_count: self.component_count,
            component_count_max: self.component_count_max,
            state: match (self.away_since_ns, self.failed) {
                (_, Some((since, error))) => DeviceState::Failed { since: Instant(since), error },
                (Some(since), None) => DeviceState::Away { since: Instant(since) },
                (None, None) => DeviceState::InService,
            },
            leaving: self
                .leaving
                .map(|leaving| Leaving { since: Instant(leaving.since_ns), fault: leaving.fault }),
            spins: self.spins,
        })
    }
}
