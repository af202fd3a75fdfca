//! The handshake, option by option.

use super::*;
use crate::Bitmap;
use base::request::RequestError;

/// Says the client's flags and some options; gives what the server answered after its greeting as `(option, type, data)`.
fn haggle(tls: TlsPolicy, flags: u32, options: &[Vec<u8>]) -> (Wire, Vec<(u32, u32, Vec<u8>)>) {
    haggle_at(Wire::new(tls), flags, options)
}

fn haggle_at(mut wire: Wire, flags: u32, options: &[Vec<u8>]) -> (Wire, Vec<(u32, u32, Vec<u8>)>) {
    wire.say(&flags.to_be_bytes());
    for option in options {
        wire.say(option);
    }
    let sent = std::mem::take(&mut wire.sent);
    let mut take = Take(&sent);
    assert_eq!((take.u64(), take.u64(), take.u16()), (MAGIC, OPTION_MAGIC, 3));
    let mut replies = Vec::new();
    while !take.0.is_empty() {
        assert_eq!(take.u64(), OPTION_REPLY_MAGIC);
        let (option, kind) = (take.u32(), take.u32());
        let len = take.u32() as usize;
        replies.push((option, kind, take.bytes(len).to_vec()));
    }
    (wire, replies)
}

/// The types of the replies to some options.
fn kinds(options: &[Vec<u8>]) -> Vec<u32> {
    haggle(TlsPolicy::Off, 3, options).1.into_iter().map(|(_, kind, _)| kind).collect()
}

const ALL_FLAGS: u16 = flag::HAS_FLAGS
    | flag::SEND_FLUSH
    | flag::SEND_FUA
    | flag::SEND_TRIM
    | flag::SEND_WRITE_ZEROES
    | flag::CAN_MULTI_CONN
    | flag::SEND_CACHE
    | flag::SEND_FAST_ZERO;

#[test]
fn go_tells_size_flags_names_and_block_sizes_and_attaches() {
    let wants = [info::BLOCK_SIZE, info::NAME, info::DESCRIPTION, 77];
    let (wire, replies) = haggle(TlsPolicy::Off, 3, &[option(option::GO, &go("", &wants))]);
    let mut export = info::EXPORT.to_be_bytes().to_vec();
    export.extend_from_slice(&(DISK_SIZE as u64).to_be_bytes());
    export.extend_from_slice(&ALL_FLAGS.to_be_bytes());
    let sizes =
        [&[0, 3][..], &512u32.to_be_bytes(), &4096u32.to_be_bytes(), &(32u32 << 20).to_be_bytes()].concat();
    let expected = [
        (reply::INFO, export),
        (reply::INFO, sizes),
        (reply::INFO, b"\0\x01disk".to_vec()),
        (reply::INFO, b"\0\x02for tests".to_vec()),
        (reply::ACK, Vec::new()),
    ];
    assert_eq!(replies, expected.map(|(kind, data)| (option::GO, kind, data)));
    assert_eq!(wire.session.attached().map(|export| export.name.as_str()), Some("disk"));
}

#[test]
fn info_tells_the_same_and_does_not_attach() {
    let (wire, replies) = haggle(TlsPolicy::Off, 3, &[option(option::INFO, &go("disk", &[]))]);
    assert_eq!(replies.iter().map(|reply| reply.1).collect::<Vec<_>>(), [reply::INFO, reply::ACK]);
    assert_eq!(wire.session.attached(), None);
}

#[test]
fn do_not_fragment_is_offered_with_structured_replies_and_read_only_disks_offer_no_writes() {
    let structured = option(option::STRUCTURED_REPLY, &[]);
    let (_, replies) = haggle(TlsPolicy::Off, 3, &[structured, option(option::INFO, &go("disk", &[]))]);
    assert_eq!(replies[1].2[10..], (ALL_FLAGS | flag::SEND_DF).to_be_bytes());
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.export.read_only = true;
    wire.say(&3u32.to_be_bytes());
    wire.say(&option(option::EXPORT_NAME, b"disk"));
    let writes = flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO;
    assert!(wire.sent.ends_with(&(ALL_FLAGS & !writes | flag::READ_ONLY).to_be_bytes()));
}

#[test]
fn the_old_option_names_the_export_and_ends_the_negotiation() {
    for (flags, zeroes) in [(0u32, 124), (1, 124), (2, 0), (3, 0)] {
        let mut wire = Wire::new(TlsPolicy::Off);
        wire.say(&flags.to_be_bytes());
        wire.sent.clear();
        wire.say(&option(option::EXPORT_NAME, b"disk"));
        assert_eq!(wire.sent.len(), 10 + zeroes, "flags {flags}");
        assert_eq!(wire.sent[..8], (DISK_SIZE as u64).to_be_bytes());
        wire.sent.clear();
        wire.say(&request(command::FLUSH, 0, 9, 0, 0));
        assert_eq!(errors(&wire.sent), [(9, 0)]);
    }
}

