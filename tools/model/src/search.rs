//! Breadth first through all states, so that a violation comes with the shortest way to it.

use crate::action::{Action, Config, Violation, apply, next};
use crate::state::State;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All states, and none of them is wrong.
    Exhausted {
        /// How many there are.
        states: usize,
        /// Steps to the farthest.
        depth: usize,
    },
    /// So many states were seen, and none is wrong.
    Stopped {
        /// How many.
        states: usize,
        /// Steps to the farthest.
        depth: usize,
    },
    /// A state that must not be.
    Violated {
        /// What is wrong with it.
        violation: Violation,
        /// The way to it.
        trace: Vec<Action>,
    },
}

/// States are told apart by 64 bits of a hash: that two of 20 million share them has a chance of 1 in 90,000.
fn fingerprint(state: &State) -> u64 {
    let mut hasher = FxHasher::default();
    state.key().hash(&mut hasher);
    // The last step of the hash leaves its low bits weak; the table takes those.
    let hash = hasher.finish();
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where a state came from.
#[derive(Clone, Copy)]
struct Origin {
    parent: u32,
    action: Action,
}

/// Looks at all states that the configuration allows, or at the first `states_max`.
pub fn search(config: &Config, states_max: usize) -> Outcome {
    let first = State::first(config.components);
    let mut seen: FxHashMap<u64, ()> = FxHashMap::default();
    seen.insert(fingerprint(&first), ());
    let mut origins: Vec<Option<Origin>> = vec![None];
    let mut frontier = vec![(0u32, first)];
    let mut depth = 0;
    let mut actions = Vec::new();
    while !frontier.is_empty() {
        let mut reached = Vec::new();
        for (parent, state) in &frontier {
            actions.clear();
            next(config, state, &mut actions);
            for &action in &actions {
                let after = match apply(config, state, action) {
                    Ok(after) => after,
                    Err(violation) => {
                        return Outcome::Violated { violation, trace: trace(&origins, *parent, action) };
                    }
                };
                if seen.insert(fingerprint(&after), ()).is_none() {
                    reached.push((origins.len() as u32, after));
                    origins.push(Some(Origin { parent: *parent, action }));
                }
            }
            if origins.len() > states_max {
                return Outcome::Stopped { states: origins.len(), depth };
            }
        }
        frontier = reached;
        depth += 1;
    }
    Outcome::Exhausted { states: origins.len(), depth: depth - 1 }
}

fn trace(origins: &[Option<Origin>], mut place: u32, last: Action) -> Vec<Action> {
    let mut trace = vec![last];
    while let Some(Origin { parent, action }) = origins[place as usize] {
        trace.push(action);
        place = parent;
    }
    trace.reverse();
    trace
}
