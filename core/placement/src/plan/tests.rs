//! Plans against `check`, refusals against a feasibility test of their own, and what the design promises by name.

use super::*;
use crate::check::{Breach, check, check_space};
use crate::testing::{
    clusters, counting, device_of, hosts, placed, planned_disk, policy, requests, with_domains,
};
use base::DeviceId;
use base::units::{GIB, MIB};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn device(id: u128, group: u128, free: u64) -> DeviceSpace {
    device_of(1, group, id, free)
}

fn planned(text: &str, size: u64, devices: &[DeviceSpace]) -> Result<Plan, Refusal> {
    plan(&policy(text), size, devices, &mut counting(), 1)
}

/// The device of every component, in order.
fn columns(plan: &Plan) -> Vec<u128> {
    plan.layout.components().map(|(_, component)| component.device.0).collect()
}

/// The hosts of the copies of each place, in rising order.
fn hosts_of_places(plan: &Plan, devices: &[DeviceSpace]) -> Vec<Vec<u128>> {
    let host = |id: DeviceId| devices.iter().find(|device| device.id == id).expect("known").host.0;
    let place = |(_, copies): (usize, &[layout::Component])| {
        let mut hosts: Vec<u128> = copies.iter().map(|copy| host(copy.device)).collect();
        hosts.sort_unstable();
        hosts
    };
    plan.layout.places().map(place).collect()
}

#[test]
fn a_disk_on_one_device_is_one_component() {
    let plan = planned("single", 10 * GIB + 512, &[device(1, 1, 100 * GIB)]).expect("a plan");
    let Layout::Component(component) = plan.layout else { panic!("{:?}", plan.layout) };
    assert_eq!((component.size, component.device), (10 * GIB + MIB, DeviceId(1)));
}

#[test]
fn automatic_stripes_take_different_groups_and_no_second_device_of_one() {
    let devices = [device(1, 1, GIB), device(2, 1, GIB), device(3, 2, GIB), device(4, 3, GIB)];
    let mut used = columns(&planned("single", GIB, &devices).expect("a plan"));
    used.sort_unstable();
    assert_eq!(used.len(), 3);
    assert!(used[0] <= 2);
    assert_eq!(&used[1..], [3, 4]);
    assert_eq!(columns(&planned("single", 4096, &devices).expect("a plan")).len(), 1, "one unit needs one");
}

#[test]
fn automatic_stripes_leave_out_a_device_that_is_nearly_full() {
    let devices = [device(1, 1, 100 * GIB), device(2, 2, GIB)];
    assert_eq!(columns(&planned("single", 50 * GIB, &devices).expect("a plan")), [1]);
    assert_eq!(columns(&planned("single", GIB, &devices).expect("a plan")), [1, 2], "it can hold its half");
}

/// A disk without redundancy was striped over every host of a cluster, so that the loss of any one of four hosts took it:
/// the probability of losing the disk was that of losing a host, times four, for a little more throughput.
#[test]
fn a_disk_without_redundancy_stands_on_one_host() {
    let hosts_of =
        |plan: &Plan| plan.layout.components().map(|(_, one)| one.device.0 / 10).collect::<BTreeSet<_>>();
    let devices = hosts(4, 2, 100 * GIB);
    for (text, size) in
        [("single", 10 * GIB), ("single", 600 * GIB), ("single,space_reservation=100", 150 * GIB)]
    {
        let plan = planned(text, size, &devices).expect("a plan");
        assert_eq!(hosts_of(&plan).len(), 1, "{text} of {size}: {:?}", plan.layout);
    }
    let forced = planned("default,force_provisioning=on", 10 * GIB, &with_domains(hosts(4, 1, GIB), 4));
    assert_eq!(hosts_of(&forced.expect("a plan")).len(), 1, "one copy is all that it gets");
    let asked = planned("single,stripes=4", 10 * GIB, &devices).expect("a plan");
    assert_eq!(hosts_of(&asked).len(), 4, "stripes that were asked for spread the load");
}

#[test]
fn a_disk_without_redundancy_uses_several_groups_of_its_host() {
    let devices: Vec<DeviceSpace> = (1..=3)
        .flat_map(|host| (1..=3).map(move |group| device_of(host, group, host * 10 + group, 100 * GIB)))
        .collect();
    let used = columns(&planned("single", 10 * GIB, &devices).expect("a plan"));
    assert_eq!(used.len(), 3);
    assert!(used.iter().all(|id| id / 10 == used[0] / 10), "{used:?}");
}

