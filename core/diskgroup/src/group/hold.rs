//! Layers beside the content (docs/design/0042): holds, and the orders that promote or end what is held.
//!
//! Each order is one record or several in one batch, and thus atomic. What is decided about row writes is decided where an order is
//! accepted, and told by records of its own: in recovery the log may have let go of a row write whose deciding it still tells of.
//!
//! The space that what is held will settle to is promised when it is accepted: the extent of its part, or a frame for each block (`hold_mapped`).

use super::hold_mapped::{HeldPlace, HoldPlace};
use super::{Group, Phase};
use crate::component::Component;
use crate::format::batch::{ExtentLocation, Origin, Record, WindowEntry};
use crate::format::layer::LayerBlocks;
use crate::held::{
    HeldBlocks, HeldEntry, HeldPart, LayerRange, PROMOTED_LAYER, ROW_LAYER, RowRun, Settling, held_layer,
};
use crate::index::{Goal, IndexEntry, Newest};
use crate::io::{ComponentKey, GroupError, LayerRanges, Op, Output};
use crate::limits;
use crate::rules::Rule;
use crate::work::{Change, Order, Target, Work, fail};
use base::request::Buffers;
use base::units::{BLOCKS_PER_EXTENT, BLOCKS_PER_REGION};
use base::{ComponentId, RequestTag, WriteId};
use smallvec::SmallVec;
use std::ops::Range;

/// What a layer is to hold.
#[derive(Debug)]
pub(super) enum NewHold {
    Data(Buffers, SmallVec<[u32; 2]>),
    Trim(u16),
}

impl NewHold {
    fn blocks(&self) -> u16 {
        match self {
            NewHold::Data(_, checksums) => checksums.len() as u16,
            NewHold::Trim(count) => *count,
        }
    }

    /// Blocks with data.
    fn data_blocks(&self) -> u16 {
        match self {
            NewHold::Data(_, checksums) => checksums.len() as u16,
            NewHold::Trim(_) => 0,
        }
    }

    fn into_work(self, change: Change, ends: LayerRanges) -> Work {
        match self {
            NewHold::Data(data, checksums) => Work::Write { change, data, checksums, ends },
            NewHold::Trim(count) => Work::Trim { change, count },
        }
    }
}

