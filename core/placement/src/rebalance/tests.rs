//! Moves by name, and followed to their end over random clusters.

use super::*;
use crate::check::{Breach, check};
use crate::plan::plan;
use crate::policy::{Policy, Stripes};
use crate::testing::{Stored, clusters, counting, device_of, hosts, policy, requests};
use base::units::{GIB, MIB};
use layout::Component;
use proptest::prelude::*;

/// Devices of 100 GiB on different hosts, and one disk of one copy for each component that stands on them: `gib[i]` are
/// the bytes of those on device `i`.
fn example(gib: &[&[u64]]) -> (Vec<Stored>, Vec<DeviceSpace>) {
    let mut disks = Vec::new();
    let mut devices = Vec::new();
    for (host, components) in (1..).zip(gib) {
        let mut device = device_of(host, 1, host, 100 * GIB);
        for data in *components {
            let id = disks.len() as u64 + 1;
            let leaf = Component { id: ComponentId(id), device: device.id, size: 100 * GIB, position: 0 };
            disks.push(Stored {
                id: DiskId(u128::from(id)),
                layout: Layout::Component(leaf),
                policy: Policy::SINGLE,
                size: 100 * GIB,
                space_reservation: crate::policy::Percent::ZERO,
                used_bytes: vec![data * GIB],
            });
            device.add(&disks[disks.len() - 1].placed().footprint(0));
        }
        devices.push(device);
    }
    (disks, devices)
}

fn planned(before: Balance, disks: &[Stored], devices: &[DeviceSpace]) -> Rebalance {
    let placed: Vec<PlacedDisk<'_>> = disks.iter().map(Stored::placed).collect();
    rebalance(before, &placed, devices, 1)
}

/// Does the moves.
fn perform(moves: &[Move], disks: &mut [Stored], devices: &mut [DeviceSpace]) {
    for step in moves {
        let disk = disks.iter_mut().find(|disk| disk.id == step.disk).expect("a disk of the call");
        let footprint = disk.placed().footprint(step.place);
        assert_eq!(step.bytes, footprint.data_bytes);
        let mut copies = disk.layout.place(step.place).expect("it is there").to_vec();
        let copy = copies.iter_mut().find(|copy| copy.id == step.component).expect("it is there");
        assert_eq!(copy.device, step.source);
        copy.device = step.target;
        disk.layout = disk.layout.with_place(step.place, copies);
        let device = |id| devices.iter().position(|device| device.id == id).expect("a device of the call");
        let (source, target) = (device(step.source), device(step.target));
        devices[source].remove(&footprint);
        devices[target].add(&footprint);
    }
}

/// How full the devices are in percent.
fn fullness(devices: &[DeviceSpace]) -> Vec<u64> {
    devices.iter().map(|device| device.fullness() / 100).collect()
}

#[test]
fn even_devices_are_left_alone() {
    let (disks, devices) = example(&[&[30, 19], &[20], &[30]]);
    let found = planned(Balance::Even, &disks, &devices);
    assert_eq!(found, Rebalance { balance: Balance::Even, moves: vec![], stuck: None });
}

#[test]
fn evening_out_begins_at_30_points_and_ends_at_15() {
    let (mut disks, mut devices) = example(&[&[10, 10, 10, 10, 10], &[10, 10], &[30]]);
    let found = planned(Balance::Even, &disks, &devices);
    assert_eq!((found.balance, found.stuck), (Balance::Proactive, None));
    assert_eq!(found.moves.len(), 1);
    assert_eq!((found.moves[0].source.0, found.moves[0].target.0), (1, 2));
    assert_eq!(
        found.moves[0].reason,
        "/dev/sd1 of host h1 is 50 % full, and devices may differ by 15 points of percent; 10 GiB of data go to \
         /dev/sd2 of host h2, which is then 30 % full"
    );
    perform(&found.moves, &mut disks, &mut devices);
    assert_eq!(fullness(&devices), [40, 30, 30]);
    assert_eq!(planned(Balance::Proactive, &disks, &devices).balance, Balance::Even);
    // 20 points are no reason to begin, and are one to go on.
    let (disks, devices) = example(&[&[10, 10, 10, 10, 10], &[20, 10], &[30]]);
    assert_eq!(planned(Balance::Even, &disks, &devices).balance, Balance::Even);
    assert_eq!(planned(Balance::Proactive, &disks, &devices).moves.len(), 1);
}

