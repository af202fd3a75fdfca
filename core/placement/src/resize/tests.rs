//! Growing and shrinking against the mapping: what remains stays where it was.

use super::*;
use crate::check::check;
use base::units::{BLOCK_SIZE, GIB, MIB};
use base::{DeviceId, GroupId, HostId, Random};
use proptest::prelude::*;

fn devices(count: u128, free: u64) -> Vec<DeviceSpace> {
    let device = |id: u128| DeviceSpace {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        host: HostId(1),
        group: GroupId(id % 2),
        capacity_bytes: free,
        free_bytes: free,
        reserved_bytes: 0,
        component_count: 0,
        component_count_max: 4096,
        in_service: true,
    };
    (1..=count).map(device).collect()
}

fn counting() -> impl FnMut() -> ComponentId {
    let mut next = 0;
    move || {
        next += 1;
        ComponentId(next)
    }
}

/// Component id and offset of the block at `offset`.
fn place(layout: &Layout, offset: u64) -> (u64, u64) {
    let mut found = Vec::new();
    layout.map(offset, BLOCK_SIZE, &mut |span| found.push(span));
    assert_eq!(found.len(), 1);
    (layout.component(found[0].place).expect("it exists").id.0, found[0].offset)
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
    let larger = extend(&small, &Policy::SINGLE, 255 * GIB, &devices, &mut ids, 1).expect("it grows");
    assert_eq!(larger.component_count(), 1);
    let huge = extend(&larger, &Policy::SINGLE, 600 * GIB + 512, &devices, &mut ids, 1).expect("it grows");
    assert_eq!(huge.children().len(), 2);
    assert_eq!(huge.size(), 600 * GIB + 2 * MIB);
    assert_frozen(&small, &huge, 1);
    assert_eq!(shrink(&huge, 255 * GIB), larger);
    assert_eq!(shrink(&huge, GIB), small);
}

#[test]
fn a_reservation_must_fit_before_a_disk_grows() {
    let policy: Policy = "single,space_reservation=100".parse().expect("a policy");
    let mut ids = counting();
    let mut devices = devices(1, 3 * GIB);
    let layout = plan(&policy, 2 * GIB, &devices, &mut ids, 1).expect("a plan").layout;
    devices[0].reserved_bytes = 2 * GIB;
    extend(&layout, &policy, 3 * GIB, &devices, &mut ids, 1).expect("the third one is free");
    let refusal =
        extend(&layout, &policy, 4 * GIB, &devices, &mut ids, 1).expect_err("the fourth is not there");
    assert_eq!(refusal.cause, Cause::Space { needed: 2 * GIB, missing: GIB });
}

#[test]
fn a_size_beyond_the_greatest_is_refused() {
    let devices = devices(1, GIB);
    let layout = plan(&Policy::SINGLE, GIB, &devices, &mut counting(), 1).expect("a plan").layout;
    for size in [GIB + 1, DISK_SIZE_MAX + 512] {
        let refusal = extend(&layout, &Policy::SINGLE, size, &devices, &mut counting(), 1);
        assert_eq!(refusal.expect_err("no size").cause, Cause::Size { size });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_block_moves_whatever_sizes_a_disk_goes_through(
        sizes in prop::collection::vec(1u64..(2000 << 21), 1..8),
        count in 1u128..5,
        stripes in 0u8..3,
        seed in any::<u64>(),
    ) {
        let devices = devices(count, 4000 * GIB);
        let mut policy = Policy::SINGLE;
        if (1..=count).contains(&u128::from(stripes)) {
            policy.stripes = crate::policy::Stripes::Exactly(stripes);
        }
        let mut ids = counting();
        let mut layout = plan(&policy, sizes[0] * 512, &devices, &mut ids, seed).expect("a plan").layout;
        for size in sizes {
            let size = size * 512;
            let next = match size > layout.size() {
                true => extend(&layout, &policy, size, &devices, &mut ids, seed).expect("it is thin"),
                false => shrink(&layout, size),
            };
            assert_frozen(&layout, &next, seed);
            prop_assert_eq!(check(&next, &policy, size, &devices), vec![]);
            layout = next;
        }
    }
}
