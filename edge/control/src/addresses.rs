//! Where a host is reached, as people and other hosts write it.

use engine::Listen;
use std::net::{IpAddr, SocketAddr};

/// A place to listen as people write it.
pub fn listen_text(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// The address of a disk for NBD clients.
pub fn nbd_address(listen: &Listen, tls: bool, disk: &str) -> String {
    match listen {
        Listen::Tcp(address) => format!("{}://{address}/{disk}", if tls { "nbds" } else { "nbd" }),
        Listen::Unix(path) => format!("nbd+unix:///{disk}?socket={}", path.display()),
    }
}

/// An address to listen at, as others reach it: with the address that they know where it is every one.
pub fn address_of(listen: SocketAddr, known: IpAddr) -> SocketAddr {
    if listen.ip().is_unspecified() { SocketAddr::new(known, listen.port()) } else { listen }
}
