//! What nodes say to one another.
//!
//! A *channel* runs from one node (the initiator: an owner or a frontend) to another (the acceptor, which holds
//! components or owns disks): requests one way, answers and notices the other. A pair of nodes has one channel each way.
//! Every request is answered once, in any order, with the token it came with.
//!
//! Sending a message that breaks what is promised here of its fields is a bug and stops the sender; receiving one ends the
//! connection. Data keeps its bytes on the way, not its cut into buffers: it arrives in buffers of 1 MiB, the last one shorter.

use base::request::{Buffers, Outcome, Pieces, StatusOf, StatusRun};
use base::{ComponentId, DeviceId, DiskId, RequestTag, WriteId};
use smallvec::SmallVec;

/// Whether a change is one of the owner's order, or brings a component up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A write or trim of a guest: remembered by its id until the watermark passes it, with the tag of the request.
    Guest(RequestTag),
    /// Resync or repair: puts what is right there, whatever ids stand there now.
    Copy,
}

/// One thing that an initiator asks.
#[derive(Debug, Clone)]
pub enum Request {
    /// Keeps the channel's grants alive.
    Heartbeat,
    /// The sender owns the disk from `epoch` on: promise it, and tell what is undecided.
    Open {
        /// The disk.
        disk: DiskId,
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
    },
    /// The sender gives its grant for the component up.
    Close {
        /// The component.
        component: ComponentId,
        /// The epoch in which it was opened.
        epoch: u32,
    },
    /// Write whole blocks of one part.
    Write {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// The write's id; its epoch is an earlier one where a former owner's write is rolled forward.
        id: WriteId,
        /// Everything up to here is decided (invariant 7); zero says nothing.
        watermark: WriteId,
        /// Numbers directly before this one that are marks for the component: changes that it has no part in.
        marks: u8,
        /// What it is for.
        kind: EntryKind,
        /// Which MiB of the component.
        part: u32,
        /// First block of it, 0..256.
        block: u16,
        /// Whole blocks that end within the part.
        data: Buffers,
        /// CRC-32C of each block, computed where the data entered.
        checksums: SmallVec<[u32; 2]>,
    },
    /// Make blocks of one part read as zeroes.
    Trim {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// As for a write.
        id: WriteId,
        /// As for a write.
        watermark: WriteId,
        /// Numbers directly before this one that are marks for the component: changes that it has no part in.
        marks: u8,
        /// What it is for.
        kind: EntryKind,
        /// Which MiB of the component.
        part: u32,
        /// First block of it.
        block: u16,
        /// Blocks, 0..=256, that end within the part. None: a change that has not happened, whose id is not to be missing
        /// (a mark), or a freeing that is told of for its id.
        count: u16,
    },
    /// Read blocks of one part.
    Read {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Which MiB of the component.
        part: u32,
        /// First block of it.
        block: u16,
        /// Blocks, 1..=256, that end within the part.
        count: u16,
        /// Whether they are compared with their checksums. Not on the wire: what another node asks for is.
        verify: bool,
    },
    /// Everything up to `watermark` is decided.
    Settle {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// The greatest id of which that is so.
        watermark: WriteId,
        /// Of the changes up to it that the component remembers, those of this epoch and later have happened. Of older ones
        /// it may have kept what a resync has undone.
        from_epoch: u32,
        /// Whether to answer only when that is stable.
        stable: bool,
    },
    /// Tell which regions were written after `since`.
    Changed {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Ids up to this one do not count.
        since: WriteId,
        /// The first part to look at.
        from_part: u32,
    },
    /// Tell which blocks of some parts are allocated, or may have changed.
    Allocation {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Which of these, and of which snapshots.
        of: StatusOf,
        /// The first part.
        part: u32,
        /// Parts, 1..=[`ALLOCATION_PARTS_MAX`](crate::limits::ALLOCATION_PARTS_MAX).
        count: u16,
    },
    /// Tell which copies of small changes are held beside the content, part by part.
    Held {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// The first part to look at.
        from_part: u32,
    },
    /// What a layer of copies holds of some blocks becomes their content, and is held no more.
    Promote {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Which MiB of the component, and which layer of it.
        part: u32,
        /// First block of it, 0..256.
        block: u16,
        /// Blocks, 1..=256, that end within the part.
        count: u16,
        /// Changes with greater ids stay.
        through: WriteId,
    },
    /// Tell the checksums of blocks of the content, without their data: of the blocks themselves, or of their products.
    Checksums {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Which MiB of the component.
        part: u32,
        /// First block of it, 0..256.
        block: u16,
        /// Blocks, 1..=256, that end within the part.
        count: u16,
        /// What each byte is multiplied with, in the field of the parity, before its checksum is computed; not zero. With 1 nothing is
        /// read for them.
        coefficient: u8,
    },
    /// Read blocks of one part as they were when a snapshot of the component was taken. They are compared with their checksums.
    View {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// The snapshot's number.
        snapshot: u32,
        /// Which MiB of the component.
        part: u32,
        /// First block of it.
        block: u16,
        /// Blocks, 1..=256, that end within the part.
        count: u16,
    },
    /// Take a snapshot of the component: what was changed by answered requests is in it, and what later requests change is not.
    Snapshot {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Its number, greater than those of all snapshots that the component ever had.
        number: u32,
    },
    /// Delete a snapshot of the component; fine if there is none. It is answered when the snapshot can be read no more; its space is
    /// freed by and by.
    DropSnapshot {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Its number.
        number: u32,
    },
    /// Make a snapshot of the component that it did not have taken when the disk had it. It is refused as busy until all that came before it is at rest, and asked
    /// for again; then it sees what the next newer snapshot sees, else the content, until it is given what it should see. Fine if it is there.
    LateSnapshot {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// Its number, that of a snapshot of the disk.
        number: u32,
    },
    /// Give blocks to a late snapshot, or to the one before it. Refused as a snapshot if an older one would see them, too.
    Backfill(BackfillRequest),
    /// A late snapshot was given all that it should see. Answered once that is stable.
    SyncBackfill {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
        /// The snapshot.
        number: u32,
    },
    /// Tell which blocks were found damaged since this was asked last. What is still so is told again once it is found again.
    Damage {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
    },
    /// Take blocks for damaged ones, as a snapshot sees them or, with number 0, the content: all who see them see them mended. Refused as damaged if they are not what
    /// these were.
    Mend(BackfillRequest),
    /// Tell the numbers of the component's snapshots.
    Snapshots {
        /// The component.
        component: ComponentId,
        /// The owner's epoch.
        epoch: u32,
    },
    /// Make a component.
    Create(NewComponent),
    /// Replace what is recorded of a component. It becomes no smaller by it.
    Update(NewComponent),
    /// Delete a component; fine if there is none.
    Delete {
        /// The component.
        component: ComponentId,
    },
    /// A guest's request to the owner of a disk, on behalf of the sender's frontends.
    Guest {
        /// The disk.
        disk: DiskId,
        /// Which request it is: the same each time that it is submitted.
        tag: RequestTag,
        /// What the guest asks.
        request: base::request::Request,
    },
    /// Let the sender own the disk, if no guest of the receiver uses it.
    Yield {
        /// The disk.
        disk: DiskId,
    },
    /// The guest of a request that the sender forwarded is gone: what of it has not begun is not to happen any more.
    GuestGone {
        /// Of the request.
        tag: RequestTag,
    },
}

