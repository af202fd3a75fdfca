//! The bodies of requests.

use crate::Version;
use crate::body::{Coded, check_list, put_id, put_zeroes, take_flag, take_id, take_reserved};
use crate::check;
use crate::flaw::Flaw;
use crate::kind::{Kind, RequestKind};
use crate::limits::{ALLOCATION_PARTS_MAX_FIRST, DISK_LABEL_SIZE_MAX};
use crate::message::{BackfillRequest, EntryKind, NewComponent, Request};
use crate::payload::{Payload, block_checksums, verify_blocks};
use base::bytes::{Reader, Writer};
use base::request::{Buffers, Request as GuestRequest, StatusOf};
use base::units::BLOCKS_PER_EXTENT;
use base::{ComponentId, DeviceId, DiskId, RequestTag, WriteId};

/// How many parts a request about allocation names. In the first version that is fewer: the answer is about the first parts then, and
/// whoever asked goes on from there.
fn allocation_parts(version: Version, count: u16) -> u16 {
    match version {
        Version::FIRST => count.min(ALLOCATION_PARTS_MAX_FIRST),
        _ => count,
    }
}

/// The fields that writes and trims share, 56 bytes.
struct ChangeFields {
    component: ComponentId,
    epoch: u32,
    part: u32,
    id: WriteId,
    watermark: WriteId,
    block: u16,
    count: u16,
    kind: EntryKind,
    marks: u8,
}

impl ChangeFields {
    fn encode(&self, w: &mut Writer) {
        w.u64(self.component.0);
        w.u32(self.epoch);
        w.u32(self.part);
        put_id(w, self.id);
        put_id(w, self.watermark);
        w.u16(self.block);
        w.u16(self.count);
        let (kind, tag) = match self.kind {
            EntryKind::Guest(tag) => (1, tag),
            EntryKind::Copy => (2, RequestTag::default()),
        };
        w.u8(kind);
        w.u8(self.marks);
        put_zeroes(w, 2);
        w.u64(tag.0);
    }

    fn decode(r: &mut Reader<'_>) -> Result<ChangeFields, Flaw> {
        let (component, epoch, part) = (ComponentId(r.u64()), r.u32(), r.u32());
        let (id, watermark) = (take_id(r), take_id(r));
        let (block, count, kind, marks) = (r.u16(), r.u16(), r.u8(), r.u8());
        take_reserved(r, 2)?;
        let tag = RequestTag(r.u64());
        let kind = match (kind, tag) {
            (1, tag) => EntryKind::Guest(tag),
            (2, RequestTag(0)) => EntryKind::Copy,
            (_, _) => return Err(Flaw::Fields("it is for no known purpose")),
        };
        Ok(ChangeFields { component, epoch, part, id, watermark, block, count, kind, marks })
    }
}

impl Coded for Request {
    type Kind = RequestKind;

    fn kind(&self) -> RequestKind {
        match self {
            Request::Heartbeat => RequestKind::Heartbeat,
            Request::Open { .. } => RequestKind::Open,
            Request::Close { .. } => RequestKind::Close,
            Request::Write { .. } => RequestKind::Write,
            Request::Trim { .. } => RequestKind::Trim,
            Request::Read { .. } => RequestKind::Read,
            Request::Settle { .. } => RequestKind::Settle,
            Request::Changed { .. } => RequestKind::Changed,
            Request::Create(_) => RequestKind::Create,
            Request::Update(_) => RequestKind::Update,
            Request::Delete { .. } => RequestKind::Delete,
            Request::Guest { request, .. } => match request {
                GuestRequest::Read { .. } => RequestKind::GuestRead,
                GuestRequest::Write { .. } => RequestKind::GuestWrite,
                GuestRequest::Flush => RequestKind::GuestFlush,
                GuestRequest::Trim { .. } => RequestKind::GuestTrim,
                GuestRequest::WriteZeroes { .. } => RequestKind::GuestWriteZeroes,
                GuestRequest::Status { of: StatusOf::Disk, .. } => RequestKind::GuestStatus,
                GuestRequest::Status { .. } => RequestKind::GuestViewStatus,
                GuestRequest::View { .. } => RequestKind::GuestView,
                GuestRequest::CopyUp { .. } => RequestKind::GuestCopyUp,
            },
            Request::Yield { .. } => RequestKind::Yield,
            Request::GuestGone { .. } => RequestKind::GuestGone,
            Request::Allocation { of: StatusOf::Disk, .. } => RequestKind::Allocation,
            Request::Allocation { .. } => RequestKind::ViewAllocation,
            Request::Held { .. } => RequestKind::Held,
            Request::Promote { .. } => RequestKind::Promote,
            Request::Checksums { .. } => RequestKind::Checksums,
            Request::View { .. } => RequestKind::View,
            Request::Snapshot { .. } => RequestKind::Snapshot,
            Request::DropSnapshot { .. } => RequestKind::DropSnapshot,
            Request::Snapshots { .. } => RequestKind::Snapshots,
            Request::LateSnapshot { .. } => RequestKind::LateSnapshot,
            Request::Backfill(_) => RequestKind::Backfill,
            Request::SyncBackfill { .. } => RequestKind::SyncBackfill,
            Request::Damage { .. } => RequestKind::Damage,
            Request::Mend(_) => RequestKind::Mend,
        }
    }

