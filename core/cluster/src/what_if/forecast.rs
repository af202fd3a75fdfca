//! Questions about the future of a cluster, and forecasts. Data alone.

use crate::disk::{MovePlan, MoveRoom};
use crate::host::HostRecord;
use crate::status::Condition;
use base::{DeviceId, DiskId, HostId};
use placement::Policy;
use std::collections::{BTreeMap, BTreeSet};

/// A question.
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

/// Which devices would be rebalanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evens {
    /// Nearly full devices, and those that differ much from others.
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
    /// Used bytes of these.
    pub used_bytes: u64,
    /// Bytes that are neither used nor promised.
    pub free_bytes: u64,
    /// The largest of these on one device: the most that a single component can take.
    pub largest_bytes: u64,
}

/// The forecast for a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// The disk.
    pub disk: DiskId,
    /// What people call it.
    pub name: String,
    /// Its condition now.
    pub now: Condition,
    /// Its condition as soon as it happens.
    pub at_once: Condition,
    /// Its condition once everything possible has been copied.
    pub then: Condition,
    /// Bytes that are copied.
    pub bytes: u64,
    /// The targets, with bytes for each.
    pub targets: BTreeMap<DeviceId, u64>,
    /// What it lacks in the end, and why.
    pub lacks: Vec<String>,
    /// How it gets the policy that is asked about.
    pub change: Option<Change>,
}

/// How a disk gets another policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It has it.
    Done,
    /// Its record says so at once; missing copies are made then.
    AtOnce,
    /// What it holds is moved into another layout.
    Moves(MovePlan),
    /// It does not; why.
    Refused(String),
}

/// The forecast for a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The room now.
    pub before: Vec<HostSpace>,
    /// The room once everything possible has been copied.
    pub after: Vec<HostSpace>,
    /// The disks that are affected, the worst off first.
    pub disks: Vec<Outlook>,
    /// Bytes that are copied for policies and for missing components.
    pub bytes_to_copy: u64,
    /// Bytes that are copied to rebalance devices.
    pub bytes_to_even: u64,
    /// Bytes that are freed where copies are removed.
    pub bytes_freed: u64,
    /// The devices that disks which move into another layout get something on: used now, and the most while they move.
    pub move_rooms: Vec<MoveRoom>,
    /// The names of the target devices.
    pub device_names: BTreeMap<DeviceId, String>,
    /// A summary in one sentence.
    pub verdict: String,
}
