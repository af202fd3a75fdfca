//! One thread of the generator: many streams, one backend.

use super::backend::{Backend, Call, Ended, Submission, Wait};
use super::bytes::Filler;
use super::ledger::{Compare, Floors, Ledger, Mismatch};
use super::memory::Slots;
use super::places::Operation;
use super::stream::{Io, Next, Stream};
use super::tally::Tally;
use crate::clock;
use iostats::Arrival;
use plan::Batch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Nothing is waited for longer than this without looking whether to stop.
const PATIENCE: u64 = 100_000_000;
/// An open loop's backlog is worked off for so long after the end; what is left then has not begun.
const AFTER: u64 = 10_000_000_000;

/// A stream and what the thread keeps beside it.
pub struct Member {
    /// What it does.
    pub stream: Stream,
    /// When it begins nothing any more.
    pub end: u64,
    /// What it writes.
    pub filler: Filler,
    /// How its I/Os are handed over.
    pub batch: Batch,
    /// Door of each of the plan's targets.
    pub doors: Vec<usize>,
    /// Most I/Os outstanding.
    pub depth: u32,
    /// Whether its flushes leave out what describes the file.
    pub flush_data_only: bool,
    /// Whether its pauses keep the processor busy.
    pub spins: bool,
    /// Records of verified writes, one for each of the plan's targets that has some; what is written without checksums enters them too.
    pub ledgers: Vec<Option<Arc<Ledger>>>,
    /// Whether its writes carry checksums, and which of its reads are compared.
    pub verifies: Option<Compare>,
    /// Whether the first mismatch ends the stage.
    pub mismatch_ends: bool,
}

impl Member {
    /// It begins nothing any more; what was due by its end and has not begun is counted as that.
    fn give_up(&mut self, tally: &mut Tally, now: u64) {
        if !self.stream.is_stopped() {
            let group = &mut tally.groups[self.stream.group];
            self.stream.give_up(now.min(self.end), |operation, due| group.give_up(operation, due, now));
            self.stream.stop();
        }
    }
}

struct Placed {
    member: Member,
    free: Vec<u32>,
    /// Whether it stands in the list of those that may begin something.
    is_ready: bool,
    is_finished: bool,
}

#[derive(Clone, Copy)]
struct Flight {
    member: u32,
    /// None: a flush.
    io: Option<Io>,
    target: usize,
    began: u64,
    intended: u64,
    arrival: Option<Arrival>,
}

/// An I/O that failed ends the stage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A target refused or lost an I/O.
    #[error("{target}: {io} failed: {reason}")]
    Io {
        /// What was tried: `read of 4096 bytes at byte 8192`, `flush`.
        io: String,
        /// Which target.
        target: String,
        /// The kernel's or the server's words.
        reason: String,
    },
    /// Data is not what was written.
    #[error("{target} holds wrong data: {mismatch}")]
    Mismatch {
        /// Which target.
        target: String,
        /// What was found.
        mismatch: Mismatch,
    },
    /// The kernel takes no more I/Os.
    #[error("hand over I/Os: {0}")]
    Backend(String),
}

/// What the threads of a stage share.
#[derive(Debug, Default)]
pub struct Orders {
    /// Begin nothing any more.
    pub stop: AtomicBool,
    /// Go on after an I/O that failed.
    pub go_on: bool,
    /// Whether the first group that is done ends the stage.
    pub ends_with_first: bool,
    /// Of each group, streams that are not done.
    pub left: Vec<AtomicU32>,
    /// Of each group, its share of the I/Os (none if it has no share) and how many it began.
    pub shares: Vec<Option<(f64, AtomicU64)>>,
}

/// A group may be so many I/Os ahead of its share.
const AHEAD_MAX: f64 = 64.0;
/// Who is ahead looks again after so long (ns).
const AHEAD_WAIT: u64 = 50_000;

impl Orders {
    /// For groups of so many streams each.
    pub fn new(streams: &[u32], shares: &[Option<f64>]) -> Orders {
        Orders {
            left: streams.iter().map(|&count| AtomicU32::new(count)).collect(),
            shares: shares.iter().map(|share| share.map(|share| (share, AtomicU64::new(0)))).collect(),
            ..Orders::default()
        }
    }

    /// Whether a group has begun more than its share, compared with those that still run.
    fn is_ahead(&self, group: usize) -> bool {
        let Some((share, begun)) = &self.shares[group] else { return false };
        let mine = begun.load(Ordering::Relaxed) as f64;
        self.shares.iter().enumerate().any(|(other, of)| match of {
            Some((theirs, count)) if other != group && self.left[other].load(Ordering::Relaxed) > 0 => {
                mine > (count.load(Ordering::Relaxed) as f64 + AHEAD_MAX) * share / theirs
            }
            Some(_) | None => false,
        })
    }