    fn check(&self) -> Result<(), Flaw> {
        match self {
            Request::Write { id, marks, part, block, data, checksums, .. } => {
                check::marks(*id, *marks)?;
                check::layered_part(*part)?;
                check::write(*block, data, checksums.len())
            }
            Request::Trim { id, marks, part, block, count, .. } => {
                check::marks(*id, *marks)?;
                check::layered_part(*part)?;
                check::trim(*block, *count)
            }
            Request::Read { part, block, count, .. } => {
                check::readable_part(*part)?;
                check::blocks(*block, *count)
            }
            Request::View { snapshot, part, block, count, .. } => {
                check::snapshot(*snapshot)?;
                check::content_part(*part)?;
                check::blocks(*block, *count)
            }
            Request::Snapshot { number, .. }
            | Request::DropSnapshot { number, .. }
            | Request::LateSnapshot { number, .. }
            | Request::SyncBackfill { number, .. } => check::snapshot(*number),
            Request::Backfill(backfill) => {
                check::snapshot(backfill.number)?;
                check::backfill(backfill)
            }
            Request::Mend(mend) => {
                check::check(mend.as_seen_by.is_none(), "it mends and fills at once")?;
                check::backfill(mend)
            }
            Request::Promote { part, block, count, .. } => {
                check::copied_part(*part)?;
                check::blocks(*block, *count)
            }
            Request::Checksums { part, block, count, coefficient, .. } => {
                check::content_part(*part)?;
                check::blocks(*block, *count)?;
                check::check(*coefficient != 0, "it multiplies by zero")
            }
            Request::Create(new) | Request::Update(new) => check::component(new),
            Request::Guest { request, .. } => check::guest_request(request),
            Request::Allocation { of, part, count, .. } => {
                check::status_of(*of)?;
                check::parts(*part, *count)
            }
            Request::Heartbeat
            | Request::Open { .. }
            | Request::Close { .. }
            | Request::Settle { .. }
            | Request::Changed { .. }
            | Request::Held { .. }
            | Request::Snapshots { .. }
            | Request::Damage { .. }
            | Request::Delete { .. }
            | Request::Yield { .. }
            | Request::GuestGone { .. } => Ok(()),
        }
    }

    fn encode_fields(&self, version: Version, w: &mut Writer) {
        match self {
            Request::Heartbeat => {}
            Request::Open { disk, component, epoch } => {
                w.u128(disk.0);
                put_component(w, *component, *epoch);
                put_zeroes(w, 4);
            }
            Request::Close { component, epoch } => {
                put_component(w, *component, *epoch);
                put_zeroes(w, 4);
            }
            &Request::Write {
                component,
                epoch,
                id,
                watermark,
                marks,
                kind,
                part,
                block,
                data: _,
                ref checksums,
            } => {
                let count = checksums.len() as u16;
                ChangeFields { component, epoch, part, id, watermark, block, count, kind, marks }.encode(w);
                checksums.iter().for_each(|&checksum| w.u32(checksum));
            }
            &Request::Trim { component, epoch, id, watermark, marks, kind, part, block, count } => {
                ChangeFields { component, epoch, part, id, watermark, block, count, kind, marks }.encode(w);
            }
            Request::Read { component, epoch, part, block, count, verify: _ } => {
                put_component(w, *component, *epoch);
                w.u32(*part);
                w.u16(*block);
                w.u16(*count);
                put_zeroes(w, 4);
            }
            Request::Settle { component, epoch, watermark, from_epoch, stable } => {
                put_component(w, *component, *epoch);
                put_id(w, *watermark);
                w.u8(u8::from(*stable));
                put_zeroes(w, 3);
                w.u32(*from_epoch);
            }
            Request::Changed { component, epoch, since, from_part } => {
                put_component(w, *component, *epoch);
                put_id(w, *since);
                w.u32(*from_part);
                put_zeroes(w, 4);
            }
            &Request::Allocation { component, epoch, of, part, count } => {
                put_component(w, component, epoch);
                w.u32(part);
                w.u16(allocation_parts(version, count));
                put_views_of_parts(w, of);
            }
            Request::Held { .. } | Request::Promote { .. } | Request::Checksums { .. } => self.encode_rows(w),
            Request::Create(new) | Request::Update(new) => encode_new(w, new),
            Request::Delete { component } => w.u64(component.0),
            Request::Guest { disk, tag, request } => {
                w.u128(disk.0);
                w.u64(tag.0);
                encode_guest(w, request);
            }
            Request::Yield { disk } => w.u128(disk.0),
            Request::GuestGone { tag } => w.u64(tag.0),
            request => request.encode_snapshots(w),
        }
    }

