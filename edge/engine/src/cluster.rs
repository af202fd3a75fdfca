//! What the control plane asks of the engine that has to do with the cluster, and what the engine tells it unasked.
//!
//! The directory is the control plane's: what the node wants of it goes out as a [`Notice`], and comes back as a command.
//! No I/O waits for it but what the node itself holds back.

use super::peers::PeerTls;
use super::run::{Engine, Target};
use super::{Answer, DiskRecord, Endpoint, EngineError};
use base::{ClusterId, ComponentId, DiskId, GroupId, HostId, NodeId};
use node::{FabricOutput, FabricSettings, LinkState, OwnershipState, Token};
use replication::owner::{Committed, Event};
use replication::{OwnedBy, Roster};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A host's part in its cluster.
#[derive(Debug, Clone)]
pub struct Fabric {
    /// The cluster.
    pub cluster: ClusterId,
    /// Whether the host stands alone: nobody else can have owned a disk before.
    pub stands_alone: bool,
    /// The host's node.
    pub node: NodeId,
    /// This start of it: greater than any before.
    pub incarnation: u64,
    /// Where it listens for other nodes, a further shard at the next port; nothing where there are none.
    pub listen: Option<SocketAddr>,
    /// What encrypts connections with other nodes; nothing: they are on this machine, and are not encrypted.
    pub tls: Option<PeerTls>,
    /// Most bytes of memory in buffers for what other nodes send.
    pub buffer_bytes: u64,
    /// Whether reads go to a component on the owner's own host when there is one.
    pub prefers_local: bool,
    /// Bytes a second that owners here copy at least.
    pub copy_floor: u64,
    /// What one of a hundred of guests' requests may take beside copies above that, in percent of what it takes without.
    pub copy_tail_percent: u64,
    /// The shards of this host's groups, as far as they were opened before.
    pub groups: BTreeMap<GroupId, u8>,
}

impl Fabric {
    /// How long other nodes are waited for after a start: not at all where there can be none.
    fn patience(&self, among_others: Duration) -> Duration {
        if self.stands_alone { Duration::ZERO } else { among_others }
    }

    /// What the node is run with.
    pub(crate) fn settings(&self) -> FabricSettings {
        FabricSettings {
            me: OwnedBy { node: self.node, incarnation: self.incarnation },
            prefers_local: self.prefers_local,
            copy_floor: self.copy_floor,
            copy_blocks_max: replication::limits::COPY_BLOCKS_MAX,
            copy_tail_percent: self.copy_tail_percent,
            start_patience: self.patience(replication::limits::START_PATIENCE),
            former_grants: self.patience(replication::limits::GRANT),
            rules: base::rules::Rules::ALL,
        }
    }
}

/// A client that wants a disk, or has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// The engine that it is connected to.
    pub shard: u8,
    /// Its place there.
    pub client: u32,
    /// Never used twice by that engine.
    pub number: u64,
}

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visitor {
    /// Somebody at a socket or at loopback of this host, who shows nothing.
    Here,
    /// A host or a person of the cluster.
    Known {
        /// Who.
        identity: trust::Identity,
        /// When the certificate was made, in nanoseconds since 1970.
        issued_ns: u64,
    },
    /// Who has a certificate of somebody else's.
    Stranger,
}

impl Visitor {
    /// As the rules of disks know it.
    pub fn guest(&self) -> ::cluster::Guest<'_> {
        match self {
            Visitor::Here => ::cluster::Guest::Here,
            Visitor::Known { identity: trust::Identity::Host { host, .. }, .. } => {
                ::cluster::Guest::Host(*host)
            }
            Visitor::Known { identity: trust::Identity::Person { name, .. }, .. } => {
                ::cluster::Guest::Person(name.as_str())
            }
            Visitor::Stranger => ::cluster::Guest::Stranger,
        }
    }
}

