//! Random messages, cut anywhere, and with any byte of them changed.

use super::samples::buffers;
use super::{Shown, assert_same, decode, decode_cut, frame};
use crate::{
    Answer, BackfillRequest, Body, Entry, EntryKind, Message, NewComponent, PartVersions, Refusal, Request,
    Versions, WireError, layer,
};
use base::request::{Piece, Pieces, Reply, Request as GuestRequest, RequestError, StatusOf, StatusRun};
use base::units::{COMPONENT_SIZE_MAX, DISK_SIZE_MAX, EXTENT_SIZE};
use base::{ComponentId, DeviceId, DiskId, Pool, RequestTag, WriteId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;

fn pool() -> Pool {
    Pool::new(48 << 20)
}

fn write_id() -> impl Strategy<Value = WriteId> {
    (any::<u32>(), any::<u64>()).prop_map(|(epoch, sequence)| WriteId { epoch, sequence })
}

/// First block and number of a range within one part.
fn blocks() -> impl Strategy<Value = (u16, u16)> {
    (0u16..256).prop_flat_map(|block| (Just(block), 1..=256 - block))
}

fn tag() -> impl Strategy<Value = RequestTag> {
    any::<u64>().prop_map(RequestTag)
}

fn entry_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![tag().prop_map(EntryKind::Guest), Just(EntryKind::Copy)]
}

/// A part, with a layer that there is.
fn layered_part() -> impl Strategy<Value = u32> {
    let layers = vec![
        layer::CONTENT,
        layer::COPY_FIRST,
        layer::UNIT_FIRST,
        layer::UNIT_FIRST + layer::UNITS_MAX - 1,
        layer::ROWS,
    ];
    (prop::sample::select(layers), 0..layer::PARTS_MAX).prop_map(|(one, part)| layer::layered(one, part))
}

/// Marks before a change, as many as there can be.
fn marks(id: WriteId, wanted: u8) -> u8 {
    u64::from(wanted).min(id.sequence.saturating_sub(1)) as u8
}

fn write() -> impl Strategy<Value = Request> {
    let ids = (any::<u64>(), any::<u32>(), write_id(), write_id(), layered_part());
    (ids, entry_kind(), blocks(), any::<u8>(), any::<u32>()).prop_map(
        |((component, epoch, id, watermark, part), kind, (block, count), seed, checksum)| Request::Write {
            marks: marks(id, seed),
            component: ComponentId(component),
            epoch,
            id,
            watermark,
            kind,
            part,
            block,
            data: buffers(&pool(), usize::from(count) * 4096, seed),
            checksums: (0..u32::from(count)).map(|at| checksum.wrapping_mul(at + 1)).collect(),
        },
    )
}

fn trim_or_read() -> impl Strategy<Value = Request> {
    let ids = (any::<u64>(), any::<u32>(), write_id(), write_id(), layered_part());
    (ids, entry_kind(), blocks(), any::<bool>()).prop_map(
        |((component, epoch, id, watermark, part), kind, (block, count), is_trim)| {
            let component = ComponentId(component);
            match is_trim {
                true => Request::Trim {
                    component,
                    epoch,
                    id,
                    watermark,
                    marks: marks(id, block as u8),
                    kind,
                    part,
                    block,
                    count,
                },
                false => {
                    let part = part % (5 << 24);
                    Request::Read { component, epoch, part, block, count, verify: true }
                }
            }
        },
    )
}

/// Blocks or holes for a snapshot of which a component has nothing yet.
fn backfill() -> impl Strategy<Value = Request> {
    let of_both = (any::<u64>(), any::<u32>(), 1..u32::MAX, any::<bool>(), any::<bool>());
    (of_both, 0..layer::PARTS_MAX, blocks(), any::<u8>(), any::<u32>()).prop_map(
        |((component, epoch, number, is_hole, is_seen), part, (block, count), seed, checksum)| {
            let listed = if is_hole { 0 } else { u32::from(count) };
            Request::Backfill(BackfillRequest {
                component: ComponentId(component),
                epoch,
                number,
                part,
                block,
                count,
                as_seen_by: is_seen.then_some(u32::MAX),
                data: buffers(&pool(), listed as usize * 4096, seed),
                checksums: (0..listed).map(|at| checksum.wrapping_mul(at + 1)).collect(),
            })
        },
    )
}

