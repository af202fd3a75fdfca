//! fio's logs: `_lat`, `_slat`, `_clat`, `_bw`, `_iops` (`ms, value, direction, size, offset, …`) and `_clat_hist`
//! (`ms, direction, size, 1856 counts` of the time since the line before).

use std::collections::BTreeMap;

use statistics::Histogram;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Interval, Latencies, Note, ResultSet, Run, Tool};
use crate::text;

#[cfg(test)]
mod tests;

/// Columns of a line before the counts of a histogram.
const BEFORE_COUNTS: usize = 3;
/// A line of a histogram has many more fields than any other.
const HISTOGRAM_FIELDS_MIN: usize = 32;

/// What the values of a log are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Latency,
    Bandwidth,
    Iops,
}

/// True for lines of four or more whole numbers, the third of them a direction.
pub(crate) fn is_fio_log(text: &str) -> bool {
    let first = text::numbered(text).find(|(_, line)| !line.trim().is_empty());
    let Some(fields) = first.and_then(|(_, line)| whole_numbers(line)) else { return false };
    (4..=8).contains(&fields.len()) && fields[2] <= 2
}

/// True for lines of many whole numbers.
pub(crate) fn is_fio_histogram_log(text: &str) -> bool {
    let first = text::numbered(text).find(|(_, line)| !line.trim().is_empty());
    first.and_then(|(_, line)| whole_numbers(line)).is_some_and(|fields| fields.len() >= HISTOGRAM_FIELDS_MIN)
}

/// The fields of a line; a hexadecimal one (a command's priority) counts as well.
fn whole_numbers(line: &str) -> Option<Vec<u64>> {
    line.split(',').map(|field| whole_number(field.trim())).collect()
}

fn whole_number(field: &str) -> Option<u64> {
    match field.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => field.parse().ok(),
    }
}

fn direction(origin: &Origin<'_>, line: usize, code: u64) -> Result<Direction, ReadError> {
    match code {
        0 => Ok(Direction::Read),
        1 => Ok(Direction::Write),
        2 => Ok(Direction::Trim),
        other => {
            Err(origin.at(line, format!("direction {other}"), "it must be 0 (read), 1 (write) or 2 (trim)"))
        }
    }
}

/// What the values are is told by the file's name alone.
fn value_of(origin: &Origin<'_>) -> Result<Value, ReadError> {
    let name = origin.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is = |part: &str| name.contains(&format!("_{part}.")) || name.starts_with(&format!("{part}."));
    if is("lat") || is("clat") || is("slat") {
        Ok(Value::Latency)
    } else if is("bw") {
        Ok(Value::Bandwidth)
    } else if is("iops") {
        Ok(Value::Iops)
    } else {
        Err(origin.whole(
            "neither the file nor its name says whether the values are latencies, bandwidth or IOPS",
            "keep fio's own names: <prefix>_lat.1.log, _clat, _slat, _bw, _iops",
        ))
    }
}

/// Samples of a direction within a stretch of time.
#[derive(Default)]
struct Bin {
    to_ms: u64,
    samples: u64,
    sum: f64,
    bytes: u64,
}

/// Reads a log of latency, bandwidth or IOPS.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::FioLog };
    let value = value_of(&origin)?;
    let mut lines = Vec::new();
    for (number, line) in text::numbered(text).filter(|(_, line)| !line.trim().is_empty()) {
        let fields = whole_numbers(line).filter(|fields| fields.len() >= 4).ok_or_else(|| {
            let way_out = "a line is ms, value, direction, size, and optionally offset and priority, as whole numbers. Delete the last line if it is \
                           cut off";
            origin.at(number, format!("\"{}\"", line.trim()), way_out)
        })?;
        lines.push((fields[0], fields[1], direction(&origin, number, fields[2])?, fields[3]));
    }
    // Averages over log_avg_msec have no size. Without it every line is an I/O, also in logs of bandwidth and IOPS (fio's stat.c,
    // `add_bw_sample` and `add_iops_sample`): the value there is that I/O's own rate, or 1.
    let averaged = lines.iter().all(|(.., size)| *size == 0);
    let mut run = Run { label: file.to_owned(), ..Run::default() };
    if !averaged {
        each_io(&lines, value, &mut run);
    } else {
        averages(&lines, value, &mut run);
        if value == Value::Latency {
            run.notes.push(Note::new(
                "the log holds means over intervals (log_avg_msec): percentiles are unknown",
            ));
        }
    }
    run.seconds = lines.iter().map(|(ms, ..)| *ms).max().map(|ms| ms as f64 / 1e3);
    Ok(ResultSet::new(file, Tool::Fio, vec![run]))
}

