//! The audit: what results support, what they contradict, and what may not be put side by side.
//!
//! Relies on `statistics`. Every finding has a code, a sentence with its numbers, and the rows it is about. Must find what it
//! can from the figures alone: a claim (a caption, say) helps, and is not needed.

mod outstanding;
mod repeats;
mod rows;
mod sweeps;
mod units;

use serde::{Deserialize, Serialize};
use statistics::knee::Objective;
use statistics::words;

use crate::model::ResultSet;
use rows::rows;

/// What somebody says of the results, beyond what is in them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Claims {
    /// Outstanding I/Os of each VM: threads x outstanding per thread.
    pub outstanding_per_vm: Option<f64>,
    /// The latency that a sweet spot must keep; a percentile is the 99th, of runs with a histogram.
    pub objective: Option<Objective>,
}

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

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind.
    pub code: Code,
    /// How grave.
    pub severity: Severity,
    /// A sentence or two, with the numbers.
    pub sentence: String,
    /// The rows concerned; empty when it is about all.
    pub rows: Vec<RowName>,
}

/// A row of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowName {
    /// The source.
    pub source: String,
    /// Its line, where lines mean something.
    pub line: Option<usize>,
    /// What it is called there.
    pub label: String,
    /// The figure that the finding is about, in words, where each row has its own ("1.98 times").
    pub figure: Option<String>,
}

impl RowName {
    /// A source as a whole.
    fn of_source(source: &str) -> RowName {
        RowName { source: source.to_owned(), line: None, label: String::new(), figure: None }
    }
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Figures contradict each other or their caption: what they seem to say cannot be so.
    Contradiction,
    /// Figures do not support what one would like to conclude.
    Warning,
    /// What they do tell.
    Information,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Little's law holds with what is claimed.
    OutstandingAgrees,
    /// The figures hold another number of outstanding I/Os than is claimed.
    OutstandingOther,
    /// Two tools in one table held different numbers of outstanding I/Os.
    ToolsDiffer,
    /// What of two tools may be compared.
    Comparable,
    /// The VMs of a row were unequal, by what each did, or by a latency that was averaged without weights.
    UnequalVms,
    /// A latency is higher than the I/Os of its row can have had.
    LatencyOverstated,
    /// Less outstanding than was asked for: lost samples, idle time, a rate limit.
    Short,
    /// One run per cell.
    OneRun,
    /// Runs of one cell differ much.
    NoisyRuns,
    /// The samples within a run vary much.
    NoisyWithin,
    /// A run rises or falls while it is measured.
    Drift,
    /// What "MB/s" means.
    Megabytes,
    /// Throughput and I/O size contradict the megabytes.
    MegabytesWrong,
    /// The sweet spot of a sweep.
    SweetSpot,
    /// How throughput grows with VMs.
    ScaleOut,
    /// Something that the reader of the file noted.
    Reader,
}

impl Code {
    /// The code as it is printed and written: `tools-differ`.
    pub fn name(self) -> &'static str {
        match self {
            Code::OutstandingAgrees => "outstanding-agrees",
            Code::OutstandingOther => "outstanding-other",
            Code::ToolsDiffer => "tools-differ",
            Code::Comparable => "comparable",
            Code::UnequalVms => "unequal-vms",
            Code::LatencyOverstated => "latency-overstated",
            Code::Short => "short",
            Code::OneRun => "one-run",
            Code::NoisyRuns => "noisy-runs",
            Code::NoisyWithin => "noisy-within",
            Code::Drift => "drift",
            Code::Megabytes => "megabytes",
            Code::MegabytesWrong => "megabytes-wrong",
            Code::SweetSpot => "sweet-spot",
            Code::ScaleOut => "scale-out",
            Code::Reader => "reader",
        }
    }
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

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const ROWS_SHOWN: usize = 12;
        let severity = match self.severity {
            Severity::Contradiction => "CONTRADICTION",
            Severity::Warning => "warning",
            Severity::Information => "note",
        };
        writeln!(f, "{severity} [{}]: {}", self.code.name(), self.sentence)?;
        for row in self.rows.iter().take(ROWS_SHOWN) {
            let line = row.line.map_or(String::new(), |line| format!(":{line}"));
            let figure = row.figure.as_ref().map_or(String::new(), |figure| format!(": {figure}"));
            let label = if row.label.is_empty() { String::new() } else { format!(" {}", row.label) };
            writeln!(f, "    {}{line}{label}{figure}", row.source)?;
        }
        match self.rows.len().saturating_sub(ROWS_SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "    and {}", words::counted(more, "more row")),
        }
    }
}
