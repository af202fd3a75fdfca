//! Why a device cannot leave its group, and what stands in for a device that is not there.

use crate::format::superblock::{Geometry, Superblock};
use base::DeviceId;

/// What becomes of components that stood on a device when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// The device stays because of them.
    Keep,
    /// They are given up.
    GiveUp,
}

/// Why a device cannot be taken out of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoveRefusal {
    /// It is none of the group's.
    #[error("the device is not part of the group")]
    Unknown,
    /// It holds the log.
    #[error("the device holds the log of its group")]
    HoldsLog,
    /// Components stand on it.
    #[error("{0} components stand on the device")]
    InUse(u32),
    /// It failed while components stood on it, and nobody said that they are given up.
    #[error("{0} components stood on the device when it failed")]
    Lost(u32),
    /// Another device of the group is away: the log keeps what that one has not got yet, and so what speaks of this one.
    #[error("device {0} of the same group is away, and the log is kept for its return")]
    OtherAway(DeviceId),
}

impl Superblock {
    /// What stands in for an index of the group without a device: it has no regions.
    pub fn vacant(of: &Superblock, index: u8) -> Superblock {
        Superblock {
            device: DeviceId(0),
            index,
            log_mark: 0,
            size: 0,
            geometry: Geometry::default(),
            ..of.clone()
        }
    }
}

impl Superblock {
    /// What stands in for the device of an index when it is not there: it has an identity and no regions. Its index holds
    /// no log: without the log a group is not opened.
    pub fn away(of: &Superblock, index: u8) -> Superblock {
        Superblock { device: of.members[index as usize], ..Superblock::vacant(of, index) }
    }

    /// Whether it stands in for a device that is not there.
    pub fn is_away(&self) -> bool {
        self.device != DeviceId(0) && self.geometry == Geometry::default()
    }
}
