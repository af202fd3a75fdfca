//! What a guest asks of a virtual disk, and what it is told: the seam between the frontends and a node.
//!
//! Offsets and lengths are bytes, multiples of 512, and lie within the disk: the frontend has checked that.

use crate::Buffer;
use smallvec::SmallVec;

/// Buffers that hold one run of bytes, in order. Every buffer but the last is a multiple of 4 KiB long.
pub type Buffers = SmallVec<[Buffer; 1]>;

/// The `len` bytes at `offset` of a run of buffers, sharing their memory.
pub fn cut(buffers: &Buffers, mut offset: usize, mut len: usize) -> Buffers {
    let mut out = Buffers::new();
    for buffer in buffers {
        if len == 0 {
            break;
        }
        if offset >= buffer.len() {
            offset -= buffer.len();
            continue;
        }
        let take = len.min(buffer.len() - offset);
        out.push(if take == buffer.len() { buffer.clone() } else { buffer.slice(offset, take) });
        len -= take;
        offset = 0;
    }
    assert!(len == 0, "a cut lies within its buffers");
    out
}

/// One request of a guest.
#[derive(Debug, Clone)]
pub enum Request {
    /// Read `len` bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes to read.
        len: u32,
    },
    /// Write the buffers' bytes. Always stable when answered, so force-unit-access asks for nothing more.
    Write {
        /// First byte.
        offset: u64,
        /// What to write.
        data: Buffers,
    },
    /// Make all answered writes stable. They are: this waits for none but is answered in turn.
    Flush,
    /// Give the space back; the range reads as zeroes afterwards.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes to give back.
        len: u64,
    },
    /// Make the range read as zeroes.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Bytes to zero.
        len: u64,
        /// Whether the range must keep (or get) its space, so that later writes to it cannot fail for lack of it.
        allocate: bool,
    },
    /// Read `len` bytes as they were when a snapshot of the disk was taken.
    View {
        /// The snapshot's number.
        snapshot: u32,
        /// First byte.
        offset: u64,
        /// Bytes to read.
        len: u32,
    },
    /// Copy what the range shows of the disk's origin to the disk itself, if it is a clone.
    CopyUp {
        /// First byte.
        offset: u64,
        /// Bytes, at most 1 MiB.
        len: u32,
    },
    /// Tell of each part of the range what is asked.
    Status {
        /// What that is.
        of: StatusOf,
        /// First byte.
        offset: u64,
        /// Bytes to tell about.
        len: u64,
    },
}

/// What is asked about the blocks of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusOf {
    /// Which are backed by space.
    Disk,
    /// Which were backed by space when the snapshot with that number was taken.
    Snapshot(u32),
    /// Which may differ between two snapshots. Those of which that is not told are the same.
    Changes {
        /// The number of the older one.
        since: u32,
        /// The number of the newer one.
        snapshot: u32,
    },
}

/// A run of bytes in the answer to a read.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes as they are.
    Bytes(Buffer),
    /// So many zeroes, where nothing is allocated.
    Hole(u32),
}

/// The runs that make up the answer to a read, in order.
pub type Pieces = SmallVec<[Piece; 2]>;

/// A run of blocks for which the answer is the same ([`StatusOf`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRun {
    /// Bytes in the run.
    pub len: u64,
    /// Whether it is backed by space, and reads as zeroes where it is not; or whether it may have changed, if that was asked.
    pub is_set: bool,
}

/// How a request ended well.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A write, flush, trim or zero-write is done and stable.
    Done,
    /// The bytes of a read.
    Data(Pieces),
    /// Allocation, neighbouring runs different, lengths adding up to what was asked.
    Status(Vec<StatusRun>),
}

/// How a request ended badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No space is left for a write that needs some.
    #[error("no space left on the devices of this disk")]
    NoSpace,
    /// A block at rest does not match its checksum and no other copy exists.
    #[error("a block is damaged")]
    Damaged,
    /// The device that holds the data is out of service.
    #[error("the device that holds the data is out of service")]
    DeviceLost,
    /// The disk is being deleted or the host is stopping.
    #[error("the disk is going away")]
    Stopping,
    /// The range lies (no longer) within the disk.
    #[error("the range lies outside the disk")]
    OutOfRange,
    /// The disk has no snapshot (any more) with that number, or no copy in service has it.
    #[error("the snapshot is not there any more, or no copy of the disk in service has it")]
    NoSnapshot,
}

/// The answer to a request.
pub type Outcome = Result<Reply, RequestError>;
