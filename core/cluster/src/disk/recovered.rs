//! Snapshots that components have and that a record does not know: the record was made anew, or is older than the devices.
//!
//! Nobody knows their names any more. They are taken into the record under names of their own, so that what was cloned of them can be read, and
//! nothing of them is deleted but by people. Must never let a component answer for a snapshot that it was not seen to have.

use super::DiskRecord;
use super::parts::Snapshot;
use base::ComponentId;
use replication::Origin;
use std::collections::{BTreeMap, BTreeSet};

impl DiskRecord {
    /// Takes the snapshots into the record that components have under greater numbers than the record has ever given, and gives their numbers.
    /// `held`: the numbers that each component was seen to have. `origins`: what disks are clones of; they tell how large the disk was then.
    pub(crate) fn recover_snapshots(
        &mut self,
        held: &BTreeMap<ComponentId, Vec<u32>>,
        origins: &[Origin],
        now_ns: u64,
    ) -> Vec<u32> {
        let last = self.roster.snapshots.last;
        let members: BTreeSet<ComponentId> = self.roster.members.iter().map(|one| one.component).collect();
        let of_members = held.iter().filter(|(id, _)| members.contains(id)).flat_map(|(_, numbers)| numbers);
        let own: Vec<&Origin> = origins.iter().filter(|origin| origin.disk == self.id).collect();
        // A clone proves that its snapshot was taken, though no host that answers has it.
        let cloned = own.iter().map(|origin| origin.snapshot);
        let numbers: BTreeSet<u32> =
            of_members.copied().chain(cloned).filter(|number| *number > last).collect();
        for number in &numbers {
            let size = own.iter().find(|origin| origin.snapshot == *number).map_or(self.size, |one| one.size);
            let name = self.recovered_name(*number);
            self.snapshots.taken.push(Snapshot {
                number: *number,
                name,
                size,
                taken_ns: now_ns,
                schedule: None,
                is_pinned: false,
            });
            self.roster.snapshots.taken.push(*number);
            self.roster.snapshots.last = *number;
            for member in &mut self.roster.members {
                if !held.get(&member.component).is_some_and(|numbers| numbers.contains(number)) {
                    member.lacks.add(*number);
                }
            }
        }
        numbers.into_iter().collect()
    }

    fn recovered_name(&self, number: u32) -> String {
        let name = format!("recovered-{number}");
        let others = (2..).map(|count| format!("{name}-{count}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        names.find(|name| self.snapshots.named(name).is_none()).expect("numbers do not end")
    }
}
