//! Delays of requests: by the limits of a disk's policy, and by the congestion of the groups.
//!
//! The owner's node applies the limits, so they hold for all hosts whose guests use the disk. Requests that exceed a limit wait in
//! one queue for each of these hosts, and begin in turns. A disk that was idle may begin a second's worth at once; what follows
//! waits until that second is over. So in no second more begins than the limit says, and bursts within a second wait for nothing.

use crate::limits::{
    CONGESTION_DELAY_MAX, IOPS_LIMIT_UNIT, LIMIT_BURST, LIMIT_CATCH_UP, LIMIT_FIGURES_PERIOD,
    LIMIT_IDLE_CREDIT, LIMITED_FOR,
};
use base::{HostId, Instant};
use iostats::FineLatency;
use std::collections::VecDeque;
use std::time::Duration;

/// The limits of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// I/Os a second; one of more than 32 KiB counts as several.
    pub iops: Option<u64>,
    /// Bytes a second.
    pub bytes: Option<u64>,
}

impl Limits {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.iops.is_none() && self.bytes.is_none()
    }
}

/// What the limits of a disk do to its requests, on the node of its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitFigures {
    /// Requests that wait now.
    pub waiting: u32,
    /// Requests that waited, since the disk was opened on this node.
    pub waited: u64,
    /// The wait that 99 of 100 of those which waited lately did not exceed; none if none waited lately.
    pub wait_p99: Option<Duration>,
    /// Whether a request waits, or did in the last two seconds.
    pub is_limited: bool,
}

impl LimitFigures {
    /// The figures of two nodes of a host.
    pub fn merge(&mut self, other: LimitFigures) {
        self.waiting += other.waiting;
        self.waited += other.waited;
        self.wait_p99 = self.wait_p99.max(other.wait_p99);
        self.is_limited |= other.is_limited;
    }
}

/// What a request counts for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    ios: u64,
    bytes: u64,
}

impl Cost {
    /// Of a request that moves so many bytes. One that moves none counts as one I/O.
    pub(crate) fn of(bytes: u64) -> Cost {
        Cost { ios: bytes.div_ceil(IOPS_LIMIT_UNIT).max(1), bytes }
    }
}

/// One limit.
#[derive(Debug, Default)]
struct Bucket {
    per_second: Option<u64>,
    /// When all that has begun is paid for, at the rate of the limit.
    due: Instant,
    /// How far a disk that was idle may get ahead of the time.
    horizon: Instant,
    /// When a request began last, and how much of the time before that was still unpaid for then.
    began_at: Instant,
    behind: Duration,
}

impl Bucket {
    fn price(&self, amount: u64) -> Duration {
        let Some(per_second) = self.per_second else { return Duration::ZERO };
        let nanos = u128::from(amount) * 1_000_000_000 / u128::from(per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }

    /// When a request may begin; none: now.
    fn opens_at(&self, now: Instant, amount: u64, has_waited: bool) -> Option<Instant> {
        let is_free = self.per_second.is_none() || self.due <= now;
        let is_burst = !has_waited && self.due + self.price(amount) <= self.horizon;
        (!is_free && !is_burst).then_some(self.due)
    }

    /// A request begins.
    fn pay(&mut self, now: Instant, amount: u64, has_waited: bool) {
        if self.due <= now {
            let idle = now.since(self.due);
            let is_next = now.since(self.began_at) <= LIMIT_IDLE_CREDIT;
            let credit = match (has_waited, is_next) {
                // It could have begun before: the node stood still.
                (true, _) => LIMIT_CATCH_UP,
                // It follows those that waited then, and takes its part of what they left.
                (false, true) => LIMIT_IDLE_CREDIT.max(self.behind),
                (false, false) => LIMIT_IDLE_CREDIT,
            };
            self.due = now - idle.min(credit);
            if credit == LIMIT_IDLE_CREDIT {
                self.horizon = self.horizon.max(now + idle.min(LIMIT_BURST));
            }
        }
        self.due = self.due + self.price(amount);
        (self.began_at, self.behind) = (now, now.since(self.due));
    }
}

/// A request that waits for a limit.
#[derive(Debug)]
struct Waiting {
    request: u32,
    cost: Cost,
    since: Instant,
}

/// What is done with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It begins.
    Begin,
    /// It waits.
    Wait,
}

