//! Charts on the page: a place for the script to draw in, and the data as a table behind each.

use super::page::Page;
use super::write::{Cell, escaped, table};
use crate::chart::{
    Axis, Chart, Heat, Lines, Scale, Shape, Surfaces, View, distribution, surfaces, system, time,
};
use crate::figures::duration;
use crate::report::{Report, place};
use crate::{CAPTURES_DRAWN_MAX, CHART_TABLE_ROWS_MAX, STAGES_DRAWN_MAX};
use lens::Capture;
use measured::{Run, StageRun};
use statistics::words;
use std::fmt::Write;

/// Stages that are all open; of more, the first is.
const OPEN_MAX: usize = 3;

/// The charts of every stage. Of an experiment's cells, all runs are drawn as lines of two charts, and the first by all its charts.
/// Of many stages the first is open, and the others are folded: nobody reads forty pages.
pub fn write_runs(page: &mut Page, report: &Report) {
    let mut stages: Vec<(String, Vec<Chart>)> = Vec::new();
    let mut rest = 0;
    for (name, run, repeats) in &runs_drawn(report) {
        for stage in &run.stages {
            if stages.len() == STAGES_DRAWN_MAX {
                rest += 1;
                continue;
            }
            let all: Vec<&StageRun> = (repeats.iter())
                .filter_map(|run| run.stages.iter().find(|of| of.stage == stage.stage))
                .collect();
            let mut charts = time::repeats(&all);
            let seen = run.system_of(stage);
            charts
                .extend(time::charts(stage).into_iter().map(|chart| chart.with_marks(system::marks(&seen))));
            charts.extend(system::charts(&seen));
            charts.extend(distribution::charts(stage));
            if !charts.is_empty() {
                stages.push((place(name, run, stage), charts));
            }
        }
    }
    if stages.is_empty() {
        return;
    }
    page.section("Over time");
    let is_open = |index: usize, count: usize| index == 0 || count <= OPEN_MAX;
    let count = stages.len();
    for (index, (name, charts)) in stages.into_iter().enumerate() {
        match is_open(index, count) {
            true => {
                page.heading(&name);
                page.charts(charts);
            }
            false => page.folded_charts(&name, charts),
        }
    }
    if rest > 0 {
        page.paragraph(&format!(
            "Not drawn: {}. The tables above and as CSV have the figures.",
            words::counted(rest, "stage")
        ));
    }
}

/// Runs of their own, and the first of every cell with all runs of the cell. A lone cell goes by its experiment.
fn runs_drawn<'a>(report: &Report<'a>) -> Vec<(String, &'a Run, &'a [Run])> {
    let own = report.runs.iter().map(|named| (named.name.to_owned(), named.run, &[][..]));
    let of_experiments = report.experiments.iter().flat_map(|named| {
        let cells = &named.experiment.cells;
        cells.iter().filter_map(move |cell| {
            let name = if cells.len() == 1 { named.name.to_owned() } else { cell.label() };
            let count = cell.runs.len();
            let which = if count > 1 { format!(", run 1 of {count}") } else { String::new() };
            Some((format!("{name}{which}"), cell.runs.first()?, &cell.runs[..]))
        })
    });
    own.chain(of_experiments).collect()
}

/// What disks saw: captures that were given, then those of the runs; those of several disks, which tell most, come first.
pub fn captures(report: &Report) -> Vec<Capture> {
    let mut captures: Vec<Capture> = report.captures.clone();
    for (name, run, _) in runs_drawn(report) {
        for stage in run.stages.iter().filter(|stage| !stage.disks.is_empty()) {
            captures.push(surfaces::capture_of(place(&name, run, stage), run, stage));
        }
    }
    captures.retain(|capture| capture.disks.iter().any(|disk| !disk.windows.is_empty()));
    captures.sort_by_key(|capture| std::cmp::Reverse(capture.disks.len().min(2)));
    captures
}

/// The surfaces of captures; the first is open.
pub fn write_captures(page: &mut Page, mut captures: Vec<Capture>) {
    let rest = captures.len().saturating_sub(CAPTURES_DRAWN_MAX);
    captures.truncate(CAPTURES_DRAWN_MAX);
    let disks: usize = captures.iter().map(|capture| capture.disks.len().min(crate::DISKS_DRAWN_MAX)).sum();
    let columns = surfaces::columns_of(disks);
    let mut charts = captures.iter().filter_map(|capture| surfaces::chart(capture, columns));
    let Some(first) = charts.next() else { return };
    page.section("Disk histograms over time");
    page.paragraph(
        "Size, seek distance, outstanding I/Os, interarrival time and latency of each disk's I/Os over time, counted at the disk as \
         vscsiStats does.",
    );
    page.charts(vec![first]);
    for chart in charts {
        page.folded_charts(&chart.title.clone(), vec![chart]);
    }
    if rest > 0 {
        page.paragraph(&format!("Not drawn: {}.", words::counted(rest, "capture")));
    }
}

/// A chart's place, caption and table.
pub fn figure(chart: &Chart, index: usize) -> String {
    let (class, body) = match &chart.shape {
        Shape::Lines(lines) if !lines.y.names.is_empty() => ("chart wide", lines_table(lines)),
        Shape::Lines(lines) => ("chart", lines_table(lines)),
        Shape::Heat(heat) => ("chart", heat_table(heat)),
        Shape::Surfaces(surfaces) => ("chart wide", surfaces_tables(surfaces)),
    };
    let title = escaped(&chart.title);
    format!(
        "<figure class=\"{class}\"><h4>{title}</h4>\n<div class=\"plot\" data-chart=\"{index}\" role=\"group\" tabindex=\"0\" \
         aria-label=\"{title}\" aria-describedby=\"c{index}\"><noscript><p class=\"quiet\">Charts need scripts; the table below has the figures.</p></noscript>\
         </div>\n<p class=\"spoken\" aria-live=\"polite\"></p>\n<figcaption id=\"c{index}\">{}</figcaption>\n\
         <details><summary>As a table</summary>\n<p><button type=\"button\" class=\"download\" data-download=\"{index}\">\
         Download all points as CSV</button></p>\n{body}</details></figure>\n",
        escaped(&chart.caption)
    )
}

