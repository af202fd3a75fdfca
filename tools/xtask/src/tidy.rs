//! `cargo xtask tidy`: what the compiler and clippy cannot see.
//!
//! Every check is a function of text, so that the tests can show on small trees that a breach is refused.

mod breach;
mod circles;
mod crates;
mod purity;
mod source;

use crate::sources;
pub use breach::Breach;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders that hold Rust code of ours.
const FOLDERS: [&str; 4] = ["core", "edge", "tools", "fuzz"];

/// All breaches in the repository at `root`.
pub fn tidy(root: &Path) -> Result<Vec<Breach>, String> {
    let metadata = metadata(root)?;
    let mut breaches = crates::check(root, &metadata)?;
    breaches.extend(check_sources(root)?);
    breaches.extend(circles::check(root)?);
    Ok(breaches)
}

/// All breaches in the source files below `root`.
fn check_sources(root: &Path) -> Result<Vec<Breach>, String> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        paths.extend(sources::below(&root.join(folder))?);
    }
    let mut breaches = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        breaches.extend(source::check(relative, &text));
    }
    Ok(breaches)
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
