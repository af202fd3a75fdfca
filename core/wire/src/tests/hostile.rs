//! What a peer must not send: refused, in bounded memory, and never a panic.

use super::samples::{answers, bytes, message, requests};
use super::{Shown, decode, frame, pool};
use crate::frame::{HEADER_CHECKSUM_AT, HEADER_SIZE, Header};
use crate::{Answer, Body, Decoder, Request, Step, Version, WireError};
use base::checksum::crc32c;
use base::request::Reply;
use base::{Pool, Random};

/// Lets the checksums of header and body match what they cover.
pub(crate) fn seal(frame: &mut [u8]) {
    let size = u32::from_le_bytes(frame[8..12].try_into().unwrap()) as usize;
    let body_checksum = crc32c(&frame[HEADER_SIZE..HEADER_SIZE + size]);
    frame[44..48].copy_from_slice(&body_checksum.to_le_bytes());
    let header_checksum = crc32c(&frame[..HEADER_CHECKSUM_AT]);
    frame[HEADER_CHECKSUM_AT..HEADER_SIZE].copy_from_slice(&header_checksum.to_le_bytes());
}

/// A frame of any kind, body and payload, with checksums that match.
fn forged(kind: u8, body: &[u8], payload: &[u8]) -> Vec<u8> {
    let header = Header {
        kind,
        body_size: body.len() as u32,
        payload_size: payload.len() as u32,
        session: 1,
        sequence: 1,
        stamp: 1,
        token: 1,
        body_checksum: crc32c(body),
    };
    [&header.encode(Version::LATEST), body, payload].concat()
}

fn check<T: Body>(bytes: &[u8], expected: &str) {
    let pool = pool();
    assert_eq!(decode::<T>(bytes, &pool).map(|_| ()).unwrap_err().to_string(), expected);
    assert_eq!(pool.bytes_used(), 0);
}

fn request_named(name: &str) -> Vec<u8> {
    let request = requests(&pool()).into_iter().find(|(found, _)| *found == name).unwrap();
    frame(&message(request.1))
}

fn answer_named(name: &str) -> Vec<u8> {
    let answer = answers(&pool()).into_iter().find(|(found, _)| *found == name).unwrap();
    frame(&message(answer.1))
}

/// Sets bytes of a frame, lets its checksums match and expects a flaw of its body.
fn check_flaw<T: Body>(frame: &[u8], kind: &str, at: usize, bytes: &[u8], flaw: &str) {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    seal(&mut frame);
    check::<T>(&frame, &format!("a {kind} frame makes no sense: {flaw}"));
}

#[test]
fn a_header_that_is_none_is_refused() {
    let good = frame(&message(Request::Heartbeat));
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        seal(&mut bytes);
        bytes
    };
    check::<Request>(&changed(0, b'X'), "no frame begins where one should: magic 0x46595258 was found");
    check::<Request>(&changed(4, 1), "a frame of version 1 on a connection of version 3");
    check::<Request>(&changed(6, 0), "a frame of kind 0 was not expected in this direction");
    check::<Request>(&changed(6, 37), "a frame of kind 37 was not expected in this direction");
    check::<Request>(&changed(6, 129), "a frame of kind 129 was not expected in this direction");
    check::<Answer>(&good, "a frame of kind 1 was not expected in this direction");
    for reserved in [7, 48, 59] {
        check::<Request>(
            &changed(reserved, 1),
            "reserved bytes of a frame's header are set: a newer program may have sent it",
        );
    }
    let mut damaged = good;
    damaged[20] ^= 1;
    let error = decode::<Request>(&damaged, &pool()).map(|_| ()).unwrap_err();
    assert!(matches!(error, WireError::HeaderChecksum { .. }));
}

