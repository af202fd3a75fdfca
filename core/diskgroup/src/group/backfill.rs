//! Snapshots that a component did not have taken: it gets them later, from another component (docs/design/0051).
//!
//! Such a snapshot is marked late. From then on it sees what the next newer one, or the live disk, saw at that moment. Block by block it is given what
//! it should see where that is something else. Nothing of that goes through the log: the blocks are written to frames, the deltas of the part name
//! them, and a checkpoint makes it stable. Whoever asked must wait for that checkpoint before it tells anybody.

use super::Group;
use crate::backfill::{BackfillWork, Deltas, Stage};
use crate::component::Component;
use crate::destage::RestRun;
use crate::format::map::{Entry, Form, MapPage};
use crate::held::HeldPart;
use crate::index::Dirty;
use crate::io::{Backfill, Completion, ComponentKey, Giving, GroupError, Op, Output};
use crate::part_map::Placement;
use crate::pools::Slot;
use crate::requests::Purpose;
use crate::rules::Rule;
use crate::table::{Content, PageWaiter};
use crate::work::checksums;
use base::ComponentId;
use base::units::{BLOCK_SIZE, SECTOR_SIZE};
use std::ops::Range;

/// Pages that it may take: a map page, and two delta pages, for it adds no more than two entries of each block.
const PAGES: u32 = 3;

impl Group {
    /// Gives blocks to a snapshot.
    pub(super) fn backfill(
        &mut self,
        op: Op,
        component: ComponentKey,
        mut asked: Backfill,
        out: &mut Vec<Output>,
    ) {
        assert!(asked.count >= 1 && asked.block + asked.count <= 256, "it lies within its part");
        let found = checksums(&asked.data);
        let is_damaged = !asked.checksums.is_empty() && asked.checksums != found;
        let result =
            if is_damaged { Err(GroupError::Damaged) } else { self.check_component(component.0, asked.part) };
        if let Err(error) = result {
            return out.push(Output::Done { op, result: Err(error) });
        }
        self.counters.copied_bytes += found.len() as u64 * BLOCK_SIZE;
        asked.checksums = found;
        let Component { member, ref record, .. } = self.components[component.0];
        let (component, id) = (component.0, record.id);
        self.backfills.insert(BackfillWork {
            op,
            component,
            id,
            member,
            asked,
            frames: Vec::new(),
            stage: Stage::Waiting,
        });
    }

    /// A late snapshot was given all that it should see. Answers once that is stable.
    pub(super) fn sync_backfill(
        &mut self,
        op: Op,
        component: ComponentKey,
        number: u32,
        out: &mut Vec<Output>,
    ) {
        let result = match self.check_component(component.0, 0) {
            Ok(()) if self.components[component.0].lineage.complete(number) => Ok(Completion::Done),
            Ok(()) => Err(GroupError::NoSnapshot),
            Err(error) => Err(error),
        };
        if result.is_ok() {
            self.update_list(component.0);
        }
        match result.is_ok() && self.rules.hold(Rule::SyncBackfill) {
            true => self.backfills.want_checkpoint(op),
            false => out.push(Output::Done { op, result }),
        }
    }

    /// Moves on what snapshots are given, as far as that waits for no device.
    pub(super) fn advance_backfills(&mut self, out: &mut Vec<Output>) {
        (self.backfills.wants_destaging, self.backfills.waits_for_frames) = (false, false);
        for key in self.backfills.keys() {
            let work = self.backfills.get(key).expect("it is there");
            let stage = work.stage;
            match self.check_backfill(work) {
                _ if matches!(stage, Stage::Writing(_)) => {}
                Err(error) => self.fail_backfill(key, error, out),
                Ok(()) if !self.is_part_ready(key) => {}
                Ok(()) if stage == Stage::Waiting => self.write_backfill(key, out),
                Ok(()) => self.put_backfill(key, out),
            }
        }
    }

