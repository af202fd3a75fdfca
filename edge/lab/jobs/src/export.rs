//! Plans as texts of a dialect, and what is lost.
//!
//! The law: reading a text that lost nothing gives a plan that does the same work ([`crate::same_work`]). Every export is
//! read again before it is handed out; a difference that no loss tells of becomes one.

use crate::{Dialect, Options, Source, difference, import_as};
use plan::Plan;
use std::fmt;

/// A plan as a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// What to write to a file.
    pub text: String,
    /// What the text does not say; empty where it says all.
    pub losses: Vec<Loss>,
}

/// Something of a plan that fio cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What, as a sentence.
    pub what: String,
    /// Where: stage and group.
    pub at: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.at, self.what)
    }
}

/// Why a plan cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan cannot be written for fio: {reason}")]
pub struct ExportError {
    /// Why.
    pub reason: String,
}

/// What a writer gathers.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) at: String,
    all: Vec<Loss>,
}

impl Losses {
    /// Something is lost, here; the same once.
    pub(crate) fn add(&mut self, what: impl Into<String>) {
        let loss = Loss { what: what.into(), at: self.at.clone() };
        if !self.all.contains(&loss) && self.all.len() < crate::limits::FINDINGS_MAX {
            self.all.push(loss);
        }
    }

    /// Something is lost if a condition holds.
    pub(crate) fn add_if(&mut self, lost: bool, what: &str) {
        if lost {
            self.add(what);
        }
    }
}

/// Writes a plan as a job file of fio.
///
/// # Errors
/// When the plan itself has problems.
pub fn export(plan: &Plan) -> Result<Exported, ExportError> {
    if let Some(problem) = plan.problems().first() {
        return Err(ExportError { reason: problem.to_string() });
    }
    let mut losses = Losses { at: "plan".into(), all: Vec::new() };
    let text = crate::fio::write(plan, &mut losses);
    losses.at = "plan".into();
    if losses.all.is_empty() {
        match import_as(Dialect::Fio, &Source::new("export", text.as_str()), &Options::default()) {
            Ok(read) => {
                if let Some(found) = difference(plan, &read.plan) {
                    losses.add(format!("read again, the text is another plan: {found}"));
                }
            }
            Err(error) => losses.add(format!("the text cannot be read again: {error}")),
        }
    }
    Ok(Exported { text, losses: losses.all })
}
