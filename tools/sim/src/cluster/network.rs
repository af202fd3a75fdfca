//! A virtual network: connections that deliver in order until they break, links that are cut, messages that come late.

use base::NodeId;
use std::collections::BTreeMap;

/// A connection that one node began, by its session.
#[derive(Debug, Clone, Copy)]
pub struct Connection {
    /// Who began it.
    pub from: NodeId,
    /// With whom.
    pub to: NodeId,
    /// When the last message of each direction arrives: none overtakes another.
    pub last: [u64; 2],
}

/// The network.
#[derive(Debug, Default)]
pub struct Network {
    /// Connections that are open, by session (unique over the run: each node counts from its own incarnation).
    pub connections: BTreeMap<(NodeId, u64), Connection>,
    /// Directions that carry nothing: (from, to), and until when.
    cuts: BTreeMap<(NodeId, NodeId), u64>,
}

impl Network {
    /// Cuts one direction until that time.
    pub fn cut(&mut self, from: NodeId, to: NodeId, until: u64) {
        let end = self.cuts.entry((from, to)).or_default();
        *end = until.max(*end);
    }

    /// Whether messages from one node reach another now.
    pub fn reaches(&self, from: NodeId, to: NodeId, now: u64) -> bool {
        self.cuts.get(&(from, to)).is_none_or(|until| *until <= now)
    }

    /// Until when a direction carries nothing.
    pub fn cut_until(&self, from: NodeId, to: NodeId) -> u64 {
        self.cuts.get(&(from, to)).copied().unwrap_or(0)
    }

    /// All is whole again.
    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    /// The connections in which a node takes part.
    pub fn of(&self, node: NodeId) -> Vec<(NodeId, u64)> {
        let of_node = self.connections.iter().filter(|(_, one)| one.from == node || one.to == node);
        of_node.map(|(key, _)| *key).collect()
    }
}
