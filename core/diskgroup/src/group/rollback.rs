//! Rollback of a component to its newest snapshot (docs/design/0044): one record makes what came behind the snapshot void.
//!
//! When the record is put into force, what the log has of the component since the snapshot is dropped. What is at rest is taken back part by part: each
//! entry of the snapshot's delta becomes the live one again. Until that is done for a part, its live blocks are looked up as the snapshot sees them, and
//! nothing is destaged to it that came behind the record. Its map page tells that it is done. The log keeps the record until all parts are.

use super::hold_mapped::Unsettled;
use super::{Group, Phase};
use crate::component::Component;
use crate::destage::Way;
use crate::format::FORMAT_PLAIN;
use crate::format::batch::{ExtentLocation, Origin, Record};
use crate::format::map::{Entry, MapPage};
use crate::io::{ComponentKey, GroupError, Output};
use crate::lineage::Rollback;
use crate::log::BatchStart;
use crate::part_map::Placement;
use crate::rules::Rule;
use crate::table::{Content, PageWaiter};
use crate::work::{Change, Work};
use base::request::Buffers;
use base::units::BLOCKS_PER_REGION;
use base::{ComponentId, RequestTag};
use std::collections::BTreeMap;

/// Parts that are taken back in one step.
const PARTS_PER_STEP: usize = 8;

impl Group {
    /// Whether parts of a component are still to be taken back to a snapshot. Until then no other snapshot of it is made, nor rolled back to.
    pub fn is_rolling_back(&self, component: ComponentKey) -> bool {
        self.components.get(component.0).is_some_and(|component| component.lineage.is_rolling_back())
    }

    pub(super) fn accept_rollback(
        &mut self,
        change: Change,
        number: u32,
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Change { op, component: key, id, origin, .. } = change;
        let component = &self.components[key];
        let (member, component_id) = (component.member, component.record.id);
        let newest = component.lineage.newest();
        let since = newest.and_then(|newest| newest.position);
        let error = match newest.is_some_and(|newest| newest.number == number) {
            _ if self.log.format() == FORMAT_PLAIN => Some(GroupError::SnapshotRefused),
            // Between the two records, what the live disk replaces would not be kept for the snapshot.
            true if component.lineage.is_leaving(number) => Some(GroupError::NoSnapshot),
            true if component.lineage.is_rolling_back() => Some(GroupError::SnapshotRefused),
            true => None,
            false => Some(GroupError::NoSnapshot),
        };
        if let Some(error) = error {
            out.push(Output::Done { op, result: Err(error) });
            return None;
        }
        let unsettled = self.settle_for_mark(key);
        if unsettled == Unsettled::Held {
            out.push(Output::Done { op, result: Err(GroupError::SnapshotRefused) });
            return None;
        }
        // As for a snapshot: what is accepted before it is before it in the log, in another batch.
        let is_early = since.is_none()
            || unsettled == Unsettled::Settling
            || self.exclusive.holds_any_of(key)
            || self.buffer.gathers(component_id);
        if is_early || !self.has_guest_room(0) {
            return Some(Work::Rollback { change, number });
        }
        let tag = match origin {
            Origin::Guest(tag) => tag,
            Origin::Copy => RequestTag::default(),
        };
        let since = since.expect("its record is stable");
        self.components[key].lineage.expect_rollback();
        let record = Record::Rollback { member, component: component_id, number, id, tag, since };
        self.buffer.push(record, Some(op), Buffers::new());
        None
    }

