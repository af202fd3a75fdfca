//! The generator: streams of I/Os on threads of their own, and what they measure.

pub mod arrivals;
pub mod backend;
pub mod bytes;
pub mod ledger;
pub mod memory;
mod merge;
pub mod permutation;
pub mod places;
pub mod popularity;
pub mod spindle;
pub mod stage;
mod steady;
pub mod stream;
pub mod streams;
pub mod tally;
pub mod thread;
