//! Bodies about snapshots of disks.

use super::words::RollbackWord;
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
    /// Bytes of blocks in one copy that the disk no longer holds, and that this snapshot holds, or it and older ones; as far as hosts that have copies
    /// could be asked. When it is deleted, those that no older one needs come back.
    #[serde(default)]
    pub bytes: u64,
    /// Disks that are clones of it: it cannot be deleted as long as there are any.
    #[serde(default)]
    pub clones: u32,
    /// The schedule that took it and deletes it; nothing of one that a person took or renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Whether its schedule never deletes it.
    #[serde(default)]
    pub pinned: bool,
}

/// A schedule by which snapshots of a disk are taken and deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// How often: `every 15m`, `hourly`, `daily`, `weekly`, `monthly`.
    pub every: String,
    /// Snapshots that it keeps.
    pub keep: u8,
    /// Snapshots of it that are there, pinned ones included.
    pub taken: usize,
    /// When the last one was due, in seconds since 1970; nothing if it has taken none.
    pub last: Option<u64>,
    /// When the next one is taken, in seconds since 1970; the present time if it is due.
    pub next: u64,
    /// Why the one that is due is not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<String>,
}

/// What is to change of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSnapshot {
    /// Another name. A snapshot of a schedule belongs to no schedule from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its schedule never deletes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// A snapshot that is to be taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSnapshot {
    /// Its name.
    pub name: String,
}

/// A disk that is to be made as a clone of a snapshot of another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneDisk {
    /// Its name.
    pub name: String,
    /// The snapshot that it is a clone of [default: one that is taken now, with the name `for-` and that of the clone].
    #[serde(default)]
    pub snapshot: Option<String>,
    /// Its size in bytes, a multiple of 512 [default: that of the disk when the snapshot was taken]. It cannot be smaller.
    #[serde(default)]
    pub size: Option<u64>,
    /// A policy's name, rules, or both: `gold,stripes=2` [default: as the disk that is cloned]. Not one with parity.
    #[serde(default)]
    pub policy: Option<String>,
    /// Whether clients may only read.
    #[serde(default)]
    pub read_only: bool,
    /// Whether clients of several hosts may have it at once.
    #[serde(default)]
    pub share: bool,
}

/// A clone that copies what it shares with its origin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlattenDisk {
    /// First byte, as `next` of the answer before tells [default: 0].
    #[serde(default)]
    pub from: u64,
}

/// How far a clone has copied what it shares with its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FlattenedView {
    /// The disk's name.
    pub disk: String,
    /// What it is, or was, a clone of.
    pub clone_of: String,
    /// Bytes that it shares with its origin at most.
    pub size: u64,
    /// Where to go on; nothing: it is an ordinary disk from now on.
    pub next: Option<u64>,
}

/// A snapshot of several disks that is to be taken at one moment: a write that was acknowledged before another began is never missing in one of
/// them while the other is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSnapshots {
    /// Names or ids of the disks: at most 32.
    pub disks: Vec<String>,
    /// The name that the snapshot has on each of them.
    pub name: String,
}

/// What differs between two snapshots, or what one holds: one page of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesView {
    /// The disk's name.
    pub disk: String,
    /// The snapshot's name.
    pub snapshot: String,
    /// The older snapshot's name; without one, the runs are what the snapshot holds.
    pub since: Option<String>,
    /// The size of the disk in the snapshot, in bytes.
    pub size: u64,
    /// Runs of blocks that may differ, or that are allocated, in ascending order. All else is the same, or reads as zeroes.
    pub runs: Vec<RunView>,
    /// Where the next page begins; nothing: this is the last one.
    pub next: Option<u64>,
}

/// A run of bytes of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// First byte, a multiple of 4096.
    pub offset: u64,
    /// Bytes; a multiple of 4096 but where the disk ends.
    pub length: u64,
}

/// A disk that is to be rolled back to a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// The disk's name.
    #[serde(default)]
    pub confirm: Option<String>,
    /// Whether the connections of clients that have the disk are ended. Otherwise a disk with clients is refused.
    #[serde(default)]
    pub detach_clients: bool,
    /// Name of the snapshot that is taken first and has what the disk held before [default: `before-rollback-` and the time]. Where a
    /// rollback that was cut short is repeated, that of the first attempt stays.
    #[serde(default)]
    pub keep: Option<String>,
    /// Whether that snapshot is deleted when the rollback is done.
    #[serde(default)]
    pub no_keep: bool,
}

/// A rollback of a disk to a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RollbackView {
    /// The disk's name.
    pub disk: String,
    /// The snapshot's name.
    pub snapshot: String,
    /// The snapshot that has what the disk held before, if it is kept.
    pub kept: Option<String>,
    /// How far it is.
    pub state: RollbackWord,
    /// The host that copies or copied last; nothing where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Bytes that may differ from the snapshot and are copied back; nothing until they are counted, or if the host cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_bytes: Option<u64>,
    /// Bytes of these that are copied.
    #[serde(default)]
    pub copied_bytes: u64,
    /// Seconds since it began, or that it took.
    #[serde(default)]
    pub seconds: f64,
    /// Why it cannot go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Which changes are asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ChangesQuery {
    /// An older snapshot of the same disk [default: all that the snapshot holds].
    pub since: Option<String>,
    /// First byte of the page, as `next` of the page before tells [default: 0].
    pub from: Option<u64>,
}

/// The confirmation that a snapshot is to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ConfirmSnapshot {
    /// The snapshot's name.
    #[serde(default)]
    pub confirm: Option<String>,
}
