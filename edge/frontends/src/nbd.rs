//! The Network Block Device protocol (`doc/proto.md` of NetworkBlockDevice/nbd): fixed newstyle, structured replies, block
//! status, TLS by upgrade.

mod conversation;
mod export_name;
pub mod protocol;
mod secure;
mod session;

pub use conversation::{Conversation, Counters};
pub use export_name::{ExportName, ExportNameError, parse_error_after, with_error_after};
pub use session::Session;

#[cfg(test)]
mod tests;
