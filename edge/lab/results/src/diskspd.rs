//! DiskSPD's results: its text, and its XML in [`xml`].
//!
//! Text comes in blocks per timespan: input parameters, CPU, then the tables *Total IO*, *Read IO* and *Write IO*, then with
//! `-L` percentiles. Columns are found by their headers; what releases call MB/s and MiB/s is 2^20 bytes in both.

use std::collections::BTreeMap;

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Job, Latencies, Note, ResultSet, Run, Steps, Tool};
use crate::pattern;
use crate::text;

pub(crate) mod xml;

#[cfg(test)]
pub(crate) mod tests;

/// DiskSPD's text has two digits of I/Os per second and three of milliseconds.
const STEPS: Steps = Steps { iops: 0.01, latency_s: 1e-6 };
const MIB: f64 = 1_048_576.0;
/// What stands in place of tables when a run was ended during its warm-up.
const INTERRUPTED: &str = "interrupted before the measurements began";
/// Directions in the order of the columns of percentiles.
const ORDER: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Total];

/// True for the text of DiskSPD.
pub(crate) fn is_text(text: &str) -> bool {
    let has = |part: &str| text.contains(part);
    (has("Results for timespan") || has("Input parameters:"))
        && (has("timespan") && (has("Total IO") || has("duration:")))
}

/// Reads DiskSPD's text.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::DiskspdText };
    let mut set = ResultSet::new(file, Tool::Diskspd, vec![]);
    let lines: Vec<(usize, &str)> = text::numbered(text).collect();
    let begins: Vec<usize> =
        (0..lines.len()).filter(|&at| lines[at].1.trim_start().starts_with("Results for timespan")).collect();
    let Some(first) = begins.first() else {
        return Err(origin.whole(
            "no \"Results for timespan\"",
            "the run did not end, or the output is cut off: give the whole output of DiskSPD",
        ));
    };
    let jobs = jobs(&lines[..*first]);
    for (index, &from) in begins.iter().enumerate() {
        let to = begins.get(index + 1).copied().unwrap_or(lines.len());
        if lines[from..to].iter().any(|(_, line)| line.contains(INTERRUPTED)) {
            set.notes.push(Note::at(
                lines[from].0,
                "the timespan was interrupted before the measurement: not used",
            ));
            continue;
        }
        let mut run = timespan(&origin, &lines[from..to])?;
        run.label = format!("timespan {}", index + 1);
        run.job = jobs.get(index).or(jobs.first()).cloned().unwrap_or_default();
        shared_threads(&lines[from..to], &mut run.job);
        run.workers = run.job.threads;
        set.runs.push(run);
    }
    if set.runs.is_empty() {
        return Err(origin.whole("every timespan was interrupted", "run it again, to its end"));
    }
    Ok(set)
}

/// With `-F`, threads are shared by all targets and told beside the results: each has what every target asks for outstanding,
/// or with `-O` so many in all.
fn shared_threads(lines: &[(usize, &str)], job: &mut Job) {
    let of = |name: &str| {
        let value = lines.iter().find_map(|(_, line)| line.trim().strip_prefix(name))?;
        value.trim().parse::<u32>().ok().filter(|number| *number > 0)
    };
    if job.threads.is_some() {
        return;
    }
    job.threads = of("thread count:");
    job.depth = of("request count:").or(job.depth);
    job.outstanding =
        job.threads.zip(job.depth).map(|(threads, depth)| f64::from(threads) * f64::from(depth));
}

/// What the input parameters say, one per timespan.
fn jobs(lines: &[(usize, &str)]) -> Vec<Job> {
    let mut timespans: Vec<Vec<Job>> = vec![vec![]];
    for (_, line) in lines {
        let line = line.trim();
        let last = timespans.len() - 1;
        if line.starts_with("timespan:") && !timespans[last].is_empty() {
            timespans.push(vec![]);
        } else if line.starts_with("path:") {
            timespans[last].push(Job { read_share: Some(1.0), random_share: Some(0.0), ..Job::default() });
        } else if let Some(target) = timespans[last].last_mut() {
            parameter(line, target);
        }
    }
    timespans.into_iter().map(|targets| together(&targets)).collect()
}

