//! Requests that a member refuses while it still counts. A component on the owner's host refuses within the same step.

use super::*;

/// No member of the place can be spared, and the data member of a held change no longer exists on its host. The owner retried the fold within
/// the same step, so its thread did nothing else (cluster seed 1000716).
#[test]
fn a_fold_that_a_member_refuses_begins_again_after_a_pause() {
    let members = (1..=3).zip(0..).map(|(host, at)| in_rows(host, at, Standing::Active)).collect();
    let mut bench = Bench::new(members);
    bench.write_of(1, 0, Some(layout::Target::Data(0)));
    bench.missing.insert(ComponentId(1));
    bench.record(|members| members[1].standing = Standing::Absent);
    assert!(bench.count(1, "refused") > 0, "it is folded, for the place is not whole any more");
    bench.pass(limits::RETRY);
    for (number, block) in (2..).zip([0, 1, 0]) {
        bench.write_of(number, block, Some(layout::Target::Data(0)));
    }
    let at_once = bench.count(1, "refused");
    assert!(at_once <= 6, "{at_once}");
    bench.pass(limits::RETRY * 10);
    let refused = bench.count(1, "refused") - at_once;
    assert!((8..=22).contains(&refused), "{refused} in ten pauses");
    bench.missing.clear();
    bench.pass(limits::RETRY * 3);
    assert_eq!(bench.count(1, "promote"), 1);
    let mut done = bench.done.split_off(1);
    done.sort_unstable_by_key(|(token, _)| token.0);
    assert_eq!(done, [(Token(2), true), (Token(3), true), (Token(4), true)]);
}

/// The same loop with a barrier: a departed member lacks a change, which is acknowledged once the watermark is stable (cluster seed 1201858).
#[test]
fn a_barrier_that_a_member_refuses_is_raised_again_after_a_pause() {
    let members = (1..=3).zip(0..).map(|(host, at)| in_rows(host, at, Standing::Active)).collect();
    let mut bench = Bench::new(members);
    bench.silent.insert(node(3));
    bench.write_of(1, 0, Some(layout::Target::Rows));
    bench.missing.insert(ComponentId(1));
    bench.step(Input::Link { node: node(3), change: LinkChange::Silent });
    bench.wait(limits::RECONNECT);
    assert_eq!(bench.components()[2], (3, Standing::Absent));
    let at_once = bench.count(1, "refused");
    bench.pass(limits::RETRY * 10);
    let refused = bench.count(1, "refused") - at_once;
    assert!(at_once <= 3 && (8..=16).contains(&refused), "{at_once}, {refused} in ten pauses");
    assert_eq!(bench.done, [], "nobody relies on it yet");
    bench.missing.clear();
    bench.pass(limits::RETRY * 2);
    assert_eq!(bench.done, [(Token(1), true)]);
}

/// A host that opened a disk group refused reads of a component that it did not know yet. The owner retried each read within the same step.
#[test]
fn what_a_busy_host_cannot_give_is_asked_again_after_a_pause() {
    let members = (1..=3).zip(0..).map(|(host, at)| in_rows(host, at, Standing::Active)).collect();
    let mut bench = Bench::new(members);
    bench.missing.insert(ComponentId(2));
    bench.record(|members| members[1].standing = Standing::Absent);
    bench.busy.insert(ComponentId(1));
    // Its row has the other unit on the absent member: that is decoded.
    bench.write_of(1, 0, Some(layout::Target::Data(0)));
    bench.pass(limits::RETRY * 10);
    let refused = bench.count(1, "refused");
    assert!((8..=14).contains(&refused), "{refused} in ten pauses");
    assert_eq!(bench.done, []);
    bench.busy.clear();
    bench.pass(limits::RETRY * 3);
    assert_eq!(bench.done, [(Token(1), true)]);
}
