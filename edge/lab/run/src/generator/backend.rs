//! How I/Os reach a target: io_uring, Linux AIO, blocking calls, NBD connections, and nothing at all.

pub mod aio;
pub mod blocking;
pub mod null;
pub mod ring;

use std::fs::File;
use std::io;
use std::sync::Arc;

/// What is asked of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Data into memory.
    Read,
    /// Data from memory.
    Write,
    /// The target may forget the range.
    Trim,
    /// What was written becomes stable.
    Flush {
        /// Whether what describes the file may be left out.
        data_only: bool,
    },
}

/// An I/O that is handed over. Its memory stays untouched until its end is told.
#[derive(Debug, Clone, Copy)]
pub struct Submission {
    /// Given back with its end.
    pub token: u32,
    /// What.
    pub call: Call,
    /// Which of the thread's [`Door`]s.
    pub door: usize,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes.
    pub size: u32,
    /// From where or to where.
    pub memory: *mut u8,
}

/// An I/O that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Of its submission.
    pub token: u32,
    /// Bytes, or an error's number below 0.
    pub result: i32,
}

/// How long to wait for ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// For so many, or until this time (nanoseconds of [`crate::clock`]).
    For {
        /// Ends.
        count: u32,
        /// The latest.
        until: u64,
    },
}

/// Something that performs I/Os for one thread.
pub trait Backend {
    /// Takes an I/O; it may begin at once or with [`Backend::submit`].
    ///
    /// # Errors
    /// When it cannot be handed over at all.
    fn begin(&mut self, submission: Submission) -> io::Result<()>;

    /// Begins what was taken.
    ///
    /// # Errors
    /// When the kernel takes no more.
    fn submit(&mut self) -> io::Result<()>;

    /// Adds what has ended to `ended`, at most `most` of it, after waiting as asked. It may return earlier with nothing.
    ///
    /// # Errors
    /// When nothing can be waited for any more.
    fn collect(&mut self, wait: Wait, most: usize, ended: &mut Vec<Ended>) -> io::Result<()>;
}

/// Moves at most `most` of what has ended already.
pub(crate) fn take_some(from: &mut Vec<Ended>, most: usize, to: &mut Vec<Ended>) {
    let count = from.len().min(most.saturating_sub(to.len()));
    to.extend(from.drain(..count));
}

/// A way to a target, as a thread sees it.
#[derive(Debug, Clone)]
pub enum Door {
    /// A file or a block device of this machine.
    File(Arc<File>),
    /// A connection to an NBD server.
    Nbd(Arc<crate::nbd::Export>),
    /// A simulated disk.
    Spindle(crate::generator::spindle::Part),
    /// Nothing: every I/O succeeds at once.
    Null,
}

/// Performs a trim of a file by a blocking call: neither ring nor AIO have one for every kind of file.
pub(crate) fn trim(file: &File, offset: u64, size: u32) -> i32 {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileTypeExt;
    let is_device = file.metadata().is_ok_and(|data| data.file_type().is_block_device());
    let failed = if is_device {
        const BLKDISCARD: libc::c_ulong = 0x1277;
        let range = [offset, u64::from(size)];
        // SAFETY: the request reads two numbers from the pointer, which stay in place during the call.
        unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) }
    } else {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the call takes numbers only.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, i64::from(size)) }
    };
    match failed {
        0 => size as i32,
        _ => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}
