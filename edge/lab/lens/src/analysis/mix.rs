//! What I/Os are: reads and writes, sizes, alignment.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::event::{Action, Event};

use super::locality::Step;

/// Pairs of action and size that are counted each; sizes beyond are counted as the next power of two.
const PAIRS_MAX: usize = 1_024;

/// What I/Os are.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mix {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sizes of reads and writes, the most frequent first.
    pub sizes: Vec<SizeShare>,
    /// The share of reads and writes that begin or end at no multiple of 4 KiB.
    pub misaligned_4k: f64,
    /// The share that begin at no multiple of 64 KiB.
    pub misaligned_64k: f64,
}

/// One size of one action.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeShare {
    /// Read or write.
    pub action: Action,
    /// Bytes of an I/O.
    pub bytes: u64,
    /// How many.
    pub count: u64,
    /// How many of them go on no stream.
    pub random: u64,
}

impl Mix {
    /// The share of reads among reads and writes; 0 without any.
    pub fn read_share(&self) -> f64 {
        let all = self.reads + self.writes;
        if all > 0 { self.reads as f64 / all as f64 } else { 0.0 }
    }

    /// The share of bytes read among those read and written; 0 without any.
    pub fn read_byte_share(&self) -> f64 {
        let all = self.read_bytes.saturating_add(self.write_bytes);
        if all > 0 { self.read_bytes as f64 / all as f64 } else { 0.0 }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counting {
    mix: Mix,
    /// Count, and how many of them go on no stream.
    pairs: FxHashMap<(Action, u64), (u64, u64)>,
    misaligned: [u64; 2],
}

impl Counting {
    /// A trim or a flush.
    pub(super) fn other(&mut self, action: Action) {
        self.mix.trims += u64::from(action == Action::Trim);
        self.mix.flushes += u64::from(action == Action::Flush);
    }

    /// A read or a write.
    pub(super) fn io(&mut self, event: &Event, step: Step) {
        let (count, bytes) = match event.action {
            Action::Write => (&mut self.mix.writes, &mut self.mix.write_bytes),
            _ => (&mut self.mix.reads, &mut self.mix.read_bytes),
        };
        *count += 1;
        *bytes = bytes.saturating_add(event.bytes);
        self.misaligned[0] +=
            u64::from(!event.offset.is_multiple_of(4096) || !event.bytes.is_multiple_of(4096));
        self.misaligned[1] += u64::from(!event.offset.is_multiple_of(65_536));
        let full = self.pairs.len() >= PAIRS_MAX && !self.pairs.contains_key(&(event.action, event.bytes));
        // Two actions of 64 powers of two more, at most.
        let size =
            if full { event.bytes.checked_next_power_of_two().unwrap_or(u64::MAX) } else { event.bytes };
        let pair = self.pairs.entry((event.action, size)).or_default();
        pair.0 += 1;
        pair.1 += u64::from(step == Step::Jumps);
    }

    pub(super) fn finish(&self) -> Mix {
        let mut mix = self.mix.clone();
        let all = (mix.reads + mix.writes).max(1) as f64;
        (mix.misaligned_4k, mix.misaligned_64k) =
            (self.misaligned[0] as f64 / all, self.misaligned[1] as f64 / all);
        mix.sizes = self
            .pairs
            .iter()
            .map(|(&(action, bytes), &(count, random))| SizeShare { action, bytes, count, random })
            .collect();
        mix.sizes.sort_by_key(|size| (std::cmp::Reverse(size.count), size.action, size.bytes));
        mix
    }
}
