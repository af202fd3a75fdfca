//! The seconds of the last hour.

use super::{Steps, Subject};
use crate::limits::{SERIES_BYTES_MAX, SERIES_KEPT};
use base::bytes::{Reader, Writer};
use iostats::Interval;
use std::collections::{BTreeMap, VecDeque};

/// What happened second by second; the oldest goes first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    seconds: VecDeque<(u64, Subject, Box<[u8]>)>,
    /// The seconds that were seen.
    seen: VecDeque<u64>,
    bytes: usize,
}

fn cost(encoded: &[u8]) -> usize {
    encoded.len() + size_of::<(u64, Subject, Box<[u8]>)>()
}

impl Recent {
    pub(super) fn add(&mut self, now: u64, happened: &BTreeMap<Subject, Interval>) {
        // A clock that was set back: what comes later by it is not later.
        while self.seen.back().is_some_and(|last| *last > now) {
            self.seen.pop_back();
        }
        while self.seconds.back().is_some_and(|(at, ..)| *at > now) {
            let (.., encoded) = self.seconds.pop_back().expect("it is there");
            self.bytes -= cost(&encoded);
        }
        self.seen.push_back(now);
        for (subject, interval) in happened.iter().filter(|(_, interval)| !interval.is_empty()) {
            let mut writer = Writer::with_capacity(128);
            interval.encode(&mut writer);
            let encoded = writer.into_bytes().into_boxed_slice();
            self.bytes += cost(&encoded);
            self.seconds.push_back((now, *subject, encoded));
        }
        self.forget(now);
    }

    fn forget(&mut self, now: u64) {
        let mut oldest = now.saturating_sub(SERIES_KEPT.as_secs());
        while let Some((at, _, encoded)) = self.seconds.front() {
            if *at >= oldest && self.bytes <= SERIES_BYTES_MAX {
                break;
            }
            self.bytes -= cost(encoded);
            // Of a second of which a part is forgotten nothing is known.
            oldest = oldest.max(*at + 1);
            self.seconds.pop_front();
        }
        while self.seen.front().is_some_and(|at| *at < oldest) {
            self.seen.pop_front();
        }
    }

    /// Fills in what a subject did.
    pub(super) fn fill(&self, subject: Subject, steps: &mut Steps) {
        // The second that ended at a time lies before it.
        let index = |steps: &Steps, at: u64| steps.range.step_of(at.checked_sub(1)?);
        for at in &self.seen {
            if let Some(index) = index(steps, *at) {
                steps.seconds[index] += 1;
            }
        }
        for (at, of, encoded) in &self.seconds {
            let Some(index) = index(steps, *at).filter(|_| *of == subject) else { continue };
            if let Ok(interval) = Interval::decode(&mut Reader::new(encoded)) {
                steps.add(index, &interval);
            }
        }
    }
}
