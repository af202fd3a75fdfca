//! Parts that are written anew in the background to take less space (docs/design/0049): blocks that stand as they are, though their component compresses, and
//! frames that are at most half used.
//!
//! One part at a time: the chosen blocks are read where they stand, compressed elsewhere, and written to fresh frames, as by destaging. Only then does the map page
//! name these, in the place of the former ones, and those of blocks that changed meanwhile are given back. After a crash before the checkpoint that follows, the
//! former frames count, which nobody has touched.

use super::Group;
use crate::compute::{Computation, ComputeId, Repacked, Task};
use crate::destage::RestRun;
use crate::format::map::{Entry, MapPage};
use crate::format::page::Descriptor;
use crate::io::{Completion, ComponentKey, Op, Output};
use crate::part_map::Placement;
use crate::pools::{Frame, Slot};
use crate::read::UNITS_PER_BLOCK;
use crate::requests::Purpose;
use crate::rewrite::{
    Choice, Likeness, Move, RewriteWork, Stage, choose, compresses, frame_of, frames_freed, is_worth,
    used_units,
};
use crate::rules::Rule;
use crate::scrub::pause;
use crate::slots::{Border, Place, pack};
use crate::table::{Content, PageWaiter};
use crate::unreadable::{BadBlocks, ReadRequest};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, SECTOR_SIZE};
use base::{Buffer, Instant};
use std::time::Duration;

/// Parts looked at in one step while looking for one that is worth it.
const LOOK_MAX: u32 = 256;
/// How long it rests where memory is short, or nothing was found for a while.
const MEMORY_PAUSE: Duration = Duration::from_millis(10);
/// Frames that stay free beside those that are promised: guests' writes must not wait for what rewriting has taken.
const FRAMES_LEFT: u64 = BLOCKS_PER_EXTENT as u64;
/// How many times the pace of scrubbing is kept where somebody asked for it, and the least pace then.
const ASKED_PACE: (u64, u64) = (8, 64 << 20);
/// Parts after which a checkpoint frees what they took.
const PARTS_PER_CHECKPOINT: u32 = 64;

/// What came of looking at a part.
enum Looked {
    /// It is under way, or waits for a page or for memory.
    Begun,
    /// There is nothing to gain now.
    Passed,
}

impl Group {
    /// Has all parts of a component looked at, and those written anew that take less space then. Answered when that has begun.
    pub(super) fn rewrite(&mut self, op: Op, component: ComponentKey, out: &mut Vec<Output>) {
        let result = self.check_component(component.0, 0);
        if result.is_ok() {
            let id = self.components[component.0].record.id;
            let head = self.log.head();
            self.rewriting.ask(component.0, id, (self.now, head));
            self.backfills.await_tail(head);
        }
        out.push(Output::Done { op, result: result.map(|()| Completion::Done) });
    }

    /// A round of scrubbing has ended: components that compress are walked over.
    pub(super) fn begin_rewrite_round(&mut self) {
        let components = self.components.iter();
        let compressing = components.filter(|(_, one)| one.is_stable && compresses(&one.record));
        let head = self.log.head();
        if self.rewriting.begin_round(compressing.map(|(key, one)| (key, one.record.id)), head) {
            self.backfills.await_tail(head);
        }
    }

    pub(super) fn rewrite_wake_at(&self) -> Option<Instant> {
        let at = self.rewriting.wake_at().filter(|_| !self.destaging.is_draining())?;
        // What it waits for comes by a device request.
        let waits = self.rewriting.seeks_page.is_some() || self.scarcity.is_felt();
        Some(if waits { at.max(self.now + MEMORY_PAUSE) } else { at })
    }

    /// The page that it waited for is there, or its device is lost.
    pub(super) fn rewrite_page_ready(&mut self) {
        self.rewriting.waits_for_page = false;
        self.rest_after(BLOCK_SIZE);
    }

    /// The next part is looked at after a rest that keeps the pace.
    fn rest_after(&mut self, bytes: u64) {
        let scrub = self.settings.scrub_bytes_per_second;
        let is_asked = self.rewriting.walk().is_some_and(|walk| walk.is_asked);
        let pace = if is_asked { (scrub * ASKED_PACE.0).max(ASKED_PACE.1) } else { scrub };
        self.rewriting.next_at = self.now + pause(bytes, pace, self.shares.scrub);
    }

