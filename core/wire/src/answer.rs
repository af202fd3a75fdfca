//! The bodies of answers and notices.

use crate::Version;
use crate::body::{Coded, check_list, put_id, put_zeroes, take_flag, take_id, take_reserved};
use crate::check;
use crate::flaw::Flaw;
use crate::kind::AnswerKind;
use crate::limits::{
    CHANGED_PARTS_MAX, DAMAGED_MAX, ENTRIES_MAX, GUEST_PAYLOAD_SIZE_MAX, HELD_RANGES_MAX, RUNS_MAX,
    SNAPSHOTS_MAX, STATUS_RUNS_MAX,
};
use crate::message::{Answer, DamagedBlock, Entry, HeldRange, PartVersions, Refusal, Versions};
use crate::payload::{Cutter, Payload, Run, block_checksums, runs, verify_blocks};
use base::bytes::{Reader, Writer};
use base::request::{Buffers, Outcome, Piece, Pieces, Reply, RequestError, StatusRun};
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, REGIONS_PER_EXTENT};
use base::{ComponentId, RequestTag, WriteId};

/// Set in the length of a run that is a hole.
const HOLE: u32 = 1 << 31;
/// Set in the length of a run that is allocated.
const ALLOCATED: u64 = 1 << 63;

const _: () = assert!(GUEST_PAYLOAD_SIZE_MAX < HOLE as usize);

impl Coded for Answer {
    type Kind = AnswerKind;

    fn kind(&self) -> AnswerKind {
        match self {
            Answer::Done { .. } => AnswerKind::Done,
            Answer::Opened { .. } => AnswerKind::Opened,
            Answer::Data { .. } => AnswerKind::Data,
            Answer::Changed { .. } => AnswerKind::Changed,
            Answer::Guest(Ok(Reply::Done)) => AnswerKind::GuestDone,
            Answer::Guest(Ok(Reply::Data(_))) => AnswerKind::GuestData,
            Answer::Guest(Ok(Reply::Status(_))) => AnswerKind::GuestStatus,
            Answer::Guest(Err(_)) => AnswerKind::GuestFailed,
            Answer::Refused(_) => AnswerKind::Refused,
            Answer::Revoke { .. } => AnswerKind::Revoke,
            Answer::Allocation(_) => AnswerKind::Allocation,
            Answer::Held { .. } => AnswerKind::Held,
            Answer::Checksums(_) => AnswerKind::Checksums,
            Answer::Snapshots(_) => AnswerKind::Snapshots,
            Answer::Damage(_) => AnswerKind::Damage,
        }
    }

    fn check(&self) -> Result<(), Flaw> {
        match self {
            Answer::Opened { watermark: _, entries } => check::entries(entries),
            Answer::Data { pieces, checksums } => check::data(pieces, checksums.len()),
            Answer::Changed { parts, next } => check::changed(parts, *next),
            Answer::Allocation(runs) => check::allocation(runs),
            Answer::Held { ranges, next } => check::held(ranges, *next),
            Answer::Checksums(checksums) => check::checksums(checksums),
            Answer::Snapshots(numbers) => check::snapshots(numbers),
            Answer::Damage(blocks) => check::damage(blocks),
            Answer::Guest(outcome) => check::guest_outcome(outcome),
            Answer::Done { .. } | Answer::Refused(_) | Answer::Revoke { .. } => Ok(()),
        }
    }

