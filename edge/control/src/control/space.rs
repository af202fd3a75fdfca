//! Space that is there, and that is promised; devices of all hosts.

use super::Control;
use crate::config::paths_of;
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
        // Where block devices cannot be listed, the rest is told all the same.
        let (unclaimed, unclaimed_unknown) = match self.unclaimed().await {
            Ok(unclaimed) => (unclaimed, None),
            Err(failure) => (Vec::new(), Some(failure.error)),
        };
        let own = HostDevicesView {
            host: self.config().name.clone(),
            devices: self.devices().await?,
            unclaimed,
            unclaimed_unknown,
        };
        let mut all = AllDevicesView { hosts: vec![own], silent: Vec::new() };
        let ((found, silent), (mut unclaimed, _)) = tokio::join!(
            self.cluster.ask_others::<Vec<DeviceView>>(&state, "/api/v1/devices"),
            self.cluster.ask_others::<Vec<UnclaimedDevice>>(&state, "/api/v1/devices/unclaimed"),
        );
        let view = self.cluster.view();
        let of = |(id, devices)| {
            let unclaimed = unclaimed.remove(&id);
            let unclaimed_unknown =
                unclaimed.is_none().then(|| "the host did not list its block devices".to_owned());
            let unclaimed = unclaimed.unwrap_or_default();
            HostDevicesView { host: view.host_name(id), devices, unclaimed, unclaimed_unknown }
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
        // Devices of groups that could not be opened are groups' devices all the same.
        let config = self.config();
        let mut taken: Vec<PathBuf> = config.groups.iter().flat_map(paths_of).cloned().collect();
        for group in self.store.groups().values() {
            taken.extend(std::iter::once(&group.log).chain(&group.capacity).cloned());
        }
        taken.extend(self.devices().await?.into_iter().map(|device| PathBuf::from(device.path)));
        unclaimed(&taken).await
    }
}
