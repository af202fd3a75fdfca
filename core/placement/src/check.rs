//! Proving a layout against a policy.
//!
//! Written from the rules alone and sharing no code with `plan` and `repair`, so that a mistake there is found here.

use crate::device::{DeviceSpace, FaultDomain};
use crate::disk::PlacedDisk;
use crate::policy::{Method, Stripes};
use base::units::{EXTENT_SIZE, format_bytes};
use base::{ComponentId, DeviceId};
use layout::{Code, Component, Invalid, Layout};
use std::collections::{BTreeMap, BTreeSet};

/// A rule that a layout breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// The tree is no layout.
    #[error("the layout is not valid: {0}")]
    Invalid(#[from] Invalid),
    /// The layout is smaller than the disk. A larger one is that of a disk that became smaller.
    #[error("the layout holds {found} bytes for a disk of {size} bytes")]
    Size {
        /// Size of the disk in bytes.
        size: u64,
        /// What the layout holds.
        found: u64,
    },
    /// A component stands on a device that is not there.
    #[error("component {component} stands on device {device}, which is not known")]
    UnknownDevice {
        /// The component.
        component: ComponentId,
        /// The device.
        device: DeviceId,
    },
    /// A component stands on a device that is out of service.
    #[error("component {component} stands on {device}, which is out of service")]
    OutOfService {
        /// The component.
        component: ComponentId,
        /// The device's name.
        device: String,
    },
    /// Two copies of one place fail together.
    #[error(
        "components {first} and {second} are copies of each other and both stand in fault domain {domain}"
    )]
    SharedDomain {
        /// A copy.
        first: ComponentId,
        /// Another copy.
        second: ComponentId,
        /// The fault domain, or the host.
        domain: String,
    },
    /// Fewer failures are survived than the policy asks for.
    #[error("failures_to_tolerate is {found}, the policy asks for {wanted}")]
    Failures {
        /// What the policy asks for.
        wanted: u8,
        /// What the layout survives.
        found: u8,
    },
    /// The disk is not kept by the method that the policy asks for.
    #[error("method is {found}, the policy asks for {wanted}")]
    Method {
        /// What the policy asks for.
        wanted: &'static str,
        /// What the layout is.
        found: &'static str,
    },
    /// The disk is spread over another number of devices.
    #[error("stripes is {found}, the policy asks for {wanted}")]
    Stripes {
        /// What the policy asks for.
        wanted: u8,
        /// Devices that each replica of a part of the disk is spread over.
        found: usize,
    },
    /// Less is set aside than the policy asks for.
    #[error("space_reservation is {found}, the policy asks for {wanted}")]
    Reservation {
        /// What the policy asks for, in percent.
        wanted: u8,
        /// What is set aside.
        found: u8,
    },
    /// The reservation is more than what is available.
    #[error("{device} has {} too little for what space_reservation sets aside", format_bytes(*missing))]
    Space {
        /// The device's name.
        device: String,
        /// The missing bytes.
        missing: u64,
    },
}

/// The rules that the disk's layout breaks; none when all is well.
///
/// With `force_provisioning` the breaches of `failures_to_tolerate`, `stripes` and `space_reservation` are the disk's
/// debt. A layout with a copy too many, as it has while one is replaced, breaks no rule.
pub fn check(disk: &PlacedDisk<'_>, devices: &[DeviceSpace]) -> Vec<Breach> {
    let (layout, policy, size) = (disk.layout, disk.policy, disk.size);
    if let Err(invalid) = layout.validate() {
        return vec![invalid.into()];
    }
    let mut breaches = Vec::new();
    if layout.size() < size {
        breaches.push(Breach::Size { size, found: layout.size() });
    }
    let known: BTreeMap<DeviceId, &DeviceSpace> = devices.iter().map(|device| (device.id, device)).collect();
    for (_, component) in layout.components() {
        match known.get(&component.device) {
            None => {
                breaches.push(Breach::UnknownDevice { component: component.id, device: component.device });
            }
            Some(device) if !device.in_service => {
                breaches.push(Breach::OutOfService { component: component.id, device: device.name.clone() });
            }
            Some(_) => {}
        }
    }
    breaches.extend(layout.places().flat_map(|(_, copies)| shared_domains(copies, &known)));
    let survived = layout
        .places()
        .map(|(place, components)| survived(components, layout.place_code(place), &known))
        .min()
        .unwrap_or(0);
    if survived < usize::from(policy.failures_to_tolerate) {
        breaches.push(Breach::Failures { wanted: policy.failures_to_tolerate, found: survived as u8 });
    }
    let is_of_rows = |place: usize| layout.place_code(place).is_some();
    match policy.method {
        Method::Parity if !(0..layout.place_count()).all(is_of_rows) => {
            breaches.push(Breach::Method { wanted: "parity", found: "mirror" });
        }
        Method::Mirror if (0..layout.place_count()).any(is_of_rows) => {
            breaches.push(Breach::Method { wanted: "mirror", found: "parity" });
        }
        Method::Mirror | Method::Parity => {}
    }
    if let Stripes::Exactly(wanted) = policy.stripes {
        let found = layout.parts().iter().find_map(|part| other_spread(part, usize::from(wanted)));
        breaches.extend(found.map(|found| Breach::Stripes { wanted, found }));
    }
    if disk.space_reservation < policy.space_reservation {
        let (wanted, found) = (policy.space_reservation.get(), disk.space_reservation.get());
        breaches.push(Breach::Reservation { wanted, found });
    }
    breaches
}

