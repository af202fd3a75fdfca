//! Parts of a disk's record beside its layout and its roster: its state, incoming components, stand-ins and growth.

use crate::attaching::Claim;
use crate::levels::TooEarly;
use crate::limits::SNAPSHOTS_MAX;
use base::{ComponentId, DeviceId, NodeId};
use layout::{Component, Layout};
use placement::{Debt, Every, Percent, Policy};
use std::collections::BTreeMap;

/// How far a disk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskState {
    /// Its components may exist or not. Nobody was told that the disk exists.
    Creating,
    /// It can be used.
    Active,
    /// Its components are being deleted. Nobody can use it.
    Deleting,
}

/// Why a component is on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Another one is lost.
    Repair,
    /// A host or a device is to be emptied.
    Evacuation,
    /// Devices are rebalanced.
    Balance,
    /// The policy asks for more copies.
    Policy,
}

/// A component on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The place that it will answer for, by its depth-first index.
    pub place: u16,
    /// The component, as it will stand in the layout.
    pub component: Component,
    /// The component of that place that it replaces; none for one more copy.
    pub replaces: Option<ComponentId>,
    /// Why.
    pub reason: Reason,
}

/// A component that stands in for another, or is about to: it is in no layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The place of both, by its depth-first index.
    pub place: u16,
    /// The component, of the size of its place.
    pub component: Component,
    /// The component of the layout that it stands in for.
    pub of: ComponentId,
}

/// A move into another layout. While the components of that are made, it stands beside a [`Growth`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving {
    /// The policy of the disk once all of it has moved.
    pub policy: Policy,
    /// The share of every component that is reserved from then on.
    pub space_reservation: Percent,
    /// What that policy asks for and the disk lacks then.
    pub debts: Vec<Debt>,
    /// Whether it moves back.
    pub is_back: bool,
    /// Whether it pauses.
    pub is_paused: bool,
    /// See [`replication::Moved`].
    pub trimmed: u64,
    /// The named policy that the disk followed before, in case that the move cannot begin.
    pub followed: Option<String>,
}

/// What moving a disk into another layout takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovePlan {
    /// Bytes that are written to the devices of the new layout, copies and parity included.
    pub bytes_to_copy: u64,
    /// The devices that get something.
    pub devices: Vec<MoveRoom>,
}

/// The space of a device that a move uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveRoom {
    /// The device.
    pub device: DeviceId,
    /// Bytes in use now.
    pub used_bytes: u64,
    /// The most bytes in use while the disk moves, if what is written of it lies together.
    pub peak_bytes: u64,
    /// The same if it is scattered, so that each extent of it takes full stripes of its own in the other layout.
    pub scattered_peak_bytes: u64,
    /// The most bytes that a move may leave it with.
    pub limit_bytes: u64,
}

/// A larger size, in force once its components exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The size in bytes.
    pub size: u64,
    /// The future layout: that of the disk with larger components, or with one more part at its end.
    pub layout: Layout,
    /// The nodes of the components that are new in it.
    pub nodes: BTreeMap<ComponentId, NodeId>,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its number, by which components know it.
    pub number: u32,
    /// Its name, unique among those of the disk.
    pub name: String,
    /// The size of the disk then, in bytes.
    pub size: u64,
    /// When the record said that it was taken, in nanoseconds since 1970.
    pub taken_ns: u64,
    /// The schedule that it belongs to; none of one that a person took or renamed.
    pub schedule: Option<Every>,
    /// Whether its schedule never deletes it.
    pub is_pinned: bool,
}

/// A rollback that has begun and not ended. The disk may hold part of what the snapshot has and part of what came after it, so no guest gets
/// the disk. Snapshots are named by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollback {
    /// The snapshot that the disk is rolled back to.
    pub to: u32,
    /// The snapshot that this attempt took first. No other attempt has it, and only blocks that differ between the two are copied.
    pub since: u32,
    /// The snapshot that the first attempt took: what guests had written last.
    pub before: u32,
    /// Whether that one stays when the rollback is done.
    pub keeps: bool,
    /// Whether clients of several hosts may have the disk at once when it is done. Not while it is under way.
    pub is_shared: bool,
    /// The process that copies. None: it could not go on.
    pub by: Option<Claim>,
}

/// The snapshots of a disk, beside what its roster says of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// Those that were taken, ascending by number.
    pub taken: Vec<Snapshot>,
    /// The name of the last one that was asked for.
    pub last_asked: Option<String>,
    /// The schedule for which one is asked for, and when it was due, in seconds since 1970; none if a person asked for it.
    pub asked_for: Option<(Every, u64)>,
    /// When the last snapshot of each schedule was due, in seconds since 1970. It stays when that snapshot is deleted.
    pub served: BTreeMap<Every, u64>,
}

impl Snapshots {
    /// The one with a name.
    pub fn named(&self, name: &str) -> Option<&Snapshot> {
        self.taken.iter().find(|one| one.name == name)
    }
}

/// Why a disk cannot have a snapshot, or loses none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSnapshot {
    /// The name is taken.
    #[error("the disk has a snapshot named {0} already: choose another name, or delete that one")]
    Taken(String),
    /// There is none of that name.
    #[error("the disk has no snapshot named {0} (`drystone disk snapshot list`)")]
    Unknown(String),
    /// Its schedule does not ask for one now.
    #[error("no snapshot of this schedule is due")]
    NotDue,
    /// None is asked for.
    #[error("no snapshot of the disk is being taken")]
    NotAsked,
    /// One is asked for.
    #[error("a snapshot of the disk is being taken: {0}")]
    Asked(String),
    /// It has as many as it can.
    #[error("the disk has {SNAPSHOTS_MAX} snapshots, which is the most that it can have: delete some first")]
    TooMany,
    /// Records of this level have none of such disks.
    #[error("{0}: `drystone cluster upgrade` raises it once all hosts run this release")]
    TooEarly(TooEarly),
    /// It has snapshots, which stand in the way.
    #[error(
        "the disk has snapshots, and {0} with them yet: delete them first (`drystone disk snapshot delete`)"
    )]
    Has(&'static str),
    /// Disks are clones of it.
    #[error(
        "{count} disks are clones of snapshot {name} (`drystone disk list --clones-of`): delete them first, or have them copy what they share with it (`drystone disk flatten`)"
    )]
    HasClones {
        /// The snapshot.
        name: String,
        /// How many.
        count: u32,
    },
    /// A rollback needs it.
    #[error(
        "snapshot {0} is needed until the rollback of the disk is done: finish that first (`drystone disk snapshot rollback`)"
    )]
    RollbackNeeds(String),
    /// The disk holds parts of two states.
    #[error(
        "the disk is being rolled back to snapshot {0}, and that is not done: wait for it, or repeat it if it was cut short (`drystone disk \
         snapshot rollback`)"
    )]
    RollingBack(String),
    /// Another attempt copies, or none.
    #[error("this attempt at the rollback was replaced by another one, or the disk is not being rolled back")]
    NoRollback,
    /// A component has a snapshot that cannot be read without it.
    #[error(
        "snapshot {name} cannot be read without component {component}: delete that snapshot first, or bring another component of the disk back that has it"
    )]
    OnlyOn {
        /// The component.
        component: ComponentId,
        /// The snapshot.
        name: String,
    },
}
