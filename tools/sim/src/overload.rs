//! Writers that want more than the capacity device takes, for minutes: do they slow down smoothly?
//!
//! A whole node in virtual time. The log device is fast; the capacity device serves its requests one after the other, each
//! taking as long as its bandwidth and its seek say. Writers write random 4 KiB blocks, each the next when its last one is
//! answered, and an open disk between them would take far more than the capacity device can.

use base::request::Request as GuestRequest;
use base::units::{BLOCK_SIZE, MIB};
use base::{
    ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, NodeId, Pool, Random, WriteId,
};
use diskgroup::format::anchor::{Anchor, anchor_offset};
use diskgroup::format::superblock::{Geometry, Superblock};
use diskgroup::{Group, Io, Settings};
use iostats::Statistics;
use layout::{Component, Layout};
use node::{DiskKey, DiskSpec, FabricOutput, FabricSettings, GroupKey, Node, Output, Token};
use replication::owner::{Committed, Event as OwnerEvent};
use replication::{Ceiling, Member, OwnedBy, Role, Roster, Standing};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use wire::{Answer, NewComponent, Request};

use crate::device::{Device, joined};

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Overload {
    /// Writes under way at any time.
    pub writers: usize,
    /// Time that the capacity device needs for one request, beside its bandwidth, in nanoseconds.
    pub seek_ns: u64,
    /// What the capacity device takes, in bytes a second.
    pub bandwidth: u64,
    /// Size of the log in bytes.
    pub log_size: u64,
    /// How long, in virtual seconds.
    pub seconds: u64,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome {
    /// Writes answered in each second.
    pub per_second: Vec<u64>,
    /// The longest that a write took, in nanoseconds.
    pub latency_max_ns: u64,
    /// The longest time in which no write was answered, in nanoseconds.
    pub silence_max_ns: u64,
    /// Writes destaged, all in all.
    pub destaged: u64,
    /// The disk's histograms.
    pub statistics: Statistics,
}

struct Bed {
    node: Node,
    pool: Pool,
    devices: [Device; 2],
    /// When the capacity device has done all that it was asked.
    busy_until: u64,
    now: u64,
    tickets: u64,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    requests: BTreeMap<u64, (Io, u8, Kind)>,
    replies: Vec<u64>,
    is_ready: bool,
    is_made: bool,
    is_served: bool,
}

/// This start of the only node.
const ME: OwnedBy = OwnedBy { node: NodeId { host: HostId(1), shard: 0 }, incarnation: 1 };

fn fabric() -> FabricSettings {
    FabricSettings {
        me: ME,
        prefers_local: false,
        copy_floor: node::limits::COPY_RATE_FLOOR,
        copy_blocks_max: replication::limits::COPY_BLOCKS_MAX,
        move_granules: node::limits::MOVE_GRANULES,
        fold_after: Some(replication::limits::FOLD_AFTER),
        row_check_pace: 0,
        copy_tail_percent: node::limits::COPY_TAIL_PERCENT,
        start_patience: Duration::ZERO,
        former_grants: Duration::ZERO,
        rules: base::rules::Rules::ALL,
    }
}

enum Kind {
    Read { offset: u64, buffer: base::Buffer },
    Write,
    Flush,
    Nothing,
}

impl Overload {
    /// Runs it.
    pub fn run(self) -> Outcome {
        let mut bed = self.bed();
        let extents = 200;
        let disk = bed.make_disk(extents * MIB);
        let mut random = Random::new(7);
        let mut began: BTreeMap<u64, u64> = BTreeMap::new();
        let mut outcome = Outcome {
            per_second: Vec::new(),
            latency_max_ns: 0,
            silence_max_ns: 0,
            destaged: 0,
            statistics: Statistics::new(),
        };
        let start = bed.now;
        let (mut last_reply, mut next) = (start, 1u64 << 32);
        while bed.now < start + self.seconds * 1_000_000_000 {
            while began.len() < self.writers {
                next += 1;
                began.insert(next, bed.now);
                let block = random.below(extents * MIB / BLOCK_SIZE);
                bed.write(disk, next, block * BLOCK_SIZE);
            }
            bed.step(self);
            for token in std::mem::take(&mut bed.replies) {
                let latency = bed.now - began.remove(&token).expect("a write is answered once");
                outcome.latency_max_ns = outcome.latency_max_ns.max(latency);
                outcome.silence_max_ns = outcome.silence_max_ns.max(bed.now - last_reply);
                last_reply = bed.now;
                let second = ((bed.now - start) / 1_000_000_000) as usize;
                outcome.per_second.resize(outcome.per_second.len().max(second + 1), 0);
                outcome.per_second[second] += 1;
            }
        }
        outcome.silence_max_ns = outcome.silence_max_ns.max(bed.now - last_reply);
        let group = bed.node.group(GroupKey(0)).expect("the group is open");
        outcome.destaged = group.state().counters.destaged_bytes / BLOCK_SIZE;
        outcome.statistics = bed.node.statistics(disk);
        outcome
    }

    fn bed(self) -> Bed {
        let sizes = [self.log_size + 4 * MIB, 260 * MIB];
        let mut members = [DeviceId(0); 8];
        (members[0], members[1]) = (DeviceId(1), DeviceId(2));
        let superblock = |place: usize| Superblock {
            format: diskgroup::format::FORMAT_PLAIN,
            revision: 1,
            cluster: ClusterId(1),
            host: HostId(1),
            group: GroupId(1),
            device: members[place],
            index: place as u8,
            members,
            log_mark: if place == 0 { 3 } else { 0 },
            size: sizes[place],
            geometry: Geometry::plan(sizes[place], (place == 0).then_some(self.log_size), place == 1)
                .expect("the sizes fit"),
        };
        let mut devices = sizes.map(Device::new);
        let anchor = Anchor { revision: 1, log_mark: 3, tail_batch: 1, ..Anchor::default() };
        devices[0].preset(anchor_offset(1), &anchor.encode());
        let pool = Pool::new(64 << 20);
        let (mut first, mut out) = (Vec::new(), Vec::new());
        let settings = Settings { scrub_bytes_per_second: 0, discard: false, ..Settings::default() };
        let superblocks = vec![superblock(0), superblock(1)];
        let group = Group::open(superblocks, settings, pool.clone(), Instant(1), &mut first);
        let mut node = Node::new(pool.clone(), Instant(1), fabric());
        node.add_group(group, first, &mut out);
        let mut bed = Bed {
            node,
            pool,
            devices,
            busy_until: 0,
            now: 1,
            tickets: 0,
            queue: BinaryHeap::new(),
            requests: BTreeMap::new(),
            replies: Vec::new(),
            is_ready: false,
            is_made: false,
            is_served: false,
        };
        bed.perform(out, self);
        while !bed.is_ready {
            bed.step(self);
        }
        bed
    }

    /// When a request handed in now completes.
    fn completion(self, bed: &mut Bed, member: u8, bytes: u64) -> u64 {
        if member == 0 {
            return bed.now + 50_000 + bytes * 1_000_000_000 / (2 << 30);
        }
        bed.busy_until = bed.busy_until.max(bed.now) + self.seek_ns + bytes * 1_000_000_000 / self.bandwidth;
        bed.busy_until
    }
}

impl Bed {
    fn make_disk(&mut self, size: u64) -> DiskKey {
        let component = Component { id: ComponentId(1), device: DeviceId(2), size, position: 0 };
        let spec = DiskSpec {
            id: DiskId(1),
            size,
            layout: Layout::Component(component),
            verify_checksums: true,
            reading: replication::owner::Reading::Spread,
            limits: node::Limits::default(),
            course: node::Course::default(),
            shape: 0,
            origin: None,
        };
        let new = NewComponent {
            id: component.id,
            disk: spec.id,
            device: component.device,
            size,
            reservation: 0,
            disk_label: Vec::new(),
        };
        let none = Overload { writers: 0, seek_ns: 0, bandwidth: 1 << 30, log_size: 0, seconds: 0 };
        let mut out = Vec::new();
        self.node.ask_component(Instant(self.now), Token(0), ME.node, Request::Create(new), &mut out);
        self.perform(out, none);
        while !self.is_made {
            self.step(none);
        }
        let member = Member {
            component: component.id,
            node: ME.node,
            place: 0,
            rows: None,
            standing: Standing::Active,
            base: WriteId::default(),
            role: Role::Copy,
            ceiling: Ceiling::Unknown,
            lacks: Default::default(),
        };
        let record = (1, Roster { epoch: 0, owner: None, members: vec![member], ..Roster::default() });
        let key = self.node.open_disk(Instant(self.now), spec, record);
        let mut out = Vec::new();
        self.node.set_used(Instant(self.now), DiskId(1), true, &mut out);
        self.perform(out, none);
        while !self.is_served {
            self.step(none);
        }
        key
    }

    fn write(&mut self, disk: DiskKey, token: u64, offset: u64) {
        let mut buffer = self.pool.take(BLOCK_SIZE as usize).expect("few writes are under way");
        // Zeroes would be trims, and fill no log.
        buffer.bytes_mut().fill(1);
        let request = GuestRequest::Write { offset, data: smallvec::smallvec![buffer] };
        let mut out = Vec::new();
        self.node.request(Instant(self.now), Token(token), disk, request, &mut out);
        // Performed at the next step, as an executor takes inputs in batches.
        for output in out {
            if let Output::Reply { token, .. } = output {
                self.replies.push(token.0);
            }
        }
    }

    fn step(&mut self, overload: Overload) {
        let mut out = Vec::new();
        self.node.advance(Instant(self.now), &mut out);
        self.perform(out, overload);
        let wake = self.node.wake_at().map_or(u64::MAX, |at| at.0);
        let next = self.queue.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        self.now = self.now.max(wake.min(next).min(self.now + 1_000_000));
        let mut out = Vec::new();
        while let Some(&Reverse((at, ticket))) = self.queue.peek()
            && at <= self.now
        {
            self.queue.pop();
            let (io, member, kind) = self.requests.remove(&ticket).expect("a request completes once");
            let device = &mut self.devices[member as usize];
            match kind {
                Kind::Read { offset, buffer } => buffer.fill_from(0, &device.read(offset, buffer.len())),
                Kind::Write => device.end_write(ticket),
                Kind::Flush => device.end_flush(ticket),
                Kind::Nothing => {}
            }
            self.node.device_done(Instant(self.now), GroupKey(0), io, Ok(()), &mut out);
        }
        self.perform(out, overload);
    }

    fn perform(&mut self, outputs: Vec<Output>, overload: Overload) {
        for output in outputs {
            match output {
                Output::Reply { token, outcome } => {
                    assert!(outcome.is_ok(), "nothing fails here: {outcome:?}");
                    self.replies.push(token.0);
                }
                Output::Closed { .. } => unreachable!("the disk stays open"),
                Output::Event { .. } => self.is_ready = true,
                Output::Device { output, .. } => self.ask_device(output, overload),
                Output::Fabric(FabricOutput::Component { answer, .. }) => {
                    assert!(matches!(answer, Some(Answer::Done { .. })), "{answer:?}");
                    self.is_made = true;
                }
                Output::Fabric(FabricOutput::Commit { disk, number, expected, .. }) => {
                    let mut more = Vec::new();
                    let done = Committed::Done { version: expected + 1 };
                    self.node.committed(Instant(self.now), disk, number, done, &mut more);
                    self.perform(more, overload);
                }
                Output::Fabric(FabricOutput::Owner { event, .. }) => {
                    self.is_served |= matches!(event, OwnerEvent::Serving { .. });
                }
                Output::Fabric(other) => unreachable!("one host has no others: {other:?}"),
                Output::Compute { .. } => {
                    unreachable!("only opening a log with batches and scrubbing compute")
                }
            }
        }
    }

    fn ask_device(&mut self, output: diskgroup::Output, overload: Overload) {
        self.tickets += 1;
        let ticket = self.tickets;
        let (io, member, bytes, kind) = match output {
            diskgroup::Output::Read { io, member, offset, buffer, .. } => {
                (io, member, buffer.len() as u64, Kind::Read { offset, buffer })
            }
            diskgroup::Output::Write { io, member, offset, buffers, stable, .. } => {
                let data: Vec<u8> = joined(&buffers);
                let len = data.len() as u64;
                self.devices[member as usize].begin_write(ticket, offset, data, stable);
                (io, member, len, Kind::Write)
            }
            diskgroup::Output::Flush { io, member } => {
                self.devices[member as usize].begin_flush(ticket);
                (io, member, 0, Kind::Flush)
            }
            diskgroup::Output::Discard { io, member, .. } => (io, member, 0, Kind::Nothing),
            other => unreachable!("not for a device: {other:?}"),
        };
        let at = overload.completion(self, member, bytes);
        self.queue.push(Reverse((at, ticket)));
        self.requests.insert(ticket, (io, member, kind));
    }
}
