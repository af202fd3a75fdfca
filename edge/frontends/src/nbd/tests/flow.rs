//! How bytes flow: any cut of the stream means the same, steady streams are not copied, limits hold, connections break.

use super::*;
use crate::limits::{BACKLOG_MAX, PAYLOAD_OUTSTANDING_MAX, REQUESTS_MAX};

/// A random conversation after the handshake: mixed requests, with streams of equal writes among them.
fn script(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = Vec::new();
    for cookie in 0..random.range(5..80) {
        let blocks = (DISK_SIZE / 512) as u64;
        let offset = random.below(blocks) * 512;
        let len = (random.range(1..64) * 512).min(DISK_SIZE as u64 - offset) as u32;
        match random.below(10) {
            0..=2 => {
                let size = [512, 4096, 8192, 20_480][random.below(4) as usize];
                for index in 0..random.range(1..20) {
                    bytes.extend(write(cookie << 8 | index, index * 20_480, &pattern(seed ^ index, size)));
                }
            }
            3 => bytes.extend(write(cookie << 8, offset, &pattern(cookie, len as usize))),
            4 => bytes.extend(write(cookie << 8, 1, &pattern(cookie, len as usize))),
            5 => bytes.extend(request(command::TRIM, 0, cookie << 8, offset, len)),
            6 => bytes.extend(request(command::FLUSH, 0, cookie << 8, 0, 0)),
            7 => bytes.extend(request(command::BLOCK_STATUS, 0, cookie << 8, offset, len)),
            _ => bytes.extend(request(command::READ, 0, cookie << 8, offset, len)),
        }
    }
    bytes
}

/// Replies to different requests may come in any order: a refusal overtakes what the disk does.
fn by_cookie(sent: &[u8]) -> Vec<Answer> {
    let mut found = answers(sent);
    found.sort_by_key(|answer| match answer {
        Answer::Simple { cookie, .. } | Answer::Chunk { cookie, .. } => *cookie,
    });
    found
}

#[test]
fn any_cut_of_the_stream_gives_the_same_requests_and_replies() {
    for seed in 0..60 {
        let bytes = script(seed);
        let mut whole = Wire::attached(true);
        assert_eq!(whole.say(&bytes), bytes.len());
        for cut in 0..4 {
            let mut wire = Wire::new(TlsPolicy::Off);
            wire.step = Step::Random(Random::new(seed << 8 | cut));
            wire.attach(true);
            assert_eq!(wire.say(&bytes), bytes.len());
            wire.settle();
            assert_eq!(wire.log, whole.log, "seed {seed} cut {cut}");
            assert!(by_cookie(&wire.sent) == by_cookie(&whole.sent), "replies differ: seed {seed} cut {cut}");
            assert!(wire.disk == whole.disk, "disks differ: seed {seed} cut {cut}");
        }
    }
}

#[test]
fn a_stream_of_equal_writes_is_not_copied() {
    for (size, per_receive) in [(512, 1), (4096, 1), (4096, 32), (12_288, 3), (65_536, 4), (1 << 20, 1)] {
        let mut wire = Wire::attached(true);
        let mut stream = |count: u64| {
            for _ in 0..count {
                let mut bytes = Vec::new();
                for index in 0..per_receive {
                    bytes.extend(write(index, 0, &pattern(index, size)));
                }
                wire.say(&bytes);
            }
            wire.session.counters().copied_bytes
        };
        let warm = stream(10);
        assert_eq!(stream(50), warm, "{size} bytes, {per_receive} at once");
        assert_eq!(wire.disk[..size], pattern(per_receive - 1, size));
    }
}

#[test]
fn a_stream_of_equal_writes_cut_anywhere_is_hardly_copied() {
    let mut wire = Wire::attached(true);
    let bytes: Vec<u8> = (0..200).flat_map(|index| write(index, 0, &pattern(index, 4096))).collect();
    wire.say(&bytes[..40 * 4124]);
    let warm = wire.session.counters().copied_bytes;
    wire.step = Step::Random(Random::new(5));
    wire.say(&bytes[40 * 4124..]);
    assert_eq!(wire.session.counters().copied_bytes, warm);
    assert_eq!(wire.log.len(), 200);
}