    pub(super) fn advance_rewriting(&mut self, out: &mut Vec<Output>) {
        if let Some(index) = self.rewriting.seeks_page.take() {
            self.page_seekers.remove(&index);
        }
        if self.rewriting.work.as_ref().is_some_and(|work| work.stage == Stage::Written) {
            self.name_rewritten(out);
        }
        let is_due = self.rewriting.wake_at().is_some_and(|at| at <= self.now);
        if !is_due || self.destaging.is_draining() || self.scarcity.is_felt() {
            return;
        }
        let tail = self.log.tail();
        let is_early = self.rewriting.walk().is_some_and(|walk| walk.after > tail);
        if is_early && !self.is_destaged_up_to_awaited(tail) {
            self.rewriting.next_at = self.now + MEMORY_PAUSE;
            return;
        }
        for _ in 0..LOOK_MAX {
            let Some((key, part)) = self.next_part_to_rewrite() else {
                if self.rewriting.walk().is_none() {
                    return;
                }
                continue;
            };
            self.rewriting.go_on_from(part);
            if let Looked::Begun = self.look_at_part(key, part, out) {
                return;
            }
            self.rewriting.go_on_from(part + 1);
        }
        self.rewriting.next_at = self.now + MEMORY_PAUSE;
    }

    /// The next part with a place of the component that is walked over. Nothing at its end, where the walk goes on with another.
    fn next_part_to_rewrite(&mut self) -> Option<(u32, u32)> {
        let walk = self.rewriting.walk()?;
        let (key, id, from) = (walk.component, walk.id, walk.part);
        let is_there = |component: &crate::component::Component| {
            component.record.id == id && component.is_stable && compresses(&component.record)
        };
        let is_there = self.components.get(key).is_some_and(is_there) && self.check_component(key, 0).is_ok();
        let placed = is_there.then(|| self.index.first_placed(key, from..u32::MAX)).flatten();
        match placed {
            Some((part, _)) => Some((key, part)),
            None => {
                self.rewriting.end_walk();
                self.settle_rewritten(1);
                None
            }
        }
    }

    /// The frames that parts had which were written anew are free after a checkpoint, if there are so many such parts.
    fn settle_rewritten(&mut self, parts: u32) {
        if self.rewriting.parts_unsettled >= parts {
            self.rewriting.parts_unsettled = 0;
            self.scrub.want_checkpoint();
        }
    }

    /// Whether a part may be written anew: nothing else changes it as a whole, and all that was told of it is known.
    fn may_rewrite(&self, key: u32, part: u32) -> bool {
        let component = &self.components[key];
        let member = &self.members[component.member];
        let is_plain = matches!(self.index.placement(key, part), Some(Placement::Extent(_)));
        self.is_to_be_compressed(key, part)
            && !self.exclusive.is_held((key, part))
            && !component.lineage.is_rolling_back()
            && member.lost_pages == 0
            && member.lost_extents == 0
            && !(is_plain && self.index.of(key, part).is_some())
    }

    /// The page that tells where a part stands.
    fn page_of_part(&mut self, key: u32, part: u32) -> Option<u32> {
        let table = &self.members[self.components[key].member].table;
        match self.index.placement(key, part)? {
            Placement::Page(page) => Some(page),
            Placement::Extent(extent) => Some(table.page_of(extent).0),
        }
    }

    /// The live blocks of a part, whose page is in memory.
    fn live_entries(&mut self, key: u32, part: u32) -> Vec<(u8, Entry)> {
        let index = self.components[key].member;
        let member = &mut self.members[index];
        let entries: Vec<(u8, Entry)> = match self.index.placement(key, part) {
            Some(Placement::Page(page)) => {
                let map = member.table.peek_map(page).expect("it is in memory");
                (0..=u8::MAX).zip(map.entries.iter().copied()).collect()
            }
            Some(Placement::Extent(extent)) => {
                let found = member.table.descriptor(extent).expect("its page is in memory").clone();
                entries_of(&found, |block| member.unit_of(Frame { extent, block }))
            }
            None => Vec::new(),
        };
        entries.into_iter().filter(|(_, entry)| entry.unit().is_some()).collect()
    }

