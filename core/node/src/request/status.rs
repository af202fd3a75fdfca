//! Allocation of a disk, and what changed on it, as components report these to its owner.
//!
//! Stretches without space are answered as runs, however long they are. Where there is space, a request looks up the
//! blocks of a limited number of parts, so that a turn of the engine stays short. It is answered about these, and the
//! client asks on.

use super::clones::whole_regions;
use super::state::{Piece, Question, Questions, Stage};
use crate::holes::{Reign, Stamp};
use crate::interface::Output;
use crate::node::Node;
use crate::range::{Aim, Stretch, range_of};
use crate::runs::push_run;
use base::request::{Request, StatusOf, StatusRun};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use replication::{Rule, owner};
use smallvec::SmallVec;
use std::ops::Range;
use wire::limits::ALLOCATION_PARTS_MAX;

/// Most bytes of a disk in one answer: even of one component they are no more parts than one question takes, however
/// the range is aligned. NBD clients ask about less.
const WINDOW: u64 = (ALLOCATION_PARTS_MAX as u64 - 1) * EXTENT_SIZE;

impl Node {
    /// Answers a request from the owner's knowledge, or lets the owner ask: one question for each place.
    pub(super) fn ask_status(&mut self, key: u32, out: &mut Vec<Output>) {
        let (from, len) = range_of(&self.requests[key as usize].request);
        let disk = self.requests[key as usize].disk;
        let lead = self.lead_of_status(key);
        let (from, len) = (from - lead, len + lead);
        let Request::Status { of, .. } = self.requests[key as usize].request else {
            unreachable!("it asks for states of blocks")
        };
        let layout = &self.disks[disk].spec.layout;
        let is_live = of == StatusOf::Disk;
        if layout.code().is_some() && is_live || layout.boundary().is_some() {
            // Which blocks of rows are allocated now is not asked, nor while a disk moves: "allocated" is never wrong.
            let runs = vec![StatusRun { len, is_set: true }];
            self.requests[key as usize].stage = Stage::Told(runs);
            return self.end_request(key, out);
        }
        let ownership = &self.disks[disk].ownership;
        let reign = Reign { owner: ownership.owner_number, layout: ownership.spec_version };
        let is_ordinary = is_live && self.disks[disk].spec.origin.is_none();
        let known =
            ownership.holes.end_of(from, reign).map(|end| end.min(from + len)).filter(|_| is_ordinary);
        if let Some(next) = known.filter(|next| self.may_tell(disk, from..*next)) {
            let runs = vec![StatusRun { len: next - from, is_set: false }];
            self.requests[key as usize].stage = Stage::Told(runs);
            return self.end_request(key, out);
        }
        let (stamp, ahead) = ownership.holes.ask(reign);
        let ahead = if is_live { ahead } else { 0 };
        let (next, asked) = self.questions(disk, from, len, ahead);
        let state = &mut self.requests[key as usize];
        if asked.is_empty() {
            state.stage = Stage::Told(Vec::new());
            return self.end_request(key, out);
        }
        state.outstanding = asked.len() as u32;
        let inputs: SmallVec<[owner::Input; 1]> = (0u32..)
            .zip(&asked)
            .map(|(piece, one)| owner::Input::Status {
                token: Piece { request: key, piece }.into(),
                of,
                place: one.place as u16,
                part: one.part,
                count: one.count,
            })
            .collect();
        state.stage = Stage::Asking(Questions { from, next, asked, stamp });
        inputs.into_iter().for_each(|input| self.step_owner(disk, input));
    }

    /// Whether the owner may answer about a range without asking.
    fn may_tell(&self, disk: u32, range: Range<u64>) -> bool {
        let Some(owner) = self.owner(disk) else { return false };
        let mut places: SmallVec<[u16; 4]> = SmallVec::new();
        let layout = &self.disks[disk].spec.layout;
        layout.map_places(range.start, range.end - range.start, &mut |place, _| places.push(place as u16));
        owner.may_tell(places, &self.fabric.leases)
    }

    /// The questions about a range of `len` bytes, or of `ahead` bytes if these are more and no place has more parts among them
    /// than one question takes.
    fn questions(&self, disk: u32, from: u64, len: u64, ahead: u64) -> (u64, SmallVec<[Question; 1]>) {
        let spec = &self.disks[disk].spec;
        let mut len = len.min(WINDOW).max(ahead.min(spec.size - from));
        loop {
            let mut asked: SmallVec<[Question; 1]> = SmallVec::new();
            let mut most = 0;
            spec.layout.map_places(from, len, &mut |place, bytes| {
                let code = spec.layout.place_code(place);
                let parts = parts_of(&code.map_or(bytes.clone(), |code| code.bytes_of_members(&bytes)));
                most = most.max(parts.len());
                let (part, count) = (parts.start, parts.len() as u16);
                asked.push(Question { place, part, count, answer: Vec::new() });
            });
            if most <= ALLOCATION_PARTS_MAX {
                return (from + len, asked);
            }
            len = (len / 2).max(WINDOW);
        }
    }

