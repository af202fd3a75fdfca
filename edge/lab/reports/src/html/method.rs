//! How it was measured: plans, targets, machines, versions, notes.

use super::page::Page;
use super::write::{Cell, escaped, list, table};
use crate::figures::moment;
use crate::report::Report;
use base::units::format_bytes;
use measured::{Machine, Run, TargetFacts};
use statistics::words;
use std::collections::BTreeSet;

/// Plans that are written out; experiments have one for each run, all alike.
const PLANS_MAX: usize = 20;
/// Plans that stand open; further ones are folded.
const PLANS_OPEN_MAX: usize = 3;

/// The last section.
pub fn write(page: &mut Page, report: &Report) {
    page.section("How it was measured");
    notes(page, report);
    targets(page, report);
    machines(page, report);
    plans(page, report);
    sources(page, report);
    versions(page, report);
}

fn notes(page: &mut Page, report: &Report) {
    let mut lines: Vec<String> = Vec::new();
    let mut told = BTreeSet::new();
    let mut tell = |line: String| {
        if told.insert(line.clone()) {
            lines.push(line);
        }
    };
    for named in &report.experiments {
        named.experiment.notes.iter().for_each(|note| tell(note.clone()));
    }
    for (_, run) in report.all_runs() {
        run.notes.iter().for_each(|note| tell(note.clone()));
        run.plan.notes.iter().for_each(|note| tell(format!("job: {note}")));
    }
    for capture in &report.captures {
        capture.notes.iter().for_each(|note| tell(format!("{}: {note}", capture.source)));
    }
    if !lines.is_empty() {
        page.heading("Notes");
        page.raw(&list(lines));
    }
}

fn targets(page: &mut Page, report: &Report) {
    let mut all: Vec<&TargetFacts> = Vec::new();
    for (_, run) in report.all_runs() {
        run.targets.iter().for_each(|target| {
            if !all.contains(&target) {
                all.push(target);
            }
        });
    }
    if all.is_empty() {
        return;
    }
    page.heading("Targets");
    let rows: Vec<Vec<Cell>> = (all.iter())
        .take(crate::FIGURE_ROWS_MAX)
        .map(|target| {
            vec![
                Cell::Words(target.name.clone()),
                Cell::Words(target.kind.clone()),
                Cell::Words(target.opened.clone()),
                Cell::Figure(format_bytes(target.size)),
            ]
        })
        .collect();
    page.raw(&table(&["Name", "kind", "opened as", "size"], &rows));
    let told =
        all.iter().flat_map(|target| target.about.iter().map(move |line| format!("{}: {line}", target.name)));
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        page.raw(&list(told));
    }
}

fn machines(page: &mut Page, report: &Report) {
    let mut all: Vec<&Machine> = Vec::new();
    for (_, run) in report.all_runs() {
        run.machines.iter().for_each(|machine| {
            if !all.iter().any(|known| known.name == machine.name && known.kernel == machine.kernel) {
                all.push(machine);
            }
        });
    }
    if all.is_empty() {
        return;
    }
    page.heading("Machines");
    let milliseconds = |seconds: f64| words::milliseconds(seconds);
    let rows: Vec<Vec<Cell>> = (all.iter())
        .take(crate::FIGURE_ROWS_MAX)
        .map(|machine| {
            vec![
                Cell::Words(machine.name.clone()),
                Cell::Words(machine.kernel.clone()),
                Cell::Figure(machine.processors.to_string()),
                Cell::Figure(milliseconds(machine.clock_error)),
            ]
        })
        .collect();
    page.raw(&table(&["Name", "kernel", "processors", "clock error"], &rows));
}

fn outline(run: &Run) -> String {
    let sizes: Vec<Option<u64>> =
        (0..run.plan.targets.len()).map(|index| run.targets.get(index).map(|target| target.size)).collect();
    format!("{:#}", run.plan.outline(&sizes))
}

fn plans(page: &mut Page, report: &Report) {
    let mut told = BTreeSet::new();
    let mut rest = 0;
    let (mut text, mut folded) = (String::new(), String::new());
    for (_, run) in report.all_runs() {
        let outline = outline(run);
        if told.contains(&outline) {
            continue;
        }
        if told.len() < PLANS_MAX {
            let place = if told.len() < PLANS_OPEN_MAX { &mut text } else { &mut folded };
            place.push_str(&format!("<pre>{}</pre>\n", escaped(&outline)));
            told.insert(outline);
        } else {
            rest += 1;
        }
    }
    if told.is_empty() {
        return;
    }
    page.heading("What was run");
    page.raw(&text);
    if !folded.is_empty() {
        let more = told.len() - PLANS_OPEN_MAX;
        page.raw(&format!(
            "<details><summary>{}</summary>\n{folded}</details>\n",
            words::counted(more, "more plan")
        ));
    }
    if rest > 0 {
        page.paragraph(&format!(
            "{} with other plans: the bundle has them.",
            words::counted(rest, "more run")
        ));
    }
}

fn sources(page: &mut Page, report: &Report) {
    for named in &report.experiments {
        let source = &named.experiment.source;
        if !source.is_empty() {
            page.raw(&format!(
                "<details><summary>Experiment file: {}</summary><pre>{}</pre></details>\n",
                escaped(named.name),
                escaped(source)
            ));
        }
    }
}

fn versions(page: &mut Page, report: &Report) {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for named in &report.runs {
        rows.push(row(named.name, named.run.started_unix_ms, &named.run.program));
    }
    for named in &report.experiments {
        rows.push(row(named.name, named.experiment.started_unix_ms, &named.experiment.program));
    }
    rows.truncate(crate::FIGURE_ROWS_MAX);
    if !rows.is_empty() {
        page.heading("When and with which version");
        page.raw(&table(&["Name", "started", "program"], &rows));
    }
}

fn row(name: &str, began: u64, program: &str) -> Vec<Cell> {
    vec![Cell::Words(name.to_owned()), Cell::Words(moment(began)), Cell::Words(program.to_owned())]
}
