//! Repairs and evacuations against `check`, against a search that tries everything, and by name.

use super::*;
use crate::check::{Breach, check};
use crate::limits::MOVES_ON_MAX;
use crate::plan::plan;
use crate::policy::{Policy, Stripes};
use crate::testing::{
    Stored, clusters, counting, counting_from, device_of, hosts, placed, planned_disk, policy, requests,
    with_domains,
};
use base::units::{GIB, MIB};
use layout::Layout;
use proptest::prelude::*;

/// The components on the devices that are out of service.
fn lost_on(layout: &Layout, devices: &[DeviceSpace]) -> BTreeSet<ComponentId> {
    let is_lost = |component: &&Component| {
        devices.iter().any(|device| device.id == component.device && !device.in_service)
    };
    layout.components().map(|(_, one)| one).filter(is_lost).map(|one| one.id).collect()
}

fn fail_host(devices: &mut [DeviceSpace], host: u128) {
    devices
        .iter_mut()
        .filter(|device| device.host == HostId(host))
        .for_each(|device| device.in_service = false);
}

fn repaired(disk: &PlacedDisk<'_>, devices: &[DeviceSpace]) -> Vec<Replacement> {
    repair(disk, &lost_on(disk.layout, devices), devices, &mut counting_from(1000), 1)
}

/// The layout with the replacements that were found.
fn applied(layout: &Layout, replacements: &[Replacement]) -> Layout {
    let mut layout = layout.clone();
    for replacement in replacements {
        let Ok(component) = &replacement.outcome else { continue };
        let mut copies = layout.place(replacement.place).expect("a place of the layout").to_vec();
        let lost = copies.iter_mut().find(|copy| copy.id == replacement.lost).expect("a copy of its place");
        *lost = *component;
        layout = layout.with_place(replacement.place, copies);
    }
    layout
}

/// The layout without some components; a place keeps one even if it is among them.
fn without(layout: &Layout, gone: &BTreeSet<ComponentId>) -> Layout {
    let mut left = layout.clone();
    for (place, copies) in layout.places() {
        let kept: Vec<Component> = copies.iter().filter(|copy| !gone.contains(&copy.id)).copied().collect();
        left = left.with_place(place, if kept.is_empty() { vec![copies[0]] } else { kept });
    }
    left
}

#[test]
fn a_lost_host_is_replaced_by_another_and_never_by_one_with_a_copy() {
    let mut devices = hosts(4, 1, 10 * GIB);
    let layout = plan(&Policy::DEFAULT, GIB, &devices[..3], &mut counting(), 1).expect("a plan").layout;
    fail_host(&mut devices, 1);
    let disk = placed(&layout, &Policy::DEFAULT, GIB);
    let replacements = repaired(&disk, &devices);
    assert_eq!(replacements.len(), 2, "two of the three columns had a copy on host 1");
    let mut ids: Vec<u64> = Vec::new();
    for replacement in &replacements {
        let new = replacement.outcome.as_ref().expect("there is a host");
        assert_eq!(new.device, DeviceId(41), "the one without a component is taken first");
        ids.push(new.id.0);
    }
    assert_eq!(ids, [1000, 1001], "ids are fresh");
    let layout = applied(&layout, &replacements);
    assert_eq!(check(&placed(&layout, &Policy::DEFAULT, GIB), &devices), vec![]);
}

