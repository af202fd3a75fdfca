//! Which parts are hot, how skewed blocks are, and how soon they are written again.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// The smallest part that is told apart: 1 MiB.
const REGION_BITS: u32 = 20;
/// Parts at most; when there would be more, each becomes twice as large.
const REGIONS_MAX: usize = 32_768;
/// Sampled blocks at most; when there would be more, half of them are forgotten.
const BLOCKS_MAX: usize = 65_536;
/// Blocks below this many accesses are ranked by chance.
const COUNT_MIN: u64 = 6;
/// Ranks that a skew is fitted to, at least and at most.
const RANKS: (usize, usize) = (30, 20_000);
/// Shares of the touched parts at which the Lorenz curve is told.
const LORENZ: [f64; 7] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0];

/// Which parts are hot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Heat {
    /// Bytes of a part.
    pub region: u64,
    /// Parts that were touched.
    pub regions: usize,
    /// 0 when all touched parts are alike, towards 1 when few have everything.
    pub gini: f64,
    /// The hottest share of the touched parts, and the share of the I/Os that go there.
    pub lorenz: Vec<(f64, f64)>,
    /// The exponent of Zipf's law that fits the blocks at which I/Os begin best; below 0.2 is no skew, for ranks by chance
    /// look like some. None when too few blocks come
    /// often enough to be ranked.
    pub zipf: Option<f64>,
}

/// How soon what was written is written again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overwrites {
    /// The share of written blocks that had been written before in this trace.
    pub share: f64,
    /// Half of them within so many seconds (to the next power of two); none when nothing was written twice.
    pub median_s: Option<f64>,
    /// Seconds (up to so many: powers of two of ns), and the share of overwrites that came as soon.
    pub within: Vec<(f64, f64)>,
}

/// Counts of one region: all I/Os, and those that go on no stream.
#[derive(Debug, Clone, Copy, Default)]
struct Region {
    all: u64,
    random: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    starts: u64,
    written_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct HeatMap {
    bits: u32,
    regions: FxHashMap<u64, Region>,
    /// Blocks are sampled when this many low bits of their hash are 0.
    sample_bits: u32,
    blocks: FxHashMap<u64, Seen>,
    intervals: [u64; 65],
    first_writes: u64,
}

impl Default for HeatMap {
    fn default() -> Self {
        HeatMap {
            bits: REGION_BITS,
            regions: FxHashMap::default(),
            sample_bits: 0,
            blocks: FxHashMap::default(),
            intervals: [0; 65],
            first_writes: 0,
        }
    }
}

impl HeatMap {
    /// An I/O begins here. `disk` keeps disks apart.
    pub(super) fn io(&mut self, disk: u32, offset: u64, random: bool) {
        // 2^48 MiB are more than there is.
        let key = (u64::from(disk) << 44) | ((offset >> self.bits) & ((1 << 44) - 1));
        let region = self.regions.entry(key).or_default();
        region.all += 1;
        region.random += u64::from(random);
        while self.regions.len() > REGIONS_MAX {
            let mut joined: FxHashMap<u64, Region> = FxHashMap::default();
            for (key, region) in self.regions.drain() {
                let (disk, place) = (key >> 44, key & ((1 << 44) - 1));
                let sum = joined.entry(disk << 44 | place >> 1).or_default();
                (sum.all, sum.random) = (sum.all + region.all, sum.random + region.random);
            }
            self.regions = joined;
            self.bits += 1;
            if self.bits >= 63 {
                break;
            }
        }
    }

