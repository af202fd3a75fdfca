//! What happened on a host, and to the disks that it owned: when, of which kind, to what, and why.
//!
//! The newest are in memory, where questions find them; all go to the log too, with their kind. Must never hold up what it
//! tells of: when the files cannot be written, that is said once and the rest goes on in memory.

mod file;
mod kind;

use crate::api::access::asked_by;
use crate::api::types::{EventQuery, EventView};
use crate::failure::Failure;
use crate::limits::{EVENTS_ANSWERED, EVENTS_KEPT};
use file::Files;
pub use kind::Kind;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    /// Nothing once they could not be written.
    files: Option<Files>,
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl EventLog {
    /// Opens what a host has kept in its data directory.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn open(data_dir: &Path, host: &str) -> Result<EventLog, Failure> {
        let (files, kept) = Files::open(data_dir)
            .map_err(|error| Failure::failed("read the events that were kept", error))?;
        let next = kept.iter().map(|event| event.number).max().unwrap_or(0) + 1;
        let more = kept.len().saturating_sub(EVENTS_KEPT);
        let inner = Inner { events: kept.into_iter().skip(more).collect(), next, files: Some(files) };
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
        inner.keep(event);
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

impl Inner {
    fn keep(&mut self, event: EventView) {
        if let Some(files) = &mut self.files
            && let Err(error) = files.add(&event)
        {
            tracing::error!("events are kept in memory alone from now on: {error}");
            self.files = None;
        }
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
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
