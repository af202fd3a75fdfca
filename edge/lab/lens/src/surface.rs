//! Surfaces: time, bucket, I/Os per second; the picture that `vscsiStats` users draw in a spreadsheet.

use iostats::{Kind, Operations};
use serde::Serialize;

use crate::capture::{Capture, Disk};
use crate::latencies::LatencyBin;
use crate::window::Window;

/// Columns that [`surfaces`] gives at most: more can neither be seen nor sent.
pub const COLUMNS_MAX: usize = 400;

/// The same histogram of all disks of a capture, on one scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SurfaceGroup {
    /// What is counted.
    #[serde(with = "crate::named::kind")]
    pub kind: Kind,
    /// Of which I/Os.
    #[serde(with = "crate::named::operations")]
    pub operations: Operations,
    /// How finely.
    pub resolution: Resolution,
    /// A caption: "latency of IOs in Microseconds (us)".
    pub title: String,
    /// The unit of `limits`: "us", "bytes", "sectors", "I/Os"; "ns" for fine latency.
    pub unit: &'static str,
    /// A label for each bucket: "≤ 4096", "> 524288".
    pub y: Vec<String>,
    /// The largest value of each bucket (for fine latency, the smallest of the next); none for the last.
    pub limits: Vec<Option<i64>>,
    /// The greatest `z` (its absolute value) of all disks: the top of the common scale.
    pub z_max: f64,
    /// Buckets of which some disk has something, as first and last index; nothing when all are empty.
    pub used: Option<(usize, usize)>,
    /// One for each disk, in the order of the capture.
    pub surfaces: Vec<Surface>,
}

/// How finely a surface's buckets divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// `vscsiStats`' buckets.
    Coarse,
    /// Four in each power of two of nanoseconds.
    Fine,
}

/// One disk's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Surface {
    /// Which disk.
    pub disk: String,
    /// When each column begins, in seconds after the capture did.
    pub x: Vec<f64>,
    /// How long each column lasts, in seconds. Where the next begins later than this one ends, nothing is known between.
    pub seconds: Vec<f64>,
    /// For each column, for each bucket, I/Os per second; times `seconds` it is the count. Below 0 only in a difference.
    pub z: Vec<Vec<f64>>,
}

/// All surfaces of a capture: each kind and operation that some disk knows, in `vscsiStats`' order, then fine latency where it
/// is known. Windows are joined until there are at most [`COLUMNS_MAX`] columns.
pub fn surfaces(capture: &Capture) -> Vec<SurfaceGroup> {
    surfaces_within(capture, COLUMNS_MAX)
}

/// As [`surfaces`], with at most `columns` columns (at least 1).
pub fn surfaces_within(capture: &Capture, columns: usize) -> Vec<SurfaceGroup> {
    let disks: Vec<Disk> = capture.disks.iter().map(|disk| disk.thinned(columns)).collect();
    let mut groups = Vec::new();
    for kind in Kind::ALL {
        let operations =
            if kind == Kind::SeekDistanceNearest { &Operations::ALL[..1] } else { &Operations::ALL };
        groups.extend(operations.iter().filter_map(|&operations| coarse(&disks, kind, operations)));
    }
    groups.extend(Operations::ALL.into_iter().filter_map(|operations| fine(&disks, operations)));
    groups
}

fn coarse(disks: &[Disk], kind: Kind, operations: Operations) -> Option<SurfaceGroup> {
    let known = |window: &Window| window.counts(kind, operations).is_some();
    disks.iter().flat_map(|disk| &disk.windows).find(|window| known(window))?;
    let limits: Vec<Option<i64>> =
        kind.limits().iter().map(|&limit| Some(i64::from(limit))).chain([None]).collect();
    let z = |window: &Window| {
        let counts = window.counts(kind, operations)?;
        let mut column: Vec<f64> = counts.iter().map(|&count| count as f64 / window.seconds).collect();
        column.resize(limits.len(), 0.0);
        Some(column)
    };
    let last = *kind.limits().last().expect("every kind has limits");
    let y = kind.limits().iter().map(|limit| format!("≤ {limit}")).chain([format!("> {last}")]).collect();
    let surfaces = disks.iter().map(|disk| surface(disk, z)).collect();
    Some(SurfaceGroup::new(
        (kind, operations, Resolution::Coarse),
        kind.title(operations).to_owned(),
        kind.unit(),
        (y, limits),
        surfaces,
    ))
}

