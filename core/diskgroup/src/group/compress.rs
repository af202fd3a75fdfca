//! Compression of what is destaged (docs/design/0049): the blocks of a visit are compressed elsewhere, while the group goes on, and get slots in
//! frames of that visit.

use super::Group;
use crate::compute::{Computation, ComputeId, Task};
use crate::format::FORMAT_PLAIN;
use crate::format::batch::Record;
use crate::format::map::{Algorithm, Form};
use crate::format::page::{ComponentRecord, Compression};
use crate::held::HeldPart;
use crate::index::{Dirty, Goal, Newest};
use crate::io::{GroupError, Output};
use crate::pools::Slot;
use crate::rules::Rule;
use crate::slots::{Border, Place, pack, units_of};
use crate::work::{COMPONENT_RECORD_SIZE, Target, WRITE_RECORD_SIZE, Work};
use base::Buffer;
use base::request::Buffers;
use base::units::{BLOCK_SIZE, SECTOR_SIZE};

impl Group {
    /// Blocks of a component that are destaged once the record of this is stable are stored in that way. It leaves as much room in the log as a
    /// guest's write does: what makes room there must never wait for it.
    pub(super) fn accept_compress(
        &mut self,
        target: Target,
        compression: Compression,
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Target { op, component: key, .. } = target;
        let error = match compression != Compression::Off && self.log.format() == FORMAT_PLAIN {
            _ if self.components.is_deleting(key) => Some(GroupError::NoComponent),
            true => Some(GroupError::NotConverted),
            false => None,
        };
        if let Some(error) = error {
            out.push(Output::Done { op, result: Err(error) });
            return None;
        }
        if !self.has_room_for_records(COMPONENT_RECORD_SIZE.div_ceil(WRITE_RECORD_SIZE), 0, 0) {
            return Some(Work::Compress { target, compression });
        }
        let component = &mut self.components[key];
        component.compression_asked = compression;
        let record = ComponentRecord { compression, ..component.record.clone() };
        let (member, slot) = (component.member, component.slot);
        let record = Record::Component { member, slot, record, is_change: true };
        self.buffer.push(record, Some(op), Buffers::new());
        None
    }

    /// Whether blocks of a part are compressed once they are destaged. Not where layers hold blocks that settle in an extent of the part, or content is to be
    /// written to that again.
    pub(super) fn is_to_be_compressed(&self, component: u32, part: u32) -> bool {
        let settles_in_extent = |held: &HeldPart| held.placed_count() > 0 || held.has_promoted();
        self.algorithm_of(component).is_some()
            && !self.held.of(component, part).is_some_and(settles_in_extent)
    }

    fn algorithm_of(&self, component: u32) -> Option<Algorithm> {
        self.components[component].record.compression.algorithm()
    }

    /// Whether the oldest segment of what the log has of a part, which is in an extent of its own, goes to frames to be compressed: if a frame is
    /// promised to each of its blocks, and none of its trims names the extent. Once the extent is a pool, a start ignores records that name it, so a trim
    /// that is not destaged yet would be lost.
    pub(super) fn leaves_for_frames(&self, dirty: &Dirty) -> bool {
        let Some((component, part)) = dirty.part() else { return false };
        let (_, entries) = dirty.oldest_segment();
        let has_data = entries.iter().any(|entry| entry.newest == Newest::Data);
        has_data
            && entries.iter().all(|entry| entry.goal != Goal::Place)
            && self.is_to_be_compressed(component, part)
            && !self.components[component].record.is_deleting
    }

    /// Has the blocks of a visit compressed, which are all read. False if they are to get their places now.
    pub(super) fn compress_visit(&mut self, key: u32, out: &mut Vec<Output>) -> bool {
        let dirty = self.destaging.get(key).dirty();
        let part = self.index.get(dirty).part();
        if part.is_none_or(|(component, _)| self.algorithm_of(component).is_none())
            || self.destaging.begin_compressing(key)
        {
            return false;
        }
        self.drop_overtaken(key);
        if self.destaging.items_mut(key).iter().all(|item| item.data.is_none()) {
            return false;
        }
        self.compressing.wait(key);
        self.feed_compressing(out);
        true
    }

    /// What was written again while it was read needs no frame: that is promised to the newer version.
    fn drop_overtaken(&mut self, key: u32) {
        let entries = self.index.get(self.destaging.get(key).dirty());
        self.destaging.retain_items(key, |item| entries.has_at(item.block, item.position));
    }

    fn feed_compressing(&mut self, out: &mut Vec<Output>) {
        while let Some(key) = self.compressing.next() {
            let destage = self.destaging.get(key);
            let part = self.index.get(destage.dirty()).part().filter(|_| !destage.is_stale(&self.index));
            let Some(algorithm) = part.and_then(|(component, _)| self.algorithm_of(component)) else {
                self.write_destage(key, out); // Its blocks are void, or are to be stored as they are by now.
                continue;
            };
            let mut data = Buffers::new();
            for block in self.destaging.items_mut(key).iter().filter_map(|item| item.data.as_ref()) {
                if !data.last_mut().is_some_and(|last: &mut Buffer| last.try_join(block)) {
                    data.push(block.clone());
                }
            }
            for item in self.destaging.items_mut(key).iter_mut().filter(|item| item.data.is_some()) {
                item.form.algorithm = algorithm;
            }
            let id = self.compute_ids.next();
            self.compressing.begin(id, key);
            out.push(Output::Compute {
                id,
                task: Task { computation: Computation::Compress(algorithm), data },
            });
        }
    }

