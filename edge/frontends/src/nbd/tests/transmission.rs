//! Requests and replies.

use super::*;
use base::request::RequestError;

/// Says one request without payload to an attached wire and gives the errors of the answers.
fn ask(structured: bool, read_only: bool, bytes: &[u8]) -> Vec<(u64, u32)> {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.export.read_only = read_only;
    wire.attach(structured);
    wire.say(bytes);
    assert!(!wire.session.is_finished(), "a request that is refused does not end the connection");
    wire.say(&request(command::FLUSH, 0, 1000, 0, 0));
    let mut found = errors(&wire.sent);
    assert_eq!(found.pop(), Some((1000, 0)), "the connection goes on in step");
    found
}

#[test]
fn what_is_written_is_read_again() {
    for structured in [false, true] {
        let mut wire = Wire::attached(structured);
        let data = pattern(1, 70_000 / 512 * 512);
        wire.say(&write(1, 1024, &data));
        wire.say(&request(command::READ, command_flag::FUA, 2, 1024, data.len() as u32));
        assert_eq!(wire.disk[1024..1024 + data.len()], data);
        let mut take = Take(&wire.sent);
        assert_eq!((take.u32(), take.u32(), take.u64()), (SIMPLE_REPLY_MAGIC, 0, 1));
        if !structured {
            assert_eq!((take.u32(), take.u32(), take.u64()), (SIMPLE_REPLY_MAGIC, 0, 2));
            assert_eq!(take.0, data);
            continue;
        }
        let mut payload = 1024u64.to_be_bytes().to_vec();
        payload.extend_from_slice(&data);
        let chunk = Answer::Chunk { cookie: 2, done: true, kind: chunk::OFFSET_DATA, payload };
        assert_eq!(answers(take.0), [chunk]);
    }
}

#[test]
fn holes_are_told_as_holes_unless_the_client_wants_one_piece() {
    let mut wire = Wire::attached(true);
    wire.disk[4096..8192].fill(7);
    wire.disk[8192..12288].fill(8);
    wire.say(&request(command::READ, 0, 1, 0, 16384));
    let hole = |offset: u64| [&offset.to_be_bytes()[..], &4096u32.to_be_bytes()].concat();
    let data = [&4096u64.to_be_bytes()[..], &[7; 4096], &[8; 4096]].concat();
    let part = |done, kind, payload| Answer::Chunk { cookie: 1, done, kind, payload };
    assert_eq!(
        answers(&wire.sent),
        [
            part(false, chunk::OFFSET_HOLE, hole(0)),
            part(false, chunk::OFFSET_DATA, data),
            part(true, chunk::OFFSET_HOLE, hole(12288)),
        ]
    );
    wire.sent.clear();
    wire.say(&request(command::READ, command_flag::DF, 2, 0, 16384));
    let whole = [&0u64.to_be_bytes()[..], &[0; 4096], &[7; 4096], &[8; 4096], &[0; 4096]].concat();
    assert_eq!(
        answers(&wire.sent),
        [Answer::Chunk { cookie: 2, done: true, kind: chunk::OFFSET_DATA, payload: whole }]
    );
}

#[test]
fn a_simple_reply_spells_out_its_holes() {
    let mut wire = Wire::attached(false);
    wire.disk[512..1024].fill(1);
    wire.say(&request(command::READ, 0, 1, 0, DISK_SIZE as u32));
    assert_eq!(wire.sent[16..], wire.disk);
}

#[test]
fn requests_are_handed_out_as_they_were_meant() {
    let mut wire = Wire::attached(true);
    for (bytes, log) in [
        (request(command::READ, 0, 0, 512, 1024), "Read { offset: 512, len: 1024 }"),
        (request(command::FLUSH, 0, 0, 0, 0), "Flush"),
        (request(command::TRIM, command_flag::FUA, 0, 4096, 8192), "Trim { offset: 4096, len: 8192 }"),
        (
            request(command::WRITE_ZEROES, command_flag::FAST_ZERO, 0, 0, 512),
            "WriteZeroes { offset: 0, len: 512, allocate: false }",
        ),
        (
            request(command::WRITE_ZEROES, command_flag::NO_HOLE, 0, 0, 512),
            "WriteZeroes { offset: 0, len: 512, allocate: true }",
        ),
        (request(command::BLOCK_STATUS, 0, 0, 0, 1 << 20), "Status { of: Disk, offset: 0, len: 1048576 }"),
    ] {
        wire.log.clear();
        wire.say(&bytes);
        assert_eq!(wire.log, [log]);
    }
}

