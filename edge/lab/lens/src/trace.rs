//! Readers of traces: text of any size, line by line, in bounded memory.
//!
//! A line is one I/O, or a step of one that is put together with its other steps (blkparse, kernel tracepoints). I/Os are put
//! in order of time within a bound; lines that cannot be used are counted, and a trace that is mostly such lines is an error.

mod detect;
mod fields;
mod fio;
mod format;
mod kernel;
mod lines;
mod order;
mod pairing;
mod tables;

use std::io::BufRead;

use serde::Serialize;
use statistics::words::counted;

use crate::error::{ReadError, quoted};
use crate::event::Event;
use lines::{Found, LineOutcome, Lines};
use order::Order;

pub use detect::detect;
pub use format::Format;
pub use lines::DISKS_MAX;

/// No line is longer; what is beyond is not looked at.
pub const LINE_BYTES_MAX: usize = 16 << 10;
/// I/Os that wait to be put in order, unless a caller asks for fewer: what comes later than so many others is dropped.
pub const ORDER_MAX: usize = 65_536;
/// How a trace was read, and what was dropped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceSummary {
    /// Its format.
    pub format: Format,
    /// The disks' names, which events name by index.
    pub disks: Vec<String>,
    /// Lines in all.
    pub lines: u64,
    /// I/Os passed to the caller.
    pub events: u64,
    /// I/Os whose completion is not in the trace although others' are.
    pub unfinished: u64,
    /// I/Os that were out of order and were sorted.
    pub reordered: u64,
    /// When the first I/O was asked for, on the trace's own clock, in ns.
    pub began_ns: i128,
    /// Dropped lines and I/Os by reason.
    pub dropped: Vec<Dropped>,
    /// Further notes, as sentences.
    pub notes: Vec<String>,
}

impl TraceSummary {
    /// What was dropped, sorted or incomplete, as sentences; none for a clean trace.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self
            .dropped
            .iter()
            .map(|Dropped { reason, count, line, text }| {
                format!("{} dropped ({reason}), first at line {line}: {text}.", counted(*count, "record"))
            })
            .collect();
        if self.reordered > 0 {
            sentences.push(format!("{} out of order, sorted by time.", counted(self.reordered, "I/O")));
        }
        if self.unfinished > 0 {
            sentences.push(format!("{} without a completion in the trace.", counted(self.unfinished, "I/O")));
        }
        sentences.extend(self.notes.iter().cloned());
        sentences
    }
}

/// Lines or I/Os that could not be used for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Why.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
    /// The first of them, from 1.
    pub line: u64,
    /// What it says, cut short.
    pub text: String,
}

/// A trace that comes line by line: for live tracing. For a whole text there is [`read`].
#[derive(Debug)]
pub struct TraceReader {
    format: Format,
    lines: Box<dyn Lines>,
    found: Found,
    order: Order,
    line: u64,
    used: u64,
    dropped: Vec<Dropped>,
    events: u64,
}

impl TraceReader {
    /// A reader that puts I/Os in order within `order` of them (1 ..= [`ORDER_MAX`]): few for what is shown live.
    pub fn new(format: Format, order: usize) -> TraceReader {
        let lines: Box<dyn Lines> = match format {
            Format::Blkparse => Box::new(kernel::Blkparse::default()),
            Format::Tracepoints => Box::new(kernel::Tracepoints::default()),
            Format::FioLatency => Box::new(fio::Latency::default()),
            Format::FioIolog => Box::new(fio::Iolog::default()),
            Format::Msr => Box::new(tables::Msr),
            Format::Tencent => Box::new(tables::Tencent),
            Format::Alibaba => Box::new(tables::Alibaba),
            Format::Biosnoop => Box::new(tables::Biosnoop::default()),
        };
        TraceReader {
            format,
            lines,
            found: Found::default(),
            order: Order::new(order.clamp(1, ORDER_MAX)),
            line: 0,
            used: 0,
            dropped: Vec::new(),
            events: 0,
        }
    }

    /// The disks so far, which events name by index.
    pub fn disks(&self) -> &[String] {
        &self.found.names
    }

    /// Takes a line without its end, and gives on what is in order now.
    pub fn line(&mut self, line: &str, sink: &mut impl FnMut(&Event)) {
        self.line += 1;
        let line = if self.line == 1 { line.trim_start_matches('\u{feff}') } else { line };
        if line.trim().is_empty() {
            return;
        }
        match self.lines.line(line, &mut self.found) {
            LineOutcome::Used => self.used += 1,
            LineOutcome::Ignored => {}
            LineOutcome::Dropped(reason) => self.drop_line(reason, line),
        }
        self.give_on(line, sink);
    }

