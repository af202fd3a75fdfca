//! Which safety rules of a crate hold: all of them, but for one that the simulator removed to show that it notices.
//!
//! A crate lists its rules in one enum (`src/rules.rs`) and asks for them by name where they act:
//! `self.rules.hold(Rule::AcknowledgeOnlyStable)`. A build without the feature `mutants` answers yes at compile time.

/// The rules of type `R` that hold in this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules<R> {
    removed: Option<R>,
}

impl<R: Copy + PartialEq> Rules<R> {
    /// All rules hold.
    pub const ALL: Rules<R> = Rules { removed: None };

    /// All rules but one hold. A build without the feature `mutants` keeps that one, too.
    pub const fn without(rule: R) -> Rules<R> {
        Rules { removed: Some(rule) }
    }

    /// Whether the rule holds.
    pub fn hold(self, rule: R) -> bool {
        !(cfg!(feature = "mutants") && self.removed == Some(rule))
    }
}

impl<R: Copy + PartialEq> From<Option<R>> for Rules<R> {
    fn from(removed: Option<R>) -> Rules<R> {
        Rules { removed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Rule {
        First,
        Second,
    }

    #[test]
    fn only_the_removed_rule_does_not_hold_and_only_in_builds_for_the_simulator() {
        assert!(Rules::ALL.hold(Rule::First));
        let rules = Rules::without(Rule::First);
        assert_eq!(rules.hold(Rule::First), !cfg!(feature = "mutants"));
        assert!(rules.hold(Rule::Second));
    }
}
