//! Making the cluster: its hosts, and disk after disk as the server makes them.

use super::Options;
use super::directory::Directory;
use super::measured::Times;
use base::units::GIB;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, NodeId, Random};
use cluster::{
    DeviceRecord, DeviceState, DiskRecord, HostRecord, Liveness, Maintenance, NewDisk, NodeRecord,
    Transition, View,
};
use placement::Policy;
use replication::{OwnedBy, Roster};
use std::collections::BTreeMap;
use std::time::Instant as WallClock;

/// Capacity devices of a host, in two groups.
const DEVICES: usize = 4;
/// Bytes of each of them.
const DEVICE_BYTES: u64 = 8 << 40;
/// Components that each can hold: what a server's devices tell.
const COMPONENTS_MAX: u32 = 4096;
/// Bytes of a disk.
const DISK_BYTES: u64 = 20 * GIB;
/// Bytes of its data.
pub(super) const DATA_BYTES: u64 = 5 * GIB;
/// Disks that are made between two looks of the hosts at their devices, one second apart.
const DISKS_PER_SECOND: usize = 100;
/// Disks that are placed in the full cluster, to see how long it takes.
const PROBES: usize = 1000;

/// What stands on a device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub components: u32,
    pub data_bytes: u64,
    pub reserved_bytes: u64,
}

/// What stands on all devices.
pub(super) type Loads = BTreeMap<DeviceId, Load>;

/// The hosts as they are before there is any disk.
pub(super) fn hosts(count: usize, random: &mut Random) -> Vec<HostRecord> {
    let mut id = || u128::from(random.bits()) << 64 | u128::from(random.bits());
    let mut hosts: Vec<HostRecord> = Vec::new();
    for number in 1..=count {
        let host = HostId(id());
        let groups = [GroupId(id()), GroupId(id())];
        let node = NodeId { host, shard: 0 };
        let device = |place: usize| DeviceRecord {
            id: DeviceId(id()),
            name: format!("/dev/disk/by-id/nvme-{number:03}-{place}"),
            group: groups[place % groups.len()],
            node,
            capacity_bytes: DEVICE_BYTES,
            free_bytes: DEVICE_BYTES,
            reserved_bytes: 0,
            component_count: 0,
            component_count_max: COMPONENTS_MAX,
            state: DeviceState::InService,
            leaving: None,
            spins: false,
        };
        hosts.push(HostRecord {
            id: host,
            name: format!("host{number:03}"),
            nodes: vec![NodeRecord {
                id: node,
                peer_addresses: vec![format!("10.0.{}.{}:7001", number / 250, number % 250)],
                incarnation: 1_700_000_000_000_000_000 + number as u64,
            }],
            api_address: format!("https://10.0.{}.{}:7000", number / 250, number % 250),
            fault_domain: None,
            maintenance: Maintenance::Off,
            devices: (0..DEVICES).map(device).collect(),
            release: "0.1.0".to_owned(),
            clock_ahead_ns: 0,
            data_trouble: Vec::new(),
            reports: cluster::DeviceReports::default(),
            last_seen: Instant(0),
        });
    }
    hosts.sort_by_key(|host| host.id);
    hosts
}

/// A host's record with what stands on its devices.
pub(super) fn with_loads(host: &HostRecord, loads: &Loads) -> HostRecord {
    let mut host = host.clone();
    for device in &mut host.devices {
        let load = loads.get(&device.id).copied().unwrap_or_default();
        device.free_bytes = device.capacity_bytes.saturating_sub(load.data_bytes);
        device.reserved_bytes = load.reserved_bytes;
        device.component_count = load.components;
    }
    host
}

/// Counts what a record has on devices, and what the one before it had no more.
pub(super) fn load(loads: &mut Loads, before: Option<&DiskRecord>, after: &DiskRecord) {
    let standing = |disk: &DiskRecord| {
        let data = DATA_BYTES / disk.layout.place_count() as u64;
        let of = move |(_, one): (NodeId, wire::NewComponent)| {
            (one.device, data, one.reservation.saturating_sub(data))
        };
        disk.components().into_iter().map(of).collect::<Vec<_>>()
    };
    for (device, data, reserved) in before.map(standing).unwrap_or_default() {
        let load = loads.get_mut(&device).expect("what stands somewhere was counted");
        load.components -= 1;
        load.data_bytes -= data;
        load.reserved_bytes -= reserved;
    }
    for (device, data, reserved) in standing(after) {
        let load = loads.entry(device).or_default();
        load.components += 1;
        load.data_bytes += data;
        load.reserved_bytes += reserved;
    }
}

