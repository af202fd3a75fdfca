//! One fold: columns of a row whose small changes the parity is made to count (docs/design/0040, 16).

use super::data::Data;
use crate::locks::{LockKey, Range};
use smallvec::SmallVec;

/// Why columns cannot be folded now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldFailure {
    /// Too many members have damaged blocks there.
    Damaged,
    /// Members that count cannot be asked, or memory is short.
    NotNow,
}

/// What is read of a member.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) member: u8,
    /// The layer that is read.
    pub(crate) layer: u8,
    pub(crate) of: Of,
    pub(crate) data: Option<Data>,
}

/// What that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// The newest version of a data unit.
    Newest(u8),
    /// What parity counts of a data unit.
    Base(u8),
    /// A parity unit.
    Parity(u8),
}

/// A fold under way.
#[derive(Debug)]
pub(crate) struct FoldWork {
    pub(crate) place: u16,
    /// Columns of one row.
    pub(crate) range: Range,
    /// Who waits for the columns to be clear: a change or a copy, which has locked them, or a read, which locks them again.
    pub(crate) waiter: Option<LockKey>,
    /// What of them is folded now: all, or one after the other where a member is missing.
    pub(crate) now: Range,
    pub(crate) sources: Vec<Source>,
    /// Members and layers that have damaged blocks in what is folded now.
    pub(crate) damaged: SmallVec<[(u8, u8); 2]>,
    pub(crate) failure: Option<FoldFailure>,
    pub(crate) outstanding: u8,
}

impl FoldWork {
    pub(crate) fn new(place: u16, range: Range, waiter: Option<LockKey>) -> FoldWork {
        FoldWork {
            place,
            range,
            waiter,
            now: range,
            sources: Vec::new(),
            damaged: SmallVec::new(),
            failure: None,
            outstanding: 0,
        }
    }

    /// The next columns. False if there are none.
    pub(crate) fn go_on(&mut self) -> bool {
        let (end, next) = (self.range.block + self.range.count, self.now.block + self.now.count);
        (self.now.block, self.damaged) = (next, SmallVec::new());
        self.now.count = self.now.count.min(end - next);
        next < end
    }
}
