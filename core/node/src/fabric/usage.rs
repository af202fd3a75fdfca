//! Disks of the cluster on this node: who uses them here, who shall own them, and requests on their way to the owner.
//!
//! The node whose guests use a disk wants to own it. Another that owns it lets go once no guest of its own uses it; until
//! then requests are forwarded. A disk whose owner cannot be reached is taken over: at once where guests wait for it, and
//! by one of the nodes that hold it when it is not whole.

use super::For;
use super::owned::Piece;
use crate::limits;
use crate::node::{Node, Output, Token};
use crate::range::range_of;
use crate::request::{Holes, RequestState, Requester};
use base::request::{Request as GuestRequest, RequestError};
use base::{ComponentId, DiskId, Instant, NodeId, RequestTag};
use replication::components::Caller;
use replication::owner::{Input, Lost, OwnerState, Phase};
use replication::{Owner, Roster, Standing};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::Duration;
use wire::{Answer, Refusal, Request};

/// The cluster's half of a disk.
#[derive(Debug)]
pub(crate) struct ClusterDisk {
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
    is_used: bool,
    /// Requests that wait for an owner, oldest first.
    held: VecDeque<u32>,
    /// Since when the owner in the record could not be reached.
    unreachable_since: Option<Instant>,
    /// The version of the record whose owner says that it is not the owner.
    denied: Option<u64>,
    /// A component that has promised this epoch, or knows that it was served, while the record names no such epoch: the record is
    /// older than what stands on the devices.
    pub(crate) promised: Option<(ComponentId, u32)>,
    /// Whether another node was seen to own it by a change of the record since this one started: then the record is not an old one.
    pub(crate) is_live: bool,
    /// Times in a row that the disk was taken from this node.
    losses: u32,
    /// When the owner was last asked to let go.
    yield_asked: Instant,
    look_at: Option<Instant>,
}

/// What a node tells about a disk of the cluster.
#[derive(Debug, Clone)]
pub struct ClusterDiskState {
    /// The record's version and what it says.
    pub version: u64,
    /// It.
    pub roster: Roster,
    /// The owner's figures, if it is here.
    pub owner: Option<OwnerState>,
    /// Whether guests use the disk through this node.
    pub is_used: bool,
    /// Requests that wait for an owner.
    pub held: usize,
    /// A component that has promised this epoch, which is later than any that the record knows: the record is older than the
    /// devices, and nobody serves the disk by it.
    pub promised: Option<(ComponentId, u32)>,
}

impl ClusterDisk {
    /// Whether guests use the disk through this node.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// The component that the record is older than, and the epoch that it knows of.
    fn older_than(&self) -> Option<(ComponentId, u32)> {
        self.promised.filter(|(_, epoch)| self.owner.is_none() && self.roster.epoch < *epoch)
    }

