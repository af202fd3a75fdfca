//! An experiment: cells, comparisons, charts over all of them.

use super::figures::figure_cells;
use super::page::Page;
use super::write::{Cell, Severity, table};
use crate::FIGURE_ROWS_MAX;
use crate::chart::experiment::{Compared, charts, comparisons, verdict};
use crate::figures::{PERCENTILES, Row, group_total, total};
use crate::report::NamedExperiment;
use statistics::compare::Verdict;
use statistics::words;

/// The section of one experiment.
pub fn write(page: &mut Page, named: &NamedExperiment) {
    page.section(&format!("Experiment: {}", named.name));
    compared(page, &comparisons(named.experiment));
    page.charts(charts(named.experiment));
    cells(page, named);
}

fn compared(page: &mut Page, all: &[Compared]) {
    if all.is_empty() {
        return;
    }
    page.heading("B against A");
    let rows: Vec<Vec<Cell>> = (all.iter())
        .take(FIGURE_ROWS_MAX)
        .map(|of| {
            let change = of.comparison.change;
            let percent = |share: Option<f64>| share.map_or("–".to_owned(), words::percent);
            let (word, severity) = match of.comparison.verdict {
                Verdict::Faster { .. } => ("faster", Severity::Good),
                Verdict::Slower { .. } => ("slower", Severity::Serious),
                Verdict::NoDifference { .. } => ("no difference", Severity::Good),
                Verdict::CannotTell { .. } | Verdict::OneRun => ("cannot tell", Severity::Note),
            };
            vec![
                Cell::Words(of.about.clone()),
                Cell::Words(of.figure.to_owned()),
                Cell::Figure(words::number(of.comparison.a.mean)),
                Cell::Figure(words::number(of.comparison.b.mean)),
                Cell::Figure(percent(change.map(|change| change.estimate))),
                Cell::Figure(percent(change.map(|change| change.low))),
                Cell::Figure(percent(change.map(|change| change.high))),
                Cell::Tag(word, severity),
                Cell::Words(verdict(of)),
            ]
        })
        .collect();
    let head = ["Workload", "figure", "A", "B", "change", "from", "to (95 %)", "B is", ""];
    page.raw(&table(&head, &rows));
    page.paragraph("Latencies in ms. The change is the ratio of means over runs; the interval is Welch's, on logarithms.");
}

/// Groups of a run that have rows of their own.
const GROUPS_SHOWN_MAX: usize = 16;

/// Every run of every cell; where several groups ran, each below it.
fn cells(page: &mut Page, named: &NamedExperiment) {
    let mut rows = Vec::new();
    for cell in &named.experiment.cells {
        for (index, run) in cell.runs.iter().enumerate() {
            let Some(stage) = run.stages.first() else { continue };
            let cpu = stage.cpu_us_per_io().map_or("–".to_owned(), |us| format!("{us:.1} µs"));
            let (number, vms) = ((index + 1).to_string(), cell.vms.to_string());
            rows.push(row(cell.label(), number, vms, &total(stage), cpu));
            if (2..=GROUPS_SHOWN_MAX).contains(&stage.groups.len()) {
                let groups = stage.groups.iter().map(|group| {
                    row(
                        format!("\u{2003}{}", group.name),
                        String::new(),
                        String::new(),
                        &group_total(group),
                        String::new(),
                    )
                });
                rows.extend(groups);
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.heading("Figures of every run");
    let mut head = vec!["Cell", "run", "VMs", "out\u{ad}standing", "IOPS", "MiB/s", "mean"];
    head.extend(PERCENTILES.iter().map(|(_, name)| *name));
    head.extend(["max", "errors", "CPU/IO"]);
    let rest = rows.len().saturating_sub(FIGURE_ROWS_MAX);
    rows.truncate(FIGURE_ROWS_MAX);
    page.raw(&table(&head, &rows));
    if rest > 0 {
        page.paragraph(&format!("{rest} further rows are left out: the tables as CSV have them all."));
    }
}

fn row(name: String, number: String, vms: String, of: &Row, cpu: String) -> Vec<Cell> {
    let mut row = vec![
        Cell::Words(name),
        Cell::Figure(number),
        Cell::Figure(vms),
        Cell::Figure(of.outstanding.to_string()),
    ];
    row.extend(figure_cells(of));
    row.push(Cell::Figure(cpu));
    row
}
