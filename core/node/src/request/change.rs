//! Changes: what a request covers in part is read first and written as a whole; long trims and zero-writes are done in windows.

use super::state::Stage;
use super::{TRIM_WINDOW, ZERO_WINDOW};
use crate::changes::ChangedRange;
use crate::interface::Output;
use crate::node::Node;
use crate::pieces;
use crate::range::{Aim, change_of, covered, edges_of};
use crate::zeroes::{Zeroes, changes_of_write};
use base::request::{Buffers, Pieces, Request, RequestError, cut};
use base::units::{BLOCK_SIZE, EXTENT_SIZE};
use replication::{Rule, owner};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// Data to write, each with its first byte on the disk.
type Writes = Vec<(u64, Buffers)>;

impl Node {
    /// What a request covers in part: it is read before anything is changed.
    pub(super) fn edges(&self, key: u32) -> SmallVec<[Range<u64>; 2]> {
        let state = &self.requests[key as usize];
        match self.disks[state.disk].spec.origin {
            Some(_) => self.edges_of_clone(key),
            None => edges_of(&state.request),
        }
    }

    /// The blocks that a request changes, those that it reads first among them.
    pub(super) fn change_of(&self, key: u32) -> ChangedRange {
        let change = change_of(key, &self.requests[key as usize].request);
        let edges = self.edges(key);
        let start = edges.first().map_or(change.start, |edge| edge.start.min(change.start));
        let end = edges.last().map_or(change.end, |edge| edge.end.max(change.end));
        let is_apart = self.fabric.settings.rules.hold(Rule::CopyUpApart);
        ChangedRange { start, end, reads_first: !edges.is_empty() && is_apart, ..change }
    }

    /// A change may begin: it reads its edges first if it covers them in part.
    pub(super) fn start_change(&mut self, key: u32, change: ChangedRange, out: &mut Vec<Output>) {
        let disk = self.requests[key as usize].disk;
        if self.disks[disk].spec.origin.is_some() && !self.knows_edges(key) {
            // A change before it has failed, so that nobody knows where they stand.
            self.end_change(key);
            self.start_request(key, out);
            return self.unblock(disk, out);
        }
        self.disks[disk].ownership.holes.changed(change.start..change.end);
        self.requests[key as usize].is_apart = change.is_apart;
        let edges = self.edges(key);
        if edges.is_empty() {
            let Range { start: next, end } = whole_blocks(covered(&self.requests[key as usize].request));
            self.requests[key as usize].stage = Stage::Changing { next, end };
            return self.change_on(key, out);
        }
        let state = &mut self.requests[key as usize];
        state.stage = Stage::ReadingEdges;
        state.outstanding = edges.len() as u32;
        state.answers.clear();
        state.answers.resize(edges.len(), Pieces::new());
        state.edges = edges.clone();
        for (piece, edge) in (0u32..).zip(edges) {
            if self.disks[disk].spec.origin.is_some() && self.read_edge_of_clone((key, piece), &edge, out) {
                continue;
            }
            let spans = self.stretches(disk, edge.start, BLOCK_SIZE, Aim::Read);
            self.read_from_owner((key, piece), 0, spans[0]);
        }
    }

    /// A change has its edges: writes them, with what it changes in them, and the data between; then it goes on to what it trims.
    pub(super) fn write_edges(&mut self, key: u32, out: &mut Vec<Output>) {
        let Some((writes, left)) = self.merge_edges(key) else { return self.stalled.push_back(key) };
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Changing { next: left.start, end: left.end };
        // Counted as one more until all are handed in, so that early answers do not end the request.
        state.outstanding = 1;
        for (at, data) in writes {
            self.write_range(key, at, &data);
        }
        self.all_handed_in(key, out);
    }

    /// The whole blocks that a change with edges writes as data, one after the other: all of a write, and only the edges of a zero-write. With
    /// what is left to be trimmed or zeroed. `None` if memory is short.
    fn merge_edges(&self, key: u32) -> Option<(Writes, Range<u64>)> {
        let state = &self.requests[key as usize];
        let bytes = covered(&state.request);
        let mut writes = Writes::new();
        let mut middle = bytes.clone();
        for (edge, old) in state.edges.iter().zip(&state.answers) {
            let mut blocks = self.pool.take((edge.end - edge.start) as usize)?;
            pieces::copy_pieces(old, blocks.bytes_mut());
            let (from, to) = (bytes.start.max(edge.start), bytes.end.min(edge.end));
            if from >= to {
                writes.push((edge.start, smallvec![blocks]));
                continue;
            }
            let target = &mut blocks.bytes_mut()[(from - edge.start) as usize..(to - edge.start) as usize];
            match &state.request {
                Request::Write { offset, data } => {
                    let part = cut(data, (from - offset) as usize, (to - from) as usize);
                    pieces::copy_into(&part, target);
                }
                _ => target.fill(0),
            }
            if edge.start <= middle.start {
                middle.start = edge.end;
            }
            if edge.end >= middle.end {
                middle.end = edge.start;
            }
            writes.push((edge.start, smallvec![blocks]));
        }
        let Request::Write { offset, data } = &state.request else {
            return Some((writes, whole_blocks(middle)));
        };
        // The data between the edges is not aligned in memory, so it is copied to aligned buffers.
        let mut at = middle.start;
        while at < middle.end {
            let take = (middle.end - at).min(EXTENT_SIZE - at % EXTENT_SIZE);
            let mut buffer = self.pool.take(take as usize)?;
            pieces::copy_into(&cut(data, (at - offset) as usize, take as usize), buffer.bytes_mut());
            writes.push((at, smallvec![buffer]));
            at += take;
        }
        Some((writes, bytes.end..bytes.end))
    }

