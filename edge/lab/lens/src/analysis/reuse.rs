//! What a cache of any size would hit: miss-ratio curves by SHARDS (Waldspurger et al., FAST'15).
//!
//! A block is sampled when its hash is below a threshold, so all or none of its accesses are seen. The reuse distance among the
//! sampled, times 1/rate, is that among all. A cache here is LRU and is filled by reads and writes.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Hashes below this are compared with the threshold: rates of down to 6e-8.
const HASHES: u64 = 1 << 24;
/// Sampled blocks that are held, whatever the rate: 60 MiB. Beyond, the rate falls as with a fixed size.
const SAMPLES_MAX: usize = 1 << 20;
/// Parts of each power of two of cache sizes.
const PARTS: u64 = 16;

/// Which blocks are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// This share of all blocks, 0..=1; 1 is exact. Memory grows with the trace's working set, up to a million sampled blocks.
    Rate(f64),
    /// So many blocks at most (at least 1): the rate falls as the working set grows.
    Size(usize),
}

/// The share of accesses that miss, for caches of every size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissRatios {
    /// Bytes of a cache, and the share of accesses that it misses, 0..=1. Sizes rise, ratios do not; the first is one block.
    pub curve: Vec<(u64, f64)>,
    /// The share that misses in any cache: first accesses.
    pub cold: f64,
    /// Accesses to blocks.
    pub accesses: u64,
    /// The share of blocks that was sampled in the end.
    pub rate: f64,
    /// Bytes of cache for 80, 90 and 95 % hits; none where first accesses alone are more than that.
    pub for_hits: [Option<u64>; 3],
}

impl MissRatios {
    /// The share that a cache of `bytes` misses.
    pub fn at(&self, bytes: u64) -> f64 {
        let larger = self.curve.partition_point(|(size, _)| *size <= bytes);
        if larger == 0 { 1.0 } else { self.curve[larger - 1].1 }
    }

    /// The smallest cache of the curve that hits the share `hits` (0..=1); nothing when none does.
    pub fn for_hits(&self, hits: f64) -> Option<u64> {
        self.curve.iter().find(|(_, misses)| 1.0 - misses >= hits).map(|(bytes, _)| *bytes)
    }
}

/// Reuse distances of sampled blocks.
#[derive(Debug)]
pub(super) struct Reuse {
    block: u64,
    threshold: u64,
    samples_max: usize,
    /// The slot of each sampled block's last access.
    last: FxHashMap<u64, u32>,
    /// Sampled blocks, the one of the greatest hash first.
    greatest: BinaryHeap<(u64, u64)>,
    /// Which slots are somebody's last access: a Fenwick tree.
    slots: Vec<u32>,
    next: usize,
    /// Weight of accesses by the cache that they would have hit.
    needed: Vec<f64>,
    weight: f64,
    accesses: u64,
}

impl Reuse {
    pub(super) fn new(block: u64, sampling: Sampling) -> Reuse {
        let (threshold, samples_max) = match sampling {
            Sampling::Rate(rate) => (((rate.clamp(0.0, 1.0) * HASHES as f64) as u64).max(1), SAMPLES_MAX),
            Sampling::Size(size) => (HASHES, size.clamp(1, SAMPLES_MAX)),
        };
        Reuse {
            block,
            threshold,
            samples_max,
            last: FxHashMap::default(),
            greatest: BinaryHeap::new(),
            slots: vec![0; 1_025],
            next: 0,
            needed: Vec::new(),
            weight: 0.0,
            accesses: 0,
        }
    }

    /// A block, told apart by its key, is accessed.
    pub(super) fn access(&mut self, key: u64, hash: u64) {
        self.accesses += 1;
        let hash = hash % HASHES;
        if hash >= self.threshold {
            return;
        }
        let scale = HASHES as f64 / self.threshold as f64;
        self.weight += scale;
        if self.next + 1 >= self.slots.len() {
            self.compact();
        }
        let slot = self.next;
        self.next += 1;
        match self.last.insert(key, slot as u32) {
            Some(before) => {
                // The sampled blocks accessed since stand for more; this one stands for itself.
                let since = self.last.len() - self.count_to(before as usize);
                let needed = (since as f64 * scale).round() as u64 + 1;
                let bucket = bucket_of(needed);
                if self.needed.len() <= bucket {
                    self.needed.resize(bucket + 1, 0.0);
                }
                self.needed[bucket] += scale;
                self.add(before as usize, -1);
            }
            None => {
                self.greatest.push((hash, key));
            }
        }
        self.add(slot, 1);
        while self.last.len() > self.samples_max {
            self.lower();
        }
    }