    fn encode_fields(&self, _: Version, w: &mut Writer) {
        match self {
            Answer::Done { congestion } => {
                w.u8(*congestion);
                put_zeroes(w, 7);
            }
            Answer::Opened { watermark, entries } => {
                put_id(w, *watermark);
                w.u32(entries.len() as u32);
                entries.iter().for_each(|entry| encode_entry(w, entry));
            }
            Answer::Data { pieces, checksums } => {
                encode_runs(w, pieces);
                checksums.iter().for_each(|&checksum| w.u32(checksum));
            }
            Answer::Changed { parts, next } => {
                w.u32(parts.len() as u32);
                w.u32(next.unwrap_or(0));
                w.u8(u8::from(next.is_some()));
                put_zeroes(w, 7);
                parts.iter().for_each(|part| encode_part(w, part));
            }
            Answer::Allocation(runs) => encode_status(w, runs),
            Answer::Held { ranges, next } => {
                w.u32(ranges.len() as u32);
                w.u32(next.unwrap_or(0));
                w.u8(u8::from(next.is_some()));
                put_zeroes(w, 7);
                ranges.iter().for_each(|range| encode_held(w, range));
            }
            Answer::Checksums(checksums) => encode_checksums(w, checksums),
            Answer::Snapshots(numbers) => {
                w.u32(numbers.len() as u32);
                put_zeroes(w, 4);
                numbers.iter().for_each(|&number| w.u32(number));
            }
            Answer::Damage(blocks) => {
                w.u32(blocks.len() as u32);
                put_zeroes(w, 4);
                for DamagedBlock { part, block, snapshot } in blocks {
                    w.u32(*part);
                    w.u16(*block);
                    put_zeroes(w, 2);
                    w.u32(*snapshot);
                }
            }
            Answer::Guest(outcome) => encode_outcome(w, outcome),
            Answer::Refused(refusal) => encode_refusal(w, *refusal),
            Answer::Revoke { component, epoch } => {
                w.u64(component.0);
                w.u32(*epoch);
                put_zeroes(w, 4);
            }
        }
    }

    fn payload(&self) -> Payload<'_> {
        match self {
            Answer::Data { pieces, .. } | Answer::Guest(Ok(Reply::Data(pieces))) => Payload::Pieces(pieces),
            Answer::Guest(Ok(Reply::Done | Reply::Status(_)) | Err(_))
            | Answer::Done { .. }
            | Answer::Opened { .. }
            | Answer::Changed { .. }
            | Answer::Allocation(_)
            | Answer::Held { .. }
            | Answer::Checksums(_)
            | Answer::Snapshots(_)
            | Answer::Damage(_)
            | Answer::Refused(_)
            | Answer::Revoke { .. } => Payload::None,
        }
    }

    fn decode_fields(kind: AnswerKind, r: &mut Reader<'_>, payload: Buffers) -> Result<Answer, Flaw> {
        Ok(match kind {
            AnswerKind::Done => {
                let congestion = r.u8();
                take_reserved(r, 7)?;
                Answer::Done { congestion }
            }
            AnswerKind::Opened => {
                let (watermark, count) = (take_id(r), r.u32() as usize);
                check_list(r, count, 32, ENTRIES_MAX)?;
                let entries = (0..count).map(|_| decode_entry(r)).collect::<Result<_, Flaw>>()?;
                Answer::Opened { watermark, entries }
            }
            AnswerKind::Data => decode_data(r, payload)?,
            AnswerKind::Changed => decode_changed(r)?,
            AnswerKind::GuestDone => Answer::Guest(Ok(Reply::Done)),
            AnswerKind::GuestData => {
                // The checksums come before the pieces take the payload apart, the runs before the checksums.
                let mut runs = r.clone();
                skip_runs(r)?;
                verify_blocks(r, &payload)?;
                Answer::Guest(Ok(Reply::Data(decode_runs(&mut runs, payload)?)))
            }
            AnswerKind::Allocation => Answer::Allocation(decode_status(r)?),
            AnswerKind::Held => decode_held(r)?,
            AnswerKind::Checksums => decode_checksums(r)?,
            AnswerKind::Snapshots => {
                let count = r.u32() as usize;
                take_reserved(r, 4)?;
                check_list(r, count, 4, SNAPSHOTS_MAX)?;
                Answer::Snapshots((0..count).map(|_| r.u32()).collect())
            }
            AnswerKind::Damage => decode_damage(r)?,
            AnswerKind::GuestStatus => Answer::Guest(Ok(Reply::Status(decode_status(r)?))),
            AnswerKind::GuestFailed => Answer::Guest(Err(decode_error(r)?)),
            AnswerKind::Refused => Answer::Refused(decode_refusal(r)?),
            AnswerKind::Revoke => {
                let (component, epoch) = (ComponentId(r.u64()), r.u32());
                take_reserved(r, 4)?;
                Answer::Revoke { component, epoch }
            }
        })
    }
}

