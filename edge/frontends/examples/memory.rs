//! An NBD server for trying real clients against the session: one disk in memory, one thread per connection.
//!
//! `memory --unix PATH | --tcp ADDRESS [--size BYTES] [--read-only] [--shuffle] [--tls CERT KEY] [--tls-required]
//! [--tls-clients CA]`. Files are PEM. `--shuffle` answers requests in another order than they came in.

use base::Pool;
use base::request::{Outcome, Piece, Pieces, Reply, Request, StatusRun};
use frontends::tls::{TlsIdentity, TlsPolicy};
use frontends::{AttachRefusal, Event, Export, IoVec, Protocol, Session, Transfer, TransferEnd};
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

const BLOCK: u64 = 4096;
type Block = Box<[u8; BLOCK as usize]>;

#[derive(Clone, Default)]
struct Options {
    size: u64,
    read_only: bool,
    shuffle: bool,
    tls: TlsPolicy,
}

/// A sparse disk.
#[derive(Clone, Default)]
struct Disk {
    blocks: Arc<Mutex<BTreeMap<u64, Block>>>,
}

impl Disk {
    fn perform(&self, pool: &Pool, request: Request) -> Outcome {
        let mut blocks = self.blocks.lock().expect("no thread panics with the lock held");
        Ok(match request {
            Request::CopyUp { .. } => Reply::Done,
            Request::Read { offset, len } | Request::View { offset, len, .. } => {
                Reply::Data(read(&blocks, pool, offset, u64::from(len)))
            }
            Request::Write { offset, data } => {
                let mut at = offset;
                for buffer in data {
                    write(&mut blocks, at, &buffer);
                    at += buffer.len() as u64;
                }
                Reply::Done
            }
            Request::Flush => Reply::Done,
            Request::Trim { offset, len } | Request::WriteZeroes { offset, len, allocate: false } => {
                let (first, last) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
                if first < last {
                    let removed: Vec<u64> = blocks.range(first..last).map(|(&index, _)| index).collect();
                    removed.iter().for_each(|index| drop(blocks.remove(index)));
                }
                let end = offset + len;
                let head_end = end.min(offset.next_multiple_of(BLOCK));
                zero(&mut blocks, offset, head_end, false);
                zero(&mut blocks, (end / BLOCK * BLOCK).max(head_end), end, false);
                Reply::Done
            }
            Request::WriteZeroes { offset, len, allocate: true } => {
                zero(&mut blocks, offset, offset + len, true);
                Reply::Done
            }
            Request::Status { of: _, offset, len } => Reply::Status(status(&blocks, offset, len)),
        })
    }
}

/// Per block that a range touches: its index, where in it the range starts, how many bytes of the range lie in it.
fn parts(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    std::iter::from_fn(move || {
        let within = at % BLOCK;
        let part = (BLOCK - within).min(offset + len - at);
        let item = (part > 0).then_some((at / BLOCK, within as usize, part as usize));
        at += part;
        item
    })
}

fn read(blocks: &BTreeMap<u64, Block>, pool: &Pool, offset: u64, len: u64) -> Pieces {
    let mut pieces = Pieces::new();
    for (index, within, part) in parts(offset, len) {
        match (blocks.get(&index), pieces.last_mut()) {
            (None, Some(Piece::Hole(hole))) => *hole += part as u32,
            (None, _) => pieces.push(Piece::Hole(part as u32)),
            (Some(block), _) => {
                let mut buffer = pool.take(part).expect("the pool holds what one client may have under way");
                buffer.bytes_mut().copy_from_slice(&block[within..within + part]);
                pieces.push(Piece::Bytes(buffer));
            }
        }
    }
    pieces
}

fn write(blocks: &mut BTreeMap<u64, Block>, offset: u64, bytes: &[u8]) {
    let mut done = 0;
    for (index, within, part) in parts(offset, bytes.len() as u64) {
        let block = blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK as usize]));
        block[within..within + part].copy_from_slice(&bytes[done..done + part]);
        done += part;
    }
}

fn zero(blocks: &mut BTreeMap<u64, Block>, from: u64, to: u64, allocate: bool) {
    for (index, within, part) in parts(from, to.saturating_sub(from)) {
        if allocate {
            blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK as usize]));
        }
        if let Some(block) = blocks.get_mut(&index) {
            block[within..within + part].fill(0);
        }
    }
}

fn status(blocks: &BTreeMap<u64, Block>, offset: u64, len: u64) -> Vec<StatusRun> {
    let mut runs: Vec<StatusRun> = Vec::new();
    let mut push = |len: u64, is_set: bool| match runs.last_mut() {
        _ if len == 0 => {}
        Some(run) if run.is_set == is_set => run.len += len,
        _ => runs.push(StatusRun { len, is_set }),
    };
    let (mut at, end) = (offset, offset + len);
    for &index in blocks.range(offset / BLOCK..end.div_ceil(BLOCK)).map(|(index, _)| index) {
        let start = (index * BLOCK).max(at);
        push(start - at, false);
        at = ((index + 1) * BLOCK).min(end);
        push(at - start, true);
    }
    push(end - at, false);
    runs
}

