//! What is tried, what may happen, and what may be found wrong.

use crate::moves::rule::Rule;
use crate::parts::Id;

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Owners, one after the other, 1 to 3.
    pub epochs: u8,
    /// Writes in all.
    pub writes: u8,
    /// How often the move may be turned round.
    pub turns: u8,
    /// The rule that is taken out.
    pub without: Option<Rule>,
}

impl Config {
    /// Whether a rule is in.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// One step of somebody. `owner` is the epoch of who takes it.
#[allow(missing_docs, reason = "the fields are what the step's words name")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A new owner raises the epoch in the record, and reads it.
    TakeOver,
    /// Somebody turns the move round.
    Turn,
    /// A component promises the epoch.
    Open { owner: u8, place: usize },
    /// The owner serves.
    Serve { owner: u8 },
    /// A guest writes or trims.
    Write { owner: u8, block: usize, is_trim: bool },
    /// The write gets its lock in a place.
    LockWrite { owner: u8, place: usize },
    /// A write reaches a component.
    Deliver { owner: u8, place: usize },
    /// The guest learns that its write is done.
    Acknowledge { owner: u8 },
    /// The write has reached all that it was sent to.
    End { owner: u8 },
    /// The next granule begins.
    Begin { owner: u8 },
    /// The copy gets its lock in a place.
    LockCopy { owner: u8, place: usize },
    /// The granule is copied.
    Copy { owner: u8 },
    /// Acknowledgements wait for both layouts from here on.
    CatchUp { owner: u8 },
    /// The owner asks the record to pass the granule.
    Ask { owner: u8 },
    /// The transaction takes effect.
    Pass,
    /// The owner reads the record, and rules out what may still take effect.
    Learn { owner: u8 },
    /// The owner trims a block where it does not count any more.
    Trim { owner: u8, place: usize, block: usize },
    /// The trim reaches the component.
    DeliverTrim { owner: u8 },
}

/// What went wrong.
#[allow(missing_docs, reason = "the fields are what the sentence names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A read returned less than a guest knew already.
    Lost { block: usize, found: Id, known: Id },
    /// A read returned a write that an owner had decided not to be there.
    CameBack { block: usize, found: Id, known: Id },
    /// A write and a copy wait for each other.
    Deadlock { block: usize },
}
