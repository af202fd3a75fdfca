//! Records taking effect: the one place where they do, in operation (when their batch is stable) and in recovery alike.

use super::{Group, Phase};
use crate::component::{Component, Stability};
use crate::format::batch::{ExtentLocation, Record, WindowEntry};
use crate::format::page::ComponentRecord;
use crate::index::{Direct, Goal, IndexEntry, Newest, OfPart};
use crate::lineage::Rollback;
use crate::member::Owner;
use crate::rules::Rule;
use base::units::{BLOCKS_PER_EXTENT, BLOCKS_PER_REGION};
use base::{ComponentId, WriteId};
use std::ops::Range;

impl Group {
    /// Puts a stable record into force: the index, the owners of extents, the slots of components.
    pub(super) fn install(&mut self, record: &Record, batch_position: u64, data_position: u64) {
        match record {
            Record::Write { component, part, .. } | Record::Trim { component, part, .. }
                if self.is_contained(*component, *part, batch_position) => {}
            Record::Write { component, part, location, block, id, checksums, .. } => {
                let blocks = (u16::from(*block), checksums.len() as u16);
                let of = (*component, *part, *id);
                let Some((owner, id)) = self.owner_of_change(*location, of, blocks, batch_position) else {
                    return;
                };
                let entry = |index: usize, checksum: u32| IndexEntry {
                    id,
                    position: data_position + index as u64,
                    checksum,
                    block: *block + index as u8,
                    newest: Newest::Data,
                    goal: Goal::at(*location),
                    is_late: false,
                };
                self.index.insert(
                    *location,
                    owner,
                    checksums.iter().enumerate().map(|(index, &sum)| entry(index, sum)),
                );
            }
            Record::Trim { component, part, location, block, count_less_one, id, .. } => {
                // In a log that has let go of the write before it, it alone tells whose extent that was, and since when
                // there is nothing in it.
                let blocks = (u16::from(*block), u16::from(*count_less_one) + 1);
                let of = (*component, *part, *id);
                let Some((owner, id)) = self.owner_of_change(*location, of, blocks, batch_position) else {
                    return;
                };
                let entry = |index: u8| IndexEntry {
                    id,
                    position: batch_position,
                    checksum: 0,
                    block: *block + index,
                    newest: Newest::Trim,
                    goal: Goal::at(*location),
                    is_late: false,
                };
                self.index.insert(*location, owner, (0..=*count_less_one).map(entry));
            }
            Record::Direct { .. } => self.install_direct(record, batch_position),
            Record::Free { .. } => self.install_free(record, batch_position),
            Record::Component { member, slot, record, is_change } => {
                self.install_component((*member, *slot), record, *is_change);
            }
            Record::ComponentGone { member, slot } => {
                self.install_component_gone(*member, *slot, batch_position);
            }
            Record::Watermark { component, id, from_epoch, .. } => {
                self.install_watermark(*component, *id, *from_epoch);
            }
            Record::Hole { component, part, id, .. } => {
                self.note_hole(*component, *part, *id);
                self.raise_over_trim((*component, *part, *id), 0..BLOCKS_PER_EXTENT as u16, batch_position);
            }
            Record::Entry { component, entry, .. } => self.install_entry(*component, entry, batch_position),
            Record::PageIntent { .. } => {}
            Record::Chunk { location, number } => self.install_chunk(*location, *number, batch_position),
            Record::PoolGone { location } => self.disown(*location, batch_position),
            Record::Snapshot { .. } | Record::Rollback { .. } | Record::SnapshotGone { .. } => {
                self.install_of_snapshots(record, batch_position);
            }
            _ => self.install_held(record, batch_position, data_position),
        }
        self.remember_change(record, batch_position);
    }

    fn install_of_snapshots(&mut self, record: &Record, batch_position: u64) {
        match record {
            Record::Snapshot { component, number, id, is_late, .. } => {
                self.install_snapshot(*component, (*number, *id, *is_late), batch_position);
            }
            Record::Rollback { component, number, id, since, .. } => {
                let rollback = Rollback { number: *number, id: *id, position: batch_position };
                self.install_rollback(*component, rollback, *since);
            }
            Record::SnapshotGone { component, number, .. } => {
                self.install_snapshot_gone(*component, *number, batch_position);
            }
            _ => unreachable!("it has to do with snapshots"),
        }
    }

