//! What is put together from members of rows takes memory, of which there may be none.

use super::*;

/// Rows of which host 1, which has the first unit, lacks snapshot 1.
fn degraded() -> Bench {
    let mut members: Vec<Member> =
        (1..=3).map(|host| in_rows(host, host as u8 - 1, Standing::Active)).collect();
    members[0].lacks = crate::Numbers::through(1);
    let mut bench = Bench::serving(members, None);
    bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
    (1..4).for_each(|host| bench.leases.granted(node(host), bench.now));
    bench
}

fn view(bench: &mut Bench, token: u64, count: u16) {
    let (token, unit) = (Token(token), Some(0));
    bench.step(Input::Read { token, place: 0, part: 0, block: 0, count, unit, snapshot: 1 });
}

#[test]
fn a_read_that_finds_no_memory_tries_again_in_a_while() {
    let mut bench = degraded();
    let pool = bench.owner.settings.pool.clone();
    let all: Vec<base::Buffer> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
    view(&mut bench, 1, 1);
    assert_eq!((bench.count(2, "view"), bench.done.len()), (1, 0), "not at once");
    assert_eq!(bench.owner.wake_at(), Some(bench.now + limits::MEMORY_RETRY));
    bench.wait(limits::MEMORY_RETRY);
    assert_eq!((bench.count(2, "view"), bench.done.len()), (2, 0));
    drop(all);
    bench.wait(limits::MEMORY_RETRY);
    assert_eq!(bench.done, [(Token(1), true)]);
}

#[test]
fn only_so_many_reads_gather_at_once_and_all_have_their_turn() {
    let mut bench = degraded();
    bench.silent = [node(2), node(3)].into();
    (1..=100).for_each(|token| view(&mut bench, token, 16));
    // Two units and what follows from them, of 64 KiB each.
    let at_once = (4 << 20) / (3 * (64 << 10));
    assert_eq!((bench.count(2, "view"), bench.done.len()), (at_once, 0));
    assert!(bench.owner.settings.gathers.used() <= 4 << 20);
    bench.answer_late();
    assert_eq!((bench.done.len(), bench.owner.settings.gathers.used()), (100, 0));
}

#[test]
fn an_owner_gathers_one_range_whatever_others_hold() {
    let mut bench = degraded();
    let others = bench.owner.settings.gathers.clone();
    let held = others.take(4 << 20);
    bench.silent = [node(2), node(3)].into();
    (1..=3).for_each(|token| view(&mut bench, token, 16));
    assert_eq!(bench.count(2, "view"), 1);
    bench.answer_late();
    assert_eq!((bench.done.len(), bench.count(2, "view")), (3, 3), "one after the other");
    drop(held);
}