#[test]
fn the_list_has_every_export_and_takes_no_data() {
    let (_, replies) = haggle(TlsPolicy::Off, 3, &[option(option::LIST, &[])]);
    let mut server = 4u32.to_be_bytes().to_vec();
    server.extend_from_slice(b"diskfor tests");
    assert_eq!(replies, [(option::LIST, reply::SERVER, server), (option::LIST, reply::ACK, Vec::new())]);
    assert_eq!(kinds(&[option(option::LIST, b"x")]), [reply::ERR_INVALID]);
}

#[test]
fn what_is_not_known_or_malformed_is_refused_and_the_negotiation_goes_on() {
    let long = vec![0; 20 << 10];
    for (bytes, kind) in [
        (option(99, b"whatever"), reply::ERR_UNSUP),
        (option(4, &[]), reply::ERR_UNSUP),
        (option(99, &long), reply::ERR_TOO_BIG),
        (option(option::GO, &long), reply::ERR_TOO_BIG),
        (option(option::GO, b"\0\0"), reply::ERR_INVALID),
        (option(option::GO, b"\xff\xff\xff\xff\0\0"), reply::ERR_INVALID),
        (option(option::GO, &go("nope", &[])), reply::ERR_UNKNOWN),
        (option(option::INFO, &go("nope", &[])), reply::ERR_UNKNOWN),
        (option(option::STRUCTURED_REPLY, b"x"), reply::ERR_INVALID),
        (option(option::STARTTLS, &[]), reply::ERR_POLICY),
        (option(option::SET_META_CONTEXT, &meta("disk", &["base:allocation"])), reply::ERR_INVALID),
        (option(option::LIST_META_CONTEXT, b"\0"), reply::ERR_INVALID),
    ] {
        let options = [bytes, option(option::STRUCTURED_REPLY, &[])];
        assert_eq!(kinds(&options), [kind, reply::ACK], "{:?}", &options[0][..16]);
    }
}

#[test]
fn contexts_are_listed_by_wildcard_and_selected_by_name() {
    let structured = || option(option::STRUCTURED_REPLY, &[]);
    let ask = |number: u32, name: &str, queries: &[&str]| {
        kinds(&[structured(), option(number, &meta(name, queries))])[1..].to_vec()
    };
    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    let both = vec![reply::META_CONTEXT, reply::ACK];
    assert_eq!(ask(list, "disk", &[]), both);
    assert_eq!(ask(list, "disk", &["base:"]), both);
    assert_eq!(ask(list, "disk", &["x:y", "base:allocation"]), both);
    assert_eq!(ask(list, "disk", &["base:other"]), [reply::ACK]);
    assert_eq!(ask(set, "disk", &["base:allocation"]), both);
    assert_eq!(ask(set, "disk", &["base:"]), [reply::ACK]);
    assert_eq!(ask(set, "disk", &[]), [reply::ACK]);
    assert_eq!(ask(set, "nope", &["base:allocation"]), [reply::ERR_UNKNOWN]);
}

/// The names of contexts that are answered, for a snapshot with two older ones.
fn contexts_of_snapshot(number: u32, queries: &[&str]) -> Vec<(u32, String)> {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.export.snapshot = Some(9);
    wire.export.bitmaps = bitmaps();
    let options = [option(option::STRUCTURED_REPLY, &[]), option(number, &meta("disk", queries))];
    let (_, replies) = haggle_at(wire, 3, &options);
    let told = replies.into_iter().filter(|reply| reply.1 == reply::META_CONTEXT);
    told.map(|(_, _, data)| {
        let id = u32::from_be_bytes(data[..4].try_into().expect("four bytes"));
        (id, String::from_utf8(data[4..].to_vec()).expect("a name"))
    })
    .collect()
}

fn bitmaps() -> Vec<Bitmap> {
    [("sunday", 4), ("monday", 7)].map(|(name, number)| Bitmap { name: name.to_owned(), number }).into()
}

#[test]
fn a_snapshot_has_a_bitmap_of_each_older_one() {
    let (list, set) = (option::LIST_META_CONTEXT, option::SET_META_CONTEXT);
    let names = |found: Vec<(u32, String)>| found.into_iter().map(|(_, name)| name).collect::<Vec<_>>();
    let (sunday, monday) = ("qemu:dirty-bitmap:sunday", "qemu:dirty-bitmap:monday");
    assert_eq!(names(contexts_of_snapshot(list, &[])), ["base:allocation", sunday, monday]);
    assert_eq!(names(contexts_of_snapshot(list, &["qemu:"])), [sunday, monday]);
    assert_eq!(names(contexts_of_snapshot(list, &["qemu:dirty-bitmap:"])), [sunday, monday]);
    assert_eq!(names(contexts_of_snapshot(list, &[monday])), [monday]);
    assert!(names(contexts_of_snapshot(list, &["qemu:dirty-bitmap:mon", "qemu"])).is_empty());
    assert!(names(contexts_of_snapshot(set, &["qemu:dirty-bitmap:", "qemu:dirty-bitmap:x"])).is_empty());
    let chosen = contexts_of_snapshot(set, &[monday, "base:allocation", monday]);
    assert_eq!(chosen, [(1, "base:allocation".to_owned()), (8, monday.to_owned())]);
}

