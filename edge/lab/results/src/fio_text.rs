//! fio's normal output, of 2.x and 3.x, and its terse output (`--minimal`), versions 2 to 5.
//!
//! Both have percentiles and no histogram. What fio printed with few digits (`IOPS=67.9k`) is computed from I/Os and running time
//! where both are there. Must never assume an option that fio did not print.

use std::collections::BTreeMap;

use crate::error::{Kind, Origin, ReadError};
use crate::fio_json::{clones_together, is_synchronous};
use crate::model::{Direction, FIO_LAST_S, Figures, Job, Latencies, Note, ResultSet, Run, Tool};
use crate::pattern;
use crate::text;

#[cfg(test)]
pub(crate) mod tests;

const DIRECTIONS: [(&str, Direction); 4] = [
    ("read", Direction::Read),
    ("write", Direction::Write),
    ("trim", Direction::Trim),
    // unified_rw_reporting=mixed.
    ("mixed", Direction::Total),
];
/// Printed and computed IOPS that differ by more are not of the same time.
const SAME_IOPS: f64 = 0.02;

/// True for a text with a job's result: `name: (groupid=0, jobs=1): err= 0: pid=…`.
pub(crate) fn is_text(text: &str) -> bool {
    text.lines().any(|line| result_of(line).is_some())
}

/// The name, the group and the number of jobs of a result.
fn result_of(line: &str) -> Option<(&str, &str, u32)> {
    let (name, rest) = line.split_once(": (groupid=")?;
    let (group, rest) = rest.split_once(',')?;
    let (jobs, rest) = rest.trim_start().strip_prefix("jobs=")?.split_once(')')?;
    rest.contains("err=").then_some((name.trim(), group.trim(), jobs.trim().parse().ok()?))
}

/// Reads fio's normal output.
pub(crate) fn read(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let mut set = ResultSet::new(file, Tool::Fio, vec![]);
    let mut jobs: BTreeMap<(String, String), Job> = BTreeMap::new();
    let mut parts: Vec<(String, Run)> = Vec::new();
    let mut direction = None;
    for (number, line) in text::numbered(text) {
        let trimmed = line.trim();
        if let Some((name, group, job)) = described(line) {
            jobs.insert((name, group), job);
        } else if let Some((name, group, count)) = result_of(line) {
            let job = jobs.get(&(name.to_owned(), group.to_owned())).cloned().unwrap_or_default();
            parts.push((group.to_owned(), begun(name, number, job, count, line)));
            direction = None;
        } else if set.version.is_none() && trimmed.starts_with("fio-") {
            set.version = Some(trimmed.to_owned());
        } else if trimmed.starts_with("Run status group") {
            direction = None;
        } else if let Some((_, run)) = parts.last_mut() {
            detail(run, &mut direction, trimmed);
        }
    }
    let origin = Origin { file, kind: Kind::FioText };
    for (_, run) in &mut parts {
        finish(run);
    }
    parts.retain(|(_, run)| !run.directions.is_empty());
    if parts.is_empty() {
        return Err(origin.whole("no job has a line with IOPS", "the run failed, or the file was cut off"));
    }
    // Without group_reporting every clone of a job has a result.
    for same in parts.chunk_by(|one, other| one.0 == other.0 && one.1.label == other.1.label) {
        let runs: Vec<Run> = same.iter().map(|(_, run)| run.clone()).collect();
        set.runs.push(if let [only] = &runs[..] { only.clone() } else { clones_together(runs) });
    }
    Ok(set)
}

/// `name: (g=0): rw=randrw, bs=(R) 4096B-4096B, …, ioengine=psync, iodepth=1`, or with `bs=4K-4K/4K-4K/4K-4K`.
fn described(line: &str) -> Option<(String, String, Job)> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, rest) = rest.split_once("):")?;
    let after = |key: &str| {
        let found = rest.split(key).nth(1)?;
        Some(found.split(',').next().unwrap_or_default().trim())
    };
    let rw = after("rw=")?.to_owned();
    let size = after("bs=").and_then(|sizes| {
        let sizes = sizes.trim_start_matches("(R)").trim();
        let (from, to) = sizes.split('/').next()?.split_once('-')?;
        (from == to).then(|| block(from)).flatten()
    });
    let read_share = match rw.as_str() {
        "read" | "randread" => Some(1.0),
        "write" | "randwrite" => Some(0.0),
        _ => None,
    };
    let depth = after("iodepth=").and_then(|depth| depth.parse::<u32>().ok());
    let depth = if after("ioengine=").is_some_and(is_synchronous) { Some(1) } else { depth };
    let job = Job {
        block_bytes: size,
        read_share,
        random_share: Some(if rw.starts_with("rand") { 1.0 } else { 0.0 }),
        depth,
        ..Job::default()
    };
    Some((name.trim().to_owned(), group.trim().to_owned(), job))
}

