//! What comes and goes on the connections with other nodes: on the node's own ring, for the node.
//!
//! What the greeting refuses is logged once with its text and counted. A peer that sends what is no message, or takes too
//! little, loses its connection and nothing else: the node begins another session.

use super::connection::{Channel, Connection, Fault, Received, Side};
use super::secure::PeerTls;
use crate::engine::Engine;
use crate::limits;
use crate::listener::prepare_tcp;
use crate::ring::{Door, Message as Vectors, SocketAddress};
use base::{Instant, NodeId};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use wire::{Answer, Hello, HelloError, HelloRefusal, Message, Request, Role};

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
                if self.is_stopping {
                    return;
                }
                if peers.connections.len() >= limits::PEER_CONNECTIONS_MAX {
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
                    let agreed = (channel.session, accepted.version);
                    self.node.connected(now, channel.peer, agreed, &mut self.outputs);
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
    pub(crate) fn peer_ended(&mut self, key: u32) {
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
