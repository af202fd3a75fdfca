//! Clusters for tests: hosts `h1`, `h2`, … with one node each, and devices `/dev/sd11`, `/dev/sd12`, … of 100 GiB.

use crate::device::{DeviceRecord, DeviceState};
use crate::disk::DiskRecord;
use crate::disk::life::NewDisk;
use crate::host::{HostRecord, Maintenance, NodeRecord};
use crate::levels::Level;
use crate::liveness::Liveness;
use crate::view::View;
use base::units::GIB;
use base::{ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, NodeId};
use placement::Policy;
use replication::owner::{MemberState, OwnerState, Phase};
use replication::{Member, OwnedBy, Standing};

/// A moment of the tests' clock.
pub(crate) fn at(seconds: u64) -> Instant {
    Instant(seconds * 1_000_000_000)
}

/// The node of host `host`.
pub(crate) fn node(host: u128) -> NodeId {
    NodeId { host: HostId(host), shard: 0 }
}

/// A policy from its text.
pub(crate) fn policy(text: &str) -> Policy {
    text.parse().expect("a policy")
}

/// Component ids from `first` on.
pub(crate) fn counting_from(first: u64) -> impl FnMut() -> ComponentId {
    let mut next = first;
    move || {
        next += 1;
        ComponentId(next - 1)
    }
}

fn device(host: u128, number: u128) -> DeviceRecord {
    let id = host * 10 + number;
    DeviceRecord {
        id: DeviceId(id),
        name: format!("/dev/sd{id}"),
        group: GroupId(host),
        node: node(host),
        capacity_bytes: 100 * GIB,
        free_bytes: 100 * GIB,
        reserved_bytes: 0,
        component_count: 0,
        component_count_max: 4096,
        state: DeviceState::InService,
        leaving: None,
        spins: false,
    }
}

/// The level from which on all is there.
pub(crate) const NEWEST: Level = Level::LABELS;

/// `hosts` hosts with `each` devices, all alive.
pub(crate) fn cluster(hosts: u128, each: u128) -> View {
    let mut view = View { level: NEWEST, ..View::default() };
    for host in 1..=hosts {
        let record = HostRecord {
            id: HostId(host),
            name: format!("h{host}"),
            nodes: vec![NodeRecord {
                id: node(host),
                peer_addresses: vec![format!("10.0.0.{host}:7001")],
                incarnation: 1,
            }],
            api_address: format!("http://10.0.0.{host}:7000"),
            fault_domain: None,
            maintenance: Maintenance::Off,
            devices: (1..=each).map(|number| device(host, number)).collect(),
            release: "1.0.0".to_owned(),
            clock_ahead_ns: 0,
            data_trouble: Vec::new(),
            reports: crate::host::DeviceReports::default(),
            last_seen: at(0),
        };
        view.hosts.insert(record.id, record);
        view.liveness.insert(HostId(host), Liveness::Alive);
    }
    view
}

impl View {
    /// Makes a disk of 10 GiB, owned by host 1, with 1 GiB of data in each place. Its components are `id` × 100 and on.
    pub(crate) fn add_disk(&mut self, id: u128, rules: &str) -> DiskRecord {
        let policy = policy(rules);
        let mut ids = counting_from(id as u64 * 100);
        let plan = placement::plan(&policy, 10 * GIB, &self.spaces(), &mut ids, 1).expect("it fits");
        let new = NewDisk {
            id: DiskId(id),
            name: format!("disk{id}"),
            size: 10 * GIB,
            policy,
            read_only: false,
            follows: None,
            is_shared: false,
            origin: None,
        };
        let made = DiskRecord::create(new, &plan, &self.nodes()).expect("all devices are known").record;
        let mut record = made.activate().expect("it is being made").record;
        record.roster.owner = Some(OwnedBy { node: node(1), incarnation: 1 });
        record.roster.epoch = 1;
        self.used_bytes.insert(record.id, vec![GIB; record.layout.place_count()]);
        self.disks.insert(record.id, record.clone());
        record
    }

