//! Changes of one disk that overlap. A change that reads first waits for all other changes of its blocks, and they
//! wait for it.

use std::ops::Range;

/// The range of bytes that a request changes, rounded to whole blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangedRange {
    pub(crate) request: u32,
    /// First byte.
    pub(crate) start: u64,
    /// The byte behind the last one.
    pub(crate) end: u64,
    /// Whether it reads blocks at its edges before it writes them.
    pub(crate) reads_first: bool,
    /// Whether it has its blocks for itself in any case.
    pub(crate) is_apart: bool,
}

impl ChangedRange {
    /// A range that is nobody else's meanwhile.
    pub(crate) fn apart(request: u32, range: Range<u64>) -> ChangedRange {
        ChangedRange { request, start: range.start, end: range.end, reads_first: false, is_apart: true }
    }

    fn is_exclusive(&self) -> bool {
        self.reads_first || self.is_apart
    }

    fn overlaps(&self, other: &ChangedRange) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// The changes of one disk.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    under_way: Vec<ChangedRange>,
    /// Changes that wait for others, in order.
    waiting: Vec<ChangedRange>,
}

impl Changes {
    /// Begins a change if it may begin now; otherwise the change waits. Returns whether it began.
    pub(crate) fn begin_or_wait(&mut self, change: ChangedRange) -> bool {
        let may_begin = self.may_begin(&change);
        if may_begin {
            self.under_way.push(change)
        } else {
            self.waiting.push(change)
        }
        may_begin
    }

    /// Begins a change that [`Changes::take_ready`] gave.
    pub(crate) fn begin(&mut self, change: ChangedRange) {
        self.under_way.push(change);
    }

    /// Ends the change of a request. Returns whether the request had one under way.
    pub(crate) fn end(&mut self, request: u32) -> bool {
        let index = self.under_way.iter().position(|change| change.request == request);
        index.map(|index| self.under_way.swap_remove(index)).is_some()
    }

    /// Takes out the first waiting change from index `from` on that may begin now. Sets `from` to the index that it
    /// had.
    pub(crate) fn take_ready(&mut self, from: &mut usize) -> Option<ChangedRange> {
        while let Some(change) = self.waiting.get(*from) {
            if self.may_begin(change) {
                return Some(self.waiting.remove(*from));
            }
            *from += 1;
        }
        None
    }

    /// Changes that wait and have blocks of that range have these for themselves.
    pub(crate) fn keep_apart(&mut self, range: Range<u64>) {
        let is_in = |one: &&mut ChangedRange| range.start < one.end && one.start < range.end;
        self.waiting.iter_mut().filter(is_in).for_each(|one| one.is_apart = true);
    }

    /// Forgets the changes of some names, waiting or not.
    pub(crate) fn forget(&mut self, is_one: impl Fn(u32) -> bool) {
        self.under_way.retain(|change| !is_one(change.request));
        self.waiting.retain(|change| !is_one(change.request));
    }

    /// The changes under way, followed by the waiting ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ChangedRange> {
        self.under_way.iter().chain(&self.waiting)
    }

    /// The changes under way.
    pub(crate) fn under_way(&self) -> &[ChangedRange] {
        &self.under_way
    }

    fn may_begin(&self, change: &ChangedRange) -> bool {
        if self.waiting.is_empty()
            && !change.is_exclusive()
            && self.under_way.iter().all(|other| !other.is_exclusive())
        {
            return true;
        }
        let conflicts =
            |other: &ChangedRange| (change.is_exclusive() || other.is_exclusive()) && change.overlaps(other);
        let is_behind = self.waiting.iter().take_while(|other| other.request != change.request);
        !self.under_way.iter().any(conflicts) && !is_behind.into_iter().any(|other| change.overlaps(other))
    }
}
