//! Growing and shrinking against the mapping: what remains stays where it was.

use super::*;
use crate::check::check;
use crate::plan::plan;
use crate::testing::{counting, hosts, placed, policy};
use base::Random;
use base::units::{BLOCK_SIZE, GIB, MIB};
use proptest::prelude::*;

fn devices(count: u128, free: u64) -> Vec<DeviceSpace> {
    hosts(1, count, free)
}

/// Component ids and offset of the block at `offset`.
fn place(layout: &Layout, offset: u64) -> (Vec<u64>, u64) {
    let mut found = Vec::new();
    layout.map(offset, BLOCK_SIZE, &mut |span| found.push(span));
    assert_eq!(found.len(), 1);
    let copies = layout.place(found[0].place).expect("it exists");
    (copies.iter().map(|copy| copy.id.0).collect(), found[0].offset)
}

fn grown(
    layout: &Layout,
    policy: &Policy,
    size: u64,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
) -> Result<Layout, Refusal> {
    extend(&placed(layout, policy, layout.size()), size, devices, ids, 1)
}

fn assert_frozen(before: &Layout, after: &Layout, seed: u64) {
    let common = before.size().min(after.size()) / BLOCK_SIZE;
    let mut random = Random::new(seed);
    let samples = (0..200).map(|_| random.below(common)).chain([0, common - 1]);
    for block in samples {
        assert_eq!(place(before, block * BLOCK_SIZE), place(after, block * BLOCK_SIZE), "block {block}");
    }
}

#[test]
fn a_disk_grows_in_its_components_and_then_by_a_new_part() {
    let devices = devices(1, 1000 * GIB);
    let mut ids = counting();
    let small = plan(&Policy::SINGLE, GIB, &devices, &mut ids, 1).expect("a plan").layout;
    let larger = grown(&small, &Policy::SINGLE, 255 * GIB, &devices, &mut ids).expect("it grows");
    assert_eq!(larger.component_count(), 1);
    let huge = grown(&larger, &Policy::SINGLE, 600 * GIB + 512, &devices, &mut ids).expect("it grows");
    assert_eq!(huge.children().len(), 2);
    assert_eq!(huge.size(), 600 * GIB + 2 * MIB);
    assert_frozen(&small, &huge, 1);
    assert_eq!(shrink(&huge, 255 * GIB), larger);
    assert_eq!(shrink(&huge, GIB), small);
}

/// The new part of a disk that has grown went to whichever host had the most room: a disk without redundancy then stood on
/// two hosts, and the loss of either took it.
#[test]
fn a_disk_without_redundancy_grows_on_its_host_while_that_has_room() {
    let mut ids = counting();
    let hosts_of = |layout: &Layout| -> std::collections::BTreeSet<u128> {
        layout.components().map(|(_, one)| one.device.0 / 10).collect()
    };
    let mut devices = hosts(3, 2, 1000 * GIB);
    let small = plan(&Policy::SINGLE, 250 * GIB, &devices, &mut ids, 1).expect("a plan").layout;
    let home = *hosts_of(&small).first().expect("it stands somewhere");
    devices.iter_mut().filter(|one| one.host.0 == home).for_each(|one| one.free_bytes = 600 * GIB);
    let larger = grown(&small, &Policy::SINGLE, 600 * GIB, &devices, &mut ids).expect("it grows");
    assert_eq!(hosts_of(&larger), [home].into());
    assert_frozen(&small, &larger, 1);
    devices.iter_mut().filter(|one| one.host.0 == home).for_each(|one| one.free_bytes = 40 * GIB);
    let spread = grown(&small, &Policy::SINGLE, 600 * GIB, &devices, &mut ids).expect("it grows");
    assert_eq!(hosts_of(&spread).len(), 2, "its host would be full soon, and one other holds the rest");
}

#[test]
fn all_copies_of_a_mirror_grow_and_a_new_part_is_mirrored_too() {
    let devices = hosts(3, 1, 1000 * GIB);
    let mut ids = counting();
    let small = plan(&Policy::DEFAULT, GIB, &devices, &mut ids, 1).expect("a plan").layout;
    let larger = grown(&small, &Policy::DEFAULT, 700 * GIB, &devices, &mut ids).expect("it grows");
    assert_eq!((larger.place_count(), larger.component_count()), (3, 6), "the columns have room");
    let huge = grown(&larger, &Policy::DEFAULT, 900 * GIB, &devices, &mut ids).expect("it grows");
    assert_eq!(huge.children().len(), 2);
    assert!(huge.places().all(|(_, copies)| copies.len() == 2));
    assert_eq!(check(&placed(&huge, &Policy::DEFAULT, 900 * GIB), &devices), vec![]);
    assert_frozen(&small, &huge, 1);
    assert_eq!(shrink(&huge, 700 * GIB), larger);
    assert_eq!(shrink(&huge, GIB), small);
}

