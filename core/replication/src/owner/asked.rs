//! What requests to components were for, and their answers by what was asked.

use super::backfilling::BackfillStep;
use super::columns::Listed;
use super::copy::CopyWork;
use super::data::Data;
use super::fold::FoldWork;
use super::interface::Lost;
use super::member::{At, Opened};
use super::mends::MendStep;
use super::resync::Listing;
use super::row_check::RowCheckWork;
use super::work::{Key, ReadWork, StatusWork};
use base::Instant;
use base::request::StatusRun;
use wire::{Answer, Refusal};

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
    /// A change, with the numbers before it that are marks for the component.
    Change {
        at: At,
        sequence: u64,
        marks: u8,
    },
    Step(Step),
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
    /// The data of a change that is rolled forward.
    RollRead {
        at: At,
        attempt: u32,
        roll: u32,
    },
    /// To take a change that is rolled forward.
    RollWrite {
        at: At,
        attempt: u32,
        roll: u32,
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
    /// To let what it holds become its content, of a member that is restored.
    Restored {
        at: At,
        attempt: u32,
    },
    /// Whether the member has changes beyond its ceiling.
    Proof {
        at: At,
        attempt: u32,
    },
    /// What the member holds of small changes.
    Held {
        at: At,
        attempt: u32,
    },
    /// What a fold needs of the member.
    FoldRead {
        fold: Key<FoldWork>,
        at: At,
        source: u8,
    },
    /// To take parity that counts what the member held.
    FoldWrite {
        fold: Key<FoldWork>,
        at: At,
    },
    /// To let the bases of a data unit go.
    FoldPromote {
        fold: Key<FoldWork>,
        at: At,
        unit: u8,
    },
    /// Which parts the member has anything of, to compare rows.
    RowParts {
        at: At,
        attempt: u32,
    },
    /// To take parity that was made anew because it did not agree with the data.
    RowMend {
        check: Key<RowCheckWork>,
        at: At,
    },
    /// Which snapshots the member has.
    Snapshots(At),
    /// To take a snapshot.
    Snapshot {
        at: At,
        number: u32,
    },
    /// What is asked so that a member gets a snapshot that it lacks: of that member, or of one that has it.
    Backfill {
        at: At,
        attempt: u32,
        step: BackfillStep,
    },
    /// Which blocks the member found damaged.
    Damage(At),
    /// What is asked so that a damaged block is mended: of the member that has it, or of one that gives it.
    Mend {
        at: At,
        attempt: u32,
        step: MendStep,
    },
    /// To delete a snapshot that the record does not name.
    DropSnapshot {
        at: At,
        number: u32,
    },
    Close,
    /// It was for something that waits for it no more.
    GivenUp(At),
}

/// A request that is given up when its component is late, or serves this owner no more.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Read { work: Key<ReadWork>, at: At },
    Status { work: Key<StatusWork>, at: At },
    CopyRead { work: Key<CopyWork>, at: At },
    CopyWrite { work: Key<CopyWork> },
    Gather { gather: u32, at: At },
    RowCheck { check: Key<RowCheckWork>, at: At, source: u8 },
}

impl Asked {
    /// The member that was asked, or that it is about.
    pub(crate) fn member(&self) -> Option<At> {
        match self {
            Asked::Open(at) | Asked::Change { at, .. } | Asked::FirstSettle { at, .. } => Some(*at),
            Asked::RollRead { at, .. } | Asked::RollWrite { at, .. } | Asked::Changed { at, .. } => Some(*at),
            Asked::Barrier { at, .. } | Asked::Proof { at, .. } | Asked::Doubtful { at, .. } => Some(*at),
            Asked::GivenUp(at) | Asked::Held { at, .. } | Asked::FoldRead { at, .. } => Some(*at),
            Asked::FoldWrite { at, .. } | Asked::FoldPromote { at, .. } | Asked::Restored { at, .. } => {
                Some(*at)
            }
            Asked::Step(Step::Read { at, .. } | Step::Status { at, .. } | Step::CopyRead { at, .. }) => {
                Some(*at)
            }
            Asked::Step(Step::Gather { at, .. } | Step::RowCheck { at, .. }) => Some(*at),
            Asked::RowParts { at, .. } | Asked::RowMend { at, .. } => Some(*at),
            Asked::Snapshots(at) | Asked::Snapshot { at, .. } | Asked::DropSnapshot { at, .. } => Some(*at),
            Asked::Backfill { at, .. } | Asked::Damage(at) | Asked::Mend { at, .. } => Some(*at),
            // A write of a copy is found by its work.
            Asked::Step(Step::CopyWrite { .. }) | Asked::Settle | Asked::Close => None,
        }
    }
}

/// Why a request brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// No answer came, or one of another kind than was asked for: from a node that cannot be relied on.
    Lost,
    /// The component's node refused.
    Refused(Refusal),
}

impl From<Lost> for Unanswered {
    fn from(Lost: Lost) -> Unanswered {
        Unanswered::Lost
    }
}

impl From<Answer> for Unanswered {
    fn from(answer: Answer) -> Unanswered {
        match answer {
            Answer::Refused(refusal) => Unanswered::Refused(refusal),
            _ => Unanswered::Lost,
        }
    }
}

/// The answer to something that was to be done: back-pressure of the component's group, 0..=255.
pub(crate) fn done(answer: Result<Answer, Lost>) -> Result<u8, Unanswered> {
    match answer? {
        Answer::Done { congestion } => Ok(congestion),
        other => Err(other.into()),
    }
}

/// The answer to an opening.
pub(crate) fn opened(answer: Result<Answer, Lost>) -> Result<Opened, Unanswered> {
    match answer? {
        Answer::Opened { watermark, entries } => Ok(Opened { watermark, entries }),
        other => Err(other.into()),
    }
}

/// The answer to a read.
pub(crate) fn data(answer: Result<Answer, Lost>) -> Result<Data, Unanswered> {
    match answer? {
        Answer::Data { pieces, checksums } => Ok(Data { pieces, checksums }),
        other => Err(other.into()),
    }
}

/// The answer to a question about checksums.
pub(crate) fn checksums(answer: Result<Answer, Lost>) -> Result<Vec<Option<u32>>, Unanswered> {
    match answer? {
        Answer::Checksums(checksums) => Ok(checksums),
        other => Err(other.into()),
    }
}

/// The answer to a question about versions.
pub(crate) fn listing(answer: Result<Answer, Lost>) -> Result<Listing, Unanswered> {
    match answer? {
        Answer::Changed { parts, next } => Ok(Listing { parts: parts.into(), next }),
        other => Err(other.into()),
    }
}

/// The answer to a question about what is held.
pub(crate) fn held(answer: Result<Answer, Lost>) -> Result<Listed, Unanswered> {
    match answer? {
        Answer::Held { ranges, next } => Ok(Listed { ranges, next }),
        other => Err(other.into()),
    }
}

/// The answer to a question about snapshots.
pub(crate) fn snapshots(answer: Result<Answer, Lost>) -> Result<Vec<u32>, Unanswered> {
    match answer? {
        Answer::Snapshots(numbers) => Ok(numbers),
        other => Err(other.into()),
    }
}

/// The answer to a question about allocation.
pub(crate) fn allocation(answer: Result<Answer, Lost>) -> Result<Vec<StatusRun>, Unanswered> {
    match answer? {
        Answer::Allocation(runs) => Ok(runs),
        other => Err(other.into()),
    }
}
