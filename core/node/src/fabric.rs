//! The node among others: links, messages, components for owners elsewhere, owners of disks here.
//!
//! Everything that one part says to another goes through one queue of jobs, worked off before the caller gets its
//! outputs: so no part is entered while it is at work, and what happens does not depend on who called.

mod change;
mod gather;
mod link;
mod owned;
mod shelf;
mod survey;
mod usage;

use crate::node::{Node, Output, Token};
use base::{ComponentId, DiskId, Instant, NodeId, RequestTag};
pub(crate) use change::surplus_answer;
use gather::Gathers;
pub use link::LinkState;
pub(crate) use link::{Accepted, Link};
use replication::components::{Caller, Components};
use replication::owner::{Ask, Leases, Lost};
use replication::{OwnedBy, Roster, components, owner};
pub(crate) use shelf::inspected;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
pub(crate) use survey::Survey;
pub(crate) use usage::ClusterDisk;
pub use usage::ClusterDiskState;
use wire::{Answer, Message, Refusal, Request};

/// What a node among others is run with.
#[derive(Debug, Clone)]
pub struct FabricSettings {
    /// This node, and this start of its process: greater than at any start before.
    pub me: OwnedBy,
    /// Whether reads go to a component on the owner's own host when there is one.
    pub prefers_local: bool,
    /// Bytes a second that the node's owners copy at least, whatever guests feel.
    pub copy_floor: u64,
    /// Most blocks that one copy takes, 1..=256.
    pub copy_blocks_max: u16,
    /// What one of a hundred of guests' requests may take beside copies, in percent of what it took without.
    pub copy_tail_percent: u64,
    /// How long after the start of this node others may be starting as well ([`replication::limits::START_PATIENCE`]).
    pub start_patience: std::time::Duration,
    /// How long what this node's former process granted may last: [`replication::limits::GRANT`], or nothing where no other
    /// node can have owned a disk.
    pub former_grants: std::time::Duration,
    /// The safety rules of replication that hold: all in a product build.
    pub rules: base::rules::Rules<replication::Rule>,
}

/// What a node among others wants done.
#[derive(Debug)]
pub enum FabricOutput {
    /// Connect to a node. Answered by [`Node::connected`] or [`Node::disconnected`].
    Connect {
        /// The node.
        peer: NodeId,
        /// The session that the connection is to carry.
        session: u64,
    },
    /// Close a connection that this node began.
    Disconnect {
        /// To that node.
        peer: NodeId,
        /// Its session.
        session: u64,
    },
    /// Close a connection that the other node began.
    EndAccepted {
        /// From that node.
        peer: NodeId,
        /// Its session.
        session: u64,
    },
    /// Send a request over a connection that this node began.
    Request {
        /// To whom.
        peer: NodeId,
        /// What.
        message: Message<Request>,
    },
    /// Send an answer over a connection that the other node began.
    Answer {
        /// To whom.
        peer: NodeId,
        /// What.
        message: Message<Answer>,
    },
    /// Set a disk's record if it still has that version. Answered by [`Node::committed`].
    Commit {
        /// The disk.
        disk: DiskId,
        /// Comes back with the result.
        number: u64,
        /// The version.
        expected: u64,
        /// What the record shall say of replication.
        roster: Roster,
    },
    /// Read a disk's record. Answered by [`Node::recorded`] or [`Node::fetch_failed`].
    Fetch {
        /// The disk.
        disk: DiskId,
    },
    /// A request for a component that the control plane made ended.
    Component {
        /// Which.
        token: Token,
        /// How; `None` if the node could not be reached.
        answer: Option<Answer>,
    },
    /// Something happened to a disk that this node owns.
    Owner {
        /// The disk.
        disk: DiskId,
        /// What.
        event: owner::Event,
    },
}

/// Whom a request that is under way was for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum For {
    /// An owner, if it is still that one.
    Owner {
        disk: u32,
        number: u64,
        ask: Ask,
    },
    /// A guest's request, at the owner.
    Guest {
        request: u32,
    },
    Yield {
        disk: DiskId,
    },
    Control {
        token: Token,
    },
    /// A heartbeat, or the last word about a component.
    Nobody,
}

/// A request that is under way: the node that was asked, and for whom.
#[derive(Debug)]
pub(crate) struct Pending {
    node: NodeId,
    whom: For,
}

