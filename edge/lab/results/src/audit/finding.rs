//! What the audit says: findings, and the rows that they are about.

use serde::{Deserialize, Serialize};
use statistics::words;

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
    pub(super) fn of_source(source: &str) -> RowName {
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
