//! Files as the store needs them: made with their final mode, stable before they take their place, and refused when others
//! may read or change what they must not.

use super::StoreError;
use crate::limits::PEM_SIZE_MAX;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Who may do what with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Only its owner may read and write it.
    Private,
    /// Everybody may read it, only its owner may write it.
    Readable,
}

impl Access {
    /// The mode of a new file.
    fn mode(self) -> u32 {
        match self {
            Access::Private => 0o600,
            Access::Readable => 0o644,
        }
    }

    /// Permissions that it must not have.
    fn forbidden(self) -> u32 {
        match self {
            Access::Private => 0o077,
            Access::Readable => 0o022,
        }
    }
}

/// One step of writing. What is done may be cut short after any of them.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Writes a new file and makes its content stable.
    Write { path: PathBuf, text: String, access: Access },
    /// Gives a file another name, in place of what has that name.
    Rename { from: PathBuf, to: PathBuf },
    /// Makes the names in the folder stable.
    SyncFolder,
}

impl Step {
    pub(super) fn perform(&self, folder: &Path) -> Result<(), StoreError> {
        match self {
            Step::Write { path, text, access } => write(path, text, *access),
            Step::Rename { from, to } => std::fs::rename(from, to).map_err(io_error("give its name to", to)),
            Step::SyncFolder => {
                let result = File::open(folder).and_then(|folder| folder.sync_all());
                result.map_err(io_error("make stable the folder", folder))
            }
        }
    }
}

fn io_error(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { doing, path: path.clone(), source }
}

/// Makes the folder, open to its owner only, if it is not there.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let result = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    result.map_err(io_error("make the folder", folder))
}

fn write(path: &Path, text: &str, access: Access) -> Result<(), StoreError> {
    // What a crash left is removed and not written over: its mode may be another one, and somebody may have it open.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error("remove what a crash left at", path)(error));
        }
        _ => {}
    }
    let result = OpenOptions::new().write(true).create_new(true).mode(access.mode()).open(path);
    let mut file = result.map_err(io_error("make", path))?;
    file.write_all(text.as_bytes()).map_err(io_error("write", path))?;
    file.sync_all().map_err(io_error("make stable", path))
}

/// Reads a file whole, after a look at its mode.
pub(super) fn read(path: &Path, access: Access) -> Result<String, StoreError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing { path: path.to_owned() },
        _ => io_error("open", path)(error),
    })?;
    // That of the open file, so that nobody can put another one in its place in between.
    let metadata = file.metadata().map_err(io_error("look at", path))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & access.forbidden() != 0 {
        return Err(StoreError::Open { path: path.to_owned(), mode, wanted: access.mode() });
    }
    let not_text = || StoreError::NotText { path: path.to_owned(), bytes: metadata.len() };
    let mut bytes = Vec::new();
    file.take(PEM_SIZE_MAX as u64 + 1).read_to_end(&mut bytes).map_err(io_error("read", path))?;
    if bytes.len() > PEM_SIZE_MAX {
        return Err(not_text());
    }
    String::from_utf8(bytes).map_err(|_| not_text())
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
