//! Plans against `check`, refusals against a feasibility test of their own, and what the design promises by name.

use super::*;
use crate::check::{check, check_space};
use base::units::{GIB, MIB};
use base::{DeviceId, GroupId, HostId};
use proptest::prelude::*;

fn device(id: u128, group: u128, free: u64) -> DeviceSpace {
    DeviceSpace {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        host: HostId(1),
        group: GroupId(group),
        capacity_bytes: free,
        free_bytes: free,
        reserved_bytes: 0,
        component_count: 0,
        component_count_max: 4096,
        in_service: true,
    }
}

fn counting() -> impl FnMut() -> ComponentId {
    let mut next = 0;
    move || {
        next += 1;
        ComponentId(next)
    }
}

fn planned(policy: &str, size: u64, devices: &[DeviceSpace]) -> Result<Plan, Refusal> {
    plan(&policy.parse().expect("a policy"), size, devices, &mut counting(), 1)
}

/// The device of every component, in order.
fn columns(plan: &Plan) -> Vec<u128> {
    plan.layout.components().map(|(_, component)| component.device.0).collect()
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
}

#[test]
fn explicit_stripes_stand_on_that_many_devices() {
    let devices = [device(1, 1, GIB), device(2, 1, GIB), device(3, 1, GIB)];
    let mut used = columns(&planned("single,stripes=3", GIB, &devices).expect("a plan"));
    used.sort_unstable();
    assert_eq!(used, [1, 2, 3]);
    let refusal = planned("single,stripes=4", GIB, &devices).expect_err("too few devices");
    assert_eq!(refusal.cause, Cause::Devices { needed: 4, found: 3 });
    assert_eq!(refusal.rule(), Some("stripes"));
    assert_eq!(refusal.nearest, Some("single,stripes=3".parse().expect("a policy")));
    assert!(refusal.hint().contains("--policy single,stripes=3"));
}

#[test]
fn the_default_policy_is_refused_on_one_host_and_the_way_out_is_named() {
    let refusal = planned("default", GIB, &[device(1, 1, GIB)]).expect_err("one host");
    assert_eq!(refusal.rule(), Some("failures_to_tolerate"));
    let text = refusal.to_string();
    assert!(text.contains("failures_to_tolerate=1 needs 3 hosts"), "{text}");
    assert!(text.contains("/dev/sd1: 1 GiB available"), "{text}");
    assert!(refusal.hint().ends_with("--policy single"), "{}", refusal.hint());
}

#[test]
fn forced_provisioning_weakens_one_step_at_a_time_and_says_what_it_owes() {
    let devices = [device(1, 1, GIB), device(2, 1, GIB)];
    let plan = planned("default,stripes=4,force_provisioning=on", GIB, &devices).expect("a plan");
    let debts: Vec<String> = plan.debts.iter().map(Debt::to_string).collect();
    assert_eq!(
        debts,
        ["failures_to_tolerate is 0, the policy asks for 1", "stripes is 2, the policy asks for 4"]
    );
    let policy: Policy = "default,stripes=4,force_provisioning=on".parse().expect("a policy");
    assert_eq!(check(&plan.layout, &policy, GIB, &devices).len(), 2, "check sees the same debt");
}

#[test]
fn a_reservation_that_does_not_fit_names_the_missing_bytes_and_the_share_that_fits() {
    let policy = "single,space_reservation=100,force_provisioning=on";
    let refusal = planned(policy, 10 * GIB, &[device(1, 1, 4 * GIB)]).expect_err("too little");
    assert_eq!(refusal.rule(), Some("space_reservation"));
    assert!(refusal.missing_bytes() > 0);
    assert_eq!(refusal.nearest.map(|nearest| nearest.space_reservation.get()), Some(40));
    assert!(refusal.to_string().contains("10 GiB"), "{refusal}");
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

fn device_lists() -> impl Strategy<Value = Vec<DeviceSpace>> {
    let one = (1u128..4, 0u64..2000, 0u64..2000, 0u32..3, 0u8..8);
    prop::collection::vec(one, 0..10).prop_map(|specs| {
        let build =
            |(index, (group, free, reserved, near_limit, service)): (usize, (u128, u64, u64, u32, u8))| {
                let mut device = device(index as u128 + 1, group, free * GIB);
                device.reserved_bytes = reserved.min(free) * GIB / 2;
                device.component_count = if near_limit == 0 { device.component_count_max - 2 } else { 0 };
                device.in_service = service > 0;
                device
            };
        specs.into_iter().enumerate().map(build).collect()
    })
}

fn requests() -> impl Strategy<Value = (Policy, u64)> {
    let size = prop_oneof![1u64..4096, 1u64..(2 << 21), 1u64..(DISK_SIZE_MAX / 512)].prop_map(|s| s * 512);
    (0u8..=12, 0u8..=100, 0u8..=2, any::<bool>(), any::<bool>(), size).prop_map(
        |(stripes, share, failures, thin, force, size)| {
            let mut policy = Policy { force_provisioning: force, ..Policy::SINGLE };
            policy.failures_to_tolerate = if force { failures } else { failures / 2 };
            policy.stripes = if stripes == 0 { Stripes::Auto } else { Stripes::Exactly(stripes) };
            policy.space_reservation = Percent::new(if thin { 0 } else { share }).expect("at most 100");
            (policy, size)
        },
    )
}

/// Whether any even split fits: counted from scratch.
fn feasible(policy: &Policy, size: u64, devices: &[DeviceSpace]) -> bool {
    let usable: Vec<&DeviceSpace> =
        devices.iter().filter(|d| d.in_service && d.free_bytes - d.reserved_bytes >= MIB).collect();
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
        let mut rooms: Vec<u64> = usable.iter().map(holds).filter(|room| *room > 0).collect();
        rooms.sort_unstable_by(|a, b| b.cmp(a));
        if let Stripes::Exactly(n) = policy.stripes {
            if rooms.len() < usize::from(n) {
                return false;
            }
            rooms.truncate(usize::from(n));
        }
        rooms.iter().fold(0u64, |sum, room| sum.saturating_add(*room)) >= count
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_plan_passes_check_and_a_refusal_means_that_nothing_fits(
        (policy, size) in requests(), devices in device_lists(), seed in any::<u64>(),
    ) {
        match plan(&policy, size, &devices, &mut counting(), seed) {
            Ok(plan) => {
                prop_assert_eq!(check_space(&plan.layout, &policy, &devices), vec![]);
                let breaches = check(&plan.layout, &policy, size, &devices);
                prop_assert_eq!(breaches.len(), plan.debts.len(), "{:?} {:?}", breaches, plan.debts);
                prop_assert!(plan.debts.is_empty() || policy.force_provisioning);
                prop_assert!(policy.failures_to_tolerate == 0 || policy.force_provisioning);
            }
            Err(refusal) => {
                let possible = policy.failures_to_tolerate == 0 && feasible(&policy, size, &devices);
                prop_assert!(!possible, "{refusal}");
                prop_assert_eq!(refusal.devices.len(), devices.len());
                if let Cause::Space { missing, needed } = refusal.cause {
                    prop_assert!(missing > 0 && missing <= needed);
                }
                if let Some(nearest) = refusal.nearest {
                    let again = plan(&nearest, size, &devices, &mut counting(), seed);
                    prop_assert!(again.is_ok_and(|plan| plan.debts.is_empty()), "{}", nearest.short());
                }
            }
        }
    }
}
