//! Reads: where each block's newest version stands, and whether what was read is that.
//!
//! While a read is under way the block may be destaged, trimmed or written again, and the location that was read reused.
//! So a checksum that does not match is first a question: does the block still stand where it was looked up? If not,
//! the read starts over; if so, it is read once more, and only then is the block damaged.

use super::Group;
use super::hold::check_layer;
use crate::compute::ComputeId;
use crate::format::map::Entry;
use crate::index::{Dirty, Newest};
use crate::io::{Completion, DamagedBlock, Event, GroupError, Output};
use crate::limits;
use crate::lineage::Lineage;
use crate::member::Member;
use crate::part_map::Placement;
use crate::read::{BlockLocation, BlockRange, Mismatch, ReadState, RunRead};
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::PageWaiter;
use crate::unreadable::{BadBlocks, ReadRequest};
use base::ComponentId;
use base::units::{BLOCKS_PER_EXTENT, SECTOR_SIZE};
use smallvec::SmallVec;

/// Why the locations of a range's blocks are not known now.
pub(super) enum Unknown {
    /// The descriptor must be read first.
    NeedsPage { member: u8, page: u32 },
    /// What would tell is damaged.
    Damaged,
    /// What told of this block is damaged.
    DamagedBlock { block: u16 },
}

impl Group {
    pub(super) fn read(&mut self, mut read: ReadState, out: &mut Vec<Output>) {
        let BlockRange { component, layer, block, count, .. } = read.range();
        check_layer(layer);
        assert!(
            count >= 1 && block as usize + count as usize <= BLOCKS_PER_EXTENT,
            "a read lies within its part"
        );
        read.begin(self.components.get(component).map(|component| component.record.id));
        let key = self.reads.begin(read);
        self.start_read(key, out);
    }

    /// Looks the blocks up and asks the devices for them.
    pub(super) fn start_read(&mut self, key: u32, out: &mut Vec<Output>) {
        let range = self.reads[key].range();
        if let Err(error) = self.check_read(key) {
            return self.end_read(key, Err(error), out);
        }
        let mut locations: SmallVec<[BlockLocation; 4]> = SmallVec::new();
        match self.look_up(range, &mut locations) {
            Ok(()) => {}
            Err(Unknown::Damaged) => return self.end_read(key, Err(GroupError::Damaged), out),
            Err(Unknown::DamagedBlock { block }) => {
                return self.end_damaged(key, Mismatch { block, location: BlockLocation::Lost }, out);
            }
            Err(Unknown::NeedsPage { member, page }) => {
                return self.need_page(member, page, PageWaiter::Read(key), out);
            }
        }
        if self.reads[key].is_of_checksums() {
            let checksums = locations.iter().map(|location| location.checksum()).collect();
            return self.end_read(key, Ok(Completion::Checksums(checksums)), out);
        }
        if !self.reads[key].plan(&locations, &self.index, &self.pool, self.log.blocks()) {
            self.index.give_back(64);
            return self.reads.wait(key);
        }
        self.issue_runs(key, out);
        if !self.reads[key].is_waiting() {
            self.finish_read(key, out);
        }
    }

    /// Whether what is read is there. It may have been deleted since the read began: then what stood where it was may be something else by now.
    fn check_read(&self, key: u32) -> Result<(), GroupError> {
        let read = &self.reads[key];
        let BlockRange { component, part, snapshot, .. } = read.range();
        self.check_component(component, part)?;
        let component = &self.components[component];
        match Some(component.record.id) == read.component() {
            false => Err(GroupError::NoComponent),
            true if snapshot > 0 && component.lineage.living(snapshot).is_none() => {
                Err(GroupError::NoSnapshot)
            }
            true => Ok(()),
        }
    }

