//! Every key of an `.icf` file, and what becomes of it.

use crate::keys::Key;

const SETUP: &str = "TEST SETUP";
const SPECS: &str = "ACCESS SPECIFICATIONS";
const MANAGER: &str = "MANAGER LIST";
const SECTION: &str = "Sections";

/// In lower case, as they are compared; a key of the file may go on behind them.
pub(crate) const KEYS: &[Key] = &[
    Key::carried("version", "The version of the format: dates, or 1.1.0 which is later than all of them.")
        .of(SECTION),
    Key::carried("test setup", "How long and how often.").of(SECTION),
    Key::noted("results display", "What Iometer's window shows; it has no effect on the run.").of(SECTION),
    Key::carried("access specifications", "Patterns by name.").of(SECTION),
    Key::carried("manager list", "Machines, their workers and targets.").of(SECTION),
    Key::carried("test description", "The plan's name.").of(SETUP),
    Key::carried("run time", "Hours, minutes and seconds of each stage; 0 0 0 is until stopped.").of(SETUP),
    Key::carried("ramp up time", "Seconds before anything counts.").of(SETUP),
    Key::noted(
        "default disk workers to spawn",
        "Workers of a machine that the file does not name; add them yourself.",
    )
    .of(SETUP)
    .or(&["default workers to spawn"]),
    Key::noted("default network workers to spawn", "Network workers; the lab has none.").of(SETUP),
    Key::noted("record results", "What Iometer writes; the lab keeps everything.").of(SETUP),
    Key::carried("worker cycling", "Start, step and kind of growth of the number of workers.").of(SETUP),
    Key::carried("disk cycling", "Start, step and kind of growth of the number of targets.")
        .of(SETUP)
        .or(&["target cycling"]),
    Key::carried(
        "queue depth cycling",
        "Start, end, step and kind of growth of the depth; a cycling test type asks for it.",
    )
    .of(SETUP),
    Key::carried("test type", "Which of workers, targets and depth are cycled; each step becomes a stage.")
        .of(SETUP),
    Key::carried("access specification name", "A pattern's name, and to whom it is given by default.")
        .of(SPECS),
    Key::carried("size", "Lines of size, share, reads, random, delay, burst, alignment, reply.").of(SPECS),
    Key::carried("manager id", "A machine; each of several becomes a virtual machine of the plan.")
        .of(MANAGER),
    Key::noted("manager network address", "Where Dynamo runs; the lab has agents.").of(MANAGER),
    Key::carried("worker", "The name of a worker.").of(MANAGER),
    Key::carried("worker type", "DISK; network workers are refused.").of(MANAGER),
    Key::carried("default target settings for worker", "Depth, seed, span and data of the worker's targets.")
        .of(MANAGER),
    Key::carried("number of outstanding ios", "The depth on each target; a fixed seed.").of(MANAGER),
    Key::carried("disk maximum size", "Span in sectors of 512 bytes, its start, and the kind of data.")
        .of(MANAGER),
    Key::noted("local network interface", "Network workers; the lab has none.").of(MANAGER),
    Key::carried("assigned access specs", "The names of patterns: each is a stage.").of(MANAGER),
    Key::carried("target assignments", "The worker's targets.").of(MANAGER),
    Key::carried("target", "The name of a target.").of(MANAGER),
    Key::carried("target type", "DISK; others are refused.").of(MANAGER),
    Key::noted("target manager id", "Network targets; the lab has none.").of(MANAGER),
    Key::noted(
        "use random data",
        "An old spelling of full random data; write pattern 2 behind the starting sector.",
    )
    .of(MANAGER),
];

/// The key that a line's key begins with; the longest one where several do.
pub(crate) fn find(found: &str) -> Option<&'static Key> {
    KEYS.iter()
        .flat_map(|key| std::iter::once(&key.name).chain(key.aliases).map(move |name| (name, key)))
        .filter(|(name, _)| starts(found, name))
        .max_by_key(|(name, _)| name.len())
        .map(|(_, key)| key)
}

/// Whether a key is this name, or goes on behind it with something that is no letter.
fn starts(found: &str, name: &str) -> bool {
    found
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}
