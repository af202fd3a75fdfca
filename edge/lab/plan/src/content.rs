//! What is written, how it is verified, and what stands between a worker and its target.

use serde::{Deserialize, Serialize};

/// What is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The bytes.
    #[serde(default)]
    pub content: Content,
    /// Percent of each unit that a compressor takes away, 0..=100.
    #[serde(default)]
    pub compressible: f64,
    /// Percent of the units that were written before with the same bytes, 0..=100.
    #[serde(default)]
    pub duplicates: f64,
    /// The unit of the two, in bytes.
    #[serde(default = "unit")]
    pub unit: u64,
}

fn unit() -> u64 {
    base::units::BLOCK_SIZE
}

impl Default for Data {
    fn default() -> Self {
        Data { content: Content::default(), compressible: 0.0, duplicates: 0.0, unit: unit() }
    }
}

/// The bytes of writes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Random, new for every I/O: neither compressible nor duplicate.
    #[default]
    Random,
    /// Random once per worker; some words of it change with every I/O (fio without `refill_buffers`).
    Scrambled,
    /// Zeroes.
    Zeroes,
    /// These bytes again and again.
    Pattern(Vec<u8>),
    /// 0, 1, … 255, again and again (DiskSPD).
    Counting,
    /// Parts of a random buffer of so many bytes, at random places (DiskSPD's `-Z<size>`).
    Window(u64),
}

/// What was written is read again and compared: checksum, offset and generation of every block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// When.
    pub when: VerifyWhen,
    /// Unit of verification in bytes; none: the size of the I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<u64>,
    /// Whether the first mismatch ends the run.
    #[serde(default)]
    pub fatal: bool,
}

/// When writes are verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyWhen {
    /// All of them at the end.
    After,
    /// After so many writes, while the run goes on.
    Backlog(u32),
    /// Writes carry checksums, and reads of the run are compared; nothing is read again for it (fio's `do_verify=0`).
    Later,
    /// Nothing is written: every block that is read must carry the checksum of an earlier run.
    Only,
}

/// What stands between a worker and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caching {
    /// Whether the page cache is passed by (`O_DIRECT`).
    pub direct: bool,
    /// Whether a write is stable when it completes.
    #[serde(default)]
    pub write_through: WriteThrough,
    /// Flushes between writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<FlushRule>,
}

impl Default for Caching {
    fn default() -> Self {
        Caching { direct: true, write_through: WriteThrough::No, flush: None }
    }
}

/// Whether a write is stable when it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteThrough {
    /// Not before a flush.
    #[default]
    No,
    /// Its data (`O_DSYNC`).
    Data,
    /// Its data and all that belongs to the file (`O_SYNC`).
    All,
}

/// When caches are flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushRule {
    /// After so many writes of a worker; 0: only at the end.
    pub every: u32,
    /// Whether what describes the file is left out (`fdatasync`).
    pub data_only: bool,
    /// Whether the end is flushed too.
    pub at_end: bool,
}
