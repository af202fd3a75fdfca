//! `vscsiStats -c`: read as a dump or a series of dumps, and written.
//!
//! Counts are cumulative since the start or the last reset: a window is what came between two dumps. Some scripts reset after
//! each dump, and then each dump is a window. Smallest and largest values of a difference are unknown; its mean is
//! (c m - c' m') / (c - c').

mod dump;
mod series;

pub use dump::{Dump, DumpDisk, DumpHistogram, read_dump, read_dumps};
pub use series::{Counting, SeriesError, capture};

use iostats::{Operations, Statistics};

/// What `vscsiStats -c` prints: the 16 histograms of a disk. `world` and `handle` are the numbers that it gives machine and
/// disk, `name` is what it puts in brackets behind ("scsi0:0").
pub fn write(statistics: &Statistics, world: u64, handle: u64, name: &str) -> String {
    let mut text = String::new();
    for view in statistics.histograms() {
        let title = view.kind.title(view.operations);
        text += &format!(
            "Histogram: {title},virtual machine worldGroupID,{world},virtual disk handleID,{handle} ({name})\n"
        );
        let mean = view.mean.map_or(0, |mean| mean as i64);
        text += &format!("min,{}\nmax,{}\nmean,{mean}\n", view.min.unwrap_or(0), view.max.unwrap_or(0));
        text += &format!("count,{}\nFrequency,Histogram Bucket Limit\n", view.count);
        // The last limit stands twice: the second time it is what is above it.
        let mut limit = 0;
        for bucket in &view.buckets {
            limit = bucket.limit.unwrap_or(limit);
            text += &format!("{},{limit}\n", bucket.count);
        }
    }
    text
}

/// True for the beginning of a text that `vscsiStats` printed, with or without `-c`.
pub fn is_dump(head: &str) -> bool {
    head.lines().any(|line| line.contains("Histogram: ") && line.contains("virtual machine worldGroupID"))
}

/// The kind and operations of a title, as `vscsiStats` prints it.
fn titled(title: &str) -> Option<(iostats::Kind, Operations)> {
    iostats::Kind::ALL.into_iter().find_map(|kind| {
        let operations =
            Operations::ALL.into_iter().find(|&operations| kind.title(operations) == title.trim())?;
        Some((kind, operations))
    })
}

#[cfg(test)]
mod tests;
