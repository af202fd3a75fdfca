//! Making and deleting disks of the cluster.

use super::change::objection;
use super::{Cluster, Rules, View};
use crate::directory::PolicyEntry;
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Change, Outcome, unwritten};
use crate::limits::{DELETION_POLL, DELETION_WAIT};
use crate::system::{blocking_seed, component_ids, now_seconds, random_bits};
use ::cluster::{DiskRecord, Level, NewDisk};
use api::types::CreateDisk;
use base::{ComponentId, DiskId, NodeId};
use engine::{ClusterCommand, Command, EngineError, Order, OrderFailure};
use failure::{Code, Failure};
use placement::Policy;
use replication::Origin;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::oneshot;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

impl Cluster {
    /// Makes a disk: planned over all hosts, recorded, its components made, then active.
    ///
    /// # Errors
    /// When no place fits the policy, the name is taken, or a host does not make its component; then nothing is left.
    pub async fn create_disk(
        &self,
        request: CreateDisk,
        rules: Rules,
        origin: Option<Origin>,
    ) -> Result<String, Failure> {
        let Rules { policy, follows } = rules;
        if !request.labels.is_empty() {
            self.expect_level("a label", Level::LABELS)?;
        }
        let spaces = self.spaces().await?;
        let mut ids = component_ids(blocking_seed()?);
        let plan = placement::plan(&policy, request.size, &spaces, &mut ids, blocking_seed()?)?;
        let nodes = self.view().nodes_of_devices();
        let new = NewDisk {
            id: DiskId(random_bits()?),
            name: request.name,
            size: request.size,
            policy,
            follows,
            read_only: request.read_only,
            is_shared: request.share,
            origin,
        };
        let made = DiskRecord::create(new, &plan, &nodes).map_err(|why| Failure::refused(why.to_string()))?;
        let mut disk = ClusterDisk {
            record: DiskRecord { version: 0, ..made.record },
            created: now_seconds(),
            maker: (self.me, self.incarnation),
            gone: BTreeSet::new(),
            labels: request.labels,
        };
        disk.record.version = self.record_new(&disk).await?;
        if let Err(failure) = self.make_components(&disk, made.create).await {
            self.mark_deleting(disk.record.id).await?;
            self.await_deletion(disk.record.id).await?;
            return Err(failure);
        }
        let active = disk.record.activate().map_err(|why| Failure::refused(why.to_string()))?;
        match self.commit_disk(disk.with(active.record), disk.record.version).await {
            Ok(Some(disk)) => {
                self.tell_disk(&disk).await?;
                Ok(disk.record.name)
            }
            Ok(None) | Err(_) => Err(Failure::new(
                Code::Unreachable,
                format!("nobody knows whether disk `{}` was made", disk.record.name),
            )
            .hint("see `drystone disk show`; one that stays `creating` can be deleted")),
        }
    }

    /// Records a disk as being made, with its name, which must be free; of a clone its origin knows of it from then on.
    async fn record_new(&self, disk: &ClusterDisk) -> Result<u64, Failure> {
        let record = &disk.record;
        for _ in 0..ATTEMPTS {
            let value = Some(serde_json::Value::String(record.id.to_string()));
            let name = Change { key: ClusterDisk::name_key(&record.name), expected: 0, value };
            let mut changes = vec![name, disk.change(0)?];
            changes.extend(self.change_of_origin(disk).await?);
            match self.directory().commit(changes).await {
                Outcome::Done { version } => return Ok(version),
                Outcome::Conflict { .. } if record.origin.is_some() => {
                    if self.directory().get(&ClusterDisk::name_key(&record.name)).await?.is_some() {
                        return Err(is_taken(&record.name));
                    }
                    tokio::time::sleep(DELETION_POLL).await; // The origin's record has changed.
                }
                Outcome::Conflict { .. } => return Err(is_taken(&record.name)),
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => {
                    return Err(Failure::new(
                        Code::Unreachable,
                        format!(
                            "the directory does not answer: nobody knows whether disk `{}` is recorded",
                            record.name
                        ),
                    )
                    .hint("see `drystone disk list` when it answers again"));
                }
            }
        }
        Err(Failure::new(Code::Conflict, "the record of its origin changes all the time").hint("try again"))
    }