fn new_component() -> impl Strategy<Value = NewComponent> {
    let ids = (1..=u64::MAX, any::<u128>(), any::<u128>());
    let sizes = (1..=COMPONENT_SIZE_MAX / EXTENT_SIZE)
        .prop_flat_map(|extents| (Just(extents * EXTENT_SIZE), 0..=extents * EXTENT_SIZE));
    (ids, sizes, vec(any::<u8>(), 0..=768)).prop_map(
        |((id, disk, device), (size, reservation), disk_label)| NewComponent {
            id: ComponentId(id),
            disk: DiskId(disk),
            device: DeviceId(device),
            size,
            reservation,
            disk_label,
        },
    )
}

/// First byte and length of a range of a disk, at most `len_max` bytes long.
fn range(len_max: u64) -> impl Strategy<Value = (u64, u64)> {
    (0..=DISK_SIZE_MAX / 512).prop_flat_map(move |first| {
        let most = (len_max / 512).min(DISK_SIZE_MAX / 512 - first);
        (Just(first * 512), (0..=most).prop_map(|sectors| sectors * 512))
    })
}

fn status_of() -> impl Strategy<Value = StatusOf> {
    prop_oneof![
        Just(StatusOf::Disk),
        (1..=u32::MAX).prop_map(StatusOf::Snapshot),
        (1..u32::MAX).prop_map(|since| StatusOf::Changes { since, snapshot: u32::MAX }),
    ]
}

fn guest_request() -> impl Strategy<Value = GuestRequest> {
    prop_oneof![
        range(32 << 20).prop_map(|(offset, len)| GuestRequest::Read { offset, len: len as u32 }),
        (range(3 << 20), any::<u8>()).prop_map(|((offset, len), seed)| GuestRequest::Write {
            offset,
            data: buffers(&pool(), len as usize, seed)
        }),
        Just(GuestRequest::Flush),
        range(DISK_SIZE_MAX).prop_map(|(offset, len)| GuestRequest::Trim { offset, len }),
        (range(DISK_SIZE_MAX), any::<bool>())
            .prop_map(|((offset, len), allocate)| GuestRequest::WriteZeroes { offset, len, allocate }),
        (range(DISK_SIZE_MAX), status_of()).prop_map(|((offset, len), of)| GuestRequest::Status {
            of,
            offset,
            len,
        }),
        (range(32 << 20), 1..=u32::MAX).prop_map(|((offset, len), snapshot)| GuestRequest::View {
            snapshot,
            offset,
            len: len as u32
        }),
        range(1 << 20).prop_map(|(offset, len)| GuestRequest::CopyUp { offset, len: len as u32 }),
    ]
}

fn small_request() -> impl Strategy<Value = Request> {
    let numbers = (any::<u64>(), any::<u128>(), any::<u32>(), write_id(), any::<u32>(), any::<bool>());
    (0..19, numbers).prop_map(|(kind, (component, disk, epoch, id, from_part, stable))| {
        let (component, disk) = (ComponentId(component), DiskId(disk));
        match kind {
            0 => Request::Heartbeat,
            1 => Request::Open { disk, component, epoch },
            2 => Request::Close { component, epoch },
            3 => Request::Settle { component, epoch, watermark: id, from_epoch: epoch ^ 1, stable },
            4 => Request::Changed { component, epoch, since: id, from_part },
            5 => Request::Delete { component },
            6 => Request::GuestGone { tag: base::RequestTag(component.0) },
            8 => Request::Held { component, epoch, from_part },
            9 => Request::Promote {
                component,
                epoch,
                part: layer::layered(layer::COPY_FIRST + (from_part % 4) as u8, from_part % 1000),
                block: 3,
                count: 1 + from_part as u16 % 200,
                through: id,
            },
            10 => Request::Checksums {
                component,
                epoch,
                part: from_part % 1000,
                block: 3,
                count: 1 + from_part as u16 % 200,
                coefficient: 1 + (from_part % 255) as u8,
            },
            11 => Request::View {
                component,
                epoch,
                snapshot: epoch.max(1),
                part: from_part % 1000,
                block: 3,
                count: 1 + from_part as u16 % 200,
            },
            12 => Request::Snapshot { component, epoch, number: from_part.max(1) },
            13 => Request::DropSnapshot { component, epoch, number: from_part.max(1) },
            14 => Request::Snapshots { component, epoch },
            15 => Request::LateSnapshot { component, epoch, number: from_part.max(1) },
            16 => Request::SyncBackfill { component, epoch, number: from_part.max(1) },
            17 => Request::Damage { component, epoch },
            7 => Request::Allocation {
                component,
                epoch,
                of: match epoch % 3 {
                    0 => StatusOf::Disk,
                    1 => StatusOf::Snapshot(from_part.max(1)),
                    _ => StatusOf::Changes { since: epoch.max(1) / 2 + 1, snapshot: epoch.max(1) / 2 + 2 },
                },
                part: from_part / 2,
                count: 1 + epoch as u16 % 128,
            },
            _ => Request::Yield { disk },
        }
    })
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        small_request(),
        write(),
        backfill(),
        trim_or_read(),
        new_component().prop_map(Request::Create),
        new_component().prop_map(Request::Update),
        (any::<u128>(), tag(), guest_request()).prop_map(|(disk, tag, request)| Request::Guest {
            disk: DiskId(disk),
            tag,
            request
        }),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (write_id(), any::<u32>(), blocks(), any::<[bool; 2]>(), tag());
    let entry = entry.prop_map(|(id, part, (block, count), [is_trim, has_happened], tag)| Entry {
        id,
        part,
        block,
        count,
        is_trim,
        has_happened,
        tag,
    });
    vec(entry, 0..200).prop_map(|mut entries| {
        entries.sort_by_key(|entry| entry.id);
        entries
    })
}

