//! Space that is there, and that is promised; devices of all hosts.

use super::Control;
use crate::unclaimed::unclaimed;
use ::cluster::Provisioned;
use api::types::{AllDevicesView, DeviceView, HostDevicesView, HostShareView, SpaceView, UnclaimedDevice};
use base::HostId;
use base::units::format_bytes;
use failure::Failure;
use std::path::PathBuf;

impl Control {
    /// Space of the cluster.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn space(&self) -> Result<SpaceView, Failure> {
        let (sum, hosts) = self.cluster.provisioned(&self.cluster.state().await?);
        let view = self.cluster.view();
        let host = |(id, one): (HostId, Provisioned)| HostShareView {
            host: view.host_name(id),
            capacity_bytes: one.capacity_bytes,
            used_bytes: one.used_bytes,
            components_bytes: one.components_bytes,
        };
        let mut hosts: Vec<HostShareView> = hosts.into_iter().map(host).collect();
        hosts.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(SpaceView {
            capacity_bytes: sum.capacity_bytes,
            used_bytes: sum.used_bytes,
            disks_bytes: sum.disks_bytes,
            components_bytes: sum.components_bytes,
            provisioned_percent: sum.percent(),
            hosts,
        })
    }

    /// What whoever makes a disk is to know of the space: it may be promised more than once.
    pub(super) async fn space_warning(&self) -> Option<String> {
        let space = self.space().await.ok()?;
        let is_too_much = space.components_bytes > space.capacity_bytes;
        is_too_much.then(|| {
            format!(
                "disks may take {} with all copies, and the devices have {} ({} %): writes fail once the devices are full",
                format_bytes(space.components_bytes),
                format_bytes(space.capacity_bytes),
                space.provisioned_percent
            )
        })
    }

    /// The devices of all hosts that answer.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn all_devices(&self) -> Result<AllDevicesView, Failure> {
        let state = self.cluster.state().await?;
        // Where devices cannot be listed, the rest is told all the same.
        let own = HostDevicesView {
            host: self.config().name.clone(),
            devices: self.devices().await?,
            unclaimed: self.unclaimed().await.unwrap_or_default(),
        };
        let mut all = AllDevicesView { hosts: vec![own], silent: Vec::new() };
        let ((found, silent), (mut unclaimed, _)) = tokio::join!(
            self.cluster.ask_others::<Vec<DeviceView>>(&state, "/api/v1/devices"),
            self.cluster.ask_others::<Vec<UnclaimedDevice>>(&state, "/api/v1/devices/unclaimed"),
        );
        let view = self.cluster.view();
        let of = |(id, devices)| HostDevicesView {
            host: view.host_name(id),
            devices,
            unclaimed: unclaimed.remove(&id).unwrap_or_default(),
        };
        all.hosts.extend(found.into_iter().map(of));
        all.silent = silent;
        all.hosts.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(all)
    }

    /// Block devices of this machine that no group of this host uses.
    ///
    /// # Errors
    /// When they cannot be listed, or the engine is gone.
    pub async fn unclaimed(&self) -> Result<Vec<UnclaimedDevice>, Failure> {
        let taken: Vec<PathBuf> =
            self.devices().await?.into_iter().map(|device| PathBuf::from(device.path)).collect();
        unclaimed(&taken).await
    }
}
