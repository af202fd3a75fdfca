//! Changes that have happened, so that a request which is submitted again takes effect once.
//!
//! A node that does not learn how a request ended (its owner fell silent, or the link broke) submits it again, to the same
//! owner or the next. Between, others may have changed the same blocks: done twice, it would undo that. So a change whose
//! tag is known is answered and not done. Known are the changes in the windows that a new owner found, with some before
//! them, and those of other nodes' guests that this owner has ended.

use crate::limits;
use base::RequestTag;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// One change of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) tag: RequestTag,
    pub(crate) place: u16,
    /// With the layer that says what of rows it changes.
    pub(crate) part: u32,
    pub(crate) block: u16,
    pub(crate) count: u16,
}

impl Known {
    fn blocks(&self) -> Range<u16> {
        self.block..self.block + self.count
    }

    /// The blocks that both change. Where a disk moves, a request that is submitted again may be cut elsewhere.
    fn in_common(&self, other: &Known) -> Range<u16> {
        match (self.tag, self.place, self.part) == (other.tag, other.place, other.part) {
            true => self.block.max(other.block)..self.blocks().end.min(other.blocks().end),
            false => 0..0,
        }
    }
}

/// Changes by their request; the oldest of each first.
type OfRequests = FxHashMap<RequestTag, SmallVec<[Known; 1]>>;

/// The last changes of one node's guests.
#[derive(Debug, Default)]
struct Recent {
    of_request: OfRequests,
    /// The requests, oldest first.
    order: VecDeque<RequestTag>,
    /// Changes of all of them.
    count: usize,
}

impl Recent {
    fn ended(&mut self, change: Known) {
        let of_request = self.of_request.entry(change.tag).or_default();
        if of_request.contains(&change) {
            return;
        }
        if of_request.is_empty() {
            self.order.push_back(change.tag);
        }
        match of_request.len() == limits::HAPPENED_OF_REQUEST_MAX {
            true => drop(of_request.remove(0)),
            false => self.count += 1,
        }
        of_request.push(change);
        while self.count > limits::HAPPENED_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.count -= self.of_request.remove(&oldest).map_or(0, |changes| changes.len());
        }
    }
}

/// What has happened.
#[derive(Debug, Default)]
pub(crate) struct Happened {
    /// Found in the windows when the disk was taken over.
    taken_over: OfRequests,
    /// Ended since, by the source of their tags. A node has a bounded number of requests under way, so that what it may
    /// submit again is among its last.
    since: BTreeMap<u32, Recent>,
}

impl Happened {
    /// The changes of a request.
    pub(crate) fn of(&self, tag: RequestTag) -> impl Iterator<Item = &Known> {
        let since = self.since.get(&tag.source()).and_then(|recent| recent.of_request.get(&tag));
        self.taken_over.get(&tag).into_iter().chain(since).flatten()
    }

    pub(crate) fn contains(&self, change: &Known) -> bool {
        self.of(change.tag).any(|one| one.in_common(change) == change.blocks())
    }

    /// The blocks of a change that have happened.
    pub(crate) fn within(&self, change: &Known) -> impl Iterator<Item = Range<u16>> {
        self.of(change.tag).map(|one| one.in_common(change)).filter(|blocks| !blocks.is_empty())
    }

    pub(crate) fn ended(&mut self, change: Known) {
        self.since.entry(change.tag.source()).or_default().ended(change);
    }

    /// These were found in the windows.
    pub(crate) fn take_over(&mut self, changes: impl Iterator<Item = Known>) {
        for change in changes {
            let of_request = self.taken_over.entry(change.tag).or_default();
            if !of_request.contains(&change) {
                of_request.push(change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(source: u64, number: u64) -> Known {
        Known { tag: RequestTag(source << 32 | number), place: 0, part: 0, block: 0, count: 8 }
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
        assert!(happened.since[&1].count <= limits::HAPPENED_MAX);
    }

    #[test]
    fn the_pieces_of_a_request_are_told_apart() {
        let mut happened = Happened::default();
        happened.ended(change(1, 1));
        assert!(!happened.contains(&Known { block: 1, ..change(1, 1) }));
        assert!(!happened.contains(&Known { place: 1, ..change(1, 1) }));
    }

    /// A request over the boundary of a disk that moves is cut there, and begins as one that is not. It was taken to have happened as a whole
    /// once its first piece had.
    #[test]
    fn of_a_longer_change_only_what_has_happened_is_known() {
        let mut happened = Happened::default();
        let (first, whole) = (change(1, 1), Known { count: 40, ..change(1, 1) });
        happened.ended(first);
        assert!(!happened.contains(&whole));
        assert!(happened.within(&whole).eq(std::iter::once(0..8)));
        let last = Known { block: 32, ..first };
        happened.ended(last);
        assert_eq!(happened.within(&whole).collect::<Vec<_>>(), [0..8, 32..40]);
        assert!(happened.contains(&Known { block: 34, count: 2, ..first }));
        happened.take_over([whole, whole].into_iter());
        assert!(happened.contains(&whole));
        assert_eq!(happened.of(whole.tag).count(), 3);
    }
}