impl Group {
    /// What the layers of a part hold, by layer and block.
    pub fn held(&self, component: ComponentKey, part: u32) -> Vec<HeldBlocks> {
        match self.components.contains(component.0) {
            true => self.held.of(component.0, part).map(|held| held.blocks()).unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// The parts of a component of which layers hold anything, ascending.
    pub fn held_parts(&self, component: ComponentKey) -> Vec<u32> {
        if !self.components.contains(component.0) {
            return Vec::new();
        }
        let parts = self.held.of_component(component.0);
        parts.filter(|(_, held)| !held.blocks().is_empty()).map(|(part, _)| part).collect()
    }

    /// Whether owners are to promote or end what is held: it takes more than an eighth of the log.
    pub fn wants_folds(&self) -> bool {
        self.held.count() as u64 > limits::held_blocks_wanted(self.log.blocks())
    }

    /// Up to `count` parts that the log wants back first, those with the oldest held blocks, each with its component.
    pub fn oldest_held(&self, count: usize) -> Vec<(ComponentKey, u32)> {
        let parts = self.held.parts_before(u64::MAX).into_iter().take(count);
        parts.map(|(component, part)| (ComponentKey(component), part)).collect()
    }

    /// Takes an order about layers of a part in.
    pub(super) fn order(&mut self, order: Order, target: Target, ranges: LayerRanges, out: &mut Vec<Output>) {
        assert!(!ranges.is_empty(), "an order is about something");
        ranges.iter().for_each(check_range);
        self.submit(Work::Order { target, order, ranges }, out);
    }

    /// Records that the row writes are decided which this work shows to be: who asks for it has seen them answered. False, and
    /// nothing is done, if there is no room.
    pub(super) fn decide_rows(&mut self, work: &Work) -> bool {
        let Target { component, part, .. } = work.target();
        if !self.held.has_rows(component, part) {
            return true;
        }
        let rows = self.held.of(component, part).map_or(0, HeldPart::row_count);
        if !self.has_room_for_records(rows, 0, rows as u64) {
            return false;
        }
        let touched = touched_blocks(work);
        let runs = self.held.take_rows(component, part, |block, _| touched[usize::from(block)]);
        self.promote_rows((component, part), &runs);
        true
    }

    /// Records that row writes are decided which a watermark has passed.
    pub(super) fn settle_rows(&mut self) {
        for (component, part) in self.held.take_parts_with_rows() {
            let watermark = self.watermark(ComponentKey(component));
            let is_known = self.held.decided_of(component);
            let runs = self.held.take_rows(component, part, |_, id| id <= watermark || is_known(id));
            for run in runs {
                let record = Record::Promote(self.row_blocks((component, part), run));
                self.held.accept(component, part, 0);
                self.submit_record(None, record);
            }
        }
    }

    pub(super) fn promote_rows(&mut self, part: (u32, u32), runs: &[RowRun]) {
        for run in runs {
            self.push_order(part, Record::Promote(self.row_blocks(part, *run)), None);
        }
    }

    fn row_blocks(&self, part: (u32, u32), run: RowRun) -> LayerBlocks {
        let range =
            LayerRange { layer: ROW_LAYER, block: u16::from(run.block), count: run.count, through: run.id };
        self.layer_blocks(part, &range)
    }

    fn layer_blocks(&self, (key, part): (u32, u32), range: &LayerRange) -> LayerBlocks {
        let component = &self.components[key];
        LayerBlocks {
            member: component.member,
            component: component.record.id,
            part,
            layer: range.layer,
            block: range.block as u8,
            count_less_one: (range.count - 1) as u8,
            through: range.through,
        }
    }

    fn push_order(&mut self, (component, part): (u32, u32), record: Record, op: Option<Op>) {
        self.held.accept(component, part, 0);
        self.buffer.push(record, op, Buffers::new());
    }

    /// A mark that comes with a layer: what the layer holds with its id is dropped, in one batch with the mark.
    pub(super) fn accept_drop(&mut self, change: Change) -> Option<Work> {
        let Change { op, component: key, part, layer, block, id, origin } = change;
        let held = self.held.of(key, part);
        let of_layer = |one: &HeldBlocks| one.layer == layer && one.id == id;
        let copies: Vec<HeldBlocks> =
            held.map_or_else(Vec::new, |held| held.blocks().into_iter().filter(of_layer).collect());
        let rows = held.map_or(0, HeldPart::row_count);
        if !self.has_room_for_records(1 + copies.len() + rows, 0, (copies.len() + rows) as u64) {
            return Some(Work::Trim { change, count: 0 });
        }
        let runs = self.held.take_rows(key, part, |_, of| of == id);
        for run in runs {
            self.push_order((key, part), Record::End(self.row_blocks((key, part), run)), None);
        }
        for HeldBlocks { layer, block, count, id, .. } in copies {
            let range = LayerRange { layer, block: u16::from(block), count, through: id };
            self.push_order((key, part), Record::End(self.layer_blocks((key, part), &range)), None);
        }
        let Component { member, ref record, .. } = self.components[key];
        let tag = match origin {
            Origin::Guest(tag) => tag,
            Origin::Copy => RequestTag::default(),
        };
        let entry = WindowEntry { id, part, layer, block: block as u8, count: 0, is_trim: true, tag };
        let mark = Record::Entry { member, component: record.id, entry };
        self.buffer.push(mark, Some(op), Buffers::new());
        None
    }

    /// What ends with a write goes before it into the same batch, where there is room for both.
    pub(super) fn push_ends(&mut self, part: (u32, u32), ends: &[LayerRange], out: &mut Vec<Output>) {
        for range in ends {
            self.take_rows_in(part, range);
            self.push_order(part, Record::End(self.layer_blocks(part, range)), None);
        }
        if !ends.is_empty() && !self.rules.hold(Rule::FoldInOneBatch) {
            self.seal(out);
        }
    }

    pub(super) fn accept_order(&mut self, target: Target, order: Order, ranges: LayerRanges) -> Option<Work> {
        let part = (target.component, target.part);
        let blocks = ranges.iter().map(|range| u64::from(range.count)).sum();
        let rows = self.held.of(part.0, part.1).map_or(0, HeldPart::row_count);
        if !self.has_room_for_records(ranges.len() + rows, 0, blocks) {
            return Some(Work::Order { target, order, ranges });
        }
        let mut records: Vec<Record> = Vec::new();
        for range in &ranges {
            let runs = self.take_rows_in(part, range);
            match order {
                Order::Promote if range.layer == ROW_LAYER => {
                    records.extend(runs.iter().map(|run| Record::Promote(self.row_blocks(part, *run))));
                }
                Order::Promote => records.push(Record::Promote(self.layer_blocks(part, range))),
                Order::End => records.push(Record::End(self.layer_blocks(part, range))),
            }
        }
        if records.is_empty() {
            // Row writes that were decided before. The answer waits until the records of that are stable.
            let nothing = LayerRange { through: WriteId::default(), ..ranges[0] };
            records.push(Record::End(self.layer_blocks(part, &nothing)));
        }
        // The answer comes with the last.
        let last = records.len() - 1;
        for (index, record) in records.into_iter().enumerate() {
            self.push_order(part, record, Some(target.op).filter(|_| index == last));
        }
        None
    }

    /// Takes the row writes away that a range of their layer decides.
    fn take_rows_in(&mut self, (component, part): (u32, u32), range: &LayerRange) -> Vec<RowRun> {
        if range.layer != ROW_LAYER {
            return Vec::new();
        }
        let blocks = range.blocks();
        self.held
            .take_rows(component, part, |block, id| blocks.contains(&u16::from(block)) && id <= range.through)
    }

    pub(super) fn accept_hold(
        &mut self,
        change: Change,
        held: NewHold,
        ends: LayerRanges,
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Change { op, component: key, part, layer, block, origin, .. } = change;
        let blocks = block..block + held.blocks();
        let id = self.not_lessened_hold(change, &blocks);
        let is_void = matches!(held, NewHold::Trim(_))
            && held_layer(layer) == ROW_LAYER
            && !self.has_content(key, part)
            && !self.held.touches(key, part);
        if is_void {
            return self.accept_trim(change, held.blocks(), out);
        }
        let data_blocks = u64::from(held.blocks());
        if !self.has_room_for_hold(1 + ends.len(), data_blocks, data_blocks) {
            return Some(held.into_work(change, ends));
        }
        if !self.may_hold(&change, held_layer(layer), blocks.clone()) {
            fail(&held.into_work(change, ends), GroupError::Full, out);
            return None;
        }
        let location = match self.location_for_hold(&change, held.data_blocks(), &ends) {
            HoldPlace::At(location) => location,
            HoldPlace::Waits => return Some(held.into_work(change, ends)),
            HoldPlace::Lacks => {
                self.starve(held.into_work(change, ends), out);
                return None;
            }
        };
        self.push_ends((key, part), &ends, out);
        if held_layer(layer) == ROW_LAYER {
            self.held.add_row(key, part, blocks.clone(), id);
        }
        let frames = if location.is_placed() { 0 } else { u32::from(held.data_blocks()) };
        self.index.accept((key, part), location, frames);
        self.held.accept(key, part, blocks.len());
        let (component, block) = (self.components[key].record.id, block as u8);
        let (record, data) = match held {
            NewHold::Data(data, checksums) => {
                (Record::Hold { component, part, layer, location, block, id, origin, checksums }, data)
            }
            NewHold::Trim(count) => {
                let count_less_one = (count - 1) as u8;
                let record =
                    Record::HoldTrim { component, part, layer, location, block, count_less_one, id, origin };
                (record, Buffers::new())
            }
        };
        self.buffer.push(record, Some(op), data);
        None
    }

    /// The id of a hold. A copy's is no less than that of what it takes the place of, whose record may leave the log before its own.
    fn not_lessened_hold(&self, change: Change, blocks: &Range<u16>) -> WriteId {
        let Change { component, part, layer, id, origin, .. } = change;
        let Some(held) = self.held.of(component, part).filter(|_| origin == Origin::Copy) else { return id };
        let replaced = held
            .entries()
            .iter()
            .filter(|entry| entry.layer == held_layer(layer) && blocks.contains(&u16::from(entry.block)));
        replaced.map(|entry| entry.id).max().unwrap_or_default().max(id)
    }

    /// Whether the share of the log has room for these blocks; what is held of them already counts once. What takes the place of as much is
    /// never refused: an owner could take such a change back on those who have it only with what it took the place of. A change of an epoch
    /// before the promised one is rolled forward by an owner that takes over: it gets a share of its own, for row writes that are held
    /// here end only once that owner has decided.
    fn may_hold(&self, change: &Change, layer: u8, blocks: Range<u16>) -> bool {
        let Change { component: key, part, id, origin, .. } = *change;
        let promised = self.components[key].record.promised;
        let max = match layer {
            _ if origin != Origin::Copy && id.epoch < promised => {
                limits::held_blocks_with_rolls_max(self.log.blocks())
            }
            ROW_LAYER => limits::held_blocks_with_rows_max(self.log.blocks()),
            _ => limits::held_blocks_max(self.log.blocks()),
        };
        let is_here = |entry: &&HeldEntry| entry.layer == layer && blocks.contains(&u16::from(entry.block));
        let here = self.held.of(key, part).map_or(0, |held| held.entries().iter().filter(is_here).count());
        let more = blocks.len() - here;
        more == 0 || (self.held.count() + more) as u64 <= max
    }

    /// A record about layers that was accepted is stable.
    pub(super) fn layer_record_is_stable(&mut self, record: &Record) {
        let (component, part, blocks) = match record {
            Record::Hold { component, part, checksums, .. } => (component, part, checksums.len()),
            Record::HoldTrim { component, part, count_less_one, .. } => {
                (component, part, usize::from(*count_less_one) + 1)
            }
            Record::HoldDamaged { component, part, .. } => (component, part, 1),
            Record::Promote(blocks) | Record::End(blocks) => (&blocks.component, &blocks.part, 0),
            _ => return,
        };
        match self.components.key_of(*component) {
            Some(key) => self.held.accepted_is_stable(key, *part, blocks),
            None => unreachable!("a component stays until its records are stable"),
        }
    }

    /// Puts a stable record about layers into force.
    pub(super) fn install_held(&mut self, record: &Record, batch_position: u64, data_position: u64) {
        match record {
            Record::Hold { component, part, layer, location, block, id, checksums, .. } => {
                let entries = checksums.iter().enumerate().map(|(index, &checksum)| HeldEntry {
                    position: data_position + index as u64,
                    checksum,
                    block: block + index as u8,
                    ..new_entry(held_layer(*layer), *id)
                });
                self.install_hold((*component, *part), (*location, batch_position), entries);
            }
            Record::HoldTrim { component, part, layer, location, block, count_less_one, id, .. } => {
                let entries = (0..=*count_less_one).map(|index| HeldEntry {
                    position: batch_position,
                    block: block + index,
                    newest: Newest::Trim,
                    ..new_entry(held_layer(*layer), *id)
                });
                self.install_hold((*component, *part), (*location, batch_position), entries);
            }
            Record::HoldDamaged { component, part, layer, location, block, id, checksum } => {
                // Its place in the log is the header's, which has another checksum: whoever reads it finds it damaged.
                let entry = HeldEntry {
                    position: batch_position,
                    checksum: *checksum,
                    block: *block,
                    is_damaged: true,
                    ..new_entry(held_layer(*layer), *id)
                };
                self.install_hold((*component, *part), (*location, batch_position), std::iter::once(entry));
            }
            Record::Promote(blocks) => self.install_promotion(blocks, batch_position),
            Record::End(_)
                if matches!(self.phase, Phase::Opening(_)) && !self.rules.hold(Rule::ReplayEnds) => {}
            Record::End(blocks) => {
                let Some(key) = self.components.key_of(blocks.component) else { return };
                let range = blocks.blocks();
                let is_ended = |entry: &HeldEntry| {
                    entry.layer == blocks.layer
                        && entry.id <= blocks.through
                        && range.contains(&u16::from(entry.block))
                };
                let place = self.place_of_held((key, blocks.part));
                let ended = self.held.take(key, blocks.part, is_ended);
                if !self.is_contained(blocks.component, blocks.part, batch_position) {
                    self.leave_versions((key, blocks.part), place, &ended);
                    if !ended.is_empty() {
                        // The round under way may have been there already, and the log behind its boundary tells of the end alone.
                        self.held.note_settled();
                    }
                }
            }
            _ => unreachable!("records about layers"),
        }
    }

    fn install_hold(
        &mut self,
        (component, part): (ComponentId, u32),
        (named, batch_position): (ExtentLocation, u64),
        entries: impl Iterator<Item = HeldEntry>,
    ) {
        let location = self.location_of_held(component, part, named);
        self.own(location, (component, part), batch_position);
        let Some(key) = self.components.key_of(component) else { return };
        if self.components[key].record.is_deleting {
            return;
        }
        let settling = if location.is_placed() { Settling::InExtent } else { Settling::InFrame };
        let entries: Vec<HeldEntry> = entries.map(|entry| HeldEntry { settling, ..entry }).collect();
        let are_rows = entries.iter().any(|entry| entry.layer == ROW_LAYER);
        if are_rows && !self.rules.hold(Rule::KeepUntilDecided) {
            let is_replaced = |other: &HeldEntry| entries.iter().any(|entry| entry.block == other.block);
            self.held.take(key, part, is_replaced);
        }
        self.held.insert(key, part, location, entries);
    }

    /// What a layer holds of blocks becomes content, by a record in the batch at that position of the log.
    fn install_promotion(&mut self, blocks: &LayerBlocks, batch_position: u64) {
        let Some(key) = self.components.key_of(blocks.component) else { return };
        let (part, range) = (blocks.part, blocks.blocks());
        let is_due =
            |entry: &HeldEntry| range.contains(&u16::from(entry.block)) && entry.id <= blocks.through;
        let place = self.place_of_held((key, part));
        let is_contained =
            self.is_contained(blocks.component, part, batch_position) && self.rules.hold(Rule::SettleOnce);
        self.note_promotion((key, part), batch_position);
        let promoted = self.held.take(key, part, |entry| entry.layer == blocks.layer && is_due(entry));
        let is_ended = |entry: &HeldEntry| entry.layer < PROMOTED_LAYER && is_due(entry);
        let ended = match blocks.layer == ROW_LAYER {
            true => self.held.take(key, part, is_ended),
            false => Vec::new(),
        };
        if is_contained {
            return;
        }
        self.leave_versions((key, part), place, &ended);
        if !ended.is_empty() {
            self.held.note_settled();
        }
        for entry in promoted {
            self.settle_block((key, part), place, batch_position, entry);
        }
    }

    /// A part whose last held blocks became content, all of which are trimmed by now, gives its extent back, as it would have if they had
    /// never been held.
    pub(super) fn free_if_trimmed(&mut self, blocks: &LayerBlocks) {
        let (component, part) = (blocks.component, blocks.part);
        let Some(key) = self.components.key_of(component) else { return };
        let Component { member, .. } = self.components[key];
        // Snapshots may see what stands in the extent.
        let is_kept = self.held.touches(key, part) || self.is_unplaced(key, part);
        let Some(extent) = self.index.extent_of(key, part).filter(|_| !is_kept) else { return };
        let location = ExtentLocation { member, extent };
        let Some(dirty) = self.index.at(location).filter(|dirty| !dirty.is_pending()) else { return };
        let is_trimmed = |entry: &IndexEntry| entry.newest == Newest::Trim;
        if dirty.entries().len() < BLOCKS_PER_EXTENT || !dirty.entries().iter().all(is_trimmed) {
            return;
        }
        let ids = dirty.entries().iter().map(|entry| entry.id).chain(dirty.raised().iter().map(|one| one.id));
        let id = ids.max().expect("it has entries");
        if self.exclusive.hold((key, part)) {
            self.scarcity.begin_free();
            self.submit_record(None, Record::Free { component, part, location, id, origin: Origin::Copy });
        }
    }

    /// A held block becomes content. Its data stay where they are in the log. If a record behind them has changed the content, that would have the last word in
    /// a log which begins behind the hold: in an extent of its own, the block is written again before the log lets go of it; of mapped parts, a
    /// start passes that record over (`hold_mapped`).
    fn settle_block(
        &mut self,
        (key, part): (u32, u32),
        place: HeldPlace,
        batch_position: u64,
        entry: HeldEntry,
    ) {
        let id = match self.rules.hold(Rule::KeepPromotedId) {
            true => entry.id,
            false => WriteId::default(),
        };
        let location = place.of(&entry);
        self.overtake((key, part), u16::from(entry.block)..u16::from(entry.block) + 1);
        let is_overtaken = entry.is_overtaken && self.rules.hold(Rule::RewriteOvertaken);
        if is_overtaken && self.is_written_again((key, part), location) {
            let entry = HeldEntry { id, layer: PROMOTED_LAYER, ..entry };
            self.held.insert(key, part, location, [entry]);
            return;
        }
        let component = self.components[key].record.id;
        let (owner, id) = self.version_over_hole(component, part, id);
        let born = self.components[key].lineage.born_at(batch_position);
        let HeldEntry { position, checksum, block, newest, .. } = entry;
        // The record of what it takes the place of may leave the log before its own.
        // While the log is read, a part is not known by its extent yet.
        let dirty = match location.is_placed() {
            true => self.index.at(location),
            false => self.index.of(key, part),
        };
        let old = dirty.and_then(|dirty| dirty.find(block)).copied();
        if let Some(old) = old.filter(|old| old.id > id) {
            let region = (usize::from(block) / BLOCKS_PER_REGION) as u8;
            self.index.raise(location, owner, (region, old.id), old.position);
        }
        let goal = match Goal::at(location) {
            Goal::Frame if is_overtaken => Goal::FrameOnly,
            goal => goal,
        };
        let is_late = self.is_settled_late(location, position);
        let entry = IndexEntry { id, position, checksum, block, newest, goal, is_late };
        self.index.insert(location, (owner, born), std::iter::once(entry));
        if goal != Goal::Place && self.rules.hold(Rule::SettleInLaterRound) {
            self.index.note_settled(position, batch_position);
        }
        self.held.note_settled();
    }

    /// The content of blocks is changed by a record that is being put into force.
    pub(super) fn overtake(&mut self, (key, part): (u32, u32), blocks: Range<u16>) {
        if !self.held.touches(key, part) {
            return;
        }
        let place = self.place_of_held((key, part));
        let replaced = self.held.overtake(key, part, blocks);
        self.leave_versions((key, part), place, &replaced);
    }

    /// A whole extent was written, to which the part has moved.
    pub(super) fn relocate_held(&mut self, component: ComponentId, part: u32, location: ExtentLocation) {
        if self.held.is_empty() {
            return;
        }
        let Some(key) = self.components.key_of(component) else { return };
        self.held.relocate(key, part, location);
        self.overtake((key, part), 0..BLOCKS_PER_EXTENT as u16);
    }

    /// The same, by the component's id.
    pub(super) fn overtake_content(&mut self, component: ComponentId, part: u32, blocks: Range<u16>) {
        if self.held.is_empty() {
            return;
        }
        if let Some(key) = self.components.key_of(component) {
            self.overtake((key, part), blocks);
        }
    }

    /// The regions of blocks that are not held any more keep their versions.
    fn leave_versions(&mut self, (key, part): (u32, u32), place: HeldPlace, gone: &[HeldEntry]) {
        for entry in gone {
            let component = self.components[key].record.id;
            let (owner, id) = self.version_over_hole(component, part, entry.id);
            let region = (usize::from(entry.block) / BLOCKS_PER_REGION) as u8;
            self.index.raise(place.of(entry), owner, (region, id), entry.position);
        }
    }

    /// What is held of a component on a device that is lost is lost with it.
    pub(super) fn drop_held_on(&mut self, member: u8) {
        let lost = self.components.iter().filter(|(_, one)| one.member == member).map(|(key, _)| key);
        for key in lost.collect::<Vec<u32>>() {
            self.held.drop_component(key);
        }
    }

    /// Whether an extent is that of a part of which something is held.
    pub(super) fn holds_for(&self, location: ExtentLocation) -> bool {
        let owner = self.members[location.member].owners[location.extent as usize];
        let key = self.components.key_of(owner.component);
        let held = key.and_then(|key| self.held.of(key, owner.part));
        held.is_some_and(|held| held.placed_count() > 0 && held.location() == Some(location))
    }

    /// The log is read, and the maps are built: what is held on a device that is out of service is lost, and row writes that the log
    /// leaves undecided are known.
    pub(super) fn recover_held(&mut self) {
        for member in 0..self.members.len() {
            if !self.members[member].is_in_service() {
                self.drop_held_on(member);
            }
        }
        self.place_recovered_holds();
        let rows: Vec<((u32, u32), u8, WriteId)> = self
            .held
            .iter()
            .flat_map(|(part, held)| held.entries().iter().map(move |entry| (part, entry)))
            .filter(|(_, entry)| entry.layer == ROW_LAYER)
            .map(|(part, entry)| (part, entry.block, entry.id))
            .collect();
        for ((component, part), block, id) in rows {
            self.held.add_row(component, part, u16::from(block)..u16::from(block) + 1, id);
        }
    }
}

fn new_entry(layer: u8, id: WriteId) -> HeldEntry {
    HeldEntry {
        id,
        position: 0,
        checksum: 0,
        block: 0,
        layer,
        newest: Newest::Data,
        is_overtaken: false,
        is_damaged: false,
        settling: Settling::InExtent,
    }
}

/// Ranges that others than the group may name.
pub(super) fn check_range(range: &LayerRange) {
    check_layer(range.layer);
    assert!(range.layer > 0, "the content is not held");
    assert!(range.count >= 1 && range.block + range.count <= 256, "a range lies within its part");
}

/// Layers that others than the group may name.
pub(super) fn check_layer(layer: u8) {
    assert!(layer != PROMOTED_LAYER, "that layer is the group's own");
}

/// The blocks whose undecided row writes some work decides: those that it is about, but where it drops row writes itself.
fn touched_blocks(work: &Work) -> [bool; BLOCKS_PER_EXTENT] {
    let mut touched = [false; BLOCKS_PER_EXTENT];
    let mut mark = |blocks: Range<u16>, is_touched: bool| {
        touched[usize::from(blocks.start)..usize::from(blocks.end)].fill(is_touched);
    };
    let (own, ranges): (Range<u16>, &[LayerRange]) = match work {
        Work::Write { change, checksums, ends, .. } => {
            (change.block..change.block + checksums.len() as u16, ends)
        }
        Work::Trim { change, count } => (change.block..change.block + count, &[]),
        Work::Order { ranges, .. } => (0..0, ranges),
        Work::Snapshot { .. } | Work::Rollback { .. } | Work::Compress { .. } => (0..0, &[]),
    };
    mark(own, true);
    ranges.iter().filter(|range| range.layer != ROW_LAYER).for_each(|range| mark(range.blocks(), true));
    ranges.iter().filter(|range| range.layer == ROW_LAYER).for_each(|range| mark(range.blocks(), false));
    touched
}
