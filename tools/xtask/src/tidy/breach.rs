//! A rule that is broken, and where.

use std::fmt;
use std::path::{Path, PathBuf};

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
    /// A breach in that line of a file.
    pub fn new(path: &Path, line: usize, message: impl Into<String>) -> Breach {
        Breach { path: path.to_path_buf(), line, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}
