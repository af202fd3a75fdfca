//! When what is replaced, and that everything is whole in the end.

use super::*;
use crate::device::DeviceState;
use crate::disk::Objection;
use crate::host::{Maintenance, Mode};
use crate::limits::REPLACEMENTS_MAX;
use crate::testing::{at, cluster, counting_from, node};
use base::units::GIB;
use proptest::prelude::*;
use replication::owner::LeftBecause;

const HOUR: u64 = 3600;

/// Decides at a second.
fn decide(repairs: &mut Repairs, view: &View, second: u64) -> Decisions {
    repairs.step(at(second), view, &mut counting_from(10_000 + 100 * second), 1)
}

/// Performs the actions on the view, each by the node that it is for.
fn perform(view: &mut View, decisions: &Decisions) {
    for action in &decisions.actions {
        let disk = view.disks.get_mut(&action.disk).expect("it is there");
        match action.step.apply(disk).expect("nobody else changes it") {
            Some(change) => *disk = change.record,
            None => {
                disk.roster.owner = Some(replication::OwnedBy { node: action.actor, incarnation: 1 });
                disk.roster.epoch += 1;
            }
        }
    }
}

/// Owners fill what comes and can be filled.
fn fill(view: &mut View) {
    let before = view.clone();
    for disk in view.disks.values_mut() {
        for member in &mut disk.roster.members {
            let (place, component) = before.disks[&disk.id].component(member.component).expect("it is there");
            let has_source = !before.sound(&before.disks[&disk.id], place).is_empty();
            if before.ground(component.device) == Ground::Here && has_source {
                member.standing = Standing::Active;
            }
        }
    }
}

/// The reasons why components begin to come.
fn begun(decisions: &Decisions) -> Vec<Why> {
    let of = |action: &Action| match &action.step {
        Step::Begin(coming) => coming.iter().map(|one| one.why).collect(),
        Step::Claim | Step::Finish(_) | Step::GiveUp(_) | Step::Cancel(..) => Vec::new(),
        Step::StandIn(_) | Step::Inherit(_) | Step::Dismiss(..) => Vec::new(),
    };
    decisions.actions.iter().flat_map(of).collect()
}

fn failed() -> DeviceState {
    DeviceState::Failed { since: at(0), error: "write failed".to_owned() }
}

/// A disk whose copies are on the hosts 1 and another, which is told.
fn one_disk(hosts: u128) -> (View, u128) {
    let mut view = cluster(hosts, 1);
    view.add_disk(1, "default,stripes=1");
    let others: Vec<u128> = view.disk(1).roster.members.iter().map(|one| one.node.host.0).collect();
    let owner = replication::OwnedBy { node: node(others[0]), incarnation: 1 };
    view.disks.get_mut(&DiskId(1)).unwrap().roster.owner = Some(owner);
    (view, others[1])
}

/// Sixteen hosts with a device each, of which that of host 2 is much emptier than the others, and forty disks with a copy on
/// host 1, which is away. Another host of each disk owns it.
fn many_disks() -> View {
    let mut view = cluster(16, 1);
    for id in 1..=40 {
        for host in 2..=16 {
            let is_open = host == 3 + id % 14;
            view.host_mut(host).devices[0].state =
                if is_open { DeviceState::InService } else { DeviceState::Away { since: at(0) } };
        }
        let disk = view.add_disk(id, "default,stripes=1");
        let other =
            disk.roster.members.iter().find(|one| one.node != node(1)).expect("it has two copies").node;
        let owner = Some(replication::OwnedBy { node: other, incarnation: 1 });
        view.disks.get_mut(&DiskId(id)).expect("it is there").roster.owner = owner;
    }
    for host in 2..=16 {
        view.host_mut(host).devices[0].state = DeviceState::InService;
        view.host_mut(host).devices[0].free_bytes = if host == 2 { 100 * GIB } else { 50 * GIB };
    }
    view
}

