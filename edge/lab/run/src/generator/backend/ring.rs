//! One io_uring for a thread's files and NBD connections.

use super::{Backend, Call, Door, Ended, Submission, Wait, take_some, trim};
use crate::clock;
use crate::generator::spindle::Part;
use crate::nbd::{Conversation, HandshakeError, Link};
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// Bytes that a connection receives at a time.
const RECEIVE_SIZE: usize = 256 << 10;
/// Pieces of one send: header and data of so many requests.
const VECTORS_MAX: usize = 512;

const KIND_FILE: u64 = 0;
const KIND_RECEIVE: u64 = 1 << 32;
const KIND_SEND: u64 = 2 << 32;
const KIND_TICK: u64 = 3 << 32;
const KIND_MASK: u64 = 3 << 32;
/// `IORING_ENTER_GETEVENTS` of linux/io_uring.h.
const ENTER_GETEVENTS: u32 = 1;
/// Something ends every 100 ms at least, so that waiting needs no timeout of its own: that would cost a timer for each I/O.
const TICK: u64 = 100_000_000;

/// A ring and what it reaches.
pub struct Ring {
    // Dropped first: the kernel lets go of the memory of what is under way before that is freed.
    ring: IoUring,
    doors: Vec<Way>,
    ended: Vec<Ended>,
    /// What simulated disks have under way: when it ends, and what it was.
    simulated: BinaryHeap<Reverse<(u64, u32, i32)>>,
    queued: u32,
    under_way: u32,
    /// Connections with requests that are not in a send yet.
    to_send: bool,
    /// How long a tick lasts; it stays in place for the kernel.
    tick: Box<Timespec>,
    ticking: bool,
}

enum Way {
    File { file: Arc<File>, can_punch: bool },
    Nbd(Box<Connection>),
    Spindle(Part),
    Null,
}

struct Connection {
    link: Link,
    conversation: Conversation,
    /// Requests that wait to be sent, piece by piece.
    pieces: VecDeque<Piece>,
    /// What a send under way is made of; it stays in place until the send ends.
    sending: Box<Sending>,
    is_sending: bool,
    is_receiving: bool,
    receive: Vec<u8>,
    failed: Option<i32>,
}

#[derive(Clone, Copy)]
enum Piece {
    Header([u8; 28]),
    Data { memory: *mut u8, size: usize },
}

struct Sending {
    header: libc::msghdr,
    vectors: Vec<libc::iovec>,
    /// Headers of requests, or what TLS made of everything.
    bytes: Vec<u8>,
}

