//! The Network Block Device protocol (`doc/proto.md` of NetworkBlockDevice/nbd): fixed newstyle, structured replies, block
//! status, TLS by upgrade.

mod conversation;
pub mod protocol;
mod session;

pub use conversation::{AttachRefusal, Conversation, Counters, Event, Export, Reach};
pub use session::{Session, Settings, TlsPolicy};

#[cfg(test)]
mod tests;
