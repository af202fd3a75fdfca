//! What the log has of one extent, or of one part that gets its place when it is destaged.

use crate::format::batch::ExtentLocation;
use base::WriteId;
use base::units::BLOCKS_PER_EXTENT;
use std::collections::BTreeMap;

/// What the newest version of a block in the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newest {
    /// Data, at the entry's position in the log.
    Data,
    /// Nothing: it was trimmed.
    Trim,
}

/// Whose entries of the log are: the part, as its component's key and its number (`None`: the component is gone), and the newest
/// snapshot that they are younger than (0: none).
pub(crate) type OfPart = (Option<(u32, u32)>, u32);

/// Where a block of the log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Its place in its part's extent, or a frame that it has got: it is on its way there.
    Place,
    /// A frame, which is promised to it; or its place, if its part is in an extent of its own and no snapshot sees what it replaces.
    Frame,
    /// A frame, which is promised to it, though no snapshot sees what it replaces (`group/hold_mapped.rs`).
    FrameOnly,
}

impl Goal {
    /// Where a record with that location sends its blocks.
    pub(crate) fn at(location: ExtentLocation) -> Goal {
        if location.is_placed() { Goal::Place } else { Goal::Frame }
    }
}

/// The newest version of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    pub(crate) id: WriteId,
    /// Log block of the data, or of the batch with the trim.
    pub(crate) position: u64,
    pub(crate) checksum: u32,
    pub(crate) block: u8,
    pub(crate) newest: Newest,
    pub(crate) goal: Goal,
    /// Whether it was held and became content behind the boundary of the round of destaging under way: a later round takes it (`group/hold_mapped.rs`).
    pub(crate) is_late: bool,
}

impl IndexEntry {
    /// Whether a frame is promised to it.
    pub(super) fn wants_frame(&self) -> bool {
        self.newest == Newest::Data && self.goal != Goal::Place
    }
}

/// A whole extent written in place, known to the log but not yet to the extent's descriptor.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) checksums: Box<[u32; BLOCKS_PER_EXTENT]>,
    pub(crate) id: WriteId,
    pub(crate) position: u64,
}

/// A version that a region has by something that is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raised {
    pub(crate) region: u8,
    pub(crate) id: WriteId,
    /// Log position of what is gone.
    pub(super) position: u64,
}

/// The newest versions of blocks from before a snapshot, which some snapshot may see (docs/design/0044).
#[derive(Debug)]
pub(crate) struct Segment {
    /// The number of the newest snapshot when they were written.
    pub(super) born: u32,
    /// Sorted by block.
    pub(super) entries: Vec<IndexEntry>,
}

/// Pages of the table that a part may need when it is destaged, beside those of its segments: its map page.
const MAP_PAGES: u64 = 1;
/// Delta pages that a segment may need: what does not fit the part's last one, at most 256 entries, fits another.
const DELTA_PAGES: u64 = 1;

/// All that the log knows of one extent beyond its descriptor, or of a part that gets its place when it is destaged. What is in force, oldest first: the
/// descriptor, unless `reset`, or the map page; then `direct`; then the former segments; then `entries`.
#[derive(Debug)]
pub(crate) struct Dirty {
    pub(super) location: ExtentLocation,
    /// The component's key and the part that has the extent. `None`: it was freed, or the group is still being opened.
    pub(super) part: Option<(u32, u32)>,
    /// What was written before a snapshot and stands in the log with what came behind it, oldest first.
    pub(super) former: Vec<Segment>,
    /// The number of the newest snapshot when `entries` were written.
    pub(super) born: u32,
    /// Whether anything of it gets its place when it is destaged.
    pub(super) is_mapped: bool,
    /// Entries in all segments to which a frame is promised.
    pub(super) data_count: u32,
    /// Frames and pages that are promised to it.
    pub(super) promised: (u64, u64),
    /// Blocks of data that are accepted but not yet stable.
    pub(super) pending_blocks: u32,
    /// Log position of the record since which the descriptor counts as empty.
    pub(super) reset: Option<u64>,
    pub(super) direct: Option<Direct>,
    /// Sorted by block.
    pub(super) entries: Vec<IndexEntry>,
    /// Versions that regions have although nothing in the log or at rest tells them: of held blocks that ended.
    pub(super) raised: Vec<Raised>,
    /// Writes and trims that are accepted but not yet stable.
    pub(super) pending: u32,
    pub(super) is_destaging: bool,
    /// Grows when the extent is freed, so that a destaging under way knows that it came too late.
    pub(super) generation: u32,
}

