//! TLS under a conversation, as bytes in, bytes out: ciphertext at the socket, plaintext at the conversation.

use super::Conversation;
use crate::tls::TlsIdentity;
use crate::{Event, IoVec};
use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::io::{Read, Write};

/// Ciphertext received at once: four records of the largest size.
const CIPHERTEXT_SIZE: usize = 64 << 10;
/// Ciphertext prepared for sending before the rest of the replies is looked at.
const OUTGOING_MAX: usize = 256 << 10;

/// The encrypted side of a conversation. Payload is copied once, by the cipher.
pub(crate) struct Secure {
    connection: ServerConnection,
    /// Ciphertext received: `start..end` of it is not looked at yet.
    incoming: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether a receive into `incoming` is under way.
    receiving: bool,
    /// Ciphertext to be sent, and how much of it is.
    outgoing: Vec<u8>,
    sent: usize,
    /// Whether a send of `outgoing` is under way.
    frozen: bool,
    /// Whether the peer was told that no more comes.
    closed: bool,
    failed: bool,
    vectors: Vec<IoVec>,
    /// Events that came up while bytes were made ready to be sent.
    pending: Vec<Event>,
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secure({} bytes to send)", self.outgoing.len() - self.sent)
    }
}

impl Secure {
    /// Waits for the client's first message.
    pub(crate) fn new(identity: &TlsIdentity) -> Secure {
        Secure {
            connection: identity.connection(),
            incoming: vec![0; CIPHERTEXT_SIZE],
            start: 0,
            end: 0,
            receiving: false,
            outgoing: Vec::new(),
            sent: 0,
            frozen: false,
            closed: false,
            failed: false,
            vectors: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// What the client showed, once the handshake is over.
    pub(crate) fn client_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.connection.peer_certificates()
    }

    /// Ciphertext is taken while the conversation wants bytes and those at hand are used up.
    pub(crate) fn wants_receive(&self, conversation: &Conversation) -> bool {
        !self.receiving && !self.failed && conversation.wants_receive() && self.start == self.end
    }

    pub(crate) fn receive_vectors(&mut self, out: &mut Vec<IoVec>) {
        assert!(!self.receiving, "one receive at a time");
        assert!(self.start == self.end, "what was received is used first");
        self.receiving = true;
        (self.start, self.end) = (0, 0);
        out.push(IoVec::target(self.incoming.as_mut_ptr(), self.incoming.len()));
    }

    /// `n` bytes of ciphertext came; zero: the peer closed the connection.
    pub(crate) fn received(&mut self, n: usize, conversation: &mut Conversation, events: &mut Vec<Event>) {
        self.receiving = false;
        self.end = n;
        if n == 0 {
            return conversation.closed();
        }
        self.decrypt(conversation, events);
    }

    /// The receive ended with nothing though the peer is there.
    pub(crate) fn interrupted(&mut self) {
        self.receiving = false;
    }

    /// Goes on with what is at hand.
    pub(crate) fn advance(&mut self, conversation: &mut Conversation, events: &mut Vec<Event>) {
        events.append(&mut self.pending);
        conversation.advance(events);
        self.decrypt(conversation, events);
    }

    fn decrypt(&mut self, conversation: &mut Conversation, events: &mut Vec<Event>) {
        while !self.failed && !conversation.input_ended() {
            let mut ciphertext = &self.incoming[self.start..self.end];
            // It takes nothing while plaintext waits for the conversation.
            let taken = if ciphertext.is_empty() {
                0
            } else {
                self.connection.read_tls(&mut ciphertext).unwrap_or(0)
            };
            self.start += taken;
            match self.connection.process_new_packets() {
                Ok(state) => {
                    let moved = self.deliver(state.plaintext_bytes_to_read(), conversation, events);
                    if state.peer_has_closed() && state.plaintext_bytes_to_read() == moved {
                        return conversation.closed();
                    }
                    if taken == 0 && moved == 0 {
                        return;
                    }
                }
                Err(_) => {
                    // The alert that says why is among the bytes to send.
                    self.failed = true;
                    (self.start, self.end) = (0, 0);
                    return conversation.lost();
                }
            }
        }
    }

    /// Moves up to `available` bytes of plaintext to where the conversation wants them, and says how many.
    fn deliver(
        &mut self,
        available: usize,
        conversation: &mut Conversation,
        events: &mut Vec<Event>,
    ) -> usize {
        let mut moved = 0;
        while moved < available && conversation.wants_receive() {
            self.vectors.clear();
            conversation.receive_vectors(&mut self.vectors);
            let mut part = 0;
            for vector in &self.vectors {
                // SAFETY: the conversation's vectors are its own, valid for writes, and nobody else uses them until
                // `received`.
                let space = unsafe { std::slice::from_raw_parts_mut(vector.base, vector.len) };
                let mut filled = 0;
                while filled < space.len() {
                    match self.connection.reader().read(&mut space[filled..]) {
                        Ok(0) | Err(_) => break,
                        Ok(n) => filled += n,
                    }
                }
                part += filled;
                if filled < vector.len {
                    break;
                }
            }
            assert!(part > 0, "plaintext that was announced is there");
            moved += part;
            conversation.received(part, events);
        }
        moved
    }

    pub(crate) fn wants_transmit(&self, conversation: &Conversation) -> bool {
        let rest = self.sent < self.outgoing.len() || self.connection.wants_write();
        let goodbye = conversation.is_finished() && !self.closed && !self.failed;
        !self.frozen && (rest || goodbye || conversation.wants_transmit())
    }

    /// Encrypts what waits, and says where it is; there may be nothing.
    pub(crate) fn transmit_vectors(&mut self, conversation: &mut Conversation, out: &mut Vec<IoVec>) {
        assert!(!self.frozen, "one send at a time");
        if self.sent == self.outgoing.len() {
            self.outgoing.clear();
            self.sent = 0;
            self.encrypt(conversation);
        }
        self.frozen = true;
        if self.sent < self.outgoing.len() {
            out.push(IoVec::source(self.outgoing[self.sent..].as_ptr(), self.outgoing.len() - self.sent));
        }
    }

    fn encrypt(&mut self, conversation: &mut Conversation) {
        self.flush();
        while !self.failed && self.outgoing.len() < OUTGOING_MAX && conversation.wants_transmit() {
            self.vectors.clear();
            conversation.transmit_vectors(&mut self.vectors);
            let mut total = 0;
            for index in 0..self.vectors.len() {
                let vector = self.vectors[index];
                // SAFETY: the conversation's vectors are valid for reads until `transmitted`.
                let mut plaintext =
                    unsafe { std::slice::from_raw_parts(vector.base.cast_const(), vector.len) };
                while !plaintext.is_empty() {
                    // It takes as much as its buffer holds; that buffer is emptied in between.
                    let n = self.connection.writer().write(plaintext).unwrap_or(0);
                    assert!(n > 0, "a flushed TLS connection takes plaintext");
                    plaintext = &plaintext[n..];
                    total += n;
                    self.flush();
                }
                if self.outgoing.len() >= OUTGOING_MAX {
                    break;
                }
            }
            conversation.transmitted(total, &mut self.pending);
        }
        if conversation.is_finished() && !self.closed && !self.failed {
            self.closed = true;
            self.connection.send_close_notify();
            self.flush();
        }
    }

    fn flush(&mut self) {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.outgoing).expect("writing to memory does not fail");
        }
    }

    /// `n` bytes of ciphertext were sent.
    pub(crate) fn transmitted(&mut self, n: usize, conversation: &mut Conversation, events: &mut Vec<Event>) {
        assert!(self.frozen, "only what was given out can have been sent");
        assert!(n <= self.outgoing.len() - self.sent, "no more is sent than there was");
        self.frozen = false;
        self.sent += n;
        self.advance(conversation, events);
    }

    /// Whether nothing is left to send; `lost` says that nothing can be.
    pub(crate) fn is_flushed(&self, lost: bool) -> bool {
        let empty = self.sent == self.outgoing.len() && !self.connection.wants_write();
        !self.frozen && (lost || (empty && (self.closed || self.failed)))
    }
}
