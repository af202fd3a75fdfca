//! The start of a host: groups, then disks, then what a crash or a lost directory left open.

use super::health::watch_health;
use super::overdue::watch_overdue;
use super::{Control, blocking, random_bits};
use crate::cluster::{self, Cluster};
use crate::config::{Config, paths_of};
use crate::directory::{Directory, DiskEntry, GroupEntry, State};
use crate::engine::{Command, Create, DiskRecord, EngineError, EngineHandle, GroupSpec, HostState};
use crate::events::{EventLog, Kind};
use crate::failure::Failure;
use crate::sampler::Sampler;
use crate::security::Security;
use base::{DeviceId, GroupId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The directory's file in a data directory.
pub fn directory_path(config: &Config) -> PathBuf {
    config.data_dir.join("directory.redb")
}

impl Control {
    /// Opens all groups and disks.
    ///
    /// # Errors
    /// When no group can be opened, or the directory fails. A group or disk that fails beside others that do not
    /// is a warning.
    pub async fn start(
        config: Config,
        directory: Directory,
        found: Option<cluster::Found>,
        security: Option<Arc<Security>>,
        engine: EngineHandle,
    ) -> Result<Arc<Control>, Failure> {
        let events = Arc::new(EventLog::open(&config.data_dir, &config.name)?);
        let joined = match (found, config.cluster.clone()) {
            (Some(found), Some(settings)) => {
                let events = Arc::clone(&events);
                Some(Cluster::join(found, &config, &settings, &directory, engine.clone(), events).await?)
            }
            _ => None,
        };
        let (cluster, notices) = joined.unzip();
        let control = Arc::new(Control {
            config,
            engine,
            directory,
            cluster,
            events,
            security,
            sampler: Arc::new(Sampler::default()),
            unavailable: Mutex::default(),
            warnings: Mutex::default(),
            changes: tokio::sync::Mutex::default(),
            locks: std::sync::Mutex::default(),
            imports: std::sync::Mutex::default(),
            left: tokio::sync::Notify::new(),
        });
        control.open_groups().await?;
        match (&control.cluster, notices) {
            (Some(cluster), Some(notices)) => cluster.begin(notices).await?,
            _ => {
                control.resolve_unfinished().await?;
                control.open_disks().await?;
                control.adopt_found().await?;
            }
        }
        tokio::spawn(Arc::clone(&control.sampler).run(control.engine.clone()));
        tokio::spawn(watch_health(Arc::downgrade(&control)));
        tokio::spawn(watch_overdue(Arc::downgrade(&control)));
        control.events.here(
            Kind::HostStarted,
            format!("drystone {} serves {} disks", crate::release::RELEASE, control.records().disks.len()),
        );
        Ok(control)
    }

    /// Groups of the configuration, and those that were added while the host ran.
    async fn open_groups(&self) -> Result<(), Failure> {
        let records = self.directory.records();
        let mut specs: Vec<(GroupSpec, Vec<PathBuf>)> = Vec::new();
        for spec in &self.config.groups {
            let known = records.groups.values().find(|group| group.log == spec.log);
            specs.push(split_known(spec, known));
        }
        for group in records.groups.values() {
            if !specs.iter().any(|(spec, _)| spec.log == group.log) {
                specs.push((known_spec(group), Vec::new()));
            }
        }
        let mut failures = Vec::new();
        let mut opened = 0;
        // What never was a group is a mistake in the configuration.
        let mut is_new = false;
        for (spec, added) in specs {
            is_new |= !records.groups.values().any(|group| group.log == spec.log);
            let log = spec.log.display().to_string();
            match self.open_group(spec, added).await {
                Ok(_) => opened += 1,
                Err(failure) => failures.push(Failure {
                    error: format!("open the disk group of {log}: {}", failure.error),
                    ..failure
                }),
            }
        }
        // A host whose groups are known starts without them too: so it can be asked what is wrong, and devices be replaced.
        let may_be_empty = !is_new;
        if opened == 0
            && !may_be_empty
            && let Some(failure) = failures.pop()
        {
            return Err(failure);
        }
        for failure in failures {
            self.warn(format!(
                "{}. Connect the device and restart the service; if it is lost, `drystone device replace LOG NEW` makes the group anew",
                failure.error
            ));
        }
        Ok(())
    }

    /// Opens or makes a group, adds capacity devices that it did not have, and records where they are.
    pub(super) async fn open_group(&self, spec: GroupSpec, added: Vec<PathBuf>) -> Result<GroupId, Failure> {
        let (file_size, create) = (spec.file_size, spec.create);
        let create = if added.is_empty() { create } else { added_create(&self.config, &spec) };
        let group = self.engine.call(|answer| Command::OpenGroup { spec, answer }).await??;
        for path in added {
            self.engine
                .call(|answer| Command::AddCapacity { group, path, file_size, create, answer })
                .await??;
        }
        self.record_group(group).await?;
        for device in self.host_state().await?.devices.iter().filter(|device| device.group == group) {
            if let Some(why) = &device.failure {
                self.warn(format!(
                    "device {} is out of service: {why}. What stands on it cannot be used until it is connected and the host started again; \
                     `drystone device replace` gives it up",
                    device.path.display()
                ));
            }
        }
        Ok(group)
    }

    /// Records the group's devices as the engine has them now.
    pub(super) async fn record_group(&self, group: GroupId) -> Result<(), Failure> {
        let host = self.host_state().await?;
        let mut log = None;
        let mut capacity = Vec::new();
        for device in host.devices.iter().filter(|device| device.group == group) {
            if device.is_log {
                log = Some(device.path.clone());
            } else {
                capacity.push(device.path.clone());
            }
        }
        let Some(log) = log else { return blocking(|| self.directory.remove_group(group)) };
        // A group that had its log at that path is none any more: its devices were erased or replaced.
        let records = self.directory.records();
        let replaced = records.groups.values().filter(|one| one.log == log && one.id != group);
        let replaced: Vec<GroupId> = replaced.map(|one| one.id).collect();
        let entry = GroupEntry { id: group, log, capacity };
        let is_known = records.groups.get(&group) == Some(&entry);
        blocking(|| {
            replaced.iter().try_for_each(|id| self.directory.remove_group(*id))?;
            // What is written already needs no room: a start in a full data_dir must not leave a group closed.
            if !is_known {
                self.directory.put_group(entry)?;
            }
            match self.directory.cluster()? {
                Some(known) if known == host.cluster => Ok(()),
                Some(_) | None => self.directory.set_cluster(host.cluster),
            }
        })
    }

    /// Ends what a crash interrupted: creations whose components are all there count, others are undone; deletions
    /// are finished; of a change the engine is told again. Nothing is undone or finished while a device of the disk is
    /// away: what stands there would come back as a disk, and a creation that looks half done may be a whole one.
    async fn resolve_unfinished(&self) -> Result<(), Failure> {
        let host = self.host_state().await?;
        let known: BTreeMap<DeviceId, bool> =
            host.devices.iter().map(|device| (device.id, device.is_away)).collect();
        let has_closed_group = self.directory.records().groups.len() > host.groups.len();
        let is_away = |id: DeviceId| known.get(&id).copied().unwrap_or(has_closed_group);
        for entry in self.directory.records().disks.values() {
            let entry = DiskEntry::clone(entry);
            let name = &entry.record.name;
            let mut components = entry.record.layout.components();
            let is_all_there = components.all(|(_, component)| !is_away(component.device));
            match entry.state {
                State::Creating => match self.open_with_next_epoch(entry.clone()).await? {
                    Ok(()) => tracing::info!("disk {name} was being created and is whole"),
                    Err(error) if is_all_there && self.was_never_used(&entry, &host).await? => {
                        tracing::warn!("disk {name} was being created: undone ({error})");
                        self.finish_deletion(&entry).await?;
                    }
                    Err(error) => self.hold_back(&entry, &error),
                },
                State::Deleting if is_all_there => {
                    tracing::info!("disk {name} was being deleted");
                    self.finish_deletion(&entry).await?;
                }
                State::Deleting => {
                    self.warn(format!("disk {name} is still being deleted: a device of it is away"));
                }
                State::Active => {}
            }
        }
        Ok(())
    }

    /// Whether a creation that looks half done was not a whole one. That it ended may have been forgotten; but whoever used
    /// the disk since has left data on it, and a device that failed cannot tell.
    async fn was_never_used(&self, entry: &DiskEntry, host: &HostState) -> Result<bool, Failure> {
        let id = entry.record.id;
        let states = self.disk_states(Some(id)).await?;
        let is_empty = states.get(&id).is_none_or(|state| state.allocated_bytes == 0);
        let has_failed = |id| host.devices.iter().any(|device| device.id == id && device.failure.is_some());
        let mut components = entry.record.layout.components();
        Ok(is_empty && !components.any(|(_, component)| has_failed(component.device)))
    }

    /// A disk that cannot be used, and why.
    fn hold_back(&self, entry: &DiskEntry, error: &EngineError) {
        self.warn(format!("disk {} cannot be used: {error}", entry.record.name));
        let mut unavailable = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        unavailable.insert(entry.record.id, error.to_string());
    }

    async fn finish_deletion(&self, entry: &DiskEntry) -> Result<(), Failure> {
        let disk = entry.record.id;
        match self.engine.call(|answer| Command::DeleteDisk { disk, answer }).await? {
            // Not there any more, or never was.
            Ok(()) | Err(EngineError::Refused(_)) => {}
            Err(error) => {
                self.warn(format!("disk {} is still being deleted: {error}", entry.record.name));
                return Ok(());
            }
        }
        let version = self.directory.records().disks.get(&disk).map_or(entry.version, |now| now.version);
        blocking(|| self.directory.remove_disk(disk, version))
    }

    /// Opens one disk; its epoch is stable before the engine counts from it.
    async fn open_with_next_epoch(&self, entry: DiskEntry) -> Result<Result<(), EngineError>, Failure> {
        let record = DiskRecord { epoch: entry.record.epoch + 1, ..entry.record };
        let entry = blocking(|| self.directory.replace_disk(DiskEntry { record, ..entry }))?;
        let disk = entry.record.clone();
        let id = disk.id;
        let mut opened = self.engine.call(|answer| Command::OpenDisk { disk, answer }).await?;
        let states = self.disk_states(Some(id)).await?;
        if let Some(why) = states.get(&id).and_then(|state| state.unavailable.clone()) {
            opened = Err(EngineError::Refused(why));
        }
        if opened.is_ok() {
            let entry = DiskEntry { state: State::Active, ..DiskEntry::clone(&entry) };
            blocking(|| self.directory.replace_disk(entry))?;
        }
        Ok(opened)
    }

    /// All active disks: one transaction for the epochs, then one command each.
    async fn open_disks(&self) -> Result<(), Failure> {
        let records = self.directory.records();
        let open: Vec<_> = self.disk_states(None).await?.into_keys().collect();
        let next = |entry: &Arc<DiskEntry>| {
            let mut entry = DiskEntry::clone(entry);
            entry.record.epoch += 1;
            if let Some(previous) = &mut entry.previous {
                previous.epoch = entry.record.epoch;
            }
            entry
        };
        let waiting = records.disks.values();
        let waiting =
            waiting.filter(|entry| entry.state == State::Active && !open.contains(&entry.record.id));
        let entries = waiting.map(next).collect::<Vec<_>>();
        let entries = blocking(|| self.directory.replace_disks(entries))?;
        for entry in entries {
            if let Err(error) = self.open_disk(&entry).await? {
                self.hold_back(&entry, &error);
            }
        }
        Ok(())
    }

    async fn open_disk(&self, entry: &DiskEntry) -> Result<Result<(), EngineError>, Failure> {
        let disk = entry.previous.as_deref().unwrap_or(&entry.record).clone();
        let opened = self.engine.call(|answer| Command::OpenDisk { disk, answer }).await?;
        if entry.previous.is_none() {
            return Ok(opened);
        }
        // A change was recorded and perhaps not made: from the former shape to the new one, or it was made already.
        let disk = entry.record.clone();
        let changed = match opened {
            Ok(()) => self.engine.call(|answer| Command::UpdateDisk { disk, answer }).await?,
            Err(_) => self.engine.call(|answer| Command::OpenDisk { disk, answer }).await?,
        };
        if changed.is_ok() {
            let entry = DiskEntry { previous: None, ..entry.clone() };
            blocking(|| self.directory.replace_disk(entry))?;
        }
        Ok(changed)
    }

    /// Disks that stand on the devices and not in the directory: it was lost, or the devices come from elsewhere.
    async fn adopt_found(&self) -> Result<(), Failure> {
        let found = self.engine.call(|answer| Command::Found { answer }).await?;
        for mut record in found {
            let records = self.directory.records();
            if records.disks.contains_key(&record.id) {
                continue;
            }
            if record.name.is_empty() || records.names.contains_key(&record.name) {
                record.name = format!("recovered-{}", record.id);
            }
            let name = record.name.clone();
            let entry = DiskEntry {
                version: 1,
                state: State::Active,
                record,
                previous: None,
                created: now_seconds(),
            };
            blocking(|| self.directory.add_disk(entry.clone()))?;
            tracing::info!("disk {name} was found on the devices and taken into the directory");
            if let Err(error) = self.open_with_next_epoch(entry.clone()).await? {
                self.hold_back(&entry, &error);
            }
        }
        Ok(())
    }

    /// A seed for placement.
    pub(super) fn seed(&self) -> Result<u64, Failure> {
        random_bits().map(|bits| bits as u64)
    }
}

/// A group that was there before is opened as it was: only devices that are new to it may be formatted.
fn split_known(spec: &GroupSpec, known: Option<&GroupEntry>) -> (GroupSpec, Vec<PathBuf>) {
    let Some(known) = known else { return (spec.clone(), Vec::new()) };
    let is_known = |path: &PathBuf| *path == known.log || known.capacity.contains(path);
    let added: Vec<PathBuf> = paths_of(spec).filter(|path| !is_known(path)).cloned().collect();
    (GroupSpec { file_size: spec.file_size, log_size: spec.log_size, ..known_spec(known) }, added)
}

fn known_spec(group: &GroupEntry) -> GroupSpec {
    GroupSpec {
        log: group.log.clone(),
        capacity: group.capacity.clone(),
        log_size: None,
        file_size: None,
        create: Create::Never,
        remake: None,
    }
}

/// What the configuration allows for devices that are new to a known group.
fn added_create(config: &Config, spec: &GroupSpec) -> Create {
    let configured = config.groups.iter().find(|group| group.log == spec.log);
    configured.map_or(Create::Never, |group| group.create)
}
