//! Where a disk is read that has a copy on its owner's host: there, unless that copy is slower than another one by more than what
//! the network costs.
//!
//! The owner measures from the question to the answer, so the time of a copy on another host includes the network. A copy on the own
//! host costs no network and less of the processors, so it is left only when it is slow ([`limits::OWN_SLOW`]) and takes twice as
//! long as another ([`limits::OWN_SLOW_FACTOR`]). Other copies are measured by single reads while the own one is slow; the own one
//! is measured the same way while it is passed over. A copy that is left again soon after reads came back stays left for longer
//! each time, so that reads do not go back and forth. Pure: the time is an argument.

use crate::limits;
use base::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// Which copies guests' reads go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// All, by offset.
    #[default]
    Spread,
    /// The one on the owner's host, if there is one, whatever it takes; otherwise as [`Reading::Spread`].
    Local,
    /// The one on the owner's host while it is not slower than others by more than the network costs.
    Auto,
}

/// What single reads of a component took lately.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recent {
    /// Smoothed, in nanoseconds; 0 if nothing was read yet.
    pub(crate) ns: u64,
    /// When a read ended last.
    at: Instant,
}

impl Recent {
    /// A read took so long. The longer the last one is ago, the more the new one says.
    pub(crate) fn note(&mut self, now: Instant, took_ns: u64) {
        let (age, took_ns) = (now.since(self.at), took_ns.max(1));
        self.ns = match self.ns {
            0 => took_ns,
            _ if age >= limits::READ_TIME_FRESH => took_ns,
            before if age >= limits::READ_TIME_SPARSE => before.midpoint(took_ns),
            before => (before * 7 + took_ns) / 8,
        };
        self.at = now;
    }

    /// The time, if it is recent enough to decide by.
    fn fresh(&self, now: Instant) -> Option<u64> {
        (self.ns > 0 && now.since(self.at) <= limits::READ_TIME_FRESH).then_some(self.ns)
    }
}

/// A component that a read may go to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Readable {
    pub(crate) index: u8,
    /// Whether it is on the owner's host.
    pub(crate) is_own: bool,
    /// What reads from it took, smoothed over many; 0 if there was none.
    pub(crate) read_ns: u64,
    /// What they took lately.
    pub(crate) recent: Recent,
}

/// The copy of a place on the owner's host: whether reads pass it over, and until when.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// Until when it is passed over at least; none while it is read.
    away_until: Option<Instant>,
    /// How long it was passed over the last time.
    stay: Duration,
    /// When reads came back to it.
    returned_at: Instant,
    /// When the next read may be one that only measures.
    probe_at: Instant,
    probes: usize,
}

impl Steering {
    /// Whether reads pass over the copy on the owner's host.
    pub(crate) fn is_away(&self) -> bool {
        self.away_until.is_some()
    }

    /// The component that a read of a part goes to. `None` if there is nobody to read from.
    pub(crate) fn choose(&mut self, now: Instant, readable: &[Readable], part: u32) -> Option<u8> {
        let own: SmallVec<[&Readable; 4]> = readable.iter().filter(|one| one.is_own).collect();
        let others: SmallVec<[&Readable; 4]> = readable.iter().filter(|one| !one.is_own).collect();
        if own.is_empty() || others.is_empty() {
            let chosen = readable.get(part as usize % readable.len().max(1))?;
            return Some(chosen.index);
        }
        let own = own[part as usize % own.len()];
        let is_slow = own.recent.ns > limits::OWN_SLOW.as_nanos() as u64;
        if !is_slow && self.away_until.is_none() {
            return Some(own.index);
        }
        self.decide(now, own, &others);
        let is_probe = now >= self.probe_at;
        match (self.away_until, is_probe) {
            (None, false) => Some(own.index),
            (None, true) => {
                self.probe_at = now + limits::OTHER_PROBE_INTERVAL;
                self.probes += 1;
                Some(others[self.probes % others.len()].index)
            }
            (Some(_), true) => {
                self.probe_at = now + limits::OWN_PROBE_INTERVAL;
                Some(own.index)
            }
            (Some(_), false) => {
                let known = others.iter().map(|one| one.read_ns).filter(|ns| *ns > 0);
                let quickest = known.min().unwrap_or(0);
                let bound = (quickest.saturating_mul(limits::SLOW_FACTOR))
                    .max(limits::SLOW_LATENCY.as_nanos() as u64);
                let fit: SmallVec<[&&Readable; 4]> =
                    others.iter().filter(|one| one.read_ns <= bound).collect();
                Some(fit[part as usize % fit.len()].index)
            }
        }
    }

    /// Leaves the copy on the owner's host, or comes back to it.
    fn decide(&mut self, now: Instant, own: &Readable, others: &[&Readable]) {
        let Some(best) = others.iter().filter_map(|one| one.recent.fresh(now)).min() else { return };
        let slow = limits::OWN_SLOW.as_nanos() as u64;
        match self.away_until {
            None if own.recent.ns > slow && own.recent.ns > best.saturating_mul(limits::OWN_SLOW_FACTOR) => {
                let is_soon = now.since(self.returned_at) < self.stay * 8;
                let doubled = (self.stay * 2).min(limits::PASS_OVER_MAX);
                self.stay = if is_soon { doubled } else { limits::PASS_OVER };
                self.away_until = Some(now + self.stay);
                self.probe_at = now + limits::OWN_PROBE_INTERVAL;
            }
            Some(until) if now >= until => {
                let is_well = own.recent.fresh(now).is_some_and(|ns| ns <= slow.max(best));
                if is_well {
                    (self.away_until, self.returned_at) = (None, now);
                }
            }
            None | Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
