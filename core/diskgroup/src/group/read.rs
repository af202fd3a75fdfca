//! Reads: where each block's newest version stands, and whether what was read is that.
//!
//! While a read is under way the block may be destaged, trimmed or written again, and the place that was read reused.
//! So a checksum that does not match is first a question: does the block still stand where it was looked up? If not,
//! the read starts over; if so, it is read once more, and only then is the block damaged.

use super::{Group, Phase};
use crate::index::{Dirty, Newest};
use crate::io::{Answer, ComponentKey, Event, GroupError, Op, Output};
use crate::limits;
use crate::read::{Place, ReadState, Run};
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::PageWaiter;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::ComponentId;
use base::checksum::crc32c;
use base::request::{Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT};
use smallvec::SmallVec;
use std::ops::Range;

/// Why the places of a range cannot be told now.
enum Unknown {
    /// The descriptor must be read first.
    NeedsPage { member: u8, page: u32 },
    /// The descriptor is damaged.
    Damaged,
}

impl Group {
    #[expect(clippy::too_many_arguments, reason = "the fields of one input")]
    pub(super) fn read(
        &mut self,
        op: Op,
        component: ComponentKey,
        part: u32,
        block: u16,
        count: u16,
        verify: bool,
        out: &mut Vec<Output>,
    ) {
        assert!(
            count >= 1 && block as usize + count as usize <= BLOCKS_PER_EXTENT,
            "a read lies within its part"
        );
        if let Err(error) = self.check_component(component.0, part) {
            return out.push(Output::Done { op, result: Err(error) });
        }
        let read = ReadState {
            op,
            component: component.0,
            part,
            block,
            count,
            verify,
            runs: SmallVec::new(),
            outstanding: 0,
            retries: 0,
            has_failed: false,
            suspect: None,
        };
        let key = self.reads.insert(read) as u32;
        self.start_read(key, out);
    }

    /// Looks the blocks up and asks the devices for them.
    pub(super) fn start_read(&mut self, key: u32, out: &mut Vec<Output>) {
        let ReadState { component, part, block, count, .. } = self.reads[key as usize];
        if let Err(error) = self.check_component(component, part) {
            return self.end_read(key, Err(error), out);
        }
        let mut places: SmallVec<[Place; 4]> = SmallVec::new();
        match self.look_up(component, part, block, count, &mut places) {
            Ok(()) => {}
            Err(Unknown::Damaged) => return self.end_read(key, Err(GroupError::Damaged), out),
            Err(Unknown::NeedsPage { member, page }) => {
                return self.need_page(member, page, PageWaiter::Read(key), out);
            }
        }
        if !self.plan_runs(key, &places) {
            self.reads[key as usize].runs.clear();
            self.index.give_back(64);
            self.reads_waiting.push_back(key);
            return;
        }
        self.issue_runs(key, out);
        if self.reads[key as usize].outstanding == 0 {
            self.finish_read(key, out);
        }
    }

    /// Where each of the blocks stands.
    fn look_up(
        &mut self,
        component: u32,
        part: u32,
        block: u16,
        count: u16,
        places: &mut SmallVec<[Place; 4]>,
    ) -> Result<(), Unknown> {
        let index = self.components[component].member;
        let member = &mut self.members[index];
        let Some(extent) = self.index.extent_of(component, part) else {
            if member.lost_extents > 0 {
                return Err(Unknown::Damaged); // A lost extent may be the one that holds this part.
            }
            places.extend((0..count).map(|_| Place::Hole));
            return Ok(());
        };
        let dirty = self.index.of(component, part);
        let mut descriptor = None;
        for block in block..block + count {
            if let Some(entry) = dirty.and_then(|dirty| dirty.find(block as u8)) {
                places.push(match entry.newest {
                    Newest::Data => Place::Log { position: entry.position, checksum: entry.checksum },
                    Newest::Trim => Place::Hole,
                });
                continue;
            }
            if let Some(direct) = dirty.and_then(|dirty| dirty.direct()) {
                let checksum = direct.checksums[block as usize];
                places.push(Place::Rest { member: index, extent, checksum });
                continue;
            }
            if dirty.is_some_and(Dirty::is_reset) {
                places.push(Place::Hole);
                continue;
            }
            if descriptor.is_none() {
                let (page, _) = member.table.page_of(extent);
                descriptor = match member.table.descriptor(extent) {
                    Some(found) => Some(&*found),
                    None => return Err(Unknown::NeedsPage { member: index, page }),
                };
            }
            places.push(match descriptor {
                Some(found) if found.is_allocated(block as usize) => {
                    Place::Rest { member: index, extent, checksum: found.checksums[block as usize] }
                }
                Some(_) | None => Place::Hole,
            });
        }
        Ok(())
    }

