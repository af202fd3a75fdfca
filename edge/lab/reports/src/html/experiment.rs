//! An experiment: cells, comparisons, charts over all of them.

use super::figures::figure_cells;
use super::page::Page;
use super::write::{Cell, Severity, table};
use crate::FIGURE_ROWS_MAX;
use crate::chart::experiment::{charts, comparisons, own_labels};
use crate::figures::{PERCENTILES, Row, group_total, total};
use crate::report::NamedExperiment;
use measured::{Compared, Conclusion};
use statistics::compare::Outcome;
use statistics::words;

/// Rows of a table that stands open; longer ones are folded, for charts say the same.
const OPEN_ROWS_MAX: usize = 40;

/// The section of one experiment.
pub fn write(page: &mut Page, named: &NamedExperiment) {
    page.section(&format!("Experiment: {}", named.name));
    compared(page, &comparisons(named.experiment));
    page.charts(charts(named.experiment));
    cells(page, named);
}

fn compared(page: &mut Page, all: &[(&Conclusion, &Compared)]) {
    if all.is_empty() {
        return;
    }
    page.heading("B against A");
    let rows: Vec<Vec<Cell>> =
        all.iter().take(FIGURE_ROWS_MAX).map(|(about, of)| compared_row(&about.about, of)).collect();
    let head = ["Workload", "figure", "A", "B", "change", "from", "to (95 %)", "B is"];
    page.raw(&table(&head, &rows));
    page.paragraph(
        "A and B are means over runs. The change is the ratio of their geometric means, with Welch's interval on logarithms. \
         Verdicts are corrected for the number of comparisons (Benjamini and Hochberg).",
    );
}

fn compared_row(about: &str, of: &Compared) -> Vec<Cell> {
    let change = of.comparison.change;
    let percent = |share: Option<f64>| Cell::Figure(share.map_or("-".to_owned(), words::percent));
    let show = |value: f64| Cell::Figure(of.figure.show(value));
    let outcome = of.comparison.verdict.outcome();
    let severity = match outcome {
        Outcome::Faster | Outcome::NoDifference => Severity::Good,
        Outcome::Slower => Severity::Serious,
        Outcome::CannotTell => Severity::Note,
    };
    vec![
        Cell::Words(about.to_owned()),
        Cell::Words(of.figure.name().to_owned()),
        show(of.comparison.a.mean),
        show(of.comparison.b.mean),
        percent(change.map(|change| change.estimate)),
        percent(change.map(|change| change.low)),
        percent(change.map(|change| change.high)),
        Cell::Tag(outcome.word(), severity),
    ]
}

/// Groups of a run that have rows of their own.
const GROUPS_SHOWN_MAX: usize = 16;

/// Every run of every cell; where several groups ran, each below it. Columns that say the same of all are left out.
fn cells(page: &mut Page, named: &NamedExperiment) {
    let cells = &named.experiment.cells;
    let repeated = cells.iter().any(|cell| cell.runs.len() > 1);
    let scaled = cells.windows(2).any(|pair| pair[0].vms != pair[1].vms);
    let mut head = vec!["Cell"];
    head.extend(repeated.then_some("run"));
    head.extend(scaled.then_some("VMs"));
    head.extend(["out\u{ad}standing", "IOPS", "MiB/s", "mean"]);
    head.extend(PERCENTILES.iter().map(|(_, name)| *name));
    head.extend(["max", "errors", "CPU/IO"]);
    let row = |name: String, [number, vms, cpu]: [String; 3], of: &Row| {
        let mut row = vec![Cell::Words(name)];
        row.extend(repeated.then_some(Cell::Figure(number)));
        row.extend(scaled.then_some(Cell::Figure(vms)));
        row.push(Cell::Figure(of.outstanding.to_string()));
        row.extend(figure_cells(of));
        row.push(Cell::Figure(cpu));
        row
    };
    let mut rows = Vec::new();
    for (cell, label) in cells.iter().zip(own_labels(cells)) {
        for (index, run) in cell.runs.iter().enumerate() {
            let Some(stage) = run.stages.first() else { continue };
            let cpu = stage.cpu_us_per_io().map_or("-".to_owned(), |us| format!("{us:.1} µs"));
            let own = [(index + 1).to_string(), cell.vms.to_string(), cpu];
            rows.push(row(label.clone(), own, &total(stage)));
            if (2..=GROUPS_SHOWN_MAX).contains(&stage.groups.len()) {
                let groups = stage.groups.iter();
                rows.extend(groups.map(|group| {
                    row(format!("\u{2003}{}", group.name), <[String; 3]>::default(), &group_total(group))
                }));
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.heading("Figures of every run");
    let rest = rows.len().saturating_sub(FIGURE_ROWS_MAX);
    rows.truncate(FIGURE_ROWS_MAX);
    let table = table(&head, &rows);
    match rows.len() > OPEN_ROWS_MAX {
        true => {
            let count = rows.len();
            page.raw(&format!(
                "<details><summary>{}</summary>\n{table}</details>\n",
                words::counted(count, "row")
            ));
        }
        false => page.raw(&table),
    }
    if rest > 0 {
        page.paragraph(&format!(
            "Not shown: {}. The tables as CSV have all rows.",
            words::counted(rest, "row")
        ));
    }
}
