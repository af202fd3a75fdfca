//! `cargo xtask tidy`: what the compiler and clippy cannot see.
//!
//! Every check is a function of text, so that the tests can show on small trees that a breach is refused.

mod crates;
mod purity;
mod source;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A rule that is broken somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The file, from the root of the repository.
    pub path: PathBuf,
    /// The line, from 1 on.
    pub line: usize,
    /// What was found, and the way out.
    pub message: String,
}

impl Breach {
    fn new(path: &Path, line: usize, message: impl Into<String>) -> Breach {
        Breach { path: path.to_path_buf(), line, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// Folders that hold Rust code of ours.
const FOLDERS: [&str; 4] = ["core", "edge", "tools", "fuzz"];

/// All breaches in the repository at `root`.
pub fn tidy(root: &Path) -> Result<Vec<Breach>, String> {
    let metadata = metadata(root)?;
    let mut breaches = crates::check(root, &metadata)?;
    breaches.extend(check_sources(root)?);
    Ok(breaches)
}

/// All breaches in the source files below `root`.
fn check_sources(root: &Path) -> Result<Vec<Breach>, String> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut paths)?;
    }
    paths.sort();
    let mut breaches = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        breaches.extend(source::check(relative, &text));
    }
    Ok(breaches)
}

/// Adds the Rust files below `folder`; a folder that is not there has none.
fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    let failed = |error| format!("list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                collect(&path, paths)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// What cargo says of our own crates.
pub fn metadata(root: &Path) -> Result<serde_json::Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("run cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("read cargo metadata: {error}"))
}

#[cfg(test)]
mod tests;
