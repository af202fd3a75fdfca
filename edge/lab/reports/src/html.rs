//! One HTML file: conclusions first, then figures, charts, and how it was measured.
//!
//! Everything stands in the file: style, script, the drawing library (assets/README.md), data. A policy in its head forbids the
//! browser every connection. Text and tables are complete without the script; the script draws.

mod charts;
mod conclusions;
mod experiment;
mod figures;
mod method;
mod page;
mod write;

use crate::report::{NamedExperiment, NamedRun, Report, short_names};
use page::Page;

/// The report as one file of its own. Its size is bounded by this crate's limits: about 2 MB and what is measured, below 10 MB.
pub fn html(report: &Report) -> String {
    let run_names = short_names(report.runs.iter().map(|named| named.name));
    let experiment_names = short_names(report.experiments.iter().map(|named| named.name));
    let runs = report.runs.iter().zip(&run_names).map(|(named, name)| NamedRun { name, run: named.run });
    let experiments = (report.experiments.iter().zip(&experiment_names))
        .map(|(named, name)| NamedExperiment { name, experiment: named.experiment });
    let called = Report {
        runs: runs.collect(),
        experiments: experiments.collect(),
        title: report.title.clone(),
        program: report.program.clone(),
        captures: report.captures.clone(),
        sections: report.sections.clone(),
    };
    write(&called)
}

fn write(report: &Report) -> String {
    let mut page = Page::new(report);
    conclusions::write(&mut page, report);
    figures::write(&mut page, report);
    for named in &report.experiments {
        experiment::write(&mut page, named);
    }
    let captures = charts::captures(report);
    // Disks beside one another are what such a report is about: their surfaces come before the course of time of each run.
    let several = captures.iter().any(|capture| capture.disks.len() > 1);
    if several {
        charts::write_captures(&mut page, captures);
        charts::write_runs(&mut page, report);
    } else {
        charts::write_runs(&mut page, report);
        charts::write_captures(&mut page, captures);
    }
    method::write(&mut page, report);
    page.finish()
}
