//! Steps of an I/O, put together: queued, issued, completed.

use std::collections::{BTreeMap, VecDeque};

use crate::event::{Action, Event};

use super::fields::SECTOR;
use super::lines::{Found, LineOutcome};

/// I/Os that are under way at a time; the oldest is given on unfinished when there are more.
const UNDER_WAY_MAX: usize = 65_536;
/// No I/O has more sectors (2 TiB): what says so is no I/O.
const SECTORS_MAX: u64 = 1 << 32;

/// Where a request or a part of one begins.
type Key = (u32, Action, u64);

/// A range of sectors on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) disk: u32,
    pub(super) action: Action,
    pub(super) sector: u64,
    pub(super) sectors: u64,
}

/// Queued, and not issued yet.
#[derive(Debug, Clone, Copy)]
struct Queued {
    at_ns: i128,
    sectors: u64,
}

/// Issued, and not completed yet.
#[derive(Debug, Clone, Copy)]
struct Issued {
    at_ns: i128,
    queued_ns: Option<i128>,
    /// Where the request began and how long it was, before a part of it completed.
    whole: Range,
    sectors_left: u64,
}

/// What is under way. A request that was merged from several I/Os, or is a part of a split one, counts from when the first of
/// them was queued.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    queued: BTreeMap<Key, Queued>,
    queued_order: VecDeque<(Key, i128)>,
    issued: BTreeMap<Key, Issued>,
    issued_order: VecDeque<(Key, i128)>,
    any_issued: bool,
    any_completed: bool,
}

impl Pairing {
    /// A range was asked for.
    pub(super) fn queue(&mut self, at_ns: i128, range: Range, found: &mut Found) -> LineOutcome {
        if range.action == Action::Flush {
            // Its request has no address by which its completion could be known.
            return found.event(at_ns, event(range, None, None));
        }
        if range.sectors == 0 || range.sectors > SECTORS_MAX {
            return LineOutcome::Ignored;
        }
        let key = (range.disk, range.action, range.sector);
        self.queued.insert(key, Queued { at_ns, sectors: range.sectors });
        self.queued_order.push_back((key, at_ns));
        while self.queued_order.len() > UNDER_WAY_MAX {
            let (key, at) = self.queued_order.pop_front().expect("there are many");
            if self.queued.get(&key).is_some_and(|queued| queued.at_ns == at) {
                self.give_up_queued(key, found);
            }
        }
        LineOutcome::Used
    }

    fn give_up_queued(&mut self, key: Key, found: &mut Found) {
        let Some(queued) = self.queued.remove(&key) else { return };
        found.unfinished += u64::from(self.any_completed);
        let range = Range { disk: key.0, action: key.1, sector: key.2, sectors: queued.sectors };
        found.event(queued.at_ns, event(range, None, None));
    }

    /// A range was given to the device.
    pub(super) fn issue(&mut self, at_ns: i128, range: Range, found: &mut Found) -> LineOutcome {
        if range.action == Action::Flush || range.sectors == 0 || range.sectors > SECTORS_MAX {
            return LineOutcome::Ignored;
        }
        self.any_issued = true;
        let key = (range.disk, range.action, range.sector);
        // Issued anew after a requeue: it waits since it was queued at first.
        let before = self.issued.get(&key).and_then(|before| before.queued_ns);
        let queued_ns = self.take_queued(range).or(before);
        let issued = Issued { at_ns, queued_ns, whole: range, sectors_left: range.sectors };
        self.issued.insert(key, issued);
        self.issued_order.push_back((key, at_ns));
        while self.issued_order.len() > UNDER_WAY_MAX {
            let (key, at) = self.issued_order.pop_front().expect("there are many");
            if self.issued.get(&key).is_some_and(|issued| issued.at_ns == at) {
                self.give_up_issued(key, found);
            }
        }
        LineOutcome::Used
    }

    fn give_up_issued(&mut self, key: Key, found: &mut Found) {
        let Some(issued) = self.issued.remove(&key) else { return };
        found.unfinished += u64::from(self.any_completed);
        let queued = issued.queued_ns.map(|queued| between(queued, issued.at_ns));
        found.event(issued.queued_ns.unwrap_or(issued.at_ns), event(issued.whole, None, queued));
    }

