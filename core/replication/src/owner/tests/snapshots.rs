//! Snapshots of the disk, as its owner takes them.

use super::*;
use crate::snapshots::{NotTaken, Together};

impl Bench {
    /// Somebody changes what the record says of snapshots.
    pub(super) fn change_snapshots(&mut self, change: impl FnOnce(&mut crate::Snapshots)) {
        let mut roster = self.owner.record().1.clone();
        change(&mut roster.snapshots);
        self.version += 1;
        self.step(Input::Recorded { record: Some((self.version, roster)) });
    }

    pub(super) fn ask_snapshot(&mut self) {
        self.change_snapshots(|snapshots| assert!(snapshots.ask()));
    }

    pub(super) fn taken(&self) -> Vec<u32> {
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
    assert!(bench.count(3, "late") > 0, "it has no room for what it lacks");
}

/// Once it counts, it gets what it lacks; nobody reads that from it before the record says so.
#[test]
fn who_counts_again_gets_what_it_lacks() {
    let mut members = pair();
    members[1].lacks = crate::Numbers::through(1);
    let mut bench = Bench::serving(members, None);
    bench.takes_late = true;
    bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
    bench.wait(limits::LOOK_PERIOD);
    bench.wait(limits::RETRY);
    let lacks = |bench: &Bench| bench.owner.record().1.members[1].lacks.contains(1);
    assert_eq!((bench.count(2, "late"), bench.count(2, "sync"), lacks(&bench)), (2, 1, false));
    assert_eq!(bench.has(2), [1], "it is no remainder that is deleted");
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

#[test]
#[cfg(feature = "mutants")]
fn without_its_rule_the_record_names_a_late_snapshot_that_is_not_stable() {
    for (removed, is_named) in [(None, false), (Some(Rule::RecordStableBackfills), true)] {
        let mut members = pair();
        members[1].lacks = crate::Numbers::through(1);
        let mut bench = Bench::serving(members, removed);
        (bench.takes_late, bench.fails_to_sync) = (true, true);
        bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
        bench.wait(limits::LOOK_PERIOD);
        bench.wait(limits::RETRY);
        let lacks = bench.owner.record().1.members[1].lacks.contains(1);
        assert_eq!((bench.count(2, "sync"), !lacks), (1, is_named), "{removed:?}");
    }
}

/// A component got a snapshot, and its session ends while the record is being told so: the next one finds it there, and the record in memory without it.
#[test]
#[cfg(feature = "mutants")]
fn without_its_rule_a_component_deletes_a_snapshot_that_the_record_names_by_then() {
    for (removed, found) in [(None, vec![1]), (Some(Rule::DropOnlyUnnamed), Vec::new())] {
        let mut members = pair();
        members[1].lacks = crate::Numbers::through(1);
        let mut bench = Bench::serving(members, removed);
        bench.takes_late = true;
        bench.change_snapshots(|snapshots| (snapshots.last, snapshots.taken) = (1, vec![1]));
        bench.is_slow = true;
        bench.wait(limits::LOOK_PERIOD);
        bench.wait(limits::RETRY);
        let said = bench.asked_for.clone().expect("the record is told");
        assert!(!said.members[1].lacks.contains(1), "it has the snapshot");
        bench.step(Input::Link { node: node(2), change: LinkChange::Down });
        bench.step(Input::Link { node: node(2), change: LinkChange::Up });
        bench.wait(limits::RETRY);
        assert_eq!(bench.has(2), found, "{removed:?}");
        bench.is_slow = false;
        bench.step(Input::Committed(Committed::Done { version: bench.version }));
        assert!(!bench.owner.record().1.members[1].lacks.contains(1), "the record names it");
    }
}

/// Two disks that are to have a snapshot at one moment, each with an owner.
struct Two {
    disks: [Bench; 2],
}

impl Two {
    fn new(removed: Option<Rule>) -> Two {
        Two { disks: [Bench::serving(pair(), removed), Bench::serving(pair(), removed)] }
    }

    fn ask(&mut self, disk: usize) {
        self.disks[disk].change_snapshots(|snapshots| assert!(snapshots.ask_together()));
    }

    fn said(&self, disk: usize) -> Option<Together> {
        self.disks[disk].owner.record().1.snapshots.together
    }

    /// The coordinator: once both owners say that they hold, both are to take it.
    fn mark(&mut self) {
        let holds = |said: Option<Together>| said.is_some_and(|said| said != Together::Hold);
        if holds(self.said(0)) && holds(self.said(1)) {
            (0..2).for_each(|disk| self.mark_held(disk));
        }
    }

    /// One that holds is to take it.
    fn mark_held(&mut self, disk: usize) {
        self.disks[disk].change_snapshots(|snapshots| {
            if snapshots.together == Some(Together::Held) {
                snapshots.together = Some(Together::Mark);
            }
        });
    }

    /// Whether the snapshot of each disk came behind its write.
    fn has_write(&self) -> [bool; 2] {
        [0, 1].map(|disk| {
            let asked = &self.disks[disk].asked[&ComponentId(1)];
            let at = |what: &str| asked.iter().position(|one| *one == what);
            at("write").is_some_and(|write| at("snapshot").is_none_or(|snapshot| write < snapshot))
        })
    }
}

#[test]
fn of_several_disks_none_goes_on_before_all_hold() {
    let mut two = Two::new(None);
    two.ask(0);
    assert_eq!((two.said(0), two.disks[0].count(1, "snapshot")), (Some(Together::Held), 0));
    two.disks[0].write(1);
    assert_eq!(two.disks[0].done, [], "changes wait for the other disk");
    two.disks[1].silent.insert(node(2));
    two.disks[1].write(1);
    two.ask(1);
    assert_eq!(two.said(1), Some(Together::Hold), "a write is under way");
    two.mark();
    assert_eq!(two.disks[0].done, []);
    two.disks[1].silent.clear();
    two.disks[1].answer_late();
    assert_eq!(two.said(1), Some(Together::Held));
    two.mark();
    assert_eq!((two.said(0), two.said(1)), (Some(Together::Marked), Some(Together::Marked)));
    assert_eq!((two.has_write(), two.disks[0].done.clone()), ([false, true], vec![(Token(1), true)]));
    for bench in &mut two.disks {
        assert_eq!((bench.has(1), bench.has(2), bench.taken()), (vec![1], vec![1], vec![]));
        bench.wait(limits::RETRY);
        assert_eq!(bench.has(1), [1], "what waits for others is not swept");
        let before = bench.done.len();
        bench.view(9, 1);
        assert_eq!(
            bench.done[before..],
            [(Token(9), true)],
            "the record may name it before its owner hears so"
        );
        bench.change_snapshots(|snapshots| {
            snapshots.taken.extend(snapshots.asked.take());
            snapshots.together = None;
        });
        bench.wait(limits::RETRY);
        assert_eq!((bench.has(1), bench.has(2), bench.taken()), (vec![1], vec![1], vec![1]));
    }
}

#[test]
fn an_owner_that_has_waited_for_others_for_too_long_goes_on_and_takes_nothing() {
    let mut two = Two::new(None);
    two.ask(0);
    two.disks[0].write(1);
    let late = two.disks[0].owner.record().1.snapshots.clone();
    two.disks[0].pass(limits::SNAPSHOT_HOLD_MAX + limits::LOOK_PERIOD);
    assert_eq!(two.disks[0].done, [(Token(1), true)], "guests wait for a second at most");
    let said = two.disks[0].owner.record().1.snapshots.clone();
    assert_eq!((said.asked, said.together, said.not_taken), (None, None, Some(NotTaken::NotHeld)));
    // The word of the coordinator comes too late: a write has happened meanwhile.
    two.disks[0].change_snapshots(|snapshots| {
        *snapshots = crate::Snapshots { together: Some(Together::Mark), ..late }
    });
    two.disks[0].pass(4 * limits::SNAPSHOT_HOLD_MAX + limits::RETRY);
    assert_eq!((two.disks[0].count(1, "snapshot"), two.disks[0].taken()), (0, vec![]));
    assert_eq!(two.disks[0].owner.record().1.snapshots.asked, None);
}

/// Two owners rested in turn after attempts for which both had waited in vain, and each kept the other waiting for the next one.
#[test]
fn who_has_waited_in_vain_is_ready_for_the_next_attempt() {
    let mut two = Two::new(None);
    for disk in [0, 1, 0] {
        two.ask(disk);
        two.disks[disk].pass(limits::SNAPSHOT_HOLD_MAX + limits::LOOK_PERIOD);
        assert_eq!(two.disks[disk].owner.record().1.snapshots.not_taken, Some(NotTaken::NotHeld));
    }
    two.ask(0);
    two.ask(1);
    two.mark();
    assert_eq!((two.said(0), two.said(1)), (Some(Together::Marked), Some(Together::Marked)));
}

#[test]
fn an_owner_that_begins_in_the_middle_of_one_of_several_disks_takes_nothing() {
    for (said, is_kept) in
        [(Together::Hold, false), (Together::Held, false), (Together::Mark, false), (Together::Marked, true)]
    {
        let mut bench = Bench::claiming(pair(), None);
        bench.snapshots.entry(ComponentId(1)).or_default().insert(1);
        let mut roster = bench.owner.record().1.clone();
        assert!(roster.snapshots.ask_together());
        roster.snapshots.together = Some(said);
        let me = OwnedBy { node: node(1), incarnation: 1 };
        bench.version += 1;
        let claimed = Roster { epoch: 1, owner: Some(me), ..roster };
        bench.step(Input::Committed(Committed::Conflict { version: bench.version, roster: claimed }));
        bench.wait(limits::LOOK_PERIOD);
        let now = &bench.owner.record().1.snapshots;
        let expected = if is_kept { (Some(1), None) } else { (None, Some(NotTaken::Unready)) };
        assert_eq!((now.asked, now.not_taken), expected, "{said:?}");
        assert_eq!(bench.count(1, "snapshot"), 0);
        bench.wait(limits::RETRY);
        let left: &[u32] = if is_kept { &[1] } else { &[] };
        assert_eq!(
            bench.has(1),
            left,
            "{said:?}: others decide about what all disks have, and nothing else stays"
        );
    }
}

#[test]
fn a_component_that_cannot_take_it_ends_the_attempt_of_its_disk() {
    let mut two = Two::new(None);
    two.disks[1].full.insert(ComponentId(2));
    two.ask(0);
    two.ask(1);
    two.mark();
    let said = two.disks[1].owner.record().1.snapshots.clone();
    assert_eq!((said.asked, said.together, said.not_taken), (None, None, Some(NotTaken::Refused)));
    assert_eq!(two.said(0), Some(Together::Marked));
    two.disks[0].change_snapshots(|snapshots| {
        (snapshots.asked, snapshots.together, snapshots.to_sweep) = (None, None, true);
    });
    for bench in &mut two.disks {
        bench.full.clear();
        bench.wait(limits::RETRY);
        assert_eq!((bench.has(1), bench.has(2)), (vec![], vec![]), "nothing is left behind");
        bench.write(1);
        assert_eq!(bench.done, [(Token(1), true)]);
    }
}

/// A client writes the first disk, and then the second. A snapshot with the second write has the first one.
#[test]
#[cfg(feature = "mutants")]
fn without_its_rules_a_snapshot_of_several_disks_has_a_later_write_and_lacks_an_earlier_one() {
    let early = |removed: Option<Rule>| {
        let mut two = Two::new(removed);
        two.ask(0);
        two.disks[0].write(1);
        if two.disks[0].done == [(Token(1), true)] {
            two.disks[1].write(1);
        }
        two.ask(1);
        two.mark();
        two.has_write()
    };
    assert_eq!(early(None), [false, false]);
    assert_eq!(early(Some(Rule::HoldTogether)), [false, true]);

    // The second owner has let go before it hears that it is to mark.
    let late = |removed: Option<Rule>| {
        let mut two = Two::new(removed);
        two.ask(1);
        two.disks[1].pass(limits::SNAPSHOT_HOLD_MAX - 2 * limits::LOOK_PERIOD);
        two.ask(0);
        let held = two.disks[1].owner.record().1.snapshots.clone();
        two.disks[1].pass(4 * limits::LOOK_PERIOD);
        two.disks[0].write(1);
        two.mark_held(0);
        two.disks[1].write(1);
        two.disks[1].change_snapshots(|snapshots| {
            *snapshots = crate::Snapshots { together: Some(Together::Mark), ..held }
        });
        two.disks[1].pass(4 * limits::SNAPSHOT_HOLD_MAX + limits::RETRY);
        let is_taken = |bench: &Bench| bench.count(1, "snapshot") > 0;
        ([0, 1].map(|disk| is_taken(&two.disks[disk])), two.has_write())
    };
    assert_eq!(late(None), ([true, false], [false, true]), "the second disk has none, and the attempt ends");
    assert_eq!(late(Some(Rule::MarkInOneHold)), ([true, true], [false, true]));
}
