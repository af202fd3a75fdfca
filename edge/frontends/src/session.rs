//! The seam between front-ends and whoever serves disks: one client's connection, whatever protocol it speaks.
//!
//! The executor carries out the transfers that a session names, acts on its events, and hands in the answers. It decides who
//! may have which disk; the session decides what a protocol's bytes mean and how an answer is worded
//! (`docs/design/0037-front-ends.md`). A variant is one protocol: calls cost no more than those of the protocol's own session.

use crate::tls::TlsPolicy;
use crate::{IoVec, nbd};
use base::Pool;
use base::request::{Outcome, Request};
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::time::Duration;

/// A protocol that clients speak at a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The Network Block Device protocol.
    Nbd,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Nbd => "NBD",
        })
    }
}

/// A virtual disk as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Its size in bytes, a multiple of 512.
    pub size: u64,
    /// Whether it may only be read.
    pub read_only: bool,
    /// For people; may be empty.
    pub description: String,
    /// The number of the snapshot that it is; `None`: the disk itself.
    pub snapshot: Option<u32>,
    /// Of a snapshot: the older ones, since which it tells what may have changed.
    pub bitmaps: Vec<Bitmap>,
}

/// A snapshot since which an export tells what may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u32,
}

/// Which disk a client asks for, and how it wants to be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The name of the disk; empty: the only one there is.
    pub disk: String,
    /// The name of a snapshot of it; `None`: the disk itself.
    pub snapshot: Option<String>,
    /// How long a request may go without an answer before it ends with an error; `None`: it waits.
    pub error_after: Option<Duration>,
}

/// Why a client does not get a disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachRefusal {
    /// There is none of that name.
    #[error("there is no disk of that name")]
    Unknown,
    /// This client may not have it.
    #[error("{0}")]
    Forbidden(String),
    /// It is there, but cannot be used now; says why.
    #[error("{0}")]
    Unavailable(String),
    /// The host is stopping.
    #[error("the server is stopping")]
    Stopping,
}

/// What a client wants.
#[derive(Debug, Clone)]
pub enum Event {
    /// A list of the disks; answered by [`Session::exports`].
    ListExports,
    /// What is known about a disk, of which the client may make no use yet; answered by [`Session::export`].
    Describe {
        /// What was asked for.
        wanted: Wanted,
    },
    /// The use of a disk; answered by [`Session::export`]. If that grants it, requests may follow at once, and the
    /// client is attached until the session has finished.
    Attach {
        /// What was asked for.
        wanted: Wanted,
    },
    /// A request to the attached disk; answered by [`Session::reply`] or [`Session::fail`], in any order.
    Request {
        /// Names the request in its answer.
        cookie: u64,
        /// What is asked. It is valid: within the disk, aligned, allowed.
        request: Request,
    },
}

/// What the vectors of a receive are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whatever comes.
    Any,
    /// Payload that the client has announced, and nothing beyond: the receive may wait until all of it is there.
    All,
}

/// What a session wants done with its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Receive into the vectors; its end goes to [`Session::received`].
    Receive(Reach),
    /// Send what the vectors point at, which may be nothing; its end goes to [`Session::transmitted`].
    Transmit,
}

impl Transfer {
    /// Transfers of one session under way at most: one of each kind.
    pub const COUNT_MAX: usize = 2;
}

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferEnd {
    /// So many bytes were moved. Of a receive, zero: the peer closed its side.
    Moved(usize),
    /// Nothing was moved, and the connection is as it was (`EINTR`).
    Interrupted,
    /// The connection is broken.
    Broken,
}

/// See the module.
#[derive(Debug)]
pub enum Session {
    /// A client that speaks NBD.
    Nbd(nbd::Session),
}

impl Session {
    /// For a connection that was just accepted. `pool` must hold at least 32 MiB.
    pub fn new(protocol: Protocol, tls: TlsPolicy, pool: Pool) -> Session {
        match protocol {
            Protocol::Nbd => Session::Nbd(nbd::Session::new(tls, pool)),
        }
    }

