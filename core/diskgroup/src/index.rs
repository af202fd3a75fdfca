//! The write buffer's index: for each extent, what stands in the log and not yet at rest.

use crate::format::batch::ExtentPlace;
use base::WriteId;
use base::units::BLOCKS_PER_EXTENT;

/// What the newest version of a block in the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newest {
    /// Data, at the entry's position in the log.
    Data,
    /// Nothing: it was trimmed.
    Trim,
}

/// The newest version of one block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) id: WriteId,
    /// Log block of the data, or of the batch with the trim.
    pub(crate) position: u64,
    pub(crate) checksum: u32,
    pub(crate) block: u8,
    pub(crate) newest: Newest,
}

/// A whole extent written in place, known to the log but not yet to the extent's descriptor.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) checksums: Box<[u32; BLOCKS_PER_EXTENT]>,
    pub(crate) id: WriteId,
    pub(crate) position: u64,
}

/// All that the log knows of one extent beyond its descriptor. What is in force, oldest first: the descriptor, unless
/// `reset`; then `direct`; then `entries`.
#[derive(Debug)]
pub(crate) struct Dirty {
    pub(crate) place: ExtentPlace,
    /// Log position of the record since which the descriptor counts as empty.
    pub(crate) reset: Option<u64>,
    pub(crate) direct: Option<Direct>,
    /// Sorted by block.
    pub(crate) entries: Vec<Entry>,
    /// Writes and trims that are accepted but not yet stable.
    pub(crate) pending: u32,
    pub(crate) is_destaging: bool,
    /// Grows when the extent is freed, so that a destaging under way knows that it came too late.
    pub(crate) generation: u32,
}

impl Dirty {
    pub(crate) fn new(place: ExtentPlace) -> Dirty {
        Dirty {
            place,
            reset: None,
            direct: None,
            entries: Vec::new(),
            pending: 0,
            is_destaging: false,
            generation: 0,
        }
    }

    /// Whether it can be forgotten.
    pub(crate) fn is_clean(&self) -> bool {
        !self.has_state() && self.pending == 0 && !self.is_destaging
    }

    /// Whether the descriptor lacks anything that the log has.
    pub(crate) fn has_state(&self) -> bool {
        self.reset.is_some() || self.direct.is_some() || !self.entries.is_empty()
    }

    /// Whether the log tells whose the extent is, or that it is free: trims alone do not.
    pub(crate) fn tells_owner(&self) -> bool {
        let is_data = |entry: &Entry| entry.newest == Newest::Data;
        self.reset.is_some() || self.direct.is_some() || self.entries.iter().any(is_data)
    }

    /// The oldest log position that it needs.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let entries = self.entries.iter().map(|entry| entry.position);
        entries.chain(self.reset).chain(self.direct.as_ref().map(|direct| direct.position)).min()
    }

    pub(crate) fn find(&self, block: u8) -> Option<&Entry> {
        self.entries.binary_search_by_key(&block, |entry| entry.block).ok().map(|index| &self.entries[index])
    }

    /// Puts `entry` in the place of any older one of its block. Returns that older one. The block keeps the greatest id of
    /// both: a copy may come with a lesser one than a guest's change that went before, and contains that change.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<Entry> {
        match self.entries.binary_search_by_key(&entry.block, |other| other.block) {
            Ok(index) => {
                let id = entry.id.max(self.entries[index].id);
                Some(std::mem::replace(&mut self.entries[index], Entry { id, ..entry }))
            }
            Err(index) => {
                self.entries.insert(index, entry);
                None
            }
        }
    }

    /// Forgets all: the extent was freed by the record at `position`.
    pub(crate) fn reset(&mut self, position: u64) {
        self.entries.clear();
        self.direct = None;
        self.reset = Some(position);
        self.generation += 1;
    }
}