#[test]
fn a_size_above_the_limit_of_its_kind_is_refused_before_anything_is_set_aside() {
    let header = |kind: u8, body_size: u32, payload_size: u32| {
        let (session, sequence, stamp, token, body_checksum) = (1, 1, 1, 1, 0);
        Header { kind, body_size, payload_size, session, sequence, stamp, token, body_checksum }
            .encode(Version::LATEST)
    };
    check::<Request>(&header(1, 1, 0), "the body of a heartbeat frame is 1 bytes long; 0 are allowed");
    check::<Request>(&header(1, 0, 1), "the payload of a heartbeat frame is 1 bytes long; 0 are allowed");
    check::<Request>(
        &header(4, 1081, 4096),
        "the body of a write frame is 1081 bytes long; 1080 are allowed",
    );
    check::<Request>(
        &header(4, 1080, (1 << 20) + 1),
        "the payload of a write frame is 1048577 bytes long; 1048576 are allowed",
    );
    check::<Request>(
        &header(13, u32::MAX, u32::MAX),
        "the body of a guest write frame is 4294967295 bytes long; 32800 are allowed",
    );
    check::<Request>(
        &header(13, 32, u32::MAX),
        "the payload of a guest write frame is 4294967295 bytes long; 33554432 are allowed",
    );
    check::<Answer>(
        &header(134, (320 << 10) + 1, 0),
        "the body of a guest data frame is 327681 bytes long; 327680 are allowed",
    );
}

#[test]
fn a_body_that_is_too_short_or_too_long_is_refused() {
    fn check_sizes<T: Shown>(samples: Vec<(&str, T)>) {
        for (name, body) in samples {
            let payload_size = body.payload().size();
            let sent = frame(&message(body));
            let (head, payload) = sent.split_at(sent.len() - payload_size);
            let fields = &head[HEADER_SIZE..];
            for size in (0..fields.len()).chain([fields.len() + 1, fields.len() + 4]) {
                let mut other = fields.to_vec();
                other.resize(size, 0);
                let error = decode::<T>(&forged(head[6], &other, payload), &pool()).map(|_| ()).unwrap_err();
                let expected = matches!(
                    error,
                    WireError::Body { .. } | WireError::BodySize { .. } | WireError::PayloadChecksum { .. }
                );
                assert!(expected, "{name} of {size} bytes: {error}");
            }
        }
    }
    check_sizes(requests(&pool()));
    check_sizes(answers(&pool()));
}

#[test]
fn a_payload_that_does_not_belong_to_its_body_is_refused() {
    let contradiction = "its data and the number of its checksums contradict each other";
    for (kind, sent) in
        [("write", request_named("write of a guest")), ("write", request_named("write of a copy"))]
    {
        for size in [0, 4095, 4096 * 3] {
            let body = &sent[HEADER_SIZE..HEADER_SIZE + sent[8] as usize];
            check::<Request>(
                &forged(sent[6], body, &vec![0; size]),
                &format!("a {kind} frame makes no sense: {contradiction}"),
            );
        }
    }
    let sent = answer_named("data");
    let body = &sent[HEADER_SIZE..HEADER_SIZE + sent[8] as usize];
    check::<Answer>(
        &forged(sent[6], body, &[0; 4096]),
        "a data frame makes no sense: its runs have more bytes than its payload",
    );
    check::<Answer>(
        &forged(sent[6], body, &[0; 4096 * 3]),
        "a data frame makes no sense: its payload has more bytes than its runs",
    );
}

