//! Carries out what the control plane asks that has to do with the cluster, and what the node wants of it.
//!
//! What the node wants of the directory goes out as a [`Notice`], and comes back as a command. No I/O waits for it but what
//! the node itself holds back.

use crate::client::Client;
use crate::command::{ClusterCommand, DiskRecord, Order, OrderFailure};
use crate::engine::{Engine, Target};
use crate::notice::Notice;
use crate::state::{ClusterState, HeldComponent};
use base::{DiskId, NodeId};
use node::{FabricOutput, LinkState, Token};
use replication::Roster;

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
                self.open_disk(*disk, record);
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
        let spec = disk.spec();
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
                let answer = match self.targets.remove(token.0 as usize) {
                    Target::Component(answer) => answer,
                    Target::Pass(serial) => return self.inspected(serial, found),
                    Target::Guest { .. }
                    | Target::Overdue { .. }
                    | Target::Closing(_)
                    | Target::Survey(_)
                    | Target::CopyUp(_)
                    | Target::CopyBack(_) => {
                        unreachable!("requests about components are answered as such")
                    }
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
    pub(crate) fn notify(&mut self, notice: Notice) {
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
        // Who reads a snapshot uses nothing that moves.
        let has_it = |client: &Client| client.view.is_none() && client.disk.is_some_and(|(of, _)| of == disk);
        let is_used = self.clients.iter().any(|(_, client)| has_it(client));
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
        compressed_bytes: state.compressed_bytes,
        packed_bytes: state.packed_bytes,
        is_rewriting: state.rewriting_part.is_some(),
        snapshots: state.snapshots.clone(),
    }
}
