//! New components for those that are lost, where components go when their host or device goes, and the copies that a
//! disk has too few of.
//!
//! All ask the same question: which other device may take a component, beside the copies that stay? Must not change
//! where any other component stands.

use crate::device::{DeviceSpace, Footprint};
use crate::disk::PlacedDisk;
use crate::refusal::Cause;
use crate::seats::Seats;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId};
use layout::Component;
use std::collections::{BTreeMap, BTreeSet};

/// What takes the place of a lost component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The place that it answers for, by its depth-first index.
    pub place: usize,
    /// The component that is lost.
    pub lost: ComponentId,
    /// The new component, with a fresh id, or why there is none. Its footprint is that of its place.
    pub outcome: Result<Component, Cause>,
}

/// Chooses a new component for each of `lost`, in the order of places.
///
/// `devices` are all of the cluster, those out of service too, so that the fault domains of the copies that stay are
/// known. `ids` gives a fresh component id at every call. The new components keep the rules beside the copies that stay;
/// with `force_provisioning` several columns may come to share a device. What is lost counts for nothing: where one of
/// several lost copies of a place cannot be replaced, another may be put into its fault domain. Before the next disk is repaired, every device is to be told what it took, with
/// [`DeviceSpace::add`].
pub fn repair(
    disk: &PlacedDisk<'_>,
    lost: &BTreeSet<ComponentId>,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Vec<Replacement> {
    let mut targets = targets(disk, lost, devices, seed);
    let mut replacements = Vec::new();
    for (place, copies) in disk.layout.places() {
        for copy in copies {
            let Some(target) = targets.remove(&copy.id) else { continue };
            let component = |device: usize| Component {
                id: ids(),
                device: devices[device].id,
                size: copy.size,
                position: copy.position,
            };
            replacements.push(Replacement { place, lost: copy.id, outcome: target.map(component) });
        }
    }
    replacements
}

/// A copy that a place has too few of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The place, by its depth-first index.
    pub place: usize,
    /// The new component, with a fresh id, or why there is none. Its footprint is that of its place.
    pub outcome: Result<Component, Cause>,
}

/// Chooses components for the copies that the disk has too few of, by its policy, in the order of places.
///
/// `devices` are all of the cluster, as for [`repair`], and the rules are kept in the same way. Where only some copies
/// can be had, the others say why not.
pub fn add_copies(
    disk: &PlacedDisk<'_>,
    devices: &[DeviceSpace],
    ids: &mut impl FnMut() -> ComponentId,
    seed: u64,
) -> Vec<Addition> {
    let mut found: Vec<(usize, Result<usize, Cause>)> = Vec::new();
    for seated in Seats::on_top(disk, devices, seed).fill() {
        found.extend(seated.members.iter().map(|(place, _)| (*place, seated.outcome.clone())));
    }
    found.sort_by_key(|(place, _)| *place);
    let mut addition = |(place, target): (usize, Result<usize, Cause>)| {
        let size = disk.layout.place(place).expect("the place is there")[0].size;
        let component =
            |device: usize| Component { id: ids(), device: devices[device].id, size, position: 0 };
        Addition { place, outcome: target.map(component) }
    };
    found.into_iter().map(&mut addition).collect()
}

/// What goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// A host with all its devices.
    Host(HostId),
    /// A disk group.
    Group(GroupId),
    /// One device.
    Device(DeviceId),
}

impl Leaving {
    fn takes(self, device: &DeviceSpace) -> bool {
        match self {
            Leaving::Host(host) => device.host == host,
            Leaving::Group(group) => device.group == group,
            Leaving::Device(id) => device.id == id,
        }
    }
}

/// A component that has to go elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// The disk.
    pub disk: DiskId,
    /// The place that the component answers for.
    pub place: usize,
    /// The component.
    pub component: ComponentId,
    /// Where it stands.
    pub source: DeviceId,
    /// Bytes to be copied.
    pub bytes: u64,
    /// Copies of the same place that stay. Without any, the disk cannot be used unless this one moves.
    pub copies_staying: usize,
    /// The device that it can move to, or why there is none.
    pub outcome: Result<DeviceId, Cause>,
}

/// What would have to move if a host, a group or a device goes: nothing is changed by asking. The targets are free for
/// all of it together, in the order of `disks`.
pub fn evacuate(
    leaving: Leaving,
    disks: &[PlacedDisk<'_>],
    devices: &[DeviceSpace],
    seed: u64,
) -> Vec<Departure> {
    let mut devices = devices.to_vec();
    let mut sources = BTreeSet::new();
    for device in devices.iter_mut().filter(|device| leaving.takes(device)) {
        device.in_service = false;
        sources.insert(device.id);
    }
    let mut departures = Vec::new();
    for disk in disks {
        let goes = |component: &&Component| sources.contains(&component.device);
        let gone: BTreeSet<ComponentId> =
            disk.layout.components().map(|(_, one)| one).filter(goes).map(|one| one.id).collect();
        let mut targets = targets(disk, &gone, &devices, seed);
        for (place, copies) in disk.layout.places() {
            let footprint = disk.footprint(place);
            for copy in copies.iter().filter(goes) {
                let target = targets.remove(&copy.id).expect("every component that goes has an answer");
                departures.push(Departure {
                    disk: disk.id,
                    place,
                    component: copy.id,
                    source: copy.device,
                    bytes: footprint.data_bytes,
                    copies_staying: copies.iter().filter(|copy| !goes(copy)).count(),
                    outcome: target.map(|device| take(&mut devices[device], &footprint)),
                });
            }
        }
    }
    departures
}

fn take(device: &mut DeviceSpace, footprint: &Footprint) -> DeviceId {
    device.add(footprint);
    device.id
}

/// For each of the disk's components that are `gone`, the index of the device that can take it, or why there is none.
fn targets(
    disk: &PlacedDisk<'_>,
    gone: &BTreeSet<ComponentId>,
    devices: &[DeviceSpace],
    seed: u64,
) -> BTreeMap<ComponentId, Result<usize, Cause>> {
    if gone.is_empty() {
        return BTreeMap::new();
    }
    let mut targets = BTreeMap::new();
    for seated in Seats::new(disk, gone, devices, seed).fill() {
        for component in seated.members.into_iter().filter_map(|(_, component)| component) {
            targets.insert(component, seated.outcome.clone());
        }
    }
    targets
}

#[cfg(test)]
mod tests;