/// Fine buckets below 2^10 ns are one.
const FINE_LOW_BITS: u32 = 10;
/// Four in each power of two.
const FINE_PER_OCTAVE: u32 = 4;

fn fine_bucket(bin: &LatencyBin) -> u32 {
    if bin.from_ns < 1 << FINE_LOW_BITS {
        return 0;
    }
    let octave = 63 - bin.from_ns.leading_zeros();
    1 + (octave - FINE_LOW_BITS) * FINE_PER_OCTAVE + (bin.from_ns >> (octave - 2)) as u32 % FINE_PER_OCTAVE
}

/// The first latency after a bucket, in ns.
fn fine_limit(bucket: u32) -> u64 {
    let (octave, part) = (bucket / FINE_PER_OCTAVE + FINE_LOW_BITS, bucket % FINE_PER_OCTAVE);
    (1 << octave) + (u64::from(part) << (octave - 2))
}

fn fine(disks: &[Disk], operations: Operations) -> Option<SurfaceGroup> {
    let windows = || disks.iter().flat_map(|disk| &disk.windows);
    let bins = |window: &Window| window.latencies(operations).map(|latencies| latencies.bins);
    let used: Vec<u32> = windows().filter_map(bins).flatten().map(|bin| fine_bucket(&bin)).collect();
    let (first, last) = (*used.iter().min()?, *used.iter().max()?);
    let z = |window: &Window| {
        let mut column = vec![0.0; (last - first) as usize + 1];
        for bin in bins(window)? {
            column[(fine_bucket(&bin) - first) as usize] += bin.count as f64 / window.seconds;
        }
        Some(column)
    };
    let limits: Vec<Option<i64>> =
        (first..=last).map(|bucket| i64::try_from(fine_limit(bucket)).ok()).collect();
    let y = (first..=last).map(|bucket| format!("< {}", duration(fine_limit(bucket)))).collect();
    let surfaces = disks.iter().map(|disk| surface(disk, z)).collect();
    let title = match operations {
        Operations::Both => "latency of IOs",
        Operations::Reads => "latency of Read IOs",
        Operations::Writes => "latency of Write IOs",
    };
    let what = (Kind::Latency, operations, Resolution::Fine);
    Some(SurfaceGroup::new(what, title.to_owned(), "ns", (y, limits), surfaces))
}

/// Nanoseconds as people write them: "1.28 us", "41.9 ms", "1.07 s".
pub(crate) fn duration(ns: u64) -> String {
    let text = statistics::words::number;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", text(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", text(ns as f64 / 1e6)),
        _ => format!("{} s", text(ns as f64 / 1e9)),
    }
}

fn surface(disk: &Disk, z: impl Fn(&Window) -> Option<Vec<f64>>) -> Surface {
    let mut result = Surface { disk: disk.name.clone(), x: Vec::new(), seconds: Vec::new(), z: Vec::new() };
    for (window, column) in disk.windows.iter().filter_map(|window| Some((window, z(window)?))) {
        result.x.push(window.at_s);
        result.seconds.push(window.seconds);
        result.z.push(column);
    }
    result
}

impl SurfaceGroup {
    fn new(
        (kind, operations, resolution): (Kind, Operations, Resolution),
        title: String,
        unit: &'static str,
        (y, limits): (Vec<String>, Vec<Option<i64>>),
        surfaces: Vec<Surface>,
    ) -> SurfaceGroup {
        let columns = || surfaces.iter().flat_map(|surface| &surface.z);
        let z_max = columns().flatten().fold(0.0, |max: f64, z| max.max(z.abs()));
        let some = |bucket: &usize| columns().any(|column| column[*bucket] != 0.0);
        let first = (0..y.len()).find(some);
        let used = first.and_then(|first| Some((first, (0..y.len()).rev().find(some)?)));
        SurfaceGroup { kind, operations, resolution, title, unit, y, limits, z_max, used, surfaces }
    }
}

#[cfg(test)]
mod tests;
