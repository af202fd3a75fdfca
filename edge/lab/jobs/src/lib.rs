//! Job files of fio, DiskSPD, Vdbench and Iometer: read into a plan; a plan is written as a job file of fio.
//!
//! [`import`] reads the text of any of them; [`detect`] tells which it is; [`export`] writes a plan for fio
//! and says what was lost.
//! Each dialect has its own reader, from the first character on: a blank ends a line in Vdbench, ends nothing in fio, and
//! belongs to a name in Iometer. What a tool does silently becomes a note of the plan; what would make a run another one is
//! an [`ImportError`] with the way out.
//!
//! Relies on `plan` and `base`. Must never open a file or read the environment: both come through [`Options`].

mod builder;
mod detect;
mod diskspd;
mod error;
mod export;
mod findings;
mod fio;
pub mod fuzz;
mod includes;
mod iometer;
mod keys;
pub mod limits;
mod mix;
mod sameness;
mod source;
mod vdbench;

pub use detect::{detect, is_command_line};
pub use error::{Fault, FaultKind, ImportError};
pub use export::{ExportError, Exported, Loss, export};
pub use fio::is_device;
pub use keys::{Key, Treatment, key_table_markdown, keys};
pub use sameness::{difference, same_work};
pub use source::{Dialect, Imported, Options, Source};

use findings::malformed;

/// Reads a job of the dialect that its text looks like.
///
/// # Errors
/// When no dialect is recognised, and as [`import_as`].
pub fn import(source: &Source, options: &Options<'_>) -> Result<Imported, ImportError> {
    let Some(dialect) = detect(&source.name, &detect::unfenced(&source.text)) else {
        let place = source.start();
        return Err(malformed(
            &place,
            "nothing here looks like a job of fio, DiskSPD, Vdbench or Iometer",
            "say which of the four it is, or begin with a section such as [job] (fio), `diskspd -b…`, `sd=…` (Vdbench) or \
             `Version …` (Iometer)",
        )
        .into());
    };
    import_as(dialect, source, options)
}

/// Reads a job of this dialect. What the importer has to say stands in the plan's notes.
///
/// # Errors
/// When the text is not of the dialect, when its own tool would refuse it, when a size or time is most likely not what its
/// author meant, and when the lab cannot do what it asks.
pub fn import_as(dialect: Dialect, source: &Source, options: &Options<'_>) -> Result<Imported, ImportError> {
    if source.text.len() > limits::TEXT_BYTES_MAX {
        let place = source.start();
        return Err(malformed(
            &place,
            format!("the text has {} bytes", source.text.len()),
            format!("a job file has at most {} bytes: split it", limits::TEXT_BYTES_MAX),
        )
        .into());
    }
    let unfenced = Source::new(&source.name, detect::unfenced(&source.text));
    let source = &unfenced;
    let mut plan = match dialect {
        Dialect::Fio => fio::read(source, options),
        Dialect::DiskSpd => diskspd::read_commands(source, options),
        Dialect::DiskSpdXml => diskspd::read_profile(source, options),
        Dialect::Vdbench => vdbench::read(source, options),
        Dialect::Iometer => iometer::read(source, options),
    }?;
    if plan.name.is_empty() {
        plan.name = source.short_name().to_owned();
    }
    check(source, &plan)?;
    Ok(Imported { plan, dialect })
}

/// The plan's own rules, as faults: a reader checks what its dialect checks, and the plan checks the rest.
fn check(source: &Source, plan: &plan::Plan) -> Result<(), ImportError> {
    let place = source.start();
    let faults: Vec<Fault> = plan
        .problems()
        .into_iter()
        .take(limits::FINDINGS_MAX)
        .map(|problem| malformed(&place, format!("{}: {}", problem.at, problem.found), problem.remedy))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(ImportError { faults }) }
}
