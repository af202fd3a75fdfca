//! One connection: its session, its socket, and what of it is under way in the ring.

use super::cluster::{Ticket, Visitor};
use super::listener::Origin;
use super::ring::{Message, Ring, Socket, Until};
use base::DiskId;
use frontends::nbd::{Event, Reach, Session};
use node::DiskKey;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A client.
pub(crate) struct Client {
    pub(crate) session: Session,
    pub(crate) socket: OwnedFd,
    pub(crate) peer: String,
    pub(crate) since: Instant,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Who it is, once it has shown a certificate of the cluster.
    pub(crate) visitor: Option<Visitor>,
    /// The disk that it is attached to.
    pub(crate) disk: Option<(DiskId, DiskKey)>,
    /// In a cluster: the disk that it was let in to, or waits for.
    pub(crate) ticket: Option<(DiskId, Ticket)>,
    /// How long its requests may go without an answer before they end with an error; `None`: they wait.
    pub(crate) error_after: Option<Duration>,
    /// The name of the export that it waits for.
    pub(crate) waits_for: Option<String>,
    is_receiving: bool,
    is_sending: bool,
    is_cancelled: bool,
    receive_message: Option<Box<Message>>,
    send_message: Option<Box<Message>>,
    /// Whether it stands in the list of clients to look after.
    pub(crate) is_listed: bool,
}

impl Client {
    pub(crate) fn new(session: Session, socket: OwnedFd, peer: String, origin: Origin) -> Client {
        Client {
            session,
            socket,
            peer,
            since: Instant::now(),
            origin,
            visitor: None,
            disk: None,
            ticket: None,
            error_after: None,
            waits_for: None,
            is_receiving: false,
            is_sending: false,
            is_cancelled: false,
            receive_message: Some(Message::new()),
            send_message: Some(Message::new()),
            is_listed: false,
        }
    }

    /// Starts what the session wants: a receive, a send. Says whether the connection is over and nothing of it is under way.
    pub(crate) fn pump(&mut self, key: u32, ring: &mut Ring) -> bool {
        let fd = self.socket.as_raw_fd();
        if !self.is_sending
            && self.session.wants_transmit()
            && let Some(mut message) = self.send_message.take()
        {
            message.vectors.clear();
            self.session.transmit_vectors(&mut message.vectors);
            self.is_sending = true;
            ring.send(fd, Socket::Client(key), message);
        }
        if self.session.is_finished() {
            if self.is_receiving && !self.is_cancelled {
                self.is_cancelled = true;
                ring.cancel(fd);
            }
            return !self.is_receiving && !self.is_sending;
        }
        if !self.is_receiving
            && self.session.wants_receive()
            && let Some(mut message) = self.receive_message.take()
        {
            message.vectors.clear();
            let reach = self.session.receive_vectors(&mut message.vectors);
            self.is_receiving = true;
            let until = if reach == Reach::All { Until::Full } else { Until::Anything };
            ring.receive(fd, Socket::Client(key), message, until);
        }
        false
    }

    /// A receive has ended.
    pub(crate) fn received(
        &mut self,
        message: Box<Message>,
        result: std::io::Result<i32>,
        events: &mut Vec<Event>,
    ) {
        self.is_receiving = false;
        self.receive_message = Some(message);
        match result {
            Ok(bytes) => self.session.received(bytes as usize, events),
            Err(error) if is_passing(&error) => self.session.interrupted(),
            Err(_) => {
                self.session.lost();
                self.session.received(0, events);
            }
        }
    }

    /// A send has ended.
    pub(crate) fn sent(
        &mut self,
        message: Box<Message>,
        result: std::io::Result<i32>,
        events: &mut Vec<Event>,
    ) {
        self.is_sending = false;
        self.send_message = Some(message);
        match result {
            Ok(bytes) => self.session.transmitted(bytes as usize, events),
            Err(error) if is_passing(&error) => self.session.transmitted(0, events),
            Err(_) => {
                self.session.lost();
                self.session.transmitted(0, events);
            }
        }
    }
}

/// Whether a receive that ended so tells that nobody is at the other end any more.
pub(crate) fn is_gone(result: &std::io::Result<i32>) -> bool {
    match result {
        Ok(bytes) => *bytes == 0,
        Err(error) => !is_passing(error),
    }
}

/// Whether the call is simply to be made again.
pub(crate) fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}
