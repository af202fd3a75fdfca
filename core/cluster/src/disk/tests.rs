//! The transitions by name, and all of them in any order.

mod clones;
mod rollback;
mod snapshots;

use super::life::NewDisk;
use super::resize::keeps_places;
use super::*;
use crate::levels::Level;
use crate::testing::{NEWEST, cluster, counting_from, policy};
use crate::view::View;
use base::WriteId;
use base::units::{GIB, MIB};
use placement::Percent;
use proptest::prelude::*;
use replication::OwnedBy;

fn made(view: &View, rules: &str, size: u64) -> DiskRecord {
    let policy = policy(rules);
    let plan = placement::plan(&policy, size, &view.spaces(), &mut counting_from(1), 1).expect("it fits");
    let new = NewDisk {
        id: DiskId(1),
        name: "one".to_owned(),
        size,
        policy,
        read_only: false,
        follows: None,
        is_shared: false,
        origin: None,
    };
    let transition = DiskRecord::create(new, &plan, &view.nodes()).expect("all devices are known");
    assert_eq!(transition.create.len(), plan.layout.component_count());
    transition.record.activate().expect("it is being made").record
}

fn incoming(disk: &DiskRecord, lost: u64, new: u64, device: u128) -> (NodeId, Incoming) {
    let (place, component) = disk.component(ComponentId(lost)).expect("it is there");
    let component = Component { id: ComponentId(new), device: DeviceId(device), ..component };
    let node = crate::testing::node(device / 10);
    let replaces = Some(ComponentId(lost));
    (node, Incoming { place: place as u16, component, replaces, reason: Reason::Repair })
}

fn stand(disk: &DiskRecord, component: u64, standing: Standing) -> DiskRecord {
    let mut roster = disk.roster.clone();
    let member = roster.members.iter_mut().find(|one| one.component == ComponentId(component));
    member.expect("it is there").standing = standing;
    disk.with_roster(&roster, 0).expect("something is left").record
}

fn ids(disk: &DiskRecord) -> Vec<u64> {
    disk.layout.components().map(|(_, one)| one.id.0).collect()
}

#[test]
fn a_new_disk_is_made_of_components_that_all_count() {
    let view = cluster(2, 1);
    let disk = made(&view, "default,space_reservation=50,stripes=1", GIB);
    assert_eq!((disk.version, disk.state, disk.roster.epoch), (2, DiskState::Active, 0));
    assert!(disk.is_whole() && disk.debts.is_empty());
    let reservations: Vec<u64> = disk.components().iter().map(|(_, one)| one.reservation).collect();
    assert_eq!(reservations, [GIB / 2, GIB / 2]);
}

#[test]
fn a_lost_component_leaves_only_when_the_new_one_counts() {
    let view = cluster(3, 1);
    let disk = stand(&made(&view, "default,stripes=1", GIB), 1, Standing::Absent);
    let free =
        [11, 21, 31].into_iter().find(|id| disk.layout.components().all(|(_, one)| one.device.0 != *id));
    let new = incoming(&disk, 1, 9, free.expect("one device is free"));
    let begun = disk.begin_incoming(&[new]).expect("it fits");
    assert_eq!(begun.create.iter().map(|(_, one)| one.id.0).collect::<Vec<_>>(), [9]);
    let disk = begun.record;
    assert_eq!((ids(&disk), disk.roster.members.len()), (vec![1, 2], 3));
    assert_eq!(disk.finish_incoming(ComponentId(9)), Err(Objection::NotActive(ComponentId(9))));
    let finished = stand(&disk, 9, Standing::Active).finish_incoming(ComponentId(9)).expect("it counts");
    assert_eq!((ids(&finished.record), finished.record.roster.members.len()), (vec![9, 2], 2));
    assert_eq!(finished.delete.iter().map(|(_, id)| id.0).collect::<Vec<_>>(), [1]);
    let cancelled = disk.cancel_incoming(ComponentId(9)).expect("the other counts").record;
    assert_eq!((ids(&cancelled), cancelled.roster.members.len()), (vec![1, 2], 2));
}

#[test]
fn four_copies_are_all_replaced_at_once() {
    let view = cluster(4, 2);
    let mut disk = made(&view, "default,failures_to_tolerate=3,stripes=1", GIB);
    let stands: Vec<(u64, u128)> =
        disk.layout.components().map(|(_, one)| (one.id.0, one.device.0)).collect();
    for (id, device) in &stands {
        let other = if device % 10 == 1 { device + 1 } else { device - 1 };
        disk = disk.begin_incoming(&[incoming(&disk, *id, id + 50, other)]).expect("it fits").record;
    }
    assert_eq!((disk.layout.component_count(), disk.roster.members.len()), (4, 8));
    for (id, _) in &stands {
        disk = stand(&disk, id + 50, Standing::Active);
        disk = disk.finish_incoming(ComponentId(id + 50)).expect("it counts").record;
    }
    assert_eq!(ids(&disk), stands.iter().map(|(id, _)| id + 50).collect::<Vec<_>>());
}