    fn payload(&self) -> Payload<'_> {
        match self {
            Request::Write { data, .. }
            | Request::Backfill(BackfillRequest { data, .. })
            | Request::Mend(BackfillRequest { data, .. })
            | Request::Guest { request: GuestRequest::Write { data, .. }, .. } => Payload::Buffers(data),
            Request::Guest {
                request:
                    GuestRequest::Read { .. }
                    | GuestRequest::Flush
                    | GuestRequest::Trim { .. }
                    | GuestRequest::WriteZeroes { .. }
                    | GuestRequest::View { .. }
                    | GuestRequest::CopyUp { .. }
                    | GuestRequest::Status { .. },
                ..
            }
            | Request::Heartbeat
            | Request::Open { .. }
            | Request::Close { .. }
            | Request::Trim { .. }
            | Request::Read { .. }
            | Request::Settle { .. }
            | Request::Changed { .. }
            | Request::Allocation { .. }
            | Request::Held { .. }
            | Request::Promote { .. }
            | Request::Checksums { .. }
            | Request::View { .. }
            | Request::Snapshot { .. }
            | Request::DropSnapshot { .. }
            | Request::Snapshots { .. }
            | Request::LateSnapshot { .. }
            | Request::SyncBackfill { .. }
            | Request::Damage { .. }
            | Request::Create(_)
            | Request::Update(_)
            | Request::Delete { .. }
            | Request::Yield { .. }
            | Request::GuestGone { .. } => Payload::None,
        }
    }

    fn decode_fields(kind: RequestKind, r: &mut Reader<'_>, payload: Buffers) -> Result<Request, Flaw> {
        Ok(match kind {
            RequestKind::Heartbeat => Request::Heartbeat,
            RequestKind::Open => {
                let disk = DiskId(r.u128());
                let (component, epoch) = take_component(r);
                take_reserved(r, 4)?;
                Request::Open { disk, component, epoch }
            }
            RequestKind::Close => {
                let (component, epoch) = take_component(r);
                take_reserved(r, 4)?;
                Request::Close { component, epoch }
            }
            RequestKind::Write => decode_write(r, payload)?,
            RequestKind::Trim => {
                let ChangeFields { component, epoch, part, id, watermark, block, count, kind, marks } =
                    ChangeFields::decode(r)?;
                Request::Trim { component, epoch, id, watermark, marks, kind, part, block, count }
            }
            RequestKind::Read => {
                let (component, epoch) = take_component(r);
                let (part, block, count) = (r.u32(), r.u16(), r.u16());
                take_reserved(r, 4)?;
                Request::Read { component, epoch, part, block, count, verify: true }
            }
            RequestKind::Settle => {
                let (component, epoch) = take_component(r);
                let (watermark, stable) = (take_id(r), take_flag(r)?);
                take_reserved(r, 3)?;
                Request::Settle { component, epoch, watermark, from_epoch: r.u32(), stable }
            }
            RequestKind::Changed => {
                let (component, epoch) = take_component(r);
                let (since, from_part) = (take_id(r), r.u32());
                take_reserved(r, 4)?;
                Request::Changed { component, epoch, since, from_part }
            }
            RequestKind::Create => Request::Create(decode_new(r)?),
            RequestKind::Update => Request::Update(decode_new(r)?),
            RequestKind::Delete => Request::Delete { component: ComponentId(r.u64()) },
            RequestKind::GuestRead => guest(r, decode_guest_read)?,
            RequestKind::GuestWrite => guest(r, |r| decode_guest_write(r, payload))?,
            RequestKind::GuestFlush => guest(r, |_| Ok(GuestRequest::Flush))?,
            RequestKind::GuestTrim => guest(r, |r| Ok(GuestRequest::Trim { offset: r.u64(), len: r.u64() }))?,
            RequestKind::GuestWriteZeroes => guest(r, decode_guest_write_zeroes)?,
            RequestKind::GuestStatus => guest(r, decode_guest_status)?,
            RequestKind::Yield => Request::Yield { disk: DiskId(r.u128()) },
            RequestKind::GuestGone => Request::GuestGone { tag: RequestTag(r.u64()) },
            RequestKind::Allocation => {
                let (component, epoch) = take_component(r);
                let (part, count) = (r.u32(), r.u16());
                take_reserved(r, 6)?;
                Request::Allocation { component, epoch, of: StatusOf::Disk, part, count }
            }
            RequestKind::Held => {
                let (component, epoch) = take_component(r);
                Request::Held { component, epoch, from_part: r.u32() }
            }
            RequestKind::Promote => {
                let (component, epoch) = take_component(r);
                let (part, block, count) = (r.u32(), r.u16(), r.u16());
                Request::Promote { component, epoch, part, block, count, through: take_id(r) }
            }
            RequestKind::Checksums => decode_checksums(r)?,
            RequestKind::Backfill => Request::Backfill(decode_backfill(r, payload)?),
            RequestKind::Mend => Request::Mend(decode_backfill(r, payload)?),
            kind => decode_snapshots(kind, r)?,
        })
    }
}

