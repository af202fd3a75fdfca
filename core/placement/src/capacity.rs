//! What disks of a policy can still take of a cluster.
//!
//! Thin disks may be of any size: what counts is what they hold once all of them is written.

use crate::device::{DeviceSpace, FaultDomain};
use crate::plan::{attempt, shape_of};
use crate::policy::{Percent, Policy};
use crate::refusal::Refusal;
use base::units::{DISK_SIZE_MAX, EXTENT_SIZE};
use std::collections::BTreeMap;

/// What disks of a policy can take of a cluster, in bytes of disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// All that devices in service could hold if they were empty.
    pub total_bytes: u64,
    /// What they can hold besides what is there and what is promised. Several disks may come up to that; what one can is `largest_bytes`.
    pub available_bytes: u64,
    /// The largest disk that fits when all of it is written.
    pub largest_bytes: u64,
    /// Components that a byte of a disk is kept in, of which `data` hold it: 2 of 1 for a mirror, 4 of 3 for RAID-5 in four hosts.
    pub components: u64,
    /// See `components`.
    pub data: u64,
}

/// What disks of a policy can take of these devices. The same arguments give the same answer.
///
/// # Errors
/// What stands in the way of any disk of this policy, as [`plan`](crate::plan) says it.
pub fn capacity(policy: &Policy, devices: &[DeviceSpace], seed: u64) -> Result<Capacity, Refusal> {
    let whole = Percent::new(100).expect("all is a share");
    let filled = Policy { space_reservation: whole, force_provisioning: false, ..*policy };
    let shape = shape_of(&filled, devices, seed).map_err(|cause| Refusal::new(cause, devices, None))?;
    let (components, data) = (shape.components() as u64, shape.data());
    let held = |bytes: fn(&DeviceSpace) -> u64| data * in_each(&by_domain(devices, bytes), components);
    let available_bytes = held(DeviceSpace::available_bytes);
    let fits = |extents: u64| attempt(&filled, extents * EXTENT_SIZE, devices, seed).is_ok();
    let most = available_bytes.min(DISK_SIZE_MAX) / EXTENT_SIZE;
    Ok(Capacity {
        total_bytes: held(|device| device.capacity_bytes),
        available_bytes,
        largest_bytes: largest(most, fits) * EXTENT_SIZE,
        components,
        data,
    })
}

/// The largest number up to `most` that fits, where what is smaller than one that fits does, too.
fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut good, mut bad) = (0, most + 1);
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        match fits(middle) {
            true => good = middle,
            false => bad = middle,
        }
    }
    good
}

/// The bytes of devices in service in each fault domain.
fn by_domain(devices: &[DeviceSpace], bytes: fn(&DeviceSpace) -> u64) -> Vec<u64> {
    let mut domains: BTreeMap<FaultDomain<'_>, u64> = BTreeMap::new();
    for device in devices.iter().filter(|device| device.in_service) {
        *domains.entry(device.domain()).or_default() += bytes(device);
    }
    domains.into_values().collect()
}

/// How many bytes each of `count` components can have that stand in different domains, if all is cut finely: the domains with more than that have that, and all
/// others are full.
fn in_each(domains: &[u64], count: u64) -> u64 {
    let mut rest = domains.to_vec();
    rest.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum: u128 = rest.iter().map(|bytes| u128::from(*bytes)).sum();
    let mut least = u128::MAX;
    // The largest one after the other counts as one that has a component of each byte.
    for (taken, bytes) in (0..count).zip(rest.iter().map(Some).chain(std::iter::repeat(None))) {
        least = least.min(sum / u128::from(count - taken));
        sum -= bytes.map_or(0, |bytes| u128::from(*bytes));
    }
    u64::try_from(least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;
    use crate::testing::{counting, device_of, hosts, policy, with_domains};
    use base::units::GIB;

    fn of(text: &str, devices: &[DeviceSpace]) -> Capacity {
        capacity(&policy(text), devices, 1).expect("it can be kept")
    }

    #[test]
    fn copies_and_rows_take_their_share_of_each_domain() {
        let four = hosts(4, 2, 100 * GIB);
        for (text, available, components, data) in [
            ("single", 800, 1, 1),
            ("default", 400, 2, 1),
            ("failures_to_tolerate=2", 266, 3, 1),
            ("method=parity,failures_to_tolerate=1", 600, 4, 3),
        ] {
            let found = of(text, &four);
            assert_eq!(
                (found.available_bytes / GIB, found.components, found.data),
                (available, components, data),
                "{text}"
            );
            assert_eq!(found.total_bytes, found.available_bytes, "nothing is used");
        }
        // Two racks have one copy each.
        assert_eq!(of("default", &with_domains(four, 2)).available_bytes / GIB, 400);
    }

    #[test]
    fn a_large_host_counts_only_as_far_as_others_have_the_second_copy() {
        let devices = [(1, 1000), (2, 100), (3, 50)].map(|(host, gib)| device_of(host, 1, host, gib * GIB));
        assert_eq!(of("default", &devices).available_bytes, 150 * GIB);
        assert_eq!(of("failures_to_tolerate=2", &devices).available_bytes, 50 * GIB);
        let mut used = devices.clone();
        (used[1].free_bytes, used[2].reserved_bytes) = (40 * GIB, 20 * GIB);
        let found = of("default", &used);
        assert_eq!((found.total_bytes, found.available_bytes), (150 * GIB, 70 * GIB));
    }

    #[test]
    fn the_largest_disk_is_planned_and_one_that_is_larger_is_not() {
        for (text, devices) in [
            ("default", hosts(3, 2, 10 * GIB)),
            ("method=parity,failures_to_tolerate=1", hosts(4, 3, 7 * GIB)),
            ("single", hosts(2, 2, 5 * GIB)),
        ] {
            let found = of(text, &devices);
            let filled = policy(&format!("{text},space_reservation=100"));
            let fits = |size| plan(&filled, size, &devices, &mut counting(), 1).is_ok();
            assert!(
                fits(found.largest_bytes) && !fits(found.largest_bytes + EXTENT_SIZE),
                "{text}: {found:?}"
            );
            assert!(found.largest_bytes <= found.available_bytes);
            assert!(found.largest_bytes >= found.available_bytes / 2, "{text}: {found:?}");
        }
    }

    #[test]
    fn what_no_disk_can_have_is_refused_as_a_disk_would_be() {
        let refusal =
            capacity(&policy("failures_to_tolerate=2"), &hosts(2, 1, GIB), 1).expect_err("two hosts");
        assert_eq!(refusal.rule(), Some("failures_to_tolerate"));
        let mut gone = hosts(2, 1, GIB);
        gone.iter_mut().for_each(|device| device.in_service = false);
        assert!(capacity(&policy("default"), &gone, 1).is_err());
    }
}