/// The name of a pending request on the wire: one more than its index, for 0 is the name of what is said unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestName(u32);

impl RequestName {
    fn of(index: usize) -> RequestName {
        RequestName(index as u32 + 1)
    }

    fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

/// Something to be done next.
#[derive(Debug)]
pub(crate) enum Job {
    Components(components::Output),
    Owner {
        disk: u32,
        output: owner::Output,
    },
    /// A node answered a request, or will not.
    Answered {
        from: NodeId,
        name: RequestName,
        answer: Result<Answer, Lost>,
    },
    LinkChanged {
        node: NodeId,
        change: owner::LinkChange,
    },
}

/// The state of a node among others.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) settings: FabricSettings,
    pub(crate) components: Components,
    pub(crate) leases: Leases,
    pub(crate) links: BTreeMap<NodeId, Link>,
    pub(crate) accepted: BTreeMap<NodeId, Accepted>,
    /// When this node's process started.
    pub(crate) started: Instant,
    /// Nodes whose process is known to have ended, and the last session that it can have had.
    pub(crate) ended: BTreeMap<NodeId, u64>,
    pub(crate) pending: Slab<Pending>,
    pub(crate) jobs: VecDeque<Job>,
    pub(crate) next_session: u64,
    /// The tag of the last request.
    pub(crate) last_tag: RequestTag,
    /// Questions about allocation that wait for table pages, in order.
    pub(crate) surveys: VecDeque<Survey>,
    /// Slices of copies that wait for the rest of their parts.
    pub(crate) gathers: Gathers,
    /// Disks whose owner has something to copy.
    pub(crate) copying: BTreeSet<u32>,
    /// Disks whose owner is to be advanced.
    pub(crate) touched: BTreeSet<u32>,
    /// Disks whose owner has reads that wait for a lease.
    pub(crate) thirsty: BTreeSet<u32>,
    /// When owners want to be advanced; entries may be out of date.
    pub(crate) alarms: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The soonest alarm of each disk that has one.
    pub(crate) armed: BTreeMap<u32, Instant>,
    /// When disks without an owner here are to be looked at; entries may be out of date.
    pub(crate) looks: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Fabric {
    pub(crate) fn new(settings: FabricSettings, now: Instant) -> Fabric {
        Fabric {
            components: Components::new(settings.me.node, now, settings.former_grants, settings.rules),
            leases: Leases::default(),
            links: BTreeMap::new(),
            accepted: BTreeMap::new(),
            started: now,
            ended: BTreeMap::new(),
            pending: Slab::new(),
            jobs: VecDeque::new(),
            next_session: settings.me.incarnation,
            last_tag: RequestTag::first(settings.me.node, settings.me.incarnation),
            surveys: VecDeque::new(),
            gathers: Gathers::default(),
            copying: BTreeSet::new(),
            touched: BTreeSet::new(),
            thirsty: BTreeSet::new(),
            alarms: BinaryHeap::new(),
            armed: BTreeMap::default(),
            looks: BinaryHeap::new(),
            settings,
        }
    }

    pub(crate) fn me(&self) -> NodeId {
        self.settings.me.node
    }

    /// The nodes that can be reached now.
    pub(crate) fn up(&self) -> BTreeSet<NodeId> {
        self.links.iter().filter(|(_, link)| link.is_up()).map(|(node, _)| *node).collect()
    }

    /// Takes out the request that a node answered; none if that node was not asked it.
    fn take_pending(&mut self, from: NodeId, name: RequestName) -> Option<Pending> {
        let index = name.index()?;
        self.pending.get(index).filter(|pending| pending.node == from)?;
        self.pending.try_remove(index)
    }
}

impl Node {
    pub(crate) fn fabric(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// A tag for a request of this node.
    pub(crate) fn next_tag(&mut self) -> RequestTag {
        self.fabric.last_tag = self.fabric.last_tag.next();
        self.fabric.last_tag
    }

    /// Works off the jobs.
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

    /// Asks a node for something; the answer comes as a job.
    pub(crate) fn ask_node(&mut self, node: NodeId, whom: For, request: Request, out: &mut Vec<Output>) {
        let now = self.now;
        let fabric = self.fabric();
        let name = RequestName::of(fabric.pending.insert(Pending { node, whom }));
        if node == fabric.me() {
            let caller = Caller { node, session: 0 };
            return self.serve_component(caller, name.0, request);
        }
        match fabric.links.get_mut(&node).and_then(|link| link.send(now, name.0, request)) {
            Some(message) => out.push(Output::Fabric(FabricOutput::Request { peer: node, message })),
            None => fabric.jobs.push_back(Job::Answered { from: node, name, answer: Err(Lost) }),
        }
    }

    /// A request for a component of this node.
    pub(crate) fn serve_component(&mut self, caller: Caller, token: u32, request: Request) {
        let now = self.now;
        let fabric = self.fabric();
        let mut outputs = Vec::new();
        fabric.components.request(now, caller, token, request, &mut outputs);
        fabric.jobs.extend(outputs.into_iter().map(Job::Components));
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
                let fabric = self.fabric();
                if fabric.accepted.get(&caller.node).is_some_and(|one| one.session == caller.session) {
                    fabric.accepted.remove(&caller.node);
                }
                let Caller { node: peer, session } = caller;
                self.abandon_forwarded(peer, session, out);
                out.push(Output::Fabric(FabricOutput::EndAccepted { peer, session }));
            }
        }
    }

