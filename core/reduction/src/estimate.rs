//! A figure with its error.

/// An estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate itself.
    pub value: f64,
    /// Its standard error: the true value lies within one of it in 68 % of all samples, within two in 95 %. `None` where the sample
    /// is too small to tell.
    pub error: Option<f64>,
}
