//! Space that there is, that is used, and that disks may take.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Space of a cluster, or of a host alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SpaceView {
    /// Bytes that capacity devices in service can take.
    pub capacity_bytes: u64,
    /// Bytes of them that are taken, with all copies.
    pub used_bytes: u64,
    /// Bytes that guests see: the sizes of all disks.
    pub disks_bytes: u64,
    /// Bytes that disks take when all of them is written, with all copies.
    pub components_bytes: u64,
    /// That in hundredths of the capacity.
    pub provisioned_percent: u64,
    /// The same for each host of a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostShareView>,
}

/// Space of one host of a cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostShareView {
    /// Its name.
    pub host: String,
    /// Bytes that its capacity devices in service can take.
    pub capacity_bytes: u64,
    /// Bytes of them that are taken.
    pub used_bytes: u64,
    /// Bytes that the components on it take when all of them is written.
    pub components_bytes: u64,
}
