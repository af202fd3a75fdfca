//! What a group is told and what it asks for: the seam to its executor.

use crate::compute::{ComputeId, Computed, Task};
use crate::format::batch::Origin;
use crate::format::page::{ComponentRecord, Compression};
use crate::held::LayerRange;
use base::request::{Buffers, Pieces};
use base::units::REGIONS_PER_EXTENT;
use base::{Buffer, ComponentId, DeviceId, RequestTag, WriteId};
use smallvec::SmallVec;

/// The caller's name for an operation; comes back with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u64);

/// The group's name for a device request; comes back with its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Io(pub u32);

/// A component of one group, while that group is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentKey(pub(crate) u32);

/// A device request failed; what the kernel said is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IoFailure {
    /// The device works, and a block of the range cannot be read: a bad sector. Only reads fail this way.
    #[error("{0}")]
    Unreadable(String),
    /// The device does not do its work.
    #[error("{0}")]
    Device(String),
}

/// Ranges of layers of one part.
pub type LayerRanges = SmallVec<[LayerRange; 1]>;

/// What happens to a group.
#[derive(Debug)]
pub enum Input {
    /// Read `count` blocks of one part (MiB) of a component.
    Read {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// 0: the content. Another layer: what it holds, or else the content. A row write that is not decided counts as content.
        layer: u8,
        /// First block, 0..256.
        block: u16,
        /// Blocks, at least 1; they end within the part.
        count: u16,
        /// The number of a snapshot, whose view is read; 0: the live disk.
        snapshot: u32,
        /// Whether to answer "damaged" when a checksum does not match. Off by policy only.
        verify: bool,
    },
    /// Tell the checksums of blocks of one part's content. Nothing is read for them but the part's descriptor.
    Checksums {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// First block, 0..256.
        block: u16,
        /// Blocks, at least 1; they end within the part.
        count: u16,
    },
    /// Write whole blocks of one part. Answered when stable.
    Write {
        /// Comes back with the answer.
        op: Op,
        /// To which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// 0: the content. Another layer, 1 to 253 or [`crate::ROW_LAYER`]: the blocks are held there beside the content.
        layer: u8,
        /// First block.
        block: u16,
        /// A multiple of 4 KiB, each buffer too; ends within the part.
        data: Buffers,
        /// For a guest's write, greater than the id of every earlier one to these blocks.
        id: WriteId,
        /// Whose write it is.
        origin: Origin,
        /// CRC-32C of each block as computed where the data entered, to be compared; empty if nobody did.
        checksums: SmallVec<[u32; 2]>,
        /// What ends with this write, and not without it, in the same part: as [`Input::End`].
        ends: LayerRanges,
    },
    /// Make blocks of one part read as zeroes and give their space back. Answered when stable.
    Trim {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// As for a write.
        layer: u8,
        /// First block.
        block: u16,
        /// Blocks, at least 1.
        count: u16,
        /// As for a write.
        id: WriteId,
        /// As for a write.
        origin: Origin,
    },
    /// What layers hold of some blocks becomes their content, with its ids; the layers hold them no more. Of the row layer: these row
    /// writes are decided, and all that other layers hold of their blocks up to their ids ends. Answered when stable.
    Promote {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// Which blocks of which layers; at least one range.
        ranges: LayerRanges,
    },
    /// Layers hold some blocks no more; of the row layer: these row writes are dropped. The versions of their regions stay. Answered
    /// when stable.
    End {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which MiB of it.
        part: u32,
        /// Which blocks of which layers; at least one range.
        ranges: LayerRanges,
    },
    /// Make a snapshot of a component: all changes of it that were handed in before are in it, no later one is. Answered when stable.
    Snapshot {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Its number, greater than that of any earlier snapshot of the component.
        number: u32,
        /// Its place among the component's changes.
        id: WriteId,
        /// Whose request it is.
        tag: RequestTag,
    },
    /// Make a snapshot that the component did not have taken when the disk had it, under its number. It sees what the next newer one sees, else the live disk,
    /// until [`Input::Backfill`] has given it what it should see. Answered with [`GroupError::NotYet`] until all that came before it is at
    /// rest, and to be asked for again then. What was deleted must be gone before its number comes again.
    LateSnapshot {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Its number, of which nothing is there.
        number: u32,
    },
    /// Give blocks of one part to a snapshot: it sees these from now on, and nothing else changes. Answered before it is stable
    /// ([`Input::SyncBackfill`]), with [`GroupError::SnapshotRefused`] if an older snapshot would see them, too: that must be given what it sees first.
    /// Blocks that are to mend others, and are not what these were, are refused as [`GroupError::Damaged`].
    Backfill {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Which, and what.
        backfill: Backfill,
    },
    /// A late snapshot of a component was given all that it should see. Answered once that is stable. Until then nobody takes it for whole who finds it by
    /// the component alone.
    SyncBackfill {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// The snapshot.
        number: u32,
    },
    /// Take a component back to its newest snapshot: all changes of it that were handed in since that was made are undone, no later one is. Answered when
    /// stable. The snapshot stays.
    Rollback {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// The number of its newest snapshot.
        number: u32,
        /// Its place among the component's changes.
        id: WriteId,
        /// Whose request it is.
        tag: RequestTag,
    },
    /// Delete a snapshot. Answered when that is stable; the space that only it needs comes back soon after. One that was asked for and has not begun is not made; while the
    /// record of one is on its way, this is answered with [`GroupError::NotYet`].
    DropSnapshot {
        /// Comes back with the answer.
        op: Op,
        /// Of which component.
        component: ComponentKey,
        /// Its number.
        number: u32,
    },
    /// Let a component promise an epoch, greater than the one before. Answered when stable.
    Promise {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
        /// What it promises.
        epoch: u32,
    },
    /// All changes of a component up to `watermark` are decided. Becomes stable with a later batch, or, when there is an
    /// `op`, with the next one, which answers it.
    Settle {
        /// Comes back with the answer, if one is wanted.
        op: Option<Op>,
        /// Which.
        component: ComponentKey,
        /// The greatest such id.
        watermark: WriteId,
        /// Of the changes up to it, those of this epoch and later have happened.
        from_epoch: u32,
    },
    /// Tell which parts of a component were written after `since`, as far as one answer has room.
    Changed {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
        /// Ids up to this one do not count.
        since: WriteId,
        /// The first part to look at.
        from_part: u32,
    },
    /// Make a component on a member. Answered with its key when stable.
    Create {
        /// Comes back with the answer.
        op: Op,
        /// The capacity device.
        device: DeviceId,
        /// The component; its id must be new.
        record: ComponentRecord,
    },
    /// Replace a component's record: other size, reservation or label. Parts beyond a smaller size must have been
    /// trimmed.
    Update {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
        /// The new record, with the same id.
        record: ComponentRecord,
    },
    /// Store blocks of a component that way which are destaged once this is stable. Answered then. What is at rest stays as it is.
    Compress {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
        /// How.
        compression: Compression,
    },
    /// Look at all of a component that is at rest, and write anew what takes less space then: what stands as it is though the component compresses, and
    /// frames that are hardly used. Answered when that has begun.
    Rewrite {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
    },
    /// Delete a component. Answered when that is stable; its space comes back soon after.
    Delete {
        /// Comes back with the answer.
        op: Op,
        /// Which.
        component: ComponentKey,
    },
    /// Work of the processor ended. It may come late, or twice: what nobody waits for is dropped.
    Computed {
        /// Which.
        id: ComputeId,
        /// What came of it.
        computed: Computed,
    },
    /// A device request ended.
    DeviceDone {
        /// Which.
        io: Io,
        /// How.
        result: Result<(), IoFailure>,
    },
}

