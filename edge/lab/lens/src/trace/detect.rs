//! Which form a trace has, by what stands in it.

use crate::error::{ReadError, quoted};

use super::fields::{is_device, whole};
use super::format::Format;
use super::{fio, kernel};

/// Lines that are looked at.
pub(super) const LINES: usize = 200;
/// Tencent's times are seconds since 1970, and the traces are of this century.
const SECONDS_MIN: u64 = 900_000_000;

/// The form of a trace by the beginning of its text; nothing if none fits.
pub fn detect(head: &str) -> Option<Format> {
    let lines: Vec<&str> = head.lines().take(LINES).collect();
    of(&lines)
}

pub(super) fn of_lines(file: &str, lines: &[String]) -> Result<Format, ReadError> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let refuse = |line: usize, found: String, way_out: &str| ReadError::Text {
        file: file.to_owned(),
        line: line as u64 + 1,
        column: 1,
        what: "a known trace format",
        found,
        way_out: way_out.to_owned(),
    };
    let Some(first) = first else {
        return Err(refuse(0, "nothing".to_owned(), "give the file that the tracer wrote"));
    };
    if let Some(at) = lines.iter().position(|line| line.trim_start().starts_with("TIME(ms)")) {
        let way_out = "bpftrace's biosnoop.bt has no offsets and sizes: trace with bcc's biosnoop instead";
        return Err(refuse(at, quoted(lines[at]), way_out));
    }
    let known = "known formats: blkparse, tracepoints, fio's latency log and iolog, MSR, Tencent, Alibaba, bcc's biosnoop. If the \
                 trace has one of these, name the format";
    of(&lines).ok_or_else(|| refuse(first, quoted(lines[first]), known))
}

/// The form that most lines have; of equals the first of [`Format::ALL`].
fn of(lines: &[&str]) -> Option<Format> {
    let mut votes = [0u32; Format::ALL.len()];
    for line in lines {
        let line = line.trim_start_matches('\u{feff}').trim();
        if let Some(format) = vote(line) {
            votes[Format::ALL.iter().position(|&one| one == format).expect("all are there")] += 1;
        }
    }
    let most = *votes.iter().max().expect("there are forms");
    let first = votes.iter().position(|&count| count == most)?;
    (most > 0).then_some(Format::ALL[first])
}

/// The form of one line.
fn vote(line: &str) -> Option<Format> {
    if line.starts_with("fio version ") && line.ends_with(" iolog") {
        return Some(Format::FioIolog);
    }
    if kernel::tracepoint(line).is_some() {
        return Some(Format::Tracepoints);
    }
    let words: Vec<&str> = line.split_whitespace().take(16).collect();
    if words.len() >= 6 && is_device(words[0]) && words[3].contains('.') {
        return Some(Format::Blkparse);
    }
    let is_heading = words.first().is_some_and(|word| word.starts_with("TIME(s)"));
    if is_heading && words.contains(&"SECTOR") && words.contains(&"LAT(ms)") {
        return Some(Format::Biosnoop);
    }
    // In version 3 a time stands before.
    let action = words.get(1..=2).unwrap_or_default();
    if words.len() <= 5 && action.iter().any(|word| ["read", "write", "open", "close", "add"].contains(word))
    {
        return Some(Format::FioIolog);
    }
    let fields: Vec<&str> = line.split(',').take(16).map(str::trim).collect();
    match fields.as_slice() {
        [_, _, _, kind, _, _, _]
            if kind.eq_ignore_ascii_case("read") || kind.eq_ignore_ascii_case("write") =>
        {
            Some(Format::Msr)
        }
        [_, "R" | "W", offset, _, _] if whole(offset).is_some() => Some(Format::Alibaba),
        [time, _, _, "0" | "1", _]
            if time.split('.').next().and_then(whole).is_some_and(|seconds| seconds >= SECONDS_MIN) =>
        {
            Some(Format::Tencent)
        }
        _ => fio::numbers(line)
            .filter(|numbers| (4..=8).contains(&numbers.len()) && numbers[2] <= 2)
            .map(|_| Format::FioLatency),
    }
}
