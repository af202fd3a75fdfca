//! What is allocated: of a disk of one host from the tables of its groups, of a cluster's disk as its owner is told.

use super::{Stage, request_error};
use crate::node::{Node, Output};
use crate::range::{part_and_block, range_of};
use base::request::StatusRun;
use base::units::{BLOCK_SIZE, BLOCKS_PER_EXTENT, EXTENT_SIZE};
use diskgroup::GroupError;
use layout::Span;
use replication::owner;
use smallvec::SmallVec;
use wire::limits::ALLOCATION_PARTS_MAX;

/// Bytes of a cluster's disk that are asked about at once: even of one component they are no more parts than one
/// request takes, however the range is aligned.
const WINDOW: u64 = (ALLOCATION_PARTS_MAX as u64 - 1) * EXTENT_SIZE;

/// What a component is asked: some of its parts, and what it said.
#[derive(Debug)]
struct Question {
    place: usize,
    part: u32,
    count: u16,
    answer: Vec<StatusRun>,
}

/// Questions about one window of a request.
#[derive(Debug)]
pub(super) struct Questions {
    /// Where the window begins, and what follows it.
    from: u64,
    next: u64,
    asked: SmallVec<[Question; 1]>,
    /// What is known of what stands before the window.
    pub(super) runs: Vec<StatusRun>,
}

impl Node {
    /// Goes on telling what is allocated, as far as the table pages are in memory.
    pub(super) fn status_on(&mut self, key: u32, out: &mut Vec<Output>) {
        let disk = self.requests[key as usize].disk;
        let (offset, len) = range_of(&self.requests[key as usize].request);
        let Stage::Status { mut next, mut runs } =
            std::mem::replace(&mut self.requests[key as usize].stage, Stage::Waiting)
        else {
            unreachable!("it tells what is allocated")
        };
        let end = offset + len;
        while next < end {
            let start = next / BLOCK_SIZE * BLOCK_SIZE;
            let take = (EXTENT_SIZE - start % EXTENT_SIZE).min(end.next_multiple_of(BLOCK_SIZE) - start);
            let span = self.spans(disk, start, take)[0];
            let (part, first) = part_and_block(span.offset);
            match self.allocation(disk, span.place, part, out) {
                None => {
                    self.requests[key as usize].stage = Stage::Status { next, runs };
                    self.stalled.push_back(key);
                    return;
                }
                Some(Err(error)) => {
                    self.requests[key as usize].error = Some(request_error(error));
                    return self.end_request(key, out);
                }
                Some(Ok(allocated)) => {
                    for block in 0..(span.len / BLOCK_SIZE) as usize {
                        let at = span.disk_offset + block as u64 * BLOCK_SIZE;
                        let len = (at + BLOCK_SIZE).min(end) - at.max(offset);
                        push_run(&mut runs, len, allocated[first as usize + block]);
                    }
                    next = (span.disk_offset + span.len).min(end);
                }
            }
        }
        self.requests[key as usize].stage = Stage::Status { next, runs };
        self.end_request(key, out);
    }

    /// Which blocks of a part are allocated; `None` if that must be read first.
    fn allocation(
        &mut self,
        disk: u32,
        place: usize,
        part: u32,
        out: &mut Vec<Output>,
    ) -> Option<Result<[bool; BLOCKS_PER_EXTENT], GroupError>> {
        let home = self.disks[disk].home(place);
        let mut outputs = Vec::new();
        let group = self.groups[home.group.0 as usize].as_mut().expect("a disk's groups are open");
        let answer = match group.is_hole(home.component, part) {
            true => Some(Ok([false; BLOCKS_PER_EXTENT])),
            false => group.allocation(home.component, part, &mut outputs),
        };
        self.route(home.group, outputs, out);
        answer
    }

