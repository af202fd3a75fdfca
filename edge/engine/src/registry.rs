//! What the engine knows beside the node: the disks by their names, who is kept from them, and who waits for what.

use crate::command::{Answer, DiskLock, DiskRecord};
use crate::error::EngineError;
use base::{DeviceId, DiskId, GroupId, HostId};
use cluster::Guest;
use frontends::Export;
use iostats::Statistics;
use node::GroupKey;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// What the engine knows beside the node.
pub(crate) struct Registry {
    disks: BTreeMap<DiskId, DiskRecord>,
    names: BTreeMap<String, DiskId>,
    /// Disks that clients are kept from.
    pub(crate) locks: BTreeMap<DiskId, DiskLock>,
    /// Copies of disks' figures, each good until its version changes: who asks every second costs an idle disk nothing.
    statistics: BTreeMap<DiskId, (u64, Arc<Statistics>)>,
    /// Groups that are being opened.
    pub(crate) opening: Vec<(GroupKey, Answer<Result<GroupId, EngineError>>)>,
    /// Devices that are leaving their group.
    pub(crate) leaving: Vec<Leaving>,
    /// Who waits until the engine has stopped, and until when it may take.
    pub(crate) stop: Option<(Answer<()>, Instant)>,
    /// Whether the disks that are owned here are being let go of.
    pub(crate) is_releasing: bool,
}

/// A device that is leaving its group, and who waits for that.
pub(crate) struct Leaving {
    pub(crate) group: GroupKey,
    pub(crate) device: DeviceId,
    pub(crate) answer: Answer<Result<(), EngineError>>,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry {
            disks: BTreeMap::new(),
            names: BTreeMap::new(),
            locks: BTreeMap::new(),
            statistics: BTreeMap::new(),
            opening: Vec::new(),
            leaving: Vec::new(),
            stop: None,
            is_releasing: false,
        }
    }

    /// The disk that is locked and exported by that name to whoever knows it.
    pub(crate) fn locked_by_export(&self, name: &str) -> Option<DiskId> {
        let is_it = |lock: &DiskLock| lock.export.as_deref() == Some(name);
        self.locks.iter().find(|(_, lock)| is_it(lock)).map(|(id, _)| *id)
    }

    /// The disk of that name; for the empty name the only disk there is.
    pub(crate) fn disk_by_name(&self, name: &str) -> Option<&DiskRecord> {
        if let Some(id) = self.locked_by_export(name) {
            return self.disks.get(&id);
        }
        match (name.is_empty(), self.disks.len()) {
            (true, 1) => self.disks.values().next(),
            (true, _) => None,
            (false, _) => self.disks.get(self.names.get(name)?),
        }
    }

    pub(crate) fn export(record: &DiskRecord) -> Export {
        Export {
            name: record.name.clone(),
            size: record.size,
            read_only: record.read_only,
            description: format!("Drystone disk {}", record.id),
        }
    }

    /// The disks that somebody may attach to at this host.
    pub(crate) fn exports(&self, guest: Guest<'_>, host: HostId) -> Vec<Export> {
        let all = self.names.values().filter_map(|id| self.disks.get(id));
        all.filter(|disk| disk.access.admits(guest, host)).map(Registry::export).collect()
    }

    pub(crate) fn insert(&mut self, record: DiskRecord) {
        self.remove(record.id);
        self.names.insert(record.name.clone(), record.id);
        self.disks.insert(record.id, record);
    }

    pub(crate) fn remove(&mut self, id: DiskId) {
        self.statistics.remove(&id);
        if let Some(record) = self.disks.remove(&id) {
            self.names.remove(&record.name);
        }
    }

    /// A copy of a disk's figures. `read` reads them, if those of that version have not been read yet.
    pub(crate) fn statistics(
        &mut self,
        disk: DiskId,
        version: u64,
        read: impl FnOnce() -> Statistics,
    ) -> Arc<Statistics> {
        match self.statistics.get(&disk) {
            Some((known, copy)) if *known == version => Arc::clone(copy),
            Some(_) | None => {
                let copy = Arc::new(read());
                self.statistics.insert(disk, (version, Arc::clone(&copy)));
                copy
            }
        }
    }
}