#[test]
fn a_question_about_blocks_is_answered_for_each_context_and_ends_once() {
    let attach = || {
        let mut wire = Wire::new(TlsPolicy::Off);
        (wire.export.snapshot, wire.export.bitmaps, wire.export.read_only) = (Some(9), bitmaps(), true);
        wire.held = true;
        wire.say(&3u32.to_be_bytes());
        wire.say(&option(option::STRUCTURED_REPLY, &[]));
        let queries = ["base:allocation", "qemu:dirty-bitmap:sunday", "qemu:dirty-bitmap:monday"];
        wire.say(&option(option::SET_META_CONTEXT, &meta("disk", &queries)));
        wire.say(&option(option::GO, &go("disk", &[])));
        wire.sent.clear();
        wire.say(&request(command::BLOCK_STATUS, 0, 7, 4096, 8192));
        wire
    };
    let runs = |is_set| vec![StatusRun { len: 4096, is_set }, StatusRun { len: 4096, is_set: !is_set }];
    let mut wire = attach();
    let asked: Vec<String> = wire.waiting.iter().map(|(_, request)| format!("{request:?}")).collect();
    let range = "offset: 4096, len: 8192 }";
    assert_eq!(
        asked,
        [
            format!("Status {{ of: Snapshot(9), {range}"),
            format!("Status {{ of: Changes {{ since: 4, snapshot: 9 }}, {range}"),
            format!("Status {{ of: Changes {{ since: 7, snapshot: 9 }}, {range}"),
        ]
    );
    for (cookie, _) in std::mem::take(&mut wire.waiting).into_iter().rev() {
        wire.session.reply(cookie, Ok(Reply::Status(runs(true))));
    }
    wire.settle();
    let told: Vec<(bool, u32, u32, u32)> = answers(&wire.sent)
        .iter()
        .map(|answer| match answer {
            Answer::Chunk { done, kind: chunk::BLOCK_STATUS, payload, .. } => {
                let mut take = Take(payload);
                let (id, _, first, _, second) = (take.u32(), take.u32(), take.u32(), take.u32(), take.u32());
                (*done, id, first, second)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(false, 8, 1, 0), (false, 5, 1, 0), (true, 1, 0, 3)]);
    // One that fails is told at the end, and not before.
    let mut wire = attach();
    let waiting = std::mem::take(&mut wire.waiting);
    wire.session.reply(waiting[0].0, Err(RequestError::NoSnapshot));
    wire.session.reply(waiting[1].0, Ok(Reply::Status(runs(false))));
    wire.settle();
    assert!(answers(&wire.sent).iter().all(|answer| matches!(answer, Answer::Chunk { done: false, .. })));
    wire.sent.clear();
    wire.session.fail(waiting[2].0, "it takes too long");
    wire.settle();
    assert_eq!(errors(&wire.sent), [(7, 5)]);
}

#[test]
fn allocation_is_told_only_if_the_last_selection_was_for_the_same_export() {
    let set = |name: &str, queries: &[&str]| option(option::SET_META_CONTEXT, &meta(name, queries));
    let good = set("disk", &["base:allocation"]);
    for (selections, allowed) in [
        (vec![good.clone()], true),
        (vec![], false),
        (vec![good.clone(), set("disk", &[])], false),
        (vec![good.clone(), set("nope", &["base:allocation"])], false),
        (vec![good.clone(), option(option::SET_META_CONTEXT, b"\0")], false),
        (vec![set("", &["base:allocation"])], false),
    ] {
        let mut options = vec![option(option::STRUCTURED_REPLY, &[])];
        options.extend(selections);
        options.push(option(option::GO, &go("disk", &[])));
        let (mut wire, _) = haggle(TlsPolicy::Off, 3, &options);
        wire.say(&request(command::BLOCK_STATUS, 0, 1, 0, 4096));
        assert_eq!(errors(&wire.sent), [(1, if allowed { 0 } else { 22 })], "{} options", options.len());
    }
}

#[test]
fn abort_is_acknowledged_and_ends_it() {
    let (wire, replies) = haggle(TlsPolicy::Off, 3, &[option(option::ABORT, b"ignored")]);
    assert_eq!(replies, [(option::ABORT, reply::ACK, Vec::new())]);
    assert!(wire.session.is_finished());
}

#[test]
fn who_breaks_the_protocol_is_cut_off() {
    let huge = {
        let mut bytes = option(99, &[]);
        bytes[12..].copy_from_slice(&u32::MAX.to_be_bytes());
        bytes
    };
    let mut wrong = option(option::LIST, &[]);
    wrong[0] ^= 1;
    for (flags, bytes) in [
        (4u32, vec![]),
        (0x8000_0000, vec![]),
        (3, wrong),
        (3, huge),
        (3, option(option::EXPORT_NAME, b"nope")),
        (3, option(option::EXPORT_NAME, b"\xff\xfe")),
        (3, option(option::EXPORT_NAME, &vec![b'a'; 5000])),
        // Without fixed newstyle only the name may be said.
        (2, option(option::LIST, &[])),
    ] {
        let mut wire = Wire::new(TlsPolicy::Off);
        wire.say(&flags.to_be_bytes());
        wire.say(&bytes);
        assert!(wire.session.is_finished(), "flags {flags}, {:?}", &bytes[..bytes.len().min(20)]);
    }
}

#[test]
fn options_without_end_are_cut_off() {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.say(&3u32.to_be_bytes());
    for _ in 0..=crate::limits::OPTIONS_MAX {
        wire.say(&option(option::LIST, &[]));
    }
    assert!(wire.session.is_finished());
}

#[test]
fn refusals_carry_their_reason() {
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.say(&3u32.to_be_bytes());
    wire.sent.clear();
    for (refusal, kind) in [
        (AttachRefusal::Forbidden("not from here".to_owned()), reply::ERR_POLICY),
        (AttachRefusal::Unavailable("its device is gone".to_owned()), reply::ERR_UNKNOWN),
        (AttachRefusal::Unavailable("ö".repeat(5000)), reply::ERR_UNKNOWN),
        (AttachRefusal::Stopping, reply::ERR_SHUTDOWN),
    ] {
        let bytes = option(option::GO, &go("disk", &[]));
        let mut vectors = Vec::new();
        wire.session.receive_vectors(&mut vectors);
        let n = scatter(&vectors, &bytes);
        let mut events = Vec::new();
        wire.session.received(n, &mut events);
        assert!(matches!(&events[..], [Event::Attach { wanted }] if wanted.disk == "disk"));
        assert!(!wire.session.wants_receive(), "nothing is read while the server owes an answer");
        wire.session.export(Err(refusal.clone()));
        wire.transmit();
        let sent = std::mem::take(&mut wire.sent);
        let mut take = Take(&sent);
        assert_eq!((take.u64(), take.u32(), take.u32()), (OPTION_REPLY_MAGIC, option::GO, kind));
        let len = take.u32() as usize;
        assert!(len <= 4096 && refusal.to_string().as_bytes().starts_with(take.bytes(len)));
    }
}

#[test]
fn options_behind_the_name_are_told_with_it_and_those_not_understood_are_refused_at_once() {
    for (name, expected) in [
        ("disk", Some(("disk", None))),
        ("disk@error-after=30s", Some(("disk", Some(30)))),
        ("@error-after=5m", Some(("", Some(300)))),
        ("disk@x=1", None),
        ("disk@error-after=1s", None),
    ] {
        for number in [option::GO, option::INFO] {
            let mut wire = Wire::new(TlsPolicy::Off);
            wire.say(&3u32.to_be_bytes());
            wire.sent.clear();
            let mut vectors = Vec::new();
            wire.session.receive_vectors(&mut vectors);
            let n = scatter(&vectors, &option(number, &go(name, &[])));
            let mut events = Vec::new();
            wire.session.received(n, &mut events);
            let wanted = match &events[..] {
                [] => None,
                [Event::Attach { wanted }] if number == option::GO => Some(wanted),
                [Event::Describe { wanted }] if number == option::INFO => Some(wanted),
                other => panic!("{name}: {other:?}"),
            };
            let wanted =
                wanted.map(|wanted| (wanted.disk.as_str(), wanted.error_after.map(|time| time.as_secs())));
            assert_eq!(wanted, expected, "{name}");
            if expected.is_none() {
                wire.transmit();
                let mut take = Take(&wire.sent);
                assert_eq!(
                    (take.u64(), take.u32(), take.u32()),
                    (OPTION_REPLY_MAGIC, number, reply::ERR_UNKNOWN)
                );
                assert!(wire.session.wants_receive(), "the client may ask again");
            }
        }
    }
    let mut wire = Wire::new(TlsPolicy::Off);
    wire.say(&3u32.to_be_bytes());
    wire.say(&option(option::EXPORT_NAME, b"disk@x=1"));
    assert!(wire.session.is_finished(), "this option has no reply");
}