#[test]
fn what_does_not_fit_is_refused() {
    let view = cluster(3, 2);
    let disk = made(&view, "default,stripes=1", GIB);
    let device = disk.layout.component(1).expect("there are two").device.0;
    let unfit = |error| matches!(error, Err(Objection::Unfit { .. }));
    assert!(unfit(disk.begin_incoming(&[incoming(&disk, 1, 9, device)])), "its sister's device");
    assert!(unfit(disk.begin_incoming(&[incoming(&disk, 1, 2, 77)])), "a taken id");
    let begun = disk.begin_incoming(&[incoming(&disk, 1, 9, 77)]).expect("it fits").record;
    assert_eq!(
        begun.begin_incoming(&[incoming(&begun, 1, 10, 78)]),
        Err(Objection::AlreadyReplaced(ComponentId(1)))
    );
    let mut roster = disk.roster.clone();
    roster.members.iter_mut().for_each(|one| one.standing = Standing::Absent);
    assert_eq!(disk.with_roster(&roster, 0), Err(Objection::Roster("a place has too few active components")));
    roster.members.pop();
    assert_eq!(disk.with_roster(&roster, 0), Err(Objection::Roster("it names other components")));
    let deleting = disk.begin_delete(&Clones::default()).expect("it is there").record;
    assert_eq!(deleting.rename("two"), Err(Objection::State(DiskState::Deleting)));
}

#[test]
fn guests_see_a_larger_size_only_when_its_components_are_there() {
    let view = cluster(3, 1);
    let disk = made(&view, "default,stripes=1", 200 * GIB);
    let grow = |size| {
        disk.begin_growth(size, &view.spaces(), &view.nodes(), &mut counting_from(20), 1).expect("it fits")
    };
    let begun = grow(250 * GIB);
    assert_eq!((begun.create.len(), begun.update.len(), begun.record.size), (0, 2, 200 * GIB));
    assert!(begun.update.iter().all(|(_, one)| one.size == 250 * GIB));
    assert_eq!(begun.record.finish_growth().expect("it grows").record.size, 250 * GIB);

    let begun = grow(300 * GIB);
    assert_eq!((begun.create.len(), begun.record.roster.members.len()), (2, 2));
    let cancelled = begun.record.cancel_growth().expect("it grows");
    assert_eq!((cancelled.delete.len(), &cancelled.record.layout), (2, &disk.layout));
    let grown = begun.record.finish_growth().expect("it grows").record;
    assert_eq!((grown.roster.members.len(), grown.layout.place_count()), (4, 2));
    assert_eq!(grown.layout.size(), 300 * GIB);
}

#[test]
fn a_growth_that_is_called_off_leaves_components_of_one_size() {
    let view = cluster(3, 1);
    let disk = made(&view, "default,stripes=1", GIB);
    let (spaces, nodes) = (view.spaces(), view.nodes());
    let begun = disk.begin_growth(2 * GIB, &spaces, &nodes, &mut counting_from(20), 1).expect("it fits");
    let cancelled = begun.record.cancel_growth().expect("it grows").record;
    assert_eq!((cancelled.size, cancelled.layout.size()), (GIB, 2 * GIB));
    assert!(cancelled.components().iter().all(|(_, one)| one.size == 2 * GIB));
    let again = cancelled.begin_growth(2 * GIB, &spaces, &nodes, &mut counting_from(20), 1).expect("it fits");
    assert_eq!(again.record.finish_growth().expect("it grows").record.size, 2 * GIB);
}