/// What a decision begins: disks, and the hosts where their components come to.
fn coming(decisions: &Decisions) -> Vec<(DiskId, HostId)> {
    let of = |action: &Action| match &action.step {
        Step::Begin(coming) => coming.iter().map(|one| (action.disk, one.node.host)).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    decisions.actions.iter().flat_map(of).collect()
}

/// A cluster of sixteen hosts came to a stop: the emptiest device was the choice for all, its host took four, and as each host
/// had noted the loss at a moment of its own, each had four other disks in front, of which it owned none.
#[test]
fn hosts_that_noted_a_loss_at_different_moments_begin_with_the_same() {
    let mut view = many_disks();
    let (mut early, mut late) = (Repairs::default(), Repairs::default());
    view.lose_host(1, 100);
    decide(&mut early, &view, 100);
    // The other one hears of the records later, of the last disks first.
    let all = view.clone();
    view.disks.retain(|id, _| id.0 > 20);
    view.liveness.insert(HostId(1), crate::Liveness::Alive);
    decide(&mut late, &view, 101);
    decide(&mut late, &all, 103);
    let (early, late) = (decide(&mut early, &all, 104 + HOUR), decide(&mut late, &all, 104 + HOUR));
    let disks =
        |decisions: &Decisions| coming(decisions).into_iter().map(|(disk, _)| disk).collect::<Vec<_>>();
    assert_eq!(disks(&early), disks(&late));
    assert_eq!(disks(&early), (1..=16).map(DiskId).collect::<Vec<_>>());
}

#[test]
fn what_comes_is_spread_over_hosts_that_may_fill_more() {
    let mut view = many_disks();
    let mut repairs = Repairs::default();
    view.lose_host(1, 100);
    decide(&mut repairs, &view, 100);
    let begun = coming(&decide(&mut repairs, &view, 100 + HOUR));
    assert_eq!(begun.len(), crate::limits::REPLACEMENTS_MAX, "{begun:?}");
    for host in 2..=16 {
        let count = begun.iter().filter(|(_, one)| *one == HostId(host)).count();
        assert!(count <= crate::limits::REPLACEMENTS_PER_HOST_MAX, "{count} come to host {host}");
    }
}

#[test]
fn where_every_host_fills_all_that_it_may_the_rest_waits_and_is_not_refused() {
    let mut view = many_disks();
    for host in 4..=16 {
        view.host_mut(host).devices[0].state = DeviceState::Away { since: at(HOUR) };
    }
    let mut repairs = Repairs::default();
    view.lose_host(1, 100);
    decide(&mut repairs, &view, 100);
    let begun = coming(&decide(&mut repairs, &view, 100 + HOUR));
    assert!(!begun.is_empty() && begun.len() <= 8, "two hosts take four each: {begun:?}");
    assert!(repairs.refused().is_empty(), "{:?}", repairs.refused());
}

#[test]
fn what_its_actor_does_not_begin_keeps_nobody_else_waiting() {
    let mut view = many_disks();
    let mut repairs = Repairs::default();
    view.lose_host(1, 100);
    decide(&mut repairs, &view, 100);
    let first = coming(&decide(&mut repairs, &view, 100 + HOUR));
    assert_eq!(coming(&decide(&mut repairs, &view, 109 + HOUR)).len(), first.len(), "it may yet be recorded");
    let later = coming(&decide(&mut repairs, &view, 110 + HOUR));
    assert_eq!(later.len(), 2 * first.len(), "those that are not begun do not count any more");
    assert_eq!(
        later[..first.len()].iter().map(|one| one.0).collect::<Vec<_>>(),
        first.iter().map(|one| one.0).collect::<Vec<_>>()
    );
}

/// All that stood in for what was given up was filled at once: more than a thousand copies in a large cluster.
#[test]
fn no_more_heirs_are_filled_at_once_than_other_components() {
    let mut view = many_disks();
    let (mut repairs, mut stand_ins) = (Repairs::default(), crate::StandIns::default());
    view.lose_host(1, 100);
    for second in [100, 103, 104] {
        let decisions = decide(&mut repairs, &view, second);
        perform(&mut view, &decisions);
        let mut ids = counting_from(90_000 + 100 * second);
        let begun = stand_ins.step(at(second), &view, &repairs, true, &mut ids, 1);
        perform(&mut view, &begun);
    }
    for disk in view.disks.values_mut() {
        assert_eq!(disk.stand_ins.len(), 1);
        let mut members = disk.roster.members.iter_mut();
        members.find(|one| one.role != Role::Copy).expect("it stands in").standing = Standing::StandIn;
    }
    let mut rounds = 0;
    while view.disks.values().any(|disk| !disk.is_whole()) {
        let decisions = decide(&mut repairs, &view, 104 + HOUR + rounds);
        perform(&mut view, &decisions);
        let (count, of_host) = view.coming();
        assert!(count <= crate::limits::REPLACEMENTS_MAX, "{count} at once");
        assert!(
            of_host.values().all(|count| *count <= crate::limits::REPLACEMENTS_PER_HOST_MAX),
            "{of_host:?}"
        );
        for member in view.disks.values_mut().flat_map(|disk| disk.roster.members.iter_mut()) {
            if matches!(member.role, Role::Heir { .. }) {
                member.standing = Standing::Active;
            }
        }
        rounds += 1;
        assert!(rounds < 100, "all are inherited in the end");
    }
    assert!(
        view.disks.values().all(|disk| disk.layout.components().all(|(_, one)| view.is_sound(disk, one.id)))
    );
}

#[test]
fn a_missing_component_is_replaced_after_the_delay() {
    let (mut view, host) = one_disk(3);
    let mut repairs = Repairs::default();
    assert_eq!(decide(&mut repairs, &view, 0), Decisions::default());
    view.lose_host(host, 100);
    let waiting = Decisions { wait_until: Some(at(100 + HOUR)), ..Decisions::default() };
    assert_eq!(decide(&mut repairs, &view, 130), waiting);
    assert_eq!(decide(&mut repairs, &view, 99 + HOUR), waiting);
    let decisions = decide(&mut repairs, &view, 100 + HOUR);
    assert_eq!(begun(&decisions), [Why::Absent { since: at(100) }]);
    perform(&mut view, &decisions);
    fill(&mut view);
    let decisions = decide(&mut repairs, &view, 101 + HOUR);
    perform(&mut view, &decisions);
    assert!(view.disk(1).is_whole());
    assert_eq!(decide(&mut repairs, &view, 102 + HOUR), Decisions::default());
}

#[test]
fn what_comes_back_in_time_is_not_replaced() {
    let (mut view, host) = one_disk(3);
    let mut repairs = Repairs::default();
    let there = view.clone();
    view.lose_host(host, 0);
    decide(&mut repairs, &view, 30);
    view.liveness = there.liveness.clone();
    assert_eq!(begun(&decide(&mut repairs, &view, 60)), []);
    fill(&mut view);
    assert_eq!(decide(&mut repairs, &view, 2 * HOUR), Decisions::default());
}

#[test]
fn a_failed_device_and_lost_data_do_not_wait() {
    let (mut view, host) = one_disk(3);
    view.set_device(host * 10 + 1, failed());
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), [Why::DeviceFailed]);

    let (mut view, host) = one_disk(3);
    view.stand(view.component_on(1, host), Standing::Stale);
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), [Why::Stale]);

    let (mut view, host) = one_disk(3);
    view.set_device(host * 10 + 1, DeviceState::Away { since: at(0) });
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), []);
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, HOUR)), [Why::Absent { since: at(0) }]);
}

