//! What one frame, one connection and one queue of frames may take, and why.

use crate::frame::HEADER_SIZE;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, EXTENT_SIZE, SECTOR_SIZE};

/// Bytes of block data in a request to a component or its answer: one part, so one buffer.
pub const COMPONENT_PAYLOAD_SIZE_MAX: usize = EXTENT_SIZE as usize;
/// Bytes of data in a guest's write or in the answer to its read: what the NBD specification asks every server to take.
pub const GUEST_PAYLOAD_SIZE_MAX: usize = 32 << 20;
/// Entries beyond the watermark in one answer to an open: four times the window of writes that an owner may have
/// undecided (1,024), for a component that was left behind by several owners, and the 512 that were decided last.
pub const ENTRIES_MAX: usize = 4096 + 512;
/// Parts in one answer about changes: 100 KiB of ids, which take a GBit/s link less than a millisecond.
pub const CHANGED_PARTS_MAX: usize = 512;
/// Ranges in one answer about what layers hold: four parts have no more, were every block of each of four layers of another change.
pub const HELD_RANGES_MAX: usize = 4096;
/// Snapshots that one component tells of: those of a disk (256), and as many that are being deleted.
pub const SNAPSHOTS_MAX: usize = 512;
/// Damaged blocks in one answer: those of an extent of which nothing is known any more. More are told the next time.
pub const DAMAGED_MAX: usize = BLOCKS_PER_EXTENT;
/// Runs of bytes and holes in the answer to a guest's read: the largest read, each sector unlike its neighbours.
pub const RUNS_MAX: usize = GUEST_PAYLOAD_SIZE_MAX / SECTOR_SIZE as usize;
/// Runs in one answer about allocation: as many as the NBD frontend passes on.
pub const STATUS_RUNS_MAX: usize = 1 << 15;
/// Parts in one request about allocation: those of the largest request of an NBD client (4 GiB), however it is aligned, with
/// some to spare. The answer may be about the first of them alone.
pub const ALLOCATION_PARTS_MAX: usize = 1 << 13;
/// The same in version 1, where the answer was about all of them.
pub const ALLOCATION_PARTS_MAX_FIRST: u16 = 128;
/// Parts of which a component looks up each block for one answer, so that it takes a turn of the engine no longer: as many as
/// the runs of one answer suffice for, whatever stands there. Parts without space are told in runs and do not count.
pub const ALLOCATION_LOOKUPS_MAX: usize = 128;
/// Bytes of a disk's label with its component: what a page of a disk group has room for.
pub const DISK_LABEL_SIZE_MAX: usize = 768;
/// The largest body of any kind: a little more than the runs and checksums of the largest read take.
pub const BODY_SIZE_MAX: usize = 320 << 10;
/// Bytes that a connection takes at once while it is not known what comes: fifteen writes of 4 KiB, and few enough to
/// stay in a core's cache until they are looked at. Kept per connection; a longer body makes it grow for a while.
pub const INBOX_SIZE: usize = 64 << 10;
/// Payload of which so much is still to come is received alone, in one call that ends when all of it is there: a socket
/// holds less, and every piece would cost a turn of the engine.
pub const PAYLOAD_AT_ONCE: usize = 128 << 10;
/// Bytes that wait to be sent on one connection: twice what one place of a disk may have undecided (64 MiB), or four of the
/// largest requests of guests.
pub const OUTGOING_SIZE_MAX: u64 = 128 << 20;
/// Pieces in one gathering send: `IOV_MAX` of Linux.
pub const SEND_PIECES_MAX: usize = 1024;

const _: () = assert!(HEADER_SIZE <= INBOX_SIZE);
const _: () = assert!(COMPONENT_PAYLOAD_SIZE_MAX == BLOCKS_PER_EXTENT * BLOCK_SIZE as usize);
const _: () = assert!(8 + 4 * RUNS_MAX + 4 * (GUEST_PAYLOAD_SIZE_MAX / BLOCK_SIZE as usize) <= BODY_SIZE_MAX);
const _: () = assert!(8 + 8 * STATUS_RUNS_MAX <= BODY_SIZE_MAX);
const _: () = assert!(ALLOCATION_LOOKUPS_MAX * BLOCKS_PER_EXTENT <= STATUS_RUNS_MAX);
// Whoever speaks version 1 expects an answer about all parts that it asked about.
const _: () = assert!(ALLOCATION_PARTS_MAX_FIRST as usize <= ALLOCATION_LOOKUPS_MAX);
const _: () = assert!(OUTGOING_SIZE_MAX >= 4 * GUEST_PAYLOAD_SIZE_MAX as u64);