#[test]
fn what_needs_no_disk_is_answered_at_once() {
    for bytes in [
        request(command::CACHE, 0, 5, 0, 1 << 20),
        request(command::READ, 0, 5, 0, 0),
        request(command::WRITE, 0, 5, 0, 0),
        request(command::TRIM, 0, 5, 512, 0),
        request(command::WRITE_ZEROES, 0, 5, DISK_SIZE as u64, 0),
    ] {
        for structured in [false, true] {
            assert_eq!(ask(structured, false, &bytes), [(5, 0)], "{bytes:?}");
        }
    }
}

#[test]
fn requests_that_make_no_sense_are_refused_by_the_errors_of_the_specification() {
    let size = DISK_SIZE as u64;
    let mut large = request(command::WRITE, 0, 7, 0, (32 << 20) + 512);
    large.resize(large.len() + (32 << 20) + 512, 1);
    for (bytes, error) in [
        (request(command::READ, 0, 7, size, 512), 22),
        (request(command::READ, 0, 7, u64::MAX - 511, 512), 22),
        (request(command::READ, 0, 7, 1, 512), 22),
        (request(command::READ, 0, 7, 0, 100), 22),
        (request(command::READ, 0, 7, 0, (32 << 20) + 512), 22),
        (request(command::READ, 0, 7, 0, u32::MAX), 22),
        (request(command::READ, command_flag::NO_HOLE, 7, 0, 512), 22),
        (request(command::READ, 1 << 9, 7, 0, 512), 22),
        (write(7, size - 512, &[1; 1024]), 28),
        (write(7, 1, &[1; 512]), 22),
        (write(7, 0, &[1; 100]), 22),
        (large, 22),
        (request(command::TRIM, 0, 7, size - 512, 1024), 22),
        (request(command::WRITE_ZEROES, 0, 7, size - 512, 1024), 28),
        (request(command::WRITE_ZEROES, command_flag::FAST_ZERO | command_flag::NO_HOLE, 7, 0, 512), 95),
        (request(command::WRITE_ZEROES, command_flag::DF, 7, 0, 512), 22),
        (request(command::CACHE, 0, 7, size, 512), 22),
        (request(command::BLOCK_STATUS, 0, 7, size, 512), 22),
        (request(command::BLOCK_STATUS, 0, 7, 0, 0), 22),
        (request(command::FLUSH, 0, 7, 512, 0), 22),
        (request(8, 0, 7, 0, 0), 22),
        (request(u16::MAX, 0, 7, 0, 0), 22),
    ] {
        for structured in [false, true] {
            assert_eq!(ask(structured, false, &bytes), [(7, error)], "{:?}", &bytes[..28]);
        }
    }
    assert_eq!(ask(false, false, &request(command::READ, command_flag::DF, 7, 0, 512)), [(7, 22)]);
    assert_eq!(ask(false, false, &request(command::BLOCK_STATUS, 0, 7, 0, 512)), [(7, 22)]);
}

#[test]
fn a_read_only_disk_refuses_what_would_change_it() {
    for bytes in [
        write(7, 0, &[1; 512]),
        request(command::TRIM, 0, 7, 0, 512),
        request(command::WRITE_ZEROES, 0, 7, 0, 512),
    ] {
        assert_eq!(ask(true, true, &bytes), [(7, 1)]);
    }
    assert_eq!(ask(true, true, &request(command::FLUSH, 0, 7, 0, 0)), [(7, 0)]);
}

#[test]
fn failures_of_the_disk_become_errors_with_a_text() {
    for (failure, error, error_of_write) in [
        (RequestError::NoSpace, 28, 28),
        (RequestError::Damaged, 5, 5),
        (RequestError::DeviceLost, 5, 5),
        (RequestError::Stopping, 108, 108),
        (RequestError::OutOfRange, 22, 28),
    ] {
        for structured in [false, true] {
            let mut wire = Wire::attached(structured);
            wire.held = true;
            wire.say(&request(command::READ, 0, 1, 0, 512));
            wire.say(&write(2, 0, &[1; 512]));
            for (cookie, _) in std::mem::take(&mut wire.waiting) {
                wire.session.reply(cookie, Err(failure));
            }
            wire.settle();
            assert_eq!(errors(&wire.sent), [(1, error), (2, error_of_write)]);
            if let [Answer::Chunk { payload, .. }, ..] = &answers(&wire.sent)[..] {
                assert_eq!(payload[6..], *failure.to_string().as_bytes());
                assert!(structured);
            }
        }
    }
}

#[test]
fn answers_may_come_in_any_order() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    for cookie in 0..10 {
        wire.say(&request(command::READ, 0, cookie, cookie * 512, 512));
    }
    wire.waiting.reverse();
    wire.answer_all();
    wire.settle();
    let cookies: Vec<u64> = errors(&wire.sent).into_iter().map(|(cookie, _)| cookie).collect();
    assert_eq!(cookies, (0..10).rev().collect::<Vec<_>>());
}