/// Blocks of one part that a snapshot is given after it was made, or that mend what it sees.
#[derive(Debug)]
pub struct Backfill {
    /// The snapshot; to mend also 0, the live disk.
    pub number: u32,
    /// Which MiB of the component.
    pub part: u32,
    /// First block.
    pub block: u16,
    /// Blocks, at least 1; they end within the part.
    pub count: u16,
    /// The blocks; none if they are holes.
    pub data: Buffers,
    /// CRC-32C of each block as computed where the data was read, to be compared; empty if nobody did.
    pub checksums: SmallVec<[u32; 2]>,
    /// What for.
    pub giving: Giving,
}

/// What blocks are given to a snapshot for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Giving {
    /// It sees them from now on.
    New,
    /// It sees them already, and is to have them for itself. Blocks of which this snapshot, or one between the two, has something of its own are passed over.
    AsSeenBy {
        /// The newer snapshot that was seen to see them.
        newer: u32,
    },
    /// They are what it should see: what stands there is damaged. Whoever sees the same sees it mended, too.
    Mend,
}

/// A block that was found damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedBlock {
    /// Which MiB of the component.
    pub part: u32,
    /// Which block of that.
    pub block: u16,
    /// The number of a snapshot that sees it, if the live disk does not; else 0.
    pub snapshot: u32,
}

