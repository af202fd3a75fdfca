//! Questions for what was changed since a write id, while they are answered.

use crate::io::{Op, Versions};
use base::WriteId;

/// A question under way.
#[derive(Debug)]
pub(crate) struct ChangedState {
    pub(crate) op: Op,
    pub(crate) component: u32,
    pub(crate) since: WriteId,
    /// The part to look at next.
    pub(crate) part: u32,
    pub(crate) parts: Vec<(u32, Versions)>,
    /// Parts looked at so far: bounds the time that one answer takes.
    pub(crate) looked_at: u32,
}

impl ChangedState {
    pub(crate) fn op(&self) -> Op {
        self.op
    }
}

impl Versions {
    /// The greatest id in it.
    pub fn greatest(&self) -> WriteId {
        match self {
            Versions::Hole(id) => *id,
            Versions::Regions(regions) => regions.iter().copied().max().unwrap_or_default(),
        }
    }
}
