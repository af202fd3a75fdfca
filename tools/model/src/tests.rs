//! Small configurations in full, and every rule missed in them. Larger ones are commands (`docs/TESTING.md`).

use crate::search::{Outcome, search};
use crate::world::World;
use crate::{moves, parity, protocol};

const MIRROR: protocol::action::Config =
    protocol::action::Config { components: 2, epochs: 2, writes: 2, is_early: true, without: None };
const PARITY: parity::config::Config =
    parity::config::Config { parity: 1, epochs: 2, writes: 2, without: None };
const MOVES: moves::config::Config = moves::config::Config { epochs: 2, writes: 2, turns: 1, without: None };

/// Looks at all states of a world, and at those without each of its rules.
fn check<W: World>(world: W, states_expected: usize) {
    match search(&world, usize::MAX) {
        Outcome::Exhausted { states, .. } => assert_eq!(states, states_expected),
        Outcome::Stopped { .. } => unreachable!("nothing stops it"),
        Outcome::Violated { violation, trace } => panic!("{violation:?}, after {trace:?}"),
    }
    for (name, rule) in W::RULES.iter().filter(|(_, rule)| world.can_miss(*rule)) {
        let outcome = search(&world.without(*rule), usize::MAX);
        assert!(matches!(outcome, Outcome::Violated { .. }), "{name} is not missed");
    }
}

#[test]
fn a_small_mirror_has_no_wrong_state_and_needs_every_rule() {
    check(MIRROR, 226_365);
}

#[test]
fn a_mirror_whose_guests_wait_for_resync_has_as_many_states_as_the_model_that_it_was_drawn_up_with() {
    let outcome = search(&protocol::action::Config { is_early: false, ..MIRROR }, usize::MAX);
    assert!(matches!(outcome, Outcome::Exhausted { states: 128_843, depth: 33 }));
}

#[test]
fn a_small_place_with_parity_has_no_wrong_state_and_needs_every_rule() {
    check(PARITY, 1_650_514);
}

#[test]
fn what_needs_two_parity_members_is_missed_with_two() {
    let world = parity::config::Config { parity: 2, ..PARITY };
    for (name, rule) in parity::rule::Rule::ALL.into_iter().filter(|(_, rule)| !PARITY.can_miss(*rule)) {
        let outcome = search(&world.without(rule), 20_000_000);
        assert!(matches!(outcome, Outcome::Violated { .. }), "{name} is not missed");
    }
}

#[test]
fn a_small_move_has_no_wrong_state_and_needs_every_rule() {
    check(MOVES, 2_268_253);
}
