//! The state of the checkpoint under way. `group/checkpoint.rs` moves it on.

use crate::format::anchor::Anchor;
use crate::limits;
use crate::log::BatchStart;
use base::Buffer;

/// A page that a checkpoint writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLocation {
    pub(crate) member: u8,
    pub(crate) page: u32,
}

/// A copy of the anchor that is being written.
#[derive(Debug)]
pub(crate) struct AnchorCopy {
    pub(crate) anchor: Anchor,
    pub(crate) buffer: Buffer,
    /// Its position, as of the anchor with that revision.
    pub(crate) of: u64,
    /// Whether the other copy follows.
    pub(crate) is_first: bool,
}

/// What a deleted component waits for that had mapped parts: their pages must be empty on the device before its slot is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DeletionCheckpoint {
    /// Nothing.
    #[default]
    None,
    /// A checkpoint that begins from now on.
    Wanted,
    /// The end of the checkpoint under way.
    Begun,
    /// It has ended.
    Done,
}

/// How far the checkpoint under way is.
#[derive(Debug, Default)]
enum Step {
    /// None is under way.
    #[default]
    Idle,
    /// Devices are being flushed, and page intents and what the log must go on telling are logged.
    Preparing { tail: BatchStart, pages: Vec<PageLocation>, flushes: u32, records: u32 },
    /// Pages are being written; those before `next` are under way or done.
    Writing { tail: BatchStart, pages: Vec<PageLocation>, next: usize, outstanding: u32, intents_from: u64 },
    /// The pages are being made stable.
    Flushing { tail: BatchStart, flushes: u32, intents_from: u64 },
    /// The anchor is being written.
    Anchoring,
}

/// The checkpoint under way, if one is.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint {
    step: Step,
}

/// What a checkpoint that writes pages does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextPage {
    /// Nothing until a write ends, or because no pages are written now.
    Nothing,
    /// It writes this one, or passes it over.
    Page(PageLocation),
    /// All are written.
    AllWritten,
}

impl Checkpoint {
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.step, Step::Idle)
    }

    /// Whether pages are being written: more may follow once there is memory.
    pub(crate) fn is_writing_pages(&self) -> bool {
        matches!(self.step, Step::Writing { .. })
    }

    /// Whether pages are on their way, so that a copy on the device may be neither old nor new.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.step, Step::Writing { .. } | Step::Flushing { .. })
    }

    /// A checkpoint begins that moves the tail there and writes these pages, once so many flushes have ended and so many records
    /// are stable.
    pub(crate) fn begin(&mut self, tail: BatchStart, pages: Vec<PageLocation>, flushes: u32, records: u32) {
        assert!(self.is_idle(), "one checkpoint is under way at a time");
        self.step = Step::Preparing { tail, pages, flushes, records };
    }

    /// A record that it waits for is stable.
    pub(crate) fn record_stable(&mut self) {
        let Step::Preparing { records, .. } = &mut self.step else {
            unreachable!("its records belong to a checkpoint that waits for them")
        };
        *records -= 1;
    }

    /// A device is flushed.
    pub(crate) fn flushed(&mut self) {
        match &mut self.step {
            Step::Preparing { flushes, .. } | Step::Flushing { flushes, .. } => *flushes -= 1,
            Step::Idle | Step::Writing { .. } | Step::Anchoring => {
                unreachable!("a checkpoint waits for its flushes")
            }
        }
    }

    /// Begins with the pages if all that they wait for is stable. Their intents stand in batches before `intents_from`.
    pub(crate) fn begin_pages_if_prepared(&mut self, intents_from: u64) {
        if let Step::Preparing { tail, pages, flushes: 0, records: 0 } = &mut self.step {
            let pages = std::mem::take(pages);
            self.step = Step::Writing { tail: *tail, pages, next: 0, outstanding: 0, intents_from };
        }
    }

    /// The stamp of the pages that are being written.
    pub(crate) fn stamp(&self) -> u64 {
        match &self.step {
            Step::Writing { intents_from, .. } => *intents_from,
            Step::Idle | Step::Preparing { .. } | Step::Flushing { .. } | Step::Anchoring => {
                unreachable!("pages are written by a checkpoint")
            }
        }
    }

    pub(crate) fn next_page(&self) -> NextPage {
        let Step::Writing { pages, next, outstanding, .. } = &self.step else { return NextPage::Nothing };
        match pages.get(*next) {
            None if *outstanding == 0 => NextPage::AllWritten,
            Some(page) if (*outstanding as usize) < limits::PAGE_WRITES_MAX => NextPage::Page(*page),
            Some(_) | None => NextPage::Nothing,
        }
    }

    /// The next page is written, or passed over.
    pub(crate) fn take_page(&mut self, is_written: bool) {
        let Step::Writing { next, outstanding, .. } = &mut self.step else {
            unreachable!("pages are written by a checkpoint")
        };
        *next += 1;
        *outstanding += u32::from(is_written);
    }

    /// A page is written.
    pub(crate) fn page_written(&mut self) {
        let Step::Writing { outstanding, .. } = &mut self.step else {
            unreachable!("pages are written by a checkpoint")
        };
        *outstanding -= 1;
    }

    /// All pages are written, and so many flushes make them stable.
    pub(crate) fn begin_flushing(&mut self, flushes: u32) {
        assert!(self.next_page() == NextPage::AllWritten, "pages are flushed when they are written");
        if let Step::Writing { tail, intents_from, .. } = self.step {
            self.step = Step::Flushing { tail, flushes, intents_from };
        }
    }

    /// Begins with the anchor if all pages are stable: the new tail, and the batch before which the intents of these pages stand.
    pub(crate) fn begin_anchor_if_flushed(&mut self) -> Option<(BatchStart, u64)> {
        let Step::Flushing { tail, flushes: 0, intents_from } = self.step else { return None };
        self.step = Step::Anchoring;
        Some((tail, intents_from))
    }

    /// Both copies of the anchor are stable.
    pub(crate) fn end(&mut self) {
        assert!(matches!(self.step, Step::Anchoring), "a checkpoint ends with its anchor");
        self.step = Step::Idle;
    }
}
