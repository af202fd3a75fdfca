//! The state of a component's device and host, and the progress of its resync, as its owner and the hosts report
//! them.

use crate::disk::DiskRecord;
use crate::liveness::{Absence, Liveness};
use crate::view::{Ground, View};
use crate::words::ago;
use base::units::MIB;
use base::{ComponentId, DeviceId, Instant};
use layout::Component;
use replication::Standing;
use replication::owner::{LeftBecause, MemberState};

/// Bytes copied to a component and bytes left, from what its owner reports; none when the owner does not copy to it.
///
/// An owner searches a component for what to copy while it copies. The unsearched rest is estimated: as dense as the
/// searched part, and no more than the data of the place there (`used` bytes, where known).
pub fn copied_and_left(report: &MemberState, size: u64, used: Option<u64>) -> Option<(u64, u64)> {
    let (copied, left) = report.resync?;
    let found = copied + left;
    let beyond = match report.looked_through {
        None | Some(0) => 0,
        Some(parts) => {
            let seen = u64::from(parts) * MIB;
            let unseen = size.saturating_sub(seen);
            u64::try_from(u128::from(found) * u128::from(unseen) / u128::from(seen)).unwrap_or(unseen)
        }
    };
    let rest = used.map_or(u64::MAX, |used| used.saturating_sub(found));
    Some((copied, left + beyond.min(rest)))
}

/// Bytes copied to a component and an estimate of those left, if its owner copies to it.
pub(crate) fn resync(view: &View, disk: &DiskRecord, id: ComponentId) -> Option<(u64, u64)> {
    let report = view.owners.get(&disk.id)?.members.iter().find(|one| one.component == id)?;
    let (place, component) = disk.component(id)?;
    copied_and_left(report, component.size, view.used(disk.id).get(place).copied())
}

/// What is wrong with the device or host of a component.
pub(crate) fn ground_of(view: &View, disk: &DiskRecord, component: &Component, now: Instant) -> String {
    let device = device_name(view, component.device);
    let host = view.device(component.device).map_or_else(String::new, |(host, _)| host.name.clone());
    match view.ground(component.device) {
        Ground::HostAway(since) => {
            let id = view.device(component.device).map(|(host, _)| host.id);
            let is_serviced = id.is_some_and(|id| {
                matches!(view.liveness(id), Liveness::Away { why: Absence::Maintenance, .. })
            });
            let why = if is_serviced { ", in maintenance" } else { "" };
            format!("{host} is away for {}{why}", ago(now, since))
        }
        Ground::DeviceAway(since) => format!("{device} is away for {}", ago(now, since)),
        Ground::DeviceFailed => format!("{device} failed"),
        Ground::Unknown => format!("no host has {device}"),
        // A component that its owner copies to can be reached, whoever else is not sure yet.
        Ground::Unsure if resync(view, disk, component.id).is_none() => format!("{host} is suspect"),
        Ground::Unsure | Ground::Here => match disk.roster.member(component.id).map(|member| member.standing)
        {
            Some(Standing::Stale) => format!("the component on {device} lost data"),
            Some(Standing::Absent) if has_no_room(view, disk, component.id) => {
                format!("component {} has no room on {device}", component.id)
            }
            Some(Standing::Active | Standing::Absent | Standing::StandIn) | None => {
                format!("the component on {device} is behind")
            }
        },
    }
}

/// Whether the owner says that a component's device has no room for it.
pub(crate) fn has_no_room(view: &View, disk: &DiskRecord, id: ComponentId) -> bool {
    let trouble = view
        .member_state(disk.id, id)
        .filter(|report| report.resync.is_none())
        .and_then(|report| report.trouble);
    trouble.is_some_and(LeftBecause::is_no_room)
}

/// The name of a device with that of its host.
pub(crate) fn device_name(view: &View, id: DeviceId) -> String {
    view.device(id)
        .map_or_else(|| format!("device {id}"), |(host, device)| format!("{} of {}", device.name, host.name))
}
