//! What can be concluded from measurements: histograms, steady state, comparison, knees, scale-out, Little's law.
//!
//! Everything here is a function of its arguments. Units are in the names: nanoseconds and counts are `u64`, rates (I/Os per
//! second) and seconds are `f64`, shares are 0..=1. Results are values that can be printed as sentences and serialised.
//! Must never take a clock, a file, or randomness that is not seeded by its arguments.

pub mod compare;
pub mod doubts;
pub mod fairness;
pub mod knee;
pub mod limit;
pub mod little;
pub mod samples;
pub mod scaling;
pub mod steady;
pub mod words;

mod bounded;
mod changes;
mod histogram;
mod quantile;
mod trend;

pub use bounded::{Bound, BoundedHistogram, BoundsError};
pub use changes::{Stretch, stretches};
pub use histogram::{Bucket, DifferenceError, Histogram, HistogramError, PERCENTILE_ERROR};
pub use quantile::student;