/// What the engine tells the control plane unasked. At most one commit of a disk is under way, and fetches are repeated only
/// after their answer or a pause of the node: what waits is bounded by the disks.
#[derive(Debug)]
#[expect(missing_docs, reason = "what each notice says names its fields")]
pub enum Notice {
    /// A disk's record is to say that, if it still has that version.
    Commit { shard: u8, disk: DiskId, number: u64, expected: u64, roster: Roster },
    /// A disk's record is to be read.
    Fetch { disk: DiskId },
    /// A client wants a disk; it waits for [`ClusterCommand::Admit`].
    /// `has_lock`: by the export that a lock leaves open.
    Attach { disk: DiskId, ticket: Ticket, visitor: Visitor, has_lock: bool },
    /// A client that wanted a disk, or had it, is gone.
    Left { disk: DiskId, ticket: Ticket },
    /// Something happened to a disk that this host owns, so long after the engine's start.
    Owner { disk: DiskId, event: Event, at: Duration },
}

/// What the control plane may ask.
#[derive(Debug)]
#[expect(missing_docs, reason = "what each command says names its fields; `answer` is where the answer goes")]
pub enum ClusterCommand {
    /// The nodes of the cluster, and where they listen.
    Nodes { nodes: Vec<(NodeId, SocketAddr)> },
    /// Begins to serve a disk of the cluster, or takes over what changed of it.
    Open { disk: DiskRecord, record: (u64, Roster), answer: Answer<()> },
    /// A disk is gone: its clients are detached. What stands of it stays.
    Forget { disk: DiskId, answer: Answer<()> },
    /// A disk's record was read, or changed.
    Recorded { disk: DiskId, record: Option<(u64, Roster)> },
    /// A disk's record could not be read.
    FetchFailed { disk: DiskId },
    /// A commit of a shard ended.
    Committed { shard: u8, disk: DiskId, number: u64, committed: Committed },
    /// Owns a disk that nobody owns, or whose owner is gone.
    Claim { disk: DiskId },
    /// The device of a component has room again.
    Room { disk: DiskId, component: ComponentId },
    /// The shard that owns a disk gives back what stands between its end, at `size`, and `end`. Refused where the disk is not
    /// served, or is known with another size.
    GiveBack { shard: u8, disk: DiskId, size: u64, end: u64, answer: Answer<Result<(), OrderFailure>> },
    /// A request to a node about a component.
    Component { node: NodeId, order: Order, answer: Answer<Result<(), OrderFailure>> },
    /// A client that waits for a disk gets it, or is told why not.
    Admit { ticket: Ticket, refusal: Option<String> },
    /// A client loses its disk: its connection ends.
    CutOff { ticket: Ticket },
    /// Other hosts may connect from now on, at each shard's own port, encrypted; clients from elsewhere show a certificate of the
    /// cluster, also at the endpoints that come along. Says where each shard listens.
    Join {
        fabric: Fabric,
        tls: Arc<rustls::ServerConfig>,
        endpoints: Vec<Endpoint>,
        answer: Answer<Result<Vec<Option<SocketAddr>>, EngineError>>,
    },
    /// What is known of the cluster here.
    State { answer: Answer<ClusterState> },
}

/// What a node is asked to do with a component of its own.
#[derive(Debug, Clone)]
pub enum Order {
    /// Make it.
    Create(wire::NewComponent),
    /// Replace what is recorded of it.
    Change(wire::NewComponent),
    /// Delete it; fine if there is none.
    Delete(ComponentId),
}

/// Why a node did not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OrderFailure {
    /// The node cannot be reached, or was lost before it answered: it may have done it.
    #[error("it cannot be reached")]
    Unreachable,
    /// It refused.
    #[error(transparent)]
    Refused(#[from] wire::Refusal),
}

/// What a host's engine knows of the cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterState {
    /// Other nodes, and whether they can be reached.
    pub links: BTreeMap<NodeId, bool>,
    /// The disks that are open here.
    pub disks: BTreeMap<DiskId, OwnershipState>,
    /// The components that stand here.
    pub components: BTreeMap<ComponentId, HeldComponent>,
    /// Nodes whose process is known to have ended, and the last session that it can have had.
    pub ended: BTreeMap<NodeId, u64>,
    /// Connections that went wrong.
    pub counters: PeerCounters,
}

