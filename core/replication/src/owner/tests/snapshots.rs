//! Snapshots of the disk, as its owner takes them.

use super::*;
use crate::snapshots::NotTaken;

impl Bench {
    /// Somebody changes what the record says of snapshots.
    fn change_snapshots(&mut self, change: impl FnOnce(&mut crate::Snapshots)) {
        let mut roster = self.owner.record().1.clone();
        change(&mut roster.snapshots);
        self.version += 1;
        self.step(Input::Recorded { record: Some((self.version, roster)) });
    }

    fn ask_snapshot(&mut self) {
        self.change_snapshots(|snapshots| assert!(snapshots.ask()));
    }

    fn taken(&self) -> Vec<u32> {
        self.owner.record().1.snapshots.taken.clone()
    }

    fn has(&self, component: u64) -> Vec<u32> {
        self.snapshots.get(&ComponentId(component)).into_iter().flatten().copied().collect()
    }

    fn view(&mut self, token: u64, snapshot: u32) {
        (1..4).for_each(|host| self.leases.granted(node(host), self.now));
        let token = Token(token);
        self.step(Input::Read { token, place: 0, part: 0, block: 0, count: 1, unit: None, snapshot });
    }
}

fn pair() -> Vec<Member> {
    vec![member(1, Standing::Active), member(2, Standing::Active)]
}

#[test]
fn a_snapshot_is_taken_when_what_is_under_way_has_ended_and_before_what_comes_later() {
    let mut bench = Bench::new(pair());
    bench.silent.insert(node(2));
    bench.write(1);
    bench.ask_snapshot();
    bench.write_at(2, 9);
    assert_eq!(
        (bench.count(1, "snapshot"), bench.count(1, "write")),
        (0, 1),
        "the first write is under way, the second waits"
    );
    bench.silent.clear();
    bench.answer_late();
    assert_eq!((bench.has(1), bench.has(2)), (vec![1], vec![1]));
    assert_eq!((bench.taken(), bench.count(1, "write")), (vec![1], 2), "what waited goes on");
    let order: Vec<&str> = bench.asked[&ComponentId(1)]
        .iter()
        .copied()
        .filter(|what| ["write", "snapshot"].contains(what))
        .collect();
    assert_eq!(order, ["write", "snapshot", "write"]);
    assert_eq!(bench.done, [(Token(1), true), (Token(2), true)]);
}

#[test]
fn who_does_not_count_lacks_what_was_taken_meanwhile_and_is_not_asked_for_it() {
    let members = [Standing::Active, Standing::Active, Standing::Absent];
    let members = (1..).zip(members).map(|(host, standing)| member(host, standing)).collect();
    let mut bench = Bench::claiming(members, None);
    bench.missing.insert(ComponentId(3));
    bench.begin();
    bench.ask_snapshot();
    let lacks: Vec<bool> = bench.owner.record().1.members.iter().map(|one| one.lacks.contains(1)).collect();
    assert_eq!((bench.taken(), lacks), (vec![1], vec![false, false, true]));
    bench.missing.clear();
    bench.wait(limits::NEW_MEMBER_RETRY.max(limits::RESYNC_RETRY));
    assert_eq!(bench.components()[2], (3, Standing::Active), "it counts again");
    for token in 1..9 {
        bench.view(token, 1);
    }
    assert_eq!(bench.done, (1..9).map(|token| (Token(token), true)).collect::<Vec<_>>());
    assert_eq!((bench.count(3, "snapshot"), bench.count(3, "view")), (0, 0));
}

#[test]
fn an_attempt_that_takes_too_long_lets_go_and_the_next_one_has_a_number_of_its_own() {
    let mut bench = Bench::new(pair());
    bench.silent.insert(node(2));
    bench.ask_snapshot();
    assert_eq!((bench.has(1), bench.taken()), (vec![1], vec![]), "the other has not answered");
    bench.wait(limits::SNAPSHOT_HOLD);
    bench.silent.clear();
    bench.write(1);
    bench.answer_late();
    assert_eq!(bench.done, [(Token(1), true)], "changes go on");
    bench.pass(4 * limits::SNAPSHOT_HOLD + limits::LOOK_PERIOD);
    assert_eq!((bench.taken(), bench.owner.record().1.snapshots.last), (vec![2], 2));
    assert_eq!((bench.has(1), bench.has(2)), (vec![2], vec![2]), "the former attempt leaves nothing behind");
}

