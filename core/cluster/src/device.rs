//! A capacity device in its host's record.

use base::{DeviceId, GroupId, Instant, NodeId};

/// Whether a device serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceState {
    /// It does.
    InService,
    /// It was missing when its group was opened, and becomes whole again if it comes back.
    Away {
        /// Since when, by the directory's clock.
        since: Instant,
    },
    /// It failed: its components are lost.
    Failed {
        /// Since when, by the directory's clock.
        since: Instant,
        /// The error, for people.
        error: String,
    },
}

/// A request to empty a device. Until it is empty the device serves, but takes no new components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    /// Since when, by the directory's clock.
    pub since: Instant,
    /// Why, for people; none when somebody asked for it.
    pub fault: Option<String>,
}

/// A capacity device, as its host last reported it.
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
    /// Free bytes of these.
    pub free_bytes: u64,
    /// Free bytes that are promised to reservations.
    pub reserved_bytes: u64,
    /// Components that stand on it.
    pub component_count: u32,
    /// Components that it can hold in all.
    pub component_count_max: u32,
    /// Whether it serves.
    pub state: DeviceState,
    /// Whether it is to be emptied.
    pub leaving: Option<Leaving>,
    /// Whether it spins, behind a log device that does not: a hybrid group.
    pub spins: bool,
}

impl DeviceRecord {
    /// Whether it serves and takes new components.
    pub fn takes(&self) -> bool {
        self.state == DeviceState::InService && self.leaving.is_none()
    }
}
