//! The lab at work: generator, targets, experiments, agents.
//!
//! Everything that a run touches is here: clocks, files, sockets, threads. What it decides from is pure and stands in the crates
//! beside it ([`plan`], [`statistics`], [`lens`]); what it measured leaves as [`measured::Run`].

pub mod agents;
pub mod clock;
pub mod commands;
pub mod comparison;
pub mod depth;
pub mod experiment;
pub mod generator;
pub mod nbd;
pub mod profiles;
pub mod runner;
pub mod system;
pub mod target;
pub mod tracing;
pub mod verification;
