//! Damaged blocks that are mended by what another component has (docs/design/0052), and who is told of them.
//!
//! What is found damaged is one version of a block. The live disk may see it, and any number of snapshots. The block that mends it is written to another frame, and the entry that
//! named the damaged one names that: so all who see it see it mended, and nothing else changes. If its checksum is known, only a block with the same one
//! is taken.

use super::Group;
use crate::backfill::{BackfillWork, Deltas};
use crate::format::map::{DeltaGroup, Entry};
use crate::format::page::Descriptor;
use crate::held::PROMOTED_LAYER;
use crate::io::{Backfill, ComponentKey, DamagedBlock, GroupError};
use crate::limits;
use crate::lineage::Snapshot;
use crate::rules::Rule;
use crate::table::Content;
use base::{ComponentId, DiskId};

impl Group {
    /// The disks of components with damage that [`Group::take_damage`] would tell of.
    pub fn damaged_disks(&self) -> Vec<DiskId> {
        let untold = self.members.iter().flat_map(|(_, member)| &member.damaged_untold);
        let keys = untold.filter_map(|(component, _)| self.components.key_of(*component));
        let mut disks: Vec<DiskId> = keys.map(|key| self.components[key].record.disk).collect();
        disks.sort_unstable();
        disks.dedup();
        disks
    }

    /// Blocks of a component that were found damaged since this was asked last, at most so many. Those that are found again later are told again.
    pub fn take_damage(&mut self, component: ComponentKey, most: usize) -> Vec<DamagedBlock> {
        let Some(id) = self.components.get(component.0).map(|component| component.record.id) else {
            return Vec::new();
        };
        let mut found: Vec<DamagedBlock> = Vec::new();
        // What stands in the log counts to the log device.
        for index in 0..self.members.len() {
            let untold = &mut self.members[index].damaged_untold;
            let is_of = |(component, _): &(_, DamagedBlock)| *component == id && found.len() < most;
            let told: Vec<_> = untold.iter().copied().filter(is_of).take(most - found.len()).collect();
            for one in told {
                untold.remove(&one);
                found.push(one.1);
            }
        }
        found
    }

    /// Scrubbing comes to a page of a mapped part: blocks of which nobody knows where they stand can be mended, too.
    pub(super) fn tell_lost_blocks(&mut self, index: u8, page: u32) {
        let member = &self.members[index];
        let (Some((component, part)), Some(content)) = (member.table.name_of(page), member.table.peek(page))
        else {
            return;
        };
        let named: Vec<(u32, u8, Entry)> = match content {
            Content::Map(map) => {
                (0..=u8::MAX).zip(map.entries.iter()).map(|(block, entry)| (0, block, *entry)).collect()
            }
            Content::Delta(delta) => {
                let of = |group: &DeltaGroup| {
                    group
                        .entries
                        .iter()
                        .map(|(block, entry)| (group.snapshot, *block, *entry))
                        .collect::<Vec<_>>()
                };
                delta.groups.iter().flat_map(of).collect()
            }
            Content::Descriptors(_) | Content::Snapshots(_) | Content::Empty => return,
        };
        let lost = named.into_iter().filter(|(.., entry)| entry.is_lost());
        let lost: Vec<(u32, u8)> = lost
            .map(|(holder, block, entry)| (self.seer((component, part), block, (holder, entry.born)), block))
            .collect();
        let member = &mut self.members[index];
        for (snapshot, block) in lost {
            if member.damaged_untold.len() < limits::DAMAGED_BLOCKS_NAMED_MAX {
                member
                    .damaged_untold
                    .insert((component, DamagedBlock { part, block: block.into(), snapshot }));
            }
        }
    }

    /// Whoever sees what a page of a part names for the live disk (0) or for a snapshot: the live disk, or else the newest snapshot for which the log has nothing newer. If nobody does
    /// before what is in the log is at rest, whom it is named for.
    pub(super) fn seer(
        &self,
        (component, part): (ComponentId, u32),
        block: u8,
        (holder, born): (u32, u32),
    ) -> u32 {
        let Some(key) = self.components.key_of(component) else { return holder };
        let dirty = self.index.of(key, part);
        if holder == 0 && dirty.is_none_or(|dirty| dirty.find(block).is_none()) {
            return 0;
        }
        let sees = |one: &&Snapshot| {
            let may_see = (holder == 0 || one.number <= holder) && (born < one.number || one.is_late);
            let has_newer = dirty.is_some_and(|dirty| dirty.find_before(block, one.number).is_some());
            may_see && !has_newer && !one.is_deleting
        };
        let snapshots = self.components[key].lineage.snapshots();
        snapshots.iter().rev().find(sees).map_or(holder, |one| one.number)
    }

