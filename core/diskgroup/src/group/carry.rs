//! Carrying held blocks forward: at the end of a destaging round, those that stand in the part of the log which the round was about are
//! written again, so that the tail can pass them (docs/design/0042).
//!
//! Blocks that are promoted meanwhile are destaged before the round ends. So when it has ended, nothing needs the log
//! before its boundary. Where the log has no room for all of it, the round ends at the oldest block that is left.

use super::Group;
use crate::carry::Carried;
use crate::destage::{LogRun, log_runs};
use crate::format::batch::{ExtentLocation, Origin, Record};
use crate::held::{HeldEntry, HeldPart, PROMOTED_LAYER, Settling};
use crate::index::{Dirty, Newest};
use crate::io::Output;
use crate::limits;
use crate::log::BatchStart;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::unreadable::{BadBlocks, ReadRequest};
use crate::work::WRITE_RECORD_SIZE;
use base::Buffer;
use base::request::Buffers;
use base::units::BLOCK_SIZE;

impl Group {
    /// Whether a round that has visited all its extents may end, and how far the tail may go then.
    pub(super) fn finish_sweep(&mut self, boundary: BatchStart, out: &mut Vec<Output>) -> Option<BatchStart> {
        if self.held.take_settled() {
            let due = self.due(boundary.position);
            if !due.is_empty() {
                self.destaging.extend_round(due);
                self.feed_round(out);
                return None;
            }
        }
        if !self.rules.hold(Rule::CarryHeld) {
            return Some(boundary);
        }
        let is_needed = !self.held.is_empty() || self.carrying.is_reading();
        if is_needed && !self.carry_forward(boundary, out) {
            return None;
        }
        self.carrying.end();
        Some(self.passable(boundary))
    }

    /// How far the tail may go by what is held, or became content too late for the round.
    fn passable(&self, boundary: BatchStart) -> BatchStart {
        match self.held.oldest().into_iter().chain(self.index.oldest_late()).min() {
            Some(oldest) if oldest < boundary.position => self.log.start_of(oldest),
            Some(_) | None => boundary,
        }
    }

    /// Writes held blocks again, as far as it can be done now. Says whether nothing is left to do, or to wait for.
    fn carry_forward(&mut self, boundary: BatchStart, out: &mut Vec<Output>) -> bool {
        if !self.carrying.is_begun() {
            let boundary = self.carry_boundary(boundary);
            self.carrying.begin(boundary, self.held.parts_before(boundary));
        }
        self.carrying.waits_for_memory = false;
        loop {
            if self.carrying.is_reading() {
                return false;
            }
            if self.carrying.is_ready() && !self.push_chunk() {
                return self.is_out_of_room();
            }
            let boundary = self.carrying.boundary();
            let held = &self.held;
            let is_needed = |(component, part): (u32, u32)| {
                let oldest = held.of(component, part).and_then(HeldPart::oldest);
                oldest.is_some_and(|oldest| oldest < boundary)
            };
            self.carrying.retain_parts(is_needed);
            let due = self.due_blocks(boundary);
            if due.is_empty() {
                return self.carrying.parts().next().is_none();
            }
            if !self.begin_chunk(due, out) {
                self.carrying.waits_for_memory = true;
                return false;
            }
        }
    }

    /// Up to where a round writes held blocks again: an eighth of the log, or as much as there is room for, but the oldest batch that holds any in
    /// any case. For that, guests leave room.
    fn carry_boundary(&self, boundary: BatchStart) -> u64 {
        let eighth = self.log.start_at_or_after(self.round_start() + self.log.blocks() / 8, boundary);
        let boundary = boundary.position.min(eighth.position);
        let room = self.log.free_blocks().saturating_sub(self.carry_reserve()) / 2;
        let positions = self.held.positions_before(boundary);
        let (Some(first), Some(beyond)) = (positions.first(), positions.get(room as usize)) else {
            return boundary;
        };
        let behind_first = self.log.start_at_or_after(first + 1, self.log.next_start()).position;
        self.log.start_of(*beyond).position.max(behind_first).min(boundary)
    }

    /// What parts hold before the boundary, as far as it goes into one batch, but those that must wait.
    fn due_blocks(&self, boundary: u64) -> Vec<Carried> {
        let mut due = Vec::new();
        for part in self.carrying.parts().filter(|part| !self.must_wait(*part)) {
            let entries = self.held.of(part.0, part.1).map_or(&[][..], |held| held.entries());
            for entry in entries.iter().filter(|entry| entry.position < boundary) {
                let is_data = entry.newest == Newest::Data;
                let data = self.index.retained(entry.position).filter(|_| is_data).cloned();
                due.push(Carried { part, entry: *entry, data });
                if due.len() == limits::CARRIED_BLOCKS_MAX {
                    return due;
                }
            }
        }
        due
    }

    /// Whether records about a part are on their way whose effect decides what is held, or where the part stands.
    fn must_wait(&self, part: (u32, u32)) -> bool {
        let Some(held) = self.held.of(part.0, part.1) else { return false };
        let is_promoted = |entry: &HeldEntry| entry.layer == PROMOTED_LAYER;
        let has_promoted = held.entries().iter().any(is_promoted);
        held.is_pending()
            || self.exclusive.is_held(part)
            || (has_promoted && self.index.of(part.0, part.1).is_some_and(Dirty::is_pending))
    }

