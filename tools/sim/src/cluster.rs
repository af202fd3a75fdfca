//! The simulator of several hosts: real nodes on virtual devices, a virtual network and a virtual directory, guests that
//! move, faults of every kind, and an oracle that checks every read.
//!
//! Each seed draws its own cluster and its own mix of faults.

mod bad_sectors;
mod directory;
mod ends;
mod faults;
mod guest;
mod guests;
mod host;
mod members;
mod network;
mod plan;
mod rebuilding;
mod register;
mod scenes;
mod stand_ins;
mod summary;
mod survivors;
mod traffic;
mod watchers;
mod world;

pub use plan::Plan;
pub use rebuilding::Slip;
pub use summary::Summary;
pub use survivors::Survivor;
pub use world::World;

use replication::Mutant;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one seed; an assertion that fails counts as a finding.
///
/// # Errors
/// What was found.
pub fn run_seed(seed: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    match catch_unwind(AssertUnwindSafe(|| World::new(seed, mutant).run())) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Err(format!("assertion: {}", text.unwrap_or_else(|| "unknown".to_owned())))
        }
    }
}

/// Runs one seed without any fault but this: a component is lost, and when another stands in for it, all others of its
/// place.
///
/// # Errors
/// What was found. That guests were answered while the others were away is told by the summary.
pub fn run_double_loss(seed: u64, copies: u64) -> Result<Summary, String> {
    double_loss(seed, copies).run()
}

/// The same with all its variants, guests that rest while the first component is away, and a rule removed or not.
///
/// # Errors
/// What was found.
pub fn run_quiet_loss(seed: u64, copies: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    World::with_plan(Plan::quiet_loss(copies), base::Random::new(seed), mutant).run()
}

/// The same, where the first component comes back for a moment before all others are lost.
///
/// # Errors
/// What was found.
pub fn run_relapse(seed: u64, copies: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    World::with_plan(Plan::relapse(copies), base::Random::new(seed), mutant).run()
}

/// Runs a seed with no fault but that devices hang, one after the other, with a rule removed or not.
///
/// # Errors
/// What the oracle found.
pub fn run_hanging(seed: u64, copies: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    let mut world = World::with_plan(Plan::hanging(copies), base::Random::new(seed), mutant);
    world.hangs = base::Random::new(seed);
    world.run()
}

/// Runs a seed with no fault but that blocks cannot be read on several hosts, never the same on two, while components come, with a
/// rule removed or not.
///
/// # Errors
/// What the oracle found.
pub fn run_bad_sectors(seed: u64, copies: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    let mut world = World::with_plan(Plan::bad_sectors(copies), base::Random::new(seed), mutant);
    world.spoils = base::Random::new(seed);
    world.run()
}

/// Runs a seed with no fault but that hosts with guests hear nothing for a while, one after the other, with a rule removed or not.
///
/// # Errors
/// What the oracle found.
pub fn run_deaf(seed: u64, copies: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    let mut world = World::with_plan(Plan::deaf(copies), base::Random::new(seed), mutant);
    world.deafness = base::Random::new(seed);
    world.run()
}

/// Runs a seed with no fault but that a component which has just been brought up to date is all that is left of its place, with a rule
/// removed or not.
///
/// # Errors
/// What the oracle found.
pub fn run_survivor(seed: u64, kind: Survivor, mutant: Option<Mutant>) -> Result<Summary, String> {
    World::with_plan(Plan::survivor(kind), base::Random::new(seed), mutant).run()
}

/// The world of [`run_double_loss`].
pub fn double_loss(seed: u64, copies: u64) -> World {
    World::with_plan(Plan::double_loss(copies), base::Random::new(seed), None)
}

/// Runs one seed without any fault but this: processes are killed, and word of it reaches the other hosts when a later process
/// of the same host is isolated.
///
/// # Errors
/// What was found.
pub fn run_late_words(seed: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    let mut world = World::with_plan(Plan::late_words(), base::Random::new(seed), mutant);
    world.watchers = watchers::Watchers::late(seed);
    world.run()
}

/// Runs one seed in which the directory is lost in the midst of its faults and rebuilt from what hosts kept, with a rule of
/// that broken or not.
///
/// # Errors
/// What was found.
pub fn run_rebuild(seed: u64, slip: Option<Slip>) -> Result<Summary, String> {
    let run = || {
        let mut world = World::new(seed, None);
        world.rebuilding = rebuilding::Rebuilding::draw(seed, slip);
        world.run()
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("an assertion failed".to_owned()))
}

/// The first of `seeds` seeds from `first` on at which the mutant is caught, and how.
pub fn hunt(mutant: Mutant, first: u64, seeds: u64) -> Option<(u64, String)> {
    (first..first + seeds).find_map(|seed| Some((seed, run_seed(seed, Some(mutant)).err()?)))
}