    /// Has what is named by the entries of damaged blocks stand in other frames.
    pub(super) fn apply_mend(&mut self, work: &BackfillWork) -> Result<(), GroupError> {
        let &BackfillWork { member: index, component: key, id, ref asked, .. } = work;
        let Backfill { part, number, .. } = *asked;
        if self.index.placement(key, part).is_none() {
            return Err(GroupError::Damaged); // Nothing is at rest that could be mended.
        }
        if !self.give_frames_to_held(key, part) {
            return Err(GroupError::NoSpace);
        }
        let map_page = self.page_for(key, part, None);
        let mut map = self.members[index].table.map(map_page).expect("it is in memory").clone();
        let mut deltas = self.deltas_in_memory((index, key), (id, part));
        let given = self.entries_of_backfill(work);
        for (block, entry) in &given {
            let seen =
                deltas.seen_by(number, *block).map_or(map.entries[usize::from(*block)], |(_, seen)| seen);
            self.expect_the_same((key, part, *block), number, (seen, *entry))?;
        }
        let mut freed: Vec<Entry> = Vec::new();
        for (block, entry) in given {
            freed.push(match deltas.seen_by(number, block) {
                Some((holder, seen)) => {
                    replace_in(&mut deltas, holder, block, entry.born(seen.born));
                    seen
                }
                None => {
                    let seen = &mut map.entries[usize::from(block)];
                    std::mem::replace(seen, entry.born(seen.born))
                }
            });
            let is_of =
                |named: &(_, u32, u16, u32)| (named.0, named.1, named.2) == (id, part, u16::from(block));
            self.members[index].damaged_named.retain(|named| !is_of(named));
        }
        self.put_deltas_back((key, part), deltas);
        self.change_map(key, part, |page| *page = map);
        freed.into_iter().for_each(|entry| self.free_entry(key, entry));
        self.drop_map_if_empty(key, part);
        Ok(())
    }

    /// Refuses what is not the block that was damaged: the log has a newer one, or the map tells another checksum. Where that tells none, the live disk's version is not
    /// known, and if a page is lost, nor is it known who sees the block.
    fn expect_the_same(
        &self,
        (key, part, block): (u32, u32, u8),
        number: u32,
        (seen, given): (Entry, Entry),
    ) -> Result<(), GroupError> {
        let dirty = self.index.of(key, part);
        let in_log = match number {
            0 => dirty.and_then(|dirty| dirty.find(block)),
            number => dirty.and_then(|dirty| dirty.find_before(block, number)),
        };
        // What layers hold is no matter for what is at rest, but what became content and is to be written again.
        let held = self.held.of(key, part).map_or(&[][..], |held| held.entries());
        let is_replaced =
            number == 0 && held.iter().any(|entry| (entry.block, entry.layer) == (block, PROMOTED_LAYER));
        let is_unknown = seen.is_lost() || seen.checksum == Descriptor::LOST.checksums[0];
        // A late snapshot that is not whole yet sees what is not its own.
        let lineage = &self.components[key].lineage;
        let is_whole = lineage.living(number).is_some_and(|one| !one.is_partial);
        let is_same = match is_unknown {
            true => is_whole && seen != Entry::LOST_PAGE,
            false => given.unit().is_some() && seen.unit().is_some() && given.checksum == seen.checksum,
        };
        match in_log.is_none() && !is_replaced && (is_same || !self.rules.hold(Rule::MendWithTheSame)) {
            true => Ok(()),
            false => Err(GroupError::Damaged),
        }
    }
}

fn replace_in(deltas: &mut Deltas, holder: u32, block: u8, entry: Entry) {
    deltas.take(holder, block);
    deltas.put(holder, block, entry);
}
