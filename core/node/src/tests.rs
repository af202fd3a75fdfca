//! A node over one group on devices in memory: splitting, joining, partial blocks, components.

use crate::label::{DiskLabel, shape_of};
use crate::{DiskKey, DiskSpec, FabricOutput, FabricSettings, GroupKey, Limits, Node, Output, Token};
use base::request::{Outcome, Piece, Reply, Request, RequestError, StatusOf};
use base::units::{EXTENT_SIZE, MIB};
use base::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, Pool, Random};
use diskgroup::format::anchor::{Anchor, anchor_offset};
use diskgroup::format::superblock::{Geometry, Superblock};
use diskgroup::{Group, Settings, Share, Shares};
use layout::{Component, Layout};
use replication::owner::Committed;
use replication::{Ceiling, Member, Role, Roster, Standing};
use std::collections::{BTreeMap, BTreeSet};

mod memory;
mod sampling;
mod zeroes;

const LOG_SIZE: u64 = 16 * MIB;

/// A node whose device requests are carried out at once, on memory.
struct Bench {
    node: Node,
    pool: Pool,
    device: Vec<u8>,
    now: u64,
    /// What a device takes for a request.
    device_ns: u64,
    next_token: u64,
    replies: BTreeMap<u64, Outcome>,
    closed: BTreeSet<u64>,
    components: BTreeMap<u64, Option<wire::Answer>>,
    /// The records of disks, with their versions.
    directory: BTreeMap<DiskId, (u64, Roster)>,
}

impl Bench {
    fn new(extents: u64) -> Bench {
        let size = LOG_SIZE + (extents + 4) * MIB;
        let geometry = Geometry::plan(size, Some(LOG_SIZE), true).expect("it fits");
        let mut members = [DeviceId(0); 8];
        members[0] = DeviceId(1);
        let superblock = Superblock {
            format: diskgroup::format::FORMAT_PLAIN,
            revision: 1,
            cluster: ClusterId(1),
            host: HostId(1),
            group: GroupId(1),
            device: DeviceId(1),
            index: 0,
            members,
            log_mark: 5,
            size,
            geometry,
        };
        let mut device = vec![0; size as usize];
        let anchor = Anchor { revision: 1, log_mark: 5, tail_batch: 1, ..Anchor::default() };
        device[anchor_offset(1) as usize..][..4096].copy_from_slice(&anchor.encode());
        let pool = Pool::new(64 << 20);
        let mut node = Node::new(
            pool.clone(),
            Instant(1),
            FabricSettings {
                me: replication::OwnedBy { node: ME, incarnation: 1 },
                prefers_local: false,
                copy_floor: crate::limits::COPY_RATE_FLOOR,
                copy_blocks_max: replication::limits::COPY_BLOCKS_MAX,
                move_granules: crate::limits::MOVE_GRANULES,
                fold_after: Some(replication::limits::FOLD_AFTER),
                row_check_pace: 0,
                copy_tail_percent: crate::limits::COPY_TAIL_PERCENT,
                start_patience: std::time::Duration::ZERO,
                former_grants: std::time::Duration::ZERO,
                rules: base::rules::Rules::ALL,
            },
        );
        let (mut first, mut out) = (Vec::new(), Vec::new());
        let group = Group::open(vec![superblock], Settings::default(), pool.clone(), Instant(1), &mut first);
        assert_eq!(node.add_group(group, first, &mut out), GroupKey(0));
        let mut bench = Bench {
            node,
            pool,
            device,
            now: 1,
            device_ns: 1000,
            next_token: 0,
            replies: BTreeMap::new(),
            closed: BTreeSet::new(),
            components: BTreeMap::new(),
            directory: BTreeMap::new(),
        };
        bench.settle(out);
        bench
    }

    /// Carries out what follows at once; what waits for its time goes on waiting.
    fn run_outputs(&mut self, mut out: Vec<Output>) {
        for _ in 0..50 {
            self.now += 1000;
            let now = Instant(self.now);
            let mut more = Vec::new();
            for output in out.drain(..) {
                match output {
                    Output::Reply { token, outcome } => drop(self.replies.insert(token.0, outcome)),
                    Output::Device { group, output } => {
                        let io = self.carry_out(output);
                        self.node.device_done(now, group, io, Ok(()), &mut more);
                    }
                    Output::Compute { group, id, task } => {
                        self.node.computed(now, group, id, task.perform(), &mut more);
                    }
                    Output::Event { .. } | Output::Fabric(_) | Output::Closed { .. } => {}
                }
            }
            self.node.advance(now, &mut more);
            out = more;
        }
        assert!(out.is_empty(), "it settles");
    }