#[test]
fn a_wrong_guess_costs_a_copy_and_nothing_else() {
    let mut wire = Wire::attached(true);
    let mut bytes: Vec<u8> =
        (0..6).flat_map(|index| write(index, index * 4096, &pattern(index, 4096))).collect();
    wire.say(&bytes);
    let warm = wire.session.counters().copied_bytes;
    bytes = write(6, 0, &pattern(6, 4096));
    bytes.extend(request(command::READ, 0, 7, 4096, 4096));
    bytes.extend(write(8, 8192, &pattern(8, 8192)));
    assert_eq!(wire.say(&bytes), bytes.len());
    let copied = wire.session.counters().copied_bytes - warm;
    assert!(copied > 0 && copied <= 2 * bytes.len() as u64);
    assert_eq!(wire.log.len(), 9);
    assert_eq!(wire.disk[8192..16384], pattern(8, 8192));
}

#[test]
fn a_client_has_a_bounded_number_of_requests_under_way() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    let bytes: Vec<u8> = (0..600).flat_map(|cookie| request(command::READ, 0, cookie, 0, 512)).collect();
    let taken = wire.say(&bytes);
    assert_eq!(wire.waiting.len(), REQUESTS_MAX);
    assert!(taken < bytes.len() && !wire.session.wants_receive());
    // Answered, they make room: nothing is lost.
    let mut rest = &bytes[taken..];
    while !rest.is_empty() || !wire.waiting.is_empty() {
        wire.answer_all();
        wire.settle();
        let n = wire.say(rest);
        rest = &rest[n..];
    }
    let cookies: Vec<u64> = errors(&wire.sent).into_iter().map(|(cookie, _)| cookie).collect();
    assert_eq!(cookies, (0..600).collect::<Vec<_>>());
}

#[test]
fn a_client_has_a_bounded_amount_of_payload_under_way() {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.export.size = 1 << 30;
    wire.attach(true);
    wire.held = true;
    let bytes: Vec<u8> = (0..10).flat_map(|cookie| request(command::READ, 0, cookie, 0, 16 << 20)).collect();
    wire.say(&bytes);
    assert_eq!(wire.waiting.len() as u64, PAYLOAD_OUTSTANDING_MAX / (16 << 20));
    let (cookie, _) = wire.waiting.remove(0);
    wire.session.reply(cookie, Err(base::request::RequestError::Damaged));
    wire.settle();
    assert_eq!(wire.waiting.len() as u64, PAYLOAD_OUTSTANDING_MAX / (16 << 20));
}

/// Takes bytes without ever sending a reply; gives how many it took.
fn say_unheard(wire: &mut Wire, mut bytes: &[u8]) -> usize {
    let before = bytes.len();
    while !bytes.is_empty() && wire.session.wants_receive() {
        let (mut vectors, mut events) = (Vec::new(), Vec::new());
        wire.session.receive_vectors(&mut vectors);
        let n = scatter(&vectors, bytes);
        bytes = &bytes[n..];
        wire.session.received(n, &mut events);
        wire.handle(events);
    }
    before - bytes.len()
}

#[test]
fn a_client_that_reads_no_replies_is_not_listened_to() {
    let mut wire = Wire::attached(true);
    let bytes: Vec<u8> = (0..100_000).flat_map(|cookie| request(command::READ, 0, cookie, 1, 1)).collect();
    let taken = say_unheard(&mut wire, &bytes);
    assert!(taken < 4 * BACKLOG_MAX, "{taken} bytes taken");
    wire.settle();
    wire.say(&bytes[taken..]);
    assert_eq!(errors(&wire.sent).len(), 100_000);

    let mut wire = Wire::new(TlsPolicy::Off);
    wire.say(&3u32.to_be_bytes());
    let bytes: Vec<u8> = (0..4000).flat_map(|_| option(99, &[1; 1000])).collect();
    assert!(say_unheard(&mut wire, &bytes) < 30 * BACKLOG_MAX);
}

#[test]
fn a_write_waits_while_the_pool_is_empty_and_then_goes_on() {
    let mut wire = Wire::attached(true);
    let mut all = Vec::new();
    while let Some(buffer) = wire.pool.take(1 << 20) {
        all.push(buffer);
    }
    let bytes = write(1, 0, &pattern(1, 8192));
    let taken = wire.say(&bytes);
    assert!(wire.session.wants_buffers() && !wire.session.wants_receive());
    all.clear();
    wire.settle();
    assert!(!wire.session.wants_buffers());
    wire.say(&bytes[taken..]);
    assert_eq!(wire.log.len(), 1);
    assert_eq!(wire.disk[..8192], pattern(1, 8192));
}

