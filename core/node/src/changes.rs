//! Changes of one disk that overlap. A change that reads first waits for all other changes of its blocks, and they
//! wait for it.

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
}

impl ChangedRange {
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
            && !change.reads_first
            && self.under_way.iter().all(|other| !other.reads_first)
        {
            return true;
        }
        let conflicts =
            |other: &ChangedRange| (change.reads_first || other.reads_first) && change.overlaps(other);
        let is_behind = self.waiting.iter().take_while(|other| other.request != change.request);
        !self.under_way.iter().any(conflicts) && !is_behind.into_iter().any(|other| change.overlaps(other))
    }
}