fn decode_damage(r: &mut Reader<'_>) -> Result<Answer, Flaw> {
    let count = r.u32() as usize;
    take_reserved(r, 4)?;
    check_list(r, count, 12, DAMAGED_MAX)?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let (part, block) = (r.u32(), r.u16());
        take_reserved(r, 2)?;
        blocks.push(DamagedBlock { part, block, snapshot: r.u32() });
    }
    Ok(Answer::Damage(blocks))
}

fn encode_entry(w: &mut Writer, entry: &Entry) {
    put_id(w, entry.id);
    w.u32(entry.part);
    w.u16(entry.block);
    w.u16(entry.count);
    w.u8(u8::from(entry.is_trim));
    w.u8(u8::from(entry.has_happened));
    put_zeroes(w, 2);
    w.u64(entry.tag.0);
}

fn decode_entry(r: &mut Reader<'_>) -> Result<Entry, Flaw> {
    let (id, part, block, count) = (take_id(r), r.u32(), r.u16(), r.u16());
    let (is_trim, has_happened) = (take_flag(r)?, take_flag(r)?);
    take_reserved(r, 2)?;
    Ok(Entry { id, part, block, count, is_trim, has_happened, tag: RequestTag(r.u64()) })
}

/// Appends the number of runs and their lengths.
fn encode_runs(w: &mut Writer, pieces: &Pieces) {
    let mut count = 0;
    runs(pieces, |_| count += 1);
    w.u32(count);
    put_zeroes(w, 4);
    runs(pieces, |run| match run {
        Run::Bytes(len) => w.u32(len),
        Run::Hole(len) => w.u32(HOLE | len),
    });
}

fn skip_runs(r: &mut Reader<'_>) -> Result<(), Flaw> {
    let count = r.u32() as usize;
    take_reserved(r, 4)?;
    if count > RUNS_MAX {
        return Err(Flaw::Fields("it has too many runs"));
    }
    r.slice(4 * count);
    Ok(r.finish()?)
}

/// Reads runs and gives them the bytes of the payload, all of it.
fn decode_runs(r: &mut Reader<'_>, payload: Buffers) -> Result<Pieces, Flaw> {
    let count = r.u32() as usize;
    take_reserved(r, 4)?;
    if count > RUNS_MAX || r.remaining() < 4 * count {
        return Err(Flaw::Fields("it has more runs than its body has room for"));
    }
    let mut cutter = Cutter::new(payload);
    let mut pieces = Pieces::new();
    let mut last_is_hole = None;
    for _ in 0..count {
        let word = r.u32();
        let (len, is_hole) = (word & !HOLE, word & HOLE != 0);
        if len == 0 || last_is_hole == Some(is_hole) {
            return Err(Flaw::Fields("a run is empty or like the one before it"));
        }
        last_is_hole = Some(is_hole);
        if is_hole {
            pieces.push(Piece::Hole(len));
        } else if !cutter.cut(len as usize, &mut pieces) {
            return Err(Flaw::Fields("its runs have more bytes than its payload"));
        }
    }
    match cutter.is_at_end() {
        true => Ok(pieces),
        false => Err(Flaw::Fields("its payload has more bytes than its runs")),
    }
}

fn decode_data(r: &mut Reader<'_>, payload: Buffers) -> Result<Answer, Flaw> {
    let size = check::buffers_size(&payload);
    let pieces = decode_runs(r, payload)?;
    let count = size / BLOCK_SIZE as usize;
    check_list(r, count, 4, BLOCKS_PER_EXTENT)?;
    let checksums = (0..count).map(|_| r.u32()).collect();
    Ok(Answer::Data { pieces, checksums })
}

fn encode_part(w: &mut Writer, part: &PartVersions) {
    w.u32(part.part);
    let (form, ids): (u8, &[WriteId]) = match &part.versions {
        Versions::Hole(id) => (1, std::slice::from_ref(id)),
        Versions::Regions(ids) => (2, ids.as_slice()),
    };
    w.u8(form);
    put_zeroes(w, 3);
    ids.iter().for_each(|&id| put_id(w, id));
}

