//! Cutting and joining the data of requests.

use base::Buffer;
use base::request::{Buffers, Piece, Pieces};

/// Copies a run of buffers to the start of `target`.
pub(crate) fn copy_into(buffers: &Buffers, target: &mut [u8]) {
    let mut at = 0;
    for buffer in buffers {
        target[at..at + buffer.len()].copy_from_slice(buffer);
        at += buffer.len();
    }
}

/// Drops the first `head` bytes and all bytes behind the `len` bytes after them.
pub(crate) fn trim(pieces: Pieces, mut head: u32, mut len: u32) -> Pieces {
    let mut out = Pieces::new();
    for piece in pieces {
        let size = match &piece {
            Piece::Bytes(buffer) => buffer.len() as u32,
            Piece::Hole(len) => *len,
        };
        if head >= size {
            head -= size;
            continue;
        }
        let take = len.min(size - head);
        if take == 0 {
            break;
        }
        out.push(match piece {
            Piece::Bytes(buffer) if take == size => Piece::Bytes(buffer),
            Piece::Bytes(buffer) => Piece::Bytes(buffer.slice(head as usize, take as usize)),
            Piece::Hole(_) => Piece::Hole(take),
        });
        len -= take;
        head = 0;
    }
    out
}

/// Appends `more`, joining neighbours that belong together.
pub(crate) fn append(pieces: &mut Pieces, more: Pieces) {
    for piece in more {
        let joined = match (pieces.last_mut(), &piece) {
            (Some(Piece::Hole(len)), Piece::Hole(more)) => {
                *len += more;
                true
            }
            (Some(Piece::Bytes(last)), Piece::Bytes(next)) => last.try_join(next),
            (Some(_) | None, _) => false,
        };
        if !joined {
            pieces.push(piece);
        }
    }
}

/// The bytes of pieces, copied to `target`.
pub(crate) fn copy_pieces(pieces: &Pieces, target: &mut [u8]) {
    let mut at = 0;
    for piece in pieces {
        match piece {
            Piece::Bytes(buffer) => {
                target[at..at + buffer.len()].copy_from_slice(buffer);
                at += buffer.len();
            }
            Piece::Hole(len) => {
                target[at..at + *len as usize].fill(0);
                at += *len as usize;
            }
        }
    }
}

/// Bytes in a run of buffers.
pub(crate) fn len(buffers: &Buffers) -> u64 {
    buffers.iter().map(|buffer: &Buffer| buffer.len() as u64).sum()
}
