//! What is tried, what may happen, and what may be found wrong.

use crate::parity::read::Fault;
use crate::parity::rule::Rule;
use crate::parity::state::Kind;
use crate::parts::{Id, Set};

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Parity members, 1 or 2.
    pub parity: usize,
    /// Owners, one after the other, 1 to 3.
    pub epochs: u8,
    /// Writes in all.
    pub writes: u8,
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
    /// A new owner raises the epoch in the record.
    TakeOver,
    /// The record has a member out of the active ones.
    Shrink { owner: u8, member: usize },
    /// A member promises the epoch.
    Open { owner: u8, member: usize },
    /// A member gets the write that was under way.
    Put { owner: u8, member: usize, id: Id },
    /// A member takes the row write back that was under way.
    Drop { owner: u8, member: usize, id: Id },
    /// A member has the watermark of the new epoch.
    Stamp { owner: u8, member: usize },
    /// The owner serves.
    Serve { owner: u8 },
    /// A guest writes.
    Write { owner: u8, kind: Kind },
    /// A write reaches a member.
    Deliver { owner: u8, member: usize },
    /// A member has no room for a write.
    Refuse { owner: u8, member: usize },
    /// A member takes the refused write back.
    TakeBack { owner: u8, member: usize },
    /// The guest learns that its write is done.
    Acknowledge { owner: u8 },
    /// The write has reached the member in resync, too, or there is none any more.
    End { owner: u8 },
    /// A fold begins.
    Fold { owner: u8, is_delta: bool },
    /// A fold reaches a parity member, or the second half of it where it is not one batch.
    DeliverFold { owner: u8, member: usize },
    /// The fold's lock ends.
    EndFold { owner: u8 },
    /// A data member drops its base.
    Promote { owner: u8, member: usize },
    /// A decoding read has parity, and not the rest.
    BeginDecode { owner: u8, member: usize, block: usize },
    /// It has the rest.
    EndDecode,
    /// A member learns what is decided.
    SendWatermark { owner: u8, member: usize },
    /// A resync begins.
    Attach { owner: u8, member: usize },
    /// A resync is given up.
    Abandon { owner: u8 },
    /// The unit of the member in resync is made anew.
    Remake { owner: u8, member: usize },
    /// The unit is right, and acknowledgements wait for the member from here on.
    CatchUp { owner: u8 },
    /// The record has the member among the active ones again.
    Grow { owner: u8, member: usize },
}

/// What went wrong.
#[allow(missing_docs, reason = "the fields are what the sentence names")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// A block cannot be read from members that should suffice.
    Unreadable { block: usize, from: Set, fault: Fault },
    /// A read returned less than a guest knew already.
    Lost { block: usize, from: Set, found: Id, known: Id },
    /// A read returned a write that an owner had decided not to be there.
    CameBack { block: usize, found: Id, known: Id },
    /// A row write must be taken back, and what stood before is gone.
    CannotDrop { member: usize },
    /// A unit of a row write cannot be decoded from those who hold it.
    CannotPut { member: usize },
    /// A fold adds a difference to a parity that does not count where it begins.
    WrongFold { member: usize },
}
