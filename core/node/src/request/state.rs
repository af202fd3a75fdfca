//! A guest's request under way: its requester, its step, and the results so far.

use crate::holes::Stamp;
use crate::interface::Token;
use crate::mover::Follower;
use crate::origin::Region;
use crate::range::range_of;
use base::request::{Pieces, Request, RequestError, StatusRun};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use base::{RequestTag, Share};
use iostats::Arrival;
use replication::components::Caller;
use replication::owner;
use smallvec::SmallVec;
use std::ops::Range;

/// The requester.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Requester {
    /// A guest of this node.
    Guest(Token),
    /// A guest of another node.
    Peer { caller: Caller, token: u32 },
    /// The control plane, which frees the space beyond the end of a disk.
    Surplus(Token),
    /// A request of a clone on this node, which reads its origin.
    Clone { request: u32, piece: u32 },
}

/// What has let a request begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Nothing yet.
    No,
    /// Nothing; it waits for an owner, or did, and does not wait for congestion besides.
    Held,
    /// The limits of its disk.
    ByLimits,
    /// The congestion of the components, too.
    Fully,
}

/// The step of a request.
#[derive(Debug)]
pub(super) enum Stage {
    /// It has not begun: it waits for its time, or for other changes of its blocks.
    Waiting,
    /// It reads for the guest.
    Reading,
    /// It reads the blocks at its edges that it covers in part: piece 0 is the first, piece 1 the last if they
    /// differ.
    ReadingEdges,
    /// It has read these, and waits for memory to join the data.
    HasEdges,
    /// It changes blocks up to `end`; those before `next` are done or under way.
    Changing { next: u64, end: u64 },
    /// It learns where the regions of a clone stand.
    Learning(Lessons),
    /// It has its answer about allocation.
    Told(Vec<StatusRun>),
    /// The owner asks components about allocation.
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
    /// What has let it begin so far.
    pub(super) admitted: Admitted,
    /// Whether this node no longer owns the disk, so that the request goes to the owner.
    pub(super) is_returned: bool,
    /// Whether its change has its blocks for itself.
    pub(crate) is_apart: bool,
    /// What of it is to happen on the other side of a disk that moves.
    pub(crate) followers: Vec<Follower>,
    /// Whether its guest is gone: the request may end, but does not begin again.
    pub(crate) is_abandoned: bool,
    /// The owner that it was begun with.
    pub(super) reign: Option<u64>,
    /// What it covers in part, and reads before it changes anything: blocks, or regions of a clone that are its origin's.
    pub(super) edges: SmallVec<[Range<u64>; 2]>,
    /// Of a guest's read, what it has of the memory for such.
    pub(super) share: Option<Share>,
}

impl RequestState {
    pub(crate) fn disk(&self) -> u32 {
        self.disk
    }

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    /// Whether some of it did not happen.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Whether it reads or changes something.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Waiting | Stage::Told(_))
    }

    /// Whether it reads or changes something of that range.
    pub(crate) fn has_begun_in(&self, range: &Range<u64>) -> bool {
        let (offset, len) = range_of(&self.request);
        let (start, end) = (offset / BLOCK_SIZE * BLOCK_SIZE, (offset + len).next_multiple_of(BLOCK_SIZE));
        self.has_begun() && start < range.end && range.start < end
    }
}

/// A question to a component about some of its parts, with the answer.
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
    /// What of a request happens on the other side of a disk that moves.
    const FOLLOWER: u32 = u32::MAX;

    pub(crate) fn follower_of(request: u32) -> Piece {
        Piece { request, piece: Piece::FOLLOWER }
    }

    pub(crate) fn is_follower(piece: u32) -> bool {
        piece == Piece::FOLLOWER
    }

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

/// What a request learns of a clone's regions.
#[derive(Debug)]
pub(super) struct Lessons {
    pub(super) lessons: Vec<Lesson>,
    /// When these were begun ([`crate::origin::Regions::begin_lesson`]).
    pub(super) stamp: u64,
    /// What follows.
    pub(super) then: Then,
}

/// What is asked, and what was answered where that is not read.
#[derive(Debug, Clone)]
pub(super) enum Lesson {
    /// Where the origin has anything.
    Backed { bytes: Range<u64>, told: Vec<StatusRun> },
    /// Whether the first block of a region is allocated in the clone, or in a snapshot of it (not 0).
    Own { snapshot: u32, region: Region },
}

/// What follows a lesson.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    /// The request starts.
    Start,
    /// It goes on to change blocks.
    Change { next: u64, end: u64 },
}
