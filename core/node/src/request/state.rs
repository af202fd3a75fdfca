//! A guest's request under way: who waits for it, what it is doing, what it was told so far.

use crate::holes::Stamp;
use crate::interface::Token;
use base::RequestTag;
use base::request::{Pieces, Request, RequestError, StatusRun};
use base::units::EXTENT_SIZE;
use iostats::Arrival;
use replication::components::Caller;
use replication::owner;
use smallvec::SmallVec;

/// Who waits for a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requester {
    /// A guest of this node.
    Guest(Token),
    /// A guest of another node.
    Peer { caller: Caller, token: u32 },
    /// The control plane, which has what lies beyond the end of a disk given back.
    Surplus(Token),
}

/// What a request is doing.
#[derive(Debug)]
pub(super) enum Stage {
    /// It has not begun: it waits for its time, or for other changes of its blocks.
    Waiting,
    /// It reads what the guest asked for.
    Reading,
    /// It reads the blocks at its edges that it covers in part: piece 0 the first, piece 1 the last, where they differ.
    ReadingEdges,
    /// It has those, and waits for memory to put the data together.
    HasEdges,
    /// It changes blocks; those before `next` are done or under way.
    Changing { next: u64 },
    /// It was told what is allocated.
    Told(Vec<StatusRun>),
    /// It has the owner ask what is allocated.
    Asking(Questions),
}

/// One request under way.
#[derive(Debug)]
pub(crate) struct RequestState {
    pub(crate) requester: Requester,
    /// The same each time that it is submitted to an owner.
    pub(crate) tag: RequestTag,
    pub(super) disk: u32,
    pub(super) request: Request,
    pub(super) arrival: Option<Arrival>,
    /// When it was begun the last time.
    pub(super) began: base::Instant,
    pub(super) stage: Stage,
    pub(crate) outstanding: u32,
    pub(super) answers: SmallVec<[Pieces; 1]>,
    pub(super) error: Option<RequestError>,
    /// Whether the disk is owned here no more: the request goes to whoever owns it.
    pub(super) is_returned: bool,
    /// Whether its guest is gone: it may end, but it is not begun again.
    pub(crate) is_abandoned: bool,
}

impl RequestState {
    pub(crate) fn disk(&self) -> u32 {
        self.disk
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }
}

/// What a component is asked: some of its parts, and what it said.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) place: usize,
    pub(super) part: u32,
    pub(super) count: u16,
    pub(super) answer: Vec<StatusRun>,
}

impl Question {
    /// The byte of the place up to which it was answered.
    pub(super) fn answer_end(&self) -> u64 {
        u64::from(self.part) * EXTENT_SIZE + self.answer.iter().map(|run| run.len).sum::<u64>()
    }
}

/// Questions about a request.
#[derive(Debug)]
pub(super) struct Questions {
    /// Where the range begins that they are about, and what follows it.
    pub(super) from: u64,
    pub(super) next: u64,
    pub(super) asked: SmallVec<[Question; 1]>,
    pub(super) stamp: Stamp,
}

/// A piece of a guest's request, as an owner names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) request: u32,
    pub(crate) piece: u32,
}

impl Piece {
    /// All changes of a request have one name.
    pub(crate) fn changes_of(request: u32) -> Piece {
        Piece { request, piece: 0 }
    }
}

impl From<Piece> for owner::Token {
    fn from(Piece { request, piece }: Piece) -> owner::Token {
        owner::Token(u64::from(request) << 32 | u64::from(piece))
    }
}

impl From<owner::Token> for Piece {
    fn from(owner::Token(token): owner::Token) -> Piece {
        Piece { request: (token >> 32) as u32, piece: token as u32 }
    }
}
