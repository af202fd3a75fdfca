//! What an owner is told, what it wants done, and what it tells of itself.

use super::steering::Reading;
use crate::limits;
use crate::roster::{Moved, Role, Roster, Standing};
use crate::rules::Rule;
use crate::snapshots::NotTaken;
use base::request::{Buffers, Pieces, StatusOf, StatusRun};
use base::rules::Rules;
use base::units::BLOCK_SIZE;
use base::{Allowance, Buffer, ComponentId, Instant, NodeId, Pool, RequestTag};
use layout::{Layout, Target};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::time::Duration;
use wire::{Answer, Refusal, Request};

/// The caller's name for a change or a read; comes back with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// The owner's name for a request to a component; comes back with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask(pub u32);

/// Until when this node may rely on what each other node granted it.
#[derive(Debug, Default)]
pub struct Leases {
    until: FxHashMap<NodeId, Instant>,
}

impl Leases {
    /// A node answered a message that was sent at `sent`, and granted.
    pub fn granted(&mut self, node: NodeId, sent: Instant) {
        let until = self.until.entry(node).or_default();
        *until = (sent + limits::GRANT - limits::DRIFT_ALLOWANCE).max(*until);
    }

    /// The session with the node is over: what it granted counts no more.
    pub fn lost(&mut self, node: NodeId) {
        self.until.remove(&node);
    }

    pub(crate) fn is_live(&self, node: NodeId, now: Instant) -> bool {
        self.until.get(&node).is_some_and(|until| *until > now)
    }
}

/// What a change does.
#[derive(Debug, Clone)]
pub enum Payload {
    /// Writes whole blocks.
    Write {
        /// Them.
        data: Buffers,
        /// CRC-32C of each, computed where the data entered.
        checksums: SmallVec<[u32; 2]>,
    },
    /// Makes so many blocks read as zeroes.
    Trim {
        /// Blocks.
        count: u16,
    },
}

impl Payload {
    /// Blocks that it changes.
    pub(crate) fn blocks(&self) -> u16 {
        match self {
            Payload::Write { checksums, .. } => checksums.len() as u16,
            Payload::Trim { count } => *count,
        }
    }

    /// Bytes that it carries.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Payload::Write { checksums, .. } => checksums.len() as u64 * BLOCK_SIZE,
            Payload::Trim { .. } => 0,
        }
    }
}

/// What an owner is run with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// A MiB of zeroes: what a stand-in gets for a trim.
    pub zeroes: Buffer,
    /// Where memory for parity comes from.
    pub pool: Pool,
    /// Memory that what is gathered of rows may take, for all owners of the node.
    pub gathers: Allowance,
    /// Which components guests' reads go to.
    pub reading: Reading,
    /// Whether what a guest reads of a component on the owner's own node is compared with its checksums.
    pub verifies: bool,
    /// Most blocks that one copy of a resync takes, 1..=256.
    pub copy_blocks_max: u16,
    /// For how long small changes of rows are held as copies before their parity is computed; none: it is computed before they are sent.
    pub fold_after: Option<Duration>,
    /// Until when other nodes may be starting as this one did, and the directory be older than what they hold.
    pub starts_until: Instant,
    /// Whether the first block of each region tells that the region is the disk's own and not its origin's: where it is a hole, no copy makes
    /// it anything else.
    pub is_clone: bool,
    /// Both layouts of the disk while it moves: where the other one has what a component of the new one lacks.
    pub moving: Option<Box<Layout>>,
    /// The safety rules that hold: all in a product build.
    pub rules: Rules<Rule>,
}

impl Settings {
    /// So many blocks of zeroes, 1..=256, with their checksums.
    pub(crate) fn zero_blocks(&self, count: u16) -> (Buffers, SmallVec<[u32; 2]>) {
        let zeroes = self.zeroes.slice(0, usize::from(count) * BLOCK_SIZE as usize);
        let checksum = base::checksum::crc32c(&zeroes[..BLOCK_SIZE as usize]);
        (smallvec::smallvec![zeroes], smallvec::smallvec![checksum; usize::from(count)])
    }
}

/// Who asks for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// A guest of this node, or the node itself for space that a smaller disk gives back.
    Guest,
    /// A guest of another node, which forwarded it: it may be submitted again.
    Forwarded,
    /// A move, for the side that does not count there (docs/design/0041). A member of rows that has no room for it stays: it is refused
    /// instead.
    Move,
}

