//! Proving a layout against a policy.
//!
//! Written from the rules alone and sharing no code with `plan`, so that a mistake there is found here.

use crate::device::DeviceSpace;
use crate::policy::{Method, Policy, Stripes};
use base::units::{EXTENT_SIZE, format_bytes};
use base::{ComponentId, DeviceId};
use layout::{Invalid, Layout};
use std::collections::{BTreeMap, BTreeSet};

/// A rule that a layout breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// The tree is no layout.
    #[error("the layout is not valid: {0}")]
    Invalid(#[from] Invalid),
    /// The layout is smaller than the disk, or larger than rounding explains.
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
    /// Fewer failures are survived than the policy asks for.
    #[error("failures_to_tolerate is {found}, the policy asks for {wanted}")]
    Failures {
        /// What the policy asks for.
        wanted: u8,
        /// What the layout survives.
        found: u8,
    },
    /// The copies are not kept by the method that the policy asks for.
    #[error("method is mirror, the policy asks for parity")]
    Method,
    /// The disk is spread over another number of devices.
    #[error("stripes is {found}, the policy asks for {wanted}")]
    Stripes {
        /// What the policy asks for.
        wanted: u8,
        /// Devices that a part of the disk is spread over.
        found: usize,
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

/// The rules that `layout` breaks as the layout of a disk of `size` bytes with `policy`; none when all is well.
///
/// With `force_provisioning` the breaches of `failures_to_tolerate` and `stripes` are the disk's debt.
pub fn check(layout: &Layout, policy: &Policy, size: u64, devices: &[DeviceSpace]) -> Vec<Breach> {
    if let Err(invalid) = layout.validate() {
        return vec![invalid.into()];
    }
    let mut breaches = Vec::new();
    // Every component may be rounded up to the next MiB, and no further.
    let slack = layout.component_count() as u64 * EXTENT_SIZE;
    if layout.size() < size || layout.size() >= size + slack {
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
    // No node of the tree keeps a second copy yet.
    if policy.failures_to_tolerate > 0 {
        breaches.push(Breach::Failures { wanted: policy.failures_to_tolerate, found: 0 });
    }
    if policy.method == Method::Parity {
        breaches.push(Breach::Method);
    }
    if let Stripes::Exactly(wanted) = policy.stripes {
        let parts = match layout {
            Layout::Concatenation { parts } => parts.as_slice(),
            Layout::Component(_) | Layout::Mirror { .. } | Layout::Stripe { .. } => {
                std::slice::from_ref(layout)
            }
        };
        let spread = |part: &Layout| part.components().map(|(_, c)| c.device).collect::<BTreeSet<_>>().len();
        if let Some(found) = parts.iter().map(spread).find(|found| *found != usize::from(wanted)) {
            breaches.push(Breach::Stripes { wanted, found });
        }
    }
    breaches
}

/// Whether the reservation of a layout that is *not there yet* fits what is available on each device.
pub fn check_space(layout: &Layout, policy: &Policy, devices: &[DeviceSpace]) -> Vec<Breach> {
    let share = u128::from(policy.space_reservation.get());
    let mut asked: BTreeMap<DeviceId, u128> = BTreeMap::new();
    for (_, component) in layout.components() {
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
