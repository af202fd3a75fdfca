//! What the views of a disk's snapshots read as, as far as somebody has read them.

use super::register::Block;
use crate::model::Value;
use base::request::StatusOf;
use std::collections::{BTreeMap, BTreeSet};

/// One snapshot.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The registers' clock when it was asked for, and when the record said that it was taken.
    pub(crate) asked: u64,
    pub(crate) taken: u64,
    /// What blocks were read as.
    pub(crate) found: BTreeMap<Block, Value>,
}

/// Those of one disk.
#[derive(Debug, Default)]
pub(crate) struct Views {
    views: BTreeMap<u32, View>,
    asked: Option<u64>,
    /// Pairs of snapshots for which somebody was told that a block is the same.
    alike: BTreeMap<Block, BTreeSet<(u32, u32)>>,
    /// Snapshots in which somebody was told that a block is a hole.
    holes: BTreeMap<Block, BTreeSet<u32>>,
    /// Numbers of those that somebody was told are not there.
    pub(crate) missing: Vec<u32>,
}

impl Views {
    /// One is asked for.
    pub(crate) fn asked(&mut self, clock: u64) {
        self.asked = Some(clock);
    }

    /// None is any more.
    pub(crate) fn cancelled(&mut self) {
        self.asked = None;
    }

    /// The record says that one was taken. One of which nobody heard that it was asked for is of a record that was lost since.
    pub(crate) fn taken(&mut self, number: u32, clock: u64) {
        let asked = self.asked.take().unwrap_or(0);
        self.views.insert(number, View { asked, taken: clock, found: BTreeMap::new() });
    }

    /// One is gone.
    pub(crate) fn deleted(&mut self, number: u32) {
        self.views.remove(&number);
        self.alike.values_mut().for_each(|pairs| pairs.retain(|pair| pair.0 != number && pair.1 != number));
        self.holes.values_mut().for_each(|numbers| numbers.retain(|one| *one != number));
    }

    /// Somebody was told no about a block: it is a hole, or the same.
    ///
    /// # Errors
    /// When it was read otherwise.
    pub(crate) fn told(&mut self, of: StatusOf, block: Block) -> Result<(), String> {
        let number = match of {
            StatusOf::Disk => return Ok(()),
            StatusOf::Snapshot(number) => {
                self.holes.entry(block).or_default().insert(number);
                number
            }
            StatusOf::Changes { since, snapshot } => {
                self.alike.entry(block).or_default().insert((since, snapshot));
                snapshot
            }
        };
        self.check(number, block)
    }

    /// Whether what a block of a view was read as agrees with what was told of it.
    fn check(&self, number: u32, block: Block) -> Result<(), String> {
        let found = |number: u32| self.views.get(&number).and_then(|view| view.found.get(&block)).copied();
        let Some(value) = found(number) else { return Ok(()) };
        if value != 0 && self.holes.get(&block).is_some_and(|numbers| numbers.contains(&number)) {
            return Err(format!(
                "block {block} of snapshot {number} was told to be a hole, and reads {value:x}"
            ));
        }
        for (since, snapshot) in self.alike.get(&block).into_iter().flatten() {
            let is_of_both = *since == number || *snapshot == number;
            if let (Some(before), Some(after)) = (found(*since), found(*snapshot))
                && is_of_both
                && before != after
            {
                return Err(format!(
                    "block {block} was told to be the same in snapshots {since} and {snapshot}, and reads {before:x} and {after:x}"
                ));
            }
        }
        Ok(())
    }

    /// One of them.
    pub(crate) fn get(&self, number: u32) -> Option<&View> {
        self.views.get(&number)
    }

    /// All numbers.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.views.keys().copied().collect()
    }

    /// A block of a view was read.
    ///
    /// # Errors
    /// When it was read as something else before.
    pub(crate) fn read(&mut self, number: u32, block: Block, value: Value) -> Result<(), String> {
        let Some(view) = self.views.get_mut(&number) else { return Ok(()) };
        match view.found.insert(block, value) {
            Some(before) if before != value => Err(format!(
                "block {block} of snapshot {number} reads as {value:x}, and read as {before:x} before"
            )),
            _ => self.check(number, block),
        }
    }
}
