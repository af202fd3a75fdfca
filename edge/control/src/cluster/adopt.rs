//! What the start of a host that stands alone finds on its devices: disks that no record names, and disks of the release before of
//! which nobody knows whether they were made.
//!
//! Comes after the groups are open and before any disk is served. Must never run on a host of a cluster of several.

use super::Cluster;
use crate::directory::BEFORE_ALL;
use crate::directory::shared::record::ClusterDisk;
use crate::directory::shared::{Change, Outcome, now_ns, unwritten};
use crate::system::now_seconds;
use ::cluster::{Adopted, DiskState, Found};
use base::NodeId;
use diskgroup::ComponentState;
use engine::{ClusterState, Command, FoundDisk, HostState};
use failure::{Code, Failure};
use replication::Origin;
use std::collections::BTreeSet;

impl Cluster {
    /// Takes disks into the directory that stand on the devices and not there: it was lost, or the devices come from elsewhere.
    ///
    /// # Errors
    /// When the directory does not take a record, or the engine is gone.
    pub(super) async fn adopt_found(&self, host: &HostState) -> Result<(), Failure> {
        let all: Vec<FoundDisk> = self.engine.call(|answer| Command::Found { answer }).await?;
        let origins: Vec<Origin> = all.iter().filter_map(|found| found.label.origin).collect();
        for found in all {
            if self.view().disks.contains_key(&found.id) {
                continue;
            }
            let id = found.id;
            match self.adopted(found, host, &origins) {
                Ok(disk) => {
                    self.record_adopted(&disk).await?;
                    tracing::warn!(
                        "disk {} was found on the devices and taken into the directory, with {} snapshots",
                        disk.record.name,
                        disk.record.snapshots.taken.len()
                    );
                }
                Err(why) => {
                    tracing::error!("components of disk {id} stand here, and no record names it: {why}")
                }
            }
        }
        Ok(())
    }

    fn adopted(&self, found: FoundDisk, host: &HostState, origins: &[Origin]) -> Result<ClusterDisk, String> {
        let layout = found.layout.ok_or("some of its components are missing")?;
        let shard = |one: &ComponentState| {
            let device = host.devices.iter().find(|device| device.id == one.device);
            device.map_or(0, |device| device.shard)
        };
        let component = |(place, one): &(u16, ComponentState)| Found {
            component: one.record.id,
            node: NodeId { host: self.me, shard: shard(one) },
            place: *place,
            promised: one.record.promised,
            watermark: one.record.watermark,
            snapshots: one.snapshots.iter().map(|(number, _)| *number).collect(),
        };
        let told = found.label;
        let is_free = !told.name.is_empty() && !self.view().records.names.contains_key(&told.name);
        let disk = Adopted {
            id: found.id,
            name: if is_free { told.name } else { format!("recovered-{}", found.id) },
            size: told.size,
            policy: told.policy.parse().map_err(|error| format!("its policy `{}`: {error}", told.policy))?,
            read_only: told.read_only,
            origin: told.origin,
            layout,
            components: found.components.iter().map(component).collect(),
            origins: origins.iter().filter(|origin| origin.disk == found.id).copied().collect(),
            now_ns: now_ns(),
        };
        Ok(ClusterDisk {
            record: disk.record().map_err(|error| error.to_string())?,
            created: now_seconds(),
            maker: (self.me, self.incarnation),
            gone: BTreeSet::new(),
            labels: std::collections::BTreeMap::new(),
        })
    }

    async fn record_adopted(&self, disk: &ClusterDisk) -> Result<(), Failure> {
        let id = serde_json::Value::String(disk.record.id.to_string());
        let key = ClusterDisk::name_key(&disk.record.name);
        let name = Change { key, expected: 0, value: Some(id) };
        match self.directory().commit(vec![name, disk.change(0)?]).await {
            Outcome::Done { .. } => self.catch_up().await,
            Outcome::Unwritten { why } => Err(unwritten(why)),
            Outcome::Conflict { .. } | Outcome::Unknown => Err(Failure::new(
                Code::Failed,
                format!("disk {} was found on the devices and cannot be recorded", disk.record.name),
            )),
        }
    }

    /// Ends what the release before began: a disk that it was making counts if all its components are there, and is undone if it
    /// was never used. While a device is away, or failed, nobody knows, and the disk stays as it is.
    ///
    /// # Errors
    /// When the directory does not take a record.
    pub(super) async fn settle_former(&self, host: &HostState, state: &ClusterState) -> Result<(), Failure> {
        let is_former = |disk: &ClusterDisk| {
            disk.record.state == DiskState::Creating && disk.maker == (self.me, BEFORE_ALL)
        };
        let view = self.view();
        for disk in view.disks.values().filter(|disk| is_former(disk)) {
            let name = &disk.record.name;
            let mut components = disk.record.layout.components();
            if components.all(|(_, one)| state.components.contains_key(&one.id)) {
                let active = disk.record.activate().map_err(|why| Failure::refused(why.to_string()))?;
                self.commit_disk(disk.with(active.record), disk.record.version).await?;
                tracing::info!("disk {name} was being created and is whole");
            } else if is_unused(disk, host, state) {
                tracing::warn!("disk {name} was being created: undone");
                self.mark_deleting(disk.record.id).await?;
            } else {
                tracing::warn!(
                    "disk {name} was being created, and a device of it is away: it waits for that"
                );
            }
        }
        Ok(())
    }
}

/// Whether a disk that is not whole holds nothing: all its devices are in service, and no component of it has taken space.
fn is_unused(disk: &ClusterDisk, host: &HostState, state: &ClusterState) -> bool {
    disk.record.layout.components().all(|(_, component)| {
        let device = host.devices.iter().find(|device| device.id == component.device);
        let is_in_service = device.is_some_and(|device| device.failure.is_none() && !device.is_away);
        let used = state.components.get(&component.id).map_or(0, |held| held.used_bytes);
        is_in_service && used == 0
    })
}
