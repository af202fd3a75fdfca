//! Visits of destaging whose blocks are compressed, or wait for that.

use crate::compute::ComputeId;
use std::collections::VecDeque;

/// Works of a group under way at most: one thread does those of all groups of a host, which others wait for, too.
const UNDER_WAY_MAX: usize = 2;

/// Those visits, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Compressing {
    waiting: VecDeque<u32>,
    under_way: Vec<(ComputeId, u32)>,
}

impl Compressing {
    /// A visit waits for its turn.
    pub(crate) fn wait(&mut self, visit: u32) {
        self.waiting.push_back(visit);
    }

    /// The visit whose turn it is, if another one may begin.
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.under_way.len() >= UNDER_WAY_MAX {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Its blocks are being compressed.
    pub(crate) fn begin(&mut self, id: ComputeId, visit: u32) {
        self.under_way.push((id, visit));
    }

    /// That work ended: gives the visit, if it is one that is waited for.
    pub(crate) fn end(&mut self, id: ComputeId) -> Option<u32> {
        let at = self.under_way.iter().position(|(of, _)| *of == id)?;
        Some(self.under_way.remove(at).1)
    }

    /// Whether anything is being compressed, or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }
}