#[test]
fn a_device_that_is_nearly_full_is_relieved_even_where_all_are() {
    let (mut disks, mut devices) = example(&[&[40, 35, 5], &[40, 20], &[60]]);
    let found = planned(Balance::Even, &disks, &devices);
    assert_eq!((found.balance, found.stuck), (Balance::Reactive, None));
    assert_eq!((found.moves.len(), found.moves[0].bytes), (1, 5 * GIB), "no other device fills up instead");
    assert!(found.moves[0].reason.contains("devices are relieved from 80 % on"), "{}", found.moves[0].reason);
    perform(&found.moves, &mut disks, &mut devices);
    assert!(devices.iter().all(|device| device.fullness() < REBALANCE_FULL));
}

/// Evening out would have spread a disk without redundancy over hosts one component after the other. It may do so only to
/// relieve a device that is nearly full.
#[test]
fn a_disk_without_redundancy_is_not_spread_over_hosts_to_even_devices_out() {
    let check = |data: u64, policy: Policy, expected: (Balance, usize)| {
        let devices: Vec<DeviceSpace> = (1..=2).map(|host| device_of(host, 1, host, 100 * GIB)).collect();
        let leaf = |id| {
            Layout::Component(Component {
                id: ComponentId(id),
                device: devices[0].id,
                size: 100 * GIB,
                position: 0,
            })
        };
        let disk = Stored {
            id: DiskId(1),
            layout: Layout::Stripe { unit: MIB, columns: vec![leaf(1), leaf(2)] },
            policy,
            size: 200 * GIB,
            space_reservation: crate::policy::Percent::ZERO,
            used_bytes: vec![data * GIB; 2],
        };
        let mut devices = devices;
        (0..2).for_each(|place| devices[0].add(&disk.placed().footprint(place)));
        let found = planned(Balance::Even, &[disk], &devices);
        assert_eq!((found.balance, found.moves.len()), expected, "{found:?}");
    };
    check(25, Policy::SINGLE, (Balance::Proactive, 0));
    check(25, Policy::DEFAULT, (Balance::Proactive, 1));
    check(42, Policy::SINGLE, (Balance::Reactive, 1));
}

#[test]
fn what_cannot_be_helped_is_said() {
    let (disks, devices) = example(&[&[85], &[70], &[70]]);
    let found = planned(Balance::Even, &disks, &devices);
    assert_eq!((found.balance, found.moves), (Balance::Reactive, vec![]));
    let stuck = found.stuck.expect("no device has room for 85 GiB");
    assert!(stuck.starts_with("/dev/sd1 is 85 % full, and nothing on it may move elsewhere"), "{stuck}");
    let (disks, devices) = example(&[&[40], &[], &[]]);
    let stuck = planned(Balance::Even, &disks, &devices).stuck.expect("the same, elsewhere");
    assert!(stuck.starts_with("/dev/sd1 is 40 % full and the emptiest device 0 %"), "{stuck}");
}

#[test]
fn devices_that_are_near_the_emptiest_are_left_alone_where_the_fullest_cannot_be_helped() {
    let (disks, devices) = example(&[&[40], &[4, 4, 4], &[]]);
    let found = planned(Balance::Even, &disks, &devices);
    assert_eq!((found.balance, found.moves), (Balance::Proactive, vec![]));
}

#[test]
fn a_device_out_of_service_is_neither_full_nor_empty() {
    let (disks, mut devices) = example(&[&[20, 20], &[], &[30]]);
    devices[1].in_service = false;
    assert_eq!(planned(Balance::Even, &disks, &devices).balance, Balance::Even);
    let (disks, mut devices) = example(&[&[90], &[20], &[30]]);
    devices[0].in_service = false;
    assert_eq!(planned(Balance::Even, &disks, &devices).balance, Balance::Even);
    assert_eq!(planned(Balance::Proactive, &[], &[]).balance, Balance::Even, "no devices at all");
}

