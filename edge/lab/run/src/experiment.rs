//! Experiments: written plans of many runs, and what they must show.
//!
//! [`Experiment::parse`] reads the file, [`expand`] makes plans of it (pure), [`execute`] runs them in an order that spreads drift
//! evenly, [`conclude`] says what follows.

mod bench;
mod conclude;
mod execute;
mod expand;
mod expect;
mod model;

pub use bench::{Bench, Here, There};
pub use conclude::conclude;
pub use execute::{Conditions, execute};
pub use expand::{CellPlan, expand};
pub use expect::judge_all;
pub use model::{
    Compare, Expect, Experiment, ExperimentError, Figure, Fill, Over, Parameter, Precondition, Prepare,
    Schedule, Search, Sweep, Vm, Workload,
};
