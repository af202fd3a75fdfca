//! One client's conversation in the clear: from the greeting to the last reply.
//!
//! Sans-I/O. The executor receives into [`Conversation::receive_vectors`], says how much came, carries out the events, hands
//! in the answers, and sends what [`Conversation::transmit_vectors`] points at. One receive and one send may be under way at
//! a time; while one is, the conversation must be kept alive, and the memory that the vectors point at stays in place.

mod answer;
mod contexts;
mod inbox;
mod negotiation;
mod outbox;
mod slots;
mod surveys;
mod transmission;

use crate::limits::{BACKLOG_MAX, INBOX_SIZE, REQUEST_LEN_MAX};
use crate::{AttachRefusal, Event, Export, IoVec, Reach};
use base::Pool;
use base::request::Outcome;
use inbox::Inbox;
use negotiation::{Negotiation, Step};
use outbox::Outbox;
use transmission::{Hold, Io, Progress, Transmission};

pub(crate) use negotiation::Tls;

/// What went through a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Requests handed out.
    pub requests: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub transmitted_bytes: u64,
    /// Bytes of payload that had to be copied because they came where they were not expected. Stands still in a steady
    /// stream.
    pub copied_bytes: u64,
}

#[derive(Debug)]
enum Phase {
    Negotiation(Negotiation),
    Transmission(Box<Transmission>),
}

/// See the module.
#[derive(Debug)]
pub struct Conversation {
    pool: Pool,
    inbox: Inbox,
    outbox: Outbox,
    phase: Phase,
    counters: Counters,
    /// Whether a receive is under way: nothing that it writes to may move.
    receiving: bool,
    /// Whether no more bytes are taken: goodbye was said, the peer closed, or it broke the protocol.
    input_ended: bool,
    /// Whether the connection is gone: there is nobody to reply to.
    lost: bool,
    draining: bool,
    /// Whether the client was told to start TLS and has not been heard since.
    tls_requested: bool,
}

impl Conversation {
    /// Begins with the greeting, which waits to be sent. Payload comes to buffers of `pool`.
    pub(crate) fn new(tls: Tls, pool: Pool) -> Conversation {
        assert!(
            pool.bytes_max() >= REQUEST_LEN_MAX as usize,
            "a pool that cannot hold one request would never serve it"
        );
        let mut outbox = Outbox::default();
        let negotiation = Negotiation::new(tls, &mut outbox);
        Conversation {
            pool,
            inbox: Inbox::new(),
            outbox,
            phase: Phase::Negotiation(negotiation),
            counters: Counters::default(),
            receiving: false,
            input_ended: false,
            lost: false,
            draining: false,
            tls_requested: false,
        }
    }

    /// What went through so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The disk that the client is attached to.
    pub fn attached(&self) -> Option<&Export> {
        match &self.phase {
            Phase::Negotiation(_) => None,
            Phase::Transmission(transmission) => Some(transmission.export()),
        }
    }

    /// The attached disk has another size, or may only be read, from now on. Clients are not told (the protocol has no word
    /// for it in use), but what they ask is checked against it.
    pub fn change_export(&mut self, size: u64, read_only: bool) {
        if let Phase::Transmission(transmission) = &mut self.phase {
            transmission.change_export(size, read_only);
        }
    }

    /// Requests handed out and not answered.
    pub fn outstanding(&self) -> usize {
        match &self.phase {
            Phase::Negotiation(_) => 0,
            Phase::Transmission(transmission) => transmission.outstanding(),
        }
    }

    /// Whether it is over: no answer is waited for and nothing is left to send. Close the connection and drop this. A receive
    /// that is still under way must be cancelled, and its end awaited, first.
    pub fn is_finished(&self) -> bool {
        let open = !self.input_ended && !self.draining;
        let sent = if self.lost { !self.outbox.is_frozen() } else { self.outbox.is_empty() };
        !open && self.outstanding() == 0 && sent
    }