    /// A block is touched: told apart by its key.
    pub(super) fn block(&mut self, at_ns: u64, key: u64, hash: u64, starts: bool, write: bool) {
        // The high bits choose registers and rates elsewhere; the middle ones are nobody else's.
        let sampled = |bits: u32| (hash >> 24) & ((1 << bits) - 1) == 0;
        if !sampled(self.sample_bits) {
            return;
        }
        let seen = self.blocks.entry(key).or_default();
        seen.starts += u64::from(starts);
        if write {
            match seen.written_ns.replace(at_ns) {
                Some(before) => {
                    let ns = at_ns.saturating_sub(before);
                    self.intervals[64 - ns.leading_zeros() as usize] += 1;
                }
                None => self.first_writes += 1,
            }
        }
        if self.blocks.len() > BLOCKS_MAX {
            self.sample_bits += 1;
            let bits = self.sample_bits;
            // Keys are hashes' own pre-images: the sample is chosen by what the key hashes to.
            self.blocks.retain(|&key, _| (super::hash::hash(key) >> 24) & ((1 << bits) - 1) == 0);
        }
    }

    pub(super) fn heat(&self) -> Heat {
        let mut counts: Vec<u64> = self.regions.values().map(|region| region.all).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let total: f64 = counts.iter().map(|&count| count as f64).sum();
        let mut sums = vec![0.0];
        for &count in &counts {
            sums.push(sums[sums.len() - 1] + count as f64);
        }
        let n = counts.len() as f64;
        // Twice the area between the curve of the hottest first and the diagonal.
        let area: f64 = sums.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).sum();
        let gini = if total > 0.0 { (2.0 * area / (total * n) - 1.0).max(0.0) } else { 0.0 };
        let lorenz = LORENZ.iter().filter(|_| total > 0.0).map(|&share| {
            let at = share * n;
            let (below, part) = ((at.floor() as usize).min(counts.len()), at.fract());
            let more = counts.get(below).map_or(0.0, |&count| count as f64 * part);
            (share, (sums[below] + more) / total)
        });
        Heat {
            region: 1 << self.bits,
            regions: counts.len(),
            gini,
            lorenz: lorenz.collect(),
            zipf: self.zipf(),
        }
    }

    fn zipf(&self) -> Option<f64> {
        let mut counts: Vec<u64> =
            self.blocks.values().map(|seen| seen.starts).filter(|count| *count >= COUNT_MIN).collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts.truncate(RANKS.1);
        (counts.len() >= RANKS.0).then(|| theta(&counts))
    }

    pub(super) fn overwrites(&self) -> Overwrites {
        let again: u64 = self.intervals.iter().sum();
        let all = again + self.first_writes;
        let (mut seen, mut within) = (0, Vec::new());
        for (power, &count) in self.intervals.iter().enumerate().filter(|(_, count)| **count > 0) {
            seen += count;
            within.push((2f64.powi(power as i32) / 1e9, seen as f64 / again as f64));
        }
        Overwrites {
            share: if all > 0 { again as f64 / all as f64 } else { 0.0 },
            median_s: within.iter().find(|(_, share)| *share >= 0.5).map(|(seconds, _)| *seconds),
            within,
        }
    }

    /// The I/Os that go on no stream, in `zones` equal parts of the range.
    pub(super) fn random_in_zones(&self, (from, to): (u64, u64), zones: usize) -> Vec<f64> {
        let mut counts = vec![0.0; zones];
        let length = (to.saturating_sub(from)).max(1) as f64;
        for (key, region) in &self.regions {
            let begin = (key & ((1 << 44) - 1)) << self.bits;
            // A region may lie in several zones; it is taken to be even inside.
            let (first, last) = (begin.max(from), begin.saturating_add(1 << self.bits).min(to));
            if first >= last {
                continue;
            }
            let place = |at: u64| (at - from) as f64 / length * zones as f64;
            let (first, last) = (place(first), place(last));
            let mut zone = first.floor() as usize;
            while zone < zones && (zone as f64) < last {
                let part = last.min(zone as f64 + 1.0) - first.max(zone as f64);
                counts[zone] += region.random as f64 * part / (last - first);
                zone += 1;
            }
        }
        counts
    }
}

