//! DiskSPD: command lines and XML profiles, read into a plan.
//!
//! Both become the same [`settings::Span`]s: what runs together, with its targets (DiskSPD's source,
//! `CmdLineParser.cpp`, `XmlProfileParser.cpp` and `Profile.cpp`).

mod convert;
mod draft;
mod elements;
mod flags;
mod keys;
mod settings;
mod size;
mod variables;
mod words;
mod xml;

pub(crate) use keys::{ELEMENTS, FLAGS};

use crate::error::ImportError;
use crate::findings::{Findings, malformed};
use crate::limits;
use crate::source::{Options, Source};
use plan::Plan;

/// Reads command lines: each is a stage.
pub(crate) fn read_commands(source: &Source, options: &Options<'_>) -> Result<Plan, ImportError> {
    let mut findings = Findings::default();
    let mut spans = Vec::new();
    for command in words::commands(source, options, &mut findings) {
        if spans.len() > limits::STAGES_MAX || findings.is_full() {
            break;
        }
        spans.extend(flags::read(&command, options, &mut findings));
    }
    if spans.is_empty() && findings.faults.is_empty() {
        let place = source.start();
        findings.fault(malformed(
            &place,
            "the text has no command line",
            "write `diskspd -b4K -r -d60 target`",
        ));
    }
    finish(spans, findings)
}

/// Reads an XML profile: each time span is a stage.
pub(crate) fn read_profile(source: &Source, options: &Options<'_>) -> Result<Plan, ImportError> {
    let mut findings = Findings::default();
    let spans = xml::read(source, options, &mut findings);
    finish(spans, findings)
}

fn finish(spans: Vec<settings::Span>, mut findings: Findings) -> Result<Plan, ImportError> {
    let plan =
        if findings.faults.is_empty() { convert::plan(&spans, &mut findings) } else { Plan::default() };
    let (mut plan, notes) = findings.finish(plan)?;
    plan.notes = notes;
    Ok(plan)
}

#[cfg(test)]
mod tests;
