//! Adding and removing devices while the host runs.

use super::Control;
use super::care::evacuation_view;
use super::views::device_view;
use crate::cluster::FoundDevice;
use crate::config::check_group;
use crate::directory::{DiskEntry, State};
use crate::events::Kind;
use ::cluster::Leaving;
use api::types::{AddDevices, AddedDevices, DeviceView, EvacuateDevice, EvacuationView};
use base::GroupId;
use engine::{Command, Create, DeviceState, GroupSpec, Lost};
use failure::{Code, Failure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Control {
    /// All devices.
    ///
    /// # Errors
    /// When the engine is gone.
    pub async fn devices(&self) -> Result<Vec<DeviceView>, Failure> {
        let mut devices: Vec<DeviceView> = self.host_state().await?.devices.iter().map(device_view).collect();
        self.note_leaving(devices.iter_mut());
        self.note_loads(devices.iter_mut());
        Ok(devices)
    }

    /// Lets a capacity device of the cluster be emptied, or tells what that would do.
    ///
    /// # Errors
    /// When there is no such device, or something on it has nowhere to go.
    pub async fn evacuate_device(&self, request: EvacuateDevice) -> Result<EvacuationView, Failure> {
        let cluster = &self.cluster;
        let device = cluster.find_device(&request.device)?;
        let assessment = cluster.assess_device(device.id).await?;
        let mut view = evacuation_view(&device, &assessment, &cluster.all_spaces());
        if request.dry_run {
            return Ok(view);
        }
        if !view.is_possible {
            return Err(Failure::refused(format!(
                "device {} of host {} cannot be emptied: {}",
                device.path,
                device.host_name,
                view.obstacles.join("; ")
            ))
            .hint("add devices, or delete or move disks"));
        }
        let leaving = Leaving { since: cluster.directory_now(), fault: None };
        if cluster.set_leaving(device.host, &BTreeSet::from([device.id]), Some(&leaving)).await? {
            let bytes = base::units::format_bytes(view.bytes_to_move);
            let text = format!("it is to be emptied; {bytes} are copied elsewhere");
            self.events.other(Kind::DeviceLeaving, subject(&device), text);
        }
        view.is_begun = true;
        Ok(view)
    }

    /// A device is not to be emptied any more; what has left it stays where it is.
    ///
    /// # Errors
    /// When there is no such device, or the directory does not answer.
    pub async fn keep_device(&self, name: &str) -> Result<(), Failure> {
        let cluster = &self.cluster;
        let device = cluster.find_device(name)?;
        if cluster.set_leaving(device.host, &BTreeSet::from([device.id]), None).await? {
            let text = "it is not to be emptied any more";
            self.events.other(Kind::DeviceLeaving, subject(&device), text);
        }
        Ok(())
    }

    /// Makes a new group of devices, or gives a group more capacity devices.
    ///
    /// # Errors
    /// When the request makes no sense, or the engine refuses a device. Those before it stay added.
    pub async fn add_devices(&self, request: AddDevices) -> Result<AddedDevices, Failure> {
        let _change = self.changes.lock().await;
        let create = if request.force { Create::Force } else { Create::IfBlank };
        let capacity: Vec<PathBuf> = request.capacity.iter().map(PathBuf::from).collect();
        if let Some(relative) =
            request.log.iter().chain(&request.capacity).find(|path| !path.starts_with('/'))
        {
            return Err(Failure::usage(format!("`{relative}` is not an absolute path")));
        }
        let group = match (request.group, request.log) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage(
                    "a group that is there has its log device: give `group` or `log`",
                ));
            }
            (None, None) => {
                return Err(Failure::usage("either `group` or `log` says where the devices belong"));
            }
            (Some(group), None) => self.add_capacity(&group, capacity, request.file_size, create).await?,
            (None, Some(log)) => {
                let spec = GroupSpec {
                    log: PathBuf::from(log),
                    capacity,
                    log_size: request.log_size,
                    file_size: request.file_size,
                    create,
                    remake: None,
                };
                check_group(&spec)?;
                self.open_group(spec, Vec::new()).await?
            }
        };
        self.cluster.tell_devices().await;
        let devices = self.host_state().await?.devices;
        let devices: Vec<DeviceView> =
            devices.iter().filter(|device| device.group == group).map(device_view).collect();
        let paths: Vec<&str> = devices.iter().map(|device| device.path.as_str()).collect();
        let text = format!("group {group} has {} from now on", paths.join(", "));
        self.events.here(Kind::DeviceAdded, text);
        Ok(AddedDevices { group: group.to_string(), devices })
    }

    pub(super) async fn add_capacity(
        &self,
        group: &str,
        paths: Vec<PathBuf>,
        file_size: Option<u64>,
        create: Create,
    ) -> Result<GroupId, Failure> {
        let group: GroupId =
            group.parse().map_err(|error: base::id::IdError| Failure::usage(error.to_string()))?;
        if paths.is_empty() {
            return Err(Failure::usage("no capacity device was named"));
        }
        for path in paths {
            let added = self
                .engine
                .call(|answer| Command::AddCapacity { group, path, file_size, create, answer })
                .await?;
            // What was added before a failure is recorded all the same.
            self.record_group(group).await?;
            added?;
        }
        Ok(group)
    }

    /// Removes an empty capacity device from its group; or the whole group, when it is the log device of an empty group and
    /// that is asked for. Gives back a line of advice, if there is any.
    ///
    /// # Errors
    /// When there is no such device, or something stands on it.
    pub async fn remove_device(&self, name: &str, with_group: bool) -> Result<Option<String>, Failure> {
        let _change = self.changes.lock().await;
        let host = self.host_state().await?;
        let named = |device: &&DeviceState| device.id.to_string() == name || device.path == Path::new(name);
        let Some(device) = host.devices.iter().find(named) else {
            return Err(Failure::new(Code::NotFound, format!("there is no device `{name}`"))
                .hint("see `drystone device list`"));
        };
        let id = device.id;
        if device.is_log && !with_group {
            let others = host.devices.iter().filter(|other| other.group == device.group && other.id != id);
            let others: Vec<String> = others.map(|other| other.path.display().to_string()).collect();
            let whole = match others.is_empty() {
                true => String::new(),
                false => format!(", with its capacity devices {}", others.join(", ")),
            };
            return Err(Failure::refused(format!(
                "device {} holds the log of group {}: without it the whole group goes{whole}",
                device.path.display(),
                device.group
            ))
            .hint("pass `--group` to remove the whole group; to change a log device that failed use `drystone device replace`"));
        }
        self.check_nothing_stands_on(device)?;
        self.engine.call(|answer| Command::RemoveDevice { device: id, lost: Lost::Keep, answer }).await??;
        self.record_group(device.group).await?;
        self.cluster.tell_devices().await;
        let name = format!("device {} of host {}", device.path.display(), self.config().name);
        self.events.other(Kind::DeviceRemoved, name, format!("taken out of group {}", device.group));
        Ok(self.still_configured(&device.path))
    }

    /// Says so, if the configuration file names a path that is none of a device any more.
    pub(super) fn still_configured(&self, path: &Path) -> Option<String> {
        let config = self.config();
        config
            .groups
            .iter()
            .flat_map(crate::config::paths_of)
            .any(|named| *named == path)
            .then(|| format!("the configuration file still names {}: change it there too", path.display()))
    }

    /// A device that is out of service cannot tell what stands on it; the directory can.
    fn check_nothing_stands_on(&self, device: &DeviceState) -> Result<(), Failure> {
        let records = self.records();
        let on_it = |entry: &&Arc<DiskEntry>| {
            let mut components = entry.record.layout.components();
            entry.state != State::Deleting && components.any(|(_, component)| component.device == device.id)
        };
        let names: Vec<&str> =
            records.disks.values().filter(on_it).map(|entry| entry.record.name.as_str()).collect();
        match names.is_empty() {
            true => Ok(()),
            false => Err(Failure::refused(format!(
                "device {} has components of {}",
                device.path.display(),
                listed(&names)
            ))
            .hint(format!(
                "move them away first: `drystone device evacuate {}`, and `drystone device list` until the device is empty; where no \
                 other device has room, copy them elsewhere (`drystone disk export`)",
                device.path.display()
            ))),
        }
    }
}

fn subject(device: &FoundDevice) -> String {
    format!("device {} of host {}", device.path, device.host_name)
}

/// The first few names, and how many more there are.
fn listed(names: &[&str]) -> String {
    const NAMED_MAX: usize = 5;
    let named = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len() {
        0..=NAMED_MAX => named,
        count => format!("{named} and {} more", count - NAMED_MAX),
    }
}
