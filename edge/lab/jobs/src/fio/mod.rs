//! fio: job files and command lines, read into a plan and written from one.
//!
//! The grammar and its traps are those of fio 3.33 and 3.42 (HOWTO, "Job file format" and "Parameter types"), as their own
//! parser behaves.

mod arguments;
mod convert;
mod job;
mod lex;
mod rules;
mod stages;
mod value;
mod write;

pub use convert::is_device;
pub(crate) use rules::rules;
pub(crate) use write::write;

use crate::error::ImportError;
use crate::findings::{Findings, malformed, refused};
use crate::limits;
use crate::source::{Options, Source};
use job::Job;
use lex::{Entry, Section, SectionKind};
use plan::{Place, Plan};

/// Reads a job file, or a command line that begins with `fio` or an option.
pub(crate) fn read(source: &Source, options: &Options<'_>) -> Result<Plan, ImportError> {
    let mut findings = Findings::default();
    let sections = if arguments::is_command_line(&source.text) {
        arguments::sections(source, options, &mut findings)
    } else {
        lex::sections(source, options, &mut findings)
    };
    let jobs = resolve(&sections, options, &mut findings);
    if jobs.is_empty() && findings.faults.is_empty() {
        let place = Place { file: source.name.clone(), line: 1, column: 1 };
        findings.fault(refused(
            &place,
            "the file has no job",
            "fio says `No job(s) defined`",
            "add a section such as [job] with rw=, bs= and size= or filename=; [global] alone runs nothing",
        ));
    }
    // What a faulty option would have said is missing in its job.
    let plan = match findings.faults.is_empty() {
        true => stages::plan(&jobs, options, &mut findings),
        false => Plan::default(),
    };
    let (mut plan, notes) = findings.finish(plan)?;
    plan.notes = notes;
    Ok(plan)
}

/// Every job with its own options over those of the globals above it.
fn resolve(sections: &[Section], options: &Options<'_>, findings: &mut Findings) -> Vec<Job> {
    let mut defaults = Job::default();
    let mut jobs = Vec::new();
    let (mut global_bytes, mut held_bytes) = (0, 0);
    let mut unset = Vec::new();
    let mut waits: Option<Place> = None;
    for section in sections {
        if findings.is_full() {
            break;
        }
        let bytes: usize = section.entries.iter().map(Entry::bytes).sum();
        match section.kind {
            SectionKind::Command => {
                defaults = Job::default();
                waits = Some(section.place.clone()).filter(|_| !jobs.is_empty());
            }
            SectionKind::Global => {
                global_bytes += bytes;
                defaults.apply_all(&section.entries, options, &mut unset, findings);
            }
            SectionKind::Job => {
                held_bytes += global_bytes + bytes;
                if held_bytes > limits::JOB_BYTES_MAX || jobs.len() == limits::STAGES_MAX {
                    findings.fault(malformed(
                        &section.place,
                        "the file has too many jobs and options",
                        format!(
                            "split it: at most {} jobs, and {} bytes of options of all jobs together",
                            limits::STAGES_MAX,
                            limits::JOB_BYTES_MAX
                        ),
                    ));
                    return Vec::new();
                }
                let mut job = Job {
                    name: section.name.clone(),
                    section: section.name.clone(),
                    place: section.place.clone(),
                    ..defaults.clone()
                };
                job.apply_all(&section.entries, options, &mut unset, findings);
                job.stonewall = job.stonewall.or(waits.take());
                jobs.push(job);
            }
        }
    }
    jobs
}

#[cfg(test)]
mod tests;