    /// Sends an answer to whoever asked, if the session in which it was asked still lasts.
    pub(crate) fn answer(&mut self, to: Caller, token: u32, answer: Answer, out: &mut Vec<Output>) {
        let now = self.now;
        let fabric = self.fabric();
        if to.node == fabric.me() {
            let name = RequestName(token);
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
        let Some(pending) = self.fabric().take_pending(from, name) else { return };
        match pending.whom {
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

    /// Asks a node to make, change or delete a component, on behalf of the control plane. Ends with
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
    fn owner_of_component(&self, component: ComponentId) -> Option<u32> {
        let has_it = |disk: &crate::disk::Disk| {
            let owner = disk.cluster.owner.as_ref();
            owner.is_some_and(|owner| owner.record().1.member(component).is_some())
        };
        self.disks.iter().find(|(_, disk)| has_it(disk)).map(|(key, _)| key)
    }

    /// Moves on what waits for a time: links, openings, owners, disks that want one.
    pub(crate) fn advance_fabric(&mut self, out: &mut Vec<Output>) {
        self.advance_links(out);
        let now = self.now;
        let fabric = self.fabric();
        let mut outputs = Vec::new();
        fabric.components.advance(now, &mut outputs);
        fabric.jobs.extend(outputs.into_iter().map(Job::Components));
        self.go_on_with_surveys(out);
        self.release_overdue(out);
        self.pump(out);
        self.look_at_disks(out);
        self.pace_copies();
        self.advance_owners(out);
        self.pump(out);
    }

    /// What wants this node to be woken, and when: to find what goes round in circles.
    pub fn wakes(&self) -> String {
        let fabric = &self.fabric;
        let groups: Vec<_> = self.groups.iter().flatten().map(diskgroup::Group::wake_at).collect();
        format!(
            "now {:?}, groups {groups:?}, touched {:?}, alarm {:?}, look {:?}, links {:?}, components {:?}, stalled {}",
            self.now,
            fabric.touched,
            fabric.alarms.peek(),
            fabric.looks.peek(),
            fabric.links.values().filter_map(Link::wake_at).min(),
            fabric.components.wake_at(),
            self.stalled.len(),
        )
    }

    pub(crate) fn fabric_wake_at(&self) -> Option<Instant> {
        let fabric = &self.fabric;
        let soon = (!fabric.touched.is_empty()).then_some(self.now);
        let alarm = fabric.alarms.peek().map(|Reverse((at, _))| *at);
        let look = fabric.looks.peek().map(|Reverse((at, _))| *at);
        let links = fabric.links.values().filter_map(Link::wake_at).min();
        let pace = (!fabric.copying.is_empty()).then(|| self.shares.due_at().unwrap_or(self.now));
        let survey = (!fabric.surveys.is_empty()).then(|| Instant(self.now.0 + 1_000_000));
        let others = [fabric.gathers.wake_at(), fabric.components.wake_at()];
        [soon, alarm, look, links, pace, survey].into_iter().chain(others).flatten().min()
    }
}

#[cfg(test)]
mod tests;