#[test]
fn all_buffers_go_back_to_the_pool() {
    for seed in 0..20 {
        let mut wire = Wire::attached(true);
        let bytes = script(seed);
        let mut random = Random::new(seed);
        wire.held = random.chance(1, 2);
        wire.say(&bytes[..random.below(bytes.len() as u64) as usize]);
        wire.session.lost();
        assert_eq!(wire.session.is_finished(), wire.waiting.is_empty());
        wire.answer_all();
        assert!(wire.session.is_finished());
        let pool = wire.pool.clone();
        drop(wire);
        assert_eq!(pool.bytes_used(), 0, "seed {seed}");
    }
}

#[test]
fn a_connection_that_breaks_keeps_memory_in_place_until_the_kernel_is_done() {
    let mut wire = Wire::attached(true);
    wire.disk[..4096].fill(9);
    let bytes: Vec<u8> = (0..6).flat_map(|index| write(index, 8192, &pattern(index, 4096))).collect();
    wire.say(&bytes);
    wire.held = true;
    wire.say(&request(command::READ, 0, 1, 0, 4096));
    wire.answer_all();
    let (mut sending, mut receiving, mut events) = (Vec::new(), Vec::new(), Vec::new());
    wire.session.transmit_vectors(&mut sending);
    wire.session.receive_vectors(&mut receiving);
    wire.session.lost();
    assert!(!wire.session.wants_receive() && !wire.session.wants_transmit());
    // The kernel may still read and write there.
    let mut sent = Vec::new();
    gather(&sending, usize::MAX, &mut sent);
    assert!(sent.ends_with(&[9; 4096]));
    scatter(&receiving, &write(9, 0, &[1; 4096]));
    assert!(!wire.session.is_finished(), "a send is under way");
    wire.session.transmitted(0, &mut events);
    wire.session.received(4124, &mut events);
    assert!(events.is_empty() && wire.session.is_finished());
}

#[test]
fn a_peer_that_closes_still_gets_its_replies() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    wire.say(&request(command::READ, 0, 1, 0, 512));
    let (mut vectors, mut events) = (Vec::new(), Vec::new());
    wire.session.receive_vectors(&mut vectors);
    wire.session.received(0, &mut events);
    assert!(!wire.session.is_finished() && !wire.session.wants_receive());
    wire.answer_all();
    wire.settle();
    assert_eq!(errors(&wire.sent), [(1, 0)]);
    assert!(wire.session.is_finished());
}

#[test]
fn an_interrupted_receive_loses_nothing() {
    let mut wire = Wire::attached(true);
    let bytes: Vec<u8> =
        (0..20).flat_map(|index| write(index, index * 4096, &pattern(index, 4096))).collect();
    // In the middle of a header while writes are expected, of a payload, and of a header when nothing is.
    for (from, to) in
        [(0, 10), (10, 2_000), (2_000, 8 * 4124 + 5), (8 * 4124 + 5, 9 * 4124), (9 * 4124, bytes.len())]
    {
        assert_eq!(wire.say(&bytes[from..to]), to - from);
        let mut vectors = Vec::new();
        wire.session.receive_vectors(&mut vectors);
        wire.session.interrupted();
    }
    assert_eq!(wire.log.len(), 20);
    assert!((0..20).all(|index| wire.disk[index * 4096..][..4096] == pattern(index as u64, 4096)));
}

#[test]
fn silent_clients_leave_half_of_the_pool_to_others() {
    let pool = Pool::new(64 << 20);
    let mut wires = Vec::new();
    let bytes = write(0, 0, &pattern(0, DISK_SIZE));
    for _ in 0..60 {
        let mut wire = Wire::new(TlsPolicy::Off);
        wire.pool = pool.clone();
        wire.session = Session::new(TlsPolicy::Off, pool.clone());
        wire.attach(true);
        for _ in 0..8 {
            wire.say(&bytes);
        }
        let mut vectors = Vec::new();
        wire.session.receive_vectors(&mut vectors);
        assert_eq!(wire.log.len(), 8);
        wires.push(wire);
    }
    assert!(pool.bytes_used() <= pool.bytes_max() / 2 + (1 << 20), "{pool:?}");
}