impl ClusterState {
    /// Other hosts, and whether all their nodes can be reached from all of this one's.
    pub fn links_of_hosts(&self, me: HostId) -> impl Iterator<Item = (HostId, bool)> {
        let mut hosts = BTreeMap::new();
        for (node, is_up) in self.links.iter().filter(|(node, _)| node.host != me) {
            *hosts.entry(node.host).or_insert(true) &= *is_up;
        }
        hosts.into_iter()
    }
}

/// A component that stands on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldComponent {
    /// Its disk.
    pub disk: DiskId,
    /// The shard that it stands on.
    pub shard: u8,
    /// The greatest epoch that it promised.
    pub promised: u32,
    /// Bytes that it has taken.
    pub used_bytes: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes that are set aside for it.
    pub reservation: u64,
    /// CRC-32C of what it tells of its disk.
    pub description: u32,
}

/// Traffic with other nodes, and connections that went wrong, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// Refused in the greeting, or never greeted.
    pub refused: u64,
    /// Ended because what came was no message.
    pub garbage: u64,
    /// Ended because the other node took too little of what it was sent.
    pub slow: u64,
    /// Bytes that came over the network, encryption and all.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
}

impl std::ops::AddAssign for PeerCounters {
    fn add_assign(&mut self, other: PeerCounters) {
        self.refused += other.refused;
        self.garbage += other.garbage;
        self.slow += other.slow;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
    }
}

impl Engine {
    pub(crate) fn cluster_command(&mut self, command: ClusterCommand) {
        let now = self.now();
        match command {
            ClusterCommand::Nodes { nodes } => {
                self.peers.set_nodes(&nodes).into_iter().for_each(|key| self.peer_ended(key));
                let ids: Vec<NodeId> = nodes.iter().map(|(node, _)| *node).collect();
                self.node.set_peers(now, &ids, &mut self.outputs);
            }
            ClusterCommand::Open { disk, record, answer } => {
                self.open_disk(disk, record);
                let _ = answer.send(());
            }
            ClusterCommand::Forget { disk, answer } => {
                self.node.recorded(now, disk, None, &mut self.outputs);
                self.forget_disk(disk, answer);
            }
            ClusterCommand::Recorded { disk, record } => {
                self.node.recorded(now, disk, record, &mut self.outputs);
            }
            ClusterCommand::FetchFailed { disk } => self.node.fetch_failed(now, disk, &mut self.outputs),
            ClusterCommand::Committed { disk, number, committed, .. } => {
                self.node.committed(now, disk, number, committed, &mut self.outputs);
            }
            ClusterCommand::Claim { disk } => self.node.own_disk(now, disk, &mut self.outputs),
            ClusterCommand::Room { disk, component } => {
                self.node.has_room(now, disk, component, &mut self.outputs);
            }
            ClusterCommand::GiveBack { disk, size, end, answer, .. } => {
                let token = Token(self.targets.insert(Target::Component(answer)) as u64);
                self.node.give_back(now, token, disk, (size, end), &mut self.outputs);
            }
            ClusterCommand::Component { node, order, answer } => {
                let request = match order {
                    Order::Create(new) => wire::Request::Create(new),
                    Order::Change(new) => wire::Request::Update(new),
                    Order::Delete(component) => wire::Request::Delete { component },
                };
                let token = Token(self.targets.insert(Target::Component(answer)) as u64);
                self.node.ask_component(now, token, node, request, &mut self.outputs);
            }
            ClusterCommand::Admit { ticket, refusal } => self.admitted(ticket, refusal),
            ClusterCommand::CutOff { ticket } => self.cut_off(ticket),
            ClusterCommand::Join { fabric, tls, endpoints, answer } => {
                let joined = self.let_others_join(fabric, tls, endpoints);
                let _ = answer.send(joined.map(|address| vec![address]));
            }
            ClusterCommand::State { answer } => drop(answer.send(self.cluster_state())),
        }
    }

