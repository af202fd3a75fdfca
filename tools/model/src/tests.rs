//! A small configuration in full, and every rule missed in it. Larger ones are commands (`docs/TESTING.md`).

use crate::action::{Config, Method};
use crate::rule::Rule;
use crate::search::{Outcome, search};

const SMALL: Config =
    Config { components: 2, epochs: 2, writes: 2, method: Method::Mirror, is_early: true, without: None };

#[test]
fn a_small_mirror_has_no_wrong_state() {
    let outcome = search(&SMALL, usize::MAX);
    assert!(matches!(outcome, Outcome::Exhausted { .. }), "{outcome:?}");
    let outcome = search(&Config { is_early: false, ..SMALL }, usize::MAX);
    // As many as in the model that the protocol was drawn up with: the two agree on every state.
    assert_eq!(outcome, Outcome::Exhausted { states: 128_843, depth: 33 });
}

#[test]
fn a_small_parity_group_has_no_wrong_state() {
    let outcome = search(&Config { method: Method::Parity, ..SMALL }, usize::MAX);
    assert!(matches!(outcome, Outcome::Exhausted { .. }), "{outcome:?}");
}

#[test]
fn every_rule_is_missed_when_it_is_removed() {
    for (name, rule) in Rule::ALL {
        let outcome = search(&Config { without: Some(rule), ..SMALL }, usize::MAX);
        assert!(matches!(outcome, Outcome::Violated { .. }), "{name}: {outcome:?}");
    }
}
