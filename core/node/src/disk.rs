//! A virtual disk as a node has it open.

use crate::changes::Changes;
use crate::interface::{DiskSpec, Token};
use crate::mover::{Mover, Progress};
use crate::origin::Regions;
use crate::ownership::Ownership;
use crate::pace::Pace;
use iostats::Recorder;
use replication::Roster;

/// A disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) spec: DiskSpec,
    /// The request to close it, once it takes no more requests.
    pub(crate) closing: Option<Token>,
    pub(crate) ownership: Ownership,
    pub(crate) recorder: Recorder,
    /// Its limits, and requests that wait for them.
    pub(crate) pace: Pace,
    /// Requests under way, delayed ones included.
    pub(crate) outstanding: u32,
    pub(crate) changes: Changes,
    /// Its move into another layout, while the owner here serves it.
    pub(crate) mover: Option<Box<Mover>>,
    /// What all owners here moved of it.
    pub(crate) progress: Progress,
    /// Of a clone: where its regions stand, as far as the owner here knows.
    pub(crate) regions: Regions,
    /// Bytes of zeroes in writes that this node, as its owner, has turned into trims.
    pub(crate) zero_bytes_trimmed: u64,
    /// Grows with every recorded value.
    pub(crate) statistics_version: u64,
}

impl Disk {
    pub(crate) fn new(spec: DiskSpec, version: u64, roster: Roster) -> Disk {
        Disk {
            pace: Pace::new(spec.limits),
            spec,
            closing: None,
            ownership: Ownership::new(version, roster),
            recorder: Recorder::new(),
            outstanding: 0,
            changes: Changes::default(),
            mover: None,
            progress: Progress::default(),
            regions: Regions::default(),
            zero_bytes_trimmed: 0,
            statistics_version: 0,
        }
    }

    /// Whether it has to move on into another layout: some node must own it then, though no guest uses it.
    pub(crate) fn is_to_move(&self) -> bool {
        let DiskSpec { layout, course, .. } = &self.spec;
        let end = if course.is_back { 0 } else { layout.size() };
        let boundary = self.ownership.roster.moving.map(|moved| moved.boundary);
        layout.boundary().is_some() && !course.is_paused && boundary != Some(end)
    }

    /// The recorder, to record with.
    #[inline]
    pub(crate) fn record(&mut self) -> &mut Recorder {
        self.statistics_version += 1;
        &mut self.recorder
    }
}
