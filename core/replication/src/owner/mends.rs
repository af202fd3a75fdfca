//! Damaged blocks of which components told, and how far the one is that is being mended.

use super::member::At;
use super::member_set::MemberSet;
use base::{ComponentId, Instant};
use std::collections::VecDeque;
use wire::DamagedBlock;

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

/// A block that is damaged on a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: At,
    pub(crate) component: ComponentId,
    pub(crate) block: DamagedBlock,
}

/// The block that is being mended.
#[derive(Debug)]
pub(crate) struct Mend {
    pub(crate) of: Damage,
    pub(crate) attempt: u32,
    /// Members that cannot give it.
    pub(crate) tried: MemberSet,
    pub(crate) asked_at: Instant,
}

/// All damage that is known of, and when components are asked for more.
#[derive(Debug, Default)]
pub(crate) struct Mending {
    pub(crate) ask_at: Option<Instant>,
    pub(crate) waiting: VecDeque<Damage>,
    pub(crate) now: Option<Mend>,
}
