//! The steps in which a damaged block is mended.

/// What a component was asked for, so that a block is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MendStep {
    /// The block itself, of the one on which it is damaged.
    Look,
    /// The block, of another one.
    Fetch,
    /// To take it.
    Put,
}
