//! Use of disks on this node: which guests use them, which node is to own them, and requests on their way to the
//! owner.
//!
//! The node whose guests use a disk wants to own it. Another owner releases the disk once no guest of its own uses
//! it; until then requests are forwarded. A disk whose owner cannot be reached is taken over: at once where guests
//! wait for it, and by one of the nodes that hold it when it is not whole.

use super::pending::For;
use crate::disk::Disk;
use crate::interface::{FabricOutput, Output, OwnershipState, Token};
use crate::limits;
use crate::moves::move_state;
use crate::node::Node;
use crate::ownership::{Next, Ownership, Sight};
use crate::range::range_of;
use crate::request::{Piece, RequestState, Requester};
use base::request::{Request as GuestRequest, RequestError};
use base::{DiskId, Instant, NodeId, RequestTag};
use replication::components::Caller;
use replication::owner::{Input, Lost, Phase};
use replication::{Owner, Rule};
use wire::{Answer, Refusal, Request};

impl Node {
    /// Guests begin or stop using a disk through this node.
    pub fn set_used(&mut self, now: Instant, disk: DiskId, is_used: bool, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        self.disks[key.0].ownership.is_used = is_used;
        self.step_owner(key.0, Input::Used { is_used });
        self.look_soon(key.0);
        self.look_at_disks(out);
        self.pump(out);
    }

    /// Claims a disk that has no owner, or whose owner cannot be reached: without an owner, no component is resynced.
    pub fn own_disk(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) {
        self.now = now;
        let Some(key) = self.disk(disk) else { return };
        let up = self.fabric.up();
        let me = self.fabric.me();
        let is_free = |ownership: &Ownership| {
            let owner = ownership.roster.owner.map(|owner| owner.node);
            let is_in_doubt =
                ownership.older_than().is_some() || ownership.roster.diverged().next().is_some();
            ownership.owner.is_none()
                && !is_in_doubt
                && owner.is_none_or(|node| node == me || !up.contains(&node))
        };
        let state = &self.disks[key.0];
        if state.closing.is_none() && is_free(&state.ownership) {
            self.claim(key.0);
            self.pump(out);
        }
    }

    /// Releases a disk that this node owns, as before a clean stop. [`replication::owner::Event::Ended`] follows.
    pub fn release_disk(&mut self, now: Instant, disk: DiskId, out: &mut Vec<Output>) {
        self.now = now;
        if let Some(key) = self.disk(disk) {
            self.step_owner(key.0, Input::Release);
            self.advance_owners(out);
        }
    }

    /// The ownership of an open disk, as this node knows it.
    pub fn ownership(&self, disk: DiskId) -> Option<OwnershipState> {
        Some(self.ownership_of(&self.disks[self.disk(disk)?.0]))
    }

    /// The same of all open disks, in one pass.
    pub fn ownerships(&self) -> impl Iterator<Item = (DiskId, OwnershipState)> {
        self.disks.iter().map(|(_, disk)| (disk.spec.id, self.ownership_of(disk)))
    }

    fn ownership_of(&self, disk: &Disk) -> OwnershipState {
        let zero_bytes_trimmed = disk.zero_bytes_trimmed;
        let state = disk.ownership.state(disk.pace.figures(self.now), move_state(disk));
        OwnershipState { zero_bytes_trimmed, ..state }
    }

    /// The disks that are owned here.
    pub fn owned_disks(&self) -> impl Iterator<Item = DiskId> {
        let owned = self.disks.iter().filter(|(_, disk)| disk.ownership.owner.is_some());
        owned.map(|(_, disk)| disk.spec.id)
    }

    pub(crate) fn look_soon(&mut self, disk: u32) {
        self.look_later(disk, self.now);
    }

    fn look_later(&mut self, disk: u32, at: Instant) {
        let Some(ownership) = self.disks.get_mut(disk).map(|disk| &mut disk.ownership) else { return };
        if ownership.look_at.is_none_or(|before| at < before) {
            ownership.look_at = Some(at);
            self.fabric.schedule.look(disk, at);
        }
    }

