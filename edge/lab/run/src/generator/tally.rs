//! What one thread measures.

use super::places::Operation;
use iostats::{Arrival, Recorder, Statistics};
use measured::{Compact, DiskSeries, Interval, Measured, Sample, Stall, Verified};
use statistics::Histogram;
use std::time::Duration;

/// A second: the unit of series.
pub const SECOND: u64 = 1_000_000_000;
/// Nothing completing for so long is a stall, unless I/Os take that long anyway.
pub const STALL_MIN: u64 = 100_000_000;
/// Most times of which that is kept of one thread: more than these are no news.
const QUIET_MAX: usize = 10_000;

/// When a group counts: nanoseconds after the start of its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From here.
    pub from: u64,
    /// To here; `u64::MAX` if its amount ends it.
    pub to: u64,
}

impl Window {
    fn has(&self, time: u64) -> bool {
        time >= self.from && time < self.to
    }
}

/// What one thread measured of one group.
#[derive(Debug)]
pub struct GroupTally {
    /// When it counts.
    pub window: Window,
    /// When the first group of its stage begins to count: times of intervals are from here on.
    origin: u64,
    /// Whether begin and intended begin differ.
    open: bool,
    /// Whether the thread runs any of it: of what it does not run, no seconds are kept.
    is_run: bool,
    /// Over the whole window, up to the current second.
    pub operations: [Measured; 3],
    /// Second by second.
    pub intervals: Vec<Interval>,
    /// The current second.
    current: [Histogram; 3],
    /// What completed in it, and in the window.
    current_ios: [u64; 3],
    current_bytes: [u64; 3],
    current_errors: [u64; 3],
    /// Time that I/Os spent in the window, added up (ns).
    pub residence: u128,
    /// I/Os that were due in the window and never sent.
    pub unsent: u64,
    /// When the last I/O that counts ended.
    pub last_end: u64,
    /// What verification found.
    pub verified: Verified,
    /// When its last stream was done.
    pub finished_at: u64,
    /// Most I/Os that were due and had not begun.
    pub backlog_max: f64,
}

impl GroupTally {
    /// Nothing measured yet, in a stage that begins to count at `origin`.
    pub fn new(window: Window, origin: u64, open: bool, is_run: bool) -> GroupTally {
        GroupTally {
            window,
            origin,
            open,
            is_run,
            operations: Default::default(),
            intervals: Vec::new(),
            current: Default::default(),
            current_ios: [0; 3],
            current_bytes: [0; 3],
            current_errors: [0; 3],
            residence: 0,
            unsent: 0,
            last_end: window.from,
            verified: Verified::default(),
            finished_at: 0,
            backlog_max: 0.0,
        }
    }

    /// An I/O that was meant to begin at `intended` and began at `began` has ended well at `now`.
    #[inline]
    pub fn record(&mut self, operation: Operation, intended: u64, began: u64, now: u64, size: u32) {
        let index = operation as usize;
        let Window { from, to } = self.window;
        if now >= from && now < to {
            self.current_ios[index] += 1;
            self.current_bytes[index] += u64::from(size);
            self.last_end = now;
        }
        self.residence += u128::from(now.min(to).saturating_sub(began.max(from)));
        if self.window.has(intended) {
            self.current[index].record(now - intended);
            if self.open {
                self.operations[index].service.get_or_insert_default().record(now - began);
            }
        }
    }

    /// An I/O that was meant to begin at `intended` is given up at `now`: it counts as having waited until then, which is less than it
    /// would have.
    pub fn give_up(&mut self, operation: Operation, intended: u64, now: u64) {
        if self.window.has(intended) {
            self.unsent += 1;
            self.current[operation as usize].record(now - intended);
        }
    }

    /// An I/O has failed.
    pub fn failed(&mut self, operation: Operation) {
        self.operations[operation as usize].errors += 1;
        self.current_errors[operation as usize] += 1;
    }

    /// The second that began at `from` is over.
    fn turn(&mut self, from: u64) {
        for index in 0..3 {
            let (current, total) = (&self.current[index], &mut self.operations[index]);
            total.ios += self.current_ios[index];
            total.bytes += self.current_bytes[index];
            total.latency.merge(current);
        }
        if self.is_run
            && from + SECOND > self.window.from
            && (from < self.window.to || self.current.iter().any(|of| !of.is_empty()))
        {
            let at = (from as f64 - self.origin as f64) / 1e9;
            let latency = [0, 1, 2].map(|index| Compact::from(&self.current[index]));
            let (ios, bytes, errors) = (self.current_ios, self.current_bytes, self.current_errors);
            self.intervals.push(Interval { at, ios, latency, bytes, errors });
        }
        self.current.iter_mut().filter(|of| !of.is_empty()).for_each(|of| *of = Histogram::default());
        (self.current_ios, self.current_bytes, self.current_errors) = ([0; 3], [0; 3], [0; 3]);
    }
}

