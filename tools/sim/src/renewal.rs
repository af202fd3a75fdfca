//! Devices that died are replaced while their group is in use: what stood on them is given up, and a blank one comes.

use crate::device::Device;
use crate::operation::Operation;
use crate::world::World;
use base::{ComponentId, DeviceId};
use diskgroup::Lost;
use diskgroup::format::superblock::Superblock;

/// New devices have ids from here on.
const FIRST_NEW: u128 = 1000;

impl World {
    /// Goes on with replacing a device that died, or begins to.
    pub(crate) fn renew(&mut self) {
        if !self.is_open || !self.features.renewals || !self.renewals.chance(1, 20) {
            return;
        }
        match self.renewing {
            Some(place) => self.finish_renewal(place),
            None => self.begin_renewal(),
        }
    }

    fn begin_renewal(&mut self) {
        let is_dead = |place: &u8| self.dead_members >> place & 1 == 1;
        let Some(place) = (1..self.superblocks.len() as u8).find(is_dead) else { return };
        let device = self.superblocks[place as usize].device;
        let group = self.group.as_mut().expect("it is open");
        // It counts as in service until a request of it has failed.
        if group.begin_remove(device, Lost::GiveUp).is_ok() {
            self.note("leaving", u64::from(place));
            self.renewing = Some(place);
            let lost = self.components.values_mut().filter(|component| component.member == place);
            lost.for_each(|component| component.key = None);
        }
    }

    fn finish_renewal(&mut self, place: u8) {
        let of_lost = |number: &u32| self.components.get(number).is_some_and(|one| one.member == place);
        let is_awaited = |operation: &Operation| match operation {
            Operation::Write { keys, .. } => of_lost(&keys[0].0),
            Operation::Read { first, .. } => of_lost(&first.0),
            Operation::Changed { component, .. }
            | Operation::Create { component }
            | Operation::Delete { component } => of_lost(component),
            Operation::Holding(holding) => of_lost(&holding.component()),
            Operation::OnSnapshot(operation, _) => of_lost(&operation.component()),
            Operation::Compress { component, .. } | Operation::Rewrite { component } => of_lost(component),
        };
        let device = self.superblocks[place as usize].device;
        if self.operations.values().any(is_awaited) {
            return;
        }
        let group = self.group.as_mut().expect("it is open");
        if group.member_of(device).is_some() && !group.finish_remove(device) {
            return;
        }
        let Some(new_place) = group.free_index() else { return };
        let numbers: Vec<u32> = self.components.keys().copied().filter(of_lost).collect();
        for number in numbers {
            self.components.remove(&number);
            self.model.forget_component(number);
            self.ledger.forget(ComponentId(u64::from(number)));
            self.snapshots.forget_component(number);
        }
        self.renewing = None;
        let soon = self.renewals.below(4);
        self.crash_due = (soon > 0).then(|| self.summary.steps + 2 * soon);
        self.summary.renewed += 1;
        self.dead_members &= !(1 << place);
        self.note("renewed", u64::from(new_place));
        let new = DeviceId(FIRST_NEW + u128::from(self.summary.renewed));
        let former = self.superblocks[place as usize].clone();
        self.superblocks[place as usize] = Superblock::vacant(&self.superblocks[0], place);
        let own = Superblock { device: new, index: new_place, ..former };
        let size = self.devices[place as usize].size;
        match self.superblocks.get_mut(new_place as usize) {
            Some(there) => {
                *there = own.clone();
                self.devices[new_place as usize] = Device::new(size);
            }
            None => {
                self.superblocks.push(own.clone());
                self.devices.push(Device::new(size));
            }
        }
        let mut members = self.superblocks[0].members;
        members[place as usize] = DeviceId(0);
        members[new_place as usize] = new;
        self.superblocks.iter_mut().for_each(|one| one.members = members);
        let group = self.group.as_mut().expect("it is open");
        group.add_member(Superblock { members, ..own });
        group.set_superblocks(self.superblocks.clone());
    }
}