/// Makes disks, and opens them.
pub(super) struct Creation<'a> {
    pub options: &'a Options,
    pub directory: &'a mut Directory,
    pub random: &'a mut Random,
    pub loads: Loads,
    policy: Policy,
    view: View,
    pub place: Times,
    pub place_full: Times,
}

impl<'a> Creation<'a> {
    /// # Errors
    /// When the policy is none.
    pub fn new(
        options: &'a Options,
        directory: &'a mut Directory,
        random: &'a mut Random,
    ) -> Result<Creation<'a>, String> {
        let policy = options.policy.parse::<Policy>().map_err(|error| error.to_string())?;
        let mut view = View::default();
        for record in hosts(options.hosts, random) {
            view.liveness.insert(record.id, Liveness::Alive);
            view.hosts.insert(record.id, record.clone());
            directory.set_host(0, record);
        }
        let (place, place_full) = (Times::default(), Times::default());
        Ok(Creation { options, directory, random, loads: Loads::new(), policy, view, place, place_full })
    }

    /// Makes all disks, each in two transactions, with hosts that tell of their devices once a second.
    ///
    /// # Errors
    /// When one does not fit.
    pub fn make_all(&mut self) -> Result<(), String> {
        let makers: Vec<HostId> = self.view.hosts.keys().copied().collect();
        for number in 0..self.options.disks {
            let maker = makers[number % makers.len()];
            let began = WallClock::now();
            let made = self.planned(number)?;
            self.place.add(began.elapsed());
            let made = self.directory.add_disk(0, maker, made.record);
            let active = made.activate().expect("it is being made").record;
            let active = self.directory.set_disk(0, made.version, active).expect("nobody else changes it");
            load(&mut self.loads, None, &active);
            if (number + 1) % DISKS_PER_SECOND == 0 || number + 1 == self.options.disks {
                self.tell_devices();
            }
        }
        for number in 0..PROBES {
            let began = WallClock::now();
            std::hint::black_box(self.planned(number)?);
            self.place_full.add(began.elapsed());
        }
        Ok(())
    }

    /// Each disk gets its first owner: the host where its guest runs.
    pub fn open_all(&mut self) {
        let hosts: Vec<NodeRecord> = self.view.hosts.values().map(|host| host.nodes[0].clone()).collect();
        let disks: Vec<_> = self.directory.disks().values().cloned().collect();
        for disk in disks {
            let node = &hosts[self.random.below(hosts.len() as u64) as usize];
            let owner = Some(OwnedBy { node: node.id, incarnation: node.incarnation });
            let roster = Roster { epoch: 1, owner, ..disk.roster.clone() };
            let next = disk.with_roster(&roster, 0).expect("only the owner changes").record;
            self.directory.set_disk(0, disk.version, next).expect("nobody else changes it");
        }
    }

    fn planned(&mut self, number: usize) -> Result<Transition, String> {
        let (random, policy) = (&mut *self.random, self.policy);
        let seed = random.bits();
        let mut ids = || ComponentId(random.bits() | 1);
        let plan = placement::plan(&policy, DISK_BYTES, &self.view.spaces(), &mut ids, seed);
        let plan = plan.map_err(|refusal| refusal.to_string())?;
        let id = DiskId(u128::from(random.bits()) << 64 | u128::from(random.bits()));
        let name = format!("vm-{number:05}");
        let new = NewDisk {
            id,
            name,
            size: DISK_BYTES,
            policy,
            read_only: false,
            follows: None,
            is_shared: false,
            origin: None,
        };
        DiskRecord::create(new, &plan, &self.view.nodes()).map_err(|why| why.to_string())
    }

    fn tell_devices(&mut self) {
        for host in self.view.hosts.values_mut() {
            *host = with_loads(host, &self.loads);
            self.directory.set_host(0, host.clone());
        }
    }
}
