//! What a model must say of itself to be searched.

use std::fmt::Debug;
use std::hash::Hash;

/// A configuration of a model: where it begins and what may happen.
pub trait World: Copy {
    /// Everything that is true at one moment.
    type State: Copy;
    /// One step of somebody.
    type Action: Copy + Debug;
    /// What a state or a step shows to be wrong.
    type Violation: Debug;
    /// The same for states between which nothing can tell.
    type Key: Hash;
    /// A rule that can be taken out.
    type Rule: Copy + 'static;
    /// All of them, with the names that commands take.
    const RULES: &'static [(&'static str, Self::Rule)];

    /// The same world without a rule.
    fn without(self, rule: Self::Rule) -> Self;

    /// Whether this configuration is large enough to miss the rule.
    fn can_miss(&self, _rule: Self::Rule) -> bool {
        true
    }

    /// The first state.
    fn first(&self) -> Self::State;

    /// Appends everything that may happen next.
    fn next(&self, state: &Self::State, out: &mut Vec<Self::Action>);

    /// The state after an action.
    ///
    /// # Errors
    /// What the action showed to be wrong.
    fn apply(&self, state: &Self::State, action: Self::Action) -> Result<Self::State, Self::Violation>;

    /// See [`World::Key`].
    fn key(&self, state: &Self::State) -> Self::Key;
}