#[test]
fn a_disk_that_shrank_gives_back_space_and_grows_only_after_that() {
    let view = cluster(3, 1);
    let disk = made(&view, "default,space_reservation=100,stripes=1", 3 * GIB);
    let shrunk = disk.shrink(GIB).expect("it is larger");
    assert!(shrunk.update.iter().all(|(_, one)| (one.size, one.reservation) == (3 * GIB, GIB)));
    let shrunk = shrunk.record;
    assert_eq!((shrunk.size, shrunk.surplus, &shrunk.layout), (GIB, Some(3 * GIB), &disk.layout));
    let (spaces, nodes) = (view.spaces(), view.nodes());
    let grow = |disk: &DiskRecord, size| disk.begin_growth(size, &spaces, &nodes, &mut counting_from(20), 1);
    assert!(matches!(grow(&shrunk, 2 * GIB), Err(Objection::Growth(_))), "old data would come back");
    let further = shrunk.shrink(GIB / 2).expect("it is larger").record;
    assert_eq!(further.surplus, Some(3 * GIB));
    let given_back = shrunk.finish_shrink().expect("it has something to give back").record;
    assert!(given_back.finish_shrink().is_err());
    // What is set aside again must be there: the devices have 4 TiB each, of which 3 GiB were set aside.
    let mut full = spaces.clone();
    full.iter_mut().for_each(|device| device.free_bytes = device.reserved_bytes + GIB - 1);
    let refused = given_back.begin_growth(2 * GIB, &full, &nodes, &mut counting_from(20), 1);
    assert!(matches!(refused, Err(Objection::Cause(placement::Cause::Space { .. }))), "{refused:?}");
    let grown = grow(&given_back, 2 * GIB).expect("there is room");
    assert!(grown.update.iter().all(|(_, one)| (one.size, one.reservation) == (3 * GIB, 2 * GIB)));
}

#[test]
fn a_component_that_begins_to_count_is_given_its_size_before_that() {
    let view = cluster(3, 1);
    let away = stand(&made(&view, "default,stripes=1", GIB), 1, Standing::Absent);
    let begun = away.begin_growth(2 * GIB, &view.spaces(), &view.nodes(), &mut counting_from(20), 1);
    let grown = begun.expect("it fits").record.finish_growth().expect("it grows").record;
    let mut roster = grown.roster.clone();
    let unchanged = grown.with_roster(&roster, 0).expect("it is the same");
    assert!(unchanged.update.is_empty());
    roster.members.iter_mut().for_each(|one| one.standing = Standing::Active);
    let joins = grown.with_roster(&roster, 0).expect("all are there");
    let told: Vec<_> = joins.update.iter().map(|(_, one)| (one.id.0, one.size)).collect();
    assert_eq!(told, [(1, 2 * GIB)]);
}

/// Changes the rules of a disk as `disk set` does.
fn set(view: &View, disk: &DiskRecord, rules: &str) -> Result<Transition, Objection> {
    disk.change_rules(&policy(rules), None, &view.spaces(), view.used(disk.id))
}

/// A further copy of a place, on a device.
fn further(disk: &DiskRecord, place: usize, new: u64, device: u128) -> (NodeId, Incoming) {
    let first = disk.layout.place(place).expect("it is there")[0];
    let component = Component { id: ComponentId(new), device: DeviceId(device), ..first };
    let node = crate::testing::node(device / 10);
    (node, Incoming { place: place as u16, component, replaces: None, reason: Reason::Policy })
}

/// A mirror of three on hosts 1, 2 and 3: components 1 and 2 as made, and 30.
fn with_three_copies(view: &View) -> DiskRecord {
    let disk = made(view, "default,stripes=1", GIB);
    let more = set(view, &disk, "default,stripes=1,failures_to_tolerate=2").expect("a third host").record;
    let is_free = |id: &u128| disk.layout.components().all(|(_, one)| one.device.0 != *id);
    let free = [11, 21, 31].into_iter().find(is_free).expect("one is free");
    let begun = more.begin_incoming(&[further(&more, 0, 30, free)]).expect("it fits").record;
    stand(&begun, 30, Standing::Active).finish_incoming(ComponentId(30)).expect("it counts").record
}

