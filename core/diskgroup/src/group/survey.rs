//! Which blocks of a part are backed by space, or differ between two moments, for those who ask before they read.
//!
//! Must never say that a block is a hole, or the same, unless it is: "yes" is the answer wherever that is not known.

use super::Group;
use super::read::Unknown;
use crate::held::PROMOTED_LAYER;
use crate::io::{ComponentKey, GroupError, Output};
use crate::read::{BlockLocation, BlockRange};
use crate::table::PageWaiter;
use base::request::StatusOf;
use base::units::BLOCKS_PER_EXTENT;
use smallvec::SmallVec;
use std::ops::Range;

/// The answer about each block of a part.
pub type BlockStates = [bool; BLOCKS_PER_EXTENT];

impl Group {
    /// What is asked about each block of a part: whether it is backed by space, or may have changed. `None` if a page that tells is not in
    /// memory, in which case it is being read.
    pub fn block_states(
        &mut self,
        component: ComponentKey,
        part: u32,
        of: StatusOf,
        out: &mut Vec<Output>,
    ) -> Option<Result<BlockStates, GroupError>> {
        if let Err(error) = self.check_survey(component, part, of) {
            return Some(Err(error));
        }
        let states = match of {
            StatusOf::Disk => self.allocated_blocks(component.0, part, 0),
            StatusOf::Snapshot(snapshot) => self.allocated_blocks(component.0, part, snapshot),
            StatusOf::Changes { since, snapshot } => {
                self.changed_blocks(component.0, part, (since, snapshot))
            }
        };
        match states {
            Ok(states) => Some(Ok(states)),
            Err(Unknown::Damaged | Unknown::DamagedBlock { .. }) => Some(Err(GroupError::Damaged)),
            Err(Unknown::NeedsPage { member, page }) => {
                self.need_page(member, page, PageWaiter::Nobody, out);
                None
            }
        }
    }

    fn check_survey(&self, component: ComponentKey, part: u32, of: StatusOf) -> Result<(), GroupError> {
        self.check_component(component.0, part)?;
        let lineage = &self.components[component.0].lineage;
        let is_there = |number: u32| lineage.living(number).is_some();
        let are_there = match of {
            StatusOf::Disk => true,
            StatusOf::Snapshot(snapshot) => is_there(snapshot),
            StatusOf::Changes { since, snapshot } => is_there(since) && is_there(snapshot),
        };
        if are_there { Ok(()) } else { Err(GroupError::NoSnapshot) }
    }

    fn locations(
        &mut self,
        component: u32,
        part: u32,
        snapshot: u32,
    ) -> Result<SmallVec<[BlockLocation; 4]>, Unknown> {
        let mut locations = SmallVec::new();
        let (layer, count) = (PROMOTED_LAYER, BLOCKS_PER_EXTENT as u16);
        let range = BlockRange { component, part, layer, snapshot, block: 0, count };
        self.look_up(range, &mut locations)?;
        Ok(locations)
    }

    fn allocated_blocks(&mut self, component: u32, part: u32, snapshot: u32) -> Result<BlockStates, Unknown> {
        let locations = self.locations(component, part, snapshot)?;
        let held = self.held.of(component, part).filter(|_| snapshot == 0);
        let mut states = [false; BLOCKS_PER_EXTENT];
        for (block, location) in locations.iter().enumerate() {
            let is_backed = held.and_then(|held| held.is_backed(block as u8));
            states[block] = is_backed.unwrap_or(*location != BlockLocation::Hole);
        }
        Ok(states)
    }

    /// A block that stands at one place for two snapshots is the same for both, as no place has two versions of a block at one moment.
    fn changed_blocks(
        &mut self,
        component: u32,
        part: u32,
        between: (u32, u32),
    ) -> Result<BlockStates, Unknown> {
        let mut states = [false; BLOCKS_PER_EXTENT];
        if !self.may_have_changed(component, part, between) {
            return Ok(states);
        }
        let before = self.locations(component, part, between.0)?;
        let after = self.locations(component, part, between.1)?;
        for (state, (before, after)) in states.iter_mut().zip(before.iter().zip(&after)) {
            *state = before != after || *before == BlockLocation::Lost;
        }
        Ok(states)
    }

    /// Whether anything may tell of a change of a part between two snapshots.
    fn may_have_changed(&self, component: u32, part: u32, (since, snapshot): (u32, u32)) -> bool {
        let found = &self.components[component];
        self.has_lost_pages(component)
            || self.index.of(component, part).is_some()
            || found.lineage.is_between(part, since..snapshot)
    }

    /// Whether a lost extent or page may be one that told of a component.
    fn has_lost_pages(&self, component: u32) -> bool {
        let member = &self.members[self.components[component].member];
        member.lost_extents > 0 || member.lost_pages > 0
    }

    /// The first of some parts of which the answer for a block may be yes; none if it is no for all of them. The steps grow with the space
    /// that is taken: stretches of 512 MiB with nothing in them are passed over.
    pub fn first_of_survey(&self, component: ComponentKey, parts: Range<u32>, of: StatusOf) -> Option<u32> {
        let key = component.0;
        if parts.is_empty() {
            return None;
        }
        if self.check_survey(component, parts.start, of).is_err() || self.has_lost_pages(key) {
            return Some(parts.start);
        }
        let StatusOf::Changes { since, snapshot } = of else {
            return self.first_with_content(key, parts);
        };
        let mut from = parts.start;
        while let Some(part) = self.first_with_content(key, from..parts.end) {
            if self.may_have_changed(key, part, (since, snapshot)) {
                return Some(part);
            }
            from = part + 1;
        }
        None
    }
}