#[test]
fn a_disk_without_redundancy_takes_the_host_with_the_most_room_and_as_few_as_hold_it() {
    let mut devices = hosts(3, 1, 100 * GIB);
    devices[1].free_bytes = 90 * GIB;
    devices[2].free_bytes = 40 * GIB;
    assert_eq!(columns(&planned("single", 10 * GIB, &devices).expect("a plan")), [11]);
    devices[0].component_count = devices[0].component_count_max;
    assert_eq!(
        columns(&planned("single", 10 * GIB, &devices).expect("a plan")),
        [21],
        "the first takes none"
    );
    devices[0].component_count = 0;
    let mut used = columns(&planned("single,space_reservation=100", 150 * GIB, &devices).expect("a plan"));
    used.sort_unstable();
    used.dedup();
    assert_eq!(used, [11, 21], "no host holds it alone, and two do");
}

#[test]
fn a_large_disk_is_split_over_different_devices() {
    let devices = [device(1, 1, 1000 * GIB), device(2, 1, 1000 * GIB), device(3, 1, 1000 * GIB)];
    let plan = planned("single", 600 * GIB, &devices).expect("a plan");
    let mut used = columns(&plan);
    used.sort_unstable();
    assert_eq!(used, [1, 2, 3]);
    assert_eq!(plan.layout.size(), 600 * GIB);
}

#[test]
fn a_thin_disk_of_64_tib_fits_a_small_device() {
    let plan = planned("single", DISK_SIZE_MAX, &[device(1, 1, GIB)]).expect("a plan");
    assert_eq!(plan.layout.component_count(), 258);
    let four = planned("default,failures_to_tolerate=3", DISK_SIZE_MAX, &hosts(4, 1, GIB)).expect("a plan");
    assert_eq!((four.layout.place_count(), four.layout.component_count()), (258, 1032));
}

#[test]
fn explicit_stripes_stand_on_that_many_devices() {
    let devices = [device(1, 1, GIB), device(2, 1, GIB), device(3, 1, GIB)];
    let mut used = columns(&planned("single,stripes=3", GIB, &devices).expect("a plan"));
    used.sort_unstable();
    assert_eq!(used, [1, 2, 3]);
    let refusal = planned("single,stripes=4", GIB, &devices).expect_err("too few devices");
    assert_eq!(refusal.cause, Cause::Devices { stripes: 4, copies: 1, found: 3 });
    assert_eq!(refusal.rule(), Some("stripes"));
    assert_eq!(refusal.nearest, Some(Box::new(policy("single,stripes=3"))));
    assert!(refusal.hint().contains("--policy single,stripes=3"));
}

#[test]
fn copies_stand_on_as_many_hosts() {
    for (failures, count) in [(1, 2), (2, 3), (3, 4)] {
        let devices = hosts(count, 2, GIB);
        let text = format!("default,failures_to_tolerate={failures}");
        let plan = planned(&text, GIB, &devices).expect("a plan");
        let all: Vec<u128> = (1..=count).collect();
        assert_eq!(hosts_of_places(&plan, &devices), [all], "{text}");
    }
}

#[test]
fn automatic_stripes_of_mirrors_use_every_host_where_that_spreads_the_load() {
    let pairs = |count| {
        let devices = hosts(count, 1, 10 * GIB);
        let mut pairs = hosts_of_places(&planned("default", GIB, &devices).expect("a plan"), &devices);
        pairs.sort();
        pairs
    };
    assert_eq!(pairs(2), [[1, 2]], "no second column would help");
    assert_eq!(pairs(3), [[1, 2], [1, 3], [2, 3]]);
    assert_eq!(pairs(4).len(), 2, "each host has one component");
    assert_eq!(pairs(6).len(), 3);
    assert_eq!(pairs(12).len(), 4, "no replica is on more than four devices");
}

#[test]
fn copies_stand_in_different_fault_domains_and_a_refusal_names_those_there_are() {
    let devices = with_domains(hosts(4, 1, GIB), 2);
    let plan = planned("default", GIB, &devices).expect("a plan");
    for place in hosts_of_places(&plan, &devices) {
        assert!(place[0] <= 2 && place[1] > 2, "{place:?}");
    }
    let refusal =
        planned("default,failures_to_tolerate=2", GIB, &devices).expect_err("there are two domains");
    let text = refusal.to_string();
    assert!(text.contains("failures_to_tolerate=2 needs 3 fault domains"), "{text}");
    assert!(text.contains("there are 2: r1, r2"), "{text}");
    assert!(text.contains("/dev/sd11 of host h1 in fault domain r1: 1 GiB available"), "{text}");
    assert_eq!(refusal.nearest, Some(Box::new(policy("default"))));
}

