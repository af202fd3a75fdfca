//! What threads have done to devices for the engine, so that the engine's own thread waits for none: opened them, or written their
//! superblocks.

use crate::command::Answer;
use crate::devices::OpenDevice;
use crate::error::EngineError;
use base::{DeviceId, GroupId};
use diskgroup::format::superblock::Superblock;
use node::GroupKey;

/// Devices that a thread has opened, or why not.
pub(crate) enum Prepared {
    Group {
        result: Result<Vec<OpenDevice>, EngineError>,
        answer: Answer<Result<GroupId, EngineError>>,
    },
    Capacity {
        group: GroupKey,
        result: Result<Box<OpenDevice>, EngineError>,
        answer: Answer<Result<DeviceId, EngineError>>,
    },
    /// Superblocks were written.
    Written {
        result: Result<(), EngineError>,
        then: Written,
    },
}

/// What follows when superblocks are written.
pub(crate) enum Written {
    /// A device becomes part of its group.
    Joins {
        group: GroupKey,
        open: Box<OpenDevice>,
        superblocks: Vec<Superblock>,
        answer: Answer<Result<DeviceId, EngineError>>,
    },
    /// A group has another format.
    Converts { group: GroupKey, superblocks: Vec<Superblock> },
    /// A device has left, or a whole group.
    Left { answer: Answer<Result<(), EngineError>> },
}
