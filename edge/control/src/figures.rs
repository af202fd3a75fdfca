//! Rates and latencies from statistics.

use api::types::RateView;
use iostats::{Operations, Statistics};
use std::time::Duration;

/// In microseconds.
pub fn micros(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64() * 1e6)
}

/// Rates of so many seconds.
pub fn rate_view(statistics: &Statistics, operations: Operations, seconds: f64) -> RateView {
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    RateView {
        iops: per_second(statistics.completed(operations)),
        bytes_per_second: per_second(statistics.bytes(operations)),
        latency_us_p50: micros(statistics.percentile(operations, 0.5)),
        latency_us_p99: micros(statistics.percentile(operations, 0.99)),
    }
}
