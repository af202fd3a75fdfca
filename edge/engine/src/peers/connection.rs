//! One connection to another node: its greeting, its frames, and what of it is under way in the ring.
//!
//! Relies on `wire` for every byte, and on `secure` where they are encrypted. Must never decide what a message is for: that
//! is the node's.

use super::secure::{Secure, SecureError};
use crate::ring::{Message as Vectors, Ring, Socket, Until, is_passing};
use base::{HostId, NodeId, Pool};
use frontends::IoVec;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;
use wire::{
    Accepted, Answer, Body, Decoder, HELLO_SIZE, Hello, HelloError, Message, Outgoing, OutgoingFull, Reach,
    Request, Step, WireError,
};

/// Who began a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// This node: it sends requests.
    Initiator,
    /// The other one.
    Acceptor,
}

/// Whom a connection is with, and in which session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Channel {
    pub(super) side: Side,
    pub(super) peer: NodeId,
    pub(super) session: u64,
}

/// How far a connection has come.
enum Stage {
    /// The kernel connects it; then the hello goes out.
    Connecting(Hello),
    /// A hello, or the answer to ours, is awaited; `filled` bytes of it are there.
    Greeting { hello: Option<Hello>, bytes: Box<[u8; HELLO_SIZE]>, filled: usize },
    /// Frames run, requests out and answers in.
    Asking { outgoing: Outgoing, decoder: Decoder<Answer> },
    /// Frames run the other way.
    Answering { outgoing: Outgoing, decoder: Decoder<Request> },
}

impl Stage {
    /// Bytes came to where they were wanted.
    fn received(&mut self, bytes: usize) {
        match self {
            Stage::Greeting { filled, .. } => *filled += bytes,
            Stage::Asking { decoder, .. } => decoder.received(bytes),
            Stage::Answering { decoder, .. } => decoder.received(bytes),
            Stage::Connecting(_) => {}
        }
    }

    /// Takes bytes from memory to where they are wanted, and says how many.
    fn fill(&mut self, from: &mut dyn Read) -> usize {
        let mut filled = 0;
        let each = |space: &mut [u8]| {
            let mut rest = space;
            while !rest.is_empty() {
                // What is in memory comes at once; that there is no more is no failure.
                let Ok(n @ 1..) = from.read(rest) else { return };
                filled += n;
                rest = &mut rest[n..];
            }
        };
        match self {
            Stage::Greeting { bytes, filled, .. } => Some(&mut bytes[*filled..]).into_iter().for_each(each),
            Stage::Asking { decoder, .. } => drop(decoder.space(each)),
            Stage::Answering { decoder, .. } => drop(decoder.space(each)),
            Stage::Connecting(_) => {}
        }
        self.received(filled);
        filled
    }
}

/// What came of the received bytes.
pub(super) enum Received {
    /// A hello that is to be answered.
    Hello(Box<Hello>),
    /// The answer to our hello: frames may run.
    Accepted(Accepted),
    /// A request of the other node.
    Request(Message<Request>),
    /// An answer of the other node.
    Answer(Message<Answer>),
    /// Nothing more for now.
    Nothing,
    /// The pool has no buffers for what comes next.
    NeedsBuffers,
}

/// Why a connection ended that should not have.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The greeting failed.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// What came is no message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The other node takes too little of what it is sent.
    #[error(transparent)]
    Slow(#[from] OutgoingFull),
    /// The other side is not who it should be, or does not speak TLS.
    #[error(transparent)]
    Secure(#[from] SecureError),
}

/// A connection.
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Whom it is with, once that is known.
    pub(super) channel: Option<Channel>,
    stage: Stage,
    /// What encrypts it; nothing between hosts of one machine that have no certificates.
    secure: Option<Box<Secure>>,
    /// The greeting that is being sent.
    greeting: Option<(Box<[u8; HELLO_SIZE]>, usize)>,
    pub(super) since: Instant,
    is_connecting: bool,
    is_receiving: bool,
    is_sending: bool,
    is_cancelled: bool,
    receive_vectors: Option<Box<Vectors>>,
    send_vectors: Option<Box<Vectors>>,
    /// Whether it stands in the list of connections to look after.
    pub(super) is_listed: bool,
    /// Whether it waits for buffers of the pool.
    pub(super) is_starved: bool,
    /// Nothing more is received; what is queued to be sent goes out only if it is a refusal. The stage stays, for the kernel
    /// may still use its memory.
    is_over: bool,
}

