//! Why no place was found: the rule, the fault domains, the devices, the missing bytes, and the nearest policy that
//! would fit.

use crate::device::{DeviceSpace, FaultDomain};
use crate::limits::NAMED_MAX;
use crate::policy::{Policy, Unsupported};
use base::units::{DISK_SIZE_MAX, SECTOR_SIZE, format_bytes};
use std::fmt;

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The size is zero, not whole sectors, or too large.
    Size {
        /// The size in bytes.
        size: u64,
    },
    /// A rule that this version does not keep.
    Unsupported(Unsupported),
    /// Too few fault domains to survive so many failures.
    Domains {
        /// Failures to tolerate.
        failures: u8,
        /// Fault domains that this takes: one for each copy.
        needed: usize,
        /// Whether these are hosts, or some have names of their own.
        kind: DomainKind,
        /// The fault domains with devices that could be used.
        found: Vec<String>,
    },
    /// Too few devices in service with free space.
    Devices {
        /// Devices that `stripes` asks for, for each copy.
        stripes: usize,
        /// Copies.
        copies: usize,
        /// Devices that could be used, at most so many of one fault domain as there are columns.
        found: usize,
    },
    /// The reservation does not fit.
    Space {
        /// Bytes to be set aside.
        needed: u64,
        /// Bytes of these for which there is no room.
        missing: u64,
    },
    /// Every device that could be used is out of free space.
    Full,
    /// The devices cannot take so many more components.
    Components {
        /// Components to be placed.
        needed: usize,
        /// Components for which there is room.
        found: usize,
    },
    /// No device that the rules allow has room for a component that must go elsewhere.
    Room {
        /// Bytes that its data or its reservation takes.
        needed: u64,
        /// Bytes available on the device with the most of them.
        found: u64,
    },
    /// There is no device in service at all.
    NoDevice,
}

/// What people call the fault domains of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DomainKind {
    /// Every host is its own.
    Hosts,
    /// Some hosts share one.
    Named,
    /// There is one host, and every disk group of it is one.
    Groups,
}

impl DomainKind {
    /// The kind of the fault domains of `devices`.
    pub(crate) fn of<'a>(mut devices: impl Iterator<Item = &'a DeviceSpace>) -> DomainKind {
        let first = devices.next();
        match first.map(DeviceSpace::domain) {
            Some(FaultDomain::Group(_)) => DomainKind::Groups,
            Some(FaultDomain::Named(_)) => DomainKind::Named,
            Some(FaultDomain::Host(_)) if devices.any(|device| device.fault_domain.is_some()) => {
                DomainKind::Named
            }
            Some(FaultDomain::Host(_)) | None => DomainKind::Hosts,
        }
    }

    pub(crate) fn singular(self) -> &'static str {
        match self {
            DomainKind::Hosts => "host",
            DomainKind::Named => "fault domain",
            DomainKind::Groups => "disk group",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            DomainKind::Hosts => "hosts",
            DomainKind::Named => "fault domains",
            DomainKind::Groups => "disk groups",
        }
    }
}

/// No place was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What stands in the way.
    pub cause: Cause,
    /// The devices that were looked at, each with what is available on it or why it cannot be used.
    pub devices: Vec<String>,
    /// The nearest policy that would fit, if any does. In a box: refusals are parts of errors, which are to stay small.
    pub nearest: Option<Box<Policy>>,
}

impl Refusal {
    /// A refusal that names the devices that there are.
    pub(crate) fn new(cause: Cause, devices: &[DeviceSpace], nearest: Option<Policy>) -> Refusal {
        Refusal { cause, devices: describe(devices), nearest: nearest.map(Box::new) }
    }

    /// The policy rule that cannot be kept, if it is one.
    pub fn rule(&self) -> Option<&'static str> {
        self.cause.rule()
    }

    /// Bytes that are missing.
    pub fn missing_bytes(&self) -> u64 {
        match self.cause {
            Cause::Space { missing, .. } => missing,
            Cause::Room { needed, found } => needed.saturating_sub(found),
            Cause::Size { .. }
            | Cause::Unsupported(_)
            | Cause::Domains { .. }
            | Cause::Devices { .. }
            | Cause::Full
            | Cause::Components { .. }
            | Cause::NoDevice => 0,
        }
    }

    /// What can be done about it, in one line.
    pub fn hint(&self) -> String {
        let remedy = self.cause.remedy();
        match &self.nearest {
            Some(policy) => format!("{remedy}; the nearest policy that fits: --policy {}", policy.short()),
            None => remedy.to_owned(),
        }
    }
}