#[test]
fn a_mirror_that_is_to_tolerate_more_owes_copies_and_one_that_is_to_tolerate_less_drops_them() {
    let view = cluster(3, 1);
    let disk = made(&view, "default,stripes=1", GIB);
    let more = set(&view, &disk, "default,stripes=1,failures_to_tolerate=2,iops_limit=9").expect("a third");
    assert_eq!((more.create.len(), more.delete.len(), &more.record.layout), (0, 0, &disk.layout));
    assert_eq!(more.record.policy.iops_limit.map(|limit| limit.get()), Some(9), "rules at once come with it");
    assert_eq!(
        more.record.debts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["failures_to_tolerate is 1, the policy asks for 2"]
    );
    let back = set(&view, &more.record, "default,stripes=1").expect("nothing came yet").record;
    assert_eq!((back.debts.len(), &back.layout), (0, &disk.layout));

    let there = with_three_copies(&view);
    assert_eq!((there.layout.component_count(), there.debts.len()), (3, 0));
    let fewer =
        set(&view, &stand(&there, 1, Standing::Absent), "single,stripes=1").expect("fewer always fit");
    assert_eq!((fewer.record.layout.component_count(), fewer.delete.len()), (1, 2));
    assert_ne!(ids(&fewer.record), [1], "it is not up to date");

    let refused = set(&view, &disk, "default,stripes=1,failures_to_tolerate=3").expect_err("no fourth host");
    assert!(refused.to_string().contains("needs 4 hosts"), "{refused}");
    let forced = set(&view, &disk, "default,stripes=1,failures_to_tolerate=3,force_provisioning=on");
    assert_eq!(forced.expect("it is a debt").record.debts.len(), 1);
    for (rules, rule) in [
        ("default,stripes=2,failures_to_tolerate=2", "stripes"),
        ("default,stripes=1,method=parity", "method"),
        ("default,stripes=1,method=parity,failures_to_tolerate=2", "method"),
    ] {
        let refused = set(&view, &disk, rules);
        assert!(
            matches!(refused, Err(Objection::NotLive { rule: found, .. }) if found == rule),
            "{refused:?}"
        );
    }
    let reserved = set(&view, &disk, "default,stripes=1,space_reservation=100").expect("there is room");
    assert_eq!(reserved.update.len(), 2);
    assert!(reserved.update.iter().all(|(_, one)| one.reservation == GIB));
}

#[test]
fn parity_keeps_the_failures_that_it_tolerates() {
    let disk = made(&cluster(6, 1), "default,method=parity", GIB);
    let refused = set(&cluster(6, 1), &disk, "default,method=parity,failures_to_tolerate=2");
    let text = refused.expect_err("its rows have another form").to_string();
    assert!(text.contains("failures_to_tolerate cannot change from 1 to 2"), "{text}");
    assert!(text.contains("another layout"), "{text}");
}

#[test]
fn further_copies_need_room_for_the_data_that_is_there() {
    let mut view = cluster(3, 1);
    let disk = made(&view, "default,stripes=1", 50 * GIB);
    for host in 1..=3 {
        view.host_mut(host).devices[0].free_bytes = 10 * GIB;
    }
    let more = "default,stripes=1,failures_to_tolerate=2";
    assert!(set(&view, &disk, more).is_ok(), "it has no data yet");
    view.used_bytes.insert(disk.id, vec![20 * GIB]);
    let refused = set(&view, &disk, more);
    assert!(matches!(refused, Err(Objection::Cause(_))), "{refused:?}");
}

/// The record learns of a lost host after a while. Until then the copy there counts, and it would have been kept in favour of the
/// one on the host that is left.
#[test]
fn a_copy_that_can_be_reached_stays_rather_than_one_that_cannot() {
    let mut view = cluster(3, 1);
    let disk = with_three_copies(&view);
    let hosts: Vec<u128> = disk.roster.members.iter().map(|one| one.node.host.0).collect();
    for left in &hosts {
        for host in hosts.iter().filter(|host| *host != left) {
            view.lose_host(*host, 1);
        }
        let fewer = set(&view, &disk, "single,stripes=1").expect("one can be reached").record;
        assert_eq!(fewer.roster.members.iter().map(|one| one.node.host.0).collect::<Vec<_>>(), [*left]);
        let member = disk.roster.members.iter().find(|one| one.node.host.0 == *left).expect("it has one");
        let behind = stand(&disk, member.component.0, Standing::Absent);
        let refused = set(&view, &behind, "single,stripes=1");
        assert_eq!(refused, Err(Objection::NoneServes(0)), "the one that can be reached is not up to date");
        view.liveness.values_mut().for_each(|liveness| *liveness = crate::Liveness::Alive);
    }
}

#[test]
fn copies_in_one_fault_domain_are_the_first_to_go() {
    let mut view = cluster(3, 1);
    let disk = with_three_copies(&view);
    for host in [1, 3] {
        view.host_mut(host).fault_domain = Some("r1".to_owned());
    }
    let fewer = set(&view, &disk, "default,stripes=1").expect("there are enough").record;
    let hosts: BTreeSet<u128> = fewer.roster.members.iter().map(|one| one.node.host.0).collect();
    assert!(hosts.contains(&2) && hosts.len() == 2, "{hosts:?}");
}

#[test]
fn of_a_disk_that_has_diverged_no_copy_is_dropped() {
    let view = cluster(3, 1);
    let mut disk = with_three_copies(&view);
    disk.roster.members[0].standing = Standing::Absent;
    disk.roster.members[0].ceiling = replication::Ceiling::Passed;
    assert_eq!(set(&view, &disk, "default,stripes=1"), Err(Objection::Diverged));
}

