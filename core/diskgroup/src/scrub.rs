//! The state of scrubbing: where the round is, what is being read there, and when the next read is due.

use crate::compute::ComputeId;
use crate::format::batch::ExtentLocation;
use crate::format::map::Entry;
use crate::format::page::Descriptor;
use crate::share::Share;
use crate::slots::SlotRead;
use crate::unreadable::BadBlocks;
use base::{Buffer, DeviceId, Instant};
use std::time::Duration;

/// Time between two rounds: one over little data would begin again at once, for ever.
const ROUND_PAUSE: Duration = Duration::from_secs(10);

/// What is read of an extent at rest.
#[derive(Debug)]
pub(crate) struct ExtentRead {
    /// What described it when the read began.
    pub(crate) descriptor: Box<Descriptor>,
    /// The first block that is read.
    pub(crate) first: usize,
    /// Whether it did not match before.
    pub(crate) is_retry: bool,
}

/// A frame that a map page (snapshot 0) or a delta page names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedFrame {
    pub(crate) snapshot: u32,
    pub(crate) block: u8,
    pub(crate) entry: Entry,
}

/// Frames side by side that are read, of those that one page names.
#[derive(Debug)]
pub(crate) struct FramesRead {
    pub(crate) page: u32,
    pub(crate) frames: Vec<NamedFrame>,
    /// Where each of them stands in what is read.
    pub(crate) slots: Box<[SlotRead]>,
    /// The others that are left to read; those with the least places last.
    pub(crate) left: Vec<NamedFrame>,
    /// Whether some did not match before.
    pub(crate) is_retry: bool,
}

/// What was read at rest.
#[derive(Debug)]
pub(crate) enum Scrubbed {
    Extent(ExtentRead),
    Frames(FramesRead),
}

/// What blocks in the log are of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ScrubbedLog {
    /// The extent at the cursor.
    Extent,
    /// A part, by component key and number, that is in no extent.
    Part((u32, u32)),
}

/// What was read, while its checksums are computed.
#[derive(Debug)]
pub(crate) struct Verification {
    pub(crate) id: ComputeId,
    /// The device that it was read from: another one may have its index when the result comes.
    pub(crate) device: DeviceId,
    pub(crate) read: Scrubbed,
    pub(crate) buffer: Buffer,
    pub(crate) unreadable: BadBlocks,
}

/// What scrubbing does at the cursor.
#[derive(Debug)]
pub(crate) enum Step {
    /// Between two extents.
    Idle,
    /// Waits for the descriptor of the extent at the cursor.
    Page,
    /// Reads the extent at the cursor.
    Extent(ExtentRead),
    /// Reads frames that a page names.
    Frames(FramesRead),
    /// Waits for the checksums of the extent at the cursor, or of frames.
    Verifying(Verification),
    /// Reads both copies of a table page.
    TablePage { page: u32, version: u64 },
    /// Reads the last of the queue, a block that stands in the log.
    Log { of: ScrubbedLog, queue: Vec<LogBlock>, is_retry: bool },
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
    step: Step,
    member: u8,
    /// The extent; behind the last one come the pages of chunks, and then parts.
    extent: u32,
    /// Behind those: the part that was looked at last, by component key and number.
    part: Option<(u32, u32)>,
    /// The next component page of the member to look at.
    slot: u32,
    /// Whether a page is to be written again although nothing else asks for a checkpoint.
    wants_checkpoint: bool,
    /// Whether the table page of the extent at the cursor has been verified.
    has_checked_page: bool,
    next_at: Instant,
    /// Bytes read for the extent at the cursor.
    extent_bytes: u64,
    round_bytes: u64,
    round_damaged: u64,
}

impl Scrub {
    /// The first round begins at `next_at`.
    pub(crate) fn new(next_at: Instant) -> Scrub {
        Scrub {
            step: Step::Idle,
            member: 0,
            extent: 0,
            part: None,
            slot: 0,
            wants_checkpoint: false,
            has_checked_page: false,
            next_at,
            extent_bytes: 0,
            round_bytes: 0,
            round_damaged: 0,
        }
    }

