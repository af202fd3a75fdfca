//! A virtual directory: records with versions, compare-and-set, outcomes that get lost.

use base::DiskId;
use replication::Roster;
use replication::owner::Committed;
use std::collections::BTreeMap;

/// All records.
#[derive(Debug, Default)]
pub struct Directory {
    records: BTreeMap<DiskId, (u64, Roster)>,
    /// Until when it answers nobody.
    pub away_until: u64,
    /// Transactions that took effect.
    pub commits: u64,
}

impl Directory {
    /// Puts a record in place, as the creation of a disk does.
    pub fn preset(&mut self, disk: DiskId, roster: Roster) {
        self.records.insert(disk, (1, roster));
    }

    /// Carries a compare-and-set out.
    pub fn commit(&mut self, disk: DiskId, expected: u64, roster: Roster) -> Committed {
        let (version, current) = self.records.get_mut(&disk).expect("disks are not deleted here");
        if *version != expected {
            return Committed::Conflict { version: *version, roster: current.clone() };
        }
        *version += 1;
        *current = roster;
        self.commits += 1;
        Committed::Done { version: *version }
    }

    /// A record.
    pub fn get(&self, disk: DiskId) -> Option<(u64, Roster)> {
        self.records.get(&disk).cloned()
    }

    /// All disks.
    pub fn disks(&self) -> Vec<DiskId> {
        self.records.keys().copied().collect()
    }
}
