//! Device requests under way, and what each is for.

use crate::checkpoint::AnchorCopy;
use crate::format::anchor::Anchor;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::Buffer;

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
        positions: (u64, u64),
        buffer: Buffer,
    },
    DestageWrite {
        destage: u32,
    },
    CheckpointFlush {
        member: u8,
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

#[derive(Debug)]
pub(crate) struct PendingIo {
    pub(crate) member: u8,
    pub(crate) purpose: Purpose,
    /// What was asked, if it is a read.
    pub(crate) read: Option<ReadRequest>,
}

/// A read whose blocks are being read one by one.
#[derive(Debug)]
pub(crate) struct Narrowed {
    pub(crate) purpose: Purpose,
    pub(crate) outstanding: usize,
    pub(crate) bad: BadBlocks,
    pub(crate) failure: Option<String>,
}
