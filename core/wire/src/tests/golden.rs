//! The bytes of version 1, which stay readable for ever.

use super::samples::{answers, message, requests};
use super::{Shown, assert_same, decode_version, frame_of_version, pool};
use crate::frame::HEADER_SIZE;
use crate::kind::{AnswerKind, Kind, RequestKind};
use crate::limits::{ALLOCATION_PARTS_MAX, ALLOCATION_PARTS_MAX_FIRST};
use crate::{Request, Version};
use base::Pool;
use base::request::StatusOf;

/// Per message its name, its header and its body, in hexadecimal digits. Payloads are raw and not told.
const VERSION_1: &str = include_str!("version_1.txt");
/// The same of what version 2 added.
const VERSION_2: &str = include_str!("version_2.txt");
/// The same of what version 3 added.
const VERSION_3: &str = include_str!("version_3.txt");
/// Answers of older kinds that say something that version 3 added.
const NEW_IN_OLDER_KINDS: [&str; 3] = ["guest without snapshot", "no snapshot", "snapshot refused"];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Compares the samples of a version with the lines of one direction, which are named so.
fn check<T: Shown>((version, file): (Version, &str), direction: &str, samples: Vec<(&str, T)>, pool: &Pool) {
    let lines: Vec<(&str, &str)> =
        file.lines().filter_map(|line| line.strip_prefix(direction)?.trim().split_once(": ")).collect();
    let found: Vec<(&str, String)> = samples
        .iter()
        .map(|(name, body)| {
            let bytes = frame_of_version(version, &message(body.clone()));
            let body_end = bytes.len() - body.payload().size();
            (*name, format!("{} {}", hex(&bytes[..HEADER_SIZE]), hex(&bytes[HEADER_SIZE..body_end])))
        })
        .collect();
    for (name, bytes) in &found {
        let line = lines.iter().find(|(line, _)| line == name).map(|(_, bytes)| bytes.trim());
        assert_eq!(Some(bytes.trim()), line, "{direction} {name}: {bytes}");
    }
    assert_eq!(lines.len(), found.len(), "each line has its sample");
    for ((_, line), (_, body)) in lines.iter().zip(samples) {
        let sent = message(body);
        let mut bytes = unhex(&line.replace(' ', ""));
        sent.body.payload().buffers().for_each(|buffer| bytes.extend_from_slice(buffer));
        assert_same(&decode_version(version, &bytes, &[usize::MAX], pool).unwrap()[0], &sent);
    }
}

/// Samples of what version 1 has, of what version 2 added, and of what version 3 did. `last`: the last kind of versions 1 and 2.
fn by_version<T: Shown>(samples: Vec<(&'static str, T)>, last: [u8; 2]) -> [Vec<(&'static str, T)>; 3] {
    let mut by_version = [Vec::new(), Vec::new(), Vec::new()];
    for (name, body) in samples {
        let code = body.kind().code();
        let version = match last.iter().position(|last| code <= *last) {
            Some(version) if !NEW_IN_OLDER_KINDS.contains(&name) => version,
            Some(_) | None => 2,
        };
        by_version[version].push((name, body));
    }
    by_version
}

#[test]
fn requests_of_each_version_have_these_bytes() {
    let pool = pool();
    let last = [RequestKind::Allocation.code(), RequestKind::Checksums.code()];
    let [first, second, third] = by_version(requests(&pool), last);
    check((Version::FIRST, VERSION_1), "request", first, &pool);
    check((Version::new(2).unwrap(), VERSION_2), "request", second, &pool);
    check((Version::LATEST, VERSION_3), "request", third, &pool);
}

#[test]
fn answers_of_each_version_have_these_bytes() {
    let pool = pool();
    let last = [AnswerKind::Allocation.code(), AnswerKind::Checksums.code()];
    let [first, second, third] = by_version(answers(&pool), last);
    check((Version::FIRST, VERSION_1), "answer", first, &pool);
    check((Version::new(2).unwrap(), VERSION_2), "answer", second, &pool);
    check((Version::LATEST, VERSION_3), "answer", third, &pool);
}

/// What version 2 changed: a request about allocation names more parts.
#[test]
fn version_1_is_asked_about_the_allocation_of_as_many_parts_as_it_takes() {
    let pool = pool();
    let (component, epoch, count) = (base::ComponentId(7), 3, ALLOCATION_PARTS_MAX as u16);
    let sent = message(Request::Allocation { component, epoch, of: StatusOf::Disk, part: 5, count });
    for (version, expected) in [(Version::FIRST, ALLOCATION_PARTS_MAX_FIRST), (Version::LATEST, count)] {
        let bytes = frame_of_version(version, &sent);
        let found = decode_version::<Request>(version, &bytes, &[usize::MAX], &pool).unwrap();
        assert!(
            matches!(found[0].body, Request::Allocation { part: 5, count, .. } if count == expected),
            "{:?}",
            found[0].body
        );
    }
}

#[test]
fn marks_that_come_with_a_change_stand_in_a_byte_that_was_reserved() {
    let pool = pool();
    let samples = requests(&pool)
        .into_iter()
        .filter(|(_, one)| matches!(one, Request::Write { .. } | Request::Trim { .. }));
    for (name, mut request) in samples {
        let version = Version::FIRST;
        let plain = frame_of_version(version, &message(request.clone()));
        let (Request::Write { marks, .. } | Request::Trim { marks, .. }) = &mut request else {
            unreachable!()
        };
        *marks = 7;
        let sent = message(request);
        let marked = frame_of_version(version, &sent);
        assert_same(&decode_version(version, &marked, &[usize::MAX], &pool).unwrap()[0], &sent);
        let at = HEADER_SIZE + 45;
        assert_eq!((plain[at], marked[at]), (0, 7), "{name}");
        assert_eq!(plain[HEADER_SIZE..at], marked[HEADER_SIZE..at], "{name}");
        assert_eq!(plain[at + 1..], marked[at + 1..], "{name}");
    }
    let id = |sequence| base::WriteId { epoch: 1, sequence };
    assert!(crate::check::marks(id(4), 3).is_ok() && crate::check::marks(id(0), 0).is_ok());
    assert!(crate::check::marks(id(3), 3).is_err(), "numbers begin with 1");
}