/// How a link to another node changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange {
    /// It can be used.
    Up,
    /// It broke; requests under way on it are answered `Err(Lost)` first.
    Down,
    /// As `Down`, after the node was silent for so long that nothing more is waited for.
    Silent,
    /// As `Silent`: the process of the node is known to have ended.
    Ended,
}

/// The link over which a request went broke before its answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// The result of a compare-and-set.
#[derive(Debug, Clone)]
pub enum Committed {
    /// The record is as asked, with this version now.
    Done {
        /// It.
        version: u64,
    },
    /// The record has another version; this is what it says.
    Conflict {
        /// Its version.
        version: u64,
        /// What it says of replication.
        roster: Roster,
    },
    /// Nobody knows.
    Unknown,
}

/// What happens to an owner.
#[derive(Debug)]
pub enum Input {
    /// Change blocks of one part of a place.
    Change {
        /// Comes back with the end.
        token: Token,
        /// The place.
        place: u16,
        /// Which MiB of it.
        part: u32,
        /// First block.
        block: u16,
        /// Of a place with parity, what of its rows is changed; its part and blocks are those of the members then.
        target: Option<Target>,
        /// The guest's request that it is part of.
        tag: RequestTag,
        /// For whom.
        asker: Asker,
        /// What.
        payload: Payload,
    },
    /// Read blocks of one part of a place.
    Read {
        /// Comes back with the end.
        token: Token,
        /// The place.
        place: u16,
        /// Which MiB of it.
        part: u32,
        /// First block.
        block: u16,
        /// Blocks.
        count: u16,
        /// Of a place with parity, the data unit of the row; its part and blocks are those of the members then.
        unit: Option<u8>,
        /// The number of a snapshot, whose view is read; 0: the disk as it is.
        snapshot: u32,
    },
    /// Tell which blocks of some parts of a place are allocated, or may have changed.
    Status {
        /// Comes back with the end.
        token: Token,
        /// Which of these.
        of: StatusOf,
        /// The place.
        place: u16,
        /// The first part.
        part: u32,
        /// Parts, 1..=[`wire::limits::ALLOCATION_PARTS_MAX`].
        count: u16,
    },
    /// A request was answered.
    Answered {
        /// Which.
        ask: Ask,
        /// How.
        answer: Result<Answer, Lost>,
    },
    /// A link changed.
    Link {
        /// To which node.
        node: NodeId,
        /// How.
        change: LinkChange,
    },
    /// A component promised a greater epoch.
    Superseded,
    /// A compare-and-set ended.
    Committed(Committed),
    /// The record as it is, because it was asked for or because somebody else changed it; `None` if the disk is gone.
    Recorded {
        /// Version and roster.
        record: Option<(u64, Roster)>,
    },
    /// The directory did not answer.
    FetchFailed,
    /// So many bytes more may be copied to components that are brought up to date.
    Pace {
        /// Bytes.
        bytes: u64,
    },
    /// Whether guests of this node use the disk.
    Used {
        /// It.
        is_used: bool,
    },
    /// Guests' reads go to other components from now on.
    Reading(Reading),
    /// The device of a component has room again.
    Room {
        /// The component.
        component: ComponentId,
    },
    /// Whoever asked for these changes is gone: those that have not begun are not to happen any more.
    Abandon {
        /// Which.
        token: Token,
    },
    /// The record shall say that the disk has moved so far. It is asked for until it does; the owner's record tells when.
    Pass {
        /// How far.
        moved: Moved,
    },
    /// The disk is known with other places than those of the record that this owner was made with.
    Reshaped,
    /// Let go of the disk.
    Release,
}

/// What an owner wants done.
#[derive(Debug)]
pub enum Output {
    /// A request for a component on that node, which may be the owner's own.
    Send {
        /// The node.
        node: NodeId,
        /// Comes back with the answer.
        ask: Ask,
        /// What.
        request: Request,
    },
    /// A change or read ended.
    Done {
        /// Which.
        token: Token,
        /// How.
        result: Result<Reply, Failure>,
    },
    /// Set the record if it still has that version.
    Commit {
        /// The version.
        expected: u64,
        /// What it shall say.
        roster: Roster,
    },
    /// Read the record.
    Fetch,
    /// Something happened.
    Event(Event),
}

