//! One io_uring for a node's devices and sockets.
//!
//! Every request that the kernel holds has a [`Flight`] here, which keeps its memory alive until the completion. Device
//! files are registered; so are the chunks that buffers lie in, each when it is first used. Must never decide anything.
//!
//! What no guest waits for is carried out in pieces, one after the other: the next request of a guest finds one of them before it in
//! the device's queue, and not a whole MiB.
//!
//! Files in memory (tmpfs) are read and written by plain calls: they never wait, and the ring would hand each request to a
//! worker thread, which costs several times the copy itself. The loop is their queue: of the pieces that no guest waits for it does
//! one each time that the kernel was asked whether anything else has come.

use base::request::Buffers;
use base::{Buffer, buffer};
use diskgroup::Io;
use frontends::IoVec;
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use node::GroupKey;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::RawFd;
use std::time::Duration;

/// Entries of the submission queue: more are handed to the kernel in between.
const ENTRIES: u32 = 1024;
/// Completions that fit before the kernel must keep some for later.
const COMPLETIONS: u32 = 8192;
/// Device files that one node may have open: eight of each of 64 groups.
const FILES_MAX: u32 = 512;
/// Chunks of 1 MiB that may be registered; others are used all the same, a little slower.
const CHUNKS_MAX: u32 = 4096;
/// Buffers of one vectored request (the kernel's limit).
const VECTORS_MAX: usize = 1024;
/// Bytes of a piece. Beside 40 MiB/s of writes in such pieces, each MiB made stable by one flush, one small write of a hundred took
/// about 1.5 times as long as alone, and 4 to 9 times as long beside writes of a MiB (perf/README.md, "Beside copies").
const PIECE: u64 = 128 << 10;
/// How often in succession the kernel is left alone: a request, what follows from it, and the answer; sockets wait no longer.
const SKIPPED_WAITS_MAX: u32 = 4;

/// What a vectored socket request needs to stay in place.
pub(crate) struct Message {
    header: libc::msghdr,
    pub(crate) vectors: Vec<IoVec>,
}

impl Message {
    pub(crate) fn new() -> Box<Message> {
        // SAFETY: a message header of zeroes is valid: no name, no vectors, no control data.
        Box::new(Message { header: unsafe { std::mem::zeroed() }, vectors: Vec::new() })
    }
}

/// Whose connection a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Socket {
    /// A client.
    Client(u32),
    /// Another node.
    Peer(u32),
}

/// Where connections come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Clients, by the number of the listener.
    Clients(usize),
    /// Other nodes.
    Peers,
}

/// An address as the kernel takes it.
pub(crate) struct SocketAddress {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

impl SocketAddress {
    pub(crate) fn new(address: &SocketAddr) -> Box<SocketAddress> {
        // SAFETY: zeroes are a valid value of this plain structure.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let len = match address {
            SocketAddr::V4(four) => {
                let sin_addr = libc::in_addr { s_addr: u32::from_ne_bytes(four.ip().octets()) };
                let (sin_family, sin_port) = (libc::AF_INET as libc::sa_family_t, four.port().to_be());
                let value = libc::sockaddr_in { sin_family, sin_port, sin_addr, sin_zero: [0; 8] };
                // SAFETY: the storage is made to hold every kind of address, aligned for all.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(value) };
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(six) => {
                let value = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: six.port().to_be(),
                    sin6_flowinfo: six.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: six.ip().octets() },
                    sin6_scope_id: six.scope_id(),
                };
                // SAFETY: as above.
                unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(value) };
                size_of::<libc::sockaddr_in6>()
            }
        };
        Box::new(SocketAddress { storage, len: len as libc::socklen_t })
    }
}

/// Whether a receive ends with what is there, or when its vectors are full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    Anything,
    Full,
}

/// What a completion is for.
pub(crate) enum Flight {
    /// A device request of a group.
    Device(DeviceFlight),
    /// A receive of a connection.
    Receive { socket: Socket, message: Box<Message> },
    /// A send of a connection.
    Send { socket: Socket, message: Box<Message> },
    /// Connections at a listener, one completion each.
    Accept { listener: Door },
    /// A connection to another node that is being made; its address stays in place meanwhile.
    Connect { peer: u32, _address: Box<SocketAddress> },
    /// Commands have come.
    Wake,
    /// A cancellation; what it cancelled completes by itself.
    Cancel,
}

