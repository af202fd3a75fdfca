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
mod kinds;
mod model;
mod pattern;
mod table;
mod text;
mod vdbench;

#[cfg(test)]
mod tests;

pub use audit::{Audit, Auditor, Claims, Code, Finding, RowName, Severity, audit};
pub use error::{Kind, ReadError};
pub use kinds::{kind_of, read};
pub use model::{Direction, Figures, Interval, Job, Latencies, Note, ResultSet, Run, Steps, Tool};

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
    hcibench::folder::read_folder(files)
}
