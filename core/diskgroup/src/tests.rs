//! A group with a log device and a capacity device of its own, in memory: what a failure of the second leaves, and what is known
//! after a restart.

mod backfill;
mod compressed;
mod computing;
mod headers;
mod held_mapped;
mod holding;
mod mapped;
mod mending;
mod rewriting;

use crate::format::anchor::{Anchor, anchor_offset};
use crate::format::batch::Origin;
use crate::format::page::ComponentRecord;
use crate::format::superblock::{Geometry, Superblock};
use crate::format::{FORMAT_PLAIN, FORMAT_VERSION};
use crate::leaving::Lost;
use crate::{
    Completion, ComponentKey, ComputeId, Event, Group, GroupError, Input, Io, IoFailure, Op, Output, Rule,
    Settings, Task,
};
use base::units::{BLOCK_SIZE, EXTENT_SIZE, MIB};
use base::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, Pool, RequestTag, WriteId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

const LOG_SIZE: u64 = 16 * MIB;
const SIZES: [u64; 2] = [LOG_SIZE + 8 * MIB, 40 * MIB];

fn superblock(index: usize) -> Superblock {
    superblock_of(index, FORMAT_PLAIN)
}

fn superblock_of(index: usize, format: u32) -> Superblock {
    let mut members = [DeviceId(0); 8];
    (members[0], members[1]) = (DeviceId(1), DeviceId(2));
    let log_size = (index == 0).then_some(LOG_SIZE);
    Superblock {
        format,
        revision: 1,
        cluster: ClusterId(1),
        host: HostId(1),
        group: GroupId(1),
        device: members[index],
        index: index as u8,
        members,
        log_mark: 5,
        size: SIZES[index],
        geometry: Geometry::plan(SIZES[index], log_size, index == 1).expect("it fits"),
    }
}

/// A group whose device requests are carried out at once, on memory, but for writes of whole extents: these are held.
struct Bench {
    format: u32,
    group: Group,
    pool: Pool,
    devices: [Vec<u8>; 2],
    now: u64,
    held: Vec<Io>,
    /// Blocks (member, number) that fail reads.
    bad: BTreeSet<(u8, u64)>,
    /// Work of the processor, if it is held and not done at once.
    computing: Vec<(ComputeId, Task)>,
    holds_computing: bool,
    events: Vec<Event>,
    done: BTreeMap<u64, Result<Completion, GroupError>>,
}

impl Bench {
    fn new() -> Bench {
        Bench::open(Bench::blank())
    }

    fn blank() -> [Vec<u8>; 2] {
        let mut devices = SIZES.map(|size| vec![0; size as usize]);
        let anchor = Anchor { revision: 1, log_mark: 5, tail_batch: 1, ..Anchor::default() };
        devices[0][anchor_offset(1) as usize..][..BLOCK_SIZE as usize].copy_from_slice(&anchor.encode());
        devices
    }

    fn open(devices: [Vec<u8>; 2]) -> Bench {
        Bench::open_with(devices, Settings::default(), BTreeSet::new())
    }

    fn open_with(devices: [Vec<u8>; 2], settings: Settings, bad: BTreeSet<(u8, u64)>) -> Bench {
        Bench::start(devices, settings, bad, false)
    }

    /// A group of the format with a map of blocks. Nothing of it is held.
    fn mapped(devices: [Vec<u8>; 2]) -> Bench {
        Bench::start_of(FORMAT_VERSION, devices, Settings::default(), (BTreeSet::new(), false))
    }

    fn start(
        devices: [Vec<u8>; 2],
        settings: Settings,
        bad: BTreeSet<(u8, u64)>,
        holds_computing: bool,
    ) -> Bench {
        Bench::start_of(FORMAT_PLAIN, devices, settings, (bad, holds_computing))
    }

    fn start_of(
        format: u32,
        devices: [Vec<u8>; 2],
        settings: Settings,
        bad_and_held: (BTreeSet<(u8, u64)>, bool),
    ) -> Bench {
        let (mut bench, out) = Bench::begin(format, devices, settings, bad_and_held);
        bench.settle(out);
        bench
    }

