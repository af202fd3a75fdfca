//! A virtual host: a node, its devices, its clock, and whether its process runs.

use super::plan::{MS, Plan, Shape};
use super::rebuilding::HostCopy;
use crate::device::Device;
use crate::formatting::{LOG_SIZE, format_devices};
use base::units::MIB;
use base::{DeviceId, DiskId, HostId, Instant, NodeId, Pool, Random};
use diskgroup::Group;
use diskgroup::format::FORMAT_VERSION;
use diskgroup::format::superblock::Superblock;
use layout::{Component, Layout};
use node::{DiskSpec, FabricSettings, GroupKey, Node, Output};
use replication::owner::Reading;
use replication::{InRows, OwnedBy, Roster, Rule, Standing};
use std::time::Duration;

/// What a host copies at least, bytes a second: enough that a component is filled within a life.
const COPY_FLOOR: u64 = 64 << 20;

/// Most blocks of one copy of a resync where copies are small: 256 KiB go through logs.
pub(crate) const SMALL_COPY_BLOCKS_MAX: u16 = 64;

/// What one request of a hundred may take beside copies, in percent.
const COPY_TAIL_PERCENT: u64 = 200;

/// One host.
pub struct Host {
    /// Its node.
    pub id: NodeId,
    /// While its process runs.
    pub node: Option<Node>,
    /// Starts of its process so far.
    pub incarnation: u64,
    /// Its devices, by place.
    pub devices: Vec<Device>,
    superblocks: Vec<Superblock>,
    /// Its clock at the start of the run, and how fast it goes, in millionths more than it should.
    clock_offset: u64,
    clock_drift: i64,
    /// Until when it stands still.
    pub paused_until: u64,
    /// Until when its process is not started.
    pub down_until: u64,
    /// Until when it does not reach the directory.
    pub cut_off_until: u64,
    /// Until when it hears nothing, of the directory either.
    pub deaf_until: u64,
    /// Until when its devices are slow.
    pub slow_until: u64,
    /// The place of a device that hangs, and until when.
    pub hung: (u8, u64),
    /// Whether its devices lost a bit, or failed.
    pub is_damaged: bool,
    /// What it keeps of the directory.
    pub copy: HostCopy,
    /// The alarm that is set, so that one that is out of date is passed over.
    pub alarm: u64,
}

/// Component `copy` of place `place` of disk `disk`: its identity tells.
pub fn component_id(disk: u64, place: u64, copy: u64) -> base::ComponentId {
    base::ComponentId(disk * 100 + place * 10 + copy + 1)
}

impl Host {
    /// Host `number`, freshly formatted.
    pub fn new(number: u64, plan: &Plan, random: &mut Random) -> Host {
        let first = DeviceId(u128::from(number + 1) << 8);
        let capacity = random.below(2);
        // Where row writes are held, a guest's largest write must fit the log beside them, as it does in the smallest log of a device.
        let log_size = if plan.has_rows() { 2 * LOG_SIZE } else { LOG_SIZE };
        let (superblocks, devices) = format_devices(random, capacity, plan.extents, log_size, first);
        let drift = if plan.drift { random.below(30_001) as i64 - 15_000 } else { 0 };
        Host {
            id: NodeId { host: HostId(u128::from(number + 1)), shard: 0 },
            node: None,
            incarnation: 0,
            devices,
            superblocks,
            clock_offset: random.below(1000 * MS),
            clock_drift: drift,
            paused_until: 0,
            down_until: 0,
            cut_off_until: 0,
            deaf_until: 0,
            slow_until: 0,
            hung: (0, 0),
            is_damaged: false,
            copy: HostCopy::default(),
            alarm: u64::MAX,
        }
    }

    /// Whether its group is of the format that has snapshots.
    pub(crate) fn is_converted(&self) -> bool {
        self.superblocks[0].format == FORMAT_VERSION
    }

    /// Its superblocks are written again, and say that its group is of that format.
    pub(crate) fn convert(&mut self) {
        self.superblocks.iter_mut().for_each(|one| one.format = FORMAT_VERSION);
        if let Some(group) = self.node.as_mut().and_then(|node| node.group_mut(GroupKey(0))) {
            group.set_superblocks(self.superblocks.clone());
        }
    }

    /// The device that holds components.
    pub fn capacity_device(&self) -> DeviceId {
        let last = self.superblocks.last().expect("a group has devices");
        last.device
    }

    /// Components that this device has slots for.
    pub fn component_slots(&self) -> u32 {
        self.superblocks.last().expect("a group has devices").geometry.component_slots
    }

    /// Where the last device keeps data at rest.
    pub fn extents(&self) -> std::ops::Range<u64> {
        let region = self.superblocks.last().expect("a group has devices").geometry.extents;
        region.offset..region.end()
    }

    /// What its clock shows.
    pub fn clock(&self, now: u64) -> Instant {
        let run = now as i128 + i128::from(self.clock_drift) * now as i128 / 1_000_000;
        Instant(self.clock_offset + run as u64 + 1)
    }

