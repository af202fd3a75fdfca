//! The snapshots of one component, and which pages hold what they see beside the live parts (docs/design/0044).

use crate::format::map::{DeltaPage, SnapshotRecord};
use base::WriteId;
use base::units::BLOCK_SIZE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) number: u32,
    /// The log position of the batch with its record; `None` while that is not stable.
    pub(crate) position: Option<u64>,
    pub(crate) id: WriteId,
    /// The component's size then.
    pub(crate) size: u64,
    /// Whether it is being taken apart.
    pub(crate) is_deleting: bool,
    /// Whether it was made later than others of greater numbers.
    pub(crate) is_late: bool,
    /// Whether it was made late, and is not known to have all that it should see.
    pub(crate) is_partial: bool,
}

/// A rollback to a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rollback {
    /// The snapshot's number.
    pub(crate) number: u32,
    pub(crate) id: WriteId,
    /// The log position of the batch with its record.
    pub(crate) position: u64,
}

/// A delta page of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeltaRef {
    pub(crate) page: u32,
    /// The snapshots that have entries there, ascending.
    pub(crate) snapshots: Vec<u32>,
}

/// The snapshots of a component.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    /// By ascending number, those that are being deleted among them.
    snapshots: Vec<Snapshot>,
    /// The greatest number that any of them ever had.
    last_number: u32,
    /// The same of those whose record is stable.
    last_stable: u32,
    /// A number that is no less than any that pages of its parts name: their list may be lost.
    named: u32,
    /// The pages with the list of them.
    pub(crate) list_pages: Vec<u32>,
    /// The last rollback that the log told; in recovery, all of them in their order.
    rollbacks: Vec<Rollback>,
    /// Whether the record of another one is on its way.
    is_rollback_coming: bool,
    /// Snapshots whose deletion is on its way to the log.
    leaving: BTreeSet<u32>,
    /// Parts that are still to be taken back, each with the rollback that it lacks. In operation all are due to the last one: until then no other comes. A start may
    /// find several in the log, and pages from before the first.
    due: BTreeMap<u32, Rollback>,
    /// In recovery: the position of the last rollback that the map page of a part contains, if there was any.
    rolled_back: BTreeMap<u32, u64>,
    /// By part: its delta pages.
    deltas: BTreeMap<u32, Vec<DeltaRef>>,
    /// Entries in them by snapshot.
    sizes: BTreeMap<u32, u64>,
}

impl Lineage {
    /// The snapshots, those that are being deleted among them.
    pub(crate) fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// The greatest number that any snapshot ever had.
    pub(crate) fn last_number(&self) -> u32 {
        self.last_number
    }

    /// The greatest number of one whose record is stable: what is on its way may not come.
    pub(crate) fn last_stable(&self) -> u32 {
        self.last_stable.max(self.named)
    }

    /// Whether a snapshot has, or had, that number or a greater one.
    pub(crate) fn is_passed(&self, number: u32) -> bool {
        number <= self.last_number.max(self.named)
    }

    /// A page of one of its parts names that number, or none: 0.
    pub(crate) fn note_number(&mut self, number: u32) {
        self.named = self.named.max(number);
    }

    /// A page of the list does not count.
    pub(crate) fn forget_listed(&mut self, page: u32, listed: &[SnapshotRecord]) {
        self.list_pages.retain(|one| *one != page);
        self.snapshots.retain(|one| listed.iter().all(|record| record.number != one.number));
    }

    /// After recovery: what pages have of snapshots that no list names, for its page was lost, is taken apart as if they were being deleted.
    pub(crate) fn delete_unlisted(&mut self) {
        let is_listed = |number: &u32| self.snapshots.iter().any(|one| one.number == *number);
        let unlisted: Vec<u32> = self
            .deltas
            .values()
            .flatten()
            .flat_map(|one| one.snapshots.iter().copied())
            .filter(|number| !is_listed(number))
            .collect();
        for number in unlisted.into_iter().collect::<BTreeSet<u32>>() {
            let (id, size) = (WriteId::default(), 0);
            let (position, is_deleting) = (Some(0), true);
            let (is_late, is_partial) = (false, false);
            self.snapshots.push(Snapshot { number, position, id, size, is_deleting, is_late, is_partial });
        }
        self.snapshots.sort_unstable_by_key(|one| one.number);
    }

