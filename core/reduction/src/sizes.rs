//! How many units blocks take once they are compressed.

/// Bytes of a unit, in which compressed blocks are kept.
const UNIT: usize = 512;
/// Units of a block that is kept as it is.
pub const UNITS_PER_BLOCK: usize = 8;

/// A way to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// LZ4.
    Lz4,
    /// zstd, level 1.
    Zstd,
}

/// Counts of blocks by the units that they take: at index 0 those of 1 unit, at index 7 those that are kept as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// With LZ4.
    pub lz4: [u64; UNITS_PER_BLOCK],
    /// With zstd.
    pub zstd: [u64; UNITS_PER_BLOCK],
}

impl Sizes {
    /// Counts a block that takes so many units.
    pub fn note(&mut self, lz4_units: u8, zstd_units: u8) {
        self.lz4[usize::from(lz4_units) - 1] += 1;
        self.zstd[usize::from(zstd_units) - 1] += 1;
    }

    /// The counts of a codec.
    pub fn of(&self, codec: Codec) -> &[u64; UNITS_PER_BLOCK] {
        match codec {
            Codec::Lz4 => &self.lz4,
            Codec::Zstd => &self.zstd,
        }
    }

    /// Blocks that were counted.
    pub fn count(&self) -> u64 {
        self.lz4.iter().sum()
    }

    /// Adds the counts of others.
    pub fn add(&mut self, others: &Sizes) {
        let add = |all: &mut [u64; UNITS_PER_BLOCK], more: &[u64; UNITS_PER_BLOCK]| {
            all.iter_mut().zip(more).for_each(|(all, more)| *all += more);
        };
        add(&mut self.lz4, &others.lz4);
        add(&mut self.zstd, &others.zstd);
    }
}

/// Units that a block takes which was compressed to so many bytes: all of its own if compression saves none.
pub(crate) fn units_of(compressed: usize) -> u8 {
    compressed.div_ceil(UNIT).clamp(1, UNITS_PER_BLOCK) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_kept_compressed_if_that_saves_a_unit() {
        let cases = [(1, 1), (512, 1), (513, 2), (3584, 7), (3585, 8), (4096, 8), (4200, 8)];
        for (compressed, units) in cases {
            assert_eq!(units_of(compressed), units, "{compressed} bytes");
        }
    }

    #[test]
    fn counts_of_several_components_add_up() {
        let mut all = Sizes::default();
        all.note(3, 2);
        let mut more = Sizes::default();
        more.note(8, 8);
        all.add(&more);
        assert_eq!((all.count(), all.of(Codec::Lz4)[2], all.of(Codec::Zstd)[7]), (2, 1, 1));
    }
}
