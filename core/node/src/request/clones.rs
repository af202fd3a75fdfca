//! Requests of clones (docs/design/0050): where the regions of their range stand is learned first. What is the origin's is read there, and a
//! change that covers such a region in part writes all of it.
//!
//! The origin is read by requests of this node for that disk, as a guest's would be: forwarded to its owner, and held while it has none.

use super::Requester;
use super::state::{Lesson, Lessons, Stage, Then};
use crate::interface::Output;
use crate::limits::{CLONE_TRIM_WINDOW, ORIGIN_RETRY};
use crate::node::Node;
use crate::origin::{REGION_SIZE, Region, State, backed_of, bytes_of, regions_of};
use crate::pieces;
use crate::range::{Aim, Stretch, covered, edges_of};
use crate::zeroes::Zeroes;
use base::request::{Outcome, Piece, Pieces, Reply, Request, RequestError, StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use replication::{Origin, Rule, owner};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::ops::Range;

/// Where a range of a clone is read.
enum Source {
    Own(Stretch),
    Origin(Range<u64>),
}

impl Node {
    fn origin_of(&self, disk: u32) -> Origin {
        self.disks[disk].spec.origin.expect("it is a clone")
    }

    /// Whether a request was begun with an owner that is gone: what it has read of an origin since may not count any more.
    pub(super) fn is_of_former_owner(&self, key: u32) -> bool {
        let state = &self.requests[key as usize];
        self.disks[state.disk].spec.origin.is_some() && state.reign != self.owner_number(state.disk)
    }

    fn region_state(&self, disk: u32, snapshot: u32, region: Region) -> State {
        self.disks[disk].regions.state(snapshot, region, self.origin_of(disk).size)
    }

    /// Whether a request may start: the origin is open here, and it is known where the regions stand that it reads, or covers in part. Else it
    /// starts once that is so.
    pub(super) fn is_prepared(&mut self, key: u32, out: &mut Vec<Output>) -> bool {
        let (disk, reign) = (self.requests[key as usize].disk, self.requests[key as usize].reign);
        self.disks[disk].regions.reign(reign);
        if self.disks.key_of(self.origin_of(disk).disk).is_none() {
            let until = self.now + ORIGIN_RETRY;
            self.requests[key as usize].stage = Stage::Waiting;
            self.delay(key, until);
            return false;
        }
        let state = &self.requests[key as usize];
        let all = |offset: u64, len: u64| [offset..offset + len, 0..0];
        let (snapshot, ranges) = match &state.request {
            Request::Read { offset, len } | Request::CopyUp { offset, len } => {
                (0, all(*offset, u64::from(*len)))
            }
            Request::View { snapshot, offset, len } => (*snapshot, all(*offset, u64::from(*len))),
            Request::Flush | Request::Status { .. } => return true,
            Request::Write { .. } | Request::Trim { .. } | Request::WriteZeroes { .. } => {
                let bytes = covered(&state.request);
                let len = bytes.end - bytes.start;
                let both_ends = [bytes.start..bytes.start + 1, bytes.end.saturating_sub(1)..bytes.end];
                (0, if len > CLONE_TRIM_WINDOW { both_ends } else { all(bytes.start, len) })
            }
        };
        let ranges = ranges.into_iter().filter(|bytes| !bytes.is_empty());
        let mut ranges = ranges.collect::<SmallVec<[Range<u64>; 2]>>().into_iter();
        ranges.all(|bytes| self.learn(key, snapshot, bytes, Then::Start, out))
    }

    /// Whether it is known where the regions stand that a change may cover in part.
    pub(super) fn knows_edges(&self, key: u32) -> bool {
        let state = &self.requests[key as usize];
        let is_known =
            |region| !matches!(self.region_state(state.disk, 0, region), State::Unasked | State::Unread);
        if let &Request::CopyUp { offset, len } = &state.request {
            return regions_of(&(offset..offset + u64::from(len))).all(is_known);
        }
        let bytes = covered(&state.request);
        bytes.is_empty() || [bytes.start, bytes.end - 1].iter().all(|at| is_known(at / REGION_SIZE))
    }

    /// What a change of a clone covers in part: blocks; the whole of regions that are the origin's; and of empty ones what comes before.
    pub(super) fn edges_of_clone(&self, key: u32) -> SmallVec<[Range<u64>; 2]> {
        let state = &self.requests[key as usize];
        let bytes = covered(&state.request);
        let mut edges: SmallVec<[Range<u64>; 2]> = SmallVec::new();
        let disk_end = self.disks[state.disk].spec.size.next_multiple_of(BLOCK_SIZE);
        if let &Request::CopyUp { offset, len } = &state.request {
            let is_inherited =
                |region: &Region| self.region_state(state.disk, 0, *region) == State::Inherited;
            let inherited = regions_of(&(offset..offset + u64::from(len))).filter(is_inherited).map(bytes_of);
            return inherited.map(|region| region.start..region.end.min(disk_end)).collect();
        }
        if bytes.is_empty() {
            return edges;
        }
        let blocks = edges_of(&state.request);
        let copies_up = self.fabric.settings.rules.hold(Rule::CopyUpWhole);
        for at in [bytes.start, bytes.end - 1] {
            let region = bytes_of(at / REGION_SIZE);
            let region = region.start..region.end.min(disk_end);
            let of_block = || blocks.iter().find(|block| block.contains(&at)).cloned();
            let edge = match self.region_state(state.disk, 0, at / REGION_SIZE) {
                _ if !copies_up => of_block(),
                State::Empty if is_trim(&state.request) => None,
                State::Empty => {
                    let end = bytes.end.next_multiple_of(BLOCK_SIZE).min(region.end);
                    let is_cut = bytes.start > region.start
                        || !bytes.end.is_multiple_of(BLOCK_SIZE) && bytes.end < end;
                    is_cut.then_some(region.start..end)
                }
                State::Inherited => {
                    let is_whole = bytes.start <= region.start && region.end <= bytes.end;
                    (!is_whole).then_some(region)
                }
                State::Own | State::Unasked | State::Unread => of_block(),
            };
            edges.extend(edge.filter(|edge| edges.last() != Some(edge)));
        }
        edges
    }

    /// Reads what a change covers in part where the origin has it, or nobody has. False if the clone itself has it.
    pub(super) fn read_edge_of_clone(
        &mut self,
        (key, piece): (u32, u32),
        edge: &Range<u64>,
        out: &mut Vec<Output>,
    ) -> bool {
        let disk = self.requests[key as usize].disk;
        match self.region_state(disk, 0, edge.start / REGION_SIZE) {
            State::Inherited => self.read_origin((key, piece), edge.clone(), out),
            State::Empty => {
                let len = (edge.end - edge.start) as u32;
                self.requests[key as usize].answers[piece as usize].push(Piece::Hole(len));
                self.origin_answered(key, piece, Ok(Reply::Done), out);
            }
            State::Own | State::Unread | State::Unasked => return false,
        }
        true
    }

    /// Learns where the regions of a range stand. True if all is known.
    fn learn(
        &mut self,
        key: u32,
        snapshot: u32,
        bytes: Range<u64>,
        then: Then,
        out: &mut Vec<Output>,
    ) -> bool {
        let disk = self.requests[key as usize].disk;
        let size = self.origin_of(disk).size;
        let is = |region: &Region, state| self.region_state(disk, snapshot, *region) == state;
        let unread = regions_of(&bytes).filter(|region| is(region, State::Unread));
        let mut lessons: Vec<Lesson> = unread.map(|region| Lesson::Own { snapshot, region }).collect();
        let unasked = regions_of(&bytes).find(|region| is(region, State::Unasked));
        if let (true, Some(region)) = (lessons.is_empty(), unasked) {
            let start = bytes_of(region).start / EXTENT_SIZE * EXTENT_SIZE;
            let end = bytes.end.next_multiple_of(EXTENT_SIZE).min(size);
            lessons.push(Lesson::Backed { bytes: start..end, told: Vec::new() });
        }
        if lessons.is_empty() {
            return true;
        }
        self.ask_lessons(key, lessons, then, out);
        false
    }

    fn ask_lessons(&mut self, key: u32, lessons: Vec<Lesson>, then: Then, out: &mut Vec<Output>) {
        let disk = self.requests[key as usize].disk;
        let origin = self.origin_of(disk);
        let stamp = self.disks[disk].regions.begin_lesson();
        let asked = lessons.clone();
        let state = &mut self.requests[key as usize];
        state.outstanding = lessons.len() as u32;
        state.answers.clear();
        state.answers.resize(lessons.len(), Pieces::new());
        state.stage = Stage::Learning(Lessons { lessons, stamp, then });
        for (piece, lesson) in (0u32..).zip(asked) {
            match lesson {
                Lesson::Backed { bytes, .. } => {
                    let (of, len) = (StatusOf::Snapshot(origin.snapshot), bytes.end - bytes.start);
                    self.ask_origin((key, piece), Request::Status { of, offset: bytes.start, len }, out);
                }
                Lesson::Own { snapshot, region } => {
                    let spans = self.stretches(disk, bytes_of(region).start, BLOCK_SIZE, Aim::Read);
                    self.read_from_owner((key, piece), snapshot, spans[0]);
                }
            }
        }
    }

    /// All that a request asked about its regions is answered.
    pub(super) fn learned(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &mut self.requests[key as usize];
        let Stage::Learning(Lessons { lessons, stamp, then }) =
            std::mem::replace(&mut state.stage, Stage::Waiting)
        else {
            unreachable!("it learns")
        };
        let (disk, answers) = (state.disk, std::mem::take(&mut state.answers));
        let is_told = state.error.is_none() && !state.is_returned;
        let is_former = self.is_of_former_owner(key);
        for (lesson, answer) in lessons.into_iter().zip(answers).filter(|_| is_told) {
            let regions = &mut self.disks[disk].regions;
            match lesson {
                Lesson::Backed { bytes, told } => note_backed(&bytes, &told, |chunk, has| {
                    regions.learn_backed(chunk, has);
                }),
                Lesson::Own { snapshot, region } if snapshot > 0 || !is_former => {
                    let is_own = answer.iter().any(|piece| matches!(piece, Piece::Bytes(_)));
                    regions.learn_own((snapshot, region), is_own, stamp);
                }
                Lesson::Own { .. } => {}
            }
        }
        self.disks[disk].regions.end_lesson();
        let state = &mut self.requests[key as usize];
        if state.is_abandoned {
            state.error = Some(RequestError::Stopping);
        }
        match then {
            _ if state.error.is_some() => self.end_request(key, out),
            _ if state.is_returned || is_former => self.begin_anew(key, out),
            Then::Start => self.start_request(key, out),
            Then::Change { next, end } => {
                self.requests[key as usize].stage = Stage::Changing { next, end };
                self.change_on(key, out);
            }
        }
    }

    /// Asks the origin.
    fn ask_origin(&mut self, (request, piece): (u32, u32), of_origin: Request, out: &mut Vec<Output>) {
        let disk = self.requests[request as usize].disk;
        let Some(origin) = self.disks.key_of(self.origin_of(disk).disk) else {
            return self.origin_answered(request, piece, Err(RequestError::Stopping), out);
        };
        if self.disks[origin].closing.is_some() {
            return self.origin_answered(request, piece, Err(RequestError::Stopping), out);
        }
        let tag = self.next_tag();
        self.begin_request(Requester::Clone { request, piece }, tag, origin, of_origin, out);
    }

    /// Reads a piece of the origin; what lies beyond its end are zeroes.
    pub(super) fn read_origin(&mut self, (key, piece): (u32, u32), bytes: Range<u64>, out: &mut Vec<Output>) {
        let Origin { snapshot, size, .. } = self.origin_of(self.requests[key as usize].disk);
        let len = bytes.end.min(size).saturating_sub(bytes.start) as u32;
        let beyond = (bytes.end - bytes.start) as u32 - len;
        if beyond > 0 {
            self.requests[key as usize].answers[piece as usize].push(Piece::Hole(beyond));
        }
        if len == 0 {
            return self.origin_answered(key, piece, Ok(Reply::Done), out);
        }
        self.ask_origin((key, piece), Request::View { snapshot, offset: bytes.start, len }, out);
    }

    /// The origin has answered a piece of a clone's request.
    pub(super) fn origin_answered(&mut self, key: u32, piece: u32, outcome: Outcome, out: &mut Vec<Output>) {
        let state = &mut self.requests[key as usize];
        state.outstanding -= 1;
        match outcome {
            Ok(Reply::Data(data)) => {
                let beyond = std::mem::replace(&mut state.answers[piece as usize], data);
                pieces::append(&mut state.answers[piece as usize], beyond);
            }
            Ok(Reply::Status(runs)) => match &mut state.stage {
                Stage::Learning(Lessons { lessons, .. }) => {
                    if let Some(Lesson::Backed { told, .. }) = lessons.get_mut(piece as usize) {
                        *told = runs;
                    }
                }
                Stage::Told(own) => *own = either(own, &runs),
                _ => {}
            },
            Ok(Reply::Done) => {}
            Err(error) => state.error = Some(error),
        }
        self.piece_ended(key, out);
    }

    /// Reads a range, each part where it stands.
    pub(super) fn read_clone(
        &mut self,
        (key, snapshot): (u32, u32),
        bytes: Range<u64>,
        out: &mut Vec<Output>,
    ) {
        let sources = self.sources(self.requests[key as usize].disk, snapshot, bytes);
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Reading;
        state.outstanding = sources.len() as u32;
        state.answers.clear();
        state.answers.resize(sources.len(), Pieces::new());
        for (piece, source) in (0u32..).zip(sources) {
            match source {
                Source::Own(stretch) => self.read_from_owner((key, piece), snapshot, stretch),
                Source::Origin(bytes) => self.read_origin((key, piece), bytes, out),
            }
        }
    }

    fn sources(&self, disk: u32, snapshot: u32, bytes: Range<u64>) -> Vec<Source> {
        let is_inherited = |region| match self.region_state(disk, snapshot, region) {
            State::Inherited => true,
            State::Own | State::Empty => false,
            State::Unasked | State::Unread => unreachable!("it was learned before"),
        };
        let mut sources = Vec::new();
        let mut at = bytes.start;
        while at < bytes.end {
            let is_of_origin = is_inherited(at / REGION_SIZE);
            let mut end = bytes_of(at / REGION_SIZE).end;
            while end < bytes.end && is_inherited(end / REGION_SIZE) == is_of_origin {
                end += REGION_SIZE;
            }
            let run = at..end.min(bytes.end);
            at = run.end;
            match is_of_origin {
                true => sources.push(Source::Origin(run)),
                false => {
                    let own = self.stretches(disk, run.start, run.end - run.start, Aim::Read);
                    sources.extend(own.into_iter().map(Source::Own));
                }
            }
        }
        sources
    }

    /// What becomes of blocks of zeroes that a request writes to a clone. The first block of a region stays data; and a region becomes the
    /// clone's own by one change, or by none: else a part of what was written could be there without the rest.
    pub(super) fn zeroes_of_clone(&self, key: u32, bytes: Range<u64>) -> Zeroes {
        let disk = self.requests[key as usize].disk;
        let is_own = |region| self.region_state(disk, 0, region) == State::Own;
        match self.zeroes_of(key) {
            Zeroes::Trimmed if !self.fabric.settings.rules.hold(Rule::KeepFirstBlocks) => Zeroes::Trimmed,
            Zeroes::Trimmed if regions_of(&bytes).all(is_own) => Zeroes::TrimmedInside,
            Zeroes::Trimmed => Zeroes::Kept,
            zeroes => zeroes,
        }
    }

    /// The next window of a trim of a clone, or of zeroes: first blocks of regions are written, all else is trimmed. What is empty stays so.
    pub(super) fn trim_clone_on(&mut self, key: u32, bytes: Range<u64>, end: u64, out: &mut Vec<Output>) {
        let bytes = bytes.start..bytes.end.min(bytes.start + CLONE_TRIM_WINDOW);
        if !self.learn(key, 0, bytes.clone(), Then::Change { next: bytes.start, end }, out) {
            return;
        }
        let disk = self.requests[key as usize].disk;
        let keeps = self.fabric.settings.rules.hold(Rule::KeepFirstBlocks);
        let is_there = |region: &Region| self.region_state(disk, 0, *region) != State::Empty;
        let regions: Vec<Region> = regions_of(&bytes).filter(is_there).collect();
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Changing { next: bytes.end, end };
        state.outstanding = 1; // As in `write_edges`.
        for region in regions {
            let region = bytes_of(region);
            let (mut from, to) = (region.start.max(bytes.start), region.end.min(bytes.end));
            if keeps && from == region.start {
                let zeroes = self.zero_buffers(BLOCK_SIZE);
                self.write_kept(key, from, &zeroes);
                from += BLOCK_SIZE;
            }
            if from < to {
                self.trim_range(key, from, to - from);
            }
        }
        self.all_handed_in(key, out);
    }

    /// Blocks of zeroes that stay data.
    fn write_kept(&mut self, key: u32, offset: u64, data: &base::request::Buffers) {
        let disk = self.requests[key as usize].disk;
        for range in self.still_to_do(key, offset..offset + pieces::len(data)) {
            for span in self.stretches(disk, range.start, range.end - range.start, Aim::Change) {
                let checksums = crate::range::checksums(data);
                let payload = owner::Payload::Write { data: data.clone(), checksums };
                self.change_by_owner(key, span, payload);
            }
        }
    }

    /// A change has ended, or its owner has: what is known of its regions follows from it.
    pub(super) fn settle_regions(&mut self, key: u32) {
        let state = &self.requests[key as usize];
        let is_change = matches!(state.stage, Stage::Changing { .. } | Stage::ReadingEdges | Stage::HasEdges);
        if self.disks[state.disk].spec.origin.is_none() || !is_change {
            return;
        }
        let (disk, has_failed, is_trim) = (state.disk, state.error.is_some(), is_trim(&state.request));
        let edges = state.edges.clone();
        let mut bytes = covered(&state.request);
        if let Stage::Changing { next, end } = state.stage
            && next < end
        {
            bytes.end = bytes.end.min(next); // What it had not come to is as it was.
        }
        let of_edges = edges.iter().map(|edge| edge.start / REGION_SIZE);
        let touched = if bytes.is_empty() { 0..0 } else { regions_of(&bytes) };
        let regions: BTreeSet<Region> = touched.chain(of_edges).collect();
        for region in regions {
            let is_own = match self.region_state(disk, 0, region) {
                _ if has_failed => None,
                State::Empty if is_trim => Some(false),
                State::Empty | State::Own | State::Inherited => Some(true),
                State::Unasked | State::Unread => None,
            };
            self.disks[disk].regions.changed(region, is_own);
        }
    }

    /// Bytes before a question about a clone that are asked about, too: whether a region has changed hands, its first block tells.
    pub(super) fn lead_of_status(&self, key: u32) -> u64 {
        let state = &self.requests[key as usize];
        match &state.request {
            Request::Status { of: StatusOf::Changes { .. }, offset, .. }
                if self.disks[state.disk].spec.origin.is_some() =>
            {
                offset % REGION_SIZE
            }
            _ => 0,
        }
    }

    /// A clone has told what is allocated, or was in a snapshot: where it has nothing, its origin may.
    pub(super) fn ask_origin_status(
        &mut self,
        key: u32,
        from: u64,
        runs: Vec<StatusRun>,
        out: &mut Vec<Output>,
    ) {
        let Origin { snapshot, size, .. } = self.origin_of(self.requests[key as usize].disk);
        let len: u64 = runs.iter().map(|run| run.len).sum();
        let end = (from + len).min(size);
        let is_all = runs.iter().all(|run| run.is_set);
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Told(runs);
        if is_all || from >= end {
            return self.end_request(key, out);
        }
        state.outstanding = 1;
        let of = StatusOf::Snapshot(snapshot);
        self.ask_origin((key, 0), Request::Status { of, offset: from, len: end - from }, out);
    }
}

/// What has changed of a clone, from `from` on, which begins a region: where its first block has, the region may have become the clone's own, and
/// all of it changed. What comes before `start` is left out.
pub(super) fn whole_regions(runs: &[StatusRun], (from, start): (u64, u64), widens: bool) -> Vec<StatusRun> {
    let mut told: Vec<StatusRun> = Vec::new();
    let mut at = from;
    let mut is_whole = false;
    for run in runs {
        let end = at + run.len;
        while at < end {
            if at.is_multiple_of(REGION_SIZE) {
                is_whole = run.is_set && widens;
            }
            let to = end.min((at / REGION_SIZE + 1) * REGION_SIZE);
            let len = to - at.max(start).min(to);
            if len > 0 {
                crate::runs::push_run(&mut told, len, run.is_set || is_whole);
            }
            at = to;
        }
    }
    told
}

/// Whether a change gives space back.
fn is_trim(request: &Request) -> bool {
    matches!(request, Request::Trim { .. } | Request::WriteZeroes { allocate: false, .. })
}

/// Calls `learn` with each MiB of which the answer about some bytes, which begin with one, tells at least the beginning.
fn note_backed(bytes: &Range<u64>, told: &[StatusRun], mut learn: impl FnMut(u64, u16)) {
    let mut at = bytes.start;
    let runs: Vec<(Range<u64>, bool)> = told
        .iter()
        .map(|run| {
            at += run.len;
            (at - run.len..at, run.is_set)
        })
        .collect();
    let end = at.max(bytes.start + 1).min(bytes.end);
    for chunk in bytes.start / EXTENT_SIZE..end.div_ceil(EXTENT_SIZE) {
        learn(chunk, backed_of(runs.iter().cloned(), chunk));
    }
}

/// What one of two answers tells to be set, as far as both reach; where the second ends at the end of the origin, the first alone counts.
fn either(own: &[StatusRun], origin: &[StatusRun]) -> Vec<StatusRun> {
    let mut runs = Vec::new();
    let (mut own, mut origin) = (own.iter().copied(), origin.iter().copied());
    let (mut one, mut other) = (own.next(), origin.next());
    while let (Some(a), Some(b)) = (&mut one, &mut other) {
        let len = a.len.min(b.len);
        crate::runs::push_run(&mut runs, len, a.is_set || b.is_set);
        (a.len, b.len) = (a.len - len, b.len - len);
        if a.len == 0 {
            one = own.next();
        }
        if other.is_some_and(|b| b.len == 0) {
            other = origin.next();
        }
    }
    runs
}
