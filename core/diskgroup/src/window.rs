//! The window of a component: the guests' changes that its watermark has not passed, and the watermark itself.
//!
//! What is in the window must be told after any crash, with its data (core/replication, invariants 7 and 13). The data
//! stands in the log or at rest like any other; what is remembered here is the change's id and range. Its record is the
//! memory on the device. Before the log lets go of a record whose change is still in the window, an `Entry` takes its
//! place (`checkpoint`).
//!
//! An owner may leave the watermark where it is for as long as the directory is away, and a log may hold far more changes than
//! the window did. So a long window is compacted: an owner has at most [`limits::UNDECIDED_MAX`] changes undecided, so all
//! that precede its newest change by more are decided. Of these only the ids are needed, to show that none is missing:
//! each run of them becomes one span (docs/design/0022).

use crate::format::batch::WindowEntry;
use crate::limits;
use base::WriteId;
use std::collections::{BTreeMap, VecDeque};

/// The window of one component.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// By id, each with the log position of the batch that tells of it.
    entries: VecDeque<(WindowEntry, u64)>,
    /// The last that the watermark has passed and that have happened, in that order, by the source of their tags: in memory,
    /// and after a restart as far as the log still tells of them.
    lately: BTreeMap<u32, VecDeque<WindowEntry>>,
    /// What the watermark passes has happened if it is of this epoch or later.
    from_epoch: u32,
    /// The greatest watermark known; what is stable stands in the component's record.
    watermark: WriteId,
    /// The greatest watermark that is on its way to the log, or there.
    logged: WriteId,
    /// Entries that the last compaction left; the next one comes when there are twice as many, or more than
    /// [`limits::WINDOW_ENTRIES_MAX`].
    compacted: usize,
}

impl Window {
    /// The greatest watermark known.
    pub(crate) fn watermark(&self) -> WriteId {
        self.watermark
    }

    /// What the watermark passes has happened if it is of this epoch or later.
    pub(crate) fn happened_from(&self) -> u32 {
        self.from_epoch
    }

    /// Recovery finds a watermark in the log.
    pub(crate) fn replay_watermark(&mut self, watermark: WriteId, from_epoch: u32) {
        if watermark > self.watermark {
            (self.watermark, self.from_epoch) = (watermark, from_epoch);
            self.forget_through(watermark);
        }
    }

    /// The log is read: what only a page's watermark tells to be decided is so.
    pub(crate) fn end_recovery(&mut self, watermark: WriteId) {
        self.from_epoch = watermark.epoch;
        self.forget_through(watermark);
        (self.watermark, self.logged) = (watermark, watermark);
    }

    /// As [`Window::hear`], but what the former watermark said is forgotten: what the rule `KeepHappened` forbids.
    pub(crate) fn hear_alone(&mut self, watermark: WriteId, from_epoch: u32) {
        (self.watermark, self.from_epoch) = (watermark, from_epoch);
    }

    /// Whether the greatest watermark known is not on its way to the log yet.
    pub(crate) fn is_unlogged(&self) -> bool {
        self.watermark > self.logged
    }

    /// A watermark goes to the log.
    pub(crate) fn log(&mut self, watermark: WriteId) {
        self.logged = self.logged.max(watermark);
    }

    /// Whether records of the log before `tail` tell of changes that the watermark has passed.
    pub(crate) fn is_passed_before(&self, watermark: WriteId, tail: u64) -> bool {
        self.entries.iter().any(|(entry, at)| entry.last() <= watermark && *at < tail)
    }

    /// The last changes that the watermark has passed and that have happened, by id, as far as they are remembered.
    pub(crate) fn decided_lately(&self, watermark: WriteId) -> Vec<WindowEntry> {
        let is_passed = |entry: &&WindowEntry| entry.id <= watermark && entry.id.epoch >= self.from_epoch;
        let passed = self.entries.iter().map(|(entry, _)| entry).filter(is_passed);
        let mut all: Vec<WindowEntry> = self.lately.values().flatten().chain(passed).copied().collect();
        all.sort_unstable_by_key(|entry| entry.id);
        all
    }

    /// Remembers a change whose record stands at `position`, in the place of what was remembered of it before.
    pub(crate) fn insert(&mut self, entry: WindowEntry, position: u64) {
        let index = self.entries.partition_point(|(other, _)| other.id < entry.id);
        match self.entries.get_mut(index) {
            Some((other, at)) if other.id == entry.id => {
                *at = position.max(*at);
                // What was held and is dropped has not happened.
                let is_dropped = entry.count == 0 && entry.layer > 0;
                if entry.last() > other.last() || is_dropped {
                    *other = entry;
                }
            }
            Some(_) | None => self.entries.insert(index, (entry, position)),
        }
        if self.entries.len() > limits::WINDOW_ENTRIES_MAX.max(2 * self.compacted) {
            self.compact();
        }
    }

