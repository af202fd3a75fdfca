//! Reads under way: what each looks for, and where that stands.

use crate::io::Op;
use crate::unreadable::BadBlocks;
use base::Buffer;
use smallvec::SmallVec;

/// Where the newest version of a block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: it reads as zeroes.
    Hole,
    /// In the log, at that position.
    Log { position: u64, checksum: u32 },
    /// At rest, in that extent.
    Rest { member: u8, extent: u32, checksum: u32 },
}

impl Place {
    pub(crate) fn checksum(self) -> Option<u32> {
        match self {
            Place::Hole => None,
            Place::Log { checksum, .. } | Place::Rest { checksum, .. } => Some(checksum),
        }
    }

    /// Whether `next` stands right behind this one, `distance` blocks on, so that one device read covers both.
    pub(crate) fn continues(self, next: Place, distance: u64, log_blocks: u64) -> bool {
        match (self, next) {
            (Place::Hole, Place::Hole) => true,
            (Place::Log { position: a, .. }, Place::Log { position: b, .. }) => {
                a + distance == b && a % log_blocks + distance == b % log_blocks
            }
            (Place::Rest { member: a, extent: x, .. }, Place::Rest { member: b, extent: y, .. }) => {
                a == b && x == y
            }
            (Place::Hole | Place::Log { .. } | Place::Rest { .. }, _) => false,
        }
    }
}

/// A run of blocks that one device read (or none) brings.
#[derive(Debug)]
pub(crate) struct Run {
    /// First block.
    pub(crate) block: u16,
    pub(crate) places: SmallVec<[Place; 1]>,
    /// What is or will be the data; `None` for a hole.
    pub(crate) buffer: Option<Buffer>,
    /// Whether the data came from memory and was verified when it was written.
    pub(crate) is_verified: bool,
    /// Blocks of it that the device could not read.
    pub(crate) bad: BadBlocks,
}

/// One read under way.
#[derive(Debug)]
pub(crate) struct ReadState {
    pub(crate) op: Op,
    pub(crate) component: u32,
    pub(crate) part: u32,
    pub(crate) block: u16,
    pub(crate) count: u16,
    pub(crate) verify: bool,
    pub(crate) runs: SmallVec<[Run; 1]>,
    pub(crate) outstanding: u32,
    pub(crate) retries: u8,
    pub(crate) has_failed: bool,
    /// The block that did not match last time, and where it stood.
    pub(crate) suspect: Option<(u16, Place)>,
}

impl ReadState {
    pub(crate) fn op(&self) -> Option<Op> {
        Some(self.op)
    }
}