    /// A group that begins to open, with what it asks for first.
    fn begin(
        format: u32,
        devices: [Vec<u8>; 2],
        settings: Settings,
        (bad, holds_computing): (BTreeSet<(u8, u64)>, bool),
    ) -> (Bench, Vec<Output>) {
        let pool = Pool::new(64 << 20);
        let mut out = Vec::new();
        let superblocks = vec![superblock_of(0, format), superblock_of(1, format)];
        let group = Group::open(superblocks, settings, pool.clone(), Instant(1), &mut out);
        let (held, events, done) = (Vec::new(), Vec::new(), BTreeMap::new());
        let computing = Vec::new();
        let bench = Bench {
            format,
            group,
            pool,
            devices,
            now: 1,
            held,
            bad,
            computing,
            holds_computing,
            events,
            done,
        };
        (bench, out)
    }

    /// The process ends, and begins again with what the devices hold.
    fn restart(self) -> Bench {
        Bench::start_of(self.format, self.devices, Settings::default(), (BTreeSet::new(), false))
    }

    /// Carries device requests out until nothing is left to do but what is held.
    fn settle(&mut self, mut out: Vec<Output>) {
        for _ in 0..10_000 {
            self.now += 1000;
            let now = Instant(self.now);
            let mut more = Vec::new();
            for output in out.drain(..) {
                if let Output::Compute { id, task } = output {
                    if self.holds_computing {
                        self.computing.push((id, task));
                        continue;
                    }
                    let computed = task.perform();
                    // Its buffers are free again.
                    self.computing.push((id, Task { data: SmallVec::new(), ..task }));
                    self.group.step(now, Input::Computed { id, computed }, &mut more);
                    continue;
                }
                if let Some((io, result)) = self.carry_out(output) {
                    self.group.step(now, Input::DeviceDone { io, result }, &mut more);
                }
            }
            self.group.advance(now, &mut more);
            if more.is_empty() {
                return;
            }
            out = more;
        }
        panic!("it never settles");
    }

    /// What a device was asked, if it is done, and how that ended.
    fn carry_out(&mut self, output: Output) -> Option<(Io, Result<(), IoFailure>)> {
        match output {
            Output::Done { op, result } => {
                let before = self.done.insert(op.0, result);
                assert!(before.is_none(), "{op:?} is answered once");
                None
            }
            Output::Event(event) => {
                self.events.push(event);
                None
            }
            Output::Read { io, member, offset, buffer, .. } => {
                let blocks = offset / BLOCK_SIZE..(offset + buffer.len() as u64) / BLOCK_SIZE;
                if self.bad.range((member, blocks.start)..(member, blocks.end)).next().is_some() {
                    return Some((io, Err(IoFailure::Unreadable("input/output error".to_owned()))));
                }
                buffer.fill_from(0, &self.devices[member as usize][offset as usize..][..buffer.len()]);
                Some((io, Ok(())))
            }
            Output::Write { io, member: 1, buffers, .. }
                if self.format == FORMAT_PLAIN
                    && buffers.iter().map(|one| one.len() as u64).sum::<u64>() == EXTENT_SIZE =>
            {
                self.held.push(io);
                None
            }
            Output::Write { io, member, offset, buffers, .. } => {
                let mut at = offset as usize;
                for buffer in buffers {
                    self.devices[member as usize][at..at + buffer.len()].copy_from_slice(&buffer);
                    at += buffer.len();
                }
                Some((io, Ok(())))
            }
            Output::Flush { io, .. } | Output::Discard { io, .. } => Some((io, Ok(()))),
            Output::Compute { .. } => unreachable!("it is none of a device's"),
        }
    }

    fn ask(&mut self, input: Input) {
        let mut out = Vec::new();
        self.group.step(Instant(self.now), input, &mut out);
        self.settle(out);
    }

    /// Makes a component.
    fn create(&mut self) -> ComponentKey {
        self.ask(Input::Create { op: Op(1), device: DeviceId(2), record: new_component() });
        let Some(Ok(Completion::Component(component))) = self.done.get(&1) else { panic!("it is made") };
        *component
    }

    /// Writes zeroes from the start of a part on.
    fn write(&mut self, op: u64, component: ComponentKey, len: u64, (id, origin): (WriteId, Origin)) {
        let mut buffer = self.pool.take(len as usize).expect("memory");
        buffer.bytes_mut().fill(0);
        let (op, part, block, data) = (Op(op), 0, 0, [buffer].into_iter().collect());
        self.ask(Input::Write {
            op,
            component,
            part,
            layer: 0,
            block,
            data,
            id,
            origin,
            checksums: SmallVec::new(),
            ends: SmallVec::new(),
        });
    }

