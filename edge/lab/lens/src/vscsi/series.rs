//! A series of dumps as a capture.

use iostats::{Kind, Operations};
use serde::Serialize;
use statistics::words::counted;

use crate::capture::{Capture, Disk, Gap};
use crate::window::{Counted, Total, Window};

use super::dump::{Dump, DumpDisk, DumpHistogram};

/// Collection stops by itself after about half an hour.
const STOPS_AFTER_S: f64 = 1_700.0;

/// What counts mean from dump to dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// They go on: a window is the difference of two dumps.
    Cumulative,
    /// They were reset after each dump (`vscsiStats -r`): a dump is a window.
    ResetEachTime,
    /// Whichever of both the dumps look like: reset each time, if between all of them some count fell.
    FindOut,
}

/// Why dumps are no series.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// There are not as many times as dumps.
    #[error("{dumps} dumps, but {times} times: give one time in seconds for each dump")]
    Times {
        /// Dumps.
        dumps: usize,
        /// Times.
        times: usize,
    },
    /// Times that do not rise.
    #[error(
        "dump {} (counted from 1) is at {at_s} s, the dump before it at {before_s} s: times must rise",
        index + 1
    )]
    Order {
        /// Which dump.
        index: usize,
        /// Its time.
        at_s: f64,
        /// The time before.
        before_s: f64,
    },
    /// A count that fell although the counters were not reset.
    #[error(
        "{disk}: the bucket \"{limit}\" of \"{title}\" fell from {earlier} in dump {} to {later} in dump {} (counted from 1) without a \
         reset of the counters; pass --separate if each dump starts at 0, otherwise give the dumps of one capture in the order in \
         which they were taken",
        before + 1,
        index + 1
    )]
    Negative {
        /// Which disk.
        disk: String,
        /// The earlier dump.
        before: usize,
        /// The later dump.
        index: usize,
        /// Title of the histogram.
        title: &'static str,
        /// The bucket, as surfaces label it: "≤ 4096", "> 524288".
        limit: String,
        /// Count in the earlier dump.
        earlier: u64,
        /// Count in the later one.
        later: u64,
    },
}

/// Between two dumps of a disk.
enum Step {
    Same,
    Reset,
}

/// The capture that dumps make which were taken at `times`, in seconds after collection started. The first dump is a window
/// from 0 on, unless its time is 0.
///
/// # Errors
/// When times are missing or do not rise, or when counts fall and there was no reset. A reset is a gap.
pub fn capture(
    source: impl Into<String>,
    dumps: &[Dump],
    times: &[f64],
    counting: Counting,
) -> Result<Capture, SeriesError> {
    if dumps.len() != times.len() {
        return Err(SeriesError::Times { dumps: dumps.len(), times: times.len() });
    }
    let mut before_s = -1.0;
    for (index, &at_s) in times.iter().enumerate() {
        if !at_s.is_finite() || at_s < 0.0 || at_s <= before_s {
            return Err(SeriesError::Order { index, at_s, before_s });
        }
        before_s = at_s;
    }
    let mut capture = Capture { source: source.into(), ..Capture::default() };
    let counting = match counting {
        Counting::FindOut if fell_each_time(dumps) => {
            let note = "Counts fall between all dumps, so each dump is taken as reset (as with --separate).";
            capture.notes.push(note.to_owned());
            Counting::ResetEachTime
        }
        Counting::FindOut => Counting::Cumulative,
        counting => counting,
    };
    let mut unknown: Vec<&String> = dumps.iter().flat_map(|dump| &dump.unknown).collect();
    unknown.dedup();
    if let Some(first) = unknown.first() {
        capture.notes.push(format!(
            "Left out: {} with unknown titles, e.g. \"{first}\".",
            counted(unknown.len(), "histogram")
        ));
    }
    for (first, disk) in disks(dumps) {
        capture.disks.push(one_disk(first, disk, dumps, times, counting)?);
    }
    if counting == Counting::Cumulative {
        mark_stop(&mut capture);
    }
    Ok(capture)
}

/// All disks, and in which dump each stands first.
fn disks(dumps: &[Dump]) -> Vec<(usize, &DumpDisk)> {
    let mut all: Vec<(usize, &DumpDisk)> = Vec::new();
    for (index, dump) in dumps.iter().enumerate() {
        for disk in &dump.disks {
            if !all.iter().any(|(_, known)| known.is_same(disk)) {
                all.push((index, disk));
            }
        }
    }
    all
}

