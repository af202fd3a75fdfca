//! Bringing a component up to date while the disk is in use.
//!
//! From the moment it is attached every change goes to it too, those in flight included, and acknowledgements wait for
//! it (invariant 8). Then the regions that it may lack are copied, each under its range lock: those that were changed
//! after its watermark on the source or on itself (invariant 9). When the last is stable, the record is asked to count it
//! as active. If it fails on the way, nothing has happened: its own watermark stands where it stood.

use super::state::At;
use super::work::Work;
use super::{Asked, Event, Failure, LeftBecause, Lost, Owner, Phase, Reply};
use crate::lanes::{Hold, Range};
use crate::limits;
use crate::mutant::Mutant;
use crate::roster::Standing;
use base::request::{Buffers, Piece, Pieces};
use base::units::{BLOCK_SIZE, BLOCKS_PER_REGION, REGIONS_PER_EXTENT};
use base::{Instant, WriteId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use wire::{Answer, EntryKind, PartVersions, Request, Versions};

/// What one of the two said of the parts from `from` on.
#[derive(Debug)]
struct Listing {
    parts: VecDeque<PartVersions>,
    next: Option<u32>,
}

/// A run of regions to copy.
#[derive(Debug, Clone, Copy)]
struct Run {
    range: Range,
    /// The greatest version among them on the source.
    id: WriteId,
}

/// A resync under way.
#[derive(Debug)]
pub(crate) struct Resync {
    attempt: u32,
    since: WriteId,
    pub(crate) began: Instant,
    /// The member that is asked what was changed.
    pub(crate) source: u8,
    of_source: Option<Listing>,
    of_target: Option<Listing>,
    is_listing: bool,
    /// Where the next listing begins; `None` when all was listed.
    next: Option<u32>,
    runs: VecDeque<Run>,
    copies: u32,
    pub(crate) copied_bytes: u64,
}

impl Resync {
    /// Bytes copied, and bytes that are known to be left.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let left: u64 = self.runs.iter().map(|run| u64::from(run.range.count) * BLOCK_SIZE).sum();
        (self.copied_bytes, left)
    }
}

impl Owner {
    /// A component that does not count serves this owner: from now on it takes part, and gets what it lacks.
    pub(crate) fn begin_resync(&mut self, at: At, watermark: WriteId) {
        let is_stale = self.member(at).standing == Standing::Stale;
        let since = if is_stale { WriteId::default() } else { watermark };
        self.attempts += 1;
        let source = self.places[at.place as usize].active().find(|(_, one)| one.is_open());
        let Some((source, _)) = source else {
            let now = self.now;
            return self.member_mut(at).down(now, now + limits::RETRY);
        };
        let resync = Resync {
            attempt: self.attempts,
            since,
            began: self.now,
            source,
            of_source: None,
            of_target: None,
            is_listing: false,
            next: Some(0),
            runs: VecDeque::new(),
            copies: 0,
            copied_bytes: 0,
        };
        let component = self.member(at).component;
        self.member_mut(at).resync = Some(resync);
        let is_rebuild = since == WriteId::default();
        self.out.push(super::Output::Event(Event::ResyncBegan { component, is_rebuild }));
        if !self.is_mutant(Mutant::ResyncMissesInFlight) {
            self.send_in_flight(at, &[]);
        }
        self.places[at.place as usize].settle_at = Some(self.now);
    }

    /// A resync is over before its end: it is as if it had never begun.
    pub(crate) fn drop_resync(&mut self, at: At, why: LeftBecause) {
        let member = self.member_mut(at);
        if member.resync.take().is_none() {
            return;
        }
        member.trouble = Some(why);
        member.wanted = None;
        let component = member.component;
        self.out.push(super::Output::Event(Event::ResyncFailed { component, why }));
        self.excuse(at);
    }

    /// A resync cannot go on now: it starts over in a while.
    pub(crate) fn abort_resync(&mut self, at: At, why: LeftBecause) {
        let now = self.now;
        if self.member(at).resync.is_some() && !self.member(at).is_joining() {
            self.member_mut(at).down(now, now + limits::RESYNC_RETRY);
            self.drop_resync(at, why);
        }
    }

    /// Whether something waits for [`super::Input::Pace`].
    pub fn wants_pace(&self) -> bool {
        let mut members = self.places.iter().flat_map(|place| &place.members);
        members.any(|member| member.resync.as_ref().is_some_and(|resync| !resync.runs.is_empty()))
    }

    /// More may be copied. What was not used is not saved up.
    pub(crate) fn paced(&mut self, bytes: u64) {
        self.allowance = self.allowance.min(0).saturating_add(bytes as i64);
    }

