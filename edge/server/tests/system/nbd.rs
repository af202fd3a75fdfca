//! A small NBD client that blocks: several requests under way on one unix socket, answered in any order.
//!
//! Written from the protocol's text and not from the server's code, so that one mistake is not made twice. Uses simple
//! replies.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
/// Fixed newstyle, no zeroes.
const CLIENT_FLAGS: u32 = 3;
/// An answer takes no longer, or the test fails instead of hanging.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Error numbers of the protocol.
pub mod errno {
    /// A read or write failed; a damaged block.
    pub const EIO: u32 = 5;
    /// No space.
    pub const ENOSPC: u32 = 28;
}

/// What can be asked for.
#[derive(Debug, Clone)]
pub enum Request {
    /// Read bytes.
    Read { offset: u64, len: u32 },
    /// Write bytes.
    Write { offset: u64, data: Vec<u8> },
    /// Give bytes back: they read as zeroes here.
    Trim { offset: u64, len: u32 },
    /// Make them zeroes.
    Zero { offset: u64, len: u32 },
    /// Everything that was answered is to be stable.
    Flush,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Which request.
    pub cookie: u64,
    /// Zero, or the error.
    pub error: u32,
    /// What was read.
    pub data: Vec<u8>,
}

/// An attached client.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// Size of the disk.
    pub size: u64,
    next_cookie: u64,
    /// Bytes of data that each request under way is answered with.
    waiting: BTreeMap<u64, u32>,
}

fn unexpected(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_u32(stream: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_be_bytes(bytes))
}

fn read_u64(stream: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

impl Client {
    /// Connects and attaches to a disk.
    ///
    /// # Errors
    /// When nobody answers, or the server refuses.
    pub fn attach(socket: &Path, disk: &str) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_WAIT))?;
        stream.set_write_timeout(Some(ANSWER_WAIT))?;
        if read_u64(&mut stream)? != INIT_MAGIC || read_u64(&mut stream)? != OPTION_MAGIC {
            return Err(unexpected("not an NBD server".to_owned()));
        }
        stream.read_exact(&mut [0; 2])?;
        stream.write_all(&CLIENT_FLAGS.to_be_bytes())?;
        let mut option = Vec::new();
        option.extend(OPTION_MAGIC.to_be_bytes());
        option.extend(OPT_GO.to_be_bytes());
        option.extend((4 + disk.len() as u32 + 2).to_be_bytes());
        option.extend((disk.len() as u32).to_be_bytes());
        option.extend(disk.as_bytes());
        option.extend([0; 2]);
        stream.write_all(&option)?;
        let mut size = None;
        loop {
            if read_u64(&mut stream)? != OPTION_REPLY_MAGIC || read_u32(&mut stream)? != OPT_GO {
                return Err(unexpected("not a reply to an option".to_owned()));
            }
            let (kind, len) = (read_u32(&mut stream)?, read_u32(&mut stream)?);
            let mut data = vec![0; len as usize];
            stream.read_exact(&mut data)?;
            match kind {
                REP_ACK => break,
                REP_INFO if data[..2] == [0, 0] => {
                    size = Some(u64::from_be_bytes(data[2..10].try_into().expect("eight bytes")));
                }
                REP_INFO => {}
                _ => {
                    let why = String::from_utf8_lossy(&data).into_owned();
                    return Err(unexpected(format!("refused with {kind:#x}: {why}")));
                }
            }
        }
        let size = size.ok_or_else(|| unexpected("the server told no size".to_owned()))?;
        Ok(Client { stream, size, next_cookie: 1, waiting: BTreeMap::new() })
    }

    /// Requests under way.
    pub fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Sends a request; gives its cookie.
    ///
    /// # Errors
    /// When the server is gone.
    pub fn send(&mut self, request: &Request) -> io::Result<u64> {
        let none: &[u8] = &[];
        let (kind, offset, len, data) = match request {
            Request::Read { offset, len } => (0u16, *offset, *len, none),
            Request::Write { offset, data } => (1, *offset, data.len() as u32, &data[..]),
            Request::Flush => (3, 0, 0, none),
            Request::Trim { offset, len } => (4, *offset, *len, none),
            Request::Zero { offset, len } => (6, *offset, *len, none),
        };
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.waiting.insert(cookie, if kind == 0 { len } else { 0 });
        let mut bytes = Vec::with_capacity(28 + data.len());
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes)?;
        Ok(cookie)
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// When the server is gone, or answers what nobody asked.
    pub fn receive(&mut self) -> io::Result<Reply> {
        if read_u32(&mut self.stream)? != REPLY_MAGIC {
            return Err(unexpected("not a simple reply".to_owned()));
        }
        let error = read_u32(&mut self.stream)?;
        let cookie = read_u64(&mut self.stream)?;
        let len = self.waiting.remove(&cookie).ok_or_else(|| unexpected(format!("nobody asked {cookie}")))?;
        let mut data = vec![0; if error == 0 { len as usize } else { 0 }];
        self.stream.read_exact(&mut data)?;
        Ok(Reply { cookie, error, data })
    }

    /// Sends a request and waits for its answer; nothing else may be under way. The error is the protocol's.
    pub fn call(&mut self, request: &Request) -> Result<Vec<u8>, u32> {
        assert!(self.waiting.is_empty(), "one at a time");
        let exchanged = self.send(request).and_then(|_| self.receive());
        let reply = exchanged.unwrap_or_else(|error| panic!("{error} in answer to a request"));
        if reply.error == 0 { Ok(reply.data) } else { Err(reply.error) }
    }

    /// Whether the connection is there and a read is answered with data.
    pub fn is_served(&mut self) -> bool {
        let request = Request::Read { offset: 0, len: 4096 };
        self.send(&request).and_then(|_| self.receive()).is_ok_and(|reply| reply.error == 0)
    }

    /// Reads.
    pub fn read(&mut self, offset: u64, len: u32) -> Result<Vec<u8>, u32> {
        self.call(&Request::Read { offset, len })
    }

    /// Writes.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), u32> {
        self.call(&Request::Write { offset, data: data.to_vec() }).map(drop)
    }

    /// Trims.
    pub fn trim(&mut self, offset: u64, len: u32) -> Result<(), u32> {
        self.call(&Request::Trim { offset, len }).map(drop)
    }
}
