//! What an importer has to say about a job beside the plan that it became.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in a text that a person wrote. Lines and columns count from 1; a column counts characters.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file, or what stands for it (`command line`).
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// A default or a silent rule of the dialect decides something that matters.
    Default,
    /// Carried over, but not exactly as the dialect's own tool does it.
    Changed,
    /// Not carried over: the run does not do it.
    NotCarried,
    /// The dialect's own tool would do something else than its author most likely meant.
    Trap,
}

impl NoteKind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            NoteKind::Default => "default",
            NoteKind::Changed => "changed",
            NoteKind::NotCarried => "not carried over",
            NoteKind::Trap => "trap",
        }
    }
}

/// One remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// Where it stands.
    pub place: Place,
    /// The option, flag or field concerned, as its dialect spells it.
    pub key: String,
    /// A sentence.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({}): {}", self.place, self.key, self.kind.name(), self.text)
    }
}
