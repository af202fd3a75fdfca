//! Block protocols that hypervisors speak, as pure state machines: bytes in, requests out; answers in, bytes out.
//!
//! An executor owns sockets, threads and time. A [`Session`] only says where the next bytes may go ([`IoVec`]), what they
//! meant ([`Event`]) and which bytes to send. Data goes from the socket into the buffers that the device is written
//! from, and from the buffers that the device was read into to the socket, with no copy between.
//!
//! Relies on `base` (buffers, requests) alone. Must never block, allocate without bound, or trust a byte of a client.

pub mod limits;
pub mod nbd;
mod session;
pub mod tls;
mod vectors;

pub use session::{
    AttachRefusal, Bitmap, Event, Export, Protocol, Reach, Session, Transfer, TransferEnd, Wanted,
};
pub use vectors::IoVec;
