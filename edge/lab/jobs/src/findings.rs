//! What a reader gathers on its way: remarks for the plan, and what is wrong.

use crate::error::{Fault, FaultKind, ImportError};
use crate::limits;
use plan::{Note, NoteKind, Place};

/// Notes and faults, each once.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) notes: Vec<Note>,
    pub(crate) faults: Vec<Fault>,
}

impl Findings {
    /// A remark; the same one at the same place is kept once, and no more than the limit are kept.
    pub(crate) fn note(&mut self, kind: NoteKind, place: &Place, key: &str, text: impl Into<String>) {
        let note = Note { kind, place: place.clone(), key: key.to_owned(), text: text.into() };
        if self.notes.len() < limits::FINDINGS_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Something wrong; the same thing at the same place is kept once, and no more than the limit are kept.
    pub(crate) fn fault(&mut self, fault: Fault) {
        if self.faults.len() < limits::FINDINGS_MAX && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Whether no more faults are kept: nobody needs a thousand and one, so a reader may stop.
    pub(crate) fn is_full(&self) -> bool {
        self.faults.len() >= limits::FINDINGS_MAX
    }

    /// The value, or nothing and the fault is kept.
    pub(crate) fn take<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.fault(fault)).ok()
    }

    /// What the reader comes to: its value unless something is wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<(T, Vec<Note>), ImportError> {
        if self.faults.is_empty() {
            return Ok((value, self.notes));
        }
        let mut faults = self.faults;
        faults.sort_by(|one, other| {
            (one.place.line, one.place.column).cmp(&(other.place.line, other.place.column))
        });
        Err(ImportError { faults })
    }
}

/// As much of a text as a message shows.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A fault of the dialect's own tool: it refuses the same.
pub(crate) fn refused(
    place: &Place,
    found: impl Into<String>,
    tool: impl Into<String>,
    remedy: impl Into<String>,
) -> Fault {
    Fault::new(FaultKind::Refused, place.clone(), found, remedy).tool(tool)
}

/// Something that this lab cannot do.
pub(crate) fn unsupported(place: &Place, found: impl Into<String>, remedy: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Unsupported, place.clone(), found, remedy)
}

/// No text of the dialect.
pub(crate) fn malformed(place: &Place, found: impl Into<String>, remedy: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Malformed, place.clone(), found, remedy)
}

/// A size or a time that the tool reads as another than was most likely meant.
pub(crate) fn unit_trap(
    place: &Place,
    found: impl Into<String>,
    tool: impl Into<String>,
    remedy: impl Into<String>,
) -> Fault {
    Fault::new(FaultKind::UnitTrap, place.clone(), found, remedy).tool(tool)
}
