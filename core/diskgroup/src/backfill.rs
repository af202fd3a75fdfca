//! What is given to a snapshot after it was made (docs/design/0051): operations under way, and the deltas of a part while they change.

use crate::format::map::{DeltaPage, Entry};
use crate::io::{Backfill, Op};
use crate::pools::Frame;
use base::ComponentId;
use slab::Slab;
use std::ops::Range;

/// An operation that gives blocks to a snapshot.
#[derive(Debug)]
pub(crate) struct BackfillWork {
    pub(crate) op: Op,
    pub(crate) component: u32,
    pub(crate) id: ComponentId,
    pub(crate) member: u8,
    /// Which, and what; with all checksums.
    pub(crate) asked: Backfill,
    /// Where the blocks are written to, once that is chosen.
    pub(crate) frames: Vec<Frame>,
    pub(crate) stage: Stage,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for its part, or for space.
    Waiting,
    /// So many writes to its frames are under way.
    Writing(usize),
    /// Its blocks stand in their frames, and are to be named.
    Written,
}

/// All such operations.
#[derive(Debug, Default)]
pub(crate) struct Backfills {
    works: Slab<BackfillWork>,
    /// Whether one waits for what the log has of its part.
    pub(crate) wants_destaging: bool,
    /// Whether one waits for frames that a checkpoint may free.
    pub(crate) waits_for_frames: bool,
    /// The log is to be destaged up to that position.
    awaited_tail: u64,
    /// Those who wait for a checkpoint that begins from now on.
    wanted: Vec<Op>,
    /// Those who wait for the end of the one under way.
    begun: Vec<Op>,
}

impl Backfills {
    /// Whether none is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.works.is_empty() && self.wanted.is_empty() && self.begun.is_empty()
    }

    /// The log is to be destaged up to a position, or a later one.
    pub(crate) fn await_tail(&mut self, position: u64) {
        self.awaited_tail = self.awaited_tail.max(position);
    }

    pub(crate) fn awaited_tail(&self) -> u64 {
        self.awaited_tail
    }

    /// Whether blocks may stand in frames that no page names.
    pub(crate) fn has_frames(&self) -> bool {
        self.works.iter().any(|(_, work)| !work.frames.is_empty())
    }

    pub(crate) fn insert(&mut self, work: BackfillWork) {
        self.works.insert(work);
    }

    /// In the order of their places here.
    pub(crate) fn keys(&self) -> Vec<usize> {
        self.works.iter().map(|(key, _)| key).collect()
    }

    pub(crate) fn get(&self, key: usize) -> Option<&BackfillWork> {
        self.works.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: usize) -> &mut BackfillWork {
        &mut self.works[key]
    }

    pub(crate) fn remove(&mut self, key: usize) -> BackfillWork {
        self.works.remove(key)
    }

    /// Somebody waits until all that was answered so far is in pages on the device.
    pub(crate) fn want_checkpoint(&mut self, op: Op) {
        self.wanted.push(op);
    }

    pub(crate) fn wants_checkpoint(&self) -> bool {
        !self.wanted.is_empty()
    }

    pub(crate) fn checkpoint_begun(&mut self) {
        self.begun.append(&mut self.wanted);
    }

    /// A checkpoint has ended: gives those who waited for it.
    pub(crate) fn checkpoint_ended(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.begun)
    }

    /// Everybody who waits, when the group is lost.
    pub(crate) fn take_all(&mut self) -> Vec<Op> {
        let works = std::mem::take(&mut self.works).into_iter().map(|(_, work)| work.op);
        works.chain(self.wanted.drain(..)).chain(self.begun.drain(..)).collect()
    }
}

/// The delta pages of a part, all in memory, while entries are put into them and taken out.
#[derive(Debug)]
pub(crate) struct Deltas {
    component: ComponentId,
    part: u32,
    /// Each with its number, which a new one does not have yet.
    pages: Vec<(Option<u32>, DeltaPage)>,
}

impl Deltas {
    pub(crate) fn new((component, part): (ComponentId, u32), pages: Vec<(u32, DeltaPage)>) -> Deltas {
        let pages = pages.into_iter().map(|(number, page)| (Some(number), page)).collect();
        Deltas { component, part, pages }
    }

    /// The entry of a block in the delta of a snapshot.
    pub(crate) fn find(&self, snapshot: u32, block: u8) -> Option<Entry> {
        self.pages.iter().find_map(|(_, page)| page.find(snapshot, block))
    }

    /// Whether a snapshot of a range has an entry of a block.
    pub(crate) fn has_within(&self, snapshots: &Range<u32>, block: u8) -> bool {
        let groups = self.pages.iter().flat_map(|(_, page)| &page.groups);
        let mut within = groups.filter(|group| snapshots.contains(&group.snapshot));
        within.any(|group| group.entries.binary_search_by_key(&block, |(block, _)| *block).is_ok())
    }

    /// The snapshot in whose delta one finds a block, with the entry there; `None` if it sees what the live disk does, as that (0) itself does. Of a delta that has two, which is so
    /// where a page was lost, nobody knows ([`Entry::LOST_PAGE`]).
    pub(crate) fn seen_by(&self, snapshot: u32, block: u8) -> Option<(u32, Entry)> {
        let all = self
            .pages
            .iter()
            .flat_map(|(_, page)| page.groups.iter().map(move |group| (page, group.snapshot)));
        let newer = all.filter(|(_, number)| *number >= snapshot && snapshot > 0);
        let found: Vec<(u32, Entry)> =
            newer.filter_map(|(page, number)| Some((number, page.find(number, block)?))).collect();
        let least = found.iter().map(|(number, _)| *number).min()?;
        let mut of_least = found.into_iter().filter(|(number, _)| *number == least);
        let first = of_least.next();
        match of_least.next() {
            Some(_) => Some((least, Entry::LOST_PAGE)),
            None => first,
        }
    }

    /// Takes the entry of a block out of the delta of a snapshot.
    pub(crate) fn take(&mut self, snapshot: u32, block: u8) -> Option<Entry> {
        self.pages.iter_mut().find_map(|(_, page)| page.take_block(snapshot, block))
    }

    /// Puts an entry into the delta of a snapshot that has none of the block, on a page that has room.
    pub(crate) fn put(&mut self, snapshot: u32, block: u8, entry: Entry) {
        if self.pages.iter_mut().any(|(_, page)| page.put(snapshot, block, entry)) {
            return;
        }
        let mut page = DeltaPage::empty(self.component, self.part);
        assert!(page.put(snapshot, block, entry), "an empty page has room");
        self.pages.push((None, page));
    }

    /// The pages, changed or new.
    pub(crate) fn into_pages(self) -> Vec<(Option<u32>, DeltaPage)> {
        self.pages
    }
}
