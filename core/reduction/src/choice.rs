//! A block of a sample, and what was measured of it.

/// A block that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Which block of its part.
    pub block: u16,
    /// Its CRC-32C when it was chosen.
    pub checksum: u32,
    /// Whether it is in the sample for compression.
    pub for_compression: bool,
    /// Whether it is in the sample for deduplication.
    pub for_deduplication: bool,
}

/// What was measured of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Units that it takes with LZ4 and with zstd, if it is in the sample for compression.
    pub units: Option<(u8, u8)>,
    /// What tells its content from others, if it is in the sample for deduplication.
    pub hash: Option<u64>,
    /// Whether it has other bytes than when it was chosen.
    pub has_changed: bool,
}
