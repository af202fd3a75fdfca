//! The recorder in a disk's data path: two calls per I/O, no clock of its own, no allocation.

use crate::buckets::{LENGTH_LIMITS, OUTSTANDING_LIMITS, Operation, Operations, SEEK_LIMITS, TIME_LIMITS};
use crate::statistics::{BOTH, Statistics};
use base::Instant;
use base::units::SECTOR_SIZE;

/// How many earlier I/Os the nearest seek distance looks at, as vSCSI does.
const WINDOW: usize = 16;

/// What an I/O carries from its arrival to its completion.
#[derive(Debug, Clone, Copy)]
#[must_use = "an I/O that arrived must complete, or it counts as outstanding for ever"]
pub struct Arrival {
    at: Instant,
    sectors: u32,
    operation: Operation,
}

/// Where the previous I/O of one kind ended, and when it arrived.
#[derive(Debug, Clone, Copy)]
struct Previous {
    last_sector: i64,
    at: Instant,
}

/// Records the I/O of one disk on one thread.
#[derive(Debug, Default)]
pub struct Recorder {
    statistics: Statistics,
    outstanding: [u32; 2],
    /// Of reads, of writes, of both; nothing before the first.
    previous: [Option<Previous>; 3],
    /// The last sectors of the last 16 I/Os, in no order; of fewer, some of them more than once.
    window: [i64; WINDOW],
    window_next: usize,
    /// Whether there was an I/O.
    window_filled: bool,
}

impl Recorder {
    /// A recorder that has seen nothing.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// An I/O of `sectors` sectors from `first_sector` on has arrived. Pass the result to [`Recorder::complete`].
    #[inline]
    pub fn arrive(&mut self, now: Instant, operation: Operation, first_sector: u64, sectors: u32) -> Arrival {
        let kind = operation as usize;
        // No disk has 2^60 sectors; so distances never overflow.
        let first = first_sector.min(1 << 60) as i64;
        let last = first + i64::from(sectors) - 1;
        self.statistics.length[kind].record(&LENGTH_LIMITS, i64::from(sectors) * SECTOR_SIZE as i64);
        for index in [kind, BOTH] {
            if let Some(previous) = self.previous[index] {
                let distance = first - previous.last_sector;
                self.statistics.seek_distance[index].record(&SEEK_LIMITS, distance);
                let us = now.0.saturating_sub(previous.at.0) / 1_000;
                self.statistics.interarrival[index].record(&TIME_LIMITS, us as i64);
            }
            self.previous[index] = Some(Previous { last_sector: last, at: now });
        }
        self.record_nearest(first, last);
        self.outstanding[kind] += 1;
        let outstanding = &mut self.statistics.outstanding;
        outstanding[kind].record(&OUTSTANDING_LIMITS, i64::from(self.outstanding[kind]));
        outstanding[BOTH].record(&OUTSTANDING_LIMITS, i64::from(self.outstanding[0] + self.outstanding[1]));
        Arrival { at: now, sectors, operation }
    }

    #[inline]
    fn record_nearest(&mut self, first: i64, last: i64) {
        if self.window_filled {
            // Unsigned, a distance of the other sign is huge: two minima and no branch. Of two equal the forward one wins.
            let (mut forward, mut backward) = (u64::MAX, u64::MAX);
            for &end in &self.window {
                forward = forward.min(first.wrapping_sub(end) as u64);
                backward = backward.min(end.wrapping_sub(first) as u64);
            }
            let distance =
                if forward <= backward { forward as i64 } else { (backward as i64).wrapping_neg() };
            self.statistics.seek_distance_nearest.record(&SEEK_LIMITS, distance);
        } else {
            // As if 16 I/Os had ended where the first one did.
            self.window = [last; WINDOW];
            self.window_filled = true;
        }
        self.window[self.window_next] = last;
        self.window_next = (self.window_next + 1) % WINDOW;
    }

    /// The I/O has ended; `ok` says whether it did what was asked. A failed one is counted as such and nowhere else, for
    /// the time to a refusal says nothing about the disk.
    #[inline]
    pub fn complete(&mut self, now: Instant, arrival: Arrival, ok: bool) {
        let kind = arrival.operation as usize;
        assert!(self.outstanding[kind] > 0, "an I/O completes once");
        self.outstanding[kind] -= 1;
        if !ok {
            self.statistics.counters.errors[kind] += 1;
            return;
        }
        let ns = now.0.saturating_sub(arrival.at.0);
        self.statistics.counters.bytes[kind] += u64::from(arrival.sectors) * SECTOR_SIZE;
        self.statistics.latency[kind].record(&TIME_LIMITS, (ns / 1_000) as i64);
        self.statistics.latency_fine[kind].record(ns);
    }

    /// A trim or zero-write of `bytes` is done.
    pub fn trimmed(&mut self, bytes: u64) {
        self.statistics.counters.trims += 1;
        self.statistics.counters.trim_bytes = self.statistics.counters.trim_bytes.saturating_add(bytes);
    }

    /// A flush is done.
    pub fn flushed(&mut self) {
        self.statistics.counters.flushes += 1;
    }

    /// I/Os that arrived and have not completed.
    pub fn outstanding(&self, operations: Operations) -> u32 {
        match operations {
            Operations::Reads => self.outstanding[0],
            Operations::Writes => self.outstanding[1],
            Operations::Both => self.outstanding[0] + self.outstanding[1],
        }
    }

    /// All since the recorder was made.
    pub fn statistics(&self) -> Statistics {
        self.statistics.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests;
