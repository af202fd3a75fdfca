//! Other nodes: their connections on the node's own ring, and what the node wants of them.
//!
//! One connection carries one channel. What the greeting refuses is logged once with its text and counted; a peer that
//! sends what is no message, or takes too little, loses its connection and nothing else: the node begins another session.

mod connection;
mod secure;

pub use secure::PeerTls;

use super::EngineError;
use super::cluster::{Fabric, PeerCounters};
use super::devices::while_released;
use super::listener::prepare_tcp;
use super::ring::{Door, Message as Vectors, SocketAddress};
use super::run::Engine;
use crate::complaints::Complaints;
use crate::limits;
use base::{HostId, Instant, NodeId, Pool};
use connection::{Channel, Connection, Fault, Received, Side};
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use wire::{
    Answer, Hello, HelloError, HelloRefusal, Identity, Message, OutgoingFull, Request, Role, VersionRange,
};

/// All that has to do with other nodes.
pub(crate) struct Peers {
    me: Identity,
    /// What encrypts connections, if hosts have certificates.
    tls: Option<PeerTls>,
    /// The last one counts; those before are of a time when the host stood alone. None where it does.
    listeners: Vec<TcpListener>,
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

impl Engine {
    /// Connects to a node. What cannot even be begun is over at once.
    pub(crate) fn connect_peer(&mut self, peer: NodeId, session: u64) {
        let now = self.now();
        let peers = &mut self.peers;
        let hello = Hello { from: peers.me, receiver: peer, role: Role::NODE, session };
        let begun = peers.addresses.get(&peer).and_then(|address| Some((*address, tcp_socket(address)?)));
        let secure = peers.tls.as_ref().map(|tls| tls.connect(peer.host)).transpose();
        let (Some((address, socket)), Ok(secure)) = (begun, secure) else {
            return self.node.disconnected(now, peer, session, &mut self.outputs);
        };
        let fd = socket.as_raw_fd();
        let key = peers.insert(Connection::connecting(socket, hello, secure));
        self.ring.connect(fd, key, SocketAddress::new(&address));
    }

    pub(crate) fn end_initiated(&mut self, peer: NodeId, session: u64) {
        self.peers.end_channel(Channel { side: Side::Initiator, peer, session });
    }

    pub(crate) fn end_accepted(&mut self, peer: NodeId, session: u64) {
        self.peers.end_channel(Channel { side: Side::Acceptor, peer, session });
    }

    pub(crate) fn send_request(&mut self, peer: NodeId, message: &Message<Request>) {
        let channel = Channel { side: Side::Initiator, peer, session: message.session };
        let full = self.peers.queue(channel, |one| one.ask(message));
        if let Some((key, fault)) = full {
            self.peer_failed(key, &fault);
        }
    }

    pub(crate) fn send_answer(&mut self, peer: NodeId, message: &Message<Answer>) {
        let channel = Channel { side: Side::Acceptor, peer, session: message.session };
        let full = self.peers.queue(channel, |one| one.answer(message));
        if let Some((key, fault)) = full {
            self.peer_failed(key, &fault);
        }
    }

    /// Somebody connected.
    pub(crate) fn peer_accepted(&mut self, result: io::Result<i32>) {
        let peers = &mut self.peers;
        match result {
            Ok(fd) => {
                // SAFETY: the kernel has just handed this descriptor out, and nobody else has it.
                let socket = unsafe { OwnedFd::from_raw_fd(fd) };
                prepare_tcp(&socket);
                if peers.connections.len() >= limits::PEER_CONNECTIONS_MAX || self.is_stopping {
                    peers.counters.refused += 1;
                    return peers.complaints.complain(format!(
                        "connections of other hosts are refused: {} are open",
                        peers.connections.len()
                    ));
                }
                match peers.tls.as_ref().map(PeerTls::accept).transpose() {
                    Ok(secure) => drop(peers.insert(Connection::accepted(socket, secure))),
                    Err(error) => {
                        peers.complaints.complain(format!("a connection cannot be encrypted: {error}"))
                    }
                }
            }
            Err(error) if self.is_stopping => drop(error),
            Err(error) => self.close_door(Door::Peers, &error),
        }
    }

