//! Tables of figures: every stage and group.

use super::page::Page;
use super::write::{Cell, table};
use crate::FIGURE_ROWS_MAX;
use crate::figures::{PERCENTILES, Row, duration, means_something, mebibytes, rows};
use crate::report::{Report, stage_name};
use statistics::words;

/// Why a percentile is grey.
const FEW: &str = "unreliable: fewer than 10 I/Os lie beyond it";

/// The figures of all runs that belong to no experiment; those of experiments stand with their cells.
pub fn write(page: &mut Page, report: &Report) {
    if report.runs.is_empty() {
        return;
    }
    page.section("Figures");
    let mut left = FIGURE_ROWS_MAX;
    for named in &report.runs {
        if report.runs.len() > 1 {
            page.heading(named.name);
        }
        for stage in &named.run.stages {
            let of_stage = rows(stage);
            if of_stage.len() > left {
                page.paragraph("Further rows are not shown. The tables as CSV have all rows.");
                return;
            }
            left -= of_stage.len();
            page.raw(&format!("<h4>{}</h4>\n", super::write::escaped(&stage_name(named.run, stage))));
            page.paragraph(&format!(
                "{:.1} s, {}, generator CPU time per I/O {}",
                stage.seconds,
                words::counted(stage.outstanding(), "outstanding I/O"),
                stage.cpu_us_per_io().map_or("-".to_owned(), |us| duration(us * 1e3)),
            ));
            page.raw(&figures_table(&of_stage));
        }
    }
    page.paragraph(
        "Latency counts from when an I/O was due to its completion. A grey percentile has fewer than 10 I/Os beyond it.",
    );
}

/// Rows with the usual columns.
pub fn figures_table(of: &[Row]) -> String {
    let mut head = vec!["Group", "operation", "IOPS", "MiB/s", "mean"];
    head.extend(PERCENTILES.iter().map(|(_, name)| *name));
    head.extend(["max", "errors"]);
    let cells: Vec<Vec<Cell>> = of.iter().map(row_cells).collect();
    table(&head, &cells)
}

fn row_cells(row: &Row) -> Vec<Cell> {
    let mut cells = vec![Cell::Words(row.group.clone()), Cell::Words(row.operation.to_owned())];
    cells.extend(figure_cells(row));
    cells
}

/// IOPS, MiB/s, mean, percentiles, max, errors.
pub fn figure_cells(row: &Row) -> Vec<Cell> {
    let latency = &row.measured.latency;
    let time = |ns: Option<f64>| ns.map_or("-".to_owned(), duration);
    let mut cells = vec![
        Cell::Figure(words::rate(row.iops)),
        Cell::Figure(mebibytes(row.bytes_per_second)),
        Cell::Figure(time(latency.mean_ns())),
    ];
    for (share, _) in PERCENTILES {
        let text = time(latency.percentile(share).map(|ns| ns as f64));
        let weak = latency.count() > 0 && !means_something(latency, share);
        cells.push(if weak { Cell::Weak(text, FEW) } else { Cell::Figure(text) });
    }
    cells.push(Cell::Figure(time(latency.max_ns().map(|ns| ns as f64))));
    cells.push(Cell::Figure(row.measured.errors.to_string()));
    cells
}
