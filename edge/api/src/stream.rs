//! Server-sent events of a host, as they come.
//!
//! Must never wait for ever: a host sends a sign of life every few seconds, and one that does not is told as silent.

use crate::limits::{EVENT_BYTES_MAX, EVENTS_SILENCE_MAX};
use failure::{Code, Failure};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::collections::VecDeque;
use tokio::task::JoinHandle;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Of which kind.
    pub name: String,
    /// What it says.
    pub data: String,
}

/// Events as they come. Dropped, the connection ends.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    connection: JoinHandle<Result<(), hyper::Error>>,
    reader: Reader,
    ready: VecDeque<Event>,
}

impl Events {
    pub(crate) fn new(body: Incoming, connection: JoinHandle<Result<(), hyper::Error>>) -> Events {
        Events { body, connection, reader: Reader::default(), ready: VecDeque::new() }
    }

    /// The next event; nothing when the host ends the stream.
    ///
    /// # Errors
    /// When the connection breaks, nothing comes for long, or an event is too long.
    pub async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let frame = tokio::time::timeout(EVENTS_SILENCE_MAX, self.body.frame()).await;
            let silent = || {
                Failure::new(
                    Code::Unreachable,
                    format!("nothing came for {} s", EVENTS_SILENCE_MAX.as_secs()),
                )
            };
            let Some(frame) = frame.map_err(|_| silent())? else { return Ok(None) };
            let frame = frame.map_err(|error| Failure::failed("read a stream of events", error))?;
            if let Some(bytes) = frame.data_ref() {
                self.ready.extend(self.reader.take(bytes)?);
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Puts events together from bytes (HTML standard, 9.2.6; of it what hosts send).
#[derive(Debug, Default)]
struct Reader {
    line: Vec<u8>,
    event: Event,
}

impl Reader {
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Failure> {
        let mut found = Vec::new();
        for byte in bytes {
            if *byte != b'\n' {
                self.line.push(*byte);
                if self.line.len() + self.event.data.len() > EVENT_BYTES_MAX {
                    return Err(Failure::failed("read a stream of events", "an event is too long"));
                }
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                if !event.data.is_empty() {
                    found.push(event);
                }
            } else if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut self.event.name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                self.event.data.push_str(data);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_whatever_pieces_they_come_in() {
        let text = b": a sign of life\n\nevent: all\ndata: {}\n\nevent: figures\ndata: {\"a\": 1}\n\n";
        for size in [1, 2, 7, text.len()] {
            let mut reader = Reader::default();
            let found: Vec<Event> =
                text.chunks(size).flat_map(|piece| reader.take(piece).expect("events")).collect();
            let event = |name: &str, data: &str| Event { name: name.to_owned(), data: data.to_owned() };
            assert_eq!(found, [event("all", "{}"), event("figures", "{\"a\": 1}")], "{size}");
        }
    }

    #[test]
    fn an_event_that_does_not_end_is_no_reason_to_keep_all_of_it() {
        let mut reader = Reader::default();
        let long = vec![b'x'; EVENT_BYTES_MAX + 1];
        reader.take(&long).expect_err("too long");
    }
}
