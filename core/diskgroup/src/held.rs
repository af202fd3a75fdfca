//! Blocks that are held in layers beside the content of their parts (docs/design/0042): what is held, of which the log has the only
//! copy, and which row writes are undecided as of the last order that was accepted.
//!
//! Nothing here says what a layer means. Two layers are special to a group: undecided row writes ([`ROW_LAYER`]), which read as
//! content, and promoted blocks that wait to be written again ([`PROMOTED_LAYER`]).

use crate::format::batch::ExtentLocation;
use crate::index::Newest;
use base::WriteId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The layer of row writes that are not decided.
pub const ROW_LAYER: u8 = 255;

/// The first of the layers that are the same one to a group: a row write is held in [`ROW_LAYER`], and the window tells which of these
/// layers it came with, for that says more to whoever wrote it.
pub const ROW_LAYER_FIRST: u8 = 128;

/// The layer in which what comes with a layer is held.
pub(crate) fn held_layer(layer: u8) -> u8 {
    if layer >= ROW_LAYER_FIRST && layer != PROMOTED_LAYER { ROW_LAYER } else { layer }
}

/// The layer, of the group alone, of promoted blocks whose content was changed by a record that stands behind their data in the log. In
/// a log that has let go of the data, that record would have the last word: so they are written again as content before.
pub(crate) const PROMOTED_LAYER: u8 = 254;

/// Blocks of one layer of a part, as far as what is held of them is not newer than an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerRange {
    /// The layer, 1 to 253, or [`ROW_LAYER`].
    pub layer: u8,
    /// First block, 0..256.
    pub block: u16,
    /// Blocks, at least 1; they end within the part.
    pub count: u16,
    /// Only what is held with ids up to this one.
    pub through: WriteId,
}

impl LayerRange {
    /// The blocks.
    pub fn blocks(&self) -> Range<u16> {
        self.block..self.block + self.count
    }
}

/// Blocks side by side that one layer holds since one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBlocks {
    /// The layer.
    pub layer: u8,
    /// First block.
    pub block: u8,
    /// Blocks, 1..=256.
    pub count: u16,
    /// The change.
    pub id: WriteId,
    /// Whether they are trimmed.
    pub is_trim: bool,
}

/// Where a held block will stand once it is content and destaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settling {
    /// In the extent of its part.
    InExtent,
    /// In a frame, which is promised to it if it has data.
    InFrame,
    /// As [`Settling::InFrame`], but the promise has passed to a record on its way to the log that takes its place.
    Passed,
}

/// One block that a layer holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldEntry {
    pub(crate) id: WriteId,
    /// Log block of the data, or of the batch with the trim.
    pub(crate) position: u64,
    pub(crate) checksum: u32,
    pub(crate) block: u8,
    pub(crate) layer: u8,
    pub(crate) newest: Newest,
    /// Whether a record behind its data in the log has changed the block's content.
    pub(crate) is_overtaken: bool,
    /// Whether its data were found damaged when they were to be written again.
    pub(crate) is_damaged: bool,
    pub(crate) settling: Settling,
}

impl HeldEntry {
    /// Whether a frame is promised to it.
    fn wants_frame(&self) -> bool {
        self.newest == Newest::Data && self.settling == Settling::InFrame
    }
}

/// A run of blocks of a row write that is not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowRun {
    pub(crate) block: u8,
    pub(crate) count: u16,
    pub(crate) id: WriteId,
}

/// What layers of one part hold.
#[derive(Debug, Default)]
pub(crate) struct HeldPart {
    /// Sorted by block, then by layer.
    entries: Vec<HeldEntry>,
    /// The extent in which what is held settles, but for blocks that get frames.
    location: Option<ExtentLocation>,
    /// The device of its component.
    member: u8,
    /// Entries that do not settle in the extent, and of these the ones to which a frame is promised.
    unplaced: (u32, u32),
    /// Records about layers of the part that are accepted and not stable.
    pending: u32,
    /// The row writes of each block that no accepted order has decided. Those in `entries` may be decided already.
    rows: BTreeMap<u8, WriteId>,
}

