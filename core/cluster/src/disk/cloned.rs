//! What disks are clones of, counted.

use base::DiskId;
use replication::Origin;
use std::collections::BTreeMap;

/// How many disks are clones of each snapshot, by the records of the clones themselves.
///
/// The record of an origin counts its clones, too: that count changes in one transaction with each clone. A record that was made anew from the
/// devices may lack the count of clones that existed before. Whatever deletes a snapshot or a disk therefore looks at both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clones(BTreeMap<DiskId, BTreeMap<u32, u32>>);

impl Clones {
    /// Counts disks by what they are clones of: of all disks, those that are clones.
    pub fn of(origins: impl IntoIterator<Item = Origin>) -> Clones {
        let mut clones = Clones::default();
        for origin in origins {
            *clones.0.entry(origin.disk).or_default().entry(origin.snapshot).or_default() += 1;
        }
        clones
    }

    /// Clones of a snapshot.
    pub(super) fn count(&self, disk: DiskId, number: u32) -> u32 {
        self.0.get(&disk).and_then(|of| of.get(&number)).copied().unwrap_or(0)
    }

    /// The snapshots of a disk that have clones.
    pub(super) fn numbers(&self, disk: DiskId) -> impl Iterator<Item = u32> + '_ {
        self.0.get(&disk).into_iter().flatten().map(|(number, _)| *number)
    }
}