#[test]
fn copies_that_still_come_are_called_off_first() {
    let view = cluster(3, 1);
    let disk = made(&view, "default,stripes=1", GIB);
    let more = set(&view, &disk, "default,stripes=1,failures_to_tolerate=2").expect("a third host").record;
    let free =
        [11, 21, 31].into_iter().find(|id| disk.layout.components().all(|(_, one)| one.device.0 != *id));
    let begun =
        more.begin_incoming(&[further(&more, 0, 30, free.expect("one is free"))]).expect("it fits").record;
    let back = set(&view, &begun, "default,stripes=1").expect("it is called off");
    assert_eq!((ids(&back.record), back.record.incoming.len()), (vec![1, 2], 0));
    assert_eq!(back.delete.iter().map(|(_, id)| id.0).collect::<Vec<_>>(), [30]);
    let growing = begun.begin_growth(2 * GIB, &view.spaces(), &view.nodes(), &mut counting_from(40), 1);
    let refused = set(&view, &growing.expect("it fits").record, "default,stripes=1");
    assert!(matches!(refused, Err(Objection::Growth(_))), "{refused:?}");
}

/// Of a mirror that becomes a disk without redundancy, each place kept any of its copies: the disk then stood on both hosts
/// and was lost with either.
#[test]
fn a_mirror_that_becomes_single_keeps_the_copies_of_one_host() {
    let view = cluster(2, 1);
    let mut disk = made(&view, "default", 600 * GIB);
    assert_eq!(disk.layout.place_count(), 3);
    // Copies have no order among themselves.
    let reversed: Vec<_> = disk.layout.place(1).expect("it is there").iter().rev().copied().collect();
    disk.layout = disk.layout.with_place(1, reversed);
    let single = set(&view, &disk, "single").expect("fewer always fit").record;
    let devices: BTreeSet<_> = single.layout.components().map(|(_, one)| one.device).collect();
    assert_eq!(devices.len(), 1, "{devices:?}");
}

/// What happens to a disk, with numbers to choose by.
#[derive(Debug, Clone)]
enum Happening {
    Stand(usize, u8),
    Owner(u128),
    Replace(usize, u128),
    Add(usize, u128),
    Arrive(usize),
    Finish(usize),
    Cancel(usize),
    Policy(u8, u8, bool),
    Grow(u64),
    EndGrowth(bool),
    Shrink(u64),
    GiveBack,
    Rename,
    Delete,
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (any::<usize>(), 0u8..3).prop_map(|(a, b)| Happening::Stand(a, b)),
        1 => (1u128..6).prop_map(Happening::Owner),
        5 => (any::<usize>(), any::<u128>()).prop_map(|(a, b)| Happening::Replace(a, b)),
        3 => (any::<usize>(), any::<u128>()).prop_map(|(a, b)| Happening::Add(a, b)),
        6 => any::<usize>().prop_map(Happening::Arrive),
        6 => any::<usize>().prop_map(Happening::Finish),
        1 => any::<usize>().prop_map(Happening::Cancel),
        2 => (0u8..4, 0u8..=100, any::<bool>()).prop_map(|(a, b, c)| Happening::Policy(a, b, c)),
        1 => (1u64..600).prop_map(Happening::Grow),
        2 => any::<bool>().prop_map(Happening::EndGrowth),
        1 => (1u64..600).prop_map(Happening::Shrink),
        1 => Just(Happening::GiveBack),
        1 => Just(Happening::Rename),
        1 => prop_oneof![19 => Just(Happening::Rename), 1 => Just(Happening::Delete)],
    ]
}

