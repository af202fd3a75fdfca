//! What is said of results from outside.

use serde::{Deserialize, Serialize};
use statistics::knee::Objective;

/// What somebody says of the results, beyond what is in them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Claims {
    /// Outstanding I/Os of each VM: threads x outstanding per thread.
    pub outstanding_per_vm: Option<f64>,
    /// The latency that a sweet spot must keep; a percentile is the 99th, of runs with a histogram.
    pub objective: Option<Objective>,
}
