//! The cluster's records, and the decisions that follow from them.
//!
//! Relies on `layout`, `placement`, `wire` and `replication`. Must never perform a transaction or read a clock.

mod device;
mod disk;
mod host;
pub mod limits;
mod liveness;
mod repair;
#[cfg(test)]
mod testing;
mod view;

pub use device::{DeviceRecord, DeviceState};
pub use disk::{
    Change, Disagreement, DiskRecord, DiskState, Growth, Incoming, NewDisk, Nodes, Objection, Reason,
};
pub use host::{HostRecord, Maintenance, Mode, NodeRecord};
pub use liveness::{Absence, Attendance, LinkReport, Liveness};
pub use repair::{Action, Because, Coming, Decisions, Refused, Repairs, Settings, Slot, Step, Why};
pub use view::{Ground, View};