    /// Makes spans of the runs of changes that must be decided, because a much later one of the same owner is here. A span is
    /// told again as soon as the log lets go of the first record that told of it.
    fn compact(&mut self) {
        let mut newest: BTreeMap<u32, u64> = BTreeMap::new();
        for (entry, _) in &self.entries {
            let of_epoch = newest.entry(entry.id.epoch).or_default();
            *of_epoch = entry.last().sequence.max(*of_epoch);
        }
        let is_decided = |entry: &WindowEntry| {
            entry.last().sequence.saturating_add(limits::UNDECIDED_MAX) <= newest[&entry.id.epoch]
        };
        let mut compacted: VecDeque<(WindowEntry, u64)> = VecDeque::new();
        for (entry, at) in std::mem::take(&mut self.entries) {
            let joins = |last: &WindowEntry| {
                last.id.epoch == entry.id.epoch && entry.id.sequence <= last.last().sequence.saturating_add(1)
            };
            match compacted
                .back_mut()
                .filter(|(last, _)| is_decided(&entry) && is_decided(last) && joins(last))
            {
                Some((last, told_at)) => {
                    let end = last.last().sequence.max(entry.last().sequence);
                    *last = WindowEntry::span(last.id, end - last.id.sequence);
                    *told_at = at.min(*told_at);
                }
                None => compacted.push_back((entry, at)),
            }
        }
        self.compacted = compacted.len();
        self.entries = compacted;
    }

    /// A later watermark says that what it passes has happened if it is of `from_epoch` or later. What lies beyond the former
    /// one is of that one's epoch at least, so that both may say the same of it; else what the former one said is remembered
    /// first, for it may not be stable yet.
    pub(crate) fn hear(&mut self, watermark: WriteId, from_epoch: u32) {
        if from_epoch > self.watermark.epoch {
            self.count_from(from_epoch);
        }
        self.watermark = watermark;
    }

    /// From now on what the watermark passes has happened if it is of this epoch or later; of what it passed by now, what was said
    /// stays true.
    pub(crate) fn count_from(&mut self, epoch: u32) {
        let said = |entry: &WindowEntry| {
            entry.id <= self.watermark
                && (self.from_epoch..epoch).contains(&entry.id.epoch)
                && entry.count > 0
        };
        let said: Vec<WindowEntry> =
            self.entries.iter().map(|(entry, _)| *entry).filter(|entry| said(entry)).collect();
        said.into_iter().for_each(|entry| self.remember_lately(entry));
        self.from_epoch = epoch;
    }

    pub(crate) fn forget_through(&mut self, watermark: WriteId) {
        while let Some((entry, at)) = self.entries.pop_front_if(|(entry, _)| entry.id <= watermark) {
            if entry.last() > watermark {
                let first = WriteId { sequence: watermark.sequence + 1, ..watermark };
                let rest = WindowEntry::span(first, entry.last().sequence - first.sequence);
                return self.entries.push_front((rest, at));
            }
            if entry.id.epoch >= self.from_epoch && entry.count > 0 {
                self.remember_lately(entry);
            }
        }
    }

    fn remember_lately(&mut self, entry: WindowEntry) {
        let of_node = self.lately.entry(entry.tag.source()).or_default();
        // Only trims come in so many pieces: one part each. They must not take the place of other requests.
        let is_of_request = |other: &WindowEntry| other.is_trim && other.tag == entry.tag;
        if entry.is_trim
            && of_node.iter().filter(|other| is_of_request(other)).count()
                >= limits::DECIDED_LATELY_OF_REQUEST_MAX
            && let Some(oldest) = of_node.iter().position(is_of_request)
        {
            of_node.remove(oldest);
        }
        of_node.push_back(entry);
        if of_node.len() > limits::DECIDED_LATELY_OF_NODE_MAX {
            of_node.pop_front();
        }
        let count: usize = self.lately.values().map(VecDeque::len).sum();
        if count > limits::DECIDED_LATELY_MAX
            && let Some(most) = self.lately.values_mut().max_by_key(|entries| entries.len())
        {
            most.pop_front();
        }
    }

    /// Entries that no watermark has passed.
    pub(crate) fn undecided(&self) -> usize {
        self.entries.len() - self.entries.partition_point(|(entry, _)| entry.last() <= self.watermark)
    }

