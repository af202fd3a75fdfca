//! Compliance and following of disks in small clusters.

use super::*;
use crate::disk::{Incoming, Reason};
use crate::following::{Following, following};
use crate::health::surroundings::Directory;
use crate::moves::{Hindrance, MoveStatus};
use crate::repair::{Action, Repairs, Step};
use crate::testing::{at, cluster, counting_from, node, policy};
use base::{ComponentId, DeviceId, DiskId};
use layout::Component;
use replication::Standing;

fn causes(view: &View, id: u128) -> (&'static str, String) {
    let known = Known { now: at(600), directory: Directory::Reachable, repairs: &Repairs::default() };
    let moves = MovesUnderWay::of(view.disks.values());
    let found = compliance(view, view.disk(id), &known, &moves).expect("it is active");
    (found.name(), found.causes().join("; "))
}

#[test]
fn a_disk_that_has_what_its_policy_asks_for_is_compliant() {
    let mut view = cluster(3, 1);
    view.add_disk(1, "default");
    assert_eq!(causes(&view, 1), ("compliant", String::new()));
    view.lose_host(2, 1);
    view.lose_host(3, 1);
    let (name, why) = causes(&view, 1);
    assert_eq!(name, "not compliant");
    assert!(why.contains("1 of 2 components missing") || why == "it cannot be used", "{why}");
}

#[test]
fn a_debt_is_told_and_a_copy_on_its_way_makes_the_disk_move() {
    let mut view = cluster(1, 1);
    let disk = view.add_disk(1, "default,force_provisioning=on");
    let (name, why) = causes(&view, 1);
    assert_eq!(name, "not compliant");
    assert!(why.contains("failures_to_tolerate"), "{why}");
    let mut view = cluster(2, 1);
    let single = view.add_disk(2, "single");
    let spare = (1..=2)
        .map(|host| host * 10 + 1)
        .find(|id| single.layout.components().all(|(_, one)| one.device.0 != *id));
    let device = DeviceId(spare.expect("another host has one"));
    let (_, seat) = single.layout.components().next().expect("it has one");
    let component = Component { id: ComponentId(900), device, ..*seat };
    let one = Incoming { place: 0, component, replaces: Some(seat.id), reason: Reason::Evacuation };
    let moving = single.begin_incoming(&[(node(device.0 / 10), one)]).expect("it fits").record;
    view.disks.insert(moving.id, moving);
    assert_eq!(causes(&view, 2), ("moving", "1 component on the way".to_owned()));
    assert_ne!(disk.id, single.id);
}

#[test]
fn a_changed_policy_reaches_its_disks_where_its_rules_change_at_once() {
    let mut view = cluster(3, 1);
    let mut disk = view.add_disk(1, "default");
    disk.follows = Some("gold".to_owned());
    view.disks.insert(disk.id, disk.clone());
    let spaces = view.spaces();
    let check = |rules: &str, expected: &str| {
        let policy = policy(rules);
        let found = following(&disk, &policy, &spaces, &[], &MovesUnderWay::default());
        assert_eq!(found.name(), expected, "{rules}: {found:?}");
        let changed = disk.change_rules(&policy, disk.follows.clone(), &spaces, &[]);
        match &found {
            Following::Waiting(_) => {
                let after = changed.expect("it changes at once").record;
                let owed = after.debts.first().map(|debt| Following::Waiting(Some(debt.to_string())));
                assert_eq!(
                    following(&after, &policy, &spaces, &[], &MovesUnderWay::default()),
                    owed.unwrap_or(Following::Done)
                );
                assert_eq!((after.policy, after.layout.clone()), (policy, disk.layout.clone()));
                assert_eq!(after.space_reservation, policy.space_reservation);
            }
            Following::Refused(cause) => {
                assert_eq!(Some(cause.as_str()), found.cause());
                let refused = changed.expect_err("it is refused");
                assert!(disk.needs_move(&policy) || refused.to_string() == *cause, "{refused}");
            }
            Following::Done | Following::Moving | Following::Queued(_) => {}
        }
        found.cause().unwrap_or_default().to_owned()
    };
    check("default", "done");
    check("default,iops_limit=100,bytes_limit=1MiB/s,read_locality=spread,checksum=off", "waiting");
    check("default,space_reservation=100", "waiting");
    check("default,failures_to_tolerate=2,iops_limit=100", "waiting");
    let cause = check("default,failures_to_tolerate=3", "refused");
    assert!(cause.contains("failures_to_tolerate=3 needs 4 hosts"), "{cause}");
    let cause = check("default,stripes=2,iops_limit=100", "refused");
    assert!(cause.contains("stripes=2 with 2 copies needs 4 different devices"), "{cause}");
    view.policies.insert("gold".to_owned(), policy("default,stripes=2"));
    let (name, why) = causes(&view, 1);
    assert_eq!((name, why.as_str()), ("not compliant", "policy gold asks for stripes=2, the disk has auto"));
}

#[test]
fn a_reservation_changes_only_where_there_is_room() {
    let mut view = cluster(3, 1);
    let disk = view.add_disk(1, "default");
    for host in view.hosts.values_mut() {
        host.devices[0].free_bytes = 1 << 30;
    }
    let spaces = view.spaces();
    let refused = disk.change_rules(&policy("default,space_reservation=100"), None, &spaces, &[]);
    assert!(refused.is_err(), "10 GiB are not free");
    let forced =
        disk.change_rules(&policy("default,space_reservation=100,force_provisioning=on"), None, &spaces, &[]);
    let forced = forced.expect("it is a debt").record;
    assert_eq!(forced.space_reservation, disk.space_reservation);
    assert!(forced.debts.iter().any(|debt| debt.rule == "space_reservation"), "{:?}", forced.debts);
    // New components of the disk reserve what the others do, whyever they come.
    let reserved = view.add_disk(2, "default");
    let mut all = cluster(3, 1);
    all.disks = view.disks.clone();
    let changed = reserved.change_rules(&policy("default,space_reservation=50"), None, &all.spaces(), &[]);
    let changed = changed.expect("room");
    assert!(changed.update.iter().all(|(_, one)| one.reservation * 2 == one.size), "{:?}", changed.update);
}