    pub(crate) fn new(version: u64, roster: Roster) -> ClusterDisk {
        ClusterDisk {
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
}

fn cluster_state(cluster: &ClusterDisk) -> ClusterDiskState {
    ClusterDiskState {
        version: cluster.version,
        roster: cluster.roster.clone(),
        owner: cluster.owner.as_ref().map(|owner| owner.state()),
        is_used: cluster.is_used,
        held: cluster.held.len(),
        promised: cluster.older_than(),
    }
}

/// What a node does about a disk that it does not own.
enum Next {
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

impl Node {
    /// Guests use a disk through this node from now on, or do not any more.
    pub fn set_used(&mut self, now: Instant, disk: DiskId, is_used: bool, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        self.disks[key.0].cluster.is_used = is_used;
        self.step_owner(key.0, Input::Used { is_used });
        self.look_soon(key.0);
        self.look_at_disks(out);
        self.pump(out);
    }

    /// Owns a disk that nobody owns, or whose owner cannot be reached: nothing is brought up to date without an owner.
    pub fn own_disk(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        let up = self.fabric().up();
        let me = self.fabric().me();
        let is_free = |cluster: &ClusterDisk| {
            let owner = cluster.roster.owner.map(|owner| owner.node);
            let is_in_doubt = cluster.older_than().is_some() || cluster.roster.diverged().next().is_some();
            cluster.owner.is_none()
                && !is_in_doubt
                && owner.is_none_or(|node| node == me || !up.contains(&node))
        };
        let state = &self.disks[key.0];
        if state.closing.is_none() && is_free(&state.cluster) {
            self.claim(key.0);
            self.pump(out);
        }
    }

    /// Lets go of a disk that this node owns, as before a clean stop. [`replication::owner::Event::Ended`] tells when.
    pub fn release_disk(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) {
        self.now = now;
        if let Some(key) = self.disk(disk) {
            self.step_owner(key.0, Input::Release);
            self.advance_owners(out);
        }
    }

    /// What is known of a disk of the cluster.
    pub fn cluster_disk(&self, disk: DiskId) -> Option<ClusterDiskState> {
        Some(cluster_state(&self.disks[self.disk(disk)?.0].cluster))
    }

    /// What is known of all disks of the cluster, in one pass.
    pub fn cluster_disks(&self) -> impl Iterator<Item = (DiskId, ClusterDiskState)> {
        self.disks.iter().map(|(_, disk)| (disk.spec.id, cluster_state(&disk.cluster)))
    }

    /// The disks that are owned here.
    pub fn owned_disks(&self) -> impl Iterator<Item = DiskId> {
        let owned = self.disks.iter().filter(|(_, disk)| disk.cluster.owner.is_some());
        owned.map(|(_, disk)| disk.spec.id)
    }

    /// The disk was taken from this node, or let go of.
    pub(crate) fn note_end(cluster: &mut ClusterDisk, is_lost: bool) {
        cluster.unreachable_since = None;
        cluster.losses = if is_lost { cluster.losses + 1 } else { 0 };
    }

    pub(crate) fn look_soon(&mut self, disk: u32) {
        self.look_later(disk, self.now);
    }

    fn look_later(&mut self, disk: u32, at: Instant) {
        let Some(cluster) = self.disks.get_mut(disk).map(|disk| &mut disk.cluster) else { return };
        if cluster.look_at.is_none_or(|before| at < before) {
            cluster.look_at = Some(at);
            self.fabric().looks.push(Reverse((at, disk)));
        }
    }

    /// Looks at the disks whose time has come: who shall own them, and where their requests shall go.
    pub(crate) fn look_at_disks(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        while let Some(&Reverse((at, disk))) = self.fabric().looks.peek()
            && at <= now
        {
            self.fabric().looks.pop();
            let cluster = self.disks.get_mut(disk).map(|disk| &mut disk.cluster);
            let Some(cluster) = cluster.filter(|cluster| cluster.look_at == Some(at)) else { continue };
            cluster.look_at = None;
            match self.next_for(disk) {
                Next::Claim => self.claim(disk),
                Next::Forward { to, wants_it } => {
                    self.forward_held(disk, to, out);
                    if wants_it {
                        self.ask_to_yield(disk, to, out);
                        self.look_later(disk, now + limits::YIELD_INTERVAL);
                    }
                }
                Next::Ask => {
                    let disk_id = self.disks[disk].spec.id;
                    out.push(Output::Fabric(super::FabricOutput::Fetch { disk: disk_id }));
                    self.look_later(disk, now + limits::OLDER_RECORD_RETRY);
                }
                Next::Wait(at) => self.look_later(disk, at),
                Next::Nothing => {}
            }
        }
    }

    fn next_for(&mut self, disk: u32) -> Next {
        let now = self.now;
        let me = self.fabric().settings.me;
        let up = self.fabric().up();
        let serves_older = self.serves_older_records();
        let cluster = &mut self.disks[disk].cluster;
        if cluster.owner.is_some() {
            return Next::Nothing;
        }
        // A person decides what becomes of it.
        if cluster.roster.diverged().next().is_some() {
            return Next::Nothing;
        }
        let is_older = cluster.older_than().is_some() && !serves_older;
        let wants_it = cluster.is_used || cluster.held.iter().next().is_some();
        let owner = cluster.roster.owner.map(|owner| owner.node);
        let is_denied = cluster.denied == Some(cluster.version);
        if let Some(to) = owner.filter(|node| up.contains(node) && !is_denied) {
            cluster.unreachable_since = None;
            cluster.losses = 0;
            return Next::Forward { to, wants_it: cluster.is_used };
        }
        if is_older {
            return Next::Ask;
        }
        let ended = owner.and_then(|node| self.fabric.ended.get(&node).copied());
        let cluster = &mut self.disks[disk].cluster;
        let has_ended =
            cluster.roster.owner.is_some_and(|one| ended.is_some_and(|last| one.incarnation <= last));
        let is_mine = owner == Some(me.node);
        if (owner.is_none() || is_mine) && wants_it {
            return Next::Claim;
        }
        // Nobody here uses it. If it is whole it may rest; if not, one of those that hold it sees to its repair.
        let active = cluster.roster.members.iter().filter(|one| one.standing == Standing::Active);
        let mut holders: Vec<NodeId> = active.map(|one| one.node).collect();
        holders.dedup();
        let is_whole = cluster.roster.members.iter().all(|one| one.standing == Standing::Active);
        let reachable = |node: &&NodeId| **node == me.node || up.contains(*node);
        let rank = holders.iter().filter(reachable).position(|node| *node == me.node);
        let rank = if is_mine { Some(0) } else { rank };
        let since = *cluster.unreachable_since.get_or_insert(now);
        let patience = match rank {
            // Two nodes whose guests use the disk and that cannot reach one another would take it from one another for
            // ever: each time it is lost they wait longer, and not equally long.
            _ if wants_it => {
                let losses = cluster.losses.min(limits::TAKE_OVER_LOSSES_MAX);
                let share = (me.node.host.0 % 8) as u32 + 1;
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

    fn serves_older_records(&mut self) -> bool {
        !self.fabric().settings.rules.hold(replication::Rule::RefuseOlderRecords)
    }

    fn ask_to_yield(&mut self, disk: u32, owner: NodeId, out: &mut Vec<Output>) {
        let now = self.now;
        let id = self.disks[disk].spec.id;
        let cluster = &mut self.disks[disk].cluster;
        if now.since(cluster.yield_asked) >= limits::YIELD_INTERVAL {
            cluster.yield_asked = now;
            self.ask_node(owner, For::Yield { disk: id }, Request::Yield { disk: id }, out);
        }
    }

    /// Another node's guests use the disk: it is let go of if no guest of this node does.
    pub(crate) fn yield_disk(&mut self, caller: Caller, token: u32, disk: DiskId, out: &mut Vec<Output>) {
        let key = self.disk(disk).map(|key| key.0);
        let is_used = |key: u32| self.disks[key].cluster.is_used;
        let answer = match key.filter(|key| self.owner(*key).is_some()) {
            None => Answer::Refused(Refusal::NotOwner),
            Some(key) if is_used(key) => Answer::Refused(Refusal::InUse),
            Some(key) => {
                self.step_owner(key, Input::Release);
                Answer::Refused(Refusal::Busy)
            }
        };
        self.answer(caller, token, answer, out);
    }

    /// A guest's request that came to another node. This one answers if it owns the disk, or is about to.
    pub(crate) fn guest_of_peer(
        &mut self,
        (caller, token): (Caller, u32),
        disk: DiskId,
        tag: RequestTag,
        request: GuestRequest,
        out: &mut Vec<Output>,
    ) {
        let key = self.disk(disk).map(|key| key.0).filter(|key| {
            let phase = self.owner(*key).map(Owner::phase);
            matches!(phase, Some(Phase::Opening | Phase::Serving))
        });
        let (offset, len) = range_of(&request);
        match key {
            // Its host knows another size, or this one does: whichever is late hears of it soon.
            Some(key) if offset + len > self.disks[key].spec.size => {
                self.answer(caller, token, Answer::Refused(Refusal::Busy), out);
            }
            Some(key) => self.begin_request(Requester::Peer { caller, token }, tag, key, request, out),
            None => self.answer(caller, token, Answer::Refused(Refusal::NotOwner), out),
        }
    }

    /// A request waits for an owner.
    pub(crate) fn hold(&mut self, key: u32, out: &mut Vec<Output>) {
        let disk = self.requests[key as usize].disk();
        if let Requester::Peer { caller, token } = self.requests[key as usize].requester {
            // Whoever sent it knows better where to send it next; but to a disk that is served and gets new places, here.
            let why = if self.is_serving(disk) { Refusal::Busy } else { Refusal::NotOwner };
            self.drop_request(key, out);
            return self.answer(caller, token, Answer::Refused(why), out);
        }
        if let Requester::Surplus(_) = self.requests[key as usize].requester {
            return self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
        if self.disks[disk].closing.is_some() {
            return self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
        if self.requests[key as usize].is_abandoned {
            return self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
        let cluster = &mut self.disks[disk].cluster;
        cluster.held.push_back(key);
        self.look_soon(disk);
    }

    /// The guest of a request is gone. A request that waits for an owner ends; one that has begun may still happen, but
    /// only now: applied after the guest was started elsewhere, it would undo what that does.
    pub fn abandon(&mut self, now: Instant, token: Token, out: &mut Vec<Output>) {
        self.now = now;
        let is_it = |state: &RequestState| matches!(state.requester, Requester::Guest(of) if of == token);
        let Some((key, _)) = self.requests.iter().find(|(_, state)| is_it(state)) else { return };
        self.abandon_request(key as u32, out);
        self.pump(out);
    }

    fn abandon_request(&mut self, key: u32, out: &mut Vec<Output>) {
        self.requests[key as usize].is_abandoned = true;
        let (disk, tag) = (self.requests[key as usize].disk(), self.requests[key as usize].tag);
        let cluster = &mut self.disks[disk].cluster;
        if let Some(index) = cluster.held.iter().position(|held| *held == key) {
            cluster.held.remove(index);
            return self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
        self.step_owner(disk, Input::Abandon { token: Piece::changes_of(key).into() });
        let is_it =
            |pending: &super::Pending| matches!(pending.whom, For::Guest { request } if request == key);
        let found = self.fabric().pending.iter().find(|(_, pending)| is_it(pending));
        if let Some(node) = found.map(|(_, pending)| pending.node) {
            self.ask_node(node, For::Nobody, Request::GuestGone { tag }, out);
        }
    }

    /// The session of a node is over: it sends anew what its guests still want. What waits here of it must not happen after
    /// that, or after what a guest did that was started elsewhere.
    pub(crate) fn abandon_forwarded(&mut self, peer: NodeId, session: u64, out: &mut Vec<Output>) {
        self.abandon_where(|caller, _| *caller == Caller { node: peer, session }, out);
    }

    /// A guest of another node is gone, and with it its interest in a request.
    pub(crate) fn forget_forwarded(&mut self, peer: NodeId, tag: RequestTag, out: &mut Vec<Output>) {
        self.abandon_where(|caller, state| caller.node == peer && state.tag == tag, out);
    }

    /// Abandons requests of other nodes' guests.
    fn abandon_where(&mut self, is_it: impl Fn(&Caller, &RequestState) -> bool, out: &mut Vec<Output>) {
        let chosen = |(key, state): (usize, &RequestState)| match &state.requester {
            Requester::Peer { caller, .. } => is_it(caller, state).then_some(key as u32),
            Requester::Guest(_) | Requester::Surplus(_) => None,
        };
        let keys: Vec<u32> = self.requests.iter().filter_map(chosen).collect();
        keys.into_iter().for_each(|key| self.abandon_request(key, out));
    }

    /// The disk goes: everything that waits for an owner is refused.
    pub(crate) fn refuse_held(&mut self, disk: u32, out: &mut Vec<Output>) {
        let cluster = &mut self.disks[disk].cluster;
        for key in std::mem::take(&mut cluster.held) {
            self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
    }

    /// The disk is served here: what waited begins.
    pub(crate) fn serve_held(&mut self, disk: u32, out: &mut Vec<Output>) {
        let cluster = &mut self.disks[disk].cluster;
        for key in std::mem::take(&mut cluster.held) {
            self.start_request(key, out);
        }
    }

    fn forward_held(&mut self, disk: u32, to: NodeId, out: &mut Vec<Output>) {
        let id = self.disks[disk].spec.id;
        let cluster = &mut self.disks[disk].cluster;
        for key in std::mem::take(&mut cluster.held) {
            if !self.is_within(key) {
                self.end_forwarded(key, Err(RequestError::OutOfRange), out);
                continue;
            }
            let (tag, request) =
                (self.requests[key as usize].tag, self.requests[key as usize].request().clone());
            self.ask_node(to, For::Guest { request: key }, Request::Guest { disk: id, tag, request }, out);
        }
    }

    /// A request that was forwarded ended, or must go elsewhere.
    pub(crate) fn forwarded(&mut self, key: u32, answer: Result<Answer, Lost>, out: &mut Vec<Output>) {
        match answer {
            Ok(Answer::Guest(outcome)) => self.end_forwarded(key, outcome, out),
            Ok(Answer::Refused(_)) | Err(Lost) if self.requests[key as usize].is_abandoned => {
                self.end_forwarded(key, Err(RequestError::Stopping), out);
            }
            Ok(Answer::Refused(_)) | Err(Lost) => {
                let disk = self.requests[key as usize].disk();
                if self.disks[disk].closing.is_some() {
                    return self.end_forwarded(key, Err(RequestError::Stopping), out);
                }
                let is_denied = matches!(answer, Ok(Answer::Refused(Refusal::NotOwner)));
                let id = self.disks[disk].spec.id;
                let cluster = &mut self.disks[disk].cluster;
                cluster.held.push_back(key);
                if is_denied {
                    cluster.denied = Some(cluster.version);
                }
                if self.owner(disk).is_some() {
                    return self.serve_held_if_serving(disk, out);
                }
                // What is known of the owner may be out of date.
                out.push(Output::Fabric(super::FabricOutput::Fetch { disk: id }));
                self.look_later(disk, self.now + limits::FORWARD_RETRY);
            }
            // No answer to a guest's request: its node cannot be relied on.
            Ok(_) => self.forwarded(key, Err(Lost), out),
        }
    }

    pub(crate) fn serve_held_if_serving(&mut self, disk: u32, out: &mut Vec<Output>) {
        if self.may_start(disk) {
            self.serve_held(disk, out);
        }
    }

    /// A guest's request came in: it may begin at once if the disk is owned here, and waits for an owner else.
    pub(crate) fn may_start(&self, disk: u32) -> bool {
        // An owner that does not know of places that the disk has got is over soon.
        let needed = self.disks[disk].spec.layout.place_count();
        self.is_serving(disk) && self.owner(disk).is_some_and(|owner| owner.place_count() >= needed)
    }

    /// Whether the session in which a request of another node's guest came still lasts.
    pub(crate) fn is_current(&self, caller: Caller) -> bool {
        let accepted = self.fabric.accepted.get(&caller.node);
        accepted.is_some_and(|accepted| accepted.session == caller.session)
    }

    /// Back-pressure of the components of a disk that is owned here, the greatest of all places.
    pub(crate) fn owner_congestion(&self, disk: u32) -> u8 {
        self.owner(disk).map_or(0, Owner::congestion)
    }
}