    /// Whether any snapshot is to be kept.
    pub(crate) fn has_living(&self) -> bool {
        self.snapshots.iter().any(|one| !one.is_deleting)
    }

    /// The snapshot with that number, unless it is being deleted.
    pub(crate) fn living(&self, number: u32) -> Option<&Snapshot> {
        self.snapshots.iter().find(|one| one.number == number && !one.is_deleting)
    }

    /// The newest snapshot whose record stands at or before that position of the log; 0: none.
    pub(crate) fn born_at(&self, position: u64) -> u32 {
        let is_before = |one: &&Snapshot| one.position.is_some_and(|at| at <= position);
        self.snapshots.iter().rev().find(is_before).map_or(0, |one| one.number)
    }

    /// The newest snapshot to be kept that is no newer than `born`: the one that may see what a write replaces.
    pub(crate) fn keeper(&self, born: u32) -> Option<u32> {
        self.snapshots.iter().rev().find(|one| one.number <= born && !one.is_deleting).map(|one| one.number)
    }

    /// Whether a snapshot was made later than others of greater numbers: it may see what was written when one of these was the newest.
    pub(crate) fn is_late(&self, number: u32) -> bool {
        self.snapshots.iter().any(|one| one.number == number && one.is_late)
    }

    /// Whether any is.
    pub(crate) fn has_late(&self) -> bool {
        self.snapshots.iter().any(|one| one.is_late)
    }

    /// The next older snapshot, be it one that is being deleted.
    pub(crate) fn older(&self, number: u32) -> Option<u32> {
        self.snapshots.iter().rev().find(|one| one.number < number).map(|one| one.number)
    }

    /// The newest snapshot to be kept, be its record stable or not.
    pub(crate) fn newest(&self) -> Option<&Snapshot> {
        self.snapshots.iter().rev().find(|one| !one.is_deleting)
    }

    /// The record of a snapshot's deletion is on its way. Once it is in force, nothing is kept for the snapshot any more.
    pub(crate) fn expect_deletion(&mut self, number: u32) {
        self.leaving.insert(number);
    }

    /// Whether the record of a snapshot's deletion is on its way.
    pub(crate) fn is_leaving(&self, number: u32) -> bool {
        self.leaving.contains(&number)
    }

    /// The record of a rollback is on its way.
    pub(crate) fn expect_rollback(&mut self) {
        self.is_rollback_coming = true;
    }

    /// The last rollback that the log told.
    pub(crate) fn rollback(&self) -> Option<&Rollback> {
        self.rollbacks.last()
    }

    /// Whether a rollback is on its way, or parts are still to be taken back.
    pub(crate) fn is_rolling_back(&self) -> bool {
        self.is_rollback_coming || self.has_due()
    }

    /// Whether parts are still to be taken back.
    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The rollback that a part lacks.
    pub(crate) fn due_to(&self, part: u32) -> Option<&Rollback> {
        self.due.get(&part)
    }

    /// Whether a part is still to be taken back.
    pub(crate) fn is_due(&self, part: u32) -> bool {
        self.due.contains_key(&part)
    }

    /// The log position of the oldest rollback that any part lacks.
    pub(crate) fn oldest_due(&self) -> Option<u64> {
        self.due.values().map(|rollback| rollback.position).min()
    }

    /// Up to so many parts that are still to be taken back.
    pub(crate) fn parts_due(&self, count: usize) -> Vec<u32> {
        self.due.keys().take(count).copied().collect()
    }

    /// A rollback is put into force: parts of which its snapshot, or a later one, has anything are to be taken back, unless their pages contain it. That they may is true
    /// but where the simulator removes that rule.
    pub(crate) fn roll_back(&mut self, rollback: Rollback, may_contain: bool) {
        let has_any = |refs: &Vec<DeltaRef>| {
            refs.iter().any(|one| one.snapshots.last().is_some_and(|last| *last >= rollback.number))
        };
        let parts: Vec<u32> =
            self.deltas.iter().filter(|(_, refs)| has_any(refs)).map(|(part, _)| *part).collect();
        self.rollbacks.push(rollback);
        self.is_rollback_coming = false;
        parts.into_iter().for_each(|part| self.add_due_to(part, rollback, may_contain));
    }

