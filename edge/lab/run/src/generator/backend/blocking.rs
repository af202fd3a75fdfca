//! One call an I/O, as fio's psync does: the call is made when the I/O is begun.

use super::{Backend, Call, Door, Ended, Submission, Wait, take_some, trim};
use crate::clock;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Blocking calls on files.
pub struct Blocking {
    doors: Vec<Door>,
    ended: Vec<Ended>,
}

impl Blocking {
    /// For files and nothing else.
    pub fn new(doors: Vec<Door>) -> Blocking {
        Blocking { doors, ended: Vec::new() }
    }
}

fn perform(file: &File, submission: Submission) -> i32 {
    let (fd, size, offset) = (file.as_raw_fd(), submission.size as usize, submission.offset as i64);
    // SAFETY: the memory is the submission's own until its end is told, and has at least `size` bytes.
    let result = unsafe {
        match submission.call {
            Call::Read => libc::pread64(fd, submission.memory.cast(), size, offset),
            Call::Write => libc::pwrite64(fd, submission.memory.cast(), size, offset),
            Call::Flush { data_only: true } => libc::fdatasync(fd) as isize,
            Call::Flush { data_only: false } => libc::fsync(fd) as isize,
            Call::Trim => return trim(file, submission.offset, submission.size),
        }
    };
    match result {
        0.. => result as i32,
        _ => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}

impl Backend for Blocking {
    fn begin(&mut self, submission: Submission) -> io::Result<()> {
        let result = match &self.doors[submission.door] {
            Door::File(file) => perform(file, submission),
            Door::Null => submission.size as i32,
            Door::Nbd(_) | Door::Spindle(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        self.ended.push(Ended { token: submission.token, result });
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn collect(&mut self, wait: Wait, most: usize, ended: &mut Vec<Ended>) -> io::Result<()> {
        if self.ended.is_empty()
            && let Wait::For { until, .. } = wait
        {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(clock::now())));
        }
        take_some(&mut self.ended, most, ended);
        Ok(())
    }
}