#[test]
fn no_copy_comes_beside_another_and_the_refusal_names_the_hosts() {
    let mut devices = hosts(2, 2, 10 * GIB);
    let layout = plan(&Policy::DEFAULT, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    fail_host(&mut devices, 2);
    let disk = placed(&layout, &Policy::DEFAULT, GIB);
    let replacements = repaired(&disk, &devices);
    let cause = replacements[0].outcome.clone().expect_err("host 1 has the other copy");
    assert_eq!(
        cause.to_string(),
        "failures_to_tolerate=1 needs 2 hosts with devices in service; there is 1: h1"
    );
    assert_eq!(cause.rule(), Some("failures_to_tolerate"));
    // The same for racks: host 3 is there, but in the rack of the copy that stays.
    let mut devices = with_domains(hosts(3, 1, 10 * GIB), 2);
    devices[1].in_service = false;
    let layout = plan(&Policy::DEFAULT, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    devices[1].in_service = true;
    fail_host(&mut devices, 3);
    let replacements = repaired(&placed(&layout, &Policy::DEFAULT, GIB), &devices);
    let cause = replacements[0].outcome.clone().expect_err("rack 1 has the other copy");
    assert!(
        cause.to_string().ends_with("needs 2 fault domains with devices in service; there is 1: r1"),
        "{cause}"
    );
}

#[test]
fn a_component_without_a_copy_goes_anywhere() {
    let mut devices = hosts(2, 1, 10 * GIB);
    let layout = plan(&Policy::SINGLE, MIB, &devices, &mut counting(), 1).expect("a plan").layout;
    let stands = layout.component(0).expect("it has one").device;
    devices.iter_mut().filter(|device| device.id == stands).for_each(|device| device.in_service = false);
    let replacements = repaired(&placed(&layout, &Policy::SINGLE, MIB), &devices);
    assert_ne!(replacements[0].outcome.as_ref().expect("there is another").device, stands);
}

#[test]
fn a_target_has_room_for_the_data_and_not_only_for_the_reservation() {
    let mut devices = hosts(4, 1, 10 * GIB);
    let layout = plan(&Policy::DEFAULT, GIB, &devices[..2], &mut counting(), 1).expect("a plan").layout;
    fail_host(&mut devices, 1);
    devices[2].free_bytes = 4 * GIB;
    devices[3].free_bytes = 6 * GIB;
    let disk = PlacedDisk { used_bytes: &[5 * GIB], ..placed(&layout, &Policy::DEFAULT, GIB) };
    let replacements = repaired(&disk, &devices);
    assert_eq!(replacements[0].outcome.as_ref().map(|new| new.device), Ok(DeviceId(41)));
    devices[3].reserved_bytes = 3 * GIB;
    let replacements = repaired(&disk, &devices);
    let cause = replacements[0].outcome.clone().expect_err("it would fill the device");
    assert_eq!(cause, Cause::Room { needed: 5 * GIB, found: 4 * GIB });
    assert!(cause.to_string().contains("the component takes 5 GiB"), "{cause}");
}

#[test]
fn explicit_stripes_stay_on_as_many_devices() {
    let two = policy("default,stripes=2");
    let mut devices = hosts(3, 2, 1000 * GIB);
    let layout = plan(&two, 900 * GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    assert_eq!(layout.place_count(), 4);
    let stands = layout.component(0).expect("it is there").device;
    devices.iter_mut().filter(|device| device.id == stands).for_each(|device| device.in_service = false);
    let replacements = repaired(&placed(&layout, &two, 900 * GIB), &devices);
    let targets: BTreeSet<_> =
        replacements.iter().map(|one| one.outcome.as_ref().expect("two are left").device).collect();
    assert_eq!((replacements.len(), targets.len()), (2, 1), "what stood together stands together again");
    let layout = applied(&layout, &replacements);
    assert_eq!(check(&placed(&layout, &two, 900 * GIB), &devices), vec![]);
}

#[test]
fn explicit_stripes_share_a_device_only_where_that_is_forced() {
    let mut devices = hosts(1, 3, 10 * GIB);
    for (text, forced) in [("single,stripes=3", false), ("single,stripes=3,force_provisioning=on", true)] {
        let three = policy(text);
        devices[0].in_service = true;
        let layout = plan(&three, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
        devices[0].in_service = false;
        let replacements = repaired(&placed(&layout, &three, GIB), &devices);
        match &replacements[0].outcome {
            Ok(_) => assert!(forced, "{text}"),
            Err(cause) => {
                assert!(!forced, "{text}");
                assert_eq!(*cause, Cause::Devices { stripes: 3, copies: 1, found: 2 });
            }
        }
    }
}

#[test]
fn a_component_moves_on_where_it_alone_can() {
    // Place 0 may go to host 3 or 4, and place 1 to host 3 only: each of them has room for one.
    let component = |id: u64, device: u128| Component {
        id: ComponentId(id),
        device: DeviceId(device),
        size: GIB,
        position: 0,
    };
    let place = |first: u64, devices: [u128; 2]| {
        Layout::of_copies(vec![component(first, devices[0]), component(first + 1, devices[1])])
    };
    let layout = layout::striping::stripe(vec![place(1, [11, 21]), place(3, [11, 41])]);
    for seed in 0..8 {
        let mut devices = hosts(4, 1, 10 * GIB);
        fail_host(&mut devices, 1);
        devices[1].component_count = devices[1].component_count_max;
        devices[2].component_count = devices[2].component_count_max - 1;
        devices[3].component_count = devices[3].component_count_max - 1;
        // Host 3 looks better to place 0, which is asked first.
        devices[3].free_bytes = GIB;
        let disk = placed(&layout, &Policy::DEFAULT, 2 * GIB);
        let lost = lost_on(&layout, &devices);
        let found: Vec<DeviceId> = repair(&disk, &lost, &devices, &mut counting_from(9), seed)
            .into_iter()
            .map(|one| one.outcome.expect("there is room for both").device)
            .collect();
        assert_eq!(found, [DeviceId(41), DeviceId(31)]);
    }
    const { assert!(MOVES_ON_MAX > 0) };
}

#[test]
fn a_component_that_was_asked_in_vain_is_no_obstacle() {
    // Each device left has room for one component. Places 0 and 1 may only go to host 3, and place 1 is too large for
    // its second device. Place 2 has taken that one and can move on to host 4; place 1 is asked before it.
    let component = |id: u64, device: u128| Component {
        id: ComponentId(id),
        device: DeviceId(device),
        size: GIB,
        position: 0,
    };
    let place = |first: u64, devices: [u128; 2]| {
        Layout::of_copies(vec![component(first, devices[0]), component(first + 1, devices[1])])
    };
    let layout = layout::striping::stripe(vec![place(1, [11, 41]), place(3, [11, 41]), place(5, [11, 21])]);
    let mut devices = hosts(4, 2, 10 * GIB);
    fail_host(&mut devices, 1);
    for device in &mut devices {
        let (room, free) = match device.id.0 {
            31 | 41 => (1, 10 * GIB),
            32 => (1, 2 * GIB),
            _ => (0, 10 * GIB),
        };
        device.component_count = device.component_count_max - room;
        device.free_bytes = free;
    }
    let disk =
        PlacedDisk { used_bytes: &[GIB, 5 * GIB, 2 * GIB], ..placed(&layout, &Policy::DEFAULT, 3 * GIB) };
    let found = repaired(&disk, &devices);
    let targets: Vec<u128> =
        found.into_iter().map(|one| one.outcome.expect("there is room for all").device.0).collect();
    assert_eq!(targets, [32, 31, 41]);
}

#[test]
fn what_goes_with_a_host_is_listed_with_its_targets() {
    let devices = hosts(3, 1, 10 * GIB);
    let mirrored = plan(&Policy::DEFAULT, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    let alone = plan(&Policy::SINGLE, MIB, &devices[..1], &mut counting_from(50), 1).expect("a plan").layout;
    let disks = [
        PlacedDisk { used_bytes: &[GIB, GIB, GIB], ..placed(&mirrored, &Policy::DEFAULT, GIB) },
        PlacedDisk { id: DiskId(2), used_bytes: &[MIB], ..placed(&alone, &Policy::SINGLE, MIB) },
    ];
    let departures = evacuate(Leaving::Host(HostId(1)), &disks, &devices, 1);
    let told: Vec<(u128, u64, usize)> =
        departures.iter().map(|one| (one.disk.0, one.bytes, one.copies_staying)).collect();
    assert_eq!(told, [(1, GIB, 1), (1, GIB, 1), (2, MIB, 0)]);
    for departure in &departures {
        assert_eq!(departure.source, DeviceId(11));
        let target = departure.outcome.clone().expect("there are two other hosts");
        let copies = match departure.disk.0 {
            1 => mirrored.place(departure.place),
            _ => alone.place(departure.place),
        };
        assert!(copies.expect("it is there").iter().all(|copy| copy.device != target));
    }
    assert_eq!(evacuate(Leaving::Device(DeviceId(11)), &disks, &devices, 1), departures);
    assert_eq!(evacuate(Leaving::Group(GroupId(101)), &disks, &devices, 1), departures);
    assert_eq!(evacuate(Leaving::Host(HostId(9)), &disks, &devices, 1), vec![]);
}

/// The components of a disk without redundancy left a host for different ones, and the disk was lost with any of them.
#[test]
fn a_disk_without_redundancy_leaves_its_host_for_one_other() {
    let devices = hosts(4, 3, 400 * GIB);
    let plan = plan(&Policy::SINGLE, 600 * GIB, &devices, &mut counting(), 1).expect("a plan");
    let home = plan.layout.components().next().expect("it has one").1.device.0 / 10;
    let disks = [placed(&plan.layout, &Policy::SINGLE, 600 * GIB)];
    let departures = evacuate(Leaving::Host(HostId(home)), &disks, &devices, 1);
    assert_eq!(departures.len(), 3);
    let hosts: BTreeSet<u128> =
        departures.iter().map(|one| one.outcome.as_ref().expect("there is room").0 / 10).collect();
    assert_eq!(hosts.len(), 1, "{departures:?}");
    let one = plan.layout.components().next().expect("it has one").1.device;
    let departures = evacuate(Leaving::Device(one), &disks, &devices, 1);
    assert!(
        departures.iter().all(|one| one.outcome.as_ref().is_ok_and(|id| id.0 / 10 == home)),
        "{departures:?}"
    );
}

#[test]
fn what_cannot_leave_says_why_and_targets_are_not_promised_twice() {
    let devices = hosts(2, 1, 10 * GIB);
    let mirrored = plan(&Policy::DEFAULT, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    let alone: Vec<Layout> = (0..3)
        .map(|disk| {
            let mut ids = counting_from(50 + disk);
            plan(&Policy::SINGLE, MIB, &devices[..1], &mut ids, 1).expect("a plan").layout
        })
        .collect();
    let single = |(layout, id)| PlacedDisk {
        id: DiskId(id),
        used_bytes: &[4 * GIB],
        ..placed(layout, &Policy::SINGLE, MIB)
    };
    let mut disks = vec![placed(&mirrored, &Policy::DEFAULT, GIB)];
    disks.extend(alone.iter().zip(2..).map(single));
    let departures = evacuate(Leaving::Host(HostId(1)), &disks, &devices, 1);
    let causes: Vec<Option<String>> =
        departures.iter().map(|one| one.outcome.as_ref().err().map(Cause::to_string)).collect();
    assert!(causes[0].as_ref().is_some_and(|text| text.contains("needs 2 hosts")), "{causes:?}");
    assert_eq!(causes[1..3], [None, None]);
    assert!(causes[3].as_ref().is_some_and(|text| text.contains("more than 2 GiB available")), "{causes:?}");
}

/// Whether a device can take a component beside the copies that stay: from the rules alone.
fn may_stand(
    copies: &[Component],
    lost: &BTreeSet<ComponentId>,
    device: &DeviceSpace,
    devices: &[DeviceSpace],
) -> bool {
    let domain = |device: &DeviceSpace| match &device.fault_domain {
        Some(name) => name.clone(),
        None => format!("host {}", device.host),
    };
    let stays = |copy: &&Component| !lost.contains(&copy.id);
    let of = |copy: &Component| devices.iter().find(|found| found.id == copy.device);
    device.in_service
        && copies.iter().filter(stays).filter_map(of).all(|found| domain(found) != domain(device))
}

/// The most of `wanted` that can be replaced: tries everything.
fn most(
    wanted: &[(usize, Vec<usize>)],
    taken: &mut Vec<(usize, usize)>,
    devices: &[DeviceSpace],
    need: u64,
) -> usize {
    let Some(((place, allowed), rest)) = wanted.split_first() else { return 0 };
    let mut best = most(rest, taken, devices, need);
    if best == wanted.len() {
        return best;
    }
    for device in allowed {
        let on = taken.iter().filter(|(_, other)| other == device).count() as u64;
        let found = &devices[*device];
        let has_room = u64::from(found.component_room()) > on && found.available_bytes() >= need * (on + 1);
        let is_apart =
            taken.iter().all(|(other, at)| other != place || devices[*at].domain() != found.domain());
        if has_room && is_apart {
            taken.push((*place, *device));
            best = best.max(1 + most(rest, taken, devices, need));
            taken.pop();
            if best == wanted.len() {
                return best;
            }
        }
    }
    best
}

/// Breaches that a move could have brought about.
fn is_of_a_move(breach: &Breach) -> bool {
    match breach {
        Breach::SharedDomain { .. }
        | Breach::Failures { .. }
        | Breach::Stripes { .. }
        | Breach::Invalid(_) => true,
        Breach::Size { .. }
        | Breach::UnknownDevice { .. }
        | Breach::OutOfService { .. }
        | Breach::Method { .. }
        | Breach::Reservation { .. }
        | Breach::Space { .. } => false,
    }
}

/// Small disks, so that everything can be tried.
fn small_requests() -> impl Strategy<Value = (Policy, u64)> {
    (requests(), 1u64..(300 << 21)).prop_map(|((mut policy, _), sectors)| {
        if let Stripes::Exactly(count) = policy.stripes {
            policy.stripes = Stripes::Exactly(count.min(4));
        }
        (policy, sectors * 512)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_repair_keeps_the_rules_and_replaces_all_that_can_be_replaced(
        (policy, size) in small_requests(),
        devices in clusters(),
        failing in prop::collection::vec(0u128..14, 1..4),
        seed in any::<u64>(),
    ) {
        let Ok(made) = plan(&policy, size, &devices, &mut counting(), seed) else { return Ok(()) };
        let disk = planned_disk(&made, &policy, size);
        let mut devices = devices;
        for failing in failing {
            match failing {
                0..6 => fail_host(&mut devices, failing + 1),
                _ => devices.iter_mut().filter(|d| d.id.0 == failing).for_each(|d| d.in_service = false),
            }
        }
        let lost = lost_on(&made.layout, &devices);
        let replacements = repair(&disk, &lost, &devices, &mut counting_from(1000), seed);
        prop_assert_eq!(&replacements, &repair(&disk, &lost, &devices, &mut counting_from(1000), seed));
        let answered: BTreeSet<ComponentId> = replacements.iter().map(|one| one.lost).collect();
        prop_assert_eq!(&answered, &lost);
        // The number of devices stays right with those that could not be replaced counted where they were ...
        let layout = applied(&made.layout, &replacements);
        prop_assert_eq!(layout.validate(), Ok(()));
        let is_spread = |breach: &Breach| matches!(breach, Breach::Stripes { .. });
        let spread = |layout: &Layout| check(&PlacedDisk { layout, ..disk }, &devices).into_iter().find(is_spread);
        prop_assert!(spread(&layout) == spread(&made.layout) || policy.force_provisioning);
        // ... and without them no two copies fail together.
        let unreplaced = replacements.iter().filter(|one| one.outcome.is_err()).map(|one| one.lost).collect();
        let there = without(&layout, &unreplaced);
        let breaches = check(&PlacedDisk { layout: &there, ..disk }, &devices);
        let is_shared = |breach: &Breach| matches!(breach, Breach::SharedDomain { .. });
        prop_assert!(!breaches.iter().any(is_shared), "{breaches:?}");
        // No device takes more than it has room for, or anything when it is out of service.
        let need = disk.footprint(0).bytes().max(MIB);
        for device in &devices {
            let on = |one: &&Replacement| one.outcome.as_ref().is_ok_and(|new| new.device == device.id);
            let count = replacements.iter().filter(on).count() as u64;
            prop_assert!(count == 0 || device.in_service);
            prop_assert!(count <= u64::from(device.component_room()));
            prop_assert!(disk.footprint(0).bytes() * count <= device.available_bytes());
        }
        // As many are replaced as can be.
        let done = replacements.iter().filter(|one| one.outcome.is_ok()).count();
        if policy.stripes == Stripes::Auto && lost.len() <= 5 && disk.footprint(0).bytes() > 0 {
            let allowed = |place: usize| {
                let copies = made.layout.place(place).expect("it is there");
                (0..devices.len()).filter(|d| may_stand(copies, &lost, &devices[*d], &devices)).collect()
            };
            let wanted: Vec<_> = replacements.iter().map(|one| (one.place, allowed(one.place))).collect();
            prop_assert_eq!(done, most(&wanted, &mut Vec::new(), &devices, need));
        }
    }

    #[test]
    fn an_evacuation_keeps_the_rules_and_promises_no_room_twice(
        requests in prop::collection::vec((small_requests(), prop::collection::vec(0u64..(20 << 10), 16)), 1..5),
        devices in clusters(),
        host in 1u128..7,
        seed in any::<u64>(),
    ) {
        let mut ids = counting();
        let mut stored = Vec::new();
        for ((policy, size), used) in requests {
            let Ok(made) = plan(&policy, size, &devices, &mut ids, seed) else { continue };
            stored.push(Stored {
                id: DiskId(stored.len() as u128),
                layout: made.layout,
                policy,
                size,
                space_reservation: made.space_reservation,
                used_bytes: used.iter().map(|mib| mib * MIB).collect(),
            });
        }
        let disks: Vec<PlacedDisk<'_>> = stored.iter().map(Stored::placed).collect();
        let departures = evacuate(Leaving::Host(HostId(host)), &disks, &devices, seed);
        prop_assert_eq!(&departures, &evacuate(Leaving::Host(HostId(host)), &disks, &devices, seed));
        let known = |id| devices.iter().find(|device| device.id == id).expect("a device of the cluster");
        let leaves = |component: &Component| known(component.device).host == HostId(host);
        let count: usize =
            disks.iter().map(|disk| disk.layout.components().filter(|(_, one)| leaves(one)).count()).sum();
        prop_assert_eq!(departures.len(), count);
        let mut after = devices.clone();
        for (disk, index) in disks.iter().zip(0..) {
            let mine = departures.iter().filter(|one| one.disk == DiskId(index));
            let mut layout = disk.layout.clone();
            for one in mine {
                let copies = layout.place(one.place).expect("it is there");
                let staying = copies.iter().filter(|copy| !leaves(copy)).count();
                prop_assert!(one.copies_staying <= staying, "those that moved here count too");
                let Ok(target) = one.outcome else { continue };
                prop_assert_ne!(known(target).host, HostId(host));
                let footprint = disk.footprint(one.place);
                let device = after.iter_mut().find(|device| device.id == target).expect("known");
                prop_assert!(device.in_service && device.component_room() > 0);
                prop_assert!(device.available_bytes() >= footprint.bytes());
                device.add(&footprint);
                let mut copies = copies.to_vec();
                copies.iter_mut().filter(|copy| copy.id == one.component).for_each(|copy| copy.device = target);
                layout = layout.with_place(one.place, copies);
            }
            let moved = PlacedDisk { layout: &layout, ..*disk };
            let before: Vec<Breach> = check(disk, &devices).into_iter().filter(is_of_a_move).collect();
            for breach in check(&moved, &devices).into_iter().filter(is_of_a_move) {
                let is_debt = disk.policy.force_provisioning && matches!(breach, Breach::Stripes { .. });
                prop_assert!(before.contains(&breach) || is_debt, "{breach}");
            }
        }
    }
}

#[test]
fn a_device_that_is_not_known_is_no_reason_to_stop() {
    let layout = Layout::of_copies(vec![
        Component { id: ComponentId(1), device: DeviceId(77), size: GIB, position: 0 },
        Component { id: ComponentId(2), device: DeviceId(11), size: GIB, position: 0 },
    ]);
    let devices = [device_of(1, 1, 11, GIB), device_of(2, 1, 21, GIB)];
    let lost = BTreeSet::from([ComponentId(1)]);
    let disk = placed(&layout, &Policy::DEFAULT, GIB);
    let replacements = repair(&disk, &lost, &devices, &mut counting_from(9), 1);
    assert_eq!(replacements[0].outcome.as_ref().map(|new| new.device), Ok(DeviceId(21)));
}

/// The layout with the copies that were found.
fn with_copies(layout: &Layout, additions: &[Addition]) -> Layout {
    let mut layout = layout.clone();
    for addition in additions {
        let Ok(component) = &addition.outcome else { continue };
        let mut copies = layout.place(addition.place).expect("a place of the layout").to_vec();
        copies.push(*component);
        layout = layout.with_place(addition.place, copies);
    }
    layout
}

#[test]
fn a_disk_gets_the_copies_that_its_policy_asks_for_now() {
    for (had, wanted, hosts_count, found, refused) in [
        ("single", "default", 2, 1, 0),
        ("single", "default,failures_to_tolerate=3", 4, 3, 0),
        ("single", "default", 1, 0, 1),
        ("default", "default,failures_to_tolerate=3", 3, 1, 1),
        ("default", "default", 3, 0, 0),
    ] {
        let devices = hosts(hosts_count, 1, 100 * GIB);
        let (had, wanted) = (policy(had), policy(wanted));
        let had = Policy { stripes: Stripes::Exactly(1), ..had };
        let wanted = Policy { stripes: Stripes::Exactly(1), ..wanted };
        let plan = plan(&had, GIB, &devices, &mut counting(), 1).expect("it fits");
        let disk = PlacedDisk { policy: &wanted, ..planned_disk(&plan, &had, GIB) };
        let additions = add_copies(&disk, &devices, &mut counting_from(1000), 1);
        let count = additions.iter().filter(|addition| addition.outcome.is_ok()).count();
        assert_eq!((count, additions.len() - count), (found, refused), "{wanted} on {hosts_count} hosts");
    }
}

#[test]
fn a_refused_copy_says_how_many_hosts_it_takes() {
    let devices = hosts(2, 1, 100 * GIB);
    let (had, wanted) = (policy("default"), policy("default,failures_to_tolerate=2"));
    let plan = plan(&had, GIB, &devices, &mut counting(), 1).expect("it fits");
    let disk = PlacedDisk { policy: &wanted, ..planned_disk(&plan, &had, GIB) };
    let additions = add_copies(&disk, &devices, &mut counting_from(1000), 1);
    let cause = additions[0].outcome.as_ref().expect_err("there is no third host");
    assert_eq!(
        cause.to_string(),
        "failures_to_tolerate=2 needs 3 hosts with devices in service; there are 2: h1, h2"
    );
}

proptest! {
    #[test]
    fn copies_on_top_break_no_rule(
        devices in clusters(),
        (wanted, size) in requests(),
        fewer in 0u8..=3,
        seed: u64,
    ) {
        let had = Policy {
            failures_to_tolerate: wanted.failures_to_tolerate.min(fewer),
            force_provisioning: false,
            ..wanted
        };
        let Ok(plan) = plan(&had, size, &devices, &mut counting(), seed) else { return Ok(()) };
        let mut devices = devices;
        let before = planned_disk(&plan, &had, size);
        for (place, copies) in plan.layout.places() {
            for copy in copies {
                let device = devices.iter_mut().find(|device| device.id == copy.device);
                device.expect("it was chosen").add(&before.footprint(place));
            }
        }
        let wanted = Policy { force_provisioning: false, ..wanted };
        let disk = PlacedDisk { policy: &wanted, ..planned_disk(&plan, &had, size) };
        let additions = add_copies(&disk, &devices, &mut counting_from(100_000), seed);
        let layout = with_copies(&plan.layout, &additions);
        prop_assert_eq!(layout.validate(), Ok(()));
        for (place, copies) in layout.places() {
            let refused = additions.iter().filter(|one| one.place == place && one.outcome.is_err()).count();
            prop_assert_eq!(copies.len() + refused, wanted.copies());
        }
        let is_whole = additions.iter().all(|addition| addition.outcome.is_ok());
        let breaches = check(&PlacedDisk { layout: &layout, ..disk }, &devices);
        let is_bad = |breach: &&Breach| match breach {
            Breach::Failures { .. } | Breach::Stripes { .. } => is_whole,
            _ => true,
        };
        prop_assert!(breaches.iter().find(is_bad).is_none(), "{:?}", breaches);
    }
}
