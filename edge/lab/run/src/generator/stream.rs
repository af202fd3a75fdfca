//! One closed loop of I/Os: what it does next, decided from the time and what has completed.
//!
//! A worker of a plan is one stream; a worker with a depth on each of several targets is one stream a target, for these do not
//! wait for one another. A stream has no clock and does no I/O: [`Stream::next`] says what to begin, [`Stream::ended`] that
//! something ended.

use super::arrivals::{Schedule, Sharing};
use super::places::{NoRoom, Operation, Places, WorkerNumber};
use super::popularity::unit;
use base::Random;
use plan::{Amount, FlushRule, Group, Line, Pattern, PauseStart, Size, Think, Verify, VerifyWhen};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// An I/O to be begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub operation: Operation,
    /// Index of the stage's target.
    pub target: usize,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub size: u64,
    /// When it was meant to begin: latency counts from then. None: it counts from when it begins.
    pub intended: Option<u64>,
}

/// What a stream does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// This I/O.
    Begin(Io),
    /// A flush of this target, alone: once nothing else is under way.
    Flush(usize),
    /// Nothing before this time.
    Wait(u64),
    /// Nothing before one of its I/Os has ended.
    Full,
    /// Nothing any more.
    Finished,
}

/// What a stream is made from.
#[derive(Debug, Clone)]
pub struct StreamPlan {
    /// Index of the stage's group.
    pub group: usize,
    /// Which worker it belongs to.
    pub worker: WorkerNumber,
    /// Its targets (indices of the plan's).
    pub targets: Vec<usize>,
    /// I/Os that it keeps outstanding.
    pub depth: u32,
    /// Streams that share its rates.
    pub sharing: Sharing,
}

/// A closed loop of I/Os.
#[derive(Debug)]
pub struct Stream {
    /// Index of the stage's group.
    pub group: usize,
    lines: Vec<(f64, Line)>,
    places: Vec<(usize, Places)>,
    place_next: usize,
    depth: u32,
    under_way: u32,
    random: Random,
    schedules: Vec<Schedule>,
    /// An I/O that was drawn and waits for its time.
    drawn: Option<(usize, Operation, u64)>,
    /// Per line: I/Os since the last pause.
    since_pause: Vec<u32>,
    /// A pause that begins once all I/Os under way have ended.
    pause_due: Option<Duration>,
    /// A pause after so many I/Os have ended, and how many have since the last one.
    pause_after_ends: Option<(Think, u32)>,
    paused_until: u64,
    bytes_left: Option<u64>,
    flush: Option<FlushRule>,
    writes_since_flush: u32,
    flush_due: bool,
    flush_under_way: bool,
    /// Targets that are flushed once all else is done.
    end_flushes: Vec<usize>,
    backlog: Option<Backlog>,
    stopped: bool,
    size_mean: f64,
}

