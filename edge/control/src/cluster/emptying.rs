//! Devices that are to be emptied: those that people name, and those of this host that are slow or damage what they hold.
//!
//! The mark stands in the record of the device's host; what follows from it is decided by the crate `cluster`. This host
//! looks at its own devices every ten seconds, and asks the others for theirs only while one of its own is slow.

use super::Cluster;
use crate::events::Kind;
use ::cluster::limits::DAMAGED_BLOCKS_MAX;
use ::cluster::{
    Assessment, Effort, Leaving, Maintenance, Mode, Pace, Progress, assess_device, emptying, progress,
};
use base::{DeviceId, HostId};
use engine::{ClusterState, DeviceState, HostState};
use failure::{Code, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often a change is tried again that another one came before.
const ATTEMPTS: usize = 20;

/// A device of the cluster, as people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDevice {
    /// Its identity.
    pub id: DeviceId,
    /// Its path.
    pub path: String,
    /// Its host.
    pub host: HostId,
    /// What people call that.
    pub host_name: String,
    /// Whether it is to be emptied.
    pub leaving: Option<Leaving>,
}

impl Cluster {
    /// The capacity device that people mean: by its id, as `HOST:PATH`, or as a path of this host.
    ///
    /// # Errors
    /// When there is none.
    pub fn find_device(&self, name: &str) -> Result<FoundDevice, Failure> {
        let view = self.view();
        for known in view.hosts.values() {
            let host = &known.host.record;
            let is_named = |id: DeviceId, path: &str| {
                id.to_string() == name
                    || format!("{}:{path}", host.name) == name
                    || (host.id == self.me && path == name)
            };
            if let Some(device) = host.devices.iter().find(|device| is_named(device.id, &device.name)) {
                return Ok(FoundDevice {
                    id: device.id,
                    path: device.name.clone(),
                    host: host.id,
                    host_name: host.name.clone(),
                    leaving: device.leaving.clone(),
                });
            }
        }
        Err(Failure::new(Code::NotFound, format!("there is no capacity device `{name}` in this cluster"))
            .hint("name it by its path on this host, as HOST:PATH or by its id: see `drystone device list`"))
    }

    /// What emptying a device would do to every disk.
    ///
    /// # Errors
    /// When the engine is gone, or no host has the device any more.
    pub async fn assess_device(&self, device: DeviceId) -> Result<Assessment, Failure> {
        let gone = || Failure::new(Code::NotFound, format!("no host has device {device} any more"));
        let host = self.facts().await?.device(device).ok_or_else(gone)?.0.id;
        self.assess_by(host, |facts, seed| assess_device(facts, device, seed).ok_or_else(gone)).await
    }

    /// Lets devices of a host be emptied, or not any more. Those that are as wanted stay as they are. True when anything
    /// changed.
    ///
    /// # Errors
    /// When the host is gone, or the directory does not answer.
    pub async fn set_leaving(
        &self,
        host: HostId,
        devices: &BTreeSet<DeviceId>,
        leaving: Option<&Leaving>,
    ) -> Result<bool, Failure> {
        let older = self.view().without_levels();
        if leaving.is_some() && !older.is_empty() {
            // They could not read the host's record any more (docs/design/0018).
            return Err(Failure::refused(format!(
                "hosts run a release that cannot read that a device is to be emptied: {}",
                older.join(", ")
            ))
            .hint("upgrade them first: `drystone cluster upgrade --dry-run` shows what each host runs"));
        }
        for _ in 0..ATTEMPTS {
            let Some((version, mut found)) = self.fetch_host(host).await? else {
                return Err(Failure::new(Code::NotFound, format!("there is no host {host} in this cluster")));
            };
            let differs = |device: &&mut ::cluster::DeviceRecord| {
                devices.contains(&device.id) && device.leaving.is_some() != leaving.is_some()
            };
            let mut changed = false;
            for device in found.record.devices.iter_mut().filter(differs) {
                device.leaving = leaving.cloned();
                changed = true;
            }
            if !changed || self.commit_host(version, found).await? {
                return Ok(changed);
            }
        }
        Err(Failure::new(Code::Conflict, "the host's record changes all the time").hint("try again"))
    }

    /// How far devices that are to be emptied are, by what is known now.
    pub fn emptying(&self) -> BTreeMap<DeviceId, (Leaving, Progress)> {
        let keeper = self.keeper();
        let devices = keeper.facts.hosts.values().flat_map(|host| &host.devices);
        let leaving = devices.filter_map(|device| Some((device.id, device.leaving.clone()?)));
        leaving.map(|(id, leaving)| (id, (leaving, emptying(&keeper.facts, id)))).collect()
    }