    /// Has the owner ask about the next window of a request.
    pub(super) fn ask_status(
        &mut self,
        key: u32,
        (from, runs): (u64, Vec<StatusRun>),
        out: &mut Vec<Output>,
    ) {
        let (offset, len) = range_of(&self.requests[key as usize].request);
        let next = (offset + len).min(from + WINDOW);
        let mut asked: SmallVec<[Question; 1]> = SmallVec::new();
        for span in self.blocks_of(key, from, next) {
            let (part, _) = part_and_block(span.offset);
            match asked.iter_mut().find(|one| one.place == span.place) {
                // The parts of a place follow one another in a range of the disk.
                Some(one) => one.count = (part - one.part + 1) as u16,
                None => asked.push(Question { place: span.place, part, count: 1, answer: Vec::new() }),
            }
        }
        let state = &mut self.requests[key as usize];
        if asked.is_empty() {
            state.stage = Stage::Status { next, runs };
            return self.end_request(key, out);
        }
        state.outstanding = asked.len() as u32;
        let disk = state.disk;
        let inputs: SmallVec<[owner::Input; 1]> = (0u32..)
            .zip(&asked)
            .map(|(piece, one)| owner::Input::Status {
                token: owner::Token(u64::from(key) << 32 | u64::from(piece)),
                place: one.place as u16,
                part: one.part,
                count: one.count,
            })
            .collect();
        state.stage = Stage::Asking(Questions { from, next, asked, runs });
        inputs.into_iter().for_each(|input| self.step_owner(disk, input));
    }

    /// The runs of whole blocks that hold a range of a request's disk.
    fn blocks_of(&self, key: u32, from: u64, to: u64) -> SmallVec<[Span; 2]> {
        let (start, end) = (from / BLOCK_SIZE * BLOCK_SIZE, to.next_multiple_of(BLOCK_SIZE));
        self.spans(self.requests[key as usize].disk, start, end - start)
    }

    /// A component answered.
    pub(super) fn allocation_told(&mut self, key: u32, piece: u32, runs: Vec<StatusRun>) {
        if let Stage::Asking(questions) = &mut self.requests[key as usize].stage {
            questions.asked[piece as usize].answer = runs;
        }
    }

    /// All components have answered about a window: what they said is put together, and the next one is asked about.
    pub(super) fn status_told(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &mut self.requests[key as usize];
        let (offset, len) = range_of(&state.request);
        let Stage::Asking(Questions { from, next, asked, mut runs }) =
            std::mem::replace(&mut state.stage, Stage::Waiting)
        else {
            unreachable!("it asks what is allocated")
        };
        for span in self.blocks_of(key, from, next) {
            let one = asked.iter().find(|one| one.place == span.place).expect("every place was asked");
            let at = span.offset - u64::from(one.part) * EXTENT_SIZE;
            // Only what lies within the window counts, to the byte.
            let (first, last) = (from.max(span.disk_offset), next.min(span.disk_offset + span.len));
            let head = first - span.disk_offset;
            cut_runs(&one.answer, at + head, last - first, |len, allocated| {
                push_run(&mut runs, len, allocated)
            });
        }
        if next < offset + len {
            return self.ask_status(key, (next, runs), out);
        }
        self.requests[key as usize].stage = Stage::Status { next, runs };
        self.end_request(key, out);
    }
}

/// The runs of `len` bytes from `at` on.
fn cut_runs(runs: &[StatusRun], at: u64, len: u64, mut give: impl FnMut(u64, bool)) {
    let (mut start, end) = (0, at + len);
    for run in runs {
        let (from, to) = (start.max(at), (start + run.len).min(end));
        if from < to {
            give(to - from, run.allocated);
        }
        start += run.len;
    }
    assert!(start >= end, "an answer covers what was asked for");
}

pub(crate) fn push_run(runs: &mut Vec<StatusRun>, len: u64, allocated: bool) {
    match runs.last_mut() {
        Some(last) if last.allocated == allocated => last.len += len,
        Some(_) | None => runs.push(StatusRun { len, allocated }),
    }
}
