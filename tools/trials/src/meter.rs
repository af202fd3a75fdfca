//! How long I/Os took, and how long nothing was answered at all.

use crate::recorder::Moment;
use serde::Serialize;

/// What a fault cost a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Stall {
    /// The longest time without any answer, milliseconds.
    pub silent_ms: f64,
    /// The longest that one I/O took, milliseconds.
    pub longest_ms: f64,
    /// When that one was sent, milliseconds after the fault; below zero: before it.
    pub longest_sent_ms: f64,
    /// Whether that one was a read.
    pub longest_is_read: bool,
    /// The longest flush of the file system under the hosts by itself that was under way together with that one, milliseconds
    /// ([`crate::flushes`]).
    pub flush_beside_ms: f64,
}

impl Stall {
    /// The worse of two, figure by figure.
    pub fn worse(self, other: Stall) -> Stall {
        let longest = if other.longest_ms > self.longest_ms { other } else { self };
        Stall { silent_ms: self.silent_ms.max(other.silent_ms), ..longest }
    }

    /// The longest I/O in words.
    pub fn longest(&self) -> String {
        let kind = if self.longest_is_read { "a read" } else { "a write" };
        let (took, sent, flush) = (self.longest_ms, self.longest_sent_ms, self.flush_beside_ms);
        format!(
            "{kind} of {took:.0} ms, sent at {sent:.0} ms beside a flush that took {flush:.0} ms by itself,"
        )
    }
}

/// All latencies of a trial, in summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Reads and writes that were answered.
    pub count: usize,
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// One of a hundred takes longer.
    pub p99_ms: f64,
    /// One of a thousand takes longer.
    pub p999_ms: f64,
    /// The longest.
    pub longest_ms: f64,
}

#[derive(Debug)]
struct Window {
    opened: Moment,
    last_answer: Moment,
    silent: Moment,
    longest: Longest,
}

/// The longest I/O so far.
#[derive(Debug, Clone, Copy, Default)]
struct Longest {
    lasted: Moment,
    begun: Moment,
    is_read: bool,
}

impl Longest {
    fn note(&mut self, begun: Moment, ended: Moment, is_read: bool) {
        let lasted = ended - begun;
        if lasted > self.lasted {
            *self = Longest { lasted, begun, is_read };
        }
    }
}

/// An I/O that was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// When it was sent.
    pub begun: Moment,
    /// How long it took, microseconds.
    pub took_us: u32,
}

/// The clock work of one client.
#[derive(Debug, Default)]
pub struct Meter {
    answered: Vec<Answered>,
    window: Option<Window>,
}

impl Meter {
    /// From now on a stall is measured.
    pub fn open(&mut self, now: Moment) {
        self.window = Some(Window { opened: now, last_answer: now, silent: 0, longest: Longest::default() });
    }

    /// An I/O that began then was answered now.
    pub fn answered(&mut self, begun: Moment, now: Moment, is_read: bool) {
        let took_us = u32::try_from((now - begun) / 1000).unwrap_or(u32::MAX);
        self.answered.push(Answered { begun, took_us });
        if let Some(window) = &mut self.window {
            window.silent = window.silent.max(now.saturating_sub(window.last_answer));
            window.longest.note(begun, now, is_read);
            window.last_answer = window.last_answer.max(now);
        }
    }

    /// Ends the measurement; `oldest` is when the oldest I/O that has no answer yet began, and whether it is a read.
    pub fn close(&mut self, now: Moment, oldest: Option<(Moment, bool)>) -> Stall {
        let Some(mut window) = self.window.take() else { return Stall::default() };
        if let Some((begun, is_read)) = oldest {
            window.silent = window.silent.max(now.saturating_sub(window.last_answer));
            window.longest.note(begun, now, is_read);
        }
        let ms = |moment: Moment| moment as f64 / 1e6;
        Stall {
            silent_ms: ms(window.silent),
            longest_ms: ms(window.longest.lasted),
            longest_sent_ms: ms(window.longest.begun) - ms(window.opened),
            longest_is_read: window.longest.is_read,
            flush_beside_ms: 0.0,
        }
    }

    /// Takes out what was answered.
    pub fn take(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answered)
    }
}

/// Sums up latencies in microseconds.
pub fn summary(mut latencies_us: Vec<u32>) -> Summary {
    latencies_us.sort_unstable();
    let count = latencies_us.len();
    if count == 0 {
        return Summary::default();
    }
    let at = |per_mille: usize| f64::from(latencies_us[((count - 1) * per_mille).div_ceil(1000)]) / 1e3;
    Summary { count, p50_ms: at(500), p99_ms: at(990), p999_ms: at(999), longest_ms: at(1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Moment = 1_000_000;

    #[test]
    fn a_stall_is_the_longest_silence_and_the_longest_io_within_the_window() {
        let mut meter = Meter::default();
        meter.answered(0, 900 * MS, false);
        meter.open(1000 * MS);
        meter.answered(990 * MS, 1010 * MS, true);
        meter.answered(1005 * MS, 1310 * MS, true);
        meter.answered(1309 * MS, 1311 * MS, false);
        let stall = meter.close(1312 * MS, None);
        assert_eq!((stall.silent_ms, stall.longest_ms), (300.0, 305.0));
        let longest = stall.longest();
        assert_eq!(longest, "a read of 305 ms, sent at 5 ms beside a flush that took 0 ms by itself,");
        assert_eq!(meter.close(2000 * MS, None), Stall::default());
    }

    #[test]
    fn what_is_still_unanswered_at_the_end_counts() {
        let mut meter = Meter::default();
        meter.open(1000 * MS);
        meter.answered(1000 * MS, 1001 * MS, false);
        let stall = meter.close(2001 * MS, Some((1501 * MS, false)));
        assert_eq!((stall.silent_ms, stall.longest_ms, stall.longest_sent_ms), (1000.0, 500.0, 501.0));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_latencies() {
        let summary = summary((1..=1000).map(|ms| ms * 1000).rev().collect());
        assert_eq!((summary.count, summary.p50_ms, summary.p99_ms), (1000, 501.0, 991.0));
        assert_eq!((summary.p999_ms, summary.longest_ms), (1000.0, 1000.0));
    }
}