fn decode_part(r: &mut Reader<'_>) -> Result<PartVersions, Flaw> {
    let (part, form) = (r.u32(), r.u8());
    take_reserved(r, 3)?;
    let versions = match form {
        1 => Versions::Hole(take_id(r)),
        2 => Versions::Regions(Box::new([(); REGIONS_PER_EXTENT].map(|()| take_id(r)))),
        _ => return Err(Flaw::Fields("the versions of a part have no known form")),
    };
    r.finish()?;
    Ok(PartVersions { part, versions })
}

fn decode_changed(r: &mut Reader<'_>) -> Result<Answer, Flaw> {
    let (count, next) = (r.u32() as usize, r.u32());
    let has_next = take_flag(r)?;
    take_reserved(r, 7)?;
    if count > CHANGED_PARTS_MAX {
        return Err(Flaw::Fields("it has too many parts"));
    }
    if !has_next && next != 0 {
        return Err(Flaw::Fields("it is at its end and names where to go on"));
    }
    let parts = (0..count).map(|_| decode_part(r)).collect::<Result<_, Flaw>>()?;
    Ok(Answer::Changed { parts, next: has_next.then_some(next) })
}

fn encode_held(w: &mut Writer, range: &HeldRange) {
    w.u32(range.part);
    w.u16(range.block);
    w.u16(range.count);
    put_id(w, range.through);
    put_zeroes(w, 4);
}

fn decode_held(r: &mut Reader<'_>) -> Result<Answer, Flaw> {
    let (count, next) = (r.u32() as usize, r.u32());
    let has_next = take_flag(r)?;
    take_reserved(r, 7)?;
    check_list(r, count, 24, HELD_RANGES_MAX)?;
    if !has_next && next != 0 {
        return Err(Flaw::Fields("it is at its end and names where to go on"));
    }
    let range = |r: &mut Reader<'_>| {
        let range = HeldRange { part: r.u32(), block: r.u16(), count: r.u16(), through: take_id(r) };
        take_reserved(r, 4)?;
        Ok(range)
    };
    let ranges = (0..count).map(|_| range(r)).collect::<Result<_, Flaw>>()?;
    Ok(Answer::Held { ranges, next: has_next.then_some(next) })
}

/// Appends the number of blocks, a bit for each, set where it is in no hole, and the checksums of those.
fn encode_checksums(w: &mut Writer, checksums: &[Option<u32>]) {
    let mut bits = [0u8; BLOCKS_PER_EXTENT / 8];
    for (block, _) in checksums.iter().enumerate().filter(|(_, checksum)| checksum.is_some()) {
        bits[block / 8] |= 1 << (block % 8);
    }
    w.u16(checksums.len() as u16);
    put_zeroes(w, 6);
    w.slice(&bits);
    checksums.iter().flatten().for_each(|&checksum| w.u32(checksum));
}

fn decode_checksums(r: &mut Reader<'_>) -> Result<Answer, Flaw> {
    let count = usize::from(r.u16());
    take_reserved(r, 6)?;
    let bits = r.slice(BLOCKS_PER_EXTENT / 8).to_vec();
    r.finish()?;
    let is_data = |block: usize| bits[block / 8] >> (block % 8) & 1 == 1;
    let is_beyond = (count..BLOCKS_PER_EXTENT).any(is_data);
    if count > BLOCKS_PER_EXTENT || is_beyond {
        return Err(Flaw::Fields("it has checksums of more blocks than it names"));
    }
    let checksums = (0..count).map(|block| is_data(block).then(|| r.u32())).collect();
    Ok(Answer::Checksums(checksums))
}

