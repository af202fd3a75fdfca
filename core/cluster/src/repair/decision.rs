//! What repairs decide: what is due and why, and the steps that follow from it.

use crate::disk::{DiskRecord, Incoming, Objection, StandIn, Transition};
use crate::limits::{REPAIR_DELAY, REPLACEMENTS_MAX, REPLACEMENTS_PER_HOST_MAX};
use base::{ComponentId, DiskId, Instant, NodeId};
use placement::Cause;
use std::time::Duration;

/// What happens to what is missing while nothing is filled, by the settings.
pub(crate) const NOT_REPLACED: &str = "not replaced while the setting `replacements` is 0";

/// What people may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a component may be missing before another takes its place.
    pub delay: Duration,
    /// Components of the whole cluster that are filled at once. With none, what is on its way is called off, whatever for.
    pub replacements_max: usize,
    /// Components of one host that are filled at once.
    pub replacements_per_host_max: usize,
    /// Whether devices may be evened out. If not, what is on its way for that is called off.
    pub evens_out: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            delay: REPAIR_DELAY,
            replacements_max: REPLACEMENTS_MAX,
            replacements_per_host_max: REPLACEMENTS_PER_HOST_MAX,
            evens_out: true,
        }
    }
}

/// Why a component comes; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The device of another failed.
    DeviceFailed,
    /// Another lost what it had acknowledged.
    Stale,
    /// Another is not on its device any more.
    Gone,
    /// The device of another has no room for it.
    NoRoom,
    /// Another has been missing for longer than the repair delay.
    Absent {
        /// Since when.
        since: Instant,
    },
    /// The host of another is to be serviced, or its device is to be emptied.
    Evacuation,
    /// The policy asks for more copies than the disk has.
    Debt,
    /// Another copy stands in the fault domain of the one that moves.
    Domain,
    /// Devices are evened out.
    Balance,
}

impl Why {
    /// What is more urgent has less of it. Since when something is missing makes no difference: each host counts that for
    /// itself, and all are to begin with the same.
    pub(super) fn urgency(self) -> u8 {
        match self {
            Why::DeviceFailed => 0,
            Why::Stale => 1,
            Why::Gone => 2,
            Why::NoRoom => 3,
            Why::Absent { .. } => 4,
            Why::Evacuation => 5,
            Why::Debt => 6,
            Why::Domain => 7,
            Why::Balance => 8,
        }
    }
}

/// Why a component does not come after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It is lost itself, or its device has no room.
    Lost,
    /// Its host is to be serviced, or its device is to be emptied.
    Leaving,
    /// What it was to replace, or stands in for, is whole again.
    Returned,
    /// Nothing is to stand in for anything, to be evened out, or to be filled at all.
    Unwanted,
}

/// A component that is to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The node that makes it.
    pub node: NodeId,
    /// The component, and its seat.
    pub incoming: Incoming,
    /// Why.
    pub why: Why,
}

/// What is to be done with a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To own it: nothing is filled without an owner.
    Claim,
    /// To let components come.
    Begin(Vec<Coming>),
    /// To let a component that is active take its seat.
    Finish(ComponentId),
    /// To do without a component whose host is no more one of the cluster, until there is a place for another.
    GiveUp(ComponentId),
    /// To call a component off.
    Cancel(ComponentId, Because),
    /// To let components stand in for absent ones.
    StandIn(Vec<(NodeId, StandIn)>),
    /// To let a component take the seat of the one that it stands in for.
    Inherit(ComponentId),
    /// To let a component stand in no more.
    Dismiss(ComponentId, Because),
}

impl Step {
    /// The change of the disk's record; none for a claim.
    ///
    /// # Errors
    /// When the record has changed since the decision: to be decided anew.
    pub fn apply(&self, disk: &DiskRecord) -> Result<Option<Transition>, Objection> {
        match self {
            Step::Claim => Ok(None),
            Step::Begin(coming) => {
                let coming: Vec<_> = coming.iter().map(|one| (one.node, one.incoming.clone())).collect();
                disk.begin_incoming(&coming).map(Some)
            }
            Step::Finish(component) => disk.finish_incoming(*component).map(Some),
            Step::GiveUp(component) => disk.give_up(*component).map(Some),
            Step::Cancel(component, _) => disk.cancel_incoming(*component).map(Some),
            Step::StandIn(coming) => disk.begin_stand_ins(coming).map(Some),
            Step::Inherit(component) => disk.inherit(*component).map(Some),
            Step::Dismiss(component, _) => disk.end_stand_in(*component).map(Some),
        }
    }
}

/// Something for one node to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The disk.
    pub disk: DiskId,
    /// The node: the disk's owner, or the one that shall be.
    pub actor: NodeId,
    /// What.
    pub step: Step,
}

/// What is to be done now, and when to ask again if nothing happens before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decisions {
    /// For all nodes, the most urgent first.
    pub actions: Vec<Action>,
    /// When something becomes due.
    pub wait_until: Option<Instant>,
}

/// What a new component would be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// In place of this one.
    Component(ComponentId),
    /// As a further copy of this place.
    Copy(usize),
}

impl Slot {
    /// What a component on its way in is for.
    pub(super) fn of(one: &Incoming) -> Slot {
        one.replaces.map_or(Slot::Copy(usize::from(one.place)), Slot::Component)
    }
}

/// A replacement for which there is no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why not.
    pub cause: Cause,
    /// Since when.
    pub since: Instant,
    /// When it is tried again.
    pub retry_at: Instant,
}

/// A component that is to be replaced, or a copy to be added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) slot: Slot,
    pub(super) place: usize,
    pub(super) why: Why,
    /// Sound components of its place.
    pub(super) sound: usize,
}
