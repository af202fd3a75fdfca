//! The start of a host: groups, then disks, then what a crash or a lost directory left open.

use super::Control;
use super::health::watch_health;
use super::overdue::watch_overdue;
use super::pulse::beat::beat;
use crate::browsers::Browsers;
use crate::cluster::Cluster;
use crate::config::{Config, paths_of};
use crate::directory::{GroupEntry, HostStore};
use crate::events::Kind;
use crate::http::doors::Doors;
use crate::limits::STREAMS_MAX;
use crate::sampler::Sampler;
use crate::series::Series;
use crate::sessions::Sessions;
use crate::system::blocking;
use base::GroupId;
use engine::{Command, Create, EngineHandle, GroupSpec, Notice};
use failure::Failure;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;

impl Control {
    /// Opens all groups and disks.
    ///
    /// # Errors
    /// When no group can be opened, or the directory fails. A group or disk that fails beside others that do not
    /// is a warning.
    pub async fn start(
        store: HostStore,
        cluster: Arc<Cluster>,
        notices: UnboundedReceiver<Notice>,
        (engine, doors): (EngineHandle, Arc<Doors>),
    ) -> Result<Arc<Control>, Failure> {
        let events = Arc::clone(&cluster.events);
        let series = Arc::new(Series::new(cluster.config().data_dir.clone()));
        let control = Arc::new(Control {
            engine,
            doors,
            browsers: Arc::new(Browsers::new(Arc::clone(&cluster), &cluster.config())),
            pulse: Arc::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            sessions: Sessions::default(),
            store,
            cluster,
            events,
            sampler: Arc::new(Sampler::default()),
            series,
            warnings: Mutex::default(),
            changes: tokio::sync::Mutex::default(),
            locks: std::sync::Mutex::default(),
            imports: std::sync::Mutex::default(),
            rollbacks: std::sync::Mutex::default(),
            left: tokio::sync::Notify::new(),
        });
        control.open_groups().await?;
        control.cluster.begin(notices).await?;
        tokio::spawn(Arc::clone(&control.sampler).run(control.engine.clone(), Arc::clone(&control.series)));
        tokio::spawn(watch_health(Arc::downgrade(&control)));
        tokio::spawn(beat(Arc::downgrade(&control), Arc::clone(&control.pulse)));
        tokio::spawn(watch_overdue(Arc::downgrade(&control)));
        control.events.here(
            Kind::HostStarted,
            format!("drystone {} serves {} disks", api::program::RELEASE, control.records().disks.len()),
        );
        Ok(control)
    }

    /// Groups of the configuration, and those that were added while the host ran.
    async fn open_groups(&self) -> Result<(), Failure> {
        let known = self.store.groups();
        let mut specs: Vec<(GroupSpec, Vec<PathBuf>)> = Vec::new();
        for spec in &self.config().groups {
            let known = known.values().find(|group| group.log == spec.log);
            specs.push(split_known(spec, known));
        }
        for group in known.values() {
            if !specs.iter().any(|(spec, _)| spec.log == group.log) {
                specs.push((known_spec(group), Vec::new()));
            }
        }
        let mut failures = Vec::new();
        let mut open = Vec::new();
        // What never was a group is a mistake in the configuration.
        let mut is_new = false;
        for (spec, added) in specs {
            let former = known.values().find(|group| group.log == spec.log);
            is_new |= former.is_none();
            if former.is_some_and(|group| open.contains(&group.id)) {
                continue; // Its devices have moved: it was opened where the configuration names them.
            }
            let log = spec.log.display().to_string();
            match self.open_group(spec, added).await {
                Ok(group) => open.push(group),
                Err(failure) => failures.push(Failure {
                    error: format!("open the disk group of {log}: {}", failure.error),
                    ..failure
                }),
            }
        }
        // A host whose groups are known starts without them too: so it can be asked what is wrong, and devices be replaced.
        let may_be_empty = !is_new;
        if open.is_empty()
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
        let create = if added.is_empty() { create } else { added_create(&self.config(), &spec) };
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
        let Some(log) = log else { return blocking(|| self.store.remove_group(group)) };
        // A group that had its log at that path is none any more: its devices were erased or replaced.
        let groups = self.store.groups();
        let replaced = groups.values().filter(|one| one.log == log && one.id != group);
        let replaced: Vec<GroupId> = replaced.map(|one| one.id).collect();
        let entry = GroupEntry { id: group, log, capacity };
        // What is written already needs no room: a start in a full data_dir must not leave a group closed.
        if replaced.is_empty() && groups.get(&group) == Some(&entry) {
            return Ok(());
        }
        blocking(|| self.store.put_group(entry, &replaced))
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