impl Dirty {
    pub(super) fn new(location: ExtentLocation) -> Dirty {
        Dirty {
            location,
            part: None,
            former: Vec::new(),
            born: 0,
            is_mapped: !location.is_placed(),
            data_count: 0,
            promised: (0, 0),
            pending_blocks: 0,
            reset: None,
            direct: None,
            entries: Vec::new(),
            raised: Vec::new(),
            pending: 0,
            is_destaging: false,
            generation: 0,
        }
    }

    /// What the log has of single blocks since the newest snapshot, by block.
    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    /// The same in all segments, oldest first.
    pub(crate) fn all_entries(&self) -> impl Iterator<Item = &IndexEntry> {
        self.former.iter().flat_map(|segment| segment.entries.iter()).chain(&self.entries)
    }

    /// The oldest segment, which is destaged first: the number of the newest snapshot when it was written, and its entries.
    pub(crate) fn oldest_segment(&self) -> (u32, &[IndexEntry]) {
        match self.former.first() {
            Some(segment) => (segment.born, &segment.entries),
            None => (self.born, &self.entries),
        }
    }

    /// Whether anything of it gets its place when it is destaged.
    pub(crate) fn is_mapped(&self) -> bool {
        self.is_mapped
    }

    /// Where it stands; not placed if that is decided when it is destaged.
    pub(crate) fn location(&self) -> ExtentLocation {
        self.location
    }

    /// The component's key and the part.
    pub(crate) fn part(&self) -> Option<(u32, u32)> {
        self.part
    }

    /// Frames and pages that it may need.
    pub(super) fn wanted(&self) -> (u64, u64) {
        if !self.is_mapped || (self.is_clean() && self.pending_blocks == 0) {
            return (0, 0);
        }
        let frames = u64::from(self.data_count) + u64::from(self.pending_blocks);
        // Of the changes that are not stable yet, those of each batch may begin a segment, and two batches are on their way at most.
        let segments = self.former.len() as u64 + 1 + u64::from(self.pending.min(2));
        (frames, MAP_PAGES + DELTA_PAGES * segments)
    }

    pub(crate) fn direct(&self) -> Option<&Direct> {
        self.direct.as_ref()
    }

    /// Versions of regions that nothing else tells.
    pub(crate) fn raised(&self) -> &[Raised] {
        &self.raised
    }

