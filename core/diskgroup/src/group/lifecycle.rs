//! Components: made, changed, deleted, and their extents given back.

use super::{Group, Phase};
use crate::checkpoint::DeletionCheckpoint;
use crate::component::{Component, Stability};
use crate::format::FORMAT_PLAIN;
use crate::format::batch::{ExtentLocation, Origin, Record};
use crate::format::page::{ComponentRecord, Compression};
use crate::io::{ComponentKey, GroupError, Op, Output};
use crate::part_map::Placement;
use crate::rules::Rule;
use base::units::EXTENT_SIZE;
use base::{ComponentId, DeviceId, WriteId};

/// A deletion keeps so many records of freed extents under way.
const DELETE_FREES_MAX: u32 = 64;

impl Group {
    pub(super) fn insert_component(&mut self, component: Component) -> u32 {
        let (member, slot) = (component.member, component.slot);
        let member = &mut self.members[member];
        member.space.reserve(0, component.reserved_extents());
        member.component_count += 1;
        let key = self.components.insert(component);
        member.table.set_component(slot, Some(key));
        self.index.add_component(key);
        self.held.add_component(key);
        key
    }

    pub(super) fn remove_component(&mut self, key: u32) {
        self.held.drop_component(key);
        self.promotions.retain(|(of, _), _| *of != key);
        self.unmapped.drop_component(key);
        self.rewriting.forget(key);
        // Recovery may have found changes in the log that its deletion made void.
        for part in self.index.unplaced_of(self.components[key].member, key) {
            self.index.drop_unplaced(key, part);
        }
        let mut component = self.components.remove(key);
        let member = &mut self.members[component.member];
        component.lineage.take_pages().into_iter().for_each(|page| member.table.give_page_back(page));
        member.space.reserve(component.reserved_extents(), 0);
        member.component_count -= 1;
        if member.table.component_in(component.slot) == Some(key) {
            member.table.set_component(component.slot, None);
        }
    }

    /// A record gives the slot of a component to another one, or to nobody. While the log is read, that may be a record from before the component
    /// was made: its slot's page is newer. The record of its making follows then, and what the component's other pages told is needed, for they contain
    /// what the log says of it: it is set aside with them. One without such pages is made anew by its records.
    pub(super) fn leave_slot(&mut self, key: u32) {
        let component = &self.components[key];
        let (member, slot) = (component.member, component.slot);
        let has_lineage =
            !component.lineage.list_pages.is_empty() || component.lineage.deltas().next().is_some();
        // Extents get their parts when the log is read.
        let has_pages = has_lineage || self.index.first_placed(key, 0..u32::MAX).is_some();
        let Phase::Opening(recovery) = &mut self.phase else { return self.remove_component(key) };
        if !has_pages || !self.rules.hold(Rule::KeepNewerComponent) {
            return self.remove_component(key);
        }
        recovery.set_aside(key);
        self.held.drop_component(key);
        for part in self.index.unplaced_of(member, key) {
            self.index.drop_unplaced(key, part);
        }
        self.components.set_aside(key);
        self.members[member].table.set_component(slot, None);
    }

    /// The component with that id, if it was set aside: the record of its making is found.
    pub(super) fn return_to_slot(&mut self, (member, slot): (u8, u32), id: ComponentId) -> Option<u32> {
        let Phase::Opening(recovery) = &mut self.phase else { return None };
        let components = &self.components;
        let is_it = |key: u32| {
            let component = &components[key];
            (component.record.id, component.member, component.slot) == (id, member, slot)
        };
        let key = recovery.take_aside(is_it)?;
        self.components.put_back(key);
        self.members[member].table.set_component(slot, Some(key));
        Some(key)
    }

    /// The log is read, and has not told of the making of components that were set aside: they are gone, with their pages.
    pub(super) fn drop_aside(&mut self) {
        while let Some(key) = self.recovery().take_aside(|_| true) {
            while let Some((part, placement)) = self.index.first_placed(key, 0..u32::MAX) {
                if let Placement::Page(page) = placement {
                    self.members[self.components[key].member].table.give_page_back(page);
                }
                self.index.drop_page(key, part);
            }
            self.remove_component(key);
        }
    }

