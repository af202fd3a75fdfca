//! Space that may yet come free, and the work that waits for it.

use crate::work::Work;
use std::collections::VecDeque;

/// What is known of space to come.
#[derive(Debug, Default)]
pub(crate) struct Scarcity {
    /// Work that found no free extent while some may come free.
    starved: VecDeque<Work>,
    /// Records of freed extents under way.
    frees: u32,
    /// Discards of freed extents under way.
    discards: u32,
    /// Whether a trim has become stable that no finished destaging round has turned into free extents yet.
    has_unsettled_trims: bool,
}

impl Scarcity {
    /// Whether frees, discards or trims under way may yet bring a free extent.
    pub(crate) fn may_end(&self) -> bool {
        self.frees > 0 || self.discards > 0 || self.has_unsettled_trims
    }

    /// Whether work waits for space.
    pub(crate) fn is_felt(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Whether a destaging round over all that is in the log may bring the space that work waits for.
    pub(crate) fn wants_destaging(&self) -> bool {
        self.is_felt() && self.has_unsettled_trims
    }

    /// Work waits until space has come free, or is known not to.
    pub(crate) fn wait(&mut self, work: Work) {
        self.starved.push_back(work);
    }

    /// Gives back the work that waits, in order.
    pub(crate) fn take_starved(&mut self) -> VecDeque<Work> {
        std::mem::take(&mut self.starved)
    }

    /// The record of a freed extent is on its way.
    pub(crate) fn begin_free(&mut self) {
        self.frees += 1;
    }

    /// The record of a freed extent is stable.
    pub(crate) fn end_free(&mut self) {
        self.frees -= 1;
    }

    /// A freed extent is handed back to the provider of its device.
    pub(crate) fn begin_discard(&mut self) {
        self.discards += 1;
    }

    /// That is done.
    pub(crate) fn end_discard(&mut self) {
        self.discards -= 1;
    }

    /// A trim is stable: extents may be empty.
    pub(crate) fn note_trim(&mut self) {
        self.has_unsettled_trims = true;
    }

    /// A destaging round has ended that took all trims which were stable when it began.
    pub(crate) fn settle_trims(&mut self) {
        self.has_unsettled_trims = false;
    }
}