/// What a device is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceCall {
    Read,
    Write { stable: bool },
    Flush,
    Discard,
}

pub(crate) struct DeviceFlight {
    pub(crate) group: GroupKey,
    pub(crate) io: Io,
    pub(crate) file: u32,
    pub(crate) call: DeviceCall,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) buffers: Buffers,
    vectors: Vec<libc::iovec>,
    /// Whether it may be carried out in pieces.
    gentle: bool,
    /// Bytes of pieces that are done.
    done: u64,
}

impl DeviceFlight {
    pub(crate) fn new(
        group: GroupKey,
        io: Io,
        file: u32,
        call: DeviceCall,
        offset: u64,
        buffers: Buffers,
    ) -> DeviceFlight {
        let len = buffers.iter().map(|buffer| buffer.len() as u64).sum();
        let vectors = Vec::new();
        DeviceFlight { group, io, file, call, offset, len, buffers, vectors, gentle: false, done: 0 }
    }

    /// The same, for which no guest waits.
    pub(crate) fn gentle(mut self, gentle: bool) -> DeviceFlight {
        self.gentle = gentle && self.len > PIECE;
        self
    }

    /// The bytes of the piece that is its turn; none when all that is left is to make them stable.
    fn piece(&self) -> Range<u64> {
        if self.gentle { self.done..self.len.min(self.done + PIECE) } else { 0..self.len }
    }

    /// A piece has ended so; whether another follows. What is left of the result is then that of the whole.
    fn is_followed(&mut self, result: &mut io::Result<i32>) -> bool {
        let (true, Ok(bytes)) = (self.gentle, result) else { return false };
        let Range { start, end } = self.piece();
        if start == self.len {
            *bytes = self.len as i32; // It is stable.
            return false;
        }
        let is_short = *bytes as u64 != end - start;
        self.done += *bytes as u64;
        *bytes = self.done as i32;
        !is_short && (self.done < self.len || self.call == DeviceCall::Write { stable: true })
    }
}

/// Those bytes of the buffers.
fn vectors_of(buffers: &[Buffer], bytes: &Range<u64>) -> impl Iterator<Item = libc::iovec> {
    let mut at = 0;
    let cut = move |buffer: &Buffer| {
        let begin = at;
        at += buffer.len() as u64;
        let (from, to) = (bytes.start.clamp(begin, at), bytes.end.clamp(begin, at));
        // SAFETY: both lie within the buffer.
        let start = unsafe { buffer.as_mut_ptr().add((from - begin) as usize) };
        libc::iovec { iov_base: start.cast(), iov_len: (to - from) as usize }
    };
    buffers.iter().map(cut).filter(|vector| vector.iov_len > 0)
}

/// A completion.
pub(crate) struct Completion {
    pub(crate) flight: Flight,
    /// Bytes or a descriptor, or what went wrong.
    pub(crate) result: io::Result<i32>,
}

/// Whether a call that failed so is simply to be made again.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

#[derive(Debug, Clone, Copy)]
struct DeviceFile {
    fd: RawFd,
    way: Way,
}

/// How requests reach a device (docs/design/0005).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A file in memory: by plain calls, which never wait.
    AtOnce,
    /// A block device, or a file of a file system that takes requests without waiting for them.
    Queued,
    /// A file of any other: by a worker of the kernel, for to hand the request in may take as long as the request.
    ByWorker,
}

/// The ring.
pub(crate) struct Ring {
    uring: IoUring,
    flights: Slab<Flight>,
    chunks: FxHashMap<usize, u16>,
    chunks_registered: u32,
    files: Slab<DeviceFile>,
    /// Requests of files in memory, which are done already.
    done: Vec<Completion>,
    /// Requests of files in memory that no guest waits for, each with a piece that is due.
    gentle: VecDeque<DeviceFlight>,
    /// Times in succession that only `done` was taken.
    skipped_waits: u32,
    may_register: bool,
    event: Box<u64>,
}

