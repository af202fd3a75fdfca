//! Devices of other hosts: whoever is asked hands the request on to the host that has them.
//!
//! That host does all the checking; here is decided only whom to ask. The other host's events name who asked.

use super::Control;
use crate::asked::{WHO, asked_by};
use crate::directory::shared::record::ClusterHost;
use api::types::{
    AddDevices, AddedDevices, DeviceOrder, DeviceOrderDone, OrderDevices, RemoveOptions, RemovedDevice,
    ReplaceDevice, ReplacementView,
};
use failure::{Code, Failure};
use std::sync::Arc;

/// Where a host takes such orders.
const PATH: &str = "/api/v1/devices/host";

impl Control {
    /// Makes a group of devices of a host, or gives one more devices.
    ///
    /// # Errors
    /// When there is no such host, it cannot be asked, or it refuses.
    pub async fn add_devices_at(&self, request: AddDevices) -> Result<AddedDevices, Failure> {
        let Some(host) = self.other_host(request.host.as_deref())? else {
            return self.add_devices(request).await;
        };
        match self.order_devices(&host, DeviceOrder::Add(AddDevices { host: None, ..request })).await? {
            DeviceOrderDone::Added(added) => Ok(added),
            _ => Err(odd(&host)),
        }
    }

    /// Replaces a device of a host.
    ///
    /// # Errors
    /// As [`Control::add_devices_at`].
    pub async fn replace_device_at(&self, request: ReplaceDevice) -> Result<ReplacementView, Failure> {
        let named = request.host.clone().or_else(|| self.host_of_device(&request.device));
        let Some(host) = self.other_host(named.as_deref())? else {
            return self.replace_device(request).await;
        };
        match self.order_devices(&host, DeviceOrder::Replace(ReplaceDevice { host: None, ..request })).await?
        {
            DeviceOrderDone::Replaced(replaced) => Ok(replaced),
            _ => Err(odd(&host)),
        }
    }

    /// Removes a device of a host.
    ///
    /// # Errors
    /// As [`Control::add_devices_at`].
    pub async fn remove_device_at(&self, id: &str, options: RemoveOptions) -> Result<RemovedDevice, Failure> {
        let RemoveOptions { group, host } = options;
        let named = host.or_else(|| self.host_of_device(id));
        let Some(host) = self.other_host(named.as_deref())? else {
            return Ok(RemovedDevice { advice: self.remove_device(id, group).await? });
        };
        match self.order_devices(&host, DeviceOrder::Remove { device: id.to_owned(), group }).await? {
            DeviceOrderDone::Removed(removed) => Ok(removed),
            _ => Err(odd(&host)),
        }
    }

    /// Does with devices of this host what another host hands on.
    ///
    /// # Errors
    /// What is in the way.
    pub async fn devices_ordered(&self, request: OrderDevices) -> Result<DeviceOrderDone, Failure> {
        let OrderDevices { who, order } = request;
        let done = async {
            Ok(match order {
                DeviceOrder::Add(request) => DeviceOrderDone::Added(self.add_devices(request).await?),
                DeviceOrder::Replace(request) => {
                    DeviceOrderDone::Replaced(self.replace_device(request).await?)
                }
                DeviceOrder::Remove { device, group } => {
                    let advice = self.remove_device(&device, group).await?;
                    DeviceOrderDone::Removed(RemovedDevice { advice })
                }
            })
        };
        match who.or_else(asked_by) {
            Some(who) => WHO.scope(who, done).await,
            None => done.await,
        }
    }

    /// The host that the records name for a device's id; nothing for other names: they are of the host that is asked.
    fn host_of_device(&self, id: &str) -> Option<String> {
        id.parse::<base::DeviceId>().ok()?;
        self.cluster.find_device(id).ok().map(|device| device.host_name)
    }

    /// A host that is named, if it is another one than this.
    fn other_host(&self, name: Option<&str>) -> Result<Option<Arc<ClusterHost>>, Failure> {
        let Some(name) = name.filter(|name| *name != self.config().name) else { return Ok(None) };
        let host = self.cluster.find_host(name)?;
        Ok((host.record.id != self.cluster.me).then_some(host))
    }

    async fn order_devices(
        &self,
        host: &ClusterHost,
        order: DeviceOrder,
    ) -> Result<DeviceOrderDone, Failure> {
        let state = self.cluster.state().await?;
        if !self.cluster.reaches(&state, host) {
            let what = format!("host {} does not answer: its devices cannot be changed", host.record.name);
            return Err(Failure::new(Code::Unreachable, what).hint("see `drystone host list`"));
        }
        self.cluster.client_of(host)?.post(PATH, &OrderDevices { who: asked_by(), order }).await
    }
}

fn odd(host: &ClusterHost) -> Failure {
    Failure::new(Code::Failed, format!("host {} answered something else than was asked", host.record.name))
}
