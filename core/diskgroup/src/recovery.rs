//! The state of a group that is being opened. `group/recovery.rs` and `group/beyond.rs` move it on.

use crate::compute::ComputeId;
use crate::format::batch::{BatchHeader, HEADER_BLOCKS_MAX, Record};
use crate::log::BatchStart;
use crate::unreadable::BadBlocks;
use rustc_hash::FxHashSet;

/// A batch whose header verifies.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) start: BatchStart,
    pub(crate) header: BatchHeader,
    pub(crate) records: Vec<Record>,
}

/// What recovery is doing.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    #[default]
    Anchor,
    /// Reads the tables, member after member; `page` is the next page to read of the member.
    Tables { member: u8, page: u32 },
    /// Looks for the batch that follows the one before, at `position` or, if `is_wrapped`, at the region's start.
    Log { position: u64 },
    /// Reads the data of the last batch, from its data block `block` on.
    LastBatch { block: u64 },
    /// Waits for the checksums of what was read there.
    Verifying { id: ComputeId, block: u64, unreadable: BadBlocks },
    /// Looks for the copy of a header, and for a later batch, behind the end, from `position` on, up to `end`.
    Beyond { position: u64, end: u64 },
    /// Reads the copy of the header at `position`; looks on up to `end` if it does not verify.
    HeaderCopy { position: u64, end: u64 },
    /// Writes the anchor over a copy that is older or cannot be read.
    MendAnchor,
}

/// The state of opening.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    pub(crate) stage: Stage,
    /// The copy of the anchor that is older than the other one, or cannot be read.
    pub(crate) stale_anchor: Option<u64>,
    /// The last batch found; not in force yet.
    pub(crate) last: Option<Batch>,
    /// Number of the batch looked for.
    pub(crate) number: u64,
    /// What may stand in the way of finding it.
    pub(crate) doubt: Doubt,
    /// Checksums of the last batch's data still to be verified.
    pub(crate) checksums: Vec<u32>,
    /// Pages whose newer copy does not verify: torn if the log names the intent, else damaged.
    pub(crate) suspects: Vec<(u8, u32)>,
    /// Where batches start that are torn.
    pub(crate) torn: Vec<u64>,
    /// Versions of pages (member, page, version) that the log says were about to be written.
    pub(crate) intents: FxHashSet<(u8, u32, u64)>,
}

/// What may hide the batch that is looked for.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    /// Places where it could begin that cannot be read.
    pub(crate) unreadable: Vec<u64>,
    /// The batch before has no copy of its header, so this one may have none either. Of the first of a log nobody can tell;
    /// it counts as one that has.
    pub(crate) may_lack_copy: bool,
    /// Nor can a block be read where the copy could stand.
    pub(crate) may_hide_copy: bool,
}

impl Doubt {
    /// What is known behind a batch with that header.
    pub(crate) fn after(header: &BatchHeader) -> Doubt {
        Doubt { may_lack_copy: !header.has_copy(), ..Doubt::default() }
    }

    /// Whether a batch may have stood there all the same. Where neither its header can be read nor a copy is found, though
    /// copies are written, it was never written whole, and never acknowledged.
    pub(crate) fn is_justified(&self) -> bool {
        !self.unreadable.is_empty() && (self.may_lack_copy || self.may_hide_copy)
    }

    /// A block behind the end cannot be read.
    pub(crate) fn note(&mut self, position: u64) {
        let near = |from: &u64| (*from + 1..=*from + HEADER_BLOCKS_MAX / 2).contains(&position);
        self.may_hide_copy |= self.unreadable.iter().any(near);
    }
}