    /// Carries device requests out until nothing is left to do.
    fn settle(&mut self, mut out: Vec<Output>) {
        for _ in 0..100_000 {
            self.now += self.device_ns;
            let now = Instant(self.now);
            let mut more = Vec::new();
            for output in out.drain(..) {
                match output {
                    Output::Reply { token, outcome } => drop(self.replies.insert(token.0, outcome)),
                    Output::Closed { token } => drop(self.closed.insert(token.0)),
                    Output::Event { .. } => {}
                    Output::Fabric(FabricOutput::Component { token, answer }) => {
                        self.components.insert(token.0, answer);
                    }
                    Output::Fabric(FabricOutput::Commit { disk, number, expected, roster }) => {
                        let (version, known) = self.directory.get_mut(&disk).expect("it has a record");
                        assert_eq!(*version, expected, "nobody else writes it");
                        (*version, *known) = (expected + 1, roster);
                        let committed = Committed::Done { version: *version };
                        self.node.committed(now, disk, number, committed, &mut more);
                    }
                    Output::Fabric(FabricOutput::Fetch { disk }) => {
                        let record = self.directory.get(&disk).cloned();
                        self.node.recorded(now, disk, record, &mut more);
                    }
                    Output::Fabric(FabricOutput::Owner { .. }) => {}
                    Output::Fabric(other) => unreachable!("one host has no others: {other:?}"),
                    Output::Compute { group, id, task } => {
                        self.node.computed(now, group, id, task.perform(), &mut more);
                    }
                    Output::Device { group, output } => {
                        let io = self.carry_out(output);
                        self.node.device_done(now, group, io, Ok(()), &mut more);
                    }
                }
            }
            self.node.advance(now, &mut more);
            if more.is_empty() && self.node.is_idle() {
                return;
            }
            if more.is_empty() {
                self.now = self.node.wake_at().map_or(self.now, |at| at.0.max(self.now));
            }
            out = more;
        }
        panic!("it never settles");
    }

    /// Carries device requests out for so long, with these shares, but for writes to where data are at rest if they are
    /// `held`. Gives the extents to which such writes were begun.
    fn run(&mut self, time_ns: u64, shares: Shares, held: bool) -> BTreeSet<u64> {
        let extents =
            Geometry::plan(self.device.len() as u64, Some(LOG_SIZE), true).expect("it fits").extents;
        let end = self.now + time_ns;
        let (mut begun, mut out) = (BTreeSet::new(), Vec::new());
        while self.now < end {
            self.node.shares.of_groups = shares;
            self.node.advance(Instant(self.now), &mut out);
            for output in std::mem::take(&mut out) {
                if let Output::Compute { group, id, task } = output {
                    self.node.computed(Instant(self.now), group, id, task.perform(), &mut out);
                    continue;
                }
                let Output::Device { group, output } = output else { continue };
                if let diskgroup::Output::Write { offset, .. } = &output
                    && held
                    && *offset >= extents.offset
                {
                    begun.insert((offset - extents.offset) / MIB);
                    continue;
                }
                let io = self.carry_out(output);
                self.node.device_done(Instant(self.now), group, io, Ok(()), &mut out);
            }
            self.now += 1000;
        }
        begun
    }

    fn carry_out(&mut self, output: diskgroup::Output) -> diskgroup::Io {
        match output {
            diskgroup::Output::Read { io, offset, buffer, .. } => {
                buffer.fill_from(0, &self.device[offset as usize..][..buffer.len()]);
                io
            }
            diskgroup::Output::Write { io, offset, buffers, .. } => {
                let mut at = offset as usize;
                for buffer in buffers {
                    self.device[at..at + buffer.len()].copy_from_slice(&buffer);
                    at += buffer.len();
                }
                io
            }
            diskgroup::Output::Flush { io, .. } | diskgroup::Output::Discard { io, .. } => io,
            other => panic!("not for a device: {other:?}"),
        }
    }

    fn spec(size: u64, columns: u64) -> DiskSpec {
        let component = |id: u64| Component {
            id: ComponentId(id),
            device: DeviceId(1),
            size: (size / columns).next_multiple_of(EXTENT_SIZE),
            position: 0,
        };
        let layout = match columns {
            1 => Layout::Component(component(1)),
            _ => Layout::Stripe {
                unit: EXTENT_SIZE,
                columns: (1..=columns).map(|id| Layout::Component(component(id))).collect(),
            },
        };
        DiskSpec {
            id: DiskId(1),
            size,
            layout,
            verify_checksums: true,
            reading: replication::owner::Reading::Spread,
            limits: Limits::default(),
            course: crate::Course::default(),
            shape: 0,
            origin: None,
        }
    }

    fn create(&mut self, spec: DiskSpec) -> DiskKey {
        let mut members = Vec::new();
        for (place, copies) in spec.layout.places() {
            for copy in copies {
                assert!(is_done(&self.of_component(wire::Request::Create(described(&spec, place, copy)))));
                members.push(Member {
                    component: copy.id,
                    node: ME,
                    place: place as u16,
                    rows: None,
                    standing: Standing::Active,
                    base: base::WriteId::default(),
                    role: Role::Copy,
                    ceiling: Ceiling::Unknown,
                    lacks: Default::default(),
                });
            }
        }
        let (id, record) = (spec.id, (1, Roster { epoch: 0, owner: None, members, ..Roster::default() }));
        self.directory.insert(id, record.clone());
        let (now, mut out) = (Instant(self.now), Vec::new());
        let key = self.node.open_disk(now, spec, record);
        self.node.set_used(now, id, true, &mut out);
        self.settle(out);
        assert!(self.node.is_serving(key.0), "a guest uses it");
        key
    }

    /// The disk is gone: its components are deleted once nothing uses it.
    fn delete(&mut self, spec: &DiskSpec) {
        let token = self.token();
        let mut out = Vec::new();
        self.directory.remove(&spec.id);
        self.node.recorded(Instant(self.now), spec.id, None, &mut out);
        self.node.close_disk(token, spec.id, &mut out);
        self.settle(out);
        assert!(self.closed.remove(&token.0));
        for (_, component) in spec.layout.components() {
            assert!(is_done(&self.of_component(wire::Request::Delete { component: component.id })));
        }
    }

    fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    fn ask(&mut self, disk: DiskKey, request: Request) -> Outcome {
        let token = self.token();
        let mut out = Vec::new();
        self.now += 1;
        self.node.request(Instant(self.now), token, disk, request, &mut out);
        self.settle(out);
        self.replies.remove(&token.0).expect("every request is answered")
    }

    fn write_request(&self, offset: u64, bytes: &[u8]) -> Request {
        let chunk = |part: &[u8]| {
            let mut buffer = self.pool.take(part.len()).expect("memory");
            buffer.bytes_mut().copy_from_slice(part);
            buffer
        };
        Request::Write { offset, data: bytes.chunks(1 << 20).map(chunk).collect() }
    }

    fn read(&mut self, disk: DiskKey, offset: u64, len: usize) -> Vec<u8> {
        let Ok(Reply::Data(pieces)) = self.ask(disk, Request::Read { offset, len: len as u32 }) else {
            panic!("a read of {len} bytes at {offset} failed")
        };
        let mut bytes = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Bytes(buffer) => bytes.extend_from_slice(&buffer),
                Piece::Hole(len) => bytes.resize(bytes.len() + len as usize, 0),
            }
        }
        assert_eq!(bytes.len(), len);
        bytes
    }
}

#[test]
fn any_mix_of_sectors_reads_back_as_a_flat_file_would() {
    for (seed, columns) in [(1, 1), (2, 3)] {
        let mut random = Random::new(seed);
        let size = 12 * MIB + 512 * 3;
        let mut bench = Bench::new(40);
        let disk = bench.create(Bench::spec(size, columns));
        let mut model = vec![0u8; size as usize];
        for _ in 0..400 {
            let sectors = [1, 2, 7, 8, 9, 300, 5000][random.below(7) as usize];
            let len = (sectors * 512).min(size);
            let offset = random.below((size - len) / 512 + 1) * 512;
            let range = offset as usize..(offset + len) as usize;
            match random.below(5) {
                0..2 => {
                    let mut bytes = vec![0; len as usize];
                    random.fill(&mut bytes);
                    let request = bench.write_request(offset, &bytes);
                    assert!(bench.ask(disk, request).is_ok());
                    model[range].copy_from_slice(&bytes);
                }
                2 => {
                    let allocate = random.chance(1, 2);
                    assert!(bench.ask(disk, Request::WriteZeroes { offset, len, allocate }).is_ok());
                    model[range].fill(0);
                }
                3 => {
                    assert!(bench.ask(disk, Request::Trim { offset, len }).is_ok());
                    let whole =
                        offset.next_multiple_of(4096) as usize..((offset + len) / 4096 * 4096) as usize;
                    if whole.start < whole.end {
                        model[whole].fill(0);
                    }
                }
                _ => assert_eq!(
                    bench.read(disk, offset, len as usize),
                    &model[range],
                    "{len} bytes at {offset}"
                ),
            }
        }
        assert_eq!(bench.read(disk, 0, size as usize), model);
    }
}

#[test]
fn writes_to_parts_of_one_block_at_once_lose_nothing() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(4 * MIB, 1));
    let mut out = Vec::new();
    for sector in 0..16u8 {
        let request = bench.write_request(u64::from(sector) * 512, &[sector + 1; 512]);
        let token = bench.token();
        bench.node.request(Instant(bench.now), token, disk, request, &mut out);
    }
    bench.settle(out);
    let bytes = bench.read(disk, 0, 8192);
    for (sector, chunk) in bytes.chunks(512).enumerate() {
        assert!(chunk.iter().all(|&byte| byte == sector as u8 + 1), "sector {sector}");
    }
}

#[test]
fn status_tells_what_is_backed_by_space() {
    let mut bench = Bench::new(20);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    let request = bench.write_request(MIB, &[7; 8192]);
    assert!(bench.ask(disk, request).is_ok());
    let Ok(Reply::Status(runs)) =
        bench.ask(disk, Request::Status { of: StatusOf::Disk, offset: 512, len: 4 * MIB })
    else {
        panic!("a status is told")
    };
    let runs: Vec<(u64, bool)> = runs.iter().map(|run| (run.len, run.is_set)).collect();
    assert_eq!(runs, [(MIB - 512, false), (8192, true), (3 * MIB - 8192 + 512, false)]);
}

