//! A capacity device in its host's record.

use base::{DeviceId, GroupId, Instant, NodeId};

/// Whether a device serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// It does.
    InService,
    /// It was not there when its group was opened, and is whole again if it comes back.
    Away {
        /// Since when, by the directory's clock.
        since: Instant,
    },
    /// It failed: what stands on it is lost.
    Failed {
        /// Since when, by the directory's clock.
        since: Instant,
        /// What it did, for people.
        error: String,
    },
}

/// That what stands on a device is to leave it. Until then the device serves, but takes nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Since when, by the directory's clock.
    pub since: Instant,
    /// Why, for people; nothing when somebody asked for it.
    pub fault: Option<String>,
}

/// A capacity device, as its host last told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Its identity.
    pub id: DeviceId,
    /// What people call it: its path.
    pub name: String,
    /// Its disk group.
    pub group: GroupId,
    /// The node of its host that serves the group.
    pub node: NodeId,
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
    /// Whether it serves.
    pub state: DeviceState,
    /// Whether it is to be emptied.
    pub leaving: Option<Leaving>,
}

impl DeviceRecord {
    /// Whether it serves and takes what is new.
    pub fn takes(&self) -> bool {
        self.state == DeviceState::InService && self.leaving.is_none()
    }
}