fn in_dump<'a>(dump: &'a Dump, disk: &DumpDisk) -> Option<&'a DumpDisk> {
    dump.disks.iter().find(|other| other.is_same(disk))
}

fn pairs<'a>(
    earlier: &'a DumpDisk,
    later: &'a DumpDisk,
) -> impl Iterator<Item = (&'a DumpHistogram, &'a DumpHistogram)> {
    later.histograms.iter().filter_map(|one| Some((earlier.histogram(one.kind, one.operations)?, one)))
}

fn falls(earlier: &DumpHistogram, later: &DumpHistogram) -> Option<usize> {
    earlier.counts.iter().zip(&later.counts).position(|(earlier, later)| later < earlier)
}

/// True when some count fell between all neighbours, of which there are at least two pairs.
fn fell_each_time(dumps: &[Dump]) -> bool {
    let fell = |pair: &[Dump]| {
        pair[1].disks.iter().any(|later| {
            in_dump(&pair[0], later).is_some_and(|earlier| {
                pairs(earlier, later).any(|(earlier, later)| falls(earlier, later).is_some())
            })
        })
    };
    dumps.len() > 2 && dumps.windows(2).all(fell)
}

fn name(disk: &DumpDisk) -> String {
    match disk.name.as_str() {
        "" => format!("vm {} disk {}", disk.world, disk.handle),
        name => format!("vm {} {name}", disk.world),
    }
}

fn one_disk(
    first: usize,
    disk: &DumpDisk,
    dumps: &[Dump],
    times: &[f64],
    counting: Counting,
) -> Result<Disk, SeriesError> {
    let mut result = Disk { name: name(disk), ..Disk::default() };
    let mut earlier: Option<(usize, &DumpDisk)> = None;
    for index in first..dumps.len() {
        let from_s = if index == 0 { 0.0 } else { times[index - 1] };
        let seconds = times[index] - from_s;
        let gap = |reason: &str| Gap { at_s: from_s, seconds, reason: reason.to_owned() };
        let Some(later) = in_dump(&dumps[index], disk) else {
            result.gaps.push(gap("the disk is not in this dump"));
            earlier = None;
            continue;
        };
        let before = earlier.replace((index, later));
        let window = match (counting, before) {
            (Counting::ResetEachTime, _) if seconds > 0.0 => Some(window(from_s, seconds, None, later)),
            (_, Some((at, before))) => match step(&result.name, (at, before), (index, later))? {
                Step::Same => Some(window(from_s, seconds, Some(before), later)),
                Step::Reset => {
                    result.gaps.push(gap("the counters were reset"));
                    None
                }
            },
            (_, None) if index == 0 && seconds > 0.0 => Some(window(from_s, seconds, None, later)),
            (_, None) if index > 0 => {
                result.gaps.push(gap("the start of the disk's counters is unknown"));
                None
            }
            (_, None) => None,
        };
        result.windows.extend(window);
    }
    Ok(result)
}

/// Whether the counters of a disk went on or were reset. After a reset the disk has fewer I/Os than before, another handle, or
/// a smallest or largest value that cannot be of the same series.
fn step(
    name: &str,
    (before, earlier): (usize, &DumpDisk),
    (index, later): (usize, &DumpDisk),
) -> Result<Step, SeriesError> {
    let Some((from, to, bucket)) =
        pairs(earlier, later).find_map(|(from, to)| Some((from, to, falls(from, to)?)))
    else {
        return Ok(if earlier.handle == later.handle { Step::Same } else { Step::Reset });
    };
    let is_reset = pairs(earlier, later).any(|(from, to)| {
        to.count < from.count
            || matches!((from.max, to.max), (Some(from), Some(to)) if to < from)
            || matches!((from.min, to.min), (Some(from), Some(to)) if to > from)
    });
    if is_reset || earlier.handle != later.handle {
        return Ok(Step::Reset);
    }
    Err(SeriesError::Negative {
        disk: name.to_owned(),
        before,
        index,
        title: to.kind.title(to.operations),
        limit: label(to.kind, bucket),
        earlier: from.counts[bucket],
        later: to.counts[bucket],
    })
}

