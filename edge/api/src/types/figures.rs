//! What guests do now, in rates and latencies.

use super::policies::LimitView;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Rates and latencies of one disk over the last seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FiguresView {
    /// Name of the disk.
    pub disk: String,
    /// Seconds that the rates are over.
    pub seconds: f64,
    /// Reads.
    pub read: RateView,
    /// Writes.
    pub write: RateView,
    /// Requests under way.
    pub outstanding: u32,
    /// Clients attached.
    pub client_count: usize,
    /// What its limits do, where this host owns it; nothing where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitView>,
}

/// A rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RateView {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Median latency in microseconds; nothing when there was no I/O.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile.
    pub latency_us_p99: Option<f64>,
}

/// What all disks do now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopView {
    /// Seconds that the rates are over.
    pub seconds: f64,
    /// Disks, the busiest first.
    pub disks: Vec<FiguresView>,
    /// Congestion of every group, by its identity.
    pub congestion: BTreeMap<String, u8>,
}
