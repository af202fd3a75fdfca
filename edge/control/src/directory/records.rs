//! Disks, policies and silences of a cluster, as requests look them up.

use super::record::{DiskEntry, PolicyEntry};
use super::shared::record::Silences;
use base::DiskId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Disks, policies and silences by what people call them.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// All disks, also those being made or deleted.
    pub disks: BTreeMap<DiskId, Arc<DiskEntry>>,
    /// Names of disks.
    pub names: BTreeMap<String, DiskId>,
    /// Policies that people made, by name.
    pub policies: BTreeMap<String, PolicyEntry>,
    /// Findings that people silenced for a while.
    pub silences: Silences,
}

impl Records {
    /// The disk of a name, or else of an id.
    pub fn disk(&self, name: &str) -> Option<&Arc<DiskEntry>> {
        let id = self.names.get(name).copied().or_else(|| name.parse().ok())?;
        self.disks.get(&id)
    }

    /// Takes a disk in, or its new record.
    pub fn insert(&mut self, entry: DiskEntry) {
        if let Some(former) = self.disks.get(&entry.record.id) {
            self.names.remove(&former.record.name);
        }
        self.names.insert(entry.record.name.clone(), entry.record.id);
        self.disks.insert(entry.record.id, Arc::new(entry));
    }
}
