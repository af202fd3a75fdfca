//! Who has which extent, once the log is read: the free set and the components' maps.

use super::Group;
use crate::component::Component;
use crate::format::batch::ExtentLocation;
use crate::format::page::Descriptor;
use crate::member::Owner;
use crate::recovery::Recovery;
use crate::rules::Rule;

impl Group {
    /// Builds the free set and the components' maps from the owners of the extents.
    pub(super) fn build_maps(&mut self, index: u8, recovery: &Recovery) -> Result<(), &'static str> {
        for extent in 0..self.members[index].owners.len() as u32 {
            let member = &mut self.members[index];
            let owner = member.owners[extent as usize];
            let location = ExtentLocation { member: index, extent };
            if member.pools.contains(extent) {
                // Pages of one checkpoint agree: that a part has it is said by records of the log from before it was a pool, or by a descriptor that was
                // to be cleared. That is still to be done, or it would say so when it is no pool any more.
                if !owner.is_free() || self.index.at(location).is_some() {
                    member.owners[extent as usize] = Owner::default();
                    self.index.reset(location, None, self.log.tail());
                }
                continue;
            }
            if owner.is_free() {
                member.space.release(extent);
                continue;
            }
            if owner.is_chunk() {
                continue;
            }
            if owner.component == Descriptor::LOST.component {
                member.lost_extents += 1;
                continue;
            }
            if let Some(position) = self.left_at(location, owner, recovery) {
                let member = &mut self.members[index];
                member.owners[extent as usize] = Owner::default();
                member.space.release(extent);
                self.index.reset(location, None, position);
                continue;
            }
            let Some(key) = self.components.key_of(owner.component) else {
                let member = &mut self.members[index];
                if member.table.has_lost_slots() {
                    member.owners[extent as usize].component = Descriptor::LOST.component;
                    member.lost_extents += 1;
                    continue;
                }
                return Err("an extent belongs to a component that does not exist");
            };
            let component = &self.components[key];
            if component.member != index || owner.part >= component.part_count() {
                return Err("an extent belongs to a component that cannot have it");
            }
            if self.index.placement(key, owner.part).is_some() {
                return Err("two extents claim the same part of a component");
            }
            self.with_reservation(key, Component::take_extent);
            self.index.attach((key, owner.part), location);
            let lineage = &self.components[key].lineage;
            self.index.settle_in_place(key, owner.part, |born| lineage.keeper(born).is_none());
        }
        self.void_deleted(index);
        self.doubt_claims(index, recovery);
        self.take_chunks_made(index, recovery);
        Ok(())
    }

    /// Since which position of the log an extent is free that only the log still gives to a component which is gone or is being deleted. The part left it
    /// for frames, and was deleted: that the extent is free may be in no record, for it was a pool since, or the table says so already. What was promised to
    /// others may count on it.
    fn left_at(&self, location: ExtentLocation, owner: Owner, recovery: &Recovery) -> Option<u64> {
        let is_claim = recovery.is_claim(location.member, location.extent);
        let tail = self.log.tail();
        match self.components.key_of(owner.component) {
            Some(key) => {
                let is_void = is_claim
                    && self.components[key].record.is_deleting
                    && self.rules.hold(Rule::LeaveClaimsOfDeleted);
                is_void.then_some(tail)
            }
            None => {
                let is_left = is_claim && !self.members[location.member].table.has_lost_slots();
                recovery.gone_at(owner.component).or(is_left.then_some(tail))
            }
        }
    }

    /// What the log has of a deleted component's parts that are in no extent is void, and no frames are promised to it.
    fn void_deleted(&mut self, index: u8) {
        let is_void =
            |(_, component): &(u32, &Component)| component.member == index && component.record.is_deleting;
        let keys: Vec<u32> = self.components.iter().filter(is_void).map(|(key, _)| key).collect();
        for key in keys.into_iter().filter(|_| self.rules.hold(Rule::LeaveClaimsOfDeleted)) {
            for part in self.index.unplaced_of(index, key) {
                self.index.drop_unplaced(key, part);
            }
        }
    }
}