    fn count_begun(&self, group: usize) {
        if let Some((_, begun)) = &self.shares[group] {
            begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn finished(&self, group: usize) {
        if self.left[group].fetch_sub(1, Ordering::Relaxed) == 1 && self.ends_with_first {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs streams until they are done.
pub struct Thread<'a, B> {
    backend: B,
    members: Vec<Placed>,
    slots: Slots,
    flights: Vec<Flight>,
    /// For each token, what a verified read must not miss.
    floors: Vec<Floors>,
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    tally: Tally,
    orders: &'a Orders,
    start: u64,
    under_way: u32,
    /// The last time that the clock was read.
    now: u64,
    /// Whether a second has ended since somebody was told.
    turned: bool,
    /// Most ends that are taken at a time.
    most: usize,
    /// Whether its streams were told to begin nothing any more.
    stopped: bool,
    failure: Option<Failure>,
}

impl<'a, B: Backend> Thread<'a, B> {
    /// Streams on a backend that takes tokens below the sum of their depths.
    ///
    /// # Errors
    /// When there is no memory for their buffers.
    pub fn new(
        backend: B,
        members: Vec<Member>,
        size_max: usize,
        tally: Tally,
        orders: &'a Orders,
    ) -> io::Result<Self> {
        let mut next = 0;
        let members: Vec<Placed> = (members.into_iter())
            .map(|member| {
                let free = (next..next + member.depth).rev().collect();
                next += member.depth;
                Placed { member, free, is_ready: true, is_finished: false }
            })
            .collect();
        let most = members.iter().map(|placed| placed.member.batch.complete_max).max().unwrap_or(0);
        let most = if most == 0 { usize::MAX } else { most as usize };
        let none = Flight { member: 0, io: None, target: 0, began: 0, intended: 0, arrival: None };
        Ok(Thread {
            backend,
            ready: (0..members.len() as u32).collect(),
            members,
            slots: Slots::new(next as usize, size_max)?,
            flights: vec![none; next as usize],
            floors: vec![Floors::default(); next as usize],
            timers: BinaryHeap::new(),
            tally,
            orders,
            start: 0,
            under_way: 0,
            now: 0,
            turned: false,
            most,
            stopped: false,
            failure: None,
        })
    }

    /// Runs to the end, from `start` of the clock on; `second` is called whenever one is over.
    pub fn run(mut self, start: u64, mut second: impl FnMut(&Tally)) -> (Tally, Option<Failure>) {
        self.start = start;
        let mut ended = Vec::new();
        while self.members.iter().any(|placed| !placed.is_finished) {
            if let Err(error) = self.step(&mut ended) {
                self.failure.get_or_insert(Failure::Backend(error.to_string()));
                break;
            }
            if std::mem::take(&mut self.turned) {
                self.note_backlog();
                second(&self.tally);
            }
        }
        let now = self.now();
        self.tally.finish(now);
        (self.tally, self.failure)
    }

    fn now(&mut self) -> u64 {
        self.now = clock::now() - self.start;
        self.now
    }

    fn step(&mut self, ended: &mut Vec<Ended>) -> io::Result<()> {
        self.wake_timers();
        self.begin_all()?;
        ended.clear();
        let wait = match self.ready.is_empty() {
            true => self.wait(),
            false => Wait::No,
        };
        self.backend.collect(wait, self.most, ended)?;
        let now = self.now();
        self.turned |= self.tally.turn(now);
        ended.iter().for_each(|ended| self.end(*ended, now));
        if !self.stopped && self.orders.stop.load(Ordering::Relaxed) {
            self.stop_all();
        }
        Ok(())
    }

    fn wait(&self) -> Wait {
        if let Some(Reverse((_, member))) = self.timers.peek()
            && self.members[*member as usize].member.spins
        {
            return Wait::No;
        }
        let timer = self.timers.peek().map_or(u64::MAX, |Reverse((time, _))| *time);
        let until = timer.min(self.now + PATIENCE) + self.start;
        // As fio: only a full queue waits for several completions, so that none is seen late while the job waits for its time.
        let complete = self.members.first().map_or(1, |first| first.member.batch.complete);
        let is_full = || self.members.iter().any(|placed| placed.member.stream.is_full());
        let count = if complete > 1 && !is_full() { 1 } else { complete }.min(self.under_way);
        Wait::For { count, until }
    }

    fn wake_timers(&mut self) {
        if self.timers.is_empty() {
            return;
        }
        let now = self.now();
        while let Some(&Reverse((time, member))) = self.timers.peek()
            && time <= now
        {
            self.timers.pop();
            self.make_ready(member);
        }
    }

    fn make_ready(&mut self, member: u32) {
        let placed = &mut self.members[member as usize];
        if !placed.is_ready && !placed.is_finished {
            placed.is_ready = true;
            self.ready.push_back(member);
        }
    }

    fn begin_all(&mut self) -> io::Result<()> {
        let mut begun = 0;
        while let Some(member) = self.ready.pop_front() {
            self.members[member as usize].is_ready = false;
            begun += self.begin_member(member)?;
        }
        if begun > 0 { self.backend.submit() } else { Ok(()) }
    }

    /// Begins what a stream may begin now. Returns how many I/Os wait to be submitted.
    fn begin_member(&mut self, member: u32) -> io::Result<u32> {
        let mut begun = 0;
        loop {
            if self.members[member as usize].member.stream.is_full() {
                return Ok(begun);
            }
            // Read when something last ended or began: the clock is a good part of what an I/O costs the generator.
            let now = self.now;
            let placed = &mut self.members[member as usize];
            let group = placed.member.stream.group;
            if self.orders.is_ahead(group)
                && now < placed.member.end
                && !self.orders.stop.load(Ordering::Relaxed)
            {
                self.timers.push(Reverse((now + AHEAD_WAIT, member)));
                return Ok(begun);
            }
            let end = placed.member.end;
            let is_late = now >= end.saturating_add(AFTER);
            if now >= end && (is_late || placed.member.stream.backlog(end) < 1.0) {
                placed.member.give_up(&mut self.tally, now);
            }
            match placed.member.stream.next(now) {
                Next::Begin(io) => {
                    if !self.begin(member, io)? {
                        // Another write of the same place is under way; nothing else ends while this is tried again.
                        self.timers.push(Reverse((now + AHEAD_WAIT, member)));
                        return Ok(begun);
                    }
                    self.orders.count_begun(group);
                }
                Next::Flush(target) => self.begin_flush(member, target, now)?,
                Next::Wait(time) => {
                    let time = time.min(placed.member.end.max(now + 1));
                    self.timers.push(Reverse((time, member)));
                    return Ok(begun);
                }
                Next::Full => return Ok(begun),
                Next::Finished => {
                    placed.is_finished = true;
                    self.tally.groups[group].finished_at = self.tally.groups[group].finished_at.max(now);
                    self.orders.finished(group);
                    return Ok(begun);
                }
            }
            begun += 1;
            let submit = self.members[member as usize].member.batch.submit;
            if submit > 0 && begun >= submit {
                self.backend.submit()?;
                begun = 0;
            }
        }
    }

    /// False if it must not be begun, for a verified write of the same place is under way: it is left out.
    fn begin(&mut self, member: u32, io: Io) -> io::Result<bool> {
        let placed = &mut self.members[member as usize];
        let token = placed.free.pop().expect("a stream begins no more than its depth");
        let ledger = placed.member.ledgers.get(io.target).and_then(Option::as_ref);
        let call = match io.operation {
            Operation::Read => Call::Read,
            Operation::Trim => Call::Trim,
            Operation::Write => {
                let buffer = self.slots.bytes(token as usize, io.size as usize);
                placed.member.filler.fill(buffer, io.offset);
                Call::Write
            }
        };
        let may_begin = ledger.is_none_or(|ledger| match (io.operation, placed.member.verifies) {
            (Operation::Read, _) => {
                ledger.begin_read(io.offset, io.size, &mut self.floors[token as usize]);
                true
            }
            (Operation::Write, Some(_)) => {
                ledger.begin_write(io.offset, self.slots.bytes(token as usize, io.size as usize))
            }
            (Operation::Write, None) | (Operation::Trim, _) => ledger.begin_undefined(io.offset, io.size),
        });
        if !may_begin {
            placed.free.push(token);
            placed.member.stream.ended();
            return Ok(false);
        }
        // Now, and not before the buffer was filled: that takes its time, which is not the target's.
        let began = clock::now() - self.start;
        self.now = began;
        let size = io.size as u32;
        let arrival = self.tally.arrive(began, io.target, io.operation, io.offset, size);
        let intended = io.intended.unwrap_or(began);
        self.flights[token as usize] =
            Flight { member, io: Some(io), target: io.target, began, intended, arrival };
        let submission = Submission {
            token,
            call,
            door: placed.member.doors[io.target],
            offset: io.offset,
            size,
            memory: self.slots.start(token as usize),
        };
        self.hand_over(submission, began)?;
        Ok(true)
    }

    fn begin_flush(&mut self, member: u32, target: usize, now: u64) -> io::Result<()> {
        let placed = &mut self.members[member as usize];
        let token = placed.free.pop().expect("a stream begins no more than its depth");
        self.flights[token as usize] =
            Flight { member, io: None, target, began: now, intended: now, arrival: None };
        let submission = Submission {
            token,
            call: Call::Flush { data_only: placed.member.flush_data_only },
            door: placed.member.doors[target],
            offset: 0,
            size: 0,
            memory: self.slots.start(token as usize),
        };
        self.hand_over(submission, now)
    }

    fn hand_over(&mut self, submission: Submission, now: u64) -> io::Result<()> {
        if self.under_way == 0 {
            self.tally.awake(now);
        }
        self.under_way += 1;
        self.backend.begin(submission)
    }

    fn end(&mut self, ended: Ended, now: u64) {
        let flight = self.flights[ended.token as usize];
        self.under_way -= 1;
        self.tally.heard(now, self.under_way + 1);
        let placed = &mut self.members[flight.member as usize];
        placed.free.push(ended.token);
        placed.member.stream.ended();
        if let Some(io) = flight.io {
            let ok = ended.result >= 0 && (io.operation == Operation::Trim || ended.result as u64 == io.size);
            self.tally.leave(now, io.target, flight.arrival, ok);
            let group = placed.member.stream.group;
            self.verify(ended.token, flight.member, io, ok);
            let group = &mut self.tally.groups[group];
            match ok {
                true => group.record(io.operation, flight.intended, flight.began, now, io.size as u32),
                false => {
                    group.failed(io.operation);
                    self.fail(io.target, Some(io), ended.result);
                }
            }
        } else if ended.result < 0 {
            self.fail(flight.target, None, ended.result);
        }
        self.make_ready(flight.member);
    }

    /// Records a verified write that has ended, compares a verified read.
    fn verify(&mut self, token: u32, member: u32, io: Io, ok: bool) {
        let placed = &mut self.members[member as usize];
        let Some(ledger) = placed.member.ledgers.get(io.target).and_then(Option::as_ref) else {
            return;
        };
        let tally = &mut self.tally.groups[placed.member.stream.group];
        match (io.operation, placed.member.verifies) {
            (Operation::Write, Some(_)) => ledger.end_write(io.offset, io.size, ok),
            (Operation::Write, None) | (Operation::Trim, _) => ledger.end_undefined(io.offset, io.size),
            (Operation::Read, None) => {}
            (Operation::Read, Some(_)) if !ok => {}
            (Operation::Read, Some(compare)) => {
                let bytes = self.slots.bytes(token as usize, io.size as usize);
                let judgement = ledger.end_read(io.offset, bytes, &self.floors[token as usize], compare);
                tally.verified.compared += judgement.compared;
                tally.verified.wrong += judgement.wrong;
                if let Some(mismatch) = judgement.first {
                    let target = self.tally.disks[io.target].name.clone();
                    self.failure.get_or_insert(Failure::Mismatch { target, mismatch });
                    if placed.member.mismatch_ends {
                        self.orders.stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn fail(&mut self, target: usize, io: Option<Io>, result: i32) {
        let name = io.map(|io| match io.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Trim => "trim",
        });
        let io = io.zip(name).map_or("flush".to_owned(), |(io, name)| {
            format!("{name} of {} bytes at byte {}", io.size, io.offset)
        });
        let reason = match result {
            ..0 => io::Error::from_raw_os_error(-result).to_string(),
            short => format!("only {short} bytes were transferred"),
        };
        let target = self.tally.disks[target].name.clone();
        let failure = Failure::Io { io, target, reason };
        if self.orders.go_on {
            self.tally.first_error.get_or_insert_with(|| failure.to_string());
        } else {
            self.failure.get_or_insert(failure);
            self.orders.stop.store(true, Ordering::Relaxed);
            self.stop_all();
        }
    }

    fn stop_all(&mut self) {
        self.stopped = true;
        for member in 0..self.members.len() as u32 {
            self.members[member as usize].member.give_up(&mut self.tally, self.now);
            self.make_ready(member);
        }
    }

    fn note_backlog(&mut self) {
        let now = self.now();
        for placed in &self.members {
            let group = &mut self.tally.groups[placed.member.stream.group];
            let backlog = placed.member.stream.backlog(now.min(placed.member.end));
            group.backlog_max = group.backlog_max.max(backlog);
        }
    }
}
