//! What components want of the disk groups that hold them, and how that ends.

use base::WriteId;
use base::request::{Buffers, Pieces, StatusOf, StatusRun};
use smallvec::SmallVec;
use wire::{BackfillRequest, DamagedBlock, Entry, EntryKind, HeldRange, NewComponent, PartVersions, Refusal};

/// What a disk group shall do.
#[derive(Debug, Clone)]
pub enum Store {
    /// Tell what the component promised, and its window.
    State,
    /// Promise an epoch.
    Promise {
        /// Which.
        epoch: u32,
    },
    /// Write whole blocks.
    Write {
        /// The write's id.
        id: WriteId,
        /// What it is for.
        kind: EntryKind,
        /// Which MiB of the component.
        part: u32,
        /// Which layer of it.
        layer: u8,
        /// First block.
        block: u16,
        /// The blocks.
        data: Buffers,
        /// CRC-32C of each.
        checksums: SmallVec<[u32; 2]>,
    },
    /// Make blocks read as zeroes; none: a mark.
    Trim {
        /// As for a write.
        id: WriteId,
        /// As for a write.
        kind: EntryKind,
        /// As for a write.
        part: u32,
        /// As for a write. A mark of a layer whose changes are undecided drops the change with its id.
        layer: u8,
        /// As for a write.
        block: u16,
        /// Blocks.
        count: u16,
    },
    /// Read blocks.
    Read {
        /// Which MiB of the component.
        part: u32,
        /// Which layer of it: what it holds, or else the content.
        layer: u8,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
        /// Whether they are compared with their checksums.
        verify: bool,
    },
    /// Everything up to here is decided; to be stable soon, or when answered.
    Settle {
        /// The greatest such id.
        watermark: WriteId,
        /// What has an id of this epoch or later has happened.
        from_epoch: u32,
        /// Whether to answer when it is stable; else at once.
        stable: bool,
    },
    /// The window need not be kept up to here, though the watermark stays where it is.
    Forget {
        /// The greatest such id.
        through: WriteId,
    },
    /// Tell what was changed.
    Changed {
        /// After this id.
        since: WriteId,
        /// From this part on.
        from_part: u32,
    },
    /// Tell what is allocated, or may have changed.
    Allocation {
        /// Which of these.
        of: StatusOf,
        /// The first part.
        part: u32,
        /// Parts.
        count: u16,
    },
    /// Tell what layers of copies hold.
    Held {
        /// From this part on.
        from_part: u32,
    },
    /// What a layer of copies holds becomes content.
    Promote {
        /// Which MiB of the component.
        part: u32,
        /// Which layer of it.
        layer: u8,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
        /// Up to this id.
        through: WriteId,
    },
    /// Tell the checksums of blocks of the content, or of their products.
    Checksums {
        /// Which MiB of the component.
        part: u32,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
        /// What each byte is multiplied with before its checksum is computed; with 1 nothing is read.
        coefficient: u8,
    },
    /// Read blocks of a snapshot's view.
    View {
        /// Its number.
        snapshot: u32,
        /// Which MiB of the component.
        part: u32,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
    },
    /// Take a snapshot.
    Snapshot {
        /// Its number.
        number: u32,
    },
    /// Delete a snapshot.
    DropSnapshot {
        /// Its number.
        number: u32,
    },
    /// Make a snapshot that the component did not have taken.
    LateSnapshot {
        /// Its number.
        number: u32,
    },
    /// Give blocks to a snapshot.
    Backfill(BackfillRequest),
    /// A late snapshot has all that it should see; to be answered when that is stable.
    SyncBackfill {
        /// Its number.
        number: u32,
    },
    /// Tell the numbers of the snapshots.
    Snapshots,
    /// Tell which blocks were found damaged.
    Damage,
    /// Take blocks for damaged ones.
    Mend(BackfillRequest),
    /// Make the component.
    Create(NewComponent),
    /// Replace its record.
    Update(NewComponent),
    /// Delete it.
    Delete,
}

impl Store {
    /// Whether it writes what another copy has.
    pub fn is_of_copy(&self) -> bool {
        matches!(
            self,
            Store::Write { kind: EntryKind::Copy, .. }
                | Store::Trim { kind: EntryKind::Copy, .. }
                | Store::Backfill(_)
                | Store::Mend(_)
        )
    }
}

/// How a store ended.
#[derive(Debug, Clone)]
pub enum Stored {
    /// It is done.
    Done {
        /// Back-pressure of the group, 0..=255.
        congestion: u8,
    },
    /// What the component is.
    State {
        /// The epoch that it promised.
        promised: u32,
        /// Its watermark.
        watermark: WriteId,
        /// Its window, by id.
        window: Vec<Entry>,
    },
    /// What was read.
    Data {
        /// Bytes and holes.
        pieces: Pieces,
        /// CRC-32C of the blocks in bytes.
        checksums: SmallVec<[u32; 2]>,
    },
    /// What was changed.
    Changed {
        /// By part.
        parts: Vec<PartVersions>,
        /// Where to go on.
        next: Option<u32>,
    },
    /// What is allocated of the parts.
    Allocation(Vec<StatusRun>),
    /// What layers of copies hold.
    Held {
        /// Part by part.
        ranges: Vec<HeldRange>,
        /// Where to go on.
        next: Option<u32>,
    },
    /// The numbers of the component's snapshots, ascending.
    Snapshots(Vec<u32>),
    /// Blocks that were found damaged.
    Damage(Vec<DamagedBlock>),
    /// The CRC-32C of each block; `None` in a hole.
    Checksums(Vec<Option<u32>>),
    /// It is not done.
    Failed(Refusal),
}
