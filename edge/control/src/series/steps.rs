//! What is asked for: steps of equal length, and what is known of each.

use super::Subject;
use super::row::Row;
use iostats::Interval;
use std::collections::BTreeMap;

/// Steps of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// When the first step begins, in seconds since 1970.
    pub start: u64,
    /// Seconds of a step, at least one.
    pub step: u64,
    /// How many steps.
    pub count: usize,
}

impl Range {
    /// When the last step ends.
    pub fn end(&self) -> u64 {
        self.start + self.step * self.count as u64
    }

    /// The step in which a time lies.
    pub fn step_of(&self, time: u64) -> Option<usize> {
        let index = usize::try_from(time.checked_sub(self.start)? / self.step).ok()?;
        (index < self.count).then_some(index)
    }
}

/// What a subject did in each step.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    /// The steps.
    pub range: Range,
    /// Seconds of each step that were seen; 0: nothing is known of it.
    pub seconds: Vec<u32>,
    /// By step; nothing where nothing happened, or nothing is known.
    pub intervals: BTreeMap<usize, Interval>,
}

impl Steps {
    pub(super) fn new(range: Range) -> Steps {
        Steps { range, seconds: vec![0; range.count], intervals: BTreeMap::new() }
    }

    /// Adds a row, if it is of the range: the host's rows tell what is known, those of the subject what it did.
    pub(super) fn add_row(&mut self, subject: Subject, row: &Row) {
        let Some(index) = self.range.step_of(row.start) else { return };
        if row.subject == Subject::Host {
            self.seconds[index] += u32::from(row.seconds);
        }
        if row.subject == subject {
            self.add(index, &row.interval);
        }
    }

    pub(super) fn add(&mut self, index: usize, interval: &Interval) {
        self.intervals.entry(index).or_default().merge(interval);
    }
}
