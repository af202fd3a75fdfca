//! The decoder and the queue of frames to send: what is copied, what waits, what is given back.

use super::samples::{answers, buffers, message, requests};
use super::{assert_same, decode, decode_cut, frame, pool};
use crate::limits::{INBOX_SIZE, OUTGOING_SIZE_MAX, PAYLOAD_AT_ONCE};
use crate::{Answer, Decoder, EntryKind, Outgoing, OutgoingFull, Reach, Request, Step, Version};
use base::request::{Piece, Reply, Request as GuestRequest, StatusRun};
use base::{ComponentId, DiskId, Pool, WriteId};

fn write(pool: &Pool, blocks: usize) -> Request {
    Request::Write {
        marks: 0,
        component: ComponentId(1),
        epoch: 1,
        id: WriteId { epoch: 1, sequence: 1 },
        watermark: WriteId::default(),
        kind: EntryKind::Guest(base::RequestTag(7)),
        part: 0,
        block: 0,
        data: buffers(pool, blocks * 4096, 1),
        checksums: (0..blocks as u32).collect(),
    }
}

fn guest_write(pool: &Pool, len: usize) -> Request {
    Request::Guest {
        disk: DiskId(1),
        tag: base::RequestTag(7),
        request: GuestRequest::Write { offset: 0, data: buffers(pool, len, 1) },
    }
}

fn space(decoder: &mut Decoder<Request>) -> (Vec<usize>, Reach) {
    let mut sizes = Vec::new();
    let reach = decoder.space(|slice| sizes.push(slice.len()));
    (sizes, reach)
}

#[test]
fn every_message_comes_back() {
    let pool = pool();
    for (name, body) in requests(&pool) {
        let sent = message(body);
        let found = decode(&frame(&sent), &pool).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        assert_same(&found[0], &sent);
    }
    for (name, body) in answers(&pool) {
        let sent = message(body);
        let found = decode(&frame(&sent), &pool).unwrap();
        assert_eq!(found.len(), 1, "{name}");
        assert_same(&found[0], &sent);
    }
}

#[test]
fn messages_come_back_byte_by_byte() {
    let pool = pool();
    let sent: Vec<_> = answers(&pool).into_iter().map(|(_, body)| message(body)).collect();
    let bytes: Vec<u8> = sent.iter().flat_map(frame).collect();
    let found = decode_cut::<Answer>(&bytes, &[1], &pool).unwrap();
    assert_eq!(found.len(), sent.len());
    found.iter().zip(&sent).for_each(|(found, sent)| assert_same(found, sent));
}

#[test]
fn a_payload_stands_in_aligned_buffers_of_a_mebibyte() {
    let pool = pool();
    let sent = message(guest_write(&pool, (2 << 20) + 1536));
    let found = decode::<Request>(&frame(&sent), &pool).unwrap();
    let Request::Guest { request: GuestRequest::Write { data, .. }, .. } = &found[0].body else {
        panic!("a guest's write comes back as one");
    };
    assert_eq!(data.iter().map(|buffer| buffer.len()).collect::<Vec<_>>(), [1 << 20, 1 << 20, 1536]);
    assert!(data.iter().all(|buffer| (buffer.as_mut_ptr() as usize).is_multiple_of(4096)));
}

#[test]
fn an_announced_payload_is_received_where_it_belongs() {
    let pool = pool();
    let bytes = frame(&message(guest_write(&pool, 3 << 20)));
    let mut decoder = Decoder::<Request>::new(Version::LATEST, pool.clone());
    let mut rest = &bytes[decoder.take(&bytes)..];
    assert!(matches!(decoder.step(), Ok(Step::NeedsBytes)));
    // So much is still to come that it is received alone.
    assert_eq!(
        space(&mut decoder),
        (vec![(1 << 20) - (INBOX_SIZE - 64 - 32 - 4 * 768), 1 << 20, 1 << 20], Reach::All)
    );
    // As a socket would, a part at a time; when little is left, what comes behind it is welcome too.
    while rest.len() >= PAYLOAD_AT_ONCE {
        rest = &rest[decoder.take(&rest[..100_000])..];
    }
    assert_eq!(space(&mut decoder), (vec![rest.len(), INBOX_SIZE], Reach::Any));
    let next = frame(&message(Request::Heartbeat));
    assert_eq!(decoder.take(&[rest, &next].concat()), rest.len() + next.len());
    assert!(matches!(decoder.step(), Ok(Step::Message(_))));
    assert!(matches!(decoder.step(), Ok(Step::Message(found)) if matches!(found.body, Request::Heartbeat)));
    assert!(matches!(decoder.step(), Ok(Step::NeedsBytes)));
}