    fn check_backfill(&self, work: &BackfillWork) -> Result<(), GroupError> {
        self.check_component(work.component, work.asked.part)?;
        let component = &self.components[work.component];
        if component.record.id != work.id {
            return Err(GroupError::NoComponent); // Another one has got its key.
        }
        let member = &self.members[component.member];
        let is_there =
            |number: u32| component.lineage.living(number).is_some_and(|one| one.position.is_some());
        let is_known = match work.asked.giving {
            Giving::New => is_there(work.asked.number),
            Giving::AsSeenBy { newer } => is_there(work.asked.number) && is_there(newer),
            Giving::Mend => work.asked.number == 0 || is_there(work.asked.number),
        };
        match is_known {
            false => Err(GroupError::NoSnapshot),
            true if component.lineage.is_rolling_back() => Err(GroupError::SnapshotRefused),
            // What a lost page told of the part nobody knows.
            true if member.lost_pages > 0 || member.lost_extents > 0 => Err(GroupError::Damaged),
            true => Ok(()),
        }
    }

    /// A late snapshot is there already. Only once all that came before it is at rest, and in pages on the device, does it see for good what it sees: of
    /// what the log has, a start tells by the snapshots that there are then what came between which of them.
    pub(super) fn late_snapshot_is_there(&mut self, position: Option<u64>) -> Result<Completion, GroupError> {
        match position {
            Some(_) if !self.rules.hold(Rule::SettleBeforeBackfill) => Ok(Completion::Done),
            Some(position) if position <= self.log.tail() => Ok(Completion::Done),
            Some(position) => {
                self.backfills.await_tail(position);
                Err(GroupError::NotYet)
            }
            None => Err(GroupError::NotYet),
        }
    }

    /// Whether the log is destaged as far as late snapshots, or parts that are to be written anew, wait for. Nobody waits as long as its tail stays anyway.
    pub(super) fn is_destaged_up_to_awaited(&self, tail: u64) -> bool {
        let stays = self.away_since().is_some() || self.rolling_back_since().is_some();
        stays || tail >= self.backfills.awaited_tail()
    }

    /// Whether nothing is on its way into pages of the part that are to be changed.
    fn is_part_ready(&mut self, key: usize) -> bool {
        let BackfillWork { component, ref asked, .. } = *self.backfills.get(key).expect("it is there");
        let (dirty, held) = (self.index.of(component, asked.part), self.held.of(component, asked.part));
        // Its map page is made when it is destaged, or once all that became content is in its place.
        let is_plain = matches!(self.index.placement(component, asked.part), Some(Placement::Extent(_)));
        let is_left = is_plain && (dirty.is_some() || held.is_some_and(HeldPart::has_promoted));
        self.backfills.wants_destaging |= is_left;
        !(is_left || dirty.is_some_and(Dirty::is_destaging))
    }

    /// The blocks get frames, and are written there.
    fn write_backfill(&mut self, key: usize, out: &mut Vec<Output>) {
        let work = self.backfills.get(key).expect("it is there");
        let (index, wanted) = (work.member, work.asked.checksums.len());
        if !self.has_space_for(index, (wanted as u64, u64::from(PAGES)), 0) {
            self.backfills.waits_for_frames = true; // A checkpoint may free some.
            if !self.scarcity.may_end() && !self.members[index].pools.wants_checkpoint() {
                self.fail_backfill(key, GroupError::NoSpace, out);
            }
            return;
        }
        let frames = self.take_frames(index, wanted);
        let blocks = self.backfills.get(key).expect("it is there").asked.data.iter().flat_map(|buffer| {
            let count = buffer.len() / BLOCK_SIZE as usize;
            (0..count).map(|at| buffer.slice(at * BLOCK_SIZE as usize, BLOCK_SIZE as usize))
        });
        let member = &self.members[index];
        let mut runs: Vec<RestRun> = Vec::new();
        for (frame, block) in frames.iter().zip(blocks) {
            RestRun::add(&mut runs, member.unit_of(*frame), &block);
        }
        let work = self.backfills.get_mut(key);
        work.frames = frames;
        work.stage = if runs.is_empty() { Stage::Written } else { Stage::Writing(runs.len()) };
        for RestRun { unit, buffers, .. } in runs {
            let io = self.issue(index, Purpose::Backfill(key as u32));
            let offset = unit * SECTOR_SIZE;
            out.push(Output::Write { io, member: index, offset, buffers, stable: false, gentle: true });
        }
        if wanted == 0 {
            self.put_backfill(key, out);
        }
    }

