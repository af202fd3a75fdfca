//! The input of all decisions: the directory's records, and the state of the hosts.

use crate::attaching::Claim;
use crate::device::{DeviceRecord, DeviceState};
use crate::disk::{DiskRecord, Nodes};
use crate::host::{HostRecord, Maintenance};
use crate::levels::Level;
use crate::liveness::Liveness;
use crate::moves::MoveStatus;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, Instant};
use layout::Component;
use placement::{DeviceSpace, FaultDomain, Policy};
use replication::Standing;
use replication::owner::{MemberState, OwnerState};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The cluster as one node sees it.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The hosts.
    pub hosts: BTreeMap<HostId, HostRecord>,
    /// The disks.
    pub disks: BTreeMap<DiskId, DiskRecord>,
    /// Bytes of data in each disk's places, where known.
    pub used_bytes: BTreeMap<DiskId, Vec<u64>>,
    /// The liveness of hosts. A host without an entry counts as suspect.
    pub liveness: BTreeMap<HostId, Liveness>,
    /// Suspect hosts that show signs of life again: they are alive once that has lasted.
    pub returning: BTreeSet<HostId>,
    /// Reports of owners about their disks, where known.
    pub owners: BTreeMap<DiskId, OwnerState>,
    /// Moves of disks into another layout.
    pub moves: BTreeMap<DiskId, MoveStatus>,
    /// The named policies that people made.
    pub policies: BTreeMap<String, Policy>,
    /// The level of the records.
    pub level: Level,
}

