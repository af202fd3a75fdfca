//! What becomes of a directory that was lost.

use super::*;
use crate::testing::{cluster, node};
use replication::OwnedBy;

fn kept(revision: u64, records: &[(&str, u64)]) -> Kept<u64> {
    let records = records.iter().map(|(key, version)| ((*key).to_owned(), (*version, *version * 10)));
    Kept { generation: 1, revision, records: records.collect() }
}

#[test]
fn the_newest_version_counts_and_what_a_later_copy_lacks_was_removed() {
    let older = kept(5, &[("a", 1), ("b", 2), ("c", 5)]);
    let later = kept(9, &[("a", 1), ("b", 8), ("d", 9)]);
    let expected = kept(9, &[("a", 1), ("b", 8), ("d", 9)]);
    assert_eq!(older.clone().merged(later.clone()), expected);
    assert_eq!(later.merged(older), expected);
}

#[test]
fn what_a_host_learned_ahead_of_its_watch_counts_though_a_later_copy_lacks_it() {
    // The outcome of its own transaction, revision 12, while its watch is at 5.
    let ahead = kept(5, &[("a", 12)]);
    let later = kept(9, &[("b", 9)]);
    assert_eq!(ahead.clone().merged(later.clone()), kept(9, &[("a", 12), ("b", 9)]));
    assert_eq!(later.merged(ahead), kept(9, &[("a", 12), ("b", 9)]));
}

#[test]
fn the_order_in_which_copies_are_merged_does_not_matter() {
    let copies = [
        kept(3, &[("a", 1), ("b", 3)]),
        kept(7, &[("b", 6), ("c", 11)]),
        kept(5, &[("a", 1), ("b", 5)]),
        kept(10, &[("b", 6)]),
    ];
    let all = |order: [usize; 4]| {
        order.map(|index| copies[index].clone()).into_iter().reduce(Kept::merged).expect("four of them")
    };
    let expected = kept(10, &[("b", 6), ("c", 11)]);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
        assert_eq!(all(order), expected, "{order:?}");
    }
}

#[test]
fn a_copy_of_a_former_generation_says_nothing() {
    let former = Kept { generation: 1, ..kept(900, &[("a", 900)]) };
    let current = Kept { generation: 2, ..kept(3, &[("a", 3)]) };
    assert_eq!(former.clone().merged(current.clone()), current);
    assert_eq!(current.clone().merged(former), current);
}

/// A disk of two copies on hosts 1 and 2, which host 1 owns in epoch 4, as three hosts tell of it.
fn disk() -> (DiskRecord, Testimony) {
    let mut view = cluster(3, 1);
    let mut record = view.add_disk(1, "default,stripes=1");
    record.roster.epoch = 4;
    record.roster.owner = Some(OwnedBy { node: node(1), incarnation: 7 });
    let mut components: BTreeMap<HostId, BTreeMap<ComponentId, Listed>> =
        (1..=3).map(|host| (HostId(host), BTreeMap::new())).collect();
    for member in &record.roster.members {
        let listed = Listed { disk: record.id, promised: 4, snapshots: Vec::new() };
        components.entry(member.node.host).or_default().insert(member.component, listed);
    }
    (record, Testimony { components, ..Testimony::default() })
}

fn only(rebuilt: &Rebuilt) -> &Restored {
    assert_eq!(rebuilt.disks.len(), 1);
    rebuilt.disks.values().next().expect("one disk")
}

#[test]
fn a_disk_whose_components_promised_no_more_than_its_record_knows_is_as_it_was() {
    let (record, testimony) = disk();
    let rebuilt = rebuild([record.clone()], &testimony);
    let found = only(&rebuilt);
    assert!(found.is_taken() && found.at_risk.is_empty() && found.made_absent.is_empty());
    assert_eq!(found.record, record);
    assert_eq!(rebuilt.unknown, BTreeMap::new());
}

#[test]
fn a_disk_that_somebody_owned_later_is_not_taken_unless_a_person_accepts_it() {
    let (record, mut testimony) = disk();
    let member = record.roster.members[1].clone();
    let later = Listed { disk: record.id, promised: 6, snapshots: Vec::new() };
    testimony.components.entry(member.node.host).or_default().insert(member.component, later);
    let rebuilt = rebuild([record.clone()], &testimony);
    let why = Unproven { component: member.component, host: member.node.host, promised: 6, known: 4 };
    assert_eq!(only(&rebuilt).unproven, Some(why));
    assert!(!only(&rebuilt).is_taken());
    assert_eq!(only(&rebuilt).obstacle, Some(Obstacle::Undecided));
    testimony.accepted.insert(record.id);
    let rebuilt = rebuild([record], &testimony);
    assert!(only(&rebuilt).is_taken());
    assert_eq!(only(&rebuilt).obstacle, None);
    assert_eq!((only(&rebuilt).record.roster.epoch, only(&rebuilt).record.roster.owner), (6, None));
}

#[test]
fn a_disk_is_given_up_only_where_something_stands_against_taking_it() {
    let (record, mut testimony) = disk();
    testimony.left_out.insert(record.id);
    let rebuilt = rebuild([record.clone()], &testimony);
    assert!(only(&rebuilt).is_taken());
    assert_eq!(only(&rebuilt).obstacle, Some(Obstacle::LeftOutForNothing));
    let later = Listed { disk: record.id, promised: 5, snapshots: Vec::new() };
    testimony.components.entry(HostId(3)).or_default().insert(ComponentId(99), later);
    let rebuilt = rebuild([record.clone()], &testimony);
    assert!(!only(&rebuilt).is_taken());
    assert_eq!(only(&rebuilt).obstacle, None);
    testimony.accepted.insert(record.id);
    let both = rebuild([record], &testimony);
    assert_eq!(only(&both).obstacle, Some(Obstacle::LeftOutForNothing), "it cannot be both");
}