#[test]
fn a_payload_waits_for_buffers_and_nothing_is_lost() {
    let senders = Pool::new(4 << 20);
    let sent = [message(write(&senders, 256)), message(write(&senders, 3)), message(Request::Heartbeat)];
    let bytes: Vec<u8> = sent.iter().flat_map(frame).collect();
    let pool = Pool::new(32 << 20);
    let mut held: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
    let mut decoder = Decoder::<Request>::new(Version::LATEST, pool.clone());
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    let mut waited = 0;
    while found.len() < sent.len() {
        match decoder.step().unwrap() {
            Step::Message(message) => {
                found.push(message);
                held.extend(pool.take(1 << 20));
            }
            Step::NeedsBytes => rest = &rest[decoder.take(&rest[..rest.len().min(30_000)])..],
            Step::NeedsBuffers(size) => {
                assert!(space(&mut decoder).0.is_empty(), "no more is received than can be kept");
                assert_eq!(decoder.take(rest), 0);
                assert!(size > 0 && matches!(decoder.step(), Ok(Step::NeedsBuffers(_))));
                waited += 1;
                held.pop();
            }
        }
    }
    assert_eq!(waited, 2);
    found.iter().zip(&sent).for_each(|(found, sent)| assert_same(found, sent));
    drop((decoder, found, held));
    assert_eq!(pool.bytes_used(), 0, "all buffers came back");
}

#[test]
fn a_dropped_decoder_gives_its_buffers_back() {
    let pool = pool();
    let bytes = frame(&message(guest_write(&pool, 1 << 20)));
    let mut decoder = Decoder::<Request>::new(Version::LATEST, pool.clone());
    decoder.take(&bytes);
    assert!(matches!(decoder.step(), Ok(Step::NeedsBytes)) && decoder.is_within_message());
    assert_eq!(pool.bytes_used(), 1 << 20);
    drop(decoder);
    assert_eq!(pool.bytes_used(), 0);
}

#[test]
fn pieces_may_be_cut_anew_where_buffers_end_and_their_runs_stay() {
    let pool = pool();
    let mut pieces = base::request::Pieces::new();
    for len in [512, 1 << 20, 3584] {
        pieces.extend(buffers(&pool, len, 1).into_iter().map(Piece::Bytes));
        pieces.push(Piece::Hole(0));
    }
    pieces.push(Piece::Hole(512));
    pieces.push(Piece::Hole(1024));
    let sent = message(Answer::Guest(Ok(Reply::Data(pieces))));
    let bytes = frame(&sent);
    let found = decode::<Answer>(&bytes, &pool).unwrap();
    let Answer::Guest(Ok(Reply::Data(pieces))) = &found[0].body else { panic!("data comes back as data") };
    assert_eq!(pieces.len(), 3, "bytes of two buffers, and a hole");
    assert_same(&found[0], &sent);
    assert_eq!(frame(&found[0]), bytes, "one form for one value");
}

#[test]
fn more_runs_of_allocation_than_may_be_sent_end_in_one_that_promises_nothing() {
    for first in [true, false] {
        for count in [32_767, 32_768, 32_769, 32_770, 100_001] {
            let runs: Vec<StatusRun> =
                (0..count).map(|at| StatusRun { len: 4096, is_set: (at % 2 == 0) == first }).collect();
            let sent = message(Answer::Guest(Ok(Reply::Status(runs.clone()))));
            let found = decode::<Answer>(&frame(&sent), &pool()).unwrap();
            let Answer::Guest(Ok(Reply::Status(found))) = &found[0].body else {
                panic!("runs come back as runs")
            };
            assert_eq!(found.iter().map(|run| run.len).sum::<u64>(), count * 4096);
            if count <= 32_768 {
                assert_eq!(*found, runs);
                continue;
            }
            let (last, named) = found.split_last().unwrap();
            assert!(last.is_set && named.len() >= 32_766);
            assert_eq!(named, &runs[..named.len()]);
        }
    }
}

#[test]
fn what_is_sent_is_what_was_pushed_however_it_is_taken() {
    let pool = pool();
    let mut outgoing = Outgoing::new(Version::LATEST);
    let mut expected = Vec::new();
    let mut sent = Vec::new();
    let mut random = base::Random::new(3);
    let bodies = requests(&pool);
    for round in 0..2000 {
        if round < 1000 {
            let next = message(bodies[random.below(bodies.len() as u64) as usize].1.clone());
            outgoing.push(&next).unwrap();
            expected.extend(frame(&next));
        }
        let n = random.below(20_000) as usize;
        let offered: Vec<u8> = outgoing.send().flatten().copied().take(n).collect();
        if round < 1000 {
            // A push during a send leaves what was given out where it is.
            outgoing.push(&message(Request::Heartbeat)).unwrap();
            expected.extend(frame(&message(Request::Heartbeat)));
        }
        if !offered.is_empty() || !outgoing.is_empty() {
            outgoing.sent(offered.len());
        }
        sent.extend(offered);
        assert_eq!(outgoing.size() as usize, expected.len() - sent.len());
    }
    assert!(sent == expected && outgoing.is_empty());
}

#[test]
fn a_peer_that_takes_nothing_does_not_fill_memory() {
    let pool = pool();
    let mut outgoing = Outgoing::new(Version::LATEST);
    let large = message(guest_write(&pool, 32 << 20));
    let full = std::iter::repeat_with(|| outgoing.push(&large)).take(10).find_map(Result::err);
    assert!(
        matches!(full, Some(OutgoingFull { size }) if (OUTGOING_SIZE_MAX..OUTGOING_SIZE_MAX + (33 << 20)).contains(&size))
    );
}
