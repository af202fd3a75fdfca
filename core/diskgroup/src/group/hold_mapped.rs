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
//! **What a map page contains.** A start passes over records from before the position that the page tells, promotions among them. So a round of
//! destaging does not take blocks that became content behind its boundary, though their data stand before it: the page would have them without
//! containing their promotion. A round that begins has its boundary behind the promotions of all that it takes. The tail stays before blocks that became
//! content meanwhile until the next round has taken them. And what was written between a hold and its promotion
//! is contained wherever the promoted block is, so that it never has the last word; the page stays as long as the log has the promotion.

use super::{Group, Phase};
use crate::format::batch::{ExtentLocation, Record};
use crate::held::{HeldEntry, HeldPart, PROMOTED_LAYER, ROW_LAYER, Settling, held_layer};
use crate::index::{Goal, IndexEntry, Newest};
use crate::io::LayerRanges;
use crate::log::BatchStart;
use crate::rules::Rule;
use crate::work::Change;
use base::ComponentId;
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

    /// Finds space for what is to be held, with so many blocks of data.
    pub(super) fn location_for_hold(
        &mut self,
        change: &Change,
        data_blocks: u16,
        ends: &LayerRanges,
    ) -> HoldPlace {
        let Change { component: key, part, block, .. } = *change;
        if !self.is_unplaced(key, part) {
            return self.take_location(key, part).map_or(HoldPlace::Lacks, HoldPlace::At);
        }
        match self.promise_over(change, block..block + data_blocks, ends) {
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
    pub(super) fn is_settled_late(&self, location: ExtentLocation, position: u64) -> bool {
        !location.is_placed()
            && self.destaging.boundary().is_some_and(|boundary| position < boundary)
            && self.rules.hold(Rule::SettleInLaterRound)
    }

    /// The boundary of a round that is to begin: behind the promotions of all blocks without a place that it takes.
    pub(super) fn boundary_behind_settled(&self, mut boundary: BatchStart, head: BatchStart) -> BatchStart {
        while let Some(behind) = self.index.behind_settled(boundary.position) {
            boundary = self.log.start_at_or_after(behind, head);
        }
        boundary
    }

    /// Whether a block that becomes content there, and whose content was changed since it was held, is written again: it goes to an extent of its own. While the
    /// log is read, nobody knows yet where parts without a map page stand (`settle_written_again`).
    pub(super) fn is_written_again(&self, (key, part): (u32, u32), location: ExtentLocation) -> bool {
        match self.phase {
            Phase::Opening(_) => self.index.page_of(key, part).is_none(),
            Phase::Open | Phase::Failed => {
                let is_plain = self.index.extent_of(key, part).is_some();
                is_plain && (location.is_placed() || !self.components[key].lineage.has_living())
            }
        }
    }

    /// While the log is read: what became content of a part in spite of later changes is not written again, but gets its frames as any content. `position` is
    /// where that is known to have happened before.
    fn settle_written_again(&mut self, (key, part): (u32, u32), position: u64) {
        let is_settled = |entry: &HeldEntry| entry.layer == PROMOTED_LAYER && !entry.is_damaged;
        let settled = self.held.take(key, part, is_settled);
        let component = &self.components[key];
        let location = ExtentLocation::unplaced(component.member);
        let owner = (Some((key, part)), component.lineage.born_at(position));
        for HeldEntry { id, position: data, checksum, block, newest, .. } in settled {
            let (goal, is_late) = (Goal::FrameOnly, false);
            let entry = IndexEntry { id, position: data, checksum, block, newest, goal, is_late };
            self.index.insert(location, owner, std::iter::once(entry));
            self.index.note_settled(data, position);
        }
    }

    /// While the log is read: a mark comes. By then nothing waited to be written again, so what became content has got frames.
    pub(super) fn settle_before_mark(&mut self, key: u32, position: u64) {
        if let Phase::Opening(_) = self.phase {
            let parts: Vec<u32> = self.held.of_component(key).map(|(part, _)| part).collect();
            let before = position.saturating_sub(1);
            parts.into_iter().for_each(|part| self.settle_written_again((key, part), before));
        }
    }

    /// A promotion stands at that position of the log. As long as it does, a map page of the part stays: without it, a start would not pass over what was
    /// written between a hold and its promotion.
    pub(super) fn note_promotion(&mut self, part: (u32, u32), position: u64) {
        let is_plain = self.index.page_of(part.0, part.1).is_none() && !self.is_unplaced(part.0, part.1);
        if !is_plain && self.rules.hold(Rule::KeepPagesOfPromotions) {
            self.promotions.insert(part, position);
        }
    }

    /// The tail of the log has moved on: map pages that stayed for promotions are given back if they are empty.
    pub(super) fn forget_promotions(&mut self) {
        let tail = self.log.tail();
        let past: Vec<(u32, u32)> =
            self.promotions.extract_if(.., |_, position| *position < tail).map(|(part, _)| part).collect();
        for (key, part) in past {
            if self.check_component(key, part).is_ok() {
                self.drop_map_if_empty(key, part);
            }
        }
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
            // Damaged content stays as it is until it is written.
            let is_settling = |entry: &HeldEntry| entry.layer == PROMOTED_LAYER && !entry.is_damaged;
            let is_held = |entry: &HeldEntry| entry.layer != ROW_LAYER && !is_settling(entry);
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
        let end = self.log.head().saturating_sub(1);
        for (key, part) in parts {
            let Some(component) = self.components.get(key) else { continue };
            let extent = self.index.extent_of(key, part).filter(|_| !component.lineage.has_living());
            let location = extent.map(|extent| ExtentLocation { member: component.member, extent });
            self.held.settle_all_in(key, part, location);
            if location.is_none() {
                self.settle_written_again((key, part), end);
            }
        }
    }
}
