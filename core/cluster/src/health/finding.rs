//! A finding: something that is wrong or should be known.

use super::code::Code;
use base::{DeviceId, DiskId, HostId};

/// The severity of a finding; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something cannot be used, or soon cannot.
    Critical,
    /// Redundancy or room is less than promised; somebody should look.
    Warning,
    /// For information.
    Notice,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The cluster.
    Cluster,
    /// A host.
    Host(HostId),
    /// A capacity device.
    Device(DeviceId),
    /// A virtual disk.
    Disk(DiskId),
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub code: Code,
    /// Its severity.
    pub severity: Severity,
    /// Its subject.
    pub subject: Subject,
    /// The cause, in one sentence.
    pub cause: String,
    /// The remedy, in one sentence.
    pub remedy: String,
}