/// "4096B", "64.0KiB", "4K".
fn block(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let unit = pattern::size(&format!("1{}", &text[end..]))?;
    let bytes = number * unit as f64;
    (1.0..1e18).contains(&bytes).then_some(bytes.round() as u64)
}

fn begun(name: &str, number: usize, mut job: Job, count: u32, line: &str) -> Run {
    job.threads = Some(count);
    job.outstanding = job.depth.map(|depth| f64::from(depth) * f64::from(count));
    let mut run =
        Run { label: name.to_owned(), line: Some(number), workers: Some(count), job, ..Run::default() };
    let error = line.split("err=").nth(1).map(|rest| rest.trim_start().split([' ', ':', '(']).next());
    if error.flatten().is_some_and(|error| error != "0") {
        run.notes.push(Note::at(number, "the job ended with an error: its figures cover only a part of it"));
    }
    run
}

/// A line below a result.
fn detail(run: &mut Run, direction: &mut Option<Direction>, line: &str) {
    let (key, rest) = line.split_once(':').unwrap_or((line, ""));
    let named = DIRECTIONS.iter().find(|(name, _)| *name == key.trim()).map(|(_, of)| *of);
    if let Some(found) = named.filter(|_| rest.contains("IOPS=") || rest.contains("iops=")) {
        *direction = Some(found);
        let figures = throughput(rest, &mut run.seconds);
        run.directions.insert(found, figures);
    } else if key.trim_start().starts_with("issued") {
        issued(run, rest);
        *direction = None;
    } else if let Some(figures) = direction.and_then(|of| run.directions.get_mut(&of)) {
        latency(figures, key.trim(), rest);
        percentiles(figures, line);
    }
}

/// "IOPS=52.4k, BW=205MiB/s (215MB/s)(205MiB/1001msec)", or "io=15941MB, bw=272059KB/s, iops=68014, runtime= 60001msec".
fn throughput(rest: &str, seconds: &mut Option<f64>) -> Figures {
    let after = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| rest.split(*key).nth(1))?;
        let end = found.trim_start().find([',', ' ', ')']).unwrap_or(found.trim_start().len());
        Some(&found.trim_start()[..end])
    };
    let iops = after(&["IOPS=", "iops="]).and_then(scaled);
    let ms = rest.split("msec").next().and_then(|before| {
        let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<f64>().ok()
    });
    let ran = ms.filter(|_| rest.contains("msec")).map(|ms| ms / 1e3);
    *seconds = ran.into_iter().chain(*seconds).reduce(f64::max);
    // fio writes KB/s for 1,024 bytes a second before 3.0, and KiB/s since.
    let bytes_per_s =
        after(&["BW=", "bw="]).and_then(|text| block(text.strip_suffix("/s")?)).map(|b| b as f64);
    Figures {
        iops: iops.map(|(value, _)| value),
        bytes_per_s,
        steps: crate::Steps { iops: iops.map_or(0.0, |(_, step)| step), latency_s: 0.0 },
        ..Figures::default()
    }
}

/// "52.4k", with the step that it was printed in: thousands, as fio's `num2str` has it for what is no size.
fn scaled(text: &str) -> Option<(f64, f64)> {
    let (digits, times) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'M' | 'm' => (&text[..text.len() - 1], 1e6),
        'G' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let value = text::number(digits).filter(|value| *value >= 0.0)?;
    Some((value * times, text::step(digits) * times))
}

/// How many of the unit in "lat (usec)" a second has.
fn unit_of(key: &str) -> Option<f64> {
    let unit = key.split_once('(')?.1.trim_end_matches(')').trim();
    Some(match unit {
        "nsec" => 1e9,
        "usec" => 1e6,
        "msec" => 1e3,
        "sec" => 1.0,
        _ => return None,
    })
}

