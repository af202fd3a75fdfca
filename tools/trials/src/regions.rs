//! Which regions were written since some moment: what a copy that is away has to be given later.

use base::units::{BLOCKS_PER_REGION, REGION_SIZE};
use std::collections::BTreeSet;
use std::ops::Range;

/// The distinct regions of a disk that were written.
#[derive(Debug, Default)]
pub struct Regions {
    written: BTreeSet<u64>,
}

impl Regions {
    /// These blocks were written.
    pub fn note(&mut self, blocks: Range<u64>) {
        let size = BLOCKS_PER_REGION as u64;
        self.written.extend(blocks.start / size..blocks.end.div_ceil(size));
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.written.len()
    }

    /// All their bytes.
    pub fn bytes(&self) -> u64 {
        self.written.len() as u64 * REGION_SIZE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_count_once_and_a_write_over_a_border_counts_in_both() {
        let mut regions = Regions::default();
        for blocks in [0..1, 3..4, 15..17, 16..32, 100..101] {
            regions.note(blocks);
        }
        assert_eq!(regions.count(), 3);
        assert_eq!(regions.bytes(), 3 * 65536);
    }
}
