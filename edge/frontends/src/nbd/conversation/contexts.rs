//! Metadata contexts: what a client may ask about the blocks of an export, beside their bytes.
//!
//! `base:allocation` of every export; `qemu:dirty-bitmap:NAME` of a snapshot for each older one, as QEMU exports its bitmaps: which blocks may have changed
//! since.

use crate::Export;
use crate::limits::CONTEXTS_MAX;
use crate::nbd::protocol::{
    ALLOCATION_CONTEXT, ALLOCATION_CONTEXT_ID, BITMAP_CONTEXT, STATE_DIRTY, STATE_HOLE, STATE_ZERO,
};
use base::request::StatusOf;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// What is allocated.
    Allocation,
    /// What may have changed since the snapshot with that number.
    ChangesSince(u32),
}

impl Context {
    /// The number that we give it. Snapshots are not numbered 0.
    pub(super) fn id(self) -> u32 {
        match self {
            Context::Allocation => ALLOCATION_CONTEXT_ID,
            Context::ChangesSince(number) => number.wrapping_add(ALLOCATION_CONTEXT_ID),
        }
    }

    /// What is asked about an export.
    pub(super) fn question(self, export: &Export) -> StatusOf {
        match (self, export.snapshot) {
            (Context::Allocation, None) => StatusOf::Disk,
            (Context::Allocation, Some(snapshot)) => StatusOf::Snapshot(snapshot),
            (Context::ChangesSince(since), Some(snapshot)) => StatusOf::Changes { since, snapshot },
            (Context::ChangesSince(_), None) => unreachable!("only snapshots have bitmaps"),
        }
    }

    /// The state of a run, as the context counts it.
    pub(super) fn state(self, is_set: bool) -> u32 {
        match (self, is_set) {
            (Context::Allocation, true) | (Context::ChangesSince(_), false) => 0,
            (Context::Allocation, false) => STATE_HOLE | STATE_ZERO,
            (Context::ChangesSince(_), true) => STATE_DIRTY,
        }
    }
}

/// Whether somebody looks contexts up, or selects some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    List,
    Select,
}

/// The contexts of an export that queries name, with their names. To select one, it has to be named in full.
pub(super) fn named(queries: &[String], aim: Aim, export: &Export) -> Vec<(Context, String)> {
    let wants = |name: &str| {
        let is_wildcard = |query: &str| match aim {
            Aim::List => query.ends_with(':') && name.starts_with(query),
            Aim::Select => false,
        };
        let is_asked = queries.iter().any(|query| query == name || is_wildcard(query));
        is_asked || (aim == Aim::List && queries.is_empty())
    };
    let bitmaps = export
        .bitmaps
        .iter()
        .map(|bitmap| (Context::ChangesSince(bitmap.number), format!("{BITMAP_CONTEXT}{}", bitmap.name)));
    let all = std::iter::once((Context::Allocation, ALLOCATION_CONTEXT.to_owned())).chain(bitmaps);
    let most = if aim == Aim::Select { CONTEXTS_MAX } else { usize::MAX };
    all.filter(|(_, name)| wants(name)).take(most).collect()
}