/// Blocks of one part that a snapshot of a component is given, or that mend what it sees.
#[derive(Debug, Clone)]
pub struct BackfillRequest {
    /// The component.
    pub component: ComponentId,
    /// The owner's epoch.
    pub epoch: u32,
    /// The snapshot; to mend also 0, the content.
    pub number: u32,
    /// Which MiB of the component.
    pub part: u32,
    /// First block of it, 0..256.
    pub block: u16,
    /// Blocks, 1..=256, that end within the part.
    pub count: u16,
    /// Set if it is what the snapshot sees already, so that it has it for itself: the newer snapshot that was seen to see it. Blocks of which this one, or one
    /// between the two, has something of its own are passed over. Never set to mend.
    pub as_seen_by: Option<u32>,
    /// The blocks; empty if they are holes.
    pub data: Buffers,
    /// CRC-32C of each block in `data`, computed where it was read.
    pub checksums: SmallVec<[u32; 2]>,
}

/// All that a node needs to make a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewComponent {
    /// Its identity.
    pub id: ComponentId,
    /// The disk of which it is a part.
    pub disk: DiskId,
    /// The capacity device to make it on.
    pub device: DeviceId,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes to set aside for it.
    pub reservation: u64,
    /// The disk's label, from which a lost directory can be rebuilt; at most 768 bytes.
    pub disk_label: Vec<u8>,
}

