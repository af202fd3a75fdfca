//! A host in the directory.

use crate::device::DeviceRecord;
use base::{DeviceId, HostId, Instant, NodeId};
use placement::FaultDomain;
use std::fmt;

/// What maintenance of a host does to the disks that stand on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Only what a disk cannot be used without is copied elsewhere first.
    EnsureAccessibility,
    /// All that stands on the host is copied elsewhere first.
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

/// Whether a host is being serviced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// It is not.
    Off,
    /// It shall be, once what has to move has moved. It takes no new components.
    Entering {
        /// How.
        mode: Mode,
        /// Since when, by the directory's clock.
        since: Instant,
    },
    /// It is: it may go at any time.
    On {
        /// How.
        mode: Mode,
        /// Since when, by the directory's clock.
        since: Instant,
    },
}

impl Maintenance {
    /// How the host is being serviced, or will be.
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
    /// Which start of its process this is.
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

/// What a host tells of its devices and groups that stands in no record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceReports {
    /// Devices with damaged blocks.
    pub damaged: Vec<DamagedDevice>,
    /// Log devices that are in service in a group without any capacity device: path, and id of the group.
    pub lone_logs: Vec<(String, String)>,
    /// Log devices that are out of service, and why: their groups with them.
    pub failed_logs: Vec<(String, String)>,
}

/// A host, as it tells of itself with every heartbeat; only name, fault domain and maintenance are for people to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRecord {
    /// Its identity.
    pub id: HostId,
    /// What people call it; no other host of the cluster has this name.
    pub name: String,
    /// Its engines.
    pub nodes: Vec<NodeRecord>,
    /// Where its HTTP API is, as a URL.
    pub api_address: String,
    /// The hosts that fail together with it; a host outside any is its own.
    pub fault_domain: Option<String>,
    /// Whether it is being serviced.
    pub maintenance: Maintenance,
    /// Its capacity devices.
    pub devices: Vec<DeviceRecord>,
    /// The release that it runs.
    pub release: String,
    /// How far its clock is ahead of the directory's, in nanoseconds.
    pub clock_ahead_ns: i64,
    /// What is wrong with its data directory, each in words that stand for themselves.
    pub data_trouble: Vec<String>,
    /// What it tells of its devices and groups beside their records.
    pub reports: DeviceReports,
    /// When it was last heard of, by the directory's clock.
    pub heard: Instant,
}

impl HostRecord {
    /// What fails together with the host.
    pub fn domain(&self) -> FaultDomain<'_> {
        match &self.fault_domain {
            Some(name) => FaultDomain::Named(name),
            None => FaultDomain::Host(self.id),
        }
    }
}
