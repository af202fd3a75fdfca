//! A heat map of characters: time to the right, latency upwards, darker for more I/Os.

use iostats::{Kind, Operations};

use statistics::words::number;

use crate::capture::Capture;
use crate::surface::{Resolution, SurfaceGroup, duration, surfaces_within};

/// From nothing to the most. Anything that is not nothing shows.
const SHADES: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Rows at most: neighbouring buckets are joined.
const ROWS_MAX: usize = 20;
/// Decades from the lightest shade to the darkest.
const DECADES: f64 = 3.0;

/// The latencies of one disk (its index) over time, in at most `columns` columns (at least 1) after the labels. All disks of a
/// capture have one scale. Nothing where no latency is known.
pub fn heat_map(capture: &Capture, disk: usize, operations: Operations, columns: usize) -> Option<String> {
    let groups = surfaces_within(capture, columns);
    let of = |resolution| {
        groups.iter().find(|group| {
            (group.kind, group.operations, group.resolution) == (Kind::Latency, operations, resolution)
        })
    };
    let group = of(Resolution::Fine).or_else(|| of(Resolution::Coarse))?;
    let surface = group.surfaces.get(disk)?;
    let (first, last) = group.used?;
    let per_row = (last - first + 1).div_ceil(ROWS_MAX);
    let rows: Vec<(usize, usize)> =
        (first..=last).step_by(per_row).map(|from| (from, (from + per_row - 1).min(last))).collect();
    let in_row = |column: &[f64], (from, to): (usize, usize)| column[from..=to].iter().sum::<f64>();
    let all = group.surfaces.iter().flat_map(|surface| &surface.z);
    let most = all.flat_map(|column| rows.iter().map(|&row| in_row(column, row))).fold(0.0, f64::max);
    let labels: Vec<String> = rows.iter().map(|&(_, to)| label(group, to)).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let mut text = format!("{}: {}\n", surface.disk, group.title);
    for (row, label) in rows.iter().zip(&labels).rev() {
        let cells: String = surface.z.iter().map(|column| shade(in_row(column, *row), most)).collect();
        text += &format!("  {label:>width$} |{}\n", cells.trim_end());
    }
    let (begin, end) = match (surface.x.first(), surface.x.last(), surface.seconds.last()) {
        (Some(begin), Some(at), Some(seconds)) => (*begin, at + seconds),
        _ => (0.0, 0.0),
    };
    text += &format!("  {:>width$} +{}\n", "", "-".repeat(surface.z.len()));
    let (begin, end) = (format!("{} s", number(begin)), format!("{} s", number(end)));
    let blank = surface.z.len().saturating_sub(begin.len()).max(end.len() + 1);
    text += &format!("  {:>width$}  {begin}{end:>blank$}\n", "");
    Some(text)
}

/// What a row reaches up to.
fn label(group: &SurfaceGroup, bucket: usize) -> String {
    let ns = |limit: i64| match group.resolution {
        Resolution::Fine => limit.unsigned_abs(),
        Resolution::Coarse => limit.unsigned_abs() * 1_000,
    };
    match group.limits[bucket] {
        Some(limit) => format!("to {}", duration(ns(limit))),
        None => "beyond".to_owned(),
    }
}

/// By the logarithm: a hundredth of the most is still to be seen.
fn shade(value: f64, most: f64) -> char {
    if value <= 0.0 || most <= 0.0 {
        return SHADES[0];
    }
    let darkest = SHADES.len() - 1;
    let part = 1.0 + (value / most).log10() / DECADES;
    SHADES[1 + (part.clamp(0.0, 1.0) * (darkest - 1) as f64).round() as usize]
}
