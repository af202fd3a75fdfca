//! Hands bytes to an NBD session as a client would, in pieces that the bytes themselves decide, and answers its requests.

use base::Pool;
use base::request::{Piece, Pieces, Reply, Request, StatusRun};
use frontends::nbd::Session;
use frontends::nbd::protocol::{OPTION_MAGIC, RequestHeader, command, option};
use frontends::tls::TlsPolicy;
use frontends::{AttachRefusal, Bitmap, Event, Export, IoVec};

/// Where the conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With the client's flags.
    Negotiation,
    /// With the first request; structured replies and block status are agreed on.
    Transmission,
}

/// Plays `bytes` as a client's side. Panics where the session does, or where it outgrows its limits.
pub fn converse(begin: Begin, bytes: &[u8]) {
    let pool = Pool::new(160 << 20);
    let mut session = Session::new(TlsPolicy::Off, pool.clone());
    if begin == Begin::Transmission {
        say(&mut session, &pool, &handshake(), usize::MAX);
        assert!(session.attached().is_some(), "the handshake is a good one");
    }
    // The first byte says how the stream is cut: whole, or in pieces of so many bytes.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let step = if cut == 0 { usize::MAX } else { usize::from(cut) * usize::from(cut) };
    let bytes = if begin == Begin::Transmission { with_magic(bytes) } else { bytes.to_vec() };
    say(&mut session, &pool, &bytes, step);
    assert!(session.outstanding() == 0, "every request was answered");
    assert!(pool.bytes_used() <= 136 << 20, "a client holds a bounded amount of memory");
    session.lost();
    assert!(session.is_finished());
    drop(session);
    assert!(pool.bytes_used() == 0, "all buffers came back");
}

/// Writes the magic of a request where one begins, so that the fuzzer need not find it each time.
fn with_magic(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = bytes.get_mut(at..at + 28) {
        // Half of the messages keep their own magic: a wrong one must be tried too.
        if header[3] & 1 == 0 {
            header[..4].copy_from_slice(&frontends::nbd::protocol::REQUEST_MAGIC.to_be_bytes());
        }
        // Most lengths and offsets are huge; small ones reach more.
        if header[7] & 0x80 == 0 {
            header[6] = 0;
            header[16..22].fill(0);
            header[24..26].fill(0);
        }
        let header = <&[u8; 28]>::try_from(&header[..]).expect("28 bytes");
        let Some(request) = RequestHeader::decode(header) else { break };
        at += 28 + if request.command == command::WRITE { request.len as usize } else { 0 };
    }
    bytes
}

fn handshake() -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    let mut put = |number: u32, data: &[u8]| {
        bytes.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
    };
    put(option::STRUCTURED_REPLY, &[]);
    put(
        option::SET_META_CONTEXT,
        b"\0\0\0\x01d\0\0\0\x02\0\0\0\x0fbase:allocation\0\0\0\x18qemu:dirty-bitmap:monday",
    );
    put(option::GO, b"\0\0\0\x01d\0\0");
    bytes
}

fn say(session: &mut Session, pool: &Pool, mut bytes: &[u8], step: usize) {
    let (mut vectors, mut events) = (Vec::new(), Vec::new());
    settle(session, pool, step, &mut events);
    while !bytes.is_empty() && session.wants_receive() {
        vectors.clear();
        session.receive_vectors(&mut vectors);
        let n = scatter(&vectors, &bytes[..bytes.len().min(step)]);
        bytes = &bytes[n..];
        session.received(n, &mut events);
        settle(session, pool, step, &mut events);
    }
    assert!(
        bytes.is_empty() || session.is_finished(),
        "a session whose requests are all answered takes more"
    );
}

/// Answers and sends until nothing is left to do.
fn settle(session: &mut Session, pool: &Pool, step: usize, events: &mut Vec<Event>) {
    let mut vectors = Vec::new();
    loop {
        session.advance(events);
        if events.is_empty() && !session.wants_transmit() {
            return;
        }
        std::mem::take(events).into_iter().for_each(|event| answer(session, pool, event));
        if session.wants_transmit() {
            vectors.clear();
            session.transmit_vectors(&mut vectors);
            let total: usize = vectors.iter().map(|vector| vector.len).sum();
            session.transmitted(total.min(step.saturating_mul(64)), events);
        }
    }
}

fn answer(session: &mut Session, pool: &Pool, event: Event) {
    // A snapshot with an older one, so that every metadata context can be asked for.
    let bitmaps = vec![Bitmap { name: "monday".to_owned(), number: 3 }];
    let (name, description) = ("d".to_owned(), String::new());
    let export = Export { name, size: 8 << 20, read_only: false, description, snapshot: Some(7), bitmaps };
    match event {
        Event::ListExports => session.exports(&[export]),
        Event::Describe { wanted } | Event::Attach { wanted } => {
            session.export(if wanted.disk == "d" { Ok(export) } else { Err(AttachRefusal::Unknown) });
        }
        Event::Request { cookie, request } => {
            let reply = match request {
                Request::Read { offset, len } | Request::View { offset, len, .. } => {
                    Reply::Data(read(pool, offset, len))
                }
                Request::CopyUp { .. } => unreachable!("clients ask for none"),
                Request::Status { len, .. } => Reply::Status(vec![StatusRun { len, is_set: false }]),
                Request::Write { .. }
                | Request::Flush
                | Request::Trim { .. }
                | Request::WriteZeroes { .. } => Reply::Done,
            };
            session.reply(cookie, Ok(reply));
        }
    }
}

/// A piece of data, then a hole; the data first or the hole first, as the offset has it.
fn read(pool: &Pool, offset: u64, len: u32) -> Pieces {
    let data = (len / 2).clamp(1, 1 << 20);
    let mut pieces = Pieces::new();
    match pool.take(data as usize) {
        Some(buffer) => pieces.push(Piece::Bytes(buffer)),
        None => pieces.push(Piece::Hole(data)),
    }
    pieces.push(Piece::Hole(len - data));
    if offset & 512 == 0 {
        pieces.reverse();
    }
    pieces
}

/// What a receive does.
fn scatter(vectors: &[IoVec], mut bytes: &[u8]) -> usize {
    let before = bytes.len();
    for vector in vectors {
        let part = vector.len.min(bytes.len());
        // SAFETY: the session gave this memory out to be written to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), vector.base, part) };
        bytes = &bytes[part..];
    }
    before - bytes.len()
}
