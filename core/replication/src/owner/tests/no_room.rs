//! A component whose device is full.

use super::*;
use std::time::Duration;

/// Two copies, of which the second lacks a MiB of the first and has no room for it.
fn with_a_full_device() -> Bench {
    let mut bench = Bench::claiming(vec![member(1, Standing::Active), member(2, Standing::Active)], None);
    let versions = wire::Versions::Regions(Box::new([WriteId { epoch: 1, sequence: 3 }; 16]));
    bench.listings.insert(ComponentId(1), vec![wire::PartVersions { part: 9, versions }]);
    bench.full.insert(ComponentId(2));
    bench.begin();
    bench.write(1);
    assert_eq!(bench.done, [(Token(1), true)], "the other copy has room");
    assert_eq!(bench.components()[1], (2, Standing::Absent));
    bench
}

/// The owner copies as much as it wants to, and looks once a second.
fn go_on(bench: &mut Bench, seconds: u64) {
    for _ in 0..seconds {
        bench.step(Input::Pace { bytes: 1 << 30 });
        bench.wait(Duration::from_secs(1));
    }
}

/// A full device was asked every five seconds for ever, and each time the whole component was looked through.
#[test]
fn a_full_device_is_asked_less_and_less_often() {
    let mut bench = with_a_full_device();
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let before = bench.count(2, "open");
        go_on(&mut bench, 600);
        attempts.push(bench.count(2, "open") - before);
    }
    // 5, 10, 20, … seconds, and then every five minutes.
    assert!(attempts[0] <= 7 && attempts[1] <= 3 && attempts[3] == 2, "{attempts:?}");
    let told = bench.owner.state().members[1].clone();
    assert_eq!(told.trouble, Some(LeftBecause::Refused(Refusal::NoSpace)));
    assert!(told.retry_in.is_some_and(|time| time <= limits::NO_ROOM_RETRY_MAX), "{told:?}");
}

#[test]
fn a_device_that_has_room_again_is_asked_at_once() {
    let mut bench = with_a_full_device();
    go_on(&mut bench, 1000);
    bench.full.clear();
    let opened = bench.count(2, "open");
    bench.step(Input::Room { component: ComponentId(1) });
    go_on(&mut bench, 1);
    assert_eq!(bench.count(2, "open"), opened, "another device got room");
    bench.step(Input::Room { component: ComponentId(2) });
    go_on(&mut bench, 2);
    assert_eq!(bench.components()[1], (2, Standing::Active));
    assert_eq!(bench.owner.state().members[1].retry_in, None);
}

/// A copy that has room for what it missed counts again, and refuses the next new block.
#[test]
fn one_that_counts_in_between_is_not_asked_more_often() {
    let mut bench = with_a_full_device();
    bench.listings.clear();
    let mut rounds = 0;
    for second in 0..1800 {
        go_on(&mut bench, 1);
        if bench.components()[1].1 == Standing::Active {
            rounds += 1;
            bench.write(100 + second);
        }
    }
    assert!((5..=13).contains(&rounds), "{rounds}");
}

/// Nothing was left of the row, and zeroes were written as its parity: where a device was full a trim failed, or made a member leave. A move
/// could not go back for it.
#[test]
fn a_trim_that_leaves_nothing_of_a_row_needs_no_room() {
    let members = (1..=3).zip(0..).map(|(host, at)| in_rows(host, at, Standing::Active)).collect();
    let mut bench = Bench::new(members);
    bench.reads_holes = true;
    bench.full.extend((1..=3).map(ComponentId));
    for (number, asker) in (1..).zip([Asker::Guest, Asker::Move]) {
        bench.step(Input::Change {
            token: Token(number),
            place: 0,
            part: 0,
            block: 0,
            target: Some(layout::Target::Data(0)),
            tag: base::RequestTag(number),
            asker,
            payload: Payload::Trim { count: 16 },
        });
        assert_eq!(bench.done.last(), Some(&(Token(number), true)), "{asker:?}");
    }
    assert!(bench.components().iter().all(|(_, standing)| *standing == Standing::Active));
    assert!((1..=3).all(|host| bench.count(host, "refused") == 0));
}

/// What a move copied made the member leave that had no room for it, and what had moved before was not protected any more.
#[test]
fn what_a_move_copies_is_refused_before_a_member_of_rows_leaves() {
    let members = (1..=3).zip(0..).map(|(host, at)| in_rows(host, at, Standing::Active)).collect();
    let mut bench = Bench::new(members);
    bench.full.insert(ComponentId(3));
    for (number, target) in (1..).zip([layout::Target::Rows, layout::Target::Data(0)]) {
        bench.write_for(Asker::Move, number, 0, Some(target));
        assert_eq!(bench.done.last(), Some(&(Token(number), false)), "{target:?}");
        assert!(bench.components().iter().all(|(_, standing)| *standing == Standing::Active));
    }
    assert!(bench.count(1, "trim") >= 2, "what has it drops it");
    bench.write_for(Asker::Guest, 9, 0, Some(layout::Target::Rows));
    assert_eq!(bench.done.last(), Some(&(Token(9), true)));
    assert_eq!(bench.components()[2], (3, Standing::Absent), "guests go on");
}

/// A small change stands on one member of rows, and the other has no room for it and cannot be spared, for the third is away. A disk was not
/// served any more then, even once there was room.
#[test]
fn a_take_over_asks_a_full_member_again_that_cannot_be_spared() {
    let (active, absent) = (Standing::Active, Standing::Absent);
    let members = vec![in_rows(1, 0, active), in_rows(2, 1, active), in_rows(3, 2, absent)];
    let mut bench = Bench::claiming_after(1, members, None);
    let (id, tag) = (WriteId { epoch: 1, sequence: 1 }, base::RequestTag(9));
    // Of the second row the second unit is on the first member, and parity on the second.
    let part = wire::layer::layered(wire::layer::COPY_FIRST + 1, 0);
    let entry = wire::Entry { id, part, block: 16, count: 1, is_trim: false, has_happened: false, tag };
    bench.windows.insert(ComponentId(1), vec![entry]);
    bench.missing.insert(ComponentId(3));
    bench.full.insert(ComponentId(2));
    bench.begin();
    bench.pass(limits::RETRY * 5);
    assert_eq!(bench.owner.phase(), Phase::Opening);
    let trouble = bench.owner.state().members[1].trouble;
    assert_eq!(trouble, Some(LeftBecause::Refused(Refusal::NoSpace)), "it is told what is lacking");
    let refused = bench.count(2, "refused");
    assert!((2..=6).contains(&refused), "{refused}");
    bench.full.clear();
    bench.pass(limits::RETRY * 3);
    assert_eq!(bench.owner.phase(), Phase::Serving);
    assert_eq!(bench.count(2, "write"), 1);
}
