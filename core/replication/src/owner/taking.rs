//! A snapshot of the disk that is being taken.

use super::backfilling::Backfilling;
use super::looked::Looked;
use super::member::At;
use crate::roster::Roster;
use crate::snapshots::NotTaken;
use base::{ComponentId, Instant};

/// How far the taking of a snapshot is.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Parity of rows is made to count what is held. Changes go on.
    Folding,
    /// Changes that are under way end. Later ones wait.
    Draining,
    /// Nothing is under way. Changes wait until the owners of other disks say the same.
    Holding,
    /// Components are told to take it. Changes wait.
    Marking { waiting: Vec<At>, marked: Vec<ComponentId> },
    /// All that count have it: the record shall say so. Changes go on.
    Recording { marked: Vec<ComponentId>, held_ns: u64 },
    /// The same of one that other disks are to have at the same moment: when the record says so, others decide.
    AwaitingOthers { marked: Vec<ComponentId>, held_ns: u64 },
}

/// A snapshot that is being taken.
#[derive(Debug)]
pub(crate) struct Taking {
    pub(crate) number: u32,
    /// When changes began to wait; before that, when it was begun.
    pub(crate) since: Instant,
    pub(crate) stage: Stage,
    /// Whether other disks are to have it at the same moment.
    pub(crate) is_together: bool,
}

impl Taking {
    /// Whether changes wait for it.
    pub(crate) fn holds(&self) -> bool {
        match self.stage {
            Stage::Draining | Stage::Holding | Stage::Marking { .. } => true,
            Stage::Folding | Stage::Recording { .. } | Stage::AwaitingOthers { .. } => false,
        }
    }
}

impl Stage {
    /// Whether components are still to be told.
    pub(crate) fn is_before_marks(&self) -> bool {
        match self {
            Stage::Folding | Stage::Draining | Stage::Holding | Stage::Marking { .. } => true,
            Stage::Recording { .. } | Stage::AwaitingOthers { .. } => false,
        }
    }
}

/// What is under way about snapshots.
#[derive(Debug, Default)]
pub(crate) struct SnapshotsUnderWay {
    pub(crate) taking: Option<Taking>,
    /// Numbers up to this one may have been used by an attempt.
    pub(crate) burned: u32,
    /// Why the one that is asked for cannot be taken: the record shall say so.
    pub(crate) not_taken: Option<NotTaken>,
    /// No attempt, list or deletion is begun before this time, because one failed.
    pub(crate) rests_until: Option<Instant>,
    /// The snapshot that a component gets which lacks it, and until when none is begun.
    pub(crate) backfilling: Option<Backfilling>,
    pub(crate) backfills_rest_until: Option<Instant>,
    /// What was seen when this was looked at last.
    pub(crate) looked: Looked,
    /// Attempts in a row for which changes waited as long as they may.
    pub(crate) overdue: u32,
    /// Attempts in a row that members of rows refused: they may hold what this owner does not know of.
    pub(crate) refused: u32,
}

impl SnapshotsUnderWay {
    /// Those of an owner that begins with that record: an owner before it may have used each number that the record has.
    pub(crate) fn of(roster: &Roster) -> SnapshotsUnderWay {
        SnapshotsUnderWay { burned: roster.snapshots.last, ..SnapshotsUnderWay::default() }
    }
}