    /// The extent at the cursor.
    pub(crate) fn location(&self) -> ExtentLocation {
        ExtentLocation { member: self.member, extent: self.extent }
    }

    /// Whether nothing is under way at the cursor.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle)
    }

    /// Whether the processor works for it.
    pub(crate) fn is_computing(&self) -> bool {
        matches!(self.step, Step::Verifying(_))
    }

    /// When it goes on, if nothing is under way.
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// It goes on at that time.
    pub(crate) fn go_on_at(&mut self, at: Instant) {
        self.next_at = at;
    }

    /// The cursor goes to the next member.
    pub(crate) fn next_member(&mut self) {
        (self.member, self.extent, self.part, self.slot) = (self.member + 1, 0, None, 0);
    }

    /// The part that was looked at last, of those that are in no extent.
    pub(crate) fn part(&self) -> Option<(u32, u32)> {
        self.part
    }

    /// That part is looked at.
    pub(crate) fn go_to_part(&mut self, part: (u32, u32)) {
        self.part = Some(part);
    }

    /// The component page of the member to look at next, of so many; the cursor goes past it.
    pub(crate) fn next_slot(&mut self, slots: u32) -> Option<u32> {
        let slot = self.slot;
        self.slot = (slot + 1).min(slots);
        (slot < slots).then_some(slot)
    }

    /// The cursor goes to the next extent, after a rest that keeps the pace. Says how many bytes were read for this one.
    pub(crate) fn next_extent(&mut self, now: Instant, bytes_per_second: u64, share: Share) -> u64 {
        let bytes = std::mem::take(&mut self.extent_bytes);
        self.extent += 1;
        self.has_checked_page = false;
        self.step = Step::Idle;
        self.round_bytes += bytes;
        self.next_at = self.next_at.max(now) + pause(bytes, bytes_per_second, share);
        bytes
    }

    /// The round is over: the bytes that it read, and the damaged blocks that it found.
    pub(crate) fn end_round(&mut self, now: Instant) -> (u64, u64) {
        let (bytes, damaged, wants_checkpoint) =
            (self.round_bytes, self.round_damaged, self.wants_checkpoint);
        *self = Scrub { wants_checkpoint, ..Scrub::new(now + ROUND_PAUSE) };
        (bytes, damaged)
    }

    /// Whether the table page of the extent at the cursor is still to be verified; it counts as verified from now on.
    pub(crate) fn takes_page(&mut self) -> bool {
        !std::mem::replace(&mut self.has_checked_page, true)
    }

    /// A step begins.
    pub(crate) fn begin(&mut self, step: Step) {
        self.step = step;
    }

    /// The step has ended.
    pub(crate) fn end_step(&mut self) -> Step {
        std::mem::replace(&mut self.step, Step::Idle)
    }

    /// The verification with that name has ended, if it is the one under way.
    pub(crate) fn end_verification(&mut self, id: ComputeId) -> Option<Verification> {
        match self.end_step() {
            Step::Verifying(verification) if verification.id == id => Some(verification),
            other => {
                self.step = other;
                None
            }
        }
    }

    /// So many bytes were read for the extent at the cursor.
    pub(crate) fn note_read(&mut self, bytes: u64) {
        self.extent_bytes += bytes;
    }

    /// So many blocks were found damaged.
    pub(crate) fn note_damaged(&mut self, blocks: u64) {
        self.round_damaged += blocks;
    }

    /// A page is to be written again although nothing else asks for a checkpoint.
    pub(crate) fn want_checkpoint(&mut self) {
        self.wants_checkpoint = true;
    }

    pub(crate) fn wants_checkpoint(&self) -> bool {
        self.wants_checkpoint
    }

    /// A checkpoint has begun.
    pub(crate) fn checkpoint_begun(&mut self) {
        self.wants_checkpoint = false;
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