/// Pieces of so many units each, bytes or holes, any of them next to each other.
fn pieces(unit: usize, units_max: usize, count_max: usize) -> impl Strategy<Value = Pieces> {
    vec((0..=units_max, any::<bool>(), any::<u8>()), 0..=count_max).prop_map(move |pieces| {
        let pool = pool();
        let mut found = Pieces::new();
        for (units, is_hole, seed) in pieces {
            match is_hole {
                true => found.push(Piece::Hole((units * unit) as u32)),
                false => found.extend(buffers(&pool, units * unit, seed).into_iter().map(Piece::Bytes)),
            }
        }
        found
    })
}

fn data() -> impl Strategy<Value = Answer> {
    (pieces(4096, 50, 5), any::<u32>()).prop_map(|(mut pieces, checksum)| {
        pieces.push(Piece::Hole(4096));
        let bytes = pieces.iter().map(|piece| match piece {
            Piece::Bytes(buffer) => buffer.len() / 4096,
            Piece::Hole(_) => 0,
        });
        let count = bytes.sum::<usize>() as u32;
        Answer::Data { pieces, checksums: (0..count).map(|at| checksum.wrapping_mul(at + 1)).collect() }
    })
}

fn changed() -> impl Strategy<Value = Answer> {
    let versions = prop_oneof![
        write_id().prop_map(Versions::Hole),
        vec(write_id(), 16).prop_map(|ids| Versions::Regions(Box::new(ids.try_into().unwrap()))),
    ];
    (vec((0..1000u32, versions), 0..100), any::<bool>()).prop_map(|(steps, has_next)| {
        let mut next = 0;
        let parts = steps
            .into_iter()
            .map(|(step, versions)| {
                let part = next + step;
                next = part + 1;
                PartVersions { part, versions }
            })
            .collect();
        Answer::Changed { parts, next: has_next.then_some(next) }
    })
}

fn allocation() -> impl Strategy<Value = Answer> {
    (vec(1..256u64, 0..500), any::<bool>()).prop_map(|(lens, first)| {
        let used: u64 = lens.iter().sum();
        let last = (used + 1).next_multiple_of(256) - used;
        let run = |(at, len)| StatusRun { len: len * 4096, is_set: (at % 2 == 0) == first };
        let runs: Vec<StatusRun> = lens.into_iter().chain([last]).enumerate().map(run).collect();
        let fits = runs.iter().map(|run| run.len).sum::<u64>() <= 128 << 20;
        Answer::Allocation(if fits { runs } else { vec![StatusRun { len: 1 << 20, is_set: first }] })
    })
}

