//! One server on one data directory: a lock on a file in it, which the kernel drops when the process ends, however it does.

use failure::Failure;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Holds the lock while it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Makes the data directory if it is not there, for its owner alone, and takes its lock.
///
/// # Errors
/// When another server has it, with its process id, or the directory cannot be used.
pub fn take(data_dir: &Path) -> Result<Lock, Failure> {
    let what = format!("use the data directory {}", data_dir.display());
    let failed = |error: std::io::Error| Failure::failed(&what, error);
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(failed)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(data_dir.join("lock"))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(failed)?;
            return Err(Failure::refused(format!(
                "{what}: a server is running on it already (process {})",
                holder.trim()
            ))
            .hint("stop that one, or give this one another data_dir"));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_has_one_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/b");
        let first = take(&path).expect("free");
        let failure = take(&path).expect_err("taken");
        assert!(failure.error.contains(&std::process::id().to_string()), "{failure}");
        drop(first);
        take(&path).expect("free again");
    }
}