impl Request {
    /// The first version of the protocol that has requests of its kind.
    pub fn first_version(&self) -> Version {
        let number = match self.kind().code() {
            0..=20 => 1,
            21..=23 => 2,
            _ => 3,
        };
        Version::new(number).expect("this program speaks it")
    }

    /// What has to do with snapshots of a component.
    fn encode_snapshots(&self, w: &mut Writer) {
        match *self {
            Request::Backfill(ref backfill) | Request::Mend(ref backfill) => encode_backfill(w, backfill),
            Request::Damage { component, epoch } => put_numbered(w, component, epoch, 0),
            Request::LateSnapshot { component, epoch, number } => put_numbered(w, component, epoch, number),
            Request::SyncBackfill { component, epoch, number } => put_numbered(w, component, epoch, number),
            Request::View { component, epoch, snapshot, part, block, count } => {
                put_component(w, component, epoch);
                w.u32(part);
                w.u16(block);
                w.u16(count);
                w.u32(snapshot);
            }
            Request::Snapshot { component, epoch, number } => put_numbered(w, component, epoch, number),
            Request::DropSnapshot { component, epoch, number } => put_numbered(w, component, epoch, number),
            Request::Snapshots { component, epoch } => put_numbered(w, component, epoch, 0),
            _ => unreachable!("it has to do with snapshots"),
        }
    }

    /// What is asked of members of rows.
    fn encode_rows(&self, w: &mut Writer) {
        match *self {
            Request::Held { component, epoch, from_part } => {
                put_component(w, component, epoch);
                w.u32(from_part);
            }
            Request::Promote { component, epoch, part, block, count, through } => {
                put_component(w, component, epoch);
                w.u32(part);
                w.u16(block);
                w.u16(count);
                put_id(w, through);
            }
            Request::Checksums { component, epoch, part, block, count, coefficient } => {
                put_component(w, component, epoch);
                w.u32(part);
                w.u16(block);
                w.u16(count);
                w.u8(coefficient);
                put_zeroes(w, 3);
            }
            _ => unreachable!("it is not asked of members of rows"),
        }
    }
}

fn encode_backfill(w: &mut Writer, backfill: &BackfillRequest) {
    let BackfillRequest { component, epoch, number, part, block, count, as_seen_by, data: _, checksums } =
        backfill;
    put_numbered(w, *component, *epoch, *number);
    w.u32(*part);
    w.u16(*block);
    w.u16(*count);
    w.u32(as_seen_by.unwrap_or_default());
    w.u8(u8::from(checksums.is_empty()));
    put_zeroes(w, 3);
    checksums.iter().for_each(|&checksum| w.u32(checksum));
}

