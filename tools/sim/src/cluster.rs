//! The simulator of several hosts: real nodes on virtual devices, a virtual network and a virtual directory, guests that
//! move, faults of every kind, and an oracle that checks every read.
//!
//! Each seed draws its own cluster and its own mix of faults; or it plays one kind of fault alone ([`Play`]).

mod bad_sectors;
mod compressing;
mod computing;
mod directory;
mod ends;
mod faults;
mod features;
mod guest;
mod guests;
mod host;
mod left_behind;
mod limits;
mod members;
mod moving;
mod network;
mod owners;
mod plan;
mod play;
mod rebuilding;
mod register;
mod rollback;
mod rotting;
mod row_checks;
mod scenes;
mod snapshots;
mod stand_ins;
mod summary;
mod survivors;
mod together;
mod traffic;
mod views;
mod watchers;
mod world;

pub use features::{Features, Scene};
pub use plan::Plan;
pub use play::Play;
pub use rebuilding::Slip;
pub use summary::Summary;
pub use world::World;

use replication::Rule;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one seed of a play, with a rule of the protocol removed or not; an assertion that fails counts as a finding.
///
/// # Errors
/// What was found.
pub fn run(play: Play, seed: u64, removed: Option<Rule>) -> Result<Summary, String> {
    run_pinned(play, seed, play.features(seed), removed)
}

/// The same of a scenario that is pinned: with these features, whatever the seed draws.
///
/// # Errors
/// What was found.
pub fn run_pinned(
    play: Play,
    seed: u64,
    features: Features,
    removed: Option<Rule>,
) -> Result<Summary, String> {
    caught(|| play.world(seed, features, removed).run())
}

/// Runs one seed in which the directory is lost in the midst of its faults and rebuilt from what hosts kept, with a rule of
/// that broken or not.
///
/// # Errors
/// What was found; an assertion that fails counts.
pub fn run_rebuild(seed: u64, slip: Option<Slip>) -> Result<Summary, String> {
    caught(|| {
        let mut world = World::new(seed, Features::drawn(seed), None);
        world.rebuilding = rebuilding::Rebuilding::draw(seed, slip);
        world.run()
    })
}

/// The first of `seeds` seeds from `first` on at which the mutant is caught, and how, with the features that a seed is given.
pub fn hunt(
    play: Play,
    features: impl Fn(u64) -> Features,
    removed: Rule,
    (first, seeds): (u64, u64),
) -> Option<(u64, String)> {
    let found = |seed| run_pinned(play, seed, features(seed), Some(removed)).err();
    (first..first + seeds).find_map(|seed| Some((seed, found(seed)?)))
}

/// An assertion that fails as a finding.
fn caught(run: impl FnOnce() -> Result<Summary, String>) -> Result<Summary, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            Err(format!("assertion: {}", text.unwrap_or_else(|| "unknown".to_owned())))
        }
    }
}