fn encode_outcome(w: &mut Writer, outcome: &Outcome) {
    match outcome {
        Ok(Reply::Done) => {}
        Ok(Reply::Data(pieces)) => {
            encode_runs(w, pieces);
            block_checksums(Payload::Pieces(pieces).buffers(), &mut |checksum| w.u32(checksum));
        }
        Ok(Reply::Status(runs)) => encode_status(w, runs),
        Err(error) => {
            w.u8(match error {
                RequestError::NoSpace => 1,
                RequestError::Damaged => 2,
                RequestError::DeviceLost => 3,
                RequestError::Stopping => 4,
                RequestError::OutOfRange => 5,
                RequestError::NoSnapshot => 6,
            });
            put_zeroes(w, 7);
        }
    }
}

/// Appends runs of allocation. How many there are is up to what guests wrote: beyond the limit the rest is one run that
/// counts as allocated, which is never wrong, for only "not allocated" promises something about its bytes.
fn encode_status(w: &mut Writer, runs: &[StatusRun]) {
    let (named, rest) = match runs.len() > STATUS_RUNS_MAX {
        // The one before the rest must not be allocated, or the two would be neighbours alike.
        true => {
            let is_allocated = runs[STATUS_RUNS_MAX - 2].is_set;
            runs.split_at(STATUS_RUNS_MAX - 1 - usize::from(is_allocated))
        }
        false => (runs, &[] as &[StatusRun]),
    };
    w.u32((named.len() + usize::from(!rest.is_empty())) as u32);
    put_zeroes(w, 4);
    named.iter().for_each(|run| w.u64(run.len | if run.is_set { ALLOCATED } else { 0 }));
    if !rest.is_empty() {
        w.u64(rest.iter().map(|run| run.len).sum::<u64>() | ALLOCATED);
    }
}

fn decode_status(r: &mut Reader<'_>) -> Result<Vec<StatusRun>, Flaw> {
    let count = r.u32() as usize;
    take_reserved(r, 4)?;
    check_list(r, count, 8, STATUS_RUNS_MAX)?;
    Ok((0..count)
        .map(|_| r.u64())
        .map(|word| StatusRun { len: word & !ALLOCATED, is_set: word & ALLOCATED != 0 })
        .collect())
}

fn decode_error(r: &mut Reader<'_>) -> Result<RequestError, Flaw> {
    let error = match r.u8() {
        1 => RequestError::NoSpace,
        2 => RequestError::Damaged,
        3 => RequestError::DeviceLost,
        4 => RequestError::Stopping,
        5 => RequestError::OutOfRange,
        6 => RequestError::NoSnapshot,
        _ => return Err(Flaw::Fields("it failed for no known reason")),
    };
    take_reserved(r, 7)?;
    Ok(error)
}

fn encode_refusal(w: &mut Writer, refusal: Refusal) {
    let (code, epoch) = match refusal {
        Refusal::Superseded { epoch } => (1, epoch),
        Refusal::NotOpen => (2, 0),
        Refusal::NoComponent => (3, 0),
        Refusal::DeviceLost => (4, 0),
        Refusal::NoSpace => (5, 0),
        Refusal::Damaged => (6, 0),
        Refusal::NoSlot => (7, 0),
        Refusal::NotOwner => (8, 0),
        Refusal::InUse => (9, 0),
        Refusal::Busy => (10, 0),
        Refusal::NoSnapshot => (11, 0),
        Refusal::SnapshotRefused => (12, 0),
    };
    w.u8(code);
    put_zeroes(w, 3);
    w.u32(epoch);
}

fn decode_refusal(r: &mut Reader<'_>) -> Result<Refusal, Flaw> {
    let code = r.u8();
    take_reserved(r, 3)?;
    let epoch = r.u32();
    if code != 1 && epoch != 0 {
        return Err(Flaw::Fields("it names an epoch and is not for one"));
    }
    Ok(match code {
        1 => Refusal::Superseded { epoch },
        2 => Refusal::NotOpen,
        3 => Refusal::NoComponent,
        4 => Refusal::DeviceLost,
        5 => Refusal::NoSpace,
        6 => Refusal::Damaged,
        7 => Refusal::NoSlot,
        8 => Refusal::NotOwner,
        9 => Refusal::InUse,
        10 => Refusal::Busy,
        11 => Refusal::NoSnapshot,
        12 => Refusal::SnapshotRefused,
        _ => return Err(Flaw::Fields("it is refused for no known reason")),
    })
}
