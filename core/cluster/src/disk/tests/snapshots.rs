//! Snapshots of a disk in its record.

use super::*;
use replication::Together;

/// The disk with a snapshot of that name, which all active components have but those that lack it.
pub(super) fn with_snapshot(disk: &DiskRecord, name: &str, without: &[u64]) -> DiskRecord {
    let asked = disk.ask_snapshot(name, NEWEST).expect("it can have one").record;
    let mut roster = asked.roster.clone();
    let number = roster.snapshots.asked.take().expect("it is asked for");
    roster.snapshots.taken.push(number);
    let lacking = roster.members.iter_mut().filter(|one| without.contains(&one.component.0));
    lacking.for_each(|one| one.lacks.add(number));
    asked.with_roster(&roster, 77).expect("its owner has taken it").record
}

pub(super) fn no_snapshot<T: std::fmt::Debug>(result: Result<T, Objection>) -> NoSnapshot {
    match result {
        Err(Objection::Snapshot(why)) => why,
        other => panic!("a snapshot is no objection: {other:?}"),
    }
}

#[test]
fn a_snapshot_has_the_name_that_was_asked_for_and_goes_by_it() {
    let disk = made(&cluster(2, 1), "default,stripes=1", GIB);
    let asked = disk.ask_snapshot("monday", NEWEST).expect("it can have one").record;
    assert_eq!(no_snapshot(asked.ask_snapshot("tuesday", NEWEST)), NoSnapshot::Asked("monday".to_owned()));
    let cancelled = asked.cancel_snapshot().expect("one is asked for").record;
    assert_eq!(no_snapshot(cancelled.cancel_snapshot()), NoSnapshot::NotAsked);
    let disk = with_snapshot(&cancelled, "tuesday", &[]);
    let taken = Snapshot {
        number: 2,
        name: "tuesday".to_owned(),
        size: GIB,
        taken_ns: 77,
        schedule: None,
        is_pinned: false,
    };
    assert_eq!(disk.snapshots.taken, [taken], "the number of the one that was cancelled is not given again");
    assert_eq!(no_snapshot(disk.ask_snapshot("tuesday", NEWEST)), NoSnapshot::Taken("tuesday".to_owned()));
    assert_eq!(
        no_snapshot(disk.delete_snapshot("monday", &Clones::default())),
        NoSnapshot::Unknown("monday".to_owned())
    );
    assert!(matches!(no_snapshot(disk.shrink(MIB)), NoSnapshot::Has(_)));
    let deleted = disk.delete_snapshot("tuesday", &Clones::default()).expect("it is there").record;
    assert!(deleted.snapshots.taken.is_empty() && deleted.roster.snapshots.to_sweep);
    deleted.shrink(MIB).expect("nothing is in the way any more");
}

/// The layout that it had stays until the other one has its snapshots.
#[test]
fn a_disk_moves_with_its_snapshots() {
    let view = cluster(4, 2);
    let spaces = view.spaces();
    let disk = with_snapshot(&made(&view, "default,stripes=1", 8 * MIB), "monday", &[]);
    let begin = |disk: &DiskRecord, rules: &str| {
        disk.begin_move(&policy(rules), None, &spaces, &[], &view.nodes(), &mut counting_from(50))
    };
    assert!(matches!(no_snapshot(begin(&disk, "method=parity,stripes=1")), NoSnapshot::Has(_)));
    let asked = disk.ask_snapshot("tuesday", NEWEST).expect("it can have one").record;
    assert_eq!(no_snapshot(begin(&asked, "stripes=2")), NoSnapshot::Asked("tuesday".to_owned()));
    let two = begin(&disk, "stripes=2")
        .and_then(|begun| begun.record.finish_growth())
        .expect("there is room")
        .record;
    assert_eq!(two.copies_with(1), (2, 2), "where it was taken");
    assert!(matches!(two.ask_snapshot("tuesday", NEWEST), Err(Objection::Moving)));
    assert!(two.move_text().is_some_and(|text| text.contains("0 B of 8 MiB moved, then 1 snapshot")));
    let size = two.layout.size();
    let moved = |lacking: &[u64]| {
        let mut roster = two.roster.clone();
        roster.moving = Some(replication::Moved { boundary: size, trimmed: size });
        let given = roster.members.iter_mut().filter(|one| !lacking.contains(&one.component.0));
        given.for_each(|one| one.lacks = Default::default());
        two.with_roster(&roster, 0).expect("it follows").record
    };
    let last = two.roster.members.last().expect("it has members").component.0;
    let waiting = moved(&[last]);
    assert!(!waiting.has_moved() && matches!(waiting.end_move(), Err(Objection::NotMoving)));
    assert!(waiting.move_text().is_some_and(|text| text.contains("8 MiB of 8 MiB moved, 1 snapshot to go")));
    let deleted = waiting.delete_snapshot("monday", &Clones::default()).expect("it is there").record;
    assert!(deleted.has_moved(), "nobody waits for what is gone");
    let ended = moved(&[]).end_move().expect("all is there").record;
    assert_eq!((ended.copies_with(1), ended.layout.place_count()), ((2, 2), 2));
    let back = waiting.steer_move(true, false).expect("it moves").record;
    assert!(back.snapshots_to_move().is_empty(), "where it goes back to has them");
}