    fn drop_line(&mut self, reason: &'static str, line: &str) {
        // Reasons are texts of this program, so there are only so many.
        match self.dropped.iter_mut().find(|dropped| dropped.reason == reason) {
            Some(dropped) => dropped.count += 1,
            None => self.dropped.push(Dropped { reason, count: 1, line: self.line, text: quoted(line) }),
        }
    }

    fn give_on(&mut self, line: &str, sink: &mut impl FnMut(&Event)) {
        let raw = std::mem::take(&mut self.found.raw);
        for raw in &raw {
            if !self.order.push(*raw) {
                self.drop_line("it came too late to be put in order", line);
            }
            while let Some(event) = self.order.pop_ready() {
                self.events += 1;
                sink(&event);
            }
        }
        // Its room is used again.
        self.found.raw = raw;
        self.found.raw.clear();
    }

    /// There are no more lines: gives on what is left, and tells what there is to be known.
    ///
    /// # Errors
    /// When there was no I/O, or more lines could not be used than could.
    pub fn finish(mut self, file: &str, sink: &mut impl FnMut(&Event)) -> Result<TraceSummary, ReadError> {
        self.lines.end(&mut self.found);
        self.give_on("the end", sink);
        while let Some(event) = self.order.pop() {
            self.events += 1;
            sink(&event);
        }
        let bad: u64 = self.dropped.iter().map(|dropped| dropped.count).sum();
        if self.events == 0 || bad > self.used {
            return Err(self.refusal(file, bad));
        }
        Ok(TraceSummary {
            format: self.format,
            disks: self.found.names,
            lines: self.line,
            events: self.events,
            unfinished: self.found.unfinished,
            reordered: self.order.reordered,
            began_ns: self.order.began_ns.unwrap_or(0),
            dropped: self.dropped,
            notes: self.found.notes,
        })
    }

    fn refusal(&self, file: &str, bad: u64) -> ReadError {
        let first = self.dropped.first();
        let found = match first {
            Some(Dropped { reason, text, .. }) => {
                format!("{reason}: {text} ({bad} of {} cannot be used)", counted(self.line, "line"))
            }
            None => format!("no I/O in {}", counted(self.line, "line")),
        };
        ReadError::Text {
            file: file.to_owned(),
            line: first.map_or(self.line.max(1), |dropped| dropped.line),
            column: 1,
            what: self.format.line(),
            found,
            way_out: format!("expected lines like: {}", self.format.shape()),
        }
    }
}

/// Reads a trace of any size. Its form is found out unless `format` names it; `sink` is given the I/Os in order of time.
///
/// # Errors
/// When the form is unknown, when there is no I/O in it, when more lines could not be used than could, and when the input
/// fails.
pub fn read(
    file: &str,
    mut input: impl BufRead,
    format: Option<Format>,
    mut sink: impl FnMut(&Event),
) -> Result<TraceSummary, ReadError> {
    let mut head: Vec<String> = Vec::new();
    let mut count = 0;
    let mut next = |input: &mut dyn BufRead| -> Result<Option<String>, ReadError> {
        let line = bounded_line(input).map_err(|source| ReadError::Input {
            file: file.to_owned(),
            line: count,
            source,
        })?;
        count += u64::from(line.is_some());
        Ok(line)
    };
    let format = match format {
        Some(format) => format,
        None => {
            while head.len() < detect::LINES {
                match next(&mut input)? {
                    Some(line) => head.push(line),
                    None => break,
                }
            }
            detect::of_lines(file, &head)?
        }
    };
    let mut reader = TraceReader::new(format, ORDER_MAX);
    for line in head {
        reader.line(&line, &mut sink);
    }
    while let Some(line) = next(&mut input)? {
        reader.line(&line, &mut sink);
    }
    reader.finish(file, &mut sink)
}

/// The next line without its end, at most [`LINE_BYTES_MAX`] of it; nothing at the end. What is no UTF-8 is replaced.
fn bounded_line(input: &mut dyn BufRead) -> std::io::Result<Option<String>> {
    let (mut line, mut any) = (Vec::new(), false);
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        any = true;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX - line.len())]);
        let used = end.map_or(buffer.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    if !any {
        return Ok(None);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

#[cfg(test)]
mod tests;
