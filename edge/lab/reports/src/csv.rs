//! Tables as CSV (RFC 4180): stages, groups and seconds. Times are ns, rates are per second, nothing is rounded.

use crate::figures::{OPERATIONS, PERCENTILES, Row, group_total, operation_rows, total};
use crate::report::Report;
use measured::{Interval, Run, StageRun};

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvFile {
    /// What it holds, as the middle of a file's name: `stages`.
    pub name: &'static str,
    /// The table with a line of names; lines end in CR LF.
    pub text: String,
}

/// Four tables: `stages` (a line for each stage of each run), `groups` (a line for each group's reads, writes, trims, and all
/// together), `seconds` (a line for each second of them), `system` (a
/// line for each value that the system under test told of itself, and for each event). What was not measured is an empty field.
pub fn csv(report: &Report) -> Vec<CsvFile> {
    let mut stages = header(&["run", "stage", "repeat", "started_s", "seconds", "outstanding"]);
    stages.extend(figure_names());
    stages.extend(["cpu_us_per_io", "stalls"].map(str::to_owned));
    let mut groups =
        header(&["run", "stage", "repeat", "group", "vm", "operation", "seconds", "outstanding"]);
    groups.extend(figure_names());
    let seconds =
        header(&["run", "stage", "repeat", "group", "operation", "second", "ios", "bytes", "min_ns"]);
    let seconds = [seconds, header(&["mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"])].concat();
    let mut texts = [line(stages), line(groups), line(seconds)];
    for (name, run) in report.all_runs() {
        for stage in &run.stages {
            let place = place(&name, run, stage);
            write_stage(&mut texts, &place, stage);
        }
    }
    let [stages, groups, seconds] = texts;
    let mut system = line(header(&["run", "second", "figure", "unit", "of", "value"]));
    for (name, run) in report.all_runs() {
        write_system(&mut system, &name, run);
    }
    [("stages", stages), ("groups", groups), ("seconds", seconds), ("system", system)]
        .map(|(name, text)| CsvFile { name, text })
        .to_vec()
}

/// Seconds are those after the run began.
fn write_system(table: &mut String, name: &str, run: &Run) {
    for series in &run.system.series {
        for (at, value) in &series.points {
            let fields =
                [name, &at.to_string(), &series.figure, &series.unit, &series.of, &value.to_string()];
            table.push_str(&line(header(&fields)));
        }
    }
    for event in &run.system.events {
        table.push_str(&line(header(&[name, &event.at.to_string(), "event", "", &event.text, ""])));
    }
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn figure_names() -> Vec<String> {
    let mut names = header(&["ios", "iops", "bytes", "bytes_per_s", "errors", "min_ns", "mean_ns"]);
    names.extend(PERCENTILES.iter().map(|(_, name)| format!("{}_ns", name.replace('.', ""))));
    names.push("max_ns".to_owned());
    names
}

/// Run, stage and repeat: the first fields of every line.
fn place(name: &str, run: &Run, stage: &StageRun) -> Vec<String> {
    let planned = run.plan.stages.get(stage.stage).map_or_else(String::new, |planned| planned.name.clone());
    vec![name.to_owned(), planned, stage.repeat.to_string()]
}

fn write_stage([stages, groups, seconds]: &mut [String; 3], place: &[String], stage: &StageRun) {
    let mut fields = place.to_vec();
    fields.extend([stage.started, stage.seconds].map(|value| value.to_string()));
    fields.push(stage.outstanding().to_string());
    fields.extend(figures(&total(stage)));
    fields.push(stage.cpu_us_per_io().map_or_else(String::new, |us| us.to_string()));
    fields.push(stage.stalls.len().to_string());
    stages.push_str(&line(fields));
    for group in &stage.groups {
        for row in operation_rows(group).chain([group_total(group)]) {
            let mut fields = place.to_vec();
            fields.extend([&group.name, group.vm.as_deref().unwrap_or(""), row.operation].map(String::from));
            fields.extend([group.seconds.to_string(), group.outstanding.to_string()]);
            fields.extend(figures(&row));
            groups.push_str(&line(fields));
        }
        for interval in &group.intervals {
            for (index, operation) in OPERATIONS.into_iter().enumerate() {
                if let Some(of_second) = second(interval, index) {
                    let mut fields = place.to_vec();
                    fields.extend([&group.name, operation].map(String::from));
                    fields.extend(of_second);
                    seconds.push_str(&line(fields));
                }
            }
        }
    }
}

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn figures(row: &Row) -> Vec<String> {
    let of = &row.measured;
    let mut fields = vec![
        of.ios.to_string(),
        row.iops.to_string(),
        of.bytes.to_string(),
        row.bytes_per_second.to_string(),
        of.errors.to_string(),
        known(of.latency.min_ns()),
        known(of.latency.mean_ns()),
    ];
    fields.extend(PERCENTILES.iter().map(|(share, _)| known(of.latency.percentile(*share))));
    fields.push(known(of.latency.max_ns()));
    fields
}

fn second(interval: &Interval, index: usize) -> Option<Vec<String>> {
    let histogram = interval.latency[index].histogram();
    (interval.ios[index] > 0 || !histogram.is_empty()).then(|| {
        vec![
            interval.at.to_string(),
            interval.ios[index].to_string(),
            interval.bytes[index].to_string(),
            known(histogram.min_ns()),
            known(histogram.mean_ns()),
            known(histogram.percentile(0.5)),
            known(histogram.percentile(0.99)),
            known(histogram.percentile(0.999)),
            known(histogram.max_ns()),
        ]
    })
}

fn line(fields: Vec<String>) -> String {
    let quoted: Vec<String> = fields.into_iter().map(quoted).collect();
    quoted.join(",") + "\r\n"
}

/// A field as RFC 4180 has it: in quotes when it needs them, quotes doubled.
fn quoted(field: String) -> String {
    match field.contains(['"', ',', '\r', '\n']) || field.starts_with(' ') || field.ends_with(' ') {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}