    /// Lists, copies, and at the end asks that the component counts.
    pub(crate) fn advance_resyncs(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        for at in self.all() {
            let member = self.member(at);
            if member.is_active() || member.wanted.is_some() || !member.is_open() {
                continue;
            }
            let Some(resync) = &member.resync else { continue };
            let is_empty = resync.runs.is_empty();
            match (is_empty, resync.next, resync.is_listing) {
                (false, _, _) => self.begin_copies(at),
                (true, Some(from), false) => self.begin_listing(at, from),
                (true, None, false) if resync.copies == 0 => {
                    self.member_mut(at).wanted = Some((Standing::Active, LeftBecause::Directory));
                }
                (true, _, _) => {}
            }
        }
    }

    fn begin_listing(&mut self, at: At, from_part: u32) {
        let needs_all = self.is_mutant(Mutant::DeltaByDifference) || self.is_mutant(Mutant::DeltaByNewer);
        let resync = self.member_mut(at).resync.as_mut().expect("it is being resynced");
        resync.is_listing = true;
        let (attempt, source) = (resync.attempt, resync.source);
        let since = if needs_all { WriteId::default() } else { resync.since };
        let epoch = self.epoch;
        for (member, of_target) in [(source, false), (at.member, true)] {
            let one = self.member(At { place: at.place, member });
            let (node, component) = (one.node, one.component);
            let asked = Asked::Changed { at, attempt, of_target };
            self.send(node, asked, Request::Changed { component, epoch, since, from_part });
        }
    }

    /// The source or the target told what was changed.
    pub(crate) fn listed(&mut self, at: At, attempt: u32, of_target: bool, answer: Result<Answer, Lost>) {
        let resync = self.member_mut(at).resync.as_mut();
        let Some(resync) = resync.filter(|resync| resync.attempt == attempt) else { return };
        match answer {
            Ok(Answer::Changed { parts, next }) => {
                let listing = Some(Listing { parts: parts.into(), next });
                match of_target {
                    true => resync.of_target = listing,
                    false => resync.of_source = listing,
                }
                if resync.of_target.is_some() && resync.of_source.is_some() {
                    self.merge(at);
                }
            }
            Err(Lost) => self.abort_resync(at, LeftBecause::Unreachable),
            Ok(Answer::Refused(refusal)) => self.abort_resync(at, LeftBecause::Refused(refusal)),
            Ok(other) => unreachable!("a listing is not answered by {other:?}"),
        }
    }

    /// Both have told: the runs to copy, up to where both have told all.
    fn merge(&mut self, at: At) {
        let mutants = (
            self.is_mutant(Mutant::DeltaBySource),
            self.is_mutant(Mutant::DeltaByDifference),
            self.is_mutant(Mutant::DeltaByNewer),
        );
        let resync = self.member_mut(at).resync.as_mut().expect("it is being resynced");
        let mut source = resync.of_source.take().expect("both have told");
        let mut target = resync.of_target.take().expect("both have told");
        let since = resync.since;
        resync.is_listing = false;
        resync.next = [source.next, target.next].into_iter().flatten().min();
        let end = resync.next.unwrap_or(u32::MAX);
        // The GiB whose freeing the target is told of.
        let mut noted: Option<(u32, WriteId)> = None;
        let is_needed = |of_source: WriteId, of_target: WriteId| match mutants {
            (true, _, _) => of_source > since,
            (_, true, _) => of_source != of_target,
            (_, _, true) => of_source > of_target,
            (false, false, false) => of_source.max(of_target) > since,
        };
        loop {
            let part = [source.parts.front(), target.parts.front()].into_iter().flatten().map(|one| one.part);
            let Some(part) = part.min().filter(|part| *part < end) else { break };
            let take = |listing: &mut Listing| match listing.parts.front() {
                Some(front) if front.part == part => listing.parts.pop_front().map(|one| one.versions),
                Some(_) | None => None,
            };
            let (of_source, of_target) = (take(&mut source), take(&mut target));
            let is_hole = matches!(of_source, None | Some(Versions::Hole(_)))
                && matches!(of_target, None | Some(Versions::Hole(_)));
            // Where both have nothing, nothing differs. A source that names no versions has none that count, but may
            // hold data; so only what both call a hole is passed over.
            let is_named = of_source.is_some() && of_target.is_some();
            // Asked for all it ever got, the target named nothing: it has nothing.
            let is_bare = since == WriteId::default() && of_target.is_none();
            if is_hole && (is_named || is_bare) {
                // No block differs. But the target may be what another is brought up to date from later, one that missed
                // the freeing and holds the data still.
                let id = hole_of(of_source.as_ref());
                let note = (part / limits::HOLE_PARTS, id);
                if id > hole_of(of_target.as_ref()) && noted != Some(note) {
                    noted = Some(note);
                    resync.runs.push_back(Run { range: Range { part, block: 0, count: 0 }, id });
                }
                continue;
            }
            push_runs(&mut resync.runs, part, of_source.as_ref(), of_target.as_ref(), is_needed);
        }
        self.begin_copies(at);
    }