    /// What the record of a new clone's origin becomes with it: nothing else may delete the snapshot before.
    async fn change_of_origin(&self, clone: &ClusterDisk) -> Result<Option<Change>, Failure> {
        let Some(origin) = clone.record.origin else { return Ok(None) };
        let gone = || Failure::refused("what is to be cloned is not there any more");
        let of = self.fetch(origin.disk).await?.ok_or_else(gone)?;
        let named = of.record.snapshots.taken.iter().find(|one| one.number == origin.snapshot);
        let (next, _) = of.record.add_clone(&named.ok_or_else(gone)?.name).map_err(objection)?;
        Ok(Some(of.with(next.record).change(of.record.version)?))
    }

    /// What the record of a clone's origin becomes when the clone is none any more. Nothing if that knows nothing of it: its record was made anew.
    pub(super) async fn change_without_clone(&self, clone: &ClusterDisk) -> Result<Option<Change>, Failure> {
        let Some(origin) = clone.record.origin else { return Ok(None) };
        let Some(of) = self.fetch_any(origin.disk).await? else { return Ok(None) };
        let Ok(next) = of.record.drop_clone(origin.snapshot) else { return Ok(None) };
        Ok(Some(of.with(next.record).change(of.record.version)?))
    }

    /// A clone that has copied all that it shared with its origin is an ordinary disk from now on.
    ///
    /// # Errors
    /// When it has snapshots, or the directory does not answer.
    pub async fn leave_origin(&self, id: DiskId) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(disk) = self.fetch(id).await? else { return Err(Failure::refused("the disk is gone")) };
            if disk.record.origin.is_none() {
                return Ok(());
            }
            let left = disk.record.leave_origin().map_err(objection)?;
            let mut next = disk.with(left.record);
            let mut changes = vec![next.change(disk.record.version)?];
            changes.extend(self.change_without_clone(&disk).await?);
            match self.directory().commit(changes).await {
                Outcome::Done { version } => {
                    next.record.version = version;
                    self.note(&next);
                    return Ok(self.tell_disk(&next).await?); // What its components say of it follows by itself.
                }
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Conflict { .. } | Outcome::Unknown => tokio::time::sleep(DELETION_POLL).await,
            }
        }
        Err(Failure::new(Code::Conflict, format!("the records of disk {id} change all the time"))
            .hint("try again"))
    }

    async fn make_components(
        &self,
        disk: &ClusterDisk,
        create: Vec<(NodeId, wire::NewComponent)>,
    ) -> Result<(), Failure> {
        let view = self.view();
        for (node, new, made) in self.make_all(&disk.record, create).await? {
            made.map_err(|why| refusal(&view, node, new.id, why))?;
        }
        Ok(())
    }

    /// Asks a node to make or delete a component; the answer comes later.
    ///
    /// # Errors
    /// When the engine is gone.
    pub(super) fn ask(
        &self,
        node: NodeId,
        order: Order,
    ) -> Result<oneshot::Receiver<Result<(), OrderFailure>>, EngineError> {
        let (answer, wait) = oneshot::channel();
        self.engine.tell(Command::cluster(ClusterCommand::Component { node, order, answer }))?;
        Ok(wait)
    }

    /// Asks a node to make or delete a component.
    pub(super) async fn order(
        &self,
        node: NodeId,
        order: Order,
    ) -> Result<Result<(), OrderFailure>, EngineError> {
        self.ask(node, order)?.await.map_err(|_| EngineError::Stopped)
    }

    /// Marks a disk as going: every host that holds some of it deletes that, and the last one the record.
    ///
    /// # Errors
    /// When the directory does not answer, or the record changes all the time.
    pub async fn mark_deleting(&self, id: DiskId) -> Result<(), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(disk) = self.fetch(id).await? else { return Ok(()) };
            let Ok(change) = disk.record.begin_delete(&self.clones()) else { return Ok(()) };
            match self.commit_disk(disk.with(change.record), disk.record.version).await {
                Ok(Some(disk)) => return Ok(self.tell_disk(&disk).await?),
                Ok(None) | Err(_) => tokio::time::sleep(DELETION_POLL).await,
            }
        }
        Err(Failure::new(Code::Conflict, format!("the record of disk {id} changes all the time"))
            .hint("try again"))
    }

    /// Deletes a locked disk, and waits until all hosts that can be reached have deleted what they hold of it.
    ///
    /// # Errors
    /// When another host attached it meanwhile, or the directory does not answer.
    pub async fn delete_disk(&self, id: DiskId) -> Result<(), Failure> {
        self.mark_locked_as_deleting(id).await?;
        self.await_deletion(id).await
    }

    /// Waits a while until all hosts that can be reached have deleted what they hold of a disk that goes.
    async fn await_deletion(&self, id: DiskId) -> Result<(), Failure> {
        let until = Instant::now() + DELETION_WAIT;
        while Instant::now() < until {
            let view = self.view();
            let Some(disk) = view.disks.get(&id) else { return Ok(()) };
            let state = self.state().await?;
            if !disk.deletions_left().iter().any(|(node, _)| self.is_up(&state, *node)) {
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
        match self.directory().commit(vec![change]).await {
            Outcome::Done { .. } => self.catch_up().await,
            Outcome::Conflict { .. } => {
                Err(Failure::new(Code::Conflict, format!("there is a policy `{}` already", policy.name)))
            }
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => Err(Failure::new(Code::Unreachable, "the directory does not answer")),
        }
    }

    /// Changes a policy that is there.
    ///
    /// # Errors
    /// What `change` says; or when there is none of this name, or the directory does not answer.
    pub async fn change_policy(
        &self,
        name: &str,
        change: impl Fn(Policy) -> Result<Policy, Failure>,
    ) -> Result<PolicyEntry, Failure> {
        use crate::directory::shared::record::{policy_key, policy_value, read_policy};
        for _ in 0..ATTEMPTS {
            let found = self.directory().get(&policy_key(name)).await?;
            let found =
                found.ok_or_else(|| Failure::new(Code::NotFound, format!("there is no policy `{name}`")))?;
            let before = read_policy(&found).map_err(|error| Failure::failed("read a policy", error))?;
            let policy = PolicyEntry { policy: change(before.policy)?, ..before };
            let value = policy_value(&policy).map_err(|error| Failure::failed("write a record", error))?;
            let change = Change { key: policy_key(name), expected: found.version, value: Some(value) };
            match self.directory().commit(vec![change]).await {
                Outcome::Done { .. } => return self.catch_up().await.map(|()| policy),
                Outcome::Conflict { .. } => tokio::time::sleep(DELETION_POLL).await,
                Outcome::Unwritten { why } => return Err(unwritten(why)),
                Outcome::Unknown => {
                    return Err(Failure::new(Code::Unreachable, "the directory does not answer"));
                }
            }
        }
        Err(Failure::new(Code::Conflict, format!("policy `{name}` changes all the time")).hint("try again"))
    }

    /// Removes a policy; whether it was there.
    ///
    /// # Errors
    /// When the directory does not answer.
    pub async fn remove_policy(&self, name: &str) -> Result<bool, Failure> {
        let key = crate::directory::shared::record::policy_key(name);
        let Some(found) = self.directory().get(&key).await? else { return Ok(false) };
        let change = Change { key, expected: found.version, value: None };
        match self.directory().commit(vec![change]).await {
            Outcome::Done { .. } => self.catch_up().await.map(|()| true),
            Outcome::Conflict { .. } => Ok(false),
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Unknown => Err(Failure::new(Code::Unreachable, "the directory does not answer")),
        }
    }

    /// Reads all records now, so that who asks next sees what was just changed.
    pub(super) async fn catch_up(&self) -> Result<(), Failure> {
        self.take(self.directory().watch(None).await?);
        // The watch will name the disks; that hosts came or went is seen only once.
        self.is_untold.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// That another disk has a name.
pub fn is_taken(name: &str) -> Failure {
    Failure::new(Code::Conflict, format!("there is a disk `{name}` already"))
}

fn refusal(view: &View, node: NodeId, component: ComponentId, why: OrderFailure) -> Failure {
    let host = view.host_name(node.host);
    Failure::refused(format!("host {host} did not make component {component}: {why}"))
        .hint("see `drystone status`; what was made is deleted again")
}