impl Ring {
    pub(crate) fn new() -> io::Result<Ring> {
        let build = |is_plain: bool| {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(COMPLETIONS).setup_clamp();
            if !is_plain {
                // With the flag a call that waits for nothing takes what has come, too: without it clients went unheard as long as a
                // file in memory was busy.
                builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            builder.build(ENTRIES)
        };
        // Kernels before 6.1 do not know deferred task running.
        let uring = build(false).or_else(|_| build(true))?;
        uring.submitter().register_files_sparse(FILES_MAX)?;
        let may_register = uring.submitter().register_buffers_sparse(CHUNKS_MAX).is_ok();
        Ok(Ring {
            uring,
            flights: Slab::with_capacity(1024),
            chunks: FxHashMap::default(),
            chunks_registered: 0,
            files: Slab::new(),
            done: Vec::new(),
            gentle: VecDeque::new(),
            skipped_waits: 0,
            may_register,
            event: Box::new(0),
        })
    }

    /// Registers a device's file; the number stands for it.
    pub(crate) fn add_file(&mut self, fd: RawFd) -> io::Result<u32> {
        let slot = self.files.insert(DeviceFile { fd, way: way_of(fd) }) as u32;
        assert!(slot < FILES_MAX, "groups and their devices are bounded");
        self.uring.submitter().register_files_update(slot, &[fd])?;
        Ok(slot)
    }

    /// Forgets a device's file. Nothing of it may be under way.
    pub(crate) fn remove_file(&mut self, slot: u32) -> io::Result<()> {
        self.uring.submitter().register_files_update(slot, &[-1])?;
        self.files.remove(slot as usize);
        Ok(())
    }

    /// The registered chunk of a buffer, registering it now if it is new.
    fn chunk_of(&mut self, buffer: &Buffer) -> Option<u16> {
        let start = buffer.chunk_start();
        if let Some(&index) = self.chunks.get(&(start as usize)) {
            return Some(index);
        }
        if !self.may_register || self.chunks_registered == CHUNKS_MAX {
            return None;
        }
        let index = self.chunks_registered;
        let vector = libc::iovec { iov_base: start.cast(), iov_len: buffer::CHUNK_SIZE };
        // SAFETY: the chunk is memory of a pool, which the engine keeps until the ring is gone.
        let registered = unsafe { self.uring.submitter().register_buffers_update(index, &[vector], None) };
        if registered.is_err() {
            self.may_register = false; // Locked memory is limited; unregistered buffers work as well.
            return None;
        }
        self.chunks_registered += 1;
        self.chunks.insert(start as usize, index as u16);
        Some(index as u16)
    }

    /// Asks a device for something.
    pub(crate) fn device(&mut self, mut flight: DeviceFlight) {
        let DeviceFile { fd, way } = self.files[flight.file as usize];
        if way == Way::AtOnce && flight.gentle {
            return self.gentle.push_back(flight);
        }
        if way == Way::AtOnce && flight.call != DeviceCall::Discard {
            let result = call_at_once(fd, &flight);
            return self.done.push(Completion { flight: Flight::Device(flight), result });
        }
        let entry = match flight.call {
            DeviceCall::Flush => self.sync(&flight),
            DeviceCall::Discard => opcode::Fallocate::new(Fixed(flight.file), flight.len)
                .offset(flight.offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            DeviceCall::Read | DeviceCall::Write { .. } if flight.gentle => self.piece(&mut flight),
            DeviceCall::Read | DeviceCall::Write { .. } if flight.buffers.len() == 1 => {
                let buffer = flight.buffers[0].clone();
                self.single(&flight, &buffer)
            }
            DeviceCall::Read => unreachable!("a read fills one buffer"),
            DeviceCall::Write { stable } => {
                assert!(flight.buffers.len() <= VECTORS_MAX, "the caller splits longer writes");
                flight.vectors = vectors_of(&flight.buffers, &(0..flight.len)).collect();
                opcode::Writev::new(Fixed(flight.file), flight.vectors.as_ptr(), flight.vectors.len() as u32)
                    .offset(flight.offset)
                    .rw_flags(dsync(stable))
                    .build()
            }
        };
        let flags = if way == Way::ByWorker { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        self.push(entry.flags(flags), Flight::Device(flight));
    }

    fn sync(&self, flight: &DeviceFlight) -> squeue::Entry {
        opcode::Fsync::new(Fixed(flight.file)).flags(io_uring::types::FsyncFlags::DATASYNC).build()
    }

    /// The next piece. They become stable together: a flush costs as much after a piece as after a MiB.
    fn piece(&self, flight: &mut DeviceFlight) -> squeue::Entry {
        let piece = flight.piece();
        if piece.is_empty() {
            return self.sync(flight);
        }
        flight.vectors = vectors_of(&flight.buffers, &piece).collect();
        assert!(flight.vectors.len() <= VECTORS_MAX, "a piece has fewer blocks");
        let (file, offset) = (Fixed(flight.file), flight.offset + piece.start);
        let (start, count) = (flight.vectors.as_ptr(), flight.vectors.len() as u32);
        match flight.call {
            DeviceCall::Read => opcode::Readv::new(file, start, count).offset(offset).build(),
            _ => opcode::Writev::new(file, start, count).offset(offset).build(),
        }
    }

    fn single(&mut self, flight: &DeviceFlight, buffer: &Buffer) -> squeue::Entry {
        let dsync = dsync(flight.call == DeviceCall::Write { stable: true });
        let file = Fixed(flight.file);
        let (start, len) = (buffer.as_mut_ptr(), buffer.len() as u32);
        match (flight.call, self.chunk_of(buffer)) {
            (DeviceCall::Read, Some(chunk)) => {
                opcode::ReadFixed::new(file, start, len, chunk).offset(flight.offset).build()
            }
            (DeviceCall::Read, None) => opcode::Read::new(file, start, len).offset(flight.offset).build(),
            (_, Some(chunk)) => {
                opcode::WriteFixed::new(file, start, len, chunk).offset(flight.offset).rw_flags(dsync).build()
            }
            (_, None) => opcode::Write::new(file, start, len).offset(flight.offset).rw_flags(dsync).build(),
        }
    }

    /// Starts a receive into the message's vectors.
    pub(crate) fn receive(&mut self, fd: RawFd, socket: Socket, mut message: Box<Message>, until: Until) {
        message.header.msg_iov = message.vectors.as_mut_ptr().cast();
        message.header.msg_iovlen = message.vectors.len();
        let flags = if until == Until::Full { libc::MSG_WAITALL as u32 } else { 0 };
        let entry = opcode::RecvMsg::new(Fd(fd), &raw mut message.header).flags(flags).build();
        self.push(entry, Flight::Receive { socket, message });
    }

    /// Connects a socket.
    pub(crate) fn connect(&mut self, fd: RawFd, peer: u32, address: Box<SocketAddress>) {
        let entry = opcode::Connect::new(Fd(fd), (&raw const address.storage).cast(), address.len).build();
        self.push(entry, Flight::Connect { peer, _address: address });
    }

    /// Starts a send of the message's vectors; the kernel goes on by itself when the socket is full in between.
    pub(crate) fn send(&mut self, fd: RawFd, socket: Socket, mut message: Box<Message>) {
        message.header.msg_iov = message.vectors.as_mut_ptr().cast();
        message.header.msg_iovlen = message.vectors.len();
        let flags = (libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32;
        let entry = opcode::SendMsg::new(Fd(fd), &raw const message.header).flags(flags).build();
        self.push(entry, Flight::Send { socket, message });
    }

    /// Accepts connections from now on.
    pub(crate) fn accept(&mut self, fd: RawFd, listener: Door) {
        let entry = opcode::AcceptMulti::new(Fd(fd)).flags(libc::SOCK_CLOEXEC).build();
        self.push(entry, Flight::Accept { listener });
    }

    /// Waits for the event counter.
    pub(crate) fn wait_event(&mut self, fd: RawFd) {
        let target: *mut u64 = &mut *self.event;
        let entry = opcode::Read::new(Fd(fd), target.cast(), 8).build();
        self.push(entry, Flight::Wake);
    }

    /// Cancels all that is under way on a socket or listener.
    pub(crate) fn cancel(&mut self, fd: RawFd) {
        let builder = io_uring::types::CancelBuilder::fd(Fd(fd)).all();
        let entry = opcode::AsyncCancel2::new(builder).build();
        self.push(entry, Flight::Cancel);
    }

    fn push(&mut self, entry: squeue::Entry, flight: Flight) {
        let key = self.flights.insert(flight);
        let entry = entry.user_data(key as u64);
        loop {
            // SAFETY: what the entry points to is kept by its flight until its completion.
            let pushed = unsafe { self.uring.submission().push(&entry) };
            if pushed.is_ok() {
                return;
            }
            // The queue is full: hand it over. A failure here (out of memory, completions to be taken first) passes.
            let _ = self.uring.submit();
        }
    }

    /// Hands in what is queued and waits for a completion, or until `timeout` has passed.
    ///
    /// The kernel is left alone while requests are done already: what follows from them is handed in together with what is
    /// queued now.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.done.is_empty() && self.skipped_waits < SKIPPED_WAITS_MAX {
            self.skipped_waits += 1;
            return Ok(());
        }
        self.skipped_waits = 0;
        let has_work = !self.done.is_empty() || !self.gentle.is_empty();
        let timeout = if has_work { Some(Duration::ZERO) } else { timeout };
        let result = match timeout {
            Some(Duration::ZERO) => self.uring.submitter().submit_and_wait(0),
            None => self.uring.submit_and_wait(1),
            Some(timeout) => {
                let time = Timespec::new().sec(timeout.as_secs()).nsec(timeout.subsec_nanos());
                let arguments = SubmitArgs::new().timespec(&time);
                self.uring.submitter().submit_with_args(1, &arguments)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes the completions that are there.
    pub(crate) fn take(&mut self, out: &mut Vec<Completion>) {
        let mut followed = Vec::new();
        let mut note = |mut completion: Completion| match completion.flight {
            Flight::Device(mut flight) => match flight.is_followed(&mut completion.result) {
                true => followed.push(flight),
                false => out.push(Completion { flight: Flight::Device(flight), ..completion }),
            },
            _ => out.push(completion),
        };
        self.done.drain(..).for_each(&mut note);
        let Ring { uring, flights, files, gentle, .. } = self;
        if self.skipped_waits == 0
            && let Some(flight) = gentle.pop_front()
        {
            let result = call_at_once(files[flight.file as usize].fd, &flight);
            note(Completion { flight: Flight::Device(flight), result });
            // Memory that was never used takes 0.6 ms a piece: who waits for the processor does not wait for eight of them.
            std::thread::yield_now();
        }
        for entry in uring.completion() {
            let result = match entry.result() {
                error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                value => Ok(value),
            };
            let key = entry.user_data() as usize;
            let flight = match flights.get(key) {
                // A multishot request stays until the kernel says that it has ended.
                Some(&Flight::Accept { listener }) if io_uring::cqueue::more(entry.flags()) => {
                    Flight::Accept { listener }
                }
                _ => flights.remove(key),
            };
            note(Completion { flight, result });
        }
        followed.into_iter().for_each(|flight| self.device(flight));
    }
}

fn dsync(stable: bool) -> i32 {
    if stable { libc::RWF_DSYNC } else { 0 }
}

/// The way to a file. That of a block device says nothing of the file system in which its node stands: `/dev` is one in memory.
fn way_of(fd: RawFd) -> Way {
    // SAFETY: zeroes are valid values of these plain structures, and the calls fill them.
    let (about, file_system) = unsafe {
        let (mut about, mut file_system): (libc::stat, libc::statfs) = std::mem::zeroed();
        if libc::fstat(fd, &raw mut about) != 0 || libc::fstatfs(fd, &raw mut file_system) != 0 {
            return Way::ByWorker;
        }
        (about, file_system)
    };
    if about.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Way::Queued;
    }
    match file_system.f_type {
        libc::TMPFS_MAGIC => Way::AtOnce,
        libc::EXT4_SUPER_MAGIC | libc::XFS_SUPER_MAGIC | libc::BTRFS_SUPER_MAGIC => Way::Queued,
        _ => Way::ByWorker,
    }
}

/// Does what the ring would, in this thread. All that was written to a file in memory is as stable as it can be.
fn call_at_once(fd: RawFd, flight: &DeviceFlight) -> io::Result<i32> {
    let piece = flight.piece();
    let vectors: smallvec::SmallVec<[libc::iovec; 4]> = vectors_of(&flight.buffers, &piece).collect();
    let (start, count) = (vectors.as_ptr(), vectors.len() as i32);
    let offset = (flight.offset + piece.start) as i64;
    // SAFETY: the vectors describe buffers that the flight keeps alive and that nobody else reads or writes now.
    let result = unsafe {
        match flight.call {
            DeviceCall::Read => libc::preadv(fd, start, count, offset),
            DeviceCall::Write { .. } => libc::pwritev(fd, start, count, offset),
            DeviceCall::Flush | DeviceCall::Discard => 0,
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::buffer::Pool;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    /// Carries a request out; how it ended, and how many waits that took.
    fn carry_out(ring: &mut Ring, flight: DeviceFlight) -> (io::Result<i32>, u32) {
        ring.device(flight);
        let mut ended = Vec::new();
        for waits in 1.. {
            ring.wait(None).expect("the ring works");
            ring.take(&mut ended);
            if let Some(Completion { result, .. }) = ended.pop() {
                return (result, waits);
            }
        }
        unreachable!("it ends or is waited for")
    }

    fn flight(file: u32, call: DeviceCall, buffers: Buffers) -> DeviceFlight {
        DeviceFlight::new(GroupKey(0), Io(0), file, call, 4096, buffers).gentle(true)
    }

    #[test]
    fn pieces_are_what_the_whole_is_wherever_the_file_stands() {
        let on_disk = tempfile::tempfile_in(".").expect("a file can be made");
        // SAFETY: the call takes a name and makes a descriptor, which stays open.
        let in_memory = unsafe { libc::memfd_create(c"test".as_ptr(), 0) };
        let pool = Pool::new(8 << 20);
        for fd in [on_disk.as_raw_fd(), in_memory] {
            let mut ring = Ring::new().expect("a ring can be made");
            let file = ring.add_file(fd).expect("there is room");
            let parts = [300 << 10, 4 << 10, 208 << 10, 512 << 10];
            let buffers = parts.iter().enumerate().map(|(turn, len)| {
                let mut buffer = pool.take(*len).expect("there is room");
                buffer.bytes_mut().chunks_mut(4096).enumerate().for_each(|(at, block)| {
                    block.fill((turn * 60 + at % 59) as u8);
                });
                buffer
            });
            let buffers: Buffers = buffers.collect();
            let written: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
            let (result, waits) =
                carry_out(&mut ring, flight(file, DeviceCall::Write { stable: true }, buffers));
            assert_eq!(result.expect("it is written"), 1 << 20);
            assert!(waits >= 9, "eight pieces and a flush: {waits}");
            let target = pool.take(1 << 20).expect("there is room");
            let buffers = smallvec::smallvec![target.clone()];
            let (result, waits) = carry_out(&mut ring, flight(file, DeviceCall::Read, buffers));
            assert_eq!(result.expect("it is read"), 1 << 20);
            assert!(waits >= 8, "{waits}");
            assert!(target[..] == written[..], "what was read is what was written");
        }
    }

    #[test]
    fn a_piece_that_is_short_ends_it_all() {
        let mut short = tempfile::tempfile_in(".").expect("a file can be made");
        short.write_all(&[7; 300 << 10]).expect("it can be written");
        let mut ring = Ring::new().expect("a ring can be made");
        let file = ring.add_file(short.as_raw_fd()).expect("there is room");
        let target = Pool::new(8 << 20).take(1 << 20).expect("there is room");
        let (result, _) = carry_out(&mut ring, flight(file, DeviceCall::Read, smallvec::smallvec![target]));
        assert_eq!(result.expect("so much could be read"), (300 << 10) - 4096);
    }

    #[test]
    fn one_piece_of_what_nobody_waits_for_is_done_between_two_looks_at_the_kernel() {
        // SAFETY: the call takes a name and makes a descriptor, which stays open.
        let in_memory = unsafe { libc::memfd_create(c"test".as_ptr(), 0) };
        let mut ring = Ring::new().expect("a ring can be made");
        let file = ring.add_file(in_memory).expect("there is room");
        let pool = Pool::new(8 << 20);
        let many = |ring: &mut Ring| {
            let buffer = pool.take(1 << 20).expect("there is room");
            ring.device(flight(file, DeviceCall::Write { stable: true }, smallvec::smallvec![buffer]));
        };
        (0..3).for_each(|_| many(&mut ring));
        let (mut ended, mut looks) = (Vec::new(), 0);
        while ended.len() < 3 {
            ring.wait(None).expect("the ring works");
            looks += 1;
            ring.take(&mut ended);
        }
        assert_eq!(looks, 3 * 9, "eight pieces each, and what makes them stable");
    }

    #[test]
    fn only_regular_files_in_memory_are_called_at_once() {
        // SAFETY: the call takes a name and makes a descriptor, which stays open.
        let in_memory = unsafe { libc::memfd_create(c"test".as_ptr(), 0) };
        assert_eq!(way_of(in_memory), Way::AtOnce);
        // The node stands in memory; the device does not.
        let device = std::fs::File::open("/dev/null").expect("it is everywhere");
        assert_eq!(way_of(device.as_raw_fd()), Way::Queued);
        let other = std::fs::File::open("/proc/self/stat").expect("it is everywhere");
        assert_eq!(way_of(other.as_raw_fd()), Way::ByWorker);
    }
}