    fn begin_copies(&mut self, at: At) {
        loop {
            if self.allowance <= 0 {
                return;
            }
            let Some(resync) = self.member_mut(at).resync.as_mut() else { return };
            if resync.copies as usize >= limits::COPIES_MAX {
                return;
            }
            let Some(run) = resync.runs.pop_front() else { return };
            resync.copies += 1;
            let attempt = Some(resync.attempt);
            self.allowance -= (u64::from(run.range.count) * BLOCK_SIZE) as i64;
            self.copy(at, run.range, run.id, attempt);
        }
    }

    /// Copies a range to a component, under its lock.
    pub(crate) fn copy(&mut self, target: At, range: Range, id: WriteId, attempt: Option<u32>) {
        let work =
            Work::Copy { target, range, id, attempt, tried: 0, outstanding: 0, bytes: 0, has_failed: false };
        let key = self.works.insert(work) as u32;
        let is_locked = self.is_mutant(Mutant::CopyWithoutLock)
            || self.places[target.place as usize].lanes.lock(range, Hold::Exclusive, key);
        if is_locked {
            self.begin_copy(key);
        }
    }

    /// The range is locked: what stands there is read from an active component.
    pub(crate) fn begin_copy(&mut self, key: u32) {
        let Work::Copy { target, range, tried, .. } = self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        if range.count == 0 {
            return self.note_hole(key);
        }
        let place = &self.places[target.place as usize];
        let source = place
            .active()
            .find(|(index, one)| one.is_open() && *index != target.member && tried >> index & 1 == 0);
        let Some((member, one)) = source else { return self.end_copy(key, false) };
        let (node, component) = (one.node, one.component);
        let Range { part, block, count } = range;
        let at = At { place: target.place, member };
        let request = Request::Read { component, epoch: self.epoch, part, block, count };
        self.send(node, Asked::CopyRead { work: key, at }, request);
    }

    /// Tells a component of a freeing that changes none of its blocks.
    fn note_hole(&mut self, key: u32) {
        let Work::Copy { target, range, id, outstanding, .. } = &mut self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        *outstanding = 1;
        let (target, part, id) = (*target, range.part, *id);
        let (node, component) = (self.member(target).node, self.member(target).component);
        let (epoch, watermark, kind) = (self.epoch, WriteId::default(), EntryKind::Copy);
        let request = Request::Trim { component, epoch, id, watermark, kind, part, block: 0, count: 0 };
        self.send(node, Asked::CopyWrite { work: key }, request);
    }

    pub(crate) fn copy_read(&mut self, key: u32, at: At, answer: Result<Answer, Lost>) {
        match answer {
            Ok(Answer::Data { pieces, checksums }) if super::read::verify(&pieces, &checksums) => {
                self.put(key, pieces, &checksums);
            }
            Ok(Answer::Data { .. } | Answer::Refused(_)) | Err(Lost) => {
                let Work::Copy { tried, .. } = &mut self.works[key as usize] else {
                    unreachable!("only copies copy")
                };
                *tried |= 1 << at.member;
                self.begin_copy(key);
            }
            Ok(other) => unreachable!("a read is not answered by {other:?}"),
        }
    }

    /// Puts what was read where it is missing, whatever stands there.
    fn put(&mut self, key: u32, pieces: Pieces, checksums: &[u32]) {
        let Work::Copy { target, range, id, .. } = self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        let (node, component) = (self.member(target).node, self.member(target).component);
        if !self.member(target).is_open() {
            return self.end_copy(key, false);
        }
        let (epoch, watermark, kind, part) = (self.epoch, WriteId::default(), EntryKind::Copy, range.part);
        let mut block = range.block;
        let mut sums = checksums;
        let mut requests: SmallVec<[Request; 2]> = SmallVec::new();
        let mut copied = 0;
        for run in runs_of(pieces) {
            match run {
                Ok(data) => {
                    let len: usize = data.iter().map(|buffer| buffer.len()).sum();
                    let count = (len as u64 / BLOCK_SIZE) as u16;
                    let (mine, rest) = sums.split_at(count as usize);
                    sums = rest;
                    copied += len as u64;
                    let checksums = SmallVec::from_slice(mine);
                    requests.push(Request::Write {
                        component,
                        epoch,
                        id,
                        watermark,
                        kind,
                        part,
                        block,
                        data,
                        checksums,
                    });
                    block += count;
                }
                Err(count) => {
                    requests.push(Request::Trim {
                        component,
                        epoch,
                        id,
                        watermark,
                        kind,
                        part,
                        block,
                        count,
                    });
                    block += count;
                }
            }
        }
        let Work::Copy { outstanding, bytes, .. } = &mut self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        *outstanding = requests.len() as u32;
        *bytes = copied;
        for request in requests {
            self.send(node, Asked::CopyWrite { work: key }, request);
        }
    }

