//! What the engine knows beside the node: the disks by their names, who is kept from them, and who waits for what.

use crate::command::{Answer, DiskLock, DiskRecord};
use crate::error::EngineError;
use base::{DeviceId, DiskId, GroupId, HostId};
use cluster::{Guest, Snapshot};
use frontends::{Bitmap, Export};
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
    /// Writers of superblocks under way.
    pub(crate) writers: u32,
    /// The group whose format is being changed; no device joins or leaves a group meanwhile.
    pub(crate) converting: Option<GroupKey>,
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
            writers: 0,
            converting: None,
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

    /// The export of a snapshot, which can only be read.
    pub(crate) fn snapshot_export(record: &DiskRecord, snapshot: &Snapshot) -> Export {
        let older = record.snapshots.iter().filter(|one| one.number < snapshot.number);
        let bitmap = |one: &Snapshot| Bitmap { name: one.name.clone(), number: one.number };
        Export {
            name: format!("{}@{}", record.name, snapshot.name),
            size: snapshot.size,
            read_only: true,
            description: format!("Drystone disk {}, snapshot {}", record.id, snapshot.name),
            snapshot: Some(snapshot.number),
            bitmaps: older.map(bitmap).collect(),
        }
    }

    pub(crate) fn export(record: &DiskRecord) -> Export {
        Export {
            name: record.name.clone(),
            size: record.size,
            read_only: record.read_only,
            description: format!("Drystone disk {}", record.id),
            snapshot: None,
            bitmaps: Vec::new(),
        }
    }

    /// The disks that somebody may attach to at this host.
    pub(crate) fn exports(&self, guest: Guest<'_>, host: HostId) -> Vec<Export> {
        let all = self.names.values().filter_map(|id| self.disks.get(id));
        let with_snapshots = |disk: &DiskRecord| {
            let snapshots = disk.snapshots.iter().map(|one| Registry::snapshot_export(disk, one));
            std::iter::once(Registry::export(disk)).chain(snapshots).collect::<Vec<_>>()
        };
        all.filter(|disk| disk.access.admits(guest, host)).flat_map(with_snapshots).collect()
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
