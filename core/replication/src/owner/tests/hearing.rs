//! Components that are not heard, by an owner that may be the one that hears nothing.

use super::*;

/// Two copies and a change under way, and a directory that keeps its answers back.
fn unheard(removed: Option<Rule>, change: LinkChange) -> Bench {
    let mut bench = Bench::serving(vec![member(1, Standing::Active), member(2, Standing::Active)], removed);
    bench.step(Input::Used { is_used: true });
    bench.silent.insert(node(2));
    bench.write(1);
    bench.wait(limits::SILENCE);
    bench.is_slow = true;
    bench.step(Input::Link { node: node(2), change });
    bench
}

/// The directory tells of the record as it is.
fn hear(bench: &mut Bench) {
    let record = Some((bench.version, bench.owner.record().1.clone()));
    bench.step(Input::Recorded { record });
}

fn is_taken_out(bench: &Bench) -> bool {
    let asked_for = bench.asked_for.as_ref();
    asked_for.is_some_and(|roster| roster.members[1].standing == Standing::Absent)
}

/// A host that received nothing had the record name its own copy alone, by transactions of which it never heard: no other host
/// could serve the disk until it was heard again, though all the others were well.
#[test]
fn a_component_that_is_not_heard_leaves_only_once_the_directory_has_answered() {
    let mut bench = unheard(None, LinkChange::Silent);
    bench.pass(std::time::Duration::from_secs(9));
    assert!(!is_taken_out(&bench), "nothing was heard since");
    hear(&mut bench);
    assert!(is_taken_out(&bench));
    if cfg!(feature = "mutants") {
        assert!(is_taken_out(&unheard(Some(Rule::AskBeforeTakingOut), LinkChange::Silent)));
    }
}

#[test]
fn one_whose_process_is_known_to_have_ended_leaves_at_once() {
    assert!(is_taken_out(&unheard(None, LinkChange::Ended)));
}

#[test]
fn one_that_is_heard_again_before_the_record_was_asked_stays() {
    let mut bench = unheard(None, LinkChange::Silent);
    bench.silent.clear();
    bench.step(Input::Link { node: node(2), change: LinkChange::Up });
    assert_eq!(bench.done, [(Token(1), true)], "what was under way was sent again");
    hear(&mut bench);
    assert_eq!(bench.asked_for, None);
    assert_eq!(bench.components(), [(1, Standing::Active), (2, Standing::Active)]);
}

#[test]
fn an_owner_that_hears_nobody_and_has_no_guests_leaves_the_disk_to_others_for_a_while() {
    let alone = |is_used| {
        let mut bench = unheard(None, LinkChange::Silent);
        bench.step(Input::Used { is_used });
        for host in 3..100 {
            bench.step(Input::Link { node: node(host), change: LinkChange::Silent });
        }
        hear(&mut bench);
        bench
    };
    assert!(is_taken_out(&alone(true)), "a guest here waits for it");
    let mut bench = alone(false);
    assert!(!is_taken_out(&bench));
    bench.wait(limits::ALONE_PATIENCE);
    assert!(is_taken_out(&bench), "nobody has taken the disk over");
}
