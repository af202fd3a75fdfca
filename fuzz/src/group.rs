//! A disk group of format 2 on devices in memory, whose pages are made of bytes: descriptors, chunks, components, maps, deltas and lists of
//! snapshots, each valid in itself, that need not agree with one another.

use base::request::Buffers;
use base::units::{BLOCK_SIZE, EXTENT_SIZE, MIB};
use base::{ClusterId, ComponentId, DeviceId, DiskId, GroupId, HostId, Instant, Pool, RequestTag, WriteId};
use diskgroup::format::FORMAT_VERSION;
use diskgroup::format::anchor::{Anchor, anchor_offset};
use diskgroup::format::map::{Algorithm, DeltaPage, Entry, MapPage, SnapshotPage, SnapshotRecord};
use diskgroup::format::page::{CHUNK, ComponentRecord, Compression, Descriptor, Page, PageContent};
use diskgroup::format::superblock::{Geometry, Superblock};
use diskgroup::{ComponentKey, Event, Group, Input, IoFailure, Op, Origin, Output, Settings};
use std::collections::BTreeMap;

const LOG_SIZE: u64 = 16 * MIB;
const SIZES: [u64; 2] = [LOG_SIZE + 8 * MIB, 40 * MIB];
/// The greatest stamp of a page that counts.
const STAMP: u64 = 2;
/// Pages that bytes make at most.
const PAGES_MAX: usize = 64;
/// Turns of the devices after which a group that is not at rest is left alone: it may scrub, or copy.
const TURNS_MAX: usize = 2000;

/// What is left of the bytes; zeroes behind their end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.next()) % bound
    }

    fn id(&mut self) -> WriteId {
        WriteId { epoch: u32::from(self.next() % 3), sequence: u64::from(self.next()) }
    }

    fn component(&mut self) -> ComponentId {
        ComponentId([1, 1, 1, 2, 0, u64::MAX, CHUNK.0, 3][self.below(8) as usize])
    }

    /// Mostly one of a few parts.
    fn part(&mut self) -> u32 {
        match self.next() {
            255 => u32::MAX,
            254 => 1 << 20,
            byte => u32::from(byte % 4),
        }
    }
}

/// The devices: blocks that were written, zeroes elsewhere.
struct Devices([BTreeMap<u64, Vec<u8>>; 2]);

impl Devices {
    fn write(&mut self, member: u8, offset: u64, bytes: &[u8]) {
        for (index, block) in bytes.chunks(BLOCK_SIZE as usize).enumerate() {
            self.0[usize::from(member)].insert(offset / BLOCK_SIZE + index as u64, block.to_vec());
        }
    }

    fn read(&self, member: u8, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for (index, block) in bytes.chunks_mut(BLOCK_SIZE as usize).enumerate() {
            if let Some(found) = self.0[usize::from(member)].get(&(offset / BLOCK_SIZE + index as u64)) {
                block.copy_from_slice(&found[..block.len()]);
            }
        }
        bytes
    }
}

