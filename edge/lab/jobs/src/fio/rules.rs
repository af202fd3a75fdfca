//! Every option of fio 3.42 that a job file may have, and what applies it, in the order of fio's manual.

mod data;
mod engine;
mod files;
mod pace;
mod pattern;
mod surroundings;

use super::job::Job;
use super::value::Value;
use crate::error::Fault;
use crate::findings::Findings;

/// Sets in a job what an option says.
pub(crate) type Apply = fn(&mut Job, &Value, &mut Findings) -> Result<(), Fault>;

/// An option of fio.
pub(crate) type Rule = crate::keys::Rule<Apply>;

/// All of them.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    [pattern::RULES, engine::RULES, files::RULES, pace::RULES, data::RULES, surroundings::RULES]
        .into_iter()
        .flatten()
}

/// The option of this spelling. fio's options are case sensitive.
pub(crate) fn find(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.key.is(name))
}

/// Whether an option may stand alone: fio wants a value of all others, be they booleans.
pub(crate) fn is_switch(name: &str) -> bool {
    find(name).is_some_and(|rule| rule.key.alone)
}