    fn look_at_part(&mut self, key: u32, part: u32, out: &mut Vec<Output>) -> Looked {
        let index = self.components[key].member;
        if !self.may_rewrite(key, part) {
            return Looked::Passed;
        }
        let Some(page) = self.page_of_part(key, part) else { return Looked::Passed };
        if !self.members[index].table.is_ready(page) {
            self.rewriting.waits_for_page = true;
            self.need_page(index, page, PageWaiter::Rewrite, out);
            return Looked::Begun;
        }
        let mut entries = self.live_entries(key, part);
        let like = Likeness::of(&entries);
        let former = self.rewriting.tried((key, part)).copied();
        // What the log has newer is compressed when it is destaged.
        let dirty = self.index.of(key, part);
        entries.retain(|(block, _)| dirty.is_none_or(|dirty| dirty.find(*block).is_none()));
        let is_untried = |block| former.is_none_or(|former| !like.has_region_of(block, &former));
        let member = &self.members[index];
        let used = |frame: u64| used_units(member.frame_at(frame * UNITS_PER_BLOCK), &member.pools);
        let Some(choice) = choose(&entries, is_untried, used) else { return Looked::Passed };
        let is_plain = matches!(self.index.placement(key, part), Some(Placement::Extent(_)));
        if !self.has_space_to_rewrite(index, choice.frames_hoped_for, is_plain) {
            return Looked::Passed;
        }
        if is_plain && self.unclaimed_pages(index) == 0 {
            // Looked at again at each step: a page more than is needed would take a whole extent.
            self.page_seekers.insert(index);
            self.rewriting.seeks_page = Some(index);
            self.rewriting.next_at = self.now;
            return Looked::Begun;
        }
        self.read_to_rewrite((key, part), choice, out)
    }

    /// Whether so many frames can be taken, and a page for a part that has none, while guests find as much space as they need.
    fn has_space_to_rewrite(&mut self, index: u8, frames: u64, is_plain: bool) -> bool {
        self.has_space_for(index, (frames + FRAMES_LEFT, u64::from(is_plain)), 0)
    }

    fn read_to_rewrite(&mut self, (key, part): (u32, u32), choice: Choice, out: &mut Vec<Output>) -> Looked {
        let mut frames: Vec<u64> = choice.blocks.iter().filter_map(|(_, entry)| frame_of(entry)).collect();
        frames.sort_unstable();
        frames.dedup();
        let Some(buffer) = self.own_pool.take(frames.len() * BLOCK_SIZE as usize) else {
            self.rewriting.next_at = self.now + MEMORY_PAUSE;
            return Looked::Begun;
        };
        let (component, id) = (key, self.components[key].record.id);
        let member = self.components[key].member;
        let device = self.members[member].id;
        let runs: Vec<(usize, usize)> = runs_of(&frames);
        for &(first, count) in &runs {
            let buffer = buffer.slice(first * BLOCK_SIZE as usize, count * BLOCK_SIZE as usize);
            let request = ReadRequest { offset: frames[first] * BLOCK_SIZE, buffer, gentle: true };
            self.issue_read(member, Purpose::RewriteRead { first: first as u16 }, request, out);
        }
        let (bad, moves, stage) = (BadBlocks::default(), Vec::new(), Stage::Reading(runs.len()));
        let has_failed = false;
        let work = RewriteWork {
            component,
            id,
            part,
            member,
            device,
            choice,
            frames,
            buffer,
            bad,
            moves,
            stage,
            has_failed,
        };
        self.rewriting.work = Some(work);
        self.rewriting.go_on_from(part + 1);
        Looked::Begun
    }

    /// Frames that stand side by side are read, the first of which is that one of the part under way.
    pub(super) fn rewrite_read_done(
        &mut self,
        first: u16,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let work = self.rewriting.work.as_mut().expect("its reads are under way");
        let Stage::Reading(left) = work.stage else { unreachable!("its reads are under way") };
        match result {
            Ok(bad) => bad.indices().for_each(|at| work.bad.note(first + at as u16)),
            Err(()) => work.has_failed = true,
        }
        work.stage = Stage::Reading(left - 1);
        if left > 1 {
            return;
        }
        let work = self.rewriting.work.as_ref().expect("its reads are under way");
        let algorithm =
            self.components.get(work.component).and_then(|one| one.record.compression.algorithm());
        let Some(algorithm) = algorithm.filter(|_| !work.has_failed && self.is_component_of(work)) else {
            return self.end_rewrite();
        };
        let checksums = work.choice.blocks.iter().map(|(_, entry)| entry.checksum).collect();
        let computation = Computation::Repack { slots: work.slots(), checksums, algorithm };
        let task = Task { computation, data: smallvec::smallvec![work.buffer.clone()] };
        let id = self.compute_ids.next();
        self.rewriting.work.as_mut().expect("its reads are under way").stage = Stage::Computing(id);
        out.push(Output::Compute { id, task });
    }

