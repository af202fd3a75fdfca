//! Bodies about snapshots of disks.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A snapshot of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotView {
    /// Its name, unique among those of the disk.
    pub name: String,
    /// The disk's name.
    pub disk: String,
    /// Its number: greater than those of all that were taken before it.
    pub number: u32,
    /// The size of the disk then, in bytes.
    pub size: u64,
    /// When it was taken, in seconds since 1970.
    pub taken: u64,
    /// The export by which NBD clients read it.
    pub export: String,
    /// Copies of each part of the disk that have it as a whole, the least of all parts; 0: it cannot be read as a whole now.
    pub copies: usize,
    /// Copies that the disk has of each part, the least of all parts.
    pub copies_wanted: usize,
}

/// A snapshot that is to be taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSnapshot {
    /// Its name.
    pub name: String,
}

/// The confirmation that a snapshot is to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct ConfirmSnapshot {
    /// The snapshot's name.
    #[serde(default)]
    pub confirm: Option<String>,
}
