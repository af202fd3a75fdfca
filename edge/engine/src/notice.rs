//! What the engine tells the control plane unasked, and which clients it tells of.
//!
//! The directory is the control plane's: what the node wants of it goes out as a [`Notice`], and comes back as a command.

use base::DiskId;
use cluster::Guest;
use replication::Roster;
use replication::owner::Event;
use std::time::Duration;

/// What the engine tells the control plane unasked. At most one commit of a disk is under way, and fetches are repeated only
/// after their answer or a pause of the node: what waits is bounded by the disks.
#[derive(Debug)]
#[expect(missing_docs, reason = "what each notice says names its fields")]
pub enum Notice {
    /// A disk's record is to say that, if it still has that version.
    Commit { shard: u8, disk: DiskId, number: u64, expected: u64, roster: Roster },
    /// A disk's record is to be read.
    Fetch { disk: DiskId },
    /// A client wants a disk; it waits for [`ClusterCommand::Admit`](crate::ClusterCommand::Admit).
    /// `has_lock`: by the export that a lock leaves open.
    Attach { disk: DiskId, ticket: Ticket, visitor: Visitor, has_lock: bool },
    /// A client that wanted a disk, or had it, is gone.
    Left { disk: DiskId, ticket: Ticket },
    /// Something happened to a disk that this host owns, so long after the engine's start.
    Owner { disk: DiskId, event: Event, at: Duration },
}

/// A client that wants a disk, or has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// The engine that it is connected to.
    pub shard: u8,
    /// Its place there.
    pub client: u32,
    /// Never used twice by that engine.
    pub number: u64,
}

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visitor {
    /// Somebody at a socket or at loopback of this host, who shows nothing.
    Here,
    /// A host or a person of the cluster.
    Known {
        /// Who.
        identity: trust::Identity,
        /// When the certificate was made, in nanoseconds since 1970.
        issued_ns: u64,
    },
    /// Who has a certificate of somebody else's.
    Stranger,
}

impl Visitor {
    /// As the rules of disks know it.
    pub fn guest(&self) -> Guest<'_> {
        match self {
            Visitor::Here => Guest::Here,
            Visitor::Known { identity: trust::Identity::Host { host, .. }, .. } => Guest::Host(*host),
            Visitor::Known { identity: trust::Identity::Person { name, .. }, .. } => {
                Guest::Person(name.as_str())
            }
            Visitor::Stranger => Guest::Stranger,
        }
    }
}