#[test]
fn fields_that_make_no_sense_are_refused() {
    let at = |field: usize| HEADER_SIZE + field;
    let write = request_named("write of a guest");
    let one_part = "its blocks do not lie within one part";
    check_flaw::<Request>(&write, "write", at(40), &255u16.to_le_bytes(), one_part);
    check_flaw::<Request>(&write, "write", at(40), &u16::MAX.to_le_bytes(), one_part);
    check_flaw::<Request>(&write, "write", at(44), &[0], "it is for no known purpose");
    check_flaw::<Request>(&write, "write", at(44), &[2], "it is for no known purpose"); // A copy has no tag.
    check_flaw::<Request>(&write, "write", at(46), &[1], "reserved bytes are set");
    let lengths = "a list's length and that of the body contradict each other";
    check_flaw::<Request>(&write, "write", at(42), &3u16.to_le_bytes(), lengths);
    check_flaw::<Request>(&write, "write", at(42), &257u16.to_le_bytes(), "a list is longer than allowed");
    let trim = request_named("trim");
    check_flaw::<Request>(&trim, "trim", at(42), &257u16.to_le_bytes(), one_part);
    check_flaw::<Request>(&trim, "trim", at(40), &1u16.to_le_bytes(), one_part);
    let read = request_named("read");
    check_flaw::<Request>(&read, "read", at(18), &2u16.to_le_bytes(), one_part);
    check_flaw::<Request>(&request_named("settle"), "settle", at(24), &[2], "a flag is neither 0 nor 1");
    let create = request_named("create");
    check_flaw::<Request>(&create, "create", at(56), &769u16.to_le_bytes(), "a list is longer than allowed");
    let sectors = "its range does not begin or end with a sector";
    let guest_read = request_named("guest read");
    check_flaw::<Request>(&guest_read, "guest read", at(24), &1u64.to_le_bytes(), sectors);
    check_flaw::<Request>(&guest_read, "guest read", at(32), &511u32.to_le_bytes(), sectors);
    let larger = "it is larger than a guest's request may be";
    check_flaw::<Request>(&guest_read, "guest read", at(32), &((32u32 << 20) + 512).to_le_bytes(), larger);
    let beyond = "its range reaches beyond the largest disk";
    check_flaw::<Request>(&guest_read, "guest read", at(24), &(64u64 << 40).to_le_bytes(), beyond);
    let trim = request_named("guest trim");
    check_flaw::<Request>(&trim, "guest trim", at(24), &(!511u64).to_le_bytes(), beyond);
}

/// What is asked of snapshots, and given to them, of which the receiver relies on the numbers and on as many checksums as there are blocks.
#[test]
fn requests_about_snapshots_that_make_no_sense_are_refused() {
    let at = |field: usize| HEADER_SIZE + field;
    let none = "no snapshot has the number 0";
    for (name, kind) in [
        ("late snapshot", "late snapshot"),
        ("backfill of holes", "backfill"),
        ("backfill synchronization", "backfill synchronization"),
    ] {
        check_flaw::<Request>(&request_named(name), kind, at(12), &[0; 4], none);
    }
    let backfill = request_named("backfill");
    let one_part = "its blocks do not lie within one part";
    check_flaw::<Request>(&backfill, "backfill", at(20), &255u16.to_le_bytes(), one_part);
    check_flaw::<Request>(&backfill, "backfill", at(20), &u16::MAX.to_le_bytes(), one_part);
    let lengths = "a list's length and that of the body contradict each other";
    check_flaw::<Request>(&backfill, "backfill", at(22), &3u16.to_le_bytes(), lengths);
    check_flaw::<Request>(&backfill, "backfill", at(22), &0u16.to_le_bytes(), lengths);
    let longer = "a list is longer than allowed";
    check_flaw::<Request>(&backfill, "backfill", at(22), &257u16.to_le_bytes(), longer);
    let newer = "the other snapshot is no newer one";
    check_flaw::<Request>(&backfill, "backfill", at(24), &[1, 0, 0, 0], newer);
    // Blocks that come are no holes, nor the other way round.
    check_flaw::<Request>(&backfill, "backfill", at(28), &[1], lengths);
    check_flaw::<Request>(&backfill, "backfill", at(28), &[2], "a flag is neither 0 nor 1");
    check_flaw::<Request>(&backfill, "backfill", at(29), &[1], "reserved bytes are set");
    let layer = "it is for another layer than the content";
    check_flaw::<Request>(&backfill, "backfill", at(19), &[1], layer);
    let body = &backfill[HEADER_SIZE..HEADER_SIZE + backfill[8] as usize];
    let contradiction = "its data and the number of its checksums contradict each other";
    for size in [4096, 3 * 4096] {
        let sent = forged(backfill[6], body, &vec![0; size]);
        check::<Request>(&sent, &format!("a backfill frame makes no sense: {contradiction}"));
    }
    let holes = request_named("backfill of holes");
    check_flaw::<Request>(&holes, "backfill", at(28), &[0], lengths);
    check_flaw::<Request>(&holes, "backfill", at(22), &0u16.to_le_bytes(), one_part);
    let body = &holes[HEADER_SIZE..HEADER_SIZE + holes[8] as usize];
    check::<Request>(
        &forged(holes[6], body, &[0; 8192]),
        "a backfill frame makes no sense: its blocks and the number of its checksums contradict each other",
    );
}

