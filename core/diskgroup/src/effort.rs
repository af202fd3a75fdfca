//! How long a device works for what it does: what tells a slow device from one that has much to do.
//!
//! The latency of a request grows with how many are under way at once; the time in which *any* is under way, shared out among
//! those that ended in it, does not. A device that takes longer by this measure than its peers is slow, whatever its load.

use base::Instant;
use iostats::FineLatency;

/// What a device has done since its group was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Nanoseconds in which at least one request was under way, up to the last thing that happened in the group.
    pub busy_ns: u64,
    /// Requests that ended: reads, writes and flushes. Discards do not count: some devices take their time over them.
    pub requests: u64,
}

/// How long the reads and writes of a device took, since its group was opened. With requests that were queued in the device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Reads.
    pub read: FineLatency,
    /// Writes.
    pub write: FineLatency,
}

/// What a request does to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// Keeps count of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    past: Effort,
    latencies: Latencies,
    under_way: u32,
    /// Since when something has been under way without a pause.
    since: Instant,
}

impl Meter {
    /// A request begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        if self.under_way == 0 {
            self.since = now;
        }
        self.under_way += 1;
    }

    /// A request ended that was begun then. One of a device that stood here before is none of this one's.
    pub(crate) fn end(&mut self, now: Instant, begun: Instant, direction: Option<Direction>) {
        if self.under_way == 0 {
            return;
        }
        let ns = now.since(begun).as_nanos() as u64;
        match direction {
            Some(Direction::Read) => self.latencies.read.record(ns),
            Some(Direction::Write) => self.latencies.write.record(ns),
            None => {}
        }
        self.past = Effort { busy_ns: self.at(now).busy_ns, requests: self.past.requests + 1 };
        self.since = now;
        self.under_way -= 1;
    }

    /// How long reads and writes took.
    pub(crate) fn latencies(&self) -> &Latencies {
        &self.latencies
    }

    /// All until now.
    pub(crate) fn at(&self, now: Instant) -> Effort {
        let open = if self.under_way == 0 { 0 } else { now.since(self.since).as_nanos() as u64 };
        Effort { busy_ns: self.past.busy_ns + open, ..self.past }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_once_however_many_requests_are_under_way() {
        let mut meter = Meter::default();
        for at in [100, 110, 120] {
            meter.begin(Instant(at));
        }
        assert_eq!(meter.at(Instant(150)), Effort { busy_ns: 50, requests: 0 });
        meter.end(Instant(160), Instant(100), Some(Direction::Read));
        meter.end(Instant(190), Instant(100), Some(Direction::Read));
        assert_eq!(meter.at(Instant(200)), Effort { busy_ns: 100, requests: 2 });
        meter.end(Instant(300), Instant(100), Some(Direction::Read));
        assert_eq!(meter.at(Instant(1_000)), Effort { busy_ns: 200, requests: 3 });
        meter.begin(Instant(2_000));
        meter.end(Instant(2_007), Instant(100), Some(Direction::Read));
        assert_eq!(meter.at(Instant(3_000)), Effort { busy_ns: 207, requests: 4 });
        let latencies = meter.latencies();
        assert_eq!((latencies.read.count, latencies.read.sum_ns), (4, 60 + 90 + 200 + 1_907));
        assert_eq!(latencies.write.count, 0);
        meter.end(Instant(9_000), Instant(8_000), Some(Direction::Write));
        assert_eq!(meter.latencies().write.count, 0, "it is of a device that stood here before");
    }
}
