//! Forecasts of small clusters, against what the same decisions then do.

use super::*;
use crate::testing::{at, cluster, policy};
use base::units::GIB;
use base::{DeviceId, HostId};
use std::collections::BTreeSet;

fn ask(view: &View, question: &Question) -> Forecast {
    let before = format!("{view:?}");
    let found = what_if(view, question, Evens::Uneven, at(10), 1);
    assert_eq!(format!("{view:?}"), before, "asking changes nothing");
    assert_eq!(found, what_if(view, question, Evens::Uneven, at(10), 1), "the same again");
    found
}

fn lose(view: &View, hosts: &[u128]) -> Forecast {
    ask(view, &Question::LoseHosts(hosts.iter().map(|host| HostId(*host)).collect()))
}

/// A cluster in which devices tell of the data that stands on them.
fn filled(hosts: u128, disks: &[(u128, &str, u64)]) -> View {
    let mut view = cluster(hosts, 1);
    for (id, rules, gib) in disks {
        let record = view.add_disk(*id, rules);
        let places = record.layout.place_count();
        view.used_bytes.insert(record.id, vec![gib * GIB; places]);
        for (_, one) in record.layout.components() {
            let mut devices = view.hosts.values_mut().flat_map(|host| &mut host.devices);
            let device = devices.find(|device| device.id == one.device).expect("it is there");
            device.free_bytes -= gib * GIB;
            device.component_count += 1;
        }
    }
    view
}

fn holders(view: &View, disk: u128) -> Vec<u128> {
    view.disk(disk).roster.members.iter().map(|one| one.node.host.0).collect()
}

/// Both copies stood in one fault domain since that had been changed, and the loss of either host was said to cost nothing.
#[test]
fn copies_in_one_fault_domain_are_told_to_be_lost_together() {
    let mut view = filled(3, &[(1, "default,stripes=1", 10)]);
    let hosts = holders(&view, 1);
    hosts.iter().for_each(|host| view.host_mut(*host).fault_domain = Some("r1".to_owned()));
    let one = lose(&view, &hosts[..1]);
    let warning = "h2 is in fault domain r1, too: if that host is lost with it, 1 disk cannot be used: disk1";
    let warning = warning.replace("h2", &format!("h{}", hosts[1]));
    assert!(one.verdict.contains(&warning), "{}", one.verdict);
    assert!(!lose(&view, &hosts).verdict.contains("fault domain"), "all of it is lost already");
    assert_eq!(lose(&view, &hosts).disks[0].at_once, Condition::Inaccessible);
    let ids: BTreeSet<HostId> = hosts.iter().map(|host| HostId(*host)).collect();
    assert_eq!(hosts_of_domain(&view, "r1"), ids);
    let third = 6 - hosts.iter().sum::<u128>();
    assert_eq!(hosts_of_domain(&view, &format!("h{third}")), BTreeSet::from([HostId(third)]));
    assert_eq!(hosts_of_domain(&view, "r9"), BTreeSet::new());
}

#[test]
fn a_lost_host_is_made_up_for_where_there_is_room() {
    let view = filled(3, &[(1, "default,stripes=1", 40), (2, "single,stripes=1", 5)]);
    let (mirrored, single) = (holders(&view, 1), holders(&view, 2)[0]);
    for host in 1..=3 {
        let found = lose(&view, &[host]);
        let of = |id: u128| found.disks.iter().find(|one| one.disk == DiskId(id));
        match mirrored.contains(&host) {
            true => {
                let one = of(1).expect("it loses a copy");
                assert_eq!(
                    (one.at_once, one.then, one.bytes),
                    (Condition::Reduced, Condition::Whole, 40 * GIB)
                );
                let third = 6 - mirrored.iter().sum::<u128>();
                assert_eq!(one.targets, BTreeMap::from([(DeviceId(third * 10 + 1), 40 * GIB)]));
                let after = found.after.iter().find(|one| one.host == HostId(third)).expect("it is there");
                let before = found.before.iter().find(|one| one.host == HostId(third)).expect("it was");
                assert_eq!(after.used_bytes, before.used_bytes + 40 * GIB);
                assert_eq!(after.free_bytes, after.largest_bytes);
            }
            false => assert_eq!(of(1), None),
        }
        assert_eq!(of(2).map(|one| one.then), (host == single).then_some(Condition::Inaccessible));
        assert!(found.after.iter().all(|one| one.host != HostId(host)), "its room is gone");
        let words = match host == single {
            true => "1 disk of 2 cannot be used: disk2",
            false => "all disks that can be used now still can (2 in all)",
        };
        assert!(found.verdict.contains(words), "{}", found.verdict);
    }
}

