//! Numbers of small changes for the members that have no part in them.

use super::*;
use layout::{Code, Target};

/// A place of 3+1 on hosts 1 to 4. Of its first row host 4 has the parity.
fn rows() -> Bench {
    let code =
        Code::ALL.into_iter().find(|code| (code.data(), code.members()) == (3, 4)).expect("it is known");
    let member = |host: u8| Member {
        rows: Some(InRows { code, position: host - 1 }),
        ..member(u128::from(host), Standing::Active)
    };
    let mut bench = Bench::new((1..=4).map(member).collect());
    bench.numbers.clear();
    bench
}

#[test]
fn a_small_change_is_acknowledged_without_those_that_have_no_part_in_it() {
    let mut bench = rows();
    bench.silent.extend([node(2), node(3)]);
    bench.write_of(1, 0, Some(Target::Data(0)));
    assert_eq!((&bench.done[..], &bench.numbers[..]), (&[(Token(1), true)][..], &[(1, 1, 0), (4, 1, 0)][..]));
    // Host 2 gets the number before with its own change, the others by themselves in a moment.
    bench.write_of(2, 0, Some(Target::Data(1)));
    assert_eq!(bench.numbers[2..], [(2, 2, 1), (4, 2, 0)]);
    assert_eq!(bench.done.len(), 1, "host 2 has a part in it, and has not answered");
    bench.wait(limits::MARK_DELAY);
    assert_eq!(bench.numbers[4..], [(1, 2, 0), (3, 2, 1)]);
    assert_eq!(bench.owner.watermark(0).sequence, 0, "host 2 shows neither number, host 3 not the second");
    bench.answer_late();
    assert_eq!((bench.done.len(), bench.owner.watermark(0).sequence), (2, 2));
}

#[test]
fn the_range_of_a_change_is_free_once_those_with_a_part_in_it_have_it() {
    let mut bench = rows();
    bench.silent.extend([node(2), node(3)]);
    bench.write_of(1, 0, Some(Target::Data(0)));
    bench.wait(limits::MARK_DELAY);
    bench.write_of(2, 0, Some(Target::Data(0)));
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true)]);
}

#[test]
fn numbers_that_went_with_a_refused_change_go_again() {
    let mut bench = rows();
    bench.write_of(1, 0, Some(Target::Data(0)));
    bench.full.insert(ComponentId(2));
    bench.write_of(2, 0, Some(Target::Data(1)));
    assert_eq!(bench.numbers[2..4], [(2, 2, 1), (4, 2, 0)]);
    bench.wait(limits::MARK_DELAY);
    let of_host_3: Vec<_> = bench.numbers.iter().filter(|one| one.0 == 3).collect();
    assert_eq!(
        of_host_3,
        [&(3, 2, 1), &(3, 3, 0)],
        "the last is that of the change which says that host 2 is out"
    );
    assert_eq!(bench.components()[1].1, Standing::Absent, "it has no room, and the others go on without it");
    assert_eq!((bench.done.len(), bench.owner.watermark(0).sequence >= 2), (2, true));
}

#[test]
fn a_member_that_serves_again_gets_the_numbers_that_it_does_not_show() {
    let mut bench = rows();
    bench.silent.insert(node(3));
    bench.write_of(1, 0, Some(Target::Data(0)));
    bench.wait(limits::MARK_DELAY);
    bench.silent.clear();
    bench.late.clear();
    bench.step(Input::Link { node: node(3), change: LinkChange::Down });
    bench.step(Input::Link { node: node(3), change: LinkChange::Up });
    bench.wait(limits::MARK_DELAY);
    let of_host_3: Vec<_> = bench.numbers.iter().filter(|one| one.0 == 3).collect();
    assert_eq!(of_host_3, [&(3, 1, 0), &(3, 1, 0)], "what was lost goes again");
    assert_eq!(bench.owner.watermark(0).sequence, 1);
}

#[test]
fn a_number_that_is_owed_while_a_link_breaks_goes_when_the_member_serves_again() {
    let mut bench = rows();
    bench.write_of(1, 0, Some(Target::Data(0)));
    bench.step(Input::Link { node: node(3), change: LinkChange::Down });
    assert!(bench.numbers.iter().all(|one| one.0 != 3));
    bench.step(Input::Link { node: node(3), change: LinkChange::Up });
    bench.wait(limits::MARK_DELAY);
    assert!(bench.numbers.contains(&(3, 1, 0)), "{:?}", bench.numbers);
    assert_eq!(bench.owner.watermark(0).sequence, 1);
}
