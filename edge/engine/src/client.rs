//! One connection: its session, its socket, and what of it is under way in the ring.

use crate::listener::{Accepted, Origin};
use crate::notice::{Ticket, Visitor};
use crate::ring::{Message, Ring, Socket, Until, is_passing};
use base::DiskId;
use frontends::{Reach, Session, Transfer, TransferEnd, Wanted};
use node::DiskKey;
use smallvec::{SmallVec, smallvec};
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
    /// The number of the snapshot of it that it reads; none: it has the disk itself.
    pub(crate) view: Option<u32>,
    /// In a cluster: the disk that it was let in to, or waits for.
    pub(crate) ticket: Option<(DiskId, Ticket)>,
    /// How long its requests may go without an answer before they end with an error; `None`: they wait.
    pub(crate) error_after: Option<Duration>,
    /// The disk that it waits for.
    pub(crate) waits_for: Option<Wanted>,
    is_cancelled: bool,
    /// Messages of transfers that are not under way.
    messages: SmallVec<[Box<Message>; Transfer::COUNT_MAX]>,
    /// Whether it stands in the list of clients to look after.
    pub(crate) is_listed: bool,
}

impl Client {
    pub(crate) fn new(session: Session, Accepted { socket, peer, origin, .. }: Accepted) -> Client {
        Client {
            session,
            socket,
            peer,
            since: Instant::now(),
            origin,
            visitor: None,
            disk: None,
            view: None,
            ticket: None,
            error_after: None,
            waits_for: None,
            is_cancelled: false,
            messages: smallvec![Message::new(), Message::new()],
            is_listed: false,
        }
    }

    /// Starts the transfers that the session wants. Says whether the connection is over and nothing of it is under way.
    pub(crate) fn pump(&mut self, key: u32, ring: &mut Ring) -> bool {
        let fd = self.socket.as_raw_fd();
        while let Some(mut message) = self.messages.pop() {
            message.vectors.clear();
            let Some(transfer) = self.session.next_transfer(&mut message.vectors) else {
                self.messages.push(message);
                break;
            };
            match transfer {
                Transfer::Transmit => ring.send(fd, Socket::Client(key), message),
                Transfer::Receive(Reach::Any) => {
                    ring.receive(fd, Socket::Client(key), message, Until::Anything);
                }
                Transfer::Receive(Reach::All) => {
                    ring.receive(fd, Socket::Client(key), message, Until::Full);
                }
            }
        }
        if !self.session.is_finished() {
            return false;
        }
        let is_idle = self.messages.len() == Transfer::COUNT_MAX;
        if !is_idle && !self.is_cancelled {
            self.is_cancelled = true;
            ring.cancel(fd);
        }
        is_idle
    }

    /// A transfer has ended, and its message can be used again. How it ended is for the session.
    pub(crate) fn ended(&mut self, message: Box<Message>, result: &std::io::Result<i32>) -> TransferEnd {
        assert!(self.messages.len() < Transfer::COUNT_MAX, "only what was started ends");
        self.messages.push(message);
        match result {
            Ok(bytes) => TransferEnd::Moved(*bytes as usize),
            Err(error) if is_passing(error) => TransferEnd::Interrupted,
            Err(_) => TransferEnd::Broken,
        }
    }
}

/// Whether a receive that ended so tells that nobody is at the other end any more.
pub(crate) fn is_gone(end: TransferEnd) -> bool {
    match end {
        TransferEnd::Moved(bytes) => bytes == 0,
        TransferEnd::Interrupted => false,
        TransferEnd::Broken => true,
    }
}