fn guest_outcome() -> impl Strategy<Value = Answer> {
    let error = prop_oneof![
        Just(RequestError::NoSpace),
        Just(RequestError::Damaged),
        Just(RequestError::DeviceLost),
        Just(RequestError::Stopping),
        Just(RequestError::OutOfRange),
        Just(RequestError::NoSnapshot),
    ];
    let status = (vec(1..1u64 << 20, 0..100), any::<bool>()).prop_map(|(lens, first)| {
        let run = |(at, len)| StatusRun { len, is_set: (at % 2 == 0) == first };
        Reply::Status(lens.into_iter().enumerate().map(run).collect())
    });
    prop_oneof![
        Just(Answer::Guest(Ok(Reply::Done))),
        pieces(512, 3000, 20).prop_map(|pieces| Answer::Guest(Ok(Reply::Data(pieces)))),
        status.prop_map(|status| Answer::Guest(Ok(status))),
        error.prop_map(|error| Answer::Guest(Err(error))),
    ]
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop_oneof![
        any::<u32>().prop_map(|epoch| Refusal::Superseded { epoch }),
        Just(Refusal::NotOpen),
        Just(Refusal::NoComponent),
        Just(Refusal::DeviceLost),
        Just(Refusal::NoSpace),
        Just(Refusal::Damaged),
        Just(Refusal::NoSlot),
        Just(Refusal::NotOwner),
        Just(Refusal::InUse),
        Just(Refusal::Busy),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        any::<u8>().prop_map(|congestion| Answer::Done { congestion }),
        (write_id(), entries()).prop_map(|(watermark, entries)| Answer::Opened { watermark, entries }),
        data(),
        changed(),
        allocation(),
        guest_outcome(),
        refusal().prop_map(Answer::Refused),
        vec(prop::option::of(any::<u32>()), 1..=256).prop_map(Answer::Checksums),
        (any::<u64>(), any::<u32>())
            .prop_map(|(component, epoch)| Answer::Revoke { component: ComponentId(component), epoch }),
    ]
}

fn message<T: Debug>(body: impl Strategy<Value = T>) -> impl Strategy<Value = Message<T>> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), body)
        .prop_map(|(session, sequence, stamp, token, body)| Message { session, sequence, stamp, token, body })
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![1..=200usize, 1..=9000usize, 1..=1usize << 20], 1..20)
}

fn check_stream<T: Shown>(sent: &[Message<T>], cuts: &[usize]) {
    let pool = pool();
    let bytes: Vec<u8> = sent.iter().flat_map(frame).collect();
    let found = decode_cut::<T>(&bytes, cuts, &pool).unwrap();
    assert_eq!(found.len(), sent.len());
    found.iter().zip(sent).for_each(|(found, sent)| assert_same(found, sent));
    assert!(found.iter().flat_map(frame).eq(bytes.iter().copied()), "one form for one value");
    drop(found);
    assert_eq!(pool.bytes_used(), 0);
}

/// Changes one byte of the header or the body.
fn check_damage<T: Shown>(sent: &Message<T>, at: usize, mask: u8) {
    let mut bytes = frame(sent);
    let head = bytes.len() - sent.body.payload().size();
    bytes[at % head] ^= mask;
    assert!(decode::<T>(&bytes, &pool()).is_err(), "byte {} of {head}", at % head);
}

/// Sets a byte of the body and lets the checksums match again: the frame is refused, or is the one form of another message.
fn check_lie<T: Body>(sent: &Message<T>, at: usize, value: u8) {
    let mut bytes = frame(sent);
    let head = bytes.len() - sent.body.payload().size();
    if head == 64 {
        return;
    }
    bytes[64 + at % (head - 64)] = value;
    super::hostile::seal(&mut bytes);
    match decode::<T>(&bytes, &pool()) {
        Ok(found) => assert!(frame(&found[0]) == bytes, "one form for one value"),
        Err(WireError::Body { .. } | WireError::PayloadChecksum { .. }) => {}
        Err(other) => panic!("no other error is due: {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn requests_come_back_however_they_are_cut(sent in vec(message(request()), 1..8), cuts in cuts()) {
        check_stream(&sent, &cuts);
    }

    #[test]
    fn answers_come_back_however_they_are_cut(sent in vec(message(answer()), 1..8), cuts in cuts()) {
        check_stream(&sent, &cuts);
    }

    #[test]
    fn a_changed_byte_is_refused(
        (request, answer) in (message(request()), message(answer())), at in any::<usize>(), mask in 1..=255u8,
    ) {
        check_damage(&request, at, mask);
        check_damage(&answer, at, mask);
    }

    #[test]
    fn a_body_that_lies_is_refused_or_says_something_else(
        (request, answer) in (message(request()), message(answer())), at in any::<usize>(), value in any::<u8>(),
    ) {
        check_lie(&request, at, value);
        check_lie(&answer, at, value);
    }
}