impl Stream {
    /// A stream of `group` that may begin at `start` (nanoseconds). `sizes` are those of the plan's targets, in bytes;
    /// `shared` the sequential positions of the group, a target each.
    ///
    /// # Errors
    /// When no I/O fits in the span on one of its targets.
    pub fn new(
        group: &Group,
        of: &StreamPlan,
        sizes: &[u64],
        shared: &[Arc<AtomicU64>],
        start: u64,
        mut random: Random,
    ) -> Result<Stream, NoRoom> {
        let mut places = Vec::new();
        for &target in &of.targets {
            let place = Places::new(&group.pattern, of.worker, sizes[target], &shared[target], &mut random)?;
            places.push((target, place));
        }
        let span: u64 = places.iter().map(|(_, place)| place.span()).sum();
        let bytes_left = group.timing.length.amount().map(|amount| match amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Passes(passes) => (span as f64 * passes) as u64,
        });
        let schedules =
            group.rates.iter().map(|rate| Schedule::new(rate, of.sharing, start, &mut random)).collect();
        Ok(Stream {
            group: of.group,
            lines: cumulative(&group.pattern),
            places,
            place_next: 0,
            depth: of.depth,
            under_way: 0,
            random,
            schedules,
            drawn: None,
            since_pause: vec![0; group.pattern.lines.len()],
            pause_due: None,
            pause_after_ends: (group.pattern.lines.iter())
                .find_map(|line| line.think.filter(|think| think.start == PauseStart::Completed))
                .map(|think| (think, 0)),
            paused_until: start,
            bytes_left,
            flush: group.caching.flush,
            writes_since_flush: 0,
            flush_due: false,
            flush_under_way: false,
            end_flushes: match group.caching.flush {
                Some(rule) if rule.at_end => of.targets.clone(),
                Some(_) | None => Vec::new(),
            },
            backlog: group.verify.as_ref().and_then(Backlog::of),
            stopped: false,
            size_mean: group.pattern.size_mean(),
        })
    }

    /// What to do at `now`. An I/O that is given must be begun, and its end told.
    pub fn next(&mut self, now: u64) -> Next {
        if self.flush_under_way {
            return Next::Full;
        }
        if self.flush_due {
            return self.next_flush();
        }
        if self.stopped || self.bytes_left == Some(0) {
            return self.finish();
        }
        if self.under_way >= self.depth {
            return Next::Full;
        }
        if let Some(pause) = self.pause_due {
            if self.under_way > 0 {
                return Next::Full;
            }
            self.pause_due = None;
            self.paused_until = now + pause.as_nanos() as u64;
        }
        if self.paused_until > now {
            return Next::Wait(self.paused_until);
        }
        if let Some((target, offset, size)) = self.backlog.as_mut().and_then(Backlog::next) {
            self.under_way += 1;
            return Next::Begin(Io { operation: Operation::Read, target, offset, size, intended: None });
        }
        let (line, operation, size) = match self.drawn.take() {
            Some(drawn) => drawn,
            None => self.draw(),
        };
        let due =
            self.schedules.iter().filter(|schedule| schedule.counts(operation)).map(Schedule::due).max();
        if let Some(due) = due
            && due > now
        {
            self.drawn = Some((line, operation, size));
            return Next::Wait(due);
        }
        self.begin(now, line, operation, size)
    }

    /// Nothing is begun any more; what is under way ends, and then the targets are flushed if that was asked for.
    fn finish(&mut self) -> Next {
        if self.under_way > 0 {
            return Next::Full;
        }
        let Some(target) = self.end_flushes.pop() else { return Next::Finished };
        self.flush_under_way = true;
        self.under_way = 1;
        Next::Flush(target)
    }

    fn next_flush(&mut self) -> Next {
        match self.under_way {
            0 => {
                self.flush_due = false;
                self.flush_under_way = true;
                self.under_way = 1;
                Next::Flush(self.places[0].0)
            }
            _ => Next::Full,
        }
    }

    fn draw(&mut self) -> (usize, Operation, u64) {
        let random = &mut self.random;
        let line = match self.lines.len() {
            1 => 0,
            _ => {
                let at = unit(random);
                self.lines.iter().position(|(share, _)| at < *share).unwrap_or(self.lines.len() - 1)
            }
        };
        let of = &self.lines[line].1;
        let operation = if of.reads >= 100.0 {
            Operation::Read
        } else if of.reads <= 0.0 && of.trims <= 0.0 {
            Operation::Write
        } else {
            let at = unit(random) * 100.0;
            if at < of.reads {
                Operation::Read
            } else if at < of.reads + of.trims {
                Operation::Trim
            } else {
                Operation::Write
            }
        };
        let size = match of.size {
            Size::Fixed(size) => size,
            Size::Range { min, max, step } => (random.range(min / step..max / step + 1) * step).max(min),
        };
        (line, operation, size)
    }

    fn begin(&mut self, now: u64, line: usize, operation: Operation, size: u64) -> Next {
        let mut intended = None;
        for schedule in self.schedules.iter_mut().filter(|schedule| schedule.counts(operation)) {
            if schedule.is_open() {
                intended = intended.max(Some(schedule.due()));
            }
            schedule.begin(size, &mut self.random);
        }
        let Some((target, offset)) = self.place(line, operation, size) else {
            self.stopped = true;
            return self.finish();
        };
        self.count(now, line, operation, size);
        if operation == Operation::Write
            && let Some(backlog) = &mut self.backlog
        {
            backlog.wrote(target, offset, size);
        }
        Next::Begin(Io { operation, target, offset, size, intended })
    }

    /// The next place of any target that is not done yet, in turn.
    fn place(&mut self, line: usize, operation: Operation, size: u64) -> Option<(usize, u64)> {
        for _ in 0..self.places.len() {
            let index = self.place_next;
            self.place_next = if index + 1 == self.places.len() { 0 } else { index + 1 };
            let (target, places) = &mut self.places[index];
            if let Some(offset) = places.next(&mut self.random, &self.lines[line].1, operation, size) {
                return Some((*target, offset));
            }
        }
        None
    }

    fn count(&mut self, now: u64, line: usize, operation: Operation, size: u64) {
        self.under_way += 1;
        self.bytes_left = self.bytes_left.map(|left| left.saturating_sub(size));
        if let Some(Think { after, pause, start, .. }) = self.lines[line].1.think
            && start != PauseStart::Completed
        {
            self.since_pause[line] += 1;
            if self.since_pause[line] >= after.max(1) {
                self.since_pause[line] = 0;
                match start {
                    PauseStart::Drained => self.pause_due = Some(pause),
                    _ => self.paused_until = now + pause.as_nanos() as u64,
                }
            }
        }
        if operation == Operation::Write
            && let Some(rule) = self.flush
            && rule.every > 0
        {
            self.writes_since_flush += 1;
            if self.writes_since_flush >= rule.every {
                self.writes_since_flush = 0;
                self.flush_due = true;
            }
        }
    }

    /// One of its I/Os has ended, or its flush.
    pub fn ended(&mut self) {
        assert!(self.under_way > 0, "an I/O ends once");
        self.under_way -= 1;
        // A flush is alone: if one was under way, it is what has ended.
        if std::mem::take(&mut self.flush_under_way) {
            return;
        }
        if let Some((think, ends)) = &mut self.pause_after_ends
            && self.pause_due.is_none()
        {
            *ends += 1;
            if *ends >= think.after.max(1) {
                *ends = 0;
                self.pause_due = Some(think.pause);
            }
        }
    }

    /// Whether it begins nothing any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Begins nothing any more.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.flush_due = false;
    }

    /// Tells of what was meant to begin before `until`, in an open loop, and has not: kind and time of each. It never begins.
    pub fn give_up(&mut self, until: u64, mut each: impl FnMut(Operation, u64)) {
        loop {
            let (line, operation, size) = self.drawn.take().unwrap_or_else(|| self.draw());
            let counting = || self.schedules.iter().filter(|one| one.is_open() && one.counts(operation));
            let Some(due) = counting().map(Schedule::due).max().filter(|due| *due < until) else {
                self.drawn = Some((line, operation, size));
                return;
            };
            each(operation, due);
            for schedule in self.schedules.iter_mut().filter(|schedule| schedule.counts(operation)) {
                schedule.begin(size, &mut self.random);
            }
        }
    }

    /// Whether nothing can begin before an I/O has ended, whatever the time.
    pub fn is_full(&self) -> bool {
        self.under_way >= self.depth && !self.flush_due
    }

    /// I/Os under way.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// I/Os (about) that were meant to begin by `now` and have not, in an open loop.
    pub fn backlog(&self, now: u64) -> f64 {
        let open = self.schedules.iter().filter(|schedule| schedule.is_open());
        open.map(|schedule| schedule.backlog(now, self.size_mean)).fold(0.0, f64::max)
    }
}

