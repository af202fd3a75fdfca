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

use crate::report::Report;
use page::Page;

/// The report as one file of its own. Its size is bounded by this crate's limits: about 2 MB and what is measured, below 10 MB.
pub fn html(report: &Report) -> String {
    let mut page = Page::new(report);
    conclusions::write(&mut page, report);
    figures::write(&mut page, report);
    for named in &report.experiments {
        experiment::write(&mut page, named);
    }
    charts::write_runs(&mut page, report);
    charts::write_captures(&mut page, report);
    method::write(&mut page, report);
    page.finish()
}
