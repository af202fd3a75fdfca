//! The state of scrubbing: where the round is, what is being read there, and when the next read is due.

use crate::format::batch::ExtentPlace;
use crate::format::page::Descriptor;
use crate::share::Share;
use base::Instant;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum Step {
    /// Between two extents.
    Idle,
    /// Waits for the descriptor of the extent at the cursor.
    Page,
    /// Reads blocks `first..` of the extent at the cursor, which `descriptor` describes.
    Extent { descriptor: Box<Descriptor>, first: usize, is_retry: bool },
    /// Reads both copies of a table page.
    TablePage { page: u32, version: u64 },
    /// Reads the last of the queue, a block of the extent at the cursor that stands in the log.
    Log { queue: Vec<LogBlock>, is_retry: bool },
}

/// A block in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBlock {
    pub(crate) block: u8,
    pub(crate) position: u64,
    pub(crate) checksum: u32,
}

/// The state of scrubbing.
#[derive(Debug)]
pub(crate) struct Scrub {
    pub(crate) step: Step,
    pub(crate) member: u8,
    pub(crate) extent: u32,
    /// The next component page of the member to look at.
    pub(crate) slot: u32,
    /// Whether a page is to be written again although nothing else asks for a checkpoint.
    pub(crate) wants_checkpoint: bool,
    /// Whether the table page of the extent at the cursor has been verified.
    pub(crate) has_checked_page: bool,
    pub(crate) next_at: Instant,
    /// Bytes read for the extent at the cursor.
    pub(crate) extent_bytes: u64,
    pub(crate) round_bytes: u64,
    pub(crate) round_damaged: u64,
}

impl Scrub {
    pub(crate) fn new(now: Instant) -> Scrub {
        Scrub {
            step: Step::Idle,
            member: 0,
            extent: 0,
            slot: 0,
            wants_checkpoint: false,
            has_checked_page: false,
            next_at: now,
            extent_bytes: 0,
            round_bytes: 0,
            round_damaged: 0,
        }
    }

    /// The extent at the cursor.
    pub(crate) fn place(&self) -> ExtentPlace {
        ExtentPlace { member: self.member, extent: self.extent }
    }
}

/// How long scrubbing rests after so many bytes.
pub(crate) fn pause(bytes: u64, bytes_per_second: u64, share: Share) -> Duration {
    let pace = share.of(bytes_per_second).max(1);
    Duration::from_nanos(bytes * 1_000_000_000 / pace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrubbing_goes_at_its_share_of_the_pace_and_never_stops() {
        assert_eq!(pause(1 << 20, 8 << 20, Share::FULL), Duration::from_millis(125));
        assert_eq!(pause(1 << 20, 8 << 20, Share::FLOOR), Duration::from_secs(2));
        assert_eq!(pause(1 << 20, 0, Share::FLOOR), Duration::from_secs(1 << 20), "it was switched off");
    }
}