fn serve(mut socket: impl Read + Write, disk: Disk, options: Options) {
    let pool = Pool::new(256 << 20);
    let export = Export {
        name: "memory".to_owned(),
        size: options.size,
        read_only: options.read_only,
        description: "a disk in memory".to_owned(),
        snapshot: None,
        bitmaps: Vec::new(),
    };
    let mut session = Session::new(Protocol::Nbd, options.tls.clone(), pool.clone());
    let (mut events, mut vectors) = (Vec::new(), Vec::new());
    let mut random = base::Random::new(1);
    while !session.is_finished() {
        vectors.clear();
        match session.next_transfer(&mut vectors) {
            Some(Transfer::Transmit) => {
                let slices: Vec<IoSlice> = vectors.iter().map(source).collect();
                let sent = if slices.is_empty() { Ok(0) } else { socket.write_vectored(&slices) };
                session.transmitted(sent.map_or(TransferEnd::Broken, TransferEnd::Moved), &mut events);
            }
            Some(Transfer::Receive(_)) => {
                let mut slices: Vec<IoSliceMut> = vectors.iter().map(target).collect();
                let received = socket.read_vectored(&mut slices);
                session.received(received.map_or(TransferEnd::Broken, TransferEnd::Moved), &mut events);
            }
            None => {}
        }
        let mut batch = std::mem::take(&mut events);
        while !batch.is_empty() {
            let index = if options.shuffle { random.below(batch.len() as u64) as usize } else { 0 };
            let name = |name: &str| match name {
                "" | "memory" => Ok(export.clone()),
                _ => Err(AttachRefusal::Unknown),
            };
            match batch.remove(index) {
                Event::ListExports => session.exports(std::slice::from_ref(&export)),
                Event::Describe { wanted } | Event::Attach { wanted } => session.export(name(&wanted.disk)),
                Event::Request { cookie, request } => {
                    let outcome = disk.perform(&pool, request);
                    session.reply(cookie, outcome);
                }
            }
        }
        session.advance(&mut events);
    }
}

fn source(vector: &IoVec) -> IoSlice<'_> {
    // SAFETY: the session keeps the memory in place until `transmitted`.
    IoSlice::new(unsafe { std::slice::from_raw_parts(vector.base.cast_const(), vector.len) })
}

fn target(vector: &IoVec) -> IoSliceMut<'_> {
    // SAFETY: the session keeps the memory in place and to itself until `received`.
    IoSliceMut::new(unsafe { std::slice::from_raw_parts_mut(vector.base, vector.len) })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options { size: 1 << 30, ..Options::default() };
    let (mut unix, mut tcp, mut pem, mut clients, mut required) = (None, None, None, None, false);
    let mut arguments = std::env::args().skip(1);
    let next = |arguments: &mut std::iter::Skip<std::env::Args>| arguments.next().ok_or("a value is missing");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--unix" => unix = Some(next(&mut arguments)?),
            "--tcp" => tcp = Some(next(&mut arguments)?),
            "--size" => options.size = base::units::parse_bytes(&next(&mut arguments)?)?,
            "--read-only" => options.read_only = true,
            "--shuffle" => options.shuffle = true,
            "--tls" => {
                pem = Some((std::fs::read(next(&mut arguments)?)?, std::fs::read(next(&mut arguments)?)?))
            }
            "--tls-clients" => clients = Some(std::fs::read(next(&mut arguments)?)?),
            "--tls-required" => required = true,
            other => return Err(format!("`{other}` is not known; see the head of the source").into()),
        }
    }
    if let Some((chain, key)) = pem {
        let identity = TlsIdentity::from_pem(&chain, &key, clients.as_deref())?;
        options.tls = if required { TlsPolicy::Required(identity) } else { TlsPolicy::Allowed(identity) };
    }
    let disk = Disk::default();
    match (unix, tcp) {
        (Some(path), None) => {
            for socket in UnixListener::bind(path)?.incoming() {
                let (socket, disk, options) = (socket?, disk.clone(), options.clone());
                std::thread::spawn(move || serve(socket, disk, options));
            }
        }
        (None, Some(address)) => {
            for socket in TcpListener::bind(address)?.incoming() {
                let (socket, disk, options) = (socket?, disk.clone(), options.clone());
                socket.set_nodelay(true)?;
                std::thread::spawn(move || serve(socket, disk, options));
            }
        }
        _ => return Err("give either --unix PATH or --tcp ADDRESS".into()),
    }
    Ok(())
}