    /// Reads blocks of the first part.
    fn read(&mut self, op: u64, component: ComponentKey, block: u16, count: u16) -> Result<(), GroupError> {
        self.ask(Input::Read {
            op: Op(op),
            component,
            part: 0,
            layer: 0,
            block,
            count,
            snapshot: 0,
            verify: true,
        });
        self.done[&op].clone().map(drop)
    }

    /// A component whose first 128 blocks stand at rest and nowhere else.
    fn at_rest() -> (Bench, ComponentKey) {
        let mut bench = Bench::new();
        let component = bench.create();
        bench.write(2, component, 128 * BLOCK_SIZE, (id(1, 2), Origin::Copy));
        bench.group.drain();
        bench.settle(Vec::new());
        assert!(bench.group.is_drained());
        (bench, component)
    }

    /// Tells what is decided, and waits until that is stable.
    fn decide(&mut self, op: u64, component: ComponentKey, watermark: WriteId, from_epoch: u32) {
        self.ask(Input::Settle { op: Some(Op(op)), component, watermark, from_epoch });
        assert!(matches!(self.done.get(&op), Some(Ok(Completion::Done))));
    }

    /// The ids of the changes that have happened.
    fn happened(&self) -> Vec<WriteId> {
        let component = self.group.component(ComponentId(1)).expect("it is there");
        self.group.decided_lately(component).iter().map(|entry| entry.id).collect()
    }
}

fn new_component() -> ComponentRecord {
    ComponentRecord {
        id: ComponentId(1),
        disk: DiskId(1),
        size: 8 * MIB,
        reservation: 0,
        promised: 0,
        watermark: WriteId::default(),
        is_deleting: false,
        compression: crate::format::page::Compression::Off,
        disk_label: Vec::new(),
    }
}

/// A read without checksums looks its blocks up a second time. The component had been deleted since: the host's process ended in an
/// assertion.
#[test]
fn a_read_without_checksums_of_a_component_that_is_deleted_meanwhile_says_so() {
    let (mut bench, component) = Bench::at_rest();
    let mut reads = Vec::new();
    let read = Input::Read {
        op: Op(7),
        component,
        part: 0,
        layer: 0,
        block: 0,
        count: 1,
        snapshot: 0,
        verify: false,
    };
    bench.group.step(Instant(bench.now), read, &mut reads);
    assert!(matches!(reads[..], [Output::Read { .. }]), "it waits for the device");
    bench.ask(Input::Delete { op: Op(8), component });
    for _ in 0..100 {
        bench.settle(Vec::new());
    }
    assert!(bench.group.component(ComponentId(1)).is_none(), "it is gone");
    bench.settle(reads);
    assert!(matches!(bench.done[&7], Err(GroupError::NoComponent)));
}

/// A peer had a component made without an identity, and one of a size that is no whole number of MiB: that was acknowledged, and
/// at the next start the log could not be read, with the writes of all other components in it.
#[test]
fn a_component_that_could_not_be_read_again_is_not_made() {
    let mut bench = Bench::new();
    let good = bench.create();
    let bad = [
        ComponentRecord { id: ComponentId(0), ..new_component() },
        ComponentRecord { id: ComponentId(2), size: 0, ..new_component() },
        ComponentRecord { id: ComponentId(2), size: MIB + 512, ..new_component() },
        ComponentRecord {
            id: ComponentId(2),
            size: base::units::COMPONENT_SIZE_MAX + MIB,
            ..new_component()
        },
    ];
    for (op, record) in (10..).zip(bad) {
        bench.ask(Input::Create { op: Op(op), device: DeviceId(2), record });
        assert!(matches!(bench.done[&op], Err(GroupError::Malformed)), "{op}");
    }
    let changed = [
        ComponentRecord { size: MIB + 512, ..new_component() },
        ComponentRecord { disk: DiskId(2), ..new_component() },
    ];
    for (op, record) in (20..).zip(changed) {
        bench.ask(Input::Update { op: Op(op), component: good, record });
        assert!(matches!(bench.done[&op], Err(GroupError::Malformed)), "{op}");
    }
    let bench = bench.restart();
    assert!(bench.group.component(ComponentId(1)).is_some(), "the group opens");
}

