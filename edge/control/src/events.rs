//! What happened on a host, and to the disks that it owned: when, of which kind, to what, and why.
//!
//! The newest are in memory, where questions find them; all go to the log too, with their kind. Must never hold up what it
//! tells of: when the files cannot be written, that is said and the rest goes on in memory, from where it is written once that can be
//! done.

mod file;
mod kind;

use crate::asked::asked_by;
use crate::limits::{EVENTS_ANSWERED, EVENTS_KEPT, EVENTS_RETRY};
use api::types::{EventQuery, EventView};
use failure::Failure;
use file::Files;
pub use kind::Kind;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The events of a host, oldest first.
#[derive(Debug)]
pub struct EventLog {
    host: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    events: VecDeque<EventView>,
    next: u64,
    folder: PathBuf,
    kept: Kept,
    /// The number of the newest event that the files have.
    written: u64,
}

/// Where events are kept besides in memory.
#[derive(Debug)]
enum Kept {
    InFiles(Files),
    /// Nowhere for now.
    Nowhere {
        why: String,
        /// When it was last tried to write them.
        tried: Instant,
    },
}

impl Kept {
    fn nowhere(error: std::io::Error) -> Kept {
        tracing::error!("events are kept in memory alone for now: {error}");
        Kept::Nowhere { why: error.to_string(), tried: Instant::now() }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl EventLog {
    /// Opens what a host has kept in its data directory. That nothing can be added there is no reason not to start.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn open(data_dir: &Path, host: &str) -> Result<EventLog, Failure> {
        let kept = Files::read(data_dir)
            .map_err(|error| Failure::failed("read the events that were kept", error))?;
        let next = kept.iter().map(|event| event.number).max().unwrap_or(0) + 1;
        let more = kept.len().saturating_sub(EVENTS_KEPT);
        let inner = Inner {
            events: kept.into_iter().skip(more).collect(),
            next,
            folder: data_dir.to_owned(),
            kept: Files::open(data_dir).map_or_else(Kept::nowhere, Kept::InFiles),
            written: next - 1,
        };
        Ok(EventLog { host: host.to_owned(), inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened to a disk.
    pub fn disk(&self, kind: Kind, disk: &str, text: impl Into<String>) {
        self.add(kind, format!("disk {disk}"), disk.to_owned(), text.into());
    }

    /// Something happened to a host.
    pub fn host(&self, kind: Kind, host: &str, text: impl Into<String>) {
        self.add(kind, format!("host {host}"), String::new(), text.into());
    }

    /// Something happened to this host.
    pub fn here(&self, kind: Kind, text: impl Into<String>) {
        self.host(kind, &self.host, text);
    }

    /// Something happened to something else, as people call it: `cluster`, `device /dev/sdb of host a`.
    pub fn other(&self, kind: Kind, subject: impl Into<String>, text: impl Into<String>) {
        let subject = subject.into();
        let disk = subject.strip_prefix("disk ").unwrap_or_default().to_owned();
        self.add(kind, subject, disk, text.into());
    }

    fn add(&self, kind: Kind, subject: String, disk: String, text: String) {
        let who = asked_by();
        let by = who.as_ref().map(tracing::field::display);
        match kind.is_bad() {
            true => tracing::warn!(kind = kind.as_str(), by, "{subject}: {text}"),
            false => tracing::info!(kind = kind.as_str(), by, "{subject}: {text}"),
        }
        let now = now();
        let mut inner = self.lock();
        let event = EventView {
            number: inner.next,
            time: now.as_secs(),
            time_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            host: self.host.clone(),
            kind: kind.as_str().to_owned(),
            subject,
            disk,
            text,
            who,
        };
        inner.next += 1;
        inner.keep(event, Instant::now());
    }

    /// The number that the next event gets: whether something happened meanwhile.
    pub fn next_number(&self) -> u64 {
        self.lock().next
    }

    /// Why events are kept in memory alone, if so. To ask is an occasion to try again.
    pub fn trouble(&self) -> Option<String> {
        let mut inner = self.lock();
        inner.write_missing(Instant::now());
        match &inner.kept {
            Kept::InFiles(_) => None,
            Kept::Nowhere { why, .. } => {
                Some(format!("events are kept in memory alone, and a restart would lose them ({why})"))
            }
        }
    }

    /// The newest that are asked for, oldest first.
    pub fn find(&self, query: &EventQuery) -> Vec<EventView> {
        let now_ms = u64::try_from(now().as_millis()).unwrap_or(u64::MAX);
        let inner = self.lock();
        let meant = inner.events.iter().rev().filter(|event| is_meant(event, query, now_ms));
        let mut found: Vec<EventView> = meant.take(query.limit.unwrap_or(EVENTS_ANSWERED)).cloned().collect();
        found.reverse();
        found
    }
}

impl EventLog {
    /// Of the events that are meant the newest of each kind and subject.
    pub fn newest_of(&self, is_meant: impl Fn(&EventView) -> bool) -> Vec<EventView> {
        let inner = self.lock();
        let meant = inner.events.iter().filter(|event| is_meant(event));
        // The last one of a key stays.
        let newest: BTreeMap<(&str, &str), &EventView> =
            meant.map(|event| ((event.kind.as_str(), event.subject.as_str()), event)).collect();
        newest.into_values().cloned().collect()
    }
}

impl Inner {
    fn keep(&mut self, event: EventView, now: Instant) {
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
        self.write_missing(now);
    }

    /// Writes what the files lack, unless that failed a moment ago.
    fn write_missing(&mut self, now: Instant) {
        let written = match &mut self.kept {
            Kept::InFiles(files) => add_all(files, &self.events, &mut self.written),
            Kept::Nowhere { tried, .. } if now.saturating_duration_since(*tried) < EVENTS_RETRY => return,
            // What a write that failed had begun is ended there.
            Kept::Nowhere { .. } => Files::open(&self.folder).and_then(|mut files| {
                add_all(&mut files, &self.events, &mut self.written)?;
                tracing::info!("events are kept in files again");
                self.kept = Kept::InFiles(files);
                Ok(())
            }),
        };
        match (written, &mut self.kept) {
            (Ok(()), _) => {}
            // It is said once.
            (Err(error), Kept::Nowhere { why, tried }) => (*why, *tried) = (error.to_string(), now),
            (Err(error), kept) => *kept = Kept::nowhere(error),
        }
    }
}

/// Adds the events after `written` to the files, and counts them.
fn add_all(files: &mut Files, events: &VecDeque<EventView>, written: &mut u64) -> std::io::Result<()> {
    let first = events.partition_point(|event| event.number <= *written);
    for event in events.range(first..) {
        files.add(event)?;
        *written = event.number;
    }
    Ok(())
}

fn is_meant(event: &EventView, query: &EventQuery, now_ms: u64) -> bool {
    let EventQuery { since, about, kind, limit: _ } = query;
    let is_new =
        since.is_none_or(|seconds| event.time_ms >= now_ms.saturating_sub(seconds.saturating_mul(1000)));
    let is_about = about.as_deref().is_none_or(|about| ::cluster::is_about(&event.subject, about));
    is_new && is_about && kind.as_deref().is_none_or(|wanted| Kind::is_meant(&event.kind, wanted))
}

/// Refuses what no event can be.
///
/// # Errors
/// Says which kinds there are.
pub fn check(query: &EventQuery) -> Result<(), Failure> {
    let is_known = |wanted: &String| Kind::ALL.iter().any(|kind| Kind::is_meant(kind.as_str(), wanted));
    match &query.kind {
        Some(kind) if !is_known(kind) => {
            Err(Failure::usage(format!("there are no events of the kind `{kind}`"))
                .hint(Kind::ALL.map(Kind::as_str).join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

/// The events of several hosts as one list, oldest first; the newest of them.
pub fn merged(mut all: Vec<EventView>, limit: Option<usize>) -> Vec<EventView> {
    all.sort_by(|a, b| (a.time_ms, &a.host, a.number).cmp(&(b.time_ms, &b.host, b.number)));
    let more = all.len().saturating_sub(limit.unwrap_or(EVENTS_ANSWERED));
    all.split_off(more)
}

#[cfg(test)]
mod tests;
