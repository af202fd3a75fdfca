//! What the kernel's block layer tells: `blkparse`'s text, and block tracepoints.
//!
//! One I/O is one request as the device sees it: its beginning is that of the first I/O that was merged into it, or of the one
//! that it is a part of.

use statistics::words::counted;

use crate::event::Action;

use super::fields::{decimal, is_device, rwbs, whole};
use super::lines::{Found, LineOutcome, Lines};
use super::pairing::{Pairing, Range};

/// What a line says of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Queue,
    Issue,
    Complete,
}

fn take(
    pairing: &mut Pairing,
    step: Step,
    at_ns: i128,
    range: Range,
    failed: bool,
    found: &mut Found,
) -> LineOutcome {
    match step {
        Step::Queue => pairing.queue(at_ns, range, found),
        Step::Issue => pairing.issue(at_ns, range, found),
        Step::Complete if failed => pairing.fail(range),
        Step::Complete => pairing.complete(at_ns, range, found),
    }
}

/// "sector + sectors [what]" among fields: the range, and the number in brackets if it is one.
fn range_of(fields: &[&str]) -> Option<(u64, u64, Option<i64>)> {
    let plus = fields.iter().position(|&field| field == "+").filter(|&plus| plus > 0)?;
    let sectors = whole(fields.get(plus + 1)?)?;
    let sector = whole(fields[plus - 1])?;
    let bracket = fields.last().and_then(|last| last.strip_prefix('[')?.strip_suffix(']'));
    Some((sector, sectors, bracket.and_then(|code| code.parse().ok())))
}

/// `maj,min cpu seq sec.nnnnnnnnn pid ACT RWBS sector + n [cmd]`.
#[derive(Debug, Default)]
pub(super) struct Blkparse {
    pairing: Pairing,
    summary: bool,
    remapped: u64,
}

impl Lines for Blkparse {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let fields: Vec<&str> = line.split_whitespace().take(32).collect();
        if !is_device(fields[0]) {
            // Behind the events stand sums for each processor and in all.
            self.summary |= is_summary(line);
            return if self.summary {
                LineOutcome::Ignored
            } else {
                LineOutcome::Dropped("it does not begin with a device number")
            };
        }
        if fields.len() < 6 {
            return LineOutcome::Dropped("it is cut off");
        }
        let Some(at_ns) = decimal(fields[3], 1_000_000_000) else {
            return LineOutcome::Dropped("its time is not a number of seconds");
        };
        let step = match fields[5] {
            "Q" => Step::Queue,
            "D" => Step::Issue,
            "C" => Step::Complete,
            "A" => {
                self.remapped += 1;
                return LineOutcome::Ignored;
            }
            // Merges and splits show in the requests themselves; the rest moves no data.
            "G" | "I" | "M" | "F" | "X" | "P" | "U" | "UT" | "m" | "R" | "S" | "B" | "T" | "W" | "PF"
            | "PFR" | "PFS" | "PFD" => return LineOutcome::Ignored,
            _ => return LineOutcome::Dropped("its action is unknown"),
        };
        let Some(letters) = fields.get(6) else { return LineOutcome::Dropped("it is cut off") };
        let Some(action) = rwbs(letters) else { return LineOutcome::Ignored };
        let Some((sector, sectors, code)) = range_of(&fields[7..]) else {
            // A flush and a command of the user's own have no range.
            let ranged = fields[7..].contains(&"+");
            return if ranged {
                LineOutcome::Dropped("its range cannot be read")
            } else {
                LineOutcome::Ignored
            };
        };
        let Some(disk) = found.disk(fields[0]) else {
            return LineOutcome::Dropped("there are too many disks");
        };
        let action = if action == Action::Flush && sectors > 0 { Action::Write } else { action };
        let action = if sectors == 0 && letters.starts_with('F') { Action::Flush } else { action };
        let failed = step == Step::Complete && code.is_some_and(|code| code != 0);
        let range = Range { disk, action, sector, sectors };
        take(&mut self.pairing, step, i128::from(at_ns), range, failed, found)
    }

    fn end(&mut self, found: &mut Found) {
        self.pairing.end(found);
        if self.remapped > 0 {
            found.notes.push(format!(
                "{} through a partition or a mapped device: counted on each traced device.",
                counted(self.remapped, "I/O")
            ));
        }
    }
}