impl Connection {
    fn new(socket: OwnedFd, stage: Stage, secure: Option<Secure>) -> Connection {
        Connection {
            socket,
            channel: None,
            stage,
            secure: secure.map(Box::new),
            greeting: None,
            since: Instant::now(),
            is_connecting: false,
            is_receiving: false,
            is_sending: false,
            is_cancelled: false,
            receive_vectors: Some(Vectors::new()),
            send_vectors: Some(Vectors::new()),
            is_listed: false,
            is_starved: false,
            is_over: false,
        }
    }

    /// One that another node began: its hello is awaited.
    pub(super) fn accepted(socket: OwnedFd, secure: Option<Secure>) -> Connection {
        Connection::new(socket, Stage::Greeting { hello: None, bytes: zeroes(), filled: 0 }, secure)
    }

    /// One that the kernel is asked to make, to say `hello`.
    pub(super) fn connecting(socket: OwnedFd, hello: Hello, secure: Option<Secure>) -> Connection {
        let channel = Channel { side: Side::Initiator, peer: hello.receiver, session: hello.session };
        let connection = Connection::new(socket, Stage::Connecting(hello), secure);
        Connection { channel: Some(channel), is_connecting: true, ..connection }
    }

    /// The kernel has connected it.
    pub(super) fn connected(&mut self) {
        self.is_connecting = false;
        if let Stage::Connecting(hello) = self.stage {
            self.greeting = Some((Box::new(hello.encode()), 0));
            self.stage = Stage::Greeting { hello: Some(hello), bytes: zeroes(), filled: 0 };
        }
    }

    /// The kernel could not connect it.
    pub(super) fn not_connected(&mut self) {
        self.is_connecting = false;
    }

    /// Whether the greeting has not ended yet.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.stage, Stage::Connecting(_) | Stage::Greeting { .. })
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether a host may say that it is the other side: without certificates every one may.
    pub(super) fn may_be(&self, host: HostId) -> bool {
        self.secure.as_ref().is_none_or(|secure| secure.host() == Some(host))
    }

    /// Frames run from now on.
    pub(super) fn open(&mut self, channel: Channel, accepted: &Accepted, pool: Pool) {
        let outgoing = Outgoing::new(accepted.version);
        self.channel = Some(channel);
        self.stage = match channel.side {
            Side::Initiator => Stage::Asking { outgoing, decoder: Decoder::new(accepted.version, pool) },
            Side::Acceptor => Stage::Answering { outgoing, decoder: Decoder::new(accepted.version, pool) },
        };
    }

    /// Queues the answer to a hello.
    pub(super) fn greet(&mut self, answer: [u8; HELLO_SIZE]) {
        self.greeting = Some((Box::new(answer), 0));
    }

    /// Nothing more is received or queued. A refusal that waits still goes out.
    pub(super) fn end(&mut self) {
        self.is_over = true;
        self.is_starved = false;
    }

    /// Queues a request.
    pub(super) fn ask(&mut self, message: &Message<Request>) -> Result<(), OutgoingFull> {
        match &mut self.stage {
            Stage::Asking { outgoing, .. } => outgoing.push(message),
            Stage::Connecting(_) | Stage::Greeting { .. } | Stage::Answering { .. } => Ok(()),
        }
    }

    /// Queues an answer.
    pub(super) fn answer(&mut self, message: &Message<Answer>) -> Result<(), OutgoingFull> {
        match &mut self.stage {
            Stage::Answering { outgoing, .. } => outgoing.push(message),
            Stage::Connecting(_) | Stage::Greeting { .. } | Stage::Asking { .. } => Ok(()),
        }
    }

