//! What somebody expected of a run or an experiment, and whether it came true.

use serde::{Deserialize, Serialize};

/// An expectation, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// The expectation in words.
    pub text: String,
    /// The measured figure; none if nothing was measured.
    pub measured: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
}
