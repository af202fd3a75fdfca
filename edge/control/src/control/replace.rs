//! A device in the place of one that failed.
//!
//! A capacity device is replaced while its group is in use: what stood on the failed one is given up, and made anew elsewhere
//! where copies are left. A log device takes what stands in its group with it: the group is made anew of the new log device
//! and of the capacity devices that are there. Nothing of which no other component holds the data is given up unconfirmed.

use super::Control;
use crate::directory::{DiskEntry, GroupEntry};
use crate::events::Kind;
use crate::system::blocking;
use api::types::{ReplaceDevice, ReplacementView};
use base::{DeviceId, GroupId};
use diskgroup::format::superblock::MEMBERS_MAX;
use engine::{self, Command, Create, DeviceState, GroupSpec, HostState, Lost};
use failure::{Code, Failure};
use replication::Standing;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is replaced.
enum Former {
    /// A capacity device of a group that is open.
    Capacity(DeviceState),
    /// The log device of a group that could not be opened.
    Log(GroupEntry),
}

impl Control {
    /// Puts a new device in the place of another, or tells what that would do.
    ///
    /// # Errors
    /// When there is no such device, it is in use, or it holds what nothing else does and that is not confirmed.
    pub async fn replace_device(&self, request: ReplaceDevice) -> Result<ReplacementView, Failure> {
        let _change = self.changes.lock().await;
        if !request.with.starts_with('/') {
            return Err(Failure::usage(format!("`{}` is not an absolute path", request.with)));
        }
        let host = self.host_state().await?;
        let former = self.former(&host, &request.device)?;
        let (path, devices) = match &former {
            Former::Capacity(device) => (device.path.clone(), BTreeSet::from([device.id])),
            Former::Log(entry) => (entry.log.clone(), self.devices_not_open(&host)),
        };
        let (disks, lost_disks) = self.disks_on(&devices);
        let mut view = ReplacementView {
            device: path.display().to_string(),
            with: request.with.clone(),
            is_log: matches!(former, Former::Log(_)),
            disks,
            lost_disks,
            group: None,
            advice: None,
        };
        if request.dry_run {
            return Ok(view);
        }
        check_confirmed(&view, &request)?;
        let create = if request.force { Create::Force } else { Create::IfBlank };
        let with = PathBuf::from(&request.with);
        let group = match former {
            Former::Capacity(device) => {
                self.replace_capacity(&host, &device, with, (request.file_size, create)).await?
            }
            Former::Log(entry) => self.replace_log(entry, with, (request.file_size, create)).await?,
        };
        self.cluster.tell_devices().await;
        let name = format!("device {} of host {}", view.device, self.config().name);
        self.events.other(
            Kind::DeviceReplaced,
            name,
            format!("{} takes its place in group {group}", view.with),
        );
        view.group = Some(group.to_string());
        view.advice = self.still_configured(&path).filter(|_| view.device != view.with);
        Ok(view)
    }

    /// The device that people mean. It must have failed, be away, or be empty.
    fn former(&self, host: &HostState, name: &str) -> Result<Former, Failure> {
        let named = |device: &&DeviceState| device.id.to_string() == name || device.path == Path::new(name);
        let groups = self.store.groups();
        let closed = groups.values().find(|group| {
            group.log == Path::new(name) && !host.groups.iter().any(|open| open.id == group.id)
        });
        match (host.devices.iter().find(named), closed) {
            (Some(device), _) if device.is_log && device.failure.is_none() => {
                let path = device.path.display();
                Err(Failure::refused(format!("device {path} is in service, and holds the log of its group"))
                    .hint("a log device is replaced when it has failed; to take the group apart: move or delete what stands in \
                           it, then `drystone device remove --group`"))
            }
            (Some(device), _) if device.is_log => {
                let path = device.path.display();
                Err(Failure::refused(format!("the log device {path} failed, and its group is still open"))
                    .hint("restart the host's service (`systemctl restart drystone`), then run the same command again"))
            }
            (Some(device), _) if device.failure.is_none() && device.component_count > 0 => {
                let path = device.path.display();
                Err(Failure::refused(format!(
                    "device {path} is in service and in use (components: {})",
                    device.component_count
                ))
                .hint(format!("empty it first: `drystone device evacuate {path}`")))
            }
            (Some(device), _) => Ok(Former::Capacity(device.clone())),
            (None, Some(group)) => Ok(Former::Log(group.clone())),
            (None, None) => Err(Failure::new(
                Code::NotFound,
                format!("there is no device `{name}`, and no closed group has its log there"),
            )
            .hint("see `drystone device list` and `drystone status`")),
        }
    }