#[test]
fn what_has_no_place_stays_reduced_and_says_why() {
    let view = filled(2, &[(1, "default,stripes=1", 10)]);
    let found = lose(&view, &[2]);
    assert_eq!((found.disks[0].then, found.bytes_to_copy), (Condition::Reduced, 0));
    assert!(
        found.verdict.contains("1 disk stays with fewer copies, disk1: failures_to_tolerate=1 needs 2 hosts"),
        "{}",
        found.verdict
    );

    let mut view = filled(3, &[(1, "default,stripes=1", 40)]);
    let third = 6 - holders(&view, 1).iter().sum::<u128>();
    view.host_mut(third).devices[0].free_bytes = 20 * GIB;
    let found = lose(&view, &[holders(&view, 1)[0]]);
    assert_eq!(found.disks[0].then, Condition::Reduced, "{found:?}");
    assert_eq!(found.disks[0].lacks.len(), 1, "{found:?}");
}

#[test]
fn several_hosts_at_once_are_worse_than_one_after_the_other() {
    let view = filled(4, &[(1, "default,stripes=1", 10)]);
    let held = holders(&view, 1);
    let both = lose(&view, &held);
    assert_eq!(both.disks[0].then, Condition::Inaccessible);
    assert!(both.verdict.starts_with("without h"), "{}", both.verdict);
    let other = (1..=4).find(|host| !held.contains(host)).expect("there are four");
    let one = lose(&view, &[held[0], other]);
    assert_eq!((one.disks[0].at_once, one.disks[0].then), (Condition::Reduced, Condition::Whole));
}

#[test]
fn many_disks_share_the_room_that_is_left() {
    let rules = "default,stripes=1";
    let disks: Vec<(u128, &str, u64)> = (1..=6).map(|id| (id, rules, 18)).collect();
    let view = filled(3, &disks);
    let found = lose(&view, &[1]);
    let touched = found.disks.len();
    let stuck = found.disks.iter().filter(|one| one.then == Condition::Reduced).count();
    assert!(touched >= 3 && stuck > 0 && stuck < touched, "{found:?}");
    for one in &found.after {
        assert!(one.used_bytes <= one.capacity_bytes, "{one:?}");
    }
    let copied: u64 = found.disks.iter().map(|one| one.bytes).sum();
    assert_eq!((copied, found.bytes_to_copy), ((touched - stuck) as u64 * 18 * GIB, copied));
}

#[test]
fn another_host_takes_what_was_owed_and_evens_devices_out() {
    let mut view = filled(2, &[(1, "default,stripes=1", 40), (2, "default,stripes=1", 30)]);
    view.lose_host(2, 0);
    let like = NewHost::like(&view.hosts[&HostId(1)], "h9".to_owned()).record(&view);
    assert!(!view.hosts.contains_key(&like.id) && like.devices.len() == 1);
    let found = ask(&view, &Question::AddHost(Box::new(like.clone())));
    assert!(found.disks.iter().all(|one| one.now == Condition::Reduced && one.then == Condition::Whole));
    assert_eq!(found.bytes_to_copy, 70 * GIB);
    assert!(found.verdict.contains("2 disks become whole: disk1, disk2"), "{}", found.verdict);
    assert!(found.device_names.values().all(|name| name == "device 1 of h9"), "{:?}", found.device_names);

    let mut view =
        filled(1, &[(1, "single,stripes=1", 20), (2, "single,stripes=1", 20), (3, "single,stripes=1", 20)]);
    let empty = NewHost { name: "h2".to_owned(), fault_domain: None, capacities: vec![100 * GIB] };
    let empty = Question::AddHost(Box::new(empty.record(&view)));
    let found = ask(&view, &empty);
    assert!(found.bytes_to_even >= 20 * GIB && found.bytes_to_copy == 0, "{}", found.verdict);
    let left = what_if(&view, &empty, Evens::Full, at(10), 1);
    assert_eq!(left.bytes_to_even, 0, "nothing is nearly full");
    view.disks.values_mut().for_each(|disk| disk.roster.owner = None);
    assert_eq!(ask(&view, &empty).bytes_to_even, 0, "what is not in use stays");
}

