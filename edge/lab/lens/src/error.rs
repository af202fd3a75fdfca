//! Why a capture or a trace could not be read: where, as what it was read, and the way out.

/// A text that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not what it was read as.
    #[error("{file}:{line}:{column}: not {what}: {found}; {way_out}")]
    Text {
        /// The file's name, as the caller gave it.
        file: String,
        /// From 1.
        line: u64,
        /// From 1.
        column: usize,
        /// What it was read as: "a line of blkparse".
        what: &'static str,
        /// What stands there.
        found: String,
        /// What to do about it.
        way_out: String,
    },
    /// The input could not be read any further.
    #[error("{file}: reading stopped after line {line}")]
    Input {
        /// The file's name, as the caller gave it.
        file: String,
        /// The last line that was read.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
}

/// At most 60 characters of what was found, in quotes: a line may be of any length and hold anything.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let text = text.trim();
    let mut short: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    format!("\"{short}\"")
}