/// What fails together with a device; one that is not known is taken to fail alone.
fn domain_of<'a>(
    device: DeviceId,
    known: &BTreeMap<DeviceId, &'a DeviceSpace>,
) -> Result<FaultDomain<'a>, DeviceId> {
    known.get(&device).map(|found| found.domain()).ok_or(device)
}

/// The copies of one place that stand in the fault domain of an earlier copy.
fn shared_domains(copies: &[Component], known: &BTreeMap<DeviceId, &DeviceSpace>) -> Vec<Breach> {
    let mut first_in: BTreeMap<Result<FaultDomain<'_>, DeviceId>, ComponentId> = BTreeMap::new();
    let mut breaches = Vec::new();
    for copy in copies {
        match first_in.get(&domain_of(copy.device, known)) {
            None => {
                first_in.insert(domain_of(copy.device, known), copy.id);
            }
            Some(first) => {
                let device = known[&copy.device];
                let domain = device.domain_name().to_owned();
                breaches.push(Breach::SharedDomain { first: *first, second: copy.id, domain });
            }
        }
    }
    breaches
}

/// The failures after which what is needed of a place is still there: one of the copies, or as many members of each row as it has data
/// units. Each failure takes a fault domain.
fn survived(components: &[Component], code: Option<Code>, known: &BTreeMap<DeviceId, &DeviceSpace>) -> usize {
    let domains = components.iter().map(|one| domain_of(one.device, known)).collect::<BTreeSet<_>>().len();
    domains.saturating_sub(code.map_or(1, |code| usize::from(code.data())))
}

/// How many devices each replica of a part is spread over, if that is not what was `wanted`.
///
/// Replicas share no device, so with `c` copies they take `c × wanted` in all. Where places differ in copies, because
/// one is being replaced, anything between what the fewest and what the most copies take is right.
fn other_spread(part: &Layout, wanted: usize) -> Option<usize> {
    let devices = part.components().map(|(_, component)| component.device).collect::<BTreeSet<_>>().len();
    let fewest = part.places().map(|(_, copies)| copies.len()).min()?;
    let most = part.places().map(|(_, copies)| copies.len()).max()?;
    if devices < wanted * fewest {
        return Some(devices / fewest);
    }
    (devices > wanted * most).then(|| devices.div_ceil(most))
}

/// Whether the reservation of a layout that is *not there yet* fits what is available on each device.
pub fn check_space(disk: &PlacedDisk<'_>, devices: &[DeviceSpace]) -> Vec<Breach> {
    let share = u128::from(disk.space_reservation.get());
    let mut asked: BTreeMap<DeviceId, u128> = BTreeMap::new();
    for (_, component) in disk.layout.components() {
        let bytes = (u128::from(component.size) * share).div_ceil(100);
        let extents = bytes.div_ceil(u128::from(EXTENT_SIZE));
        *asked.entry(component.device).or_default() += extents * u128::from(EXTENT_SIZE);
    }
    let short = |device: &DeviceSpace| {
        let available = u128::from(device.free_bytes.saturating_sub(device.reserved_bytes));
        let missing = asked.get(&device.id)?.checked_sub(available).filter(|missing| *missing > 0)?;
        Some(Breach::Space { device: device.name.clone(), missing: missing.try_into().unwrap_or(u64::MAX) })
    };
    devices.iter().filter_map(short).collect()
}

#[cfg(test)]
mod tests;