    /// In recovery: the newest copy of a slot's page is damaged, and the log does not have the record that made its component. The older copy may describe
    /// another component, or a time when this one had a lower promised epoch, another size and older versions of its holes, so it does not count. The
    /// component's map pages stay and count as lost, as they do at the next start.
    pub(super) fn lose_component(&mut self, member: u8, slot: u32) {
        let Some(key) = self.members[member].table.component_in(slot) else { return };
        while let Some((part, placement)) = self.index.first_placed(key, 0..u32::MAX) {
            if let Placement::Page(page) = placement {
                let member = &mut self.members[member];
                member.table.take_name(page);
                member.lost_extents += 1;
            }
            self.index.drop_page(key, part);
        }
        self.remove_component(key);
    }

    pub(super) fn create(
        &mut self,
        op: Op,
        device: DeviceId,
        record: ComponentRecord,
        out: &mut Vec<Output>,
    ) {
        let refuse = |error| Output::Done { op, result: Err(error) };
        let member = self.member_of(device).filter(|&index| self.members[index].is_capacity());
        let Some(index) = member.filter(|_| matches!(self.phase, Phase::Open)) else {
            return out.push(refuse(GroupError::DeviceLost));
        };
        let member = &self.members[index];
        if !member.is_in_service() || member.leaves_at().is_some() {
            return out.push(refuse(GroupError::DeviceLost));
        }
        if !record.makes_sense() {
            return out.push(refuse(GroupError::Malformed));
        }
        let slot = member.table.free_slot(self.rules.hold(Rule::KeepLostSlot));
        let Some(slot) = slot.filter(|_| self.components.key_of(record.id).is_none()) else {
            return out.push(refuse(GroupError::NoSlot));
        };
        if record.compression != Compression::Off && self.log.format() == FORMAT_PLAIN {
            return out.push(refuse(GroupError::NotConverted));
        }
        if record.reservation.div_ceil(EXTENT_SIZE) > member.space.unreserved() {
            return out.push(refuse(GroupError::NoSpace));
        }
        self.insert_component(Component::new(record.clone(), (index, slot), Vec::new(), Stability::OnItsWay));
        self.submit_record(Some(op), Record::Component { member: index, slot, record, is_change: false });
    }

    pub(super) fn update(
        &mut self,
        op: Op,
        component: ComponentKey,
        record: ComponentRecord,
        out: &mut Vec<Output>,
    ) {
        if let Err(error) = self.check_stays(component) {
            return out.push(Output::Done { op, result: Err(error) });
        }
        let current = &self.components[component.0];
        assert!(record.id == current.record.id, "a change keeps the component's identity");
        if !record.makes_sense() || record.disk != current.record.disk {
            return out.push(Output::Done { op, result: Err(GroupError::Malformed) });
        }
        let more = record.reservation.div_ceil(EXTENT_SIZE).saturating_sub(u64::from(current.used));
        let member = &self.members[current.member];
        if more > member.space.unreserved() + u64::from(current.reserved_extents()) {
            return out.push(Output::Done { op, result: Err(GroupError::NoSpace) });
        }
        let (member, slot) = (current.member, current.slot);
        let record = ComponentRecord { compression: current.compression_asked, ..record };
        self.submit_record(Some(op), Record::Component { member, slot, record, is_change: true });
    }

    pub(super) fn promise(&mut self, op: Op, component: ComponentKey, epoch: u32, out: &mut Vec<Output>) {
        if let Err(error) = self.check_stays(component) {
            return out.push(Output::Done { op, result: Err(error) });
        }
        let current = &self.components[component.0];
        assert!(epoch > current.record.promised, "promised epochs grow");
        let compression = current.compression_asked;
        let record = ComponentRecord { promised: epoch, compression, ..current.record.clone() };
        let (member, slot) = (current.member, current.slot);
        self.submit_record(Some(op), Record::Component { member, slot, record, is_change: true });
    }