/// What a group wants done.
#[derive(Debug)]
pub enum Output {
    /// Fill `buffer` from the member's device.
    Read {
        /// Comes back with the completion.
        io: Io,
        /// Which member of the group.
        member: u8,
        /// Byte on the device.
        offset: u64,
        /// Where to.
        buffer: Buffer,
        /// As for a write.
        gentle: bool,
    },
    /// Write the buffers, one after the other.
    Write {
        /// Comes back with the completion.
        io: Io,
        /// Which member of the group.
        member: u8,
        /// Byte on the device.
        offset: u64,
        /// What.
        buffers: Buffers,
        /// Whether it must be stable when it completes.
        stable: bool,
        /// Whether no guest waits for it: it may be carried out piece by piece, so that what guests ask for stands behind a piece
        /// and not behind all of it.
        gentle: bool,
    },
    /// Make all completed writes of the member stable.
    Flush {
        /// Comes back with the completion.
        io: Io,
        /// Which member of the group.
        member: u8,
    },
    /// The range is not needed any more: give its space to whoever provides the device, if that is cheap. Its result
    /// does not matter, but it must be over when it completes.
    Discard {
        /// Comes back with the completion.
        io: Io,
        /// Which member of the group.
        member: u8,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Work of the processor. It may be done anywhere and take its time, but where a guest waits for it ([`crate::Computation::is_urgent`]). A group that is open
    /// serves on without it; one that is being opened waits for it.
    Compute {
        /// Comes back with the result.
        id: ComputeId,
        /// What.
        task: Task,
    },
    /// An operation ended.
    Done {
        /// Which.
        op: Op,
        /// How.
        result: Result<Completion, GroupError>,
    },
    /// Something that people should know.
    Event(Event),
}

/// How an operation ended well.
#[derive(Debug, Clone)]
pub enum Completion {
    /// A write, trim, change or deletion is stable.
    Done,
    /// The blocks of a read, and the CRC-32C of each that is not in a hole.
    Data(Pieces, SmallVec<[u32; 2]>),
    /// The CRC-32C of each block; `None` in a hole.
    Checksums(Vec<Option<u32>>),
    /// Parts that were changed, ascending, and where to go on.
    Changed {
        /// Each part with its greatest write ids.
        parts: Vec<(u32, Versions)>,
        /// The part to go on at; `None` at the end.
        next: Option<u32>,
    },
    /// A component was made.
    Component(ComponentKey),
}

/// The greatest write ids of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Versions {
    /// No extent; the id is that of the last freeing in the same GiB, an upper bound.
    Hole(WriteId),
    /// By region.
    Regions(Box<[WriteId; REGIONS_PER_EXTENT]>),
}

/// How an operation ended badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// No extent is free on the device of the component.
    #[error("no space is left on the device")]
    NoSpace,
    /// What is held in layers has its share of the log (docs/design/0042). There is space on the device: what is held must be promoted
    /// or ended first.
    #[error("held changes have their share of the log")]
    Full,
    /// A block does not match its checksum.
    #[error("a block is damaged")]
    Damaged,
    /// The device of the component, or the log of the group, is out of service.
    #[error("the device is out of service")]
    DeviceLost,
    /// The component has no such snapshot, it is being deleted, or, of a rollback, it is not the newest one.
    #[error("there is no such snapshot")]
    NoSnapshot,
    /// The component cannot have another snapshot, or be rolled back: it has as many as it may, the number is not greater than that of an earlier
    /// one, a rollback is still being applied, layers hold blocks of it, or the group is of a format without snapshots. Nor can layers hold blocks of
    /// a component with snapshots.
    #[error("no other snapshot of the component can be made")]
    SnapshotRefused,
    /// A late snapshot of the component is there, and to be asked for again: what came before it is still being destaged.
    #[error("what came before the snapshot is still being destaged")]
    NotYet,
    /// The group is of a format that has no compressed blocks: it must be converted first.
    #[error("the disk group is of a format without compressed blocks")]
    NotConverted,
    /// No such component, or it is being deleted.
    #[error("there is no such component")]
    NoComponent,
    /// The component's id is taken, or all slots of the device are.
    #[error("no slot for another component is left on the device")]
    NoSlot,
    /// The record of a component is none that could be read again: it has no identity, a size that no component has, or names
    /// another disk than before.
    #[error("the component's record makes no sense")]
    Malformed,
}

/// Something that people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The group is open: recovery is done.
    Ready,
    /// The group cannot be opened.
    OpenFailed(OpenError),
    /// A device failed and is out of service until it is replaced.
    MemberFailed {
        /// Which member.
        member: u8,
        /// Why.
        why: String,
    },
    /// The log failed, and so the group as a whole.
    GroupFailed {
        /// Why.
        why: String,
    },
    /// A block at rest (or in the log) does not match its checksum.
    BlockDamaged {
        /// The member.
        member: u8,
        /// The component.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Which block of that.
        block: u16,
        /// The number of a snapshot that sees it, if the live disk does not; else 0.
        snapshot: u32,
    },
    /// A table page is damaged in both copies that count: what stands in its extents is not known.
    PageDamaged {
        /// The member.
        member: u8,
        /// The page.
        page: u32,
    },
    /// A round of scrubbing over all members ended.
    ScrubRound {
        /// Bytes verified.
        bytes: u64,
        /// Blocks found damaged.
        damaged: u64,
    },
}

/// Why a group cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// A device could not be read.
    #[error("read from device {member}: {why}")]
    Read {
        /// Which member.
        member: u8,
        /// Why.
        why: String,
    },
    /// A device could not be written.
    #[error("write to device {member}: {why}")]
    Write {
        /// Which member.
        member: u8,
        /// Why.
        why: String,
    },
    /// The anchor of the log is not valid.
    #[error("the anchor of the log is not valid: {0}")]
    Anchor(crate::format::FormatError),
    /// A batch in the middle of the log is damaged: acknowledged writes after it would be lost.
    #[error(
        "batch {number} of the log is damaged while later ones are intact: acknowledged writes in it are lost; \
         the group is not opened, since nobody can tell which blocks they were"
    )]
    LogDamaged {
        /// Its number.
        number: u64,
    },
    /// Records contradict the tables.
    #[error("the log and the tables contradict each other: {0}")]
    Contradiction(&'static str),
}
