//! Channels to and from other nodes: they begin, carry messages, fall silent and end.

use super::Job;
use super::link::{Accepted, Link};
use super::pending::{For, RequestName};
use crate::interface::{FabricOutput, LinkState, Output};
use crate::limits;
use crate::node::Node;
use base::{ComponentId, Instant, NodeId};
use replication::components::Caller;
use replication::owner::{Input, LinkChange, Lost};
use replication::{Owner, Rule};
use wire::{Answer, Message, Request, Version};

impl Node {
    /// Sets the other nodes of the cluster. Channels to them are kept up from now on; others end.
    pub fn set_peers(&mut self, now: Instant, peers: &[NodeId], out: &mut Vec<Output>) {
        self.now = now;
        let me = self.fabric.me();
        let gone: Vec<NodeId> =
            self.fabric.links.keys().filter(|node| !peers.contains(node)).copied().collect();
        for node in gone {
            self.end_link(node, LinkChange::Down, out);
            self.fabric.links.remove(&node);
        }
        for node in peers.iter().filter(|node| **node != me) {
            self.fabric.links.entry(*node).or_insert_with(|| Link::new(now));
        }
        self.pump(out);
    }

    /// A connection that was asked for is up; that version was agreed on. What came with a later one is not asked for on it.
    pub fn connected(
        &mut self,
        now: Instant,
        peer: NodeId,
        (session, version): (u64, Version),
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Some(link) = self.fabric.links.get_mut(&peer).filter(|link| link.session == session) else {
            return out.push(Output::Fabric(FabricOutput::Disconnect { peer, session }));
        };
        if link.state != LinkState::Connecting {
            return;
        }
        *link = Link { state: LinkState::Up, session, version, attempts: 0, ..Link::new(now) };
        self.fabric.jobs.push_back(Job::LinkChanged { node: peer, change: LinkChange::Up });
        self.ask_node(peer, For::Nobody, Request::Heartbeat, out);
        self.pump(out);
    }

    /// A connection that this node began is over, or could not be made.
    pub fn disconnected(&mut self, now: Instant, peer: NodeId, session: u64, out: &mut Vec<Output>) {
        self.now = now;
        if self.fabric.links.get(&peer).is_some_and(|link| link.session == session) {
            self.end_link(peer, LinkChange::Down, out);
        }
        self.pump(out);
    }

