//! Decisions about repairs: due components with the reason, and the steps that follow.

use crate::disk::{DiskRecord, Incoming, Objection, StandIn, Transition};
use crate::limits::{REPAIR_DELAY, REPLACEMENTS_MAX, REPLACEMENTS_PER_HOST_MAX};
use base::{ComponentId, DiskId, Instant, NodeId};
use placement::Cause;
use std::time::Duration;

/// Why a missing component is not replaced while the settings forbid it.
pub(crate) const NOT_REPLACED: &str = "not replaced while the setting `replacements` is 0";

/// Settings of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a component may be missing before another takes its place.
    pub delay: Duration,
    /// Components of the whole cluster that are filled at once. With 0, incoming components are called off, whatever
    /// their reason.
    pub replacements_max: usize,
    /// Components of one host that are filled at once.
    pub replacements_per_host_max: usize,
    /// Whether devices may be rebalanced. If not, moves under way for that are called off.
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

/// Why a component is brought in; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The device of another component failed.
    DeviceFailed,
    /// Another component lost acknowledged changes.
    Stale,
    /// Another component is no longer on its device.
    Gone,
    /// The device of another component has no room for it.
    NoRoom,
    /// Another component has been missing for longer than the repair delay.
    Absent {
        /// Since when.
        since: Instant,
    },
    /// The host of another component enters maintenance, or its device is to be emptied.
    Evacuation,
    /// The policy asks for more copies than the disk has.
    Debt,
    /// Another copy stands in the fault domain of the one that moves.
    Domain,
    /// Devices are rebalanced.
    Balance,
}

impl Why {
    /// The rank: the most urgent first. Since when a component is missing does not count: each host measures that for
    /// itself, and all have to begin with the same component.
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

/// Why an incoming component or a stand-in is called off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// It is lost itself, or its device has no room.
    Lost,
    /// Its host enters maintenance, or its device is to be emptied.
    Leaving,
    /// The component that it was to replace, or stands in for, is whole again.
    Returned,
    /// The record has the component that it was to stand in for stale, and the stand-in does not count yet. Owners do not fill such a stand-in.
    GivenUp,
    /// The settings forbid stand-ins, rebalancing or replacements.
    Unwanted,
}

/// A component to bring in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// The node that makes it.
    pub node: NodeId,
    /// The component, and its seat.
    pub incoming: Incoming,
    /// Why.
    pub why: Why,
}

/// A step of a repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Become the owner: without one no component is filled.
    Claim,
    /// Bring components in.
    Begin(Vec<Coming>),
    /// Give an active component its seat.
    Finish(ComponentId),
    /// Give up a component whose host has left the cluster, until a device for another one is found.
    GiveUp(ComponentId),
    /// Call an incoming component off.
    Cancel(ComponentId, Because),
    /// Begin stand-ins of absent components.
    StandIn(Vec<(NodeId, StandIn)>),
    /// Make a stand-in the heir of its component.
    Inherit(ComponentId),
    /// End a stand-in.
    Dismiss(ComponentId, Because),
}

impl Step {
    /// The transition of the disk's record; none for a claim.
    ///
    /// # Errors
    /// When the record has changed since the decision, which is then made anew.
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

/// A step for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// The disk.
    pub disk: DiskId,
    /// The node: the disk's owner, or its future owner.
    pub actor: NodeId,
    /// What.
    pub step: Step,
}

/// The steps to take now, and when to ask again if nothing happens before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decisions {
    /// For all nodes, the most urgent first.
    pub actions: Vec<Action>,
    /// When something becomes due.
    pub wait_until: Option<Instant>,
}

/// The purpose of a new component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// In place of this one.
    Component(ComponentId),
    /// As a further copy of this place.
    Copy(usize),
}

impl Slot {
    /// The purpose of an incoming component.
    pub(super) fn of(one: &Incoming) -> Slot {
        one.replaces.map_or(Slot::Copy(usize::from(one.place)), Slot::Component)
    }
}

/// A replacement for which no device was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why not.
    pub cause: Cause,
    /// Since when.
    pub since: Instant,
    /// When it is tried again.
    pub retry_at: Instant,
}

/// A component to be replaced, or a copy to be added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub(super) slot: Slot,
    pub(super) place: usize,
    pub(super) why: Why,
    /// Sound components of its place.
    pub(super) sound: usize,
}