    /// The next thing that the received bytes say.
    pub(super) fn step(&mut self) -> Result<Received, Fault> {
        self.is_starved = false;
        if self.is_over {
            return Ok(Received::Nothing);
        }
        loop {
            let received = self.step_in_plaintext()?;
            if !matches!(received, Received::Nothing) || !self.decrypt()? {
                return Ok(received);
            }
        }
    }

    /// Moves decrypted bytes to where the stage wants them; whether there were any.
    fn decrypt(&mut self) -> Result<bool, SecureError> {
        let Some(secure) = &mut self.secure else { return Ok(false) };
        let stage = &mut self.stage;
        Ok(secure.read(|plaintext| stage.fill(plaintext))? > 0)
    }

    fn step_in_plaintext(&mut self) -> Result<Received, Fault> {
        let received = match &mut self.stage {
            Stage::Greeting { hello, bytes, filled } if *filled == HELLO_SIZE => match hello {
                Some(hello) => Received::Accepted(hello.conclude(bytes)?),
                None => Received::Hello(Box::new(Hello::decode(bytes)?)),
            },
            Stage::Connecting(_) | Stage::Greeting { .. } => Received::Nothing,
            Stage::Asking { decoder, .. } => received(decoder, Received::Answer)?,
            Stage::Answering { decoder, .. } => received(decoder, Received::Request)?,
        };
        self.is_starved = matches!(received, Received::NeedsBuffers);
        Ok(received)
    }

    /// A receive has ended; whether the connection goes on.
    pub(super) fn received(&mut self, vectors: Box<Vectors>, result: &io::Result<i32>) -> bool {
        self.is_receiving = false;
        self.receive_vectors = Some(vectors);
        let bytes = match result {
            Ok(0) => return false,
            Ok(bytes) => *bytes as usize,
            Err(error) => return is_passing(error),
        };
        match &mut self.secure {
            Some(secure) => secure.received(bytes),
            None => self.stage.received(bytes),
        }
        true
    }

    /// A send has ended; whether the connection goes on.
    pub(super) fn sent(&mut self, vectors: Box<Vectors>, result: &io::Result<i32>) -> bool {
        self.is_sending = false;
        self.send_vectors = Some(vectors);
        let bytes = match result {
            Ok(bytes) => *bytes as usize,
            Err(error) if is_passing(error) => 0,
            Err(_) => {
                self.greeting = None;
                if let Some(secure) = &mut self.secure {
                    secure.lost();
                }
                return false;
            }
        };
        if let Some(secure) = &mut self.secure {
            secure.sent(bytes);
            return true;
        }
        if let Some((_, sent)) = &mut self.greeting {
            *sent += bytes;
            if *sent >= HELLO_SIZE {
                self.greeting = None;
            }
            return true;
        }
        match &mut self.stage {
            Stage::Asking { outgoing, .. } | Stage::Answering { outgoing, .. } => outgoing.sent(bytes),
            Stage::Connecting(_) | Stage::Greeting { .. } => {}
        }
        true
    }

    /// Starts a send and a receive if there is a reason to. Says whether the connection is over and nothing of it is under
    /// way.
    pub(super) fn pump(&mut self, key: u32, ring: &mut Ring) -> bool {
        if !self.is_sending && !self.is_connecting && (!self.is_over || self.has_last_words()) {
            self.start_send(key, ring);
        }
        if self.is_over {
            if self.has_last_words() && !self.is_connecting {
                return false; // A refusal is still to be sent.
            }
            let is_busy = self.is_receiving || self.is_sending || self.is_connecting;
            if is_busy && !self.is_cancelled {
                self.is_cancelled = true;
                ring.cancel(self.socket.as_raw_fd());
            }
            return !is_busy;
        }
        if !self.is_receiving && !self.is_connecting && !self.is_starved {
            self.start_receive(key, ring);
        }
        false
    }