    /// Another node began a connection: any earlier one from it is over.
    pub fn accepted(&mut self, now: Instant, peer: NodeId, session: u64, out: &mut Vec<Output>) {
        self.now = now;
        let accepted = Accepted { session, sent: 0, received: 0, stamp: 0, last_received: now };
        let before = self.fabric.accepted.insert(peer, accepted);
        if let Some(before) = before.filter(|before| before.session != session) {
            out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session: before.session }));
            self.abandon_forwarded(peer, before.session, out);
        }
        self.fabric.components.session_began(Caller { node: peer, session });
        self.pump(out);
    }

    /// A connection that another node began is over.
    pub fn accepted_ended(&mut self, now: Instant, peer: NodeId, session: u64, out: &mut Vec<Output>) {
        self.now = now;
        self.drop_accepted(peer, session, out);
        self.pump(out);
    }

    /// The watcher of another node saw its process end: all sessions up to `through` are over. This node no longer
    /// waits for what only that process could have given: its grants, an answer, a new connection.
    pub fn process_ended(&mut self, now: Instant, peer: NodeId, through: u64, out: &mut Vec<Output>) {
        self.now = now;
        let fabric = &mut self.fabric;
        if !fabric.components.process_ended(now, peer, through) {
            return;
        }
        fabric.ended.insert(peer, through);
        let accepted = fabric.accepted.get(&peer).map(|one| one.session);
        if let Some(session) = accepted.filter(|session| *session <= through) {
            self.drop_accepted(peer, session, out);
            out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session }));
        }
        let link = self.fabric.links.get(&peer).map(|link| (link.is_up(), link.session));
        match link {
            Some((true, session)) => {
                out.push(Output::Fabric(FabricOutput::Disconnect { peer, session }));
                self.end_link(peer, LinkChange::Ended, out);
            }
            Some((false, _)) => {
                self.fabric.jobs.push_back(Job::LinkChanged { node: peer, change: LinkChange::Ended });
            }
            None => {}
        }
        self.pump(out);
    }

    fn drop_accepted(&mut self, peer: NodeId, session: u64, out: &mut Vec<Output>) {
        let fabric = &mut self.fabric;
        if fabric.accepted.get(&peer).is_some_and(|one| one.session == session) {
            fabric.accepted.remove(&peer);
            fabric.components.session_ended(peer);
            self.abandon_forwarded(peer, session, out);
        }
    }

    /// A request came from another node.
    pub fn request_received(
        &mut self,
        now: Instant,
        peer: NodeId,
        message: Message<Request>,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Message { session, sequence, stamp, token, body } = message;
        let accepts_all = !self.fabric.settings.rules.hold(Rule::RefuseOldSessions);
        let Some(accepted) = self.fabric.accepted.get_mut(&peer) else { return };
        if accepted.session == session {
            // The other node sends heartbeats far more often. When none came for so long, it has given the session
            // up. A request that still arrives in it may have been repeated elsewhere, and followed by others.
            let is_stale = now.since(accepted.last_received) >= replication::limits::SILENCE;
            if sequence != accepted.received + 1 || is_stale {
                self.drop_accepted(peer, session, out);
                out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session }));
                return self.pump(out);
            }
            accepted.last_received = now;
            accepted.received = sequence;
            accepted.stamp = stamp.max(accepted.stamp);
        } else if !accepts_all {
            return; // Late, from a session that is over.
        }
        let caller = Caller { node: peer, session };
        match body {
            Request::Heartbeat => self.answer(caller, token, Answer::Done { congestion: 0 }, out),
            Request::Guest { disk, tag, request } => {
                self.guest_of_peer((caller, token), disk, tag, request, out);
            }
            Request::GuestGone { tag } => {
                self.forget_forwarded(peer, tag, out);
                self.answer(caller, token, Answer::Done { congestion: 0 }, out);
            }
            Request::Yield { disk } => self.yield_disk(caller, token, disk, out),
            body => self.serve_component(caller, token, body),
        }
        self.pump(out);
    }

    /// An answer came from another node.
    pub fn answer_received(
        &mut self,
        now: Instant,
        peer: NodeId,
        message: Message<Answer>,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        let Message { session, sequence, stamp, token, body } = message;
        let Some(link) = self.fabric.links.get_mut(&peer).filter(|link| link.session == session) else {
            return;
        };
        if !link.is_up() {
            return;
        }
        if sequence != link.received + 1 {
            out.push(Output::Fabric(FabricOutput::Disconnect { peer, session }));
            self.end_link(peer, LinkChange::Down, out);
            return self.pump(out);
        }
        link.received = sequence;
        link.last_received = now;
        if stamp > 0 {
            let fabric = &mut self.fabric;
            fabric.leases.granted(peer, Instant(stamp));
            fabric.schedule.lease_came();
        }
        match body {
            Answer::Revoke { component, epoch } => self.revoked(peer, component, epoch, out),
            answer => {
                let link = self.fabric.links.get_mut(&peer).expect("it was just used");
                link.owed = link.owed.saturating_sub(1);
                let name = RequestName::on_wire(token);
                self.fabric.jobs.push_back(Job::Answered { from: peer, name, answer: Ok(answer) });
            }
        }
        self.pump(out);
    }

    /// Another owner opened a component: the owner here is superseded, and returns its grant.
    fn revoked(&mut self, peer: NodeId, component: ComponentId, epoch: u32, out: &mut Vec<Output>) {
        let is_of = |owner: &Owner| owner.epoch() == epoch;
        if let Some(disk) = self.owner_of_component(component)
            && self.owner(disk).is_some_and(is_of)
        {
            self.step_owner(disk, Input::Superseded);
        }
        self.ask_node(peer, For::Nobody, Request::Close { component, epoch }, out);
    }

    /// A channel that this node began ends: its unanswered requests are lost.
    pub(crate) fn end_link(&mut self, node: NodeId, change: LinkChange, out: &mut Vec<Output>) {
        let now = self.now;
        let fabric = &mut self.fabric;
        let Some(link) = fabric.links.get_mut(&node) else { return };
        let was_up = link.is_up();
        link.attempts += 1;
        let pause = limits::RECONNECT_PAUSE * link.attempts.min(limits::RECONNECT_PAUSES_MAX);
        link.state = LinkState::Idle { retry_at: now + pause };
        link.owed = 0;
        for name in fabric.pending.to_node(node) {
            fabric.jobs.push_back(Job::Answered { from: node, name, answer: Err(Lost) });
        }
        if was_up {
            fabric.leases.lost(node);
            fabric.jobs.push_back(Job::LinkChanged { node, change });
        }
        self.pump(out);
    }

    pub(crate) fn advance_links(&mut self, out: &mut Vec<Output>) {
        if self.fabric.links.is_empty() && self.fabric.accepted.is_empty() {
            return;
        }
        let now = self.now;
        let nodes: Vec<NodeId> = self.fabric.links.keys().copied().collect();
        for peer in nodes {
            let fabric = &mut self.fabric;
            let link = fabric.links.get_mut(&peer).expect("no link goes meanwhile");
            match link.state {
                LinkState::Idle { retry_at } if retry_at <= now => {
                    fabric.next_session += 1;
                    let session = fabric.next_session;
                    link.session = session;
                    link.state = LinkState::Connecting;
                    out.push(Output::Fabric(FabricOutput::Connect { peer, session }));
                }
                LinkState::Up if link.is_silent(now) => {
                    let session = link.session;
                    out.push(Output::Fabric(FabricOutput::Disconnect { peer, session }));
                    self.end_link(peer, LinkChange::Silent, out);
                }
                LinkState::Up if now.since(link.last_sent) >= replication::limits::HEARTBEAT => {
                    self.ask_node(peer, For::Nobody, Request::Heartbeat, out);
                }
                LinkState::Idle { .. } | LinkState::Connecting | LinkState::Up => {}
            }
        }
        self.end_silent_sessions(out);
    }

    /// Sessions that were silent for so long that the other node has given them up, or is gone. Requests of theirs
    /// that wait here must not begin any more.
    fn end_silent_sessions(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        let accepted = self.fabric.accepted.iter();
        let silent = accepted.filter(|(_, one)| now.since(one.last_received) >= replication::limits::SILENCE);
        let silent: Vec<(NodeId, u64)> = silent.map(|(peer, one)| (*peer, one.session)).collect();
        for (peer, session) in silent {
            self.drop_accepted(peer, session, out);
            out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session }));
        }
    }

    /// Nodes whose process is known to have ended, and the last session that it can have had: of all incarnations up to it.
    pub fn ended(&self) -> impl Iterator<Item = (NodeId, u64)> + '_ {
        self.fabric.ended.iter().map(|(node, through)| (*node, *through))
    }

    /// Whether the channel to another node is up.
    pub fn link_state(&self, peer: NodeId) -> Option<LinkState> {
        self.fabric.links.get(&peer).map(|link| link.state)
    }
}