#[test]
fn explicit_stripes_of_mirrors_share_no_device() {
    let devices = hosts(3, 2, GIB);
    let plan = planned("default,stripes=3", GIB, &devices).expect("a plan");
    let used: BTreeSet<u128> = columns(&plan).into_iter().collect();
    assert_eq!((plan.layout.place_count(), used.len()), (3, 6));
    let refusal = planned("default,stripes=4", GIB, &devices).expect_err("eight devices are needed");
    assert_eq!(refusal.cause, Cause::Devices { stripes: 4, copies: 2, found: 6 });
    assert!(refusal.to_string().contains("stripes=4 with 2 copies needs 8 different devices"), "{refusal}");
    assert_eq!(refusal.nearest, Some(Box::new(policy("default,stripes=3"))));
    let mut lopsided = hosts(2, 1, GIB);
    lopsided.extend((1..5).map(|id| device_of(1, 2, 100 + id, GIB)));
    let refusal = planned("default,stripes=2", GIB, &lopsided).expect_err("a host holds one copy");
    assert_eq!(refusal.cause, Cause::Devices { stripes: 2, copies: 2, found: 3 });
}

#[test]
fn the_default_policy_is_refused_on_one_host_and_the_way_out_is_named() {
    let refusal = planned("default", GIB, &[device(1, 1, GIB)]).expect_err("one host");
    assert_eq!(refusal.rule(), Some("failures_to_tolerate"));
    let text = refusal.to_string();
    assert!(
        text.contains("failures_to_tolerate=1 needs 2 hosts with devices in service; there is 1: h1"),
        "{text}"
    );
    assert!(text.contains("/dev/sd1: 1 GiB available"), "{text}");
    assert!(refusal.hint().ends_with("--policy single"), "{}", refusal.hint());
}

#[test]
fn forced_provisioning_weakens_one_step_at_a_time_and_says_what_it_owes() {
    let devices = [device(1, 1, GIB), device(2, 1, GIB)];
    let text = "default,stripes=4,space_reservation=90,force_provisioning=on";
    let forced = planned(text, 4 * GIB, &devices).expect("a plan");
    let debts: Vec<String> = forced.debts.iter().map(Debt::to_string).collect();
    assert_eq!(
        debts,
        [
            "failures_to_tolerate is 0, the policy asks for 1",
            "stripes is 2, the policy asks for 4",
            "space_reservation is 50, the policy asks for 90"
        ]
    );
    let policy = policy(text);
    let breaches = check(&planned_disk(&forced, &policy, 4 * GIB), &devices);
    assert_eq!(breaches.iter().map(Breach::to_string).collect::<Vec<_>>(), debts, "check sees the same debt");
}

#[test]
fn forced_provisioning_gives_up_stripes_and_reservations_before_copies() {
    let devices = hosts(2, 1, 10 * GIB);
    let text = "default,failures_to_tolerate=2,stripes=2,space_reservation=100,force_provisioning=on";
    let forced = planned(text, 20 * GIB, &devices).expect("a plan");
    let debts: Vec<String> = forced.debts.iter().map(Debt::to_string).collect();
    assert_eq!(
        debts,
        [
            "failures_to_tolerate is 1, the policy asks for 2",
            "stripes is 1, the policy asks for 2",
            "space_reservation is 50, the policy asks for 100"
        ]
    );
    assert_eq!(hosts_of_places(&forced, &devices), [[1, 2]]);
}

#[test]
fn a_reservation_that_does_not_fit_names_the_missing_bytes_and_the_share_that_fits() {
    let text = "single,space_reservation=100";
    let refusal = planned(text, 10 * GIB, &[device(1, 1, 4 * GIB)]).expect_err("too little");
    assert_eq!(refusal.rule(), Some("space_reservation"));
    assert!(refusal.missing_bytes() > 0);
    assert_eq!(refusal.nearest.as_ref().map(|nearest| nearest.space_reservation.get()), Some(40));
    assert!(refusal.to_string().contains("10 GiB"), "{refusal}");
}

