//! Held blocks of mapped parts, and of components with snapshots (docs/design/0053): where they settle, what is promised to them, and what is decided
//! before a mark.
//!
//! **Space.** A hold of a part that gets its places when it is destaged names no extent. A frame is promised to each of its blocks with data, and pages to the
//! part, until the blocks end or are content in the index, which has the promise from then on. What takes the place of held blocks takes over their promises,
//! so that neither a fold nor a newer hold fails for want of space.
//!
//! **Marks.** Nothing is held when a snapshot is made or rolled back to. Undecided row writes do not stand in the way: whoever sends a mark has seen them
//! answered, so they are decided before it, in a batch before its own. So a block is held and becomes content between the same two marks, and stands
//! behind the first in the log, wherever its data do.
//!
//! **What a map page contains.** A start passes over records from before the position that the page tells. A promotion is such a record. Its block is in the
//! page by then, unless the content was changed between hold and promotion: then it waits to be written again as content. So that a start can
//! tell the two apart, changes that it passes over still overtake what is held. And a round of destaging does not take blocks that became content behind its
//! boundary, though their data stand before it: the page would have them without containing their promotion. The tail stays before such blocks until
//! the next round has taken them.

use super::Group;
use super::hold::NewHold;
use crate::format::batch::{ExtentLocation, Record};
use crate::held::{HeldEntry, HeldPart, PROMOTED_LAYER, ROW_LAYER, Settling, held_layer};
use crate::index::Newest;
use crate::io::LayerRanges;
use crate::rules::Rule;
use crate::work::Change;
use base::ComponentId;
use base::units::BLOCKS_PER_EXTENT;
use std::ops::Range;

/// Where blocks that are to be held will settle.
pub(super) enum HoldPlace {
    /// There; the space is theirs.
    At(ExtentLocation),
    /// That is known once records on their way are stable.
    Waits,
    /// There is no space.
    Lacks,
}

/// Whether the space that a change needs is its own.
pub(super) enum Promise {
    Had,
    /// That is known once records on their way are stable.
    Waits,
    Lacks,
}

/// Where what is held of a part settles.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldPlace {
    extent: Option<ExtentLocation>,
    member: u8,
}

impl HeldPlace {
    /// Where a held block settles.
    pub(super) fn of(self, entry: &HeldEntry) -> ExtentLocation {
        let extent = self.extent.filter(|_| entry.settling == Settling::InExtent);
        extent.unwrap_or(ExtentLocation::unplaced(self.member))
    }
}

/// Whether a component may have a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsettled {
    /// Nothing is held.
    Nothing,
    /// Row writes are being decided, or what became content is written again.
    Settling,
    /// Layers hold blocks.
    Held,
}

impl Group {
    /// Where what is held of a part settles. Blocks that were held when the part was plain get frames once it is mapped: in recovery, a map page that is
    /// there is newer than records that name an extent.
    pub(super) fn place_of_held(&self, (key, part): (u32, u32)) -> HeldPlace {
        let held = self.held.of(key, part);
        let is_plain = self.index.page_of(key, part).is_none();
        let extent = held.and_then(HeldPart::location).filter(|_| is_plain);
        HeldPlace { extent, member: self.components[key].member }
    }

    /// Where blocks settle that are held by a record which names that place.
    pub(super) fn location_of_held(
        &self,
        component: ComponentId,
        part: u32,
        named: ExtentLocation,
    ) -> ExtentLocation {
        let key = self.components.key_of(component);
        match key.is_some_and(|key| self.index.page_of(key, part).is_some()) {
            true => ExtentLocation::unplaced(named.member),
            false => named,
        }
    }

    /// Finds space for what is to be held.
    pub(super) fn location_for_hold(
        &mut self,
        change: &Change,
        held: &NewHold,
        ends: &LayerRanges,
    ) -> HoldPlace {
        let Change { component: key, part, block, .. } = *change;
        if !self.is_unplaced(key, part) {
            return self.take_location(key, part).map_or(HoldPlace::Lacks, HoldPlace::At);
        }
        match self.promise_over(change, block..block + held.data_blocks(), ends) {
            Promise::Had => HoldPlace::At(ExtentLocation::unplaced(self.components[key].member)),
            Promise::Waits => HoldPlace::Waits,
            Promise::Lacks => HoldPlace::Lacks,
        }
    }

    /// Promises frames for blocks of a mapped part, and its pages. What takes the place of held blocks, in the same layer or because they end with
    /// it, takes over their frames: unless records on their way decide what becomes of these.
    pub(super) fn promise_over(
        &mut self,
        change: &Change,
        blocks: Range<u16>,
        ends: &LayerRanges,
    ) -> Promise {
        let Change { component: key, part, layer, .. } = *change;
        let held = self.held.of(key, part);
        let ends_with_it = |entry: &HeldEntry| {
            let is_of = |blocks: &Range<u16>| blocks.contains(&u16::from(entry.block));
            (layer > 0 && entry.layer == held_layer(layer))
                || ends.iter().any(|range| {
                    range.layer == entry.layer && is_of(&range.blocks()) && entry.id <= range.through
                })
        };
        let mut given: Vec<(u8, u8)> = Vec::new();
        for entry in held.map_or(&[][..], HeldPart::entries) {
            let is_meant = blocks.contains(&u16::from(entry.block)) && ends_with_it(entry);
            let has_frame = entry.settling == Settling::InFrame && entry.newest == Newest::Data;
            if is_meant && has_frame && given.last().is_none_or(|(block, _)| *block != entry.block) {
                given.push((entry.block, entry.layer));
            }
        }
        let is_pending = held.is_some_and(HeldPart::is_pending);
        let has_given = !given.is_empty();
        if is_pending {
            given.clear();
        }
        let wanted = blocks.len() - given.len();
        if (wanted > 0 || !has_given || is_pending) && !self.may_promise(key, part, wanted as u64) {
            return if is_pending && has_given { Promise::Waits } else { Promise::Lacks };
        }
        self.held.pass_promises(key, part, &given);
        Promise::Had
    }