#[test]
fn a_large_trim_leaves_the_other_requests_of_its_node_remembered() {
    let mut bench = Bench::new();
    let component = bench.create();
    for number in 1..=90 {
        bench.write(number + 1, component, BLOCK_SIZE, (id(1, number), Origin::Guest(RequestTag(number))));
    }
    for number in 91..=290 {
        let (part, origin) = ((number % 8) as u32, Origin::Guest(RequestTag(5000)));
        let (op, id) = (Op(number + 1), id(1, number));
        bench.ask(Input::Trim { op, component, part, layer: 0, block: 0, count: 256, id, origin });
    }
    bench.decide(1000, component, id(1, 290), 1);
    let happened = bench.happened();
    assert!((1..=90).all(|number| happened.contains(&id(1, number))), "{happened:?}");
    assert!(happened.contains(&id(1, 290)));
}

fn id(epoch: u32, sequence: u64) -> WriteId {
    WriteId { epoch, sequence }
}

/// What the windows held did not fit into the rest of the log when a checkpoint was to tell it again: nothing moved any more, whatever was
/// decided. Now guests wait while there is room for that, and go on with the next watermark.
#[test]
fn windows_that_fill_the_log_leave_room_for_the_checkpoint_that_empties_it() {
    for removed in [None, Some(Rule::LeaveRoomForWindows)] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        let settings = Settings { rules: removed.into(), ..Settings::default() };
        let mut bench = Bench::open_with(Bench::blank(), settings, BTreeSet::new());
        let component = bench.create();
        let write = |bench: &mut Bench, number: u64| {
            // With gaps, so that none of it becomes a span.
            let change = (id(1, 2 * number), Origin::Guest(RequestTag(number)));
            bench.write(number + 1, component, BLOCK_SIZE, change);
            bench.done.contains_key(&(number + 1))
        };
        let stuck = (1..200_000).find(|&number| !write(&mut bench, number)).expect("the log is full once");
        bench.ask(Input::Settle {
            op: Some(Op(1 << 20)),
            component,
            watermark: id(1, 2 * stuck),
            from_epoch: 1,
        });
        bench.settle(Vec::new());
        let goes_on = bench.done.contains_key(&(stuck + 1)) && write(&mut bench, stuck + 1);
        assert_eq!(goes_on, removed.is_none(), "{removed:?}, after {stuck} writes");
    }
}

#[test]
fn what_waits_behind_a_write_that_a_dying_device_fails_is_answered() {
    let mut bench = Bench::new();
    let component = bench.create();
    bench.write(2, component, EXTENT_SIZE, (id(1, 2), Origin::Copy));
    bench.write(3, component, BLOCK_SIZE, (id(1, 3), Origin::Copy));
    assert_eq!((bench.held.len(), bench.done.len()), (1, 1), "the second stands behind the first");
    let io = bench.held.remove(0);
    bench.ask(Input::DeviceDone { io, result: Err(IoFailure::Device("it died".to_owned())) });
    for op in [2, 3] {
        assert!(matches!(bench.done.get(&op), Some(Err(GroupError::DeviceLost))), "{op}");
    }
    assert!(bench.group.is_idle());
}

/// `device replace` never ended under load: the log was to become empty for the device that leaves, and each checkpoint logs anew
/// what windows hold, so destaging and checkpoints followed each other for ever.
#[test]
fn a_failed_device_leaves_although_each_checkpoint_logs_windows_anew() {
    let mut bench = Bench::new();
    let component = bench.create();
    for number in 1..=40 {
        bench.write(number + 1, component, BLOCK_SIZE, (id(1, number), Origin::Guest(RequestTag(number))));
    }
    let mut out = Vec::new();
    bench.group.fail_member(Instant(bench.now), 1, "it is gone", &mut out);
    bench.settle(out);
    bench.group.begin_remove(DeviceId(2), Lost::GiveUp).expect("it may go");
    bench.settle(Vec::new());
    assert!(bench.group.finish_remove(DeviceId(2)), "it has left once the group is quiet");
}

