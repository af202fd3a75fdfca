//! Estimates of reduction, put together from the samples of all hosts (docs/design/0048).
//!
//! The estimators are those of the crate `reduction`. What is here knows disks, policies and devices.

mod figures;
mod samples;

pub use figures::{Figures, Standing, figures};
pub use samples::{rates_of, rates_view, sample_of, sample_view};
