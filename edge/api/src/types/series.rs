//! Bodies about what guests and devices did over time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// Which series is asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SeriesQuery {
    /// Whose: `cluster`, `host/NAME`, `disk/NAME`, `device/HOST:PATH` or `device/ID` [default: `cluster`].
    pub of: Option<String>,
    /// Seconds that it covers, up to 90 days [default: 3600].
    pub seconds: Option<u64>,
    /// When it ends, in seconds since 1970 [default: now].
    pub until: Option<u64>,
    /// Steps at most, 1 to 1,000 [default: 300].
    pub points: Option<usize>,
}

/// What a subject did, in steps of equal length. Every list has a value for each step.
///
/// Steps of less than five minutes are known of the last hour alone, others of 90 days. Percentiles are within 1/16 of their value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesView {
    /// Whose.
    pub of: String,
    /// When the first step begins, in seconds since 1970.
    pub start: u64,
    /// Seconds of a step.
    pub step_seconds: u64,
    /// Reads.
    pub read: SeriesRates,
    /// Writes.
    pub write: SeriesRates,
    /// Of a device: percent of the time in which any request was under way. `null`: nothing is known of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_percent: Option<Vec<Option<f64>>>,
    /// Requests by latency, for a heat map.
    pub heat: HeatView,
    /// Hosts that did not answer: what only they know is missing.
    pub silent: Vec<String>,
}

/// The rates of reads or writes. `null`: nothing is known of the step; of latencies, or that there was no request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesRates {
    /// Requests each second.
    pub iops: Vec<Option<f64>>,
    /// Bytes each second; not known of devices.
    pub bytes_per_second: Vec<Option<f64>>,
    /// Mean latency in microseconds.
    pub latency_us_mean: Vec<Option<f64>>,
    /// The median in microseconds.
    pub latency_us_p50: Vec<Option<f64>>,
    /// The 99th percentile in microseconds.
    pub latency_us_p99: Vec<Option<f64>>,
}

/// Requests by latency and step. A row of counts for each step, with as many counts as there are limits; an empty one where there was no
/// request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HeatView {
    /// Upper limits of the latency buckets in microseconds, ascending; each is twice the one before.
    pub limits_us: Vec<f64>,
    /// Reads.
    pub read: Vec<Vec<u64>>,
    /// Writes.
    pub write: Vec<Vec<u64>>,
}

/// Which steps one host asks another for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct HostSeriesQuery {
    /// Whose: `host`, `disk/ID`, `device/ID` or `device/PATH`.
    pub of: String,
    /// When the first step begins, in seconds since 1970.
    pub start: u64,
    /// Seconds of a step.
    pub step: u64,
    /// How many steps.
    pub count: usize,
}

/// What one host knows of a series.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostSeriesView {
    /// Seconds of each step that it saw.
    pub seconds: Vec<u32>,
    /// By step: what happened, encoded as `docs/formats/series.md` has it, in hexadecimal digits.
    pub steps: BTreeMap<usize, String>,
}