fn decode_backfill(r: &mut Reader<'_>, data: Buffers) -> Result<BackfillRequest, Flaw> {
    let (component, epoch) = take_component(r);
    let (number, part, block, count) = (r.u32(), r.u32(), r.u16(), r.u16());
    let (newer, is_hole) = (r.u32(), take_flag(r)?);
    take_reserved(r, 3)?;
    let as_seen_by = Some(newer).filter(|newer| *newer > 0);
    let listed = if is_hole { 0 } else { count };
    check_list(r, usize::from(listed), 4, BLOCKS_PER_EXTENT)?;
    let checksums = (0..listed).map(|_| r.u32()).collect();
    Ok(BackfillRequest { component, epoch, number, part, block, count, as_seen_by, data, checksums })
}

fn put_component(w: &mut Writer, component: ComponentId, epoch: u32) {
    w.u64(component.0);
    w.u32(epoch);
}

fn put_numbered(w: &mut Writer, component: ComponentId, epoch: u32, number: u32) {
    put_component(w, component, epoch);
    w.u32(number);
}

fn take_component(r: &mut Reader<'_>) -> (ComponentId, u32) {
    (ComponentId(r.u64()), r.u32())
}

fn decode_write(r: &mut Reader<'_>, data: Buffers) -> Result<Request, Flaw> {
    let ChangeFields { component, epoch, part, id, watermark, block, count, kind, marks } =
        ChangeFields::decode(r)?;
    check_list(r, usize::from(count), 4, BLOCKS_PER_EXTENT)?;
    let checksums = (0..count).map(|_| r.u32()).collect();
    Ok(Request::Write { component, epoch, id, watermark, marks, kind, part, block, data, checksums })
}

fn decode_checksums(r: &mut Reader<'_>) -> Result<Request, Flaw> {
    let (component, epoch) = take_component(r);
    let (part, block, count, coefficient) = (r.u32(), r.u16(), r.u16(), r.u8());
    take_reserved(r, 3)?;
    Ok(Request::Checksums { component, epoch, part, block, count, coefficient })
}

fn decode_snapshots(kind: RequestKind, r: &mut Reader<'_>) -> Result<Request, Flaw> {
    Ok(match kind {
        RequestKind::View => {
            let (component, epoch) = take_component(r);
            let (part, block, count) = (r.u32(), r.u16(), r.u16());
            Request::View { component, epoch, snapshot: r.u32(), part, block, count }
        }
        RequestKind::Snapshot => {
            let (component, epoch) = take_component(r);
            Request::Snapshot { component, epoch, number: r.u32() }
        }
        RequestKind::DropSnapshot => {
            let (component, epoch) = take_component(r);
            Request::DropSnapshot { component, epoch, number: r.u32() }
        }
        RequestKind::LateSnapshot => {
            let (component, epoch) = take_component(r);
            Request::LateSnapshot { component, epoch, number: r.u32() }
        }
        RequestKind::SyncBackfill => {
            let (component, epoch) = take_component(r);
            Request::SyncBackfill { component, epoch, number: r.u32() }
        }
        RequestKind::Snapshots => {
            let (component, epoch) = take_component(r);
            take_reserved(r, 4)?;
            Request::Snapshots { component, epoch }
        }
        RequestKind::Damage => {
            let (component, epoch) = take_component(r);
            take_reserved(r, 4)?;
            Request::Damage { component, epoch }
        }
        RequestKind::GuestView => guest(r, decode_guest_view)?,
        RequestKind::GuestCopyUp => guest(r, |r| {
            let (offset, len) = (r.u64(), r.u32());
            take_reserved(r, 4)?;
            Ok(GuestRequest::CopyUp { offset, len })
        })?,
        RequestKind::ViewAllocation => {
            let (component, epoch) = take_component(r);
            let (part, count) = (r.u32(), r.u16());
            take_reserved(r, 2)?;
            let of = take_views(r);
            take_reserved(r, 4)?;
            Request::Allocation { component, epoch, of, part, count }
        }
        RequestKind::GuestViewStatus => guest(r, |r| {
            let (offset, len) = (r.u64(), r.u64());
            Ok(GuestRequest::Status { of: take_views(r), offset, len })
        })?,
        _ => unreachable!("it has to do with snapshots"),
    })
}

/// What a question about parts of a component is about, with what fills its body up.
fn put_views_of_parts(w: &mut Writer, of: StatusOf) {
    if of == StatusOf::Disk {
        return put_zeroes(w, 6);
    }
    put_zeroes(w, 2);
    put_views(w, of);
    put_zeroes(w, 4);
}

