//! The open disks of a node, by key and by identity.
//!
//! A host of a large cluster has thousands of disks open. It looks disks up by identity for every changed record and
//! every question of the control plane. A linear search made these quadratic.

use crate::disk::Disk;
use base::DiskId;
use slab::Slab;
#[cfg(test)]
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// The disks.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    slab: Slab<Disk>,
    /// The key of each disk. A disk keeps its identity while it is open.
    keys: BTreeMap<DiskId, u32>,
    /// Disks that were looked at.
    #[cfg(test)]
    visited: Cell<usize>,
}

impl Disks {
    /// Adds a disk, whose identity no open one may have, and gives its key.
    pub(crate) fn insert(&mut self, disk: Disk) -> u32 {
        let id = disk.spec.id;
        let key = self.slab.insert(disk) as u32;
        assert!(self.keys.insert(id, key).is_none(), "a disk is open once");
        key
    }

    /// Takes a disk out, which must be there.
    pub(crate) fn remove(&mut self, key: u32) {
        let disk = self.slab.remove(key as usize);
        assert!(self.keys.remove(&disk.spec.id) == Some(key), "a disk keeps its identity");
    }

    /// The key of a disk.
    pub(crate) fn key_of(&self, id: DiskId) -> Option<u32> {
        self.visit(1);
        self.keys.get(&id).copied()
    }

    pub(crate) fn get(&self, key: u32) -> Option<&Disk> {
        self.visit(1);
        self.slab.get(key as usize)
    }

    pub(crate) fn get_mut(&mut self, key: u32) -> Option<&mut Disk> {
        self.slab.get_mut(key as usize)
    }

    /// All disks in the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Disk)> {
        self.slab.iter().inspect(|_| self.visit(1)).map(|(key, disk)| (key as u32, disk))
    }

    #[cfg(test)]
    fn visit(&self, count: usize) {
        self.visited.set(self.visited.get() + count);
    }

    #[cfg(not(test))]
    fn visit(&self, _: usize) {}

    /// How many disks were looked at since this was asked last.
    #[cfg(test)]
    pub(crate) fn take_visited(&self) -> usize {
        self.visited.take()
    }
}

impl Index<u32> for Disks {
    type Output = Disk;

    fn index(&self, key: u32) -> &Disk {
        self.visit(1);
        &self.slab[key as usize]
    }
}

impl IndexMut<u32> for Disks {
    fn index_mut(&mut self, key: u32) -> &mut Disk {
        &mut self.slab[key as usize]
    }
}