    /// Whether something is to be sent although the connection is over: a refusal.
    fn has_last_words(&self) -> bool {
        self.greeting.is_some() || self.secure.as_ref().is_some_and(|secure| secure.has_outgoing())
    }

    /// Encrypts what waits, as much as is sent at once.
    fn encrypt(&mut self) {
        let Some(secure) = &mut self.secure else { return };
        if secure.has_outgoing() {
            return;
        }
        if let Some((bytes, _)) = self.greeting.take() {
            secure.write(&*bytes);
        }
        let (Stage::Asking { outgoing, .. } | Stage::Answering { outgoing, .. }) = &mut self.stage else {
            return;
        };
        while secure.takes_more() && !self.is_over && !outgoing.is_empty() {
            let mut written = 0;
            for piece in outgoing.send() {
                secure.write(piece);
                written += piece.len();
                if !secure.takes_more() {
                    break;
                }
            }
            outgoing.sent(written);
        }
    }

    fn start_send(&mut self, key: u32, ring: &mut Ring) {
        let Some(mut message) = self.send_vectors.take() else { return };
        message.vectors.clear();
        self.encrypt();
        let vectors = &mut message.vectors;
        match (&self.greeting, &mut self.stage) {
            _ if self.secure.is_some() => vectors.extend(self.secure.as_mut().and_then(|one| one.outgoing())),
            (Some((bytes, sent)), _) => vectors.push(source(&bytes[*sent..])),
            (None, Stage::Asking { outgoing, .. } | Stage::Answering { outgoing, .. }) => {
                vectors.extend(outgoing.send().map(source));
            }
            (None, Stage::Connecting(_) | Stage::Greeting { .. }) => {}
        }
        if message.vectors.is_empty() {
            self.send_vectors = Some(message);
            return;
        }
        self.is_sending = true;
        ring.send(self.socket.as_raw_fd(), Socket::Peer(key), message);
    }

    fn start_receive(&mut self, key: u32, ring: &mut Ring) {
        let Some(mut message) = self.receive_vectors.take() else { return };
        message.vectors.clear();
        let vectors = &mut message.vectors;
        let reach = match &mut self.stage {
            _ if self.secure.is_some() => {
                vectors.extend(self.secure.as_mut().and_then(|one| one.space()));
                Reach::Any
            }
            Stage::Greeting { bytes, filled, .. } => {
                let rest = &mut bytes[*filled..];
                if !rest.is_empty() {
                    vectors.push(target(rest));
                }
                Reach::Any
            }
            Stage::Asking { decoder, .. } => decoder.space(|space| vectors.push(target(space))),
            Stage::Answering { decoder, .. } => decoder.space(|space| vectors.push(target(space))),
            Stage::Connecting(_) => Reach::Any,
        };
        if message.vectors.is_empty() {
            self.receive_vectors = Some(message);
            return;
        }
        self.is_receiving = true;
        let until = if reach == Reach::All { Until::Full } else { Until::Anything };
        ring.receive(self.socket.as_raw_fd(), Socket::Peer(key), message, until);
    }
}

fn received<T: Body>(
    decoder: &mut Decoder<T>,
    message: impl FnOnce(Message<T>) -> Received,
) -> Result<Received, WireError> {
    Ok(match decoder.step()? {
        Step::Message(found) => message(found),
        Step::NeedsBytes => Received::Nothing,
        Step::NeedsBuffers(_) => Received::NeedsBuffers,
    })
}

fn zeroes() -> Box<[u8; HELLO_SIZE]> {
    Box::new([0; HELLO_SIZE])
}

fn source(bytes: &[u8]) -> IoVec {
    IoVec { base: bytes.as_ptr().cast_mut(), len: bytes.len() }
}

fn target(bytes: &mut [u8]) -> IoVec {
    IoVec { base: bytes.as_mut_ptr(), len: bytes.len() }
}

#[cfg(test)]
mod tests;