#[test]
fn a_component_that_the_record_does_not_name_may_be_the_one_that_promised_more() {
    let (record, mut testimony) = disk();
    let later = Listed { disk: record.id, promised: 5, snapshots: Vec::new() };
    testimony.components.entry(HostId(3)).or_default().insert(ComponentId(99), later);
    assert!(!only(&rebuild([record], &testimony)).is_taken());
}

#[test]
fn what_a_missing_host_held_is_absent_where_another_copy_is_there_and_waits_where_none_is() {
    let (record, mut testimony) = disk();
    let [first, second] = [0, 1].map(|index| record.roster.members[index].clone());
    testimony.components.remove(&second.node.host);
    testimony.without.insert(second.node.host);
    let rebuilt = rebuild([record.clone()], &testimony);
    let found = only(&rebuilt);
    assert_eq!((&found.at_risk, &found.made_absent), (&vec![second.node.host], &vec![second.component]));
    let standing = |id| found.record.roster.member(id).map(|one| one.standing);
    assert_eq!(standing(first.component), Some(Standing::Active));
    assert_eq!(standing(second.component), Some(Standing::Active), "the next owner counts it out");
    assert_eq!(found.record.check(), Ok(()));
    testimony.components.remove(&first.node.host);
    testimony.without.insert(first.node.host);
    let rebuilt = rebuild([record.clone()], &testimony);
    assert_eq!(only(&rebuilt).record, record, "it waits for its hosts");
    assert_eq!(only(&rebuilt).places_missing, [0]);
}

#[test]
fn a_host_that_lost_its_copy_and_has_its_components_puts_its_disks_at_risk_and_keeps_them() {
    let (record, mut testimony) = disk();
    testimony.without.insert(HostId(1));
    let rebuilt = rebuild([record.clone()], &testimony);
    assert_eq!(only(&rebuilt).at_risk, [HostId(1)]);
    assert_eq!(only(&rebuilt).record, record);
}

#[test]
fn components_of_a_disk_without_a_record_are_told() {
    let (record, mut testimony) = disk();
    let stray = Listed { disk: DiskId(50), promised: 1, snapshots: Vec::new() };
    testimony.components.entry(HostId(3)).or_default().insert(ComponentId(99), stray);
    let rebuilt = rebuild([record], &testimony);
    assert_eq!(rebuilt.unknown, BTreeMap::from([(DiskId(50), BTreeSet::from([HostId(3)]))]));
}

#[test]
fn of_two_disks_of_one_name_the_one_that_changed_last_keeps_it() {
    let (first, testimony) = disk();
    let second = DiskRecord { id: DiskId(2), version: first.version + 1, ..first.clone() };
    let rebuilt = rebuild([first.clone(), second], &testimony);
    assert_eq!(rebuilt.disks[&DiskId(2)].record.name, first.name);
    assert_eq!(rebuilt.disks[&first.id].renamed_from, Some(first.name));
}

/// Another host, whose copy is lost, has taken a snapshot and cloned it since. Of a second clone the record is given up.
#[test]
fn snapshots_and_clones_that_a_record_does_not_know_are_found_again() {
    let (mut record, mut testimony) = disk();
    testimony.now_ns = 77;
    record.roster.snapshots.last = 2;
    let origin = |snapshot| Some(Origin { disk: record.id, snapshot, size: record.size });
    let clone = |id, snapshot| DiskRecord {
        id: DiskId(id),
        name: format!("clone-{id}"),
        origin: origin(snapshot),
        ..record.clone()
    };
    let (kept, given_up) = (clone(2, 3), clone(3, 3));
    let [first, second] = [0, 1].map(|index| record.roster.members[index].clone());
    for (member, snapshots) in [(&first, vec![1, 3, 4]), (&second, vec![3])] {
        let listed = Listed { disk: record.id, promised: 4, snapshots };
        testimony.components.entry(member.node.host).or_default().insert(member.component, listed);
    }
    let later = Listed { disk: given_up.id, promised: 9, snapshots: Vec::new() };
    testimony.components.entry(HostId(3)).or_default().insert(ComponentId(99), later);
    testimony.left_out.insert(given_up.id);
    let rebuilt = rebuild([record.clone(), kept, given_up], &testimony);
    let found = &rebuilt.disks[&record.id];
    // Number 1 was deleted: the record has given it, and does not name it.
    assert_eq!((&found.recovered, found.record.check()), (&vec![3, 4], Ok(())));
    let names: Vec<&str> = found.record.snapshots.taken.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["recovered-3", "recovered-4"]);
    assert_eq!(found.record.clones, BTreeMap::from([(3, 1)]));
    let lacking = |id, number| found.record.roster.member(id).is_some_and(|one| one.lacks.contains(number));
    assert!(lacking(second.component, 4) && !lacking(second.component, 3) && !lacking(first.component, 4));
    // Once more, from what the new directory says: nothing is found twice.
    let again = rebuild([found.record.clone(), rebuilt.disks[&DiskId(2)].record.clone()], &testimony);
    assert_eq!(again.disks[&record.id].record, found.record);
}
