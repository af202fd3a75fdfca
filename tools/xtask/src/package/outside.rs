//! What stands outside: programs that are run, folders that are listed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a folder, in order of their names.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("list {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

/// What a program prints; what it complains of is the error if it fails.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.env("LC_ALL", "C.UTF-8").output().map_err(|error| format!("run {name}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{name}: {} {}", done.status, String::from_utf8_lossy(&done.stderr)));
    }
    String::from_utf8(done.stdout).map_err(|error| format!("what {name} printed: {error}"))
}