    pub(super) fn delete(&mut self, op: Op, component: ComponentKey, out: &mut Vec<Output>) {
        if let Err(error) = self.check_stays(component) {
            return out.push(Output::Done { op, result: Err(error) });
        }
        let current = &self.components[component.0];
        let record = ComponentRecord { is_deleting: true, reservation: 0, ..current.record.clone() };
        let (member, slot) = (current.member, current.slot);
        self.submit_record(Some(op), Record::Component { member, slot, record, is_change: true });
        self.components.begin_deletion(component.0);
    }

    /// Whether a component can be used and nobody has asked to delete it: a record of it that comes after that of its
    /// deletion would undo it, or find it gone.
    fn check_stays(&self, component: ComponentKey) -> Result<(), GroupError> {
        self.check_component(component.0, 0)?;
        match self.components.is_deleting(component.0) {
            true => Err(GroupError::NoComponent),
            false => Ok(()),
        }
    }

    /// Gives the extents of deleted components back, a few records at a time.
    pub(super) fn advance_deletions(&mut self, out: &mut Vec<Output>) {
        let Some(key) = self.components.deletion() else { return };
        let Some(component) = self.components.get(key) else {
            self.deletion_checkpoint = DeletionCheckpoint::None;
            self.components.end_deletion();
            return;
        };
        if !component.record.is_deleting {
            return; // The record of the deletion is not stable yet.
        }
        let (id, member, slot) = (component.record.id, component.member, component.slot);
        if !self.members[member].is_in_service() {
            self.deletion_checkpoint = DeletionCheckpoint::None;
            self.components.end_deletion();
            return;
        }
        while self.components[key].frees_pending < DELETE_FREES_MAX {
            let from = self.components[key].delete_cursor;
            let Some((part, placement)) = self.index.first_placed(key, from..u32::MAX) else { break };
            let extent = match placement {
                Placement::Extent(extent) => extent,
                Placement::Page(page) if self.free_mapped_part(key, part, page, out) => continue,
                Placement::Page(_) => break,
            };
            self.components[key].delete_cursor = part + 1;
            if !self.exclusive.hold((key, part)) {
                continue; // It is being freed or replaced already; the cursor starts over until nothing is left.
            }
            self.components[key].frees_pending += 1;
            self.scarcity.begin_free();
            let location = ExtentLocation { member, extent };
            let (part_id, origin) = (WriteId::default(), Origin::Copy);
            self.submit_record(None, Record::Free { component: id, part, location, id: part_id, origin });
        }
        // A whole extent on its way to a part that had none is not counted yet; its record must not find the component gone.
        let is_awaited = self.exclusive.holds_any_of(key) || !self.drop_all_unplaced(key, member);
        let component = &mut self.components[key];
        if component.frees_pending == 0 && component.used == 0 && !is_awaited {
            if self.has_emptied_pages(key, member) {
                self.components.end_deletion();
                self.submit_record(None, Record::ComponentGone { member, slot });
            }
        } else if component.frees_pending == 0
            && self.index.first_placed(key, component.delete_cursor..u32::MAX).is_none()
        {
            component.delete_cursor = 0;
        }
        self.retry_waiting(out);
    }

    /// What the log has of a deleted component's parts that are in no extent is void. Says whether nothing of it is on its way any more.
    fn drop_all_unplaced(&mut self, key: u32, member: u8) -> bool {
        for part in self.index.unplaced_of(member, key) {
            self.index.drop_unplaced(key, part);
        }
        self.index.unplaced_of(member, key).is_empty()
    }

    /// Gives the pages of a deleted component back. Says whether all pages that it had are empty on the device: its slot must not be before
    /// they are, or the next start would find pages of a component that does not exist.
    fn has_emptied_pages(&mut self, key: u32, member: u8) -> bool {
        for page in self.components[key].lineage.take_pages() {
            self.members[member].table.give_page_back(page);
        }
        let component = &self.components[key];
        let had_pages = component.had_pages || component.lineage.last_number() > 0;
        match self.deletion_checkpoint {
            DeletionCheckpoint::None if had_pages => {
                self.deletion_checkpoint = DeletionCheckpoint::Wanted;
                false
            }
            DeletionCheckpoint::None => true,
            DeletionCheckpoint::Wanted | DeletionCheckpoint::Begun => false,
            DeletionCheckpoint::Done => {
                self.deletion_checkpoint = DeletionCheckpoint::None;
                true
            }
        }
    }
}