/// One line about a target.
fn parameter(line: &str, job: &mut Job) {
    let (name, value) = line.split_once(':').map_or((line, ""), |(name, value)| (name.trim(), value.trim()));
    match name {
        "block size" => job.block_bytes = pattern::size(value),
        "threads per file" | "number of threads per file" => job.threads = value.parse().ok(),
        "number of outstanding I/O operations per thread" | "number of outstanding I/O operations" => {
            job.depth = value.parse().ok();
        }
        _ if line.starts_with("performing write test") => job.read_share = Some(0.0),
        _ if line.starts_with("performing mix test") => {
            let reads =
                line.rsplit(['(', ' ', ':']).find_map(|part| part.split('/').next()?.parse::<f64>().ok());
            job.read_share = reads.map(|percent| percent / 100.0);
        }
        _ if line.starts_with("using random I/O") => job.random_share = Some(1.0),
        _ if line.starts_with("using mixed random/sequential I/O") => {
            let percent = line.split(['(', '%']).nth(1).and_then(|part| part.trim().parse::<f64>().ok());
            job.random_share = percent.map(|percent| percent / 100.0);
        }
        _ => {}
    }
}

/// The targets of a timespan as one job: what differs between them is not known of the whole, outstanding I/Os add up.
pub(super) fn together(targets: &[Job]) -> Job {
    let Some(first) = targets.first() else { return Job::default() };
    let outstanding = targets
        .iter()
        .map(|job| Some(f64::from(job.threads?) * f64::from(job.depth?)))
        .try_fold(0.0, |sum, of| Some(sum + of?));
    let threads = targets.iter().try_fold(0u32, |sum, job| sum.checked_add(job.threads?));
    let same = |of: &dyn Fn(&Job) -> Option<f64>| {
        of(first).filter(|one| targets.iter().all(|job| of(job) == Some(*one)))
    };
    Job {
        pattern: None,
        block_bytes: first.block_bytes.filter(|one| targets.iter().all(|job| job.block_bytes == Some(*one))),
        read_share: same(&|job| job.read_share),
        random_share: same(&|job| job.random_share),
        threads,
        depth: first.depth.filter(|one| targets.iter().all(|job| job.depth == Some(*one))),
        outstanding,
        ..Job::default()
    }
}

fn timespan(origin: &Origin<'_>, lines: &[(usize, &str)]) -> Result<Run, ReadError> {
    let mut run = Run { line: lines.first().map(|(number, _)| *number), ..Run::default() };
    let mut tables: Vec<(Direction, Figures)> = Vec::new();
    for (at, (number, line)) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(time) = line.strip_prefix("actual test time:") {
            run.seconds = text::number(time.trim().trim_end_matches('s'));
        }
        let direction = match line.trim_end_matches(':') {
            "Total IO" => Direction::Total,
            "Read IO" => Direction::Read,
            "Write IO" => Direction::Write,
            _ => continue,
        };
        let (figures, workers) = table(origin, *number, &lines[at + 1..])?;
        if direction == Direction::Total {
            run.workers_iops = workers;
        }
        tables.push((direction, figures));
    }
    if tables.is_empty() {
        let way_out = "the run failed, or the output is cut off: give the whole output of DiskSPD";
        return Err(origin.at(run.line.unwrap_or(1), "a timespan without the table \"Total IO\"", way_out));
    }
    let percentiles = percentiles(lines);
    for (direction, mut figures) in tables {
        let place = ORDER.iter().position(|of| *of == direction).unwrap_or(2);
        let of: Vec<(f64, f64)> =
            percentiles.iter().filter_map(|(share, ms)| Some((*share, ms[place]? / 1e3))).collect();
        if !of.is_empty() {
            figures.latencies = Latencies::Percentiles(of);
        }
        if !figures.is_idle() {
            run.directions.insert(direction, figures);
        }
    }
    Ok(run)
}