impl Cause {
    /// The policy rule that cannot be kept, if it is one.
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Cause::Unsupported(unsupported) => Some(unsupported.rule),
            Cause::Domains { .. } => Some("failures_to_tolerate"),
            Cause::Devices { .. } => Some("stripes"),
            Cause::Space { .. } => Some("space_reservation"),
            Cause::Size { .. }
            | Cause::Full
            | Cause::Components { .. }
            | Cause::Room { .. }
            | Cause::NoDevice => None,
        }
    }

    /// What can be done about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Cause::Size { .. } => "give a size such as 10GiB",
            Cause::Unsupported(_) => "use the default value of this rule",
            Cause::Domains { kind: DomainKind::Hosts, .. } => {
                "add hosts with devices or tolerate fewer failures"
            }
            Cause::Domains { kind: DomainKind::Named, .. } => {
                "add hosts of other fault domains or tolerate fewer failures"
            }
            Cause::Domains { kind: DomainKind::Groups, .. } => {
                "add a disk group with a log device of its own (`drystone device add`), add hosts, or tolerate fewer failures"
            }
            Cause::Devices { .. } => "add capacity devices or ask for fewer stripes",
            Cause::Space { .. } => "add capacity devices or reserve less",
            Cause::Full | Cause::Room { .. } => "add capacity devices, or delete or trim disks",
            Cause::Components { .. } => "add capacity devices or delete disks",
            Cause::NoDevice => "add a disk group or see why its devices are out of service",
        }
    }
}

fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Up to [`NAMED_MAX`] of `names`, and how many more there are.
pub(crate) fn named(names: &[String]) -> String {
    let shown = &names[..names.len().min(NAMED_MAX)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// The devices as a refusal names them; with their hosts where there are several.
fn describe(devices: &[DeviceSpace]) -> Vec<String> {
    let has_hosts = devices.windows(2).any(|pair| pair[0].host != pair[1].host);
    let name = |device: &DeviceSpace| match (has_hosts, &device.fault_domain) {
        (false, _) => device.name.clone(),
        (true, None) => format!("{} of host {}", device.name, device.host_name),
        (true, Some(domain)) => {
            format!("{} of host {} in fault domain {domain}", device.name, device.host_name)
        }
    };
    let line = |device: &DeviceSpace| match (device.in_service, device.component_room()) {
        (false, _) => format!("{}: out of service", name(device)),
        (true, 0) => format!("{}: holds {} components, all it can", name(device), device.component_count),
        (true, _) => format!("{}: {} available", name(device), format_bytes(device.available_bytes())),
    };
    devices.iter().map(line).collect()
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Size { size } => write!(
                f,
                "a disk of {size} bytes is not possible: multiples of {SECTOR_SIZE} up to {} are",
                format_bytes(DISK_SIZE_MAX)
            ),
            Cause::Unsupported(unsupported) => unsupported.fmt(f),
            Cause::Domains { failures, needed, kind, found } => {
                let (kind, count) = (kind.plural(), found.len());
                let verb = is_or_are(count);
                write!(
                    f,
                    "failures_to_tolerate={failures} needs {needed} {kind} with devices in service; there {verb} {count}"
                )?;
                if found.is_empty() { Ok(()) } else { write!(f, ": {}", named(found)) }
            }
            Cause::Devices { stripes, copies: 1, found } => {
                let verb = is_or_are(*found);
                write!(
                    f,
                    "stripes={stripes} needs {stripes} different devices with free space; there {verb} {found}"
                )
            }
            Cause::Devices { stripes, copies, found } => write!(
                f,
                "stripes={stripes} with {copies} copies needs {} different devices with free space, spread over the \
                 fault domains; there {} {found}",
                stripes * copies,
                is_or_are(*found)
            ),
            Cause::Space { needed, missing } => write!(
                f,
                "space_reservation sets aside {}, and {} of it are missing",
                format_bytes(*needed),
                format_bytes(*missing)
            ),
            Cause::Full => f.write_str("every capacity device is full"),
            Cause::Components { needed, found } => write!(
                f,
                "{needed} {} to be placed, and the devices that the rules allow have room for {found} more",
                if *needed == 1 { "component is" } else { "components are" }
            ),
            Cause::Room { needed, found } => write!(
                f,
                "the component takes {}, and no device that the rules allow has more than {} available",
                format_bytes(*needed),
                format_bytes(*found)
            ),
            Cause::NoDevice => f.write_str("there is no capacity device in service"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        if self.devices.is_empty() { Ok(()) } else { write!(f, " ({})", named(&self.devices)) }
    }
}

impl std::error::Error for Refusal {}
