//! One io_uring for a node's devices and sockets.
//!
//! Every request that the kernel holds has a [`Flight`] here, which keeps its memory alive until the completion. Device
//! files are registered; so are the chunks that buffers lie in, each when it is first used. Must never decide anything.
//!
//! Files in memory (tmpfs) are read and written by plain calls: they never wait, and the ring would hand each request to a
//! worker thread, which costs several times the copy itself.

use base::request::Buffers;
use base::{Buffer, buffer};
use diskgroup::Io;
use frontends::IoVec;
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use node::GroupKey;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::io;
use std::net::SocketAddr;
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
    /// A client of NBD.
    Client(u32),
    /// Another node.
    Peer(u32),
}

/// Where connections come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Clients of NBD, by the number of the listener.
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
        DeviceFlight { group, io, file, call, offset, len, buffers, vectors: Vec::new() }
    }
}

/// A completion.
pub(crate) struct Completion {
    pub(crate) flight: Flight,
    /// Bytes or a descriptor, or what went wrong.
    pub(crate) result: io::Result<i32>,
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
    /// Times in succession that only those were taken.
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
                builder.setup_single_issuer().setup_defer_taskrun();
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
        if way == Way::AtOnce && flight.call != DeviceCall::Discard {
            let result = call_at_once(fd, &flight);
            return self.done.push(Completion { flight: Flight::Device(flight), result });
        }
        let file = Fixed(flight.file);
        let dsync = if let DeviceCall::Write { stable: true } = flight.call { libc::RWF_DSYNC } else { 0 };
        let entry = match flight.call {
            DeviceCall::Flush => {
                opcode::Fsync::new(file).flags(io_uring::types::FsyncFlags::DATASYNC).build()
            }
            DeviceCall::Discard => opcode::Fallocate::new(file, flight.len)
                .offset(flight.offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            DeviceCall::Read | DeviceCall::Write { .. } if flight.buffers.len() == 1 => {
                let buffer = flight.buffers[0].clone();
                self.single(&flight, &buffer, dsync)
            }
            DeviceCall::Read => unreachable!("a read fills one buffer"),
            DeviceCall::Write { .. } => {
                assert!(flight.buffers.len() <= VECTORS_MAX, "the caller splits longer writes");
                flight.vectors = flight.buffers.iter().map(vector_of).collect();
                opcode::Writev::new(file, flight.vectors.as_ptr(), flight.vectors.len() as u32)
                    .offset(flight.offset)
                    .rw_flags(dsync)
                    .build()
            }
        };
        let flags = if way == Way::ByWorker { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        self.push(entry.flags(flags), Flight::Device(flight));
    }

    fn single(&mut self, flight: &DeviceFlight, buffer: &Buffer, dsync: i32) -> squeue::Entry {
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
        let timeout = if self.done.is_empty() { timeout } else { Some(Duration::ZERO) };
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
        out.append(&mut self.done);
        let Ring { uring, flights, .. } = self;
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
            out.push(Completion { flight, result });
        }
    }
}

fn vector_of(buffer: &Buffer) -> libc::iovec {
    libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }
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
    let vectors: smallvec::SmallVec<[libc::iovec; 4]> = flight.buffers.iter().map(vector_of).collect();
    let (start, count, offset) = (vectors.as_ptr(), vectors.len() as i32, flight.offset as i64);
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
    use std::os::fd::AsRawFd;

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