#[test]
fn a_number_that_an_owner_before_may_have_used_is_not_used_again() {
    let mut bench = Bench::claiming(pair(), None);
    bench.snapshots.entry(ComponentId(1)).or_default().insert(1);
    let mut roster = bench.owner.record().1.clone();
    assert!(roster.snapshots.ask());
    let me = OwnedBy { node: node(1), incarnation: 1 };
    bench.version += 1;
    let claimed = Roster { epoch: 1, owner: Some(me), ..roster };
    bench.step(Input::Committed(Committed::Conflict { version: bench.version, roster: claimed }));
    bench.wait(limits::LOOK_PERIOD);
    assert_eq!(bench.taken(), [2]);
    assert_eq!((bench.has(1), bench.has(2)), (vec![2], vec![2]));
}

#[test]
fn what_the_record_does_not_name_is_deleted_and_what_it_cannot_know_is_left_alone() {
    let mut bench = Bench::new(pair());
    bench.ask_snapshot();
    bench.snapshots.entry(ComponentId(2)).or_default().insert(7);
    bench.ask_snapshot();
    assert_eq!(bench.taken(), [1, 2]);
    bench.change_snapshots(|snapshots| assert!(snapshots.delete(1) && !snapshots.delete(1)));
    bench.wait(limits::LOOK_PERIOD);
    assert_eq!((bench.has(1), bench.has(2)), (vec![2], vec![2, 7]), "nobody gave the number 7");
    let left = &bench.owner.record().1.snapshots;
    assert_eq!((left.taken.clone(), left.to_sweep), (vec![2], false));
    bench.view(1, 1);
    bench.view(2, 2);
    assert_eq!(bench.done, [(Token(1), false), (Token(2), true)]);
}

#[test]
fn what_a_component_refuses_is_said_and_asked_for_no_more() {
    let mut bench = Bench::new(pair());
    bench.full.insert(ComponentId(2));
    bench.ask_snapshot();
    let said = &bench.owner.record().1.snapshots;
    assert_eq!((said.asked, said.not_taken, said.taken.len()), (None, Some(NotTaken::Refused), 0));
    bench.full.clear();
    bench.wait(limits::RETRY);
    assert_eq!(bench.has(1), Vec::<u32>::new(), "what the other has of it is deleted");
    bench.write(1);
    assert_eq!(bench.done, [(Token(1), true)]);
}

/// What each rule keeps from happening.
#[test]
#[cfg(feature = "mutants")]
fn without_its_rules_a_snapshot_is_of_no_moment() {
    let check = |removed: Rule| {
        let mut bench = Bench::serving(pair(), Some(removed));
        bench.silent.insert(node(2));
        bench.write(1);
        bench.ask_snapshot();
        bench.write_at(2, 9);
        (bench.count(1, "snapshot"), bench.count(1, "write"))
    };
    assert_eq!(
        check(Rule::DrainBeforeSnapshot),
        (1, 1),
        "it is taken beside a write that may have to be sent again"
    );
    assert_eq!(
        check(Rule::HoldForSnapshot),
        (0, 2),
        "a write begins that comes before it here and behind it there"
    );
}

#[test]
#[cfg(feature = "mutants")]
fn without_its_rule_a_view_is_read_from_who_lacks_it() {
    for (removed, is_read) in [(None, false), (Some(Rule::ViewFromWhole), true)] {
        let mut members = pair();
        members[1].lacks = crate::Numbers::through(1);
        let mut bench = Bench::serving(members, removed);
        bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
        (1..9).for_each(|token| {
            let part = token as u32;
            (1..4).for_each(|host| bench.leases.granted(node(host), bench.now));
            let token = Token(token);
            bench.step(Input::Read { token, place: 0, part, block: 0, count: 1, unit: None, snapshot: 1 });
        });
        assert_eq!(bench.count(2, "view") > 0, is_read, "{removed:?}");
    }
}
