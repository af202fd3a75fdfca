//! Rows that are compared with their parity while a disk is served.

use super::*;
use layout::{Code, Target};

/// A place on as many hosts as a code has members, each with its position less one, and with something in part 0.
fn rows(code: Code, removed: Option<Rule>) -> Bench {
    let member = |host: u8| Member {
        rows: Some(InRows { code, position: host - 1 }),
        ..member(u128::from(host), Standing::Active)
    };
    let members: Vec<Member> = (1..=code.members()).map(member).collect();
    let mut bench = Bench::claiming(members, removed);
    let versions = wire::Versions::Regions(Box::new([WriteId { epoch: 1, sequence: 1 }; 16]));
    for host in 1..=u64::from(code.members()) {
        let part = wire::PartVersions { part: 0, versions: versions.clone() };
        bench.listings.insert(ComponentId(host), vec![part]);
    }
    bench.begin();
    bench.owner.set_row_check_pace(1 << 30);
    bench
}

/// Writes a byte into a block of a member by the way, as if it had always been there.
fn fill(bench: &mut Bench, host: u64, block: u16, fill: u8) {
    bench.fills.insert((host, block), fill);
}

/// Time for a pass.
fn pass(bench: &mut Bench) -> RowCheckState {
    (0..40).for_each(|_| bench.wait(std::time::Duration::from_millis(10)));
    bench.owner.state().row_checks
}

#[test]
fn rows_that_agree_are_compared_without_data_and_again_and_again() {
    let mut bench = rows(Code::TWO_AND_ONE, None);
    // Of the first row hosts 1 and 2 have the data and host 3 the parity.
    for (host, byte) in [(1, 3), (2, 5), (3, 6)] {
        fill(&mut bench, host, 7, byte);
    }
    let state = pass(&mut bench);
    assert!(state.checked >= 2 && state.passed_ago.is_some(), "{state:?}");
    assert_eq!((state.disagreeing, state.skipped), (0, 0));
    assert_eq!((bench.count(1, "read"), bench.count(3, "write")), (0, 0));
    assert!(bench.count(1, "checksums") >= 2);
}

#[test]
fn parity_that_does_not_agree_is_made_anew_from_the_data() {
    for code in Code::ALL {
        let mut bench = rows(code, None);
        let parity_host = u64::from(code.position(0, layout::Unit::Parity(0))) + 1;
        let data_host = u64::from(code.position(0, layout::Unit::Data(0))) + 1;
        fill(&mut bench, data_host, 7, 3);
        for parity in 1..code.parity() {
            fill(&mut bench, u64::from(code.position(0, layout::Unit::Parity(parity))) + 1, 7, 3);
        }
        fill(&mut bench, parity_host, 7, 9);
        let state = pass(&mut bench);
        assert_eq!((state.disagreeing, state.mended), (1, 1), "{code:?} {state:?}");
        assert_eq!(bench.fills.get(&(parity_host, 7)), Some(&3));
        assert!(bench.owner.works.is_empty(), "nothing is locked");
    }
}

#[test]
fn the_second_parity_is_compared_by_products() {
    let code = Code::FOUR_AND_TWO;
    let mut bench = rows(code, None);
    let host_of = |unit| u64::from(code.position(0, unit)) + 1;
    let data = [(0, 17u8), (1, 200), (3, 99)];
    let sum = |parity| {
        data.iter()
            .fold(0, |sum, (unit, byte)| sum ^ layout::code::product(*byte, code.coefficient(parity, *unit)))
    };
    data.iter().for_each(|(unit, byte)| fill(&mut bench, host_of(layout::Unit::Data(*unit)), 2, *byte));
    fill(&mut bench, host_of(layout::Unit::Parity(0)), 2, sum(0));
    fill(&mut bench, host_of(layout::Unit::Parity(1)), 2, sum(1));
    let state = pass(&mut bench);
    assert!(state.checked > 0 && state.disagreeing == 0, "{state:?}");
    fill(&mut bench, host_of(layout::Unit::Parity(1)), 2, sum(1) ^ 1);
    let state = pass(&mut bench);
    assert_eq!((state.disagreeing, state.mended), (1, 1));
    assert_eq!(bench.fills.get(&(host_of(layout::Unit::Parity(1)), 2)), Some(&sum(1)));
}

#[test]
fn changes_wait_for_a_comparison_and_reads_do_not() {
    let mut bench = rows(Code::TWO_AND_ONE, None);
    for (host, byte) in [(1, 3), (2, 5), (3, 6)] {
        fill(&mut bench, host, 7, byte);
    }
    bench.silent.insert(node(2));
    bench.wait(limits::LOOK_PERIOD);
    for (ask, answer) in std::mem::take(&mut bench.late) {
        bench.step(Input::Answered { ask, answer: Ok(answer) }); // Which parts it has.
    }
    assert!(bench.owner.is_checking_rows());
    bench.silent.clear();
    (1..=3).for_each(|host| bench.leases.granted(node(host), bench.now));
    bench.step(Input::Read {
        token: Token(1),
        place: 0,
        part: 0,
        block: 7,
        count: 1,
        unit: Some(0),
        snapshot: 0,
    });
    bench.write_of(2, 7, Some(Target::Data(0)));
    assert_eq!(bench.done, [(Token(1), true)]);
    // It is not waited for without end.
    bench.pass(limits::SILENCE * 2);
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true)]);
}

#[test]
fn nothing_is_compared_while_a_member_is_missing_and_a_release_waits_for_what_is_under_way() {
    let mut bench = rows(Code::TWO_AND_ONE, None);
    bench.silent.insert(node(3));
    bench.step(Input::Link { node: node(3), change: LinkChange::Silent });
    bench.wait(limits::RECONNECT);
    bench.late.clear();
    let state = pass(&mut bench);
    assert_eq!((state.checked, bench.count(1, "checksums")), (0, 0));
    bench.step(Input::Release);
    assert_eq!(bench.owner.phase(), Phase::Ended);
}
