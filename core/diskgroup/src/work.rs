//! Work that wants to get into the log, and what is left to do when its batch is stable.

use crate::format::batch::{Origin, Record};
use crate::format::page::Compression;
use crate::io::{GroupError, LayerRanges, Op, Output};
use crate::limits;
use base::WriteId;
use base::checksum::crc32c;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use smallvec::SmallVec;

/// Bytes of a write's record beside its checksums, rounded up.
pub(crate) const WRITE_RECORD_SIZE: usize = 48;

/// Bytes of a component's record, rounded up.
pub(crate) const COMPONENT_RECORD_SIZE: usize = 1024;

/// A write, a trim or an order about layers that wants to get into the log.
#[derive(Debug)]
pub(crate) enum Work {
    Write {
        change: Change,
        data: Buffers,
        checksums: SmallVec<[u32; 2]>,
        ends: LayerRanges,
    },
    Trim {
        change: Change,
        count: u16,
    },
    Order {
        target: Target,
        order: Order,
        ranges: LayerRanges,
    },
    /// `is_late`: the component did not have it taken, and gets it from another one.
    Snapshot {
        change: Change,
        number: u32,
        is_late: bool,
    },
    Rollback {
        change: Change,
        number: u32,
    },
    Compress {
        target: Target,
        compression: Compression,
    },
}

/// What becomes of held blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Promote,
    End,
}

/// Which part work is about, and who waits for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) op: Op,
    pub(crate) component: u32,
    pub(crate) part: u32,
}

/// A record without data, from the group itself.
#[derive(Debug)]
pub(crate) struct OwnRecord {
    pub(crate) op: Option<Op>,
    pub(crate) record: Record,
    /// Whether a checkpoint waits for it.
    pub(crate) for_checkpoint: bool,
}

/// Who waits for a record of the group's own, those whose record goes first before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaiting {
    /// The checkpoint under way.
    Checkpoint,
    /// Destaging, which has no pages until then, and every checkpoint that is to come after it.
    Destaging,
    Others,
}

/// How many that are.
pub(crate) const AWAITING: usize = 3;

impl OwnRecord {
    /// Who waits for it.
    pub(crate) fn awaiting(&self) -> Awaiting {
        match (self.for_checkpoint, &self.record) {
            (true, _) => Awaiting::Checkpoint,
            (false, Record::Chunk { .. }) => Awaiting::Destaging,
            (false, _) => Awaiting::Others,
        }
    }

    /// Bytes that it takes in a header, rounded up.
    pub(crate) fn size(&self) -> usize {
        match &self.record {
            Record::Direct { .. } => WRITE_RECORD_SIZE + BLOCKS_PER_EXTENT * 4,
            Record::Component { .. } => COMPONENT_RECORD_SIZE,
            Record::Entry { .. } => limits::ENTRY_RECORD_SIZE,
            _ => WRITE_RECORD_SIZE,
        }
    }
}

/// Where a write or trim goes, and who waits for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) op: Op,
    pub(crate) component: u32,
    pub(crate) part: u32,
    pub(crate) layer: u8,
    pub(crate) block: u16,
    pub(crate) id: WriteId,
    pub(crate) origin: Origin,
}

/// What becomes of a record when its batch is stable.
#[derive(Debug)]
pub(crate) struct Then {
    pub(crate) record: Record,
    pub(crate) op: Option<Op>,
    pub(crate) data: Buffers,
    pub(crate) for_checkpoint: bool,
}

impl Work {
    /// Whether it is the number of a change that the component has no part in.
    pub(crate) fn is_mark(&self) -> bool {
        matches!(self, Work::Trim { change: Change { layer: 0, .. }, count: 0 })
    }

    /// The number of the snapshot of that component that it asks for.
    pub(crate) fn mark_of(&self, component: u32) -> Option<u32> {
        match self {
            Work::Snapshot { change, number, .. } if change.component == component => Some(*number),
            _ => None,
        }
    }

    /// Which part it is about, and who waits for it.
    pub(crate) fn target(&self) -> Target {
        match *self {
            Work::Write { change: Change { op, component, part, .. }, .. }
            | Work::Trim { change: Change { op, component, part, .. }, .. }
            | Work::Snapshot { change: Change { op, component, part, .. }, .. }
            | Work::Rollback { change: Change { op, component, part, .. }, .. } => {
                Target { op, component, part }
            }
            Work::Order { target, .. } | Work::Compress { target, .. } => target,
        }
    }
}

/// Answers the operation behind some work with an error.
pub(crate) fn fail(work: &Work, error: GroupError, out: &mut Vec<Output>) {
    out.push(Output::Done { op: work.target().op, result: Err(error) });
}

/// CRC-32C of each block.
pub(crate) fn checksums(data: &Buffers) -> SmallVec<[u32; 2]> {
    data.iter().flat_map(|buffer| buffer.chunks_exact(BLOCK_SIZE as usize)).map(crc32c).collect()
}