/// The table after its title: the figures of its row "total:", and the IOPS of the rows before it.
fn table(
    origin: &Origin<'_>,
    title: usize,
    lines: &[(usize, &str)],
) -> Result<(Figures, Vec<f64>), ReadError> {
    let cut_off = "the table has no row \"total:\": give the whole output of DiskSPD";
    let header = lines.iter().position(|(_, line)| line.trim_start().starts_with("thread"));
    let header =
        header.filter(|at| *at <= 3).ok_or_else(|| origin.at(title, "a table without a header", cut_off))?;
    let names: Vec<&str> = lines[header].1.split('|').map(str::trim).collect();
    // A thread has a row per target.
    let mut workers: BTreeMap<u32, f64> = BTreeMap::new();
    for (number, line) in &lines[header + 1..] {
        let line = line.trim();
        let (first, rest) = match line.strip_prefix("total:") {
            Some(rest) => ("total:", rest),
            None => line.split_once('|').unwrap_or((line, "")),
        };
        let values: Vec<&str> = rest.split('|').map(str::trim).collect();
        let of = |wanted: &[&str]| {
            let at = names.iter().position(|name| wanted.contains(name))?;
            text::number(values.get(at.checked_sub(1)?)?)
        };
        let iops = of(&["I/O per s", "IOPS"]);
        if first == "total:" {
            let ios = of(&["I/Os"]).map(|ios| ios as u64);
            if ios.is_none() {
                return Err(origin.at(
                    *number,
                    format!("\"{line}\""),
                    "the row \"total:\" has no number of I/Os: give the whole output of DiskSPD",
                ));
            }
            let figures = Figures {
                ios,
                bytes: of(&["bytes"]).map(|bytes| bytes as u64),
                iops,
                bytes_per_s: of(&["MiB/s", "MB/s"]).map(|mib| mib * MIB),
                latency_s: of(&["AvgLat"]).map(|ms| ms / 1e3),
                latencies: Latencies::None,
                steps: STEPS,
            };
            return Ok((figures, workers.into_values().collect()));
        }
        if let (Ok(thread), Some(iops)) = (first.trim().parse(), iops) {
            *workers.entry(thread).or_default() += iops;
        }
    }
    Err(origin.at(title, "a table without a total", cut_off))
}

/// The percentiles of all threads together: the table titled "total", else the first.
fn percentiles(lines: &[(usize, &str)]) -> Vec<(f64, [Option<f64>; 3])> {
    let headers: Vec<usize> = (0..lines.len())
        .filter(|&at| lines[at].1.contains("%-ile") && lines[at].1.contains("(ms)"))
        .collect();
    let titled = |at: &usize| {
        let before = lines[..*at].iter().rev().map(|(_, line)| line.trim()).find(|line| !line.is_empty());
        before.is_some_and(|line| line.to_ascii_lowercase().starts_with("total"))
    };
    let Some(header) = headers.iter().find(|at| titled(at)).or(headers.first()) else { return Vec::new() };
    lines[header + 1..]
        .iter()
        .map(|(_, line)| line.split('|').map(str::trim).collect::<Vec<&str>>())
        .skip_while(|fields| fields.len() != 4)
        .take_while(|fields| fields.len() == 4)
        .filter_map(|fields| Some((share(fields[0])?, [1, 2, 3].map(|at| text::number(fields[at])))))
        .collect()
}

/// "min", "25th", "3-nines", "max" as a share.
fn share(name: &str) -> Option<f64> {
    if let Some(nines) = name.strip_suffix("-nines") {
        let nines: i32 = nines.parse().ok().filter(|nines| (1..=9).contains(nines))?;
        return Some(1.0 - 10f64.powi(-nines));
    }
    match name {
        "min" => Some(0.0),
        "max" => Some(1.0),
        _ => name
            .strip_suffix("th")?
            .parse::<f64>()
            .ok()
            .map(|percent| percent / 100.0)
            .filter(|of| *of <= 1.0),
    }
}
