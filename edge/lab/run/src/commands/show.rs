//! What a run measured, as a table and sentences.

use super::progress::sparkline;
use base::units::format_bytes;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use measured::{GroupRun, Measured, Run, StageRun};
use serde::Serialize;
use statistics::words;

/// Everything about a run, for a terminal.
pub fn text(run: &Run) -> String {
    let mut text = String::new();
    for stage in &run.stages {
        let planned = &run.plan.stages[stage.stage];
        let repeat = match planned.repeats {
            1 => String::new(),
            repeats => format!(", {} of {repeats}", stage.repeat + 1),
        };
        text.push_str(&format!(
            "{}{repeat}: {:.1} s, {} outstanding, generator {} of CPU an I/O\n",
            planned.name,
            stage.seconds,
            stage.outstanding(),
            stage.cpu_us_per_io().map_or("nothing".to_owned(), |cpu| format!("{cpu:.2} us")),
        ));
        text.push_str(&table(stage).to_string());
        for group in &stage.groups {
            if let Some(verified) = group.verified {
                let (compared, wrong) = (verified.compared, verified.wrong);
                text.push_str(&format!("\n  {}: {compared} blocks verified, {wrong} wrong", group.name));
            }
        }
        text.push_str(&format!("\n  IOPS by second: {}\n", sparkline(&last(&stage.ios_by_second(), 60))));
        for finding in stage.findings() {
            text.push_str(&format!("  {} {}\n", if finding.serious { "!" } else { "-" }, finding.text));
        }
        text.push('\n');
    }
    for note in run.notes.iter().chain(&run.system.notes) {
        text.push_str(&format!("- {note}\n"));
    }
    for event in &run.system.events {
        text.push_str(&format!("- at {:.1} s: {}\n", event.at, event.text));
    }
    text.push_str(&expectations(&run.expectations));
    text
}

/// A line for each expectation.
pub fn expectations(all: &[measured::Expected]) -> String {
    let line = |of: &measured::Expected| {
        format!("{} {}\n", if of.holds { "holds:" } else { "DOES NOT HOLD:" }, of.text)
    };
    all.iter().map(line).collect()
}

fn last(values: &[f64], count: usize) -> Vec<f64> {
    values[values.len().saturating_sub(count)..].to_vec()
}

fn table(stage: &StageRun) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let head = ["", "IOPS", "per second", "mean", "p50", "p95", "p99", "p99.9", "p99.99", "max", "errors"];
    table.set_header(head);
    for group in &stage.groups {
        for (name, of) in ["read", "write", "trim"].into_iter().zip(&group.operations) {
            if of.ios + of.errors > 0 {
                table.add_row(row(&format!("  {} {name}", group.name), of, group.seconds));
            }
        }
    }
    let several = stage.groups.iter().flat_map(|group| &group.operations).filter(|of| of.ios > 0).count() > 1;
    if several {
        let seconds = stage.seconds;
        table.add_row(row("  all", &stage.total(), seconds));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(name: &str, of: &Measured, seconds: f64) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| duration(ns as f64));
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    vec![
        name.to_owned(),
        words::rate(per_second(of.ios)),
        format_bytes(per_second(of.bytes) as u64),
        of.latency.mean_ns().map_or("-".to_owned(), duration),
        time(of.latency.percentile(0.5)),
        time(of.latency.percentile(0.95)),
        time(of.latency.percentile(0.99)),
        time(of.latency.percentile(0.999)),
        time(of.latency.percentile(0.9999)),
        time(of.latency.max_ns()),
        of.errors.to_string(),
    ]
}

/// Nanoseconds with three digits: `1.23 us`, `45.6 ms`, `2.01 s`.
fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A run as JSON: figures that people look for, findings, and where the raw histograms are.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    name: &'a str,
    stages: Vec<StageSummary<'a>>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    expectations: &'a [measured::Expected],
    /// The file with raw histograms.
    kept: Option<String>,
}

#[derive(Debug, Serialize)]
struct StageSummary<'a> {
    name: &'a str,
    repeat: u32,
    seconds: f64,
    outstanding: u64,
    iops: f64,
    bytes_per_second: f64,
    cpu_us_per_io: Option<f64>,
    ended: &'a measured::Ended,
    groups: Vec<GroupSummary<'a>>,
    stalls: &'a [measured::Stall],
    findings: Vec<measured::Finding>,
}

#[derive(Debug, Serialize)]
struct GroupSummary<'a> {
    name: &'a str,
    vm: Option<&'a str>,
    outstanding: u64,
    iops: f64,
    bytes_per_second: f64,
    backlog_max: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<measured::Verified>,
    read: Figures,
    write: Figures,
    trim: Figures,
}

#[derive(Debug, Serialize)]
struct Figures {
    ios: u64,
    iops: f64,
    bytes: u64,
    errors: u64,
    latency_mean_us: Option<f64>,
    latency_p50_us: Option<f64>,
    latency_p90_us: Option<f64>,
    latency_p95_us: Option<f64>,
    latency_p99_us: Option<f64>,
    latency_p999_us: Option<f64>,
    latency_p9999_us: Option<f64>,
    latency_max_us: Option<f64>,
    service_p999_us: Option<f64>,
}

impl Figures {
    fn of(measured: &Measured, seconds: f64) -> Figures {
        let latency = &measured.latency;
        let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
        Figures {
            ios: measured.ios,
            iops: if seconds > 0.0 { measured.ios as f64 / seconds } else { 0.0 },
            bytes: measured.bytes,
            errors: measured.errors,
            latency_mean_us: latency.mean_ns().map(|ns| ns / 1e3),
            latency_p50_us: us(latency.percentile(0.5)),
            latency_p90_us: us(latency.percentile(0.9)),
            latency_p95_us: us(latency.percentile(0.95)),
            latency_p99_us: us(latency.percentile(0.99)),
            latency_p999_us: us(latency.percentile(0.999)),
            latency_p9999_us: us(latency.percentile(0.9999)),
            latency_max_us: us(latency.max_ns()),
            service_p999_us: us(measured.service.as_ref().and_then(|service| service.percentile(0.999))),
        }
    }
}

/// A run as JSON.
pub fn summary(run: &Run, kept: Option<String>) -> Summary<'_> {
    let group = |group: &'_ GroupRun| -> (u64, f64, f64, f64) {
        (group.outstanding, group.iops(), group.bytes_per_second(), group.backlog_max)
    };
    let stages = run.stages.iter().map(|stage| StageSummary {
        name: &run.plan.stages[stage.stage].name,
        repeat: stage.repeat,
        seconds: stage.seconds,
        outstanding: stage.outstanding(),
        iops: stage.iops(),
        bytes_per_second: stage.bytes_per_second(),
        cpu_us_per_io: stage.cpu_us_per_io(),
        ended: &stage.ended,
        groups: stage
            .groups
            .iter()
            .map(|of| {
                let (outstanding, iops, bytes_per_second, backlog_max) = group(of);
                let [read, write, trim] =
                    [0, 1, 2].map(|index| Figures::of(&of.operations[index], of.seconds));
                let (name, vm) = (of.name.as_str(), of.vm.as_deref());
                GroupSummary {
                    name,
                    vm,
                    outstanding,
                    iops,
                    bytes_per_second,
                    backlog_max,
                    verified: of.verified,
                    read,
                    write,
                    trim,
                }
            })
            .collect(),
        stalls: &stage.stalls,
        findings: stage.findings(),
    });
    Summary {
        name: &run.plan.name,
        stages: stages.collect(),
        notes: &run.notes,
        expectations: &run.expectations,
        kept,
    }
}
