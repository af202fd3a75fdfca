//! Questions for what was changed since a write id, while they are answered.

use crate::io::{Completion, Op, Versions};
use crate::limits;
use base::WriteId;

/// A question under way.
#[derive(Debug)]
pub(crate) struct ChangedState {
    op: Op,
    component: u32,
    since: WriteId,
    /// The part to look at next.
    part: u32,
    parts: Vec<(u32, Versions)>,
    /// Parts looked at so far: bounds the time that one answer takes.
    looked_at: u32,
}

impl ChangedState {
    /// Which parts of a component, from `part` on, were changed after `since`?
    pub(crate) fn new(op: Op, component: u32, since: WriteId, part: u32) -> ChangedState {
        ChangedState { op, component, since, part, parts: Vec::new(), looked_at: 0 }
    }

    pub(crate) fn op(&self) -> Op {
        self.op
    }

    pub(crate) fn component(&self) -> u32 {
        self.component
    }

    /// The part to look at next.
    pub(crate) fn part(&self) -> u32 {
        self.part
    }

    /// Whether one answer has room for no more.
    pub(crate) fn is_full(&self) -> bool {
        self.parts.len() >= limits::CHANGED_PARTS_MAX || self.looked_at >= limits::CHANGED_LOOKED_AT_MAX
    }

    /// The part was looked at.
    pub(crate) fn note(&mut self, versions: Versions) {
        if versions.greatest() > self.since {
            self.parts.push((self.part, versions));
        }
        self.looked_at += 1;
        self.part += 1;
    }

    /// The answer; `part_count` is how many parts the component has.
    pub(crate) fn answer(self, part_count: u32) -> Completion {
        let next = (self.part < part_count).then_some(self.part);
        Completion::Changed { parts: self.parts, next }
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
