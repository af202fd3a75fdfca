//! What was decided, carried out; and the components of this host made to be what records say.
//!
//! A record names a component before it is made, and names it no more before it is deleted. What a host that went away in
//! between did not do, the node of the component does by itself: it makes what comes to it, and deletes what no record
//! names. Only a component that has never counted is made: an empty one that counts would be data lost.

use super::Cluster;
use super::keeper::Disks;
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Outcome, unwritten};
use crate::events::Kind;
use crate::limits::DELETION_RETRY;
use ::cluster::{Action, Because, Coming, DiskRecord, DiskState, Listed, Objection, Step, Why, orphans};
use base::{ComponentId, DiskId, HostId, NodeId};
use engine::{ClusterCommand, ClusterState, Command, EngineError, HeldComponent, Order, OrderFailure};
use failure::{Code, Failure};
use replication::Standing;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use wire::{NewComponent, Refusal};

impl Cluster {
    /// Carries out what is for this host to do. What fails is decided anew with what is known then.
    pub(super) async fn carry_out(&self, action: Action) {
        let id = action.disk;
        let done = match &action.step {
            Step::Claim => {
                self.engine.tell(Command::cluster(ClusterCommand::Claim { disk: id })).map_err(Failure::from)
            }
            step => self.transition(id, |record| step.apply(record)).await.map(|done| {
                if done {
                    self.log_step(id, step);
                }
            }),
        };
        if let Err(failure) = done {
            tracing::warn!("disk {}: {failure}", self.disk_name(id));
        }
    }

    /// Changes a disk's record as `change` says, from what is known of it; then its components are made. False when the
    /// record changed meanwhile.
    pub(super) async fn transition(
        &self,
        id: DiskId,
        change: impl FnOnce(&DiskRecord) -> Result<Option<::cluster::Transition>, Objection>,
    ) -> Result<bool, Failure> {
        let Some(disk) = self.view().disks.get(&id).cloned() else { return Ok(false) };
        let Some(change) = change(&disk.record).map_err(|error| Failure::refused(error.to_string()))? else {
            return Ok(false);
        };
        let next = disk.with(change.record);
        let Some(next) = self.commit_disk(next, disk.record.version).await? else { return Ok(false) };
        for (node, component, made) in self.make_all(&next.record, change.create).await? {
            if let Err(why) = made {
                self.not_made(id, node, component, why).await?;
            }
        }
        self.tell_disk(&next).await?;
        Ok(true)
    }

    /// Asks nodes to make components of a disk, all at once.
    ///
    /// # Errors
    /// When the engine is gone, or what a component tells of its disk is too long.
    pub(super) async fn make_all(
        &self,
        record: &DiskRecord,
        create: Vec<(NodeId, NewComponent)>,
    ) -> Result<Vec<(NodeId, NewComponent, Result<(), OrderFailure>)>, Failure> {
        let mut asked = Vec::new();
        for (node, new) in create {
            let new = described(record, new)
                .ok_or_else(|| Failure::refused("the disk's record is too long for its components"))?;
            asked.push((node, new.clone(), self.ask(node, Order::Create(new))?));
        }
        let mut made = Vec::new();
        for (node, new, answer) in asked {
            made.push((node, new, answer.await.map_err(|_| EngineError::Stopped)?));
        }
        Ok(made)
    }

    /// Sets a disk's record; nothing when it changed meanwhile.
    pub(super) async fn commit_disk(
        &self,
        mut disk: ClusterDisk,
        expected: u64,
    ) -> Result<Option<ClusterDisk>, Failure> {
        match self.directory().commit(vec![disk.change(expected)?]).await {
            Outcome::Done { version } => {
                disk.record.version = version;
                self.note(&disk);
                Ok(Some(disk))
            }
            Outcome::Conflict { .. } => Ok(None),
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => Err(Failure::new(Code::Unreachable, "the directory does not answer")),
        }
    }

    /// A node did not make a component. If it never can, the component is called off; else it is made when the node can.
    async fn not_made(
        &self,
        disk: DiskId,
        node: NodeId,
        new: NewComponent,
        why: OrderFailure,
    ) -> Result<(), Failure> {
        let host = self.view().host_name(node.host);
        match why {
            // The id is taken where the node has made it by itself already, else its device is full.
            OrderFailure::Refused(Refusal::NoSlot) if self.has_free_slot(&new) => return Ok(()),
            OrderFailure::Unreachable => return Ok(()),
            OrderFailure::Refused(_) => {}
        }
        tracing::warn!("disk {}: host {host} did not make a component: {why}", self.disk_name(disk));
        let component = new.id;
        let cancelled = self.view().disks.get(&disk).map(|disk| disk.record.call_off(component));
        if let (Some(Ok(change)), Some(known)) = (cancelled, self.view().disks.get(&disk)) {
            self.commit_disk(known.with(change.record), known.record.version).await?;
        }
        Ok(())
    }

