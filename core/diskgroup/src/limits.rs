//! Every bound of a disk group, with its reason.

use crate::format::batch::{HEADER_BLOCKS_MAX, HEADER_SIZE};
use base::units::{BLOCK_SIZE, MIB};

/// The smallest log that a device may be given in bytes: two of the largest batches and what a checkpoint needs.
pub const fn log_size_min() -> u64 {
    16 * MIB
}

/// The fewest extents of a capacity device: with fewer it holds nothing of use.
pub const EXTENTS_MIN: u64 = 8;

/// Most bytes of records in one batch: its header and the copy of that fit 1 MiB, the largest buffer.
pub const RECORD_BYTES_MAX: usize = (HEADER_BLOCKS_MAX / 2 * BLOCK_SIZE) as usize - HEADER_SIZE;

/// Most data blocks of one batch: 4 MiB, or an eighth of a small log but always one write of a guest (255 blocks).
pub fn batch_blocks_max(log_blocks: u64) -> u64 {
    (log_blocks / 8).clamp(256, 1024)
}

/// Log blocks that guests leave free to the group's own records beside those of a checkpoint: what became of components, of
/// extents, and watermarks.
pub fn log_blocks_reserved(log_blocks: u64) -> u64 {
    (log_blocks / 32).max(24)
}

/// Log blocks that only records of chunks may take, beside those of a checkpoint: four batches of one record each, with a copy of its header. One chunk has pages for 128
/// parts.
pub const CHUNK_LOG_BLOCKS: u64 = 8;

/// Log blocks that the intents of one checkpoint take at most: 16 bytes for each page.
pub fn intent_blocks_max(log_blocks: u64) -> u64 {
    1 + (dirty_pages_max(log_blocks) as u64 * 16).div_ceil(BLOCK_SIZE)
}

/// Most table pages that wait for a checkpoint; at this many one starts before its destaging round ends.
pub fn dirty_pages_max(log_blocks: u64) -> usize {
    (log_blocks as usize).clamp(64, 16_384)
}

/// Most entries of the write buffer's index for each block of the log: trims take less room in the log than in memory,
/// so they are bounded here.
pub const INDEX_ENTRIES_PER_LOG_BLOCK: usize = 4;

/// Log blocks that held changes may take, beside row writes: a quarter (docs/design/0042).
pub fn held_blocks_max(log_blocks: u64) -> u64 {
    log_blocks / 4
}

/// Held blocks above which owners are asked to fold, and congestion rises: an eighth of the log.
pub fn held_blocks_wanted(log_blocks: u64) -> u64 {
    log_blocks / 8
}

/// Log blocks that held changes may take together with row writes, which are decided within seconds: three eighths.
pub fn held_blocks_with_rows_max(log_blocks: u64) -> u64 {
    log_blocks / 8 * 3
}

/// Log blocks that held changes may take together with those that a take-over rolls forward: half. What is held undecided is decided only
/// once they are there, so they must not wait for its room.
pub fn held_blocks_with_rolls_max(log_blocks: u64) -> u64 {
    log_blocks / 2
}

/// Held blocks that are written again in one batch at most: what waits for them is short, and so is what is lost at the end of the
/// ring, where a batch does not wrap. Their records fit one header block.
pub const CARRIED_BLOCKS_MAX: usize = 64;

/// Destaging starts at this share of the log (design, section 4).
pub const DESTAGE_START_PERCENT: u64 = 30;

/// Congestion starts at this share of the log and reaches 255 at [`CONGESTION_FULL_PERCENT`].
pub const CONGESTION_START_PERCENT: u64 = 60;
/// See [`CONGESTION_START_PERCENT`].
pub const CONGESTION_FULL_PERCENT: u64 = 95;

/// At this share of the log, devices that are away are given up for the space of what is kept for them: well into
/// congestion, which tells that writers outrun what can be destaged, and before they are slowed for long.
pub const AWAY_LOG_PERCENT_MAX: u64 = 75;

/// Bytes that destaging keeps in flight per device at least, and at most when the log is nearly full.
pub const DESTAGE_BYTES_MIN: u64 = 256 << 10;
/// See [`DESTAGE_BYTES_MIN`].
pub const DESTAGE_BYTES_MAX: u64 = 8 << 20;

