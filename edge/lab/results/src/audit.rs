//! The audit: what results support, what they contradict, and what may not be put side by side.
//!
//! Relies on `statistics`. Every finding has a code, a sentence with its numbers, and the rows it is about. Must find what it
//! can from the figures alone: a claim (a caption, say) helps, and is not needed.

mod claims;
mod finding;
mod outstanding;
mod repeats;
mod rows;
mod sweeps;
mod units;

pub use claims::Claims;
pub use finding::{Code, Finding, RowName, Severity};

use serde::{Deserialize, Serialize};
use statistics::words;

use crate::model::ResultSet;
use rows::rows;

/// What the audit found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Audit {
    /// The sources looked at.
    pub sources: Vec<String>,
    /// Rows looked at.
    pub rows: usize,
    /// What was found, gravest first.
    pub findings: Vec<Finding>,
}

/// An audit set by set, so that a folder is audited without all of its results in memory. Each set is judged by itself, but for
/// repeats: runs of one workload are repeats also where each is a file of its own.
#[derive(Debug, Default)]
pub struct Auditor {
    claims: Claims,
    audit: Audit,
    cells: repeats::Cells,
}

impl Auditor {
    /// An audit with what is claimed of all results.
    pub fn new(claims: Claims) -> Auditor {
        Auditor { claims, ..Auditor::default() }
    }

    /// Takes one set.
    pub fn add(&mut self, set: &ResultSet) {
        let rows = rows(set, &self.claims);
        let mut findings = Vec::new();
        outstanding::audit(&rows, &mut findings);
        units::audit(&rows, &mut findings);
        repeats::within(&rows, &mut findings);
        repeats::fairness(&rows, &mut findings);
        sweeps::audit(&rows, self.claims.objective, &mut findings);
        sweeps::scale_out(&rows, &mut findings);
        reader_notes(set, &mut findings);
        self.cells.add(&rows);
        self.audit.sources.push(set.source.clone());
        self.audit.rows += rows.len();
        // What several sources show in the same words is told once, with all rows.
        for finding in findings {
            let same = |of: &&mut Finding| of.code == finding.code && of.sentence == finding.sentence;
            match self.audit.findings.iter_mut().find(same) {
                Some(told) => told.rows.extend(finding.rows),
                None => self.audit.findings.push(finding),
            }
        }
    }

    /// What was found, gravest first.
    pub fn finish(mut self) -> Audit {
        self.cells.judge(&mut self.audit.findings);
        // What is equally grave stays in the order in which it was found.
        self.audit.findings.sort_by_key(|finding| finding.severity);
        self.audit
    }
}

/// Audits results.
pub fn audit(sets: &[ResultSet], claims: &Claims) -> Audit {
    let mut auditor = Auditor::new(claims.clone());
    sets.iter().for_each(|set| auditor.add(set));
    auditor.finish()
}

/// What the reader noted, each sentence once with all its rows.
fn reader_notes(set: &ResultSet, findings: &mut Vec<Finding>) {
    let of_set = set.notes.iter().map(|note| (note, ""));
    let of_runs =
        set.runs.iter().flat_map(|run| run.notes.iter().map(move |note| (note, run.label.as_str())));
    let first = findings.len();
    for (note, label) in of_set.chain(of_runs) {
        let row =
            RowName { source: set.source.clone(), line: note.line, label: label.to_owned(), figure: None };
        match findings[first..].iter_mut().find(|finding| finding.sentence == note.text) {
            Some(finding) => finding.rows.push(row),
            None => findings.push(Finding {
                code: Code::Reader,
                severity: Severity::Information,
                sentence: note.text.clone(),
                rows: vec![row],
            }),
        }
    }
}

impl Audit {
    /// The findings of a kind.
    pub fn of(&self, code: Code) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.code == code)
    }
}

impl std::fmt::Display for Audit {
    /// Text for a terminal: a heading, then a paragraph per finding with up to twelve of its rows.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SOURCES_SHOWN: usize = 6;
        let mut sources =
            self.sources.iter().take(SOURCES_SHOWN).cloned().collect::<Vec<String>>().join(", ");
        if let more @ 1.. = self.sources.len().saturating_sub(SOURCES_SHOWN) {
            sources.push_str(&format!(" and {more} more"));
        }
        let rows = words::counted(self.rows, "row");
        let findings = words::counted(self.findings.len(), "finding");
        writeln!(f, "Audit of {sources} ({rows}): {findings}")?;
        for finding in &self.findings {
            write!(f, "\n{finding}")?;
        }
        Ok(())
    }
}