/// A question about 4 GiB looked at 4,096 parts one by one, and at each block of those with data, in one turn of the engine.
#[test]
fn a_question_about_allocation_is_answered_in_runs_and_looks_up_a_bounded_number_of_parts() {
    let parts = 140;
    let mut bench = Bench::new(parts + 4);
    let disk = bench.create(Bench::spec(200 * 1024 * MIB, 1));
    for part in 0..parts {
        let request = bench.write_request(part * MIB, &[7; 4096]);
        assert!(bench.ask(disk, request).is_ok());
    }
    let last = bench.write_request(150 * 1024 * MIB, &[7; 4096]);
    assert!(bench.ask(disk, last).is_ok());
    let mut ask = |offset, len| match bench.ask(disk, Request::Status { of: StatusOf::Disk, offset, len }) {
        Ok(Reply::Status(runs)) => runs.iter().map(|run| (run.len, run.is_set)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let all = 200 * 1024 * MIB;
    let runs = ask(0, all);
    let most = wire::limits::ALLOCATION_LOOKUPS_MAX;
    assert_eq!(runs.iter().map(|(len, _)| len).sum::<u64>(), most as u64 * MIB, "it ends early");
    assert_eq!((runs.len(), runs[0]), (2 * most, (4096, true)));
    let (mut runs, mut next) = (Vec::new(), most as u64 * MIB);
    while next < all {
        let more = ask(next, all - next);
        next += more.iter().map(|(len, _)| len).sum::<u64>();
        for (len, is_allocated) in more {
            match runs.last_mut() {
                Some((before, same)) if *same == is_allocated => *before += len,
                _ => runs.push((len, is_allocated)),
            }
        }
    }
    assert_eq!(runs.len(), 2 * (parts as usize - most) + 2);
    let before = (150 * 1024 - parts) * MIB + MIB - 4096;
    assert_eq!(runs[runs.len() - 3..], [(before, false), (4096, true), (50 * 1024 * MIB - 4096, false)]);
}

#[test]
fn what_a_smaller_size_left_out_is_zero_when_the_disk_grows_again() {
    let mut bench = Bench::new(40);
    let spec = Bench::spec(10 * MIB, 1);
    let disk = bench.create(spec.clone());
    let request = bench.write_request(0, &vec![9; 10 << 20]);
    assert!(bench.ask(disk, request).is_ok());
    let mut resize = |size: u64, version: u64| {
        let (now, mut out) = (Instant(bench.now), Vec::new());
        bench.node.update_disk(now, version, DiskSpec { size, ..spec.clone() }, &mut out);
        bench.settle(out);
        let token = bench.token();
        let mut out = Vec::new();
        bench.node.give_back(Instant(bench.now), token, spec.id, (size, 10 * MIB), &mut out);
        bench.settle(out);
        let beyond = bench.ask(disk, Request::Read { offset: size, len: 512 });
        assert!(matches!(beyond, Err(RequestError::OutOfRange)), "{beyond:?}");
    };
    resize(5 * MIB - 512, 10);
    resize(10 * MIB, 11);
    let bytes = bench.read(disk, 0, 10 << 20);
    let cut = (5 * MIB - 512) as usize;
    assert!(bytes[..cut].iter().all(|&byte| byte == 9) && bytes[cut..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_deleted_disk_refuses_requests_and_gives_its_space_back() {
    let mut bench = Bench::new(20);
    for round in 0..6 {
        let disk = bench.create(Bench::spec(10 * MIB, 1));
        let request = bench.write_request(0, &vec![round + 1; 10 << 20]);
        assert!(bench.ask(disk, request).is_ok(), "round {round}: space came back");
        bench.delete(&Bench::spec(10 * MIB, 1));
        let late = bench.ask(disk, Request::Read { offset: 0, len: 512 });
        assert!(matches!(late, Err(RequestError::Stopping)), "{late:?}");
    }
}

#[test]
fn a_full_device_refuses_new_space_only() {
    let mut bench = Bench::new(12);
    let disk = bench.create(Bench::spec(64 * MIB, 1));
    let mut written = 0;
    let refused = loop {
        let request = bench.write_request(written, &[1; 4096]);
        match bench.ask(disk, request) {
            Ok(_) => written += MIB,
            Err(error) => break error,
        }
    };
    assert_eq!((refused, written >= 8 * MIB), (RequestError::NoSpace, true));
    let request = bench.write_request(0, &[2; 8192]);
    assert!(bench.ask(disk, request).is_ok(), "what has space is written over");
    assert_eq!(bench.read(disk, 0, 4096), vec![2; 4096]);
    assert!(bench.ask(disk, Request::Trim { offset: 0, len: MIB }).is_ok());
    let request = bench.write_request(written, &[3; 4096]);
    assert!(bench.ask(disk, request).is_ok(), "space that was given back is used");
}

#[test]
fn work_of_a_device_that_hangs_goes_on_while_nothing_happens() {
    let mut bench = Bench::new(12);
    let disk = bench.create(Bench::spec(64 * MIB, 1));
    let (token, request) = (bench.token(), bench.write_request(0, &[1; 4096]));
    let mut hung = Vec::new();
    bench.node.request(Instant(bench.now), token, disk, request, &mut hung);
    bench.node.advance(Instant(bench.now), &mut hung);
    assert!(hung.iter().any(|output| matches!(output, Output::Device { .. })), "the device has work");
    let effort = |later: u64| {
        let (_, group) = bench.node.groups().next().expect("there is a group");
        group.state_at(Instant(bench.now + later)).members[0].effort
    };
    let (now, later) = (effort(0), effort(7_000_000));
    assert_eq!((later.busy_ns - now.busy_ns, later.requests), (7_000_000, now.requests));
}

#[test]
fn disks_are_found_on_their_devices_alone() {
    let mut bench = Bench::new(20);
    let spec = Bench::spec(9 * MIB, 3);
    bench.create(spec.clone());
    let found = bench.node.found();
    assert_eq!((found.len(), found[0].layout.as_ref()), (1, Some(&spec.layout)));
    assert_eq!((found[0].label.name.as_str(), found[0].label.size), ("disk", spec.size));
}

/// A host by itself has no other measure of what its guests feel.
#[test]
fn guests_of_a_host_by_itself_who_feel_it_have_scrubbing_and_destaging_give_way() {
    let mut bench = Bench::new(16);
    let disk = bench.create(Bench::spec(8 * MIB, 1));
    let shares = |bench: &Bench| bench.node.group(GroupKey(0)).expect("it is open").shares;
    let write = bench.write_request(0, &[7; 4096]);
    for _ in 0..1000 {
        bench.now += 1_000_000;
        assert!(bench.ask(disk, write.clone()).is_ok());
    }
    assert_eq!(shares(&bench), Shares::FULL);
    bench.device_ns = 5_000_000;
    for _ in 0..50 {
        assert!(bench.ask(disk, write.clone()).is_ok());
    }
    let Shares { scrub, destage } = shares(&bench);
    assert!(scrub < Share::FULL && destage < Share::FULL);
}

#[test]
fn scrubbing_goes_at_its_share() {
    let scrubbed = |scrub: Share| {
        let mut bench = Bench::new(16);
        let disk = bench.create(Bench::spec(8 * MIB, 1));
        let write = bench.write_request(0, &vec![7; 8 * MIB as usize]);
        assert!(bench.ask(disk, write).is_ok());
        bench.node.group_mut(GroupKey(0)).expect("it is open").set_scrub_pace(1 << 30);
        bench.run(20_000_000, Shares { scrub, ..Shares::FULL }, false);
        let group = bench.node.group(GroupKey(0)).expect("it is open");
        group.state().counters.scrubbed_bytes / MIB
    };
    assert_eq!(scrubbed(Share::FULL), 8, "one in a millisecond");
    assert!((1..=2).contains(&scrubbed(Share::FLOOR)), "one in sixteen");
}

#[test]
fn destaging_keeps_its_share_in_flight() {
    let in_flight = |destage: Share| {
        let mut bench = Bench::new(40);
        let disk = bench.create(Bench::spec(32 * MIB, 1));
        let shares = Shares { destage, ..Shares::FULL };
        for number in 0..2000 {
            let (token, mut out) = (bench.token(), Vec::new());
            let write = bench.write_request(number % 32 * MIB + number / 32 * 8192, &[7; 4096]);
            bench.node.request(Instant(bench.now), token, disk, write, &mut out);
            assert!(out.is_empty(), "it waits for the batch");
            let begun = bench.run(5000, shares, true);
            if !begun.is_empty() {
                return begun.len();
            }
        }
        panic!("the log fills and nothing is destaged")
    };
    assert_eq!((in_flight(Share::FULL), in_flight(Share::FLOOR)), (8, 1));
}

#[test]
fn scrubbing_gives_way_to_a_log_that_is_congested() {
    let mut bench = Bench::new(40);
    let disk = bench.create(Bench::spec(32 * MIB, 1));
    let congestion = |bench: &Bench| bench.node.group(GroupKey(0)).expect("it is open").congestion();
    for number in 0..2000 {
        let (token, mut out) = (bench.token(), Vec::new());
        let write = bench.write_request(number % 32 * MIB + number / 32 * 8192, &[7; 4096]);
        bench.node.request(Instant(bench.now), token, disk, write, &mut out);
        bench.run(5000, Shares::FULL, true);
        if congestion(&bench) > 0 {
            break;
        }
    }
    assert!(congestion(&bench) > 0, "nothing comes to rest");
    bench.now += 200_000_000;
    bench.node.advance(Instant(bench.now), &mut Vec::new());
    let Shares { scrub, destage } = bench.node.shares.of_groups;
    assert!(scrub < Share::FULL && destage == Share::FULL);
}

const ME: base::NodeId = base::NodeId { host: HostId(1), shard: 0 };

impl Bench {
    /// Asks the node for something about a component of its own.
    fn of_component(&mut self, request: wire::Request) -> wire::Answer {
        let token = self.token();
        let mut out = Vec::new();
        self.node.ask_component(Instant(self.now), token, ME, request, &mut out);
        self.settle(out);
        self.components.remove(&token.0).flatten().expect("it answers")
    }
}

/// The state of the cluster looked every disk up by a search through all: 16 million steps with 4,000 disks, every second.
#[test]
fn the_state_of_all_disks_takes_one_pass() {
    let visited = |count: u64| {
        let mut bench = Bench::new(16);
        for disk in 1..=count {
            let leaf = Component { id: ComponentId(disk), device: DeviceId(99), size: MIB, position: 0 };
            let layout = Layout::Component(leaf);
            let record = (1, replication::Roster { epoch: 0, owner: None, ..Default::default() });
            let spec = DiskSpec { id: DiskId(disk.into()), layout, ..Bench::spec(MIB, 1) };
            bench.node.open_disk(Instant(1), spec, record);
        }
        bench.node.disks.take_visited();
        assert_eq!(bench.node.ownerships().count() as u64, count);
        let all = bench.node.disks.take_visited() as u64;
        assert_eq!(bench.node.owned_disks().count(), 0);
        let owned = bench.node.disks.take_visited() as u64;
        for disk in 1..=count {
            assert!(bench.node.disk(DiskId(disk.into())).is_some());
        }
        [all, owned, bench.node.disks.take_visited() as u64]
    };
    assert_eq!(visited(1000), [1000; 3]);
    assert_eq!(visited(4000), [4000; 3]);
}

const COMPONENT: ComponentId = ComponentId(7);

fn new_component(size: u64) -> wire::NewComponent {
    let (id, disk, device) = (COMPONENT, DiskId(1), DeviceId(1));
    wire::NewComponent { id, disk, device, size, reservation: 0, disk_label: Vec::new() }
}

/// A component of a disk, with what it tells of that.
fn described(spec: &DiskSpec, place: usize, component: &Component) -> wire::NewComponent {
    let record = DiskLabel {
        name: "disk".to_owned(),
        size: spec.size,
        policy: String::new(),
        read_only: false,
        place: place as u16,
        position: component.position,
        shape: shape_of(&spec.layout).expect("it is a stripe at most"),
        origin: None,
    };
    wire::NewComponent {
        id: component.id,
        disk: spec.id,
        device: component.device,
        size: component.size,
        reservation: 0,
        disk_label: record.encode().expect("it is short"),
    }
}

fn is_done(answer: &wire::Answer) -> bool {
    matches!(answer, wire::Answer::Done { .. })
}

#[test]
fn a_component_never_becomes_smaller_and_tells_its_owner_what_it_has() {
    use wire::{Answer, EntryKind, Refusal, Request};
    let mut bench = Bench::new(16);
    let component = COMPONENT;
    let new = new_component;
    assert!(is_done(&bench.of_component(Request::Create(new(2 * MIB)))));
    assert!(is_done(&bench.of_component(Request::Update(new(4 * MIB)))));
    assert!(is_done(&bench.of_component(Request::Update(new(2 * MIB)))), "one that is late");
    let (_, state) = bench.node.group(GroupKey(0)).expect("it is there").components()[0].clone();
    assert_eq!(state.record.size, 4 * MIB);

    let epoch = 1;
    let opened = bench.of_component(Request::Open { disk: DiskId(1), component, epoch });
    assert!(matches!(opened, Answer::Opened { .. }), "{opened:?}");
    let id = |sequence| base::WriteId { epoch, sequence };
    let trim = |part, kind| Request::Trim {
        marks: 0,
        component,
        epoch,
        id: id(9),
        watermark: base::WriteId::default(),
        kind,
        part,
        block: 0,
        count: 256,
    };
    // A copy of a hole behind the end changes nothing; a guest's trim there is one of a disk that is not so large.
    assert!(is_done(&bench.of_component(trim(4, EntryKind::Copy))));
    let refused = bench.of_component(trim(4, EntryKind::Guest(base::RequestTag(1))));
    assert!(matches!(refused, Answer::Refused(Refusal::NoComponent)), "{refused:?}");

    let data = bench.pool.take_zeroed(8192).expect("there is room");
    let checksum = base::checksum::crc32c(&data[..4096]);
    let write = Request::Write {
        marks: 0,
        component,
        epoch,
        id: id(1),
        watermark: base::WriteId::default(),
        kind: EntryKind::Guest(base::RequestTag(2)),
        part: 2,
        block: 255 - 1,
        data: smallvec::smallvec![data],
        checksums: smallvec::smallvec![checksum, checksum],
    };
    assert!(is_done(&bench.of_component(write)));
    let runs = |bench: &mut Bench, part, count| match bench.of_component(Request::Allocation {
        component,
        epoch,
        of: StatusOf::Disk,
        part,
        count,
    }) {
        Answer::Allocation(runs) => runs.iter().map(|run| (run.len, run.is_set)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(runs(&mut bench, 0, 4), [(3 * MIB - 8192, false), (8192, true), (MIB, false)]);
    assert_eq!(runs(&mut bench, 3, 1), [(MIB, false)]);
    assert!(is_done(&bench.of_component(Request::Update(new(8192 * MIB)))), "it grows");
    let first = [(3 * MIB - 8192, false), (8192, true), (8189 * MIB, false)];
    assert_eq!(runs(&mut bench, 0, 8192), first, "one answer tells of 8 GiB");
    let beyond = bench.of_component(Request::Allocation {
        component,
        epoch,
        of: StatusOf::Disk,
        part: 8191,
        count: 2,
    });
    let Answer::Allocation(beyond) = beyond else { panic!("{beyond:?}") };
    assert_eq!(
        (beyond.len(), beyond[0].len, beyond[0].is_set),
        (1, 2 * MIB, false),
        "nothing is behind the end"
    );
    let other = bench.of_component(Request::Allocation {
        component,
        epoch: 2,
        of: StatusOf::Disk,
        part: 0,
        count: 1,
    });
    assert!(matches!(other, Answer::Refused(Refusal::NotOpen)), "{other:?}");
}

/// A host that joins again may hold a component that no record names and that promised a later epoch than the record's. It is kept, and
/// must neither take the place of a new copy of its disk nor fence it.
#[test]
fn a_component_that_is_kept_lets_a_new_copy_of_its_disk_stand_beside_it() {
    use wire::{Answer, Refusal, Request};
    let mut bench = Bench::new(16);
    let disk = DiskId(1);
    let open = |component, epoch| Request::Open { disk, component, epoch };
    assert!(is_done(&bench.of_component(Request::Create(new_component(2 * MIB)))));
    assert!(matches!(bench.of_component(open(COMPONENT, 9)), Answer::Opened { .. }));
    let copy = ComponentId(COMPONENT.0 + 1);
    let new = wire::NewComponent { id: copy, ..new_component(2 * MIB) };
    assert!(is_done(&bench.of_component(Request::Create(new))));
    assert!(matches!(bench.of_component(open(copy, 3)), Answer::Opened { .. }));
    let promised = |id: ComponentId| {
        let components = bench.node.group(GroupKey(0)).expect("it is there").components();
        components
            .into_iter()
            .find(|(_, state)| state.record.id == id)
            .map(|(_, state)| state.record.promised)
    };
    assert_eq!((promised(COMPONENT), promised(copy)), (Some(9), Some(3)));
    // Only its own identity is taken.
    let again = bench.of_component(Request::Create(new_component(2 * MIB)));
    assert!(matches!(again, Answer::Refused(Refusal::NoSlot)), "{again:?}");
}

/// What a slice of a copy of part 1 says.
fn slice_of_copy(bench: &Bench, id: base::WriteId, block: u16, count: usize) -> wire::Request {
    let data = bench.pool.take_zeroed(count * 4096).expect("there is room");
    let checksums = data.chunks_exact(4096).map(base::checksum::crc32c).collect();
    wire::Request::Write {
        marks: 0,
        component: COMPONENT,
        epoch: 1,
        id,
        watermark: base::WriteId::default(),
        kind: wire::EntryKind::Copy,
        part: 1,
        block,
        data: smallvec::smallvec![data],
        checksums,
    }
}

/// Bytes that went past the log and through it once a host has what those slices say, one after the other without waiting.
fn ways_of_slices(slices: &[(u16, u16)]) -> (u64, u64) {
    let mut bench = Bench::new(16);
    assert!(is_done(&bench.of_component(wire::Request::Create(new_component(2 * MIB)))));
    bench.of_component(wire::Request::Open { disk: DiskId(1), component: COMPONENT, epoch: 1 });
    let before = bench.node.group(GroupKey(0)).expect("it is there").state().counters.batch_bytes;
    let (mut out, mut tokens) = (Vec::new(), Vec::new());
    for (block, count) in slices {
        let id = base::WriteId { epoch: 1, sequence: 3 };
        let request = slice_of_copy(&bench, id, *block, usize::from(*count));
        let token = bench.token();
        bench.node.ask_component(Instant(bench.now), token, ME, request, &mut out);
        tokens.push(token);
    }
    assert!(bench.components.is_empty(), "none is done before it is stable");
    bench.settle(out);
    for token in tokens {
        let answer = bench.components.remove(&token.0).flatten().expect("each is answered");
        assert!(is_done(&answer), "{answer:?}");
    }
    let counters = bench.node.group(GroupKey(0)).expect("it is there").state().counters;
    (counters.direct_bytes, counters.batch_bytes - before)
}

#[test]
fn slices_of_a_whole_part_go_past_the_log_together_and_any_others_through_it() {
    let whole: Vec<(u16, u16)> = (0..8).map(|slice| (slice * 32, 32)).collect();
    let (direct, in_log) = ways_of_slices(&whole);
    assert!(direct == MIB && in_log < MIB / 8, "{direct} past the log, {in_log} through it");
    let mut twice = whole[..5].to_vec();
    twice.extend(&whole);
    let (gap, late) = ([&whole[..3], &whole[4..]].concat(), whole[1..].to_vec());
    // What is still in the log has no place that a whole part could take: all that came twice goes behind it.
    for (slices, past, through) in [(gap, 0, 7), (late, 0, 7), (whole[..7].to_vec(), 0, 7), (twice, 0, 13)] {
        let (direct, in_log) = ways_of_slices(&slices);
        assert_eq!((direct, in_log / (MIB / 8)), (past * MIB, through), "{slices:?}");
    }
}

#[test]
fn a_copy_of_a_whole_part_goes_past_the_log_though_guests_have_written_there_and_lessens_no_version() {
    use wire::{Answer, EntryKind, Request, Versions};
    let mut bench = Bench::new(16);
    assert!(is_done(&bench.of_component(Request::Create(new_component(2 * MIB)))));
    let (component, epoch) = (COMPONENT, 1);
    bench.of_component(Request::Open { disk: DiskId(1), component, epoch });
    let id = |sequence| base::WriteId { epoch, sequence };
    let write = |bench: &mut Bench, kind, id, block, count: usize| {
        let data = bench.pool.take_zeroed(count * 4096).expect("there is room");
        let checksums = data.chunks_exact(4096).map(base::checksum::crc32c).collect();
        let (watermark, data) = (base::WriteId::default(), smallvec::smallvec![data]);
        let request = Request::Write {
            marks: 0,
            component,
            epoch,
            id,
            watermark,
            kind,
            part: 1,
            block,
            data,
            checksums,
        };
        assert!(is_done(&bench.of_component(request)));
    };
    write(&mut bench, EntryKind::Guest(base::RequestTag(1)), id(5), 9, 1);
    write(&mut bench, EntryKind::Copy, id(2), 0, 256);
    let counters = bench.node.group(GroupKey(0)).expect("it is there").state().counters;
    assert_eq!((counters.direct_bytes, counters.copied_bytes), (MIB, MIB));
    assert!(counters.batch_bytes < MIB, "{} bytes went through the log", counters.batch_bytes);
    let since = id(4);
    let changed = bench.of_component(Request::Changed { component, epoch, since, from_part: 0 });
    let Answer::Changed { parts, .. } = changed else { panic!("{changed:?}") };
    let [one] = &parts[..] else { panic!("{parts:?}") };
    let Versions::Regions(regions) = &one.versions else { panic!("{one:?}") };
    assert!(one.part == 1 && regions.iter().all(|region| *region == id(5)), "{regions:?}");
}

#[test]
fn word_of_a_freeing_that_comes_to_a_part_in_use_changes_no_block() {
    use wire::{EntryKind, Request};
    let mut bench = Bench::new(16);
    assert!(is_done(&bench.of_component(Request::Create(new_component(2 * MIB)))));
    let (component, epoch) = (COMPONENT, 1);
    bench.of_component(Request::Open { disk: DiskId(1), component, epoch });
    let (part, watermark) = (1, base::WriteId::default());
    let id = |sequence| base::WriteId { epoch, sequence };
    let mut data = bench.pool.take_zeroed(4096).expect("there is room");
    data.bytes_mut().fill(7);
    let checksums = smallvec::smallvec![base::checksum::crc32c(&data)];
    let (kind, data) = (EntryKind::Guest(base::RequestTag(1)), smallvec::smallvec![data]);
    let write = Request::Write {
        marks: 0,
        component,
        epoch,
        id: id(5),
        watermark,
        kind,
        part,
        block: 9,
        data,
        checksums,
    };
    assert!(is_done(&bench.of_component(write)));
    // What the page of the part says is in memory once it was read for this.
    let since = base::WriteId::default();
    let changed = |bench: &mut Bench| match bench.of_component(Request::Changed {
        component,
        epoch,
        since,
        from_part: 0,
    }) {
        wire::Answer::Changed { parts, .. } => parts,
        other => panic!("{other:?}"),
    };
    changed(&mut bench);
    for block in [0, 9] {
        let kind = EntryKind::Copy;
        let freed =
            Request::Trim { marks: 0, component, epoch, id: id(2), watermark, kind, part, block, count: 0 };
        assert!(is_done(&bench.of_component(freed)));
    }
    let parts = changed(&mut bench);
    let of_part = parts.iter().find(|one| one.part == part).expect("it was written");
    let wire::Versions::Regions(regions) = &of_part.versions else { panic!("{of_part:?}") };
    assert_eq!(regions[0], id(5), "what was written later counts as before");
    assert!(regions[1..].iter().all(|region| *region == id(2)), "and all else as freed: {regions:?}");
    let read = Request::Read { component, epoch, part, block: 9, count: 1, verify: true };
    let wire::Answer::Data { pieces, .. } = bench.of_component(read) else { panic!("it is read") };
    assert!(matches!(&pieces[..], [Piece::Bytes(bytes)] if bytes.iter().all(|byte| *byte == 7)));
}

/// A write that waited for its limit took effect seconds after its guest was gone, over what the guest had written elsewhere.
#[test]
fn a_request_that_waits_for_a_limit_never_begins_once_its_guest_is_gone() {
    let found = |removed: Option<replication::Rule>| {
        let mut bench = Bench::new(16);
        bench.node.fabric.settings.rules = removed.into();
        bench.now = 10_000_000_000;
        let limits = Limits { iops: Some(10), bytes: None };
        let disk = bench.create(DiskSpec { limits, ..Bench::spec(4 * MIB, 1) });
        let mut tokens = Vec::new();
        for number in 0..30u8 {
            let request = bench.write_request(u64::from(number) * 4096, &[number + 1; 4096]);
            let (token, mut out) = (bench.token(), Vec::new());
            bench.node.request(Instant(bench.now), token, disk, request, &mut out);
            tokens.push(token);
            bench.run_outputs(out);
        }
        let waiting = bench.node.disk_activity(disk).limits.waiting;
        assert!((15..=20).contains(&waiting), "a second's worth has begun, {waiting} wait");
        let mut out = Vec::new();
        bench.node.abandon(Instant(bench.now), tokens[29], &mut out);
        bench.settle(out);
        assert!(bench.replies.contains_key(&tokens[28].0), "the others had their turn");
        (bench.replies.contains_key(&tokens[29].0), bench.read(disk, 29 * 4096, 4096) == [30; 4096])
    };
    assert_eq!(found(None), (true, false), "it ended, and never happened");
    assert_eq!(found(Some(replication::Rule::BeginNothingAbandoned)), (true, true), "the rule is needed");
}

/// A disk whose limit goes, and one that is closed, keep no request back.
#[test]
fn requests_that_wait_begin_when_the_limit_goes_and_end_when_the_disk_does() {
    let mut bench = Bench::new(16);
    let limits = Limits { iops: Some(2), bytes: None };
    let spec = DiskSpec { limits, ..Bench::spec(4 * MIB, 1) };
    let disk = bench.create(spec.clone());
    let ask = |bench: &mut Bench| {
        let (token, mut out) = (bench.token(), Vec::new());
        let request = Request::Read { offset: 0, len: 4096 };
        bench.node.request(Instant(bench.now), token, disk, request, &mut out);
        bench.run_outputs(out);
        token
    };
    let first: Vec<Token> = (0..6).map(|_| ask(&mut bench)).collect();
    let answered = |bench: &Bench, tokens: &[Token]| {
        tokens.iter().filter(|token| bench.replies.contains_key(&token.0)).count()
    };
    assert!(answered(&bench, &first) < 5, "they wait");
    let mut out = Vec::new();
    let free = DiskSpec { limits: Limits::default(), ..spec.clone() };
    let before = bench.now;
    assert!(bench.node.update_disk(Instant(bench.now), 9, free, &mut out));
    bench.run_outputs(out);
    assert_eq!((answered(&bench, &first), bench.now - before < 100_000_000), (6, true));
    let mut out = Vec::new();
    assert!(bench.node.update_disk(Instant(bench.now), 10, spec.clone(), &mut out));
    bench.run_outputs(out);
    let second: Vec<Token> = (0..6).map(|_| ask(&mut bench)).collect();
    bench.delete(&spec);
    assert_eq!(answered(&bench, &second), 6, "all are answered");
}
