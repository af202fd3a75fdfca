//! Bodies about what would become of a cluster.

use super::words::{ConditionWord, PolicyChangeWord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What is asked. Nothing is changed by asking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WhatIf {
    /// These hosts, by name or id, are lost at once.
    LoseHosts(Vec<String>),
    /// All hosts of this fault domain are lost at once. A host outside any domain is one of its own.
    LoseDomain(String),
    /// A host is added.
    AddHost(AddHost),
    /// Disks have another policy.
    SetPolicy(SetPolicy),
}

/// A host that is not there yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddHost {
    /// One as large as this one, by name or id, and in its fault domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Or one with capacity devices of so many bytes each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacities: Vec<u64>,
    /// The hosts that it fails together with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<String>,
}

/// Another policy for disks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPolicy {
    /// Their names or ids; none: all disks, or those of `followers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// All disks that follow this named policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followers: Option<String>,
    /// A policy's name, rules, or both: `single`, `gold,stripes=2`.
    pub policy: String,
}

/// What would become of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForecastView {
    /// All of it in one sentence.
    pub verdict: String,
    /// Whether all disks that can be used now still can, and none stays with less than it has or is to have.
    pub is_harmless: bool,
    /// Bytes that are copied because of policies and of what is missing.
    pub bytes_to_copy: u64,
    /// Bytes that are copied to even devices out.
    pub bytes_to_even: u64,
    /// Bytes that are given back where copies go.
    pub bytes_freed: u64,
    /// The room of hosts now.
    pub before: Vec<HostSpaceView>,
    /// Their room when all has been copied that can be.
    pub after: Vec<HostSpaceView>,
    /// The devices that disks which move into another layout get something on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub move_rooms: Vec<MoveRoomView>,
    /// The disks that something becomes of, the worst off first.
    pub disks: Vec<OutlookView>,
}

/// The room of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSpaceView {
    /// Its name.
    pub host: String,
    /// Bytes of its devices in service.
    pub capacity_bytes: u64,
    /// Bytes of these that are taken.
    pub used_bytes: u64,
    /// Bytes that are neither taken nor promised.
    pub free_bytes: u64,
    /// The most of these on one device.
    pub largest_bytes: u64,
}

/// What would become of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutlookView {
    /// Its name.
    pub disk: String,
    /// How it is now.
    pub now: ConditionWord,
    /// How it is as soon as it happens.
    pub at_once: ConditionWord,
    /// How it is when all has been copied that can be.
    pub then: ConditionWord,
    /// Bytes that are copied.
    pub bytes: u64,
    /// The devices that they go to, with how many.
    pub targets: BTreeMap<String, u64>,
    /// What it does not get, and why.
    pub lacks: Vec<String>,
    /// How it gets the policy that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<PolicyChangeWord>,
}

/// What moves into another layout use of a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveRoomView {
    /// The device, with its host.
    pub device: String,
    /// Bytes in use now.
    pub used_bytes: u64,
    /// The most bytes in use while disks move, if what is written of them lies together.
    pub peak_bytes: u64,
    /// The same if it is scattered, so that each MiB of it takes full stripes of its own in a layout with parity.
    #[serde(default)]
    pub scattered_peak_bytes: u64,
    /// The most bytes that a move may leave it with.
    pub limit_bytes: u64,
}
