//! Types of a node's interface: names, settings, states, outputs. Data alone.

use crate::label::DiskLabel;
use crate::pace::{LimitFigures, Limits};
use base::request::Outcome;
use base::{ComponentId, DiskId, Instant, NodeId};
use diskgroup::{ComponentState, ComputeId, Event, Task};
use layout::Layout;
use replication::owner::{self, OwnerState, Reading};
use replication::{Origin, OwnedBy, Roster};
use wire::{Answer, Message, Refusal, Request};

/// The caller's name for a request or an order; comes back with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// A group of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey(pub u8);

/// A disk of one node, while it is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskKey(pub(crate) u32);

/// A disk as a node has to know it.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpec {
    /// Its identity.
    pub id: DiskId,
    /// Its size in bytes, a multiple of 512 and at most that of its layout.
    pub size: u64,
    /// Where its blocks stand.
    pub layout: Layout,
    /// Whether data read by guests is verified by checksum on this node. Data from another node always is.
    pub verify_checksums: bool,
    /// Which copies guests read from.
    pub reading: Reading,
    /// The policy's limits.
    pub limits: Limits,
    /// Where it moves, while it has two layouts.
    pub course: Course,
    /// The number of its layout ([`replication::Roster::shape`]).
    pub shape: u32,
    /// What it was cloned from, as long as not all of that is copied.
    pub origin: Option<Origin>,
}

/// Which way a disk with two layouts moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// Whether it moves back into the layout that it had.
    pub is_back: bool,
    /// Whether it moves at all.
    pub is_paused: bool,
}

/// Why a move does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A device has no room for the other layout.
    NoSpace,
    /// Blocks of the disk are damaged everywhere.
    Damaged,
}

/// How far a disk has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveState {
    /// Below this byte of the disk the new layout counts.
    pub boundary: u64,
    /// Bytes copied since this node opened the disk, those of granules that were given up among them.
    pub copied_bytes: u64,
    /// Whether it begins no granule because a component of the disk is not there or not up to date.
    pub awaits_component: bool,
    /// Why the last attempt failed.
    pub trouble: Option<Trouble>,
}

/// The activity of a disk that is open on a node.
#[derive(Debug, Clone)]
pub struct DiskActivity {
    /// Its key.
    pub key: DiskKey,
    /// Its identity.
    pub id: DiskId,
    /// Requests under way.
    pub outstanding: u32,
    /// What its limits do, where this node owns it.
    pub limits: LimitFigures,
    /// Grows with every recorded value. While it stays the same, so does [`crate::Node::statistics`].
    ///
    /// [`crate::Node::statistics`]: crate::Node::statistics
    pub statistics_version: u64,
}

/// A disk as its components on this node describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundDisk {
    /// Its identity.
    pub id: DiskId,
    /// The newest label.
    pub label: DiskLabel,
    /// Its layout, if components of all its places are here.
    pub layout: Option<Layout>,
    /// Its components on this node with the index of their place, by place and id.
    pub components: Vec<(u16, ComponentState)>,
}

/// The ownership of a disk, as a node knows it.
#[derive(Debug, Clone)]
pub struct OwnershipState {
    /// The version of the record.
    pub version: u64,
    /// The roster in that record.
    pub roster: Roster,
    /// The state of the owner, if it is on this node.
    pub owner: Option<OwnerState>,
    /// Whether guests use the disk through this node.
    pub is_used: bool,
    /// Requests that wait for an owner.
    pub held: usize,
    /// A component that promised this epoch, which is later than any in the record. The record is older than the
    /// devices, so no node serves the disk by it.
    pub promised: Option<(ComponentId, u32)>,
    /// What the limits of the disk do here.
    pub limits: LimitFigures,
    /// Bytes of zeroes in writes that this node, as the owner, has turned into trims since it opened the disk.
    pub zero_bytes_trimmed: u64,
    /// The progress of its move into another layout, if it moves and its owner is on this node.
    pub moving: Option<MoveState>,
}

/// The state of a channel that this node begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It is down, and tried again later.
    Idle {
        /// When.
        retry_at: Instant,
    },
    /// A connection was asked for.
    Connecting,
    /// It is up.
    Up,
}

