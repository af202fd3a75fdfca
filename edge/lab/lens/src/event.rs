//! One I/O of a trace.

use serde::{Deserialize, Serialize};

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Data comes from the disk.
    Read,
    /// Data goes to the disk.
    Write,
    /// A range is given up.
    Trim,
    /// All that was written shall be stable.
    Flush,
}

impl Action {
    /// The operation of the histograms; nothing for trims and flushes.
    pub fn operation(self) -> Option<iostats::Operation> {
        match self {
            Action::Read => Some(iostats::Operation::Read),
            Action::Write => Some(iostats::Operation::Write),
            Action::Trim | Action::Flush => None,
        }
    }
}

/// One I/O. Times are whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Event {
    /// When it was asked for, after the first I/O of the trace; when it was given to the device, if only that is known.
    pub at_ns: u64,
    /// Which disk: an index of [`crate::trace::TraceSummary::disks`].
    pub disk: u32,
    /// What it does.
    pub action: Action,
    /// Where on the disk, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for a flush.
    pub bytes: u64,
    /// From `at_ns` to its completion; none where the trace does not tell.
    pub latency_ns: Option<u64>,
    /// How long of that it waited before the device had it (Q2D); none where the trace does not tell.
    pub queued_ns: Option<u64>,
}

impl Event {
    /// From the device's taking it to its completion (D2C); the whole latency where queueing is unknown.
    pub fn device_ns(&self) -> Option<u64> {
        self.latency_ns.map(|latency| latency.saturating_sub(self.queued_ns.unwrap_or(0)))
    }

    /// The first byte after it.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}
