//! The bytes of version 1, which stay readable for ever.

use super::samples::{answers, message, requests};
use super::{Shown, assert_same, decode_version, frame_of_version, pool};
use crate::frame::HEADER_SIZE;
use crate::limits::{ALLOCATION_PARTS_MAX, ALLOCATION_PARTS_MAX_FIRST};
use crate::{Request, Version};
use base::Pool;

/// Per message its name, its header and its body, in hexadecimal digits. Payloads are raw and not told.
const VERSION_1: &str = include_str!("version_1.txt");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Compares the samples with the lines of one direction, which are named so.
fn check<T: Shown>(direction: &str, samples: Vec<(&str, T)>, pool: &Pool) {
    let lines: Vec<(&str, &str)> =
        VERSION_1.lines().filter_map(|line| line.strip_prefix(direction)?.trim().split_once(": ")).collect();
    let found: Vec<(&str, String)> = samples
        .iter()
        .map(|(name, body)| {
            let bytes = frame_of_version(Version::FIRST, &message(body.clone()));
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
        assert_same(&decode_version(Version::FIRST, &bytes, &[usize::MAX], pool).unwrap()[0], &sent);
    }
}

#[test]
fn requests_of_version_1_have_these_bytes() {
    let pool = pool();
    check("request", requests(&pool), &pool);
}

#[test]
fn answers_of_version_1_have_these_bytes() {
    let pool = pool();
    check("answer", answers(&pool), &pool);
}

/// What version 2 changed: a request about allocation names more parts.
#[test]
fn version_1_is_asked_about_the_allocation_of_as_many_parts_as_it_takes() {
    let pool = pool();
    let (component, epoch, count) = (base::ComponentId(7), 3, ALLOCATION_PARTS_MAX as u16);
    let sent = message(Request::Allocation { component, epoch, part: 5, count });
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
