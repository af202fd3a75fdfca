//! Why a result could not be read: where, as what it was read, and the way out.

use serde::Serialize;
use statistics::words;

/// What a file was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// fio's JSON and JSON+.
    FioJson,
    /// fio's normal output.
    FioText,
    /// fio's terse output.
    FioTerse,
    /// fio's logs of latency, bandwidth and IOPS.
    FioLog,
    /// fio's log of histograms.
    FioHistogramLog,
    /// esxtop's batch mode.
    EsxtopCsv,
    /// DiskSPD's text.
    DiskspdText,
    /// DiskSPD's XML.
    DiskspdXml,
    /// Vdbench's summary or standard output.
    VdbenchSummary,
    /// Vdbench's flatfile.
    VdbenchFlatfile,
    /// Vdbench's histogram.
    VdbenchHistogram,
    /// Iometer's results.
    IometerCsv,
    /// HCIBench's summary of a case, or a folder of them.
    Hcibench,
    /// A table of figures.
    Table,
    /// Nothing that is known.
    Unknown,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::FioJson => "fio JSON",
            Kind::FioText => "fio's normal output",
            Kind::FioTerse => "fio's terse output",
            Kind::FioLog => "fio log",
            Kind::FioHistogramLog => "fio histogram log",
            Kind::EsxtopCsv => "esxtop batch CSV",
            Kind::DiskspdText => "DiskSPD text",
            Kind::DiskspdXml => "DiskSPD XML",
            Kind::VdbenchSummary => "Vdbench summary",
            Kind::VdbenchFlatfile => "Vdbench flatfile",
            Kind::VdbenchHistogram => "Vdbench histogram",
            Kind::IometerCsv => "Iometer results",
            Kind::Hcibench => "HCIBench results",
            Kind::Table => "a table",
            Kind::Unknown => "results of a known tool",
        })
    }
}

/// A result that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: cannot be read as {kind}: {found}; {way_out}", place(file, *line, *column))]
pub struct ReadError {
    /// The file, as the caller named it.
    pub file: String,
    /// What it was read as.
    pub kind: Kind,
    /// The line, from 1; the last one for what the whole lacks. None where the whole is nothing that is known.
    pub line: Option<usize>,
    /// The column, from 1.
    pub column: Option<usize>,
    /// What was found, or what is missing.
    pub found: String,
    /// What to do about it.
    pub way_out: String,
}

fn place(file: &str, line: Option<usize>, column: Option<usize>) -> String {
    let part = |number: Option<usize>| number.map_or(String::new(), |number| format!(":{number}"));
    format!("{file}{}{}", part(line), part(column))
}

/// What errors of one file have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) file: &'a str,
    pub(crate) kind: Kind,
}

impl Origin<'_> {
    /// Something wrong in a line.
    pub(crate) fn at(&self, line: usize, found: impl Into<String>, way_out: &str) -> ReadError {
        ReadError { line: Some(line), ..self.whole(found, way_out) }
    }

    /// Something wrong in a line at a column.
    pub(crate) fn at_column(
        &self,
        (line, column): (usize, usize),
        found: impl Into<String>,
        way_out: &str,
    ) -> ReadError {
        ReadError { line: Some(line), column: Some(column), ..self.whole(found, way_out) }
    }

    /// A row with another number of fields than its header names.
    pub(crate) fn fields(&self, line: usize, found: usize, expected: usize) -> ReadError {
        let found = format!("expected {}, found {found}", words::counted(expected, "field"));
        self.at(
            line,
            found,
            "the row was cut off, or a field holds a separator without quotes: complete or delete the row",
        )
    }

    /// Something wrong with the whole.
    pub(crate) fn whole(&self, found: impl Into<String>, way_out: &str) -> ReadError {
        ReadError {
            file: self.file.to_owned(),
            kind: self.kind,
            line: None,
            column: None,
            found: shortened(&found.into()),
            way_out: way_out.to_owned(),
        }
    }
}

/// What was found may be a whole binary file: a message shows its beginning.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 300;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}