/// Settings of a node in a cluster.
#[derive(Debug, Clone)]
pub struct FabricSettings {
    /// This node and its incarnation, which is greater than at any start before.
    pub me: OwnedBy,
    /// Whether all disks are read from the copy on the owner's host when there is one, whatever their policies say.
    pub prefers_local: bool,
    /// Fewest bytes a second that the node's owners copy, whatever the latency of guests.
    pub copy_floor: u64,
    /// Most blocks that one copy takes, 1..=256.
    pub copy_blocks_max: u16,
    /// Bytes of a disk that are moved into another layout with one change of its record
    /// ([`crate::limits::MOVE_GRANULES`]): least and most.
    pub move_granules: std::ops::RangeInclusive<u64>,
    /// For how long small changes of rows are held before their parity is computed ([`replication::limits::FOLD_AFTER`]); none: it is
    /// computed before they are acknowledged.
    pub fold_after: Option<std::time::Duration>,
    /// Bytes of a member that the node's owners compare with the others of its rows in a second, while nobody feels it; 0: none.
    pub row_check_pace: u64,
    /// Latency of guests' requests at the 99th percentile beside copies, in percent of that without copies, that
    /// copies may cause.
    pub copy_tail_percent: u64,
    /// How long after the start of this node other nodes may be starting as well
    /// ([`replication::limits::START_PATIENCE`]).
    pub start_patience: std::time::Duration,
    /// How long grants of this node's former process may last: [`replication::limits::GRANT`], or zero where no other
    /// node can have owned a disk.
    pub former_grants: std::time::Duration,
    /// The safety rules of replication that hold: all in a product build.
    pub rules: base::rules::Rules<replication::Rule>,
}

/// Outputs of a node.
#[derive(Debug)]
pub enum Output {
    /// A request of a guest ended.
    Reply {
        /// Which.
        token: Token,
        /// How.
        outcome: Outcome,
    },
    /// A disk is closed.
    Closed {
        /// Who asked for it.
        token: Token,
    },
    /// A request to a device of a group: a read, write, flush or discard.
    Device {
        /// Which group.
        group: GroupKey,
        /// What.
        output: diskgroup::Output,
    },
    /// Work of the processor that a group asks for and no guest waits for. [`crate::Node::computed`] takes its
    /// result.
    Compute {
        /// Which group.
        group: GroupKey,
        /// Its name for the work.
        id: ComputeId,
        /// What.
        task: Task,
    },
    /// An output that concerns other nodes.
    Fabric(FabricOutput),
    /// An event of a group.
    Event {
        /// Which group.
        group: GroupKey,
        /// What.
        event: Event,
    },
}

/// Outputs of a node that concern other nodes, the directory or the control plane.
#[derive(Debug)]
pub enum FabricOutput {
    /// Connect to a node. Answered by [`crate::Node::connected`] or [`crate::Node::disconnected`].
    Connect {
        /// The node.
        peer: NodeId,
        /// The session that the connection is to carry.
        session: u64,
    },
    /// Close a connection that this node began.
    Disconnect {
        /// To that node.
        peer: NodeId,
        /// Its session.
        session: u64,
    },
    /// Close a connection that the other node began.
    EndAccepted {
        /// From that node.
        peer: NodeId,
        /// Its session.
        session: u64,
    },
    /// Send a request over a connection that this node began.
    Request {
        /// To whom.
        peer: NodeId,
        /// What.
        message: Message<Request>,
    },
    /// Send an answer over a connection that the other node began.
    Answer {
        /// To whom.
        peer: NodeId,
        /// What.
        message: Message<Answer>,
    },
    /// Set a disk's record if it still has that version. Answered by [`crate::Node::committed`].
    Commit {
        /// The disk.
        disk: DiskId,
        /// Comes back with the result.
        number: u64,
        /// The version.
        expected: u64,
        /// The new roster.
        roster: Roster,
    },
    /// Read a disk's record. Answered by [`crate::Node::recorded`] or [`crate::Node::fetch_failed`].
    Fetch {
        /// The disk.
        disk: DiskId,
    },
    /// A request of the control plane for a component ended.
    Component {
        /// Which.
        token: Token,
        /// How; `None` if the node could not be reached.
        answer: Option<Answer>,
    },
    /// An event of a disk that this node owns.
    Owner {
        /// The disk.
        disk: DiskId,
        /// What.
        event: owner::Event,
    },
}

impl FabricOutput {
    /// Tells the control plane whether the space beyond the end of a disk is freed.
    pub(crate) fn given_back(token: Token, is_done: bool) -> FabricOutput {
        let answer = match is_done {
            true => Answer::Done { congestion: 0 },
            false => Answer::Refused(Refusal::Busy),
        };
        FabricOutput::Component { token, answer: Some(answer) }
    }
}
