//! One message of each kind and form.

use crate::{
    Answer, BackfillRequest, DamagedBlock, Entry, EntryKind, HeldRange, Message, NewComponent, PartVersions,
    Refusal, Request, Versions,
};
use base::request::{
    Buffers, Piece, Pieces, Reply, Request as GuestRequest, RequestError, StatusOf, StatusRun,
};
use base::{ComponentId, DeviceId, DiskId, Pool, RequestTag, WriteId};
use smallvec::smallvec;

/// `len` bytes from the pool: 0, 1, 2, … with `seed` added, over and over.
pub(crate) fn buffers(pool: &Pool, len: usize, seed: u8) -> Buffers {
    let mut buffers = crate::payload::take_buffers(pool, len).unwrap();
    for buffer in &mut buffers {
        buffer
            .bytes_mut()
            .iter_mut()
            .enumerate()
            .for_each(|(at, byte)| *byte = (at as u8).wrapping_add(seed));
    }
    buffers
}

/// As [`buffers`], as pieces of an answer.
pub(crate) fn bytes(pool: &Pool, len: usize, seed: u8) -> Pieces {
    buffers(pool, len, seed).into_iter().map(Piece::Bytes).collect()
}

/// A message around a body, each number of it another one.
pub(crate) fn message<T>(body: T) -> Message<T> {
    Message {
        session: 0x0102_0304_0506_0708,
        sequence: 0x1112_1314_1516_1718,
        stamp: 0x2122_2324_2526_2728,
        token: 0x3132_3334,
        body,
    }
}

const COMPONENT: ComponentId = ComponentId(0x4142_4344_4546_4748);
const DISK: DiskId = DiskId(0x5152_5354_5556_5758_595a_5b5c_5d5e_5f60);
const ID: WriteId = WriteId { epoch: 0x6162_6364, sequence: 0x6566_6768_696a_6b6c };
const WATERMARK: WriteId = WriteId { epoch: 0x7172_7374, sequence: 0x7576_7778_797a_7b7c };
const EPOCH: u32 = 0x8182_8384;
const PART: u32 = 0x0001_0203;
const TAG: RequestTag = RequestTag(0xe1e2_e3e4_e5e6_e7e8);

fn new_component() -> NewComponent {
    NewComponent {
        id: COMPONENT,
        disk: DISK,
        device: DeviceId(0x9192_9394_9596_9798_999a_9b9c_9d9e_9fa0),
        size: 0x0000_003f_c000_0000,
        reservation: 0x0000_0000_4000_0000,
        disk_label: b"what a disk is".to_vec(),
    }
}

