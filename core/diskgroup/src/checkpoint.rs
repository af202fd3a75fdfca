//! The state of the checkpoint under way. `group/checkpoint.rs` moves it on.

use crate::format::anchor::Anchor;
use crate::log::BatchStart;
use base::Buffer;

/// A page that a checkpoint writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagePlace {
    pub(crate) member: u8,
    pub(crate) page: u32,
}

/// A copy of the anchor that is being written.
#[derive(Debug)]
pub(crate) struct AnchorCopy {
    pub(crate) anchor: Anchor,
    pub(crate) buffer: Buffer,
    /// Its place, as of the anchor with that revision.
    pub(crate) of: u64,
    /// Whether the other copy follows.
    pub(crate) is_first: bool,
}

/// How far the checkpoint under way is.
#[derive(Debug)]
pub(crate) enum Checkpoint {
    /// None is under way.
    Idle,
    /// Devices are being flushed, and page intents and what the log must go on telling are logged.
    Preparing { tail: BatchStart, pages: Vec<PagePlace>, flushes: u32, records: u32 },
    /// Pages are being written; those before `next` are under way or done.
    Writing { tail: BatchStart, pages: Vec<PagePlace>, next: usize, outstanding: u32, intents_from: u64 },
    /// The pages are being made stable.
    Flushing { tail: BatchStart, flushes: u32, intents_from: u64 },
    /// The anchor is being written.
    Anchoring,
}

impl Checkpoint {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Checkpoint::Idle)
    }

    /// Whether pages are on their way, so that a copy on the device may be neither old nor new.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self, Checkpoint::Writing { .. } | Checkpoint::Flushing { .. })
    }
}
