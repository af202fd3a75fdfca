//! What placement knows of a capacity device: its room, and what fails together with it.

use crate::limits::FULL;
use crate::policy::Percent;
use base::units::EXTENT_SIZE;
use base::{DeviceId, GroupId, HostId};

/// A capacity device and the room on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSpace {
    /// Its identity.
    pub id: DeviceId,
    /// What people call it: its path.
    pub name: String,
    /// The host that it is in.
    pub host: HostId,
    /// What people call the host.
    pub host_name: String,
    /// The hosts that fail together with this one; a host outside any is its own.
    pub fault_domain: Option<String>,
    /// Its disk group.
    pub group: GroupId,
    /// What people call the group, on the only host of a cluster: there disk groups are what fails apart.
    pub group_name: Option<String>,
    /// Bytes that extents can take in all.
    pub capacity_bytes: u64,
    /// Bytes of these that no extent has taken yet.
    pub free_bytes: u64,
    /// Bytes of the free ones that are promised to reservations.
    pub reserved_bytes: u64,
    /// Components that stand on it.
    pub component_count: u32,
    /// Components that it can hold in all.
    pub component_count_max: u32,
    /// Whether it can take new components.
    pub in_service: bool,
}

/// What fails together: the hosts of a named fault domain, a host, or on the only host of a cluster a disk group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultDomain<'a> {
    /// A disk group of the only host: a log device and what depends on it.
    Group(GroupId),
    /// The hosts that people have put into a domain of this name.
    Named(&'a str),
    /// A host outside any domain.
    Host(HostId),
}

/// What a component takes of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Bytes that its data takes, whole extents.
    pub data_bytes: u64,
    /// Bytes that are set aside for it, its data included, whole extents.
    pub reservation_bytes: u64,
}

impl Footprint {
    /// Bytes of room that it needs on a device that it does not stand on yet.
    pub fn bytes(&self) -> u64 {
        self.data_bytes.max(self.reservation_bytes)
    }

    /// Bytes that are promised beyond its data.
    fn promised_bytes(&self) -> u64 {
        self.reservation_bytes.saturating_sub(self.data_bytes)
    }
}

impl DeviceSpace {
    /// Bytes that are neither taken nor promised.
    pub fn available_bytes(&self) -> u64 {
        self.free_bytes.saturating_sub(self.reserved_bytes)
    }

    /// Components that can still be made on it.
    pub fn component_room(&self) -> u32 {
        self.component_count_max.saturating_sub(self.component_count)
    }

    /// What fails together with it.
    pub fn domain(&self) -> FaultDomain<'_> {
        match (&self.group_name, &self.fault_domain) {
            (Some(_), _) => FaultDomain::Group(self.group),
            (None, Some(name)) => FaultDomain::Named(name),
            (None, None) => FaultDomain::Host(self.host),
        }
    }

    /// What people call its fault domain: the group's, the domain's or the host's name.
    pub fn domain_name(&self) -> &str {
        self.group_name.as_deref().or(self.fault_domain.as_deref()).unwrap_or(&self.host_name)
    }

    /// What of its capacity extents have taken, in hundredths of a percent, rounded down. A device without capacity
    /// counts as full.
    pub fn fullness(&self) -> u64 {
        let used = u128::from(self.capacity_bytes.saturating_sub(self.free_bytes));
        let share = (used * u128::from(FULL)).checked_div(u128::from(self.capacity_bytes));
        share.map_or(FULL, |share| share as u64)
    }

    /// Counts a component that comes here, before the device itself tells of it. Two repairs that are planned one after
    /// the other need it between them.
    pub fn add(&mut self, footprint: &Footprint) {
        self.component_count += 1;
        self.free_bytes = self.free_bytes.saturating_sub(footprint.data_bytes);
        self.reserved_bytes += footprint.promised_bytes();
    }

    /// Counts a component that leaves, before the device itself tells of it.
    pub fn remove(&mut self, footprint: &Footprint) {
        self.component_count = self.component_count.saturating_sub(1);
        self.free_bytes = (self.free_bytes + footprint.data_bytes).min(self.capacity_bytes);
        self.reserved_bytes = self.reserved_bytes.saturating_sub(footprint.promised_bytes());
    }
}

/// Bytes that are set aside for a component of `size` bytes: the share, rounded up to whole extents.
pub fn reservation(size: u64, share: Percent) -> u64 {
    share.of(size).next_multiple_of(EXTENT_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device_of;
    use base::units::GIB;

    #[test]
    fn a_component_that_comes_and_goes_leaves_a_device_as_it_was() {
        let empty = device_of(1, 1, 1, 100 * GIB);
        for (data, reservation, available, fullness) in
            [(30, 0, 70, 3_000), (30, 50, 50, 3_000), (50, 30, 50, 5_000), (0, 100, 0, 0)]
        {
            let footprint = Footprint { data_bytes: data * GIB, reservation_bytes: reservation * GIB };
            assert_eq!(footprint.bytes(), (100 - available) * GIB);
            let mut device = empty.clone();
            device.add(&footprint);
            assert_eq!((device.available_bytes(), device.fullness()), (available * GIB, fullness));
            assert_eq!(device.component_room(), empty.component_room() - 1);
            device.remove(&footprint);
            assert_eq!(device, empty);
        }
        assert_eq!(DeviceSpace { capacity_bytes: 0, free_bytes: 0, ..empty }.fullness(), FULL);
    }

    #[test]
    fn hosts_fail_alone_unless_they_share_a_fault_domain() {
        let named = |host, name: Option<&str>| DeviceSpace {
            fault_domain: name.map(str::to_owned),
            ..device_of(host, 1, host, GIB)
        };
        assert_ne!(named(1, None).domain(), named(2, None).domain());
        assert_eq!(named(1, Some("r1")).domain(), named(2, Some("r1")).domain());
        assert_ne!(named(1, Some("r1")).domain(), named(1, None).domain());
        assert_eq!((named(1, Some("r1")).domain_name(), named(1, None).domain_name()), ("r1", "h1"));
    }
}
