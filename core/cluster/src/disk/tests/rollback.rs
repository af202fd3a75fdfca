//! Rollbacks in the record of a disk.

use super::snapshots::{no_snapshot, with_snapshot};
use super::*;
use crate::attaching::Claim;
use base::HostId;

const ME: Claim = Claim { host: HostId(1), incarnation: 7 };

/// A disk with the snapshots `monday` (1) and `before` (2).
fn disk() -> DiskRecord {
    let disk = made(&cluster(2, 1), "default,stripes=1", GIB);
    with_snapshot(&with_snapshot(&disk, "monday", &[]), "before", &[])
}

fn begun(disk: &DiskRecord, to: u32, since: u32, keeps: bool) -> DiskRecord {
    let begun = disk
        .begin_rollback((to, since), (keeps, false), ME, &Clones::default())
        .expect("both are there")
        .record;
    assert_eq!(begun.check(), Ok(()));
    begun
}

/// The disk with the snapshot that another attempt takes first.
fn with_attempt(disk: &DiskRecord, name: &str) -> DiskRecord {
    let asked = disk.ask_before_rollback(name).expect("an attempt may take one").record;
    let mut roster = asked.roster.clone();
    let number = roster.snapshots.asked.take().expect("it is asked for");
    roster.snapshots.taken.push(number);
    asked.with_roster(&roster, 78).expect("its owner has taken it").record
}

