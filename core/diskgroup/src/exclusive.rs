//! Parts that are being freed or written as a whole: other changes of them wait here.

use crate::work::Work;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// A part by the key of its component.
type Part = (u32, u32);

/// The parts that one change has for itself.
#[derive(Debug, Default)]
pub(crate) struct Exclusive {
    held: FxHashSet<Part>,
    parked: FxHashMap<Part, VecDeque<Work>>,
}

impl Exclusive {
    pub(crate) fn is_held(&self, part: Part) -> bool {
        self.held.contains(&part)
    }

    /// Whether a change has any part of that component for itself.
    pub(crate) fn holds_any_of(&self, component: u32) -> bool {
        // Any of them will do, so the order does not matter.
        self.held.iter().any(|(of, _)| *of == component)
    }

    /// A change takes the part for itself. False if another one has it.
    pub(crate) fn hold(&mut self, part: Part) -> bool {
        self.held.insert(part)
    }

    /// The change that has the part goes on with other means; what waits goes on waiting.
    pub(crate) fn let_pass(&mut self, part: Part) {
        self.held.remove(&part);
    }

    /// Work waits for the change that has the part.
    pub(crate) fn park(&mut self, part: Part, work: Work) {
        self.parked.entry(part).or_default().push_back(work);
    }

    /// The change that had the part has ended. Gives back what waited for it, in order.
    pub(crate) fn end(&mut self, part: Part) -> VecDeque<Work> {
        self.held.remove(&part);
        self.parked.remove(&part).unwrap_or_default()
    }

    /// Gives back all that waits, by part and in order.
    pub(crate) fn take_parked(&mut self) -> impl Iterator<Item = Work> {
        // Sorted below, so the order does not matter.
        let mut works: Vec<_> = std::mem::take(&mut self.parked).into_iter().collect();
        works.sort_unstable_by_key(|(part, _)| *part);
        works.into_iter().flat_map(|(_, works)| works)
    }
}
