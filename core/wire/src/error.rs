//! Why a connection cannot go on: what its peer sent is no message.

/// What is wrong with a stream of frames. After it, where the next frame begins is unknown: the connection must be dropped
/// and made anew, and the event counted, for it means a faulty network device, memory or program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// What should begin a frame does not.
    #[error("no frame begins where one should: magic {found:#010x} was found")]
    Magic {
        /// The four bytes, as a number.
        found: u32,
    },
    /// A header does not match its checksum.
    #[error(
        "the header of a frame is damaged: its checksum is {stored:#010x}, that of its bytes {computed:#010x}"
    )]
    HeaderChecksum {
        /// What it says.
        stored: u32,
        /// What its bytes give.
        computed: u32,
    },
    /// A frame of another version than was agreed on.
    #[error("a frame of version {found} on a connection of version {agreed}")]
    Version {
        /// The frame's.
        found: u16,
        /// The connection's.
        agreed: u16,
    },
    /// Reserved bytes of a header are set.
    #[error("reserved bytes of a frame's header are set: a newer program may have sent it")]
    ReservedHeader,
    /// A kind that is not known, or does not travel in this direction.
    #[error("a frame of kind {found} was not expected in this direction")]
    Kind {
        /// The kind's code.
        found: u8,
    },
    /// A body longer than its kind may have.
    #[error("the body of a {kind} frame is {found} bytes long; {max} are allowed")]
    BodySize {
        /// Of which frame.
        kind: &'static str,
        /// Its length in bytes.
        found: u32,
        /// The greatest length of its kind.
        max: u32,
    },
    /// A payload longer than its kind may have.
    #[error("the payload of a {kind} frame is {found} bytes long; {max} are allowed")]
    PayloadSize {
        /// Of which frame.
        kind: &'static str,
        /// Its length in bytes.
        found: u32,
        /// The greatest length of its kind.
        max: u32,
    },
    /// A body does not match its checksum.
    #[error(
        "the body of a {kind} frame is damaged: its checksum is {stored:#010x}, that of its bytes {computed:#010x}"
    )]
    BodyChecksum {
        /// Of which frame.
        kind: &'static str,
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// The fields of a body contradict one another or what is promised of the message.
    #[error("a {kind} frame makes no sense: {flaw}")]
    Body {
        /// Of which frame.
        kind: &'static str,
        /// What is wrong.
        flaw: &'static str,
    },
    /// The data of a guest came damaged.
    #[error("the payload of a {kind} frame is damaged in its block {block}")]
    PayloadChecksum {
        /// Of which frame.
        kind: &'static str,
        /// Which 4 KiB of the payload, from 0.
        block: u32,
    },
}
