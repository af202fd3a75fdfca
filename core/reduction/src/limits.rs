//! Bounds of a pass.

/// Blocks of a host in each sample, if it has more: the standard error of a share is at most 0.5 / √65,536 = 0.2 points, that of
/// deduplication 0.4 points.
pub const BLOCKS_PER_SAMPLE: u64 = 64 << 10;

/// Blocks with one checksum that are read of a component for deduplication. All that is estimated is how many contents there are, so one
/// would do, but for two contents with the same CRC-32C by chance. One content that fills half of a disk must not be read as often.
pub(crate) const READS_PER_CHECKSUM: u32 = 4;

/// Most distinct contents that a host keeps. Four times what is planned: a host may have more of the data than the others. An entry
/// takes about 32 bytes, so that is 8 MiB.
pub const CONTENTS_MAX: usize = 256 << 10;