    /// Has a disk move into the layout that a policy asks for: all components are made, and nothing has moved yet.
    pub(crate) fn begin_move(&mut self, id: DiskId, policy: &Policy) {
        let (disk, spaces) = (&self.disks[&id], self.spaces());
        let mut ids = counting_from(id.0 as u64 * 100 + 50);
        let begun =
            disk.begin_move(policy, disk.follows.clone(), &spaces, self.used(id), &self.nodes(), &mut ids);
        let two = begun.expect("there is room").record.finish_growth().expect("all are made").record;
        self.disks.insert(id, two);
    }

    /// Takes the boundary of a disk on, as its owner does.
    pub(crate) fn advance_move(&mut self, id: DiskId, boundary: u64) {
        let disk = &self.disks[&id];
        let moving = disk.roster.moving.map(|moved| replication::Moved { boundary, ..moved });
        let roster = replication::Roster { moving, ..disk.roster.clone() };
        let next = disk.with_roster(&roster, 0).expect("it moves").record;
        self.disks.insert(id, next);
    }

    /// The test's disk of a number.
    pub(crate) fn disk(&self, id: u128) -> &DiskRecord {
        &self.disks[&DiskId(id)]
    }

    /// Sets the standing of a component.
    pub(crate) fn stand(&mut self, component: ComponentId, standing: Standing) {
        let mut members = self.disks.values_mut().flat_map(|disk| disk.roster.members.iter_mut());
        members.find(|one| one.component == component).expect("it is there").standing = standing;
    }

    /// A host by its number.
    pub(crate) fn host_mut(&mut self, host: u128) -> &mut HostRecord {
        self.hosts.get_mut(&HostId(host)).expect("it is there")
    }

    /// Sets the state of a device by its number.
    pub(crate) fn set_device(&mut self, id: u128, state: DeviceState) {
        let mut devices = self.hosts.values_mut().flat_map(|host| host.devices.iter_mut());
        devices.find(|one| one.id == DeviceId(id)).expect("it is there").state = state;
    }

    /// A host went away at `since`: all its components are absent.
    pub(crate) fn lose_host(&mut self, host: u128, since: u64) {
        let why = match self.hosts[&HostId(host)].maintenance {
            Maintenance::Off => crate::liveness::Absence::Unexpected,
            Maintenance::Entering { .. } | Maintenance::On { .. } => crate::liveness::Absence::Maintenance,
        };
        self.liveness.insert(HostId(host), Liveness::Away { since: at(since), why });
        for disk in self.disks.values_mut() {
            for member in disk.roster.members.iter_mut().filter(|one| one.node == node(host)) {
                member.standing = Standing::Absent;
            }
        }
    }

    /// The component of a disk on a host.
    pub(crate) fn component_on(&self, disk: u128, host: u128) -> ComponentId {
        let members = &self.disk(disk).roster.members;
        members.iter().find(|one| one.node == node(host)).expect("one stands there").component
    }
}

/// What an owner tells while it fills components: each with the bytes copied and left.
pub(crate) fn owner_state(disk: &DiskRecord, filled: &[(ComponentId, u64, u64)]) -> OwnerState {
    let member = |member: &Member| MemberState {
        component: member.component,
        node: member.node,
        place: member.place,
        standing: member.standing,
        role: member.role,
        is_open: true,
        is_passed_over: false,
        read_time: std::time::Duration::ZERO,
        resync: filled
            .iter()
            .find(|(id, _, _)| *id == member.component)
            .map(|(_, copied, left)| (*copied, *left)),
        looked_through: None,
        trouble: None,
        retry_in: None,
    };
    OwnerState {
        phase: Phase::Serving,
        epoch: disk.roster.epoch,
        members: disk.roster.members.iter().map(member).collect(),
        waits_for_directory: false,
        copied_bytes: 0,
        repaired_blocks: 0,
        held_blocks: 0,
        folded_blocks: 0,
        row_checks: Default::default(),
    }
}