    /// The kernel has connected a socket, or could not.
    pub(crate) fn peer_connected(&mut self, key: u32, result: &io::Result<i32>) {
        let peers = &mut self.peers;
        let Some(connection) = peers.connections.get_mut(key as usize) else { return };
        match result {
            Ok(_) => {
                prepare_tcp(&connection.socket);
                connection.connected();
            }
            Err(_) => connection.not_connected(),
        }
        peers.touch(key);
        if result.is_err() {
            self.peer_ended(key);
        }
    }

    pub(crate) fn peer_received(&mut self, key: u32, vectors: Box<Vectors>, result: &io::Result<i32>) {
        let peers = &mut self.peers;
        let Some(connection) = peers.connections.get_mut(key as usize) else { return };
        peers.counters.received_bytes += result.as_ref().map_or(0, |bytes| u64::from(bytes.unsigned_abs()));
        let goes_on = connection.received(vectors, result);
        peers.touch(key);
        match goes_on {
            true => self.read_peer(key),
            false => self.peer_ended(key),
        }
    }

    pub(crate) fn peer_sent(&mut self, key: u32, vectors: Box<Vectors>, result: &io::Result<i32>) {
        let peers = &mut self.peers;
        let Some(connection) = peers.connections.get_mut(key as usize) else { return };
        peers.counters.sent_bytes += result.as_ref().map_or(0, |bytes| u64::from(bytes.unsigned_abs()));
        let goes_on = connection.sent(vectors, result);
        peers.touch(key);
        if !goes_on {
            self.peer_ended(key);
        }
    }

    /// Takes everything that the received bytes say.
    fn read_peer(&mut self, key: u32) {
        let now = self.now();
        loop {
            let peers = &mut self.peers;
            let Some(connection) = peers.connections.get_mut(key as usize) else { return };
            let (step, channel) = (connection.step(), connection.channel);
            match (step, channel) {
                (Ok(Received::Nothing | Received::NeedsBuffers), _) => return,
                (Ok(Received::Hello(hello)), _) => self.peer_greets(key, &hello),
                (Ok(Received::Accepted(accepted)), Some(channel)) => {
                    connection.open(channel, &accepted, peers.pool.clone());
                    self.node.connected(now, channel.peer, channel.session, &mut self.outputs);
                }
                (Ok(Received::Request(message)), Some(channel)) => {
                    self.node.request_received(now, channel.peer, message, &mut self.outputs);
                }
                (Ok(Received::Answer(message)), Some(channel)) => {
                    self.node.answer_received(now, channel.peer, message, &mut self.outputs);
                }
                (Ok(Received::Accepted(_) | Received::Request(_) | Received::Answer(_)), None) => {
                    unreachable!("frames run once it is known with whom")
                }
                (Err(fault), _) => return self.peer_failed(key, &fault),
            }
        }
    }

    /// Answers a hello; if it is accepted, frames run.
    fn peer_greets(&mut self, key: u32, hello: &Hello) {
        let now = self.now();
        let peers = &mut self.peers;
        let whose = hello.from.node.host;
        if peers.connections.get(key as usize).is_some_and(|connection| !connection.may_be(whose)) {
            peers.counters.refused += 1;
            peers
                .complaints
                .complain(format!("somebody says to be host {whose}, and the certificate is of another"));
            peers.end(key);
            return;
        }
        let result: Result<_, HelloRefusal> = hello.accept(&peers.me, |host| peers.members.contains(&host));
        let Some(connection) = peers.connections.get_mut(key as usize) else { return };
        connection.greet(hello.answer(&peers.me, &result));
        match result {
            Ok(accepted) if hello.role == Role::ENDED => {
                peers.end(key);
                tracing::info!("the process of host {} has ended: its watcher says so", accepted.peer.host);
                self.node.process_ended(now, accepted.peer, accepted.session, &mut self.outputs);
            }
            Ok(accepted) => {
                let (peer, session) = (accepted.peer, accepted.session);
                let channel = Channel { side: Side::Acceptor, peer, session };
                if peers.channels.contains_key(&channel) {
                    peers
                        .complaints
                        .complain(format!("host {} begins a session for the second time", peer.host));
                    peers.counters.refused += 1;
                    peers.end(key);
                    return;
                }
                connection.open(channel, &accepted, peers.pool.clone());
                peers.channels.insert(channel, key);
                peers.touch(key);
                self.node.accepted(now, peer, session, &mut self.outputs);
            }
            Err(refusal) => {
                peers.counters.refused += 1;
                // Without the port, which differs at each attempt: the same is logged once.
                let host = hello.from.node.host;
                let time = patience(&refusal);
                peers
                    .complaints
                    .complain_at(time, format!("a connection of host {host} is refused: {refusal}"));
                peers.end(key);
            }
        }
    }

