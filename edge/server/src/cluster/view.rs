//! The records of the shared directory, as a host last heard of them.

use crate::directory::shared::record::{ClusterDisk, DISKS, HOSTS, HostEntry, POLICIES, read_policy};
use crate::directory::shared::{Changes, Entry};
use crate::directory::{Records, State};
use base::{DiskId, HostId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A host's record and its version.
#[derive(Debug, Clone)]
pub struct KnownHost {
    /// Of the record.
    pub version: u64,
    /// What it says.
    pub entry: Arc<HostEntry>,
}

/// All records.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The revision up to which they are known.
    pub revision: u64,
    /// Hosts.
    pub hosts: BTreeMap<HostId, KnownHost>,
    /// Disks.
    pub disks: BTreeMap<DiskId, Arc<ClusterDisk>>,
    /// Disks and policies in the form of a single host's directory.
    pub records: Arc<Records>,
}

/// What a change of the view concerns.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Whether hosts came, went or moved.
    pub hosts: bool,
    /// Disks that changed or are gone.
    pub disks: BTreeSet<DiskId>,
}

impl View {
    /// The host of a name or id.
    pub fn host(&self, id: HostId) -> Option<&Arc<HostEntry>> {
        self.hosts.get(&id).map(|host| &host.entry)
    }

    /// What people call a host.
    pub fn host_name(&self, id: HostId) -> String {
        self.host(id).map_or_else(|| id.to_string(), |host| host.name.clone())
    }

    /// Takes changes in.
    pub fn take(&mut self, changes: Changes) -> Difference {
        let mut difference = Difference::default();
        if changes.is_complete {
            let named = |key: String| changes.entries.iter().any(|entry| entry.key == key);
            let gone = self.disks.keys().filter(|id| !named(ClusterDisk::key(**id))).copied();
            let gone: Vec<DiskId> = gone.collect();
            gone.into_iter().for_each(|id| self.remove_disk(id, &mut difference));
            self.hosts.retain(|id, _| named(format!("{HOSTS}{id}")));
            let mut records = Records::clone(&self.records);
            records.policies.clear();
            self.records = Arc::new(records);
            difference.hosts = true;
        }
        for key in &changes.gone {
            self.remove(key, &mut difference);
        }
        for entry in changes.entries {
            if let Err(why) = self.put(&entry, &mut difference) {
                tracing::error!("a record of the shared directory cannot be read: {why}");
            }
        }
        self.revision = changes.revision;
        difference
    }

    fn put(&mut self, entry: &Entry, difference: &mut Difference) -> Result<(), String> {
        if entry.key.starts_with(HOSTS) {
            let host: HostEntry = serde_json::from_value(entry.value.clone())
                .map_err(|error| format!("{}: {error}", entry.key))?;
            difference.hosts |= self.host(host.id).is_none_or(|known| known.peers != host.peers);
            self.note_host(entry.version, host);
        } else if entry.key.starts_with(DISKS) {
            let disk = ClusterDisk::read(entry)?;
            difference.disks.insert(disk.entry.record.id);
            self.note(&disk);
        } else if entry.key.starts_with(POLICIES) {
            let policy = read_policy(entry)?;
            let mut records = Records::clone(&self.records);
            records.policies.insert(policy.name.clone(), policy);
            self.records = Arc::new(records);
        }
        Ok(())
    }

    /// A host's record, if it is news.
    pub fn note_host(&mut self, version: u64, host: HostEntry) {
        if self.hosts.get(&host.id).is_none_or(|known| known.version < version) {
            self.hosts.insert(host.id, KnownHost { version, entry: Arc::new(host) });
        }
    }

    /// A disk's record, if it is news.
    pub fn note(&mut self, disk: &ClusterDisk) {
        let id = disk.entry.record.id;
        let is_news = match self.disks.get(&id) {
            Some(known) => known.entry.version < disk.entry.version,
            // Up to its revision the view is complete: a disk that it lacks was removed since it was read.
            None => disk.entry.version > self.revision,
        };
        if !is_news {
            return;
        }
        let mut records = Records::clone(&self.records);
        records.insert(disk.entry.clone());
        self.records = Arc::new(records);
        self.disks.insert(id, Arc::new(disk.clone()));
    }

    fn remove(&mut self, key: &str, difference: &mut Difference) {
        if let Some(id) = key.strip_prefix(DISKS).and_then(|id| id.parse().ok()) {
            self.remove_disk(id, difference);
        } else if let Some(id) = key.strip_prefix(HOSTS).and_then(|id| id.parse().ok()) {
            self.hosts.remove(&id);
            difference.hosts = true;
        } else if let Some(name) = key.strip_prefix(POLICIES) {
            let mut records = Records::clone(&self.records);
            records.policies.remove(name);
            self.records = Arc::new(records);
        }
    }

    fn remove_disk(&mut self, id: DiskId, difference: &mut Difference) {
        difference.disks.insert(id);
        let Some(disk) = self.disks.remove(&id) else { return };
        let mut records = Records::clone(&self.records);
        records.disks.remove(&id);
        if records.names.get(&disk.entry.record.name) == Some(&id) {
            records.names.remove(&disk.entry.record.name);
        }
        self.records = Arc::new(records);
    }

    /// Disks of which something is to be deleted on that host.
    pub fn to_clean(&self) -> Vec<Arc<ClusterDisk>> {
        let is_going = |disk: &&Arc<ClusterDisk>| disk.entry.state == State::Deleting;
        self.disks.values().filter(is_going).cloned().collect()
    }
}
