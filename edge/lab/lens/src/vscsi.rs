//! `vscsiStats`, with or without `-c`: read as a dump or a series of dumps.
//!
//! Counts are cumulative since the start or the last reset: a window is what came between two dumps. Some scripts reset after
//! each dump, and then each dump is a window. Smallest and largest values of a difference are unknown; its mean is
//! (c m - c' m') / (c - c').

mod dump;
mod series;

pub use dump::{Dump, DumpDisk, DumpHistogram, read_dumps};
pub use series::{Counting, SeriesError, capture};

/// True for the beginning of a text that `vscsiStats` printed, with or without `-c`.
pub fn is_dump(head: &str) -> bool {
    head.lines().any(|line| line.contains("Histogram: ") && line.contains("virtual machine worldGroupID"))
}

#[cfg(test)]
pub(crate) mod tests;