impl HeldPart {
    /// By block, then by layer.
    pub(crate) fn entries(&self) -> &[HeldEntry] {
        &self.entries
    }

    /// The extent in which what is held settles, but for blocks that get frames.
    pub(crate) fn location(&self) -> Option<ExtentLocation> {
        self.location
    }

    /// Whether content waits to be written again.
    pub(crate) fn has_promoted(&self) -> bool {
        self.entries.iter().any(|entry| entry.layer == PROMOTED_LAYER)
    }

    /// Whether any of its entries does not settle in the extent of the part.
    pub(crate) fn has_unplaced(&self) -> bool {
        self.unplaced.0 > 0
    }

    /// Entries that settle in the extent of the part.
    pub(crate) fn placed_count(&self) -> usize {
        self.entries.len() - self.unplaced.0 as usize
    }

    /// Whether records about its layers are accepted that are not stable yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    fn find(&self, block: u8, layer: u8) -> Option<&HeldEntry> {
        let index = self.entries.binary_search_by_key(&(block, layer), |entry| (entry.block, entry.layer));
        index.ok().map(|index| &self.entries[index])
    }

    /// What a read of a layer finds instead of the content. [`PROMOTED_LAYER`] is the content without row writes that are not decided.
    pub(crate) fn read(&self, block: u8, layer: u8) -> Option<&HeldEntry> {
        let of_layer = |layer: u8| self.find(block, layer);
        of_layer(ROW_LAYER)
            .filter(|_| layer != PROMOTED_LAYER)
            .or_else(|| of_layer(layer).filter(|_| layer > 0))
            .or_else(|| of_layer(PROMOTED_LAYER))
    }

    /// Whether a block has space by what its layers hold, undecided row writes left out; `None` if they do not say.
    pub(crate) fn is_backed(&self, block: u8) -> Option<bool> {
        let first = self.entries.partition_point(|entry| entry.block < block);
        let of_block = self.entries[first..].iter().take_while(|entry| entry.block == block);
        let mut backed = None;
        for entry in of_block.filter(|entry| entry.layer != ROW_LAYER) {
            // Of several layers, any with data counts; promoted content counts where no layer holds the block.
            if entry.layer != PROMOTED_LAYER || backed.is_none() {
                backed = Some(backed == Some(true) || entry.newest == Newest::Data);
            }
        }
        backed
    }

    /// The oldest log position that it needs.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.position).min()
    }

    /// Row writes that no accepted order has decided, by block.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// What it holds, but what the group writes again as content.
    pub(crate) fn blocks(&self) -> Vec<HeldBlocks> {
        let mut entries: Vec<&HeldEntry> =
            self.entries.iter().filter(|entry| entry.layer != PROMOTED_LAYER).collect();
        entries.sort_by_key(|entry| (entry.layer, entry.block));
        let mut runs: Vec<HeldBlocks> = Vec::new();
        for entry in entries {
            let is_trim = entry.newest == Newest::Trim;
            match runs.last_mut() {
                Some(run)
                    if (run.layer, run.id, run.is_trim) == (entry.layer, entry.id, is_trim)
                        && u16::from(run.block) + run.count == u16::from(entry.block) =>
                {
                    run.count += 1;
                }
                Some(_) | None => runs.push(HeldBlocks {
                    layer: entry.layer,
                    block: entry.block,
                    count: 1,
                    id: entry.id,
                    is_trim,
                }),
            }
        }
        runs
    }

    fn is_unused(&self) -> bool {
        self.entries.is_empty() && self.pending == 0 && self.rows.is_empty()
    }
}

/// Pages that a part may need for what is held of it: a map page, and delta pages for what that replaces (`index/dirty.rs`).
const PAGES_PER_PART: u64 = 3;

