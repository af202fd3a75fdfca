//! A host in the directory.

use crate::device::DeviceRecord;
use crate::encryption::Encryption;
use crate::limits::NAMED_MAX;
use base::{DeviceId, HostId, Instant, NodeId};
use placement::FaultDomain;
use std::fmt;

/// How a host is emptied before maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Only components that their disk cannot be used without are copied elsewhere first.
    EnsureAccessibility,
    /// All components of the host are copied elsewhere first.
    FullEvacuation,
    /// Nothing is copied first.
    NoAction,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::EnsureAccessibility => "ensure accessibility",
            Mode::FullEvacuation => "full evacuation",
            Mode::NoAction => "no action",
        })
    }
}

/// Whether a host is in maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// It is not.
    Off,
    /// It enters maintenance once the components that have to move have moved. It takes no new components.
    Entering {
        /// How.
        mode: Mode,
        /// Since when, by the directory's clock.
        since: Instant,
    },
    /// It is in maintenance: it may stop at any time.
    On {
        /// How.
        mode: Mode,
        /// Since when, by the directory's clock.
        since: Instant,
    },
}

impl Maintenance {
    /// The mode of its maintenance, entered or under way; none outside maintenance.
    pub fn mode(&self) -> Option<Mode> {
        match self {
            Maintenance::Off => None,
            Maintenance::Entering { mode, .. } | Maintenance::On { mode, .. } => Some(*mode),
        }
    }
}

/// One engine of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its identity.
    pub id: NodeId,
    /// Where other nodes reach it, as `address:port`.
    pub peer_addresses: Vec<String>,
    /// Its incarnation: greater than at every start before.
    pub incarnation: u64,
}

/// A device with blocks that were found damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedDevice {
    /// Its identity.
    pub id: DeviceId,
    /// Its path.
    pub name: String,
    /// Blocks found damaged since its group was opened: wrong checksums, and blocks that could not be read.
    pub damaged_blocks: u64,
    /// Blocks of these that could not be read.
    pub read_errors: u64,
}

/// A device and its encryption at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceEncryption {
    /// Its path.
    pub name: String,
    /// Whether it is a log device without capacity.
    pub is_log: bool,
    /// Its encryption.
    pub encryption: Encryption,
}

/// Encryption at rest of a host's devices. Devices of which it is not known are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncryptionReport {
    /// Number of devices that are encrypted.
    pub encrypted: u64,
    /// Number of devices that are not, or only partly.
    pub unencrypted: u64,
    /// The first of these, partly encrypted ones first, then log devices; at most [`NAMED_MAX`].
    pub named: Vec<DeviceEncryption>,
}

impl EncryptionReport {
    /// The report of devices.
    pub fn of(devices: impl Iterator<Item = DeviceEncryption>) -> EncryptionReport {
        let mut report = EncryptionReport::default();
        for device in devices {
            match device.encryption.is_encrypted() {
                None => {}
                Some(true) => report.encrypted += 1,
                Some(false) => {
                    report.unencrypted += 1;
                    report.named.push(device);
                }
            }
        }
        report.named.sort_by_key(|device| (device.encryption != Encryption::Partly, !device.is_log));
        report.named.truncate(NAMED_MAX);
        report
    }
}

/// Reports of a host about its devices and groups that are in no record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceReports {
    /// Devices with damaged blocks.
    pub damaged: Vec<DamagedDevice>,
    /// Log devices that are in service in a group without any capacity device: path, and id of the group.
    pub lone_logs: Vec<(String, String)>,
    /// Log devices that are out of service, with their groups, and why.
    pub failed_logs: Vec<(String, String)>,
    /// Encryption at rest of its devices.
    pub encryption: EncryptionReport,
}

/// A host, as its heartbeats describe it. People set only name, fault domain and maintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRecord {
    /// Its identity.
    pub id: HostId,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its engines.
    pub nodes: Vec<NodeRecord>,
    /// Where its HTTP API is, as a URL.
    pub api_address: String,
    /// The hosts that fail together with it; a host outside any is its own.
    pub fault_domain: Option<String>,
    /// Its maintenance.
    pub maintenance: Maintenance,
    /// Its capacity devices.
    pub devices: Vec<DeviceRecord>,
    /// The release that it runs.
    pub release: String,
    /// How far its clock is ahead of the directory's, in nanoseconds.
    pub clock_ahead_ns: i64,
    /// Faults of its data directory, each a text that can stand alone.
    pub data_trouble: Vec<String>,
    /// Its reports about devices and groups.
    pub reports: DeviceReports,
    /// When it was last seen, by the directory's clock.
    pub last_seen: Instant,
}

impl HostRecord {
    /// The fault domain of the host.
    pub fn domain(&self) -> FaultDomain<'_> {
        match &self.fault_domain {
            Some(name) => FaultDomain::Named(name),
            None => FaultDomain::Host(self.id),
        }
    }
}