#[test]
fn one_call_moves_few_components() {
    let many = [1; 60];
    let (mut disks, mut devices) = example(&[&many, &[], &[]]);
    let mut before = Balance::Even;
    let mut calls = 0;
    loop {
        let found = planned(before, &disks, &devices);
        if found.balance == Balance::Even {
            break;
        }
        assert!(!found.moves.is_empty() && found.moves.len() <= REBALANCE_MOVES_MAX);
        perform(&found.moves, &mut disks, &mut devices);
        before = found.balance;
        calls += 1;
    }
    assert_eq!(calls, 4);
    let fullness = fullness(&devices);
    assert!(
        fullness.iter().max().expect("three") - fullness.iter().min().expect("three") <= 15,
        "{fullness:?}"
    );
}

#[test]
fn a_copy_never_moves_beside_another() {
    let mut devices = hosts(3, 2, 100 * GIB);
    let layout =
        plan(&policy("default,stripes=1"), GIB, &devices[..4], &mut counting(), 1).expect("a plan").layout;
    let mut disk = Stored {
        id: DiskId(1),
        layout,
        policy: policy("default,stripes=1"),
        size: GIB,
        space_reservation: crate::policy::Percent::ZERO,
        used_bytes: vec![60 * GIB],
    };
    let copies = disk.layout.place(0).expect("one place").to_vec();
    for device in devices.iter_mut().filter(|device| copies.iter().any(|copy| copy.device == device.id)) {
        device.add(&disk.placed().footprint(0));
        // A little beside it that cannot move, so that it helps to move the copy.
        device.free_bytes -= 20 * GIB;
    }
    let found = planned(Balance::Even, std::slice::from_ref(&disk), &devices);
    assert_eq!(
        (found.balance, found.moves.len()),
        (Balance::Reactive, 1),
        "the other copy waits for the next call"
    );
    let moved = &found.moves[0];
    let host = |id| devices.iter().find(|device| device.id == id).expect("known").host;
    let other = copies.iter().find(|copy| copy.id != moved.component).expect("there are two");
    assert_ne!(host(moved.target), host(other.device));
    perform(&found.moves, std::slice::from_mut(&mut disk), &mut devices);
    assert_eq!(check(&disk.placed(), &devices), vec![]);
}

/// A breach that a move could bring about.
fn is_of_a_move(breach: &Breach) -> bool {
    matches!(
        breach,
        Breach::SharedDomain { .. } | Breach::Failures { .. } | Breach::Stripes { .. } | Breach::Invalid(_)
    )
}

