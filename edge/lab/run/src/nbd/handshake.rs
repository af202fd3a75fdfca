//! How a connection to an NBD server begins: fixed newstyle, `STARTTLS` where asked for, `NBD_OPT_GO`; and how an export is looked at
//! without attaching to it (`NBD_OPT_INFO`).

use super::address::{Address, Place};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const FLAG_FIXED_NEWSTYLE: u16 = 1;
const FLAG_NO_ZEROES: u16 = 2;
const OPT_ABORT: u32 = 2;
const OPT_STARTTLS: u32 = 5;
const OPT_INFO: u32 = 6;
const OPT_GO: u32 = 7;
pub(super) const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_ERROR: u32 = 1 << 31;
const REP_UNSUPPORTED: u32 = REP_ERROR | 1;
const INFO_EXPORT: u16 = 0;
/// An option's answer is short; what claims more is no server.
const REPLY_MAX: u32 = 64 << 10;
/// A server that says nothing for so long is taken for dead.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// Nothing listens there, or it went away.
    #[error("connect to {address}: {source}; check the address and that the server runs")]
    Connection {
        /// Where.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// It listens, but is no NBD server, or an old one.
    #[error("{address} violates the NBD protocol: {found}")]
    Protocol {
        /// Where.
        address: String,
        /// What came.
        found: String,
    },
    /// The server refused the export.
    #[error("{address} refuses the export `{export}`: {reason}")]
    Refused {
        /// Where.
        address: String,
        /// Which export.
        export: String,
        /// Its words.
        reason: String,
    },
    /// A certificate or a key cannot be used.
    #[error("TLS for {address}: {reason}")]
    Tls {
        /// Where.
        address: String,
        /// What is wrong.
        reason: String,
    },
}

/// An export that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Where it is.
    pub address: Address,
    /// Its bytes.
    pub size: u64,
    /// Its transmission flags.
    flags: u16,
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct Link {
    /// The socket.
    pub socket: OwnedFd,
    /// The TLS session, if there is one.
    pub tls: Option<Box<ClientConnection>>,
    /// The export as it is now.
    pub export: Export,
}

pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.read(bytes),
            Socket::Unix(socket) => socket.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Export {
    /// Connects, learns what the export is, and leaves. The server counts nobody as its client for that, unless it knows no
    /// `NBD_OPT_INFO`.
    ///
    /// # Errors
    /// When it cannot be reached or is refused.
    pub fn look(address: &Address) -> Result<Export, HandshakeError> {
        let (size, flags) = match secured(address)? {
            Secured::Plain(mut socket) => look(&mut socket, address),
            Secured::Tls(mut socket, mut session) => {
                look(&mut rustls::Stream::new(&mut *session, &mut socket), address)
            }
        }?;
        Ok(Export { address: address.clone(), size, flags })
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether the server takes flushes.
    pub fn takes_flush(&self) -> bool {
        self.flags & 4 != 0
    }

    /// Whether the server takes trims.
    pub fn takes_trim(&self) -> bool {
        self.flags & 1 << 5 != 0
    }

    /// Whether several connections see one another's writes.
    pub fn is_multi_connection(&self) -> bool {
        self.flags & 1 << 8 != 0
    }
}

impl Link {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// When nothing listens, what listens is no NBD server, or the export is refused.
    pub fn open(address: &Address) -> Result<Link, HandshakeError> {
        let (socket, tls, (size, flags)) = match secured(address)? {
            Secured::Plain(mut socket) => {
                let found = go(&mut socket, address)?;
                (socket, None, found)
            }
            Secured::Tls(mut socket, mut session) => {
                let found = go(&mut rustls::Stream::new(&mut *session, &mut socket), address)?;
                (socket, Some(session), found)
            }
        };
        let socket = match socket {
            Socket::Tcp(socket) => socket.set_read_timeout(None).map(|()| OwnedFd::from(socket)),
            Socket::Unix(socket) => socket.set_read_timeout(None).map(|()| OwnedFd::from(socket)),
        };
        let socket = socket.map_err(broken(address))?;
        Ok(Link { socket, tls, export: Export { address: address.clone(), size, flags } })
    }

    /// The socket's number.
    pub fn fd(&self) -> i32 {
        self.socket.as_raw_fd()
    }
}

/// A server that was greeted, with TLS where the address asks for it.
pub(super) enum Secured {
    Plain(Socket),
    Tls(Socket, Box<ClientConnection>),
}

/// Connects and greets.
pub(super) fn secured(address: &Address) -> Result<Secured, HandshakeError> {
    let mut socket = connect(&address.place).map_err(broken(address))?;
    greet(&mut socket, address)?;
    match &address.tls {
        None => Ok(Secured::Plain(socket)),
        Some(folder) => {
            start_tls(&mut socket, address)?;
            Ok(Secured::Tls(socket, Box::new(session(address, folder.as_deref())?)))
        }
    }
}

fn connect(place: &Place) -> io::Result<Socket> {
    Ok(match place {
        Place::Tcp(host, port) => {
            let socket = TcpStream::connect((host.as_str(), *port))?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            Socket::Tcp(socket)
        }
        Place::Unix(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            Socket::Unix(socket)
        }
    })
}

pub(super) fn protocol(address: &Address, found: impl Into<String>) -> HandshakeError {
    HandshakeError::Protocol { address: address.to_string(), found: found.into() }
}

pub(super) fn broken(address: &Address) -> impl Fn(io::Error) -> HandshakeError + '_ {
    move |source| match source.kind() {
        io::ErrorKind::InvalidData => {
            HandshakeError::Tls { address: address.to_string(), reason: source.to_string() }
        }
        _ => HandshakeError::Connection { address: address.to_string(), source },
    }
}

