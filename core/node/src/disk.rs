//! A virtual disk as its owner holds it.

use crate::control::DiskSpec;
use crate::fabric::ClusterDisk;
use crate::node::GroupKey;
use crate::pace::IopsLimit;
use base::{DiskId, WriteId};
use diskgroup::ComponentKey;
use iostats::Recorder;

/// A disk of one node, while it is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskKey(pub(crate) u32);

/// Where a component stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home {
    pub(crate) group: GroupKey,
    pub(crate) component: ComponentKey,
}

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
    /// By depth-first index of the place, each of one component; `None` where it is missing, which makes the disk
    /// unavailable.
    pub(crate) homes: Vec<Option<Home>>,
    /// Why it cannot be used, if it cannot.
    pub(crate) unavailable: Option<String>,
    /// Whether it takes no more requests, since it is being deleted.
    pub(crate) is_closing: bool,
    /// For a disk of a cluster of several hosts: then its components are the owner's business, and `homes` is empty.
    pub(crate) cluster: Option<ClusterDisk>,
    pub(crate) sequence: u64,
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
    pub(crate) fn new(spec: DiskSpec, homes: Vec<Option<Home>>, unavailable: Option<String>) -> Disk {
        Disk {
            limit: IopsLimit::new(spec.iops_limit),
            spec,
            homes,
            unavailable,
            is_closing: false,
            cluster: None,
            sequence: 0,
            recorder: Recorder::new(),
            outstanding: 0,
            changes: Vec::new(),
            blocked: Vec::new(),
            statistics_version: 0,
        }
    }

    /// Where the component of a place stands. Only for disks that are available.
    pub(crate) fn home(&self, place: usize) -> Home {
        self.homes[place].expect("a disk with a missing component takes no requests")
    }

    pub(crate) fn next_id(&mut self) -> WriteId {
        self.sequence += 1;
        WriteId { epoch: self.spec.epoch, sequence: self.sequence }
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
    /// Bytes of space that its components have taken.
    pub allocated_bytes: u64,
    /// Requests under way.
    pub outstanding: u32,
    /// Why it cannot be used, if it cannot.
    pub unavailable: Option<String>,
    /// Grows with everything that is recorded: while it stays the same, [`Node::statistics`] does.
    ///
    /// [`Node::statistics`]: crate::Node::statistics
    pub statistics_version: u64,
}
