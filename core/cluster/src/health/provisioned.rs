//! Findings about over-committed space, and about hosts without capacity.

use super::code::Code;
use super::finding::{Finding, Severity, Subject};
use crate::device::DeviceState;
use crate::disk::{DiskRecord, DiskState};
use crate::limits::{OVER_COMMITTED_MUCH, OVER_COMMITTED_USED};
use crate::liveness::Liveness;
use crate::view::View;
use crate::words::listed;
use base::HostId;
use base::units::format_bytes;
use std::collections::BTreeMap;

/// Provisioned space and capacity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Provisioned {
    /// Provisioned bytes: the sizes of all disks.
    pub disks_bytes: u64,
    /// Bytes that the components of all disks may take: the sizes with all copies.
    pub components_bytes: u64,
    /// Bytes that all devices in service can take.
    pub capacity_bytes: u64,
    /// Bytes of them that are used.
    pub used_bytes: u64,
}

impl Provisioned {
    /// Of the whole cluster, by its records.
    pub fn of(view: &View) -> Provisioned {
        let disks = view.disks.values().filter(|disk| disk.state != DiskState::Deleting);
        let devices = view.hosts.values().flat_map(|host| &host.devices);
        let devices = devices.filter(|device| device.state == DeviceState::InService);
        let mut sum = Provisioned::default();
        for disk in disks {
            sum.disks_bytes = sum.disks_bytes.saturating_add(disk.size);
            sum.components_bytes = sum.components_bytes.saturating_add(components_bytes(disk));
        }
        for device in devices {
            sum.capacity_bytes += device.capacity_bytes;
            sum.used_bytes += device.capacity_bytes.saturating_sub(device.free_bytes);
        }
        sum
    }

    /// Of each host: its components and its devices. Sizes of disks belong to no host.
    pub fn of_hosts(view: &View) -> BTreeMap<HostId, Provisioned> {
        let mut sums: BTreeMap<HostId, Provisioned> = BTreeMap::new();
        for host in view.hosts.values() {
            let sum = sums.entry(host.id).or_default();
            for device in host.devices.iter().filter(|device| device.state == DeviceState::InService) {
                sum.capacity_bytes += device.capacity_bytes;
                sum.used_bytes += device.capacity_bytes.saturating_sub(device.free_bytes);
            }
        }
        for disk in view.disks.values().filter(|disk| disk.state != DiskState::Deleting) {
            for (_, component) in disk.layout.components() {
                let host = disk.roster.member(component.id).map(|member| member.node.host);
                if let Some(sum) = host.and_then(|host| sums.get_mut(&host)) {
                    sum.components_bytes = sum.components_bytes.saturating_add(component.size);
                }
            }
        }
        sums
    }

    /// Whether disks are over-committed.
    pub fn is_over_committed(&self) -> bool {
        self.components_bytes > self.capacity_bytes
    }

    /// Provisioned bytes with all copies, in hundredths of the capacity.
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.components_bytes) * 100 / u128::from(self.capacity_bytes.max(1));
        u64::try_from(percent).unwrap_or(u64::MAX)
    }
}

/// Bytes that a disk takes when all of it is written, with all copies.
fn components_bytes(disk: &DiskRecord) -> u64 {
    disk.layout.components().map(|(_, component)| component.size).fold(0, u64::saturating_add)
}

pub(super) fn find(view: &View, found: &mut Vec<Finding>) {
    let space = Provisioned::of(view);
    if space.capacity_bytes > 0 && space.is_over_committed() {
        let used = space.used_bytes * 100 / space.capacity_bytes;
        // Thin disks are meant to be over-committed. It is urgent where they are so by much and space is running out.
        let is_urgent = space.percent() >= OVER_COMMITTED_MUCH && used >= OVER_COMMITTED_USED;
        found.push(Finding {
            code: Code::SpaceOverCommitted,
            severity: if is_urgent { Severity::Warning } else { Severity::Notice },
            subject: Subject::Cluster,
            cause: format!(
                "disks may take {} with all copies, which is {} % of the capacity of {}; {} are used",
                format_bytes(space.components_bytes),
                space.percent(),
                format_bytes(space.capacity_bytes),
                format_bytes(space.used_bytes)
            ),
            remedy: format!(
                "watch the free space; {} of further capacity would hold all that disks may take",
                format_bytes(space.components_bytes - space.capacity_bytes)
            ),
        });
    }
    without_devices(view, found);
}

/// A host without capacity devices stores nothing, which may go unnoticed.
fn without_devices(view: &View, found: &mut Vec<Finding>) {
    let is_empty = |host: &&crate::host::HostRecord| host.devices.is_empty();
    let there = |host: &&crate::host::HostRecord| !matches!(view.liveness(host.id), Liveness::Away { .. });
    let empty: Vec<String> =
        view.hosts.values().filter(there).filter(is_empty).map(|host| host.name.clone()).collect();
    if empty.is_empty() {
        return;
    }
    let is_all = view.hosts.values().all(|host| host.devices.is_empty());
    let names = listed(&empty);
    found.push(Finding {
        code: Code::DevicesNone,
        severity: if is_all { Severity::Warning } else { Severity::Notice },
        subject: Subject::Cluster,
        cause: match is_all {
            true => format!("{names}: no capacity device, so no disk can be created"),
            false => format!("{names}: no capacity device, so no component stands there"),
        },
        remedy: "add devices with `drystone device add`, or a [[group]] to the configuration".to_owned(),
    });
}
