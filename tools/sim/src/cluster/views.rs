//! What the views of a disk's snapshots read as, as far as somebody has read them.

use super::register::Block;
use crate::model::Value;
use std::collections::BTreeMap;

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
            _ => Ok(()),
        }
    }
}
