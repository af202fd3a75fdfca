//! Whose series there are.

use base::{DeviceId, DiskId};

/// Whose series it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// All guests at this host.
    Host,
    /// The guests of a disk at this host.
    Disk(DiskId),
    /// A device of this host.
    Device(DeviceId),
}
