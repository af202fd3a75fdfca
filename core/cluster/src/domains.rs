//! Copies of one place that share a fault domain although they are to fail apart.
//!
//! Placement never puts them there. It happens when people change the fault domains of hosts later. Must never count
//! a copy that leaves anyway.

use crate::disk::DiskRecord;
use crate::view::{View, group_name};
use base::{ComponentId, DeviceId};
use layout::Component;
use placement::FaultDomain;
use std::collections::{BTreeMap, BTreeSet};

/// Copies of a disk that are lost together with one fault domain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedDomain {
    /// The name of the domain.
    pub domain: String,
    /// The devices that the copies stand on.
    pub devices: BTreeSet<DeviceId>,
    /// Whether the domain has all copies of a place: without it the disk cannot be used.
    pub has_all: bool,
}

/// The copies that should move to another fault domain, with their places. Of the copies of a place in one domain all
/// move but the one on the device with the least id, so that the copies of one device go or stay together. Copies in
/// `gone` and copies that are being replaced are ignored.
///
/// While a copy of the place is not sound, none of the place moves: a replacement of a lost copy goes to another
/// domain anyway, and a copy that is away may come back.
pub(crate) fn to_move(
    view: &View,
    disk: &DiskRecord,
    gone: &BTreeSet<ComponentId>,
) -> Vec<(usize, Component)> {
    let mut found = Vec::new();
    for (place, copies) in disk.layout.places().filter(|(_, copies)| copies.len() > 1) {
        if !copies.iter().all(|copy| view.is_sound(disk, copy.id)) {
            continue;
        }
        let coming = disk.incoming.iter().filter(|one| usize::from(one.place) == place);
        let mut taken: Vec<FaultDomain<'_>> =
            coming.filter_map(|one| domain_of(view, disk, &one.component)).collect();
        let stays = |copy: &&Component| disk.incoming_for(copy.id).is_none() && !gone.contains(&copy.id);
        let mut staying: Vec<&Component> = copies.iter().filter(stays).collect();
        staying.sort_by_key(|copy| copy.device);
        for copy in staying {
            match domain_of(view, disk, copy) {
                Some(domain) if taken.contains(&domain) => found.push((place, *copy)),
                Some(domain) => taken.push(domain),
                None => {}
            }
        }
    }
    found
}

/// Whether a component of the layout shares its fault domain with another copy of its place that stays.
pub(crate) fn is_sharing(view: &View, disk: &DiskRecord, place: usize, component: &Component) -> bool {
    let Some(domain) = domain_of(view, disk, component) else { return false };
    let copies = disk.layout.place(place).unwrap_or(&[]);
    let others = copies.iter().filter(|copy| copy.id != component.id && disk.incoming_for(copy.id).is_none());
    others.filter_map(|copy| domain_of(view, disk, copy)).any(|other| other == domain)
}

/// The fault domains in which several copies of one place stand.
pub fn shared_domains(view: &View, disk: &DiskRecord) -> Vec<SharedDomain> {
    let mut found: BTreeMap<FaultDomain<'_>, SharedDomain> = BTreeMap::new();
    for (_, copies) in disk.layout.places().filter(|(_, copies)| copies.len() > 1) {
        let mut standing: BTreeMap<FaultDomain<'_>, Vec<DeviceId>> = BTreeMap::new();
        for copy in copies {
            if let Some(domain) = domain_of(view, disk, copy) {
                standing.entry(domain).or_default().push(copy.device);
            }
        }
        for (domain, devices) in standing.into_iter().filter(|(_, devices)| devices.len() > 1) {
            let name = match domain {
                FaultDomain::Named(name) => name.to_owned(),
                FaultDomain::Host(host) => view.host_name(host),
                FaultDomain::Group(group) => group_name(group),
            };
            let of_domain = found.entry(domain).or_insert_with(|| SharedDomain {
                domain: name,
                devices: BTreeSet::new(),
                has_all: false,
            });
            of_domain.has_all |= devices.len() == copies.len();
            of_domain.devices.extend(devices);
        }
    }
    found.into_values().collect()
}

/// The fault domain of a component; none where its device is unknown.
fn domain_of<'a>(view: &'a View, disk: &DiskRecord, component: &Component) -> Option<FaultDomain<'a>> {
    view.device_of(disk, component).map(|(host, device)| view.domain(host, device))
}
