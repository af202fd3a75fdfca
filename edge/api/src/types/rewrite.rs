//! Bodies about compressed blocks of disks, and about writing disks anew.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What compressed blocks of a disk take, with all copies and snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompressedView {
    /// Bytes of the blocks that are compressed, before that.
    pub compressed_bytes: u64,
    /// Bytes that these blocks take.
    pub packed_bytes: u64,
    /// The first divided by the second; nothing where no block is compressed.
    pub ratio: Option<f64>,
    /// Components that are being written anew because somebody asked for it.
    pub rewriting: usize,
}

/// What compressed blocks of one component take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PackedView {
    /// Bytes of the blocks that are compressed, before that.
    pub compressed_bytes: u64,
    /// Bytes that these blocks take.
    pub packed_bytes: u64,
    /// Whether it is being written anew because somebody asked for it.
    #[serde(default)]
    pub is_rewriting: bool,
}

/// Asks a host to write its components of a disk anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewriteHost {
    /// Identity of the disk.
    pub disk: String,
}

/// A host that writes components of a disk anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostRewriteView {
    /// Its name.
    pub host: String,
    /// Components that it has begun with.
    pub components: usize,
    /// Why it has not begun, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A disk that is written anew, to take less space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RewriteView {
    /// Its name.
    pub disk: String,
    /// The hosts that have components of it.
    pub hosts: Vec<HostRewriteView>,
}
