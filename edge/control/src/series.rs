//! What guests and devices of this host did: each second of the last hour in memory, and five minutes a row for 90 days in files.
//!
//! Only what did something takes room, but for the host itself: its rows tell when it ran. Both are bounded. Must never hold up
//! whoever takes samples: rows that cannot be written are dropped, and that is said once.

mod files;
mod recent;
mod row;
mod steps;
mod subject;
#[cfg(test)]
pub(crate) mod tests;

use crate::limits::SERIES_SLOT;
use crate::system::blocking;
use files::Files;
use iostats::Interval;
use recent::Recent;
use row::Row;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
pub use steps::{Range, Steps};
pub use subject::Subject;

/// The series of a host.
#[derive(Debug)]
pub struct Series {
    inner: Mutex<Inner>,
    files: Files,
}

#[derive(Debug, Default)]
struct Inner {
    recent: Recent,
    slot: Slot,
    /// Why rows could not be written last, if so.
    trouble: Option<String>,
}

/// The five minutes that are not over yet.
#[derive(Debug, Default)]
struct Slot {
    /// When it began, in seconds since 1970.
    start: u64,
    /// Seconds of it that were seen.
    seconds: u16,
    sums: BTreeMap<Subject, Interval>,
}

impl Slot {
    fn rows(&self) -> Vec<Row> {
        let row = |(subject, interval): (&Subject, &Interval)| Row {
            start: self.start,
            seconds: self.seconds,
            subject: *subject,
            interval: interval.clone(),
        };
        self.sums.iter().map(row).collect()
    }
}

impl Series {
    /// The series that are kept in a data directory.
    pub fn new(data_dir: PathBuf) -> Series {
        Series { inner: Mutex::default(), files: Files::new(data_dir.join("series")) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what happened in the second that ended at `now` (in seconds since 1970), of `seconds` seconds. Writes rows where a slot has
    /// ended.
    pub fn take(&self, now: u64, seconds: u16, happened: &BTreeMap<Subject, Interval>) {
        // The second lies before its end.
        let slot = now.saturating_sub(1) / SERIES_SLOT.as_secs() * SERIES_SLOT.as_secs();
        let ended = {
            let mut inner = self.lock();
            inner.recent.add(now, happened);
            // The clock may have been set back, too.
            let is_over = inner.slot.start != slot && inner.slot.seconds > 0;
            let ended = is_over.then(|| std::mem::take(&mut inner.slot));
            inner.slot.start = slot;
            inner.slot.seconds = inner.slot.seconds.saturating_add(seconds);
            inner.slot.sums.entry(Subject::Host).or_default();
            for (subject, interval) in happened {
                inner.slot.sums.entry(*subject).or_default().merge(interval);
            }
            ended
        };
        if let Some(ended) = ended {
            blocking(|| self.write(&ended));
        }
    }

    /// Writes what is not over: the host ends.
    pub fn close(&self) {
        let slot = std::mem::take(&mut self.lock().slot);
        if slot.seconds > 0 {
            self.write(&slot);
        }
    }

    fn write(&self, slot: &Slot) {
        let written = self.files.append(slot.start, &slot.rows());
        let mut inner = self.lock();
        match written {
            Ok(()) => inner.trouble = None,
            Err(error) => {
                if inner.trouble.is_none() {
                    tracing::warn!("five minutes of figures are lost, and those that follow may be: {error}");
                }
                inner.trouble = Some(error.to_string());
            }
        }
    }

    /// What a subject did in the steps of a range. Steps shorter than a slot are known of the last hour alone.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn steps(&self, subject: Subject, range: Range) -> std::io::Result<Steps> {
        let mut steps = Steps::new(range);
        if range.step < SERIES_SLOT.as_secs() {
            self.lock().recent.fill(subject, &mut steps);
            return Ok(steps);
        }
        self.files.read(range, |row| steps.add_row(subject, row))?;
        for row in self.lock().slot.rows() {
            steps.add_row(subject, &row);
        }
        Ok(steps)
    }

    /// Why rows could not be written last, if so.
    pub fn trouble(&self) -> Option<String> {
        self.lock().trouble.clone()
    }
}