    /// Where each of the blocks stands.
    pub(super) fn look_up(
        &mut self,
        range: BlockRange,
        locations: &mut SmallVec<[BlockLocation; 4]>,
    ) -> Result<(), Unknown> {
        let BlockRange { component, part, layer, snapshot, block, count } = range;
        let index = self.components[component].member;
        let held = self.held.of(component, part).filter(|_| snapshot == 0);
        // A part that is still to be taken back is at rest as the snapshot sees it.
        let lineage = &self.components[component].lineage;
        let rollback = lineage.due_to(part).filter(|due| snapshot == 0 || snapshot > due.number);
        let at_rest = BlockRange { snapshot: rollback.map_or(snapshot, |rollback| rollback.number), ..range };
        let dirty = self.index.of(component, part);
        for block in block..block + count {
            let in_layer = held.and_then(|held| held.read(block as u8, layer));
            let in_layer = in_layer.map(|entry| (entry.newest, entry.position, entry.checksum));
            let in_log = || {
                let entry = match snapshot {
                    0 => dirty?.find(block as u8)?,
                    number => dirty?.find_before(block as u8, number)?,
                };
                Some((entry.newest, entry.position, entry.checksum))
            };
            if let Some((newest, position, checksum)) = in_layer.or_else(in_log) {
                locations.push(match newest {
                    Newest::Data => BlockLocation::Log { position, checksum },
                    Newest::Trim => BlockLocation::Hole,
                });
                continue;
            }
            if dirty.is_some_and(|dirty| dirty.direct().is_none() && dirty.is_reset()) {
                locations.push(BlockLocation::Hole);
                continue;
            }
            let found = match (self.index.placement(component, part), dirty.and_then(Dirty::direct)) {
                (Some(Placement::Extent(extent)), Some(direct)) => {
                    let checksum = direct.checksums[block as usize];
                    self.members[index].rest(index, extent, block, checksum)
                }
                (Some(Placement::Extent(extent)), None) => {
                    rest_of_extent(&mut self.members[index], index, extent, block)?
                }
                (Some(Placement::Page(page)), _) => {
                    let lineage = &self.components[component].lineage;
                    rest_of_map((&mut self.members[index], index), lineage, page, &at_rest, block)?
                }
                // A lost extent or page may be the one that tells of this part.
                (None, _) if self.members[index].lost_extents > 0 => return Err(Unknown::Damaged),
                (None, _) => BlockLocation::Hole,
            };
            if found == BlockLocation::Lost {
                return Err(Unknown::DamagedBlock { block });
            }
            locations.push(found);
        }
        Ok(())
    }