    /// A connection ends for a reason that somebody should know.
    fn peer_failed(&mut self, key: u32, fault: &Fault) {
        let peers = &mut self.peers;
        let Some(connection) = peers.connections.get(key as usize) else { return };
        let whom = match connection.channel {
            Some(channel) => format!("host {}", channel.peer.host),
            None => "somebody".to_owned(),
        };
        match fault {
            Fault::Hello(_) | Fault::Secure(_) => peers.counters.refused += 1,
            Fault::Wire(_) => peers.counters.garbage += 1,
            Fault::Slow(_) => peers.counters.slow += 1,
        }
        let time = match fault {
            Fault::Hello(HelloError::Refused(refusal)) => patience(refusal),
            Fault::Hello(_) | Fault::Wire(_) | Fault::Slow(_) | Fault::Secure(_) => 1,
        };
        peers.complaints.complain_at(time, format!("the connection with {whom} ends: {fault}"));
        self.peer_ended(key);
    }

    /// A connection is over; the node is told.
    pub(super) fn peer_ended(&mut self, key: u32) {
        let now = self.now();
        let ended = self.peers.end(key);
        match ended {
            Some(Channel { side: Side::Initiator, peer, session }) => {
                self.node.disconnected(now, peer, session, &mut self.outputs);
            }
            Some(Channel { side: Side::Acceptor, peer, session }) => {
                self.node.accepted_ended(now, peer, session, &mut self.outputs);
            }
            None => {}
        }
    }

    /// Starts sends and receives, lets go of what is over, and goes on with who waited for buffers.
    pub(crate) fn look_after_peers(&mut self) {
        let peers = &mut self.peers;
        let (mut late, mut starved) = (Vec::new(), Vec::new());
        for (key, connection) in &peers.connections {
            let is_slow = connection.is_greeting() && connection.since.elapsed() >= limits::GREETING_WAIT;
            if is_slow && !connection.is_over() {
                late.push(key as u32);
            }
            if connection.is_starved {
                starved.push(key as u32);
            }
        }
        for key in late {
            self.peers.counters.refused += 1;
            self.peer_ended(key);
        }
        for key in starved {
            self.read_peer(key);
            self.peers.touch(key);
        }
        let peers = &mut self.peers;
        for key in std::mem::take(&mut peers.touched) {
            let Some(connection) = peers.connections.get_mut(key as usize) else { continue };
            connection.is_listed = false;
            if connection.pump(key, &mut self.ring) {
                peers.connections.remove(key as usize);
            }
        }
    }

    /// Whether something is left to do for connections at once.
    pub(crate) fn peers_are_waiting(&self) -> bool {
        !self.peers.touched.is_empty()
    }

    /// When connections must be looked at although nothing happens.
    pub(crate) fn peers_deadline(&self) -> Option<Instant> {
        let peers = &self.peers;
        let is_starved = peers.connections.iter().any(|(_, one)| one.is_starved);
        let buffers = is_starved.then(|| self.now() + limits::BUFFERS_WAIT);
        [buffers, peers.deadline(self.started)].into_iter().flatten().min()
    }
}

/// How often a refusal must happen to be worth a line. A host that has just joined is not known everywhere yet.
fn patience(refusal: &HelloRefusal) -> u32 {
    match refusal {
        HelloRefusal::NotMember { .. } => limits::JOINING_REFUSALS,
        HelloRefusal::OtherCluster { .. }
        | HelloRefusal::NotThisNode { .. }
        | HelloRefusal::UnknownRole { .. }
        | HelloRefusal::NoCommonVersion { .. } => 1,
    }
}

/// The socket of a connection to be made, if the kernel has one.
fn tcp_socket(address: &SocketAddr) -> Option<OwnedFd> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: the call takes no memory.
    let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the kernel has just handed this descriptor out, and nobody else has it.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