/// "lat (usec): min=3, max=8973, avg= 6.18, stdev=56.74". The whole latency counts before that of completion.
fn latency(figures: &mut Figures, key: &str, rest: &str) {
    let name = key.split_whitespace().next().unwrap_or_default();
    let is_whole = match name {
        "lat" => true,
        "clat" => false,
        _ => return,
    };
    let Some((unit, avg)) = unit_of(key).zip(rest.split("avg=").nth(1)) else { return };
    let Some((value, step)) = avg.split(',').next().and_then(|avg| scaled(avg.trim())) else { return };
    if is_whole || figures.latency_s.is_none() {
        (figures.latency_s, figures.steps.latency_s) = (Some(value / unit), step / unit);
    }
}

/// "clat percentiles (usec):", then "|  1.00th=[    4],  5.00th=[    4], …".
fn percentiles(figures: &mut Figures, line: &str) {
    if line.contains("percentiles (") {
        // A heading: its unit is kept as an empty list's only value until the list comes.
        if let Some(unit) = line.split(':').next().and_then(unit_of) {
            figures.latencies = Latencies::Percentiles(vec![(-1.0, unit)]);
        }
        return;
    }
    let (true, Latencies::Percentiles(list)) = (line.starts_with('|'), &mut figures.latencies) else {
        return;
    };
    let Some(&(_, unit)) = list.first() else { return };
    for part in line.trim_start_matches('|').split("],") {
        let Some((share, value)) = part.split_once("th=[") else { continue };
        let value = value.trim().trim_end_matches(']').trim_start_matches(">=").trim();
        let Some((share, (value, _))) = text::number(share).zip(scaled(value)) else { continue };
        list.push((share_of(share), of_fio(value / unit)));
    }
}

/// 99.9 / 100 is not 0.999 in binary.
fn share_of(percent: f64) -> f64 {
    (percent * 1e6).round() / 1e8
}

/// The last bucket's middle is printed in whole milliseconds or microseconds: as 17,112 or 17,113 ms.
fn of_fio(seconds: f64) -> f64 {
    if (seconds - FIO_LAST_S).abs() < 0.001 { FIO_LAST_S } else { seconds }
}

/// "total=52424,22503,0,0 short=…", or "total=r=4080889/w=0/d=0, short=…".
fn issued(run: &mut Run, rest: &str) {
    let Some(total) = rest.split("total=").nth(1) else { return };
    let total = total.split_whitespace().next().unwrap_or_default();
    let counts: Vec<u64> = total
        .split([',', '/'])
        .filter_map(|part| part.trim_start_matches(['r', 'w', 'd', '=']).parse().ok())
        .collect();
    for (direction, ios) in [Direction::Read, Direction::Write, Direction::Trim].iter().zip(counts) {
        if let Some(figures) = run.directions.get_mut(direction) {
            figures.ios = Some(ios);
        }
    }
}

/// Takes out what only helped to read, and computes what was printed with few digits.
fn finish(run: &mut Run) {
    let seconds = run.seconds.filter(|seconds| *seconds > 0.0);
    for figures in run.directions.values_mut() {
        if let Latencies::Percentiles(list) = &mut figures.latencies {
            list.retain(|(share, seconds)| *share >= 0.0 && *seconds > 0.0);
            if list.is_empty() {
                figures.latencies = Latencies::None;
            }
        }
        let computed = figures.ios.zip(seconds).map(|(ios, seconds)| ios as f64 / seconds);
        if let (Some(computed), Some(printed)) = (computed, figures.iops)
            && (computed / printed - 1.0).abs() <= SAME_IOPS
        {
            (figures.iops, figures.steps.iops) = (Some(computed), 0.0);
        }
    }
    run.directions.retain(|_, figures| !figures.is_idle());
}

/// Fields of one direction in a terse line: 4 of throughput, 4 each of slat, clat and lat, 20 percentiles, 5 of bandwidth.
const FIELDS: usize = 41;
/// Version 5 adds the samples of bandwidth, and 5 of IOPS.
const FIELDS_5: usize = 47;

/// True for a text with a line of fields by semicolons that begins with a terse version.
pub(crate) fn is_terse(text: &str) -> bool {
    text.lines().any(|line| terse_version(line).is_some())
}

