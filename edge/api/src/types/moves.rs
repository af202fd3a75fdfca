//! Bodies about disks that move into another layout.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The move of a disk into another layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoveView {
    /// Its rules once all has moved, in short: those that the policy asks for, or those that it had.
    pub policy: String,
    /// Whether it moves back into the layout that it had.
    pub is_back: bool,
    /// Whether somebody paused it.
    pub is_paused: bool,
    /// Bytes of the disk that have moved.
    pub moved_bytes: u64,
    /// Bytes of the disk that are still to be moved.
    pub remaining_bytes: u64,
    /// Bytes of the disk that were moved in a second, over the last seconds; nothing while none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// When all has moved at that pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// Why it stands still; nothing while it goes on or is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_still: Option<String>,
}

/// What the owner of a disk says of its move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OwnerMoveView {
    /// Bytes of the disk that were copied since the owner's host opened it, some of them again after an interruption.
    pub copied_bytes: u64,
    /// The pace over the last seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// What keeps it from going on: `no-space`, `damaged` or `awaits-component`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<String>,
}
