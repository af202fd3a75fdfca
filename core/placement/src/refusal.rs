//! Why no place was found: the rule, the devices, the missing bytes, and the nearest policy that would fit.

use crate::limits::DEVICES_NAMED_MAX;
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
    /// Too few hosts to survive so many failures.
    Hosts {
        /// Failures to tolerate.
        failures: u8,
        /// Hosts that this takes.
        needed: usize,
        /// Hosts with devices in service.
        found: usize,
    },
    /// Too few devices in service with free space.
    Devices {
        /// Devices that `stripes` asks for.
        needed: usize,
        /// Devices that could be used.
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
        /// Components of the disk.
        needed: usize,
        /// Components for which there is room.
        found: usize,
    },
    /// There is no device in service at all.
    NoDevice,
}

/// No place was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What stands in the way.
    pub cause: Cause,
    /// The devices that were looked at, each with what is available on it or why it cannot be used.
    pub devices: Vec<String>,
    /// The nearest policy that would fit, if any does.
    pub nearest: Option<Policy>,
}

impl Refusal {
    /// The policy rule that cannot be kept, if it is one.
    pub fn rule(&self) -> Option<&'static str> {
        match &self.cause {
            Cause::Unsupported(unsupported) => Some(unsupported.rule),
            Cause::Hosts { .. } => Some("failures_to_tolerate"),
            Cause::Devices { .. } => Some("stripes"),
            Cause::Space { .. } => Some("space_reservation"),
            Cause::Size { .. } | Cause::Full | Cause::Components { .. } | Cause::NoDevice => None,
        }
    }

    /// Bytes that are missing.
    pub fn missing_bytes(&self) -> u64 {
        match self.cause {
            Cause::Space { missing, .. } => missing,
            _ => 0,
        }
    }

    /// What can be done about it, in one line.
    pub fn hint(&self) -> String {
        let remedy = match &self.cause {
            Cause::Size { .. } => "give a size such as 10GiB",
            Cause::Unsupported(_) => "use the default value of this rule",
            Cause::Hosts { .. } => "use a policy that this host can keep",
            Cause::Devices { .. } => "add capacity devices or ask for fewer stripes",
            Cause::Space { .. } => "add capacity devices or reserve less",
            Cause::Full => "add capacity devices, or delete or trim disks",
            Cause::Components { .. } => "add capacity devices or delete disks",
            Cause::NoDevice => "add a disk group or see why its devices are out of service",
        };
        match self.nearest {
            Some(policy) => format!("{remedy}; the nearest policy that fits: --policy {}", policy.short()),
            None => remedy.to_owned(),
        }
    }
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
            Cause::Hosts { failures, needed, found } => write!(
                f,
                "failures_to_tolerate={failures} needs {needed} hosts with devices in service; there {} {found}",
                if *found == 1 { "is" } else { "are" }
            ),
            Cause::Devices { needed, found } => {
                write!(
                    f,
                    "stripes={needed} needs {needed} different devices with free space; there are {found}"
                )
            }
            Cause::Space { needed, missing } => write!(
                f,
                "space_reservation sets aside {}, and {} of it are missing",
                format_bytes(*needed),
                format_bytes(*missing)
            ),
            Cause::Full => f.write_str("every capacity device is full"),
            Cause::Components { needed, found } => {
                write!(f, "the disk takes {needed} components, and the devices have room for {found} more")
            }
            Cause::NoDevice => f.write_str("there is no capacity device in service"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)?;
        if self.devices.is_empty() {
            return Ok(());
        }
        let named = &self.devices[..self.devices.len().min(DEVICES_NAMED_MAX)];
        write!(f, " ({}", named.join(", "))?;
        match self.devices.len() - named.len() {
            0 => f.write_str(")"),
            more => write!(f, ", and {more} more)"),
        }
    }
}

impl std::error::Error for Refusal {}
