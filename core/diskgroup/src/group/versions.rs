//! What was changed since a write id: all that a resync asks of a component (core/replication, invariant 9).
//!
//! A region's version is the greatest id of a change to it. Where an extent was taken anew, the regions that nobody has
//! written since may have been freed by a trim: their version is that of the last freeing in the same GiB, an upper bound.

use super::Group;
use crate::index::Dirty;
use crate::io::{ComponentKey, GroupError, Op, Output, Versions};
use crate::part_map::Placement;
use crate::table::PageWaiter;
use crate::versions::ChangedState;
use base::WriteId;
use base::units::{BLOCKS_PER_REGION, REGIONS_PER_EXTENT};

impl Group {
    pub(super) fn changed(
        &mut self,
        op: Op,
        component: ComponentKey,
        since: WriteId,
        from_part: u32,
        out: &mut Vec<Output>,
    ) {
        let key = self.changed.insert(ChangedState::new(op, component.0, since, from_part)) as u32;
        self.look_for_changes(key, out);
    }

    /// Goes on with a question, until a page must be read or the answer is full.
    pub(super) fn look_for_changes(&mut self, key: u32, out: &mut Vec<Output>) {
        let component = self.changed[key as usize].component();
        if let Err(error) = self.check_component(component, 0) {
            return self.end_changed(key, Err(error), out);
        }
        let part_count = self.components[component].part_count();
        loop {
            let state = &self.changed[key as usize];
            if state.part() >= part_count || state.is_full() {
                return self.end_changed(key, Ok(part_count), out);
            }
            match self.versions_of(component, state.part()) {
                Ok(versions) => self.changed[key as usize].note(versions),
                Err(Some((member, page))) => {
                    return self.need_page(member, page, PageWaiter::Changed(key), out);
                }
                Err(None) => return self.end_changed(key, Err(GroupError::Damaged), out),
            }
        }
    }

    fn end_changed(&mut self, key: u32, part_count: Result<u32, GroupError>, out: &mut Vec<Output>) {
        let state = self.changed.remove(key as usize);
        let op = state.op();
        out.push(Output::Done { op, result: part_count.map(|part_count| state.answer(part_count)) });
    }

    /// The versions of one part; the page that must be read first, if it must, or nothing if nobody knows them. Changes that are
    /// accepted and not stable yet are not in them.
    pub(super) fn versions_of(&mut self, component: u32, part: u32) -> Result<Versions, Option<(u8, u32)>> {
        let index = self.components[component].member;
        let hole = self.components[component].hole(part);
        let member = &mut self.members[index];
        let dirty = self.index.of(component, part);
        let mut regions = [WriteId::default(); REGIONS_PER_EXTENT];
        match self.index.placement(component, part) {
            None if member.lost_extents > 0 => return Err(None),
            None if dirty.is_none() && !self.held.touches(component, part) => {
                return Ok(Versions::Hole(hole));
            }
            None => {}
            Some(Placement::Extent(_)) if dirty.is_some_and(Dirty::is_reset) => {}
            Some(Placement::Extent(extent)) => {
                let (page, _) = member.table.page_of(extent);
                let Some(descriptor) = member.table.descriptor(extent) else {
                    return Err(Some((index, page)));
                };
                regions = descriptor.regions;
            }
            Some(Placement::Page(page)) => {
                let Some(map) = member.table.map(page) else { return Err(Some((index, page))) };
                regions = map.regions;
                let lineage = &self.components[component].lineage;
                if let Some(rollback) = lineage.due_to(part) {
                    regions.iter_mut().for_each(|region| *region = rollback.id.max(*region));
                }
            }
        }
        if let Some(dirty) = dirty {
            if let Some(direct) = dirty.direct() {
                regions.iter_mut().for_each(|region| *region = direct.id.max(*region));
            }
            for entry in dirty.all_entries() {
                let region = &mut regions[entry.block as usize / BLOCKS_PER_REGION];
                *region = entry.id.max(*region);
            }
            for raised in dirty.raised() {
                let region = &mut regions[usize::from(raised.region)];
                *region = raised.id.max(*region);
            }
        }
        regions.iter_mut().filter(|region| **region == WriteId::default()).for_each(|region| *region = hole);
        for entry in self.held.of(component, part).map_or(&[][..], |held| held.entries()) {
            let region = &mut regions[entry.block as usize / BLOCKS_PER_REGION];
            *region = entry.id.max(*region);
        }
        Ok(Versions::Regions(Box::new(regions)))
    }
}