fn names(disk: &DiskRecord) -> Vec<&str> {
    disk.snapshots.taken.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn while_a_disk_is_rolled_back_nothing_that_it_needs_goes_and_no_other_snapshot_is_taken() {
    let none = Clones::default();
    let disk = with_snapshot(&disk(), "other", &[]);
    let rolling = begun(&disk, 1, 2, true);
    let wanted = Rollback { to: 1, since: 2, before: 2, keeps: true, is_shared: false, by: Some(ME) };
    assert_eq!(rolling.rollback, Some(wanted));
    let monday = || NoSnapshot::RollingBack("monday".to_owned());
    assert_eq!(no_snapshot(rolling.ask_snapshot("another", NEWEST)), monday());
    assert_eq!(no_snapshot(rolling.ask_together("another", NEWEST)), monday());
    assert_eq!(no_snapshot(rolling.expect_not_rolling_back()), monday());
    for name in ["monday", "before"] {
        let needed = NoSnapshot::RollbackNeeds(name.to_owned());
        assert_eq!(no_snapshot(rolling.delete_snapshot(name, &none)), needed);
    }
    rolling.delete_snapshot("other", &none).expect("nothing needs it");
    let done = rolling.finish_rollback(2, &none).expect("it was begun").record;
    assert_eq!((done.rollback, names(&done)), (None, vec!["monday", "before", "other"]));
    done.ask_snapshot("another", NEWEST).expect("it is done");
    done.delete_snapshot("monday", &none).expect("it is done");
    assert_eq!(no_snapshot(done.finish_rollback(2, &none)), NoSnapshot::NoRollback);
}

#[test]
fn a_snapshot_that_is_not_to_be_kept_goes_when_the_rollback_is_done_unless_it_was_cloned() {
    let rolling = begun(&disk(), 1, 2, false);
    let done = rolling.finish_rollback(2, &Clones::default()).expect("it was begun").record;
    assert_eq!((names(&done), done.roster.snapshots.to_sweep, done.check()), (vec!["monday"], true, Ok(())));
    let counted = rolling.add_clone("before").expect("it is there").0.record;
    let done = counted.finish_rollback(2, &Clones::default()).expect("it was begun").record;
    assert_eq!(names(&done), ["monday", "before"]);
    let seen = Clones::of([Origin { disk: rolling.id, snapshot: 2, size: GIB }]);
    let done = rolling.finish_rollback(2, &seen).expect("it was begun").record;
    assert_eq!(names(&done), ["monday", "before"]);
}

/// The host that copied was lost. Another attempt takes a snapshot of its own, and what guests had written last stays.
#[test]
fn an_attempt_that_was_cut_short_is_repeated_and_leaves_what_guests_had_written_last() {
    let none = Clones::default();
    let cut_short = begun(&disk(), 1, 2, true);
    let second = begun(&with_attempt(&cut_short, "again"), 1, 3, false);
    let wanted = Rollback { to: 1, since: 3, before: 2, keeps: true, is_shared: false, by: Some(ME) };
    assert_eq!((second.rollback, names(&second)), (Some(wanted), vec!["monday", "before", "again"]));
    // The first attempt is still alive, and has nothing to say any more.
    assert_eq!(no_snapshot(second.finish_rollback(2, &none)), NoSnapshot::NoRollback);
    assert_eq!(no_snapshot(second.stop_rollback(2)), NoSnapshot::NoRollback);
    let stopped = second.stop_rollback(3).expect("it is the last one").record;
    assert_eq!(stopped.rollback, Some(Rollback { by: None, ..wanted }));
    // A third one goes back to what there was before, and what the second one took is gone.
    let third = begun(&with_attempt(&stopped, "undo"), 2, 4, false);
    assert_eq!(names(&third), ["monday", "before", "undo"]);
    let done = third.finish_rollback(4, &none).expect("it was begun").record;
    assert_eq!((names(&done), done.check()), (vec!["monday", "before"], Ok(())));
}

#[test]
fn a_snapshot_that_a_rollback_needs_is_not_deleted_by_its_schedule() {
    let mut disk = disk();
    disk.policy = policy("default,stripes=1,snapshots=hourly keep 1");
    let every = disk.policy.snapshots.iter().next().expect("one").every;
    disk.snapshots.taken.iter_mut().for_each(|one| one.schedule = Some(every));
    let expired = |disk: &DiskRecord| -> Vec<String> {
        disk.expired_snapshots(&Clones::default()).iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(expired(&disk), ["monday"]);
    assert_eq!(expired(&begun(&disk, 1, 2, true)), Vec::<String>::new());
}

#[test]
fn a_rollback_is_between_snapshots_that_are_there() {
    let disk = disk();
    for pair in [(1, 9), (9, 2)] {
        let refused = no_snapshot(disk.begin_rollback(pair, (true, false), ME, &Clones::default()));
        assert_eq!(refused, NoSnapshot::Unknown("9".to_owned()));
    }
    let mut wrong = begun(&disk, 1, 2, true);
    wrong.rollback.as_mut().expect("it was begun").before = 9;
    assert_eq!(wrong.check(), Err(Disagreement::Snapshots));
}

#[test]
fn a_disk_that_several_hosts_may_have_is_so_again_when_it_is_rolled_back() {
    let none = Clones::default();
    let begun = |disk: &DiskRecord, since, was_shared| {
        disk.begin_rollback((1, since), (true, was_shared), ME, &none).expect("both are there").record
    };
    // Whoever locked the disk ended its sharing. After that one was lost, the next one finds a disk that is not shared.
    let second = begun(&with_attempt(&begun(&disk(), 2, true), "again"), 3, false);
    assert!(!second.access.is_shared);
    assert!(second.finish_rollback(3, &none).expect("it was begun").record.access.is_shared);
    let alone = begun(&disk(), 2, false);
    assert!(!alone.finish_rollback(2, &none).expect("it was begun").record.access.is_shared);
}

#[test]
fn a_rollback_is_cut_short_when_the_process_that_copies_ended_or_said_so() {
    let mut view = cluster(2, 1);
    let rolling = begun(&disk(), 1, 2, true);
    assert_eq!(view.rolls_back(&disk()), None);
    let incarnation = |view: &mut View, incarnation| {
        view.hosts.get_mut(&HostId(1)).expect("it is there").nodes[0].incarnation = incarnation;
    };
    incarnation(&mut view, 7);
    assert_eq!(view.rolls_back(&rolling), Some(ME));
    assert_eq!(view.rolls_back(&rolling.stop_rollback(2).expect("it was begun").record), None);
    view.liveness.insert(
        HostId(1),
        crate::liveness::Liveness::Away {
            since: base::Instant(5),
            why: crate::liveness::Absence::Unexpected,
        },
    );
    assert_eq!(view.rolls_back(&rolling), None);
    view.liveness.insert(HostId(1), crate::liveness::Liveness::Alive);
    incarnation(&mut view, 8);
    assert_eq!(view.rolls_back(&rolling), None);
    view.hosts.remove(&HostId(1));
    assert_eq!(view.rolls_back(&rolling), None);
}
