//! Hands bytes to the decoder of frames as a peer would, in pieces that the bytes themselves decide, and to a hello.

use base::checksum::{crc32c, seal};
use base::{ClusterId, HostId, NodeId, Pool};
use wire::frame::Header;
use wire::{
    Answer, Body, Decoder, Encoder, HELLO_SIZE, Hello, Identity, Request, Role, Step, Version, VersionRange,
};

/// A guest's write, whose body ends in checksums that its sender makes.
const GUEST_WRITE: u8 = 13;
/// The answer to a guest's read, likewise.
const GUEST_DATA: u8 = 134;

/// No more frames are forged once they have so many bytes: a few of the longest payloads, or very many without one.
const FORGED_SIZE_MAX: usize = 256 << 10;

/// Plays `bytes` as what comes from another node: its hello or the answer to ours, requests, answers. Panics where the
/// decoders do, where one takes more than it may, and where what it takes has another form.
pub fn converse(bytes: &[u8]) {
    // The first byte says what comes, the second how the stream is cut: whole, or in pieces of so many bytes.
    let [what, cut, rest @ ..] = bytes else { return };
    let step = if *cut == 0 { usize::MAX } else { usize::from(*cut) * usize::from(*cut) };
    match what % 5 {
        0 => check::<Request>(rest, step),
        1 => check::<Answer>(rest, step),
        2 => check::<Request>(&forged(rest), step),
        3 => check::<Answer>(&forged(rest), step),
        _ => greet(rest),
    }
}

thread_local! {
    /// One for all runs: fresh memory would cost more than a run.
    static POOL: Pool = Pool::new(64 << 20);
}

/// Decodes all of the stream. What was taken comes back from its own bytes.
fn check<T: Body>(bytes: &[u8], step: usize) {
    let pool = POOL.with(Pool::clone);
    let mut decoder = Decoder::<T>::new(Version::LATEST, pool.clone());
    let mut encoder = Encoder::new(Version::LATEST);
    let mut again = Vec::new();
    let mut rest = bytes;
    loop {
        match decoder.step() {
            Ok(Step::Message(message)) => {
                let payload = encoder.encode(&message, &mut again);
                payload.buffers().for_each(|buffer| again.extend_from_slice(buffer));
            }
            Ok(Step::NeedsBytes) if rest.is_empty() => break,
            Ok(Step::NeedsBytes) => {
                let taken = decoder.take(&rest[..rest.len().min(step)]);
                assert!(taken > 0, "a decoder that needs bytes has space for some");
                rest = &rest[taken..];
            }
            Ok(Step::NeedsBuffers(size)) => panic!("an empty pool holds any payload, also of {size} bytes"),
            Err(error) => {
                assert!(decoder.step().is_err_and(|again| again == error) && decoder.take(bytes) == 0);
                break;
            }
        }
        assert!(pool.bytes_used() <= 32 << 20, "one payload is held at a time");
    }
    assert!(bytes.starts_with(&again), "one form for one value");
    drop(decoder);
    assert!(pool.bytes_used() == 0, "all buffers came back");
}

/// Frames with checksums that match, whose kinds, sizes and bodies are what the bytes say: four bytes and a body each.
fn forged(mut bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    while let [kind, body_low, body_high, payload_units, rest @ ..] = bytes {
        let body_size = usize::from(*body_low) | usize::from(body_high & 0x0f) << 8;
        let (body, rest) = rest.split_at(body_size.min(rest.len()));
        bytes = if frames.len() < FORGED_SIZE_MAX { rest } else { &[] };
        let of_guest = matches!(*kind, GUEST_WRITE | GUEST_DATA);
        let payload_size = usize::from(*payload_units) * if of_guest { 512 } else { 4096 };
        let payload = vec![*kind; payload_size];
        let body = with_checksums(*kind, body, &payload);
        let header = Header {
            kind: *kind,
            body_size: body.len() as u32,
            payload_size: payload.len() as u32,
            session: 1,
            sequence: 2,
            stamp: 3,
            token: 4,
            body_checksum: crc32c(&body),
        };
        frames.extend_from_slice(&header.encode(Version::LATEST));
        frames.extend_from_slice(&body);
        frames.extend_from_slice(&payload);
    }
    frames
}

/// The body with the checksums of its payload where its kind has them, so that the fuzzer need not find them.
fn with_checksums(kind: u8, body: &[u8], payload: &[u8]) -> Vec<u8> {
    let fields = match (kind, body) {
        (GUEST_WRITE, _) => 24,
        (GUEST_DATA, [runs, ..]) => 8 + 4 * usize::from(*runs),
        _ => return body.to_vec(),
    };
    let mut body = body[..fields.min(body.len())].to_vec();
    payload.chunks(4096).for_each(|block| body.extend_from_slice(&crc32c(block).to_le_bytes()));
    body
}

/// A hello, then the answer to one of ours, each as it is and with a magic and a checksum that are right.
fn greet(bytes: &[u8]) {
    let mut whole = [0; HELLO_SIZE];
    let size = bytes.len().min(HELLO_SIZE);
    whole[..size].copy_from_slice(&bytes[..size]);
    let right = |magic: &[u8; 8]| {
        let mut right = whole;
        right[..8].copy_from_slice(magic);
        seal(&mut right, 8);
        right
    };
    let node = |host| NodeId { host: HostId(host), shard: 0 };
    let identity = |host| Identity {
        versions: VersionRange::OURS,
        cluster: ClusterId(1),
        node: node(host),
        incarnation: 7,
    };
    let own = identity(2);
    for bytes in [whole, right(b"DRYHELLO")] {
        if let Ok(hello) = Hello::decode(&bytes) {
            assert!(hello.encode() == bytes, "one form for one value");
            let result = hello.accept(&own, |host| host.0 & 1 == 1);
            let concluded = hello.conclude(&hello.answer(&own, &result));
            assert!(concluded.is_ok() == result.is_ok(), "both sides come to the same end");
        }
    }
    let hello = Hello { from: identity(1), receiver: own.node, role: Role::NODE, session: 0 };
    for bytes in [whole, right(b"DRYREPLY")] {
        let _ = hello.conclude(&bytes);
    }
}
