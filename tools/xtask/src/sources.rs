//! The Rust files of a folder.

use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below `folder`, sorted within it; a folder that does not exist has none. What cargo built is left out.
pub fn below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    Ok(paths)
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    if !folder.exists() {
        return Ok(());
    }
    let failed = |error| format!("list {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            let is_built =
                path.file_name().is_some_and(|name| name == "target") && folder.join("Cargo.toml").exists();
            if !is_built {
                collect(&path, paths)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}