    /// A record that holds blocks is stable. The frames of its blocks are promised to what is held from now on.
    pub(super) fn accepted_hold_is_stable(&mut self, record: &Record) {
        let (component, part, location, blocks) = match record {
            Record::Hold { component, part, location, checksums, .. } => {
                (component, part, location, checksums.len() as u32)
            }
            Record::HoldTrim { component, part, location, .. } => (component, part, location, 0),
            Record::HoldDamaged { component, part, location, .. } => (component, part, location, 1),
            _ => unreachable!("records that hold blocks"),
        };
        let key = self.components.key_of(*component).expect("a component stays until its records are stable");
        let blocks = if location.is_placed() { 0 } else { blocks };
        self.index.accepted_hold_is_stable((key, *part), *location, blocks);
    }

    /// Whether a held block of a part that becomes content is none for the round of destaging under way.
    pub(super) fn is_settled_late(&self, (key, part): (u32, u32), position: u64) -> bool {
        self.destaging.boundary().is_some_and(|boundary| position < boundary)
            && self.rules.hold(Rule::SettleInLaterRound)
            && self.is_unplaced(key, part)
    }

    /// A start passes over a change that a map page contains: what was held before it counts as overtaken all the same.
    pub(super) fn overtake_contained(&mut self, record: &Record) {
        if !self.rules.hold(Rule::OvertakeContained) {
            return;
        }
        let (component, part, blocks) = match record {
            Record::Write { component, part, block, checksums, .. } => {
                (component, part, u16::from(*block)..u16::from(*block) + checksums.len() as u16)
            }
            Record::Trim { component, part, block, count_less_one, .. } => {
                (component, part, u16::from(*block)..u16::from(*block) + u16::from(*count_less_one) + 1)
            }
            Record::Direct { component, part, .. } => (component, part, 0..BLOCKS_PER_EXTENT as u16),
            _ => unreachable!("changes of content"),
        };
        self.overtake_content(*component, *part, blocks, true);
    }

    /// What of a component stands in the way of a mark. Its undecided row writes are decided by that.
    pub(super) fn settle_for_mark(&mut self, key: u32) -> Unsettled {
        if self.rules.hold(Rule::DecideRowsBeforeMark) {
            for part in self.held.parts_with_rows_of(key) {
                let rows = self.held.of(key, part).map_or(0, HeldPart::row_count);
                if !self.has_room_for_records(rows, 0, rows as u64) {
                    return Unsettled::Settling;
                }
                let runs = self.held.take_rows(key, part, |_, _| true);
                self.promote_rows((key, part), &runs);
            }
        }
        let ignores_rows = !self.rules.hold(Rule::DecideRowsBeforeMark);
        let mut unsettled = Unsettled::Nothing;
        for (_, held) in self.held.of_component(key) {
            let mut entries =
                held.entries().iter().filter(|entry| !(ignores_rows && entry.layer == ROW_LAYER));
            let is_held = |entry: &HeldEntry| entry.layer != ROW_LAYER && entry.layer != PROMOTED_LAYER;
            let is_pending = held.is_pending();
            if !is_pending && held.entries().iter().any(is_held) {
                return Unsettled::Held;
            }
            if is_pending || entries.next().is_some() {
                unsettled = Unsettled::Settling;
            }
        }
        unsettled
    }

    /// A part in an extent of its own is to become mapped: gives frames to what is held of it. False, and nothing is done, if there are none.
    pub(super) fn give_frames_to_held(&mut self, key: u32, part: u32) -> bool {
        let Some(held) = self.held.of(key, part).filter(|held| held.placed_count() > 0) else { return true };
        let frames = held.placed_count() as u64;
        if !self.has_space_for(self.components[key].member, (frames, 0), 0) {
            return false;
        }
        self.held.settle_all_in(key, part, None);
        true
    }

    /// The log is read, and the maps are built: what is held of a part in an extent of its own settles there, if no snapshot sees what it replaces.
    pub(super) fn place_recovered_holds(&mut self) {
        let parts: Vec<(u32, u32)> = self.held.iter().map(|(part, _)| part).collect();
        for (key, part) in parts.into_iter().filter(|(key, _)| self.components.contains(*key)) {
            let component = &self.components[key];
            let extent = self.index.extent_of(key, part).filter(|_| !component.lineage.has_living());
            let location = extent.map(|extent| ExtentLocation { member: component.member, extent });
            self.held.settle_all_in(key, part, location);
        }
    }
}
