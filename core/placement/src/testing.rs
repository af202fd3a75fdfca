//! Clusters for tests.

use crate::device::DeviceSpace;
use crate::disk::PlacedDisk;
use crate::plan::Plan;
use crate::policy::{Percent, Policy, Stripes};
use base::units::{DISK_SIZE_MAX, GIB};
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId};
use layout::Layout;
use proptest::prelude::*;

/// An empty device of `free` bytes. Groups of different hosts have different ids.
pub(crate) fn device_of(host: u128, group: u128, id: u128, free: u64) -> DeviceSpace {
    DeviceSpace {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        host: HostId(host),
        host_name: format!("h{host}"),
        fault_domain: None,
        group_name: None,
        group: GroupId(host * 100 + group),
        capacity_bytes: free,
        free_bytes: free,
        reserved_bytes: 0,
        component_count: 0,
        component_count_max: 4096,
        in_service: true,
    }
}

/// `hosts` hosts of one group with `each` devices of `free` bytes. Host 1 has the devices 11, 12, …
pub(crate) fn hosts(hosts: u128, each: u128, free: u64) -> Vec<DeviceSpace> {
    let devices = |host| (1..=each).map(move |device| device_of(host, 1, host * 10 + device, free));
    (1..=hosts).flat_map(devices).collect()
}

/// Puts hosts into fault domains: the first `in_each` into `r1`, the next into `r2`, …
pub(crate) fn with_domains(mut devices: Vec<DeviceSpace>, in_each: u128) -> Vec<DeviceSpace> {
    for device in &mut devices {
        device.fault_domain = Some(format!("r{}", (device.host.0 - 1) / in_each + 1));
    }
    devices
}

/// Ids from 1 on.
pub(crate) fn counting() -> impl FnMut() -> ComponentId {
    counting_from(1)
}

/// Ids from `first` on.
pub(crate) fn counting_from(first: u64) -> impl FnMut() -> ComponentId {
    let mut next = first;
    move || {
        next += 1;
        ComponentId(next - 1)
    }
}

/// A policy from its text.
pub(crate) fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

/// A disk of a layout that sets aside what its policy says.
pub(crate) fn placed<'a>(layout: &'a Layout, policy: &'a Policy, size: u64) -> PlacedDisk<'a> {
    PlacedDisk {
        id: DiskId(1),
        layout,
        policy,
        size,
        space_reservation: policy.space_reservation,
        used_bytes: &[],
    }
}

/// A disk as it was planned.
pub(crate) fn planned_disk<'a>(plan: &'a Plan, policy: &'a Policy, size: u64) -> PlacedDisk<'a> {
    PlacedDisk { space_reservation: plan.space_reservation, ..placed(&plan.layout, policy, size) }
}

/// A disk that owns what it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub id: DiskId,
    pub layout: Layout,
    pub policy: Policy,
    pub size: u64,
    pub space_reservation: Percent,
    pub used_bytes: Vec<u64>,
}

impl Stored {
    pub(crate) fn placed(&self) -> PlacedDisk<'_> {
        PlacedDisk {
            id: self.id,
            layout: &self.layout,
            policy: &self.policy,
            size: self.size,
            space_reservation: self.space_reservation,
            used_bytes: &self.used_bytes,
        }
    }
}

/// Clusters of up to six hosts, some in fault domains, with devices of all kinds of fullness.
pub(crate) fn clusters() -> impl Strategy<Value = Vec<DeviceSpace>> {
    let one = (1u128..7, 1u128..3, 1u64..2000, 0u64..=100, 0u64..=100, 0u32..4, 0u8..8);
    let domains = prop_oneof![Just(None), (1u128..3).prop_map(Some)];
    (prop::collection::vec(one, 0..14), domains).prop_map(|(specs, in_each)| {
        let mut devices = Vec::new();
        for (index, (host, group, gib, free, reserved, near_limit, service)) in specs.into_iter().enumerate()
        {
            let mut device = device_of(host, group, index as u128 + 1, gib * GIB);
            device.free_bytes = gib * GIB / 100 * free;
            device.reserved_bytes = device.free_bytes / 200 * reserved;
            device.component_count = if near_limit == 0 { device.component_count_max - 2 } else { 0 };
            device.in_service = service > 0;
            devices.push(device);
        }
        match in_each {
            None => devices,
            // One host stays outside the domains.
            Some(in_each) => with_domains(devices, in_each)
                .into_iter()
                .map(|device| match device.host {
                    HostId(6) => DeviceSpace { fault_domain: None, ..device },
                    _ => device,
                })
                .collect(),
        }
    })
}

/// Policies with all kinds of copies, stripes and reservations, and sizes.
pub(crate) fn requests() -> impl Strategy<Value = (Policy, u64)> {
    let size = prop_oneof![1u64..4096, 1u64..(2 << 21), 1u64..(DISK_SIZE_MAX / 512)].prop_map(|s| s * 512);
    (0u8..=12, 0u8..=100, 0u8..=3, any::<bool>(), any::<bool>(), any::<bool>(), size).prop_map(
        |(stripes, share, failures, thin, force, auto, size)| {
            let mut policy = Policy { force_provisioning: force, ..Policy::DEFAULT };
            policy.failures_to_tolerate = failures;
            policy.stripes = if stripes == 0 || auto { Stripes::Auto } else { Stripes::Exactly(stripes) };
            policy.space_reservation = Percent::new(if thin { 0 } else { share }).expect("at most 100");
            (policy, size)
        },
    )
}
