//! Requests to other nodes that are under way: the node that was asked, and for whom.

use crate::interface::Token;
use base::{DiskId, NodeId};
use replication::owner::Ask;
use slab::Slab;

/// The requester of a request under way.
#[derive(Debug, Clone, Copy)]
pub(crate) enum For {
    /// An owner, if it is still that one.
    Owner { disk: u32, number: u64, ask: Ask },
    /// A guest's request, at the owner.
    Guest { request: u32 },
    /// A request to another node to give up a disk.
    Yield { disk: DiskId },
    /// A request of the control plane.
    Control { token: Token },
    /// A heartbeat, or the last word about a component.
    Nobody,
}

/// The name of a pending request on the wire: one more than its index, because 0 names notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestName(u32);

impl RequestName {
    /// The name that a message carries as its token.
    pub(crate) fn on_wire(token: u32) -> RequestName {
        RequestName(token)
    }

    /// The token of a message that carries the request or its answer.
    pub(crate) fn token(self) -> u32 {
        self.0
    }

    fn of(index: usize) -> RequestName {
        RequestName(index as u32 + 1)
    }

    fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

#[derive(Debug)]
struct Pending {
    node: NodeId,
    whom: For,
}

/// The requests under way.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    all: Slab<Pending>,
}

impl PendingRequests {
    /// Adds a request to that node, and gives its name.
    pub(crate) fn insert(&mut self, node: NodeId, whom: For) -> RequestName {
        RequestName::of(self.all.insert(Pending { node, whom }))
    }

    /// Takes out the request that a node answered; none if that node was not asked it.
    pub(crate) fn take(&mut self, from: NodeId, name: RequestName) -> Option<For> {
        let index = name.index()?;
        self.all.get(index).filter(|pending| pending.node == from)?;
        self.all.try_remove(index).map(|pending| pending.whom)
    }

    /// The names of all requests to a node, in the order of their names.
    pub(crate) fn to_node(&self, node: NodeId) -> Vec<RequestName> {
        let to_it = self.all.iter().filter(|(_, pending)| pending.node == node);
        to_it.map(|(index, _)| RequestName::of(index)).collect()
    }

    /// The node that a guest's request was forwarded to.
    pub(crate) fn node_of_guest(&self, request: u32) -> Option<NodeId> {
        let is_it = |pending: &Pending| matches!(pending.whom, For::Guest { request: of } if of == request);
        self.all.iter().find(|(_, pending)| is_it(pending)).map(|(_, pending)| pending.node)
    }
}