fn is_summary(line: &str) -> bool {
    let line = line.trim_start();
    (line.starts_with("CPU") || line.starts_with("Total ("))
        && line.contains('(')
        && line.trim_end().ends_with(':')
        || line.starts_with("Throughput (R/W)")
        || line.starts_with("Events (")
        || line.starts_with("Skips:")
}

/// `task-pid [cpu] flags time: block_rq_issue: maj,min RWBS …`, also with `block:` before the name.
#[derive(Debug, Default)]
pub(super) struct Tracepoints {
    pairing: Pairing,
    lost: u64,
}

/// Time, name of the tracepoint, and what it says; nothing if the line is none of the block layer.
pub(super) fn tracepoint(line: &str) -> Option<(&str, &str, &str)> {
    // The name of a task may hold anything: the last ": block_" before the fields is the right one.
    let (at, skip) = ["block:block_", "block_"].iter().find_map(|&name| {
        let at = line.find(&format!(": {name}"))?;
        Some((at, 2 + name.len() - "block_".len()))
    })?;
    let time = line[..at].rsplit(char::is_whitespace).next()?;
    let (name, rest) = line[at + skip..].split_once(": ")?;
    Some((time, name, rest))
}

impl Lines for Tracepoints {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let Some((time, name, rest)) = tracepoint(line) else {
            if line.contains("LOST") && line.contains("EVENTS") {
                self.lost += 1;
                return LineOutcome::Ignored;
            }
            let other = line.trim_start().starts_with('#') || line.contains(": ");
            return if other { LineOutcome::Ignored } else { LineOutcome::Dropped("it is not a tracepoint") };
        };
        let step = match name {
            "block_bio_queue" => Step::Queue,
            "block_rq_issue" => Step::Issue,
            "block_rq_complete" | "block_bio_complete" => Step::Complete,
            _ => return LineOutcome::Ignored,
        };
        let Some(at_ns) = decimal(time, 1_000_000_000) else {
            return LineOutcome::Dropped("its time is not a number of seconds");
        };
        let fields: Vec<&str> = rest.split_whitespace().take(64).collect();
        let (Some(&device), Some(letters)) = (fields.first().filter(|field| is_device(field)), fields.get(1))
        else {
            return LineOutcome::Dropped("it names no device");
        };
        let Some(action) = rwbs(letters) else { return LineOutcome::Ignored };
        let Some((sector, sectors, code)) = range_of(&fields[2..]) else {
            return LineOutcome::Dropped("its range cannot be read");
        };
        // Both completions tell of one end: a request's comes for its whole range, a bio's for those without requests.
        let Some(disk) = found.disk(device) else { return LineOutcome::Dropped("there are too many disks") };
        let action = if sectors == 0 && letters.starts_with('F') { Action::Flush } else { action };
        let range = Range { disk, action, sector, sectors };
        let failed = step == Step::Complete && code.is_some_and(|code| code != 0);
        let heard = take(&mut self.pairing, step, i128::from(at_ns), range, failed, found);
        match heard {
            LineOutcome::Dropped(_) if name == "block_bio_complete" => LineOutcome::Ignored,
            heard => heard,
        }
    }

    fn end(&mut self, found: &mut Found) {
        self.pairing.end(found);
        if self.lost > 0 {
            found.notes.push(format!(
                "The kernel lost events {} times, so I/Os are missing: give it a larger buffer_size_kb.",
                self.lost
            ));
        }
    }
}