/// The limits of one disk, and the requests that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    ios: Bucket,
    bytes: Bucket,
    /// By the host whose guest asked, the one whose turn it is first. No queue is empty.
    queues: VecDeque<(HostId, VecDeque<Waiting>)>,
    waiting: u32,
    waited: u64,
    waited_at: Option<Instant>,
    /// How long requests waited in the present period, in the one before, and when the present one began.
    waits: Option<Box<(FineLatency, FineLatency, Instant)>>,
    /// When the node looks at the disk next; kept by the node.
    pub(crate) alarm: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(limits: Limits) -> Pace {
        let mut pace = Pace::default();
        pace.set(limits);
        pace
    }

    /// Other limits hold from now on. What has begun stays paid for as it was.
    pub(crate) fn set(&mut self, limits: Limits) {
        (self.ios.per_second, self.bytes.per_second) = (limits.iops, limits.bytes);
    }

    /// A request of a guest of that host arrives.
    pub(crate) fn admit(&mut self, now: Instant, host: HostId, request: u32, cost: Cost) -> Admission {
        if self.ios.per_second.is_none() && self.bytes.per_second.is_none() {
            return Admission::Begin;
        }
        if self.queues.is_empty() && self.opens_at(now, cost, false).is_none() {
            self.pay(now, cost, false);
            return Admission::Begin;
        }
        let waiting = Waiting { request, cost, since: now };
        match self.queues.iter_mut().find(|(of, _)| *of == host) {
            Some((_, queue)) => queue.push_back(waiting),
            None => self.queues.push_back((host, VecDeque::from([waiting]))),
        }
        self.waiting += 1;
        self.waited += 1;
        Admission::Wait
    }

    /// The next request whose time has come.
    pub(crate) fn take_ready(&mut self, now: Instant) -> Option<u32> {
        let (_, queue) = self.queues.front()?;
        let cost = queue.front().expect("no queue is empty").cost;
        if self.opens_at(now, cost, true).is_some() {
            return None;
        }
        self.pay(now, cost, true);
        self.take_next(now)
    }

    /// The next request, whether its time has come or not: the disk is not served here any more.
    pub(crate) fn take_next(&mut self, now: Instant) -> Option<u32> {
        let (host, mut queue) = self.queues.pop_front()?;
        let waiting = queue.pop_front().expect("no queue is empty");
        if !queue.is_empty() {
            self.queues.push_back((host, queue));
        }
        self.ended(now, &waiting);
        Some(waiting.request)
    }

    /// Takes out a request that waits. False if it does not.
    pub(crate) fn remove(&mut self, now: Instant, request: u32) -> bool {
        for index in 0..self.queues.len() {
            let queue = &mut self.queues[index].1;
            let Some(at) = queue.iter().position(|one| one.request == request) else { continue };
            let waiting = queue.remove(at).expect("it was found");
            if queue.is_empty() {
                self.queues.remove(index);
            }
            self.ended(now, &waiting);
            return true;
        }
        false
    }

    /// When the next request may begin.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let (_, queue) = self.queues.front()?;
        let cost = queue.front().expect("no queue is empty").cost;
        Some(self.opens_at(Instant(0), cost, true).unwrap_or(Instant(0)))
    }

    /// What the limits did.
    pub(crate) fn figures(&self, now: Instant) -> LimitFigures {
        let wait_p99 = self.waits.as_ref().and_then(|waits| {
            let (present, before, since) = &**waits;
            let mut all = match now.since(*since) {
                age if age >= LIMIT_FIGURES_PERIOD * 2 => return None,
                _ => present.clone(),
            };
            all.merge(before);
            all.percentile(0.99)
        });
        let is_limited = self.waiting > 0 || self.waited_at.is_some_and(|at| now.since(at) < LIMITED_FOR);
        LimitFigures { waiting: self.waiting, waited: self.waited, wait_p99, is_limited }
    }

    fn opens_at(&self, now: Instant, cost: Cost, has_waited: bool) -> Option<Instant> {
        let ios = self.ios.opens_at(now, cost.ios, has_waited);
        ios.max(self.bytes.opens_at(now, cost.bytes, has_waited))
    }

    fn pay(&mut self, now: Instant, cost: Cost, has_waited: bool) {
        self.ios.pay(now, cost.ios, has_waited);
        self.bytes.pay(now, cost.bytes, has_waited);
    }

    fn ended(&mut self, now: Instant, waiting: &Waiting) {
        self.waiting -= 1;
        self.waited_at = Some(now);
        let waits = self.waits.get_or_insert_with(|| Box::new((Default::default(), Default::default(), now)));
        let (present, before, since) = &mut **waits;
        let age = now.since(*since);
        if age >= LIMIT_FIGURES_PERIOD {
            let is_next = age < LIMIT_FIGURES_PERIOD * 2;
            *before = if is_next { std::mem::take(present) } else { FineLatency::default() };
            (*present, *since) = (FineLatency::default(), now);
        }
        present.record(now.since(waiting.since).as_nanos() as u64);
    }
}

/// How long a write waits for a group of that congestion.
pub(crate) fn congestion_delay(congestion: u8) -> Duration {
    let share = u64::from(congestion);
    let nanos = CONGESTION_DELAY_MAX.as_nanos() as u64;
    Duration::from_nanos(nanos * (share * share * share) / (255 * 255 * 255))
}

#[cfg(test)]
mod tests;