/// A write or trim beyond the watermark, as a component remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: WriteId,
    /// Which MiB of the component; [`Entry::SPAN_PART`] for a span, [`Entry::CUT_PART`] for a cut.
    pub part: u32,
    /// First block of it.
    pub block: u16,
    /// Blocks, 1..=256; of a trim also 0: a mark, a span or a cut.
    pub count: u16,
    /// Whether it is a trim.
    pub is_trim: bool,
    /// Whether the component was told that it is decided, and happened: it is told of for its tag alone.
    pub has_happened: bool,
    /// The guest's request; of a span, the number of ids that follow the first.
    pub tag: RequestTag,
}

impl Entry {
    /// The part of a span: no component has so many.
    pub const SPAN_PART: u32 = u32::MAX;
    /// The part of a cut.
    pub const CUT_PART: u32 = u32::MAX - 1;

    /// Says that the component holds more undecided changes than one answer may name, the newest of those left out being `id`.
    pub fn cut(id: WriteId) -> Entry {
        let (part, tag) = (Entry::CUT_PART, RequestTag::default());
        Entry { id, part, block: 0, count: 0, is_trim: true, has_happened: false, tag }
    }

    /// Whether it stands for several changes: all from its id on, as many as its tag says after the first. They are decided,
    /// and the component holds them.
    pub fn is_span(&self) -> bool {
        self.count == 0 && self.part == Entry::SPAN_PART
    }

    /// Whether it says that older entries are left out.
    pub fn is_cut(&self) -> bool {
        self.count == 0 && self.part == Entry::CUT_PART
    }

    /// The last id that it stands for.
    pub fn last(&self) -> WriteId {
        let following = if self.is_span() { self.tag.0 } else { 0 };
        WriteId { epoch: self.id.epoch, sequence: self.id.sequence.saturating_add(following) }
    }
}

/// The greatest write ids of one part, by region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// Nothing is allocated; the id is that of the last freeing near it, an upper bound.
    Hole(WriteId),
    /// By region of 64 KiB.
    Regions(Box<[WriteId; 16]>),
}

/// What a component says about one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartVersions {
    /// Which MiB of the component.
    pub part: u32,
    /// Its versions.
    pub versions: Versions,
}

/// Blocks of which a layer of copies holds changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldRange {
    /// Which MiB of the component, and which layer of it.
    pub part: u32,
    /// First block of it.
    pub block: u16,
    /// Blocks, 1..=256.
    pub count: u16,
    /// The greatest id of these changes.
    pub through: WriteId,
}

/// A block that a component has damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedBlock {
    /// Which MiB of the component.
    pub part: u32,
    /// Which block of it, 0..256.
    pub block: u16,
    /// A snapshot that sees it, if the content does not; else 0.
    pub snapshot: u32,
}

/// Why a request is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A greater epoch was promised: the sender owns the disk no more.
    #[error("superseded by epoch {epoch}")]
    Superseded {
        /// The promised one.
        epoch: u32,
    },
    /// The component is not open in this session.
    #[error("the component is not open in this session")]
    NotOpen,
    /// No such component stands here.
    #[error("there is no such component")]
    NoComponent,
    /// Its device, or the log of its group, is out of service.
    #[error("the device is out of service")]
    DeviceLost,
    /// No space is left for a write.
    #[error("no space is left on the device")]
    NoSpace,
    /// A block does not match its checksum, at rest or as it came.
    #[error("a block is damaged")]
    Damaged,
    /// No slot, or the id is taken.
    #[error("no slot for another component is left on the device")]
    NoSlot,
    /// The receiver does not own the disk (now).
    #[error("the disk is not owned here")]
    NotOwner,
    /// Guests of the receiver use the disk.
    #[error("guests use the disk here")]
    InUse,
    /// The component has no such snapshot.
    #[error("there is no such snapshot of the component")]
    NoSnapshot,
    /// The component cannot have another snapshot.
    #[error(
        "the component can have no snapshot: its disk group is of an older format, or it has as many as it can"
    )]
    SnapshotRefused,
    /// The receiver is not ready, or has too much to do; try again.
    #[error("not now")]
    Busy,
}

