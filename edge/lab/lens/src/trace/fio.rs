//! fio's traces: the latency log of single I/Os, and the iolog.

use crate::event::{Action, Event};

use super::fields::whole;
use super::lines::{Found, LineOutcome, Lines};

/// `ms, latency in ns, direction, bytes, offset[, priority[, …]]`: the time is that of the completion.
#[derive(Debug, Default)]
pub(super) struct Latency {
    offsets: bool,
    any: bool,
}

/// The whole numbers of a line of commas; a hexadecimal one (a command's priority) counts as well.
pub(super) fn numbers(line: &str) -> Option<Vec<u64>> {
    let number = |field: &str| match field.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => whole(field),
    };
    line.split(',').take(16).map(number).collect()
}

impl Lines for Latency {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let Some(fields) = numbers(line).filter(|fields| (4..=8).contains(&fields.len())) else {
            return LineOutcome::Dropped("it is not 4 to 8 whole numbers");
        };
        let action = match fields[2] {
            0 => Action::Read,
            1 => Action::Write,
            2 => Action::Trim,
            _ => return LineOutcome::Dropped("its direction is not 0, 1 or 2"),
        };
        if fields[3] == 0 {
            return LineOutcome::Dropped("it has no size, so it is an average: run fio without log_avg_msec");
        }
        // Without log_offset=1, the fifth number is the priority: 0 or hexadecimal.
        let hexadecimal = line.split(',').nth(4).is_some_and(|field| field.trim().starts_with("0x"));
        let offset = fields.get(4).copied().filter(|_| !hexadecimal).unwrap_or(0);
        self.offsets |= offset > 0;
        self.any = true;
        let disk = found.disk("fio").expect("it is the only one");
        let at_ns = i128::from(fields[0]) * 1_000_000 - i128::from(fields[1]);
        let latency_ns = Some(fields[1]);
        found.event(
            at_ns,
            Event { at_ns: 0, disk, action, offset, bytes: fields[3], latency_ns, queued_ns: None },
        )
    }

    fn end(&mut self, found: &mut Found) {
        if self.any {
            let note =
                "Times are whole milliseconds: outstanding I/Os and interarrival times are approximate.";
            found.notes.push(note.to_owned());
        }
        if self.any && !self.offsets {
            let note = "All offsets are 0: the log was written without log_offset=1, so seek distances and hot spots are unknown.";
            found.notes.push(note.to_owned());
        }
    }
}

/// `file action [offset length]`; in version 3 after a time in microseconds, whatever fio's manual says of its unit.
#[derive(Debug, Default)]
pub(super) struct Iolog {
    version: u32,
    waited_us: u64,
}

impl Lines for Iolog {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        if let Some(version) = line.trim().strip_prefix("fio version ") {
            return match version {
                "2 iolog" => self.begin(2),
                "3 iolog" => self.begin(3),
                _ => LineOutcome::Dropped("this version of an iolog is unknown"),
            };
        }
        let mut fields = line.split_whitespace();
        let at_us = match self.version {
            0 => {
                return LineOutcome::Dropped(
                    "it precedes the line \"fio version 2 iolog\" or \"fio version 3 iolog\"",
                );
            }
            2 => self.waited_us,
            _ => match fields.next().and_then(whole) {
                Some(at_us) => at_us,
                None => return LineOutcome::Dropped("it does not begin with a time"),
            },
        };
        let (Some(name), Some(action)) = (fields.next(), fields.next()) else {
            return LineOutcome::Dropped("it is cut off");
        };
        let range = (fields.next().and_then(whole), fields.next().and_then(whole));
        let action = match action {
            "read" => Action::Read,
            "write" => Action::Write,
            "trim" => Action::Trim,
            "sync" | "datasync" | "sync_file_range" => Action::Flush,
            "add" | "open" | "close" => return LineOutcome::Ignored,
            "wait" => {
                self.waited_us = self.waited_us.saturating_add(range.0.unwrap_or(0));
                return LineOutcome::Ignored;
            }
            _ => return LineOutcome::Dropped("its action is unknown"),
        };
        let (offset, bytes) = match (action, range) {
            (Action::Flush, _) => (0, 0),
            (_, (Some(offset), Some(bytes))) if bytes > 0 => (offset, bytes),
            _ => return LineOutcome::Dropped("it has no offset and length"),
        };
        let Some(disk) = found.disk(name) else { return LineOutcome::Dropped("there are too many disks") };
        let event = Event { at_ns: 0, disk, action, offset, bytes, latency_ns: None, queued_ns: None };
        found.event(i128::from(at_us) * 1_000, event)
    }

    fn end(&mut self, found: &mut Found) {
        if self.version == 2 && self.waited_us == 0 {
            let note = "An iolog of version 2 has no times: rates and latencies are unknown.";
            found.notes.push(note.to_owned());
        }
    }
}

impl Iolog {
    fn begin(&mut self, version: u32) -> LineOutcome {
        self.version = version;
        LineOutcome::Ignored
    }
}