    /// Submits the next window of a change with whole blocks at its edges, or ends the change.
    pub(super) fn change_on(&mut self, key: u32, out: &mut Vec<Output>) {
        let state = &self.requests[key as usize];
        let Stage::Changing { next, end } = state.stage else { unreachable!("it is changing") };
        if !self.is_within(key) {
            // The disk became smaller between two windows: freed space stays free.
            self.requests[key as usize].error = Some(RequestError::OutOfRange);
            return self.end_request(key, out);
        }
        if next >= end {
            return self.end_request(key, out);
        }
        let (window, data) = match &state.request {
            Request::Write { data, .. } => (end - next, Some(data.clone())),
            Request::WriteZeroes { allocate: true, .. } => {
                let window = (end - next).min(ZERO_WINDOW);
                (window, Some(self.zero_buffers(window)))
            }
            Request::Trim { .. } | Request::WriteZeroes { .. } => ((end - next).min(TRIM_WINDOW), None),
            Request::Read { .. }
            | Request::View { .. }
            | Request::CopyUp { .. }
            | Request::Flush
            | Request::Status { .. } => {
                unreachable!("these change nothing")
            }
        };
        let is_clone = self.disks[state.disk].spec.origin.is_some();
        if let (true, None) = (is_clone, &data) {
            return self.trim_clone_on(key, next..next + window, end, out);
        }
        let state = &mut self.requests[key as usize];
        state.stage = Stage::Changing { next: next + window, end };
        state.outstanding = 1; // As in `write_edges`.
        match data {
            Some(data) => self.write_range(key, next, &data),
            None => self.trim_range(key, next, window),
        }
        self.all_handed_in(key, out);
    }

    /// All pieces of a step are submitted: drops the extra count that kept the request alive.
    pub(crate) fn all_handed_in(&mut self, key: u32, out: &mut Vec<Output>) {
        self.requests[key as usize].outstanding -= 1;
        self.piece_ended(key, out);
    }

    pub(crate) fn zero_buffers(&self, len: u64) -> Buffers {
        let whole = (0..len / EXTENT_SIZE).map(|_| self.zeroes.clone());
        let rest = (len % EXTENT_SIZE) as usize;
        whole.chain((rest > 0).then(|| self.zeroes.slice(0, rest))).collect()
    }

    /// Hands whole blocks to the owner; those that are zero become trims where the guest does not want to keep their space.
    pub(super) fn write_range(&mut self, key: u32, offset: u64, data: &Buffers) {
        let disk = self.requests[key as usize].disk;
        let len = pieces::len(data);
        let zeroes = self.zeroes_within(key, offset..offset + len);
        for range in self.still_to_do(key, offset..offset + len) {
            let len = range.end - range.start;
            let data = cut(data, (range.start - offset) as usize, len as usize);
            self.note_followers(key, range.clone(), Some(&data));
            for span in self.stretches(disk, range.start, len, Aim::Change) {
                let data = cut(&data, (span.disk_offset - range.start) as usize, span.len as usize);
                for (stretch, payload) in changes_of_write(&self.disks[disk].spec.layout, span, data, zeroes)
                {
                    if let owner::Payload::Trim { .. } = payload {
                        self.disks[disk].zero_bytes_trimmed += stretch.len;
                    }
                    self.change_by_owner(key, stretch, payload);
                }
            }
        }
    }

    /// What becomes of blocks of zeroes that a request writes.
    pub(crate) fn zeroes_of(&self, key: u32) -> Zeroes {
        Zeroes::of(&self.requests[key as usize].request, self.fabric.settings.rules)
    }

    /// The same in a range of its disk.
    fn zeroes_within(&self, key: u32, bytes: Range<u64>) -> Zeroes {
        let disk = self.requests[key as usize].disk;
        match self.disks[disk].spec.origin {
            Some(_) => self.zeroes_of_clone(key, bytes),
            None => self.zeroes_of(key),
        }
    }

    pub(super) fn trim_range(&mut self, key: u32, offset: u64, len: u64) {
        let disk = self.requests[key as usize].disk;
        for range in self.still_to_do(key, offset..offset + len) {
            self.note_followers(key, range.clone(), None);
            for span in self.stretches(disk, range.start, range.end - range.start, Aim::Change) {
                let count = (span.len / BLOCK_SIZE) as u16;
                self.change_by_owner(key, span, owner::Payload::Trim { count });
            }
        }
    }
}

/// The blocks that some bytes cover whole: of a change all that is not at its edges.
fn whole_blocks(bytes: Range<u64>) -> Range<u64> {
    let start = bytes.start.next_multiple_of(BLOCK_SIZE);
    start..(bytes.end / BLOCK_SIZE * BLOCK_SIZE).max(start)
}