    /// Gathers the places into runs, each with its buffer. False if memory is short.
    fn plan_runs(&mut self, key: u32, places: &[Place]) -> bool {
        let first_block = self.reads[key as usize].block;
        let mut at = 0;
        while at < places.len() {
            let retained = match places[at] {
                Place::Log { position, .. } => self.index.retained(position).cloned(),
                Place::Hole | Place::Rest { .. } => None,
            };
            let mut end = at + 1;
            while retained.is_none()
                && end < places.len()
                && places[at].continues(places[end], (end - at) as u64, self.log.blocks())
                && !matches!(places[end], Place::Log { position, .. } if self.index.retained(position).is_some())
            {
                end += 1;
            }
            let is_verified = retained.is_some();
            let buffer = match (retained, places[at]) {
                (Some(buffer), _) => Some(buffer),
                (None, Place::Hole) => None,
                (None, Place::Log { .. } | Place::Rest { .. }) => {
                    match self.pool.take((end - at) * BLOCK_SIZE as usize) {
                        Some(buffer) => Some(buffer),
                        None => return false,
                    }
                }
            };
            let block = first_block + at as u16;
            let places = SmallVec::from_slice(&places[at..end]);
            self.reads[key as usize].runs.push(Run {
                block,
                places,
                buffer,
                is_verified,
                bad: BadBlocks::default(),
            });
            at = end;
        }
        true
    }

    fn issue_runs(&mut self, key: u32, out: &mut Vec<Output>) {
        for index in 0..self.reads[key as usize].runs.len() {
            let run = &self.reads[key as usize].runs[index];
            if run.is_verified {
                continue;
            }
            let Some(buffer) = run.buffer.clone() else { continue };
            let block = run.block;
            let (member, offset) = match run.places[0] {
                Place::Hole => continue,
                Place::Log { position, .. } => (0, self.log_offset(position)),
                Place::Rest { member, extent, .. } => {
                    (member, self.members[member].geometry.block_offset(extent, block as usize))
                }
            };
            self.reads[key as usize].outstanding += 1;
            let purpose = Purpose::Read { read: key, run: index as u16 };
            self.issue_read(member, purpose, ReadRequest { offset, buffer, gentle: false }, out);
        }
    }

    pub(super) fn read_io_done(
        &mut self,
        key: u32,
        run: u16,
        result: Result<BadBlocks, ()>,
        out: &mut Vec<Output>,
    ) {
        let Some(read) = self.reads.get_mut(key as usize) else {
            assert!(!matches!(self.phase, Phase::Open), "a read ends after its device requests");
            return;
        };
        read.outstanding -= 1;
        match result {
            Ok(bad) => read.runs[run as usize].bad = bad,
            Err(()) => read.has_failed = true,
        }
        if read.outstanding == 0 {
            self.finish_read(key, out);
        }
    }

    fn finish_read(&mut self, key: u32, out: &mut Vec<Output>) {
        let read = &self.reads[key as usize];
        if read.has_failed {
            return self.end_read(key, Err(GroupError::DeviceLost), out);
        }
        if !read.verify {
            return self.finish_unverified(key, out);
        }
        match self.first_mismatch(key) {
            None => self.deliver(key, out),
            Some((block, place)) => {
                let read = &mut self.reads[key as usize];
                let is_same = read.suspect == Some((block, place));
                if is_same || read.retries >= limits::READ_RETRIES_MAX {
                    self.report_damage(key, block, place, out);
                    return self.end_read(key, Err(GroupError::Damaged), out);
                }
                read.suspect = Some((block, place));
                self.restart_read(key, out);
            }
        }
    }

    fn restart_read(&mut self, key: u32, out: &mut Vec<Output>) {
        let read = &mut self.reads[key as usize];
        read.retries += 1;
        read.runs.clear();
        self.start_read(key, out);
    }

    /// Without checksums, only places that did not change since the look-up tell that the data is the block's.
    fn finish_unverified(&mut self, key: u32, out: &mut Vec<Output>) {
        let ReadState { component, part, block, count, retries, .. } = self.reads[key as usize];
        let mut places = SmallVec::new();
        let is_known = self.look_up(component, part, block, count, &mut places).is_ok();
        let read = &self.reads[key as usize];
        let is_same = is_known && read.runs.iter().flat_map(|run| run.places.iter()).eq(places.iter());
        if !is_same && retries < limits::READ_RETRIES_MAX {
            return self.restart_read(key, out);
        }
        let unreadable = read.runs.iter().find_map(|run| {
            let index = run.bad.indices().next()?;
            Some((run.block + index as u16, run.places[index]))
        });
        match unreadable {
            None => self.deliver(key, out),
            Some((block, place)) => {
                self.report_damage(key, block, place, out);
                self.end_read(key, Err(GroupError::Damaged), out);
            }
        }
    }

