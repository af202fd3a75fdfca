//! HCIBench's results: a folder per case with a file per VM, and a summary beside it (`<case>-res.txt`), which is read here.

use crate::error::{Kind, Origin, ReadError};
use crate::model::{Direction, Figures, Note, ResultSet, Run, Steps, Tool};
use crate::text;

pub(crate) mod folder;

#[cfg(test)]
pub(crate) mod tests;

/// True for a summary.
pub(crate) fn is_summary(text: &str) -> bool {
    let has =
        |name: &str| text::numbered(text).any(|(_, line)| key(line).is_some_and(|(key, _)| key == name));
    has("IOPS") && has("VMs") && (has("Datastore") || has("JOB_NAME") || has("Run Def"))
}

/// "IOPS = 12 IO/S".
fn key(line: &str) -> Option<(&str, &str)> {
    line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
}

/// What a summary says.
#[derive(Debug, Default, Clone, PartialEq)]
struct Summary {
    label: Option<String>,
    vms: Option<u32>,
    iops: Option<f64>,
    megabytes: Option<f64>,
    latency_ms: Option<f64>,
    /// The rounding of IOPS and of the latency of all I/Os.
    steps: Steps,
    read_ms: Option<f64>,
    write_ms: Option<f64>,
    /// The 95th percentiles of reads, writes, and all, in ms, as HCIBench makes them up.
    percentile_95: [Option<f64>; 3],
}

const PERCENTILES: [(Direction, &str); 3] = [
    (Direction::Read, "95%tile_R_LAT"),
    (Direction::Write, "95%tile_W_LAT"),
    (Direction::Total, "95%tile_LAT"),
];

fn summary(origin: &Origin<'_>, text: &str) -> Result<Vec<Summary>, ReadError> {
    let mut all: Vec<Summary> = Vec::new();
    for (number, line) in text::numbered(text) {
        let Some((key, value)) = key(line) else { continue };
        let begins = matches!(key, "Datastore" | "Version");
        if all.is_empty() || (begins && all.last().is_some_and(|last| last.iops.is_some())) {
            all.push(Summary::default());
        }
        let Some(current) = all.last_mut() else { continue };
        let figure = || {
            let first = value.split_whitespace().next().unwrap_or_default();
            let found = text::number(first).filter(|figure| *figure >= 0.0).map(Some);
            found.ok_or_else(|| {
                origin.at(
                    number,
                    format!("{key} is \"{value}\""),
                    "a number must follow the equals sign; the case may have failed",
                )
            })
        };
        let step = || text::step(value.split_whitespace().next().unwrap_or_default());
        match key {
            "JOB_NAME" | "Run Def" => current.label = Some(value.to_owned()),
            "VMs" => current.vms = figure()?.map(|vms| vms as u32),
            "IOPS" => (current.iops, current.steps.iops) = (figure()?, step()),
            "THROUGHPUT" => current.megabytes = figure()?,
            "LATENCY" => (current.latency_ms, current.steps.latency_s) = (figure()?, step() / 1e3),
            "R_LATENCY" => current.read_ms = figure()?,
            "W_LATENCY" => current.write_ms = figure()?,
            _ => {
                if let Some(place) = PERCENTILES.iter().position(|(_, name)| *name == key) {
                    current.percentile_95[place] = figure()?;
                }
            }
        }
    }
    all.retain(|summary| summary.iops.is_some());
    if all.is_empty() {
        return Err(origin.whole("no line \"IOPS = …\"", "the case failed, or the file was cut off"));
    }
    Ok(all)
}

/// Reads a summary by itself: its latencies are means without weights, and its percentiles no percentiles.
pub(crate) fn read_summary(file: &str, text: &str) -> Result<ResultSet, ReadError> {
    let origin = Origin { file, kind: Kind::Hcibench };
    let runs = summary(&origin, text)?.iter().map(printed).collect();
    let mut set = ResultSet::new(file, Tool::Hcibench, runs);
    set.notes.push(Note::new(
        "HCIBench averages latencies over VMs without weights, and its p95 is an average of percentiles or an estimate from mean and \
         deviation. The p95 is not used. To get a true p95, give the files of the VMs",
    ));
    Ok(set)
}

fn printed(summary: &Summary) -> Run {
    let mut run =
        Run { label: summary.label.clone().unwrap_or_default(), vms: summary.vms, ..Run::default() };
    run.megabytes_printed = summary.megabytes;
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    let latency_s = seconds(summary.latency_ms);
    let total = Figures { iops: summary.iops, latency_s, steps: summary.steps, ..Figures::default() };
    run.directions.insert(Direction::Total, total);
    for (direction, ms) in [(Direction::Read, summary.read_ms), (Direction::Write, summary.write_ms)] {
        if let Some(ms) = ms.filter(|ms| *ms > 0.0) {
            run.directions.insert(direction, Figures { latency_s: Some(ms / 1e3), ..Figures::default() });
        }
    }
    run
}