/// All that is held in a group.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// By component key, then by part.
    parts: Vec<BTreeMap<u32, HeldPart>>,
    /// Entries in all of `parts`.
    count: usize,
    /// By the index of the device: frames that are promised, and parts to which pages are.
    promised: Vec<(u64, u64)>,
    /// Blocks of holds that are accepted and not stable.
    accepted: usize,
    /// Parts, by component key, with row writes that no accepted order has decided.
    with_rows: BTreeSet<(u32, u32)>,
    /// Up to where changes of an owner are decided that does not tell a component watermarks, by component key.
    decided: BTreeMap<u32, WriteId>,
    /// Whether such row writes may have been decided by a watermark since they were last looked at.
    are_rows_due: bool,
    /// Whether blocks became content, or left their versions, since the last look at what is left to destage.
    has_settled: bool,
}

impl Held {
    /// A component gets its key, which another one may have had before.
    pub(crate) fn add_component(&mut self, component: u32) {
        if component as usize >= self.parts.len() {
            self.parts.resize_with(component as usize + 1, BTreeMap::new);
        }
        self.drop_component(component);
    }

    /// Forgets all that is held of a component.
    pub(crate) fn drop_component(&mut self, component: u32) {
        self.decided.remove(&component);
        let parts = std::mem::take(&mut self.parts[component as usize]);
        self.count -= parts.values().map(|part| part.entries.len()).sum::<usize>();
        parts.values().for_each(|part| self.count_promise(part.member, part.unplaced, (0, 0)));
        self.with_rows.retain(|(of, _)| *of != component);
    }

    /// What is held of a part. Where a component has nothing held, this is one comparison.
    pub(crate) fn of(&self, component: u32, part: u32) -> Option<&HeldPart> {
        self.parts[component as usize].get(&part)
    }

    /// The parts of a component.
    pub(crate) fn of_component(&self, component: u32) -> impl Iterator<Item = (u32, &HeldPart)> {
        self.parts[component as usize].iter().map(|(part, held)| (*part, held))
    }

    /// The first of some parts of a component of which anything is held.
    pub(crate) fn first_of(&self, component: u32, parts: Range<u32>) -> Option<u32> {
        self.parts[component as usize].range(parts).next().map(|(part, _)| *part)
    }

