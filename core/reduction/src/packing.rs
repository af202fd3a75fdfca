//! A model of packing: compressed blocks are put into sectors of 4 KiB, and none crosses the border of a sector.

use crate::sizes::UNITS_PER_BLOCK;
use base::Random;

/// Blocks that are packed at once: a destage gathers as many of a component (docs/design/0048).
const BATCH: usize = 64;
/// Batches that are packed. With 256 the share of used units scatters by less than 0.2 points.
const BATCHES: usize = 256;

/// The share of units in use when blocks of these sizes are packed, in batches drawn at random; nothing where there are none.
pub(crate) fn fill(counts: &[u64; UNITS_PER_BLOCK]) -> Option<f64> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return None;
    }
    // Always the same numbers: equal samples give equal figures.
    let mut random = Random::new(48);
    let (mut used, mut sectors) = (0, 0);
    for _ in 0..BATCHES {
        let mut batch = [0; UNITS_PER_BLOCK];
        for _ in 0..BATCH {
            let units = draw(counts, random.below(total));
            batch[units - 1] += 1;
            used += units;
        }
        sectors += pack(&batch);
    }
    Some(used as f64 / (sectors * UNITS_PER_BLOCK) as f64)
}

/// The size of the block with that number, where blocks are in the order of their sizes.
fn draw(counts: &[u64; UNITS_PER_BLOCK], mut number: u64) -> usize {
    for (index, count) in counts.iter().enumerate() {
        match number.checked_sub(*count) {
            Some(rest) => number = rest,
            None => return index + 1,
        }
    }
    unreachable!("the number is below the sum of the counts")
}

/// Sectors that blocks take: the largest first, each in the sector with the least room that has enough.
fn pack(batch: &[usize; UNITS_PER_BLOCK]) -> usize {
    // Sectors by the units that are free in them.
    let mut free = [0usize; UNITS_PER_BLOCK];
    let mut sectors = 0;
    for units in (1..=UNITS_PER_BLOCK).rev() {
        for _ in 0..batch[units - 1] {
            let room = match (units..UNITS_PER_BLOCK).find(|room| free[*room] > 0) {
                Some(room) => {
                    free[room] -= 1;
                    room
                }
                None => {
                    sectors += 1;
                    UNITS_PER_BLOCK
                }
            };
            free[room - units] += 1;
        }
    }
    sectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_packed_into_as_few_sectors_as_they_fit_in() {
        assert_eq!(pack(&[0, 0, 1, 0, 1, 0, 0, 0]), 1, "3 and 5");
        assert_eq!(pack(&[0, 0, 0, 0, 3, 0, 0, 0]), 3, "two of 5 do not fit into 8");
        assert_eq!(pack(&[2, 1, 0, 1, 0, 0, 0, 2]), 3, "two as they are; 4, 2, 1 and 1");
        assert_eq!(pack(&[0; 8]), 0);
    }

    #[test]
    fn the_share_in_use_is_what_the_sizes_allow() {
        assert_eq!(fill(&[0; 8]), None);
        assert_eq!(fill(&[0, 0, 0, 10, 0, 0, 0, 0]), Some(1.0), "two of 4 fill a sector");
        assert_eq!(fill(&[0, 0, 0, 0, 10, 0, 0, 0]), Some(0.625), "one of 5 a sector");
        assert_eq!(fill(&[0, 0, 0, 0, 0, 0, 0, 10]), Some(1.0), "kept as they are");
        let mixed = fill(&[10, 10, 10, 10, 10, 10, 10, 10]).expect("there are blocks");
        assert!((0.93..1.0).contains(&mixed), "batches of 64 waste little: {mixed}");
    }
}
