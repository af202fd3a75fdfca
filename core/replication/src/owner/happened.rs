//! Changes that have happened, so that a request which is submitted again takes effect once.
//!
//! A node that does not learn how a request ended (its owner fell silent, or the link broke) submits it again, to the same
//! owner or the next. Between, others may have changed the same blocks: done twice, it would undo that. So a change whose
//! tag is known is answered and not done. Known are the changes in the windows that a new owner found, with some before
//! them, and those of other nodes' guests that this owner has ended.

use crate::limits;
use base::RequestTag;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

/// One change of a request: requests are cut into changes in the same way each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) tag: RequestTag,
    pub(crate) place: u16,
    pub(crate) part: u32,
    pub(crate) block: u16,
}

/// The last changes of one node's guests.
#[derive(Debug, Default)]
struct Recent {
    known: FxHashSet<Known>,
    /// Those, by request; the oldest of each first.
    of_request: FxHashMap<RequestTag, SmallVec<[Known; 1]>>,
    /// The requests, oldest first.
    order: VecDeque<RequestTag>,
}

impl Recent {
    fn ended(&mut self, change: Known) {
        if !self.known.insert(change) {
            return;
        }
        let of_request = self.of_request.entry(change.tag).or_default();
        if of_request.is_empty() {
            self.order.push_back(change.tag);
        }
        if of_request.len() == limits::HAPPENED_OF_REQUEST_MAX {
            self.known.remove(&of_request.remove(0));
        }
        of_request.push(change);
        while self.known.len() > limits::HAPPENED_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            for one in self.of_request.remove(&oldest).into_iter().flatten() {
                self.known.remove(&one);
            }
        }
    }
}

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    /// Found in the windows when the disk was taken over.
    taken_over: FxHashSet<Known>,
    /// Ended since, by the source of their tags. A node has a bounded number of requests under way, so that what it may
    /// submit again is among its last.
    since: BTreeMap<u32, Recent>,
}

impl Happened {
    pub(crate) fn contains(&self, change: &Known) -> bool {
        self.taken_over.contains(change)
            || self.since.get(&change.tag.source()).is_some_and(|recent| recent.known.contains(change))
    }

    pub(crate) fn ended(&mut self, change: Known) {
        self.since.entry(change.tag.source()).or_default().ended(change);
    }

    /// These were found in the windows.
    pub(crate) fn take_over(&mut self, changes: impl Iterator<Item = Known>) {
        self.taken_over.extend(changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(source: u64, number: u64) -> Known {
        Known { tag: RequestTag(source << 32 | number), place: 0, part: 0, block: 0 }
    }

    #[test]
    fn the_last_changes_of_each_node_are_known_however_many_another_makes() {
        let mut happened = Happened::default();
        happened.ended(change(1, 1));
        (0..limits::HAPPENED_MAX as u64 * 2).for_each(|number| happened.ended(change(2, number)));
        assert!(happened.contains(&change(1, 1)));
        assert!(happened.contains(&change(2, limits::HAPPENED_MAX as u64 * 2 - 1)));
        assert!(!happened.contains(&change(2, 0)), "what is long past is forgotten");
    }

    /// A trim of 64 GiB is 65,536 changes: it pushed every other request of its node out, which were done again when they were submitted
    /// again.
    #[test]
    fn a_large_trim_leaves_the_other_requests_of_its_node_known() {
        let mut happened = Happened::default();
        (0..2000).for_each(|number| happened.ended(change(1, number)));
        for part in 0..65_536 {
            happened.ended(Known { part, ..change(1, 5000) });
        }
        assert!((0..2000).all(|number| happened.contains(&change(1, number))));
        assert!(happened.contains(&Known { part: 65_535, ..change(1, 5000) }));
        assert!(happened.since[&1].known.len() <= limits::HAPPENED_MAX);
    }

    #[test]
    fn the_pieces_of_a_request_are_told_apart() {
        let mut happened = Happened::default();
        happened.ended(change(1, 1));
        assert!(!happened.contains(&Known { block: 1, ..change(1, 1) }));
        assert!(!happened.contains(&Known { place: 1, ..change(1, 1) }));
    }
}