impl Ring {
    /// A ring for tokens below `depth`; opens a connection for each NBD export.
    ///
    /// # Errors
    /// When the kernel has no io_uring, or a connection fails.
    pub fn new(doors: Vec<Door>, depth: usize) -> Result<Ring, RingError> {
        let entries = u32::try_from(depth.max(8).next_power_of_two()).unwrap_or(u32::MAX).min(32_768);
        let ring = make_ring(entries).map_err(RingError::Ring)?;
        let doors = (doors.into_iter())
            .map(|door| {
                Ok(match door {
                    Door::File(file) => {
                        let can_punch = file.metadata().is_ok_and(|data| !data.file_type().is_block_device());
                        Way::File { file, can_punch }
                    }
                    Door::Nbd(export) => Way::Nbd(Box::new(Connection::open(&export.address, depth)?)),
                    Door::Spindle(part) => Way::Spindle(part),
                    Door::Null => Way::Null,
                })
            })
            .collect::<Result<_, RingError>>()?;
        let tick = Box::new(Timespec::new().nsec(TICK as u32));
        Ok(Ring {
            ring,
            doors,
            ended: Vec::new(),
            simulated: BinaryHeap::new(),
            queued: 0,
            under_way: 0,
            to_send: false,
            tick,
            ticking: false,
        })
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: what the entry points to stays in place until its completion: slots of I/O memory outlive the ring's
            // use of them, and a connection's buffers are not touched while a request of theirs is under way.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.queued += 1;
                return Ok(());
            }
            self.enter()?;
        }
    }

    fn enter(&mut self) -> io::Result<()> {
        while self.queued > 0 {
            self.ring.submission().sync();
            // SAFETY: no argument is passed. Asking for events too lets the kernel finish what has ended meanwhile.
            match unsafe {
                self.ring.submitter().enter::<libc::sigset_t>(self.queued, 0, ENTER_GETEVENTS, None)
            } {
                Ok(count) => {
                    self.queued -= count as u32;
                    self.under_way += count as u32;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && !self.ring.completion().is_empty() =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fill_connections(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.to_send) {
            return Ok(());
        }
        for door in 0..self.doors.len() {
            let Way::Nbd(connection) = &mut self.doors[door] else { continue };
            let (send, receive) = (connection.next_send(), connection.next_receive());
            if let Some(entry) = send {
                self.push(&entry.user_data(KIND_SEND | door as u64))?;
            }
            if let Some(entry) = receive {
                self.push(&entry.user_data(KIND_RECEIVE | door as u64))?;
            }
        }
        Ok(())
    }

    fn begin_file(&mut self, submission: Submission) -> io::Result<()> {
        let Way::File { file, can_punch } = &self.doors[submission.door] else { return Ok(()) };
        let fd = Fd(file.as_raw_fd());
        let Submission { offset, size, memory, .. } = submission;
        let entry = match submission.call {
            Call::Read => opcode::Read::new(fd, memory, size).offset(offset).build(),
            Call::Write => opcode::Write::new(fd, memory, size).offset(offset).build(),
            Call::Flush { data_only: true } => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            Call::Flush { data_only: false } => opcode::Fsync::new(fd).build(),
            Call::Trim if *can_punch => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(fd, u64::from(size)).offset(offset).mode(mode).build()
            }
            Call::Trim => {
                let result = trim(file, offset, size);
                self.ended.push(Ended { token: submission.token, result });
                return Ok(());
            }
        };
        self.push(&entry.user_data(KIND_FILE | u64::from(submission.token)))
    }

    fn end_simulated(&mut self) {
        if self.simulated.is_empty() {
            return;
        }
        let now = clock::now();
        while let Some(&Reverse((done, token, result))) = self.simulated.peek()
            && done <= now
        {
            self.simulated.pop();
            self.ended.push(Ended { token, result });
        }
    }

    /// Waits for `count` completions, or until `until` where that is before the next tick.
    fn wait(&mut self, count: u32, until: u64) -> io::Result<()> {
        let left = until.saturating_sub(clock::now());
        if !self.ticking && left >= TICK / 2 {
            self.ticking = true;
            let tick = opcode::Timeout::new(&raw const *self.tick).build();
            self.push(&tick.user_data(KIND_TICK))?;
        }
        self.submit()?;
        let count = (count as usize).clamp(1, self.under_way.max(1) as usize);
        let waited = match left >= TICK / 2 {
            true => self.ring.submitter().submit_and_wait(count),
            false => {
                let time = Timespec::new().sec(left / 1_000_000_000).nsec((left % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(count, &SubmitArgs::new().timespec(&time))
            }
        };
        match waited {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take_completions(&mut self, most: usize, ended: &mut Vec<Ended>) {
        let completions: &mut _ = &mut self.ring.completion();
        while ended.len() < most
            && let Some(completion) = completions.next()
        {
            self.under_way -= 1;
            let (kind, low) = (completion.user_data() & KIND_MASK, completion.user_data() as u32);
            if kind == KIND_FILE {
                ended.push(Ended { token: low, result: completion.result() });
                continue;
            }
            if kind == KIND_TICK {
                self.ticking = false;
                continue;
            }
            self.to_send = true;
            let Way::Nbd(connection) = &mut self.doors[low as usize] else { continue };
            match kind {
                KIND_RECEIVE => connection.received(completion.result(), ended),
                _ => connection.sent(completion.result(), ended),
            }
        }
    }
}

/// Why a ring cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel refuses.
    #[error("set up io_uring: {0}; it may be disabled (sysctl kernel.io_uring_disabled)")]
    Ring(io::Error),
    /// A server does not answer.
    #[error(transparent)]
    Connection(#[from] HandshakeError),
}

/// Completions are delivered when this thread asks for them, where the kernel can do that: it spares interrupts.
fn make_ring(entries: u32) -> io::Result<IoUring> {
    let best = IoUring::builder()
        .setup_cqsize(entries.saturating_mul(2))
        .setup_single_issuer()
        .setup_coop_taskrun()
        .setup_defer_taskrun()
        .build(entries);
    match best {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        other => other,
    }
}

impl Backend for Ring {
    fn begin(&mut self, submission: Submission) -> io::Result<()> {
        match &mut self.doors[submission.door] {
            Way::File { .. } => self.begin_file(submission),
            Way::Spindle(part) => {
                let done = part.serve(clock::now(), submission.offset, u64::from(submission.size));
                self.simulated.push(Reverse((done, submission.token, submission.size as i32)));
                Ok(())
            }
            Way::Null => {
                self.ended.push(Ended { token: submission.token, result: submission.size as i32 });
                Ok(())
            }
            Way::Nbd(connection) => {
                self.to_send = true;
                connection.ask(submission, &mut self.ended);
                Ok(())
            }
        }
    }

    fn submit(&mut self) -> io::Result<()> {
        self.fill_connections()?;
        self.enter()
    }

    fn collect(&mut self, wait: Wait, most: usize, ended: &mut Vec<Ended>) -> io::Result<()> {
        self.end_simulated();
        take_some(&mut self.ended, most, ended);
        self.take_completions(most, ended);
        if let Wait::For { count, until } = wait
            && ended.is_empty()
        {
            let simulated = self.simulated.peek().map_or(u64::MAX, |Reverse((done, ..))| *done);
            self.wait(count, until.min(simulated))?;
            self.end_simulated();
            take_some(&mut self.ended, most, ended);
            self.take_completions(most, ended);
        }
        // Answers make room for requests that waited to be sent.
        self.submit()
    }
}

impl Connection {
    fn open(address: &crate::nbd::Address, depth: usize) -> Result<Connection, RingError> {
        let link = Link::open(address)?;
        // SAFETY: a message header of zeroes is valid: no name, no vectors, no control data.
        let header = unsafe { std::mem::zeroed() };
        Ok(Connection {
            link,
            conversation: Conversation::new(depth),
            pieces: VecDeque::new(),
            sending: Box::new(Sending { header, vectors: Vec::new(), bytes: Vec::new() }),
            is_sending: false,
            is_receiving: false,
            receive: vec![0; RECEIVE_SIZE],
            failed: None,
        })
    }

    fn ask(&mut self, submission: Submission, ended: &mut Vec<Ended>) {
        if let Some(error) = self.failed {
            ended.push(Ended { token: submission.token, result: -error });
            return;
        }
        let Submission { token, call, offset, size, memory, .. } = submission;
        let keep = (call == Call::Read).then_some(memory);
        self.pieces.push_back(Piece::Header(self.conversation.ask(token, call, offset, size, keep)));
        if call == Call::Write {
            self.pieces.push_back(Piece::Data { memory, size: size as usize });
        }
    }

    fn next_receive(&mut self) -> Option<squeue::Entry> {
        if self.is_receiving || self.failed.is_some() || self.conversation.under_way() == 0 {
            return None;
        }
        self.is_receiving = true;
        let (memory, size) = (self.receive.as_mut_ptr(), self.receive.len() as u32);
        Some(opcode::Recv::new(Fd(self.link.fd()), memory, size).build())
    }

    fn next_send(&mut self) -> Option<squeue::Entry> {
        if self.is_sending || self.failed.is_some() {
            return None;
        }
        match self.link.tls.is_some() {
            true => self.encrypt(),
            false => self.gather(),
        }
        let sending = &mut *self.sending;
        if sending.vectors.is_empty() {
            return None;
        }
        self.is_sending = true;
        sending.header.msg_iov = sending.vectors.as_mut_ptr();
        sending.header.msg_iovlen = sending.vectors.len();
        Some(opcode::SendMsg::new(Fd(self.link.fd()), &raw const sending.header).build())
    }

    /// Requests one behind another, their data from where it is.
    fn gather(&mut self) {
        let sending = &mut *self.sending;
        if !sending.vectors.is_empty() {
            return;
        }
        let count = self.pieces.len().min(VECTORS_MAX);
        sending.bytes.clear();
        sending.bytes.reserve(count * 28);
        for piece in self.pieces.drain(..count) {
            let vector = match piece {
                Piece::Header(header) => {
                    let at = sending.bytes.len();
                    sending.bytes.extend_from_slice(&header);
                    // The reserve above keeps the bytes where they are.
                    libc::iovec { iov_base: sending.bytes[at..].as_mut_ptr().cast(), iov_len: header.len() }
                }
                Piece::Data { memory, size } => libc::iovec { iov_base: memory.cast(), iov_len: size },
            };
            sending.vectors.push(vector);
        }
    }

    fn encrypt(&mut self) {
        let Some(session) = &mut self.link.tls else { return };
        let sending = &mut *self.sending;
        if !sending.vectors.is_empty() {
            return;
        }
        sending.bytes.clear();
        // rustls keeps 64 KiB at most before its records are taken.
        while let Some(piece) = self.pieces.pop_front() {
            let bytes: &[u8] = match &piece {
                Piece::Header(header) => header,
                // SAFETY: a write's data stays as it is until the write is answered.
                Piece::Data { memory, size } => unsafe { std::slice::from_raw_parts(*memory, *size) },
            };
            for part in bytes.chunks(16 << 10) {
                let taken = session.writer().write_all(part);
                debug_assert!(taken.is_ok(), "a part of 16 KiB fits in an empty session");
                while session.wants_write() {
                    if session.write_tls(&mut sending.bytes).is_err() {
                        break;
                    }
                }
            }
        }
        while session.wants_write() && session.write_tls(&mut sending.bytes).is_ok() {}
        if !sending.bytes.is_empty() {
            let vector =
                libc::iovec { iov_base: sending.bytes.as_mut_ptr().cast(), iov_len: sending.bytes.len() };
            sending.vectors.push(vector);
        }
    }

    fn sent(&mut self, result: i32, ended: &mut Vec<Ended>) {
        self.is_sending = false;
        if result < 0 {
            return self.fail(-result, ended);
        }
        let mut left = result as usize;
        let vectors = &mut self.sending.vectors;
        let whole = vectors
            .iter()
            .take_while(|vector| {
                let fits = vector.iov_len <= left;
                if fits {
                    left -= vector.iov_len;
                }
                fits
            })
            .count();
        vectors.drain(..whole);
        if let Some(first) = vectors.first_mut()
            && left > 0
        {
            // SAFETY: fewer bytes than the vector has were sent, so its rest lies within it.
            first.iov_base = unsafe { first.iov_base.cast::<u8>().add(left) }.cast();
            first.iov_len -= left;
        }
    }

    fn received(&mut self, result: i32, ended: &mut Vec<Ended>) {
        self.is_receiving = false;
        if result <= 0 {
            return self.fail(if result == 0 { libc::ECONNRESET } else { -result }, ended);
        }
        let bytes = &self.receive[..result as usize];
        let taken = match &mut self.link.tls {
            None => self.conversation.take(bytes, |answer| {
                ended.push(Ended { token: answer.token, result: answer.result });
            }),
            Some(session) => decrypt(session, bytes, |plain| {
                self.conversation
                    .take(plain, |answer| ended.push(Ended { token: answer.token, result: answer.result }))
            }),
        };
        if taken.is_err() {
            self.fail(libc::EPROTO, ended);
        }
    }

    fn fail(&mut self, error: i32, ended: &mut Vec<Ended>) {
        self.failed = Some(error);
        self.pieces.clear();
        // A send that is under way may still look at its data; the socket is closed for it first.
        // SAFETY: the call takes numbers only.
        unsafe { libc::shutdown(self.link.fd(), libc::SHUT_RDWR) };
        self.conversation
            .abandon(error, |answer| ended.push(Ended { token: answer.token, result: answer.result }));
    }
}

fn decrypt(
    session: &mut rustls::ClientConnection,
    mut bytes: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), crate::nbd::BadServer>,
) -> Result<(), crate::nbd::BadServer> {
    let bad = |error: &dyn std::fmt::Display| crate::nbd::BadServer(format!("what TLS cannot read: {error}"));
    let mut plain = [0; 16 << 10];
    while !bytes.is_empty() {
        session.read_tls(&mut bytes).map_err(|error| bad(&error))?;
        session.process_new_packets().map_err(|error| bad(&error))?;
        loop {
            match session.reader().read(&mut plain) {
                Ok(0) => return Err(crate::nbd::BadServer("the end of its TLS session".to_owned())),
                Ok(count) => take(&plain[..count])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(bad(&error)),
            }
        }
    }
    Ok(())
}
