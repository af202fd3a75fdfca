//! Where events are kept: lines of JSON in two files, the newer of which is written on.
//!
//! What is written survives the process at once, and the machine once the kernel has written it: the last seconds before a
//! power failure may be missing. Together the files never take more than twice [`EVENT_FILE_BYTES_MAX`].

use crate::limits::EVENT_FILE_BYTES_MAX;
use api::types::EventView;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NEWER: &str = "events.jsonl";
const OLDER: &str = "events.1.jsonl";

/// The files in a folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    newer: File,
    bytes: u64,
}

impl Files {
    /// What they hold, oldest first. Lines that make no sense are left out: a crash may have cut the last one short.
    pub(super) fn read(folder: &Path) -> io::Result<Vec<EventView>> {
        let mut events = read(&folder.join(OLDER))?;
        events.extend(read(&folder.join(NEWER))?);
        Ok(events)
    }

    /// Opens or makes them.
    pub(super) fn open(folder: &Path) -> io::Result<Files> {
        let newer = open(&folder.join(NEWER))?;
        let mut files = Files { folder: folder.to_owned(), bytes: newer.metadata()?.len(), newer };
        files.end_line()?;
        Ok(files)
    }

    /// What was cut short must not spoil the line after it.
    fn end_line(&mut self) -> io::Result<()> {
        let bytes = std::fs::read(self.folder.join(NEWER))?;
        if bytes.last().is_some_and(|last| *last != b'\n') {
            self.newer.write_all(b"\n")?;
            self.bytes += 1;
        }
        Ok(())
    }

    /// Adds a line. When the newer file is full it becomes the older one, and what that held goes.
    pub(super) fn add(&mut self, event: &EventView) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        if self.bytes > 0 && self.bytes + line.len() as u64 > EVENT_FILE_BYTES_MAX {
            let newer = self.folder.join(NEWER);
            std::fs::rename(&newer, self.folder.join(OLDER))?;
            self.newer = open(&newer)?;
            self.bytes = 0;
        }
        self.newer.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

fn read(path: &Path) -> io::Result<Vec<EventView>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}
