//! A virtual disk as a node has it open.

use crate::control::DiskSpec;
use crate::fabric::ClusterDisk;
use crate::node::Token;
use crate::pace::IopsLimit;
use base::DiskId;
use iostats::Recorder;
use replication::Roster;

/// A disk of one node, while it is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskKey(pub(crate) u32);

/// The bytes of whole blocks that a request changes, from the first to behind the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) request: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Whether what it writes depends on what it reads first.
    pub(crate) reads_first: bool,
}

impl Change {
    fn overlaps(&self, other: &Change) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) spec: DiskSpec,
    /// Who waits for its end, once it takes no more requests.
    pub(crate) closing: Option<Token>,
    /// What the cluster says of it, and its owner while that is here.
    pub(crate) cluster: ClusterDisk,
    pub(crate) recorder: Recorder,
    pub(crate) limit: IopsLimit,
    /// Requests under way, delayed ones included.
    pub(crate) outstanding: u32,
    /// Changes under way.
    pub(crate) changes: Vec<Change>,
    /// Changes that wait for others, in order.
    pub(crate) blocked: Vec<Change>,
    /// Grows with everything that is recorded.
    pub(crate) statistics_version: u64,
}

impl Disk {
    pub(crate) fn new(spec: DiskSpec, version: u64, roster: Roster) -> Disk {
        Disk {
            limit: IopsLimit::new(spec.iops_limit),
            spec,
            closing: None,
            cluster: ClusterDisk::new(version, roster),
            recorder: Recorder::new(),
            outstanding: 0,
            changes: Vec::new(),
            blocked: Vec::new(),
            statistics_version: 0,
        }
    }

    /// The recorder, to record with.
    #[inline]
    pub(crate) fn record(&mut self) -> &mut Recorder {
        self.statistics_version += 1;
        &mut self.recorder
    }

    /// Whether a change may begin now: one that reads first waits for all others of its blocks, and all others for it.
    pub(crate) fn may_begin(&self, change: &Change) -> bool {
        if self.blocked.is_empty()
            && !change.reads_first
            && self.changes.iter().all(|other| !other.reads_first)
        {
            return true;
        }
        let conflicts = |other: &Change| (change.reads_first || other.reads_first) && change.overlaps(other);
        let is_behind = self.blocked.iter().take_while(|other| other.request != change.request);
        !self.changes.iter().any(conflicts) && !is_behind.into_iter().any(|other| change.overlaps(other))
    }
}

/// What a node tells about a disk.
#[derive(Debug, Clone)]
pub struct DiskState {
    /// Its key.
    pub key: DiskKey,
    /// Its identity.
    pub id: DiskId,
    /// Requests under way.
    pub outstanding: u32,
    /// Grows with everything that is recorded: while it stays the same, [`Node::statistics`] does.
    ///
    /// [`Node::statistics`]: crate::Node::statistics
    pub statistics_version: u64,
}