    /// The hosts that enter maintenance: name, mode, since when, and what has to leave them first.
    pub fn entering(&self) -> Vec<(String, Mode, base::Instant, Progress)> {
        let keeper = self.keeper();
        let entering = keeper.facts.hosts.values().filter_map(|host| match host.maintenance {
            Maintenance::Entering { mode, since } => {
                Some((host.name.clone(), mode, since, progress(&keeper.facts, host.id)))
            }
            Maintenance::Off | Maintenance::On { .. } => None,
        });
        entering.collect()
    }

    /// How long this host's devices worked for a request in the last window.
    pub(super) fn paces(&self) -> Vec<Pace> {
        self.keeper().devices.paces().to_vec()
    }

    /// Looks at this host's devices, and lets those be emptied that are not to be relied on.
    pub(super) async fn watch_devices(&self, state: &ClusterState, host: &HostState) -> Result<(), Failure> {
        let in_service = host.devices.iter().filter(|device| device.failure.is_none());
        let effort = |device: &DeviceState| Effort {
            device: device.id,
            is_log: device.is_log,
            busy: device.busy,
            requests: device.requests,
        };
        let efforts: Vec<Effort> = in_service.map(effort).collect();
        let has_suspect = {
            let mut keeper = self.keeper();
            let now = keeper.now();
            if !keeper.devices.note(now, &efforts) {
                return Ok(());
            }
            keeper.devices.has_suspect()
        };
        let others = if has_suspect { self.paces_elsewhere(state).await } else { Vec::new() };
        self.keeper().devices.judge(&others);
        self.leave_the_faulty(host).await
    }

    async fn paces_elsewhere(&self, state: &ClusterState) -> Vec<Pace> {
        let mut locals = self.locals(state).await;
        locals.remove(&self.me);
        let told = locals.into_values().flat_map(|local| local.paces);
        let pace = |told: api::types::PaceView| {
            let request = Duration::from_micros(told.request_us);
            Some(Pace { device: told.device.parse().ok()?, is_log: told.is_log, request })
        };
        told.filter_map(pace).collect()
    }

    /// Marks this host's devices that are slow or damage data, where nothing else is being emptied for such a reason: what
    /// strikes many hosts at once is more likely to be something else.
    async fn leave_the_faulty(&self, host: &HostState) -> Result<(), Failure> {
        let faults = self.faults(host);
        if faults.is_empty() {
            return Ok(());
        }
        let is_clear = {
            let keeper = self.keeper();
            let hosts = &keeper.facts.hosts;
            let is_serviced = hosts.get(&self.me).is_none_or(|own| own.maintenance != Maintenance::Off);
            let others = hosts.values().filter(|other| other.id != self.me);
            let faulty = others
                .flat_map(|other| &other.devices)
                .filter(|device| device.leaving.as_ref().is_some_and(|leaving| leaving.fault.is_some()));
            let is_free = faulty.into_iter().all(|device| emptying(&keeper.facts, device.id).is_done());
            is_free && !is_serviced && keeper.away_since.is_none()
        };
        if !is_clear {
            return Ok(());
        }
        for (device, fault) in faults {
            let leaving = Leaving { since: self.directory_now(), fault: Some(fault.clone()) };
            if self.set_leaving(self.me, &BTreeSet::from([device]), Some(&leaving)).await? {
                let path = host.devices.iter().find(|one| one.id == device).map(|one| one.path.display());
                let name = path.map_or_else(|| device.to_string(), |path| path.to_string());
                let subject = format!("device {name} of host {}", self.config().name);
                self.events.other(Kind::DeviceLeaving, subject, format!("it is being emptied: {fault}"));
            }
        }
        Ok(())
    }

    /// What is wrong with this host's capacity devices that serve and are not being emptied yet. Where the log of a group
    /// is slow, all of the group's are.
    fn faults(&self, host: &HostState) -> BTreeMap<DeviceId, String> {
        let keeper = self.keeper();
        let known = keeper.facts.hosts.get(&self.me).map_or(&[][..], |own| &own.devices);
        let is_due = |device: &&DeviceState| {
            let record = known.iter().find(|record| record.id == device.id);
            device.is_capacity
                && device.failure.is_none()
                && record.is_some_and(|record| record.leaving.is_none())
        };
        let slow: BTreeMap<DeviceId, String> =
            keeper.devices.slow().map(|(device, slow)| (device, slow.to_string())).collect();
        let log_of = |group| host.devices.iter().find(|one| one.is_log && one.group == group);
        let fault = |device: &DeviceState| {
            if device.damaged_blocks >= DAMAGED_BLOCKS_MAX {
                return Some(format!("{} blocks on it were found damaged", device.damaged_blocks));
            }
            if let Some(slow) = slow.get(&device.id) {
                return Some(slow.clone());
            }
            let log = log_of(device.group)?;
            Some(format!("its log device {}: {}", log.path.display(), slow.get(&log.id)?))
        };
        host.devices.iter().filter(is_due).filter_map(|device| Some((device.id, fault(device)?))).collect()
    }
}