    /// The blocks of a visit are compressed, where that saves anything.
    pub(super) fn compressed(&mut self, id: ComputeId, slots: &[Option<Box<[u8]>>], out: &mut Vec<Output>) {
        let Some(key) = self.compressing.end(id) else { return };
        let items = self.destaging.items_mut(key).iter_mut().filter(|item| item.data.is_some());
        let mut units = 0;
        for (item, slot) in items.zip(slots) {
            item.form = match slot {
                Some(slot) => Form { units: units_of(slot), ..item.form },
                None => Form::PLAIN,
            };
            item.packed.clone_from(slot);
            units += u64::from(item.form.units);
        }
        self.counters.compressed_bytes += slots.len() as u64 * BLOCK_SIZE;
        self.counters.packed_bytes += units * SECTOR_SIZE;
        self.write_destage(key, out);
        self.feed_compressing(out);
    }

    /// The blocks of a visit to a mapped part, which are all read, get their frames.
    pub(super) fn place_items(&mut self, key: u32, out: &mut Vec<Output>) {
        let destage = self.destaging.get(key);
        let (index, dirty) = (destage.due().member(), destage.dirty());
        let owner = self.owner_of(dirty);
        self.drop_overtaken(key);
        let blocks = self.destaging.items_of(key);
        let promised = blocks.len();
        self.index.begin_move(dirty, blocks);
        let (places, count) = self.pack_items(key);
        let mut shared = self.take_shared(key, &places, count);
        if shared.is_none() {
            // Memory is short: they are stored as they are.
            for item in self.destaging.items_mut(key) {
                (item.packed, item.form) = (None, Form::PLAIN);
            }
        }
        let (places, count) = if shared.is_none() { self.pack_items(key) } else { (places, count) };
        let frames = self.take_frames(index, count);
        // Compressed blocks need fewer, and one that is damaged in the log none. After a crash each is promised a frame again.
        let spare = (promised - count) as u64;
        let member = &mut self.members[index];
        member.pools.spare(spare);
        let mut lost: Vec<u8> = Vec::new();
        let mut writes: Vec<(u64, Buffer)> = Vec::new();
        let mut used: Vec<u8> = vec![0; frames.len()];
        let items = self.destaging.items_mut(key).iter_mut().filter(|item| item.data.is_some());
        for (item, place) in items.zip(&places) {
            match frames.get(place.frame) {
                Some(frame) => {
                    item.unit = member.unit_of(*frame) + u64::from(place.unit);
                    used[place.frame] |= Slot::of(*frame, place.unit, item.form.units).units();
                }
                // Pages are lost, and the device is full.
                None => {
                    item.data = None;
                    lost.push(item.block);
                }
            }
        }
        for (at, frame) in frames.iter().enumerate() {
            member.pools.narrow(Slot::of_units(*frame, used[at]));
            if let Some(buffer) = shared.as_mut().and_then(|shared| shared[at].take()) {
                writes.push((member.unit_of(*frame), buffer));
            }
        }
        self.destaging.put_frames(key, writes, spare);
        for block in lost {
            self.note_damage(index, (owner.component, owner.part, u16::from(block)), 0, out);
        }
    }

    fn pack_items(&mut self, key: u32) -> (Vec<Place>, usize) {
        let items = self.destaging.items_mut(key).iter().filter(|item| item.data.is_some());
        let units: Vec<u8> = items.map(|item| item.form.units).collect();
        let border = if self.rules.hold(Rule::KeepSlotsInFrames) { Border::Kept } else { Border::Crossed };
        pack(&units, border)
    }

    /// Puts the compressed blocks of a visit into frames, of so many that it takes: gives those with compressed blocks. `None` if memory
    /// is short.
    fn take_shared(&mut self, key: u32, places: &[Place], count: usize) -> Option<Vec<Option<Buffer>>> {
        let mut is_shared = vec![false; count];
        let items = self.destaging.items_mut(key).iter().filter(|item| item.data.is_some());
        for (item, place) in items.zip(places) {
            is_shared[place.frame] |= item.packed.is_some();
        }
        let shared = is_shared.iter().filter(|is_shared| **is_shared).count();
        let mut frames: Vec<Option<Buffer>> = vec![None; count];
        if shared == 0 {
            return Some(frames);
        }
        let mut bytes = self.own_pool.take_zeroed(shared * BLOCK_SIZE as usize)?;
        let mut starts = vec![0; count];
        let mut next = 0;
        for (start, _) in starts.iter_mut().zip(&is_shared).filter(|(_, is_shared)| **is_shared) {
            *start = next;
            next += BLOCK_SIZE as usize;
        }
        let items = self.destaging.items_mut(key).iter().filter(|item| item.data.is_some());
        for (item, place) in items.zip(places) {
            if let Some(slot) = &item.packed {
                let start = starts[place.frame] + usize::from(place.unit) * SECTOR_SIZE as usize;
                let end = (start + slot.len()).min(next);
                bytes.bytes_mut()[start..end].copy_from_slice(&slot[..end - start]);
            }
        }
        for (at, frame) in frames.iter_mut().enumerate().filter(|(at, _)| is_shared[*at]) {
            *frame = Some(bytes.slice(starts[at], BLOCK_SIZE as usize));
        }
        Some(frames)
    }
}