    /// The record of a rollback is put into force. What the log has from `since` on is void: by then the snapshot may be deleted, and not tell where it was.
    pub(super) fn install_rollback(&mut self, component: ComponentId, rollback: Rollback, since: u64) {
        let id = rollback.id;
        let Some(key) = self.components.key_of(component) else { return };
        let member = self.components[key].member;
        self.settle_before_mark(key, rollback.position);
        for part in self.index.parts_with_entries(member, key) {
            let void = self.index.void_since((key, part), since);
            // The log keeps what is void until the raised version is at rest: a start knows by it that there is one.
            for (block, position) in void {
                let region = (usize::from(block) / BLOCKS_PER_REGION) as u8;
                let location = match self.index.extent_of(key, part) {
                    Some(extent) => ExtentLocation { member, extent },
                    None => ExtentLocation::unplaced(member),
                };
                self.index.raise(location, Some((key, part)), (region, id), position);
            }
        }
        let may_contain = self.rules.hold(Rule::RollBackOnce);
        let is_open = matches!(self.phase, Phase::Open);
        let lineage = &mut self.components[key].lineage;
        lineage.roll_back(rollback, may_contain);
        if is_open {
            lineage.forget_rollbacks();
        }
        self.take_back_beside_lost(key);
    }

    /// Where pages are lost, any mapped part may have had something in them that is to be taken back.
    fn take_back_beside_lost(&mut self, key: u32) {
        let component = &self.components[key];
        if self.members[component.member].lost_pages == 0 || component.lineage.rollback().is_none() {
            return;
        }
        let may_contain = self.rules.hold(Rule::RollBackOnce);
        let mut from = 0;
        while let Some((part, placement)) = self.index.first_placed(key, from..u32::MAX) {
            from = part + 1;
            if let Placement::Page(_) = placement {
                self.components[key].lineage.add_due(part, may_contain);
            }
        }
    }

    /// After recovery: of rollbacks that the log told before pages were found to be lost.
    pub(super) fn recover_rollbacks(&mut self) {
        for key in self.components.iter().map(|(key, _)| key).collect::<Vec<u32>>() {
            self.take_back_beside_lost(key);
            self.components[key].lineage.forget_rollbacks();
        }
    }

    /// Where the tail of the log must stay for the sake of rollbacks.
    pub(super) fn rolling_back_since(&self) -> Option<BatchStart> {
        let positions = self.components.iter().filter_map(|(_, component)| {
            let in_service = self.members[component.member].is_in_service();
            component.lineage.oldest_due().filter(|_| in_service && !component.record.is_deleting)
        });
        positions.min().map(|position| self.log.start_of(position))
    }

    /// Takes parts back, a few at a time.
    pub(super) fn advance_rollbacks(&mut self, out: &mut Vec<Output>) {
        if self.log.format() == FORMAT_PLAIN {
            return;
        }
        let is_due = |(_, component): &(u32, &Component)| {
            component.lineage.has_due()
                && !component.record.is_deleting
                && self.members[component.member].is_in_service()
        };
        let due: Vec<u32> = self.components.iter().filter(is_due).map(|(key, _)| key).collect();
        for &key in &due {
            for part in self.components[key].lineage.parts_due(PARTS_PER_STEP) {
                let is_destaging = self.index.of(key, part).is_some_and(crate::index::Dirty::is_destaging);
                if !is_destaging && self.has_pages_of((key, part), out) {
                    self.roll_back_part(key, part);
                }
            }
        }
        let has_ended = |key: &u32| !self.components[*key].lineage.has_due();
        if due.iter().any(has_ended) {
            self.destaging.catch_up(&self.log);
        }
    }

    /// Whether all pages of a mapped part are in memory; else one is asked for.
    fn has_pages_of(&mut self, (key, part): (u32, u32), out: &mut Vec<Output>) -> bool {
        let missing = self.missing_page_of(key, part);
        if let Some(page) = missing {
            self.need_page(self.components[key].member, page, PageWaiter::Nobody, out);
        }
        missing.is_none()
    }

    pub(super) fn missing_page_of(&mut self, key: u32, part: u32) -> Option<u32> {
        let component = &self.components[key];
        let table = &mut self.members[component.member].table;
        let deltas = component.lineage.deltas_of(part).iter().map(|one| one.page);
        let mut pages = deltas.chain(self.index.page_of(key, part));
        pages.find(|page| table.content(*page).is_none())
    }

