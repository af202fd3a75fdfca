//! Device requests under way, and what each is for.

use crate::checkpoint::AnchorCopy;
use crate::destage::LogRun;
use crate::effort::Direction;
use crate::format::anchor::Anchor;
use crate::io::Io;
use crate::unreadable::{BadBlocks, Ended, ReadRequest};
use base::{Buffer, Instant};
use slab::Slab;

/// What a device request was for.
#[derive(Debug)]
pub(crate) enum Purpose {
    Batch,
    Direct(u32),
    Read {
        read: u32,
        run: u16,
    },
    Page {
        member: u8,
        page: u32,
        buffer: Buffer,
    },
    DestageRead {
        destage: u32,
        run: LogRun,
        buffer: Buffer,
    },
    DestageWrite {
        destage: u32,
    },
    /// Writes blocks that a snapshot is given.
    Backfill(u32),
    /// Reads frames of the part that is written anew, from that one of its list on.
    RewriteRead {
        first: u16,
    },
    /// Writes its fresh frames.
    RewriteWrite,
    CarryRead {
        run: LogRun,
        buffer: Buffer,
    },
    CheckpointFlush,
    /// Fills an extent that becomes a chunk of the table with zeroes.
    Chunk {
        member: u8,
        extent: u32,
    },
    PageWrite {
        member: u8,
        page: u32,
    },
    /// Reads the copies of the former anchor; the buffer holds the new one.
    AnchorCheck {
        anchor: Anchor,
        buffer: Buffer,
    },
    Anchor(AnchorCopy),
    Discard {
        member: u8,
        extent: u32,
    },
    Scrub {
        buffer: Buffer,
    },
    Recovery {
        buffer: Buffer,
    },
    /// One block of a read that failed as a whole.
    Block {
        narrowed: u32,
        index: u16,
    },
}

impl Purpose {
    /// Whether the time that it takes says something of the device. Recovery is over before anybody asks, and its members
    /// are not there yet.
    pub(crate) fn is_effort(&self) -> bool {
        !matches!(self, Purpose::Discard { .. } | Purpose::Recovery { .. })
    }
}

impl Purpose {
    /// Whether the device reads or writes for it; a flush does neither.
    pub(crate) fn direction(&self) -> Option<Direction> {
        match self {
            Purpose::Read { .. }
            | Purpose::Page { .. }
            | Purpose::DestageRead { .. }
            | Purpose::RewriteRead { .. }
            | Purpose::CarryRead { .. }
            | Purpose::AnchorCheck { .. }
            | Purpose::Scrub { .. }
            | Purpose::Recovery { .. }
            | Purpose::Block { .. } => Some(Direction::Read),
            Purpose::Batch
            | Purpose::Direct(_)
            | Purpose::DestageWrite { .. }
            | Purpose::Backfill(_)
            | Purpose::RewriteWrite
            | Purpose::Chunk { .. }
            | Purpose::PageWrite { .. }
            | Purpose::Anchor(_) => Some(Direction::Write),
            Purpose::CheckpointFlush | Purpose::Discard { .. } => None,
        }
    }
}

/// A device request under way.
#[derive(Debug)]
pub(crate) struct PendingIo {
    /// When it was handed to the device.
    pub(crate) begun: Instant,
    pub(crate) member: u8,
    pub(crate) purpose: Purpose,
    /// What was asked, if it is a read.
    pub(crate) read: Option<ReadRequest>,
}

/// A read whose blocks are being read one by one.
#[derive(Debug)]
struct Narrowed {
    purpose: Purpose,
    outstanding: usize,
    bad: BadBlocks,
    failure: Option<String>,
}

/// All device requests under way.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pending: Slab<PendingIo>,
    narrowed: Slab<Narrowed>,
}

impl Requests {
    /// A request begins.
    pub(crate) fn begin(&mut self, request: PendingIo) -> Io {
        Io(self.pending.insert(request) as u32)
    }

    /// A request ended.
    pub(crate) fn end(&mut self, io: Io) -> PendingIo {
        self.pending.remove(io.0 as usize)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether a request to that member is under way.
    pub(crate) fn is_busy(&self, member: u8) -> bool {
        self.pending.iter().any(|(_, pending)| pending.member == member)
    }

    /// The `count` blocks of a read will be read one by one, each with the purpose [`Purpose::Block`] and this key.
    pub(crate) fn narrow(&mut self, purpose: Purpose, count: usize) -> u32 {
        let narrowed = Narrowed { purpose, outstanding: count, bad: BadBlocks::default(), failure: None };
        self.narrowed.insert(narrowed) as u32
    }

    /// A block of a narrowed read ended. Gives back what the whole was for and how it ended, with its last block.
    pub(crate) fn block_ended(&mut self, key: u32, index: u16, ended: Ended) -> Option<(Purpose, Ended)> {
        let narrowed = &mut self.narrowed[key as usize];
        narrowed.outstanding -= 1;
        match ended {
            Ok(bad) if bad.is_empty() => {}
            Ok(_) => narrowed.bad.note(index),
            Err(why) => drop(narrowed.failure.get_or_insert(why)),
        }
        if narrowed.outstanding > 0 {
            return None;
        }
        let Narrowed { purpose, bad, failure, .. } = self.narrowed.remove(key as usize);
        Some((purpose, failure.map_or(Ok(bad), Err)))
    }
}