#[test]
fn a_host_in_maintenance_has_the_delay_too_and_full_evacuation_does_not_wait() {
    let (mut view, host) = one_disk(3);
    let since = at(0);
    view.host_mut(host).maintenance = Maintenance::Entering { mode: Mode::EnsureAccessibility, since };
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), []);
    view.lose_host(host, 10);
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 20)), []);
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 10 + HOUR)).len(), 1);

    let (mut view, host) = one_disk(3);
    view.host_mut(host).maintenance = Maintenance::Entering { mode: Mode::FullEvacuation, since };
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!(begun(&decisions), [Why::Evacuation]);
    perform(&mut view, &decisions);
    view.host_mut(host).maintenance = Maintenance::Off;
    let decisions = decide(&mut repairs, &view, 2);
    assert!(matches!(decisions.actions[0].step, Step::Cancel(_, Because::Returned)), "{decisions:?}");
}

#[test]
fn a_device_that_is_to_be_emptied_serves_until_all_has_left_and_gets_nothing_new() {
    let (mut view, host) = one_disk(3);
    let (device, component) = (base::DeviceId(host * 10 + 1), view.component_on(1, host));
    let leaving = Some(crate::Leaving { since: at(0), fault: Some("it is slow".to_owned()) });
    view.host_mut(host).devices[0].leaving.clone_from(&leaving);
    assert!(view.spaces().iter().all(|space| space.in_service == (space.id != device)));
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!(begun(&decisions), [Why::Evacuation]);
    perform(&mut view, &decisions);
    assert!(view.is_sound(view.disk(1), component), "it counts until another has all");
    assert!(!crate::emptying(&view, device).is_done());
    fill(&mut view);
    let decisions = decide(&mut repairs, &view, 2);
    perform(&mut view, &decisions);
    assert!(view.disk(1).component(component).is_none());
    assert!(crate::emptying(&view, device).is_done());
    assert_eq!(decide(&mut repairs, &view, 3).actions, []);
}

