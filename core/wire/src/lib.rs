//! Messages between nodes: what they say, their bytes, versions and how a connection begins.
//!
//! A connection begins with a [`Hello`] and its answer, which agree on a [`Version`]. Then frames run both ways: an
//! [`Outgoing`] gathers those to send, a [`Decoder`] takes what comes. `docs/formats/wire.md` has the bytes.
//!
//! Relies on `base` only. Decodes what comes from other machines, so it trusts nothing. Must never open a connection or
//! know what a message is for; sessions, sequence numbers, tokens and stamps are carried and not looked at.

mod answer;
mod body;
mod check;
mod decoder;
mod encoder;
mod error;
mod flaw;
pub mod frame;
mod hello;
mod inbox;
mod kind;
pub mod layer;
pub mod limits;
mod message;
mod outgoing;
mod payload;
mod request;
mod version;

pub use body::Body;
pub use decoder::{Decoder, Reach, Step};
pub use encoder::Encoder;
pub use error::WireError;
pub use hello::{Accepted, HELLO_SIZE, Hello, HelloError, HelloRefusal, Identity, Role};
pub use message::{
    Answer, BackfillRequest, DamagedBlock, Entry, EntryKind, HeldRange, Message, NewComponent, PartVersions,
    Refusal, Request, Versions,
};
pub use outgoing::{Outgoing, OutgoingFull};
pub use payload::Payload;
pub use version::{VERSION_MAX, VERSION_MIN, Version, VersionRange};

use flaw::Flaw;

#[cfg(test)]
mod tests;