    fn open_disk(&mut self, disk: DiskRecord, record: (u64, Roster)) {
        let now = self.now();
        let spec = super::commands::spec_of(&disk);
        if self.node.disk(disk.id).is_none() {
            let key = self.node.open_disk(now, spec, record);
            if self.node.is_lost(key) {
                self.lost.insert(disk.id);
            }
        } else if !self.node.update_disk(now, record.0, spec, &mut self.outputs) {
            return; // What is known is newer.
        }
        self.change_clients(&disk);
        self.registry.insert(disk);
    }

    /// Carries out what the node wants of other nodes and of the directory.
    pub(crate) fn perform_fabric(&mut self, output: FabricOutput) {
        match output {
            FabricOutput::Connect { peer, session } => self.connect_peer(peer, session),
            FabricOutput::Disconnect { peer, session } => self.end_initiated(peer, session),
            FabricOutput::EndAccepted { peer, session } => self.end_accepted(peer, session),
            FabricOutput::Request { peer, message } => self.send_request(peer, &message),
            FabricOutput::Answer { peer, message } => self.send_answer(peer, &message),
            FabricOutput::Commit { disk, number, expected, roster } => {
                self.notify(Notice::Commit { shard: self.shard, disk, number, expected, roster });
            }
            FabricOutput::Fetch { disk } => self.notify(Notice::Fetch { disk }),
            FabricOutput::Component { token, answer: found } => {
                let Target::Component(answer) = self.targets.remove(token.0 as usize) else {
                    unreachable!("requests about components are answered as such")
                };
                let result = match found {
                    Some(wire::Answer::Refused(refusal)) => Err(OrderFailure::Refused(refusal)),
                    Some(_) => Ok(()),
                    None => Err(OrderFailure::Unreachable),
                };
                let _ = answer.send(result);
            }
            FabricOutput::Owner { disk, event } => {
                self.notify(Notice::Owner { disk, event, at: self.started.elapsed() });
            }
        }
    }

    /// The control plane is told; when it is gone, the host is ending.
    pub(super) fn notify(&mut self, notice: Notice) {
        let _ = self.settings.notices.send(notice);
    }

    fn cluster_state(&self) -> ClusterState {
        let links = self.peers.nodes().filter_map(|node| {
            let state = self.node.link_state(node)?;
            Some((node, state == LinkState::Up))
        });
        let components = self.node.groups().flat_map(|(_, group)| group.components());
        ClusterState {
            links: links.collect(),
            disks: self.node.ownerships().collect(),
            components: components.map(|(_, state)| (state.record.id, held(self.shard, &state))).collect(),
            ended: self.node.ended().collect(),
            counters: self.peers.counters,
        }
    }

    /// Tells the node whether clients use a disk through this host.
    pub(crate) fn note_use(&mut self, disk: DiskId) {
        let now = self.now();
        let is_used = self.clients.iter().any(|(_, client)| client.disk.is_some_and(|(of, _)| of == disk));
        self.node.set_used(now, disk, is_used, &mut self.outputs);
    }

    /// Lets go of the disks that are owned here, so that other hosts need not find out that this one is gone.
    pub(crate) fn release_disks(&mut self) {
        let now = self.now();
        for disk in self.owned_disks() {
            self.node.release_disk(now, disk, &mut self.outputs);
        }
    }

    /// The disks that are owned here.
    pub(crate) fn owned_disks(&self) -> Vec<DiskId> {
        self.node.owned_disks().collect()
    }
}

fn held(shard: u8, state: &diskgroup::ComponentState) -> HeldComponent {
    HeldComponent {
        disk: state.record.disk,
        shard,
        promised: state.record.promised,
        used_bytes: state.used_bytes,
        size: state.record.size,
        reservation: state.record.reservation,
        description: base::checksum::crc32c(&state.record.disk_label),
    }
}