#[test]
fn a_disk_has_no_more_snapshots_than_it_can_and_one_with_parity_has_some() {
    let mut disk = made(&cluster(2, 1), "default,stripes=1", GIB);
    for number in 0..crate::limits::SNAPSHOTS_MAX {
        disk = with_snapshot(&disk, &format!("s{number}"), &[]);
    }
    assert_eq!(no_snapshot(disk.ask_snapshot("more", NEWEST)), NoSnapshot::TooMany);
    let rows = made(&cluster(3, 1), "default,method=parity", GIB);
    assert!(rows.ask_snapshot("one", NEWEST).is_ok());
    let early = no_snapshot(rows.ask_snapshot("one", Level::SNAPSHOTS));
    assert!(
        matches!(early, NoSnapshot::TooEarly(_)),
        "hosts of a former release would not hold its changes: {early}"
    );
}

#[test]
fn of_several_disks_a_snapshot_is_there_once_its_owner_has_held_and_taken_it() {
    let disk = made(&cluster(2, 1), "default,stripes=1", GIB);
    let asked = disk.ask_together("monday", NEWEST).expect("it can have one").record;
    let said = |disk: &DiskRecord, said| {
        let mut roster = disk.roster.clone();
        roster.snapshots.together = Some(said);
        disk.with_roster(&roster, 7).expect("its owner says so").record
    };
    let refused =
        |result: Result<Transition, Objection>| assert_eq!(no_snapshot(result), NoSnapshot::NotAsked);
    refused(asked.mark_together(1));
    refused(asked.finish_together(1, 77));
    let held = said(&asked, Together::Held);
    refused(held.mark_together(2));
    refused(held.finish_together(1, 77));
    let marked = said(&held.mark_together(1).expect("it holds").record, Together::Marked);
    let taken = marked.finish_together(1, 77).expect("it is taken").record;
    let names: Vec<&str> = taken.snapshots.taken.iter().map(|one| one.name.as_str()).collect();
    assert_eq!((names, taken.roster.snapshots.together), (vec!["monday"], None));
    let cancelled = marked.cancel_snapshot().expect("it is asked for").record;
    assert_eq!((cancelled.roster.snapshots.together, cancelled.roster.snapshots.to_sweep), (None, true));
    refused(cancelled.finish_together(1, 77));
}

#[test]
fn what_alone_has_a_snapshot_is_not_taken_out() {
    let view = cluster(3, 1);
    let disk = with_snapshot(&made(&view, "default,stripes=1", GIB), "monday", &[2]);
    let free =
        [11, 21, 31].into_iter().find(|id| disk.layout.components().all(|(_, one)| one.device.0 != *id));
    let free = free.expect("one device is free");
    let only = NoSnapshot::OnlyOn { component: ComponentId(1), name: "monday".to_owned() };
    let begun = disk.begin_incoming(&[incoming(&disk, 1, 9, free)]).expect("it fits").record;
    let comer = begun.roster.member(ComponentId(9)).expect("it comes");
    assert!(comer.lacks.contains(1), "what is made later has no snapshot from before");
    let arrived = stand(&begun, 9, Standing::Active);
    assert_eq!(no_snapshot(arrived.finish_incoming(ComponentId(9))), only);
    // The policy may ask for one copy less meanwhile: what came waits on, and the one with the snapshot stays.
    let fewer = policy("default,failures_to_tolerate=0,stripes=1");
    match arrived.change_rules(&fewer, None, &view.spaces(), &[]) {
        Ok(changed) => assert!(changed.record.roster.member(ComponentId(1)).is_some(), "it has the snapshot"),
        Err(why) => assert_eq!(why, Objection::Snapshot(only)),
    }
    let lost = stand(&arrived, 1, Standing::Stale);
    lost.finish_incoming(ComponentId(9)).expect("what is lost keeps nobody");
    let other = disk.begin_incoming(&[incoming(&disk, 2, 9, free)]).expect("it fits").record;
    stand(&other, 9, Standing::Active).finish_incoming(ComponentId(9)).expect("the first one has it");
}
