//! Snapshots of rows with parity, as their owner takes, reads, gives and mends them.

use super::*;
use layout::Target;

fn three() -> Vec<Member> {
    (1..=3).map(|host| in_rows(host, host as u8 - 1, Standing::Active)).collect()
}

/// Rows of which these hosts lack snapshot 1.
fn lacking(hosts: &[usize]) -> Bench {
    let mut members = three();
    hosts.iter().for_each(|host| members[host - 1].lacks = crate::Numbers::through(1));
    let mut bench = Bench::serving(members, None);
    bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
    bench
}

/// Of the first row hosts 1 and 2 have the data and host 3 the parity.
fn small_write(bench: &mut Bench, token: u64, block: u16) {
    bench.write_of(token, block, Some(Target::Data(0)));
}

fn counts(bench: &Bench, what: &str) -> [usize; 3] {
    [1, 2, 3].map(|host| bench.count(host, what))
}

#[test]
fn parity_counts_all_before_members_take_a_snapshot() {
    let mut bench = Bench::serving(three(), None);
    small_write(&mut bench, 1, 0);
    assert_eq!((counts(&bench, "write"), counts(&bench, "promote")), ([1, 0, 1], [0; 3]), "it is held");
    bench.ask_snapshot();
    assert_eq!((bench.taken(), counts(&bench, "snapshot")), (vec![1], [1; 3]));
    let asked = |host: u64| bench.asked[&ComponentId(host)].iter().copied();
    let of_data: Vec<&str> =
        asked(1).filter(|what| ["write", "promote", "snapshot"].contains(what)).collect();
    let of_parity: Vec<&str> = asked(3).filter(|what| ["write", "snapshot"].contains(what)).collect();
    assert_eq!(of_data, ["write", "promote", "snapshot"]);
    assert_eq!(of_parity, ["write", "write", "snapshot"], "the copy, then the parity that counts it");
    small_write(&mut bench, 2, 1);
    assert_eq!(counts(&bench, "promote"), [1, 0, 0], "what comes later is held again");
}

#[test]
fn what_comes_while_parity_catches_up_is_not_held() {
    let mut bench = Bench::serving(three(), None);
    small_write(&mut bench, 1, 0);
    bench.silent.insert(node(3));
    bench.ask_snapshot();
    small_write(&mut bench, 2, 40);
    assert_eq!(counts(&bench, "snapshot"), [0; 3]);
    bench.silent.clear();
    bench.answer_late();
    bench.wait(limits::LOOK_PERIOD);
    assert_eq!((bench.taken(), bench.owner.state().held_blocks), (vec![1], 0));
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true)]);
}

#[test]
fn parity_that_cannot_catch_up_ends_the_attempt_and_changes_go_on() {
    let mut bench = Bench::serving(three(), None);
    small_write(&mut bench, 1, 0);
    bench.busy.insert(ComponentId(2));
    bench.ask_snapshot();
    bench.wait(limits::SNAPSHOT_FOLD_MAX);
    assert_eq!((bench.taken(), counts(&bench, "snapshot")), (vec![], [0; 3]));
    bench.busy.clear();
    bench.pass(limits::RESYNC_RETRY * 2);
    assert_eq!(bench.taken().len(), 1, "the next one is taken");
}

#[test]
fn what_a_member_lacks_of_a_view_is_put_together_from_others() {
    let mut bench = lacking(&[1]);
    let view = |bench: &mut Bench, token| {
        (1..4).for_each(|host| bench.leases.granted(node(host), bench.now));
        let (token, unit) = (Token(token), Some(0));
        bench.step(Input::Read { token, place: 0, part: 0, block: 0, count: 1, unit, snapshot: 1 });
    };
    view(&mut bench, 1);
    assert_eq!((counts(&bench, "view"), bench.done[..].to_vec()), ([0, 1, 1], vec![(Token(1), true)]));
    let mut bench = lacking(&[]);
    view(&mut bench, 1);
    assert_eq!(counts(&bench, "view"), [1, 0, 0], "whoever has it is asked alone");
    let damaged = wire::DamagedBlock { part: 0, block: 0, snapshot: 1 };
    bench.damaged.insert((ComponentId(1), damaged));
    view(&mut bench, 2);
    assert_eq!(
        counts(&bench, "view")[1..],
        [2, 2],
        "what is damaged is put together, to read it and to mend it"
    );
    assert_eq!((bench.done[1], counts(&bench, "mend")), ((Token(2), true), [1, 0, 0]), "and mended");
    let mut bench = lacking(&[1, 2]);
    view(&mut bench, 1);
    assert_eq!(bench.done, [(Token(1), false)], "too few have it");
}

#[test]
fn a_member_of_rows_gets_a_snapshot_that_it_lacks_once_nothing_is_held() {
    let mut bench = Bench::serving(three(), None);
    bench.takes_late = true;
    small_write(&mut bench, 1, 0);
    bench.record(|members| members[1].lacks = crate::Numbers::through(1));
    bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
    bench.pass(limits::RETRY * 8);
    let lacks = bench.owner.record().1.members[1].lacks.contains(1);
    assert_eq!((bench.count(2, "late"), bench.count(2, "sync"), lacks), (2, 1, false));
    let asked = bench.count(1, "allocation");
    assert_eq!((counts(&bench, "allocation"), counts(&bench, "promote")), ([asked; 3], [1, 0, 0]));
    assert!(asked > 0, "others are asked what may differ, and it is");
    small_write(&mut bench, 2, 1);
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true)], "changes go on");
}

#[test]
fn what_changed_is_told_by_as_many_members_as_determine_the_row() {
    for (hosts, told) in [(&[][..], 2), (&[3][..], 2), (&[2, 3][..], 0)] {
        let mut bench = lacking(hosts);
        (1..4).for_each(|host| bench.leases.granted(node(host), bench.now));
        let of = base::request::StatusOf::Snapshot(1);
        bench.step(Input::Status { token: Token(1), of, place: 0, part: 0, count: 3 });
        assert_eq!(counts(&bench, "allocation").iter().sum::<usize>(), told, "{hosts:?}");
        let is_set = told == 0;
        assert_eq!(bench.allocations, [[StatusRun { len: 3 << 20, is_set }]], "too few: all of it may have");
    }
}

/// What was under way at a late mark would be decided by it, whatever became of it.
#[test]
fn a_member_of_rows_is_told_of_a_snapshot_that_it_lacks_while_no_change_is_under_way() {
    let marked = |removed: Option<Rule>| {
        let mut bench = Bench::serving(three(), removed);
        bench.takes_late = true;
        bench.silent.insert(node(3));
        bench.write_of(1, 0, Some(Target::Rows));
        bench.record(|members| members[1].lacks = crate::Numbers::through(1));
        bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
        bench.wait(limits::LOOK_PERIOD / 2);
        let before = bench.count(2, "late");
        bench.silent.clear();
        bench.answer_late();
        bench.pass(limits::RETRY * 8);
        (before, bench.count(2, "late"))
    };
    assert_eq!(marked(None), (0, 2), "it waits, and is asked again while what came before is destaged");
    if cfg!(feature = "mutants") {
        assert_ne!(marked(Some(Rule::RestBeforeLateMark)).0, 0);
    }
}
