//! A client of NBD servers: addresses, the handshake, and the conversation after it.
//!
//! The protocol is <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>: fixed newstyle, simple replies (which
//! every server must have; structured ones only to ask for a map), TLS by `STARTTLS`. The handshake blocks; after it [`Conversation`] is bytes in and bytes out for
//! whoever owns the socket.

mod address;
mod client;
mod conversation;
mod handshake;

pub use address::{Address, AddressError, Place};
pub use client::{Client, REQUEST_BYTES, Run, STATE_DIRTY, STATE_HOLE, STATE_ZERO, is_written, read};
pub use conversation::{Answer, BadServer, Conversation};
pub use handshake::{Export, HandshakeError, Link};