#[test]
fn a_reservation_must_fit_before_a_disk_grows() {
    let policy = policy("single,space_reservation=100");
    let mut ids = counting();
    let mut devices = devices(1, 3 * GIB);
    let layout = plan(&policy, 2 * GIB, &devices, &mut ids, 1).expect("a plan").layout;
    devices[0].reserved_bytes = 2 * GIB;
    grown(&layout, &policy, 3 * GIB, &devices, &mut ids).expect("the third one is free");
    let refusal = grown(&layout, &policy, 4 * GIB, &devices, &mut ids).expect_err("the fourth is not there");
    assert_eq!(refusal.cause, Cause::Space { needed: 2 * GIB, missing: GIB });
}

#[test]
fn a_reservation_is_kept_where_growth_is_forced() {
    let forced = policy("single,space_reservation=10,force_provisioning=on");
    let mut ids = counting();
    let mut devices = devices(1, 30 * GIB);
    let layout = plan(&forced, 200 * GIB, &devices, &mut ids, 1).expect("a plan").layout;
    devices[0].reserved_bytes = 20 * GIB;
    let refusal = grown(&layout, &forced, 400 * GIB, &devices, &mut ids).expect_err("20 GiB are needed");
    assert_eq!(refusal.rule(), Some("space_reservation"));
    let larger = grown(&layout, &forced, 300 * GIB, &devices, &mut ids).expect("10 GiB are there");
    assert_eq!(check(&placed(&larger, &forced, 300 * GIB), &devices), vec![]);
}

#[test]
fn a_size_beyond_the_greatest_is_refused() {
    let devices = devices(1, GIB);
    let layout = plan(&Policy::SINGLE, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    for size in [GIB + 1, DISK_SIZE_MAX + 512] {
        let refusal = grown(&layout, &Policy::SINGLE, size, &devices, &mut counting());
        assert_eq!(refusal.expect_err("no size").cause, Cause::Size { size });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_block_moves_whatever_sizes_a_disk_goes_through(
        sizes in prop::collection::vec(1u64..(2000 << 21), 1..8),
        (host_count, each) in (1u128..5, 1u128..4),
        failures_to_tolerate in 0u8..4,
        stripes in 0u8..3,
        seed in any::<u64>(),
    ) {
        let devices = hosts(host_count, each, 4000 * GIB);
        let failures_to_tolerate = failures_to_tolerate.min(host_count as u8 - 1);
        let mut policy = Policy { failures_to_tolerate, ..Policy::SINGLE };
        if (1..=each).contains(&u128::from(stripes)) {
            policy.stripes = crate::policy::Stripes::Exactly(stripes);
        }
        let mut ids = counting();
        let mut layout = plan(&policy, sizes[0] * 512, &devices, &mut ids, seed).expect("a plan").layout;
        for size in sizes {
            let size = size * 512;
            let disk = placed(&layout, &policy, layout.size());
            let next = match size > layout.size() {
                true => extend(&disk, size, &devices, &mut ids, seed).expect("it is thin"),
                false => shrink(&layout, size),
            };
            assert_frozen(&layout, &next, seed);
            prop_assert_eq!(check(&placed(&next, &policy, size), &devices), vec![]);
            layout = next;
        }
    }
}

#[test]
fn a_larger_share_is_set_aside_only_where_there_is_room() {
    let devices = hosts(2, 1, 100 * GIB);
    let default = policy("default,stripes=1");
    let plan = plan(&default, 80 * GIB, &devices, &mut counting(), 1).expect("it fits");
    let disk = placed(&plan.layout, &default, 80 * GIB);
    let share = |percent| Percent::new(percent).expect("at most 100");
    assert_eq!(check_reservation(&disk, share(100), &devices), Ok(()));
    let mut fuller = devices.clone();
    fuller[0].free_bytes = 50 * GIB;
    assert_eq!(check_reservation(&disk, share(50), &fuller), Ok(()));
    assert_eq!(
        check_reservation(&disk, share(100), &fuller),
        Err(Cause::Space { needed: 160 * GIB, missing: 30 * GIB })
    );
}
