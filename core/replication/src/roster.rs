//! The part of a disk's record that replication needs: who owns it, in which epoch, and which components count.

use base::{ComponentId, NodeId, WriteId};

/// Whether a component has all that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It has: it is one of those that every acknowledgement waits for.
    Active,
    /// It missed writes since it was last active, or has never been active.
    Absent,
    /// It lost what it had acknowledged: nothing that it says of itself is relied on.
    Stale,
}

/// One component in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The component.
    pub component: ComponentId,
    /// The node that holds it.
    pub node: NodeId,
    /// The place it belongs to, depth first.
    pub place: u16,
    /// Whether it counts.
    pub standing: Standing,
    /// When it was last made active: everything up to this id is on it, whatever its own watermark says yet.
    pub base: WriteId,
}

/// Who owns a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnedBy {
    /// The node.
    pub node: NodeId,
    /// That start of its process.
    pub incarnation: u64,
}

/// The roster of a disk: changed only by compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// Grows with every change of owner.
    pub epoch: u32,
    /// The owner; none between owners.
    pub owner: Option<OwnedBy>,
    /// Its components, by place.
    pub members: Vec<Member>,
}

impl Roster {
    /// How many places there are.
    pub fn place_count(&self) -> usize {
        self.members.iter().map(|member| member.place as usize + 1).max().unwrap_or(0)
    }

    /// A member, by its component.
    pub fn member(&self, component: ComponentId) -> Option<&Member> {
        self.members.iter().find(|member| member.component == component)
    }

    /// The nodes that hold components, each once, in order.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.members.iter().map(|member| member.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }
}
