//! Bounds of a pass.

/// Blocks of a host in each sample, if it has more: the standard error of a share is at most 0.5 / √65,536 = 0.2 points, that of
/// deduplication 0.4 points.
pub const BLOCKS_PER_SAMPLE: u64 = 64 << 10;

/// Most distinct contents that a host keeps. Four times what is planned: a host may have more of the data than the others. An entry
/// takes about 32 bytes, so that is 8 MiB.
pub const CONTENTS_MAX: usize = 256 << 10;
