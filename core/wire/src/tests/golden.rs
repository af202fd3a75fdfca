//! The bytes of version 1, which stay readable for ever.

use super::samples::{answers, message, requests};
use super::{Shown, assert_same, decode, frame, pool};
use crate::frame::HEADER_SIZE;
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
            let bytes = frame(&message(body.clone()));
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
        assert_same(&decode(&bytes, pool).unwrap()[0], &sent);
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