    /// When the earliest of the queued I/Os in the range was queued. They are taken out, as far as the range covers them.
    fn take_queued(&mut self, range: Range) -> Option<i128> {
        let (disk, action, from) = (range.disk, range.action, range.sector);
        let to = from.saturating_add(range.sectors);
        let mut earliest: Option<i128> = None;
        // The one that begins before may reach in.
        let before = self.queued.range(..(disk, action, from)).next_back();
        let before = before.filter(|(key, queued)| {
            (key.0, key.1) == (disk, action) && key.2.saturating_add(queued.sectors) > from
        });
        let mut keys: Vec<Key> = before.map(|(key, _)| *key).into_iter().collect();
        keys.extend(self.queued.range((disk, action, from)..(disk, action, to)).map(|(key, _)| *key));
        for key in keys {
            let queued = self.queued.remove(&key).expect("it was found");
            earliest = Some(earliest.map_or(queued.at_ns, |at| at.min(queued.at_ns)));
            let end = key.2.saturating_add(queued.sectors);
            if key.2 < from {
                self.queued.insert(key, Queued { sectors: from - key.2, ..queued });
            }
            if end > to {
                let rest = (disk, action, to);
                self.queued.insert(rest, Queued { sectors: end - to, ..queued });
                self.queued_order.push_back((rest, queued.at_ns));
            }
        }
        earliest
    }

    /// The device is done with a range, or with the first part of one.
    pub(super) fn complete(&mut self, at_ns: i128, range: Range, found: &mut Found) -> LineOutcome {
        if range.action == Action::Flush || range.sectors == 0 || range.sectors > SECTORS_MAX {
            return LineOutcome::Ignored;
        }
        self.any_completed = true;
        let key = (range.disk, range.action, range.sector);
        if let Some(mut issued) = self.issued.remove(&key) {
            issued.sectors_left = issued.sectors_left.saturating_sub(range.sectors);
            if issued.sectors_left > 0 {
                let rest = (key.0, key.1, key.2.saturating_add(range.sectors));
                self.issued.insert(rest, issued);
                self.issued_order.push_back((rest, issued.at_ns));
                return LineOutcome::Used;
            }
            let begin = issued.queued_ns.unwrap_or(issued.at_ns);
            let queued = issued.queued_ns.map(|queued| between(queued, issued.at_ns));
            return found.event(begin, event(issued.whole, Some(between(begin, at_ns)), queued));
        }
        // Devices without requests of their own (device mapper) have no issue: from queue to completion.
        match self.queued.get(&key) {
            Some(queued) if queued.sectors == range.sectors => {
                let begin = queued.at_ns;
                self.queued.remove(&key);
                found.event(begin, event(range, Some(between(begin, at_ns)), None))
            }
            _ if !self.any_issued && self.queued.is_empty() => {
                // Nothing but completions: that is when it was done, and all that is known.
                found.event(at_ns, event(range, None, None))
            }
            _ => LineOutcome::Dropped("a completion without an issue"),
        }
    }

    /// A range failed: it is forgotten.
    pub(super) fn fail(&mut self, range: Range) -> LineOutcome {
        let key = (range.disk, range.action, range.sector);
        self.issued.remove(&key);
        self.take_queued(range);
        LineOutcome::Dropped("the I/O failed")
    }

    /// There is nothing more: what is under way stays unfinished.
    pub(super) fn end(&mut self, found: &mut Found) {
        let keys: Vec<Key> = self.issued.keys().copied().collect();
        keys.into_iter().for_each(|key| self.give_up_issued(key, found));
        let keys: Vec<Key> = self.queued.keys().copied().collect();
        keys.into_iter().for_each(|key| self.give_up_queued(key, found));
    }
}

fn between(from_ns: i128, to_ns: i128) -> u64 {
    u64::try_from((to_ns - from_ns).max(0)).unwrap_or(u64::MAX)
}

fn event(range: Range, latency_ns: Option<u64>, queued_ns: Option<u64>) -> Event {
    Event {
        at_ns: 0,
        disk: range.disk,
        action: range.action,
        offset: range.sector.saturating_mul(SECTOR),
        bytes: range.sectors.saturating_mul(SECTOR),
        latency_ns,
        queued_ns,
    }
}
