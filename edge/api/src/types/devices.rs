//! Devices, of one host or of all.

use super::words::{DeviceRoleWord, EncryptionWord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceView {
    /// Identity.
    pub id: String,
    /// Where it was opened.
    pub path: String,
    /// Its disk group.
    pub group: String,
    /// What it is for.
    pub role: DeviceRoleWord,
    /// Size.
    pub size: u64,
    /// Bytes that extents can take in all.
    pub capacity_bytes: u64,
    /// Bytes in extents that are taken.
    pub used_bytes: u64,
    /// Bytes promised to reservations and not taken.
    pub reserved_bytes: u64,
    /// Components that stand on it.
    pub component_count: u32,
    /// Components that it can hold in all.
    pub component_count_max: u32,
    /// Why it is out of service, if it is.
    pub failure: Option<String>,
    /// Blocks found damaged since the start: checksums that did not match, and blocks that could not be read.
    pub damaged_blocks: u64,
    /// Blocks that failed reads since the start (bad sectors).
    #[serde(default)]
    pub read_errors: u64,
    /// How far it is on its way to be empty, and why it is to be; nothing when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<String>,
    /// Seconds in which requests were under way, since its group was opened.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Requests that ended since then. The time for one of them does not grow with how many are under way at once.
    #[serde(default)]
    pub requests: u64,
    /// What it did in the last second; nothing until two seconds were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<DeviceLoadView>,
    /// Encryption at rest below the device. Drives that encrypt themselves are not seen.
    #[serde(default)]
    pub encryption: EncryptionWord,
}

/// What a device did in a second: its own reads and writes, with those of copies, scrubbing and destaging.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceLoadView {
    /// Reads.
    pub read: DeviceRateView,
    /// Writes.
    pub write: DeviceRateView,
    /// Percent of the time in which any request was under way.
    pub busy_percent: f64,
}

/// Requests of one direction. Latencies are from when the device was handed a request, and within 1/16 of their value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeviceRateView {
    /// Requests each second.
    pub iops: f64,
    /// Mean latency in microseconds; nothing when there was no request.
    pub latency_us_mean: Option<f64>,
    /// The median.
    pub latency_us_p50: Option<f64>,
    /// The 99th percentile.
    pub latency_us_p99: Option<f64>,
}

/// The devices of all hosts that answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AllDevicesView {
    /// By the hosts' names.
    pub hosts: Vec<HostDevicesView>,
    /// Hosts that did not answer.
    pub silent: Vec<String>,
}

/// The devices of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostDevicesView {
    /// Its name.
    pub host: String,
    /// Its devices.
    pub devices: Vec<DeviceView>,
    /// Block devices that no group of it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclaimed: Vec<UnclaimedDevice>,
    /// Why those are not known, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclaimed_unknown: Option<String>,
}

/// A block device that no disk group uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnclaimedDevice {
    /// Where it is.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Its model, as the drive tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its serial number, as the drive tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Whether it is a hard disk.
    pub is_rotational: bool,
    /// What keeps it from being taken: what is mounted of it, what data it holds; nothing where it is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
}