    /// A write to its frames ended.
    pub(super) fn backfill_written(&mut self, key: usize, member: u8, result: Result<(), ()>) {
        if result.is_ok() {
            self.members[member].is_unsynced = true; // If not, the device is lost, and the operation with it.
        }
        let work = self.backfills.get_mut(key);
        let Stage::Writing(left) = work.stage else { unreachable!("its writes are under way") };
        work.stage = if left > 1 { Stage::Writing(left - 1) } else { Stage::Written };
    }

    fn fail_backfill(&mut self, key: usize, error: GroupError, out: &mut Vec<Output>) {
        let work = self.backfills.remove(key);
        self.free_frames_of(&work);
        out.push(Output::Done { op: work.op, result: Err(error) });
    }

    fn free_frames_of(&mut self, work: &BackfillWork) {
        let pools = &mut self.members[work.member].pools;
        work.frames.iter().for_each(|frame| pools.free(Slot::whole(*frame)));
    }

    /// The deltas of the part name what the snapshot was given.
    fn put_backfill(&mut self, key: usize, out: &mut Vec<Output>) {
        let work = self.backfills.get(key).expect("it is there");
        let (index, component, part) = (work.member, work.component, work.asked.part);
        if let Some(page) = self.page_of_backfill(component, part) {
            return self.need_page(index, page, PageWaiter::Nobody, out);
        }
        if self.unclaimed_pages(index) < PAGES {
            self.page_seekers.insert(index);
            return;
        }
        self.page_seekers.remove(&index);
        let work = self.backfills.remove(key);
        let result = match work.asked.giving {
            Giving::Mend => self.apply_mend(&work),
            Giving::New | Giving::AsSeenBy { .. } => self.apply_backfill(&work),
        };
        if result.is_err() {
            self.free_frames_of(&work);
        }
        out.push(Output::Done { op: work.op, result: result.map(|()| Completion::Done) });
    }

    /// A page of the part that is not in memory: of its map, its deltas or its extent.
    fn page_of_backfill(&mut self, component: u32, part: u32) -> Option<u32> {
        let missing = self.missing_page_of(component, part);
        let Some(Placement::Extent(extent)) = self.index.placement(component, part) else { return missing };
        let table = &mut self.members[self.components[component].member].table;
        let page = table.page_of(extent).0;
        missing.or_else(|| (!table.is_ready(page)).then_some(page))
    }

    fn apply_backfill(&mut self, work: &BackfillWork) -> Result<(), GroupError> {
        let &BackfillWork { member: index, component: key, id, ref asked, .. } = work;
        let Backfill { part, number, giving, .. } = *asked;
        let component = &self.components[key];
        let older = component.lineage.older_living(number);
        let mut deltas = self.deltas_in_memory((index, key), (id, part));
        let entries: Vec<(u8, Entry)> = self
            .entries_of_backfill(work)
            .into_iter()
            .map(|(block, entry)| (block, entry.born(older.unwrap_or(0))))
            .collect();
        let own = match giving {
            Giving::AsSeenBy { newer } => Some(number..newer),
            Giving::New | Giving::Mend => None,
        };
        let before = older.map(|older| older..number).filter(|_| own.is_none());
        self.expect_told_apart(&deltas, &entries, number, before.as_ref())?;
        let mut freed: Vec<Entry> = Vec::new();
        let mut counted: Vec<u32> = Vec::new();
        let mut given: Vec<u8> = Vec::new();
        for (block, entry) in entries {
            if own.as_ref().is_some_and(|own| deltas.has_within(own, block)) {
                freed.push(entry);
                continue;
            }
            if let Some(former) = deltas.take(number, block) {
                match &before {
                    Some(before) if !deltas.has_within(before, block) => {
                        deltas.put(before.start, block, former);
                        counted.push(before.start);
                    }
                    _ => freed.push(former),
                }
            } else {
                counted.push(number);
            }
            deltas.put(number, block, entry);
            given.push(block);
        }
        counted.into_iter().for_each(|number| self.components[key].lineage.count(number, 1));
        self.put_deltas_back((key, part), deltas);
        // The live disk's blocks are none that the snapshot sees.
        self.change_map(key, part, |map| {
            for entry in given.iter().map(|block| usize::from(*block)) {
                let entry = &mut map.entries[entry];
                *entry = entry.born(entry.born.max(number));
            }
        });
        freed.into_iter().for_each(|entry| self.free_entry(key, entry));
        self.drop_map_if_empty(key, part);
        Ok(())
    }

