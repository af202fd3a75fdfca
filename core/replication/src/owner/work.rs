//! What goes through the range locks: changes, reads, copies.

use super::member_set::MemberSet;
use super::state::At;
use super::{Payload, Token};
use crate::lanes::Range;
use base::request::Pieces;
use base::{Instant, RequestTag, WriteId};

/// What a copy makes of blocks that are not allocated where it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holes {
    /// They are not allocated at the target either.
    Trim,
    /// They are zeroes at the target, for it holds what was changed, and a hole would say "not changed".
    Zero,
    /// Nothing: the target keeps what it has.
    Skip,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Work {
    Change {
        token: Token,
        place: u16,
        range: Range,
        tag: RequestTag,
        /// Whether another node forwarded it.
        is_forwarded: bool,
        payload: Payload,
        /// Whether whoever asked is gone: it is not begun any more.
        is_abandoned: bool,
    },
    /// What becomes of a change that was acknowledged before a component in resync has it: its range stays its own until then,
    /// and may be read.
    Trailing { place: u16, range: Range },
    Read {
        token: Token,
        place: u16,
        range: Range,
        /// Members that answered "damaged" to what is being read.
        damaged: MemberSet,
        began: Instant,
        /// Most blocks that are asked for at once: all, until every member has damaged blocks among them.
        step: u16,
        /// What was read so far, from the beginning of the range.
        read: u16,
        pieces: Pieces,
        /// What is damaged on members, to be written again.
        mends: Vec<(u8, Range)>,
    },
    /// Locks all its parts at once. Changes lock one range each, so nobody waits for it while it waits for them.
    Status {
        token: Token,
        place: u16,
        part: u32,
        count: u16,
        /// Parts that it waits for.
        waits: u32,
    },
    Copy {
        target: At,
        range: Range,
        /// What the regions of the target shall count as.
        id: WriteId,
        /// The attempt of the resync that it is part of; none if it mends damage.
        attempt: Option<u32>,
        /// The only member that may give it; any active one if none.
        source: Option<u8>,
        /// What becomes of what is not allocated there.
        holes: Holes,
        /// Members that cannot give it.
        tried: MemberSet,
        /// Members on which a block of what is being read is damaged.
        damaged: MemberSet,
        /// Whether the present slice is read block by block, for all have damaged blocks in it.
        is_narrowed: bool,
        /// Whether a block is damaged on all.
        is_damaged: bool,
        /// Blocks that were read, from its beginning, and how many of these were put.
        read: u16,
        put: u16,
        /// Whether more is to be read.
        is_reading: bool,
        /// What was read and not sent yet, and the checksums of that.
        pieces: Pieces,
        checksums: Vec<u32>,
        /// Writes under way.
        outstanding: u32,
        bytes: u64,
        has_failed: bool,
    },
}

impl Work {
    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Work::Change { token, .. } | Work::Read { token, .. } | Work::Status { token, .. } => {
                Some(*token)
            }
            Work::Trailing { .. } | Work::Copy { .. } => None,
        }
    }

    /// Whether it is about a member, or remembers something of it.
    pub(crate) fn names(&self, at: At) -> bool {
        match self {
            Work::Change { .. } | Work::Trailing { .. } | Work::Status { .. } => false,
            Work::Read { place, damaged, mends, .. } => {
                *place == at.place
                    && (damaged.contains(at.member) || mends.iter().any(|(member, _)| *member == at.member))
            }
            Work::Copy { target, tried, damaged, source, .. } => {
                let is_named = tried.union(*damaged).contains(at.member) || *source == Some(at.member);
                *target == at || (target.place == at.place && is_named)
            }
        }
    }

    /// Whether a guest waits for it.
    pub(crate) fn is_guests(&self) -> bool {
        self.token().is_some()
    }
}