    fn has_free_slot(&self, new: &NewComponent) -> bool {
        let keeper = self.keeper();
        let device = keeper.facts.device(new.device).map(|(_, device)| device);
        device.is_some_and(|device| device.component_count < device.component_count_max)
    }

    /// Makes what comes to this host and is not there, and deletes what no record names.
    pub(super) async fn tend(&self, state: &ClusterState) -> Result<(), Failure> {
        let view = self.view();
        let listed = &state.components;
        for disk in view.disks.values().filter(|disk| disk.record.state == DiskState::Active) {
            for (node, new) in missing_here(&disk.record, self.me, |id| listed.contains_key(&id)) {
                // That it was made since, or has no place, is no news: the owner tells what it lacks.
                let _ = self.order(node, Order::Create(new)).await?;
            }
        }
        let is_named = |id: &ComponentId, held: &HeldComponent| {
            let disk = view.disks.get(&held.disk);
            disk.is_none_or(|disk| names(&disk.record, self.node(held.shard), *id))
        };
        let unnamed = listed.iter().filter(|(id, held)| !is_named(id, held));
        let disks: BTreeSet<DiskId> = {
            let mut keeper = self.keeper();
            keeper.kept.retain(|_, since| since.elapsed() < DELETION_RETRY);
            unnamed.filter(|(id, _)| !keeper.kept.contains_key(id)).map(|(_, held)| held.disk).collect()
        };
        for disk in disks {
            self.delete_unnamed(disk, state).await?;
        }
        Ok(())
    }

    /// Deletes components of a disk that its record, read after they were listed, names no more.
    async fn delete_unnamed(&self, id: DiskId, state: &ClusterState) -> Result<(), Failure> {
        let Some(disk) = self.fetch_any(id).await? else { return Ok(()) };
        let shards: BTreeSet<u8> = state.components.values().map(|held| held.shard).collect();
        for shard in shards {
            self.delete_unnamed_of(self.node(shard), &disk, state).await?;
        }
        Ok(())
    }

    async fn delete_unnamed_of(
        &self,
        node: NodeId,
        disk: &ClusterDisk,
        state: &ClusterState,
    ) -> Result<(), Failure> {
        let id = disk.record.id;
        let of_node = |held: &HeldComponent| held.disk == id && held.shard == node.shard;
        let listed: BTreeMap<ComponentId, Listed> = {
            let keeper = self.keeper();
            let listed = state.components.iter().filter(|(_, held)| of_node(held));
            let listed = listed.map(|(id, held)| {
                (*id, Listed { disk: held.disk, promised: held.promised, snapshots: Vec::new() })
            });
            listed.filter(|(id, _)| !keeper.kept.contains_key(id)).collect()
        };
        let records = Disks::from([(id, disk.record.clone())]);
        let found = orphans(&records, node, &listed);
        for component in found.later_than_record {
            tracing::error!(
                "component {component} of disk {} is in no record and has promised a later epoch than the record's {}: it is \
                 kept, for the directory has lost changes",
                disk.record.name,
                disk.record.roster.epoch
            );
            self.keeper().kept.insert(component, Instant::now());
        }
        for component in found.to_delete {
            match self.order(node, Order::Delete(component)).await? {
                Ok(()) => self.log(
                    id,
                    Kind::CopyDeleted,
                    "a copy on this host that its record no longer names is deleted",
                ),
                Err(why) => {
                    tracing::warn!(
                        "component {component} of disk {} cannot be deleted: {why}",
                        disk.record.name
                    );
                    self.keeper().kept.insert(component, Instant::now());
                }
            }
        }
        Ok(())
    }

    /// A node of this host.
    fn node(&self, shard: u8) -> NodeId {
        NodeId { host: self.me, shard }
    }

    pub(super) fn disk_name(&self, id: DiskId) -> String {
        self.view().disks.get(&id).map_or_else(|| id.to_string(), |disk| disk.record.name.clone())
    }

    /// Notes something that happened to a disk.
    pub(super) fn log(&self, id: DiskId, kind: Kind, text: impl Into<String>) {
        self.events.disk(kind, &self.disk_name(id), text);
    }