    /// Whether the component of the part under way is there, on the same device.
    fn is_component_of(&self, work: &RewriteWork) -> bool {
        self.components.get(work.component).is_some_and(|component| component.record.id == work.id)
            && self.check_component(work.component, work.part).is_ok()
            && self.members[work.member].id == work.device
    }

    /// The blocks are compressed: if enough is gained, they are written to fresh frames.
    pub(super) fn repacked(&mut self, id: ComputeId, repacked: &[Repacked], out: &mut Vec<Output>) {
        let Some(work) = self.rewriting.work.as_ref().filter(|work| work.stage == Stage::Computing(id))
        else {
            return;
        };
        if !self.is_component_of(work) {
            return self.end_rewrite();
        }
        let packed = work.packed(repacked);
        let units: Vec<u8> = packed.iter().map(|(_, found)| found.units()).collect();
        let border = if self.rules.hold(Rule::KeepSlotsInFrames) { Border::Kept } else { Border::Crossed };
        let (places, count) = pack(&units, border);
        let member = &self.members[work.member];
        let used = |frame: u64| used_units(member.frame_at(frame * UNITS_PER_BLOCK), &member.pools);
        let freed = frames_freed(packed.iter().map(|((_, entry), _)| entry), used);
        let (part, index) = ((work.component, work.part), work.member);
        let is_plain = matches!(self.index.placement(part.0, part.1), Some(Placement::Extent(_)));
        if !is_worth(work.choice.frames, freed, count as u64) {
            self.note_tried(part);
            return self.end_rewrite();
        }
        if !self.has_space_to_rewrite(index, count as u64, is_plain) {
            return self.end_rewrite();
        }
        let Some(bytes) = self.own_pool.take_zeroed(count * BLOCK_SIZE as usize) else {
            return self.end_rewrite();
        };
        self.write_repacked(index, &packed, &places, bytes, out);
    }

    /// Puts the blocks into fresh frames, which are written.
    fn write_repacked(
        &mut self,
        index: u8,
        packed: &[((u8, Entry), &Repacked)],
        places: &[Place],
        mut bytes: Buffer,
        out: &mut Vec<Output>,
    ) {
        let count = bytes.len() / BLOCK_SIZE as usize;
        let frames = self.take_frames(index, count);
        assert!(frames.len() == count, "there was space for them");
        let member = &mut self.members[index];
        let mut used: Vec<u8> = vec![0; count];
        let mut moves = Vec::with_capacity(packed.len());
        for (((block, from), found), place) in packed.iter().zip(places) {
            let Repacked::Packed { slot, form } = found else { unreachable!("the others are left out") };
            let start = place.frame * BLOCK_SIZE as usize + usize::from(place.unit) * SECTOR_SIZE as usize;
            let end = (start + slot.len()).min(bytes.len());
            bytes.bytes_mut()[start..end].copy_from_slice(&slot[..end - start]);
            used[place.frame] |= Slot::of(frames[place.frame], place.unit, form.units).units();
            let unit = member.unit_of(frames[place.frame]) + u64::from(place.unit);
            let to = form.entry_at(unit, from.checksum).born(from.born);
            moves.push(Move { block: *block, from: *from, to });
        }
        let mut runs: Vec<RestRun> = Vec::new();
        for (at, frame) in frames.iter().enumerate() {
            member.pools.narrow(Slot::of_units(*frame, used[at]));
            let data = bytes.slice(at * BLOCK_SIZE as usize, BLOCK_SIZE as usize);
            RestRun::add(&mut runs, member.unit_of(*frame), &data);
        }
        let work = self.rewriting.work.as_mut().expect("its blocks were compressed");
        (work.moves, work.stage) = (moves, Stage::Writing(runs.len()));
        for RestRun { unit, buffers, .. } in runs {
            let io = self.issue(index, Purpose::RewriteWrite);
            let offset = unit * SECTOR_SIZE;
            out.push(Output::Write { io, member: index, offset, buffers, stable: false, gentle: true });
        }
    }

