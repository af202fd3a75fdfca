//! A report as JSON: figures, findings and conclusions for other programs; the raw histograms are in the bundle.
//!
//! The form is stable: fields may be added, none changes its meaning without a higher `report_version`. Times are seconds unless
//! the name says ns or us, rates are per second, what was not measured is `null`.

use crate::chart::experiment::comparisons;
use crate::figures::per_second;
use crate::report::{NamedExperiment, Report, Section, stage_name};
use measured::{Compared, Conclusion, GroupRun, Measured, Run, StageRun};
use serde::Serialize;

/// The version of [`json`]'s form.
pub const REPORT_VERSION: u32 = 1;

/// The report as JSON:
///
/// ```text
/// { report_version, title, program,
///   runs: [{ name, program, started_unix_ms, targets, machines, notes, system: { series, events, notes },
///            stages: [{ name, repeat, seconds, outstanding, ended, cpu_us_per_io, all, groups, stalls, findings }] }],
///   experiments: [{ name, about, started_unix_ms, cells: [{ workload, parameters, side, outstanding, vms, runs: [run's index] }],
///                   comparisons, conclusions, expectations, notes }],
///   sections: [{ title, lines }] }
/// ```
///
/// where `all` and the `read`, `write`, `trim` of each group are figures:
/// `{ ios, iops, bytes, bytes_per_s, errors, latency_ns: { count, min, mean, p50, p90, p95, p99, p999, p9999, max } }`.
pub fn json(report: &Report) -> String {
    serde_json::to_string_pretty(&document(report)).expect("figures are plain data")
}

#[derive(Serialize)]
struct Document<'a> {
    report_version: u32,
    title: &'a str,
    program: &'a str,
    runs: Vec<RunDocument<'a>>,
    experiments: Vec<ExperimentDocument<'a>>,
    sections: &'a [Section],
}

#[derive(Serialize)]
struct RunDocument<'a> {
    name: String,
    program: &'a str,
    started_unix_ms: u64,
    targets: &'a [measured::TargetFacts],
    machines: &'a [measured::Machine],
    notes: Vec<String>,
    #[serde(skip_serializing_if = "measured::System::is_empty")]
    system: &'a measured::System,
    stages: Vec<StageDocument<'a>>,
}

#[derive(Serialize)]
struct StageDocument<'a> {
    name: String,
    repeat: u32,
    seconds: f64,
    outstanding: u64,
    ended: &'a measured::Ended,
    cpu_us_per_io: Option<f64>,
    all: Figures,
    groups: Vec<GroupDocument<'a>>,
    stalls: &'a [measured::Stall],
    findings: Vec<measured::Finding>,
}

#[derive(Serialize)]
struct GroupDocument<'a> {
    name: &'a str,
    vm: Option<&'a str>,
    seconds: f64,
    outstanding: u64,
    backlog_max: f64,
    verified: Option<measured::Verified>,
    read: Option<Figures>,
    write: Option<Figures>,
    trim: Option<Figures>,
}

#[derive(Serialize)]
struct Figures {
    ios: u64,
    iops: f64,
    bytes: u64,
    bytes_per_s: f64,
    errors: u64,
    latency_ns: Latency,
}

#[derive(Serialize)]
struct Latency {
    count: u64,
    min: Option<u64>,
    mean: Option<f64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    p9999: Option<u64>,
    max: Option<u64>,
}

#[derive(Serialize)]
struct ExperimentDocument<'a> {
    name: &'a str,
    about: &'a str,
    program: &'a str,
    started_unix_ms: u64,
    cells: Vec<CellDocument<'a>>,
    comparisons: Vec<ComparedDocument<'a>>,
    conclusions: &'a [measured::Conclusion],
    expectations: &'a [measured::Expected],
    notes: &'a [String],
}

#[derive(Serialize)]
struct CellDocument<'a> {
    workload: &'a str,
    parameters: &'a std::collections::BTreeMap<String, String>,
    side: Option<&'a str>,
    outstanding: u64,
    vms: u64,
    runs: Vec<usize>,
}

#[derive(Serialize)]
struct ComparedDocument<'a> {
    about: &'a str,
    figure: &'static str,
    verdict: String,
    comparison: &'a statistics::compare::Comparison,
}