    fn log_step(&self, id: DiskId, step: &Step) {
        match step {
            Step::Claim => {}
            Step::Begin(coming) => {
                coming.iter().for_each(|one| self.log(id, Kind::CopyComing, self.coming_text(one)));
            }
            Step::Finish(_) => self.log(id, Kind::CopySeated, "the new copy has its place from now on"),
            Step::GiveUp(_) => {
                let text = "a copy is given up: its host is no more one of the cluster; another is made when there is a place for it";
                self.log(id, Kind::CopyLeft, text);
            }
            Step::Cancel(_, because) => {
                let text = format!("a copy does not come after all: {}", because_text(*because));
                self.log(id, Kind::CopyCalledOff, text);
            }
            Step::StandIn(coming) => {
                for (node, _) in coming {
                    let host = self.keeper().facts.host_name(node.host);
                    let text = format!("what is changed while a copy is missing is kept on host {host} too");
                    self.log(id, Kind::StandIn, text);
                }
            }
            Step::Inherit(_) => {
                let text = "what stands in for a missing copy takes its seat, and gets the rest";
                self.log(id, Kind::StandIn, text);
            }
            Step::Dismiss(_, because) => {
                let text = format!("nothing stands in for a copy any more: {}", because_text(*because));
                self.log(id, Kind::StandIn, text);
            }
        }
    }

    fn coming_text(&self, one: &Coming) -> String {
        let keeper = self.keeper();
        let host = keeper.facts.host_name(one.node.host);
        let why = match one.why {
            Why::DeviceFailed => "the device of another failed".to_owned(),
            Why::Stale => "another does not count any more, and will not again".to_owned(),
            Why::Gone => "another is not on its device any more".to_owned(),
            Why::NoRoom => "the device of another is full".to_owned(),
            Why::Absent { since } => {
                format!("another has been missing for {} s", keeper.now().since(since).as_secs())
            }
            Why::Evacuation => "its host is to be serviced".to_owned(),
            Why::Debt => "its policy asks for more copies than it has".to_owned(),
            Why::Domain => "another copy stands in the same fault domain".to_owned(),
            Why::Balance => "devices are evened out".to_owned(),
        };
        format!("a copy is made on host {host}: {why}")
    }
}

fn because_text(because: Because) -> &'static str {
    match because {
        Because::GivenUp => "the copy is given up, and another is made",
        Because::Lost => "it is lost itself, or its device has no room",
        Because::Leaving => "its host is to be serviced",
        Because::Returned => "what it was for is whole again",
        Because::Unwanted => "a setting says so",
    }
}

/// Whether a record names a component of a node.
fn names(record: &DiskRecord, node: NodeId, id: ComponentId) -> bool {
    let grows = record.growth.as_ref().and_then(|growth| growth.nodes.get(&id));
    let member = record.roster.member(id).map(|member| &member.node);
    member.or(grows) == Some(&node)
}

/// Components that come to nodes of a host, have never counted, and are not there.
fn missing_here(
    record: &DiskRecord,
    host: HostId,
    is_here: impl Fn(ComponentId) -> bool,
) -> Vec<(NodeId, NewComponent)> {
    let comes = |id: ComponentId| {
        let member = record.roster.member(id).filter(|member| member.node.host == host)?;
        let is_incoming = record.incoming.iter().any(|one| one.component.id == id);
        // One that stands in, and does not count, is put right from nothing whenever it is needed.
        let stands_in = record.stand_ins.iter().any(|one| one.component.id == id);
        ((is_incoming || stands_in) && member.standing == Standing::Absent).then_some(member.node)
    };
    if record.incoming.is_empty() && record.stand_ins.is_empty() {
        return Vec::new();
    }
    let components = record.components().into_iter().map(|(_, new)| new);
    let missing = components.filter(|new| !is_here(new.id));
    missing.filter_map(|new| Some((comes(new.id)?, described(record, new)?))).collect()
}

/// A component with what it tells of its disk when the directory is lost; nothing when that is too long.
pub(super) fn described(record: &DiskRecord, new: NewComponent) -> Option<NewComponent> {
    let in_growth = || {
        let layout = &record.growth.as_ref()?.layout;
        let mut components = layout.places().flat_map(|(place, all)| all.iter().map(move |one| (place, one)));
        let (place, one) = components.find(|(_, one)| one.id == new.id)?;
        Some((place, one.position, layout))
    };
    let here = record.component(new.id).map(|(place, one)| (place, one.position, &record.layout));
    let (place, position, layout) = here.or_else(in_growth)?;
    let shape = node::label::shape_of(layout)?;
    let about = |policy: &placement::Policy| node::label::DiskLabel {
        name: record.name.clone(),
        size: record.size,
        policy: policy.to_string(),
        read_only: record.read_only,
        place: place as u16,
        position,
        shape: shape.clone(),
        origin: record.origin,
    };
    // Of a disk with very many parts the schedule of its snapshots is what there is no room for.
    let unscheduled = placement::Policy { snapshots: placement::Schedules::NONE, ..record.policy };
    let disk_label = about(&record.policy).encode().or_else(|| about(&unscheduled).encode())?;
    Some(NewComponent { disk_label, ..new })
}