/// One line per I/O: every latency is known if the log is of latencies; and of all logs, how many I/Os and bytes there were.
fn each_io(lines: &[(u64, u64, Direction, u64)], value: Value, run: &mut Run) {
    let is_latency = value == Value::Latency;
    let mut histograms: BTreeMap<Direction, (Histogram, u64)> = BTreeMap::new();
    let mut bins: BTreeMap<(u64, Direction), Bin> = BTreeMap::new();
    for &(ms, ns, direction, size) in lines {
        let (histogram, bytes) = histograms.entry(direction).or_default();
        histogram.record(ns);
        *bytes = bytes.saturating_add(size);
        let bin = bins.entry((ms / 1_000, direction)).or_default();
        bin.samples += 1;
        bin.sum += ns as f64;
        bin.bytes = bin.bytes.saturating_add(size);
    }
    let seconds = lines.iter().map(|(ms, ..)| *ms).max().unwrap_or(0) as f64 / 1e3;
    for (direction, (histogram, bytes)) in histograms {
        let rate = |amount: u64| (seconds > 0.0).then(|| amount as f64 / seconds);
        if is_latency && histogram.percentile(0.5).is_some_and(|median| median < 1_000) {
            let note = "half of the latencies are below 1,000. fio before 3.0 wrote microseconds; the values are read as nanoseconds";
            run.notes.push(Note::new(note));
        }
        let figures = Figures {
            ios: Some(histogram.count()),
            bytes: Some(bytes),
            iops: rate(histogram.count()),
            bytes_per_s: rate(bytes),
            latency_s: histogram.mean_ns().filter(|_| is_latency).map(|ns| ns / 1e9),
            latencies: if is_latency { Latencies::Exact(histogram) } else { Latencies::None },
            ..Figures::default()
        };
        run.directions.insert(direction, figures);
    }
    run.intervals = bins
        .into_iter()
        .map(|((second, direction), bin)| Interval {
            from_s: second as f64,
            to_s: second as f64 + 1.0,
            direction,
            iops: Some(bin.samples as f64),
            bytes_per_s: Some(bin.bytes as f64),
            latency_s: is_latency.then(|| bin.sum / bin.samples as f64 / 1e9),
            histogram: None,
        })
        .collect();
}

/// One line per stretch of time and direction, and per job where several write one log: rates are added, latencies averaged.
fn averages(lines: &[(u64, u64, Direction, u64)], value: Value, run: &mut Run) {
    let mut before: BTreeMap<Direction, u64> = BTreeMap::new();
    let mut bins: BTreeMap<(u64, Direction), Bin> = BTreeMap::new();
    for &(ms, sample, direction, _) in lines {
        let bin = bins.entry((ms, direction)).or_default();
        bin.to_ms = ms;
        bin.samples += 1;
        bin.sum += sample as f64;
    }
    for ((_, direction), bin) in bins {
        let from_ms = before.insert(direction, bin.to_ms).unwrap_or(0);
        let of = |wanted: Value, figure: f64| (value == wanted).then_some(figure);
        run.intervals.push(Interval {
            from_s: from_ms as f64 / 1e3,
            to_s: bin.to_ms as f64 / 1e3,
            direction,
            iops: of(Value::Iops, bin.sum),
            bytes_per_s: of(Value::Bandwidth, bin.sum * 1024.0),
            latency_s: of(Value::Latency, bin.sum / bin.samples as f64 / 1e9),
            histogram: None,
        });
    }
    for direction in before.into_keys() {
        let of: Vec<&Interval> = run.intervals.iter().filter(|of| of.direction == direction).collect();
        let length = |of: &Interval| of.to_s - of.from_s;
        let seconds: f64 = of.iter().map(|of| length(of)).sum();
        let mean = |figure: &dyn Fn(&Interval) -> Option<f64>| {
            let weighted = of.iter().try_fold(0.0, |sum, of| Some(sum + figure(of)? * length(of)));
            weighted.filter(|_| seconds > 0.0).map(|sum| sum / seconds)
        };
        let figures = Figures {
            iops: mean(&|of| of.iops),
            bytes_per_s: mean(&|of| of.bytes_per_s),
            ..Figures::default()
        };
        run.directions.insert(direction, figures);
    }
}

/// Reads a log of histograms.
pub(crate) fn read_histograms(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::FioHistogramLog };
    let mut run = Run { label: file.to_owned(), ..Run::default() };
    let mut all: BTreeMap<Direction, Histogram> = BTreeMap::new();
    let mut before: BTreeMap<Direction, u64> = BTreeMap::new();
    for (number, line) in text::numbered(text).filter(|(_, line)| !line.trim().is_empty()) {
        let fields = whole_numbers(line).filter(|fields| fields.len() > BEFORE_COUNTS).ok_or_else(|| {
            origin.at(
                number,
                "a field is not a whole number",
                "delete the last line if it is cut off; negative numbers are not counts",
            )
        })?;
        let histogram = Histogram::from_counts(&fields[BEFORE_COUNTS..]).map_err(|error| {
            origin.at(
                number,
                error.to_string(),
                "write the log with log_hist_coarseness=0 and give the whole file",
            )
        })?;
        let direction = direction(&origin, number, fields[1])?;
        let (from_ms, to_ms) = (before.insert(direction, fields[0]).unwrap_or(0), fields[0]);
        all.entry(direction).or_default().merge(&histogram);
        let seconds = to_ms.saturating_sub(from_ms) as f64 / 1e3;
        run.intervals.push(Interval {
            from_s: from_ms as f64 / 1e3,
            to_s: to_ms as f64 / 1e3,
            direction,
            iops: (seconds > 0.0).then(|| histogram.count() as f64 / seconds),
            bytes_per_s: None,
            latency_s: histogram.mean_ns().map(|ns| ns / 1e9),
            histogram: Some(histogram),
        });
    }
    run.seconds = run.intervals.iter().map(|of| of.to_s).reduce(f64::max);
    for (direction, histogram) in all {
        let figures = Figures {
            ios: Some(histogram.count()),
            iops: run
                .seconds
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| histogram.count() as f64 / seconds),
            latency_s: histogram.mean_ns().map(|ns| ns / 1e9),
            latencies: Latencies::of_fio(histogram),
            ..Figures::default()
        };
        run.directions.insert(direction, figures);
    }
    Ok(ResultSet::new(file, Tool::Fio, vec![run]))
}