    /// The deltas of a part, whose pages are in memory.
    pub(super) fn deltas_in_memory(
        &self,
        (index, key): (u8, u32),
        (component, part): (ComponentId, u32),
    ) -> Deltas {
        let pages = self.components[key].lineage.deltas_of(part).iter().map(|one| one.page);
        let table = &self.members[index].table;
        let load = |page: u32| (page, table.peek_delta(page).expect("it is in memory").clone());
        Deltas::new((component, part), pages.map(load).collect())
    }

    /// What the blocks that are given are named by, once they stand in their frames.
    pub(super) fn entries_of_backfill(&self, work: &BackfillWork) -> Vec<(u8, Entry)> {
        let Backfill { block, count, ref checksums, .. } = work.asked;
        let entry = |at: u16| match work.frames.get(usize::from(at)) {
            Some(frame) => {
                let unit = self.members[work.member].unit_of(*frame);
                Form::PLAIN.entry_at(unit, checksums[usize::from(at)])
            }
            None => Entry::HOLE,
        };
        (0..count).map(|at| ((block + at) as u8, entry(at))).collect()
    }

    /// Older snapshots see a block as this one does where neither has it: before it gets something else, the next older one must have what both see.
    fn expect_told_apart(
        &self,
        deltas: &Deltas,
        entries: &[(u8, Entry)],
        number: u32,
        before: Option<&Range<u32>>,
    ) -> Result<(), GroupError> {
        let is_unknown = |block: u8| deltas.find(number, block) == Some(Entry::LOST_PAGE);
        if entries.iter().any(|(block, _)| is_unknown(*block)) {
            return Err(GroupError::Damaged);
        }
        let Some(before) = before.filter(|_| self.rules.hold(Rule::TellOlderApart)) else {
            return Ok(());
        };
        let is_apart = |block: u8| deltas.find(number, block).is_some() || deltas.has_within(before, block);
        match entries.iter().all(|(block, _)| is_apart(*block)) {
            true => Ok(()),
            false => Err(GroupError::SnapshotRefused),
        }
    }

    /// Writes the deltas of a part back to its pages.
    pub(super) fn put_deltas_back(&mut self, (key, part): (u32, u32), deltas: Deltas) {
        let (index, id) = (self.components[key].member, self.components[key].record.id);
        for (page, delta) in deltas.into_pages() {
            let table = &mut self.members[index].table;
            let content = Content::Delta(Box::new(delta.clone()));
            let page = match page {
                Some(page) if table.peek_delta(page) == Some(&delta) => continue,
                Some(page) if delta.groups.is_empty() => {
                    table.give_page_back(page);
                    page
                }
                Some(page) => {
                    table.replace(page, content);
                    page
                }
                None => {
                    let page = table.take_page(content).expect("there are enough");
                    table.name(page, (id, part));
                    page
                }
            };
            self.components[key].lineage.note_delta(page, &delta);
        }
    }

    /// Changes the map page of a part, which is made if there is none.
    pub(super) fn change_map(&mut self, key: u32, part: u32, change: impl FnOnce(&mut MapPage)) {
        let index = self.components[key].member;
        let page = self.page_for(key, part, None);
        let mut map: MapPage = self.members[index].table.map(page).expect("it is in memory").clone();
        change(&mut map);
        self.members[index].table.replace(page, Content::Map(Box::new(map)));
    }
}
