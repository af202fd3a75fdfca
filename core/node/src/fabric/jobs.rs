//! Jobs of a node in a cluster, done one after the other: messages between its parts, and to other nodes.

use super::Job;
use super::link::Link;
use super::pending::{For, RequestName};
use crate::disk::Disk;
use crate::interface::{FabricOutput, Output, Token};
use crate::node::Node;
use base::{ComponentId, Instant, NodeId, RequestTag};
use replication::components;
use replication::components::Caller;
use replication::owner::{self, Lost};
use wire::{Answer, Refusal, Request};

impl Node {
    /// A tag for a request of this node.
    pub(crate) fn next_tag(&mut self) -> RequestTag {
        self.fabric.last_tag = self.fabric.last_tag.next();
        self.fabric.last_tag
    }

    /// Does all jobs.
    pub(crate) fn pump(&mut self, out: &mut Vec<Output>) {
        while let Some(job) = self.fabric.jobs.pop_front() {
            match job {
                Job::Components(output) => self.components_say(output, out),
                Job::Owner { disk, output } => self.owner_says(disk, output, out),
                Job::Answered { from, name, answer } => self.answered_request(from, name, answer, out),
                Job::LinkChanged { node, change } => self.tell_owners_of_link(node, change),
            }
        }
    }

    /// Sends a request to a node; the answer comes as a job.
    pub(crate) fn ask_node(&mut self, node: NodeId, whom: For, request: Request, out: &mut Vec<Output>) {
        let now = self.now;
        let fabric = &mut self.fabric;
        let name = fabric.pending.insert(node, whom);
        if node == fabric.me() {
            let caller = Caller { node, session: 0 };
            return self.serve_component(caller, name.token(), request);
        }
        let link = fabric.links.get_mut(&node).filter(|link| request.first_version() <= link.version);
        match link.and_then(|link| link.send(now, name.token(), request)) {
            Some(message) => out.push(Output::Fabric(FabricOutput::Request { peer: node, message })),
            None => fabric.jobs.push_back(Job::Answered { from: node, name, answer: Err(Lost) }),
        }
    }

    /// A request for a component of this node.
    pub(crate) fn serve_component(&mut self, caller: Caller, token: u32, request: Request) {
        let now = self.now;
        self.fabric.with_components(|components, said| components.request(now, caller, token, request, said));
    }

    fn components_say(&mut self, output: components::Output, out: &mut Vec<Output>) {
        match output {
            components::Output::Answer { to, token, answer } => self.answer(to, token, answer, out),
            components::Output::Store { op, component, store } => self.store(op, component, store, out),
            components::Output::Revoke { component } => {
                if let Some(disk) = self.owner_of_component(component) {
                    self.step_owner(disk, owner::Input::Superseded);
                }
            }
            components::Output::EndSession { caller } => {
                let fabric = &mut self.fabric;
                if fabric.accepted.get(&caller.node).is_some_and(|one| one.session == caller.session) {
                    fabric.accepted.remove(&caller.node);
                }
                let Caller { node: peer, session } = caller;
                self.abandon_forwarded(peer, session, out);
                out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session }));
            }
        }
    }

    /// Sends an answer to the caller, if the session of its request still lasts.
    pub(crate) fn answer(&mut self, to: Caller, token: u32, answer: Answer, out: &mut Vec<Output>) {
        let now = self.now;
        let fabric = &mut self.fabric;
        if to.node == fabric.me() {
            let name = RequestName::on_wire(token);
            return fabric.jobs.push_back(Job::Answered { from: to.node, name, answer: Ok(answer) });
        }
        let Some(accepted) = fabric.accepted.get_mut(&to.node).filter(|one| one.session == to.session) else {
            return;
        };
        let grants = fabric.components.grant(now, to.node);
        let message = accepted.send(token, answer, grants);
        out.push(Output::Fabric(FabricOutput::Answer { peer: to.node, message }));
    }

    fn answered_request(
        &mut self,
        from: NodeId,
        name: RequestName,
        answer: Result<Answer, Lost>,
        out: &mut Vec<Output>,
    ) {
        let Some(whom) = self.fabric.pending.take(from, name) else { return };
        match whom {
            For::Owner { disk, number, ask } => {
                if self.owner_number(disk) == Some(number) {
                    self.step_owner(disk, owner::Input::Answered { ask, answer });
                }
            }
            For::Guest { request } => self.forwarded(request, answer, out),
            For::Yield { disk } => {
                if matches!(answer, Ok(Answer::Done { .. } | Answer::Refused(Refusal::NotOwner))) {
                    out.push(Output::Fabric(FabricOutput::Fetch { disk }));
                }
            }
            For::Control { token } => {
                let answer = answer.ok();
                out.push(Output::Fabric(FabricOutput::Component { token, answer }));
            }
            For::Nobody => {}
        }
    }

    /// Asks a node to make, update or delete a component, on behalf of the control plane. Ends with
    /// [`FabricOutput::Component`].
    pub fn ask_component(
        &mut self,
        now: Instant,
        token: Token,
        node: NodeId,
        request: Request,
        out: &mut Vec<Output>,
    ) {
        self.now = now;
        self.ask_node(node, For::Control { token }, request, out);
        self.pump(out);
    }

    /// The disk owned here that has that component.
    pub(crate) fn owner_of_component(&self, component: ComponentId) -> Option<u32> {
        let has_it = |disk: &Disk| {
            let owner = disk.ownership.owner.as_ref();
            owner.is_some_and(|owner| owner.record().1.member(component).is_some())
        };
        self.disks.iter().find(|(_, disk)| has_it(disk)).map(|(key, _)| key)
    }

    /// Advances everything that waits for a time: links, openings, owners, disks that want an owner.
    pub(crate) fn advance_fabric(&mut self, out: &mut Vec<Output>) {
        self.advance_links(out);
        let now = self.now;
        self.fabric.with_components(|components, said| components.advance(now, said));
        self.go_on_with_surveys(out);
        self.release_overdue(out);
        self.pump(out);
        self.look_at_disks(out);
        self.pace_copies();
        self.advance_owners(out);
        self.pump(out);
    }

    /// The pending wake-ups of this node, to find loops.
    pub fn wakes(&self) -> String {
        let fabric = &self.fabric;
        let groups: Vec<_> = self.groups.iter().flatten().map(diskgroup::Group::wake_at).collect();
        format!(
            "now {:?}, groups {groups:?}, disks {:?}, links {:?}, components {:?}, stalled {}",
            self.now,
            fabric.schedule,
            fabric.links.values().filter_map(Link::wake_at).min(),
            fabric.components.wake_at(),
            self.stalled.len(),
        )
    }

    pub(crate) fn fabric_wake_at(&self) -> Option<Instant> {
        let fabric = &self.fabric;
        let links = fabric.links.values().filter_map(Link::wake_at).min();
        let pace = fabric.schedule.has_copies().then(|| self.shares.due_at().unwrap_or(self.now));
        let survey = (!fabric.surveys.is_empty()).then(|| Instant(self.now.0 + 1_000_000));
        let others = [fabric.gathers.wake_at(), fabric.components.wake_at()];
        [fabric.schedule.wake_at(self.now), links, pace, survey].into_iter().chain(others).flatten().min()
    }
}