#[test]
fn what_comes_to_a_device_that_is_to_be_emptied_is_called_off() {
    let (mut view, host) = one_disk(4);
    view.host_mut(host).maintenance = Maintenance::Entering { mode: Mode::FullEvacuation, since: at(0) };
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    perform(&mut view, &decisions);
    let new = view.disk(1).incoming[0].component;
    view.host_mut(new.device.0 / 10).devices[0].leaving = Some(crate::Leaving { since: at(2), fault: None });
    let decisions = decide(&mut repairs, &view, 2);
    assert_eq!(decisions.actions[0].step, Step::Cancel(new.id, Because::Leaving));
}

#[test]
fn ensure_accessibility_moves_the_only_copy() {
    let mut view = cluster(2, 1);
    view.add_disk(1, "single,stripes=1");
    let host = view.disk(1).roster.members[0].node.host.0;
    view.host_mut(host).maintenance = Maintenance::Entering { mode: Mode::EnsureAccessibility, since: at(0) };
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), [Why::Evacuation]);
}

/// A disk of which a component failed, and the one that is on its way in its place since second 1; and the host of the one that failed.
fn being_replaced() -> (View, Repairs, Component, u128) {
    let (mut view, host) = one_disk(3);
    let mut repairs = Repairs::default();
    view.set_device(host * 10 + 1, failed());
    let decisions = decide(&mut repairs, &view, 1);
    perform(&mut view, &decisions);
    let new = view.disk(1).incoming[0].component;
    (view, repairs, new, host)
}

#[test]
fn a_replacement_is_called_off_when_it_is_lost_or_what_it_replaces_is_back() {
    let (mut view, mut repairs, new, host) = being_replaced();
    let begun_view = view.clone();
    view.set_device(new.device.0, failed());
    let decisions = decide(&mut repairs, &view, 2);
    assert_eq!(decisions.actions[0].step, Step::Cancel(new.id, Because::Lost));
    perform(&mut view, &decisions);
    assert!(view.disk(1).incoming.is_empty());

    let mut view = begun_view;
    view.set_device(host * 10 + 1, DeviceState::InService);
    let decisions = decide(&mut repairs, &view, 2);
    assert_eq!(decisions.actions[0].step, Step::Cancel(new.id, Because::Returned));
}

#[test]
fn with_no_replacements_what_is_on_its_way_is_called_off_and_nothing_begins() {
    let (mut view, mut repairs, new, _) = being_replaced();
    repairs.set(Settings { replacements_max: 0, ..Settings::default() });
    let decisions = decide(&mut repairs, &view, 2);
    let steps: Vec<&Step> = decisions.actions.iter().map(|one| &one.step).collect();
    assert_eq!(steps, [&Step::Cancel(new.id, Because::Unwanted)]);
    perform(&mut view, &decisions);
    assert_eq!(decide(&mut repairs, &view, 3).actions, []);
    repairs.set(Settings::default());
    assert_eq!(begun(&decide(&mut repairs, &view, 4)), [Why::DeviceFailed]);
}

#[test]
fn with_no_replacements_what_is_active_takes_its_seat_all_the_same() {
    let (mut view, mut repairs, new, _) = being_replaced();
    fill(&mut view);
    repairs.set(Settings { replacements_max: 0, ..Settings::default() });
    assert_eq!(decide(&mut repairs, &view, 2).actions[0].step, Step::Finish(new.id));
}

