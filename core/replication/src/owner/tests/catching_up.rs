//! What guests wait for while a component is brought up to date.

use super::*;

/// Two copies, of which the second is being filled: a MiB of the first is listed, and nothing may be copied yet.
fn filling(removed: Option<Rule>) -> Bench {
    let members = vec![member(1, Standing::Active), member(2, Standing::Absent)];
    let mut bench = Bench::claiming(members, removed);
    let versions = wire::Versions::Regions(Box::new([WriteId { epoch: 1, sequence: 3 }; 16]));
    bench.listings.insert(ComponentId(1), vec![wire::PartVersions { part: 9, versions }]);
    bench.begin();
    assert_eq!(bench.components()[1], (2, Standing::Absent));
    bench
}

#[test]
fn it_tells_how_far_it_has_looked_as_long_as_that_is_not_all() {
    let members = vec![member(1, Standing::Active), member(2, Standing::Absent)];
    let mut bench = Bench::claiming(members, None);
    let versions = || wire::Versions::Regions(Box::new([WriteId { epoch: 1, sequence: 3 }; 16]));
    let parts = [1, 9].map(|part| wire::PartVersions { part, versions: versions() });
    bench.listings.insert(ComponentId(1), parts.to_vec());
    bench.listing_parts = 4;
    bench.begin();
    let told = |bench: &Bench| {
        let member = bench.owner.state().members[1].clone();
        (member.resync, member.looked_through)
    };
    assert_eq!(told(&bench), (Some((0, 1 << 20)), Some(4)), "part 9 was not seen");
    bench.silent.insert(node(2));
    bench.step(Input::Pace { bytes: 1 << 20 });
    bench.answer_late();
    assert_eq!(told(&bench), (Some((1 << 20, 1 << 20)), None));
}

/// One change was acknowledged that the component does not have yet; all else is copied to it.
fn with_one_trailing(removed: Option<Rule>) -> Bench {
    let mut bench = filling(removed);
    bench.silent.insert(node(2));
    bench.write(1);
    bench.silent.clear();
    bench.step(Input::Pace { bytes: 1 << 20 });
    bench
}

fn has_ended(bench: &Bench, token: u64) -> bool {
    bench.done.contains(&(Token(token), true))
}

#[test]
fn guests_do_not_wait_for_a_component_that_is_being_filled() {
    let mut bench = filling(None);
    bench.silent.insert(node(2));
    bench.write(1);
    assert!(has_ended(&bench, 1));
    bench.read(2);
    assert!(has_ended(&bench, 2), "what was written may be read");
    bench.write(3);
    assert!(!has_ended(&bench, 3), "two changes of a range are never under way with a component at once");
    bench.answer_late();
    assert!(has_ended(&bench, 3));
}

#[test]
fn one_that_fails_while_it_is_filled_stalls_nobody() {
    let mut bench = filling(None);
    bench.silent.insert(node(2));
    bench.write(1);
    bench.write(2);
    bench.step(Input::Link { node: node(2), change: LinkChange::Silent });
    assert!(has_ended(&bench, 1) && has_ended(&bench, 2));
}

#[test]
fn a_component_counts_only_once_it_has_what_was_acknowledged_without_it() {
    let mut bench = with_one_trailing(None);
    assert_eq!(bench.components()[1], (2, Standing::Absent));
    bench.silent.insert(node(2));
    bench.write_at(2, 7);
    assert!(!has_ended(&bench, 2), "from the end of the copies on it is waited for");
    bench.answer_late();
    assert_eq!(bench.components()[1], (2, Standing::Active));
    assert!(has_ended(&bench, 2));
}

#[test]
fn it_is_waited_for_while_the_record_is_asked() {
    let acknowledged = |removed| {
        let mut bench = with_one_trailing(removed);
        bench.is_slow = true;
        bench.answer_late();
        let asked_for = bench.asked_for.as_ref().expect("all is copied");
        assert_eq!(asked_for.members[1].standing, Standing::Active);
        bench.silent.insert(node(2));
        bench.write(2);
        has_ended(&bench, 2)
    };
    assert!(!acknowledged(None));
    if cfg!(feature = "mutants") {
        assert!(acknowledged(Some(Rule::WaitForJoining)));
    }
}

#[test]
fn without_the_rule_it_would_count_too_soon() {
    if cfg!(feature = "mutants") {
        let bench = with_one_trailing(Some(Rule::JoinCaughtUp));
        assert_eq!(bench.components()[1], (2, Standing::Active));
    }
}

#[test]
fn an_owner_that_is_released_does_not_wait_for_one_that_is_being_filled() {
    let mut bench = with_one_trailing(None);
    bench.silent.insert(node(2));
    bench.write_at(2, 7);
    assert!(!has_ended(&bench, 2));
    bench.step(Input::Release);
    assert!(has_ended(&bench, 2));
}