    pub(crate) fn copy_written(&mut self, key: u32, answer: Result<Answer, Lost>) {
        let Work::Copy { target, outstanding, has_failed, attempt, .. } = &mut self.works[key as usize]
        else {
            unreachable!("only copies copy")
        };
        let (target, attempt) = (*target, *attempt);
        *outstanding -= 1;
        let is_last = *outstanding == 0;
        let refusal = match answer {
            Ok(Answer::Done { .. }) => None,
            Ok(Answer::Refused(refusal)) => Some(refusal),
            Err(Lost) => {
                *has_failed = true;
                None
            }
            Ok(other) => unreachable!("a write is not answered by {other:?}"),
        };
        *has_failed |= refusal.is_some();
        let has_failed = *has_failed;
        let is_current = self.member(target).resync.as_ref().is_some_and(|one| Some(one.attempt) == attempt);
        if let Some(refusal) = refusal.filter(|_| is_current) {
            self.abort_resync(target, LeftBecause::Refused(refusal));
        }
        if is_last {
            self.end_copy(key, !has_failed);
        }
    }

    fn end_copy(&mut self, key: u32, is_done: bool) {
        let Work::Copy { target, range, attempt, bytes, .. } = self.works[key as usize] else {
            unreachable!("only copies copy")
        };
        self.end_work(key, if is_done { Ok(Reply::Changed) } else { Err(Failure::Damaged) });
        let component = self.member(target).component;
        if attempt.is_none() && is_done {
            self.repaired_blocks += u64::from(range.count);
            self.out.push(super::Output::Event(Event::Repaired { component, blocks: range.count }));
        }
        if is_done && attempt.is_some() {
            self.copied_bytes += bytes;
        }
        let resync = self.member_mut(target).resync.as_mut();
        if let Some(resync) = resync.filter(|resync| attempt == Some(resync.attempt)) {
            resync.copies -= 1;
            resync.copied_bytes += bytes;
            if !is_done {
                self.abort_resync(target, LeftBecause::Unreachable);
            }
        }
    }
}

/// The greatest id of a freeing, where nothing is allocated.
fn hole_of(versions: Option<&Versions>) -> WriteId {
    match versions {
        Some(Versions::Hole(id)) => *id,
        Some(Versions::Regions(_)) | None => WriteId::default(),
    }
}

/// Neighbouring regions of a part that are needed become one run each.
fn push_runs(
    runs: &mut VecDeque<Run>,
    part: u32,
    of_source: Option<&Versions>,
    of_target: Option<&Versions>,
    is_needed: impl Fn(WriteId, WriteId) -> bool,
) {
    let version = |versions: Option<&Versions>, region: usize| match versions {
        None => WriteId::default(),
        Some(Versions::Hole(id)) => *id,
        Some(Versions::Regions(regions)) => regions[region],
    };
    let mut open: Option<Run> = None;
    for region in 0..REGIONS_PER_EXTENT {
        let (source, target) = (version(of_source, region), version(of_target, region));
        if !is_needed(source, target) {
            runs.extend(open.take());
            continue;
        }
        let block = (region * BLOCKS_PER_REGION) as u16;
        let run = open.get_or_insert(Run { range: Range { part, block, count: 0 }, id: source });
        run.range.count += BLOCKS_PER_REGION as u16;
        run.id = run.id.max(source);
    }
    runs.extend(open);
}

/// Runs of bytes, or of blocks without any.
fn runs_of(pieces: Pieces) -> Vec<Result<Buffers, u16>> {
    let mut runs: Vec<Result<Buffers, u16>> = Vec::new();
    for piece in pieces {
        match (runs.last_mut(), piece) {
            (Some(Ok(data)), Piece::Bytes(buffer)) => data.push(buffer),
            (Some(Err(count)), Piece::Hole(len)) => *count += (u64::from(len) / BLOCK_SIZE) as u16,
            (_, Piece::Bytes(buffer)) => runs.push(Ok(smallvec::smallvec![buffer])),
            (_, Piece::Hole(len)) => runs.push(Err((u64::from(len) / BLOCK_SIZE) as u16)),
        }
    }
    runs
}