    /// Whether it waits for buffers of the pool; call [`Conversation::advance`] when some have come back.
    pub fn wants_buffers(&self) -> bool {
        match &self.phase {
            Phase::Negotiation(_) => false,
            Phase::Transmission(transmission) => transmission.hold() == Hold::Pool && !self.input_ended,
        }
    }

    /// Whether a receive should be started now. False while as much is under way as one client may have.
    pub fn wants_receive(&self) -> bool {
        if self.receiving || self.input_ended || self.tls_requested {
            return false;
        }
        match &self.phase {
            Phase::Negotiation(negotiation) => {
                !negotiation.is_waiting() && self.outbox.head_bytes() <= BACKLOG_MAX
            }
            Phase::Transmission(transmission) => transmission.wants_receive(&self.outbox),
        }
    }

    /// Appends where the next bytes go, in order. Only when they are wanted.
    pub fn receive_vectors(&mut self, out: &mut Vec<IoVec>) -> Reach {
        assert!(self.wants_receive(), "bytes are received only when they are wanted");
        self.receiving = true;
        match &mut self.phase {
            Phase::Negotiation(_) => {
                out.push(self.inbox.space(INBOX_SIZE));
                Reach::Any
            }
            Phase::Transmission(transmission) => {
                transmission.receive_vectors(&self.pool, &mut self.inbox, &self.outbox, out)
            }
        }
    }

    /// The receive has ended with `n` bytes; zero: the peer closed its side.
    pub fn received(&mut self, n: usize, events: &mut Vec<Event>) {
        assert!(self.receiving, "what is received was asked for");
        self.receiving = false;
        self.counters.received_bytes += n as u64;
        if n == 0 || self.input_ended {
            return self.end_input();
        }
        if let Phase::Transmission(transmission) = &mut self.phase {
            let mut io = Io {
                pool: &self.pool,
                inbox: &mut self.inbox,
                outbox: &mut self.outbox,
                counters: &mut self.counters,
                events,
            };
            if transmission.received(n, self.draining, &mut io) == Progress::Ended {
                self.end_input();
            }
        } else {
            self.inbox.received(n);
            self.advance(events);
        }
    }

    /// The receive has ended with nothing, and yet the peer is there: the call was interrupted and is to be made again.
    pub fn interrupted(&mut self) {
        assert!(self.receiving, "what is interrupted was asked for");
        self.receiving = false;
        if self.input_ended {
            return self.end_input();
        }
        match &mut self.phase {
            Phase::Negotiation(_) => {}
            Phase::Transmission(transmission) => transmission.interrupted(&mut self.inbox),
        }
    }

    /// Goes on with what was received and could not be dealt with then: call it after answers, after a send, and when
    /// buffers have come back to the pool.
    pub fn advance(&mut self, events: &mut Vec<Event>) {
        if self.receiving || self.input_ended || self.tls_requested {
            return;
        }
        if let Phase::Negotiation(negotiation) = &mut self.phase {
            if self.outbox.head_bytes() > BACKLOG_MAX {
                return;
            }
            let step = negotiation.step(&mut self.inbox, &mut self.outbox, events);
            self.apply(step);
        }
        if let Phase::Transmission(transmission) = &mut self.phase {
            let mut io = Io {
                pool: &self.pool,
                inbox: &mut self.inbox,
                outbox: &mut self.outbox,
                counters: &mut self.counters,
                events,
            };
            if transmission.parse(self.draining, &mut io) == Progress::Ended {
                self.end_input();
            }
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Wait => {}
            Step::Close => self.end_input(),
            // Bytes sent ahead of TLS would be taken for bytes sent under its protection.
            Step::StartTls if !self.inbox.is_empty() => self.end_input(),
            Step::StartTls => self.tls_requested = true,
            Step::Enter { export, structured, contexts } => {
                self.phase = Phase::Transmission(Box::new(Transmission::new(export, structured, contexts)));
            }
        }
    }

