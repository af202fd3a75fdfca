//! Clones in the records of disks.

use super::snapshots::{no_snapshot, with_snapshot};
use super::*;

/// A disk of those rules that is to be a clone.
fn clone_of(view: &View, origin: Origin, rules: &str, size: u64) -> Result<DiskRecord, Objection> {
    let policy = policy(rules);
    let plan = placement::plan(&policy, size, &view.spaces(), &mut counting_from(100), 1).expect("it fits");
    let new = NewDisk {
        id: DiskId(2),
        name: "two".to_owned(),
        size,
        policy,
        read_only: false,
        follows: None,
        is_shared: false,
        origin: Some(origin),
    };
    let made = DiskRecord::create(new, &plan, &view.nodes())?.record;
    Ok(made.activate().expect("it is being made").record)
}

#[test]
fn a_snapshot_and_its_disk_stay_as_long_as_there_are_clones_of_it() {
    let disk = with_snapshot(&made(&cluster(2, 1), "default,stripes=1", GIB), "base", &[]);
    assert_eq!(no_snapshot(disk.add_clone("other")), NoSnapshot::Unknown("other".to_owned()));
    let (first, origin) = disk.add_clone("base").expect("it is there");
    assert_eq!(origin, Origin { disk: DiskId(1), snapshot: 1, size: GIB });
    let both = first.record.add_clone("base").expect("it is there").0.record;
    let has = |count| NoSnapshot::HasClones { name: "base".to_owned(), count };
    assert_eq!(no_snapshot(both.delete_snapshot("base", &Clones::default())), has(2));
    assert_eq!(no_snapshot(both.begin_delete(&Clones::default())), has(2));
    let one = both.drop_clone(1).expect("it has two").record;
    assert_eq!(no_snapshot(one.delete_snapshot("base", &Clones::default())), has(1));
    let none = one.drop_clone(1).expect("it has one").record;
    assert!(none.drop_clone(1).is_err() && none.clones.is_empty());
    none.delete_snapshot("base", &Clones::default()).expect("it has none");
    none.begin_delete(&Clones::default()).expect("it has none");
    let mut wrong = none.clone();
    wrong.clones.insert(7, 1);
    assert_eq!(wrong.check(), Err(Disagreement::Clones));
}

#[test]
fn a_clone_does_not_shrink_nor_move_before_it_shares_nothing() {
    let view = cluster(5, 1);
    let origin = Origin { disk: DiskId(1), snapshot: 1, size: GIB };
    let refused = |clone: Result<DiskRecord, Objection>| matches!(clone, Err(Objection::Clone(_)));
    assert!(refused(clone_of(&view, origin, "default,method=parity", GIB)));
    assert!(refused(clone_of(&view, origin, "default,stripes=1", GIB / 2)));
    let clone = clone_of(&view, origin, "default,stripes=1", 2 * GIB).expect("it fits");
    assert_eq!((clone.check(), clone.origin), (Ok(()), Some(origin)));
    assert!(matches!(clone.shrink(GIB), Err(Objection::OfClone(_))));
    let with_own = with_snapshot(&clone, "monday", &[]);
    assert!(matches!(with_own.leave_origin(), Err(Objection::Snapshot(NoSnapshot::Has(_)))));
    let left = clone.leave_origin().expect("it has no snapshots");
    assert!(left.record.origin.is_none() && left.update.len() == left.record.layout.component_count());
    assert!(matches!(left.record.leave_origin(), Err(Objection::Clone(_))));
    left.record.shrink(GIB).expect("it is an ordinary disk");
}

/// The clones among disks.
fn of<'a>(disks: impl IntoIterator<Item = &'a DiskRecord>) -> Clones {
    Clones::of(disks.into_iter().filter_map(|disk| disk.origin))
}

/// The record of the origin was made anew: it counts no clones, and nothing in it says that there are any.
#[test]
fn a_clone_that_no_record_counts_keeps_its_snapshot_and_its_disk() {
    let view = cluster(2, 1);
    let disk = with_snapshot(&made(&view, "default,stripes=1", GIB), "base", &[]);
    let origin = Origin { disk: DiskId(1), snapshot: 1, size: GIB };
    let clone = clone_of(&view, origin, "default,stripes=1", GIB).expect("it fits");
    let clones = of([&disk, &clone]);
    let has = |count| NoSnapshot::HasClones { name: "base".to_owned(), count };
    assert!(disk.clones.is_empty());
    assert_eq!(no_snapshot(disk.delete_snapshot("base", &clones)), has(1));
    assert_eq!(no_snapshot(disk.begin_delete(&clones)), has(1));
    clone.begin_delete(&clones).expect("nothing is a clone of the clone");
    // A second clone is counted by the record, and the first one still is not.
    let counted = disk.add_clone("base").expect("it is there").0.record;
    assert_eq!(counted.clones_of(1, &clones), 1);
    let both = of([&disk, &clone, &DiskRecord { id: DiskId(3), ..clone.clone() }]);
    assert_eq!(no_snapshot(counted.delete_snapshot("base", &both)), has(2));
    let left = clone.leave_origin().expect("it has no snapshots").record;
    let none = of([&disk, &left]);
    disk.delete_snapshot("base", &none).expect("it shares nothing any more");
    disk.begin_delete(&none).expect("it shares nothing any more");
    let other = with_snapshot(&disk, "other", &[]);
    other.delete_snapshot("other", &clones).expect("it is the other one that was cloned");
}

#[test]
fn a_schedule_does_not_delete_what_was_cloned_though_no_record_counts_it() {
    let mut disk = made(&cluster(2, 1), "default,stripes=1,snapshots=hourly keep 1", GIB);
    let every = disk.policy.snapshots.iter().next().expect("one").every;
    for name in ["one", "two", "three"] {
        disk = with_snapshot(&disk, name, &[]);
    }
    disk.snapshots.taken.iter_mut().for_each(|one| one.schedule = Some(every));
    let clones = Clones::of([Origin { disk: disk.id, snapshot: 1, size: GIB }]);
    let expired: Vec<&str> = disk.expired_snapshots(&clones).iter().map(|one| one.name.as_str()).collect();
    assert_eq!(expired, ["two"]);
    assert_eq!(disk.expire_snapshot("one", &clones), Ok(None));
}
