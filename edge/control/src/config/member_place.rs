//! Where a host's own member of etcd listens.

use std::net::SocketAddr;

/// Where a host's own member of etcd listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberPlace {
    /// For clients: the cluster's hosts.
    pub clients: SocketAddr,
    /// For other members.
    pub peers: SocketAddr,
}

/// A port that the system chooses, of this machine alone.
pub(super) fn any_loopback_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}