fn number(axis: &Axis, value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match axis.scale {
        _ if !axis.names.is_empty() => {
            axis.names.get(value as usize).cloned().unwrap_or_else(|| words::number(value))
        }
        Scale::LogTime => duration(value),
        Scale::LogShare => words::percent(value),
        Scale::Ratio => words::percent(value - 1.0),
        Scale::Linear | Scale::Log2 => words::number(value),
    }
}

/// Every n-th so that few enough remain, and what to say of it.
fn thinned(count: usize) -> (usize, String) {
    let step = count.div_ceil(CHART_TABLE_ROWS_MAX).max(1);
    let said = if step > 1 { format!("<p class=\"quiet\">1 of {step} points.</p>\n") } else { String::new() };
    (step, said)
}

fn lines_table(lines: &Lines) -> String {
    // Lines over the same positions are columns of one table; others are below one another.
    let shared = lines.series.windows(2).all(|pair| pair[0].x == pair[1].x);
    let title = if lines.x.title.is_empty() { "position" } else { &lines.x.title };
    if let (true, Some(first)) = (shared, lines.series.first()) {
        let (step, said) = thinned(first.x.0.len());
        let head: Vec<&str> =
            [title].into_iter().chain(lines.series.iter().map(|series| series.name.as_str())).collect();
        let rows: Vec<Vec<Cell>> = (0..first.x.0.len())
            .step_by(step)
            .map(|at| {
                let figures = lines.series.iter().map(|series| {
                    Cell::Figure(series.y.0.get(at).map_or("-".to_owned(), |&value| number(&lines.y, value)))
                });
                [Cell::Words(number(&lines.x, first.x.0[at]))].into_iter().chain(figures).collect()
            })
            .collect();
        return said + &table(&head, &rows);
    }
    let points: usize = lines.series.iter().map(|series| series.x.0.len()).sum();
    let (step, said) = thinned(points / lines.series.len().max(1));
    let rows: Vec<Vec<Cell>> = (lines.series.iter())
        .flat_map(|series| {
            series.x.0.iter().zip(&series.y.0).step_by(step).map(|(&x, &y)| {
                vec![
                    Cell::Words(series.name.clone()),
                    Cell::Figure(number(&lines.x, x)),
                    Cell::Figure(number(&lines.y, y)),
                ]
            })
        })
        .collect();
    let up = if lines.y.title.is_empty() { "value" } else { &lines.y.title };
    said + &table(&["", title, up], &rows)
}

/// The whole time of each bucket: what a reader can take in. The course of time is in the tables beside it.
fn heat_table(heat: &Heat) -> String {
    let columns = heat.z.len().max(1) as f64;
    let step = heat.labels.len().div_ceil(CHART_TABLE_ROWS_MAX).max(1);
    let rows: Vec<Vec<Cell>> = (0..heat.labels.len())
        .step_by(step)
        .map(|bucket| {
            let last = (bucket + step).min(heat.labels.len());
            let of = |column: &crate::chart::Numbers| column.0[bucket..last].iter().sum::<f64>();
            let mean = heat.z.iter().map(of).sum::<f64>() / columns;
            let most = heat.z.iter().map(of).fold(0.0, f64::max);
            vec![
                Cell::Words(heat.labels[bucket].clone()),
                Cell::Figure(words::number(mean)),
                Cell::Figure(words::number(most)),
            ]
        })
        .collect();
    table(&["latency", "IOPS, mean", "IOPS in the busiest column"], &rows)
}

fn surfaces_tables(surfaces: &Surfaces) -> String {
    let mut text = String::new();
    let both = surfaces.views.iter().filter(|view| view.operations == "both");
    for view in both {
        write!(text, "<h5>{}</h5>\n{}", escaped(&view.title), view_table(view, &surfaces.disks))
            .expect("strings take all");
    }
    text
}

/// A bucket's mean rate over the whole time, disk by disk.
fn view_table(view: &View, disks: &[String]) -> String {
    let means: Vec<Vec<f64>> = (view.panels.iter())
        .map(|panel| {
            let known = || panel.z.iter().zip(&panel.seconds.0).filter(|(column, _)| !column.is_empty());
            let time: f64 = known().map(|(_, seconds)| seconds).sum();
            (0..view.labels.len())
                .map(|bucket| {
                    let count: f64 = known().map(|(column, seconds)| column.0[bucket] * seconds).sum();
                    if time > 0.0 { count / time } else { f64::NAN }
                })
                .collect()
        })
        .collect();
    let head: Vec<&str> = [view.axis.as_str()].into_iter().chain(disks.iter().map(String::as_str)).collect();
    let step = view.labels.len().div_ceil(CHART_TABLE_ROWS_MAX).max(1);
    let rows: Vec<Vec<Cell>> = (0..view.labels.len())
        .step_by(step)
        .map(|bucket| {
            let last = (bucket + step).min(view.labels.len());
            let figures = means.iter().map(|of| Cell::Figure(words::number(of[bucket..last].iter().sum())));
            [Cell::Words(view.labels[last - 1].clone())].into_iter().chain(figures).collect()
        })
        .collect();
    "<p class=\"quiet\">Mean IOPS in each bucket over the whole time.</p>\n".to_owned() + &table(&head, &rows)
}