/// One request of each kind and form, with its name.
pub(crate) fn requests(pool: &Pool) -> Vec<(&'static str, Request)> {
    let (component, epoch, part, id, watermark) = (COMPONENT, EPOCH, PART, ID, WATERMARK);
    let guest = |request| Request::Guest { disk: DISK, tag: TAG, request };
    vec![
        ("heartbeat", Request::Heartbeat),
        ("open", Request::Open { disk: DISK, component, epoch }),
        ("close", Request::Close { component, epoch }),
        (
            "write of a guest",
            Request::Write {
                marks: 0,
                component,
                epoch,
                id,
                watermark,
                kind: EntryKind::Guest(TAG),
                part,
                block: 254,
                data: buffers(pool, 8192, 0),
                checksums: smallvec![0xb1b2_b3b4, 0xb5b6_b7b8],
            },
        ),
        (
            "write of a copy",
            Request::Write {
                marks: 0,
                component,
                epoch,
                id,
                watermark: WriteId::default(),
                kind: EntryKind::Copy,
                part,
                block: 7,
                data: buffers(pool, 4096, 9),
                checksums: smallvec![0xb1b2_b3b4],
            },
        ),
        (
            "trim",
            Request::Trim {
                marks: 0,
                component,
                epoch,
                id,
                watermark,
                kind: EntryKind::Guest(TAG),
                part,
                block: 0,
                count: 256,
            },
        ),
        (
            "mark",
            Request::Trim {
                marks: 0,
                component,
                epoch,
                id,
                watermark,
                kind: EntryKind::Guest(TAG),
                part,
                block: 3,
                count: 0,
            },
        ),
        ("read", Request::Read { component, epoch, part, block: 255, count: 1, verify: true }),
        ("settle", Request::Settle { component, epoch, watermark, from_epoch: 7, stable: false }),
        ("stable settle", Request::Settle { component, epoch, watermark, from_epoch: 7, stable: true }),
        ("changed", Request::Changed { component, epoch, since: watermark, from_part: part }),
        ("create", Request::Create(new_component())),
        ("update", Request::Update(NewComponent { disk_label: Vec::new(), ..new_component() })),
        ("delete", Request::Delete { component }),
        ("guest read", guest(GuestRequest::Read { offset: 512, len: 0x0200_0000 })),
        ("guest write", guest(GuestRequest::Write { offset: 1536, data: buffers(pool, 4608, 3) })),
        ("guest flush", guest(GuestRequest::Flush)),
        ("guest trim", guest(GuestRequest::Trim { offset: 4096, len: 0x4000_0000_0000 - 4096 })),
        ("guest zero-write", guest(GuestRequest::WriteZeroes { offset: 0, len: 4096, allocate: false })),
        ("guest full zero-write", guest(GuestRequest::WriteZeroes { offset: 0, len: 4096, allocate: true })),
        ("guest status", guest(GuestRequest::Status { of: StatusOf::Disk, offset: 1 << 40, len: 1 << 32 })),
        ("yield", Request::Yield { disk: DISK }),
        ("guest gone", Request::GuestGone { tag: RequestTag(0x0102_0304_0506_0708) }),
        ("allocation", Request::Allocation { component, epoch, of: StatusOf::Disk, part, count: 128 }),
        ("held", Request::Held { component, epoch, from_part: part }),
        (
            "promote",
            Request::Promote { component, epoch, part: 0x0200_0000 | part, block: 9, count: 4, through: id },
        ),
        ("checksums", Request::Checksums { component, epoch, part, block: 16, count: 240, coefficient: 8 }),
        ("view", Request::View { component, epoch, snapshot: 0x0102_0304, part, block: 16, count: 240 }),
        ("snapshot", Request::Snapshot { component, epoch, number: 0x0102_0304 }),
        ("snapshot deletion", Request::DropSnapshot { component, epoch, number: 0x0102_0304 }),
        ("snapshots request", Request::Snapshots { component, epoch }),
        (
            "view allocation request",
            Request::Allocation { component, epoch, of: StatusOf::Snapshot(0x0102_0304), part, count: 128 },
        ),
        (
            "changes request",
            Request::Allocation {
                component,
                epoch,
                of: StatusOf::Changes { since: 0x0102_0303, snapshot: 0x0102_0304 },
                part,
                count: 4097,
            },
        ),
        (
            "guest view status request",
            guest(GuestRequest::Status {
                of: StatusOf::Changes { since: 1, snapshot: 0x0102_0304 },
                offset: 1 << 40,
                len: 1 << 32,
            }),
        ),
        ("guest view", guest(GuestRequest::View { snapshot: 0x0102_0304, offset: 512, len: 0x0200_0000 })),
        ("late snapshot", Request::LateSnapshot { component, epoch, number: 0x0102_0304 }),
        ("backfill", Request::Backfill(backfill(pool, part, false))),
        ("backfill of holes", Request::Backfill(backfill(pool, part, true))),
        ("backfill synchronization", Request::SyncBackfill { component, epoch, number: 0x0102_0304 }),
        ("guest copy-up", guest(GuestRequest::CopyUp { offset: 1 << 40, len: 1 << 20 })),
        ("damage request", Request::Damage { component, epoch }),
        ("mend", Request::Mend(BackfillRequest { as_seen_by: None, ..backfill(pool, part, false) })),
        ("mend of the content", Request::Mend(BackfillRequest { number: 0, ..backfill(pool, part, false) })),
    ]
}

fn backfill(pool: &Pool, part: u32, is_hole: bool) -> BackfillRequest {
    let data: Buffers = if is_hole { Buffers::new() } else { buffers(pool, 8192, 9) };
    let checksums = (0..data.len() as u32 * 2).map(|block| 0x0a0b_0c0d + block).collect();
    BackfillRequest {
        component: COMPONENT,
        epoch: EPOCH,
        number: 0x0102_0304,
        part,
        block: 16,
        count: 2,
        as_seen_by: is_hole.then_some(0x0102_0305),
        data,
        checksums,
    }
}

