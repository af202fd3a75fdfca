//! What stands in a range of some members of rows, read from them or put together from others.
//!
//! Who asks holds the range's lock, so that all that is read is of one moment. A member is asked for its own part; where one cannot give
//! that, as many others are asked as rows have data units, and what is wanted follows from these (`layout::code`).

use super::copy::CopyWork;
use super::found::Found;
use super::member::At;
use super::member_set::MemberSet;
use super::work::{ChangeWork, Key, ReadWork};
use crate::locks::Range;
use base::Share;

/// Who wants to know.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GatherFor {
    Change(Key<ChangeWork>),
    Read(Key<ReadWork>),
    Copy(Key<CopyWork>),
    /// A damaged block that is mended.
    Mend {
        attempt: u32,
    },
    /// A member that is given a snapshot: what that sees of the range that begins there.
    Backfill {
        attempt: u32,
        part: u32,
        block: u16,
    },
    /// A change that is rolled forward.
    Roll {
        at: At,
        attempt: u32,
        roll: u32,
    },
}

/// Why it cannot be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatherFailure {
    /// Too many members have damaged blocks in the range.
    Damaged,
    /// Too few members can be asked now.
    Unreachable,
    /// There is no memory for it now.
    Memory,
}

/// A gathering under way.
#[derive(Debug)]
pub(crate) struct Gather {
    pub(crate) place: u16,
    pub(crate) range: Range,
    /// What is read: that view, or what is there now (0).
    pub(crate) snapshot: u32,
    /// The positions that are wanted.
    pub(crate) wanted: MemberSet,
    /// Members that are not asked, or cannot give what they were asked for.
    pub(crate) except: MemberSet,
    pub(crate) is_damaged: bool,
    pub(crate) found: Found,
    pub(crate) outstanding: u8,
    pub(crate) wanted_by: GatherFor,
    /// What it has of the memory for such, once it is under way.
    pub(crate) share: Option<Share>,
}

impl Gather {
    pub(crate) fn new(
        place: u16,
        range: Range,
        wanted: MemberSet,
        except: MemberSet,
        wanted_by: GatherFor,
    ) -> Gather {
        let found = Found::nothing(range);
        Gather {
            place,
            range,
            snapshot: 0,
            wanted,
            except,
            is_damaged: false,
            found,
            outstanding: 0,
            wanted_by,
            share: None,
        }
    }

    /// The same as a snapshot sees it.
    pub(crate) fn seen_by(self, snapshot: u32) -> Gather {
        Gather { snapshot, ..self }
    }

    /// Whether it remembers something of a member.
    pub(crate) fn names(&self, at: At) -> bool {
        self.place == at.place && self.except.contains(at.member)
    }
}
