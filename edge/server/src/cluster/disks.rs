//! Making and deleting disks of the cluster.

use super::{Cluster, View};
use crate::api::types::CreateDisk;
use crate::control::{blocking_seed, component_ids, now_seconds, random_bits};
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Change, Outcome};
use crate::directory::{DiskEntry, PolicyEntry, State};
use crate::engine::{ClusterCommand, Command, DiskRecord, EngineError, Order, OrderFailure};
use crate::failure::{Code, Failure};
use crate::limits::{DELETION_POLL, DELETION_WAIT};
use base::{ComponentId, DeviceId, DiskId, NodeId, WriteId};
use placement::Policy;
use replication::{Member, Roster, Standing};
use std::collections::BTreeMap;
use std::time::Instant;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Makes a disk: planned over all hosts, recorded, its components made, then active.
    ///
    /// # Errors
    /// When no place fits the policy, the name is taken, or a host does not make its component; then nothing is left.
    pub async fn create_disk(&self, request: CreateDisk, policy: Policy) -> Result<String, Failure> {
        let spaces = self.spaces().await?;
        let mut ids = component_ids(blocking_seed()?);
        let plan = placement::plan(&policy, request.size, &spaces, &mut ids, blocking_seed()?)?;
        let record = DiskRecord {
            id: DiskId(random_bits()?),
            name: request.name,
            size: request.size,
            policy,
            space_reservation: plan.space_reservation,
            layout: plan.layout,
            epoch: 0,
            read_only: request.read_only,
        };
        let hosts: BTreeMap<DeviceId, NodeId> =
            spaces.iter().map(|space| (space.id, NodeId { host: space.host, shard: 0 })).collect();
        let roster = first_roster(&record, &hosts);
        let maker = (self.me.host, self.incarnation);
        let entry =
            DiskEntry { version: 0, state: State::Creating, record, previous: None, created: now_seconds() };
        let mut disk = ClusterDisk { entry, roster, maker };
        disk.entry.version = self.record_new(&disk).await?;
        if let Err(failure) = self.make_components(&disk).await {
            self.mark_deleting(disk.entry.record.id).await?;
            return Err(failure);
        }
        disk.entry.state = State::Active;
        let change = disk.change().map_err(|error| Failure::failed("write a record", error))?;
        match self.directory.commit(vec![change]).await {
            Outcome::Done { version } => disk.entry.version = version,
            Outcome::Conflict { .. } | Outcome::Unknown => {
                return Err(Failure::new(
                    Code::Unreachable,
                    format!("nobody knows whether disk `{}` was made", disk.entry.record.name),
                )
                .hint("see `drystone disk show`; one that stays `creating` can be deleted"));
            }
        }
        self.note(&disk);
        self.tell_disk(&disk).await?;
        Ok(disk.entry.record.name)
    }

    /// Records a disk as being made, with its name, which must be free.
    async fn record_new(&self, disk: &ClusterDisk) -> Result<u64, Failure> {
        let record = &disk.entry.record;
        let change = disk.change().map_err(|error| Failure::failed("write a record", error))?;
        let value = Some(serde_json::Value::String(record.id.to_string()));
        let name = Change { key: ClusterDisk::name_key(&record.name), expected: 0, value };
        match self.directory.commit(vec![name, change]).await {
            Outcome::Done { version } => Ok(version),
            Outcome::Conflict { .. } => {
                Err(Failure::new(Code::Conflict, format!("there is a disk `{}` already", record.name)))
            }
            Outcome::Unknown => Err(Failure::new(
                Code::Unreachable,
                format!(
                    "the directory does not answer: nobody knows whether disk `{}` is recorded",
                    record.name
                ),
            )
            .hint("see `drystone disk list` when it answers again")),
        }
    }

    async fn make_components(&self, disk: &ClusterDisk) -> Result<(), Failure> {
        let orders = new_components(&disk.entry.record)?;
        let made = orders.into_iter().map(|new| {
            let (id, member) = (new.id, disk.roster.member(new.id));
            let node = member.expect("every component is a member").node;
            async move { (node, id, self.order(node, Order::Create(new)).await) }
        });
        let mut tasks: Vec<_> = made.map(Box::pin).collect();
        let view = self.view();
        let mut failure = None;
        // All were asked at once; their answers are taken in order.
        for task in &mut tasks {
            let (node, component, result) = task.await;
            if let Err(why) = result? {
                failure.get_or_insert(refusal(&view, node, component, why));
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Asks a node to make or delete a component.
    pub(super) async fn order(
        &self,
        node: NodeId,
        order: Order,
    ) -> Result<Result<(), OrderFailure>, EngineError> {
        let command = |answer| ClusterCommand::Component { node, order, answer };
        self.engine.call(|answer| Command::cluster(command(answer))).await
    }

    /// Marks a disk as going: every host that holds some of it deletes that, and the last one the record.
    ///
    /// # Errors
    /// When the directory does not answer, or the record changes all the time.
    pub async fn mark_deleting(&self, id: DiskId) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(mut disk) = self.fetch(id).await? else { return Ok(()) };
            disk.entry.state = State::Deleting;
            let change = disk.change().map_err(|error| Failure::failed("write a record", error))?;
            match self.directory.commit(vec![change]).await {
                Outcome::Done { version } => {
                    disk.entry.version = version;
                    self.note(&disk);
                    return Ok(self.tell_disk(&disk).await?);
                }
                Outcome::Conflict { .. } | Outcome::Unknown => tokio::time::sleep(DELETION_POLL).await,
            }
        }
        Err(Failure::new(Code::Conflict, format!("the record of disk {id} changes all the time"))
            .hint("try again"))
    }

    /// Deletes a disk, and waits until all hosts that can be reached have deleted what they hold of it.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn delete_disk(&self, id: DiskId) -> Result<(), Failure> {
        self.mark_deleting(id).await?;
        let until = Instant::now() + DELETION_WAIT;
        while Instant::now() < until {
            let view = self.view();
            let Some(disk) = view.disks.get(&id) else { return Ok(()) };
            let state = self.state().await?;
            let is_up = |node: NodeId| node == self.me || state.links.get(&node) == Some(&true);
            if !disk.roster.members.iter().any(|member| is_up(member.node)) {
                return Ok(()); // The others do it when they come back.
            }
            tokio::time::sleep(DELETION_POLL).await;
        }
        Ok(())
    }

    /// Adds a policy, or replaces one that was removed.
    ///
    /// # Errors
    /// When the name is taken, or the directory does not answer.
    pub async fn add_policy(&self, policy: &PolicyEntry) -> Result<(), Failure> {
        use crate::directory::shared::record::{policy_key, policy_value};
        let value = policy_value(policy).map_err(|error| Failure::failed("write a record", error))?;
        let change = Change { key: policy_key(&policy.name), expected: 0, value: Some(value) };
        match self.directory.commit(vec![change]).await {
            Outcome::Done { .. } => self.catch_up().await,
            Outcome::Conflict { .. } => {
                Err(Failure::new(Code::Conflict, format!("there is a policy `{}` already", policy.name)))
            }
            Outcome::Unknown => Err(Failure::new(Code::Unreachable, "the directory does not answer")),
        }
    }

    /// Removes a policy; whether it was there.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn remove_policy(&self, name: &str) -> Result<bool, Failure> {
        let key = crate::directory::shared::record::policy_key(name);
        let Some(found) = self.directory.get(&key).await? else { return Ok(false) };
        let change = Change { key, expected: found.version, value: None };
        match self.directory.commit(vec![change]).await {
            Outcome::Done { .. } => self.catch_up().await.map(|()| true),
            Outcome::Conflict { .. } => Ok(false),
            Outcome::Unknown => Err(Failure::new(Code::Unreachable, "the directory does not answer")),
        }
    }

    /// Reads all records now, so that who asks next sees what was just changed.
    async fn catch_up(&self) -> Result<(), Failure> {
        self.take(self.directory.watch(None).await?);
        Ok(())
    }
}