    /// Whether the descriptor counts as empty.
    pub(crate) fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// Whether writes or trims are accepted that are not stable yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending > 0
    }

    pub(crate) fn is_destaging(&self) -> bool {
        self.is_destaging
    }

    /// Grows when the extent is freed.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Whether it can be forgotten.
    pub(super) fn is_clean(&self) -> bool {
        !self.has_state() && self.pending == 0 && !self.is_destaging
    }

    /// Whether the descriptor lacks anything that the log has.
    pub(crate) fn has_state(&self) -> bool {
        self.reset.is_some()
            || self.direct.is_some()
            || !self.entries.is_empty()
            || !self.former.is_empty()
            || !self.raised.is_empty()
    }

    /// Whether the log tells whose the extent is, or that it is free: trims alone do not.
    pub(crate) fn tells_owner(&self) -> bool {
        let is_data = |entry: &IndexEntry| entry.newest == Newest::Data;
        self.reset.is_some() || self.direct.is_some() || self.all_entries().any(is_data)
    }

    /// The oldest log position that it needs.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let entries = self.all_entries().map(|entry| entry.position);
        let raised = self.raised.iter().map(|raised| raised.position);
        entries
            .chain(raised)
            .chain(self.reset)
            .chain(self.direct.as_ref().map(|direct| direct.position))
            .min()
    }

    /// Whether the blocks of the oldest segment must get frames.
    pub(crate) fn must_be_mapped(&self) -> bool {
        let (_, entries) = self.oldest_segment();
        has_frame_only(entries)
    }

    /// Whether a round up to that boundary takes anything of it.
    pub(crate) fn is_due(&self, boundary: u64) -> bool {
        self.oldest_due().is_some_and(|oldest| oldest < boundary)
    }

    /// The oldest log position of what the round under way may take.
    pub(crate) fn oldest_due(&self) -> Option<u64> {
        let due = self.all_entries().filter(|entry| !entry.is_late).map(|entry| entry.position);
        let raised = self.raised.iter().map(|raised| raised.position);
        due.chain(raised).chain(self.reset).chain(self.direct.as_ref().map(|direct| direct.position)).min()
    }

    /// What became content late is taken by rounds from now on.
    pub(super) fn forget_late(&mut self) {
        let former = self.former.iter_mut().flat_map(|segment| segment.entries.iter_mut());
        former.chain(&mut self.entries).for_each(|entry| entry.is_late = false);
    }

    /// Whether the version of a block from that position of the log is the newest of its segment.
    pub(crate) fn has_at(&self, block: u8, position: u64) -> bool {
        let former = self.former.iter().map(|segment| &segment.entries);
        let mut found = former.chain([&self.entries]).filter_map(|entries| find_in(entries, block));
        found.any(|entry| entry.position == position)
    }

    /// The newest version of a block.
    pub(crate) fn find(&self, block: u8) -> Option<&IndexEntry> {
        find_in(&self.entries, block).or_else(|| self.find_before(block, u32::MAX))
    }

    /// The newest version of a block from before a snapshot.
    pub(crate) fn find_before(&self, block: u8, snapshot: u32) -> Option<&IndexEntry> {
        if self.born < snapshot
            && let Some(entry) = find_in(&self.entries, block)
        {
            return Some(entry);
        }
        let former = self.former.iter().rev().filter(|segment| segment.born < snapshot);
        former.map(|segment| find_in(&segment.entries, block)).find_map(|found| found)
    }

    /// Takes the entries out that stand in the log from a position on.
    pub(super) fn void_since(&mut self, position: u64) -> Vec<IndexEntry> {
        let former = self.former.iter_mut().map(|segment| &mut segment.entries);
        let mut void: Vec<IndexEntry> = Vec::new();
        for entries in former.chain([&mut self.entries]) {
            void.extend(entries.extract_if(.., |entry| entry.position >= position));
        }
        self.former.retain(|segment| !segment.entries.is_empty());
        self.data_count -= void.iter().filter(|entry| entry.wants_frame()).count() as u32;
        void
    }

    /// After recovery: blocks of these segments, the oldest ones, go to their places in the part's extent. No frames are promised to them. Where one has blocks that
    /// must get frames, the others go before these, and by these the part leaves its extent.
    pub(super) fn settle_in_place(&mut self, is_in_place: impl Fn(u32) -> bool) {
        let mut segments = self.take_segments();
        let settled = segments.iter().take_while(|segment| is_in_place(segment.born)).count();
        let leaves = segments[..settled].iter().position(|segment| has_frame_only(&segment.entries));
        for segment in &mut segments[..leaves.unwrap_or(settled)] {
            segment.entries.iter_mut().for_each(|entry| entry.goal = Goal::Place);
        }
        if let Some(at) = leaves {
            let segment = &mut segments[at];
            let mut before: Vec<IndexEntry> =
                segment.entries.extract_if(.., |entry| entry.goal != Goal::FrameOnly).collect();
            before.iter_mut().for_each(|entry| entry.goal = Goal::Place);
            let born = segment.born;
            if !before.is_empty() {
                segments.insert(at, Segment { born, entries: before });
            }
        }
        self.put_segments(segments);
    }

    /// Takes all segments out, the newest last.
    fn take_segments(&mut self) -> Vec<Segment> {
        let own = Segment { born: self.born, entries: std::mem::take(&mut self.entries) };
        let mut segments = std::mem::take(&mut self.former);
        segments.push(own);
        segments
    }

    /// Puts segments in their place.
    fn put_segments(&mut self, mut segments: Vec<Segment>) {
        let newest = segments.pop().expect("there is the newest");
        (self.born, self.entries, self.former) = (newest.born, newest.entries, segments);
        self.data_count = self.all_entries().filter(|entry| entry.wants_frame()).count() as u32;
    }

    /// After recovery: puts segments together that nobody needs apart, as `is_one` says of the numbers of two that follow each other. Not what goes to its place and what must
    /// not go there.
    pub(super) fn merge_segments(&mut self, is_one: impl Fn(u32, u32) -> bool) {
        let mut merged: Vec<Segment> = Vec::new();
        for segment in self.take_segments() {
            let leaves = has_frame_only(&segment.entries);
            let stays = |entries: &[IndexEntry]| entries.iter().any(|entry| entry.goal == Goal::Place);
            let may_join =
                |before: &Segment| is_one(before.born, segment.born) && !(leaves && stays(&before.entries));
            match merged.last_mut().filter(|before| may_join(before)) {
                Some(before) => {
                    before.born = segment.born;
                    segment.entries.into_iter().for_each(|entry| join_entry(&mut before.entries, entry));
                }
                None => merged.push(segment),
            }
        }
        self.put_segments(merged);
    }

    /// After recovery: takes what records say of the same part that name no extent. Records of both kinds may follow each other in any order, so
    /// in each segment the later one counts, with the greatest id of both.
    pub(super) fn join(&mut self, other: Dirty) {
        let mut segments: BTreeMap<u32, Vec<IndexEntry>> = BTreeMap::new();
        let Dirty { former, born, entries, raised, .. } = other;
        let all = self.take_segments().into_iter().chain(former);
        for segment in all.chain([Segment { born, entries }]) {
            let joined = segments.entry(segment.born).or_default();
            segment.entries.into_iter().for_each(|entry| join_entry(joined, entry));
        }
        self.born = self.born.max(born);
        self.entries = segments.remove(&self.born).unwrap_or_default();
        segments.retain(|_, entries| !entries.is_empty());
        self.former = segments.into_iter().map(|(born, entries)| Segment { born, entries }).collect();
        self.is_mapped = true;
        self.data_count = self.all_entries().filter(|entry| entry.wants_frame()).count() as u32;
        self.raised.extend(raised);
    }

    /// Puts `entry` instead of any older one of its block. Returns that older one. The block keeps the greatest id of
    /// both: a copy may come with a lesser one than a guest's change that went before, and contains that change.
    pub(super) fn insert(&mut self, entry: IndexEntry) -> Option<IndexEntry> {
        match self.entries.binary_search_by_key(&entry.block, |other| other.block) {
            Ok(index) => {
                let id = entry.id.max(self.entries[index].id);
                Some(std::mem::replace(&mut self.entries[index], IndexEntry { id, ..entry }))
            }
            Err(index) => {
                self.entries.insert(index, entry);
                None
            }
        }
    }
}

/// Puts an entry into a segment, in which the later one of a block counts, with the greatest id of both. What was held and became content stands before what it
/// replaces in the log.
fn join_entry(segment: &mut Vec<IndexEntry>, entry: IndexEntry) {
    match segment.binary_search_by_key(&entry.block, |known| known.block) {
        Ok(at) => {
            let id = entry.id.max(segment[at].id);
            let is_newer = match (entry.goal, segment[at].goal) {
                (Goal::FrameOnly, Goal::Place) => true,
                (Goal::Place, Goal::FrameOnly) => false,
                _ => entry.position > segment[at].position,
            };
            let newer = if is_newer { entry } else { segment[at] };
            segment[at] = IndexEntry { id, ..newer };
        }
        Err(at) => segment.insert(at, entry),
    }
}

/// Whether any of them must get a frame.
fn has_frame_only(entries: &[IndexEntry]) -> bool {
    entries.iter().any(|entry| entry.goal == Goal::FrameOnly)
}

fn find_in(entries: &[IndexEntry], block: u8) -> Option<&IndexEntry> {
    entries.binary_search_by_key(&block, |entry| entry.block).ok().map(|index| &entries[index])
}
