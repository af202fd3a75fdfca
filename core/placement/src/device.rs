//! What placement knows of a capacity device.

use crate::policy::Percent;
use base::units::EXTENT_SIZE;
use base::{DeviceId, GroupId, HostId};

/// A capacity device and the room on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpace {
    /// Its identity.
    pub id: DeviceId,
    /// What people call it: its path.
    pub name: String,
    /// The host that it is in.
    pub host: HostId,
    /// Its disk group.
    pub group: GroupId,
    /// Bytes that extents can take in all.
    pub capacity_bytes: u64,
    /// Bytes of these that no extent has taken yet.
    pub free_bytes: u64,
    /// Bytes of the free ones that are promised to reservations.
    pub reserved_bytes: u64,
    /// Components that stand on it.
    pub component_count: u32,
    /// Components that it can hold in all.
    pub component_count_max: u32,
    /// Whether it can take new components.
    pub in_service: bool,
}

impl DeviceSpace {
    /// Bytes that are neither taken nor promised.
    pub fn available_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.reserved_bytes)
    }

    /// Components that can still be made on it.
    pub fn component_room(&self) -> u32 {
        self.component_count_max.saturating_sub(self.component_count)
    }
}

/// Bytes that are set aside for a component of `size` bytes: the share, rounded up to whole extents.
pub fn reservation(size: u64, share: Percent) -> u64 {
    share.of(size).next_multiple_of(EXTENT_SIZE)
}
