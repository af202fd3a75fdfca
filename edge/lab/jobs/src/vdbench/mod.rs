//! Vdbench: parameter files for raw storage, read into a plan.
//!
//! A line ends at its first blank, and a line that ends in a comma goes on in the next; definitions come in a fixed order;
//! run definitions are loops (Vdbench 5.04.06, as its own parser behaves).

mod convert;
mod definitions;
mod expand;
mod keys;
mod lex;
mod settings;
mod value;

pub(crate) use keys::PARAMETERS;

use crate::error::ImportError;
use crate::findings::Findings;
use crate::source::{Options, Source};
use plan::Plan;

/// Reads a parameter file.
pub(crate) fn read(source: &Source, options: &Options<'_>) -> Result<Plan, ImportError> {
    let mut findings = Findings::default();
    let parameters = lex::parameters(source, options, &mut findings);
    // What a line lost by a fault of its text would be missing in all that names it.
    let mut plan = Plan::default();
    if findings.faults.is_empty() {
        let job = definitions::read(source, parameters, options, &mut findings);
        if findings.faults.is_empty() {
            plan = expand::plan(&job, &mut findings);
        }
    }
    let (mut plan, notes) = findings.finish(plan)?;
    plan.notes = notes;
    Ok(plan)
}

#[cfg(test)]
mod tests;
