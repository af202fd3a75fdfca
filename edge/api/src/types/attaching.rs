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

/// A host at which clients have a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttachedView {
    /// The host.
    pub host: String,
    /// How many clients; nothing where the host does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
}