#[test]
fn a_reservation_is_needed_for_every_copy() {
    let mut devices = hosts(3, 1, 10 * GIB);
    devices[2].reserved_bytes = 9 * GIB;
    let plan = planned("default,space_reservation=100", 10 * GIB, &devices).expect("a plan");
    let disk_policy = policy("default,space_reservation=100");
    assert_eq!(check_space(&placed(&plan.layout, &disk_policy, 10 * GIB), &devices), vec![]);
    let refusal = planned("default,failures_to_tolerate=2,space_reservation=100", 10 * GIB, &devices)
        .expect_err("21 GiB");
    assert_eq!(refusal.rule(), Some("space_reservation"));
    assert!(refusal.to_string().contains("space_reservation sets aside 30 GiB"), "{refusal}");
    assert_eq!(refusal.missing_bytes(), 10 * GIB, "two of the three copies have room");
    assert_eq!(
        refusal.nearest.as_ref().map(|nearest| (nearest.copies(), nearest.space_reservation.get())),
        Some((3, 10)),
        "a copy is worth more than a reservation"
    );
}

#[test]
fn a_reservation_too_large_for_one_device_is_spread_over_several() {
    let devices = [device(1, 1, 10 * GIB), device(2, 1, 10 * GIB)];
    let plan = planned("single,space_reservation=100", 15 * GIB, &devices).expect("a plan");
    assert_eq!(plan.layout.component_count(), 2);
}

#[test]
fn devices_out_of_service_and_full_ones_are_not_used() {
    let mut devices = [device(1, 1, GIB), device(2, 2, 0)];
    assert_eq!(columns(&planned("single", GIB, &devices).expect("a plan")), [1]);
    devices[0].in_service = false;
    assert_eq!(planned("single", GIB, &devices).expect_err("full").cause, Cause::Full);
    devices[1].in_service = false;
    let refusal = planned("single", GIB, &devices).expect_err("none");
    assert_eq!(refusal.cause, Cause::NoDevice);
    assert!(refusal.to_string().contains("/dev/sd1: out of service"), "{refusal}");
}

#[test]
fn a_device_takes_no_more_components_than_its_limit() {
    let mut devices = [device(1, 1, GIB)];
    devices[0].component_count = devices[0].component_count_max - 1;
    planned("single", GIB, &devices).expect("the last one");
    let refusal = planned("single", 300 * GIB, &devices).expect_err("no room for two");
    assert_eq!(refusal.cause, Cause::Components { needed: 2, found: 1 });
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for size in [0, 511, 513, DISK_SIZE_MAX + 512] {
        let refusal = planned("single", size, &[device(1, 1, GIB)]).expect_err("no size");
        assert_eq!(refusal.cause, Cause::Size { size });
    }
}

#[test]
fn one_seed_gives_one_plan_and_seeds_spread_equal_devices() {
    let devices: Vec<DeviceSpace> = (1..=7).map(|id| device(id, 1, GIB)).collect();
    let first = |seed| {
        let plan = plan(&Policy::SINGLE, GIB, &devices, &mut counting(), seed).expect("a plan");
        columns(&plan)[0]
    };
    let used: BTreeSet<u128> = (0..100).map(first).collect();
    assert_eq!(used.len(), 7);
    assert_eq!(first(5), first(5));
    let mut turned = devices.clone();
    turned.reverse();
    let other = plan(&Policy::SINGLE, GIB, &turned, &mut counting(), 5).expect("a plan");
    assert_eq!(columns(&other)[0], first(5), "the order of the list does not matter");
}