/// The end of a request, or something that the acceptor says unasked.
#[derive(Debug, Clone)]
pub enum Answer {
    /// It is done (and stable, where that was asked). Congestion of the group, 0..=255.
    Done {
        /// Back-pressure.
        congestion: u8,
    },
    /// The component promised the epoch.
    Opened {
        /// What it knows to be decided.
        watermark: WriteId,
        /// What it holds beyond, in ascending order of ids; at most [`ENTRIES_MAX`](crate::limits::ENTRIES_MAX).
        entries: Vec<Entry>,
    },
    /// The blocks of a read, 1..=256, with the CRC-32C of each that is not in a hole. A piece is a number of whole blocks;
    /// neighbours of one sort may arrive as one.
    Data {
        /// Bytes and holes.
        pieces: Pieces,
        /// Of the blocks in bytes, in order.
        checksums: SmallVec<[u32; 2]>,
    },
    /// Parts that were changed, ascending; parts that are not named were not.
    Changed {
        /// Them; at most [`CHANGED_PARTS_MAX`](crate::limits::CHANGED_PARTS_MAX).
        parts: Vec<PartVersions>,
        /// Where to go on, behind all that are named; `None` at the end.
        next: Option<u32>,
    },
    /// Which blocks of the parts that were asked for are allocated: runs of whole blocks, neighbours different. It may end
    /// before the last part, if more than [`ALLOCATION_LOOKUPS_MAX`](crate::limits::ALLOCATION_LOOKUPS_MAX) were asked for. A part may
    /// count as allocated as a whole, for only "not allocated" promises something about its bytes.
    Allocation(Vec<StatusRun>),
    /// What layers of copies hold, part by part.
    Held {
        /// Ranges, those of one part together; at most [`HELD_RANGES_MAX`](crate::limits::HELD_RANGES_MAX).
        ranges: Vec<HeldRange>,
        /// The part to go on at, behind all that are named; `None` at the end.
        next: Option<u32>,
    },
    /// The CRC-32C of each block, or of its product; `None` where it is in a hole, which counts as a block of zeroes. 1..=256 blocks.
    Checksums(Vec<Option<u32>>),
    /// The numbers of a component's snapshots, ascending; at most [`SNAPSHOTS_MAX`](crate::limits::SNAPSHOTS_MAX).
    Snapshots(Vec<u32>),
    /// Blocks that were found damaged; at most [`DAMAGED_MAX`](crate::limits::DAMAGED_MAX).
    Damage(Vec<DamagedBlock>),
    /// How a guest's request ended. Neighbouring pieces of data may arrive as one, or cut anew at each MiB; of very many runs
    /// of allocation ([`STATUS_RUNS_MAX`](crate::limits::STATUS_RUNS_MAX)) the last ones arrive as one that is allocated.
    Guest(Outcome),
    /// It is not done.
    Refused(Refusal),
    /// Unasked, token 0: another owner wants the component; the receiver's grant for it must go. To be answered by a
    /// [`Request::Close`].
    Revoke {
        /// The component.
        component: ComponentId,
        /// The epoch whose grant must go.
        epoch: u32,
    },
}

/// One message of a channel, as it travels.
#[derive(Debug, Clone)]
pub struct Message<T> {
    /// Which incarnation of the channel it belongs to; the initiator counts.
    pub session: u64,
    /// Counts the messages of one direction of a session from 1: none may be missing, doubled or out of order.
    pub sequence: u64,
    /// The initiator's clock in nanoseconds: of sending, in requests; the greatest one heard, in answers, where it says
    /// "granted for 1.5 s from then on" (invariant 11, `replication::limits::GRANT`). Zero says nothing.
    pub stamp: u64,
    /// Names the request; answers repeat it.
    pub token: u32,
    /// What it says.
    pub body: T,
}