/// What one thread measured.
#[derive(Debug)]
pub struct Tally {
    /// Per group of the stage.
    pub groups: Vec<GroupTally>,
    recorders: Vec<Recorder>,
    earlier: Vec<Statistics>,
    /// Per target of the plan.
    pub disks: Vec<DiskSeries>,
    /// When nothing completed for a while, in order; `waiting` is 0 where nothing was outstanding either.
    pub quiet: Vec<Stall>,
    /// The first I/O that failed, where the run goes on.
    pub first_error: Option<String>,
    second: u64,
    quiet_since: u64,
}

impl Tally {
    /// Of these groups and targets.
    pub fn new(groups: Vec<GroupTally>, targets: &[String]) -> Tally {
        Tally {
            groups,
            recorders: targets.iter().map(|_| Recorder::new()).collect(),
            earlier: vec![Statistics::default(); targets.len()],
            disks: targets
                .iter()
                .map(|name| DiskSeries { name: name.clone(), samples: Vec::new() })
                .collect(),
            quiet: Vec::new(),
            first_error: None,
            second: 0,
            quiet_since: 0,
        }
    }

    /// An I/O begins.
    #[inline]
    pub fn arrive(
        &mut self,
        now: u64,
        target: usize,
        operation: Operation,
        offset: u64,
        size: u32,
    ) -> Option<Arrival> {
        let operation = match operation {
            Operation::Read => iostats::Operation::Read,
            Operation::Write => iostats::Operation::Write,
            Operation::Trim => {
                self.recorders[target].trimmed(u64::from(size));
                return None;
            }
        };
        Some(self.recorders[target].arrive(base::Instant(now), operation, offset / 512, size.div_ceil(512)))
    }

    /// An I/O that arrived has ended.
    #[inline]
    pub fn leave(&mut self, now: u64, target: usize, arrival: Option<Arrival>, ok: bool) {
        if let Some(arrival) = arrival {
            self.recorders[target].complete(base::Instant(now), arrival, ok);
        }
    }

    /// Something is outstanding from now on; nothing was before.
    #[inline]
    pub fn awake(&mut self, now: u64) {
        self.note_quiet(now, 0);
    }

    /// Something ended while `waiting` others were outstanding.
    #[inline]
    pub fn heard(&mut self, now: u64, waiting: u32) {
        self.note_quiet(now, waiting);
    }

    /// Nothing has completed until now.
    #[inline]
    fn note_quiet(&mut self, now: u64, waiting: u32) {
        if now - self.quiet_since > STALL_MIN && self.quiet.len() < QUIET_MAX {
            let (at, seconds) = (self.quiet_since as f64 / 1e9, (now - self.quiet_since) as f64 / 1e9);
            self.quiet.push(Stall { at, seconds, waiting });
        }
        self.quiet_since = now;
    }

    /// When the current second ends.
    pub fn second_end(&self) -> u64 {
        self.second + SECOND
    }

    /// Ends seconds that are over. True when one was.
    pub fn turn(&mut self, now: u64) -> bool {
        let turned = now >= self.second_end();
        while now >= self.second_end() {
            self.end_second(self.second_end());
        }
        turned
    }

    /// Ends the current second before its time, for nothing comes after it.
    pub fn finish(&mut self, now: u64) {
        self.turn(now);
        self.end_second(now.max(self.second + 1));
        self.note_quiet(now, 0);
        self.quiet.push(Stall { at: now as f64 / 1e9, seconds: f64::INFINITY, waiting: 0 });
    }

    fn end_second(&mut self, end: u64) {
        self.groups.iter_mut().for_each(|group| group.turn(self.second));
        for (index, recorder) in self.recorders.iter().enumerate() {
            let statistics = recorder.statistics();
            let difference = statistics.difference(&self.earlier[index]);
            if difference != Statistics::default() {
                self.disks[index].samples.push(Sample {
                    at: self.second as f64 / 1e9,
                    seconds: Duration::from_nanos(end - self.second).as_secs_f64(),
                    statistics: difference,
                });
                self.earlier[index] = statistics;
            }
        }
        self.second = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of one group kept an empty second of every other group: 1,000 groups on 64 threads took gigabytes an hour.
    #[test]
    fn a_thread_keeps_no_seconds_of_groups_that_it_does_not_run() {
        let window = Window { from: 0, to: u64::MAX };
        let groups = [true, false].map(|is_run| GroupTally::new(window, 0, false, is_run));
        let mut tally = Tally::new(groups.into(), &[]);
        tally.groups[0].record(Operation::Read, 0, 0, 5, 4096);
        tally.turn(100 * SECOND);
        assert_eq!(tally.groups[0].intervals.len(), 100, "empty seconds of a group that runs are told");
        assert!(tally.groups[1].intervals.is_empty());
    }
}