/// Whether any even split fits: counted from scratch.
///
/// With `c` columns a fault domain takes at most `c` components. The devices for explicit stripes are found by trying
/// every number of devices for each domain, the roomiest of it.
fn feasible(policy: &Policy, size: u64, devices: &[DeviceSpace]) -> bool {
    let copies = u64::from(policy.failures_to_tolerate) + 1;
    let mut domains: BTreeMap<(Option<&String>, u128), Vec<&DeviceSpace>> = BTreeMap::new();
    for device in devices.iter().filter(|d| d.in_service && d.free_bytes - d.reserved_bytes >= MIB) {
        let host = if device.fault_domain.is_some() { 0 } else { device.host.0 };
        domains.entry((device.fault_domain.as_ref(), host)).or_default().push(device);
    }
    let least = size.div_ceil(255 * GIB).max(1);
    let counts: Vec<u64> = match policy.stripes {
        Stripes::Auto => (least..=least.max(12)).collect(),
        Stripes::Exactly(n) => vec![least.div_ceil(u64::from(n)) * u64::from(n)],
    };
    counts.into_iter().any(|count| {
        let column = size.div_ceil(count).div_ceil(MIB) * MIB;
        let aside = (column * u64::from(policy.space_reservation.get())).div_ceil(100).div_ceil(MIB) * MIB;
        let holds = |d: &&DeviceSpace| {
            let by_space = (d.free_bytes - d.reserved_bytes).checked_div(aside).unwrap_or(u64::MAX);
            by_space.min(u64::from(d.component_count_max - d.component_count))
        };
        // For each domain, what its roomiest 0, 1, 2, … devices take.
        let takes = |members: &Vec<&DeviceSpace>| {
            let mut rooms: Vec<u64> = members.iter().map(holds).filter(|room| *room > 0).collect();
            rooms.sort_unstable_by(|a, b| b.cmp(a));
            let mut sums = vec![0u64];
            for room in rooms.into_iter().take(count as usize) {
                sums.push(sums.last().expect("never empty").saturating_add(room).min(count));
            }
            sums
        };
        let takes: Vec<Vec<u64>> = domains.values().map(takes).collect();
        let needed = count * copies;
        match policy.stripes {
            Stripes::Auto => {
                // The roomiest `count` devices of a domain take as much as all of them, or one component each.
                takes.iter().map(|sums| sums.last().expect("never empty")).sum::<u64>() >= needed
            }
            Stripes::Exactly(n) => {
                let mut best: BTreeMap<u64, u64> = BTreeMap::from([(0, 0)]);
                for sums in &takes {
                    let mut next: BTreeMap<u64, u64> = BTreeMap::new();
                    for (used, total) in &best {
                        for (more, sum) in sums.iter().enumerate() {
                            let entry = next.entry(used + more as u64).or_default();
                            *entry = (*entry).max(total + sum);
                        }
                    }
                    best = next;
                }
                best.get(&(u64::from(n) * copies)).is_some_and(|total| *total >= needed)
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn a_plan_passes_check_and_a_refusal_means_that_nothing_fits(
        (policy, size) in requests(), devices in clusters(), seed in any::<u64>(),
    ) {
        match plan(&policy, size, &devices, &mut counting(), seed) {
            Ok(found) => {
                let disk = planned_disk(&found, &policy, size);
                prop_assert_eq!(check_space(&disk, &devices), vec![]);
                let breaches: Vec<String> = check(&disk, &devices).iter().map(Breach::to_string).collect();
                let debts: Vec<String> = found.debts.iter().map(Debt::to_string).collect();
                prop_assert_eq!(breaches, debts);
                prop_assert_eq!(found.debts.is_empty(), feasible(&policy, size, &devices));
                prop_assert!(found.debts.is_empty() || policy.force_provisioning);
                let again = plan(&policy, size, &devices, &mut counting(), seed);
                prop_assert_eq!(again, Ok(found));
            }
            Err(refusal) => {
                prop_assert!(!feasible(&policy, size, &devices), "{refusal}");
                prop_assert_eq!(refusal.devices.len(), devices.len());
                if let Cause::Space { missing, needed } = refusal.cause {
                    prop_assert!(missing > 0 && missing <= needed);
                }
                if policy.force_provisioning {
                    prop_assert!(refusal.nearest.is_none(), "what could be forced was not");
                }
                if let Some(nearest) = refusal.nearest {
                    let again = plan(&nearest, size, &devices, &mut counting(), seed);
                    prop_assert!(again.is_ok_and(|plan| plan.debts.is_empty()), "{}", nearest.short());
                }
            }
        }
    }

    #[test]
    fn no_policy_that_keeps_more_than_the_nearest_one_fits(
        (policy, size) in requests(), devices in clusters(), seed in any::<u64>(),
    ) {
        let Err(Refusal { nearest: Some(nearest), .. }) = plan(&policy, size, &devices, &mut counting(), seed)
        else { return Ok(()) };
        let nearest = *nearest;
        let more_copies = Policy {
            failures_to_tolerate: nearest.failures_to_tolerate + 1,
            space_reservation: Percent::ZERO,
            stripes: if policy.stripes == Stripes::Auto { Stripes::Auto } else { Stripes::Exactly(1) },
            ..nearest
        };
        if nearest.failures_to_tolerate < policy.failures_to_tolerate {
            prop_assert!(!feasible(&more_copies, size, &devices));
        }
        if nearest.space_reservation < policy.space_reservation {
            let share = Percent::new(nearest.space_reservation.get() + 1).expect("it is below another");
            let greater = Policy { space_reservation: share, ..nearest };
            prop_assert!(!feasible(&greater, size, &devices));
        }
        if let (Stripes::Exactly(kept), Stripes::Exactly(wanted)) = (nearest.stripes, policy.stripes) {
            let more_stripes = Policy { stripes: Stripes::Exactly(kept + 1), ..nearest };
            prop_assert!(kept == wanted || !feasible(&more_stripes, size, &devices));
        }
    }
}

#[test]
fn parity_takes_the_widest_rows_that_there_are_fault_domains_for() {
    let shape = |text: &str, hosts_count: u128, size: u64| {
        let devices = hosts(hosts_count, 2, 100 * GIB);
        let plan = planned(text, size, &devices)?;
        let wanted = policy(text);
        assert_eq!(check(&planned_disk(&plan, &wanted, size), &devices), []);
        for hosts in hosts_of_places(&plan, &devices) {
            assert!(hosts.windows(2).all(|pair| pair[0] != pair[1]), "{hosts:?}");
        }
        let code = plan.layout.code().expect("rows");
        Ok::<_, Refusal>((code.data(), code.parity(), plan.layout.size()))
    };
    assert_eq!(shape("default,method=parity,stripes=1", 3, 4 * GIB).unwrap(), (2, 1, 4 * GIB));
    assert_eq!(shape("default,method=parity,stripes=1", 4, 3 * GIB).unwrap(), (3, 1, 3 * GIB));
    assert_eq!(
        shape("default,method=parity,stripes=1", 9, 3 * GIB + 512).unwrap(),
        (3, 1, 3 * GIB + 3 * MIB)
    );
    assert_eq!(
        shape("default,method=parity,failures_to_tolerate=2,stripes=1", 6, 4 * GIB).unwrap(),
        (4, 2, 4 * GIB)
    );
    let (data, ..) = shape("default,method=parity", 8, 10 * GIB).expect("wide enough");
    assert_eq!(data, 3);
    for (text, hosts, needed) in
        [("default,method=parity", 2, "3"), ("default,method=parity,failures_to_tolerate=2", 5, "6")]
    {
        let refusal = shape(text, hosts, GIB).expect_err("too few hosts").to_string();
        assert!(refusal.contains(needed), "{refusal}");
    }
    let refusal = shape("default,method=parity,failures_to_tolerate=3", 9, GIB).expect_err("no such rows");
    assert!(refusal.to_string().contains("failures_to_tolerate=1 or 2"), "{refusal}");
}

/// Rows of 64 KiB from equal components, whose sizes are whole MiB: the sizes of a disk and of its components follow from each other.
#[test]
fn a_disk_with_parity_grows_in_its_place() {
    let devices = hosts(4, 1, 4000 * GIB);
    let wanted = policy("default,method=parity,stripes=1");
    let plan = planned("default,method=parity,stripes=1", 3 * GIB, &devices).expect("a plan");
    let disk = planned_disk(&plan, &wanted, 3 * GIB);
    let grown = crate::extend(&disk, 6 * GIB, &devices, &mut counting(), 1).expect("there is room");
    assert_eq!((grown.size(), grown.place_count(), grown.component_count()), (6 * GIB, 1, 4));
    let beyond = crate::extend(&disk, 1000 * GIB, &devices, &mut crate::testing::counting_from(90), 1);
    let beyond = beyond.expect("there is room");
    assert!(beyond.size() >= 1000 * GIB);
    assert!((0..beyond.place_count()).all(|place| beyond.place_code(place).is_some()));
    assert!(beyond.validate().is_ok());
}

#[test]
fn fewer_failures_are_survived_when_units_of_a_row_share_a_host() {
    let mut devices = hosts(6, 1, 100 * GIB);
    let text = "default,method=parity,failures_to_tolerate=2,stripes=1";
    let plan = planned(text, GIB, &devices).expect("a plan");
    devices[0].host = devices[1].host;
    let wanted = policy(text);
    let breaches = check(&planned_disk(&plan, &wanted, GIB), &devices);
    assert!(breaches.contains(&Breach::Failures { wanted: 2, found: 1 }), "{breaches:?}");
    let mirror = policy("default");
    let breaches = check(&planned_disk(&plan, &mirror, GIB), &devices);
    assert!(breaches.contains(&Breach::Method { wanted: "mirror", found: "parity" }), "{breaches:?}");
}
