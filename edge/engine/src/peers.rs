//! Other nodes: where they listen, and the connections with them. What comes and goes on these is a matter of `traffic`.
//!
//! One connection carries one channel.

mod connection;
mod secure;
mod traffic;

pub use secure::PeerTls;

use crate::complaints::Complaints;
use crate::devices::while_released;
use crate::error::EngineError;
use crate::limits;
use crate::settings::Fabric;
use crate::state::PeerCounters;
use base::{HostId, Instant, NodeId, Pool};
use connection::{Channel, Connection, Fault};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use wire::{Identity, OutgoingFull, VersionRange};

/// All that has to do with other nodes.
pub(crate) struct Peers {
    me: Identity,
    /// What encrypts connections, if hosts have certificates.
    tls: Option<PeerTls>,
    /// The last one counts; those before are of a time when the host stood alone. None where it does.
    listeners: Vec<TcpListener>,
    /// Buffers for what they send.
    pool: Pool,
    addresses: BTreeMap<NodeId, SocketAddr>,
    members: BTreeSet<HostId>,
    connections: Slab<Connection>,
    channels: BTreeMap<Channel, u32>,
    touched: Vec<u32>,
    complaints: Complaints,
    pub(crate) counters: PeerCounters,
}

/// Listens for other nodes.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, EngineError> {
    let listener = while_released(libc::EADDRINUSE, || TcpListener::bind(address));
    listener
        .map_err(|error| EngineError::Refused(format!("cannot listen for other hosts at {address}: {error}")))
}

/// Where a listener listens.
pub(crate) fn address_of(listener: &TcpListener) -> Result<SocketAddr, EngineError> {
    let address = listener.local_addr();
    address.map_err(|error| EngineError::Device(format!("find out where other hosts connect: {error}")))
}

impl Peers {
    /// Those of a node that listens there.
    pub(crate) fn new(fabric: &Fabric, listener: Option<TcpListener>) -> Peers {
        let versions = VersionRange::OURS;
        let (cluster, node, incarnation) = (fabric.cluster, fabric.node, fabric.incarnation);
        Peers {
            me: Identity { versions, cluster, node, incarnation },
            tls: fabric.tls.clone(),
            listeners: listener.into_iter().collect(),
            pool: Pool::new(fabric.buffer_bytes as usize),
            addresses: BTreeMap::new(),
            members: BTreeSet::new(),
            connections: Slab::new(),
            channels: BTreeMap::new(),
            touched: Vec::new(),
            complaints: Complaints::default(),
            counters: PeerCounters::default(),
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn fd(&self) -> Option<RawFd> {
        self.listeners.last().map(AsRawFd::as_raw_fd)
    }

    /// Where other nodes connect.
    pub(crate) fn address(&self) -> Result<Option<SocketAddr>, EngineError> {
        self.listeners.last().map(address_of).transpose()
    }

    /// Listens for other hosts as well; gives the socket that was opened for it, if one was. Connections that are there stay.
    pub(crate) fn let_others_join(&mut self, fabric: &Fabric) -> Result<Option<RawFd>, EngineError> {
        let Some(wanted) = fabric.listen else { return Ok(None) };
        let there = self.address()?;
        let is_there = there.is_some_and(|there| {
            there.ip() == wanted.ip() && (wanted.port() == 0 || wanted.port() == there.port())
        });
        if !is_there {
            self.listeners.push(listen(wanted)?);
        }
        self.tls.clone_from(&fabric.tls);
        if self.pool.bytes_max() < fabric.buffer_bytes as usize {
            self.pool = Pool::new(fabric.buffer_bytes as usize);
        }
        Ok(self.fd().filter(|_| !is_there))
    }

    /// The nodes of the cluster and where they listen. Connections that others began, and are of it no more, are given back.
    pub(crate) fn set_nodes(&mut self, nodes: &[(NodeId, SocketAddr)]) -> Vec<u32> {
        self.addresses = nodes.iter().copied().collect();
        self.members = nodes.iter().map(|(node, _)| node.host).collect();
        let is_foreign = |channel: &Channel| !self.members.contains(&channel.peer.host);
        self.channels.iter().filter(|(channel, _)| is_foreign(channel)).map(|(_, key)| *key).collect()
    }

    /// When it must be looked at although nothing happens: a greeting takes too long.
    pub(crate) fn deadline(&self, started: std::time::Instant) -> Option<Instant> {
        let greeting = self.connections.iter().filter(|(_, one)| one.is_greeting() && !one.is_over());
        let first = greeting.map(|(_, one)| one.since).min()?;
        let at = (first + limits::GREETING_WAIT).saturating_duration_since(started);
        Some(Instant(1 + at.as_nanos() as u64))
    }

    /// The nodes of the cluster.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.addresses.keys().copied()
    }

    fn touch(&mut self, key: u32) {
        if let Some(connection) = self.connections.get_mut(key as usize)
            && !connection.is_listed
        {
            connection.is_listed = true;
            self.touched.push(key);
        }
    }

    fn insert(&mut self, connection: Connection) -> u32 {
        let channel = connection.channel;
        let key = self.connections.insert(connection) as u32;
        if let Some(channel) = channel {
            self.channels.insert(channel, key);
        }
        self.touch(key);
        key
    }

    /// Ends a connection; gives its channel back, if it had one that nobody else has taken.
    fn end(&mut self, key: u32) -> Option<Channel> {
        let connection = self.connections.get_mut(key as usize)?;
        if connection.is_over() {
            return None;
        }
        connection.end();
        let channel = connection.channel;
        self.touch(key);
        let channel = channel?;
        self.channels.remove(&channel);
        Some(channel)
    }

    /// Ends the connection of a channel because the node says so.
    fn end_channel(&mut self, channel: Channel) {
        if let Some(key) = self.channels.get(&channel) {
            self.end(*key);
        }
    }

    /// Queues a message on the connection of a channel; the key of a connection that must end for it takes too little.
    fn queue(
        &mut self,
        channel: Channel,
        push: impl FnOnce(&mut Connection) -> Result<(), OutgoingFull>,
    ) -> Option<(u32, Fault)> {
        let key = *self.channels.get(&channel)?;
        let pushed = push(self.connections.get_mut(key as usize)?);
        self.touch(key);
        pushed.err().map(|full| (key, Fault::Slow(full)))
    }
}