    /// The transfer to start now, if there is one; appends its vectors. Ask again until there is none, after everything that
    /// was told to the session. Memory that vectors point at stays in place until the transfer's end was told; until
    /// then the session must be kept.
    pub fn next_transfer(&mut self, vectors: &mut Vec<IoVec>) -> Option<Transfer> {
        match self {
            Session::Nbd(session) => session.next_transfer(vectors),
        }
    }

    /// A receive has ended.
    pub fn received(&mut self, end: TransferEnd, events: &mut Vec<Event>) {
        match (self, end) {
            (Session::Nbd(session), TransferEnd::Moved(bytes)) => session.received(bytes, events),
            (Session::Nbd(session), TransferEnd::Interrupted) => session.interrupted(),
            (Session::Nbd(session), TransferEnd::Broken) => {
                session.lost();
                session.received(0, events);
            }
        }
    }

    /// A send has ended.
    pub fn transmitted(&mut self, end: TransferEnd, events: &mut Vec<Event>) {
        match (self, end) {
            (Session::Nbd(session), TransferEnd::Moved(bytes)) => session.transmitted(bytes, events),
            (Session::Nbd(session), TransferEnd::Interrupted) => session.transmitted(0, events),
            (Session::Nbd(session), TransferEnd::Broken) => {
                session.lost();
                session.transmitted(0, events);
            }
        }
    }

    /// Whether it waits for something that neither its transfers nor its answers bring, such as buffers of the pool: call
    /// [`Session::advance`] at the next turn.
    pub fn wants_advance(&self) -> bool {
        match self {
            Session::Nbd(session) => session.wants_buffers(),
        }
    }

    /// Goes on with what was received and could not be dealt with then: call it after answers, and when it is wanted.
    pub fn advance(&mut self, events: &mut Vec<Event>) {
        match self {
            Session::Nbd(session) => session.advance(events),
        }
    }

    /// The answer to [`Event::ListExports`].
    pub fn exports(&mut self, exports: &[Export]) {
        match self {
            Session::Nbd(session) => session.exports(exports),
        }
    }

    /// The answer to [`Event::Describe`] or [`Event::Attach`].
    pub fn export(&mut self, answer: Result<Export, AttachRefusal>) {
        match self {
            Session::Nbd(session) => session.export(answer),
        }
    }

    /// The answer to [`Event::Request`].
    pub fn reply(&mut self, cookie: u64, outcome: Outcome) {
        match self {
            Session::Nbd(session) => session.reply(cookie, outcome),
        }
    }

    /// The same for a request that ends with an I/O error before its disk has said how it ended; says why.
    pub fn fail(&mut self, cookie: u64, why: &'static str) {
        match self {
            Session::Nbd(session) => session.fail(cookie, why),
        }
    }

    /// The attached disk has another size, or may only be read, from now on.
    pub fn change_export(&mut self, size: u64, read_only: bool) {
        match self {
            Session::Nbd(session) => session.change_export(size, read_only),
        }
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        match self {
            Session::Nbd(session) => session.is_encrypted(),
        }
    }

    /// The certificates that the client showed, its own first, and that were verified; nothing where it had to show none.
    pub fn client_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match self {
            Session::Nbd(session) => session.client_certificates(),
        }
    }

    /// The host is stopping, or the disk is going away: further requests are refused, and the session is over once those in
    /// flight are answered.
    pub fn drain(&mut self) {
        match self {
            Session::Nbd(session) => session.drain(),
        }
    }

    /// Whether it is over. Close the connection, cancel a receive that is under way and await its end, then drop this.
    pub fn is_finished(&self) -> bool {
        match self {
            Session::Nbd(session) => session.is_finished(),
        }
    }
}

#[cfg(test)]
mod tests;
