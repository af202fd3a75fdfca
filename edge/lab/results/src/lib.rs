//! Results that other tools wrote, read into one form, and the audit of what they support.
//!
//! [`read`] takes the text of one file and finds out by its content what it is; [`read_folder`] takes the files of an HCIBench
//! test, [`read_vdbench_folder`] those of a Vdbench folder, and [`folder_kind`] tells which a folder is. [`audit()`] takes what was read. Relies on `statistics` for every number. Must never open a file, panic on what it is
//! given, or fill in what a tool did not write.

mod audit;
mod diskspd;
mod error;
mod esxtop;
mod fio_json;
mod fio_log;
mod fio_text;
mod hcibench;
mod iometer;
mod model;
mod pattern;
mod table;
mod text;
mod vdbench;

#[cfg(test)]
mod tests;

pub use audit::{Audit, Auditor, Claims, Code, Finding, RowName, Severity, audit};
pub use error::{Kind, ReadError};
pub use model::{Direction, Figures, Interval, Job, Latencies, Note, ResultSet, Run, Steps, Tool};

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

/// Whose results a folder holds, by the names of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderKind {
    /// What Vdbench writes with `-o`: its files tell of the same runs.
    Vdbench,
    /// A case of HCIBench, with a file per VM, which belong together.
    HcibenchCase,
    /// Files that stand for themselves.
    Files,
}

/// What kind of folder has files of these names, without paths.
pub fn folder_kind<'a>(mut names: impl Iterator<Item = &'a str> + Clone) -> FolderKind {
    const OF_HCIBENCH: [&str; 3] = ["hcibench.cfg", "vsan.cfg", "resource_usage.info"];
    let has = |known: &[&str]| names.clone().any(|name| known.contains(&name));
    if has(&OF_HCIBENCH) {
        FolderKind::HcibenchCase
    } else if names.any(|name| VDBENCH_FILES[..2].contains(&name)) {
        FolderKind::Vdbench
    } else {
        FolderKind::Files
    }
}

/// The files of a Vdbench folder that are read; all others tell the same by disk or host.
pub const VDBENCH_FILES: [&str; 4] = vdbench::FOLDER_FILES;

/// Reads an output folder of Vdbench: (path, text) of those of its files that are read.
pub fn read_vdbench_folder(folder: &str, files: &[(&str, &str)]) -> Result<ResultSet, ReadError> {
    vdbench::read_folder(folder, files)
}

/// Reads the files of an HCIBench test: (path, text) of each, with `/` between folders. One set per case.
pub fn read_folder(files: &[(&str, &str)]) -> Result<Vec<ResultSet>, ReadError> {
    hcibench::read_folder(files)
}

/// The beginning of a line, with control characters escaped for the terminal.
fn beginning(line: &str) -> String {
    let shown: String = line.chars().take(BEGINNING_MAX).flat_map(char::escape_debug).collect();
    if line.chars().nth(BEGINNING_MAX).is_some() { shown + "…" } else { shown }
}

fn unknown(file: &str, text: &str) -> ReadError {
    let origin = error::Origin { file, kind: Kind::Unknown };
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
