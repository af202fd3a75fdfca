//! The state of destaging: the round under way, the extents that it moves, and how much may be in flight.

use crate::format::batch::ExtentPlace;
use crate::index::{Dirty, Newest};
use crate::limits;
use crate::log::{BatchStart, Log};
use crate::share::Share;
use base::{Buffer, Instant, WriteId};

/// One round over the oldest part of the log.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) boundary: BatchStart,
    /// Extents to visit, in order; the next one is at `next`.
    pub(crate) queue: Vec<ExtentPlace>,
    pub(crate) next: usize,
    pub(crate) active: usize,
    pub(crate) started: Instant,
    pub(crate) bytes: u64,
    /// Whether it takes all trims that are stable at its start.
    pub(crate) covers_all: bool,
}

/// The state of destaging.
#[derive(Debug, Default)]
pub(crate) struct Destaging {
    pub(crate) round: Option<Round>,
    pub(crate) bytes_in_flight: u64,
    /// Bytes a second in the last round that moved any.
    pub(crate) pace: f64,
    /// Boundary of the last round; a tail that is about to move there counts as moved.
    pub(crate) reached: u64,
    /// Whether a round has ended whose checkpoint would gain nothing.
    pub(crate) is_held: bool,
    /// A round has ended up to here and its checkpoint has not begun.
    pub(crate) finished: Option<BatchStart>,
    /// Destagings that wait for memory.
    pub(crate) waiting: Vec<u32>,
    /// Whether everything is to be destaged, however little there is.
    pub(crate) drain: bool,
}

/// How much is kept in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    pub(crate) bytes: u64,
    pub(crate) extents: usize,
}

impl Depth {
    pub(crate) const MAX: Depth =
        Depth { bytes: limits::DESTAGE_BYTES_MAX, extents: limits::DESTAGE_EXTENTS_MAX };

    /// That of a log so full.
    pub(crate) fn at(fill_percent: u64) -> Depth {
        let above = fill_percent.saturating_sub(limits::DESTAGE_START_PERCENT);
        let share = (above as f64 / 50.0).min(1.0);
        let between = |min: f64, max: f64| min + (max - min) * share;
        Depth {
            bytes: between(limits::DESTAGE_BYTES_MIN as f64, Depth::MAX.bytes as f64) as u64,
            extents: between(8.0, Depth::MAX.extents as f64) as usize,
        }
    }

    /// Held back for guests, the less the fuller the log is: where congestion begins it is not held back at all, for a full
    /// log slows guests more than destaging does. Between, it finds the fill at which it keeps up with them.
    pub(crate) fn held(self, fill_permille: u64, share: Share) -> Depth {
        let (start, urgent) = (limits::DESTAGE_START_PERCENT * 10, limits::CONGESTION_START_PERCENT * 10);
        let relief = (fill_permille.saturating_sub(start) as f64 / (urgent - start) as f64).min(1.0);
        let part = share.fraction() + (1.0 - share.fraction()) * relief;
        Depth {
            bytes: (self.bytes as f64 * part) as u64,
            extents: ((self.extents as f64 * part) as usize).max(1),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) block: u8,
    pub(crate) id: WriteId,
    pub(crate) position: u64,
    /// `None`: trimmed.
    pub(crate) checksum: Option<u32>,
    pub(crate) data: Option<Buffer>,
}

/// One extent on its way.
#[derive(Debug)]
pub(crate) struct Destage {
    pub(crate) place: ExtentPlace,
    pub(crate) dirty: u32,
    pub(crate) generation: u32,
    pub(crate) boundary: u64,
    pub(crate) items: Vec<Item>,
    pub(crate) outstanding: u32,
    pub(crate) bytes: u64,
    pub(crate) is_pinned: bool,
}

impl Destaging {
    /// The tail was held back and may go on: the next checkpoint takes it to where destaging has been.
    pub(crate) fn catch_up(&mut self, log: &Log) {
        if self.finished.is_none() && self.reached > log.tail() {
            self.finished = Some(log.start_at_or_after(self.reached, log.next_start()));
        }
    }
}

/// The entries older than the boundary, and those right beside them.
pub(crate) fn due_items(dirty: &Dirty, boundary: u64) -> Vec<Item> {
    let entries = dirty.entries();
    let mut takes: Vec<bool> = entries.iter().map(|entry| entry.position < boundary).collect();
    let is_beside = |a: usize, b: usize| entries[a].block + 1 == entries[b].block;
    for index in 1..entries.len() {
        takes[index] |= takes[index - 1] && is_beside(index - 1, index);
    }
    for index in (1..entries.len()).rev() {
        takes[index - 1] |= takes[index] && is_beside(index - 1, index);
    }
    let taken = entries.iter().zip(takes).filter(|(_, take)| *take);
    let item = |entry: &crate::index::Entry| Item {
        block: entry.block,
        id: entry.id,
        position: entry.position,
        checksum: (entry.newest == Newest::Data).then_some(entry.checksum),
        data: None,
    };
    taken.map(|(entry, _)| item(entry)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(fill_percent: u64, share: Share) -> Depth {
        Depth::at(fill_percent).held(fill_percent * 10, share)
    }

    #[test]
    fn guests_who_feel_it_have_destaging_held_back_while_the_log_has_room() {
        assert_eq!(held(30, Share::FULL), Depth { bytes: limits::DESTAGE_BYTES_MIN, extents: 8 });
        assert_eq!(held(30, Share::FLOOR), Depth { bytes: limits::DESTAGE_BYTES_MIN / 16, extents: 1 });
        assert!(held(45, Share::FLOOR).bytes < held(45, Share::FULL).bytes);
    }

    #[test]
    fn the_fuller_the_log_the_less_destaging_is_held_back() {
        let part = |fill| held(fill, Share::FLOOR).bytes as f64 / Depth::at(fill).bytes as f64;
        assert!((31..=60).all(|fill| part(fill - 1) < part(fill)));
    }

    #[test]
    fn a_log_that_is_congested_is_destaged_as_deep_as_ever() {
        for fill in limits::CONGESTION_START_PERCENT..=100 {
            assert_eq!(held(fill, Share::FLOOR), Depth::at(fill), "{fill} %");
        }
        let few_bytes = Depth::at(30);
        assert_eq!(few_bytes.held(600, Share::FLOOR), few_bytes, "the index is full of trims");
        assert_eq!(Depth::at(100), Depth::MAX);
    }
}
