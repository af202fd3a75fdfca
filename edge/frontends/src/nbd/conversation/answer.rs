//! Answers of a disk, as replies to its client.

use super::contexts::Context;
use super::outbox::Outbox;
use crate::limits::STATUS_RUNS_MAX;
use crate::nbd::protocol::{
    Errno, RequestHeader, chunk, command, command_flag, put_chunk, put_error_chunk, put_simple_reply,
};
use base::request::{Outcome, Piece, Pieces, Reply, RequestError, StatusRun};

/// Why a request is not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    pub(super) text: &'static str,
}

impl Refusal {
    pub(super) const fn new(errno: Errno, text: &'static str) -> Refusal {
        Refusal { errno, text }
    }
}

/// How replies to one client look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Structured,
}

/// Queues the reply to a request that was carried out or failed.
pub(super) fn put_outcome(outbox: &mut Outbox, style: Style, request: &RequestHeader, outcome: Outcome) {
    match (request.command, outcome) {
        (command::READ, Ok(Reply::Data(pieces))) => put_read(outbox, style, request, pieces),
        (command::READ, Ok(reply)) => panic!("a read is not answered by {reply:?}"),
        (_, Ok(Reply::Done)) => put_done(outbox, style, request),
        (_, Ok(reply)) => panic!("a request of type {} is not answered by {reply:?}", request.command),
        (_, Err(error)) => put_failure(outbox, style, request, error),
    }
}

/// Queues the reply to a request that did what was asked and has nothing to give back.
pub(super) fn put_done(outbox: &mut Outbox, style: Style, request: &RequestHeader) {
    match style {
        // Only a read must have a structured reply; for all others the simple one is four bytes shorter.
        Style::Structured if request.command == command::READ => {
            outbox.put(|out| put_chunk(out, chunk::DONE, chunk::NONE, request.cookie, 0));
        }
        Style::Simple | Style::Structured => outbox.put(|out| put_simple_reply(out, 0, request.cookie)),
    }
}

/// Queues the reply to a request that was not carried out.
pub(super) fn put_refusal(outbox: &mut Outbox, style: Style, request: &RequestHeader, refusal: Refusal) {
    put_error(outbox, style, request.cookie, refusal.errno, refusal.text);
}

pub(super) fn put_failure(outbox: &mut Outbox, style: Style, request: &RequestHeader, error: RequestError) {
    let errno = match error {
        RequestError::NoSpace => Errno::NoSpace,
        RequestError::Damaged | RequestError::DeviceLost | RequestError::NoSnapshot => Errno::Io,
        RequestError::Stopping => Errno::Shutdown,
        RequestError::OutOfRange if matches!(request.command, command::WRITE | command::WRITE_ZEROES) => {
            Errno::NoSpace
        }
        RequestError::OutOfRange => Errno::Invalid,
    };
    match style {
        Style::Simple => outbox.put(|out| put_simple_reply(out, errno as u32, request.cookie)),
        Style::Structured => put_error(outbox, style, request.cookie, errno, &error.to_string()),
    }
}

fn put_error(outbox: &mut Outbox, style: Style, cookie: u64, errno: Errno, text: &str) {
    outbox.put(|out| match style {
        Style::Simple => put_simple_reply(out, errno as u32, cookie),
        Style::Structured => put_error_chunk(out, cookie, errno, text),
    });
}

fn piece_len(piece: &Piece) -> u32 {
    match piece {
        Piece::Bytes(buffer) => buffer.len() as u32,
        Piece::Hole(len) => *len,
    }
}

fn put_read(outbox: &mut Outbox, style: Style, request: &RequestHeader, pieces: Pieces) {
    let total: u64 = pieces.iter().map(|piece| u64::from(piece_len(piece))).sum();
    assert!(total == u64::from(request.len), "a read gives as many bytes as were asked for");
    match style {
        Style::Simple => {
            outbox.put(|out| put_simple_reply(out, 0, request.cookie));
            put_pieces(outbox, pieces);
        }
        Style::Structured if request.flags & command_flag::DF != 0 => {
            outbox.put(|out| put_data_head(out, chunk::DONE, request, request.offset, request.len));
            put_pieces(outbox, pieces);
        }
        Style::Structured => put_chunks(outbox, request, pieces),
    }
}

fn put_pieces(outbox: &mut Outbox, pieces: Pieces) {
    for piece in pieces {
        match piece {
            Piece::Bytes(buffer) => outbox.data(buffer),
            Piece::Hole(len) => outbox.zeroes(len),
        }
    }
}

/// The head of a chunk of `len` bytes of data at `offset`.
fn put_data_head(out: &mut Vec<u8>, flags: u16, request: &RequestHeader, offset: u64, len: u32) {
    put_chunk(out, flags, chunk::OFFSET_DATA, request.cookie, 8 + len);
    out.extend_from_slice(&offset.to_be_bytes());
}

/// One chunk for each run of data and for each run of holes.
fn put_chunks(outbox: &mut Outbox, request: &RequestHeader, mut pieces: Pieces) {
    pieces.retain(|piece| piece_len(piece) > 0);
    let is_hole = |piece: &Piece| matches!(piece, Piece::Hole(_));
    let mut offset = request.offset;
    let mut first = 0;
    while first < pieces.len() {
        let hole = is_hole(&pieces[first]);
        let run = pieces[first..].iter().take_while(|piece| is_hole(piece) == hole).count();
        let last = first + run;
        let len: u32 = pieces[first..last].iter().map(piece_len).sum();
        let flags = if last == pieces.len() { chunk::DONE } else { 0 };
        if hole {
            outbox.put(|out| {
                put_chunk(out, flags, chunk::OFFSET_HOLE, request.cookie, 12);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&len.to_be_bytes());
            });
        } else {
            outbox.put(|out| put_data_head(out, flags, request, offset, len));
            for piece in &mut pieces[first..last] {
                if let Piece::Bytes(buffer) = std::mem::replace(piece, Piece::Hole(0)) {
                    outbox.data(buffer);
                }
            }
        }
        offset += u64::from(len);
        first = last;
    }
}

/// What one context says of the blocks that were asked about. Descriptors have 32-bit lengths; runs are whole sectors, so a longer one is
/// cut at a multiple of a sector.
pub(super) fn put_status(
    outbox: &mut Outbox,
    request: &RequestHeader,
    context: Context,
    runs: &[StatusRun],
    is_end: bool,
) {
    const RUN_MAX: u64 = 1 << 31;
    let one = request.flags & command_flag::REQ_ONE != 0;
    let wanted = if one { 1 } else { STATUS_RUNS_MAX };
    let descriptors = || {
        let mut left = u64::from(request.len);
        runs.iter()
            .flat_map(|run| {
                let state = context.state(run.is_set);
                let parts = run.len.div_ceil(RUN_MAX);
                (0..parts).map(move |part| ((run.len - part * RUN_MAX).min(RUN_MAX) as u32, state))
            })
            .map(move |(len, state)| {
                let len = u64::from(len).min(left);
                left -= len;
                (len as u32, state)
            })
            .take_while(|&(len, _)| len > 0)
            .take(wanted)
    };
    let count = descriptors().count();
    assert!(count > 0, "an answer about blocks covers at least the first sector");
    outbox.put(|out| {
        let flags = if is_end { chunk::DONE } else { 0 };
        put_chunk(out, flags, chunk::BLOCK_STATUS, request.cookie, 4 + 8 * count as u32);
        out.extend_from_slice(&context.id().to_be_bytes());
        for (len, state) in descriptors() {
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(&state.to_be_bytes());
        }
    });
}
