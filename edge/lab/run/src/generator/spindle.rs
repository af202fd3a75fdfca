//! A simulated single spindle, to try experiments on: seeks, rotation and transfer, one request after another.
//!
//! Several targets may be parts of one spindle, one behind another on its platter, as the files of several virtual machines are:
//! then each feels the others' seeks. Nothing is stored; reads give what the buffer held.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Nanoseconds of half a turn at 7,200 turns a minute: what a request waits for its sector on average.
const HALF_TURN: u64 = 4_166_667;
/// Nanoseconds from one track to the next, and over the whole platter (a desktop disk's data sheet: 0.8 and 16 ms).
const SEEK_MIN: f64 = 800_000.0;
const SEEK_MAX: f64 = 16_000_000.0;
/// Bytes a second from the platter.
const TRANSFER: f64 = 120e6;
/// A request that begins so close behind the end of the last one is in sequence: the disk reads ahead.
const READ_AHEAD: u64 = 256 << 10;

/// One spindle.
#[derive(Debug, Default)]
pub struct Spindle {
    /// Name, start and size of its parts.
    parts: Vec<(String, u64, u64)>,
    head: u64,
    busy_until: u64,
}

/// A part of a spindle.
#[derive(Debug, Clone)]
pub struct Part {
    spindle: Arc<Mutex<Spindle>>,
    start: u64,
}

/// All spindles of this process, by name: parts of one that are named apart must meet.
fn spindles() -> &'static Mutex<BTreeMap<String, Arc<Mutex<Spindle>>>> {
    static ALL: OnceLock<Mutex<BTreeMap<String, Arc<Mutex<Spindle>>>>> = OnceLock::new();
    ALL.get_or_init(Mutex::default)
}

impl Part {
    /// The part of this name of the spindle of this name; it is added behind the others if it is new.
    pub fn of(spindle: &str, part: &str, size: u64) -> Part {
        let mut all = spindles().lock().expect("no thread panics with the lock held");
        let spindle = all.entry(spindle.to_owned()).or_default().clone();
        drop(all);
        let mut disk = spindle.lock().expect("no thread panics with the lock held");
        let known =
            disk.parts.iter().find(|(name, _, of)| name == part && *of == size).map(|(_, start, _)| *start);
        let start = known.unwrap_or_else(|| {
            let end = disk.parts.last().map_or(0, |(_, start, size)| start + size);
            disk.parts.push((part.to_owned(), end, size));
            end
        });
        drop(disk);
        Part { spindle, start }
    }

    /// A request that comes at `now` (nanoseconds) is done at the time that is returned.
    pub fn serve(&self, now: u64, offset: u64, size: u64) -> u64 {
        self.spindle.lock().expect("no thread panics with the lock held").serve(
            now,
            self.start + offset,
            size,
        )
    }
}

impl Spindle {
    fn serve(&mut self, now: u64, place: u64, size: u64) -> u64 {
        let begins = now.max(self.busy_until);
        let in_sequence = place >= self.head && place - self.head <= READ_AHEAD;
        let seek = if in_sequence { 0 } else { self.seek(place) + HALF_TURN };
        let transfer = (size as f64 / TRANSFER * 1e9) as u64;
        self.head = place + size;
        self.busy_until = begins + seek + transfer;
        self.busy_until
    }

    /// The time of a seek grows with the root of its distance.
    fn seek(&self, place: u64) -> u64 {
        let whole = self.parts.last().map_or(1, |(_, start, size)| start + size).max(1) as f64;
        let distance = self.head.abs_diff(place) as f64 / whole;
        (SEEK_MIN + (SEEK_MAX - SEEK_MIN) * distance.min(1.0).sqrt()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_in_sequence_is_fast_alone_and_slow_beside_another() {
        let (one, two) = (Part::of("test", "one", 1 << 30), Part::of("test", "two", 1 << 30));
        let mut now = 0;
        for index in 0..100 {
            now = one.serve(now, index * 65536, 65536);
        }
        let alone = now;
        for index in 100..200 {
            two.serve(now, index * 7919 * 4096 % (1 << 30), 4096);
            now = one.serve(now, index * 65536, 65536);
        }
        let beside = now - alone;
        assert!(beside > 10 * alone, "{beside} ns beside another, {alone} ns alone");
        let again = Part::of("test", "one", 1 << 30);
        assert_eq!(again.start, one.start);
        assert_eq!(two.start, 1 << 30);
    }
}
