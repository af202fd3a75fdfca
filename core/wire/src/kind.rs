//! The kinds of frames: their codes and how large each may be.
//!
//! A code is never given a second meaning. Requests have codes below 128, answers above.

use crate::limits::{
    BODY_SIZE_MAX, CHANGED_PARTS_MAX, COMPONENT_PAYLOAD_SIZE_MAX, DAMAGED_MAX, DISK_LABEL_SIZE_MAX,
    ENTRIES_MAX, GUEST_PAYLOAD_SIZE_MAX, HELD_RANGES_MAX, SNAPSHOTS_MAX, STATUS_RUNS_MAX,
};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};

/// What is fixed for a kind of frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How it is called in errors.
    pub name: &'static str,
    /// Bytes of its body at most.
    pub body_size_max: u32,
    /// Bytes of its payload at most.
    pub payload_size_max: u32,
}

/// One direction's kinds of frames.
pub trait Kind: Copy {
    /// The kind with a code, if it belongs to this direction.
    fn from_code(code: u8) -> Option<Self>;
    /// Its code.
    fn code(self) -> u8;
    /// What is fixed for it.
    fn shape(self) -> Shape;
}

/// What an initiator sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RequestKind {
    Heartbeat = 1,
    Open,
    Close,
    Write,
    Trim,
    Read,
    Settle,
    Changed,
    Create,
    Update,
    Delete,
    GuestRead,
    GuestWrite,
    GuestFlush,
    GuestTrim,
    GuestWriteZeroes,
    GuestStatus,
    Yield,
    GuestGone,
    Allocation,
    Held,
    Promote,
    Checksums,
    View,
    Snapshot,
    DropSnapshot,
    Snapshots,
    GuestView,
    ViewAllocation,
    GuestViewStatus,
    GuestCopyUp,
    LateSnapshot,
    Backfill,
    SyncBackfill,
    Damage,
    Mend,
}

/// What an acceptor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AnswerKind {
    Done = 129,
    Opened,
    Data,
    Changed,
    GuestDone,
    GuestData,
    GuestStatus,
    GuestFailed,
    Refused,
    Revoke,
    Allocation,
    Held,
    Checksums,
    Snapshots,
    Damage,
}

const REQUEST_KINDS: [RequestKind; 36] = [
    RequestKind::Heartbeat,
    RequestKind::Open,
    RequestKind::Close,
    RequestKind::Write,
    RequestKind::Trim,
    RequestKind::Read,
    RequestKind::Settle,
    RequestKind::Changed,
    RequestKind::Create,
    RequestKind::Update,
    RequestKind::Delete,
    RequestKind::GuestRead,
    RequestKind::GuestWrite,
    RequestKind::GuestFlush,
    RequestKind::GuestTrim,
    RequestKind::GuestWriteZeroes,
    RequestKind::GuestStatus,
    RequestKind::Yield,
    RequestKind::GuestGone,
    RequestKind::Allocation,
    RequestKind::Held,
    RequestKind::Promote,
    RequestKind::Checksums,
    RequestKind::View,
    RequestKind::Snapshot,
    RequestKind::DropSnapshot,
    RequestKind::Snapshots,
    RequestKind::GuestView,
    RequestKind::ViewAllocation,
    RequestKind::GuestViewStatus,
    RequestKind::GuestCopyUp,
    RequestKind::LateSnapshot,
    RequestKind::Backfill,
    RequestKind::SyncBackfill,
    RequestKind::Damage,
    RequestKind::Mend,
];

const ANSWER_KINDS: [AnswerKind; 15] = [
    AnswerKind::Done,
    AnswerKind::Opened,
    AnswerKind::Data,
    AnswerKind::Changed,
    AnswerKind::GuestDone,
    AnswerKind::GuestData,
    AnswerKind::GuestStatus,
    AnswerKind::GuestFailed,
    AnswerKind::Refused,
    AnswerKind::Revoke,
    AnswerKind::Allocation,
    AnswerKind::Held,
    AnswerKind::Checksums,
    AnswerKind::Snapshots,
    AnswerKind::Damage,
];

const COMPONENT_PAYLOAD: usize = COMPONENT_PAYLOAD_SIZE_MAX;
const GUEST_PAYLOAD: usize = GUEST_PAYLOAD_SIZE_MAX;
const BLOCK_CHECKSUMS: usize = 4 * BLOCKS_PER_EXTENT;
const GUEST_CHECKSUMS: usize = 4 * (GUEST_PAYLOAD / BLOCK_SIZE as usize);

const fn shape(name: &'static str, body_size_max: usize, payload_size_max: usize) -> Shape {
    assert!(body_size_max <= BODY_SIZE_MAX && payload_size_max <= GUEST_PAYLOAD_SIZE_MAX);
    Shape { name, body_size_max: body_size_max as u32, payload_size_max: payload_size_max as u32 }
}

impl Kind for RequestKind {
    fn from_code(code: u8) -> Option<RequestKind> {
        REQUEST_KINDS.get(usize::from(code.checked_sub(RequestKind::Heartbeat as u8)?)).copied()
    }

    fn code(self) -> u8 {
        self as u8
    }

