//! What a node is told and what it tells: names, settings, states, outputs. Data alone.

use crate::label::DiskLabel;
use base::request::Outcome;
use base::{ComponentId, DiskId, Instant, NodeId};
use diskgroup::{ComponentState, ComputeId, Event, Task};
use layout::Layout;
use replication::owner::{self, OwnerState};
use replication::{OwnedBy, Roster};
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

/// All that a node needs to know of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskSpec {
    /// Its identity.
    pub id: DiskId,
    /// Its size in bytes, a multiple of 512 and at most that of its layout.
    pub size: u64,
    /// Where its blocks stand.
    pub layout: Layout,
    /// Whether what guests read is compared with its checksums; what comes from another node is at any rate.
    pub verify_checksums: bool,
    /// Whether guests read from the copy on the owner's node, if there is one, and not from all in turn.
    pub reads_locally: bool,
    /// The policy's limit, in I/Os of up to 32 KiB a second.
    pub iops_limit: Option<u64>,
}

/// What goes on with a disk that is open on a node.
#[derive(Debug, Clone)]
pub struct DiskActivity {
    /// Its key.
    pub key: DiskKey,
    /// Its identity.
    pub id: DiskId,
    /// Requests under way.
    pub outstanding: u32,
    /// Grows with everything that is recorded: while it stays the same, [`crate::Node::statistics`] does.
    ///
    /// [`crate::Node::statistics`]: crate::Node::statistics
    pub statistics_version: u64,
}

/// A disk as its components on this node tell of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundDisk {
    /// Its identity.
    pub id: DiskId,
    /// What they were last told of it.
    pub label: DiskLabel,
    /// Its layout, if components of all its places are here.
    pub layout: Option<Layout>,
    /// Its components on this node, with the index of the place that each answers for; by place, then by id.
    pub components: Vec<(u16, ComponentState)>,
}

/// Who owns a disk, as a node tells it.
#[derive(Debug, Clone)]
pub struct OwnershipState {
    /// The record's version and what it says.
    pub version: u64,
    /// It.
    pub roster: Roster,
    /// The owner's figures, if it is here.
    pub owner: Option<OwnerState>,
    /// Whether guests use the disk through this node.
    pub is_used: bool,
    /// Requests that wait for an owner.
    pub held: usize,
    /// A component that has promised this epoch, which is later than any that the record knows: the record is older than the
    /// devices, and nobody serves the disk by it.
    pub promised: Option<(ComponentId, u32)>,
}

/// Whether a channel that this node begins can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It cannot; it is tried again then.
    Idle {
        /// When.
        retry_at: Instant,
    },
    /// It was asked for.
    Connecting,
    /// It can.
    Up,
}

/// What a node among others is run with.
#[derive(Debug, Clone)]
pub struct FabricSettings {
    /// This node, and this start of its process: greater than at any start before.
    pub me: OwnedBy,
    /// Whether reads go to a component on the owner's own host when there is one.
    pub prefers_local: bool,
    /// Bytes a second that the node's owners copy at least, whatever guests feel.
    pub copy_floor: u64,
    /// Most blocks that one copy takes, 1..=256.
    pub copy_blocks_max: u16,
    /// What one of a hundred of guests' requests may take beside copies, in percent of what it took without.
    pub copy_tail_percent: u64,
    /// How long after the start of this node others may be starting as well ([`replication::limits::START_PATIENCE`]).
    pub start_patience: std::time::Duration,
    /// How long what this node's former process granted may last: [`replication::limits::GRANT`], or nothing where no other
    /// node can have owned a disk.
    pub former_grants: std::time::Duration,
    /// The safety rules of replication that hold: all in a product build.
    pub rules: base::rules::Rules<replication::Rule>,
}

/// What a node wants done, or tells.
#[derive(Debug)]
pub enum Output {
    /// A request of a guest ended.
    Reply {
        /// Which.
        token: Token,
        /// How.
        outcome: Outcome,
    },
    /// A disk that was to be closed is over.
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
    /// Work of the processor that a group asks for and no guest waits for. [`crate::Node::computed`] brings its result.
    Compute {
        /// Which group.
        group: GroupKey,
        /// Its name for the work.
        id: ComputeId,
        /// What.
        task: Task,
    },
    /// Something that has to do with other nodes.
    Fabric(FabricOutput),
    /// Something happened in a group.
    Event {
        /// Which group.
        group: GroupKey,
        /// What.
        event: Event,
    },
}

/// What a node among others wants done.
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
        /// What the record shall say of replication.
        roster: Roster,
    },
    /// Read a disk's record. Answered by [`crate::Node::recorded`] or [`crate::Node::fetch_failed`].
    Fetch {
        /// The disk.
        disk: DiskId,
    },
    /// A request for a component that the control plane made ended.
    Component {
        /// Which.
        token: Token,
        /// How; `None` if the node could not be reached.
        answer: Option<Answer>,
    },
    /// Something happened to a disk that this node owns.
    Owner {
        /// The disk.
        disk: DiskId,
        /// What.
        event: owner::Event,
    },
}

impl FabricOutput {
    /// Tells the control plane whether what lay beyond the end of a disk is given back.
    pub(crate) fn given_back(token: Token, is_done: bool) -> FabricOutput {
        let answer = match is_done {
            true => Answer::Done { congestion: 0 },
            false => Answer::Refused(Refusal::Busy),
        };
        FabricOutput::Component { token, answer: Some(answer) }
    }
}