    /// Notes the holes of an answer.
    fn note_holes(&mut self, disk: u32, stamp: Stamp, told: Range<u64>, alike: Option<bool>) {
        let state = &mut self.disks[disk];
        // A change that began before the question may still be on its way to the owner.
        let is_changing =
            state.changes.under_way().iter().any(|one| one.start < told.end && told.start < one.end);
        let holes = &mut state.ownership.holes;
        match alike {
            Some(false) if !is_changing => holes.learn(stamp, told),
            _ => holes.learn_of_data(),
        }
    }

    /// The runs of whole blocks that hold a range of a request's disk.
    fn blocks_of(&self, key: u32, from: u64, to: u64) -> SmallVec<[Stretch; 2]> {
        let (start, end) = (from / BLOCK_SIZE * BLOCK_SIZE, to.next_multiple_of(BLOCK_SIZE));
        self.stretches(self.requests[key as usize].disk, start, end - start, Aim::Read)
    }

    /// A component answered.
    pub(super) fn allocation_told(&mut self, key: u32, piece: u32, runs: Vec<StatusRun>) {
        if let Stage::Asking(questions) = &mut self.requests[key as usize].stage {
            questions.asked[piece as usize].answer = runs;
        }
    }

    /// All components have answered: joins their answers, as far as all reach.
    pub(super) fn status_told(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &mut self.requests[key as usize];
        let Stage::Asking(Questions { from, next, asked, stamp }) =
            std::mem::replace(&mut state.stage, Stage::Waiting)
        else {
            unreachable!("it asks what is allocated")
        };
        let (disk, (offset, len)) = (state.disk, range_of(&state.request));
        let len = offset + len - from;
        let Request::Status { of, .. } = state.request else { unreachable!("it asks for states of blocks") };
        let is_live = of == StatusOf::Disk;
        let layout = &self.disks[disk].spec.layout;
        let unsaid = asked.iter().filter_map(|one| {
            let (code, end) = (layout.place_code(one.place), one.answer_end());
            layout.locate(one.place, code.map_or(end, |code| code.row_start(end)))
        });
        let told = unsaid.fold(next, u64::min);
        let next = told.min(from + len);
        let mut runs = Vec::new();
        let alike = said_alike(&asked);
        if is_live {
            self.note_holes(disk, stamp, from..told, alike);
        }
        match alike {
            Some(allocated) => push_run(&mut runs, next - from, allocated),
            None => {
                let mut cuts: SmallVec<[Cut<'_>; 1]> = asked.iter().map(Cut::of).collect();
                for span in self.blocks_of(key, from, next) {
                    let index = asked.binary_search_by_key(&usize::from(span.place), |one| one.place);
                    // Only what lies within the range counts, to the byte.
                    let (first, last) = (from.max(span.disk_offset), next.min(span.disk_offset + span.len));
                    let at = span.offset + (first - span.disk_offset);
                    cuts[index.expect("every place was asked")].give(at, last - first, &mut runs);
                }
            }
        }
        match (of, self.disks[disk].spec.origin) {
            (StatusOf::Changes { .. }, Some(_)) => {
                let widens = self.fabric.settings.rules.hold(Rule::TellWholeRegions);
                runs = whole_regions(&runs, (from, offset), widens);
            }
            (_, Some(_)) => return self.ask_origin_status(key, from, runs, out),
            (_, None) => {}
        }
        self.requests[key as usize].stage = Stage::Told(runs);
        self.end_request(key, out);
    }
}

/// The parts of a place that hold some of its bytes.
fn parts_of(bytes: &Range<u64>) -> Range<u32> {
    (bytes.start / EXTENT_SIZE) as u32..bytes.end.div_ceil(EXTENT_SIZE) as u32
}

/// The common state of all bytes in all answers, if there is one.
fn said_alike(asked: &[Question]) -> Option<bool> {
    let first = asked.first()?.answer.first()?.is_set;
    let is_so = |one: &Question| matches!(one.answer[..], [run] if run.is_set == first);
    asked.iter().all(is_so).then_some(first)
}

/// The answer about a place, read from front to back: the pieces of a place follow one another, but for those of a row, which stand side by side in its
/// members.
struct Cut<'a> {
    runs: &'a [StatusRun],
    /// Where the first of these runs begins in each component.
    start: u64,
    /// The runs, and where they begin, as they were at the beginning of the row that was read last.
    row: (&'a [StatusRun], u64),
}

impl Cut<'_> {
    fn of(question: &Question) -> Cut<'_> {
        let (runs, start) = (&question.answer[..], u64::from(question.part) * EXTENT_SIZE);
        Cut { runs, start, row: (runs, start) }
    }

    /// Appends the runs of `len` bytes from `at` on.
    fn give(&mut self, at: u64, len: u64, runs: &mut Vec<StatusRun>) {
        let (mut at, end) = (at, at + len);
        if at < self.start {
            (self.runs, self.start) = self.row;
        } else {
            self.row = (self.runs, self.start);
        }
        while at < end {
            let run = self.runs.first().expect("an answer covers what was asked for");
            let run_end = self.start + run.len;
            if at < run_end {
                let to = end.min(run_end);
                push_run(runs, to - at, run.is_set);
                at = to;
            }
            if at >= run_end {
                (self.runs, self.start) = (&self.runs[1..], run_end);
            }
        }
    }
}
