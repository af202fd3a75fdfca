//! Policies, how disks follow them, and what limits do.

use super::words::FollowerWord;
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
    /// `compliant`, `not compliant` or `moving`; nothing while the disk is created or deleted.
    pub state: String,
    /// What it lacks, or what moves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl ComplianceView {
    /// In one line.
    pub fn text(&self) -> String {
        match self.causes.is_empty() {
            true => self.state.clone(),
            false => format!("{}: {}", self.state, self.causes.join("; ")),
        }
    }
}