    /// All parts by component key and part.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ((u32, u32), &HeldPart)> {
        self.parts
            .iter()
            .enumerate()
            .flat_map(|(key, parts)| parts.iter().map(move |(part, held)| ((key as u32, *part), held)))
    }

    /// Blocks that are held, or will be once what was accepted is stable.
    pub(crate) fn count(&self) -> usize {
        self.count + self.accepted
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Whether anything is held of a part, or will be.
    pub(crate) fn touches(&self, component: u32, part: u32) -> bool {
        self.of(component, part).is_some()
    }

    fn part(&mut self, component: u32, part: u32) -> &mut HeldPart {
        self.parts[component as usize].entry(part).or_default()
    }

    fn forget_if_unused(&mut self, component: u32, part: u32) {
        let parts = &mut self.parts[component as usize];
        if parts.get(&part).is_some_and(HeldPart::is_unused) {
            parts.remove(&part);
        }
    }

    /// A record about layers of a part is accepted; it will hold so many blocks.
    pub(crate) fn accept(&mut self, component: u32, part: u32, blocks: usize) {
        self.part(component, part).pending += 1;
        self.accepted += blocks;
    }

    /// A record that was accepted is stable.
    pub(crate) fn accepted_is_stable(&mut self, component: u32, part: u32, blocks: usize) {
        self.accepted -= blocks;
        // Of a component that is being deleted nothing is held.
        if let Some(held) = self.parts[component as usize].get_mut(&part) {
            held.pending = held.pending.saturating_sub(1);
        }
        self.forget_if_unused(component, part);
    }

    /// Frames and pages that are promised to what is held on a device.
    pub(crate) fn promised(&self, member: u8) -> (u64, u64) {
        let (frames, parts) = self.promised.get(usize::from(member)).copied().unwrap_or_default();
        (frames, parts * PAGES_PER_PART)
    }

    /// What is promised to a part changes with the entries that do not settle in an extent, and those of them that get frames.
    fn count_promise(&mut self, member: u8, before: (u32, u32), after: (u32, u32)) {
        let index = usize::from(member);
        if index >= self.promised.len() {
            self.promised.resize(index + 1, (0, 0));
        }
        let (frames, parts) = &mut self.promised[index];
        *frames = *frames + u64::from(after.1) - u64::from(before.1);
        *parts = *parts + u64::from(after.0 > 0) - u64::from(before.0 > 0);
    }

    /// Changes entries of a part, and what is promised to it.
    fn change<T>(
        &mut self,
        component: u32,
        part: u32,
        change: impl FnOnce(&mut Vec<HeldEntry>) -> T,
    ) -> Option<T> {
        let held = self.parts[component as usize].get_mut(&part)?;
        let (count, before) = (held.entries.len(), held.unplaced);
        let result = change(&mut held.entries);
        let unplaced = held.entries.iter().filter(|entry| entry.settling != Settling::InExtent).count();
        let frames = held.entries.iter().filter(|entry| entry.wants_frame()).count();
        held.unplaced = (unplaced as u32, frames as u32);
        let (member, after) = (held.member, held.unplaced);
        self.count = self.count - count + held.entries.len();
        self.count_promise(member, before, after);
        Some(result)
    }

    /// The extent of a part is known, or another one.
    pub(crate) fn relocate(&mut self, component: u32, part: u32, location: ExtentLocation) {
        if let Some(held) = self.parts[component as usize].get_mut(&part) {
            held.location = Some(location);
        }
    }

    /// All that is held of a part settles in that extent, or in frames.
    pub(crate) fn settle_all_in(&mut self, component: u32, part: u32, location: Option<ExtentLocation>) {
        let settling = if location.is_some() { Settling::InExtent } else { Settling::InFrame };
        self.change(component, part, |entries| {
            entries.iter_mut().for_each(|entry| entry.settling = settling);
        });
        if let Some(held) = self.parts[component as usize].get_mut(&part) {
            held.location = location;
        }
    }

    /// The promises of these entries (block, layer) pass to a record on its way.
    pub(crate) fn pass_promises(&mut self, component: u32, part: u32, places: &[(u8, u8)]) {
        self.change(component, part, |entries| {
            let is_meant = |entry: &&mut HeldEntry| {
                entry.settling == Settling::InFrame && places.contains(&(entry.block, entry.layer))
            };
            entries.iter_mut().filter(is_meant).for_each(|entry| entry.settling = Settling::Passed);
        });
    }

    /// A layer holds blocks of a part that stands there, each in the place of an older one. A block keeps the greatest id of both.
    pub(crate) fn insert(
        &mut self,
        component: u32,
        part: u32,
        location: ExtentLocation,
        held: impl IntoIterator<Item = HeldEntry>,
    ) {
        let of_part = self.part(component, part);
        of_part.member = location.member;
        if location.is_placed() {
            of_part.location = Some(location);
        }
        self.change(component, part, |entries| {
            for entry in held {
                let place = (entry.block, entry.layer);
                match entries.binary_search_by_key(&place, |other| (other.block, other.layer)) {
                    Ok(index) => {
                        let id = entry.id.max(entries[index].id);
                        entries[index] = HeldEntry { id, ..entry };
                    }
                    Err(index) => entries.insert(index, entry),
                }
            }
        });
    }

    /// Takes entries away.
    pub(crate) fn take(
        &mut self,
        component: u32,
        part: u32,
        is_taken: impl Fn(&HeldEntry) -> bool,
    ) -> Vec<HeldEntry> {
        let taken: Option<Vec<HeldEntry>> =
            self.change(component, part, |entries| entries.extract_if(.., |entry| is_taken(entry)).collect());
        self.forget_if_unused(component, part);
        taken.unwrap_or_default()
    }

    /// The content of some blocks is changed by a record behind all that is held of them. Takes promoted content away, which was
    /// replaced by this.
    pub(crate) fn overtake(&mut self, component: u32, part: u32, blocks: Range<u16>) -> Vec<HeldEntry> {
        let Some(held) = self.parts[component as usize].get_mut(&part) else { return Vec::new() };
        let mut has_promoted = false;
        for entry in held.entries.iter_mut().filter(|entry| blocks.contains(&u16::from(entry.block))) {
            entry.is_overtaken = true;
            has_promoted |= entry.layer == PROMOTED_LAYER;
        }
        let is_replaced =
            |entry: &HeldEntry| entry.layer == PROMOTED_LAYER && blocks.contains(&u16::from(entry.block));
        if has_promoted { self.take(component, part, is_replaced) } else { Vec::new() }
    }

    /// A row write of these blocks is accepted, or found by recovery.
    pub(crate) fn add_row(&mut self, component: u32, part: u32, blocks: Range<u16>, id: WriteId) {
        self.part(component, part).rows.extend(blocks.map(|block| (block as u8, id)));
        self.with_rows.insert((component, part));
        self.are_rows_due = true;
    }

    /// Whether a part has row writes that no accepted order has decided.
    pub(crate) fn has_rows(&self, component: u32, part: u32) -> bool {
        !self.with_rows.is_empty() && self.with_rows.contains(&(component, part))
    }

    /// Takes undecided row writes away, for an order that decides them.
    pub(crate) fn take_rows(
        &mut self,
        component: u32,
        part: u32,
        is_taken: impl Fn(u8, WriteId) -> bool,
    ) -> Vec<RowRun> {
        let Some(held) = self.parts[component as usize].get_mut(&part) else { return Vec::new() };
        let mut runs: Vec<RowRun> = Vec::new();
        for (&block, &id) in held.rows.iter().filter(|(block, id)| is_taken(**block, **id)) {
            match runs.last_mut() {
                Some(run) if run.id == id && u16::from(run.block) + run.count == u16::from(block) => {
                    run.count += 1;
                }
                Some(_) | None => runs.push(RowRun { block, count: 1, id }),
            }
        }
        held.rows.retain(|block, id| !is_taken(*block, *id));
        if held.rows.is_empty() {
            self.with_rows.remove(&(component, part));
        }
        self.forget_if_unused(component, part);
        runs
    }

    /// A watermark has moved on: it may have decided row writes.
    pub(crate) fn watermark_moved(&mut self) {
        self.are_rows_due |= !self.with_rows.is_empty();
    }

    /// All changes of that epoch up to an id are decided, though the component's watermark stays where it is.
    pub(crate) fn decided(&mut self, component: u32, through: WriteId) {
        let known = self.decided.entry(component).or_default();
        *known = through.max(*known);
        self.watermark_moved();
    }

    /// Whether changes of a component are known to be decided by that.
    pub(crate) fn decided_of(&self, component: u32) -> impl Fn(WriteId) -> bool + use<> {
        let through = self.decided.get(&component).copied().unwrap_or_default();
        move |id| id.epoch == through.epoch && id <= through
    }

    /// The parts of a component with row writes that no accepted order has decided.
    pub(crate) fn parts_with_rows_of(&self, component: u32) -> Vec<u32> {
        self.with_rows.range((component, 0)..(component + 1, 0)).map(|(_, part)| *part).collect()
    }

    /// The parts with row writes to be looked at, if a watermark has moved on since the last time.
    pub(crate) fn take_parts_with_rows(&mut self) -> Vec<(u32, u32)> {
        match std::mem::take(&mut self.are_rows_due) {
            true => self.with_rows.iter().copied().collect(),
            false => Vec::new(),
        }
    }

    /// A held block became content, or left its version behind.
    pub(crate) fn note_settled(&mut self) {
        self.has_settled = true;
    }

    /// Whether that happened since the last time.
    pub(crate) fn take_settled(&mut self) -> bool {
        std::mem::take(&mut self.has_settled)
    }

    /// The parts that need the log before `boundary`, those with the oldest need first.
    pub(crate) fn parts_before(&self, boundary: u64) -> Vec<(u32, u32)> {
        let mut parts: Vec<(u64, (u32, u32))> = self
            .iter()
            .filter_map(|(part, held)| Some((held.oldest()?, part)))
            .filter(|(oldest, _)| *oldest < boundary)
            .collect();
        parts.sort_unstable();
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// The log positions that are needed before `boundary`, ascending.
    pub(crate) fn positions_before(&self, boundary: u64) -> Vec<u64> {
        let entries = self.iter().flat_map(|(_, held)| held.entries.iter());
        let mut positions: Vec<u64> =
            entries.map(|entry| entry.position).filter(|position| *position < boundary).collect();
        positions.sort_unstable();
        positions
    }

    /// The oldest log position that anything held needs.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.iter().filter_map(|(_, held)| held.oldest()).min()
    }

    /// Bytes of memory, estimated.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.count * size_of::<HeldEntry>()
    }

    /// Whether what is counted is what is there.
    pub(crate) fn is_consistent(&self) -> bool {
        let frames: u64 = self.iter().map(|(_, held)| u64::from(held.unplaced.1)).sum();
        let is_counted = self.count == self.iter().map(|(_, held)| held.entries.len()).sum::<usize>();
        is_counted && frames == self.promised.iter().map(|(frames, _)| frames).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(sequence: u64) -> WriteId {
        WriteId { epoch: 1, sequence }
    }

    fn entry(block: u8, layer: u8, sequence: u64) -> HeldEntry {
        HeldEntry {
            id: id(sequence),
            position: sequence * 10,
            checksum: 0,
            block,
            layer,
            newest: Newest::Data,
            is_overtaken: false,
            is_damaged: false,
            settling: Settling::InExtent,
        }
    }

    fn held(entries: &[HeldEntry]) -> Held {
        let mut held = Held::default();
        held.add_component(0);
        let location = ExtentLocation { member: 1, extent: 7 };
        held.insert(0, 3, location, entries.iter().copied());
        held
    }

    #[test]
    fn a_read_finds_the_row_write_then_its_layer_then_promoted_content() {
        let held =
            held(&[entry(1, 2, 5), entry(1, ROW_LAYER, 9), entry(4, 2, 6), entry(4, PROMOTED_LAYER, 3)]);
        let part = held.of(0, 3).expect("it has entries");
        let found = |block, layer| part.read(block, layer).map(|entry| entry.id.sequence);
        assert_eq!((found(1, 0), found(1, 2), found(1, 3)), (Some(9), Some(9), Some(9)));
        assert_eq!((found(4, 0), found(4, 2), found(4, 3)), (Some(3), Some(6), Some(3)));
        assert_eq!(found(5, 2), None);
    }

    #[test]
    fn a_newer_hold_takes_the_place_of_the_older_one_and_keeps_the_greatest_id() {
        let mut held = held(&[entry(1, 2, 5), entry(1, 2, 4)]);
        assert_eq!((held.count(), held.oldest()), (1, Some(40)));
        assert_eq!(held.take(0, 3, |_| true)[0].id, id(5));
        assert!(held.is_empty() && !held.touches(0, 3));
    }

    #[test]
    fn row_writes_are_decided_block_by_block_once_each() {
        let mut held = held(&[]);
        held.add_row(0, 3, 10..14, id(1));
        held.add_row(0, 3, 12..13, id(2));
        let runs = held.take_rows(0, 3, |block, _| block != 10);
        let run = |block, sequence| RowRun { block, count: 1, id: id(sequence) };
        assert_eq!(runs, [run(11, 1), run(12, 2), run(13, 1)]);
        assert!(held.has_rows(0, 3));
        assert_eq!(held.take_rows(0, 3, |_, _| true), [run(10, 1)]);
        assert!(!held.touches(0, 3), "nothing is left of the part");
    }

    #[test]
    fn what_backs_a_block_is_told_by_its_layers_and_not_by_undecided_row_writes() {
        let trim = HeldEntry { newest: Newest::Trim, ..entry(1, 1, 5) };
        let held =
            held(&[trim, entry(1, PROMOTED_LAYER, 2), entry(2, ROW_LAYER, 3), entry(3, PROMOTED_LAYER, 3)]);
        let part = held.of(0, 3).expect("it has entries");
        let backed: Vec<_> = (0..4).map(|block| part.is_backed(block)).collect();
        assert_eq!(backed, [None, Some(false), None, Some(true)]);
    }
}
