//! Traces that are tables: MSR Cambridge, Tencent, Alibaba, and what bcc's `biosnoop` prints.

use crate::event::{Action, Event};

use super::fields::{SECTOR, decimal, rwbs, whole};
use super::lines::{Found, LineOutcome, Lines};

/// No I/O is larger, in bytes (2 TiB): what says so is no I/O.
const BYTES_MAX: u64 = 1 << 41;

const NO_NUMBER: &str = "a number in it cannot be read";
const IMPLAUSIBLE: &str = "it is larger than 2 TiB, or there are too many disks";

fn event(
    disk: Option<u32>,
    action: Action,
    (offset, bytes): (u64, u64),
    latency_ns: Option<u64>,
) -> Option<Event> {
    (bytes <= BYTES_MAX).then_some(())?;
    Some(Event { at_ns: 0, disk: disk?, action, offset, bytes, latency_ns, queued_ns: None })
}

/// `time in 100 ns since 1601,host,disk,Read or Write,offset,bytes,latency in 100 ns`.
#[derive(Debug)]
pub(super) struct Msr;

impl Lines for Msr {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let fields: Vec<&str> = line.split(',').take(16).map(str::trim).collect();
        if fields.len() != 7 {
            return LineOutcome::Dropped("it does not have seven fields");
        }
        let action = match fields[3] {
            kind if kind.eq_ignore_ascii_case("read") => Action::Read,
            kind if kind.eq_ignore_ascii_case("write") => Action::Write,
            "Type" => return LineOutcome::Ignored,
            _ => return LineOutcome::Dropped("it is neither Read nor Write"),
        };
        let numbers = [0, 4, 5, 6].map(|index| whole(fields[index]));
        let [Some(time), Some(offset), Some(bytes), Some(latency)] = numbers else {
            return LineOutcome::Dropped(NO_NUMBER);
        };
        let disk = found.disk(&format!("{}_{}", fields[1], fields[2]));
        match event(disk, action, (offset, bytes), latency.checked_mul(100)) {
            Some(event) => found.event(i128::from(time) * 100, event),
            None => LineOutcome::Dropped(IMPLAUSIBLE),
        }
    }
}

/// `seconds,sector,sectors,0 (read) or 1 (write),volume`.
#[derive(Debug)]
pub(super) struct Tencent;

impl Lines for Tencent {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let fields: Vec<&str> = line.split(',').take(16).map(str::trim).collect();
        if fields.len() != 5 {
            return LineOutcome::Dropped("it does not have five fields");
        }
        if fields[0].starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return LineOutcome::Ignored;
        }
        let action = match fields[3] {
            "0" => Action::Read,
            "1" => Action::Write,
            _ => return LineOutcome::Dropped("its kind is neither 0 nor 1"),
        };
        let time = decimal(fields[0], 1_000_000_000);
        let (Some(time), Some(sector), Some(sectors)) = (time, whole(fields[1]), whole(fields[2])) else {
            return LineOutcome::Dropped(NO_NUMBER);
        };
        let disk = found.disk(fields[4]);
        let range = (sector.saturating_mul(SECTOR), sectors.saturating_mul(SECTOR));
        match event(disk, action, range, None) {
            Some(event) => found.event(i128::from(time), event),
            None => LineOutcome::Dropped(IMPLAUSIBLE),
        }
    }
}

/// `device,R or W,offset,bytes,time in us`.
#[derive(Debug)]
pub(super) struct Alibaba;

impl Lines for Alibaba {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let fields: Vec<&str> = line.split(',').take(16).map(str::trim).collect();
        if fields.len() != 5 {
            return LineOutcome::Dropped("it does not have five fields");
        }
        let action = match fields[1] {
            "R" => Action::Read,
            "W" => Action::Write,
            "opcode" => return LineOutcome::Ignored,
            _ => return LineOutcome::Dropped("it is neither R nor W"),
        };
        let numbers = [2, 3, 4].map(|index| whole(fields[index]));
        let [Some(offset), Some(bytes), Some(time)] = numbers else { return LineOutcome::Dropped(NO_NUMBER) };
        let disk = found.disk(fields[0]);
        match event(disk, action, (offset, bytes), None) {
            Some(event) => found.event(i128::from(time) * 1_000, event),
            None => LineOutcome::Dropped(IMPLAUSIBLE),
        }
    }
}

/// Where `biosnoop` prints what, counted from the end of a line: the name of a process may hold blanks.
#[derive(Debug, Clone, Copy)]
struct Columns {
    disk: usize,
    kind: usize,
    sector: usize,
    bytes: usize,
    queued: Option<usize>,
    latency: usize,
}

impl Default for Columns {
    fn default() -> Self {
        Columns { disk: 5, kind: 4, sector: 3, bytes: 2, queued: None, latency: 1 }
    }
}

/// `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`: the time is that of the completion.
#[derive(Debug, Default)]
pub(super) struct Biosnoop {
    columns: Columns,
}

impl Biosnoop {
    fn heading(&mut self, names: &[&str]) -> LineOutcome {
        let place = |name: &str| names.iter().position(|found| *found == name).map(|at| names.len() - at);
        let all = ["DISK", "T", "SECTOR", "BYTES", "LAT(ms)"].map(place);
        let [Some(disk), Some(kind), Some(sector), Some(bytes), Some(latency)] = all else {
            return LineOutcome::Dropped("its heading lacks DISK, T, SECTOR, BYTES or LAT(ms)");
        };
        self.columns = Columns { disk, kind, sector, bytes, queued: place("QUE(ms)"), latency };
        LineOutcome::Ignored
    }
}

impl Lines for Biosnoop {
    fn line(&mut self, line: &str, found: &mut Found) -> LineOutcome {
        let fields: Vec<&str> = line.split_whitespace().take(64).collect();
        if fields[0].starts_with("TIME") {
            return self.heading(&fields);
        }
        let columns = self.columns;
        // The process may have no name; the time stands before all that is counted.
        let Columns { disk, kind, sector, bytes, queued, latency } = columns;
        let furthest = [disk, kind, sector, bytes, latency, queued.unwrap_or(0)].into_iter().max();
        if furthest.is_some_and(|furthest| fields.len() <= furthest) {
            return LineOutcome::Dropped("it has too few columns");
        }
        let field = |from_end: usize| fields[fields.len() - from_end];
        let Some(action) = rwbs(field(columns.kind)) else { return LineOutcome::Ignored };
        let queued_ns = columns.queued.map(|place| decimal(field(place), 1_000_000));
        let numbers = (
            decimal(fields[0], 1_000_000_000),
            whole(field(columns.bytes)),
            decimal(field(columns.latency), 1_000_000),
        );
        let ((Some(done_ns), Some(bytes), Some(device_ns)), None | Some(Some(_))) = (numbers, queued_ns)
        else {
            return LineOutcome::Dropped(NO_NUMBER);
        };
        if bytes == 0 {
            return LineOutcome::Ignored;
        }
        // A flush with data is a write.
        let action = if action == Action::Flush { Action::Write } else { action };
        let Some(sector) = whole(field(columns.sector)) else { return LineOutcome::Dropped(NO_NUMBER) };
        let queued_ns = queued_ns.flatten();
        let latency_ns = device_ns.saturating_add(queued_ns.unwrap_or(0));
        let disk = found.disk(field(columns.disk));
        match event(disk, action, (sector.saturating_mul(SECTOR), bytes), Some(latency_ns)) {
            Some(event) => {
                found.event(i128::from(done_ns) - i128::from(latency_ns), Event { queued_ns, ..event })
            }
            None => LineOutcome::Dropped(IMPLAUSIBLE),
        }
    }
}
