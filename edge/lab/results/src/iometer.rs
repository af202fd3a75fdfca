//! Iometer's results: a CSV whose sections begin with a quote mark, and whose blocks repeat per access specification.
//!
//! Columns are found by name. Only rows of `ALL` are figures of the whole. Latencies are counted in 21 buckets, so percentiles
//! are bounds. A name may hold commas: what is too many in a row belongs to the names before the numbers.

use std::collections::HashMap;

use statistics::BoundedHistogram;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Job, Latencies, Note, ResultSet, Run, Steps, Tool};
use crate::text;

#[cfg(test)]
pub(crate) mod tests;

const MIB: f64 = 1_048_576.0;
const HEADER: &str = "'Target Type";
/// Columns before the numbers: target type, target name, access specification.
const NAMES: usize = 3;

/// True for Iometer's results.
pub(crate) fn is_iometer(text: &str) -> bool {
    text::numbered(text).any(|(_, line)| line.starts_with(HEADER))
}

/// Reads Iometer's results.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::IometerCsv };
    let mut set = ResultSet::new(file, Tool::Iometer, vec![]);
    let (mut header, mut section): (Vec<String>, &str) = (Vec::new(), "");
    let mut jobs: HashMap<String, Vec<Job>> = HashMap::new();
    let mut specification = String::new();
    for (number, line) in text::numbered(text) {
        if line.starts_with('\'') {
            section = line;
            if line.starts_with(HEADER) {
                header = line.split(',').map(|name| name.trim().to_owned()).collect();
            }
            continue;
        }
        if section.starts_with("'Version") && set.version.is_none() {
            set.version = Some(line.trim().to_owned()).filter(|version| !version.is_empty());
        } else if section.starts_with("'Access specification name") {
            // The name ends at the last comma.
            specification = line.rsplit_once(',').map_or(line, |(name, _)| name).to_owned();
        } else if section.starts_with("'size") {
            if let Some(line) = access_line(line) {
                jobs.entry(specification.clone()).or_default().push(line);
            }
        } else if section.starts_with(HEADER) && line.starts_with("ALL,") {
            set.runs.push(all(&origin, number, &header, line, &jobs)?);
        } else if section.starts_with(HEADER) && line.starts_with("WORKER,") {
            let iops = row(&header, line).ok().and_then(|row| row.number("IOps"));
            if let (Some(run), Some(iops)) = (set.runs.last_mut(), iops) {
                run.workers_iops.push(iops);
            }
        }
    }
    if set.runs.is_empty() {
        return Err(origin.whole(
            "no row of ALL",
            "let the test end, and record results for all managers and not only per worker",
        ));
    }
    Ok(set)
}

/// "size, % of size, % reads, % random, …".
fn access_line(line: &str) -> Option<Job> {
    let fields: Vec<f64> = line.split(',').map_while(text::number).collect();
    let [bytes, _, reads, random, ..] = fields.as_slice() else { return None };
    Some(Job {
        block_bytes: Some(*bytes as u64).filter(|bytes| *bytes > 0),
        read_share: Some((reads / 100.0).clamp(0.0, 1.0)),
        random_share: Some((random / 100.0).clamp(0.0, 1.0)),
        ..Job::default()
    })
}

/// A row by the names of its columns.
struct Row<'a> {
    header: &'a [String],
    fields: Vec<&'a str>,
    specification: String,
}

impl Row<'_> {
    fn number(&self, name: &str) -> Option<f64> {
        let at = self.header.iter().position(|column| column == name)?;
        text::number(self.fields[at]).filter(|value| *value >= 0.0)
    }

    /// The step that a number was printed in.
    fn step(&self, name: &str) -> f64 {
        self.header.iter().position(|known| known == name).map_or(0.0, |at| text::step(self.fields[at]))
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.number(name).map(|value| value as u64)
    }
}

/// The row, or how many fields it has.
fn row<'a>(header: &'a [String], line: &'a str) -> Result<Row<'a>, usize> {
    let fields: Vec<&str> = line.split(',').collect();
    let extra = fields.len().checked_sub(header.len()).ok_or(fields.len())?;
    if header.len() <= NAMES {
        return Err(fields.len());
    }
    let specification = fields[NAMES - 1..NAMES + extra].join(",").trim().to_owned();
    let kept = fields
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < NAMES || *at >= NAMES + extra)
        .map(|(_, field)| *field);
    Ok(Row { header, fields: kept.collect(), specification })
}