/// The change that a happening asks for; most choices make no sense, and are refused.
fn attempt(disk: &DiskRecord, view: &View, what: &Happening, next: u64) -> Result<Transition, Objection> {
    let (spaces, nodes) = (view.spaces(), view.nodes());
    let mut ids = counting_from(next);
    let members = &disk.roster.members;
    let coming = |which: &usize| {
        let one = disk.incoming.get(which % disk.incoming.len().max(1));
        one.map_or(ComponentId(0), |one| one.component.id)
    };
    match what {
        Happening::Stand(which, standing) => {
            let mut roster = disk.roster.clone();
            roster.members[which % members.len()].standing =
                [Standing::Active, Standing::Absent, Standing::Stale][usize::from(*standing)];
            disk.with_roster(&roster, 0)
        }
        Happening::Arrive(which) => {
            let arrives = coming(which);
            let mut roster = disk.roster.clone();
            let member = roster.members.iter_mut().find(|one| one.component == arrives);
            member.ok_or(Objection::NoComponent(arrives))?.standing = Standing::Active;
            disk.with_roster(&roster, 0)
        }
        Happening::Owner(host) => {
            let owner = Some(OwnedBy { node: crate::testing::node(*host), incarnation: 1 });
            disk.with_roster(&Roster { epoch: disk.roster.epoch + 1, owner, ..disk.roster.clone() }, 0)
        }
        Happening::Replace(which, device) => {
            let lost = members[which % members.len()].component;
            let device = spaces[(device % spaces.len() as u128) as usize].id;
            disk.begin_incoming(&[incoming(disk, lost.0, next, device.0)])
        }
        Happening::Add(place, device) => {
            let device = spaces[(device % spaces.len() as u128) as usize].id;
            disk.begin_incoming(&[further(disk, place % disk.layout.place_count(), next, device.0)])
        }
        Happening::Finish(which) => disk.finish_incoming(coming(which)),
        Happening::Cancel(which) => disk.cancel_incoming(coming(which)),
        Happening::Policy(failures, share, force) => {
            let mut policy = policy("default");
            policy.failures_to_tolerate = *failures;
            policy.space_reservation = Percent::new(*share).expect("at most 100");
            policy.force_provisioning = *force;
            disk.change_rules(&policy, None, &spaces, &[])
        }
        Happening::Grow(gib) => disk.begin_growth(gib * GIB, &spaces, &nodes, &mut ids, next),
        Happening::EndGrowth(true) => disk.finish_growth(),
        Happening::EndGrowth(false) => disk.cancel_growth(),
        Happening::Shrink(gib) => disk.shrink(gib * GIB),
        Happening::GiveBack => disk.finish_shrink(),
        Happening::Rename => disk.rename("two"),
        Happening::Delete => disk.begin_delete(&Clones::default()),
    }
}