    /// Devices that disks of this host stand on and that no open group has.
    fn devices_not_open(&self, host: &HostState) -> BTreeSet<DeviceId> {
        let open: BTreeSet<DeviceId> = host.devices.iter().map(|device| device.id).collect();
        let mut all = BTreeSet::new();
        let view = self.cluster.view();
        for known in view.disks.values() {
            let record = &known.record;
            let here = |id| record.roster.member(id).is_some_and(|one| one.node.host == self.cluster.me);
            let mine = record.layout.components().filter(|(_, component)| here(component.id));
            all.extend(mine.map(|(_, component)| component.device));
        }
        all.difference(&open).copied().collect()
    }

    /// Disks with components on those devices, and those of them of which no other active component holds a place.
    fn disks_on(&self, devices: &BTreeSet<DeviceId>) -> (Vec<String>, Vec<String>) {
        let (mut touched, mut lost) = (Vec::new(), Vec::new());
        let records = self.records();
        for entry in records.disks.values() {
            let record = &entry.record;
            let mut places = record.layout.places();
            let is_on = |device: &DeviceId| devices.contains(device);
            if !record.layout.components().any(|(_, component)| is_on(&component.device)) {
                continue;
            }
            touched.push(record.name.clone());
            let is_lost = |(place, components): (usize, &[layout::Component])| {
                let has_any = components.iter().any(|one| is_on(&one.device));
                let needed = record.layout.place_code(place).map_or(1, |code| usize::from(code.data()));
                let stay =
                    components.iter().filter(|one| !is_on(&one.device) && self.is_active(entry, one.id));
                has_any && stay.count() < needed
            };
            if places.any(is_lost) {
                lost.push(record.name.clone());
            }
        }
        touched.sort_unstable();
        lost.sort_unstable();
        (touched, lost)
    }

    /// Whether a component holds all that was acknowledged.
    fn is_active(&self, entry: &DiskEntry, component: base::ComponentId) -> bool {
        let view = self.cluster.view();
        let known = view.disks.get(&entry.record.id);
        let member = known.and_then(|known| known.record.roster.member(component));
        member.is_some_and(|member| member.standing == Standing::Active)
    }

    async fn replace_capacity(
        &self,
        host: &HostState,
        device: &DeviceState,
        with: PathBuf,
        (file_size, create): (Option<u64>, Create),
    ) -> Result<GroupId, Failure> {
        let group = device.group;
        let is_full = host.devices.iter().filter(|one| one.group == group).count() >= MEMBERS_MAX;
        // Where it can be, the new one comes first: if it cannot be used, nothing has changed.
        let comes_first = !is_full && with != device.path;
        let add = async || self.add_capacity(&group.to_string(), vec![with.clone()], file_size, create).await;
        if comes_first {
            add().await?;
        } else if let Some(refusal) = blocking(|| engine::refusal_to_take(&with, create)) {
            // Told before the former one is given up, or there would be nothing left to replace.
            return Err(refusal.into());
        }
        let (id, lost) = (device.id, Lost::GiveUp);
        let removed = self.engine.call(|answer| Command::RemoveDevice { device: id, lost, answer }).await?;
        self.record_group(group).await?;
        removed?;
        if !comes_first {
            add().await.map_err(|failure| Failure {
                hint: Some(format!(
                    "the former device is out of its group; add the new one: `drystone device add {} --group {group}`",
                    with.display()
                )),
                ..failure
            })?;
        }
        Ok(group)
    }

    async fn replace_log(
        &self,
        entry: GroupEntry,
        with: PathBuf,
        (file_size, create): (Option<u64>, Create),
    ) -> Result<GroupId, Failure> {
        let spec = GroupSpec {
            log: with,
            capacity: entry.capacity.clone(),
            log_size: None,
            file_size,
            create,
            remake: Some(entry.id),
        };
        let group = self.engine.call(|answer| Command::OpenGroup { spec, answer }).await??;
        blocking(|| self.store.remove_group(entry.id))?;
        self.record_group(group).await?;
        Ok(group)
    }
}

/// What nothing else holds is given up only by who says so.
fn check_confirmed(view: &ReplacementView, request: &ReplaceDevice) -> Result<(), Failure> {
    let is_confirmed =
        request.confirm.as_ref().is_some_and(|given| *given == view.device || *given == request.device);
    if view.lost_disks.is_empty() || is_confirmed {
        return Ok(());
    }
    let what = if view.is_log { "the group of log device" } else { "device" };
    Err(Failure::refused(format!(
        "{what} {} holds the only copy of data of {}: replacing it gives that up",
        view.device,
        view.lost_disks.join(", ")
    ))
    .hint(format!(
        "bring the device back if that is possible; to give the data up: add `--confirm {}`",
        view.device
    )))
}