fn all(
    origin: &Origin<'_>,
    number: usize,
    header: &[String],
    line: &str,
    jobs: &HashMap<String, Vec<Job>>,
) -> Result<Run, ReadError> {
    let row = row(header, line).map_err(|found| origin.fields(number, found, header.len()))?;
    let iops = row.number("IOps").ok_or_else(|| {
        origin.at(number, "no IOps", "the header must name a column IOps, with a number in every row of ALL")
    })?;
    let mut run = Run { label: row.specification.clone(), line: Some(number), ..Run::default() };
    match jobs.get(&row.specification).map(Vec::as_slice) {
        Some([one]) => run.job = one.clone(),
        Some(_) => run.notes.push(Note::at(
            number,
            "the access specification has several lines: I/O size and shares have no single value",
        )),
        None => {}
    }
    run.job.pattern = Some(row.specification.clone());
    run.workers = row.count("# Workers").map(|workers| workers as u32);
    // The depth is that of each target; every target of a worker has its own.
    let depth = row.number("Queue Depth").filter(|depth| *depth > 0.0);
    run.job.depth = depth.map(|depth| depth as u32);
    run.job.outstanding =
        depth.zip(row.number("# Disks").filter(|disks| *disks > 0.0)).map(|(depth, disks)| depth * disks);
    let milliseconds = |name: &str| row.number(name).map(|ms| ms / 1e3);
    let steps =
        |iops: &str, latency: &str| Steps { iops: row.step(iops), latency_s: row.step(latency) / 1e3 };
    let rate = |prefix: &str| {
        let binary = ["MiBps (Binary)", "MiBps", "MBps"]
            .iter()
            .find_map(|name| row.number(&format!("{prefix}{name}")));
        binary.map(|mib| mib * MIB).or(row.number(&format!("{prefix}MBps (Decimal)")).map(|mb| mb * 1e6))
    };
    for (direction, name, bytes) in
        [(Direction::Read, "Read", "Bytes Read"), (Direction::Write, "Write", "Bytes Written")]
    {
        let figures = Figures {
            ios: row.count(&format!("{name} I/Os")),
            bytes: row.count(bytes),
            iops: row.number(&format!("{name} IOps")),
            bytes_per_s: rate(&format!("{name} ")),
            latency_s: milliseconds(&format!("Average {name} Response Time")),
            steps: steps(&format!("{name} IOps"), &format!("Average {name} Response Time")),
            ..Figures::default()
        };
        if !figures.is_idle() {
            run.directions.insert(direction, figures);
        }
    }
    let ios = row.count("Read I/Os").zip(row.count("Write I/Os"));
    let ios = ios.map(|(reads, writes)| reads.saturating_add(writes));
    let total = Figures {
        ios,
        iops: Some(iops),
        bytes_per_s: rate(""),
        latency_s: milliseconds("Average Response Time"),
        steps: steps("IOps", "Average Response Time"),
        latencies: histogram(&row).map_or(Latencies::None, Latencies::Bounded),
        ..Figures::default()
    };
    run.directions.insert(Direction::Total, total);
    if row.number("Errors").is_some_and(|errors| errors > 0.0) {
        run.notes.push(Note::at(number, "Iometer counted errors in this run"));
    }
    Ok(run)
}

/// The buckets: columns named "0 to 50 uS", "0.5 to 1 mS", ">= 10 s".
fn histogram(row: &Row<'_>) -> Option<BoundedHistogram> {
    let mut buckets = Vec::new();
    let mut end = 0;
    for (name, field) in row.header.iter().zip(&row.fields) {
        let Some((from, to)) = bounds(name) else { continue };
        // Buckets follow on each other, or they are of something else.
        if from != end {
            return None;
        }
        end = to.unwrap_or(end);
        buckets.push((to, text::number(field).filter(|count| *count >= 0.0)? as u64));
    }
    (!buckets.is_empty()).then(|| BoundedHistogram::new(0, buckets).ok()).flatten()
}

/// Where a column's bucket begins and ends, in ns.
fn bounds(name: &str) -> Option<(u64, Option<u64>)> {
    let unit = |unit: &str| match unit {
        "uS" | "us" => Some(1e3),
        "mS" | "ms" => Some(1e6),
        "S" | "s" => Some(1e9),
        _ => None,
    };
    let words: Vec<&str> = name.split_whitespace().collect();
    let ns = |number: &str, scale: f64| {
        text::number(number).filter(|of| *of >= 0.0).map(|of| (of * scale).round() as u64)
    };
    match words.as_slice() {
        [from, "to", to, of] => {
            let scale = unit(of)?;
            Some((ns(from, scale)?, Some(ns(to, scale)?)))
        }
        [">=", from, of] => Some((ns(from, unit(of)?)?, None)),
        _ => None,
    }
}