    fn shape(self) -> Shape {
        match self {
            RequestKind::Heartbeat => shape("heartbeat", 0, 0),
            RequestKind::Open => shape("open", 32, 0),
            RequestKind::Close => shape("close", 16, 0),
            RequestKind::Write => shape("write", 56 + BLOCK_CHECKSUMS, COMPONENT_PAYLOAD),
            RequestKind::Trim => shape("trim", 56, 0),
            RequestKind::Read => shape("read", 24, 0),
            RequestKind::Settle => shape("settle", 32, 0),
            RequestKind::Changed => shape("changed request", 32, 0),
            RequestKind::Create => shape("create", 64 + DISK_LABEL_SIZE_MAX, 0),
            RequestKind::Update => shape("update", 64 + DISK_LABEL_SIZE_MAX, 0),
            RequestKind::Delete => shape("delete", 8, 0),
            RequestKind::GuestRead => shape("guest read", 40, 0),
            RequestKind::GuestWrite => shape("guest write", 32 + GUEST_CHECKSUMS, GUEST_PAYLOAD),
            RequestKind::GuestFlush => shape("guest flush", 24, 0),
            RequestKind::GuestTrim => shape("guest trim", 40, 0),
            RequestKind::GuestWriteZeroes => shape("guest zero-write", 48, 0),
            RequestKind::GuestStatus => shape("guest status request", 40, 0),
            RequestKind::Yield => shape("yield", 16, 0),
            RequestKind::GuestGone => shape("guest gone", 8, 0),
            RequestKind::Allocation => shape("allocation request", 24, 0),
            RequestKind::Held => shape("held request", 16, 0),
            RequestKind::Promote => shape("promote", 32, 0),
            RequestKind::Checksums => shape("checksums request", 24, 0),
            RequestKind::View => shape("view", 24, 0),
            RequestKind::Snapshot => shape("snapshot", 16, 0),
            RequestKind::DropSnapshot => shape("snapshot deletion", 16, 0),
            RequestKind::Snapshots => shape("snapshots request", 16, 0),
            RequestKind::GuestView => shape("guest view", 40, 0),
            RequestKind::ViewAllocation => shape("view allocation request", 32, 0),
            RequestKind::GuestViewStatus => shape("guest view status request", 48, 0),
            RequestKind::GuestCopyUp => shape("guest copy-up", 40, 0),
            RequestKind::LateSnapshot => shape("late snapshot", 16, 0),
            RequestKind::Backfill => shape("backfill", 32 + BLOCK_CHECKSUMS, COMPONENT_PAYLOAD),
            RequestKind::SyncBackfill => shape("backfill synchronization", 16, 0),
            RequestKind::Damage => shape("damage request", 16, 0),
            RequestKind::Mend => shape("mend", 32 + BLOCK_CHECKSUMS, COMPONENT_PAYLOAD),
        }
    }
}

impl Kind for AnswerKind {
    fn from_code(code: u8) -> Option<AnswerKind> {
        ANSWER_KINDS.get(usize::from(code.checked_sub(AnswerKind::Done as u8)?)).copied()
    }

    fn code(self) -> u8 {
        self as u8
    }

    fn shape(self) -> Shape {
        match self {
            AnswerKind::Done => shape("done", 8, 0),
            AnswerKind::Opened => shape("opened", 16 + 32 * ENTRIES_MAX, 0),
            AnswerKind::Data => shape("data", 8 + 2 * BLOCK_CHECKSUMS, COMPONENT_PAYLOAD),
            AnswerKind::Changed => shape("changed", 16 + 200 * CHANGED_PARTS_MAX, 0),
            AnswerKind::GuestDone => shape("guest done", 0, 0),
            AnswerKind::GuestData => shape("guest data", BODY_SIZE_MAX, GUEST_PAYLOAD),
            AnswerKind::GuestStatus => shape("guest status", BODY_SIZE_MAX, 0),
            AnswerKind::GuestFailed => shape("guest failure", 8, 0),
            AnswerKind::Refused => shape("refused", 8, 0),
            AnswerKind::Revoke => shape("revoke", 16, 0),
            AnswerKind::Allocation => shape("allocation", 8 + 8 * STATUS_RUNS_MAX, 0),
            AnswerKind::Held => shape("held", 16 + 24 * HELD_RANGES_MAX, 0),
            AnswerKind::Checksums => shape("checksums", 8 + BLOCKS_PER_EXTENT / 8 + BLOCK_CHECKSUMS, 0),
            AnswerKind::Snapshots => shape("snapshots", 8 + 4 * SNAPSHOTS_MAX, 0),
            AnswerKind::Damage => shape("damage", 8 + 12 * DAMAGED_MAX, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Kind + PartialEq + std::fmt::Debug>(kinds: &[K]) {
        let known: Vec<u8> = (0..=255).filter(|&code| K::from_code(code).is_some()).collect();
        assert_eq!(known, kinds.iter().map(|kind| kind.code()).collect::<Vec<u8>>());
        for &kind in kinds {
            assert_eq!(K::from_code(kind.code()), Some(kind));
            // The limits of each kind are checked against the limits of all, also where no test sends one.
            let _ = kind.shape();
        }
    }

    #[test]
    fn a_code_names_one_kind_and_no_code_names_a_request_and_an_answer() {
        check(&REQUEST_KINDS);
        check(&ANSWER_KINDS);
        assert!(
            (0..=255)
                .all(|code| RequestKind::from_code(code).is_none() || AnswerKind::from_code(code).is_none())
        );
    }
}
