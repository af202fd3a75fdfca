//! The space of one device: which extents are free, and how many of them are spoken for.
//!
//! Space is promised by count when a write is accepted, and the extent is chosen when the promise is kept. Today both
//! happen in one step, for a write's record names the extent (docs/design/0035).

use crate::bits::BitSet;
use crate::limits;
use std::collections::VecDeque;

/// One extent of a device, promised and not chosen yet. [`Space::choose`] keeps the promise.
#[derive(Debug)]
#[must_use = "a promise that is not kept holds an extent for ever"]
pub(crate) struct SpacePromise(());

/// Whose extent is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// One that is set aside for the component.
    Reserved,
    /// One that is set aside for nobody.
    Unreserved,
}

/// The extents of one device that hold nothing.
#[derive(Debug)]
pub(crate) struct Space {
    free: BitSet,
    /// Extents that become free when the destaging that writes to them has ended.
    releasing: BitSet,
    /// Where the search for a free extent begins.
    next_from: u32,
    /// Free extents that were written as a whole a short while ago, oldest first; some may be taken again already.
    warm: VecDeque<u32>,
    /// Extents set aside for components that have not taken them yet.
    reserved: u64,
    /// Promises that are not kept yet; never more than there are free extents.
    promised: u32,
    /// Extents that promises of frames and pages may need beyond what pools and chunks have (`pools.rs`).
    spoken_for: u32,
}

impl Space {
    /// That of a device with so many extents, none of which is known to be free.
    pub(crate) fn new(extents: u32) -> Space {
        Space {
            free: BitSet::new(extents),
            releasing: BitSet::new(extents),
            next_from: 0,
            warm: VecDeque::new(),
            reserved: 0,
            promised: 0,
            spoken_for: 0,
        }
    }

    /// Free extents, promised ones among them.
    pub(crate) fn free_count(&self) -> u32 {
        self.free.count()
    }

    /// Extents set aside for components that have not taken them yet.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    /// Extents that are free, not promised, and not set aside for a component that has a reservation.
    pub(crate) fn unreserved(&self) -> u64 {
        u64::from(self.free.count().saturating_sub(self.promised + self.spoken_for))
            .saturating_sub(self.reserved)
    }

    /// What is set aside for a component changes from `before` to `after` extents.
    pub(crate) fn reserve(&mut self, before: u32, after: u32) {
        self.reserved = self.reserved - u64::from(before) + u64::from(after);
    }

    /// Takes an extent for the group itself, if it is free.
    pub(crate) fn take_this(&mut self, extent: u32) -> bool {
        self.free.remove(extent)
    }

    /// Promises an extent; `None` if none is left for that claim.
    pub(crate) fn promise(&mut self, claim: Claim) -> Option<SpacePromise> {
        let is_covered = claim == Claim::Reserved || self.unreserved() > 0;
        if !is_covered || self.free.count() <= self.promised + self.spoken_for {
            return None;
        }
        self.promised += 1;
        Some(SpacePromise(()))
    }

    /// Whether so many extents are free beside those that writes were promised.
    pub(crate) fn covers(&self, extents: u32) -> bool {
        self.free.count().saturating_sub(self.promised) >= extents
    }

    /// Extents that promises of frames and pages may need.
    pub(crate) fn spoken_for(&self) -> u32 {
        self.spoken_for
    }

    /// So many extents may be needed for frames and pages.
    pub(crate) fn set_spoken_for(&mut self, extents: u32) {
        self.spoken_for = extents;
    }

    /// Takes an extent for frames or pages, if one is free that no write was promised. What was promised of frames and pages comes first.
    pub(crate) fn take(&mut self) -> Option<u32> {
        if self.free.count() <= self.promised {
            return None;
        }
        self.promised += 1;
        Some(self.choose(SpacePromise(())))
    }

    /// Keeps a promise: takes a warm extent, or one near the last taken.
    pub(crate) fn choose(&mut self, _promise: SpacePromise) -> u32 {
        self.promised -= 1;
        while let Some(extent) = self.warm.pop_front() {
            if self.free.remove(extent) {
                return extent;
            }
        }
        let extent = self.free.next_from(self.next_from).or_else(|| self.free.next_from(0));
        let extent = extent.expect("no more extents are promised than are free");
        self.free.remove(extent);
        self.next_from = extent + 1;
        extent
    }

    /// An extent holds nothing any more.
    pub(crate) fn release(&mut self, extent: u32) {
        self.free.insert(extent);
    }

    /// As [`Space::release`], for an extent that has just been replaced by another, to be taken next: a file's blocks stay
    /// allocated and a flash device need not be told. False, and nothing is done, when enough of such wait already.
    pub(crate) fn release_warm(&mut self, extent: u32) -> bool {
        if self.warm.len() >= limits::WARM_EXTENTS_MAX {
            return false;
        }
        self.free.insert(extent);
        self.warm.push_back(extent);
        true
    }

    /// An extent holds nothing any more, but is still written to.
    pub(crate) fn release_later(&mut self, extent: u32) {
        self.releasing.insert(extent);
    }

    /// An extent is not written to any more. Says whether it waited for that to be released.
    pub(crate) fn end_writing(&mut self, extent: u32) -> bool {
        self.releasing.remove(extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(free: u32) -> Space {
        let mut space = Space::new(8);
        (0..free).for_each(|extent| space.release(extent));
        space
    }

    #[test]
    fn no_more_is_promised_than_is_free_and_every_promise_is_kept() {
        let mut space = space(2);
        let first = space.promise(Claim::Unreserved).expect("two are free");
        let second = space.promise(Claim::Unreserved).expect("one is left");
        assert!(space.promise(Claim::Unreserved).is_none() && space.promise(Claim::Reserved).is_none());
        assert_ne!(space.choose(first), space.choose(second));
        assert_eq!((space.free_count(), space.unreserved()), (0, 0));
    }

    #[test]
    fn what_is_set_aside_is_promised_to_those_alone_who_have_it() {
        let mut space = space(3);
        space.reserve(0, 2);
        let unreserved = space.promise(Claim::Unreserved).expect("one is set aside for nobody");
        assert!(space.promise(Claim::Unreserved).is_none(), "the others are set aside");
        let reserved = space.promise(Claim::Reserved).expect("it is set aside");
        space.reserve(2, 1);
        assert!(space.promise(Claim::Unreserved).is_none(), "one is still set aside");
        assert_ne!(space.choose(unreserved), space.choose(reserved));
        assert_eq!(space.free_count(), 1);
    }

    #[test]
    fn an_extent_that_was_replaced_is_taken_next() {
        let mut space = space(4);
        let promise = space.promise(Claim::Unreserved).expect("four are free");
        assert_eq!(space.choose(promise), 0);
        assert!(space.release_warm(0));
        let promise = space.promise(Claim::Unreserved).expect("four are free");
        assert_eq!(space.choose(promise), 0);
    }
}
