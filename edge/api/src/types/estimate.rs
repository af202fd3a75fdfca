//! Bodies about estimates of what compression and deduplication would save.

use super::words::PassWord;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a pass samples the data of the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartEstimate {
    /// Most allocated blocks that are read, in percent, above 0 and up to 100. Absent: 128 Ki blocks for each host, or all blocks
    /// if there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_percent: Option<f64>,
}

/// What compression and deduplication would save, as far as hosts have sampled their data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EstimateView {
    /// The pass on each host.
    pub hosts: Vec<HostPassView>,
    /// Age of the oldest sample in seconds. Absent: no host has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    /// Share of blocks in the sample for compression, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_rate: Option<f64>,
    /// Share of contents in the sample for deduplication, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication_rate: Option<f64>,
    /// The whole cluster. Absent where one disk was asked for, or no host has a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ReductionView>,
    /// Each policy that disks follow, by name; those with rules of their own are together, as `-`.
    pub policies: Vec<ReductionView>,
    /// Each disk, by name.
    pub disks: Vec<ReductionView>,
    /// Whether compression is built: it cannot be turned on in this release otherwise.
    pub compression_available: bool,
    /// The same of deduplication.
    pub deduplication_available: bool,
}

/// The pass on a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostPassView {
    /// Name of the host.
    pub host: String,
    /// How far it is.
    pub state: PassWord,
    /// Progress of the pass that runs, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// Bytes of data that the pass has read: the one that runs, or else the last one.
    pub read_bytes: u64,
    /// Seconds that it has run, or did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Age of the host's sample in seconds. It stays until a new pass ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<f64>,
    /// Why nothing is known of the host, or why it did not do what it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The passes of all hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EstimateProgressView {
    /// Whether any host still samples.
    pub is_running: bool,
    /// The hosts by name.
    pub hosts: Vec<HostPassView>,
}

/// What would be saved of the data of a disk, of the disks of a policy, or of the cluster. Blocks are blocks of 4 KiB on devices,
/// with copies and parity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReductionView {
    /// Name of the disk or policy; `cluster`.
    pub name: String,
    /// Components that should have a sample: those that are up to date.
    pub components: u64,
    /// Components that have one.
    pub sampled_components: u64,
    /// Bytes of allocated blocks in these components, counted.
    pub allocated_bytes: u64,
    /// Bytes of them in blocks of zeroes, counted. All other figures are of blocks that are not zero.
    pub zero_bytes: u64,
    /// Blocks that are not zero, counted.
    pub blocks: u64,
    /// Blocks in the sample for compression.
    pub compression_sampled_blocks: u64,
    /// Distinct contents in the sample for deduplication, over the cluster.
    pub deduplication_sampled_contents: u64,
    /// With LZ4. Absent: no block is in the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lz4: Option<CompressionView>,
    /// With zstd, level 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zstd: Option<CompressionView>,
    /// Deduplication of blocks of 4 KiB within each device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication_per_device: Option<DeduplicationView>,
    /// Deduplication of blocks of 4 KiB over the cluster. Copies of a mirror stay apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication_cluster: Option<DeduplicationView>,
    /// Chosen blocks that changed before they were read.
    pub changed_blocks: u64,
    /// Chosen blocks that could not be read.
    pub unreadable_blocks: u64,
}

/// What compression would save where each block is compressed alone and kept in units of 512 bytes, if that saves at least one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompressionView {
    /// Bytes now for each byte then.
    pub ratio: f64,
    /// Standard error of the ratio. Absent: the sample is too small to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_error: Option<f64>,
    /// The ratio with the gaps that packing leaves, because no slot crosses a sector of 4 KiB: a model.
    pub packed_ratio: f64,
}

/// What deduplication would save.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeduplicationView {
    /// Share of the blocks that would be saved, in percent. An estimate may be slightly below 0 where nothing is saved.
    pub saved_percent: f64,
    /// Standard error, in points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_percent: Option<f64>,
}

/// What a host tells another about its last pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSampleView {
    /// The pass.
    pub pass: HostPassView,
    /// Rates of its sample, as numbers of 64 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<RatesView>,
    /// By component.
    pub components: Vec<ComponentSampleView>,
}

/// The rates of a pass, as numbers of 64 bits: each chooses what hashes to at most that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RatesView {
    /// Of the sample for compression.
    pub compression: u64,
    /// Of the sample for deduplication.
    pub deduplication: u64,
}

/// What a host found in a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComponentSampleView {
    /// Its id.
    pub component: String,
    /// Allocated blocks.
    pub blocks: u64,
    /// Those of zeroes.
    pub zero_blocks: u64,
    /// Sampled blocks by the units that they take with LZ4: 1 to 8.
    pub lz4: [u64; 8],
    /// The same with zstd.
    pub zstd: [u64; 8],
    /// Contents: checksum (8 hexadecimal digits) and hash (16), one after the other.
    pub contents: String,
    /// Blocks that changed before they were read.
    pub changed: u64,
    /// Blocks that could not be read.
    pub unreadable: u64,
}
