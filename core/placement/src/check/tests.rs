//! Each rule broken on purpose, and what is no breach.

use super::*;
use crate::explain::explain;
use crate::plan::plan;
use crate::policy::{Percent, Policy};
use crate::testing::{counting, hosts, placed, policy, with_domains};
use base::units::{GIB, MIB};

fn component(id: u64, device: u128) -> Component {
    Component { id: ComponentId(id), device: DeviceId(device), size: GIB, position: 0 }
}

fn mirror(copies: &[(u64, u128)]) -> Layout {
    Layout::of_copies(copies.iter().map(|(id, device)| component(*id, *device)).collect())
}

fn stripe(columns: &[&[(u64, u128)]]) -> Layout {
    layout::striping::stripe(columns.iter().map(|copies| mirror(copies)).collect())
}

fn check_texts(layout: &Layout, text: &str, devices: &[DeviceSpace], expected: &[&str]) {
    let policy = policy(text);
    let breaches = check(&placed(layout, &policy, layout.size()), devices);
    assert_eq!(breaches.iter().map(Breach::to_string).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn copies_in_one_host_or_fault_domain_are_found() {
    let layout = mirror(&[(1, 11), (2, 12)]);
    let shared = |domain: &str| {
        format!(
            "components {} and {} are copies of each other and both stand in fault domain {domain}",
            ComponentId(1),
            ComponentId(2)
        )
    };
    let failures = "failures_to_tolerate is 0, the policy asks for 1";
    check_texts(&layout, "default", &hosts(2, 2, GIB), &[&shared("h1"), failures]);
    let racks = with_domains(hosts(4, 1, GIB), 2);
    check_texts(&mirror(&[(1, 11), (2, 21)]), "default", &racks, &[&shared("r1"), failures]);
    check_texts(&mirror(&[(1, 11), (2, 31)]), "default", &racks, &[]);
}

#[test]
fn the_place_with_the_fewest_copies_counts() {
    let layout = stripe(&[&[(1, 11), (2, 21), (3, 31)], &[(4, 11), (5, 21)]]);
    let devices = hosts(3, 1, GIB);
    check_texts(&layout, "default", &devices, &[]);
    check_texts(
        &layout,
        "default,failures_to_tolerate=2",
        &devices,
        &["failures_to_tolerate is 1, the policy asks for 2"],
    );
}

#[test]
fn explicit_stripes_take_devices_of_their_own_for_each_replica() {
    let devices = hosts(3, 2, GIB);
    let text = "default,stripes=2";
    check_texts(&stripe(&[&[(1, 11), (2, 21)], &[(3, 12), (4, 31)]]), text, &devices, &[]);
    let one_shared = stripe(&[&[(1, 11), (2, 21)], &[(3, 11), (4, 31)]]);
    check_texts(&one_shared, text, &devices, &["stripes is 1, the policy asks for 2"]);
    check_texts(
        &stripe(&[&[(1, 11), (2, 21)], &[(3, 12), (4, 31)]]),
        "default,stripes=1",
        &devices,
        &["stripes is 2, the policy asks for 1"],
    );
    let being_replaced = stripe(&[&[(1, 11), (2, 21)], &[(3, 12), (4, 31), (5, 22)]]);
    check_texts(&being_replaced, text, &devices, &[]);
    check_texts(
        &stripe(&[&[(1, 11), (2, 21)], &[(3, 12)]]),
        text,
        &devices,
        &["failures_to_tolerate is 0, the policy asks for 1"],
    );
}

#[test]
fn a_reservation_that_was_not_kept_is_found() {
    let layout = mirror(&[(1, 11), (2, 21)]);
    let policy = policy("default,space_reservation=50");
    let share = Percent::new(20).expect("at most 100");
    let disk = PlacedDisk { space_reservation: share, ..placed(&layout, &policy, GIB) };
    assert_eq!(check(&disk, &hosts(2, 1, GIB)), vec![Breach::Reservation { wanted: 50, found: 20 }]);
}

#[test]
fn devices_that_are_gone_and_sizes_that_do_not_fit_are_found() {
    let layout = mirror(&[(1, 11), (2, 21)]);
    let mut devices = hosts(2, 1, GIB);
    devices[0].in_service = false;
    let policy = policy("default");
    let out = Breach::OutOfService { component: ComponentId(1), device: "/dev/sd11".to_owned() };
    assert_eq!(check(&placed(&layout, &policy, GIB), &devices), vec![out]);
    let unknown = Breach::UnknownDevice { component: ComponentId(2), device: DeviceId(21) };
    devices[0].in_service = true;
    assert_eq!(check(&placed(&layout, &policy, GIB), &devices[..1]), vec![unknown]);
    let size = GIB + 512;
    assert_eq!(check(&placed(&layout, &policy, size), &devices), vec![Breach::Size { size, found: GIB }]);
    assert_eq!(check(&placed(&layout, &policy, GIB - MIB), &devices), vec![], "it became smaller");
    let invalid = mirror(&[(1, 11), (1, 21)]);
    let twice = Invalid::ComponentTwice { id: ComponentId(1) };
    assert_eq!(check(&placed(&invalid, &policy, GIB), &devices), vec![Breach::Invalid(twice)]);
}

/// The lines that explain a disk, and its plan.
fn explained(text: &str, size: u64, devices: &[DeviceSpace]) -> Vec<String> {
    let policy: Policy = policy(text);
    let made = plan(&policy, size, devices, &mut counting(), 1).expect("a plan");
    explain(
        &PlacedDisk { space_reservation: made.space_reservation, ..placed(&made.layout, &policy, size) },
        devices,
    )
}

#[test]
fn a_mirror_is_explained_with_its_copies_and_fault_domains() {
    assert_eq!(
        explained("default", GIB, &hosts(3, 1, 10 * GIB)),
        [
            "2 copies: the policy says failures_to_tolerate=1",
            "no two copies of a block stand in one host, so that one failure takes at most one: h1, h2, h3",
            "3 columns of 2 copies of 342 MiB on 3 devices, striped in units of 1 MiB: stripes=auto takes up to 4 \
             devices of different hosts or groups with comparable room for each copy, as far as that spreads the \
             load, and there are now 3 such groups",
            "thin: no space is set aside; an extent is taken when it is first written",
        ]
    );
    assert_eq!(
        explained("default,stripes=1,space_reservation=50", GIB, &with_domains(hosts(4, 1, 10 * GIB), 2))
            [1..],
        [
            "no two copies of a block stand in one fault domain, so that one failure takes at most one: r1, r2",
            "2 copies of 1 GiB on 2 devices: the policy says stripes=1",
            "1 GiB set aside: the policy says space_reservation=50 of 1 GiB for each copy",
        ]
    );
}

#[test]
fn a_forced_disk_is_explained_with_its_debts() {
    let text = "default,failures_to_tolerate=2,space_reservation=100,force_provisioning=on";
    assert_eq!(
        explained(text, 20 * GIB, &hosts(2, 1, 10 * GIB)),
        [
            "2 copies: the policy says failures_to_tolerate=2, and force_provisioning=on lets the disk be without it \
             until there are hosts for more",
            "no two copies of a block stand in one host, so that one failure takes at most one: h1, h2",
            "2 copies of 20 GiB on 2 devices: stripes=auto takes up to 4 devices of different hosts or groups with \
             comparable room for each copy, as far as that spreads the load, and there are now 2 such groups",
            "20 GiB set aside: space_reservation=50 of 20 GiB for each copy",
            "debt: failures_to_tolerate is 1, the policy asks for 2",
            "debt: space_reservation is 50, the policy asks for 100",
        ]
    );
}

#[test]
fn copies_that_fail_together_are_not_said_to_stand_apart() {
    let layout = mirror(&[(1, 11), (2, 12)]);
    let lines = explain(&placed(&layout, &Policy::DEFAULT, GIB), &hosts(2, 2, GIB));
    assert!(lines.iter().any(|line| line.starts_with("debt: components")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("no two copies")), "{lines:?}");
}