#[test]
fn another_policy_costs_copies_or_gives_them_back() {
    let view = filled(3, &[(1, "single,stripes=1", 10), (2, "default,stripes=1", 20)]);
    let set = |ids: &[u128], rules: &str| {
        let disks = ids.iter().map(|id| DiskId(*id)).collect();
        ask(&view, &Question::SetPolicy { disks, policy: policy(rules) })
    };
    let used = |space: &[HostSpace]| space.iter().map(|one| one.used_bytes).sum::<u64>();
    let more = set(&[1], "default,stripes=1");
    assert_eq!((more.bytes_to_copy, used(&more.after) - used(&more.before)), (10 * GIB, 10 * GIB));
    assert!(more.verdict.contains("1 disk can have default"), "{}", more.verdict);
    let less = set(&[2], "single,stripes=1");
    assert_eq!((less.bytes_to_copy, less.bytes_freed), (0, 20 * GIB));
    assert_eq!(used(&less.before) - used(&less.after), 20 * GIB);
    assert!(less.verdict.contains("20 GiB are given back"), "{}", less.verdict);
    let never = set(&[1, 2], "default,failures_to_tolerate=3,stripes=1");
    assert_eq!(never.bytes_to_copy, 0);
    assert!(
        never.verdict.contains("2 disks cannot have") && never.verdict.contains("needs 4 hosts"),
        "{}",
        never.verdict
    );
    let columns = set(&[1], "single,stripes=9");
    assert!(columns.disks[0].lacks[0].contains("stripes=9"), "{columns:?}");
    assert!(matches!(columns.disks[0].change, Some(Change::Refused(_))), "{columns:?}");
    let forced = set(&[1], "default,failures_to_tolerate=3,stripes=1,force_provisioning=on");
    assert_eq!(forced.bytes_to_copy, 20 * GIB);
    let lacks = &forced.disks[0].lacks;
    assert!(lacks.iter().any(|text| text == "failures_to_tolerate is 2, the policy asks for 3"), "{lacks:?}");
}

/// `what-if` said of a rule that needs another layout only that it does.
#[test]
fn a_policy_that_needs_another_layout_says_what_moves_and_how_full_devices_get() {
    let view =
        filled(4, &[(1, "default,stripes=1", 6), (2, "default,stripes=1", 3), (3, "single,stripes=1", 1)]);
    let rows = policy("method=parity,stripes=1");
    let asked = Question::SetPolicy { disks: vec![DiskId(1), DiskId(2), DiskId(3)], policy: rows };
    let found = ask(&view, &asked);
    let of = |id: u128| found.disks.iter().find(|one| one.disk == DiskId(id)).expect("it is asked about");
    for (id, gib) in [(1, 8), (2, 4)] {
        let Some(Change::Moves(plan)) = &of(id).change else { panic!("{:?}", of(id)) };
        assert_eq!(plan.bytes_to_copy, gib * GIB, "3 data and 1 parity");
        assert_eq!(of(id).bytes / GIB, gib, "each component in whole extents");
        assert_eq!((plan.devices.len(), of(id).then, of(id).lacks.len()), (4, Condition::Whole, 0));
    }
    assert!(found.verdict.starts_with("3 disks can have"), "{}", found.verdict);
    assert!(found.verdict.ends_with("3 disks move into another layout"), "{}", found.verdict);
    // Two mirrors of 9 GiB and 1 GiB become rows with a third more than the data.
    let used = |space: &[HostSpace]| space.iter().map(|one| one.used_bytes).sum::<u64>();
    assert_eq!((used(&found.before), used(&found.after) / GIB), (19 * GIB, 13));
    assert_eq!(found.move_rooms.len(), 4);
    for room in &found.move_rooms {
        assert!(room.used_bytes < room.peak_bytes && room.peak_bytes < room.limit_bytes, "{room:?}");
        assert!(found.device_names.contains_key(&room.device));
    }
    // The second one finds the room that the first one leaves.
    let mut full = view.clone();
    for host in 1..=4 {
        full.host_mut(host).devices[0].free_bytes = 6 * GIB;
    }
    let found = ask(&full, &asked);
    let refused = found.disks.iter().filter(|one| matches!(one.change, Some(Change::Refused(_))));
    let refused: Vec<&Outlook> = refused.collect();
    assert!(refused.iter().all(|one| one.lacks[0].contains("of room for the other layout")), "{refused:?}");
    assert!(!refused.is_empty(), "{found:?}");
    let same =
        ask(&view, &Question::SetPolicy { disks: vec![DiskId(3)], policy: policy("single,stripes=1") });
    assert_eq!(same.disks[0].change, Some(Change::Done));
    let limit = ask(
        &view,
        &Question::SetPolicy { disks: vec![DiskId(3)], policy: policy("single,stripes=1,iops_limit=9") },
    );
    assert_eq!(limit.disks[0].change, Some(Change::AtOnce));
}