/// The state of a component's device and host, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// Its device is in service, and its host is alive.
    Here,
    /// Its host is suspect.
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
    /// The rules of the named policy that a disk follows, if it follows one that is there.
    pub fn followed(&self, disk: &DiskRecord) -> Option<&Policy> {
        self.policies.get(disk.follows.as_ref()?)
    }

    /// The process that copies for the rollback of a disk; none where the rollback was cut short, or there is none.
    pub fn rolls_back(&self, disk: &DiskRecord) -> Option<Claim> {
        let by = disk.rollback?.by?;
        let host = self.hosts.get(&by.host)?;
        let is_followed = host.nodes.iter().any(|node| node.incarnation > by.incarnation);
        let is_away = matches!(self.liveness(by.host), Liveness::Away { .. });
        (!is_followed && !is_away).then_some(by)
    }

    /// The owner's report about a component.
    pub(crate) fn member_state(&self, disk: DiskId, component: ComponentId) -> Option<&MemberState> {
        self.owners.get(&disk)?.members.iter().find(|one| one.component == component)
    }

    /// A device and its host.
    pub fn device(&self, id: DeviceId) -> Option<(&HostRecord, &DeviceRecord)> {
        let find = |host: &'_ HostRecord| host.devices.iter().position(|device| device.id == id);
        self.hosts.values().find_map(|host| find(host).map(|index| (host, &host.devices[index])))
    }

    /// A component's device and its host. A device on the node that the roster names is found at once; one that has
    /// moved to another host is searched for.
    pub(crate) fn device_of(
        &self,
        disk: &DiskRecord,
        component: &Component,
    ) -> Option<(&HostRecord, &DeviceRecord)> {
        let member = disk.roster.member(component.id);
        let host = member.and_then(|member| self.hosts.get(&member.node.host));
        let find = |host: &'_ HostRecord| host.devices.iter().position(|one| one.id == component.device);
        let near = host.and_then(|host| find(host).map(|index| (host, &host.devices[index])));
        near.or_else(|| self.device(component.device))
    }

    /// Whether a host is there.
    pub fn liveness(&self, host: HostId) -> Liveness {
        self.liveness.get(&host).copied().unwrap_or(Liveness::Suspect { since: Instant(0) })
    }

    /// The name of a host.
    pub fn host_name(&self, host: HostId) -> String {
        self.hosts.get(&host).map_or_else(|| host.to_string(), |record| record.name.clone())
    }

    /// The node that serves each device.
    pub fn nodes(&self) -> Nodes {
        let devices = self.hosts.values().flat_map(|host| &host.devices);
        devices.map(|device| (device.id, device.node)).collect()
    }

    /// The devices as placement sees them. Devices of hosts that are away, suspect or in maintenance take nothing
    /// new. Walks all records: milliseconds with ten thousand.
    pub fn spaces(&self) -> Vec<DeviceSpace> {
        let counts = component_counts(self.disks.values());
        let of_host = |host: &HostRecord| {
            let takes = self.is_calm(host);
            let space = |device| space(host, device, takes, &counts, self.group_name(device));
            host.devices.iter().map(space).collect::<Vec<_>>()
        };
        self.hosts.values().flat_map(of_host).collect()
    }

    /// The fault domain of a device: its host, or the hosts of a fault domain, or its disk group where there is only
    /// one host.
    pub fn domain<'a>(&self, host: &'a HostRecord, device: &DeviceRecord) -> FaultDomain<'a> {
        match self.hosts.len() {
            1 => FaultDomain::Group(device.group),
            _ => host.domain(),
        }
    }

    /// The name of a device's disk group, where disk groups are the fault domains.
    fn group_name(&self, device: &DeviceRecord) -> Option<String> {
        (self.hosts.len() == 1).then(|| group_name(device.group))
    }

    /// The hosts of which it is not known whether they are there.
    pub fn unsure_hosts(&self) -> impl Iterator<Item = &HostRecord> {
        self.hosts.values().filter(|host| matches!(self.liveness(host.id), Liveness::Suspect { .. }))
    }

    /// Whether a host is alive and not in maintenance.
    fn is_calm(&self, host: &HostRecord) -> bool {
        self.liveness(host.id) == Liveness::Alive && host.maintenance == Maintenance::Off
    }

    /// The devices that take new components, and their hosts.
    pub(crate) fn in_service(&self) -> impl Iterator<Item = (&HostRecord, &DeviceRecord)> {
        let calm = self.hosts.values().filter(|host| self.is_calm(host));
        calm.flat_map(|host| host.devices.iter().map(move |device| (host, device)))
            .filter(|(_, device)| device.takes())
    }

    /// What a component on a device stands on.
    pub fn ground(&self, device: DeviceId) -> Ground {
        self.device(device).map_or(Ground::Unknown, |(host, device)| self.ground_at(host, device))
    }

    /// What a component of a disk stands on.
    pub(crate) fn ground_of(&self, disk: &DiskRecord, component: &Component) -> Ground {
        let found = self.device_of(disk, component);
        found.map_or(Ground::Unknown, |(host, device)| self.ground_at(host, device))
    }

    fn ground_at(&self, host: &HostRecord, device: &DeviceRecord) -> Ground {
        match (&device.state, self.liveness(host.id)) {
            (DeviceState::Failed { .. }, _) => Ground::DeviceFailed,
            (_, Liveness::Away { since, .. }) => Ground::HostAway(since),
            (DeviceState::Away { since }, _) => Ground::DeviceAway(*since),
            (DeviceState::InService, Liveness::Suspect { .. }) => Ground::Unsure,
            (DeviceState::InService, Liveness::Alive) => Ground::Here,
        }
    }

    /// Whether a component is an active copy that can be reached.
    pub fn is_sound(&self, disk: &DiskRecord, component: ComponentId) -> bool {
        let is_active =
            disk.roster.member(component).is_some_and(|member| member.standing == Standing::Active);
        is_active && self.is_here(disk, component)
    }

    /// Whether a component of a disk can be reached, whatever data it has.
    fn is_here(&self, disk: &DiskRecord, component: ComponentId) -> bool {
        let found = disk.component(component);
        found.is_some_and(|(_, found)| self.ground_of(disk, &found) == Ground::Here)
    }

    /// The disks that anything may have to be done about, in their order: all but those whose components are all copies that
    /// count, on devices that serve and need not be emptied, in hosts that are there and are not being serviced, as many as the policy
    /// asks for, and those of a place in different fault domains.
    pub(crate) fn disks_to_check(&self) -> Vec<&DiskRecord> {
        let mut calm: Vec<(DeviceId, FaultDomain<'_>)> =
            self.in_service().map(|(host, device)| (device.id, self.domain(host, device))).collect();
        calm.sort_unstable();
        let domain = |component: &Component| {
            let found = calm.binary_search_by_key(&component.device, |(device, _)| *device);
            found.ok().map(|index| calm[index].1)
        };
        let stand_apart = |copies: &[Component]| {
            copies.iter().enumerate().all(|(index, copy)| {
                domain(copy).is_some_and(|one| copies[..index].iter().all(|other| domain(other) != Some(one)))
            })
        };
        let rests = |disk: &DiskRecord| {
            disk.incoming.is_empty()
                && disk.stand_ins.is_empty()
                && disk.roster.members.iter().all(|one| one.standing == Standing::Active)
                && disk
                    .layout
                    .places()
                    .all(|(_, copies)| copies.len() >= disk.policy.copies() && stand_apart(copies))
        };
        // Components of a diverged disk are not replaced or given up before a person has decided.
        let is_decided = |disk: &&DiskRecord| disk.roster.diverged().next().is_none();
        self.disks.values().filter(|disk| !rests(disk)).filter(is_decided).collect()
    }

    /// The components of a place that are sound.
    pub fn sound(&self, disk: &DiskRecord, place: usize) -> Vec<ComponentId> {
        let of_place = disk.roster.members.iter().filter(|one| usize::from(one.place) == place);
        of_place.map(|one| one.component).filter(|id| self.is_sound(disk, *id)).collect()
    }

    /// The components of a place that are not active and can be reached, as their stand-ins can: with these they have all acknowledged
    /// changes.
    pub fn restorable(&self, disk: &DiskRecord, place: usize) -> Vec<ComponentId> {
        let of_place = disk.roster.members.iter().filter(|one| usize::from(one.place) == place);
        let absent = of_place.filter(|one| one.standing == Standing::Absent).map(|one| one.component);
        let pairs = absent.filter_map(|id| Some((id, disk.roster.stand_in_of(id)?.component)));
        let here = pairs.filter(|(id, stand_in)| self.is_here(disk, *id) && self.is_here(disk, *stand_in));
        here.map(|(id, _)| id).collect()
    }

    /// How many of the sound components of a place could be lost until its data is; 0 if it cannot be read.
    pub fn left(&self, disk: &DiskRecord, place: usize) -> usize {
        disk.left(place, self.sound(disk, place))
    }

    /// Whether a place can be used: enough components of it are sound, or can be restored.
    pub fn is_served(&self, disk: &DiskRecord, place: usize) -> bool {
        disk.left(place, self.sound(disk, place).into_iter().chain(self.restorable(disk, place))) > 0
    }

    /// Bytes of data in a place, if known.
    pub fn used(&self, disk: DiskId) -> &[u64] {
        self.used_bytes.get(&disk).map_or(&[], Vec::as_slice)
    }

    /// Incoming components of all disks, and their number by host.
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

/// The devices as placement sees them: computed when first asked for, and changed by later placements.
pub(crate) struct Spaces<'a> {
    view: &'a View,
    found: OnceCell<Vec<DeviceSpace>>,
}