fn terse_version(line: &str) -> Option<u32> {
    let (version, rest) = line.trim_start_matches('\u{feff}').trim_start().split_once(';')?;
    let version = version.parse().ok().filter(|version| (2..=5).contains(version))?;
    (rest.matches(';').count() > 2 * FIELDS && rest.contains("%=")).then_some(version)
}

/// Reads fio's terse output. Latencies are microseconds, bandwidth KiB/s.
pub(crate) fn read_terse(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::FioTerse };
    let mut set = ResultSet::new(file, Tool::Fio, vec![]);
    let mut parts: Vec<(String, Run)> = Vec::new();
    for (number, line) in text::numbered(text) {
        let Some(version) = terse_version(line) else { continue };
        let fields: Vec<&str> = line.trim().split(';').collect();
        // Version 2 does not name fio's own.
        let head = if version == 2 { 1 } else { 2 };
        if version > 2 {
            set.version = Some(fields[1].to_owned());
        }
        let (name, group) = (fields[head], fields[head + 1]);
        let mut run = Run { label: name.to_owned(), line: Some(number), ..Run::default() };
        if fields[head + 2] != "0" {
            run.notes
                .push(Note::at(number, "the job ended with an error: its figures cover only a part of it"));
        }
        let length = if version == 5 { FIELDS_5 } else { FIELDS };
        for (at, (_, direction)) in DIRECTIONS.iter().take(if version == 3 { 2 } else { 3 }).enumerate() {
            let from = head + 3 + at * length;
            let Some(of) = fields.get(from..from + FIELDS) else {
                return Err(origin.at(
                    number,
                    "the line is too short",
                    "the file may be cut off: delete the last line",
                ));
            };
            terse_direction(&origin, number, of, *direction, &mut run)?;
        }
        if !run.directions.is_empty() {
            parts.push((group.to_owned(), run));
        }
    }
    if parts.is_empty() {
        return Err(origin.whole("no line has I/Os", "the run failed, or the file was cut off"));
    }
    for same in parts.chunk_by(|one, other| one.0 == other.0 && one.1.label == other.1.label) {
        let runs: Vec<Run> = same.iter().map(|(_, run)| run.clone()).collect();
        set.runs.push(if let [only] = &runs[..] { only.clone() } else { clones_together(runs) });
    }
    set.notes.push(Note::new("fio's terse output has no job options: block size and depth are unknown"));
    Ok(set)
}

fn terse_direction(
    origin: &Origin<'_>,
    number: usize,
    of: &[&str],
    direction: Direction,
    run: &mut Run,
) -> Result<(), ReadError> {
    let value = |at: usize| {
        let found = text::number(of[at]).filter(|value| *value >= 0.0);
        found.ok_or_else(|| {
            origin.at(number, format!("\"{}\" is not a number", of[at]), "give the output as fio wrote it")
        })
    };
    let (kib, iops, ms) = (value(1)?, value(2)?, value(3)?);
    if ms <= 0.0 || (iops == 0.0 && kib == 0.0) {
        return Ok(());
    }
    run.seconds = Some(ms / 1e3).into_iter().chain(run.seconds).reduce(f64::max);
    let mut list = Vec::new();
    for field in &of[12..32] {
        let Some((share, us)) = field.split_once("%=") else { continue };
        let Some((share, us)) = text::number(share).zip(text::number(us)) else { continue };
        // Whole microseconds: what is below one is no figure, and the list is filled up with zeroes.
        if us > 0.0 && share > 0.0 {
            list.push((share_of(share), of_fio(us / 1e6)));
        }
    }
    let latency_us = [value(34)?, value(10)?].into_iter().find(|us| *us > 0.0);
    let figures = Figures {
        bytes: Some((value(0)? * 1024.0) as u64),
        iops: Some(iops),
        bytes_per_s: Some(kib * 1024.0),
        latency_s: latency_us.map(|us| us / 1e6),
        latencies: if list.is_empty() { Latencies::None } else { Latencies::Percentiles(list) },
        steps: crate::Steps { iops: 1.0, latency_s: 1e-12 },
        ..Figures::default()
    };
    run.directions.insert(direction, figures);
    Ok(())
}