    /// Reads blocks that are not in memory. False, with nothing done, if memory is short.
    fn begin_chunk(&mut self, blocks: Vec<Carried>, out: &mut Vec<Output>) -> bool {
        let is_missing = |one: &&Carried| one.entry.newest == Newest::Data && one.data.is_none();
        let mut missing: Vec<u64> = blocks.iter().filter(is_missing).map(|one| one.entry.position).collect();
        missing.sort_unstable();
        missing.dedup();
        let runs = log_runs(missing.into_iter(), self.log.blocks());
        let with_buffer = |run: LogRun| Some((run, self.own_pool.take((run.count * BLOCK_SIZE) as usize)?));
        let Some(reads) = runs.into_iter().map(with_buffer).collect::<Option<Vec<_>>>() else { return false };
        self.carrying.begin_chunk(blocks, reads.len());
        for (run, buffer) in reads {
            let purpose = Purpose::CarryRead { run, buffer: buffer.clone() };
            let request = ReadRequest { offset: self.log_offset(run.position), buffer, gentle: true };
            self.issue_read(0, purpose, request, out);
        }
        true
    }

    pub(super) fn carry_read_done(
        &mut self,
        run: LogRun,
        buffer: &Buffer,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let bad = result.expect("a failed log device closes the group");
        for ((component, part), block) in self.carrying.read_done(run, buffer, &bad) {
            if let Some(component) = self.components.get(component).map(|found| found.record.id) {
                self.note_damage(0, (component, part, u16::from(block)), 0, out);
            }
        }
    }

    /// Log blocks that held blocks leave free when they are written again.
    fn carry_reserve(&self) -> u64 {
        self.checkpoint_room() + limits::log_blocks_reserved(self.log.blocks())
    }

    /// Puts the blocks that were read into the next batch, but what is not held any more, or has to wait. False, with nothing done, if there
    /// is no room.
    fn push_chunk(&mut self) -> bool {
        let records = limits::CARRIED_BLOCKS_MAX * WRITE_RECORD_SIZE;
        if !self.has_room(records, limits::CARRIED_BLOCKS_MAX as u64, self.carry_reserve()) {
            return false;
        }
        let mut blocks = self.carrying.take_chunk();
        blocks.retain(|one| self.is_still_held(one));
        blocks.sort_by_key(|one| (one.part, one.entry.layer, one.entry.block));
        for of_part in blocks.chunk_by(|one, next| one.part == next.part) {
            let part = of_part[0].part;
            let held = self.held.of(part.0, part.1).filter(|_| !self.must_wait(part));
            if held.is_none() {
                continue;
            }
            let place = self.place_of_held(part);
            for run in of_part.chunk_by(continues) {
                self.push_carried(part, place.of(&run[0].entry), run);
            }
        }
        true
    }

    fn is_still_held(&self, Carried { part, entry, .. }: &Carried) -> bool {
        let stands = |other: &HeldEntry| {
            (other.position, other.block, other.layer) == (entry.position, entry.block, entry.layer)
        };
        self.held.of(part.0, part.1).is_some_and(|held| held.entries().iter().any(stands))
    }

    /// Puts blocks side by side into the next batch.
    fn push_carried(&mut self, (key, part): (u32, u32), location: ExtentLocation, run: &[Carried]) {
        let HeldEntry { id, checksum, block, layer, newest, .. } = run[0].entry;
        let component = self.components[key].record.id;
        let (origin, is_content) = (Origin::Copy, layer == PROMOTED_LAYER);
        let is_damaged = newest == Newest::Data && run[0].data.is_none();
        let checksums = run.iter().map(|one| one.entry.checksum).collect();
        let count_less_one = (run.len() - 1) as u8;
        let record = match newest {
            Newest::Data if is_damaged => {
                Record::HoldDamaged { component, part, layer, location, block, id, checksum }
            }
            Newest::Data if is_content => {
                Record::Write { component, part, location, block, id, origin, checksums }
            }
            Newest::Trim if is_content => {
                Record::Trim { component, part, location, block, count_less_one, id, origin }
            }
            Newest::Data => Record::Hold { component, part, layer, location, block, id, origin, checksums },
            Newest::Trim => {
                Record::HoldTrim { component, part, layer, location, block, count_less_one, id, origin }
            }
        };
        let is_promised = !location.is_placed() && newest == Newest::Data;
        if is_promised {
            let places: Vec<(u8, u8)> = run.iter().map(|one| (one.entry.block, one.entry.layer)).collect();
            self.held.pass_promises(key, part, &places);
        }
        self.index.accept((key, part), location, if is_promised { run.len() as u32 } else { 0 });
        if !is_content || is_damaged {
            self.held.accept(key, part, run.len());
        }
        let data: Buffers = run.iter().filter_map(|one| one.data.clone()).collect();
        self.buffer.push(record, None, data);
    }

    /// Whether the log has no room and will not get any before the round ends, which then gains some.
    fn is_out_of_room(&self) -> bool {
        let is_quiet = !self.buffer.is_writing() && self.buffer.is_empty();
        let oldest = self.held.oldest().map(|oldest| self.log.start_of(oldest).position);
        is_quiet && oldest.is_none_or(|oldest| oldest > self.round_start())
    }
}

/// Whether two blocks go into one record.
fn continues(one: &Carried, next: &Carried) -> bool {
    let kind = |carried: &Carried| {
        let HeldEntry { id, layer, newest, settling, .. } = carried.entry;
        (id, layer, newest, settling == Settling::InExtent, carried.data.is_some())
    };
    let is_damaged = one.entry.newest == Newest::Data && one.data.is_none();
    kind(one) == kind(next) && one.entry.block + 1 == next.entry.block && !is_damaged
}