/// `≤ 4096`; `> 524288` for the last.
fn label(kind: Kind, bucket: usize) -> String {
    let limits = kind.limits();
    match (limits.get(bucket), limits.last()) {
        (Some(limit), _) => format!("≤ {limit}"),
        (None, Some(last)) => format!("> {last}"),
        (None, None) => "any".to_owned(),
    }
}

fn window(at_s: f64, seconds: f64, earlier: Option<&DumpDisk>, later: &DumpDisk) -> Window {
    let before = |one: &DumpHistogram| earlier.and_then(|disk| disk.histogram(one.kind, one.operations));
    let histograms: Vec<Counted> = later
        .histograms
        .iter()
        .map(|one| {
            let mut counts = one.counts.clone();
            if let Some(before) = before(one) {
                counts.iter_mut().zip(&before.counts).for_each(|(count, less)| *count -= less);
            }
            Counted { kind: one.kind, operations: one.operations, counts }
        })
        .collect();
    let sum_of = |kind, operations| -> Option<(u64, f64)> {
        let one = later.histogram(kind, operations)?;
        sum(one, before(one))
    };
    let total = |operations| {
        let (ios, bytes) = sum_of(Kind::Length, operations).unwrap_or((0, 0.0));
        let (timed, latency_us) = sum_of(Kind::Latency, operations).unwrap_or((0, 0.0));
        Total { ios, bytes: bytes as u64, timed, latency_ns: (latency_us * 1e3) as u64 }
    };
    let outstanding = sum_of(Kind::Outstanding, Operations::Both).filter(|(count, _)| *count > 0);
    Window {
        at_s,
        seconds,
        histograms,
        totals: [total(Operations::Reads), total(Operations::Writes)],
        latencies: None,
        outstanding_mean: outstanding.map(|(count, sum)| sum / count as f64),
    }
}

/// How many values came, and their sum: c m - c' m'. Means are cut to whole numbers, so the sum is kept within what the buckets
/// allow. Nothing when a mean is unknown.
fn sum(later: &DumpHistogram, earlier: Option<&DumpHistogram>) -> Option<(u64, f64)> {
    let of = |one: &DumpHistogram| match one.count {
        0 => Some(0.0),
        // Half of what was cut off, on average.
        count => Some(count as f64 * (one.mean? as f64 + 0.5)),
    };
    let earlier_count = earlier.map_or(0, |one| one.count);
    let count = later.count.checked_sub(earlier_count)?;
    let sum = of(later)? - earlier.map_or(Some(0.0), of)?;
    let limits = later.kind.limits();
    let (mut least, mut most) = (0.0, 0.0);
    for (index, count) in later.counts.iter().enumerate() {
        let count = count.checked_sub(earlier.map_or(0, |one| one.counts[index]))? as f64;
        let from = if index == 0 { 0 } else { limits[index - 1] + 1 };
        least += count * f64::from(from);
        most += if count > 0.0 {
            limits.get(index).map_or(f64::INFINITY, |&to| count * f64::from(to))
        } else {
            0.0
        };
    }
    // Distances may be negative; nothing but what is at least 0 is summed.
    Some((count, if count == 0 { 0.0 } else { sum.max(least).min(most) }))
}

/// Where all counters stand still from half an hour on until the end, collection has stopped: that is no idle time.
fn mark_stop(capture: &mut Capture) {
    let busy =
        |window: &Window| window.histograms.iter().any(|one| one.counts.iter().any(|&count| count > 0));
    let windows = || capture.disks.iter().flat_map(|disk| &disk.windows);
    let last_busy = windows().filter(|window| busy(window)).map(Window::end_s).fold(0.0, f64::max);
    let end = capture.end_s();
    if last_busy < STOPS_AFTER_S || end <= last_busy {
        return;
    }
    for disk in &mut capture.disks {
        disk.windows.retain(|window| window.at_s < last_busy);
        let reason = "collection had stopped: no counter changes".to_owned();
        disk.gaps.push(Gap { at_s: last_busy, seconds: end - last_busy, reason });
    }
    capture.notes.push(format!(
        "No counter changes after {last_busy:.0} s: vscsiStats stops after about 30 minutes unless it is started again."
    ));
}