/// Writes that are read back while the run goes on (fio's `verify_backlog`): after so many of them, all of them.
#[derive(Debug)]
struct Backlog {
    every: usize,
    /// Target, offset, size of what was written and not read back.
    written: VecDeque<(usize, u64, u64)>,
    is_reading: bool,
}

impl Backlog {
    fn of(verify: &Verify) -> Option<Backlog> {
        match verify.when {
            VerifyWhen::Backlog(every) => {
                Some(Backlog { every: every.max(1) as usize, written: VecDeque::new(), is_reading: false })
            }
            VerifyWhen::After | VerifyWhen::Later | VerifyWhen::Only => None,
        }
    }

    fn wrote(&mut self, target: usize, offset: u64, size: u64) {
        self.written.push_back((target, offset, size));
    }

    fn next(&mut self) -> Option<(usize, u64, u64)> {
        self.is_reading |= self.written.len() >= self.every;
        self.is_reading &= !self.written.is_empty();
        if self.is_reading { self.written.pop_front() } else { None }
    }
}

/// Lines with the cumulative share of their weights.
fn cumulative(pattern: &Pattern) -> Vec<(f64, Line)> {
    let whole: f64 = pattern.lines.iter().map(|line| line.weight).sum();
    let mut sum = 0.0;
    let lines = pattern.lines.iter().filter(|line| line.weight > 0.0);
    lines
        .map(|line| {
            sum += line.weight / whole;
            (sum, line.clone())
        })
        .collect()
}

#[cfg(test)]
mod tests;