#[test]
fn of_two_current_copies_that_are_both_away_neither_is_given_up() {
    let (mut view, host) = one_disk(3);
    let mut repairs = Repairs::default();
    view.host_mut(host).maintenance = Maintenance::Entering { mode: Mode::FullEvacuation, since: at(0) };
    let decisions = decide(&mut repairs, &view, 1);
    perform(&mut view, &decisions);
    fill(&mut view);
    let new = view.disk(1).incoming[0].component;
    for host in [host, new.device.0 / 10] {
        let why = crate::Absence::Unexpected;
        view.liveness.insert(HostId(host), crate::Liveness::Away { since: at(2), why });
    }
    assert_eq!(decide(&mut repairs, &view, 2 * HOUR).actions, []);
    view.liveness.insert(HostId(host), crate::Liveness::Alive);
    let decisions = decide(&mut repairs, &view, 2 * HOUR + 1);
    assert_eq!(decisions.actions[0].step, Step::Cancel(new.id, Because::Lost));
}

#[test]
fn a_refusal_is_kept_with_its_reason_until_there_is_a_place_and_a_device_that_comes_ends_the_wait() {
    let (mut view, host) = one_disk(2);
    let lost = view.component_on(1, host);
    view.set_device(host * 10 + 1, failed());
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!((begun(&decisions), decisions.wait_until.is_some()), (vec![], true));
    let refused = &repairs.refused()[&(DiskId(1), Slot::Component(lost))];
    assert!(matches!(refused.cause, Cause::Domains { .. }), "{refused:?}");
    let retry_at = refused.retry_at;
    assert_eq!(begun(&decide(&mut repairs, &view, 2)), []);
    let refused = &repairs.refused()[&(DiskId(1), Slot::Component(lost))];
    assert_eq!(refused.retry_at, retry_at, "it is not tried all the time");
    let third = cluster(3, 1).hosts.remove(&HostId(3)).expect("there are three");
    view.hosts.insert(HostId(3), third);
    view.liveness.insert(HostId(3), crate::Liveness::Alive);
    assert_eq!(begun(&decide(&mut repairs, &view, 3)), [Why::DeviceFailed]);
    assert!(repairs.refused().is_empty());
}

#[test]
fn no_more_than_so_many_come_at_once() {
    let mut view = cluster(4, 1);
    (1..=12).for_each(|id| drop(view.add_disk(id, "default,stripes=1")));
    view.set_device(11, failed());
    let settings = Settings { replacements_max: 5, replacements_per_host_max: 2, ..Settings::default() };
    let mut repairs = Repairs::new(settings);
    let decisions = decide(&mut repairs, &view, 1);
    perform(&mut view, &decisions);
    let (coming, of_host) = view.coming();
    assert!((2..=5).contains(&coming), "{coming}");
    assert!(of_host.values().all(|count| *count <= 2), "{of_host:?}");
}

#[test]
fn a_disk_whose_owner_is_gone_is_claimed_first() {
    let (mut view, host) = one_disk(3);
    view.disks.get_mut(&DiskId(1)).unwrap().roster.owner = None;
    assert_eq!(decide(&mut Repairs::default(), &view, 1).actions, [], "it is whole");
    view.set_device(host * 10 + 1, failed());
    let decisions = decide(&mut Repairs::default(), &view, 1);
    assert_eq!(decisions.actions.len(), 1);
    let action = &decisions.actions[0];
    assert!(action.step == Step::Claim && action.actor.host != HostId(host), "{action:?}");
}

#[test]
fn nothing_begins_without_a_source_and_a_single_copy_waits() {
    let mut view = cluster(3, 1);
    view.add_disk(1, "single,stripes=1");
    let host = view.disk(1).roster.members[0].node.host.0;
    view.set_device(host * 10 + 1, failed());
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 2 * HOUR)), []);
}

#[test]
fn a_debt_is_paid_when_there_is_a_host_for_it() {
    let mut view = cluster(1, 1);
    view.add_disk(1, "default,stripes=1,force_provisioning=on");
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), []);
    let second = cluster(2, 1).hosts.remove(&HostId(2)).expect("there are two");
    view.hosts.insert(HostId(2), second);
    view.liveness.insert(HostId(2), crate::Liveness::Alive);
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!(begun(&decisions), [Why::Debt]);
    perform(&mut view, &decisions);
    fill(&mut view);
    let decisions = decide(&mut repairs, &view, 2);
    perform(&mut view, &decisions);
    assert_eq!((view.disk(1).debts.len(), view.disk(1).layout.component_count()), (0, 2));
}