fn refusal(view: &View, node: NodeId, component: ComponentId, why: OrderFailure) -> Failure {
    let host = view.host_name(node.host);
    Failure::refused(format!("host {host} did not make component {component}: {why}"))
        .hint("see `drystone status`; what was made is deleted again")
}

/// The roster of a disk that nobody has used yet: all components have all there is, which is nothing.
fn first_roster(record: &DiskRecord, hosts: &BTreeMap<DeviceId, NodeId>) -> Roster {
    let member = |place: usize, component: &layout::Component| Member {
        component: component.id,
        node: hosts[&component.device],
        place: place as u16,
        standing: Standing::Active,
        base: WriteId::default(),
    };
    let places = record.layout.places();
    let members = places.flat_map(|(place, copies)| copies.iter().map(move |copy| member(place, copy)));
    Roster { epoch: 0, owner: None, members: members.collect() }
}

fn new_components(record: &DiskRecord) -> Result<Vec<wire::NewComponent>, Failure> {
    let shape = node::record::shape_of(&record.layout)
        .ok_or_else(|| Failure::refused("the layout is none that components can tell of"))?;
    let mut new = Vec::new();
    for (place, copies) in record.layout.places() {
        let about = node::record::DiskRecord {
            name: record.name.clone(),
            size: record.size,
            policy: record.policy.to_string(),
            read_only: record.read_only,
            place: place as u16,
            shape: shape.clone(),
        };
        let disk_record = about
            .encode()
            .ok_or_else(|| Failure::refused("the disk's record is too long for its components"))?;
        new.extend(copies.iter().map(|copy| wire::NewComponent {
            id: copy.id,
            disk: record.id,
            device: copy.device,
            size: copy.size,
            reservation: placement::reservation(copy.size, record.space_reservation),
            disk_record: disk_record.clone(),
        }));
    }
    Ok(new)
}
