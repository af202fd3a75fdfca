//! The lab at work: real files, real NBD servers, real agents, and what goes wrong with them.

mod agents;
mod fixtures;
mod measuring;
mod refusals;
mod rules;
mod safety;
mod verdicts;
mod verifying;