/// A host was taken out while no other had room. Its machine joined again as another host with the device that it had; the
/// record still named the copy on that device, which therefore took no other, and the disk stayed without redundancy for ever.
#[test]
fn a_device_that_comes_back_with_another_host_takes_a_copy_again() {
    let (mut view, other) = one_disk(2);
    view.stand(view.component_on(1, other), Standing::Stale);
    let mut out = view.hosts.remove(&HostId(other)).expect("it is there");
    view.liveness.remove(&HostId(other));
    let mut repairs = Repairs::default();
    let lost = view.disk(1).roster.members.iter().find(|one| one.node == node(other)).expect("it is named");
    let lost = lost.component;
    assert_eq!(decide(&mut repairs, &view, 0).actions, [], "there is no place for another");
    let decisions = decide(&mut repairs, &view, 1);
    assert!(
        matches!(decisions.actions[..], [Action { step: Step::GiveUp(id), .. }] if id == lost),
        "{decisions:?}"
    );
    perform(&mut view, &decisions);
    assert_eq!((view.disk(1).layout.component_count(), view.disk(1).debts.len()), (1, 1));
    assert_eq!(decide(&mut repairs, &view, 2).actions, [], "there is no place for another");
    (out.id, out.name) = (HostId(9), "h9".to_owned());
    out.nodes[0].id = node(9);
    out.devices.iter_mut().for_each(|device| device.node = node(9));
    view.liveness.insert(HostId(9), crate::Liveness::Alive);
    view.hosts.insert(HostId(9), out);
    let decisions = decide(&mut repairs, &view, 3);
    assert_eq!(begun(&decisions), [Why::Debt]);
    perform(&mut view, &decisions);
    // What stands there of the former copy is named by nobody, and goes.
    let listed =
        BTreeMap::from([(lost, crate::Listed { disk: DiskId(1), promised: 1, snapshots: Vec::new() })]);
    assert_eq!(crate::orphans(&view.disks, node(9), &listed).to_delete, BTreeSet::from([lost]));
    fill(&mut view);
    let decisions = decide(&mut repairs, &view, 4);
    perform(&mut view, &decisions);
    let disk = view.disk(1);
    assert_eq!((disk.layout.component_count(), disk.debts.len(), disk.incoming.len()), (2, 0, 0));
    assert_eq!(decide(&mut repairs, &view, 5).actions, []);
}

/// Whoever asks: a copy that counts, or may still be brought up to date, is never given up, nor is the last that counts.
#[test]
fn only_what_is_lost_is_given_up() {
    let (mut view, other) = one_disk(2);
    let (copy, rest) = {
        let members = &view.disk(1).roster.members;
        let of = |is_other: bool| members.iter().find(|one| (one.node == node(other)) == is_other);
        (of(true).expect("it is named").component, of(false).expect("it is named").component)
    };
    for (standing, refused) in [
        (Standing::Active, Some(Objection::StillCounts(copy))),
        (Standing::Absent, Some(Objection::StillCounts(copy))),
        (Standing::Stale, None),
    ] {
        view.stand(copy, standing);
        assert_eq!(view.disk(1).give_up(copy).err(), refused, "{standing:?}");
    }
    view.stand(rest, Standing::Absent);
    assert_eq!(view.disk(1).give_up(copy).err(), Some(Objection::LastCopy(copy)));
}

/// The copy on a full device was tried again for ever, and neither repairs nor balancing moved it to where there was room.
#[test]
fn a_copy_whose_device_is_full_is_made_where_there_is_room() {
    let (mut view, other) = one_disk(3);
    let id = view.component_on(1, other);
    view.stand(id, Standing::Absent);
    view.host_mut(other).devices[0].free_bytes = 0;
    let tell = |view: &mut View, is_filled: bool| {
        let filled = [(id, 1, 10)];
        let mut owner = crate::testing::owner_state(view.disk(1), if is_filled { &filled } else { &[] });
        let report = owner.members.iter_mut().find(|one| one.component == id).expect("it is a member");
        report.trouble = Some(LeftBecause::Refused(wire::Refusal::NoSpace));
        view.owners.insert(DiskId(1), owner);
    };
    tell(&mut view, true);
    assert_eq!(begun(&decide(&mut Repairs::default(), &view, 1)), [], "it is being filled: it has room");
    tell(&mut view, false);
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!(begun(&decisions), [Why::NoRoom]);
    perform(&mut view, &decisions);
    let third = 6 - other - view.disk(1).roster.members[0].node.host.0;
    assert_eq!(view.disk(1).incoming[0].component.device, DeviceId(third * 10 + 1));
    // What is back first stays.
    view.stand(id, Standing::Active);
    let called_off = decide(&mut repairs, &view, 2).actions;
    assert!(
        matches!(called_off[..], [Action { step: Step::Cancel(_, Because::Returned), .. }]),
        "{called_off:?}"
    );
}