    /// When its clock will show that.
    pub fn time_of(&self, clock: Instant) -> u64 {
        let run = clock.0.saturating_sub(self.clock_offset + 1) as i128;
        (run * 1_000_000 / (1_000_000 + i128::from(self.clock_drift))) as u64 + 1
    }

    /// Starts its process: the group is opened, the disks are known.
    pub fn start(
        &mut self,
        now: u64,
        peers: &[NodeId],
        disks: &[(DiskSpec, (u64, Roster))],
        removed: Option<Rule>,
        (prefers_local, copy_blocks_max, move_granule, start_patience, fold_after, row_check_pace): (
            bool,
            u16,
            u64,
            Duration,
            Option<Duration>,
            u64,
        ),
    ) -> Vec<Output> {
        self.incarnation += 1;
        let clock = self.clock(now);
        let pool = Pool::new(48 << 20);
        let me = OwnedBy { node: self.id, incarnation: self.incarnation << 32 };
        let settings = FabricSettings {
            me,
            prefers_local,
            copy_floor: COPY_FLOOR,
            copy_blocks_max,
            move_granules: move_granule..=move_granule,
            fold_after,
            row_check_pace,
            copy_tail_percent: COPY_TAIL_PERCENT,
            start_patience,
            former_grants: replication::limits::GRANT,
            rules: removed.into(),
        };
        let mut node = Node::new(pool.clone(), clock, settings);
        let (mut first, mut out) = (Vec::new(), Vec::new());
        let settings = diskgroup::Settings {
            table_bytes_max: 1 << 20,
            retained_bytes_max: 1 << 20,
            scrub_bytes_per_second: 0,
            discard: true,
            rules: base::rules::Rules::ALL,
        };
        let group = Group::open(self.superblocks.clone(), settings, pool, clock, &mut first);
        let key = node.add_group(group, first, &mut out);
        assert!(key == GroupKey(0), "a host has one group");
        node.set_peers(clock, peers, &mut out);
        for (spec, record) in disks {
            node.open_disk(clock, spec.clone(), record.clone());
        }
        self.node = Some(node);
        out
    }
}

/// The layout of the disk of that number: mirrors, or rows with parity, their components on the hosts that `hosts` names by place, from
/// place `first` on.
fn layout_of(number: u64, shape: Shape, hosts: &[Vec<&Host>], first: usize) -> Layout {
    let size = if shape.code.is_some() { 2 * MIB } else { 4 * MIB };
    let place = |index: usize| {
        let components = hosts[first + index].iter().enumerate().map(|(copy, host)| Component {
            id: component_id(number, (first + index) as u64, copy as u64),
            device: host.capacity_device(),
            size,
            position: if shape.code.is_some() { copy as u8 } else { 0 },
        });
        match shape.code {
            None => Layout::Mirror { copies: components.collect() },
            Some(code) => Layout::Parity { code, members: components.collect() },
        }
    };
    match shape.places {
        1 => place(0),
        places => Layout::Stripe { unit: MIB, columns: (0..places as usize).map(place).collect() },
    }
}

/// The disk of that number, with the layouts of its plan.
pub fn disk_spec(number: u64, plan: &Plan, hosts: &[Vec<&Host>]) -> DiskSpec {
    let layout = layout_of(number, plan.shape(), hosts, 0);
    let is_clone = plan.clones && number == 1;
    let layout = match plan.other.filter(|_| !is_clone) {
        None => layout,
        // A clone does not move; its origin does.
        Some((other, _)) => layout.moving_to(layout_of(number, other, hosts, plan.places as usize)),
    };
    DiskSpec {
        id: DiskId(u128::from(number + 1)),
        size: layout.size(),
        layout,
        verify_checksums: true,
        reading: if number.is_multiple_of(2) { Reading::Local } else { Reading::Spread },
        limits: node::Limits::default(),
        course: node::Course::default(),
        shape: 0,
        // Which snapshot that is, is known once there is one; nobody uses the disk before.
        origin: is_clone.then_some(replication::Origin { disk: DiskId(1), snapshot: 0, size: 0 }),
    }
}

/// The record of a disk before anybody has owned it.
pub fn first_roster(spec: &DiskSpec, placed: &[Vec<usize>], hosts: &[Host], rests: bool) -> Roster {
    let mut members = Vec::new();
    for (place, components) in spec.layout.places() {
        for (copy, component) in components.iter().enumerate() {
            members.push(replication::Member {
                component: component.id,
                node: hosts[placed[place][copy]].id,
                place: place as u16,
                rows: spec.layout.place_code(place).map(|code| InRows { code, position: component.position }),
                standing: Standing::Active,
                base: base::WriteId::default(),
                role: replication::Role::Copy,
                ceiling: replication::Ceiling::Unknown,
                lacks: replication::Numbers::default(),
            });
        }
    }
    // A disk that has snapshots takes some before it moves, as it has none taken meanwhile.
    let boundary = spec.layout.boundary().filter(|_| !rests);
    let moving = boundary.map(|boundary| replication::Moved { boundary, trimmed: 0 });
    Roster { members, moving, ..Roster::default() }
}