    pub(crate) fn input_ended(&self) -> bool {
        self.input_ended
    }

    /// The peer has closed its side.
    pub(crate) fn closed(&mut self) {
        self.end_input();
    }

    fn end_input(&mut self) {
        self.input_ended = true;
        // Buffers that the kernel may still write to are held until the receive has ended.
        if self.receiving {
            return;
        }
        if let Phase::Transmission(transmission) = &mut self.phase {
            transmission.input_ended();
        }
    }

    /// Whether TLS is to begin: the last byte in the clear has been sent.
    pub(crate) fn starts_tls(&self) -> bool {
        self.tls_requested && self.outbox.is_empty() && !self.input_ended
    }

    /// TLS is up. What was agreed on in the clear is forgotten.
    pub(crate) fn tls_started(&mut self) {
        assert!(self.starts_tls(), "TLS starts when it was asked for");
        self.tls_requested = false;
        if let Phase::Negotiation(negotiation) = &mut self.phase {
            negotiation.tls_started();
        }
    }

    /// The answer to [`Event::ListExports`].
    pub fn exports(&mut self, exports: &[Export]) {
        match &mut self.phase {
            Phase::Negotiation(negotiation) => negotiation.exports(exports, &mut self.outbox),
            Phase::Transmission(_) => panic!("no list is asked for in the transmission phase"),
        }
    }

    /// The answer to [`Event::Describe`] or [`Event::Attach`].
    pub fn export(&mut self, answer: Result<Export, AttachRefusal>) {
        match &mut self.phase {
            Phase::Negotiation(negotiation) => {
                let step = negotiation.export(answer, &mut self.outbox);
                self.apply(step);
            }
            Phase::Transmission(_) => panic!("no export is asked for in the transmission phase"),
        }
    }

    /// The answer to [`Event::Request`].
    pub fn reply(&mut self, cookie: u64, outcome: Outcome) {
        match &mut self.phase {
            Phase::Negotiation(_) => panic!("there are no requests before the transmission phase"),
            Phase::Transmission(transmission) => {
                let outbox = (!self.lost).then_some(&mut self.outbox);
                transmission.reply(cookie, outcome, outbox);
            }
        }
    }

    /// The same for a request that ends with an I/O error before its disk has said how it ended; says why.
    pub fn fail(&mut self, cookie: u64, why: &'static str) {
        match &mut self.phase {
            Phase::Negotiation(_) => panic!("there are no requests before the transmission phase"),
            Phase::Transmission(transmission) => {
                let outbox = (!self.lost).then_some(&mut self.outbox);
                transmission.fail(cookie, why, outbox);
            }
        }
    }

    /// Whether a send should be started now.
    pub fn wants_transmit(&self) -> bool {
        !self.outbox.is_empty() && !self.outbox.is_frozen() && !self.lost
    }

    /// Appends where the next bytes to send are, in order, at most 1,024 vectors.
    pub fn transmit_vectors(&mut self, out: &mut Vec<IoVec>) {
        self.outbox.vectors(out);
    }

    /// The send has ended with `n` bytes sent. Requests that waited for room may come now.
    pub fn transmitted(&mut self, n: usize, events: &mut Vec<Event>) {
        self.counters.transmitted_bytes += n as u64;
        self.outbox.sent(n);
        if self.lost {
            self.outbox.clear();
        }
        self.advance(events);
    }

    /// The host is stopping, or the disk is going away: further requests are refused, and it is over once those under way are
    /// answered.
    pub fn drain(&mut self) {
        self.draining = true;
        if matches!(self.phase, Phase::Negotiation(_)) {
            self.end_input();
        }
    }

    /// The connection is broken. A receive or send that is under way must still be reported when it ends (with zero bytes if it
    /// moved none). Answers are still awaited, and dropped.
    pub fn lost(&mut self) {
        self.lost = true;
        self.end_input();
        if !self.outbox.is_frozen() {
            self.outbox.clear();
        }
    }
}
