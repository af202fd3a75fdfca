//! What follows from the figures, before any figure.

use super::page::Page;
use super::write::{Cell, Severity, escaped, list, table};
use crate::SENTENCES_MAX;
use crate::figures;
use crate::report::{Report, stage_name};
use measured::{ExperimentRun, Finding, FindingKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Lines about stages and groups at the top.
const HEADLINES_MAX: usize = 12;

/// The first section: sentences, expectations, what must be known before the figures are believed.
pub fn write(page: &mut Page, report: &Report) {
    page.section("Conclusions");
    for named in &report.experiments {
        if report.experiments.len() > 1 {
            page.heading(named.name);
        }
        conclusions(page, named.experiment);
        expectations(page, named.experiment);
    }
    headlines(page, report);
    for section in &report.sections {
        page.heading(&section.title);
        page.raw(&list(section.lines.iter().cloned()));
    }
    findings(page, report);
}

/// Sentences with what each is about; the same `about` is written once.
fn conclusions(page: &mut Page, experiment: &ExperimentRun) {
    if experiment.conclusions.is_empty() {
        return;
    }
    let mut text = String::from("<dl class=\"conclusions\">");
    let mut about = None;
    for conclusion in experiment.conclusions.iter().take(SENTENCES_MAX) {
        if about != Some(&conclusion.about) {
            write!(text, "<dt>{}</dt>", escaped(&conclusion.about)).expect("strings take all");
            about = Some(&conclusion.about);
        }
        write!(text, "<dd>{}</dd>", escaped(&conclusion.text)).expect("strings take all");
    }
    let rest = experiment.conclusions.len().saturating_sub(SENTENCES_MAX);
    if rest > 0 {
        write!(text, "<dd>and {rest} more</dd>").expect("strings take all");
    }
    text.push_str("</dl>\n");
    page.raw(&text);
}

fn expectations(page: &mut Page, experiment: &ExperimentRun) {
    if experiment.expectations.is_empty() {
        return;
    }
    let rows: Vec<Vec<Cell>> = (experiment.expectations.iter())
        .map(|expected| {
            let tag = match expected.holds {
                true => Cell::Tag("holds", Severity::Good),
                false => Cell::Tag("does not hold", Severity::Serious),
            };
            let measured = expected.measured.map_or("–".to_owned(), statistics::words::number);
            vec![Cell::Words(expected.text.clone()), Cell::Figure(measured), tag]
        })
        .collect();
    page.raw(&table(&["What was expected", "measured", ""], &rows));
}

fn headlines(page: &mut Page, report: &Report) {
    let quiet = report.experiments.iter().filter(|named| named.experiment.conclusions.is_empty());
    let runs = quiet.flat_map(|named| &named.experiment.cells).flat_map(|cell| &cell.runs);
    let lines: Vec<String> = (report.runs.iter().map(|named| named.run).chain(runs))
        .flat_map(|run| run.stages.iter().flat_map(|stage| figures::headlines(run, stage)))
        .collect();
    if lines.is_empty() {
        return;
    }
    let rest = lines.len().saturating_sub(HEADLINES_MAX);
    let more = (rest > 0).then(|| format!("and {rest} more: see the figures"));
    page.raw(&list(lines.into_iter().take(HEADLINES_MAX).chain(more)));
}

/// Findings of one kind that are told before the others are folded away.
const OF_A_KIND_MAX: usize = 3;

/// Findings of all stages: serious ones first, and of many alike the first few.
fn findings(page: &mut Page, report: &Report) {
    let mut found: Vec<(String, Finding)> = Vec::new();
    for (name, run) in report.all_runs() {
        for stage in &run.stages {
            let at = stage_name(run, stage);
            let place =
                if run.stages.len() == 1 || at == name { name.clone() } else { format!("{name}: {at}") };
            found.extend(stage.findings().into_iter().map(|finding| (place.clone(), finding)));
        }
    }
    page.heading("Before these figures are believed");
    if found.is_empty() {
        page.paragraph(
            "Nothing was found that casts doubt on them: no errors, no stalls, seconds alike, Little's law holds.",
        );
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
        let more = if rest > 0 { format!("<p>And {rest} more.</p>") } else { String::new() };
        page.raw(&format!(
            "<details><summary>{} more of the same kinds</summary>\n{text}{more}</details>\n",
            others.len()
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
    table(&["Where", "", "What"], &rows)
}