    /// Lowers the threshold to the greatest hash, and forgets what is no longer below.
    fn lower(&mut self) {
        let Some(&(greatest, _)) = self.greatest.peek() else { return };
        self.threshold = greatest.max(1);
        while let Some(&(hash, key)) = self.greatest.peek()
            && hash >= self.threshold
        {
            self.greatest.pop();
            if let Some(slot) = self.last.remove(&key) {
                self.add(slot as usize, -1);
            }
        }
    }

    fn add(&mut self, slot: usize, change: i32) {
        let mut at = slot + 1;
        while at < self.slots.len() {
            self.slots[at] = self.slots[at].wrapping_add_signed(change);
            at += at & at.wrapping_neg();
        }
    }

    /// How many last accesses lie in slots up to this one.
    fn count_to(&self, slot: usize) -> usize {
        let (mut at, mut count) = (slot + 1, 0);
        while at > 0 {
            count += self.slots[at] as usize;
            at -= at & at.wrapping_neg();
        }
        count
    }

    /// Moves last accesses to the first slots, in their order, with as much room again.
    fn compact(&mut self) {
        let mut order: Vec<(u32, u64)> = self.last.iter().map(|(&key, &slot)| (slot, key)).collect();
        order.sort_unstable();
        self.slots = vec![0; (order.len() * 2).max(1_024) + 1];
        self.next = order.len();
        for (slot, (_, key)) in order.into_iter().enumerate() {
            self.last.insert(key, slot as u32);
            self.add(slot, 1);
        }
    }

    pub(super) fn finish(&self) -> MissRatios {
        let total = self.accesses as f64;
        // Hot blocks make the sample hold more or fewer accesses than its share: the difference is put to the nearest reuses
        // (the paper's SHARDS_adj).
        let mut needed = self.needed.clone();
        if needed.is_empty() {
            needed.push(0.0);
        }
        if self.weight > 0.0 {
            needed[0] += total - self.weight;
        }
        let (mut hits, mut best, mut curve) = (0.0, 0.0f64, Vec::new());
        for (bucket, weight) in needed.iter().enumerate() {
            hits += weight;
            let ratio: f64 = if total > 0.0 { hits / total } else { 0.0 };
            let rose = ratio.clamp(0.0, 1.0) > best;
            best = best.max(ratio.clamp(0.0, 1.0));
            if rose || bucket == 0 {
                curve.push((limit_of(bucket).saturating_mul(self.block), 1.0 - best));
            }
        }
        let rate = self.threshold as f64 / HASHES as f64;
        let found =
            MissRatios { curve, cold: 1.0 - best, accesses: self.accesses, rate, for_hits: [None; 3] };
        MissRatios { for_hits: [0.80, 0.90, 0.95].map(|hits| found.for_hits(hits)), ..found }
    }
}

/// The bucket of a cache of `blocks` (at least 1): whole numbers up to 16, then 16 in each power of two.
fn bucket_of(blocks: u64) -> usize {
    if blocks <= PARTS {
        return blocks as usize - 1;
    }
    // What is just above a limit needs the next one: 33 and 34 need 34.
    let value = blocks - 1;
    let octave = 63 - u64::from(value.leading_zeros());
    let part = (value >> (octave - 4)) & (PARTS - 1);
    (PARTS + (octave - 4) * PARTS + part) as usize
}

/// The largest cache in a bucket, in blocks.
fn limit_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket + 1;
    }
    let (octave, part) = ((bucket - PARTS) / PARTS + 4, (bucket - PARTS) % PARTS);
    (1u64 << octave).saturating_add((part + 1) << (octave - 4))
}

#[cfg(test)]
pub(super) mod tests;