/// One answer of each kind and form, with its name.
pub(crate) fn answers(pool: &Pool) -> Vec<(&'static str, Answer)> {
    let entry =
        Entry { id: ID, part: PART, block: 3, count: 253, is_trim: false, has_happened: true, tag: TAG };
    let later = WriteId { sequence: ID.sequence + 1, ..ID };
    let regions: [WriteId; 16] = std::array::from_fn(|region| WriteId { epoch: 1, sequence: region as u64 });
    let mut data = bytes(pool, 4096, 5);
    data.push(Piece::Hole(8192));
    data.extend(bytes(pool, 4096, 6));
    let mut odd = bytes(pool, 512, 7);
    odd.push(Piece::Hole(1024));
    odd.extend(bytes(pool, 4096, 8));
    let refused = |refusal| Answer::Refused(refusal);
    let held = vec![
        HeldRange { part: 0x0100_0000 | PART, block: 0, count: 3, through: ID },
        HeldRange { part: 0x0400_0000 | PART, block: 255, count: 1, through: later },
    ];
    let failed = |error| Answer::Guest(Err(error));
    let runs = vec![
        StatusRun { len: 4096, is_set: true },
        StatusRun { len: 0x0000_4000_0000_0000 - 4096, is_set: false },
    ];
    let allocation = vec![
        StatusRun { len: 0x0000_3000, is_set: true },
        StatusRun { len: 0x0020_0000 - 0x3000, is_set: false },
    ];
    let parts = vec![
        PartVersions { part: 0, versions: Versions::Hole(WATERMARK) },
        PartVersions { part: PART, versions: Versions::Regions(Box::new(regions)) },
    ];
    vec![
        ("done", Answer::Done { congestion: 0xc1 }),
        ("opened", Answer::Opened { watermark: WATERMARK, entries: Vec::new() }),
        (
            "opened with entries",
            Answer::Opened {
                watermark: WATERMARK,
                entries: vec![entry, Entry { id: later, is_trim: true, has_happened: false, ..entry }],
            },
        ),
        ("data", Answer::Data { pieces: data, checksums: smallvec![0xd1d2_d3d4, 0xd5d6_d7d8] }),
        ("data without bytes", Answer::Data { pieces: smallvec![Piece::Hole(4096)], checksums: smallvec![] }),
        ("changed at its end", Answer::Changed { parts: Vec::new(), next: None }),
        ("changed", Answer::Changed { parts, next: Some(PART + 1) }),
        ("guest done", Answer::Guest(Ok(Reply::Done))),
        ("guest data", Answer::Guest(Ok(Reply::Data(odd)))),
        ("guest status", Answer::Guest(Ok(Reply::Status(runs)))),
        ("guest without space", failed(RequestError::NoSpace)),
        ("guest damaged", failed(RequestError::Damaged)),
        ("guest without device", failed(RequestError::DeviceLost)),
        ("guest stopping", failed(RequestError::Stopping)),
        ("guest out of range", failed(RequestError::OutOfRange)),
        ("superseded", refused(Refusal::Superseded { epoch: EPOCH })),
        ("not open", refused(Refusal::NotOpen)),
        ("no component", refused(Refusal::NoComponent)),
        ("device lost", refused(Refusal::DeviceLost)),
        ("no space", refused(Refusal::NoSpace)),
        ("damaged", refused(Refusal::Damaged)),
        ("no slot", refused(Refusal::NoSlot)),
        ("not owner", refused(Refusal::NotOwner)),
        ("in use", refused(Refusal::InUse)),
        ("busy", refused(Refusal::Busy)),
        ("revoke", Answer::Revoke { component: COMPONENT, epoch: EPOCH }),
        ("allocation", Answer::Allocation(allocation)),
        ("held", Answer::Held { ranges: held, next: Some(PART + 1) }),
        ("checksums", Answer::Checksums(vec![Some(0xd1d2_d3d4), None, None, Some(0xd5d6_d7d8)])),
        ("snapshots", Answer::Snapshots(vec![1, 2, 0x0102_0304])),
        ("guest without snapshot", failed(RequestError::NoSnapshot)),
        ("no snapshot", refused(Refusal::NoSnapshot)),
        ("snapshot refused", refused(Refusal::SnapshotRefused)),
        (
            "damage",
            Answer::Damage(vec![
                DamagedBlock { part: PART, block: 255, snapshot: 0 },
                DamagedBlock { part: PART, block: 0, snapshot: 0x0102_0304 },
            ]),
        ),
    ]
}