    /// Another part is to be taken back: what tells whether it must be is lost.
    pub(crate) fn add_due(&mut self, part: u32, may_contain: bool) {
        for rollback in self.rollbacks.clone() {
            self.add_due_to(part, rollback, may_contain);
        }
    }

    /// A part is to be taken back, unless its page contains that. One that lacks an earlier rollback has nothing from behind that: a later one to a newer
    /// snapshot finds nothing in it, and one to the same or an older snapshot does both.
    fn add_due_to(&mut self, part: u32, rollback: Rollback, may_contain: bool) {
        let is_back = self.rolled_back.get(&part).is_some_and(|at| *at >= rollback.position);
        let has_earlier = self.due.get(&part).is_some_and(|earlier| earlier.number < rollback.number);
        let is_contained = is_back && may_contain;
        if !is_contained && !has_earlier {
            self.due.insert(part, rollback);
        }
    }

    /// A part is taken back.
    pub(crate) fn part_is_back(&mut self, part: u32) {
        self.due.remove(&part);
    }

    /// In recovery: the map page of a part contains rollbacks up to that position.
    pub(crate) fn note_rolled_back(&mut self, part: u32, position: u64) {
        if position > 0 {
            self.rolled_back.insert(part, position);
        }
    }

    /// After recovery, or when a rollback is put into force in operation: pages contain none that comes from now on, and all before it are done, or known to be due.
    pub(crate) fn forget_rollbacks(&mut self) {
        self.rolled_back = BTreeMap::new();
        self.rollbacks.drain(..self.rollbacks.len().saturating_sub(1));
    }

    /// The next older snapshot that is to be kept.
    pub(crate) fn older_living(&self, number: u32) -> Option<u32> {
        let older = |one: &&Snapshot| !one.is_deleting && one.number < number;
        self.snapshots.iter().rfind(older).map(|one| one.number)
    }

    /// A snapshot is asked for, of whose number nothing is there.
    pub(crate) fn add(&mut self, snapshot: Snapshot) {
        self.last_number = self.last_number.max(snapshot.number);
        if let Err(at) = self.snapshots.binary_search_by_key(&snapshot.number, |one| one.number) {
            self.snapshots.insert(at, snapshot);
        }
    }

    /// The record of a snapshot is stable. In recovery, the list, which is newer, may not have it any more: then the record of its deletion follows, and what came
    /// before it is kept apart from what came behind it all the same, for a rollback to it makes only that void. Or it is about a former snapshot with
    /// this number, of which nothing was left when the number came late again.
    pub(crate) fn place(&mut self, snapshot: Snapshot) {
        self.add(snapshot);
        self.last_stable = self.last_stable.max(snapshot.number);
        let found = self.snapshots.iter_mut().find(|one| one.number == snapshot.number);
        match found.filter(|one| one.position < snapshot.position) {
            Some(one) if one.is_deleting => *one = snapshot,
            Some(one) => one.position = snapshot.position,
            None => {}
        }
    }

    /// A late snapshot has all that it should see. False if there is none.
    pub(crate) fn complete(&mut self, number: u32) -> bool {
        let found = self.snapshots.iter_mut().find(|one| one.number == number && !one.is_deleting);
        found.map(|one| one.is_partial = false).is_some()
    }

    /// A page with a part of the list was read. Pages come in any order.
    pub(crate) fn recover(&mut self, page: u32, last_number: u32, records: &[SnapshotRecord]) {
        self.list_pages.push(page);
        self.last_number = self.last_number.max(last_number);
        self.last_stable = self.last_number;
        self.snapshots.extend(records.iter().map(|one| Snapshot {
            number: one.number,
            position: Some(one.position),
            id: one.id,
            size: one.size,
            is_deleting: one.is_deleting,
            is_late: one.is_late,
            is_partial: one.is_partial,
        }));
        self.snapshots.sort_unstable_by_key(|one| one.number);
    }

    /// The stable snapshots as a list has them.
    pub(crate) fn records(&self) -> Vec<SnapshotRecord> {
        let record = |one: &Snapshot| {
            let Snapshot { number, position, id, size, is_deleting, is_late, is_partial } = *one;
            Some(SnapshotRecord { number, is_deleting, is_late, is_partial, position: position?, id, size })
        };
        self.snapshots.iter().filter_map(record).collect()
    }