/// Disks that were planned when only some of the devices were there, with data up to what their devices hold.
fn filled() -> impl Strategy<Value = (Vec<Stored>, Vec<DeviceSpace>)> {
    let disk = (requests(), 1u64..(600 << 21), prop::collection::vec(0u64..(60 << 10), 48));
    (clusters(), prop::collection::vec((disk, any::<u16>()), 1..12), any::<u64>()).prop_map(
        |(mut devices, requests, seed)| {
            let mut ids = counting();
            let mut disks: Vec<Stored> = Vec::new();
            for (((policy, _), sectors, used), there) in requests {
                let (policy, size) =
                    (Policy { space_reservation: crate::policy::Percent::ZERO, ..policy }, sectors * 512);
                let mut some = devices.clone();
                for (index, device) in some.iter_mut().enumerate() {
                    device.in_service &= there >> (index % 16) & 1 == 1;
                }
                let Ok(made) = plan(&policy, size, &some, &mut ids, seed) else { continue };
                let mut disk = Stored {
                    id: DiskId(disks.len() as u128),
                    layout: made.layout,
                    policy,
                    size,
                    space_reservation: made.space_reservation,
                    used_bytes: Vec::new(),
                };
                let places: Vec<Vec<Component>> =
                    disk.layout.places().map(|(_, copies)| copies.to_vec()).collect();
                for (place, copies) in places.iter().enumerate() {
                    let on = |device: &&mut DeviceSpace| copies.iter().any(|copy| copy.device == device.id);
                    let room = devices.iter_mut().filter(on).map(|device| device.available_bytes()).min();
                    disk.used_bytes
                        .push((used[place % used.len()] * MIB).min(room.expect("it stands there")));
                    let footprint = disk.placed().footprint(place);
                    devices.iter_mut().filter(on).for_each(|device| device.add(&footprint));
                }
                disks.push(disk);
            }
            (disks, devices)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn moves_end_keep_the_rules_and_leave_the_devices_evener((disks, devices) in filled(), seed in any::<u64>()) {
        let (mut disks, mut devices) = (disks, devices);
        let checked = |disks: &[Stored], devices: &[DeviceSpace]| -> Vec<Vec<Breach>> {
            let check = |disk: &Stored| check(&disk.placed(), devices).into_iter().filter(is_of_a_move).collect();
            disks.iter().map(check).collect()
        };
        let debts = checked(&disks, &devices);
        let mut before = Balance::Even;
        for call in 0.. {
            prop_assert!(call < 1000, "moves end");
            let placed: Vec<PlacedDisk<'_>> = disks.iter().map(Stored::placed).collect();
            let found = rebalance(before, &placed, &devices, seed);
            prop_assert_eq!(&found, &rebalance(before, &placed, &devices, seed));
            drop(placed);
            let places: BTreeSet<_> = found.moves.iter().map(|step| (step.disk, step.place)).collect();
            prop_assert_eq!(places.len(), found.moves.len(), "one copy of a place at a time");
            for step in &found.moves {
                let sorted = |devices: &[DeviceSpace]| {
                    let mut fullness: Vec<u64> =
                        devices.iter().filter(|d| d.in_service).map(DeviceSpace::fullness).collect();
                    fullness.sort_unstable_by(|a, b| b.cmp(a));
                    fullness
                };
                let unevenness = sorted(&devices);
                perform(std::slice::from_ref(step), &mut disks, &mut devices);
                prop_assert!(sorted(&devices) < unevenness, "{}", step.reason);
                let target = devices.iter().find(|device| device.id == step.target).expect("known");
                prop_assert!(target.in_service && target.component_count <= target.component_count_max);
                prop_assert!(target.fullness() < REBALANCE_FULL && target.free_bytes >= target.reserved_bytes);
            }
            for (found, debts) in checked(&disks, &devices).iter().zip(&debts) {
                prop_assert!(found.iter().all(|breach| debts.contains(breach)), "{found:?} {debts:?}");
            }
            match found.balance {
                Balance::Even => prop_assert!(found.moves.is_empty() && found.stuck.is_none()),
                Balance::Proactive | Balance::Reactive if found.moves.is_empty() => {
                    prop_assert!(found.stuck.is_some());
                }
                Balance::Proactive | Balance::Reactive => {}
            }
            if found.moves.is_empty() {
                break;
            }
            before = found.balance;
        }
    }
}

#[test]
fn explicit_stripes_stay_on_their_number_of_devices() {
    let two = policy("single,stripes=2");
    let mut devices = hosts(1, 3, 100 * GIB);
    let layout = plan(&two, 2 * GIB, &devices[..2], &mut counting(), 1).expect("a plan").layout;
    assert_eq!(two.stripes, Stripes::Exactly(2));
    let mut disk = Stored {
        id: DiskId(1),
        layout,
        policy: two,
        size: 2 * GIB,
        space_reservation: crate::policy::Percent::ZERO,
        used_bytes: vec![30 * GIB, 20 * GIB],
    };
    let stands = |place| disk.layout.place(place).expect("two places")[0].device;
    let (first, second) = (stands(0), stands(1));
    for device in &mut devices {
        if device.id == first {
            device.free_bytes -= 50 * GIB;
        }
        if device.id == second {
            device.free_bytes -= 20 * GIB;
        }
    }
    let found = planned(Balance::Even, std::slice::from_ref(&disk), &devices);
    assert_eq!(found.moves.len(), 1);
    assert_eq!(
        (found.moves[0].source, found.moves[0].target),
        (first, devices[2].id),
        "never beside the other column"
    );
    perform(&found.moves, std::slice::from_mut(&mut disk), &mut devices);
    assert_eq!(check(&disk.placed(), &devices), vec![]);
}