/// A component without identity, or of a size that none may have, was made, and damaged the log of its group for the next start.
#[test]
fn a_component_that_cannot_be_is_refused() {
    let create = request_named("create");
    let size = |size: u64| {
        let bytes = size.to_le_bytes();
        check_flaw::<Request>(
            &create,
            "create",
            64 + 40,
            &bytes,
            "the component's size is none that a component may have",
        );
    };
    check_flaw::<Request>(&create, "create", 64, &[0; 8], "the component has no identity");
    [0, 4096, (1 << 20) + 512, 256 << 30, u64::MAX].into_iter().for_each(size);
    let flaw = "more is to be set aside for the component than it has";
    check_flaw::<Request>(&create, "create", 64 + 48, &u64::MAX.to_le_bytes(), flaw);
}

#[test]
fn answers_that_make_no_sense_are_refused() {
    let at = |field: usize| HEADER_SIZE + field;
    let opened = answer_named("opened with entries");
    check_flaw::<Answer>(&opened, "opened", at(16), &[0xff; 4], "its entries are not in ascending order");
    check_flaw::<Answer>(&opened, "opened", at(12), &4609u32.to_le_bytes(), "a list is longer than allowed");
    check_flaw::<Answer>(
        &opened,
        "opened",
        at(32),
        &4u16.to_le_bytes(),
        "its blocks do not lie within one part",
    );
    let data = answer_named("data");
    let run = "a run is empty or like the one before it";
    check_flaw::<Answer>(&data, "data", at(8), &[0; 4], run);
    check_flaw::<Answer>(&data, "data", at(12), &0x2000u32.to_le_bytes(), run);
    let room = "it has more runs than its body has room for";
    check_flaw::<Answer>(&data, "data", at(0), &[0xff; 4], room);
    let more = "its blocks are none or more than a part has";
    check_flaw::<Answer>(&data, "data", at(12), &(0x8000_0000u32 | (1 << 20)).to_le_bytes(), more);
    let unit = "a piece of it is no whole number of units";
    check_flaw::<Answer>(&data, "data", at(12), &0x8000_0200u32.to_le_bytes(), unit);
    let changed = answer_named("changed");
    check_flaw::<Answer>(&changed, "changed", at(0), &513u32.to_le_bytes(), "it has too many parts");
    let order = "its parts are not in ascending order";
    check_flaw::<Answer>(&changed, "changed", at(16), &u32::MAX.to_le_bytes(), order);
    let form = "the versions of a part have no known form";
    check_flaw::<Answer>(&changed, "changed", at(20), &[0], form);
    check_flaw::<Answer>(&changed, "changed", at(4), &[0; 4], "it would go on before its own end");
    let end = answer_named("changed at its end");
    check_flaw::<Answer>(&end, "changed", at(4), &[1], "it is at its end and names where to go on");
    let status = answer_named("guest status");
    check_flaw::<Answer>(
        &status,
        "guest status",
        at(0),
        &32769u32.to_le_bytes(),
        "a list is longer than allowed",
    );
    check_flaw::<Answer>(&status, "guest status", at(8), &[0; 8], "a run is empty");
    check_flaw::<Answer>(&status, "guest status", at(23), &[0x80], "neighbouring runs do not differ");
    let snapshots = answer_named("snapshots");
    check_flaw::<Answer>(
        &snapshots,
        "snapshots",
        at(0),
        &513u32.to_le_bytes(),
        "a list is longer than allowed",
    );
    let order = "its snapshots are not numbered in their order from 1 on";
    check_flaw::<Answer>(&snapshots, "snapshots", at(8), &[0; 4], order);
    check_flaw::<Answer>(&snapshots, "snapshots", at(12), &[1], order);
    let failed = answer_named("guest damaged");
    check_flaw::<Answer>(&failed, "guest failure", at(0), &[7], "it failed for no known reason");
    let refused = answer_named("busy");
    check_flaw::<Answer>(&refused, "refused", at(0), &[13], "it is refused for no known reason");
    check_flaw::<Answer>(&refused, "refused", at(4), &[1], "it names an epoch and is not for one");
}

