//! What an owner knows of the snapshots that a component has.

use std::collections::BTreeSet;

/// What is known of a member's snapshots, in its session.
#[derive(Debug, Default)]
pub(crate) struct MemberSnapshots {
    /// Whether it has told which it has, and whether it was asked to.
    pub(crate) is_known: bool,
    pub(crate) is_asked: bool,
    /// Those that it has, as far as they are known, and those of them that it was asked to delete.
    pub(crate) numbers: BTreeSet<u32>,
    pub(crate) dropping: BTreeSet<u32>,
    /// The one that it is being given.
    pub(crate) filling: Option<u32>,
    /// Those that it cannot be given, for a block is damaged.
    pub(crate) unfit: BTreeSet<u32>,
}