fn greet(stream: &mut impl ReadWrite, address: &Address) -> Result<(), HandshakeError> {
    let broken = broken(address);
    let magic = read_u64(stream).map_err(&broken)?;
    let option = read_u64(stream).map_err(&broken)?;
    if magic != NBD_MAGIC || option != OPTION_MAGIC {
        return Err(protocol(address, "its greeting is not the newstyle handshake"));
    }
    let flags = read_u16(stream).map_err(&broken)?;
    if flags & FLAG_FIXED_NEWSTYLE == 0 {
        return Err(protocol(address, "it lacks the fixed newstyle handshake"));
    }
    let mine = u32::from(flags & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES));
    stream.write_all(&mine.to_be_bytes()).map_err(&broken)
}

fn start_tls(stream: &mut impl ReadWrite, address: &Address) -> Result<(), HandshakeError> {
    send_option(stream, OPT_STARTTLS, &[]).map_err(broken(address))?;
    match read_reply(stream, address, OPT_STARTTLS)? {
        (REP_ACK, _) => Ok(()),
        (_, text) => Err(HandshakeError::Tls {
            address: address.to_string(),
            reason: format!("the server has none ({})", words(&text)),
        }),
    }
}

/// Attaches to the export; gives its size and flags.
pub(super) fn go(stream: &mut impl ReadWrite, address: &Address) -> Result<(u64, u16), HandshakeError> {
    ask(stream, address, OPT_GO)?.map_err(|(kind, body)| refused(address, kind, &body))
}

/// Asks what the export is, and leaves.
fn look(stream: &mut impl ReadWrite, address: &Address) -> Result<(u64, u16), HandshakeError> {
    match ask(stream, address, OPT_INFO)? {
        Ok(found) => {
            // Who has answered need not hear the end.
            let _ = send_option(stream, OPT_ABORT, &[]);
            Ok(found)
        }
        Err((REP_UNSUPPORTED, _)) => go(stream, address),
        Err((kind, body)) => Err(refused(address, kind, &body)),
    }
}

/// Size and flags of an export, or the kind and the body of the reply that refuses them.
type Answer = Result<(u64, u16), (u32, Vec<u8>)>;

fn ask(stream: &mut impl ReadWrite, address: &Address, option: u32) -> Result<Answer, HandshakeError> {
    let name = address.export.as_bytes();
    let mut body = (name.len() as u32).to_be_bytes().to_vec();
    body.extend_from_slice(name);
    body.extend_from_slice(&0u16.to_be_bytes());
    send_option(stream, option, &body).map_err(broken(address))?;
    let mut found = None;
    loop {
        let (kind, body) = read_reply(stream, address, option)?;
        match kind {
            REP_ACK => {
                let found =
                    found.ok_or_else(|| protocol(address, "it did not send the size of the export"))?;
                return Ok(Ok(found));
            }
            REP_INFO if body.len() >= 12 && body[..2] == INFO_EXPORT.to_be_bytes() => {
                let size = u64::from_be_bytes(body[2..10].try_into().expect("eight bytes"));
                let flags = u16::from_be_bytes(body[10..12].try_into().expect("two bytes"));
                found = Some((size, flags));
            }
            REP_INFO => {}
            _ if kind & REP_ERROR != 0 => return Ok(Err((kind, body))),
            _ => return Err(protocol(address, format!("unexpected reply {kind}"))),
        }
    }
}

fn refused(address: &Address, kind: u32, body: &[u8]) -> HandshakeError {
    HandshakeError::Refused {
        address: address.to_string(),
        export: address.export.clone(),
        reason: refusal(kind, body),
    }
}

fn refusal(kind: u32, body: &[u8]) -> String {
    let meaning = match kind & !REP_ERROR {
        1 => "it does not support NBD_OPT_GO",
        2 => "its policy forbids it",
        5 => "it requires TLS: use nbds:// and name the certificates",
        6 => "there is no export of this name",
        7 => "it is shutting down",
        _ => "no known reason",
    };
    match words(body) {
        text if text.is_empty() => meaning.to_owned(),
        text => format!("{meaning} ({text})"),
    }
}

fn words(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(300)]).trim().to_owned()
}

pub(super) fn send_option(stream: &mut impl ReadWrite, option: u32, body: &[u8]) -> io::Result<()> {
    let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(body.len() as u32).to_be_bytes());
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)?;
    stream.flush()
}