fn document<'a>(report: &'a Report<'a>) -> Document<'a> {
    let runs = report.all_runs().into_iter().map(|(name, run)| run_document(name, run)).collect();
    // Runs of experiments come after those of their own, in the order of cells.
    let mut next = report.runs.len();
    let experiments = report.experiments.iter().map(|named| experiment_document(named, &mut next)).collect();
    Document {
        report_version: REPORT_VERSION,
        title: &report.title,
        program: &report.program,
        runs,
        experiments,
        sections: &report.sections,
    }
}

fn run_document(name: String, run: &Run) -> RunDocument<'_> {
    let notes = run.notes.iter().cloned().chain(run.plan.notes.iter().map(|note| note.to_string())).collect();
    RunDocument {
        name,
        program: &run.program,
        started_unix_ms: run.started_unix_ms,
        targets: &run.targets,
        machines: &run.machines,
        notes,
        system: &run.system,
        stages: run.stages.iter().map(|stage| stage_document(run, stage)).collect(),
    }
}

fn stage_document<'a>(run: &Run, stage: &'a StageRun) -> StageDocument<'a> {
    StageDocument {
        name: stage_name(run, stage),
        repeat: stage.repeat,
        seconds: stage.seconds,
        outstanding: stage.outstanding(),
        ended: &stage.ended,
        cpu_us_per_io: stage.cpu_us_per_io(),
        all: Figures::of(&stage.total(), stage.iops(), stage.bytes_per_second()),
        groups: stage.groups.iter().map(group_document).collect(),
        stalls: &stage.stalls,
        findings: stage.findings(),
    }
}

fn group_document(group: &GroupRun) -> GroupDocument<'_> {
    let [read, write, trim] = [0, 1, 2].map(|index: usize| {
        let of = &group.operations[index];
        let figures =
            || Figures::of(of, per_second(of.ios, group.seconds), per_second(of.bytes, group.seconds));
        (of.ios + of.errors > 0).then(figures)
    });
    GroupDocument {
        name: &group.name,
        vm: group.vm.as_deref(),
        seconds: group.seconds,
        outstanding: group.outstanding,
        backlog_max: group.backlog_max,
        verified: group.verified,
        read,
        write,
        trim,
    }
}

impl Figures {
    fn of(measured: &Measured, iops: f64, bytes_per_s: f64) -> Figures {
        let of = &measured.latency;
        Figures {
            ios: measured.ios,
            iops,
            bytes: measured.bytes,
            bytes_per_s,
            errors: measured.errors,
            latency_ns: Latency {
                count: of.count(),
                min: of.min_ns(),
                mean: of.mean_ns(),
                p50: of.percentile(0.5),
                p90: of.percentile(0.9),
                p95: of.percentile(0.95),
                p99: of.percentile(0.99),
                p999: of.percentile(0.999),
                p9999: of.percentile(0.9999),
                max: of.max_ns(),
            },
        }
    }
}

fn experiment_document<'a>(named: &NamedExperiment<'a>, next: &mut usize) -> ExperimentDocument<'a> {
    let experiment = named.experiment;
    let cells = experiment.cells.iter().map(|cell| {
        let first = *next;
        *next += cell.runs.len();
        CellDocument {
            workload: &cell.workload,
            parameters: &cell.parameters,
            side: cell.side.as_deref(),
            outstanding: cell.outstanding,
            vms: cell.vms,
            runs: (first..*next).collect(),
        }
    });
    let compared = |(conclusion, of): (&'a Conclusion, &'a Compared)| ComparedDocument {
        verdict: of.comparison.verdict.sentence("A", "B"),
        about: &conclusion.about,
        figure: of.figure.name(),
        comparison: &of.comparison,
    };
    ExperimentDocument {
        name: named.name,
        about: &experiment.about,
        program: &experiment.program,
        started_unix_ms: experiment.started_unix_ms,
        cells: cells.collect(),
        comparisons: comparisons(experiment).into_iter().map(compared).collect(),
        conclusions: &experiment.conclusions,
        expectations: &experiment.expectations,
        notes: &experiment.notes,
    }
}
