//! Who owns a disk, as this node knows: the record of the directory, its own owner while it is one, and requests that wait for one.

use crate::holes::Holes;
use crate::interface::OwnershipState;
use crate::limits;
use base::{ComponentId, Instant, NodeId};
use replication::{Owner, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Who owns a disk, and what waits for an owner.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// The record as it was last heard of.
    pub(crate) version: u64,
    pub(crate) roster: Roster,
    /// The version of the record that the disk's spec is of.
    pub(crate) spec_version: u64,
    /// While this node owns the disk, or claims it.
    pub(crate) owner: Option<Box<Owner>>,
    pub(crate) owner_number: u64,
    /// What that owner knows to be empty.
    pub(crate) holes: Holes,
    /// The transaction of the owner that is under way.
    pub(crate) commit: Option<u64>,
    /// Whether guests use the disk through this node.
    pub(crate) is_used: bool,
    /// Requests that wait for an owner, oldest first.
    pub(crate) held: VecDeque<u32>,
    /// Since when the owner in the record could not be reached.
    pub(crate) unreachable_since: Option<Instant>,
    /// The version of the record whose owner says that it is not the owner.
    pub(crate) denied: Option<u64>,
    /// A component that has promised this epoch, or knows that it was served, while the record names no such epoch: the record is
    /// older than what stands on the devices.
    pub(crate) promised: Option<(ComponentId, u32)>,
    /// Whether another node was seen to own it by a change of the record since this one started: then the record is not an old one.
    pub(crate) is_live: bool,
    /// Times in a row that the disk was taken from this node.
    pub(crate) losses: u32,
    /// When the owner was last asked to let go.
    pub(crate) yield_asked: Instant,
    pub(crate) look_at: Option<Instant>,
}

/// What a node does about a disk that it does not own.
pub(crate) enum Next {
    Claim,
    /// Ask the owner to let go, and forward meanwhile.
    Forward {
        to: NodeId,
        wants_it: bool,
    },
    /// Read the record once more, and look again.
    Ask,
    /// Look again then.
    Wait(Instant),
    Nothing,
}

/// What a node knows of the others when it decides about a disk.
pub(crate) struct Sight<'a> {
    pub(crate) now: Instant,
    /// This node.
    pub(crate) me: NodeId,
    /// The nodes that it reaches.
    pub(crate) up: &'a BTreeSet<NodeId>,
    /// Nodes whose process is known to have ended, and the last session that it can have had.
    pub(crate) ended: &'a BTreeMap<NodeId, u64>,
    /// Whether a disk is served by a record that is older than what a component has promised: never in a product build.
    pub(crate) serves_older: bool,
}

impl Ownership {
    pub(crate) fn new(version: u64, roster: Roster) -> Ownership {
        Ownership {
            version,
            roster,
            spec_version: version,
            owner: None,
            owner_number: 0,
            holes: Holes::default(),
            commit: None,
            is_used: false,
            held: VecDeque::new(),
            unreachable_since: None,
            denied: None,
            promised: None,
            is_live: false,
            losses: 0,
            yield_asked: Instant(0),
            look_at: None,
        }
    }

    /// The component that the record is older than, and the epoch that it knows of.
    pub(crate) fn older_than(&self) -> Option<(ComponentId, u32)> {
        self.promised.filter(|(_, epoch)| self.owner.is_none() && self.roster.epoch < *epoch)
    }

    /// The disk was taken from this node, or let go of.
    pub(crate) fn note_end(&mut self, is_lost: bool) {
        self.unreachable_since = None;
        self.losses = if is_lost { self.losses + 1 } else { 0 };
    }

    /// What is done about the disk now. To be asked again when anything changes, and at the time of [`Next::Wait`].
    pub(crate) fn next(&mut self, sight: &Sight<'_>) -> Next {
        let Sight { now, me, up, ended, serves_older } = *sight;
        if self.owner.is_some() {
            return Next::Nothing;
        }
        // A person decides what becomes of it.
        if self.roster.diverged().next().is_some() {
            return Next::Nothing;
        }
        let is_older = self.older_than().is_some() && !serves_older;
        let wants_it = self.is_used || self.held.iter().next().is_some();
        let owner = self.roster.owner.map(|owner| owner.node);
        let is_denied = self.denied == Some(self.version);
        if let Some(to) = owner.filter(|node| up.contains(node) && !is_denied) {
            self.unreachable_since = None;
            self.losses = 0;
            return Next::Forward { to, wants_it: self.is_used };
        }
        if is_older {
            return Next::Ask;
        }
        let ended = owner.and_then(|node| ended.get(&node).copied());
        let has_ended =
            self.roster.owner.is_some_and(|one| ended.is_some_and(|last| one.incarnation <= last));
        let is_mine = owner == Some(me);
        if (owner.is_none() || is_mine) && wants_it {
            return Next::Claim;
        }
        // Nobody here uses it. If it is whole it may rest; if not, one of those that hold it sees to its repair.
        let active = self.roster.members.iter().filter(|one| one.standing == Standing::Active);
        let mut holders: Vec<NodeId> = active.map(|one| one.node).collect();
        holders.dedup();
        let is_whole = self.roster.members.iter().all(|one| one.standing == Standing::Active);
        let reachable = |node: &&NodeId| **node == me || up.contains(*node);
        let rank = holders.iter().filter(reachable).position(|node| *node == me);
        let rank = if is_mine { Some(0) } else { rank };
        let since = *self.unreachable_since.get_or_insert(now);
        let patience = match rank {
            // Two nodes whose guests use the disk and that cannot reach one another would take it from one another for
            // ever: each time it is lost they wait longer, and not equally long.
            _ if wants_it => {
                let losses = self.losses.min(limits::TAKE_OVER_LOSSES_MAX);
                let share = (me.host.0 % 8) as u32 + 1;
                let first = if has_ended { Duration::ZERO } else { limits::TAKE_OVER_AFTER };
                first + limits::TAKE_OVER_AFTER * losses * share / 4
            }
            // An owner that is gone leaves writes undecided: that is seen to as well.
            Some(rank) if owner.is_some() || !is_whole => {
                limits::CARE_AFTER + limits::CARE_AFTER * rank as u32
            }
            Some(_) | None => return Next::Nothing,
        };
        let at = since + patience;
        if at > now { Next::Wait(at) } else { Next::Claim }
    }

    /// What the node tells of it.
    pub(crate) fn state(&self) -> OwnershipState {
        OwnershipState {
            version: self.version,
            roster: self.roster.clone(),
            owner: self.owner.as_ref().map(|owner| owner.state()),
            is_used: self.is_used,
            held: self.held.len(),
            promised: self.older_than(),
        }
    }
}
