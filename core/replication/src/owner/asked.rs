//! What requests to components were for.

use super::state::At;
use base::Instant;
use wire::Answer;

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    pub(crate) since: Instant,
}

/// What a request to a component was for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked {
    Open(At),
    Change {
        at: At,
        sequence: u64,
    },
    Read {
        work: u32,
        at: At,
    },
    Status {
        work: u32,
        at: At,
    },
    /// The last step of opening a place.
    FirstSettle {
        at: At,
        attempt: u32,
    },
    Settle,
    /// A watermark that changes wait for.
    Barrier {
        at: At,
        attempt: u32,
    },
    Roll {
        at: At,
        attempt: u32,
        roll: u32,
        is_read: bool,
    },
    Changed {
        at: At,
        attempt: u32,
        of_target: bool,
    },
    /// Whether the stand-in of that member has what the member may have got wrong.
    Doubtful {
        at: At,
        attempt: u32,
    },
    /// Whether the member has changes beyond its ceiling.
    Proof {
        at: At,
        attempt: u32,
    },
    CopyRead {
        work: u32,
        at: At,
    },
    CopyWrite {
        work: u32,
    },
    Close,
    /// It was for something that waits for it no more.
    GivenUp(At),
}

impl Asked {
    /// The member that was asked, or that it is about.
    pub(crate) fn member(&self) -> Option<At> {
        match self {
            Asked::Open(at) | Asked::Change { at, .. } => Some(*at),
            Asked::Read { at, .. } | Asked::Status { at, .. } => Some(*at),
            Asked::FirstSettle { at, .. } | Asked::Roll { at, .. } | Asked::Changed { at, .. } => Some(*at),
            Asked::Barrier { at, .. } | Asked::Proof { at, .. } => Some(*at),
            Asked::CopyRead { at, .. } | Asked::Doubtful { at, .. } | Asked::GivenUp(at) => Some(*at),
            // A write of a copy is found by its work.
            Asked::CopyWrite { .. } | Asked::Settle | Asked::Close => None,
        }
    }

    /// Whether that is an answer to it.
    pub(crate) fn takes(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (_, Answer::Refused(_)) | (Asked::GivenUp(_), _) => true,
            (Asked::Open(_), Answer::Opened { .. }) => true,
            (Asked::Read { .. } | Asked::CopyRead { .. }, Answer::Data { .. }) => true,
            (Asked::Doubtful { .. }, Answer::Data { .. }) => true,
            (Asked::Status { .. }, Answer::Allocation(_)) => true,
            (Asked::Roll { is_read, .. }, Answer::Data { .. }) => *is_read,
            (Asked::Roll { is_read, .. }, Answer::Done { .. }) => !is_read,
            (Asked::Changed { .. } | Asked::Proof { .. }, Answer::Changed { .. }) => true,
            (Asked::Change { .. } | Asked::CopyWrite { .. }, Answer::Done { .. }) => true,
            (Asked::FirstSettle { .. } | Asked::Barrier { .. }, Answer::Done { .. }) => true,
            (Asked::Settle | Asked::Close, Answer::Done { .. }) => true,
            (_, _) => false,
        }
    }
}
