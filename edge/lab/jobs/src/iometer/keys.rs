//! Every key of an `.icf` file: what becomes of it, and what sets it.

use super::file::{self, File, Reader};
use super::lex::Line;
use crate::error::Fault;
use crate::findings::Findings;
use crate::keys::within;
use std::time::Duration;

/// What a key sets.
#[derive(Clone, Copy)]
pub(crate) enum Apply {
    /// What the line below the key says.
    Value(fn(&mut File, &Line<'_>, &mut Findings) -> Result<(), Fault>),
    /// What the lines below the key say.
    Section(fn(&mut Reader<'_>, &Line<'_>, &mut Findings)),
}

use Apply::{Section, Value};

/// A key.
pub(crate) type Rule = crate::keys::Rule<Apply>;

pub(crate) const SECTION: &str = "Sections";
pub(crate) const SETUP: &str = "TEST SETUP";
pub(crate) const SPECS: &str = "ACCESS SPECIFICATIONS";
pub(crate) const MANAGER: &str = "MANAGER LIST";
pub(crate) const WORKER: &str = "Worker";

const NETWORK: &str = "Concerns network workers. The lab measures disks.";

/// In lower case, as they are compared; a key of the file may go on behind them.
#[rustfmt::skip]
pub(crate) const KEYS: [&[Rule]; 5] = [
    &within(SECTION, [
        Rule::structure("version", "Version of the format: a date, or 1.1.0 for the newest."),
        Rule::carried("test setup", "Duration and repeats.", Section(|reader, _, findings| reader.section(SETUP, Some("end test setup"), findings))),
        Rule::noted("results display", "Contents of Iometer's window. It has no effect on the run."),
        Rule::carried("access specifications", "Patterns by name.", Section(file::specs)),
        Rule::carried("manager list", "Machines, their workers and targets.", Section(|reader, _, findings| {
            reader.section(MANAGER, Some("end manager list"), findings)
        })),
    ]),
    &within(SETUP, [
        Rule::carried("test description", "Name of the plan.", Value(|file, value, _| {
            value.text.trim().clone_into(&mut file.description);
            Ok(())
        })),
        Rule::carried("run time", "Hours, minutes and seconds of each stage. 0 0 0 runs until stopped.", Value(file::run_time)),
        Rule::carried("ramp up time", "Ramp-up, in seconds.", Value(|file, value, _| {
            file.ramp = Duration::from_secs(value.number(0));
            Ok(())
        })),
        Rule::noted("default disk workers to spawn", "Workers of a machine that the file does not name. Add the workers.")
            .or(&["default workers to spawn"]),
        Rule::noted("default network workers to spawn", NETWORK),
        Rule::noted("record results", "Results that Iometer writes. The lab keeps all results."),
        Rule::carried("worker cycling", "Number of workers: start, step and kind of growth.", Value(|file, value, _| {
            file.worker_cycle = file::cycle(value, false)?;
            Ok(())
        })),
        Rule::carried("disk cycling", "Number of targets: start, step and kind of growth.", Value(|file, value, _| {
            file.target_cycle = file::cycle(value, false)?;
            Ok(())
        })).or(&["target cycling"]),
        Rule::carried("queue depth cycling", "Queue depth: start, end, step and kind of growth, for a cycling test type.", Value(|file, value, _| {
            file.depth_cycle = file::cycle(value, true)?;
            Ok(())
        })),
        Rule::carried("test type", "Cycles workers, targets or queue depth. Each step is a stage.", Value(file::test_type)),
    ]),
    &within(SPECS, [
        Rule::carried("access specification name", "Name of a pattern, and its default assignment.", Value(file::spec)),
        Rule::carried("size", "Lines of size, share, reads, random, delay, burst, alignment, reply.", Section(file::access_lines)),
    ]),
    &within(MANAGER, [
        Rule::carried("manager id", "Machine. Each of several machines is a machine of the plan.", Value(file::manager)),
        Rule::noted("manager network address", "Address of Dynamo. The lab runs agents on other machines."),
        Rule::carried("worker", "Name of a worker.", Section(file::worker)),
    ]),
    &within(WORKER, [
        Rule::carried("worker type", "DISK. Network workers are refused.", Value(file::kind)),
        Rule::structure("default target settings for worker", "Queue depth, seed, span and data."),
        Rule::carried("number of outstanding ios", "Queue depth per target, and a fixed seed.", Value(file::depth)),
        Rule::carried("disk maximum size", "Span in sectors of 512 bytes, its start, and the kind of data.", Value(file::span)),
        Rule::noted("use random data", "Old spelling of full random data. Write 2 behind the starting sector."),
        Rule::carried("assigned access specs", "Names of patterns. Each pattern is a stage.", Section(file::assigned)),
        Rule::structure("target assignments", "Targets of the worker."),
        Rule::carried("target", "Name of a target.", Value(|file, value, _| {
            file.worker().targets.push(value.text.trim().to_owned());
            Ok(())
        })),
        Rule::carried("target type", "DISK. Other targets are refused.", Value(file::kind)),
        Rule::noted("local network interface", NETWORK).or(&["target manager id"]),
    ]),
];

/// The key of a scope that a line's key begins with; the longest one where several do.
pub(crate) fn find(scope: &str, found: &str) -> Option<&'static Rule> {
    let rules = KEYS.iter().copied().flatten().filter(|rule| rule.key.scope == scope);
    rules
        .flat_map(|rule| rule.key.names().map(move |name| (name, rule)))
        .filter(|(name, _)| starts(found, name))
        .max_by_key(|(name, _)| name.len())
        .map(|(_, rule)| rule)
}

/// A scope that has a key.
pub(crate) fn scope_of(found: &str) -> Option<&'static str> {
    KEYS.iter().map(|rules| rules[0].key.scope).find(|scope| find(scope, found).is_some())
}

/// Whether a key is this name, or goes on behind it with something that is no letter.
fn starts(found: &str, name: &str) -> bool {
    found
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}