    /// A snapshot is to be taken apart, says the record at that position of the log. False if there is none that is not already, or that it can be about.
    pub(crate) fn begin_deleting(&mut self, number: u32, position: u64) -> bool {
        self.leaving.remove(&number);
        let is_it = |one: &&mut Snapshot| {
            one.number == number && !one.is_deleting && one.position.is_none_or(|from| from < position)
        };
        self.snapshots.iter_mut().find(is_it).map(|one| one.is_deleting = true).is_some()
    }

    /// The first snapshot that is being taken apart.
    pub(crate) fn deleting(&self) -> Option<u32> {
        self.snapshots.iter().find(|one| one.is_deleting && one.position.is_some()).map(|one| one.number)
    }

    /// Nothing is left of a snapshot.
    pub(crate) fn remove(&mut self, number: u32) {
        self.snapshots.retain(|one| one.number != number);
        self.sizes.remove(&number);
    }

    /// The delta pages of a part.
    pub(crate) fn deltas_of(&self, part: u32) -> &[DeltaRef] {
        self.deltas.get(&part).map_or(&[], Vec::as_slice)
    }

    /// All delta pages by part.
    pub(crate) fn deltas(&self) -> impl Iterator<Item = (u32, &DeltaRef)> {
        self.deltas.iter().flat_map(|(part, refs)| refs.iter().map(move |one| (*part, one)))
    }

    /// The delta pages of a part that a view of that snapshot may need: those with entries of it or of a later one.
    pub(crate) fn seen_by(&self, part: u32, snapshot: u32) -> impl Iterator<Item = u32> {
        let is_needed = move |one: &&DeltaRef| one.snapshots.last().is_some_and(|last| *last >= snapshot);
        self.deltas_of(part).iter().filter(is_needed).map(|one| one.page)
    }

    /// Whether a snapshot of a range has entries of a part.
    pub(crate) fn is_between(&self, part: u32, snapshots: Range<u32>) -> bool {
        self.deltas_of(part).iter().flat_map(|one| &one.snapshots).any(|number| snapshots.contains(number))
    }

    /// The first part, from `from` on, of which a snapshot has entries.
    pub(crate) fn first_with(&self, snapshot: u32, from: u32) -> Option<u32> {
        let has = |refs: &Vec<DeltaRef>| refs.iter().any(|one| one.snapshots.contains(&snapshot));
        self.deltas.range(from..).find(|(_, refs)| has(refs)).map(|(part, _)| *part)
    }

    /// A delta page holds this now; it may be new, or empty by now.
    pub(crate) fn note_delta(&mut self, page: u32, content: &DeltaPage) {
        let refs = self.deltas.entry(content.part).or_default();
        let snapshots: Vec<u32> = content.groups.iter().map(|group| group.snapshot).collect();
        match refs.iter().position(|one| one.page == page) {
            Some(at) if snapshots.is_empty() => drop(refs.remove(at)),
            Some(at) => refs[at].snapshots = snapshots,
            None if snapshots.is_empty() => {}
            None => refs.push(DeltaRef { page, snapshots }),
        }
        if refs.is_empty() {
            self.deltas.remove(&content.part);
        }
    }

    /// The snapshots that are whole and not being deleted, with the bytes of blocks in their deltas.
    pub(crate) fn sizes(&self) -> Vec<(u32, u64)> {
        let living = self.snapshots.iter().filter(|one| !one.is_deleting && !one.is_partial);
        let bytes = |number: u32| self.sizes.get(&number).map_or(0, |entries| entries * BLOCK_SIZE);
        living.map(|one| (one.number, bytes(one.number))).collect()
    }

    /// Entries come to the delta of a snapshot, or leave it.
    pub(crate) fn count(&mut self, snapshot: u32, more: i64) {
        let size = self.sizes.entry(snapshot).or_default();
        // What a damaged page had is not known: beside such a page the count is none too exact.
        *size = size.saturating_add_signed(more);
    }

    /// The component is being deleted: gives all its pages but map pages.
    pub(crate) fn take_pages(&mut self) -> Vec<u32> {
        let refs = std::mem::take(&mut self.deltas).into_values().flatten().map(|one| one.page);
        let pages: Vec<u32> = refs.chain(std::mem::take(&mut self.list_pages)).collect();
        self.snapshots.clear();
        self.due.clear();
        self.sizes.clear();
        pages
    }
}