    pub(crate) fn beyond(&self, watermark: WriteId) -> impl Iterator<Item = &(WindowEntry, u64)> {
        self.entries.iter().filter(move |(entry, _)| entry.last() > watermark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64) -> WindowEntry {
        let id = WriteId { epoch: 1, sequence };
        WindowEntry {
            id,
            part: 0,
            layer: 0,
            block: 0,
            count: 1,
            is_trim: false,
            tag: base::RequestTag(sequence),
        }
    }

    /// The ids that a window shows, each once, in order.
    fn ids(window: &Window) -> Vec<u64> {
        let of = |(entry, _): &(WindowEntry, u64)| entry.id.sequence..=entry.last().sequence;
        let mut ids: Vec<u64> = window.entries.iter().flat_map(of).collect();
        ids.dedup();
        ids
    }

    /// With the directory away as a copy was about to count, its owner told no watermark: 50,000 writes made a window of as
    /// many entries, more than the answer to an owner elsewhere may have, and the host ended at each of these.
    #[test]
    fn a_window_stays_short_however_long_the_watermark_stands_and_shows_all_its_ids() {
        let mut window = Window::default();
        for sequence in 1..=50_000 {
            window.insert(entry(sequence), sequence * 10);
            assert!(window.entries.len() <= limits::WINDOW_ENTRIES_MAX, "at {sequence}");
        }
        assert!(ids(&window).into_iter().eq(1..=50_000), "none is missing");
        let undecided = window.entries.iter().rev().take(limits::UNDECIDED_MAX as usize);
        assert!(undecided.into_iter().all(|(entry, _)| !entry.is_span()), "the newest have their ranges");
        assert_eq!(window.entries[0], (WindowEntry::span(entry(1).id, window.entries[0].0.tag.0), 10));
    }

    #[test]
    fn a_span_hides_no_gap_and_is_told_again_with_its_oldest_record() {
        let mut window = Window::default();
        (1..=100).chain(110..=200).for_each(|sequence| window.insert(entry(sequence), 1000 - sequence));
        window.insert(entry(5_000), 7);
        window.compact();
        let spans: Vec<(u64, u64, u64)> = window
            .entries
            .iter()
            .map(|(entry, at)| (entry.id.sequence, entry.last().sequence, *at))
            .collect();
        assert_eq!(spans, [(1, 100, 900), (110, 200, 800), (5_000, 5_000, 7)]);
    }

    #[test]
    fn a_span_that_is_read_from_the_log_joins_what_came_after_it_and_shrinks_with_the_watermark() {
        let mut window = Window::default();
        let id = |sequence| WriteId { epoch: 1, sequence };
        window.insert(WindowEntry::span(id(1), 99), 5);
        (101..=150).for_each(|sequence| window.insert(entry(sequence), sequence));
        // Told again longer, before the log had let go of the records that it stands for.
        window.insert(WindowEntry::span(id(1), 149), 200);
        window.insert(entry(3_000), 300);
        window.compact();
        assert_eq!(window.entries[0], (WindowEntry::span(id(1), 149), 101));
        window.forget_through(id(120));
        assert_eq!(window.entries[0].0, WindowEntry::span(id(121), 29));
        assert_eq!(window.beyond(id(149)).count(), 2);
        assert_eq!(window.beyond(id(150)).count(), 1);
        window.forget_through(id(150));
        assert_eq!(window.entries.len(), 1);
    }

    #[test]
    fn changes_of_former_owners_that_may_be_void_keep_their_ranges() {
        let mut window = Window::default();
        for epoch in 1..=2 {
            for sequence in 1..=2 * limits::UNDECIDED_MAX {
                let id = WriteId { epoch, sequence };
                window.insert(WindowEntry { id, ..entry(sequence) }, sequence);
            }
        }
        window.compact();
        for epoch in 1..=2 {
            let kept = window.entries.iter().filter(|(entry, _)| entry.id.epoch == epoch && !entry.is_span());
            assert_eq!(kept.count() as u64, limits::UNDECIDED_MAX, "of epoch {epoch}");
        }
    }

    #[test]
    fn a_window_is_ordered_by_id_and_shrinks_from_its_start() {
        let mut window = Window::default();
        for sequence in [3, 1, 2, 5] {
            window.insert(entry(sequence), sequence * 10);
        }
        window.insert(entry(2), 99);
        window.forget_through(WriteId { epoch: 1, sequence: 1 });
        let left: Vec<(u64, u64)> = window.entries.iter().map(|(one, at)| (one.id.sequence, *at)).collect();
        assert_eq!(left, [(2, 99), (3, 30), (5, 50)]);
    }
}
