//! All that decisions are made from: the directory's records, and what is known of the hosts.

use crate::device::{DeviceRecord, DeviceState};
use crate::disk::{DiskRecord, Nodes};
use crate::host::{HostRecord, Maintenance};
use crate::liveness::Liveness;
use base::{ComponentId, DeviceId, DiskId, HostId, Instant};
use placement::DeviceSpace;
use replication::Standing;
use replication::owner::OwnerState;
use std::collections::BTreeMap;

/// The cluster as one node sees it.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The hosts.
    pub hosts: BTreeMap<HostId, HostRecord>,
    /// The disks.
    pub disks: BTreeMap<DiskId, DiskRecord>,
    /// Bytes of data in each disk's places, as far as they are known.
    pub used_bytes: BTreeMap<DiskId, Vec<u64>>,
    /// Which hosts are there. One that is not named counts as suspect.
    pub liveness: BTreeMap<HostId, Liveness>,
    /// What owners tell of their disks, as far as it is known.
    pub owners: BTreeMap<DiskId, OwnerState>,
}

/// What a component stands on, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Its device serves, and its host is there.
    Here,
    /// Its host is suspect: it may be there or not.
    Unsure,
    /// Its host is away, since then.
    HostAway(Instant),
    /// Its device is away, since then.
    DeviceAway(Instant),
    /// Its device failed.
    DeviceFailed,
    /// No host has its device.
    Unknown,
}

impl View {
    /// A device and its host.
    pub fn device(&self, id: DeviceId) -> Option<(&HostRecord, &DeviceRecord)> {
        let find = |host: &'_ HostRecord| host.devices.iter().position(|device| device.id == id);
        self.hosts.values().find_map(|host| find(host).map(|index| (host, &host.devices[index])))
    }

    /// Whether a host is there.
    pub fn liveness(&self, host: HostId) -> Liveness {
        self.liveness.get(&host).copied().unwrap_or(Liveness::Suspect { since: Instant(0) })
    }

    /// What people call a host.
    pub fn host_name(&self, host: HostId) -> String {
        self.hosts.get(&host).map_or_else(|| host.to_string(), |record| record.name.clone())
    }

    /// The node that serves each device.
    pub fn nodes(&self) -> Nodes {
        let devices = self.hosts.values().flat_map(|host| &host.devices);
        devices.map(|device| (device.id, device.node)).collect()
    }

    /// The devices as placement sees them. Those of hosts that are not there, or are being serviced, take nothing new.
    pub fn spaces(&self) -> Vec<DeviceSpace> {
        let of_host = |host: &HostRecord| {
            let takes = self.liveness(host.id) == Liveness::Alive && host.maintenance == Maintenance::Off;
            host.devices.iter().map(|device| space(host, device, takes)).collect::<Vec<_>>()
        };
        self.hosts.values().flat_map(of_host).collect()
    }

    /// What a component on a device stands on.
    pub fn ground(&self, device: DeviceId) -> Ground {
        let Some((host, device)) = self.device(device) else { return Ground::Unknown };
        match (&device.state, self.liveness(host.id)) {
            (DeviceState::Failed { .. }, _) => Ground::DeviceFailed,
            (_, Liveness::Away { since, .. }) => Ground::HostAway(since),
            (DeviceState::Away { since }, _) => Ground::DeviceAway(*since),
            (DeviceState::InService, Liveness::Suspect { .. }) => Ground::Unsure,
            (DeviceState::InService, Liveness::Alive) => Ground::Here,
        }
    }

    /// Whether a component has all that was acknowledged and can be reached.
    pub fn is_sound(&self, disk: &DiskRecord, component: ComponentId) -> bool {
        let is_active =
            disk.roster.member(component).is_some_and(|member| member.standing == Standing::Active);
        let device = disk.component(component).map(|(_, found)| found.device);
        is_active && device.is_some_and(|device| self.ground(device) == Ground::Here)
    }

    /// The components of a place that are sound.
    pub fn sound(&self, disk: &DiskRecord, place: usize) -> Vec<ComponentId> {
        let of_place = disk.roster.members.iter().filter(|one| usize::from(one.place) == place);
        of_place.map(|one| one.component).filter(|id| self.is_sound(disk, *id)).collect()
    }

    /// A component of a place that is not active, and its stand-in, that can both be reached: together they have all that
    /// was acknowledged.
    pub fn pair(&self, disk: &DiskRecord, place: usize) -> Option<(ComponentId, ComponentId)> {
        let is_there = |id: ComponentId| {
            let device = disk.component(id).map(|(_, found)| found.device);
            device.is_some_and(|device| self.ground(device) == Ground::Here)
        };
        let of_place = disk.roster.members.iter().filter(|one| usize::from(one.place) == place);
        let absent = of_place.filter(|one| one.standing == Standing::Absent).map(|one| one.component);
        let mut pairs = absent.filter_map(|id| Some((id, disk.roster.stand_in_of(id)?.component)));
        pairs.find(|(id, stand_in)| is_there(*id) && is_there(*stand_in))
    }

    /// Whether a place can be used: something of it is sound, or can be put together.
    pub fn is_served(&self, disk: &DiskRecord, place: usize) -> bool {
        !self.sound(disk, place).is_empty() || self.pair(disk, place).is_some()
    }

    /// Bytes of data in a place, as far as they are known.
    pub fn used(&self, disk: DiskId) -> &[u64] {
        self.used_bytes.get(&disk).map_or(&[], Vec::as_slice)
    }

    /// Components of all disks that are on their way in, and how many of these go to each host.
    pub fn coming(&self) -> (usize, BTreeMap<HostId, usize>) {
        let mut of_host: BTreeMap<HostId, usize> = BTreeMap::new();
        for disk in self.disks.values() {
            for one in &disk.incoming {
                let node = disk.roster.member(one.component.id).expect("the roster names what comes").node;
                *of_host.entry(node.host).or_default() += 1;
            }
        }
        (of_host.values().sum(), of_host)
    }
}

fn space(host: &HostRecord, device: &DeviceRecord, takes: bool) -> DeviceSpace {
    DeviceSpace {
        id: device.id,
        name: device.name.clone(),
        host: host.id,
        host_name: host.name.clone(),
        fault_domain: host.fault_domain.clone(),
        group: device.group,
        capacity_bytes: device.capacity_bytes,
        free_bytes: device.free_bytes,
        reserved_bytes: device.reserved_bytes,
        component_count: device.component_count,
        component_count_max: device.component_count_max,
        in_service: takes && device.state == DeviceState::InService,
    }
}