pub(super) fn read_reply(
    stream: &mut impl ReadWrite,
    address: &Address,
    option: u32,
) -> Result<(u32, Vec<u8>), HandshakeError> {
    let broken = broken(address);
    let magic = read_u64(stream).map_err(&broken)?;
    let to = read_u32(stream).map_err(&broken)?;
    let kind = read_u32(stream).map_err(&broken)?;
    let length = read_u32(stream).map_err(&broken)?;
    if magic != OPTION_REPLY_MAGIC || to != option || length > REPLY_MAX {
        return Err(protocol(address, "malformed reply to an option"));
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body).map_err(&broken)?;
    Ok((kind, body))
}

pub(super) trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

pub(super) fn read_u16(stream: &mut impl ReadWrite) -> io::Result<u16> {
    let mut bytes = [0; 2];
    stream.read_exact(&mut bytes)?;
    Ok(u16::from_be_bytes(bytes))
}

pub(super) fn read_u32(stream: &mut impl ReadWrite) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

pub(super) fn read_u64(stream: &mut impl ReadWrite) -> io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

fn session(address: &Address, folder: Option<&Path>) -> Result<ClientConnection, HandshakeError> {
    let error = |reason: String| HandshakeError::Tls { address: address.to_string(), reason };
    let folder = folder.ok_or_else(|| {
        error("the authority of the server's certificate is unknown; add ?tls-certificates=FOLDER".to_owned())
    })?;
    let file = |name: &str| folder.join(name);
    let mut roots = RootCertStore::empty();
    let path = file("ca-cert.pem");
    for certificate in
        CertificateDer::pem_file_iter(&path).map_err(|e| error(format!("read {}: {e}", path.display())))?
    {
        let certificate = certificate.map_err(|e| error(format!("read {}: {e}", path.display())))?;
        roots.add(certificate).map_err(|e| error(format!("{}: {e}", path.display())))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| error(e.to_string()))?
        .with_root_certificates(roots);
    let (certificate, key) = (file("client-cert.pem"), file("client-key.pem"));
    let config = match certificate.exists() {
        false => builder.with_no_client_auth(),
        true => {
            let chain = CertificateDer::pem_file_iter(&certificate)
                .and_then(Iterator::collect)
                .map_err(|e| error(format!("read {}: {e}", certificate.display())))?;
            let key = PrivateKeyDer::from_pem_file(&key)
                .map_err(|e| error(format!("read {}: {e}", key.display())))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| error(e.to_string()))?
        }
    };
    let name = match (&address.tls_hostname, &address.place) {
        (Some(name), _) => name.clone(),
        (None, Place::Tcp(host, _)) => host.clone(),
        (None, Place::Unix(_)) => "localhost".to_owned(),
    };
    let name = ServerName::try_from(name).map_err(|e| error(e.to_string()))?;
    ClientConnection::new(Arc::new(config), name).map_err(|e| error(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A server for one connection, which refuses an option; gives the options that it was asked for.
    fn served(refuses: Option<u32>) -> (Result<Export, HandshakeError>, Vec<u32>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nbd.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("a client");
            let greeting = [NBD_MAGIC.to_be_bytes(), OPTION_MAGIC.to_be_bytes()].concat();
            socket.write_all(&greeting).expect("it listens");
            socket.write_all(&FLAG_FIXED_NEWSTYLE.to_be_bytes()).expect("it listens");
            read_u32(&mut socket).expect("its flags");
            let mut options = Vec::new();
            while read_u64(&mut socket).is_ok() {
                let option = read_u32(&mut socket).expect("an option");
                let length = read_u32(&mut socket).expect("a length");
                socket.read_exact(&mut vec![0; length as usize]).expect("a body");
                options.push(option);
                let export = [&0u16.to_be_bytes()[..], &(64u64 << 20).to_be_bytes(), &[0, 2]].concat();
                let replies = match Some(option) == refuses {
                    true => vec![(REP_UNSUPPORTED, Vec::new())],
                    false => vec![(REP_INFO, export), (REP_ACK, Vec::new())],
                };
                for (kind, body) in replies {
                    let head = [option, kind, body.len() as u32].map(u32::to_be_bytes).concat();
                    let reply = [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &head, &body].concat();
                    // Who asks to end need not hear of it.
                    let _ = socket.write_all(&reply);
                }
            }
            options
        });
        let address =
            Address::parse(&format!("nbd+unix:///web?socket={}", path.display())).expect("an address");
        let export = Export::look(&address);
        (export, server.join().expect("it ends"))
    }

    #[test]
    fn who_looks_at_an_export_attaches_to_it_only_where_the_server_cannot_tell_otherwise() {
        let (export, options) = served(None);
        let export = export.expect("it is told");
        assert_eq!((export.size, export.is_read_only()), (64 << 20, true));
        assert_eq!(options, [OPT_INFO, OPT_ABORT]);
        let (export, options) = served(Some(OPT_INFO));
        assert_eq!(export.expect("it is told").size, 64 << 20);
        assert_eq!(options, [OPT_INFO, OPT_GO]);
    }
}