/// The exponent that makes these counts, of ranks 1, 2, …, most likely: golden-section search of 0 to 3, for the likelihood has
/// one maximum.
fn theta(counts: &[u64]) -> f64 {
    let logs: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).ln()).collect();
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    let weighted: f64 = counts.iter().zip(&logs).map(|(&count, log)| count as f64 * log).sum();
    let likelihood = |theta: f64| {
        let sum: f64 = logs.iter().map(|log| (-theta * log).exp()).sum();
        -theta * weighted - total * sum.ln()
    };
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut from, mut to) = (0.0, 3.0);
    for _ in 0..40 {
        let (one, other) = (to - golden * (to - from), from + golden * (to - from));
        if likelihood(one) > likelihood(other) { to = other } else { from = one }
    }
    (from + to) / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::hash::hash;
    use super::super::reuse::tests::zipf;
    use super::*;
    use base::Random;

    #[test]
    fn the_exponent_of_zipfs_law_is_recovered() {
        for theta in [0.6, 0.9, 1.2] {
            let mut map = HeatMap::default();
            let trace = zipf(&mut Random::new(4), 10_000, theta, 300_000);
            trace.iter().for_each(|&block| map.block(0, block, hash(block), true, false));
            let found = map.heat().zipf.unwrap();
            assert!((found - theta).abs() < 0.06, "{theta}: {found}");
        }
    }

    #[test]
    fn even_blocks_have_no_skew() {
        let (mut map, mut random) = (HeatMap::default(), Random::new(5));
        for _ in 0..200_000 {
            let block = random.below(5_000);
            map.block(0, block, hash(block), true, false);
            map.io(0, block << 20, true);
        }
        let heat = map.heat();
        assert!(heat.zipf.unwrap() < 0.15, "{heat:?}");
        assert!(heat.gini < 0.12 && heat.regions == 5_000, "{heat:?}");
        assert_eq!(heat.lorenz[6], (1.0, 1.0));
    }

    #[test]
    fn the_gini_of_one_hot_region_among_many_is_near_one() {
        let mut map = HeatMap::default();
        for region in 0..100u64 {
            (0..if region == 7 { 9_901 } else { 1 }).for_each(|_| map.io(0, region << 20, true));
        }
        let heat = map.heat();
        assert!((heat.gini - 0.98).abs() < 0.001, "{heat:?}");
        assert_eq!(heat.lorenz[0], (0.01, 0.9901));
    }

    #[test]
    fn regions_and_blocks_stay_within_their_bounds() {
        let (mut map, mut random) = (HeatMap::default(), Random::new(6));
        for at in 0..300_000u64 {
            let key = random.bits() >> 20;
            map.io((at % 3) as u32, key << 10, true);
            map.block(at, key, hash(key), true, true);
            assert!(map.regions.len() <= REGIONS_MAX && map.blocks.len() <= BLOCKS_MAX);
        }
        assert_eq!(map.regions.values().map(|region| region.all).sum::<u64>(), 300_000);
    }

    #[test]
    fn overwrites_are_told_with_their_interval() {
        let mut map = HeatMap::default();
        for round in 0..5u64 {
            (0..1_000).for_each(|block| map.block(round * 1_000_000_000, block, hash(block), true, true));
        }
        let found = map.overwrites();
        // A second lies from 2^29 to 2^30 ns.
        assert_eq!((found.share, found.median_s), (0.8, Some(1.073_741_824)));
    }

    #[test]
    fn zones_hold_all_random_ios() {
        let (mut map, mut random) = (HeatMap::default(), Random::new(7));
        for at in 0..10_000 {
            let half = if at % 10 < 9 { 0 } else { 1 << 30 };
            map.io(0, half + random.below(1 << 30), true);
        }
        let zones = map.random_in_zones((0, 2 << 30), 4);
        assert!((zones.iter().sum::<f64>() - 10_000.0).abs() < 1e-6);
        assert!(
            (zones[0] + zones[1] - 9_000.0).abs() < 1e-6 && (zones[3] - 500.0).abs() < 120.0,
            "{zones:?}"
        );
    }
}
