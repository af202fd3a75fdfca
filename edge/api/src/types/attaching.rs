//! Who may attach to a disk, and where it is attached.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who may attach to a disk over the network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowedView {
    /// Whoever may attach to disks; then nobody is named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anybody: bool,
    /// People by their names.
    #[serde(default)]
    pub people: Vec<String>,
    /// Hosts by their names, for their guests.
    #[serde(default)]
    pub hosts: Vec<String>,
}

/// A disk that one further host may attach for a while: a running guest moves there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// Name or id of the host that may attach the disk, too.
    pub host: String,
    /// Seconds within which the guest moves, at most an hour.
    #[serde(default = "ten_minutes")]
    pub seconds: u64,
}

fn ten_minutes() -> u64 {
    600
}

/// A handover of a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HandoverView {
    /// Name of the disk.
    pub disk: String,
    /// Name of the host that may attach it, too.
    pub host: String,
    /// Until when, in seconds since 1970; nothing where no other host has the disk, so that nothing is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// A host at which clients have a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttachedView {
    /// The host.
    pub host: String,
    /// How many clients; nothing where the host does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
}
