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
mod left_behind;
mod members;
mod network;
mod plan;
mod rebuilding;
mod register;
mod rollback;
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
    caught(|| World::new(seed, mutant).run())
}

/// An assertion that fails as a finding.
///
/// # Errors
/// What was found.
pub fn caught(run: impl FnOnce() -> Result<Summary, String>) -> Result<Summary, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
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

/// Runs a seed with no fault but that processes are killed, and that the directory goes away each time that a component is to count.
///
/// # Errors
/// What was found; an assertion that fails counts.
pub fn run_long_joins(seed: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    caught(|| World::with_plan(Plan::long_joins(), base::Random::new(seed), mutant).run())
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

/// Runs one seed in which the directory is set back to an old snapshot in the midst of its faults, and hosts restart with that, with a rule
/// of the protocol removed or not.
///
/// # Errors
/// What was found.
pub fn run_rollback(seed: u64, mutant: Option<Mutant>) -> Result<Summary, String> {
    caught(|| rollback(seed, mutant).run())
}

/// The world of [`run_rollback`].
pub fn rollback(seed: u64, mutant: Option<Mutant>) -> World {
    let mut world = World::new(seed, mutant);
    // What is replaced while nobody knows of it is for people to see to.
    (world.plan.comings, world.plan.goings, world.plan.distrusts) = (0, 0, 0);
    (world.plan.stand_ins, world.plan.double_losses) = (0, false);
    (world.plan.rot, world.plan.dead_devices) = (0, 0);
    world.rollback = rollback::Rollback::draw(seed);
    world
}

/// Runs a seed with no fault but that a component which missed writes is all that starts with an old directory. Says how many components
/// were found later to have what it lacks.
///
/// # Errors
/// When they were not.
pub fn run_left_behind(seed: u64, mutant: Option<Mutant>) -> Result<u64, String> {
    World::left_behind(seed, mutant).play_left_behind()
}

/// The world of a seed.
pub fn world(seed: u64, mutant: Option<Mutant>) -> World {
    World::new(seed, mutant)
}

/// The first of `seeds` seeds from `first` on at which the mutant is caught, and how.
pub fn hunt(
    world: fn(u64, Option<Mutant>) -> World,
    mutant: Mutant,
    first: u64,
    seeds: u64,
) -> Option<(u64, String)> {
    (first..first + seeds).find_map(|seed| Some((seed, caught(|| world(seed, Some(mutant)).run()).err()?)))
}