fn superblock(index: usize) -> Superblock {
    let mut members = [DeviceId(0); 8];
    (members[0], members[1]) = (DeviceId(1), DeviceId(2));
    let log_size = (index == 0).then_some(LOG_SIZE);
    Superblock {
        format: FORMAT_VERSION,
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

fn record(bytes: &mut Bytes<'_>) -> ComponentRecord {
    ComponentRecord {
        id: bytes.component(),
        disk: DiskId(1),
        size: (1 + bytes.below(8)) * EXTENT_SIZE,
        reservation: bytes.below(3) * EXTENT_SIZE,
        promised: u32::from(bytes.next() % 3),
        watermark: bytes.id(),
        is_deleting: bytes.next() == 1,
        compression: [Compression::Off, Compression::Lz4, Compression::Zstd][bytes.below(3) as usize],
        disk_label: Vec::new(),
    }
}

/// A block that stands in one of the first extents, a hole, or one that is lost.
fn entry(bytes: &mut Bytes<'_>, geometry: &Geometry) -> Entry {
    let born = u32::from(bytes.next() % 4);
    match bytes.next() {
        0 => Entry::hole(born),
        1 => Entry::LOST.born(born),
        2 => Entry::LOST_PAGE,
        // Anywhere: in the table, or behind the end of the device.
        3 => Entry::plain(8 * (1 + u64::from(bytes.next()) * 73), 0, born),
        kind => {
            let frame = bytes.below(8) * 256 + u64::from(bytes.next());
            let unit = geometry.extents.offset / 512 + frame * 8;
            match kind % 3 {
                0 => Entry::plain(unit, 0x98f9_4189, born),
                sort => {
                    let units = 1 + bytes.below(7) as u8;
                    let algorithm = if sort == 1 { Algorithm::Lz4 } else { Algorithm::Zstd };
                    let within = bytes.below(u64::from(8 - units) + 1);
                    Entry::stored(unit + within, units, algorithm, 0x98f9_4189).born(born)
                }
            }
        }
    }
}

fn content(bytes: &mut Bytes<'_>, geometry: &Geometry) -> PageContent {
    match bytes.below(7) {
        0 => {
            let mut three = [Descriptor::FREE, Descriptor::FREE, Descriptor::FREE];
            for one in &mut three {
                (one.component, one.part) = (bytes.component(), bytes.part());
                (one.allocated[0], one.regions[0]) = (u64::from(bytes.next()), bytes.id());
            }
            PageContent::Descriptors(Box::new(three))
        }
        1 => PageContent::Component(None),
        2 => {
            let record = record(bytes);
            // What no page of a component can say.
            match record.id.0 {
                0 => PageContent::Component(None),
                _ => PageContent::Component(Some((record, vec![bytes.id(); bytes.below(3) as usize]))),
            }
        }
        3 | 4 => {
            let mut map = MapPage::empty(bytes.component(), bytes.part());
            (map.through, map.rolled_back) = (bytes.below(5), bytes.below(4));
            map.regions[0] = bytes.id();
            for _ in 0..bytes.below(12) {
                map.entries[usize::from(bytes.next())] = entry(bytes, geometry);
            }
            PageContent::Map(Box::new(map))
        }
        5 => {
            let mut delta = DeltaPage::empty(bytes.component(), bytes.part());
            for _ in 0..bytes.below(12) {
                let (snapshot, block) = (u32::from(bytes.next() % 5), bytes.next());
                if delta.find(snapshot, block).is_none() {
                    delta.put(snapshot, block, entry(bytes, geometry));
                }
            }
            PageContent::Delta(Box::new(delta))
        }
        _ => {
            let mut number = 0;
            let snapshots = (0..bytes.below(5))
                .map(|_| {
                    number += 1 + u32::from(bytes.next() % 2);
                    let state = bytes.next();
                    SnapshotRecord {
                        number,
                        is_deleting: state & 1 > 0,
                        is_late: state & 2 > 0,
                        is_partial: state & 4 > 0,
                        position: bytes.below(4),
                        id: bytes.id(),
                        size: (1 + bytes.below(8)) * EXTENT_SIZE,
                    }
                })
                .collect();
            let (component, index) = (bytes.component(), u32::from(bytes.next() % 3));
            let last_number = number + u32::from(bytes.next() % 3);
            PageContent::Snapshots(Box::new(SnapshotPage { component, index, last_number, snapshots }))
        }
    }
}

/// Blank devices, with the pages that the bytes say. The second extent is a chunk, unless they say otherwise.
fn devices(bytes: &mut Bytes<'_>, superblocks: &[Superblock]) -> Devices {
    let mut devices = Devices([BTreeMap::new(), BTreeMap::new()]);
    let mut stamps = [0; 8];
    (stamps[0], stamps[1]) = (STAMP, STAMP);
    let anchor = Anchor { revision: 1, log_mark: 5, tail_batch: 1, stamps, ..Anchor::default() };
    devices.write(0, anchor_offset(1), &anchor.encode());
    let geometry = &superblocks[1].geometry;
    let table_pages = (geometry.table.len / (2 * BLOCK_SIZE)) as u32;
    let put = |devices: &mut Devices, number: u32, version: u64, stamp: u64, content: PageContent| {
        let page = Page { device: DeviceId(2), number, version, stamp, content };
        let start = match number.checked_sub(table_pages) {
            None => geometry.table.offset + u64::from(number) * 2 * BLOCK_SIZE,
            // Those of chunks: the second extent, then the third.
            Some(behind) => geometry.extents.offset + EXTENT_SIZE + u64::from(behind) * 2 * BLOCK_SIZE,
        };
        devices.write(1, start + (version & 1) * BLOCK_SIZE, &page.encode());
    };
    let mut three = [Descriptor::FREE, Descriptor::FREE, Descriptor::FREE];
    three[1].component = CHUNK;
    if bytes.next() & 1 == 1 {
        (three[2].component, three[2].part) = (CHUNK, 1);
    }
    put(&mut devices, geometry.component_slots, 1, 1, PageContent::Descriptors(Box::new(three)));
    let mut own = Bytes(&[]);
    let component = ComponentRecord { id: ComponentId(1), size: 4 * EXTENT_SIZE, ..record(&mut own) };
    put(&mut devices, 0, 1, 1, PageContent::Component(Some((component, Vec::new()))));
    for _ in 0..PAGES_MAX {
        if bytes.0.is_empty() {
            break;
        }
        // Mostly the first pages of a chunk, the rest anywhere in the table.
        let number = match bytes.next() {
            byte @ 0..160 => table_pages + u32::from(byte % 12),
            byte @ 160..190 => geometry.component_slots + u32::from(byte % 12),
            byte @ 190..210 => u32::from(byte % 3),
            byte => table_pages + u32::from(byte),
        };
        let (version, stamp) = (1 + bytes.below(3), 1 + bytes.below(3));
        let content = content(bytes, geometry);
        put(&mut devices, number, version, stamp, content);
    }
    devices
}

/// A group, its devices, and what it told.
struct Bench {
    group: Group,
    devices: Devices,
    now: u64,
    is_ready: bool,
    answers: u64,
}

impl Bench {
    fn settle(&mut self, mut out: Vec<Output>) {
        for _ in 0..TURNS_MAX {
            self.now += 1000;
            let now = Instant(self.now);
            let mut more = Vec::new();
            for output in out.drain(..) {
                self.carry_out(now, output, &mut more);
            }
            self.group.advance(now, &mut more);
            if more.is_empty() {
                return;
            }
            out = more;
        }
    }

    fn carry_out(&mut self, now: Instant, output: Output, more: &mut Vec<Output>) {
        let done: (_, Result<(), IoFailure>) = match output {
            Output::Done { .. } => return self.answers += 1,
            Output::Event(event) => return self.is_ready |= event == Event::Ready,
            Output::Compute { id, task } => {
                let computed = task.perform();
                return self.group.step(now, Input::Computed { id, computed }, more);
            }
            Output::Read { io, member, offset, buffer, .. } => {
                buffer.fill_from(0, &self.devices.read(member, offset, buffer.len()));
                (io, Ok(()))
            }
            Output::Write { io, member, mut offset, buffers, .. } => {
                for buffer in buffers {
                    self.devices.write(member, offset, &buffer);
                    offset += buffer.len() as u64;
                }
                (io, Ok(()))
            }
            Output::Flush { io, .. } | Output::Discard { io, .. } => (io, Ok(())),
        };
        self.group.step(now, Input::DeviceDone { io: done.0, result: done.1 }, more);
    }

    fn ask(&mut self, input: Input) {
        let mut out = Vec::new();
        self.group.step(Instant(self.now), input, &mut out);
        self.settle(out);
    }
}

fn read(op: Op, component: ComponentKey, part: u32, snapshot: u32) -> Input {
    Input::Read { op, component, part, layer: 0, block: 0, count: 256, snapshot, verify: true }
}

fn change(op: Op, (component, parts): (ComponentKey, u32), bytes: &mut Bytes<'_>, pool: &Pool) -> Input {
    let (part, block, count) = (bytes.below(4) as u32 % parts, u16::from(bytes.next()), 1);
    let (id, origin) = (WriteId { epoch: 9, sequence: op.0 }, Origin::Copy);
    let number = u32::from(bytes.next() % 6);
    let (tag, layer) = (RequestTag(op.0), 0);
    match bytes.below(7) {
        0 => {
            let mut buffer = pool.take(BLOCK_SIZE as usize).expect("memory");
            buffer.bytes_mut().fill(bytes.next());
            let data: Buffers = [buffer].into_iter().collect();
            let (checksums, ends) = Default::default();
            Input::Write { op, component, part, layer, block, data, id, origin, checksums, ends }
        }
        1 => Input::Trim { op, component, part, layer, block, count, id, origin },
        2 => Input::Snapshot { op, component, number: number + 5, id, tag },
        3 => Input::DropSnapshot { op, component, number },
        4 => Input::Rollback { op, component, number, id, tag },
        5 => Input::LateSnapshot { op, component, number },
        _ => read(op, component, part, number),
    }
}

/// Opens a group with pages that the bytes describe, reads all of its component and of its snapshots, and changes it as the last bytes say.
pub fn open(bytes: &[u8]) {
    let (pages, changes) = bytes.split_at(bytes.len() - bytes.len().min(16));
    let superblocks = vec![superblock(0), superblock(1)];
    let devices = devices(&mut Bytes(pages), &superblocks);
    let pool = Pool::new(64 << 20);
    let mut out = Vec::new();
    let group = Group::open(superblocks, Settings::default(), pool.clone(), Instant(1), &mut out);
    let mut bench = Bench { group, devices, now: 1, is_ready: false, answers: 0 };
    bench.settle(out);
    if !bench.is_ready {
        return;
    }
    let mut op = 0;
    let mut changes = Bytes(changes);
    while let (Some(component), true) = (bench.group.component(ComponentId(1)), op < 40) {
        op += 1;
        // Whoever asks knows how many parts there are: a page may say fewer than the driver began with.
        let parts = bench.group.part_count(component);
        match op {
            1..=12 => bench.ask(read(Op(op), component, op as u32 % 4 % parts, op as u32 / 4)),
            _ if changes.0.is_empty() => break,
            _ => {
                let input = change(Op(op), (component, parts), &mut changes, &pool);
                bench.ask(input);
            }
        }
    }
    bench.group.drain();
    bench.settle(Vec::new());
}
