//! Iometer: `.icf` files, read into a plan.
//!
//! A line that begins with `'` is a key, and the next line that does not is its value; names end at the last comma, so they
//! may have commas of their own (Iometer's source, `ManagerList.cpp` and `AccessSpecList.cpp`).

mod convert;
mod file;
mod keys;
mod lex;

pub(crate) use keys::KEYS;

use crate::error::ImportError;
use crate::findings::Findings;
use crate::source::{Options, Source};
use plan::Plan;

/// Reads an `.icf` file of any version.
pub(crate) fn read(source: &Source, options: &Options<'_>) -> Result<Plan, ImportError> {
    let mut findings = Findings::default();
    let file = file::read(source, &mut findings);
    let plan = if findings.faults.is_empty() {
        convert::plan(&file, options, &mut findings)
    } else {
        Plan::default()
    };
    let (mut plan, notes) = findings.finish(plan)?;
    plan.notes = notes;
    Ok(plan)
}

#[cfg(test)]
mod tests;