#[test]
fn damaged_data_of_a_guest_is_refused_and_that_of_a_component_is_passed_on() {
    let mut guest = request_named("guest write");
    let payload = guest.len() - 4608;
    guest[payload + 4096] ^= 1;
    check::<Request>(&guest, "the payload of a guest write frame is damaged in its block 1");
    guest[payload] ^= 1;
    check::<Request>(&guest, "the payload of a guest write frame is damaged in its block 0");
    let mut data = answer_named("guest data");
    let last = data.len() - 1;
    data[last] ^= 1;
    check::<Answer>(&data, "the payload of a guest data frame is damaged in its block 1");
    // Whoever stores or reads the block compares it with the checksum that came with it, end to end.
    let mut write = request_named("write of a guest");
    let last = write.len() - 1;
    write[last] ^= 1;
    assert!(decode::<Request>(&write, &pool()).is_ok());
}

#[test]
fn after_an_error_nothing_comes_any_more() {
    let pool = pool();
    let mut decoder = Decoder::<Request>::new(Version::LATEST, pool.clone());
    let good = frame(&message(Request::Heartbeat));
    decoder.take(&[&good[..], &[0; 64], &good[..]].concat());
    assert!(matches!(decoder.step(), Ok(Step::Message(_))));
    let error = decoder.step().map(|_| ()).unwrap_err();
    assert_eq!(error, WireError::Magic { found: 0 });
    assert_eq!(decoder.take(&good), 0);
    assert_eq!(decoder.step().map(|_| ()).unwrap_err(), error);
}

#[test]
fn the_longest_bodies_are_taken() {
    let pool = Pool::new(100 << 20);
    let mut pieces = base::request::Pieces::new();
    // Every other sector is a hole: as many runs as there can be.
    let data = bytes(&pool, 1 << 20, 0);
    for at in 0..32 << 10 {
        let base::request::Piece::Bytes(buffer) = &data[0] else { panic!("it is bytes") };
        pieces.push(base::request::Piece::Bytes(buffer.slice(at % 2048 * 512, 512)));
        pieces.push(base::request::Piece::Hole(512));
    }
    let sent = message(Answer::Guest(Ok(Reply::Data(pieces))));
    let bytes = frame(&sent);
    super::assert_same(&super::decode_cut::<Answer>(&bytes, &[70_000, 1], &pool).unwrap()[0], &sent);
}

#[test]
fn random_bytes_are_refused_and_memory_stays_bounded() {
    let mut random = Random::new(11);
    let pool = Pool::new(64 << 20);
    for _ in 0..2000 {
        let mut decoder = Decoder::<Request>::new(Version::LATEST, pool.clone());
        let mut body = vec![0; random.below(200) as usize];
        body.iter_mut().for_each(|byte| *byte = random.below(4) as u8);
        let payload = vec![0; [0, 512, 4096, 8192][random.below(4) as usize]];
        let bytes = forged(random.below(20) as u8, &body, &payload);
        let mut rest = &bytes[..];
        while let Ok(step) = decoder.step() {
            if rest.is_empty() && matches!(step, Step::NeedsBytes) {
                break;
            }
            rest = &rest[decoder.take(rest)..];
            assert!(pool.bytes_used() <= 32 << 20);
        }
        drop(decoder);
        assert_eq!(pool.bytes_used(), 0);
    }
}
