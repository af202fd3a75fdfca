//! What an owner knows of its disk's record, and what is under way with the directory.

use crate::roster::{Moved, Roster};
use base::Instant;

/// What is under way with the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pending {
    Nothing,
    /// The record shall say this.
    Commit(Roster),
    /// The record is being read, or will be at `retry_at`.
    Fetch,
}

/// What is known of the record.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) version: u64,
    pub(crate) roster: Roster,
    pub(crate) pending: Pending,
    /// Whether the record names this owner.
    pub(crate) is_claimed: bool,
    pub(crate) retry_at: Option<Instant>,
    /// Whether a transaction whose outcome is unknown may yet take effect: as long as the record has the version that it
    /// expects. Only another transaction that takes effect, or fails, rules that out.
    pub(crate) is_unsettled: bool,
    /// When the directory answered last, or told of the record.
    pub(crate) answered_at: Instant,
    /// A later record that was heard of while a transaction was under way: nobody may tell of it again.
    pub(crate) newer: Option<(u64, Roster)>,
    /// How far the disk has moved as the record is to say.
    pub(crate) to_pass: Option<Moved>,
}

impl Recording {
    pub(crate) fn new(version: u64, roster: Roster, now: Instant) -> Recording {
        Recording {
            version,
            roster,
            pending: Pending::Nothing,
            is_claimed: false,
            retry_at: None,
            is_unsettled: false,
            answered_at: now,
            newer: None,
            to_pass: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.pending == Pending::Nothing
    }

    /// Whether a transaction may yet take effect.
    pub(crate) fn is_open(&self) -> bool {
        self.is_unsettled || matches!(self.pending, Pending::Commit(_))
    }
}
