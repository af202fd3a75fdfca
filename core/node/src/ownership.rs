//! The ownership of a disk as this node knows it: the record of the directory, the owner if it is on this node, and
//! requests that wait for an owner.

use crate::holes::Holes;
use crate::interface::{MoveState, OwnershipState};
use crate::limits;
use crate::pace::LimitFigures;
use base::{ComponentId, Instant, NodeId};
use replication::{Owner, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The ownership of a disk, and the requests that wait for an owner.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// The version of the newest known record.
    pub(crate) version: u64,
    pub(crate) roster: Roster,
    /// The version of the record that the disk's spec is of.
    pub(crate) spec_version: u64,
    /// The owner, while this node owns the disk or claims it.
    pub(crate) owner: Option<Box<Owner>>,
    pub(crate) owner_number: u64,
    /// The stretch that this owner knows to be empty.
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
    /// A component that promised this epoch, or knows that it was served, although the record names no such epoch:
    /// the record is older than the devices.
    pub(crate) promised: Option<(ComponentId, u32)>,
    /// Whether a change of the record since this node's start made another node the owner: then the record is not an
    /// old one.
    pub(crate) is_live: bool,
    /// Whether this node found damage of the disk that no owner has asked for yet.
    pub(crate) has_damage: bool,
    /// Times in a row that the disk was taken from this node.
    pub(crate) losses: u32,
    /// When the owner was last asked to release the disk.
    pub(crate) yield_asked: Instant,
    pub(crate) look_at: Option<Instant>,
}

/// The next step of a node that does not own a disk.
pub(crate) enum Next {
    Claim,
    /// Ask the owner to release the disk, and forward requests meanwhile.
    Forward {
        to: NodeId,
        wants_it: bool,
    },
    /// Read the record again, then decide again.
    Ask,
    /// Decide again at this time.
    Wait(Instant),
    Nothing,
}

/// The state of other nodes that decisions about a disk depend on.
pub(crate) struct Sight<'a> {
    pub(crate) now: Instant,
    /// This node.
    pub(crate) me: NodeId,
    /// The nodes that can be reached.
    pub(crate) up: &'a BTreeSet<NodeId>,
    /// Nodes whose process is known to have ended, and the last session that it can have had.
    pub(crate) ended: &'a BTreeMap<NodeId, u64>,
    /// Whether the disk has to move on ([`crate::disk::Disk::is_to_move`]).
    pub(crate) is_to_move: bool,
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
            has_damage: false,
            losses: 0,
            yield_asked: Instant(0),
            look_at: None,
        }
    }

    /// The component that shows the record to be old, with its epoch.
    pub(crate) fn older_than(&self) -> Option<(ComponentId, u32)> {
        self.promised.filter(|(_, epoch)| self.owner.is_none() && self.roster.epoch < *epoch)
    }

    /// This node lost or released the disk.
    pub(crate) fn note_end(&mut self, is_lost: bool) {
        self.unreachable_since = None;
        self.losses = if is_lost { self.losses + 1 } else { 0 };
    }

    /// The next step. To be asked again when anything changes, and at the time of [`Next::Wait`].
    pub(crate) fn next(&mut self, sight: &Sight<'_>) -> Next {
        let Sight { now, me, up, ended, is_to_move, serves_older } = *sight;
        if self.owner.is_some() {
            return Next::Nothing;
        }
        // A person has to decide.
        if self.roster.diverged().next().is_some() {
            return Next::Nothing;
        }
        let is_older = self.older_than().is_some() && !serves_older;
        let wants_it = self.is_used || self.held.iter().next().is_some();
        let owner = self.roster.owner.map(|owner| owner.node);
        let is_denied = self.denied == Some(self.version);
        let is_damaged = self.has_damage && self.roster.members.len() > 1;
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
        // No guest here uses it. A whole disk may stay without an owner. If it is not whole, or is to move, one of the nodes that
        // hold it becomes the owner, so that it is repaired and moves.
        let active = self.roster.members.iter().filter(|one| one.standing == Standing::Active);
        let mut holders: Vec<NodeId> = active.map(|one| one.node).collect();
        holders.dedup();
        let is_whole = self.roster.members.iter().all(|one| one.standing == Standing::Active);
        let reachable = |node: &&NodeId| **node == me || up.contains(*node);
        let rank = holders.iter().filter(reachable).position(|node| *node == me);
        let rank = if is_mine { Some(0) } else { rank };
        let since = *self.unreachable_since.get_or_insert(now);
        let patience = match rank {
            // Two nodes whose guests use the disk and that cannot reach each other would take it from each other for
            // ever. So each waits longer after each loss, and not equally long.
            _ if wants_it => {
                let losses = self.losses.min(limits::TAKE_OVER_LOSSES_MAX);
                let share = (me.host.0 % 8) as u32 + 1;
                let first = if has_ended { Duration::ZERO } else { limits::TAKE_OVER_AFTER };
                first + limits::TAKE_OVER_AFTER * losses * share / 4
            }
            // Somebody waits for a snapshot.
            Some(rank) if owner.is_none() && self.roster.snapshots.asked.is_some() => {
                limits::SNAPSHOT_CARE_AFTER * (rank as u32 + 1)
            }
            // What is damaged here is whole elsewhere, perhaps.
            Some(_) if owner.is_none() && is_damaged => limits::CARE_AFTER,
            // A lost owner leaves undecided writes behind, which need an owner as well.
            Some(rank)
                if owner.is_some() || !is_whole || is_to_move || self.roster.snapshots.wants_owner() =>
            {
                limits::CARE_AFTER + limits::CARE_AFTER * rank as u32
            }
            Some(_) | None => return Next::Nothing,
        };
        let at = since + patience;
        if at > now { Next::Wait(at) } else { Next::Claim }
    }

    /// Its state for reports.
    pub(crate) fn state(&self, limits: LimitFigures, moving: Option<MoveState>) -> OwnershipState {
        OwnershipState {
            version: self.version,
            roster: self.roster.clone(),
            owner: self.owner.as_ref().map(|owner| owner.state()),
            is_used: self.is_used,
            held: self.held.len(),
            promised: self.older_than(),
            limits,
            zero_bytes_trimmed: 0, // The disk has it.
            moving,
        }
    }
}
