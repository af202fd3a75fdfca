//! Sockets that clients connect to.

use crate::devices::while_released;
use crate::error::EngineError;
use crate::settings::{Endpoint, Listen};
use frontends::Protocol;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Bytes that a unix socket may hold on its way to a client: a few large answers.
const UNIX_BUFFER_SIZE: libc::c_int = 4 << 20;

/// Where a client comes from: what it is trusted with, and whether it must encrypt, depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A unix socket of this machine.
    Unix,
    /// Loopback of this machine.
    Loopback,
    /// Another machine, or an address that others reach too.
    Elsewhere,
}

/// A connection that was accepted.
pub(crate) struct Accepted {
    pub(crate) socket: OwnedFd,
    /// What its client speaks.
    pub(crate) protocol: Protocol,
    pub(crate) origin: Origin,
    /// For people: `tcp 127.0.0.1:40312`, `unix pid 4711`.
    pub(crate) peer: String,
}

/// An open socket.
#[derive(Debug)]
pub(crate) struct Listener {
    fd: OwnedFd,
    protocol: Protocol,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Tcp,
    /// With the file to remove at the end.
    Unix(PathBuf),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Kind::Unix(path) = &self.kind {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Listener {
    /// Opens the socket. A unix socket left over by a server that is gone is replaced.
    pub(crate) fn open(&Endpoint { protocol, ref listen }: &Endpoint) -> Result<Listener, EngineError> {
        let failed = |place: &dyn std::fmt::Display, error: &io::Error| {
            EngineError::Refused(format!("cannot listen for {protocol} clients at {place}: {error}"))
        };
        let (fd, kind) = match listen {
            Listen::Tcp(address) => {
                let socket = while_released(libc::EADDRINUSE, || TcpListener::bind(address));
                (socket.map_err(|error| failed(address, &error))?.into(), Kind::Tcp)
            }
            Listen::Unix(path) => {
                let socket = bind_unix(path).map_err(|error| failed(&path.display(), &error))?;
                (socket.into(), Kind::Unix(path.clone()))
            }
        };
        Ok(Listener { fd, protocol, kind })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Prepares an accepted connection, and says who is at its other end.
    pub(crate) fn accepted(&self, fd: RawFd) -> Accepted {
        // SAFETY: the kernel has just handed this descriptor out, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let (origin, peer) = match self.kind {
            Kind::Unix(_) => {
                set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, UNIX_BUFFER_SIZE);
                (Origin::Unix, unix_peer(fd))
            }
            Kind::Tcp => {
                prepare_tcp(&socket);
                notice_the_end(fd);
                (tcp_origin(&socket), tcp_peer(&socket))
            }
        };
        Accepted { socket, protocol: self.protocol, origin, peer }
    }
}

/// By the address of this end: nothing that comes over the network reaches one of loopback.
fn tcp_origin(socket: &OwnedFd) -> Origin {
    let stream = socket.try_clone().map(std::net::TcpStream::from);
    match stream.and_then(|stream| stream.local_addr()) {
        Ok(address) if address.ip().is_loopback() => Origin::Loopback,
        Ok(_) | Err(_) => Origin::Elsewhere,
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A killed server's ring holds its sockets a little longer than the process lives: they still answer then.
    while_released(libc::EADDRINUSE, || match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
            if !is_socket || UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        other => other,
    })
}

/// What every TCP connection of the engine is set to.
pub(crate) fn prepare_tcp(socket: &OwnedFd) {
    let fd = socket.as_raw_fd();
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
    set(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
    leave_no_gaps(fd);
}

/// BBR sends at the rate that it takes the way for, and it takes that of a storage network, with rounds of some microseconds and long
/// pauses, for much too slow: with less than 3 MiB to be sent connections stood still for 60 ms, and guests' changes behind them
/// (perf/README.md, "Beside copies"). What else a machine is set to stays.
fn leave_no_gaps(fd: RawFd) {
    let mut name = [0u8; 16]; // The kernel's limit.
    let mut len = name.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes of the name, which lives through the call.
    let told = unsafe {
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_mut_ptr().cast(), &raw mut len)
    };
    if told == 0 && name.starts_with(b"bbr") {
        let cubic = b"cubic";
        let len = cubic.len() as libc::socklen_t;
        // SAFETY: the name lives through the call and has the length that is told. A failure does not matter: all goes on, slower.
        unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, cubic.as_ptr().cast(), len) };
    }
}

