//! The files of rows: one for each day, the oldest of which go first.
//!
//! Rows are added at the end, and a row that a crash cut short is cut off before the next one is added. Nothing that follows damage is read.

use super::Range;
use super::row::Row;
use crate::limits::{SERIES_FILES_BYTES_MAX, SERIES_FILES_KEPT};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const DAY: u64 = 24 * 3600;
/// What a file begins with.
const MAGIC: [u8; 8] = *b"DRYROWS\x01";
const ENDING: &str = "rows";

/// The files in a folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// One changes them at a time.
    writing: Mutex<()>,
}

impl Files {
    pub(super) fn new(folder: PathBuf) -> Files {
        Files { folder, writing: Mutex::new(()) }
    }

    fn path(&self, day: u64) -> PathBuf {
        self.folder.join(format!("{day}.{ENDING}"))
    }

    /// Adds the rows of a slot.
    pub(super) fn append(&self, start: u64, rows: &[Row]) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let day = start / DAY;
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        self.forget(day)?;
        let path = self.path(day);
        let whole = whole_length(&path)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let mut bytes = if whole == 0 { MAGIC.to_vec() } else { Vec::new() };
        rows.iter().for_each(|row| bytes.extend(row.encode()));
        file.set_len(whole)?;
        file.seek(SeekFrom::Start(whole))?;
        file.write_all(&bytes)?;
        file.sync_data()
    }

    /// Gives all rows whose slots begin in a range.
    pub(super) fn read(&self, range: Range, mut take: impl FnMut(&Row)) -> io::Result<()> {
        let days = range.start / DAY..=range.end() / DAY;
        for (day, path, _) in self.listed()?.into_iter().filter(|(day, ..)| days.contains(day)) {
            let bytes = match std::fs::read(&path) {
                // It was the oldest, and went meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                read => read?,
            };
            let read = each_row(&bytes, &mut take);
            if read < bytes.len() {
                tracing::debug!("the figures of day {day} are damaged behind byte {read}");
            }
        }
        Ok(())
    }

    /// The files by day, oldest first, with their sizes.
    fn listed(&self) -> io::Result<Vec<(u64, PathBuf, u64)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let is_ours = path.extension().is_some_and(|ending| ending == ENDING);
            let day = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if let Some(day) = day.filter(|_| is_ours) {
                found.push((day, path, entry.metadata()?.len()));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Removes what is too old, and the oldest of what is too much.
    fn forget(&self, today: u64) -> io::Result<()> {
        let found = self.listed()?;
        let mut bytes: u64 = found.iter().map(|(_, _, bytes)| bytes).sum();
        for (day, path, size) in found {
            let is_old = day + SERIES_FILES_KEPT.as_secs() / DAY < today;
            if is_old || (bytes > SERIES_FILES_BYTES_MAX && day != today) {
                std::fs::remove_file(path)?;
                bytes -= size;
            }
        }
        Ok(())
    }
}

/// Bytes of a file up to the end of its last whole row; 0 where there is no such file, or it is of another kind.
fn whole_length(path: &Path) -> io::Result<u64> {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        read => Ok(each_row(&read?, &mut |_| {}) as u64),
    }
}

/// Gives all whole rows; the bytes that they and the beginning take.
fn each_row(bytes: &[u8], take: &mut impl FnMut(&Row)) -> usize {
    if !bytes.starts_with(&MAGIC) {
        return 0;
    }
    let mut at = MAGIC.len();
    while let Some((row, length)) = Row::decode(&bytes[at..]) {
        take(&row);
        at += length;
    }
    at
}