    /// Decides about the disks that are due: which node is to own them, and where their requests go.
    pub(crate) fn look_at_disks(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        while let Some((at, disk)) = self.fabric.schedule.next_look(now) {
            let state = self.disks.get_mut(disk).filter(|disk| disk.ownership.look_at == Some(at));
            let Some(state) = state else { continue };
            let is_to_move = state.is_to_move();
            let ownership = &mut state.ownership;
            ownership.look_at = None;
            let me = self.fabric.settings.me.node;
            let (up, ended) = (self.fabric.up(), &self.fabric.ended);
            let serves_older = !self.fabric.settings.rules.hold(Rule::RefuseOlderRecords);
            match ownership.next(&Sight { now, me, up: &up, ended, is_to_move, serves_older }) {
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
                    out.push(Output::Fabric(FabricOutput::Fetch { disk: disk_id }));
                    self.look_later(disk, now + limits::OLDER_RECORD_RETRY);
                }
                Next::Wait(at) => self.look_later(disk, at),
                Next::Nothing => {}
            }
        }
    }

    fn ask_to_yield(&mut self, disk: u32, owner: NodeId, out: &mut Vec<Output>) {
        let now = self.now;
        let id = self.disks[disk].spec.id;
        let ownership = &mut self.disks[disk].ownership;
        if now.since(ownership.yield_asked) >= limits::YIELD_INTERVAL {
            ownership.yield_asked = now;
            self.ask_node(owner, For::Yield { disk: id }, Request::Yield { disk: id }, out);
        }
    }

    /// Another node's guests use the disk: releases it if no guest of this node does.
    pub(crate) fn yield_disk(&mut self, caller: Caller, token: u32, disk: DiskId, out: &mut Vec<Output>) {
        let key = self.disk(disk).map(|key| key.0);
        let is_used = |key: u32| self.disks[key].ownership.is_used;
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

    /// A guest's request from another node. This node answers if it owns the disk or is about to.
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
            // Its host knows another size than this node: one of them is late and will learn of it soon.
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
            // Its sender knows better where to send it next. But a request for a disk that is served and gets new
            // places waits there, and one for a disk that has moved on waits here for a moment.
            if self.owner(disk).is_some_and(Owner::goes_on) && self.disks[disk].closing.is_none() {
                return self.disks[disk].ownership.held.push_back(key);
            }
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
        let ownership = &mut self.disks[disk].ownership;
        ownership.held.push_back(key);
        self.look_soon(disk);
    }

    /// The guest of a request is gone. A request that waits for an owner ends. One that has begun may still happen,
    /// but only now: applied after the guest was started elsewhere, it would undo what the guest does there.
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
        let ownership = &mut self.disks[disk].ownership;
        if let Some(index) = ownership.held.iter().position(|held| *held == key) {
            ownership.held.remove(index);
            return self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
        let (now, drops) = (self.now, self.fabric.settings.rules.hold(Rule::BeginNothingAbandoned));
        if drops && self.disks[disk].pace.remove(now, key) {
            self.set_pace_alarm(disk);
            return self.start_request(key, out); // It ends there.
        }
        // What has happened on one side of a disk that moves happens on the other one, too.
        if self.requests[key as usize].followers.is_empty() {
            self.step_owner(disk, Input::Abandon { token: Piece::changes_of(key).into() });
        }
        if let Some(node) = self.fabric.pending.node_of_guest(key) {
            self.ask_node(node, For::Nobody, Request::GuestGone { tag }, out);
        }
    }

    /// The session of a node is over: that node repeats what its guests still want. Its requests that wait here must
    /// not happen after that, or after changes of a guest that was started elsewhere.
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
            Requester::Guest(_) | Requester::Surplus(_) | Requester::Clone { .. } => None,
        };
        let keys: Vec<u32> = self.requests.iter().filter_map(chosen).collect();
        keys.into_iter().for_each(|key| self.abandon_request(key, out));
    }

    /// The disk is closed: refuses all requests that wait for an owner.
    pub(crate) fn refuse_held(&mut self, disk: u32, out: &mut Vec<Output>) {
        let ownership = &mut self.disks[disk].ownership;
        for key in std::mem::take(&mut ownership.held) {
            self.end_forwarded(key, Err(RequestError::Stopping), out);
        }
    }

    /// The disk is not served here any more: who sent requests for it from elsewhere knows better where to send them next.
    pub(crate) fn refuse_peers(&mut self, disk: u32, out: &mut Vec<Output>) {
        for key in std::mem::take(&mut self.disks[disk].ownership.held) {
            match self.requests[key as usize].requester {
                Requester::Peer { caller, token } => {
                    self.drop_request(key, out);
                    self.answer(caller, token, Answer::Refused(Refusal::NotOwner), out);
                }
                Requester::Guest(_) | Requester::Surplus(_) | Requester::Clone { .. } => {
                    self.disks[disk].ownership.held.push_back(key);
                }
            }
        }
    }

    /// The disk is served here: begins the requests that waited.
    pub(crate) fn serve_held(&mut self, disk: u32, out: &mut Vec<Output>) {
        let ownership = &mut self.disks[disk].ownership;
        for key in std::mem::take(&mut ownership.held) {
            self.start_request(key, out);
        }
    }

    fn forward_held(&mut self, disk: u32, to: NodeId, out: &mut Vec<Output>) {
        let id = self.disks[disk].spec.id;
        let ownership = &mut self.disks[disk].ownership;
        for key in std::mem::take(&mut ownership.held) {
            if !self.is_within(key) {
                self.end_forwarded(key, Err(RequestError::OutOfRange), out);
                continue;
            }
            let (tag, request) =
                (self.requests[key as usize].tag, self.requests[key as usize].request().clone());
            self.ask_node(to, For::Guest { request: key }, Request::Guest { disk: id, tag, request }, out);
        }
    }

    /// A forwarded request ended, or must go elsewhere.
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
                let ownership = &mut self.disks[disk].ownership;
                ownership.held.push_back(key);
                if is_denied {
                    ownership.denied = Some(ownership.version);
                }
                if self.owner(disk).is_some() {
                    return self.serve_held_if_serving(disk, out);
                }
                // The known owner may be out of date.
                out.push(Output::Fabric(FabricOutput::Fetch { disk: id }));
                self.look_later(disk, self.now + limits::FORWARD_RETRY);
            }
            // This is no answer to a guest's request: the node is not reliable.
            Ok(_) => self.forwarded(key, Err(Lost), out),
        }
    }

    pub(crate) fn serve_held_if_serving(&mut self, disk: u32, out: &mut Vec<Output>) {
        if self.may_start(disk) {
            self.serve_held(disk, out);
        }
    }

    /// A guest's request: begins at once if the disk is owned here, otherwise waits for an owner.
    pub(crate) fn may_start(&self, disk: u32) -> bool {
        // An owner that does not know the disk's new places ends soon.
        let spec = &self.disks[disk].spec;
        let needed = spec.layout.place_count();
        let has_places =
            |owner: &replication::Owner| owner.place_count() >= needed && owner.shape() == spec.shape;
        self.is_serving(disk) && self.owner(disk).is_some_and(has_places)
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