/// How a change or read ended well.
#[derive(Debug, Clone)]
pub enum Reply {
    /// It is stable on all that count.
    Changed,
    /// What was read.
    Data(Pieces),
    /// What is allocated, in runs of bytes that cover the first parts of what was asked for: at least one.
    Allocation(Vec<StatusRun>),
}

/// How a change or read ended badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No component has room.
    NoSpace,
    /// The blocks are damaged on every component that counts.
    Damaged,
    /// This node owns the disk no more: to be asked of the owner then. It may have happened.
    Unowned,
    /// Whoever asked is gone. It has not happened.
    Abandoned,
    /// The disk has no such snapshot, or none of its components that count has it.
    NoSnapshot,
}

/// Why an owner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It was asked to.
    Released,
    /// Another took over, or the claim was lost to another.
    Superseded,
    /// A component has promised a greater epoch than this owner's, or was told of changes of its epoch before it served. The record
    /// that names an owner in that epoch came before the promise. A record that knows none is older than the component.
    SupersededBy {
        /// Which.
        component: ComponentId,
        /// The epoch that a record has at least which is not older.
        epoch: u32,
    },
    /// A component holds acknowledged changes that those which count lack: a person decides which are kept.
    Diverged,
    /// The disk is gone.
    Deleted,
    /// The record has other places than before: the disk is to be opened anew.
    Reshaped,
    /// The disk has moved on, and the record says so in the next epoch, of this node: the disk is to be opened anew in it
    /// ([`super::Owner::go_on`]).
    Passed,
    /// No active component of a place can be reached any more, and one that was absent is there again, with its stand-in: the
    /// disk is to be opened anew.
    Restoring,
}

/// Something that people, or the node, should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The disk is served from now on.
    Serving {
        /// In this epoch.
        epoch: u32,
        /// Changes that were rolled forward.
        rolled: u32,
        /// Whether this goes on from an owner on this node that ended with [`End::Passed`].
        goes_on: bool,
    },
    /// The owner is over; its requests are returned.
    Ended(End),
    /// A component is out of the active set.
    Left {
        /// Which.
        component: ComponentId,
        /// Why.
        why: LeftBecause,
    },
    /// A component is in the active set again.
    Joined {
        /// Which.
        component: ComponentId,
        /// Bytes that were copied for it.
        copied_bytes: u64,
        /// When its resync began.
        began: Instant,
    },
    /// A component stands in for another: together they have all that was acknowledged.
    StandsIn {
        /// Which.
        component: ComponentId,
        /// For which.
        of: ComponentId,
        /// Bytes that were copied for it.
        copied_bytes: u64,
        /// When that began.
        began: Instant,
    },
    /// No active component of a place can be reached: what is left is put together from a component and its stand-in.
    RestoreBegan {
        /// The component that becomes active.
        component: ComponentId,
        /// Its stand-in.
        stand_in: ComponentId,
    },
    /// A component holds acknowledged changes that those which count lack.
    Diverged {
        /// Which.
        component: ComponentId,
    },
    /// A component is being brought up to date.
    ResyncBegan {
        /// Which.
        component: ComponentId,
        /// Whether from nothing.
        is_rebuild: bool,
    },
    /// A component cannot be brought up to date now.
    ResyncFailed {
        /// Which.
        component: ComponentId,
        /// Why.
        why: LeftBecause,
    },
    /// Parity of a row did not agree with the data. It is made anew from them.
    RowDisagrees {
        /// The component whose parity it is; of two parity units that do not agree the first.
        component: ComponentId,
        /// Which MiB of it.
        part: u32,
        /// Blocks that do not agree.
        blocks: u16,
        /// The component with a data unit that two parity units imply to be another one, both the same.
        implied: Option<ComponentId>,
    },
    /// All rows of the disk were compared with their parity, as far as that could be done.
    RowsChecked {
        /// Rows that were compared.
        rows: u64,
        /// Of these, rows whose parity did not agree.
        disagreeing: u64,
        /// Rows that were passed over.
        skipped: u64,
    },
    /// A snapshot was taken: the record says so.
    SnapshotTaken {
        /// Its number.
        number: u32,
        /// For how long changes waited.
        held: Duration,
    },
    /// A snapshot that was asked for cannot be taken: the record says so.
    SnapshotNotTaken {
        /// Why.
        why: NotTaken,
    },
    /// A component has a snapshot that it lacked: the record says so.
    Backfilled {
        /// The component.
        component: ComponentId,
        /// The snapshot's number.
        number: u32,
        /// Bytes that it was given.
        copied_bytes: u64,
        /// When that began.
        began: Instant,
    },
    /// A damaged range was written again from another component.
    Repaired {
        /// Where it was damaged.
        component: ComponentId,
        /// Blocks.
        blocks: u16,
    },
}

