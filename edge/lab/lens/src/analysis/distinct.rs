//! How many different blocks: HyperLogLog (Flajolet et al. 2007) with linear counting where it is the better one.

use serde::Serialize;

/// Registers for the whole trace: 0.8 % standard error.
const WHOLE_BITS: u32 = 14;
/// Registers for a window: 3.3 %.
const WINDOW_BITS: u32 = 10;
/// Windows that are kept; when there would be more, neighbours are joined.
const WINDOWS_MAX: usize = 256;

/// A set of hashes of which only the size can be asked.
#[derive(Debug, Clone)]
pub(super) struct Distinct {
    bits: u32,
    registers: Vec<u8>,
}

impl Distinct {
    pub(super) fn new(bits: u32) -> Distinct {
        Distinct { bits, registers: vec![0; 1 << bits] }
    }

    pub(super) fn insert(&mut self, hash: u64) {
        let index = (hash >> (64 - self.bits)) as usize;
        let rank = (hash << self.bits).leading_zeros().min(64 - self.bits) as u8 + 1;
        self.registers[index] = self.registers[index].max(rank);
    }

    pub(super) fn merge(&mut self, other: &Distinct) {
        for (mine, other) in self.registers.iter_mut().zip(&other.registers) {
            *mine = (*mine).max(*other);
        }
    }

    pub(super) fn count(&self) -> f64 {
        let m = self.registers.len() as f64;
        let sum: f64 = self.registers.iter().map(|&rank| 2f64.powi(-i32::from(rank))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.registers.iter().filter(|&&rank| rank == 0).count();
        if raw <= 2.5 * m && empty > 0 { m * (m / empty as f64).ln() } else { raw }
    }
}

/// The bytes that a disk touches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkingSet {
    /// Different bytes in all, in whole blocks; within 2 % in 95 of 100 cases.
    pub bytes: u64,
    /// Of those, different bytes that were written.
    pub bytes_written: u64,
    /// Length of a window, in seconds.
    pub window_s: f64,
    /// Different bytes in each window from the first I/O on; within 7 % in 95 of 100 cases.
    pub windows: Vec<u64>,
    /// From the first to the last byte that was touched.
    pub span: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(super) struct WorkingSets {
    block: u64,
    window_ns: u64,
    all: Distinct,
    written: Distinct,
    windows: Vec<Distinct>,
    span: Option<(u64, u64)>,
}

impl WorkingSets {
    pub(super) fn new(block: u64, window_s: f64) -> WorkingSets {
        let (all, written) = (Distinct::new(WHOLE_BITS), Distinct::new(WHOLE_BITS));
        let window_ns = (window_s.clamp(0.001, 1e6) * 1e9) as u64;
        WorkingSets { block, window_ns, all, written, windows: Vec::new(), span: None }
    }

    pub(super) fn range(&mut self, from: u64, to: u64) {
        let (first, last) = self.span.unwrap_or((from, to));
        self.span = Some((first.min(from), last.max(to)));
    }

    pub(super) fn block(&mut self, at_ns: u64, hash: u64, write: bool) {
        self.all.insert(hash);
        if write {
            self.written.insert(hash);
        }
        while at_ns / self.window_ns >= WINDOWS_MAX as u64 {
            let pairs = self.windows.chunks(2).map(|pair| {
                let mut joined = pair[0].clone();
                pair[1..].iter().for_each(|other| joined.merge(other));
                joined
            });
            self.windows = pairs.collect();
            self.window_ns *= 2;
        }
        let window = (at_ns / self.window_ns) as usize;
        while self.windows.len() <= window {
            self.windows.push(Distinct::new(WINDOW_BITS));
        }
        self.windows[window].insert(hash);
    }

    pub(super) fn finish(&self) -> WorkingSet {
        let bytes = |set: &Distinct| set.count().round() as u64 * self.block;
        WorkingSet {
            bytes: bytes(&self.all),
            bytes_written: bytes(&self.written),
            window_s: self.window_ns as f64 / 1e9,
            windows: self.windows.iter().map(bytes).collect(),
            span: self.span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash::hash;
    use super::*;

    #[test]
    fn counts_are_within_the_stated_error() {
        for count in [0u64, 1, 10, 1_000, 20_000, 100_000, 1_000_000] {
            let mut set = Distinct::new(WHOLE_BITS);
            for block in 0..count {
                set.insert(hash(block * 977));
                set.insert(hash(block * 977));
            }
            assert!(
                (set.count() - count as f64).abs() <= 0.02 * count as f64 + 0.5,
                "{count}: {}",
                set.count()
            );
        }
    }

    #[test]
    fn windows_are_joined_and_no_block_is_lost() {
        let mut sets = WorkingSets::new(4096, 1.0);
        for second in 0..1_000u64 {
            sets.block(second * 1_000_000_000, hash(second), second % 2 == 0);
        }
        let found = sets.finish();
        assert_eq!((found.window_s, found.windows.len()), (4.0, 250));
        assert_eq!(found.windows[100], 4 * 4096);
        assert!((found.bytes as f64 / (1_000.0 * 4096.0) - 1.0).abs() < 0.02);
        assert!((found.bytes_written as f64 / (500.0 * 4096.0) - 1.0).abs() < 0.02);
    }
}