    fn first_mismatch(&self, key: u32) -> Option<(u16, Place)> {
        if !self.rules.hold(Rule::VerifyChecksums) {
            return None;
        }
        let unverified = self.reads[key as usize].runs.iter().filter(|run| !run.is_verified);
        for run in unverified {
            let Some(buffer) = &run.buffer else { continue };
            let blocks = buffer.chunks_exact(BLOCK_SIZE as usize).zip(&run.places);
            for (index, (bytes, place)) in blocks.enumerate() {
                if run.bad.contains(index) || place.checksum() != Some(crc32c(bytes)) {
                    return Some((run.block + index as u16, *place));
                }
            }
        }
        None
    }

    fn report_damage(&mut self, key: u32, block: u16, place: Place, out: &mut Vec<Output>) {
        let read = &self.reads[key as usize];
        let component = self.components[read.component].record.id;
        let part = read.part;
        let member = match place {
            Place::Rest { member, .. } => member,
            Place::Log { .. } | Place::Hole => 0,
        };
        self.note_damage(member, component, part, block, out);
    }

    /// Counts a damaged block, and tells of it the first time.
    pub(super) fn note_damage(
        &mut self,
        member: u8,
        component: ComponentId,
        part: u32,
        block: u16,
        out: &mut Vec<Output>,
    ) {
        let state = &mut self.members[member];
        let name = (component, part, block);
        if state.damaged_named.contains(&name) {
            return;
        }
        state.damaged_blocks += 1;
        if state.damaged_named.len() < limits::DAMAGED_BLOCKS_NAMED_MAX {
            state.damaged_named.push(name);
        }
        out.push(Output::Event(Event::BlockDamaged { member, component, part, block }));
    }

    fn deliver(&mut self, key: u32, out: &mut Vec<Output>) {
        let read = &mut self.reads[key as usize];
        let mut pieces = Pieces::new();
        let mut checksums = SmallVec::new();
        for run in read.runs.drain(..) {
            checksums.extend(run.places.iter().filter_map(|place| place.checksum()));
            let len = run.places.len() as u32 * BLOCK_SIZE as u32;
            pieces.push(run.buffer.map_or(Piece::Hole(len), Piece::Bytes));
        }
        self.end_read(key, Ok(Answer::Data(pieces, checksums)), out);
    }

    fn end_read(&mut self, key: u32, result: Result<Answer, GroupError>, out: &mut Vec<Output>) {
        let read = self.reads.remove(key as usize);
        out.push(Output::Done { op: read.op, result });
    }

    /// Reads that waited for memory try again, in order.
    pub(super) fn retry_reads(&mut self, out: &mut Vec<Output>) {
        for _ in 0..self.reads_waiting.len() {
            let Some(key) = self.reads_waiting.pop_front() else { return };
            self.start_read(key, out);
            if self.reads_waiting.back() == Some(&key) {
                return; // Memory is still short.
            }
        }
    }

    /// Which blocks of a part are backed by space, for guests that ask; `None` if the descriptor is not in memory, in
    /// which case it is being read.
    pub fn allocation(
        &mut self,
        component: ComponentKey,
        part: u32,
        out: &mut Vec<Output>,
    ) -> Option<Result<[bool; BLOCKS_PER_EXTENT], GroupError>> {
        if let Err(error) = self.check_component(component.0, part) {
            return Some(Err(error));
        }
        let mut places = SmallVec::new();
        match self.look_up(component.0, part, 0, BLOCKS_PER_EXTENT as u16, &mut places) {
            Ok(()) => {
                let mut allocated = [false; BLOCKS_PER_EXTENT];
                for (bit, place) in allocated.iter_mut().zip(&places) {
                    *bit = *place != Place::Hole;
                }
                Some(Ok(allocated))
            }
            Err(Unknown::Damaged) => Some(Err(GroupError::Damaged)),
            Err(Unknown::NeedsPage { member, page }) => {
                self.need_page(member, page, PageWaiter::Nobody, out);
                None
            }
        }
    }

    /// The first of some parts of which a block may have space; none if all of them are holes. The steps grow with the space
    /// that is taken: stretches of 512 MiB with nothing in them are passed over.
    pub fn first_backed(&self, component: ComponentKey, parts: Range<u32>) -> Option<u32> {
        match self.components.contains(component.0) {
            true => self.index.first_mapped(component.0, parts).map(|(part, _)| part),
            false => Some(parts.start),
        }
    }
}
