//! What a group tells about itself.

use crate::effort::Effort;
use crate::format::page::ComponentRecord;
use base::DeviceId;

/// The state of one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// Its identity.
    pub device: DeviceId,
    /// Bytes in its extents.
    pub capacity_bytes: u64,
    /// Bytes in extents that are taken.
    pub used_bytes: u64,
    /// Bytes set aside and not taken yet.
    pub reserved_bytes: u64,
    /// Components on it.
    pub component_count: u32,
    /// Components that it has room for.
    pub component_count_max: u32,
    /// Why it is out of service, if it is.
    pub failure: Option<String>,
    /// Whether it is only not there, and whole again when it comes back.
    pub is_away: bool,
    /// Blocks found damaged since the start, those that cannot be read among them.
    pub damaged_blocks: u64,
    /// Blocks that failed reads since the start; one that fails again after a minute counts again.
    pub read_errors: u64,
    /// How long it worked, and for how many requests.
    pub effort: Effort,
    /// Extents of which nobody knows what they hold.
    pub lost_extents: u32,
}

/// The state of the group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// Whether it can be used.
    pub is_open: bool,
    /// Its members by index.
    pub members: Vec<MemberState>,
    /// Size of its log in bytes.
    pub log_bytes: u64,
    /// Bytes of the log in use.
    pub log_used_bytes: u64,
    /// Bytes of data in the log that wait for destaging.
    pub destage_pending_bytes: u64,
    /// Bytes that are held in layers beside the content of parts.
    pub held_bytes: u64,
    /// Back-pressure, 0..=255.
    pub congestion: u8,
    /// Bytes of memory in tables, index and retained data, estimated.
    pub memory_bytes: u64,
    /// Figures since the start.
    pub counters: Counters,
}

/// The state of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentState {
    /// What it is.
    pub record: ComponentRecord,
    /// The device it stands on.
    pub device: DeviceId,
    /// Bytes in extents that it has taken; a mapped part counts as one extent.
    pub used_bytes: u64,
    /// Bytes of its blocks at rest that are compressed, before that; those of snapshots among them.
    pub compressed_bytes: u64,
    /// Bytes that these blocks take.
    pub packed_bytes: u64,
    /// Whether somebody asked for it to be written anew, and that goes on: the part that is looked at next.
    pub rewriting_part: Option<u32>,
    /// By number: its snapshots, and the bytes of blocks that only they see or older ones.
    pub snapshots: Vec<(u32, u64)>,
}

/// Figures for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes written to capacity devices by destaging.
    pub destaged_bytes: u64,
    /// Bytes of blocks that were compressed, or tried, when they were destaged.
    pub compressed_bytes: u64,
    /// Bytes that these blocks took then.
    pub packed_bytes: u64,
    /// Bytes of blocks that were written anew where they are at rest, to take less space.
    pub rewritten_bytes: u64,
    /// Bytes that went straight to fresh extents.
    pub direct_bytes: u64,
    /// Bytes of copies that were taken in.
    pub copied_bytes: u64,
    /// Batches written to the log, and bytes in them.
    pub batches: u64,
    /// Bytes of those batches, headers included.
    pub batch_bytes: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Table pages written.
    pub pages_written: u64,
    /// Bytes that scrubbing has verified.
    pub scrubbed_bytes: u64,
    /// Rounds of scrubbing completed.
    pub scrub_rounds: u64,
}
