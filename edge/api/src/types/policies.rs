//! Policies, how disks follow them, and what limits do.

use super::words::{ComplianceWord, FollowerWord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyView {
    /// Name.
    pub name: String,
    /// Whether it is there from the start and cannot be changed or deleted.
    pub built_in: bool,
    /// Every rule with its value.
    pub rules: BTreeMap<String, String>,
    /// In short.
    pub short: String,
    /// Why no disk can have it now, if so.
    pub unsupported: Option<String>,
    /// The disks that follow it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<FollowerView>,
}

/// How far a disk is with the policy that it follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FollowerView {
    /// Name of the disk.
    pub disk: String,
    /// How far it is.
    pub state: FollowerWord,
    /// Why it is refused, or what it waits for: copies, or the moves of other disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A policy to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreatePolicy {
    /// Name.
    pub name: String,
    /// Rules, with a policy's name first if it builds on one: `single,stripes=2`.
    pub rules: String,
}

/// A policy to be changed, and with it the disks that follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangePolicy {
    /// Rules that change: `iops_limit=500,read_locality=auto`. Others stay.
    pub rules: String,
}

/// A policy to be explained. Nothing is changed by asking.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainPolicy {
    /// A policy's name, rules, or both: `gold,stripes=2`. Left out: what a new disk gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Size of a disk in bytes, of which is told where it would stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// What a policy gives and what it costs, on the cluster as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedPolicy {
    /// Its rules, in short.
    pub short: String,
    /// Every rule with its value.
    pub rules: BTreeMap<String, String>,
    /// Hosts or fault domains that may fail at once without a disk of it being lost.
    pub failures_to_tolerate: u8,
    /// Fault domains with devices that it needs.
    pub domains_needed: usize,
    /// Fault domains with devices that there are.
    pub domains: usize,
    /// What disks of it can take; nothing where no disk can have it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<PolicyCapacity>,
    /// Where a disk of the size that was given would stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<PlannedDisk>,
    /// Why no disk of it, or none of that size, can be made now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<PolicyRefusal>,
}

/// What disks of a policy can take of the cluster, in bytes of disks that are written in full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyCapacity {
    /// If all devices in service were empty.
    pub total_bytes: u64,
    /// Besides what is there and what is promised.
    pub available_bytes: u64,
    /// The largest disk of which all fits.
    pub largest_bytes: u64,
    /// Bytes on devices for each byte of a disk: 2 for two copies, 1.33 for RAID-5 in four hosts.
    pub cost: f64,
}

/// A disk as it would be made now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedDisk {
    /// Its size in bytes.
    pub size: u64,
    /// Bytes on devices once all of it is written.
    pub full_bytes: u64,
    /// Bytes of these that are set aside when it is made.
    pub reserved_bytes: u64,
    /// Its components.
    pub components: Vec<PlannedComponent>,
    /// Why it would stand so.
    pub reasons: Vec<String>,
    /// What the policy asks for and it would not get; with `force_provisioning` alone.
    pub debts: Vec<String>,
}

/// A component as it would be made now. A disk that is made later may get others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlannedComponent {
    /// Name of the host.
    pub host: String,
    /// The device, with its host.
    pub device: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Why no disk can be made, and what helps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PolicyRefusal {
    /// What stands in the way.
    pub cause: String,
    /// What can be done about it.
    pub hint: String,
    /// The nearest policy that would do, if any does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// What the limits of a disk do to its requests, as its owner says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// Whether a request waits for a limit, or did in the last two seconds.
    pub is_limited: bool,
    /// Requests that wait now.
    pub waiting: u32,
    /// Requests that waited, since the owner's host opened the disk.
    pub waited: u64,
    /// 99th percentile of their waits in microseconds, over the last 10 to 20 s; nothing when none waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_us_p99: Option<f64>,
}

/// Whether a disk is as its policy says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComplianceView {
    /// Whether it is; unknown while the disk is created or deleted.
    pub state: ComplianceWord,
    /// What it lacks, or what moves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl ComplianceView {
    /// In one line.
    pub fn text(&self) -> String {
        match self.causes.is_empty() {
            true if self.state == ComplianceWord::Unknown => String::new(),
            true => self.state.to_string(),
            false => format!("{}: {}", self.state, self.causes.join("; ")),
        }
    }
}