/// Extents that were replaced by others and are kept to be taken next instead of being handed back to the device: what
/// a deep queue of whole-extent writes replaces until the first of them is stable.
pub const WARM_EXTENTS_MAX: usize = 64;

/// Extents that one device destages at once at most.
pub const DESTAGE_EXTENTS_MAX: usize = 64;

/// How long one destaging round may take at the measured pace when the log is filling up: bounds the time until the
/// next piece of log comes free, and so the stall of a writer that waits for it.
pub const DESTAGE_ROUND_SECONDS: f64 = 0.25;

/// Fewest log blocks of one destaging round.
pub const DESTAGE_ROUND_BLOCKS_MIN: u64 = 64;

/// Page writes that a checkpoint keeps in flight.
pub const PAGE_WRITES_MAX: usize = 64;

/// Bytes that recovery reads at once.
pub const RECOVERY_READ_SIZE: u64 = MIB;

/// Reads that recovery of a table keeps in flight.
pub const RECOVERY_READS_MAX: usize = 4;

/// Blocks of one device that fail reads within [`UNREADABLE_WINDOW`] before the device goes out of service. One failed
/// head or one scratch damages more than this. A few bad sectors, which are rewritten from another copy, damage less.
pub const UNREADABLE_BLOCKS_MAX: usize = 64;
/// See [`UNREADABLE_BLOCKS_MAX`].
pub const UNREADABLE_WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// Damaged blocks that are remembered by name for each device; beyond, only counted.
pub const DAMAGED_BLOCKS_NAMED_MAX: usize = 1024;

/// Times that a read is tried again because what it read was replaced meanwhile, or once because it was damaged.
pub const READ_RETRIES_MAX: u8 = 8;

/// How long a watermark waits for a batch that takes it along: long beside a batch, short beside a lease.
pub const SETTLE_DELAY: std::time::Duration = std::time::Duration::from_millis(100);

/// Bytes of a record that tells an entry of a window again, rounded up.
pub const ENTRY_RECORD_SIZE: usize = 40;

/// Bytes of a watermark's record.
pub const WATERMARK_RECORD_SIZE: usize = 28;

/// Changes of one component that an owner may have undecided at once: one that holds a change knows by it that all so
/// many before it, and earlier ones of the same epoch, are decided.
pub const UNDECIDED_MAX: u64 = 1024;

/// Entries of a window beyond which runs of changes that are decided become spans: twice what may be undecided, and what
/// one former owner left.
pub const WINDOW_ENTRIES_MAX: usize = 3 * UNDECIDED_MAX as usize;

/// Decided changes of a component that are remembered, in 24 KiB of memory.
pub const DECIDED_LATELY_MAX: usize = 512;

/// And of one node's guests: what a client has under way.
pub const DECIDED_LATELY_OF_NODE_MAX: usize = 128;

/// And of one trim, which is a change for each MiB: the other requests of its node stay remembered.
pub const DECIDED_LATELY_OF_REQUEST_MAX: usize = 32;

/// Parts in one answer about what was changed: some 100 KiB.
pub const CHANGED_PARTS_MAX: usize = 512;

/// Parts that are looked at for one such answer: some hundred microseconds' worth, so that guests do not wait.
pub const CHANGED_LOOKED_AT_MAX: u32 = 4096;

/// Blocks whose memory a group gives back at once where buffers are short: 4 MiB, or more where they share larger buffers.
pub const RELIEF_BLOCKS: usize = 1024;

/// Compressed blocks of one read that a group takes out of their slots itself: with zstd these take 80 µs. More are work for others.
pub const UNPACKED_AT_ONCE_MAX: usize = 16;

/// Buffers of a group's own work (batch headers, pages, log reads of destaging, scrubbing), in bytes.
pub const OWN_POOL_SIZE: usize = 24 << 20;

const _: () = assert!(HEADER_SIZE + CARRIED_BLOCKS_MAX * 48 <= BLOCK_SIZE as usize, "one header block");
const _: () = assert!(log_size_min() / BLOCK_SIZE >= 2 * 1024, "the smallest log holds several batches");
