//! Blocks of a disk that are written again as they were in a snapshot, on behalf of the control plane (docs/design/0047, "Rolling back").
//!
//! The snapshot is read and the disk written by requests such as guests make. So the node forwards them to the owner, holds them while there is
//! none, and repeats them when the owner changes. Must write nothing but what the snapshot has.

use crate::command::Answer;
use crate::engine::{CopyBack, Engine, Target};
use base::DiskId;
use base::request::{Buffers, Outcome, Piece, Pieces, Reply, Request, RequestError};
use base::units::BLOCK_SIZE;
use node::Token;
use std::collections::VecDeque;
use std::ops::Range;

impl Engine {
    /// Begins to copy a range back. Where the snapshot ends before the range, there are zeroes.
    pub(crate) fn copy_back(
        &mut self,
        disk: DiskId,
        snapshot: Option<u32>,
        range: Range<u64>,
        answer: Answer<Result<(), RequestError>>,
    ) {
        let Some(key) = self.node.disk(disk).filter(|_| !self.is_stopping) else {
            let _ = answer.send(Err(RequestError::Stopping));
            return;
        };
        let (offset, len) = (range.start, range.end - range.start);
        let first = match snapshot {
            Some(snapshot) => Request::View { snapshot, offset, len: len as u32 },
            None => Request::WriteZeroes { offset, len, allocate: false },
        };
        let copy = CopyBack { disk: key, at: offset, requests: VecDeque::from([first]), answer };
        self.go_on_copying_back(Box::new(copy));
    }

    /// A request of a copy has ended.
    pub(crate) fn copied_back(&mut self, mut copy: Box<CopyBack>, outcome: Outcome) {
        match outcome {
            Ok(Reply::Data(pieces)) => {
                copy.requests.extend(writes_of(copy.at, pieces));
                self.go_on_copying_back(copy);
            }
            Ok(Reply::Done) => self.go_on_copying_back(copy),
            Ok(reply @ Reply::Status(_)) => unreachable!("nobody asked for {reply:?}"),
            Err(error) => drop(copy.answer.send(Err(error))),
        }
    }

    fn go_on_copying_back(&mut self, mut copy: Box<CopyBack>) {
        let Some(request) = copy.requests.pop_front() else {
            let _ = copy.answer.send(Ok(()));
            return;
        };
        let disk = copy.disk;
        let token = Token(self.targets.insert(Target::CopyBack(copy)) as u64);
        self.node.request(self.now(), token, disk, request, &mut self.outputs);
    }
}

/// The writes that make a disk from `at` on what was read: holes give their space back.
fn writes_of(mut at: u64, pieces: Pieces) -> Vec<Request> {
    let mut requests = Vec::new();
    for piece in pieces {
        let len = match &piece {
            Piece::Bytes(buffer) => buffer.len() as u64,
            Piece::Hole(len) => u64::from(*len),
        };
        match (piece, requests.last_mut()) {
            // A write takes several buffers where each but the last consists of whole blocks.
            (Piece::Bytes(buffer), Some(Request::Write { data, .. })) if are_blocks(data) => {
                data.push(buffer);
            }
            (Piece::Bytes(buffer), _) => {
                requests.push(Request::Write { offset: at, data: Buffers::from_iter([buffer]) });
            }
            (Piece::Hole(_), Some(Request::WriteZeroes { len: before, .. })) => *before += len,
            (Piece::Hole(_), _) => requests.push(Request::WriteZeroes { offset: at, len, allocate: false }),
        }
        at += len;
    }
    requests
}

/// Whether all buffers consist of whole blocks.
fn are_blocks(data: &Buffers) -> bool {
    data.iter().all(|buffer| (buffer.len() as u64).is_multiple_of(BLOCK_SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Pool;

    /// What the requests make of a disk that has ones, and how many requests there are.
    fn check(at: u64, pieces: Vec<Piece>, expected: &[(u8, u64)], count: usize) {
        let size: u64 = at + expected.iter().map(|(_, len)| len).sum::<u64>();
        let mut disk = vec![1; size as usize];
        let requests = writes_of(at, pieces.into_iter().collect());
        assert_eq!(requests.len(), count);
        for request in requests {
            match request {
                Request::Write { offset, data } => {
                    let mut offset = offset as usize;
                    for (index, buffer) in data.iter().enumerate() {
                        assert!(index + 1 == data.len() || buffer.len().is_multiple_of(BLOCK_SIZE as usize));
                        disk[offset..offset + buffer.len()].copy_from_slice(buffer);
                        offset += buffer.len();
                    }
                }
                Request::WriteZeroes { offset, len, allocate: false } => {
                    disk[offset as usize..(offset + len) as usize].fill(0);
                }
                other => panic!("{other:?}"),
            }
        }
        let mut wanted = vec![1; at as usize];
        expected.iter().for_each(|(byte, len)| wanted.extend(vec![*byte; *len as usize]));
        assert!(disk == wanted);
    }

    fn bytes(byte: u8, len: usize) -> Piece {
        let mut buffer = Pool::new(1 << 20).take(len).expect("it has room");
        buffer.bytes_mut().fill(byte);
        Piece::Bytes(buffer)
    }

    #[test]
    fn what_was_read_is_written_where_it_was_and_holes_become_holes() {
        check(8192, vec![bytes(2, 4096), bytes(3, 8192)], &[(2, 4096), (3, 8192)], 1);
        let pieces = vec![Piece::Hole(4096), Piece::Hole(4096), bytes(2, 4096), Piece::Hole(512)];
        check(4096, pieces, &[(0, 8192), (2, 4096), (0, 512)], 3);
        check(0, vec![Piece::Hole(1 << 20)], &[(0, 1 << 20)], 1);
    }

    #[test]
    fn buffers_that_do_not_end_with_a_block_are_written_by_themselves() {
        check(0, vec![bytes(2, 4608), bytes(3, 3584), bytes(4, 512)], &[(2, 4608), (3, 3584), (4, 512)], 3);
    }
}
