//! Many runs: seeds one after the other, a crash at every step, mutants.

use crate::features::Features;
use crate::world::{Summary, World};
use diskgroup::Rule;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Steps of one life in an ordinary run.
pub const STEPS: u64 = 1500;

/// Runs one seed; an assertion that fails counts as a finding.
///
/// # Errors
/// What was found.
pub fn run_seed(
    seed: u64,
    removed: Option<Rule>,
    crash_at: Option<u64>,
    steps: u64,
) -> Result<Summary, String> {
    caught(|| World::new(seed, removed, crash_at).run(steps))
}

/// Runs a scenario that is pinned: a seed with these features, whatever it draws.
///
/// # Errors
/// What was found.
pub fn run_pinned(
    seed: u64,
    features: Features,
    removed: Option<Rule>,
    steps: u64,
) -> Result<Summary, String> {
    caught(|| World::with_features(seed, features, removed, None).run(steps))
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

/// Crashes the host at every step of one trace, once each.
///
/// # Errors
/// The step and what was found.
pub fn crash_everywhere(seed: u64, steps: u64) -> Result<u64, String> {
    for at in 1..=steps {
        run_seed(seed, None, Some(at), steps).map_err(|why| format!("crash at step {at}: {why}"))?;
    }
    Ok(steps)
}

/// The first of `seeds` seeds from `first` on at which the removal of the rule is caught, and how, with the features that a seed
/// is given.
pub fn hunt(
    features: impl Fn(u64) -> Features,
    removed: Rule,
    (first, seeds): (u64, u64),
) -> Option<(u64, String)> {
    let found = |seed| run_pinned(seed, features(seed), Some(removed), STEPS).err();
    (first..first + seeds).find_map(|seed| Some((seed, found(seed)?)))
}
