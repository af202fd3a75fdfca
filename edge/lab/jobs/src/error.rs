//! Why a job could not be read: what was found, what the dialect's own tool makes of it, and the way out.

use plan::Place;
use std::fmt;

/// What kind of thing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// The dialect's own tool refuses it too, for the same reason.
    Refused,
    /// The tool would take it, and read another size or time than its author most likely meant.
    UnitTrap,
    /// The tool can do it, the lab cannot.
    Unsupported,
    /// It is no text of this dialect.
    Malformed,
}

impl FaultKind {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Refused => "refused",
            FaultKind::UnitTrap => "unit trap",
            FaultKind::Unsupported => "not possible here",
            FaultKind::Malformed => "cannot be read",
        }
    }
}

/// One thing that is wrong with a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// Where it stands.
    pub place: Place,
    /// What was found, as a clause: `bs=8 is 8 bytes`.
    pub found: String,
    /// What the dialect's own tool says or does, if that is worth knowing.
    pub tool: Option<String>,
    /// What was most likely meant, and the way out.
    pub remedy: String,
}

impl Fault {
    /// A fault that nothing is known of but what was found and what to do.
    pub fn new(kind: FaultKind, place: Place, found: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault { kind, place, found: found.into(), tool: None, remedy: remedy.into() }
    }

    /// Adds what the dialect's own tool says or does.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Fault {
        self.tool = Some(tool.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.place, self.found, self.kind.name())?;
        if let Some(tool) = &self.tool {
            write!(formatter, "; {tool}")?;
        }
        write!(formatter, ": {}", self.remedy)
    }
}

/// Why a job could not be read. There is at least one fault; where faults are independent, all of them are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// In the order of the text, each once.
    pub faults: Vec<Fault>,
}

impl ImportError {
    /// Of one fault.
    pub fn one(fault: Fault) -> ImportError {
        ImportError { faults: vec![fault] }
    }
}

impl From<Fault> for ImportError {
    fn from(fault: Fault) -> Self {
        ImportError::one(fault)
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = |one: &Fault, other: &Fault| {
            let what =
                |fault: &Fault| (fault.kind, fault.found.clone(), fault.tool.clone(), fault.remedy.clone());
            one.place.file == other.place.file && what(one) == what(other)
        };
        for (index, fault) in self.faults.iter().enumerate() {
            // The same thing at several places is told once, with its lines.
            if self.faults[..index].iter().any(|earlier| same(earlier, fault)) {
                continue;
            }
            if index > 0 {
                writeln!(formatter)?;
            }
            write!(formatter, "{fault}")?;
            let lines: Vec<String> = (self.faults[index + 1..].iter())
                .filter(|later| same(fault, later))
                .map(|later| later.place.line.to_string())
                .collect();
            match lines.len() {
                0 => {}
                1..=6 => write!(formatter, " (also in line {})", lines.join(", "))?,
                count => {
                    write!(formatter, " (also in {count} more lines, {} to {})", lines[0], lines[count - 1])?
                }
            }
        }
        Ok(())
    }
}

impl std::error::Error for ImportError {}