/// What is told to nodes fits what was and what is.
fn check_tasks(before: &DiskRecord, transition: &Transition) {
    let after = &transition.record;
    let of = |disk: &DiskRecord| -> BTreeSet<ComponentId> {
        disk.components().into_iter().map(|(_, one)| one.id).collect()
    };
    let (was, is) = (of(before), of(after));
    let created: BTreeSet<ComponentId> = transition.create.iter().map(|(_, one)| one.id).collect();
    let deleted: BTreeSet<ComponentId> = transition.delete.iter().map(|(_, id)| *id).collect();
    assert_eq!(created, is.difference(&was).copied().collect());
    if after.state != DiskState::Deleting {
        assert_eq!(deleted, was.difference(&is).copied().collect());
    }
    assert!(transition.update.iter().all(|(_, one)| is.contains(&one.id) && !created.contains(&one.id)));
    let told: BTreeSet<ComponentId> =
        transition.create.iter().chain(&transition.update).map(|(_, one)| one.id).collect();
    for (node, new) in before.components() {
        let now = after.components().into_iter().find(|(_, one)| one.id == new.id);
        let stays_so = now.is_none_or(|now| now == (node, new.clone()));
        assert!(stays_so || told.contains(&new.id), "{new:?} changes and its node is not told");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_transition_takes_a_record_apart(
        hosts in 1u128..6,
        each in 1u128..3,
        failures in 0u8..4,
        gib in 1u64..400,
        what in prop::collection::vec(happenings(), 0..60),
    ) {
        let mut view = cluster(hosts, each);
        let bytes = 2048 * GIB;
        for device in view.hosts.values_mut().flat_map(|host| host.devices.iter_mut()) {
            (device.capacity_bytes, device.free_bytes) = (bytes, bytes);
        }
        let rules = format!("default,force_provisioning=on,failures_to_tolerate={failures}");
        let mut disk = made(&view, &rules, gib * GIB);
        for (index, what) in what.iter().enumerate() {
            let active: Vec<usize> = (0..disk.layout.place_count()).map(|at| disk.active_count(at)).collect();
            let Ok(transition) = attempt(&disk, &view, what, 1000 + 1000 * index as u64) else { continue };
            check_tasks(&disk, &transition);
            let next = transition.record;
            prop_assert_eq!(next.check(), Ok(()));
            prop_assert_eq!(next.version, disk.version + 1);
            prop_assert!(next.roster.epoch >= disk.roster.epoch);
            prop_assert!(keeps_places_unless_seated(&disk, &next));
            for (place, before) in active.into_iter().enumerate().take(next.layout.place_count()) {
                prop_assert!(before > 0 && next.active_count(place) > 0);
            }
            let fresh = |one: &&Member| disk.roster.member(one.component).is_none();
            let is_empty = |one: &Member| one.base == WriteId::default();
            prop_assert!(next.roster.members.iter().filter(fresh).all(is_empty));
            disk = next;
        }
    }
}

/// The places in front keep their components but for the seats that change on purpose.
fn keeps_places_unless_seated(before: &DiskRecord, after: &DiskRecord) -> bool {
    let has_seats_changed =
        before.incoming != after.incoming || before.policy != after.policy || before.debts != after.debts;
    has_seats_changed || keeps_places(&before.layout, &after.layout)
}

/// The steps of a move, as an owner and the coordinator take them.
#[test]
fn a_disk_that_gets_another_layout_has_two_until_all_has_moved() {
    let view = cluster(4, 2);
    let disk = made(&view, "stripes=1", GIB);
    let spaces = view.spaces();
    let wanted = policy("method=parity,stripes=1");
    assert!(disk.needs_move(&wanted) && !disk.needs_move(&disk.policy));
    let refused = disk.change_rules(&wanted, None, &spaces, &[]);
    assert!(matches!(refused, Err(Objection::NotLive { .. })), "{refused:?}");
    let begun = disk
        .begin_move(&wanted, None, &spaces, &[], &view.nodes(), &mut counting_from(50))
        .expect("there is room");
    assert_eq!(begun.create.len(), 4, "3+1 has four members");
    assert_eq!(begun.record.policy, disk.policy, "until all has moved");
    let followed =
        begun.record.moving.clone().map(|moving| Moving { followed: Some("silver".to_owned()), ..moving });
    let followed = DiskRecord { follows: Some("gold".to_owned()), moving: followed, ..begun.record.clone() };
    let called_off = followed.cancel_growth().expect("it was begun").record;
    assert_eq!((called_off.moving, called_off.follows.as_deref()), (None, Some("silver")), "as before");
    let two = begun.record.finish_growth().expect("all are made").record;
    let old = disk.layout.place_count();
    assert_eq!((two.layout.boundary(), two.layout.place_count()), (Some(0), old + 1));
    assert_eq!(two.roster.moving.map(|moved| moved.boundary), Some(0));
    assert!(
        two.roster.members.iter().filter(|one| usize::from(one.place) == old).all(|one| one.rows.is_some())
    );
    // Sizes wait, and so do other moves; limits do not.
    assert!(matches!(two.shrink(GIB), Err(Objection::Moving)));
    assert!(matches!(two.plan_move(&policy("stripes=2"), &spaces, &[]), Err(Objection::Moving)));
    let limited =
        two.change_rules(&policy("stripes=1,iops_limit=500"), None, &spaces, &[]).expect("at once").record;
    let moving = limited.moving.as_ref().expect("it moves");
    assert!(moving.policy.iops_limit.is_some() && moving.policy.method == wanted.method);
    // The owner takes the boundary on; without it, or where nothing moves, no record says so.
    let size = two.layout.size();
    let mut roster = two.roster.clone();
    roster.moving = Some(replication::Moved { boundary: size, trimmed: 0 });
    assert!(disk.with_roster(&roster, 0).is_err());
    assert!(two.with_roster(&Roster { moving: None, ..two.roster.clone() }, 0).is_err());
    let moved = two.with_roster(&roster, 0).expect("it follows").record;
    assert!(matches!(two.end_move(), Err(Objection::NotMoving)) && moved.has_moved());
    let ended = moved.end_move().expect("all has moved");
    assert_eq!((ended.record.policy, ended.record.layout.boundary()), (wanted, None));
    assert_eq!(ended.record.roster.members.len(), 4);
    assert!(ended.record.roster.members.iter().all(|one| one.place == 0 && one.rows.is_some()));
    assert_eq!(ended.delete.len(), disk.roster.members.len());
    // One that turns round is as it was.
    let back = two.steer_move(true, false).expect("it moves").record;
    let as_it_was = back.end_move().expect("nothing has moved").record;
    assert_eq!((as_it_was.policy, &as_it_was.layout), (disk.policy, &disk.layout));
    assert_eq!(as_it_was.roster.members, disk.roster.members);
    // Whoever maps by a former layout is told apart.
    let shapes = [&disk, &begun.record, &two, &moved, &ended.record].map(|record| record.roster.shape);
    assert_eq!(shapes, [0, 0, 1, 1, 2]);
}

/// What a disk moves to is reserved from the beginning, and what it moves from until the end.
#[test]
fn both_layouts_of_a_disk_that_moves_have_the_reservation_of_their_policy() {
    let view = cluster(4, 2);
    let spaces = view.spaces();
    let reserved = |record: &DiskRecord| -> Vec<u64> {
        record.components().iter().map(|(_, one)| one.reservation / MIB).collect()
    };
    for (old, new, both) in [(0, 100, [0, 0, 3, 3, 3, 3]), (100, 0, [9, 9, 0, 0, 0, 0])] {
        let disk = made(&view, &format!("stripes=1,space_reservation={old}"), 9 * MIB);
        let wanted = policy(&format!("method=parity,stripes=1,space_reservation={new}"));
        let begun = disk
            .begin_move(&wanted, None, &spaces, &[], &view.nodes(), &mut counting_from(50))
            .expect("there is room");
        assert!(begun.create.iter().all(|(_, one)| one.reservation / MIB == both[2]), "{begun:?}");
        assert_eq!(reserved(&begun.record), both);
        let two = begun.record.finish_growth().expect("all are made").record;
        assert_eq!(reserved(&two), both);
        let half = policy("stripes=1,space_reservation=50");
        let half = two.change_rules(&half, None, &spaces, &[]).expect("there is room").record;
        let reservation = half.moving.as_ref().expect("it moves").space_reservation;
        assert_eq!((reservation, half.space_reservation), (half.policy.space_reservation, reservation));
        let mut roster = two.roster.clone();
        roster.moving = Some(replication::Moved { boundary: two.layout.size(), trimmed: 0 });
        let ended =
            two.with_roster(&roster, 0).and_then(|moved| moved.record.end_move()).expect("it has moved");
        assert_eq!(reserved(&ended.record), both[2..]);
        let back = two.steer_move(true, false).expect("it moves").record;
        assert_eq!(reserved(&back.end_move().expect("nothing has moved").record), both[..2]);
    }
}

/// A device that holds less in the end may be fuller than a move may leave it, but not so full that the granules do not fit: the move would
/// stand still at once.
#[test]
fn a_move_that_gives_room_back_needs_room_for_the_granules_alone() {
    let mut view = cluster(4, 1);
    let disk = made(&view, "stripes=1", 20 * GIB);
    let (_, old) = disk.layout.components().next().expect("it has components");
    let (device, granules) = (old.device, 2 * 1026 * MIB / 3);
    for (free, is_refused) in [(granules + MIB, false), (granules - MIB, true)] {
        let mut devices = view.hosts.values_mut().map(|host| &mut host.devices[0]);
        devices.find(|one| one.id == device).expect("it is there").free_bytes = free;
        let plan = disk.plan_move(&policy("method=parity,stripes=1"), &view.spaces(), &[]);
        assert_eq!(plan.is_err(), is_refused, "{free}: {plan:?}");
    }
}

/// What moves takes no second copy of all of it: a device has what it had, and the share of the other layout for it.
#[test]
fn a_move_is_refused_where_a_device_would_be_too_full_with_the_other_layout() {
    let mut view = cluster(4, 1);
    let disk = made(&view, "stripes=1", GIB);
    let wanted = policy("method=parity,stripes=1");
    let check = |view: &View, used: &[u64]| disk.plan_move(&wanted, &view.spaces(), used);
    let plan = check(&view, &[]).expect("there is room");
    assert_eq!((plan.bytes_to_copy.div_ceil(MIB), plan.devices.len()), (1366, 4), "a third more, for parity");
    let margin = 2 * 66 * MIB / 3; // Two granules, in rows of 3 MiB.
    let has_both = |one: &&MoveRoom| disk.layout.components().any(|(_, old)| old.device == one.device);
    let both = plan.devices.iter().find(has_both).expect("mirror and rows share a device");
    assert_eq!((both.used_bytes, both.peak_bytes), (0, margin), "what leaves is more than what comes");
    // Each MiB alone takes an extent of each member, so that all extents of the rows are taken by a third of the disk.
    let third = check(&view, &[GIB / 3]).expect("there is room");
    let one = third.devices.iter().find(|one| one.device != both.device && one.used_bytes == 0);
    let one = one.expect("rows have more devices");
    assert!(one.scattered_peak_bytes > 2 * one.peak_bytes, "{one:?}");
    assert!(one.scattered_peak_bytes <= GIB / 3 + 3 * margin + MIB, "{one:?}");
    let fresh = plan.devices.iter().find(|one| !has_both(one)).expect("rows have more devices");
    assert_eq!((fresh.peak_bytes, fresh.limit_bytes), (GIB / 3 + margin, GIB * 95));
    for host in view.hosts.values_mut() {
        let device = &mut host.devices[0];
        device.free_bytes = device.capacity_bytes / 100 * 5;
    }
    let full = check(&view, &[]);
    assert!(matches!(full, Err(Objection::NoRoomToMove { .. })), "{full:?}");
    let empty = check(&view, &vec![0; disk.layout.place_count()]).expect("it holds nothing");
    assert_eq!((empty.bytes_to_copy, empty.devices.len()), (0, 0));
}
