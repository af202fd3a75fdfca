//! Finds out by its content what a text is, and reads it as that.

use crate::error::{Kind, Origin, ReadError};
use crate::model::ResultSet;
use crate::{diskspd, esxtop, fio_json, fio_log, fio_text, hcibench, iometer, table, vdbench};

/// Characters of a file that is nothing known, as far as its error shows them.
const BEGINNING_MAX: usize = 60;

/// A test of whether a text is of a kind.
type Recogniser = fn(&str) -> bool;

/// How each kind is recognised; the first that fits is taken, so those with the surest marks stand first.
const RECOGNISERS: &[(Kind, Recogniser)] = &[
    (Kind::FioJson, fio_json::is_fio_json),
    (Kind::EsxtopCsv, esxtop::is_batch),
    (Kind::DiskspdXml, diskspd::xml::is_xml),
    (Kind::DiskspdText, diskspd::is_text),
    (Kind::IometerCsv, iometer::is_iometer),
    (Kind::VdbenchFlatfile, vdbench::is_flatfile),
    (Kind::VdbenchHistogram, vdbench::is_histogram),
    (Kind::VdbenchSummary, vdbench::is_summary),
    (Kind::Hcibench, hcibench::is_summary),
    (Kind::FioText, fio_text::is_text),
    (Kind::FioTerse, fio_text::is_terse),
    (Kind::FioHistogramLog, fio_log::is_fio_histogram_log),
    (Kind::FioLog, fio_log::is_fio_log),
    (Kind::Table, table::is_table),
];

/// What a text is, by its content; `None` when it is nothing that is known.
pub fn kind_of(text: &str) -> Option<Kind> {
    RECOGNISERS.iter().find(|(_, is)| is(text)).map(|(kind, _)| *kind)
}

/// Reads the text of one file. `file` is its name, for messages; fio's logs also tell by it what their values are, and a table
/// that names no tool may tell it there. `caption` is the caption of a table ("threads = 4, outstanding = 16
/// per thread"); other kinds do not use it.
pub fn read(file: &str, text: &str, caption: Option<&str>) -> Result<ResultSet, ReadError> {
    let found = match kind_of(text) {
        Some(Kind::FioJson) => fio_json::read(file, text),
        Some(Kind::FioText) => fio_text::read(file, text),
        Some(Kind::FioTerse) => fio_text::read_terse(file, text),
        Some(Kind::EsxtopCsv) => esxtop::read(file, text),
        Some(Kind::FioLog) => fio_log::read(file, text),
        Some(Kind::FioHistogramLog) => fio_log::read_histograms(file, text),
        Some(Kind::DiskspdText) => diskspd::read(file, text),
        Some(Kind::DiskspdXml) => diskspd::xml::read(file, text),
        Some(Kind::VdbenchSummary) => vdbench::read_summary(file, text),
        Some(Kind::VdbenchFlatfile) => vdbench::read_flatfile(file, text),
        Some(Kind::VdbenchHistogram) => vdbench::read_histograms(file, text),
        Some(Kind::IometerCsv) => iometer::read(file, text),
        Some(Kind::Hcibench) => hcibench::read_summary(file, text),
        Some(Kind::Table) => table::read(file, text, caption),
        Some(Kind::Unknown) | None => return Err(unknown(file, text)),
    };
    // What the whole lacks was looked for until its last line.
    found.map_err(|error| ReadError { line: error.line.or(Some(text.lines().count().max(1))), ..error })
}

/// The beginning of a line, with control characters escaped for the terminal.
fn beginning(line: &str) -> String {
    let shown: String = line.chars().take(BEGINNING_MAX).flat_map(char::escape_debug).collect();
    if line.chars().nth(BEGINNING_MAX).is_some() { shown + "…" } else { shown }
}

fn unknown(file: &str, text: &str) -> ReadError {
    let origin = Origin { file, kind: Kind::Unknown };
    let way_out = "known results: fio JSON, JSON+, normal and terse text and logs, DiskSPD text and XML, Vdbench folders, summary, flatfile, parseflat CSV \
                   and histogram, Iometer results, esxtop batch CSV, HCIBench -res.txt and folders, and CSV tables with a column iops";
    // A document that is cut off before it names its tool still tells by its beginning what it wanted to be.
    let begin = text.trim_start_matches('\u{feff}').trim_start();
    let found = match begin.lines().next() {
        None => "the file is empty".to_owned(),
        Some(line) => format!("it begins with \"{}\"", beginning(line)),
    };
    origin.whole(found, way_out)
}