impl<'a> Spaces<'a> {
    pub fn of_view(view: &'a View) -> Spaces<'a> {
        Spaces { view, found: OnceCell::new() }
    }

    /// All devices.
    pub fn all(&self) -> &[DeviceSpace] {
        self.found.get_or_init(|| self.view.spaces())
    }

    /// One device.
    pub fn of(&mut self, device: DeviceId) -> Option<&mut DeviceSpace> {
        self.all();
        self.found.get_mut()?.iter_mut().find(|space| space.id == device)
    }
}

/// Components on each device, by the records. A device reports its own count from time to time only, so disks created
/// in quick succession would all go to the first one's devices.
pub fn component_counts<'a>(disks: impl Iterator<Item = &'a DiskRecord>) -> BTreeMap<DeviceId, u32> {
    let mut counts = BTreeMap::new();
    for (_, component) in disks.flat_map(DiskRecord::all_components) {
        *counts.entry(component.device).or_default() += 1;
    }
    counts
}

/// The name of a disk group: the beginning of its id.
pub fn group_name(group: GroupId) -> String {
    format!("disk group {:.8}", group.to_string())
}

fn space(
    host: &HostRecord,
    device: &DeviceRecord,
    takes: bool,
    counts: &BTreeMap<DeviceId, u32>,
    group_name: Option<String>,
) -> DeviceSpace {
    DeviceSpace {
        id: device.id,
        name: device.name.clone(),
        host: host.id,
        host_name: host.name.clone(),
        fault_domain: host.fault_domain.clone(),
        group: device.group,
        group_name,
        capacity_bytes: device.capacity_bytes,
        free_bytes: device.free_bytes,
        reserved_bytes: device.reserved_bytes,
        component_count: device.component_count.max(counts.get(&device.id).copied().unwrap_or(0)),
        component_count_max: device.component_count_max,
        in_service: takes && device.takes(),
    }
}
