//! What a capture tells of interference: when disks changed, how any two stand to each other, and what that comes to.

use super::correlation::Correlation;
use super::figures::{Change, Role};
use serde::Serialize;

/// What a capture tells of interference between its disks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interference {
    /// Times at which some disk changed, in order.
    pub events: Vec<Incident>,
    /// Pairs of which something is known, in order of disks.
    pub relations: Vec<Relation>,
    /// What it comes to.
    pub verdict: Verdict,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// At least one disk slows another: see [`Interference::relations`].
    Interference,
    /// Disks changed, and no other got less or more by it.
    NoInterference,
    /// Nothing can be concluded: one disk alone, nothing that changed, several possible causes, or no latencies.
    CannotTell,
}

/// A time at which some disk changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Incident {
    /// In seconds after the capture began.
    pub at_s: f64,
    /// All disks, in their order.
    pub changes: Vec<Change>,
}

impl Incident {
    /// The only disk whose role is such a one.
    pub(super) fn only(&self, holds: impl Fn(Role) -> bool) -> Option<usize> {
        let mut found = self.changes.iter().filter(|change| holds(change.role));
        let first = found.next()?;
        found.next().is_none().then_some(first.disk)
    }
}

/// What is known of two disks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relation {
    /// Index of the first disk: the cause, if there is one.
    pub one: usize,
    /// Index of the second: the victim, if there is one.
    pub other: usize,
    /// What it is.
    pub kind: RelationKind,
    /// By how much the second became slower by the first, as a logarithm of a ratio; 0 if it did not.
    pub effect: f64,
    /// By how much the first became slower by the second; none where that was never seen.
    pub effect_back: Option<f64>,
    /// How closely the second's latency follows the first's load.
    pub follows: Option<Correlation>,
}

/// How two disks stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationKind {
    /// The first slows the second, and not, or much less, the other way round.
    CauseAndVictim,
    /// Each slows the other.
    Mutual,
    /// Whether one slows the other cannot be told: see the sentences.
    Unclear,
}
