//! What is wrong with a message.

use base::bytes::Truncated;

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Its fields, as the words say.
    Fields(&'static str),
    /// A block of its payload is not what was sent.
    Payload {
        /// Which 4 KiB of the payload, from 0.
        block: u32,
    },
}

impl From<Truncated> for Flaw {
    fn from(Truncated: Truncated) -> Flaw {
        Flaw::Fields("its fields end in the middle of one")
    }
}
