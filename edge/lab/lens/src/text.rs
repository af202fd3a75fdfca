//! Captures and analyses as text, for a terminal of 100 columns.

mod heat_map;
mod profile;
mod table;

use iostats::{Kind, Operations};
use statistics::words::{milliseconds, number, percent, rate};

use crate::analysis::Analyzed;
use crate::capture::{Capture, Disk};
use crate::interference::interference;
use crate::surface::duration;
use table::table;

pub use heat_map::heat_map;
pub use profile::profile;

/// Columns of time in a heat map.
const COLUMNS: usize = 72;

/// All that can be said of a capture, and of the trace that it is made of, if there is one.
pub fn report(capture: &Capture, analyzed: Option<&Analyzed>) -> String {
    let mut text = overview(capture);
    for disk in 0..capture.disks.len() {
        if let Some(map) = heat_map(capture, disk, Operations::Both, COLUMNS) {
            text += &format!("\n{map}");
        }
    }
    if let Some(analyzed) = analyzed {
        for disk in analyzed.disks.iter().filter(|disk| disk.ios > 0) {
            text += &format!("\n{}", profile(disk));
        }
        if analyzed.disks.iter().filter(|disk| disk.ios > 0).count() > 1 {
            text += &format!("\n{}", profile(&analyzed.overall));
        }
    }
    text += "\nInterference\n";
    for sentence in interference(capture).sentences {
        text += &format!("  {sentence}\n");
    }
    text
}

/// A table of the disks of a capture, and what is to be known of it.
pub fn overview(capture: &Capture) -> String {
    let heading =
        ["disk", "I/Os", "IOPS", "MiB/s", "reads", "mean", "p50", "p99", "p99.9", "outstanding", "IOPS×mean"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(capture.disks.iter().map(row));
    let seconds = number(capture.end_s() - capture.begin_s());
    let mut text = format!("{}: {seconds} s\n{}", capture.source, table(&rows));
    for disk in &capture.disks {
        for gap in &disk.gaps {
            let (from, to) = (number(gap.at_s), number(gap.at_s + gap.seconds));
            text += &format!("  {}: no data from {from} s to {to} s: {}\n", disk.name, gap.reason);
        }
        if let Some((found, implied)) = little(disk).filter(|little| !agrees(*little)) {
            text += &format!(
                "  {}: arriving I/Os found {} outstanding, but IOPS × latency is {}: times and latencies contradict each other\n",
                disk.name,
                number(found),
                number(implied),
            );
        }
    }
    for note in &capture.notes {
        text += &format!("  {note}\n");
    }
    text
}

/// What I/Os found outstanding when they arrived, themselves among them, and what pace times latency says of the same windows
/// (Little's law); both are means over the I/Os. A closed loop has the same of both; I/Os that come on their own find up to one
/// more, and I/Os in bursts with idle time between find more still. Nothing where either is unknown.
pub fn little(disk: &Disk) -> Option<(f64, f64)> {
    let (mut found, mut implied, mut ios) = (0.0, 0.0, 0.0);
    for window in &disk.windows {
        let total = window.total(Operations::Both);
        let (Some(outstanding), true) = (window.outstanding_mean, total.timed > 0) else { continue };
        let weight = total.ios as f64;
        found += outstanding * weight;
        implied += total.latency_ns as f64 / 1e9 / window.seconds * weight;
        ios += weight;
    }
    (ios > 0.0).then(|| (found / ios, implied / ios))
}

/// N I/Os that end and begin together find 1 to N outstanding as they arrive, half as many on average as there are over time:
/// less than half is nowhere so, but for chance in few of them.
fn agrees((found, implied): (f64, f64)) -> bool {
    implied <= found * 2.0 + 0.1
}

fn row(disk: &Disk) -> Vec<String> {
    let Some(whole) = disk.whole() else {
        return std::iter::once(disk.name.clone()).chain((0..10).map(|_| "-".to_owned())).collect();
    };
    let known_s: f64 = disk.windows.iter().map(|window| window.seconds).sum();
    let total = whole.total(Operations::Both);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let iops = total.ios as f64 / known_s;
    let reads = whole.total(Operations::Reads).ios as f64 / total.ios.max(1) as f64;
    let latency = whole.latency_mean_s(Operations::Both);
    let percentile = |q: f64| {
        let fine = whole.percentile_s(Operations::Both, q).map(|seconds| duration((seconds * 1e9) as u64));
        or_dash(fine.or_else(|| coarse_percentile(whole.counts(Kind::Latency, Operations::Both)?, q)))
    };
    vec![
        disk.name.clone(),
        total.ios.to_string(),
        rate(iops),
        number(total.bytes as f64 / known_s / f64::from(1 << 20)),
        if total.ios > 0 { percent(reads) } else { "-".to_owned() },
        or_dash(latency.map(milliseconds)),
        percentile(0.5),
        percentile(0.99),
        percentile(0.999),
        or_dash(whole.outstanding_mean.map(number)),
        or_dash(little(disk).map(|(_, implied)| number(implied))),
    ]
}

/// The limit of the bucket that a percentile lies in: that is all that coarse buckets tell.
fn coarse_percentile(counts: &[u64], q: f64) -> Option<String> {
    let total = counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count));
    let rank = ((q * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0u64;
    let bucket = counts.iter().position(|&count| {
        seen = seen.saturating_add(count);
        total > 0 && seen >= rank
    })?;
    let limits = Kind::Latency.limits();
    let ns = |us: i32| u64::from(us.unsigned_abs()) * 1_000;
    Some(match limits.get(bucket) {
        Some(&limit) => format!("≤{}", duration(ns(limit))),
        None => format!(">{}", duration(ns(limits[limits.len() - 1]))),
    })
}

#[cfg(test)]
mod tests;