#[test]
fn a_restart_knows_what_has_happened_and_not_what_a_resync_has_undone() {
    let mut bench = Bench::new();
    let component = bench.create();
    let guest = |number| Origin::Guest(RequestTag(number));
    bench.write(2, component, BLOCK_SIZE, (id(1, 1), guest(1)));
    // Another owner found (1, 1) and rolled it forward.
    bench.decide(3, component, id(2, 0), 1);
    bench.write(4, component, BLOCK_SIZE, (id(2, 1), guest(2)));
    // The component was away, what it had of epoch 2 was undone, and it counts again.
    bench.decide(5, component, id(3, 7), 3);
    bench.write(6, component, BLOCK_SIZE, (id(3, 8), guest(3)));
    bench.decide(7, component, id(3, 8), 3);
    assert_eq!(bench.happened(), [id(1, 1), id(3, 8)]);
    let bench = bench.restart();
    assert_eq!(bench.happened(), [id(1, 1), id(3, 8)]);
    assert!(bench.group.window(component).is_empty(), "all is decided");
}

/// An owner told its first watermark and was released at once; the next one's says less of what was before, and came before that was
/// stable: nobody knew any more that the change had happened. Found while looking for the cause of cluster seed 12060.
#[test]
fn what_has_happened_stays_known_when_the_next_watermark_comes_before_the_last_is_stable() {
    for removed in [None, Some(Rule::KeepHappened)] {
        if removed.is_some() && !cfg!(feature = "mutants") {
            continue;
        }
        for from_epoch in [2, 3] {
            let settings = Settings { rules: removed.into(), ..Settings::default() };
            let mut bench = Bench::open_with(Bench::blank(), settings, BTreeSet::new());
            let component = bench.create();
            bench.write(2, component, BLOCK_SIZE, (id(1, 1), Origin::Guest(RequestTag(1))));
            let now = Instant(bench.now);
            let mut out = Vec::new();
            let mut settle = |op, watermark, from_epoch| {
                bench.group.step(now, Input::Settle { op, component, watermark, from_epoch }, &mut out);
            };
            settle(None, id(2, 0), 1);
            settle(Some(Op(3)), id(3, 0), from_epoch);
            bench.settle(out);
            let known: &[WriteId] = if removed.is_none() { &[id(1, 1)] } else { &[] };
            assert_eq!(bench.happened(), known, "{removed:?}, from {from_epoch}");
            if from_epoch == 2 {
                assert_eq!(bench.restart().happened(), known, "the log tells as much");
            }
        }
    }
}

/// One sector that could not be read took its whole device out of service, and on the log device the group.
/// Row writes of 1 MiB left a quarter of each buffer in the log of the host that got them, and with it the memory of all of it: after
/// 128 of them there was no buffer for the next, and nobody gave any back.
#[test]
fn where_buffers_are_short_what_the_log_has_too_gives_its_memory_back() {
    let mut bench = Bench::new();
    let component = bench.create();
    bench.write(2, component, 16 * BLOCK_SIZE, (id(1, 1), Origin::Guest(RequestTag(1))));
    assert_eq!(bench.pool.bytes_used(), 16 * BLOCK_SIZE as usize, "it is kept for destaging");
    assert!(!bench.pool.was_short());
    let rest: Vec<_> = std::iter::from_fn(|| bench.pool.take(1 << 20)).collect();
    assert!(bench.pool.was_short() && !bench.pool.was_short(), "told once");
    assert!(bench.group.relieve(), "it kept some");
    assert!(bench.pool.take(1 << 20).is_some() && !bench.group.relieve());
    drop(rest);
    bench.read(3, component, 0, 16).expect("the log has it");
}

#[test]
fn one_bad_sector_damages_one_block_and_takes_no_device_out() {
    let (mut bench, component) = Bench::at_rest();
    let first = bench.group.superblocks()[1].geometry.extents.offset / BLOCK_SIZE;
    bench.bad.insert((1, first + 20));
    assert_eq!(bench.read(10, component, 0, 128), Err(GroupError::Damaged));
    assert_eq!(bench.read(11, component, 20, 1), Err(GroupError::Damaged));
    assert_eq!(bench.read(12, component, 0, 20), Ok(()));
    assert_eq!(bench.read(13, component, 21, 107), Ok(()));
    let member = &bench.group.state().members[1];
    assert_eq!((member.failure.as_deref(), member.damaged_blocks, member.read_errors), (None, 1, 1));
    bench.bad.clear();
    assert_eq!(bench.read(14, component, 0, 128), Ok(()), "it was a cable");
}