    fn issue_runs(&mut self, key: u32, out: &mut Vec<Output>) {
        let mut next = 0;
        while let Some(RunRead { run, location, buffer }) = self.reads[key].begin_run(next) {
            next = run + 1;
            let (member, offset) = match location {
                BlockLocation::Log { position, .. } => (0, self.log_offset(position)),
                BlockLocation::Rest { member, unit, .. } => (member, unit * SECTOR_SIZE),
                BlockLocation::Packed { .. } => unreachable!("their frames are read"),
                BlockLocation::Hole | BlockLocation::Lost => unreachable!("a hole has no buffer"),
            };
            let purpose = Purpose::Read { read: key, run };
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
        self.reads[key].run_done(run, result);
        if !self.reads[key].is_waiting() {
            self.finish_read(key, out);
        }
    }

    fn finish_read(&mut self, key: u32, out: &mut Vec<Output>) {
        let read = &mut self.reads[key];
        if read.has_failed() {
            return self.end_read(key, Err(GroupError::DeviceLost), out);
        }
        if let Some(task) = read.unpack(&mut self.unpacker) {
            let id = self.compute_ids.next();
            self.reads.await_unpacking(id, key);
            return out.push(Output::Compute { id, task });
        }
        if !read.verifies() {
            return self.finish_unverified(key, out);
        }
        let trusts_packed = !self.rules.hold(Rule::VerifyUnpacked);
        let mismatch = read.first_mismatch(trusts_packed).filter(|_| self.rules.hold(Rule::VerifyChecksums));
        match mismatch {
            None => self.deliver(key, out),
            Some(mismatch) if read.is_damaged(mismatch) => self.end_damaged(key, mismatch, out),
            Some(_) => self.restart_read(key, out),
        }
    }

    /// Blocks of a read are taken out of their slots.
    pub(super) fn unpacked(&mut self, id: ComputeId, blocks: &[u8], bad: &[u16], out: &mut Vec<Output>) {
        let Some(key) = self.reads.end_unpacking(id) else { return };
        self.reads[key].unpacked(blocks, bad);
        self.finish_read(key, out);
    }

    fn restart_read(&mut self, key: u32, out: &mut Vec<Output>) {
        self.reads[key].restart();
        self.start_read(key, out);
    }

    /// Without checksums, only locations that did not change since the look-up tell that the data is the block's.
    fn finish_unverified(&mut self, key: u32, out: &mut Vec<Output>) {
        if let Err(error) = self.check_read(key) {
            return self.end_read(key, Err(error), out); // It was deleted meanwhile.
        }
        let mut locations = SmallVec::new();
        let is_known = self.look_up(self.reads[key].range(), &mut locations).is_ok();
        let read = &self.reads[key];
        if !(is_known && read.stood_at(&locations)) && read.may_retry() {
            return self.restart_read(key, out);
        }
        match read.first_unreadable() {
            None => self.deliver(key, out),
            Some(unreadable) => self.end_damaged(key, unreadable, out),
        }
    }

    fn end_damaged(&mut self, key: u32, Mismatch { block, location }: Mismatch, out: &mut Vec<Output>) {
        let range = self.reads[key].range();
        let BlockRange { component, part, .. } = range;
        let found = self.components.get(component).map(|found| (found.record.id, found.member));
        let Some((component, found_member)) = found else {
            return self.end_read(key, Err(GroupError::NoComponent), out); // It was deleted meanwhile.
        };
        let member = match location {
            BlockLocation::Rest { member, .. } | BlockLocation::Packed { member, .. } => member,
            BlockLocation::Lost => found_member,
            BlockLocation::Log { .. } | BlockLocation::Hole => 0,
        };
        // What the live disk sees, too, is damaged there.
        let mut live = SmallVec::new();
        let is_live = range.snapshot > 0
            && self.look_up(BlockRange { snapshot: 0, block, count: 1, ..range }, &mut live).is_ok()
            && live[0] == location;
        let snapshot = if is_live { 0 } else { range.snapshot };
        self.note_damage(member, (component, part, block), snapshot, out);
        self.end_read(key, Err(GroupError::Damaged), out);
    }

    /// Counts a damaged block, and tells of it the first time. `snapshot`: the one that sees it where the live disk does not; else 0.
    pub(super) fn note_damage(
        &mut self,
        member: u8,
        (component, part, block): (ComponentId, u32, u16),
        snapshot: u32,
        out: &mut Vec<Output>,
    ) {
        let state = &mut self.members[member];
        let name = (component, part, block, snapshot);
        if state.damaged_untold.len() < limits::DAMAGED_BLOCKS_NAMED_MAX {
            state.damaged_untold.insert((component, DamagedBlock { part, block, snapshot }));
        }
        if state.damaged_named.contains(&name) {
            return;
        }
        state.damaged_blocks += 1;
        if state.damaged_named.len() < limits::DAMAGED_BLOCKS_NAMED_MAX {
            state.damaged_named.push(name);
        }
        out.push(Output::Event(Event::BlockDamaged { member, component, part, block, snapshot }));
    }

    fn deliver(&mut self, key: u32, out: &mut Vec<Output>) {
        let answer = self.reads[key].deliver();
        self.end_read(key, Ok(answer), out);
    }

    fn end_read(&mut self, key: u32, result: Result<Completion, GroupError>, out: &mut Vec<Output>) {
        let op = self.reads.end(key);
        out.push(Output::Done { op, result });
    }

    /// Reads that waited for memory try again, in order.
    pub(super) fn retry_reads(&mut self, out: &mut Vec<Output>) {
        for _ in 0..self.reads.waiting_count() {
            let Some(key) = self.reads.next_waiting() else { return };
            self.start_read(key, out);
            if self.reads.is_last_waiting(key) {
                return; // Memory is still short.
            }
        }
    }
}

/// Where a block stands by the descriptor of its extent.
fn rest_of_extent(member: &mut Member, index: u8, extent: u32, block: u16) -> Result<BlockLocation, Unknown> {
    let (page, _) = member.table.page_of(extent);
    let Some(found) = member.table.descriptor(extent) else {
        return Err(Unknown::NeedsPage { member: index, page });
    };
    let checksum = found.checksums[block as usize];
    match found.is_allocated(block as usize) {
        true => Ok(member.rest(index, extent, block, checksum)),
        false => Ok(BlockLocation::Hole),
    }
}

/// Where a block of a mapped part stands, as the live disk or a snapshot sees it (docs/design/0044, rule 1).
fn rest_of_map(
    (member, index): (&mut Member, u8),
    lineage: &Lineage,
    page: u32,
    range: &BlockRange,
    block: u16,
) -> Result<BlockLocation, Unknown> {
    let Some(map) = member.table.map(page) else {
        return Err(Unknown::NeedsPage { member: index, page });
    };
    let mut entry = map.entries[block as usize];
    if range.snapshot > 0 {
        let mut seen: Option<u32> = None;
        for page in lineage.seen_by(range.part, range.snapshot) {
            let Some(delta) = member.table.delta(page) else {
                return Err(Unknown::NeedsPage { member: index, page });
            };
            for group in delta.groups.iter().filter(|group| group.snapshot >= range.snapshot) {
                let Some(found) = delta.find(group.snapshot, block as u8) else { continue };
                if found == Entry::LOST_PAGE {
                    return Ok(BlockLocation::Lost);
                }
                // Beside a lost entry of the same snapshot, the other one counts: it was there before the map page was lost.
                let is_better = seen == Some(group.snapshot) && entry.is_lost();
                if is_better || seen.is_none_or(|seen| group.snapshot < seen) {
                    (entry, seen) = (found, Some(group.snapshot));
                }
            }
        }
        if member.lost_pages > 0 && seen != Some(range.snapshot) {
            return Ok(BlockLocation::Lost); // A lost page may have told of the block as this snapshot sees it.
        }
    }
    let (form, checksum) = (entry.form(), entry.checksum);
    Ok(match entry.unit() {
        Some(unit) if form.is_packed() => BlockLocation::Packed { member: index, unit, form, checksum },
        Some(unit) => BlockLocation::Rest { member: index, unit, checksum },
        None if entry.is_lost() => BlockLocation::Lost,
        None => BlockLocation::Hole,
    })
}
