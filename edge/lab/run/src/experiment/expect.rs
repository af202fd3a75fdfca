//! Whether an experiment shows what it must.

use super::model::{Expect, Figure};
use measured::{Cell, Expected, Run};
use statistics::{fairness, words};

/// Judges every expectation on every cell that it is about.
pub fn judge_all(expectations: &[Expect], cells: &[Cell]) -> Vec<Expected> {
    let mut judged = Vec::new();
    for expect in expectations {
        let about: Vec<&Cell> = cells.iter().filter(|cell| is_about(expect, cell)).collect();
        if about.is_empty() {
            judged.push(Expected {
                text: format!("{}: no such cell was measured", in_words(expect)),
                measured: None,
                holds: false,
            });
        }
        judged.extend(about.into_iter().map(|cell| judge_cell(expect, cell)));
    }
    judged
}

fn is_about(expect: &Expect, cell: &Cell) -> bool {
    let workload = expect.workload.as_ref().is_none_or(|name| *name == cell.workload);
    let matches = |(name, value): (&String, &toml::Value)| {
        let wanted = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        cell.parameters.get(name).is_some_and(|found| *found == wanted)
    };
    workload && expect.parameters.iter().all(matches)
}

fn judge_cell(expect: &Expect, cell: &Cell) -> Expected {
    let mean = cell_figure(cell, expect.figure);
    let slack = expect.tolerance / 100.0;
    let holds = mean.is_some_and(|mean| {
        expect.at_least.is_none_or(|least| mean >= least * (1.0 - slack))
            && expect.at_most.is_none_or(|most| mean <= most * (1.0 + slack))
            && expect.equals.is_none_or(|equals| (mean - equals).abs() <= equals * slack)
    });
    let found =
        mean.map_or("nothing was measured".to_owned(), |mean| format!("it is {}", words::number(mean)));
    Expected { text: format!("{} of {}: {found}", in_words(expect), cell.label()), measured: mean, holds }
}

fn in_words(expect: &Expect) -> String {
    let mut parts = Vec::new();
    if let Some(least) = expect.at_least {
        parts.push(format!("at least {}", words::number(least)));
    }
    if let Some(most) = expect.at_most {
        parts.push(format!("at most {}", words::number(most)));
    }
    if let Some(equals) = expect.equals {
        parts.push(format!("{} (within {} %)", words::number(equals), words::number(expect.tolerance)));
    }
    format!("{} {}", expect.figure.name(), parts.join(" and "))
}

/// A figure of all runs of a cell together; nothing if no run has it. Rates are averaged. Latencies are those of all I/Os of all runs:
/// their histograms are merged, for percentiles are not to be averaged.
pub fn cell_figure(cell: &Cell, of: Figure) -> Option<f64> {
    let latency = |share: Option<f64>| match share {
        Some(share) => cell_percentile(cell, share).map(|seconds| seconds * 1e3),
        None => cell.latency().mean_ns().map(|ns| ns / 1e6),
    };
    match of {
        Figure::MeanMs => latency(None),
        Figure::P50Ms => latency(Some(0.5)),
        Figure::P99Ms => latency(Some(0.99)),
        Figure::P999Ms => latency(Some(0.999)),
        Figure::Iops | Figure::MibPerSecond | Figure::CpuUsPerIo | Figure::Errors | Figure::Fairness => {
            let values = cell.figures(|run| figure(run, of));
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        }
    }
}

/// The percentile (0..=1) of all runs of a cell together, in seconds.
pub fn cell_percentile(cell: &Cell, share: f64) -> Option<f64> {
    cell.latency().percentile(share).map(|ns| ns as f64 / 1e9)
}

/// A figure of a run, all its stages together; nothing if it has no such figure.
pub fn figure(run: &Run, figure: Figure) -> Option<f64> {
    let stage = run.stages.first()?;
    let total = stage.total();
    let percentile = |p: f64| total.latency.percentile(p).map(|ns| ns as f64 / 1e6);
    match figure {
        Figure::Iops => Some(stage.iops()),
        Figure::MibPerSecond => Some(stage.bytes_per_second() / (1 << 20) as f64),
        Figure::MeanMs => total.latency.mean_ns().map(|ns| ns / 1e6),
        Figure::P50Ms => percentile(0.5),
        Figure::P99Ms => percentile(0.99),
        Figure::P999Ms => percentile(0.999),
        Figure::CpuUsPerIo => stage.cpu_us_per_io(),
        Figure::Errors => Some(total.errors as f64),
        Figure::Fairness => {
            let each: Vec<f64> = stage.groups.iter().map(measured::GroupRun::iops).collect();
            fairness::fairness(&each).map(|of| of.jain)
        }
    }
}
