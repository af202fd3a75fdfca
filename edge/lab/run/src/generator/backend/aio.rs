//! Linux' older asynchronous I/O, for jobs that name it: what it costs and when it blocks is part of what they measure.

use super::{Backend, Call, Door, Ended, Submission, Wait, take_some, trim};
use crate::clock;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct iocb` of linux/aio_abi.h on little-endian machines.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result_more: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// A context of the kernel's and what waits to be submitted to it.
pub struct Aio {
    context: libc::c_ulong,
    doors: Vec<Door>,
    /// One for each token, for the kernel reads it while the I/O is under way.
    blocks: Vec<ControlBlock>,
    /// Blocks that wait to be submitted: what the kernel takes is a list of pointers.
    queued: Vec<*const ControlBlock>,
    events: Vec<Event>,
    ended: Vec<Ended>,
    under_way: u32,
}

impl Aio {
    /// For tokens below `depth`.
    ///
    /// # Errors
    /// When the kernel has no room for so many (`/proc/sys/fs/aio-max-nr`).
    pub fn new(doors: Vec<Door>, depth: usize) -> io::Result<Aio> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the call fills the context.
        let failed =
            unsafe { libc::syscall(libc::SYS_io_setup, depth.max(1) as libc::c_long, &raw mut context) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Aio {
            context,
            doors,
            blocks: vec![ControlBlock::default(); depth],
            queued: Vec::with_capacity(depth),
            events: vec![Event::default(); depth.max(1)],
            ended: Vec::new(),
            under_way: 0,
        })
    }

    fn get_events(&mut self, min: u32, most: usize, timeout: Option<Duration>) -> io::Result<usize> {
        let mut time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        });
        let time = time.as_mut().map_or(std::ptr::null_mut(), |time| time as *mut libc::timespec);
        // SAFETY: `events` has room for as many as are asked for, and the time stays in place during the call.
        let count = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                min as libc::c_long,
                self.events.len().min(most) as libc::c_long,
                self.events.as_mut_ptr(),
                time,
            )
        };
        match count {
            0.. => Ok(count as usize),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }
}

impl Backend for Aio {
    fn begin(&mut self, submission: Submission) -> io::Result<()> {
        let file = match &self.doors[submission.door] {
            Door::File(file) => file,
            Door::Null => {
                self.ended.push(Ended { token: submission.token, result: submission.size as i32 });
                return Ok(());
            }
            Door::Nbd(_) | Door::Spindle(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let opcode = match submission.call {
            Call::Read => PREAD,
            Call::Write => PWRITE,
            Call::Flush { data_only: true } => FDSYNC,
            Call::Flush { data_only: false } => FSYNC,
            Call::Trim => {
                let result = trim(file, submission.offset, submission.size);
                self.ended.push(Ended { token: submission.token, result });
                return Ok(());
            }
        };
        self.blocks[submission.token as usize] = ControlBlock {
            data: u64::from(submission.token),
            opcode,
            fd: file.as_raw_fd() as u32,
            buffer: submission.memory as u64,
            bytes: u64::from(submission.size),
            offset: submission.offset as i64,
            ..ControlBlock::default()
        };
        self.queued.push(&raw const self.blocks[submission.token as usize]);
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        let mut from = 0;
        while from < self.queued.len() {
            let pointers = &self.queued[from..];
            // SAFETY: each pointer is to a block that stays in place until its I/O has ended.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    pointers.len() as libc::c_long,
                    pointers.as_ptr(),
                )
            };
            match count {
                0.. => {
                    from += count as usize;
                    self.under_way += count as u32;
                }
                _ => {
                    let error = io::Error::last_os_error();
                    let number = error.raw_os_error().unwrap_or(libc::EIO);
                    if number != libc::EAGAIN && number != libc::EINTR {
                        // The first one is refused: it has ended, the others are tried.
                        // SAFETY: the pointer is to one of our own blocks.
                        let token = unsafe { (*self.queued[from]).data } as u32;
                        self.ended.push(Ended { token, result: -number });
                        from += 1;
                    } else if self.under_way > 0 {
                        break;
                    }
                }
            }
        }
        self.queued.drain(..from);
        Ok(())
    }

    fn collect(&mut self, wait: Wait, most: usize, ended: &mut Vec<Ended>) -> io::Result<()> {
        take_some(&mut self.ended, most, ended);
        let room = most.saturating_sub(ended.len());
        let (min, timeout) = match wait {
            Wait::For { count, until } if ended.is_empty() => {
                (count, Some(Duration::from_nanos(until.saturating_sub(clock::now()))))
            }
            Wait::For { .. } | Wait::No => (0, Some(Duration::ZERO)),
        };
        if self.under_way == 0 || room == 0 {
            if ended.is_empty() {
                std::thread::sleep(timeout.unwrap_or_default());
            }
            return Ok(());
        }
        let count = self.get_events(min.min(self.under_way).min(room as u32), room, timeout)?;
        self.under_way -= count as u32;
        ended.extend(self.events[..count].iter().map(|event| Ended {
            token: event.data as u32,
            result: i32::try_from(event.result).unwrap_or(i32::MAX),
        }));
        Ok(())
    }
}

impl Drop for Aio {
    fn drop(&mut self) {
        // SAFETY: the context is this one's own; the kernel waits for what is still under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
