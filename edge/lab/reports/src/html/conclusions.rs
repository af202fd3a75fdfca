//! What follows from the figures, before any figure.

use super::page::Page;
use super::write::{Cell, Severity, escaped, list, table};
use crate::SENTENCES_MAX;
use crate::figures;
use crate::report::{Report, experiment_runs, place, stage_name};
use measured::{Conclusion, Expected, ExperimentRun, Finding, FindingKind, Run};
use statistics::words::counted;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines about stages and groups at the top.
const HEADLINES_MAX: usize = 12;
/// What conclusions about the whole experiment are about.
const ALL: &str = "all";

/// The first section: sentences, expectations, what must be known before the figures are believed.
pub fn write(page: &mut Page, report: &Report) {
    page.section("Conclusions");
    for named in &report.experiments {
        if report.experiments.len() > 1 {
            page.heading(named.name);
        }
        conclusions(page, named.experiment);
        expectations(page, &named.experiment.expectations);
    }
    for named in &report.runs {
        expectations(page, &named.run.expectations);
    }
    sections(page, report);
    headlines(page, report);
    findings(page, report);
    for named in &report.experiments {
        of_cells(page, named.experiment);
    }
}

/// What others have to say, but for what the conclusions say already.
fn sections(page: &mut Page, report: &Report) {
    let conclusions = || report.experiments.iter().flat_map(|named| &named.experiment.conclusions);
    for section in &report.sections {
        let is_new = |line: &&String| !conclusions().any(|conclusion| conclusion.text == **line);
        let lines: Vec<String> = section.lines.iter().filter(is_new).cloned().collect();
        if !lines.is_empty() {
            page.heading(&section.title);
            page.raw(&list(lines));
        }
    }
}

/// Whether a sentence is about one cell alone: its figures, rather than what follows from them.
fn is_of_cell(experiment: &ExperimentRun, conclusion: &Conclusion) -> bool {
    experiment.cells.len() > 1 && experiment.cells.iter().any(|cell| cell.label() == conclusion.about)
}

/// What is said of each cell alone, folded where it is much.
fn of_cells(page: &mut Page, experiment: &ExperimentRun) {
    const OPEN_MAX: usize = 4;
    let all: Vec<&Conclusion> =
        experiment.conclusions.iter().filter(|conclusion| is_of_cell(experiment, conclusion)).collect();
    if all.is_empty() {
        return;
    }
    let shown = all.iter().take(SENTENCES_MAX);
    let rows: Vec<Vec<Cell>> =
        shown.map(|of| vec![Cell::Words(of.about.clone()), Cell::Words(of.text.clone())]).collect();
    let open = if all.len() <= OPEN_MAX { " open" } else { "" };
    let text = table(&["Cell", "conclusion"], &rows);
    page.raw(&format!("<details{open}><summary>Conclusions of each cell</summary>\n{text}</details>\n"));
}

/// Sentences with what each is about; the same `about` is written once.
fn conclusions(page: &mut Page, experiment: &ExperimentRun) {
    let all = || experiment.conclusions.iter().filter(|conclusion| !is_of_cell(experiment, conclusion));
    if all().next().is_none() {
        return;
    }
    let mut text = String::from("<dl class=\"conclusions\">");
    let mut about = None;
    for conclusion in all().take(SENTENCES_MAX) {
        if about != Some(&conclusion.about) {
            let name = if conclusion.about == ALL { "All cells" } else { &conclusion.about };
            write!(text, "<dt>{}</dt>", escaped(name)).expect("strings take all");
            about = Some(&conclusion.about);
        }
        write!(text, "<dd>{}</dd>", escaped(&conclusion.text)).expect("strings take all");
    }
    let rest = all().count().saturating_sub(SENTENCES_MAX);
    if rest > 0 {
        write!(text, "<dd>{rest} more</dd>").expect("strings take all");
    }
    text.push_str("</dl>\n");
    page.raw(&text);
}

fn expectations(page: &mut Page, expectations: &[Expected]) {
    if expectations.is_empty() {
        return;
    }
    let rows: Vec<Vec<Cell>> = (expectations.iter())
        .map(|expected| {
            let tag = match expected.holds {
                true => Cell::Tag("holds", Severity::Good),
                false => Cell::Tag("does not hold", Severity::Serious),
            };
            let measured = expected.measured.map_or("-".to_owned(), statistics::words::number);
            vec![Cell::Words(expected.text.clone()), Cell::Figure(measured), tag]
        })
        .collect();
    page.raw(&table(&["Expectation", "measured", "result"], &rows));
}

/// The figures of runs that nothing else is said of.
fn headlines(page: &mut Page, report: &Report) {
    let own = report.runs.iter().map(|named| (named.name.to_owned(), named.run));
    let quiet = report.experiments.iter().filter(|named| named.experiment.conclusions.is_empty());
    let of_experiments = quiet.flat_map(|named| experiment_runs(named.experiment));
    let runs: Vec<(String, &Run)> = own.chain(of_experiments).collect();
    let mut lines = Vec::new();
    for (name, run) in &runs {
        for stage in &run.stages {
            let called = if runs.len() == 1 { stage_name(run, stage) } else { place(name, run, stage) };
            lines.extend(figures::headlines(&called, stage));
        }
    }
    if lines.is_empty() {
        return;
    }
    let rest = lines.len().saturating_sub(HEADLINES_MAX);
    let more = (rest > 0).then(|| format!("{rest} more: see the tables of figures"));
    if !report.sections.is_empty() {
        page.heading("Results");
    }
    page.raw(&list(lines.into_iter().take(HEADLINES_MAX).chain(more)));
}

/// Findings of one kind that are told before the others are folded away.
const OF_A_KIND_MAX: usize = 3;

/// Findings of all stages: serious ones first, and of many alike the first few.
fn findings(page: &mut Page, report: &Report) {
    let mut found: Vec<(String, Finding)> = Vec::new();
    for (name, run) in report.all_runs() {
        for stage in &run.stages {
            let at = place(&name, run, stage);
            found.extend(stage.findings().into_iter().map(|finding| (at.clone(), finding)));
        }
    }
    page.heading("Doubts about these figures");
    if found.is_empty() {
        page.paragraph("No doubts: no errors, no stalls, steady IOPS, and Little's law holds.");
        return;
    }
    found.sort_by_key(|(_, finding)| (!finding.serious, finding.kind));
    let mut told: BTreeMap<(FindingKind, bool), usize> = BTreeMap::new();
    let (first, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, finding)| {
        let told = told.entry((finding.kind, finding.serious)).or_default();
        *told += 1;
        *told <= OF_A_KIND_MAX
    });
    page.raw(&findings_table(&first));
    if !others.is_empty() {
        let text = findings_table(&others[..others.len().min(SENTENCES_MAX)]);
        let rest = others.len().saturating_sub(SENTENCES_MAX);
        let more = if rest > 0 { format!("<p>Not shown: {rest} more.</p>") } else { String::new() };
        page.raw(&format!(
            "<details><summary>{} of the same kinds</summary>\n{text}{more}</details>\n",
            counted(others.len(), "more finding")
        ));
    }
}

fn findings_table(found: &[(String, Finding)]) -> String {
    let rows: Vec<Vec<Cell>> = (found.iter())
        .map(|(place, finding)| {
            let tag = match finding.serious {
                true => Cell::Tag("serious", Severity::Serious),
                false => Cell::Tag("note", Severity::Note),
            };
            vec![Cell::Words(place.clone()), tag, Cell::Words(finding.text.clone())]
        })
        .collect();
    table(&["Where", "severity", "finding"], &rows)
}