/// Hosts were given other fault domains. Both copies of a disk stood in one then, and stayed there, though other domains had
/// room.
#[test]
fn a_copy_moves_out_of_the_fault_domain_of_another() {
    let (mut view, other) = one_disk(4);
    let first = view.disk(1).roster.members[0].node.host.0;
    let mut repairs = Repairs::default();
    assert_eq!(decide(&mut repairs, &view, 1).actions, []);
    for host in 1..=4 {
        let domain = if host == first || host == other { "r1" } else { "r2" };
        view.host_mut(host).fault_domain = Some(domain.to_owned());
    }
    let decisions = decide(&mut repairs, &view, 2);
    assert_eq!(begun(&decisions), [Why::Domain]);
    perform(&mut view, &decisions);
    assert_eq!(view.disk(1).layout.component_count(), 2, "no copy goes before the new one has all");
    let motives = |view: &View| -> Vec<crate::Motive> {
        crate::resyncs(view, view.disk(1), &Repairs::default(), at(2)).iter().map(|one| one.motive).collect()
    };
    assert_eq!(motives(&view), [crate::Motive::Domain]);
    assert_eq!(decide(&mut repairs, &view, 3).actions, []);
    // Domains that are put right call the move off.
    let mut corrected = view.clone();
    corrected.host_mut(other).fault_domain = Some("r2".to_owned());
    let called_off = decide(&mut Repairs::default(), &corrected, 3).actions;
    assert!(
        matches!(called_off[..], [Action { step: Step::Cancel(_, Because::Returned), .. }]),
        "{called_off:?}"
    );
    fill(&mut view);
    let decisions = decide(&mut repairs, &view, 4);
    perform(&mut view, &decisions);
    assert_eq!(crate::shared_domains(&view, view.disk(1)), []);
    assert_eq!(decide(&mut repairs, &view, 5).actions, []);
}

#[test]
fn copies_that_share_a_fault_domain_stay_where_no_other_has_room() {
    let (mut view, _) = one_disk(4);
    (1..=4).for_each(|host| view.host_mut(host).fault_domain = Some("r1".to_owned()));
    let mut repairs = Repairs::default();
    let decisions = decide(&mut repairs, &view, 1);
    assert_eq!(decisions.actions, []);
    assert_eq!(repairs.refused().len(), 1);
    assert_eq!(decisions.wait_until, Some(at(1) + REFUSED_RETRY));
    // What waits for another domain does not hold up what was lost, nor a copy that the policy asks for.
    let three =
        placement::Policy { failures_to_tolerate: 2, force_provisioning: true, ..view.disk(1).policy };
    view.disks.get_mut(&DiskId(1)).expect("it is there").policy = three;
    let spare =
        view.hosts.keys().find(|id| view.disk(1).roster.members.iter().all(|one| one.node.host != **id));
    let spare = spare.expect("there are four").0;
    view.host_mut(spare).fault_domain = Some("r2".to_owned());
    view.host_mut(spare).devices[0].free_bytes = 0;
    assert_eq!(decide(&mut repairs, &view, 100).actions, []);
    view.host_mut(spare).devices[0].free_bytes = 50 * GIB;
    let begins = begun(&decide(&mut repairs, &view, 200));
    assert!(begins == [Why::Debt] || begins == [Why::Domain], "{begins:?}");
}

/// A fault, by a number to choose by.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Device(usize),
    Host(u128),
    Back(u128),
    Service(u128, bool),
    Slow(usize),
}