/// The snapshots that a question about states of blocks is about; 0: none.
fn put_views(w: &mut Writer, of: StatusOf) {
    let (snapshot, since) = match of {
        StatusOf::Disk => (0, 0),
        StatusOf::Snapshot(snapshot) => (snapshot, 0),
        StatusOf::Changes { since, snapshot } => (snapshot, since),
    };
    w.u32(snapshot);
    w.u32(since);
}

fn take_views(r: &mut Reader<'_>) -> StatusOf {
    match (r.u32(), r.u32()) {
        (snapshot, 0) => StatusOf::Snapshot(snapshot),
        (snapshot, since) => StatusOf::Changes { since, snapshot },
    }
}

fn decode_guest_status(r: &mut Reader<'_>) -> Result<GuestRequest, Flaw> {
    Ok(GuestRequest::Status { of: StatusOf::Disk, offset: r.u64(), len: r.u64() })
}

fn decode_guest_view(r: &mut Reader<'_>) -> Result<GuestRequest, Flaw> {
    let (offset, len, snapshot) = (r.u64(), r.u32(), r.u32());
    Ok(GuestRequest::View { snapshot, offset, len })
}

fn encode_new(w: &mut Writer, new: &NewComponent) {
    w.u64(new.id.0);
    w.u128(new.disk.0);
    w.u128(new.device.0);
    w.u64(new.size);
    w.u64(new.reservation);
    w.u16(new.disk_label.len() as u16);
    put_zeroes(w, 6);
    w.slice(&new.disk_label);
}

fn decode_new(r: &mut Reader<'_>) -> Result<NewComponent, Flaw> {
    let id = ComponentId(r.u64());
    let (disk, device) = (DiskId(r.u128()), DeviceId(r.u128()));
    let (size, reservation) = (r.u64(), r.u64());
    let record_size = usize::from(r.u16());
    take_reserved(r, 6)?;
    check_list(r, record_size, 1, DISK_LABEL_SIZE_MAX)?;
    Ok(NewComponent { id, disk, device, size, reservation, disk_label: r.slice(record_size).to_vec() })
}

fn encode_guest(w: &mut Writer, request: &GuestRequest) {
    match request {
        GuestRequest::Read { offset, len } | GuestRequest::CopyUp { offset, len } => {
            w.u64(*offset);
            w.u32(*len);
            put_zeroes(w, 4);
        }
        GuestRequest::Write { offset, data } => {
            w.u64(*offset);
            block_checksums(Payload::Buffers(data).buffers(), &mut |checksum| w.u32(checksum));
        }
        GuestRequest::Flush => {}
        GuestRequest::View { snapshot, offset, len } => {
            w.u64(*offset);
            w.u32(*len);
            w.u32(*snapshot);
        }
        GuestRequest::Trim { offset, len } | GuestRequest::Status { of: StatusOf::Disk, offset, len } => {
            w.u64(*offset);
            w.u64(*len);
        }
        GuestRequest::Status { of, offset, len } => {
            w.u64(*offset);
            w.u64(*len);
            put_views(w, *of);
        }
        GuestRequest::WriteZeroes { offset, len, allocate } => {
            w.u64(*offset);
            w.u64(*len);
            w.u8(u8::from(*allocate));
            put_zeroes(w, 7);
        }
    }
}

/// A guest's request: its disk and tag, then what `fields` reads.
fn guest<'a>(
    r: &mut Reader<'a>,
    fields: impl FnOnce(&mut Reader<'a>) -> Result<GuestRequest, Flaw>,
) -> Result<Request, Flaw> {
    let (disk, tag) = (DiskId(r.u128()), RequestTag(r.u64()));
    Ok(Request::Guest { disk, tag, request: fields(r)? })
}

fn decode_guest_read(r: &mut Reader<'_>) -> Result<GuestRequest, Flaw> {
    let (offset, len) = (r.u64(), r.u32());
    take_reserved(r, 4)?;
    Ok(GuestRequest::Read { offset, len })
}

fn decode_guest_write(r: &mut Reader<'_>, data: Buffers) -> Result<GuestRequest, Flaw> {
    let offset = r.u64();
    verify_blocks(r, &data)?;
    Ok(GuestRequest::Write { offset, data })
}

fn decode_guest_write_zeroes(r: &mut Reader<'_>) -> Result<GuestRequest, Flaw> {
    let (offset, len, allocate) = (r.u64(), r.u64(), take_flag(r)?);
    take_reserved(r, 7)?;
    Ok(GuestRequest::WriteZeroes { offset, len, allocate })
}