#[test]
fn a_mirror_that_is_to_tolerate_more_is_not_compliant_then_moves_and_then_is_compliant() {
    let mut view = cluster(3, 1);
    let disk = view.add_disk(1, "default,stripes=1,space_reservation=50");
    let gold = policy("default,stripes=1,space_reservation=50,failures_to_tolerate=2");
    let follow = |view: &View| following(view.disk(1), &gold, &view.spaces(), &[], &MovesUnderWay::default());
    view.policies.insert("gold".to_owned(), gold);
    let changed = disk.change_rules(&gold, Some("gold".to_owned()), &view.spaces(), &[]);
    view.disks.insert(disk.id, changed.expect("there is a third host").record);
    let owed = "failures_to_tolerate is 1, the policy asks for 2";
    assert_eq!(causes(&view, 1), ("not compliant", owed.to_owned()));
    assert_eq!(follow(&view), Following::Waiting(Some(owed.to_owned())));
    // Repairs bring the copy in, as any that a policy asks for.
    let actions = Repairs::default().step(at(1), &view, &mut counting_from(900), 1).actions;
    let [Action { step: step @ Step::Begin(coming), .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((coming.len(), coming[0].incoming.reason), (1, Reason::Policy));
    let begun = step.apply(view.disk(1)).expect("it fits").expect("a record");
    assert!(begun.create.iter().all(|(_, one)| one.reservation * 2 == one.size), "{:?}", begun.create);
    view.disks.insert(disk.id, begun.record);
    assert_eq!(causes(&view, 1), ("moving", format!("1 component on the way; until then {owed}")));
    assert_eq!(follow(&view), Following::Moving);
    let mut roster = view.disk(1).roster.clone();
    roster.members.iter_mut().for_each(|one| one.standing = Standing::Active);
    let there = view.disk(1).with_roster(&roster, 0).expect("it arrives").record;
    view.disks.insert(disk.id, there.finish_incoming(ComponentId(900)).expect("it counts").record);
    assert_eq!(causes(&view, 1), ("compliant", String::new()));
    assert_eq!(follow(&view), Following::Done);
}

/// A disk that moved with its policy was shown as not compliant, since its rules are the former ones until all has moved.
#[test]
fn a_disk_that_moves_with_its_policy_says_how_far_it_is_and_why_it_stands_still() {
    let mut view = cluster(5, 1);
    let mut disk = view.add_disk(1, "default,stripes=1");
    let gold = policy("method=parity,stripes=1");
    disk.follows = Some("gold".to_owned());
    view.disks.insert(disk.id, disk.clone());
    view.policies.insert("gold".to_owned(), gold);
    let moves = MovesUnderWay::default();
    let follow = |view: &View, moves: &_| following(view.disk(1), &gold, &view.spaces(), &[], moves);
    assert_eq!(follow(&view, &moves), Following::Waiting(None));
    let mut full = MovesUnderWay::default();
    (0..4).for_each(|_| full.add(&disk));
    let queued = follow(&view, &full);
    assert_eq!((queued.name(), queued.cause().is_some()), ("waiting", true), "{queued:?}");
    view.begin_move(disk.id, &gold);
    view.advance_move(disk.id, 1 << 30);
    assert_eq!(
        (follow(&view, &full), causes(&view, 1)),
        (Following::Moving, ("moving", "10 % of it moved".to_owned()))
    );
    let status = MoveStatus { still_since: at(0), hindrance: Some(Hindrance::Damaged) };
    view.moves.insert(disk.id, status);
    let (name, why) = causes(&view, 1);
    assert_eq!(
        (name, why.as_str()),
        ("moving", "10 % of it moved, stands still: blocks of it are damaged on all copies")
    );
    let paused = view.disk(1).steer_move(false, true).expect("it moves").record;
    view.disks.insert(disk.id, paused);
    assert_eq!(causes(&view, 1), ("moving", "10 % of it moved, paused".to_owned()));
    // One that moves back has rules of its own: otherwise the policy began the move again at once.
    let back = view.disk(1).steer_move(true, false).expect("it moves").record;
    assert_eq!((&back.follows, back.policy), (&None, disk.policy));
    view.disks.insert(disk.id, back);
    view.advance_move(disk.id, 0);
    let ended = view.disk(1).end_move().expect("all is back").record;
    assert_eq!((&ended.follows, ended.policy, &ended.layout), (&None, disk.policy, &disk.layout));
}

#[test]
fn a_disk_that_waits_for_other_moves_says_so() {
    let mut view = cluster(5, 1);
    let gold = policy("method=parity,stripes=1");
    view.policies.insert("gold".to_owned(), gold);
    for id in 1..=5 {
        let mut disk = view.add_disk(id, "default,stripes=1");
        disk.follows = Some("gold".to_owned());
        view.disks.insert(disk.id, disk);
    }
    (1..=3).for_each(|id| view.begin_move(DiskId(id), &gold));
    let text = |view: &View| causes(view, 5).1;
    assert!(!text(&view).contains("waits for other moves"), "{}", text(&view));
    view.begin_move(DiskId(4), &gold);
    let expected = "it waits for other moves: 4 are under way on the host that owns it, at most 4 at once";
    assert!(text(&view).ends_with(expected), "{}", text(&view));
}