#[test]
fn a_device_that_fails_many_reads_goes_out_of_service() {
    let (mut bench, component) = Bench::at_rest();
    let first = bench.group.superblocks()[1].geometry.extents.offset / BLOCK_SIZE;
    bench.bad.extend((first..first + 128).map(|block| (1, block)));
    assert_eq!(bench.read(10, component, 0, 128), Err(GroupError::DeviceLost));
    let failure = bench.group.state().members[1].failure.clone().expect("it is out of service");
    assert!(failure.contains("more than 64 blocks could not be read within 60 s"), "{failure}");
    assert!(bench.events.iter().any(|event| matches!(event, Event::MemberFailed { member: 1, .. })));
    assert!(bench.group.is_idle());
}

/// A bad sector in a copy of a page that does not count was found at the next start, when nobody could tell it from the
/// newest: the page was lost.
#[test]
fn scrubbing_writes_pages_again_of_which_either_copy_cannot_be_read() {
    let (mut bench, component) = Bench::at_rest();
    bench.write(3, component, 4 * BLOCK_SIZE, (id(1, 3), Origin::Copy));
    bench.settle(Vec::new());
    bench.group.drain();
    bench.settle(Vec::new());
    let table = bench.group.superblocks()[1].geometry.table;
    // Both copies of the page that describes the first extents were written by now.
    let slots = u64::from(bench.group.superblocks()[1].geometry.component_slots);
    let pages = [0, slots].map(|page| table.offset / BLOCK_SIZE + 2 * page);
    bench.bad.extend(pages.iter().flat_map(|page| [(1, *page), (1, page + 1)]));
    let written = bench.group.state().counters.pages_written;
    for _ in 0..4 {
        bench.now += 60_000_000_000;
        bench.settle(Vec::new());
    }
    assert!(bench.group.state().counters.pages_written >= written + 2, "both are written again");
    assert_eq!(bench.read(20, component, 0, 128), Ok(()));
}

/// A component was made in the slot of one whose page was damaged: the next start found an extent of nobody, and the group stayed closed.
#[test]
fn the_slot_of_a_component_whose_page_is_damaged_is_given_to_no_other() {
    for removed in [None, Some(Rule::KeepLostSlot)] {
        let (bench, _) = Bench::at_rest();
        let Bench { mut devices, .. } = bench;
        let pages = devices[1].chunks_exact_mut(BLOCK_SIZE as usize);
        pages.filter(|page| page[..4] == *b"DPGE" && page[36] == 3).for_each(|page| page[2000] ^= 1);
        let settings = || Settings { rules: removed.into(), ..Settings::default() };
        let mut bench = Bench::open_with(devices, settings(), BTreeSet::new());
        assert!(bench.group.component(ComponentId(1)).is_none(), "its page is damaged");
        let record = ComponentRecord { id: ComponentId(2), ..new_component() };
        bench.ask(Input::Create { op: Op(1), device: DeviceId(2), record });
        assert!(bench.group.component(ComponentId(2)).is_some());
        let bench = Bench::open_with(bench.devices, settings(), BTreeSet::new());
        let is_closed = bench.events.iter().any(|event| matches!(event, Event::OpenFailed(_)));
        assert_eq!(is_closed, removed.is_some() && cfg!(feature = "mutants"), "without {removed:?}");
    }
}

/// The older copy of a component's page counted where the newer one was damaged, though the log had let go of what came between the two: a component
/// promised less than it had, and told older versions of its holes.
#[test]
fn where_the_newest_page_of_a_component_is_damaged_its_older_copy_does_not_count() {
    let (mut bench, component) = Bench::at_rest();
    bench.ask(Input::Promise { op: Op(7), component, epoch: 5 });
    bench.group.drain();
    for _ in 0..50 {
        bench.settle(Vec::new());
    }
    assert!(bench.group.is_drained());
    let offset = bench.group.superblocks()[1].geometry.table.offset as usize;
    let mut devices = bench.devices;
    let version = |page: &[u8]| u64::from_le_bytes(page[40..48].try_into().expect("eight bytes"));
    let copies = devices[1][offset..offset + 2 * BLOCK_SIZE as usize].chunks_exact_mut(BLOCK_SIZE as usize);
    let mut copies: Vec<&mut [u8]> = copies.collect();
    copies.sort_by_key(|copy| version(copy));
    assert!(version(copies[0]) > 0, "both were written");
    copies[1][2000] ^= 1;
    for _ in 0..2 {
        let bench = Bench::open(devices);
        assert!(bench.group.state().is_open);
        assert!(bench.group.component(ComponentId(1)).is_none(), "what it had promised is not known");
        devices = bench.devices;
    }
}
