//! The payload of a frame: bulk data, never copied to be sent, received into aligned buffers.

use crate::flaw::Flaw;
use base::buffer::CHUNK_SIZE;
use base::bytes::Reader;
use base::checksum::crc32c;
use base::request::{Buffers, Piece, Pieces};
use base::units::BLOCK_SIZE;
use base::{Buffer, Pool};
use smallvec::SmallVec;

const BLOCK: usize = BLOCK_SIZE as usize;

/// The payload of a message, in the buffers that it stands in.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// The message has none.
    None,
    /// All bytes of these.
    Buffers(&'a Buffers),
    /// The bytes among these; holes are told in the body.
    Pieces(&'a Pieces),
}

impl<'a> Payload<'a> {
    /// The buffers whose bytes, one after the other, are the payload. None is empty.
    pub fn buffers(self) -> impl Iterator<Item = &'a Buffer> {
        let (buffers, pieces): (&[Buffer], &[Piece]) = match self {
            Payload::None => (&[], &[]),
            Payload::Buffers(buffers) => (buffers, &[]),
            Payload::Pieces(pieces) => (&[], pieces),
        };
        let in_pieces = pieces.iter().filter_map(|piece| match piece {
            Piece::Bytes(buffer) => Some(buffer),
            Piece::Hole(_) => None,
        });
        buffers.iter().chain(in_pieces).filter(|buffer| !buffer.is_empty())
    }

    /// Its bytes.
    pub fn size(self) -> usize {
        self.buffers().map(Buffer::len).sum()
    }
}

/// Calls `each` with the CRC-32C of every 4 KiB of what the buffers hold one after the other, the last one shorter,
/// however that is cut into buffers.
pub(crate) fn block_checksums<'a>(buffers: impl Iterator<Item = &'a Buffer>, each: &mut impl FnMut(u32)) {
    // Where a block is spread over buffers its bytes are put together here: guests that write whole blocks never need it.
    let mut spread: SmallVec<[u8; BLOCK]> = SmallVec::new();
    for buffer in buffers {
        let mut rest: &[u8] = buffer;
        if !spread.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(BLOCK - spread.len()));
            spread.extend_from_slice(head);
            rest = tail;
            if spread.len() == BLOCK {
                each(crc32c(&spread));
                spread.clear();
            }
        }
        let blocks = rest.chunks_exact(BLOCK);
        spread.extend_from_slice(blocks.remainder());
        blocks.for_each(|block| each(crc32c(block)));
    }
    if !spread.is_empty() {
        each(crc32c(&spread));
    }
}

/// Reads the checksums that [`block_checksums`] gave and compares them with the payload that came.
pub(crate) fn verify_blocks(r: &mut Reader<'_>, payload: &Buffers) -> Result<(), Flaw> {
    let (mut block, mut damaged) = (0, None);
    block_checksums(payload.iter(), &mut |checksum| {
        if r.u32() != checksum && damaged.is_none() {
            damaged = Some(block);
        }
        block += 1;
    });
    r.finish()?;
    match damaged {
        Some(block) => Err(Flaw::Payload { block }),
        None => Ok(()),
    }
}

/// Buffers for a payload of `size` bytes: of 1 MiB each, the last one shorter. All or none.
pub(crate) fn take_buffers(pool: &Pool, size: usize) -> Option<Buffers> {
    let mut buffers = Buffers::new();
    let mut rest = size;
    while rest > 0 {
        let buffer = pool.take(rest.min(CHUNK_SIZE))?;
        rest -= buffer.len();
        buffers.push(buffer);
    }
    Some(buffers)
}

/// A run of one sort in the answer to a read: neighbouring pieces of one sort are one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// So many bytes of the payload.
    Bytes(u32),
    /// So many zeroes.
    Hole(u32),
}

/// Calls `each` with the runs of `pieces`; neighbours differ, none is empty.
pub(crate) fn runs(pieces: &Pieces, mut each: impl FnMut(Run)) {
    let mut last: Option<Run> = None;
    for piece in pieces {
        let next = match piece {
            Piece::Bytes(buffer) => Run::Bytes(buffer.len() as u32),
            Piece::Hole(len) => Run::Hole(*len),
        };
        last = Some(match (last, next) {
            (Some(run), Run::Bytes(0) | Run::Hole(0)) => run,
            (None, Run::Bytes(0) | Run::Hole(0)) => continue,
            (Some(Run::Bytes(before)), Run::Bytes(len)) => Run::Bytes(before + len),
            (Some(Run::Hole(before)), Run::Hole(len)) => Run::Hole(before + len),
            (Some(run), _) => {
                each(run);
                next
            }
            (None, _) => next,
        });
    }
    if let Some(run) = last {
        each(run);
    }
}

/// Cuts pieces off the front of a payload.
pub(crate) struct Cutter {
    payload: Buffers,
    /// The first buffer that is not used up, and how much of it is.
    next: usize,
    offset: usize,
}

impl Cutter {
    pub(crate) fn new(payload: Buffers) -> Cutter {
        Cutter { payload, next: 0, offset: 0 }
    }

    /// Appends the next `len` bytes to `pieces`: one piece, or more where they lie in several buffers. Says whether there
    /// were as many.
    pub(crate) fn cut(&mut self, mut len: usize, pieces: &mut Pieces) -> bool {
        while len > 0 {
            let Some(buffer) = self.payload.get(self.next) else { return false };
            let part = len.min(buffer.len() - self.offset);
            pieces.push(Piece::Bytes(buffer.slice(self.offset, part)));
            len -= part;
            self.offset += part;
            if self.offset == buffer.len() {
                self.next += 1;
                self.offset = 0;
            }
        }
        true
    }

    /// Whether nothing is left.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next == self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn checksums_do_not_depend_on_how_the_bytes_are_cut() {
        let pool = Pool::new(1 << 20);
        let mut whole = pool.take(3 * BLOCK + 700).unwrap();
        whole.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = (at / 7) as u8);
        let expected: Vec<u32> = whole.chunks(BLOCK).map(crc32c).collect();
        for cuts in [vec![], vec![4096], vec![1], vec![100, 5000, 5001, 12_000], vec![4095, 8193]] {
            let mut buffers = Vec::new();
            let mut start = 0;
            for end in cuts.into_iter().chain([whole.len()]) {
                buffers.push(whole.slice(start, end - start));
                start = end;
            }
            let mut found = Vec::new();
            block_checksums(buffers.iter(), &mut |checksum| found.push(checksum));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn neighbouring_pieces_of_one_sort_are_one_run() {
        let pool = Pool::new(1 << 20);
        let bytes = |len| Piece::Bytes(pool.take(4096).unwrap().slice(0, len));
        let check = |pieces: Pieces, expected: &[Run]| {
            let mut found = Vec::new();
            runs(&pieces, |run| found.push(run));
            assert_eq!(found, expected);
        };
        check(smallvec![], &[]);
        check(smallvec![Piece::Hole(0), bytes(0)], &[]);
        check(smallvec![bytes(512), Piece::Hole(0), bytes(1024)], &[Run::Bytes(1536)]);
        check(
            smallvec![Piece::Hole(512), Piece::Hole(512), bytes(512), Piece::Hole(4096)],
            &[Run::Hole(1024), Run::Bytes(512), Run::Hole(4096)],
        );
    }
}