/// Why a component does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeftBecause {
    /// Its node cannot be reached.
    #[error("its host cannot be reached")]
    Unreachable,
    /// Its node answers, and it does not: its device hangs.
    #[error("it does not answer, though its host does: its device hangs")]
    Stuck,
    /// Its node refused.
    #[error("{0}")]
    Refused(Refusal),
    /// It lacks changes that all components which counted had acknowledged: its device lost them, or it did not count then and the
    /// record is older than that.
    #[error(
        "it lacks acknowledged changes: its device lost writes, or the directory is older than the devices"
    )]
    LostWrites,
    /// It holds acknowledged changes that those which count lack.
    #[error("it holds acknowledged changes that the other copies lack: the disk is diverged")]
    Diverged,
    /// The directory says so.
    #[error("the directory says so")]
    Directory,
}

impl LeftBecause {
    /// Whether its device has no room for it.
    pub fn is_no_room(self) -> bool {
        matches!(self, LeftBecause::Refused(Refusal::NoSpace | Refusal::NoSlot))
    }
}

/// Where an owner is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The record does not name it yet.
    Claiming,
    /// Components are being opened, or the window is being decided.
    Opening,
    /// Changes and reads are served.
    Serving,
    /// What is under way ends; then the record is told.
    Releasing,
    /// It is over.
    Ended,
}

/// What an owner tells of one component.
#[derive(Debug, Clone)]
pub struct MemberState {
    /// The component.
    pub component: ComponentId,
    /// The node that holds it.
    pub node: NodeId,
    /// The place it belongs to.
    pub place: u16,
    /// Whether it counts.
    pub standing: Standing,
    /// What it is there for.
    pub role: Role,
    /// Whether it serves the owner.
    pub is_open: bool,
    /// Whether it is on the owner's host and guests' reads pass it over, because it is slow.
    pub is_passed_over: bool,
    /// What a read of it takes, from the question to the answer, smoothed; zero: nothing was read of it.
    pub read_time: Duration,
    /// Bytes copied so far, and bytes still to be copied as far as they are known, of a resync under way.
    pub resync: Option<(u64, u64)>,
    /// How many MiB of the component that resync has looked through, if not all: what is left was found in these.
    pub looked_through: Option<u32>,
    /// Why it does not count, or could not be brought up to date.
    pub trouble: Option<LeftBecause>,
    /// When it is tried again, from now on; only while that waits because of the trouble.
    pub retry_in: Option<Duration>,
}

/// What an owner tells of itself.
#[derive(Debug, Clone)]
pub struct OwnerState {
    /// Where it is in its life.
    pub phase: Phase,
    /// Its epoch.
    pub epoch: u32,
    /// Its components, by place.
    pub members: Vec<MemberState>,
    /// Whether its clients wait for the directory: it does not serve yet, or cannot reach a component that may count.
    pub waits_for_directory: bool,
    /// Bytes copied by resyncs so far.
    pub copied_bytes: u64,
    /// Damaged blocks that were written again.
    pub repaired_blocks: u64,
    /// Blocks that components hold of small changes, together, and that their parity does not count yet.
    pub held_blocks: u64,
    /// Blocks of parity that were made to count such changes.
    pub folded_blocks: u64,
    /// What comparing rows has found.
    pub row_checks: RowCheckState,
}

/// What an owner tells of the rows that it compares with one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCheckState {
    /// Rows whose parity was compared with their data.
    pub checked: u64,
    /// Of these, rows whose parity did not agree.
    pub disagreeing: u64,
    /// Of those, rows whose parity was made anew.
    pub mended: u64,
    /// Rows that were passed over, because they were changed all the time or a member could not tell.
    pub skipped: u64,
    /// How long ago the last pass over all rows ended.
    pub passed_ago: Option<Duration>,
}
