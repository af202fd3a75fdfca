//! Something that is wrong, or to be known.

use super::code::Code;
use base::{DeviceId, DiskId, HostId};

/// How bad a finding is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something cannot be used, or will not be soon.
    Critical,
    /// Less is left than was promised; somebody should look.
    Warning,
    /// To be known.
    Notice,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The whole.
    Cluster,
    /// A host.
    Host(HostId),
    /// A capacity device.
    Device(DeviceId),
    /// A virtual disk.
    Disk(DiskId),
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What kind.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// About what.
    pub subject: Subject,
    /// What is the case, in one sentence.
    pub cause: String,
    /// What to do about it, in one sentence.
    pub remedy: String,
}