/// A client whose machine has lost its power says nothing; while it counts, its disk is attached here and nowhere else. Asked
/// after 10 s of silence, and three times every 5 s; what is sent must be taken within 25 s.
fn notice_the_end(fd: RawFd) {
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 10);
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 5);
    set(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 3);
    set(fd, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 25_000);
}

/// Sets an option that only makes things faster: a failure does not matter.
fn set(fd: RawFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) {
    let len = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value lives through the call and has the length that is told.
    unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), len) };
}

fn tcp_peer(socket: &OwnedFd) -> String {
    let stream = socket.try_clone().map(std::net::TcpStream::from);
    match stream.and_then(|stream| stream.peer_addr()) {
        Ok(address) => format!("tcp {address}"),
        Err(_) => "tcp, gone".to_owned(),
    }
}

fn unix_peer(fd: RawFd) -> String {
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = std::mem::size_of_val(&credentials) as libc::socklen_t;
    // SAFETY: the structure lives through the call and has the length that is told.
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut credentials).cast(), &raw mut len)
    };
    if result == 0 { format!("unix pid {}", credentials.pid) } else { "unix".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn congestion_control(fd: RawFd) -> String {
        let mut name = [0u8; 16];
        let mut len = name.len() as libc::socklen_t;
        // SAFETY: as above.
        let told = unsafe {
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        assert_eq!(told, 0, "Linux tells its congestion control");
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    /// What a connection that began with that one ends with; nothing where the kernel does not have it.
    fn after_preparing(name: &str) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let stream =
            TcpStream::connect(listener.local_addr().expect("it is bound")).expect("somebody listens");
        let socket = OwnedFd::from(stream);
        let len = name.len() as libc::socklen_t;
        // SAFETY: the name lives through the call and has the length that is told.
        let set = unsafe {
            let name = name.as_ptr().cast();
            libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, len)
        };
        prepare_tcp(&socket);
        (set == 0).then(|| congestion_control(socket.as_raw_fd()))
    }

    #[test]
    fn connections_are_not_paced_by_bbr_and_keep_any_other_congestion_control() {
        assert_eq!(after_preparing("reno").as_deref(), Some("reno"), "every kernel has it");
        let kept = after_preparing("bbr");
        assert!(kept.is_none() || kept.as_deref() == Some("cubic"), "{kept:?}");
    }

    /// Where a connection to that address of this machine comes from, as the listener at `listen` tells.
    fn origin(listen: Listen, connect: impl FnOnce(&Listener) -> OwnedFd) -> Origin {
        let listener = Listener::open(&Endpoint { protocol: Protocol::Nbd, listen }).expect("it listens");
        let _client = connect(&listener);
        // SAFETY: the listener is open, no address is asked for, and the descriptor is new.
        let fd = unsafe { libc::accept(listener.fd(), std::ptr::null_mut(), std::ptr::null_mut()) };
        assert!(fd >= 0, "somebody has connected");
        listener.accepted(fd).origin
    }

    #[test]
    fn where_a_client_comes_from_is_told_by_listener_and_kernel() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tcp.sock");
        let connect = |_: &Listener| UnixStream::connect(&path).expect("somebody listens").into();
        assert_eq!(origin(Listen::Unix(path.clone()), connect), Origin::Unix);
        for address in ["127.0.0.1:0", "0.0.0.0:0"] {
            let connect = |listener: &Listener| {
                let bound = listener.fd.try_clone().map(TcpListener::from).and_then(|it| it.local_addr());
                let port = bound.expect("it is bound").port();
                TcpStream::connect(("127.0.0.1", port)).expect("somebody listens").into()
            };
            let listen = Listen::Tcp(address.parse().expect("an address"));
            assert_eq!(origin(listen, connect), Origin::Loopback, "{address}");
        }
    }
}