/// The descriptors in the answer to a question about allocation.
fn status(flags: u16, len: u32, runs: Vec<StatusRun>) -> Vec<(u32, u32)> {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.export.size = 64 << 40;
    wire.attach(true);
    wire.held = true;
    wire.say(&request(command::BLOCK_STATUS, flags, 1, 1 << 45, len));
    let (cookie, _) = wire.waiting.pop().expect("the request is valid");
    wire.session.reply(cookie, Ok(Reply::Status(runs)));
    wire.settle();
    let [Answer::Chunk { done: true, kind: chunk::BLOCK_STATUS, payload, .. }] = &answers(&wire.sent)[..]
    else {
        panic!("one chunk with the status");
    };
    let mut take = Take(payload);
    assert_eq!(take.u32(), ALLOCATION_CONTEXT_ID);
    (0..take.0.len() / 8).map(|_| (take.u32(), take.u32())).collect()
}

#[test]
fn allocation_is_told_run_by_run() {
    let run = |len, is_set| StatusRun { len, is_set };
    let two = || vec![run(4096, true), run(8192, false)];
    assert_eq!(status(0, 12288, two()), [(4096, 0), (8192, 3)]);
    assert_eq!(status(command_flag::REQ_ONE, 12288, two()), [(4096, 0)]);
    // Lengths are 32 bits, and sectors whole: 2^32 - 512 in two parts.
    let len = u32::MAX - 511;
    assert_eq!(status(0, len, vec![run(u64::from(len), false)]), [(1 << 31, 3), ((1 << 31) - 512, 3)]);
    let many: Vec<_> = (0..40_000).map(|index| run(512, index % 2 == 0)).collect();
    assert_eq!(status(0, 40_000 * 512, many).len(), crate::limits::STATUS_RUNS_MAX);
}

#[test]
fn goodbye_ends_it_once_all_is_answered() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    wire.say(&request(command::READ, 0, 1, 0, 512));
    wire.say(&request(command::DISC, 0, 2, 0, 0));
    assert!(!wire.session.wants_receive() && !wire.session.is_finished());
    wire.answer_all();
    wire.settle();
    assert!(wire.session.is_finished());
    assert_eq!(errors(&wire.sent), [(1, 0)]);
}

#[test]
fn a_draining_session_refuses_what_is_new_and_finishes_what_is_not() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    wire.say(&request(command::READ, 0, 1, 0, 512));
    wire.session.drain();
    assert!(!wire.session.is_finished());
    wire.say(&write(2, 0, &[1; 4096]));
    wire.say(&request(command::READ, 0, 3, 0, 512));
    assert_eq!(errors(&wire.sent), [(2, 108), (3, 108)]);
    wire.answer_all();
    wire.settle();
    assert!(wire.session.is_finished());
    assert_eq!(wire.disk[0], 0);

    let mut early = Wire::new(TlsPolicy::Off);
    early.say(&3u32.to_be_bytes());
    early.session.drain();
    assert!(early.session.is_finished());
}

#[test]
fn a_client_that_stops_in_the_middle_of_its_payload_does_not_hold_up_a_drain() {
    let mut wire = Wire::attached(true);
    wire.say(&write(1, 0, &[1; 4096])[..2000]);
    wire.session.drain();
    assert!(wire.session.is_finished());
}

#[test]
fn a_disk_that_may_only_be_read_from_now_on_refuses_writes_of_clients_that_are_there() {
    let mut wire = Wire::attached(true);
    wire.session.change_export(4096, true);
    wire.say(&request(command::TRIM, 0, 1, 0, 512));
    wire.say(&request(command::READ, 0, 2, 0, 512));
    assert_eq!(errors(&wire.sent), [(1, 1), (2, 0)]);
}

#[test]
fn a_resized_disk_is_checked_against_its_new_size() {
    let mut wire = Wire::attached(true);
    wire.session.change_export(4096, false);
    wire.say(&request(command::READ, 0, 1, 4096, 512));
    wire.say(&request(command::READ, 0, 2, 0, 4096));
    assert_eq!(errors(&wire.sent), [(1, 22), (2, 0)]);
}

#[test]
#[should_panic(expected = "a request is answered once")]
fn a_request_is_answered_once() {
    let mut wire = Wire::attached(true);
    wire.held = true;
    wire.say(&request(command::FLUSH, 0, 1, 0, 0));
    let (cookie, _) = wire.waiting.pop().expect("it was handed out");
    wire.session.reply(cookie, Ok(Reply::Done));
    wire.say(&request(command::FLUSH, 0, 1, 0, 0));
    wire.session.reply(cookie, Ok(Reply::Done));
}