    /// A write of fresh frames ended.
    pub(super) fn rewrite_write_done(&mut self, member: u8, result: Result<(), ()>, out: &mut Vec<Output>) {
        let work = self.rewriting.work.as_mut().expect("its writes are under way");
        let Stage::Writing(left) = work.stage else { unreachable!("its writes are under way") };
        match result {
            Ok(()) => self.members[member].is_unsynced = true,
            Err(()) => work.has_failed = true,
        }
        work.stage = if left > 1 { Stage::Writing(left - 1) } else { Stage::Written };
        if left == 1 {
            self.name_rewritten(out);
        }
    }

    /// The fresh frames are written: the map page names them for all blocks that stand where they stood.
    fn name_rewritten(&mut self, out: &mut Vec<Output>) {
        let work = self.rewriting.work.as_ref().expect("it is written");
        let (key, part, index) = (work.component, work.part, work.member);
        let is_current = !work.has_failed && self.is_component_of(work) && self.may_rewrite(key, part);
        let Some(page) = is_current.then(|| self.page_of_part(key, part)).flatten() else {
            return self.end_rewrite();
        };
        if !self.members[index].table.is_ready(page) {
            if !std::mem::replace(&mut self.rewriting.waits_for_page, true) {
                self.need_page(index, page, PageWaiter::Rewrite, out);
            }
            return;
        }
        let is_plain = matches!(self.index.placement(key, part), Some(Placement::Extent(_)));
        if is_plain && self.unclaimed_pages(index) == 0 {
            return self.end_rewrite();
        }
        let page = self.page_for(key, part, None);
        let mut map: MapPage = self.members[index].table.map(page).expect("it is in memory").clone();
        let keeps_newer = self.rules.hold(Rule::KeepNewerThanRewritten);
        let work = self.rewriting.work.as_mut().expect("it is written");
        let moves = std::mem::take(&mut work.moves);
        for Move { block, from, to } in moves {
            let entry = &mut map.entries[usize::from(block)];
            if *entry != from && keeps_newer {
                self.free_slot(index, to);
                continue;
            }
            let former = std::mem::replace(entry, to);
            self.components[key].packed.add(to);
            self.free_entry(key, former);
            self.counters.rewritten_bytes += BLOCK_SIZE;
        }
        self.members[index].table.replace(page, Content::Map(Box::new(map)));
        self.note_tried((key, part));
        self.rewriting.parts_unsettled += 1;
        self.settle_rewritten(PARTS_PER_CHECKPOINT);
        self.end_rewrite();
    }

    /// A part was tried: what stands as it is in it is not tried again before it changes.
    fn note_tried(&mut self, (key, part): (u32, u32)) {
        let index = self.components[key].member;
        let page = self.page_of_part(key, part);
        if page.is_some_and(|page| self.members[index].table.is_ready(page)) {
            let like = Likeness::of(&self.live_entries(key, part));
            self.rewriting.note_tried((key, part), like);
        }
    }

    /// The part under way is done with: frames that no page names are given back, and the next part is looked at after a rest.
    fn end_rewrite(&mut self) {
        let Some(work) = self.rewriting.work.take() else { return };
        let is_same = self.members.get(work.member).is_some_and(|member| member.id == work.device);
        if is_same {
            work.moves.iter().for_each(|one| self.free_slot(work.member, one.to));
        }
        self.rest_after(work.bytes_read());
    }
}

/// The blocks of a part that stand in an extent of its own, by its descriptor.
fn entries_of(descriptor: &Descriptor, unit_of: impl Fn(u8) -> u64) -> Vec<(u8, Entry)> {
    let allocated = (0..=u8::MAX).filter(|block| descriptor.is_allocated(usize::from(*block)));
    allocated
        .map(|block| (block, Entry::plain(unit_of(block), descriptor.checksums[usize::from(block)], 0)))
        .collect()
}

/// Frames side by side: where the first of them stands in the list, and how many they are.
fn runs_of(frames: &[u64]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        match runs.last_mut() {
            Some((first, count)) if frames[*first] + *count as u64 == *frame => *count += 1,
            Some(_) | None => runs.push((at, 1)),
        }
    }
    runs
}