    /// A part as a whole was freed.
    fn install_free(&mut self, record: &Record, batch_position: u64) {
        let Record::Free { component, part, location, id, .. } = record else {
            unreachable!("a record of a part that was freed")
        };
        self.disown(*location, batch_position);
        if !self.is_contained(*component, *part, batch_position) {
            self.void_unplaced(*component, *part);
        }
        self.note_hole(*component, *part, *id);
    }

    /// A guest's trim that found nothing leaves the id of a hole.
    fn install_entry(&mut self, component: ComponentId, entry: &WindowEntry, position: u64) {
        if entry.is_trim && !entry.is_span() {
            self.note_hole(component, entry.part, entry.id);
            let of = (component, entry.part, entry.id);
            let first = u16::from(entry.block);
            self.raise_over_trim(of, first..first + entry.count, position);
        }
    }

    /// While the log is read: a trim found nothing because a mapped part had been emptied, and its page was given back, but not before the crash. So the
    /// part has its page, or what the log says of it, again, and these tell lesser versions. An entry that was written to the log again may be
    /// older than a later hole there.
    fn raise_over_trim(
        &mut self,
        (component, part, id): (ComponentId, u32, WriteId),
        blocks: Range<u16>,
        position: u64,
    ) {
        let (Phase::Opening(_), Some(key)) = (&self.phase, self.components.key_of(component)) else { return };
        if blocks.is_empty() || !self.has_content(key, part) {
            return;
        }
        let location = ExtentLocation::unplaced(self.components[key].member);
        let (owner, id) = self.version_over_hole(component, part, id);
        let of = |block: u16| usize::from(block) / BLOCKS_PER_REGION;
        for region in of(blocks.start)..=of(blocks.end - 1) {
            self.index.raise(location, owner, (region as u8, id), position);
        }
    }

    /// A part was written as a whole to an extent of its own.
    fn install_direct(&mut self, record: &Record, batch_position: u64) {
        let Record::Direct { component, part, location, replaced, id, checksums, .. } = record else {
            unreachable!("a record of a whole part")
        };
        if let Some(extent) = replaced {
            self.disown(ExtentLocation { member: location.member, extent: *extent }, batch_position);
        }
        if self.is_contained(*component, *part, batch_position) {
            return;
        }
        self.own(*location, (*component, *part), batch_position);
        self.void_unplaced(*component, *part);
        let (owner, id) = self.version_over_hole(*component, *part, *id);
        let direct = Direct { checksums: checksums.clone(), id, position: batch_position };
        self.index.put_direct(*location, owner, direct);
        self.relocate_held(*component, *part, *location);
    }

    /// While the log is read: a part as a whole was freed, or written to an extent of its own. What earlier records without a place say of it is
    /// void, and so is its map page, if it has one. In operation such records are destaged by then, or stand where the part does.
    fn void_unplaced(&mut self, component: ComponentId, part: u32) {
        if let (Phase::Opening(_), Some(key)) = (&self.phase, self.components.key_of(component)) {
            self.leave_map(key, part);
            self.index.drop_unplaced(key, part);
        }
    }

    fn remember_change(&mut self, record: &Record, batch_position: u64) {
        if let Some((component, entry)) = record.window_entry() {
            self.remember(component, entry, batch_position);
        }
    }

    /// What stood in those blocks (first, count) of a part is overtaken by a change with that id: whose the change is, since which snapshot,
    /// and the version it counts with. `None`: its component is gone, and no extent of it is left.
    fn owner_of_change(
        &mut self,
        location: ExtentLocation,
        (component, part, id): (ComponentId, u32, WriteId),
        (first, count): (u16, u16),
        batch_position: u64,
    ) -> Option<(OfPart, WriteId)> {
        self.own(location, (component, part), batch_position);
        self.overtake_content(component, part, first..first + count);
        let (owner, id) = self.version_over_hole(component, part, id);
        if owner.is_none() && !location.is_placed() {
            return None;
        }
        Some(((owner, self.born_at(owner, batch_position)), id))
    }

    /// The number of the newest snapshot, of a part's component, from before a batch at that position of the log; 0: none.
    fn born_at(&self, owner: Option<(u32, u32)>, batch_position: u64) -> u32 {
        owner.map_or(0, |(key, _)| self.components[key].lineage.born_at(batch_position))
    }

