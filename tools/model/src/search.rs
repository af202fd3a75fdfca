//! Breadth first through all states, so that a violation comes with the shortest way to it.

use crate::world::World;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<A, V> {
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
        violation: V,
        /// The way to it.
        trace: Vec<A>,
    },
}

/// States are told apart by 64 bits of a hash: that two of 20 million share them has a chance of 1 in 90,000.
fn fingerprint<W: World>(world: &W, state: &W::State) -> u64 {
    let mut hasher = FxHasher::default();
    world.key(state).hash(&mut hasher);
    // The last step of the hash leaves its low bits weak; the table takes those.
    let hash = hasher.finish();
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where a state came from.
#[derive(Clone, Copy)]
struct Origin<A> {
    parent: u32,
    action: A,
}

/// Looks at all states that the world allows, or at the first `states_max`.
pub fn search<W: World>(world: &W, states_max: usize) -> Outcome<W::Action, W::Violation> {
    let first = world.first();
    let mut seen: FxHashMap<u64, ()> = FxHashMap::default();
    seen.insert(fingerprint(world, &first), ());
    let mut origins: Vec<Option<Origin<W::Action>>> = vec![None];
    let mut frontier = vec![(0u32, first)];
    let mut depth = 0;
    let mut actions = Vec::new();
    while !frontier.is_empty() {
        let mut reached = Vec::new();
        for (parent, state) in &frontier {
            actions.clear();
            world.next(state, &mut actions);
            for &action in &actions {
                let after = match world.apply(state, action) {
                    Ok(after) => after,
                    Err(violation) => {
                        return Outcome::Violated { violation, trace: trace(&origins, *parent, action) };
                    }
                };
                if seen.insert(fingerprint(world, &after), ()).is_none() {
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

fn trace<A: Copy>(origins: &[Option<Origin<A>>], mut place: u32, last: A) -> Vec<A> {
    let mut trace = vec![last];
    while let Some(Origin { parent, action }) = origins[place as usize] {
        trace.push(action);
        place = parent;
    }
    trace.reverse();
    trace
}