fn faults() -> impl Strategy<Value = Fault> {
    prop_oneof![
        any::<usize>().prop_map(Fault::Device),
        (1u128..7).prop_map(Fault::Host),
        (1u128..7).prop_map(Fault::Back),
        (1u128..7, any::<bool>()).prop_map(|(host, full)| Fault::Service(host, full)),
        any::<usize>().prop_map(Fault::Slow),
    ]
}

fn strike(view: &mut View, fault: Fault, second: u64) {
    match fault {
        Fault::Device(which) => {
            let devices: Vec<u128> =
                view.hosts.values().flat_map(|host| &host.devices).map(|device| device.id.0).collect();
            view.set_device(devices[which % devices.len()], failed());
        }
        Fault::Host(host) => {
            let why = crate::Absence::Unexpected;
            view.liveness.insert(HostId(host), crate::Liveness::Away { since: at(second), why });
        }
        Fault::Back(host) => drop(view.liveness.insert(HostId(host), crate::Liveness::Alive)),
        Fault::Slow(which) => {
            let mut devices: Vec<_> = view.hosts.values_mut().flat_map(|host| &mut host.devices).collect();
            let index = which % devices.len();
            devices[index].leaving = Some(crate::Leaving { since: at(second), fault: None });
        }
        Fault::Service(host, full) => {
            let mode = if full { Mode::FullEvacuation } else { Mode::EnsureAccessibility };
            let since = at(second);
            view.host_mut(host).maintenance = Maintenance::Entering { mode, since };
        }
    }
    // Owners take out what does not answer, as long as something is left.
    let seen = view.clone();
    for disk in view.disks.values_mut() {
        for index in 0..disk.roster.members.len() {
            let member = disk.roster.members[index].clone();
            let place = usize::from(member.place);
            let is_left = seen.sound(&seen.disks[&disk.id], place).iter().any(|id| *id != member.component);
            if is_left && !seen.is_sound(&seen.disks[&disk.id], member.component) {
                disk.roster.members[index].standing = Standing::Absent;
            }
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_nothing_sound_is_thrown_away_and_the_rest_is_made_whole(
        faults in prop::collection::vec((faults(), 1u64..5000), 0..8),
    ) {
        let mut view = cluster(6, 2);
        let rules = ["default", "default,stripes=2", "default,failures_to_tolerate=2", "single", "default"];
        for (id, rules) in (1u128..).zip(rules) {
            view.add_disk(id, rules);
        }
        let mut repairs = Repairs::default();
        let mut second = 0;
        let rest = (0..40).map(|_| (None, 2000));
        for (fault, wait) in faults.into_iter().map(|(fault, wait)| (Some(fault), wait)).chain(rest) {
            if let Some(fault) = fault {
                strike(&mut view, fault, second);
            }
            second += wait;
            let decisions = decide(&mut repairs, &view, second);
            let before = view.clone();
            perform(&mut view, &decisions);
            for disk in before.disks.values() {
                prop_assert_eq!(view.disks[&disk.id].check(), Ok(()));
                for place in 0..disk.layout.place_count() {
                    let was = before.sound(disk, place).len();
                    let is = view.sound(&view.disks[&disk.id], place).len();
                    prop_assert!(is > 0 || was == 0);
                }
            }
            let (coming, _) = view.coming();
            prop_assert!(coming <= REPLACEMENTS_MAX);
            fill(&mut view);
        }
        let steady = decide(&mut repairs, &view, second + 1);
        prop_assert_eq!(steady.actions, vec![], "it comes to rest");
        let spaces = view.spaces();
        for disk in view.disks.values() {
            // What lost its last source, or its owner for want of one, stays as it is.
            let is_cut = (0..disk.layout.place_count()).any(|place| view.sound(disk, place).is_empty());
            prop_assert!(disk.incoming.is_empty() || is_cut);
            for (place, copies) in disk.layout.places() {
                let sound = view.sound(disk, place);
                let is_refused = |id| repairs.refused().contains_key(&(disk.id, Slot::Component(id)));
                let is_done = |copy: &Component| sound.contains(&copy.id) || is_cut || is_refused(copy.id);
                prop_assert!(copies.iter().all(is_done), "{:?} {:?}", disk, spaces);
            }
        }
        prop_assert!(spaces.iter().all(|device| device.capacity_bytes == 100 * GIB));
    }
}
