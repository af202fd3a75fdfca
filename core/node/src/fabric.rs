//! The node in a cluster: links, messages, components for owners on other nodes, owners of disks on this node.
//!
//! Parts talk to one another through one queue of jobs, which is emptied before the caller gets its outputs. So no
//! part is entered while it is at work, and the outcome does not depend on the caller.

mod change;
mod gather;
mod jobs;
mod link;
mod owned;
mod pending;
mod schedule;
mod sessions;
mod stores;
mod survey;
pub(crate) mod translate;
mod usage;

use crate::interface::FabricSettings;
use base::{Instant, NodeId, RequestTag};
use gather::Gathers;
use link::{Accepted, Link};
use pending::{PendingRequests, RequestName};
use replication::components::Components;
use replication::owner::{Leases, Lost};
use replication::{components, owner};
use schedule::Schedule;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use survey::Survey;
use wire::Answer;

/// A job.
#[derive(Debug)]
pub(crate) enum Job {
    Components(components::Output),
    Owner {
        disk: u32,
        output: owner::Output,
    },
    /// A node answered a request, or its answer is lost.
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

/// The state of a node in a cluster.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(crate) settings: FabricSettings,
    pub(crate) components: Components,
    pub(crate) leases: Leases,
    pub(crate) links: BTreeMap<NodeId, Link>,
    pub(crate) accepted: BTreeMap<NodeId, Accepted>,
    /// When this node's process started.
    pub(crate) started: Instant,
    /// Nodes whose process is known to have ended, with the last session that it can have had.
    pub(crate) ended: BTreeMap<NodeId, u64>,
    pub(crate) pending: PendingRequests,
    pub(crate) jobs: VecDeque<Job>,
    /// Room for what owners and components say, kept from one time to the next.
    pub(crate) said_by_owner: Vec<owner::Output>,
    pub(crate) said_by_components: Vec<components::Output>,
    pub(crate) next_session: u64,
    /// The tag of the last request.
    pub(crate) last_tag: RequestTag,
    /// Questions about allocation that wait for table pages, in order.
    pub(crate) surveys: VecDeque<Survey>,
    /// Slices of copies, held until their part is complete.
    pub(crate) gathers: Gathers,
    /// When owners and disks are due.
    pub(crate) schedule: Schedule,
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
            pending: PendingRequests::default(),
            jobs: VecDeque::new(),
            said_by_owner: Vec::new(),
            said_by_components: Vec::new(),
            next_session: settings.me.incarnation,
            last_tag: RequestTag::first(settings.me.node, settings.me.incarnation),
            surveys: VecDeque::new(),
            gathers: Gathers::default(),
            schedule: Schedule::default(),
            settings,
        }
    }

    /// Has the components do something; what they say becomes jobs.
    pub(crate) fn with_components(
        &mut self,
        act: impl FnOnce(&mut Components, &mut Vec<components::Output>),
    ) {
        act(&mut self.components, &mut self.said_by_components);
        self.jobs.extend(self.said_by_components.drain(..).map(Job::Components));
    }

    /// What an owner said becomes jobs.
    pub(crate) fn take_from_owner(&mut self, disk: u32) {
        self.jobs.extend(self.said_by_owner.drain(..).map(|output| Job::Owner { disk, output }));
    }

    pub(crate) fn me(&self) -> NodeId {
        self.settings.me.node
    }

    /// The nodes that can be reached now.
    pub(crate) fn up(&self) -> BTreeSet<NodeId> {
        self.links.iter().filter(|(_, link)| link.is_up()).map(|(node, _)| *node).collect()
    }
}

#[cfg(test)]
mod tests;
