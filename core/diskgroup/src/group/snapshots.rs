//! Snapshots of components: made, told in lists, and taken apart when they are deleted (docs/design/0044).

use super::Group;
use super::hold_mapped::Unsettled;
use crate::component::{Component, Packed};
use crate::format::FORMAT_PLAIN;
use crate::format::batch::{Origin, Record};
use crate::format::map::{Entry, SNAPSHOTS_MAX, SNAPSHOTS_PER_PAGE, SnapshotPage};
use crate::index::Dirty;
use crate::io::{ComponentKey, GroupError, Op, Output};
use crate::lineage::Snapshot;
use crate::part_map::Placement;
use crate::pools::Frame;
use crate::rules::Rule;
use crate::table::{Content, PageWaiter};
use crate::work::{Change, Work, fail};
use base::request::Buffers;
use base::{ComponentId, Instant, RequestTag, WriteId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Parts of which deletions take the deltas apart in a second, where nobody feels it: each is work for the processor that serves guests, and a page or two at the
/// next checkpoint. A TiB of which each part has changed is through in nine minutes.
const PARTS_PER_SECOND: u64 = 2048;
/// Parts in one step where somebody waits for the space.
const PARTS_PER_STEP: usize = 8;

impl Group {
    /// The numbers of a component's snapshots, ascending, without those that are being deleted, but with those that are on their way.
    pub fn snapshots(&self, component: ComponentKey) -> Vec<u32> {
        let found = self.components.get(component.0);
        let there = found.map_or(&[][..], |component| component.lineage.snapshots());
        let living = there.iter().filter(|one| !one.is_deleting).map(|one| one.number);
        let waiting = self.buffer.marks_waiting_of(component.0);
        living.chain(waiting).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Whether the frames that are used are those that the pages of mapped parts name, if all of these are in memory and nothing is under way: for
    /// those who check the group from outside.
    pub fn frames_agree(&self) -> Option<bool> {
        if self.destaging.boundary().is_some() || self.backfills.has_frames() || self.rewriting.has_frames() {
            return None; // Frames that are being written are named by no page yet.
        }
        let mut is_equal = true;
        for (index, member) in self.members.iter().filter(|(_, member)| member.is_in_service()) {
            let mut named: BTreeMap<Frame, u8> = BTreeMap::new();
            let mut name = |entry: &Entry| {
                if let Some(slot) = member.slot_of(*entry) {
                    *named.entry(slot.frame()).or_default() |= slot.units();
                }
            };
            // Components of a device that has left are forgotten, but for their keys.
            let is_own = |component: &Component| component.member == index && component.is_stable;
            let own = self.components.iter().filter(|(_, component)| is_own(component));
            for (key, component) in own {
                let mut from = 0;
                while let Some((part, placement)) = self.index.first_placed(key, from..u32::MAX) {
                    from = part + 1;
                    if let Placement::Page(page) = placement {
                        let map = member.table.peek_map(page)?;
                        map.entries.iter().for_each(&mut name);
                    }
                }
                for (_, delta) in component.lineage.deltas() {
                    let groups = member.table.peek_delta(delta.page)?.groups.iter();
                    let entries = groups.flat_map(|group| group.entries.iter());
                    entries.for_each(|(_, entry)| name(entry));
                }
            }
            is_equal &= named == member.pools.live_frames();
        }
        Some(is_equal)
    }

    /// Whether what compressed blocks of components take is what their pages tell, if all of these are in memory: for those who check the group from
    /// outside. Where pages are lost, it may be more.
    pub fn packed_agrees(&self) -> Option<bool> {
        if !self.void_maps.is_empty() {
            return None; // What such a page told counts until it is read.
        }
        let mut is_equal = true;
        for (key, component) in self.components.iter().filter(|(_, component)| component.is_stable) {
            let member = &self.members[component.member];
            if !member.is_in_service() || member.lost_pages > 0 || member.lost_extents > 0 {
                continue;
            }
            let (mut found, mut from) = (Packed::default(), 0);
            while let Some((part, placement)) = self.index.first_placed(key, from..u32::MAX) {
                from = part + 1;
                if let Placement::Page(page) = placement {
                    member.table.peek_map(page)?.entries.iter().for_each(|entry| found.add(*entry));
                }
            }
            for (_, delta) in component.lineage.deltas() {
                let groups = member.table.peek_delta(delta.page)?.groups.iter();
                groups.flat_map(|group| group.entries.iter()).for_each(|(_, entry)| found.add(*entry));
            }
            is_equal &= found == component.packed;
        }
        Some(is_equal)
    }

    pub(super) fn accept_snapshot(
        &mut self,
        change: Change,
        (number, is_late): (u32, bool),
        out: &mut Vec<Output>,
    ) -> Option<Work> {
        let Change { op, component: key, id, origin, .. } = change;
        let component = &self.components[key];
        let (member, component_id) = (component.member, component.record.id);
        let there = component.lineage.snapshots().iter().find(|one| one.number == number);
        let is_leaving = component.lineage.is_leaving(number);
        if let Some(there) = there.copied().filter(|one| is_late && !one.is_deleting && !is_leaving) {
            let result = self.late_snapshot_is_there(there.position);
            out.push(Output::Done { op, result });
            return None;
        }
        // Something may be left of the one with that number.
        let is_taken = if is_late { there.is_some() } else { component.lineage.is_passed(number) };
        let is_refused = self.members.superblocks()[0].format == FORMAT_PLAIN
            || is_taken
            || component.lineage.snapshots().len() >= SNAPSHOTS_MAX
            || component.lineage.is_rolling_back();
        let unsettled = if is_refused { Unsettled::Held } else { self.settle_for_mark(key) };
        if unsettled == Unsettled::Held {
            out.push(Output::Done { op, result: Err(GroupError::SnapshotRefused) });
            return None;
        }
        let component = &self.components[key];
        // What the component's parts become by changes under way is part of it, and must be before it in the log. Its list needs a page.
        let is_early = self.log.format() == FORMAT_PLAIN
            || unsettled == Unsettled::Settling
            || self.exclusive.holds_any_of(key)
            || (self.buffer.gathers(component_id) && self.rules.hold(Rule::MarkBetweenBatches));
        let wanted = list_pages(component.lineage.snapshots().len() + 1);
        let missing = wanted.saturating_sub(component.lineage.list_pages.len());
        let is_short = (self.unclaimed_pages(member) as usize) < missing;
        let pages = self.lists_due_on(member) + missing as u64;
        if missing > 0 && (is_short || !self.has_space_for(member, (0, pages), 0)) {
            return self.seek_page(member, Work::Snapshot { change, number, is_late }, out);
        }
        if is_early || !self.has_guest_room(0) {
            return Some(Work::Snapshot { change, number, is_late });
        }
        self.page_seekers.remove(&member);
        for _ in 0..missing {
            let page = self.members[member].table.take_page(Content::Empty).expect("there are enough");
            self.components[key].lineage.list_pages.push(page);
        }
        let component = &self.components[key];
        let tag = match origin {
            Origin::Guest(tag) => tag,
            Origin::Copy => RequestTag::default(),
        };
        let size = component.record.size;
        let (is_deleting, is_partial) = (false, is_late);
        let snapshot = Snapshot { number, position: None, id, size, is_deleting, is_late, is_partial };
        self.components[key].lineage.add(snapshot);
        let record = Record::Snapshot { member, component: component_id, number, id, tag, is_late };
        self.buffer.push(record, Some(op).filter(|_| !is_late), Buffers::new());
        if is_late {
            out.push(Output::Done { op, result: Err(GroupError::NotYet) });
        }
        None
    }

    /// Free pages of a device that no visit of destaging counts on.
    pub(super) fn unclaimed_pages(&self, member: u8) -> u32 {
        let free = self.members[member].table.free_page_count();
        free.saturating_sub(self.destaging.pages_of_visits(member))
    }

    /// Work waits for a page, unless the device has no space for any.
    fn seek_page(&mut self, member: u8, work: Work, out: &mut Vec<Output>) -> Option<Work> {
        self.refresh_space(member);
        let state = &self.members[member];
        if state.chunk.is_none() && state.space.unreserved() == 0 {
            self.page_seekers.remove(&member);
            fail(&work, GroupError::NoSpace, out);
            return None;
        }
        self.page_seekers.insert(member);
        Some(work)
    }

    pub(super) fn install_snapshot(
        &mut self,
        component: ComponentId,
        (number, id, is_late): (u32, WriteId, bool),
        position: u64,
    ) {
        let Some(key) = self.components.key_of(component) else { return };
        self.settle_before_mark(key, position);
        let size = self.components[key].record.size;
        let (is_deleting, is_partial) = (false, is_late);
        let snapshot =
            Snapshot { number, position: Some(position), id, size, is_deleting, is_late, is_partial };
        self.components[key].lineage.place(snapshot);
        self.update_list(key);
    }

    pub(super) fn drop_snapshot(
        &mut self,
        op: Op,
        component: ComponentKey,
        number: u32,
        out: &mut Vec<Output>,
    ) {
        if let Err(error) = self.check_component(component.0, 0) {
            return out.push(Output::Done { op, result: Err(error) });
        }
        // Whoever asked for it may have ended meanwhile: it must not come behind this.
        for work in self.buffer.take_marks_waiting(component.0, number) {
            fail(&work, GroupError::SnapshotRefused, out);
        }
        let found = &self.components[component.0];
        match found.lineage.living(number).map(|one| one.position) {
            Some(Some(_)) => {}
            Some(None) => return out.push(Output::Done { op, result: Err(GroupError::NotYet) }),
            None => return out.push(Output::Done { op, result: Err(GroupError::NoSnapshot) }),
        }
        let (member, id) = (found.member, found.record.id);
        self.components[component.0].lineage.expect_deletion(number);
        self.submit_record(Some(op), Record::SnapshotGone { member, component: id, number });
    }

    pub(super) fn install_snapshot_gone(&mut self, component: ComponentId, number: u32, position: u64) {
        let Some(key) = self.components.key_of(component) else { return };
        if self.components[key].lineage.begin_deleting(number, position) {
            self.dropping.insert(key);
            self.update_list(key);
        }
    }

    /// Writes the list of a component's snapshots to its pages; later, if a page is lacking.
    pub(super) fn update_list(&mut self, key: u32) {
        let mut unclaimed = self.unclaimed_pages(self.components[key].member);
        let component = &mut self.components[key];
        let table = &mut self.members[component.member].table;
        let records = component.lineage.records();
        if component.lineage.last_stable() == 0 || component.record.is_deleting {
            self.lists_due.remove(&key);
            return;
        }
        // One that is asked for has its place there already.
        let wanted = list_pages(component.lineage.snapshots().len());
        while component.lineage.list_pages.len() < wanted {
            let taken = if unclaimed > 0 { table.take_page(Content::Empty) } else { None };
            match taken {
                Some(page) => component.lineage.list_pages.push(page),
                None => {
                    self.lists_due.insert(key);
                    return;
                }
            }
            unclaimed -= 1;
        }
        while component.lineage.list_pages.len() > wanted {
            table.give_page_back(component.lineage.list_pages.pop().expect("there are more"));
        }
        let chunks = records.chunks(SNAPSHOTS_PER_PAGE).chain(std::iter::repeat(&[][..]));
        for (index, (&page, snapshots)) in component.lineage.list_pages.iter().zip(chunks).enumerate() {
            let list = SnapshotPage {
                component: component.record.id,
                index: index as u32,
                last_number: component.lineage.last_stable(),
                snapshots: snapshots.to_vec(),
            };
            table.replace(page, Content::Snapshots(Box::new(list)));
        }
        self.lists_due.remove(&key);
    }

    /// Pages have come: lists that lacked one are written.
    pub(super) fn update_due_lists(&mut self) {
        for key in std::mem::take(&mut self.lists_due) {
            if self.components.contains(key) {
                self.update_list(key);
            }
        }
    }

    /// Whether the log must keep telling of snapshots whose list has no page.
    pub(super) fn has_lists_due(&self) -> bool {
        let is_there = |key: &u32| {
            let component = self.components.get(*key);
            component.is_some_and(|component| self.members[component.member].is_in_service())
        };
        self.lists_due.iter().any(is_there)
    }

    /// Lists of snapshots that lack a page on a device.
    pub(super) fn lists_due_on(&self, member: u8) -> u64 {
        let is_of =
            |key: &&u32| self.components.get(**key).is_some_and(|component| component.member == member);
        self.lists_due.iter().filter(is_of).count() as u64
    }

    /// After a start: what came behind a snapshot that is being deleted stands apart from what came before it, which it may not have when it was accepted, for
    /// the snapshot was gone by then. No more frames are promised than were: only what a snapshot tells apart that stays.
    pub(super) fn merge_segments(&mut self) {
        for (key, component) in self.components.iter() {
            let lineage = &component.lineage;
            let is_one = |before: u32, born: u32| lineage.keeper(born).is_none_or(|keeper| keeper <= before);
            for part in self.index.parts_with_entries(component.member, key) {
                self.index.merge_segments(key, part, is_one);
            }
        }
    }

    /// After a start, deletions of snapshots go on.
    pub(super) fn go_on_dropping(&mut self) {
        for key in self.components.iter().map(|(key, _)| key).collect::<Vec<u32>>() {
            self.components[key].lineage.delete_unlisted();
        }
        let has_deleting = |(_, component): &(u32, &Component)| {
            component.lineage.snapshots().iter().any(|one| one.is_deleting)
        };
        self.dropping = self.components.iter().filter(has_deleting).map(|(key, _)| key).collect();
    }

    /// When deletions go on if nothing happens.
    pub(super) fn drops_wake_at(&self) -> Option<Instant> {
        (!self.dropping.is_empty()).then_some(self.drop_at)
    }

    /// Takes deltas of deleted snapshots apart: part by part, at a pace that gives way to guests as scrubbing does, or a few at a time where work waits for space.
    pub(super) fn advance_snapshots(&mut self, out: &mut Vec<Output>) {
        let is_urgent = self.scarcity.is_felt();
        if self.dropping.is_empty() || self.drop_at > self.now && !is_urgent {
            return;
        }
        let pause = Duration::from_secs(1) / self.shares.scrub.of(PARTS_PER_SECOND) as u32;
        self.drop_at = self.now + pause;
        let most = if is_urgent { PARTS_PER_STEP } else { 1 };
        for key in self.dropping.clone() {
            let in_service = self.components.get(key).is_some_and(|component| {
                !component.record.is_deleting && self.members[component.member].is_in_service()
            });
            if !in_service {
                self.dropping.remove(&key);
                continue;
            }
            for _ in 0..most {
                let Some(number) = self.components[key].lineage.deleting() else {
                    self.dropping.remove(&key);
                    break;
                };
                let Some(part) = self.components[key].lineage.first_with(number, 0) else {
                    self.components[key].lineage.remove(number);
                    self.update_list(key);
                    continue;
                };
                if !self.take_apart(key, number, part, out) {
                    break; // A page must be read first.
                }
            }
        }
    }

    /// Takes what a part has in the delta of a snapshot: each entry goes to the next older snapshot, if that may see it, else it is freed
    /// (docs/design/0044, rule 3). False, and nothing is done, as long as a page is not in memory, or the part
    /// is being destaged.
    fn take_apart(&mut self, key: u32, number: u32, part: u32, out: &mut Vec<Output>) -> bool {
        let component = &self.components[key];
        // What is on its way counts on the room in its pages, and what is to be taken back is told by them.
        if self.index.of(key, part).is_some_and(Dirty::is_destaging) || component.lineage.is_due(part) {
            return false;
        }
        let (index, older) = (component.member, component.lineage.older(number));
        let member = &mut self.members[index];
        let pages: Vec<u32> = component.lineage.deltas_of(part).iter().map(|one| one.page).collect();
        if let Some(&page) = pages.iter().find(|page| member.table.delta(**page).is_none()) {
            self.need_page(index, page, PageWaiter::Delete, out);
            return false;
        }
        let mut freed: Vec<Entry> = Vec::new();
        for &page in &pages {
            let mut delta = member.table.delta(page).expect("it is in memory").clone();
            let left = self.components[key].lineage.deltas_of(part).iter().map(|one| one.page);
            let others: Vec<u32> = left.filter(|other| *other != page).collect();
            let taken = delta.take(number);
            if taken.is_empty() {
                continue;
            }
            self.components[key].lineage.count(number, -(taken.len() as i64));
            for (block, entry) in taken {
                let keeps = !self.rules.hold(Rule::MoveDeleted);
                let is_known = |older: u32| {
                    let has = |page: &u32| {
                        let other = member.table.peek_delta(*page);
                        other.is_some_and(|other| other.find(older, block).is_some())
                    };
                    delta.find(older, block).is_some() || others.iter().any(has)
                };
                match older.filter(|older| !is_known(*older) && !keeps) {
                    Some(older) => {
                        assert!(delta.put(older, block, entry), "it takes the place of what was taken");
                        self.components[key].lineage.count(older, 1);
                    }
                    None => freed.push(entry),
                }
            }
            self.components[key].lineage.note_delta(page, &delta);
            match delta.groups.is_empty() {
                true => member.table.give_page_back(page),
                false => member.table.replace(page, Content::Delta(Box::new(delta))),
            }
        }
        freed.into_iter().for_each(|entry| self.free_entry(key, entry));
        self.drop_map_if_empty(key, part);
        true
    }
}

/// Pages that a list of so many snapshots takes.
fn list_pages(snapshots: usize) -> usize {
    snapshots.div_ceil(SNAPSHOTS_PER_PAGE).max(1)
}
