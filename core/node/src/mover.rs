//! What a node knows of the move of a disk into another layout; `moves` is what it does.

use crate::interface::{Course, Trouble};
use crate::limits;
use base::request::{Buffers, Pieces};
use base::{Instant, RequestTag};
use layout::limits::MOVE_GRANULES_OF_DISK;
use layout::{Layout, Side};
use replication::Moved;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Slices of one disk that are copied at once.
pub(crate) const SLICES: usize = 2;
/// Names of a mover in the table of changes, and in tokens of its owner: no request of a guest is numbered so high.
pub(crate) const FIRST_KEY: u32 = u32::MAX - 7;
pub(crate) const PASS_KEY: u32 = FIRST_KEY + 4;
pub(crate) const TRIM_KEY: u32 = FIRST_KEY + 5;

/// Whether a name is one of a mover.
pub(crate) fn is_mover(key: u32) -> bool {
    key >= FIRST_KEY
}

/// The move of a disk, by the owner on this node.
#[derive(Debug)]
pub(crate) struct Mover {
    /// The number of that owner.
    pub(crate) owner: u64,
    pub(crate) moved: Moved,
    pub(crate) course: Course,
    pub(crate) stage: Stage,
    /// Counts granules, so that who belongs to one of before is known.
    pub(crate) number: u64,
    /// Bytes that may be copied now; below zero after a slice that was longer.
    pub(crate) budget: i64,
    pub(crate) retry_at: Option<Instant>,
    /// Whether no component is missing that it needs: nothing is copied or passed otherwise.
    pub(crate) is_whole: bool,
    pub(crate) trouble: Option<Trouble>,
    /// When its granule was begun.
    pub(crate) began: Instant,
}

/// What lasts while owners of a disk follow each other on this node, for they do with every granule.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// How long the next granule is; zero before the first one.
    pub(crate) granule: u64,
    /// Bytes that were copied onto the other side, again after each take-over.
    pub(crate) copied_bytes: u64,
}

impl Progress {
    /// How long the next granule is at least, where between `sizes` is allowed.
    pub(crate) fn granule(&self, sizes: &RangeInclusive<u64>) -> u64 {
        self.granule.clamp(*sizes.start(), *sizes.end())
    }

    /// The same of a disk of that size, of which a part is moved at once at most.
    pub(crate) fn granule_of(&self, size: u64, sizes: &RangeInclusive<u64>) -> u64 {
        self.granule(sizes).min((size / MOVE_GRANULES_OF_DISK).max(*sizes.start()))
    }

    /// A granule was copied in this time: the next one is longer, if that was short, so that the disk is seldom opened anew.
    pub(crate) fn copied(&mut self, took: Duration, sizes: &RangeInclusive<u64>) {
        let granule = self.granule(sizes);
        self.granule = match took {
            _ if took < limits::MOVE_GRANULE_TAKES.start => granule * 2,
            _ if took > limits::MOVE_GRANULE_TAKES.end => granule / 2,
            _ => granule,
        };
    }
}

/// What a mover does.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Nothing, or it waits.
    Idle,
    /// Frees what does not count any more.
    Trimming(Trimming),
    /// Copies a granule, from the slice at `next` on.
    Copying { granule: Granule, next: u64, slices: [Option<Slice>; SLICES], is_dropped: bool },
    /// All is copied; what changes in the granule is waited for.
    Closing { granule: Granule },
    /// Nothing changes in the granule, and the record is asked to pass it.
    Passing { to: Moved },
}

/// A slice of a granule.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) range: Range<u64>,
    pub(crate) outstanding: u32,
    /// What was read, by stretch.
    pub(crate) answers: Vec<Pieces>,
    pub(crate) is_written: bool,
    pub(crate) failure: Option<Trouble>,
}

/// A part of the disk that is copied.
#[derive(Debug)]
pub(crate) struct Granule {
    pub(crate) range: Range<u64>,
    /// The side that counts.
    pub(crate) truth: Side,
    /// The layout as if the other side counted everywhere.
    pub(crate) other: Layout,
}

impl Mover {
    /// The granule that changes go to both sides of.
    pub(crate) fn granule(&self) -> Option<&Granule> {
        match &self.stage {
            Stage::Copying { granule, is_dropped: false, .. } => Some(granule),
            Stage::Closing { granule } => Some(granule),
            Stage::Copying { .. } | Stage::Passing { .. } | Stage::Idle | Stage::Trimming(_) => None,
        }
    }

    /// Whether it waits for bytes that it may copy.
    pub(crate) fn wants_pace(&self) -> bool {
        let is_left = |granule: &Granule, next| next < granule.range.end;
        self.is_whole
            && matches!(&self.stage, Stage::Copying { granule, next, is_dropped: false, .. } if is_left(granule, *next))
    }

    /// Bytes that are being copied.
    pub(crate) fn copying_bytes(&self) -> u64 {
        let Stage::Copying { slices, .. } = &self.stage else { return 0 };
        slices.iter().flatten().map(|slice| slice.range.end - slice.range.start).sum()
    }

    /// What is under way goes on; nothing more is copied of the granule, and nothing in it is believed.
    pub(crate) fn drop_granule(&mut self, now: Instant, trouble: Option<Trouble>) {
        if let Stage::Closing { .. } = self.stage {
            // Its range in the table of changes is let go of when its turn comes.
            self.stage = Stage::Idle;
            self.number += 1;
            self.retry_at = Some(now + limits::MOVE_RETRY);
            self.trouble = trouble.or(self.trouble);
        } else if let Stage::Copying { is_dropped, .. } = &mut self.stage
            && !*is_dropped
        {
            *is_dropped = true;
            self.number += 1;
            self.retry_at = trouble.map(|_| now + limits::MOVE_RETRY);
            self.trouble = trouble.or(self.trouble);
        }
    }

    /// What was begun to be trimmed is not what is to be trimmed now.
    pub(crate) fn trim_anew(&mut self) {
        if let Stage::Trimming(trimming) = &mut self.stage {
            trimming.end();
        }
    }

    /// When it wants to be looked at.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.retry_at.filter(|_| !matches!(self.stage, Stage::Copying { is_dropped: true, .. }))
    }
}

/// A change of a guest that is to happen on the other side.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    /// The granule that it is in.
    pub(crate) number: u64,
    pub(crate) range: Range<u64>,
    /// What is written; none for a trim.
    pub(crate) data: Option<Buffers>,
}

/// A range that is being trimmed on one side.
#[derive(Debug)]
pub(crate) struct Trimming {
    /// The layout as if that side counted.
    pub(crate) side: Layout,
    /// What is left of it.
    pub(crate) left: Range<u64>,
    pub(crate) outstanding: u32,
    /// Requests that had begun in the range before: they may read it yet.
    pub(crate) awaited: Vec<(u32, RequestTag)>,
    pub(crate) has_failed: bool,
}

impl Trimming {
    /// It ends with what is under way, as if it had failed.
    pub(crate) fn end(&mut self) {
        self.has_failed = true;
    }
}
