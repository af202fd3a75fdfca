//! What is asked about the future of a cluster, and the answer. Data alone.

use crate::host::HostRecord;
use crate::status::Condition;
use base::{DeviceId, DiskId, HostId};
use placement::Policy;
use std::collections::{BTreeMap, BTreeSet};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// These hosts are lost at once, and do not come back.
    LoseHosts(BTreeSet<HostId>),
    /// A host is added.
    AddHost(Box<HostRecord>),
    /// Disks have another policy.
    SetPolicy {
        /// The disks.
        disks: Vec<DiskId>,
        /// Their policy.
        policy: Policy,
    },
}

/// Which devices would be evened out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evens {
    /// Those that are nearly full, and those that differ by much from others.
    Uneven,
    /// Those that are nearly full.
    Full,
    /// None.
    Nothing,
}

/// The room of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpace {
    /// The host.
    pub host: HostId,
    /// What people call it.
    pub name: String,
    /// Bytes of its devices in service.
    pub capacity_bytes: u64,
    /// Bytes of these that are taken.
    pub used_bytes: u64,
    /// Bytes that are neither taken nor promised.
    pub free_bytes: u64,
    /// The most of these on one device: what a single component can take.
    pub largest_bytes: u64,
}

/// What would become of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// The disk.
    pub disk: DiskId,
    /// What people call it.
    pub name: String,
    /// How it is now.
    pub now: Condition,
    /// How it is as soon as it happens.
    pub at_once: Condition,
    /// How it is when all has been copied that can be.
    pub then: Condition,
    /// Bytes that are copied.
    pub bytes: u64,
    /// Where to, and how much.
    pub targets: BTreeMap<DeviceId, u64>,
    /// What it does not get, and why.
    pub lacks: Vec<String>,
}

/// What would become of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The room now.
    pub before: Vec<HostSpace>,
    /// The room when all has been copied that can be.
    pub after: Vec<HostSpace>,
    /// The disks that something becomes of, the worst off first.
    pub disks: Vec<Outlook>,
    /// Bytes that are copied because of policies and of what is missing.
    pub bytes_to_copy: u64,
    /// Bytes that are copied to even devices out.
    pub bytes_to_even: u64,
    /// Bytes that are given back where copies go.
    pub bytes_freed: u64,
    /// What people call the devices that something is copied to.
    pub device_names: BTreeMap<DeviceId, String>,
    /// All of it in one sentence.
    pub verdict: String,
}