    /// Whether a visit of destaging must wait until its part is taken back, and for which page. Takes the part back if that can be done now.
    pub(super) fn page_for_rollback(&mut self, dirty: u32, way: Way) -> Option<u32> {
        let (key, part) = self.index.get(dirty).part()?;
        let lineage = &self.components[key].lineage;
        let is_behind = match way {
            Way::InPlace => false,
            Way::Mapped { born, .. } => lineage.due_to(part).is_some_and(|due| born >= due.number),
        };
        if !is_behind || !self.rules.hold(Rule::RollBackFirst) {
            return None;
        }
        let missing = self.missing_page_of(key, part);
        if missing.is_none() {
            self.roll_back_part(key, part);
        }
        missing
    }

    /// Takes a part back, all of whose pages are in memory: what the snapshot sees is live again.
    fn roll_back_part(&mut self, key: u32, part: u32) {
        let component = &self.components[key];
        let index = component.member;
        let Rollback { number, id, .. } = *component.lineage.due_to(part).expect("it is due");
        // Later ones find nothing in it.
        let position = component.lineage.rollback().expect("it was told").position;
        let pages: Vec<u32> = component.lineage.deltas_of(part).iter().map(|one| one.page).collect();
        // The least snapshot that has a block tells how the one that is rolled back to sees it.
        let mut seen: BTreeMap<u8, (u32, Entry)> = BTreeMap::new();
        let mut void: Vec<Entry> = Vec::new();
        for page in pages {
            let member = &mut self.members[index];
            let mut delta = member.table.delta(page).expect("it is in memory").clone();
            let behind: Vec<u32> =
                delta.groups.iter().map(|group| group.snapshot).filter(|of| *of >= number).collect();
            for snapshot in behind {
                let taken = delta.take(snapshot);
                self.components[key].lineage.count(snapshot, -(taken.len() as i64));
                for (block, entry) in taken {
                    match seen.get(&block) {
                        Some((of, known)) if *of < snapshot || (*of == snapshot && !known.is_lost()) => {
                            void.push(entry);
                        }
                        _ => void.extend(seen.insert(block, (snapshot, entry)).map(|(_, former)| former)),
                    }
                }
            }
            self.components[key].lineage.note_delta(page, &delta);
            match delta.groups.is_empty() {
                true => member.table.give_page_back(page),
                false => member.table.replace(page, Content::Delta(Box::new(delta))),
            }
        }
        if let Some(page) = self.index.page_of(key, part) {
            let mut map: MapPage = self.members[index].table.map(page).expect("it is in memory").clone();
            if self.members[index].lost_pages > 0 {
                void.extend(lose_unknown(&map, number, &mut seen));
            }
            for (block, (_, entry)) in seen {
                let entry = if entry == Entry::LOST_PAGE { Entry::LOST } else { entry };
                void.push(std::mem::replace(&mut map.entries[usize::from(block)], entry));
                let region = &mut map.regions[usize::from(block) / BLOCKS_PER_REGION];
                *region = id.max(*region);
            }
            map.rolled_back = position;
            self.members[index].table.replace(page, Content::Map(Box::new(map)));
        }
        void.into_iter().for_each(|entry| self.free_entry(key, entry));
        self.components[key].lineage.part_is_back(part);
        self.drop_map_if_empty(key, part);
    }
}

/// What came behind a snapshot took the place of something that the snapshot sees. Where a lost page may have told of that, it is damaged, unless a delta
/// has it under the snapshot's own number. Gives what other deltas have of such blocks.
fn lose_unknown(map: &MapPage, number: u32, seen: &mut BTreeMap<u8, (u32, Entry)>) -> Vec<Entry> {
    let mut void = Vec::new();
    for (block, entry) in (0..=u8::MAX).zip(map.entries.iter()) {
        let is_known = seen.get(&block).is_some_and(|(of, _)| *of == number);
        if entry.born >= number && !is_known {
            void.extend(seen.insert(block, (number, Entry::LOST)).map(|(_, former)| former));
        }
    }
    void
}
