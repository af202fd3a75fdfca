//! The encryption of one connection with another node: bytes of the socket on one side, those of the protocol on the other.
//!
//! rustls does it, in memory of its own: payload is copied once on its way. Handshake, verification and identities are
//! `trust`'s. Must never let a byte of the protocol through before the other side has shown who it is.

use base::HostId;
use frontends::IoVec;
use rustls::{ClientConnection, Connection, ServerConnection};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use trust::{Clients, Clock, Expected, Refusal, TlsError, Trust};

/// Ciphertext received at once: four records of the largest size.
const CIPHERTEXT_SIZE: usize = 64 << 10;
/// Ciphertext prepared for sending before the kernel is given it: enough that one call carries much, and no more of the
/// payload stands in memory twice.
const OUTGOING_MAX: usize = 256 << 10;

/// Why a connection cannot go on being encrypted.
#[derive(Debug, thiserror::Error)]
pub(super) enum SecureError {
    /// The other side is not who it should be, or says that of this one.
    #[error(transparent)]
    Refused(Refusal),
    /// What came is no TLS, or was changed on the way.
    #[error("what came is not TLS of this cluster: {0}")]
    Broken(rustls::Error),
}

impl From<rustls::Error> for SecureError {
    fn from(error: rustls::Error) -> SecureError {
        match Refusal::of(&error) {
            Some(refusal) => SecureError::Refused(refusal),
            None => SecureError::Broken(error),
        }
    }
}

/// What this node shows to others, and how it knows them.
#[derive(Clone)]
pub struct PeerTls {
    trust: Arc<Trust>,
    clock: Clock,
    server: Arc<rustls::ServerConfig>,
}

impl fmt::Debug for PeerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerTls({:?})", self.trust)
    }
}

impl PeerTls {
    /// With the certificate of this host. What `trust` holds may be replaced: later handshakes use that.
    ///
    /// # Errors
    /// When it is not a host's.
    pub fn new(trust: Arc<Trust>, clock: Clock) -> Result<PeerTls, TlsError> {
        let server = trust::server_config(&trust, Clients::Demanded(Expected::AnyHost), Arc::clone(&clock))?;
        Ok(PeerTls { trust, clock, server: Arc::new(server) })
    }

    /// The side that another node began.
    pub(super) fn accept(&self) -> Result<Secure, SecureError> {
        Ok(Secure::new(ServerConnection::new(Arc::clone(&self.server))?.into()))
    }

    /// The side that begins; whoever answers must be that host.
    pub(super) fn connect(&self, host: HostId) -> Result<Secure, SecureError> {
        let config = trust::client_config(&self.trust, Expected::Host(host), Arc::clone(&self.clock));
        let config =
            config.map_err(|error| SecureError::Broken(rustls::Error::General(error.to_string())))?;
        Ok(Secure::new(ClientConnection::new(Arc::new(config), trust::server_name())?.into()))
    }
}

/// One side of an encrypted connection.
pub(super) struct Secure {
    session: Connection,
    /// Ciphertext received: `start..end` of it is not looked at yet.
    incoming: Box<[u8]>,
    start: usize,
    end: usize,
    /// Ciphertext to be sent, and how much of it is.
    outgoing: Vec<u8>,
    sent: usize,
}

impl Secure {
    fn new(mut session: Connection) -> Secure {
        // What is written is bounded by `OUTGOING_MAX` and taken out at once.
        session.set_buffer_limit(None);
        let incoming = vec![0; CIPHERTEXT_SIZE].into_boxed_slice();
        Secure { session, incoming, start: 0, end: 0, outgoing: Vec::new(), sent: 0 }
    }

    /// The host on the other side, once the handshake has shown it.
    pub(super) fn host(&self) -> Option<HostId> {
        let shown = trust::peer_identity(self.session.peer_certificates());
        shown.ok().flatten().and_then(|identity| identity.host())
    }

    /// Where ciphertext may be received; nowhere while there is some that was not looked at.
    pub(super) fn space(&mut self) -> Option<IoVec> {
        if self.start < self.end {
            return None;
        }
        (self.start, self.end) = (0, 0);
        Some(IoVec { base: self.incoming.as_mut_ptr(), len: self.incoming.len() })
    }

    /// `n` bytes of ciphertext came to where [`Secure::space`] said.
    pub(super) fn received(&mut self, n: usize) {
        self.end = n;
    }

    /// Gives the next bytes of the protocol to `take`, which says how many it took; zero: it has no space now. Says how many
    /// there were. Called once for each look at the bytes: what was taken may change where the next ones go.
    pub(super) fn read(&mut self, take: impl FnOnce(&mut dyn Read) -> usize) -> Result<usize, SecureError> {
        loop {
            let mut ciphertext = &self.incoming[self.start..self.end];
            // It takes nothing while much plaintext waits.
            let taken = match ciphertext.is_empty() {
                true => 0,
                false => self.session.read_tls(&mut ciphertext).unwrap_or(0),
            };
            self.start += taken;
            // What a handshake, or a failure, has to say goes out with the next send.
            let waiting = self.session.process_new_packets()?.plaintext_bytes_to_read();
            if waiting > 0 {
                return Ok(take(&mut self.session.reader()));
            }
            if taken == 0 {
                return Ok(0);
            }
        }
    }

    /// Whether more may be encrypted before some of it is sent.
    pub(super) fn takes_more(&self) -> bool {
        self.outgoing.len() < OUTGOING_MAX
    }

    /// Encrypts bytes of the protocol. Before the handshake is over they wait for it.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(OUTGOING_MAX) {
            self.session.writer().write_all(part).expect("a session without a limit takes what it is given");
            self.flush();
        }
    }

    /// Not while the kernel reads what is there: it may move.
    fn flush(&mut self) {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.outgoing).expect("writing to memory does not fail");
        }
    }

    /// Whether ciphertext waits to be sent.
    pub(super) fn has_outgoing(&self) -> bool {
        self.sent < self.outgoing.len() || self.session.wants_write()
    }

    /// The ciphertext that waits to be sent: it stays where it is until [`Secure::sent`].
    pub(super) fn outgoing(&mut self) -> Option<IoVec> {
        self.flush();
        let rest = &self.outgoing[self.sent..];
        (!rest.is_empty()).then(|| IoVec { base: rest.as_ptr().cast_mut(), len: rest.len() })
    }

    /// `n` bytes of it are sent.
    pub(super) fn sent(&mut self, n: usize) {
        self.sent += n;
        if self.sent == self.outgoing.len() {
            self.outgoing.clear();
            self.sent = 0;
        }
    }

    /// Nothing more can be sent.
    pub(super) fn lost(&mut self) {
        self.outgoing.clear();
        self.sent = 0;
    }
}
