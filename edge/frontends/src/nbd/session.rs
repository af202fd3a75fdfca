//! One client's connection: a conversation in the clear, or under TLS once the client has asked for it.
//!
//! What an executor uses; see [`Conversation`] for the rules of receiving and sending, which are the same here.

use super::conversation::Tls;
use super::secure::Secure;
use super::{Conversation, Counters};
use crate::tls::TlsPolicy;
use crate::{AttachRefusal, Event, Export, IoVec, Reach, Transfer};
use base::Pool;
use base::request::Outcome;
use rustls::pki_types::CertificateDer;

/// See the module.
#[derive(Debug)]
pub struct Session {
    tls: TlsPolicy,
    conversation: Conversation,
    secure: Option<Box<Secure>>,
    lost: bool,
}

impl Session {
    /// For a connection that was just accepted. `pool` must hold at least 32 MiB.
    pub fn new(policy: TlsPolicy, pool: Pool) -> Session {
        let tls = match policy {
            TlsPolicy::Off => Tls::Off,
            TlsPolicy::Allowed(_) => Tls::Allowed,
            TlsPolicy::Required(_) => Tls::Required,
        };
        Session { tls: policy, conversation: Conversation::new(tls, pool), secure: None, lost: false }
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.secure.is_some()
    }

    /// The certificates that the client showed, its own first, and that were verified; nothing where it had to show none.
    pub fn client_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.secure.as_ref()?.client_certificates()
    }

    /// What went through so far (before encryption).
    pub fn counters(&self) -> Counters {
        self.conversation.counters()
    }

    /// The disk that the client is attached to.
    pub fn attached(&self) -> Option<&Export> {
        self.conversation.attached()
    }

    /// Requests handed out and not answered.
    pub fn outstanding(&self) -> usize {
        self.conversation.outstanding()
    }

    /// Whether it waits for buffers of the pool; call [`Session::advance`] when some have come back.
    pub fn wants_buffers(&self) -> bool {
        self.conversation.wants_buffers()
    }

    /// Whether it is over. Close the connection, wait for the end of a receive that is under way, then drop this.
    pub fn is_finished(&self) -> bool {
        self.conversation.is_finished()
            && self.secure.as_ref().is_none_or(|secure| secure.is_flushed(self.lost))
    }

    /// The transfer to start now, if there is one; appends its vectors.
    pub(crate) fn next_transfer(&mut self, vectors: &mut Vec<IoVec>) -> Option<Transfer> {
        if self.wants_transmit() {
            self.transmit_vectors(vectors);
            return Some(Transfer::Transmit);
        }
        if !self.wants_receive() || self.is_finished() {
            return None;
        }
        Some(Transfer::Receive(self.receive_vectors(vectors)))
    }

    /// Whether a receive should be started now.
    pub fn wants_receive(&self) -> bool {
        match &self.secure {
            None => self.conversation.wants_receive(),
            Some(secure) => secure.wants_receive(&self.conversation),
        }
    }

    /// Appends where the next bytes from the peer go, and says whether the receive may wait for all of them.
    pub fn receive_vectors(&mut self, out: &mut Vec<IoVec>) -> Reach {
        match &mut self.secure {
            None => self.conversation.receive_vectors(out),
            Some(secure) => {
                secure.receive_vectors(out);
                Reach::Any
            }
        }
    }

    /// The receive has ended with `n` bytes; zero: the peer closed its side.
    pub fn received(&mut self, n: usize, events: &mut Vec<Event>) {
        match &mut self.secure {
            None => self.conversation.received(n, events),
            Some(secure) => secure.received(n, &mut self.conversation, events),
        }
    }

    /// The receive has ended with nothing though the peer is there (`EINTR`): it is to be started again.
    pub fn interrupted(&mut self) {
        match &mut self.secure {
            None => self.conversation.interrupted(),
            Some(secure) => secure.interrupted(),
        }
    }

    /// Goes on with what was received and could not be dealt with then: call it after answers, and when buffers have come
    /// back to the pool.
    pub fn advance(&mut self, events: &mut Vec<Event>) {
        match &mut self.secure {
            None => self.conversation.advance(events),
            Some(secure) => secure.advance(&mut self.conversation, events),
        }
    }

    /// Whether a send should be started now.
    pub fn wants_transmit(&self) -> bool {
        match &self.secure {
            _ if self.lost => false,
            None => self.conversation.wants_transmit(),
            Some(secure) => secure.wants_transmit(&self.conversation),
        }
    }

    /// Appends where the next bytes for the peer are, at most 1,024 vectors; under TLS there may turn out to be none, which is
    /// reported as zero bytes sent.
    pub fn transmit_vectors(&mut self, out: &mut Vec<IoVec>) {
        match &mut self.secure {
            None => self.conversation.transmit_vectors(out),
            Some(secure) => secure.transmit_vectors(&mut self.conversation, out),
        }
    }

    /// The send has ended with `n` bytes sent.
    pub fn transmitted(&mut self, n: usize, events: &mut Vec<Event>) {
        match &mut self.secure {
            None => self.conversation.transmitted(n, events),
            Some(secure) => secure.transmitted(n, &mut self.conversation, events),
        }
        if self.secure.is_none()
            && self.conversation.starts_tls()
            && let TlsPolicy::Allowed(identity) | TlsPolicy::Required(identity) = &self.tls
        {
            self.conversation.tls_started();
            self.secure = Some(Box::new(Secure::new(identity)));
        }
    }

    /// The answer to [`Event::ListExports`].
    pub fn exports(&mut self, exports: &[Export]) {
        self.conversation.exports(exports);
    }

    /// The answer to [`Event::Describe`] or [`Event::Attach`].
    pub fn export(&mut self, answer: Result<Export, AttachRefusal>) {
        self.conversation.export(answer);
    }

    /// The answer to [`Event::Request`], in any order.
    pub fn reply(&mut self, cookie: u64, outcome: Outcome) {
        self.conversation.reply(cookie, outcome);
    }

    /// The same for a request that ends with an I/O error before its disk has said how it ended; says why.
    pub fn fail(&mut self, cookie: u64, why: &'static str) {
        self.conversation.fail(cookie, why);
    }

    /// The attached disk has another size, or may only be read, from now on.
    pub fn change_export(&mut self, size: u64, read_only: bool) {
        self.conversation.change_export(size, read_only);
    }

    /// The host is stopping or the disk is going away: see [`Conversation::drain`].
    pub fn drain(&mut self) {
        self.conversation.drain();
    }

    /// The connection is broken: see [`Conversation::lost`].
    pub fn lost(&mut self) {
        self.lost = true;
        self.conversation.lost();
    }
}
