//! What people see of a measurement: one HTML file, tables (CSV, JSON, Parquet), and a bundle that another machine can read.
//!
//! A [`Report`] holds references to what was measured and sentences that others wrote about it; every function here makes text
//! or bytes of it. [`html`] is one file that needs no network and no other file; [`bundle`] is what another machine renders
//! again and compares with.
//!
//! Relies on `measured`, `lens` and `statistics`. Must never open a file, ask for the time, or compute a figure of its own: what
//! can be concluded is `statistics`' and `measured`'s affair.

mod bundle;
mod chart;
mod csv;
mod figures;
mod html;
mod json;
mod limits;
mod parquet;
mod report;
mod seconds;

pub use ::parquet::errors::ParquetError;
pub use bundle::{
    BUNDLE_VERSION, Bundle, BundleError, BundleProblem, BundleText, FileKind, Manifest, ManifestFile, bundle,
    read_bundle,
};
pub use csv::{CsvFile, csv};
pub use html::html;
pub use json::{REPORT_VERSION, json};
pub use limits::*;
pub use parquet::{parquet_buckets, parquet_intervals};
pub use report::{NamedExperiment, NamedRun, Report, Section};
