//! The cluster's records, and the decisions that follow from them: who is alive, what is to be repaired, what is wrong.
//!
//! [`DiskRecord`] and [`HostRecord`] are what the directory holds; every transition gives the next record and the
//! orders for nodes. [`Attendance`] says which hosts are alive. [`Repairs`] decides what is replaced and when,
//! [`StandIns`] which components stand in for missing ones, [`SlowWatch`] which devices are to be emptied, [`assess`]
//! what maintenance of a host would do, [`Balancer`] what moves to rebalance devices, [`standstill`] why a disk stops on
//! its way into another layout, [`Scheduler`] which snapshots are due and which are kept no longer, [`findings`] what is wrong, [`what_if`] what would become of the cluster, [`enter`] at
//! which host a disk is attached. All are pure and deterministic: nodes that see the same [`View`] come to the same
//! decisions. Relies on `layout`, `placement`, `wire` and `replication`. Must never perform a transaction or read a clock.

mod adopt;
mod attaching;
mod balance;
mod compliance;
mod device;
mod disk;
mod domains;
mod encryption;
mod following;
mod ground;
mod health;
mod host;
mod levels;
pub mod limits;
mod liveness;
mod maintenance;
mod members;
mod moves;
mod orphans;
mod rebuild;
mod repair;
mod resync;
mod room;
mod schedules;
mod slow;
mod stand_ins;
mod standstill;
mod status;
#[cfg(test)]
mod testing;
mod view;
mod wall_clock;
mod what_if;
mod words;

pub use adopt::{Adopted, Found};
pub use attaching::{Access, Admission, Claim, Guest, Limit, enter, leave};
pub use balance::{Balancer, Pause};
pub use compliance::{Compliance, compliance};
pub use device::{DeviceRecord, DeviceState, Leaving};
pub use disk::life::NewDisk;
pub use disk::{
    Clones, Disagreement, DiskRecord, DiskState, Growth, Incoming, MovePlan, MoveRoom, Moving, NoSnapshot,
    Nodes, Objection, Reason, Rollback, Snapshot, Snapshots, StandIn, Transition,
};
pub use domains::{SharedDomain, shared_domains};
pub use encryption::Encryption;
pub use following::{Following, following};
pub use ground::copied_and_left;
pub use health::{
    Code, Directory, Finding, Group, Holder, Lifespan, Links, NamedDevice, Provisioned, Remedy, Severity,
    Silence, SilentMember, Subject, Surroundings, Turn, Watch, findings, is_about, remedies, silenced,
};
pub use host::{
    DamagedDevice, DeviceEncryption, DeviceReports, EncryptionReport, HostRecord, Maintenance, Mode,
    NodeRecord,
};
pub use levels::{Level, Levels, Raise, RecordLevels, TooEarly};
pub use liveness::{Absence, Attendance, LinkReport, Liveness};
pub use maintenance::{Assessment, Fate, Progress, Touched, assess, assess_device, emptying, progress};
pub use members::{Hosts, MEMBERS, MemberStep, Seat, next_member_step};
pub use moves::{Hindrance, MoveStatus, MoveWatch, MovesUnderWay};
pub use orphans::{Listed, Orphans, orphans};
pub use rebuild::{Kept, Obstacle, Rebuilt, Restored, Testimony, Unproven, rebuild};
pub use repair::{Action, Because, Coming, Decisions, Refused, Repairs, Settings, Slot, Step, Why};
pub use resync::{Motive, Resync, resyncs};
pub use room::RoomWatch;
pub use schedules::{Late, Scheduled, Scheduler, late_snapshot};
pub use slow::{Effort, Pace, Slow, SlowWatch};
pub use stand_ins::StandIns;
pub use standstill::{explain_move, standstill};
pub use status::{Condition, Known, condition, explain_disk, without_room};
pub use view::{Ground, View, component_counts, group_name};
pub use wall_clock::wall_clock;
pub use what_if::{Change, Evens, Forecast, HostSpace, NewHost, Outlook, Question, hosts_of_domain, what_if};
pub use words::UNKNOWN_TIME;