    /// The component's key with the part, and the version of what a change brings: no less than that of what made, or found, a hole there. A copy may bring a lesser
    /// id than a trim that it comes upon, and a write that had to wait may be older than a trim beside it.
    pub(super) fn version_over_hole(
        &self,
        component: ComponentId,
        part: u32,
        id: WriteId,
    ) -> (Option<(u32, u32)>, WriteId) {
        match self.components.key_of(component) {
            Some(key) if self.rules.hold(Rule::KeepHoleId) => {
                (Some((key, part)), id.max(self.components[key].hole(part)))
            }
            Some(key) => (Some((key, part)), id),
            None => (None, id),
        }
    }

    /// Nothing stands in a part since that change, or stood there already.
    fn note_hole(&mut self, component: ComponentId, part: u32, id: WriteId) {
        if let Some(key) = self.components.key_of(component) {
            self.note_hole_of(key, part, id);
        }
    }

    pub(super) fn note_hole_of(&mut self, key: u32, part: u32, id: WriteId) {
        let component = &mut self.components[key];
        component.note_hole(part, id);
        self.members[component.member].table.mark_dirty(component.slot);
    }

    /// A record at that position of the log gives an extent to a part.
    pub(super) fn own(
        &mut self,
        location: ExtentLocation,
        (component, part): (ComponentId, u32),
        position: u64,
    ) {
        if !location.is_placed() {
            return;
        }
        let owner = &mut self.members[location.member].owners[location.extent as usize];
        let (is_free, is_part) = (owner.is_free(), owner.is_part());
        let former = std::mem::replace(owner, Owner { component, part });
        if let Phase::Opening(recovery) = &mut self.phase
            && is_free
        {
            recovery.note_claim(location.member, location.extent);
        }
        // A start may have found it to be free (`left_at`), which no record tells: what the log gave to another part is void.
        let is_other = is_part && (former.component, former.part) != (component, part);
        if is_other && self.index.at(location).is_some() {
            self.index.reset(location, None, position);
        }
        self.note_taken(location);
    }

    /// While the log is read: it says something of an extent.
    fn note_taken(&mut self, location: ExtentLocation) {
        if let Phase::Opening(recovery) = &mut self.phase {
            recovery.note_taken(location.member, location.extent);
        }
    }

    fn disown(&mut self, location: ExtentLocation, position: u64) {
        self.note_taken(location);
        self.members[location.member].owners[location.extent as usize] = Owner::default();
        self.index.reset(location, None, position);
    }

    fn install_component(&mut self, (member, slot): (u8, u32), record: &ComponentRecord, is_change: bool) {
        self.members[member].table.mark_dirty(slot);
        if let Phase::Opening(recovery) = &mut self.phase
            && !is_change
        {
            recovery.note_made(member, slot);
        }
        let holder = self.members[member].table.component_in(slot);
        if let Some(key) = holder.filter(|key| self.components[*key].record.id != record.id) {
            self.leave_slot(key);
        }
        let holder = self.members[member].table.component_in(slot);
        if let Some(key) = holder.or_else(|| self.return_to_slot((member, slot), record.id)) {
            let mut record = record.clone();
            let before = &self.components[key].record;
            // A change made beside a promise, or replayed over a later page, must not take either back.
            record.promised = record.promised.max(before.promised);
            record.watermark = record.watermark.max(before.watermark);
            let is_deleting = record.is_deleting;
            let is_open = matches!(self.phase, Phase::Open);
            self.with_reservation(key, |component| {
                if !is_open {
                    component.compression_asked = record.compression;
                }
                component.record = record;
                component.is_stable = true;
            });
            if is_deleting {
                self.held.drop_component(key);
            }
            return;
        }
        // A component that is changed was there: its page is lost, or its device. Of what it had then, the log tells a part alone.
        if !is_change {
            let component = Component::new(record.clone(), (member, slot), Vec::new(), Stability::Stable);
            self.insert_component(component);
            if matches!(self.phase, Phase::Opening(_)) {
                self.adopt_orphans(record.id);
            }
        }
    }

    fn install_component_gone(&mut self, member: u8, slot: u32, position: u64) {
        self.members[member].table.mark_dirty(slot);
        if let Some(key) = self.members[member].table.component_in(slot) {
            if let Phase::Opening(recovery) = &mut self.phase {
                recovery.note_gone(self.components[key].record.id, position);
            }
            self.leave_slot(key);
        }
    }
}
