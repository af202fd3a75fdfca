//! The client's side of the NBD protocol, over a unix socket: attaching, requests, simple replies.
//!
//! Written from the protocol's text and not from the server's code, so that one mistake is not made twice. Requests and
//! replies are separate, so that one thread sends while another receives.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const INIT_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
/// Fixed newstyle, no zeroes.
const CLIENT_FLAGS: u32 = 3;
/// Longest text of a refusal that is read.
const REFUSAL_MAX: u32 = 4096;
/// How long attaching may take: a paused host accepts and says nothing.
const ATTACH_WAIT: Duration = Duration::from_secs(10);

/// The error of a write that finds no room (`NBD_ENOSPC`).
pub const NO_SPACE: u32 = 28;
/// How long a single answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Give bytes back: they read as zeroes here.
    Trim,
    /// The client leaves.
    Disconnect,
}

/// The head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// Zero, or the protocol's error.
    pub error: u32,
    /// Which request.
    pub cookie: u64,
}

fn unexpected(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
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

/// Attaches to a disk; gives the connection and the disk's size.
///
/// # Errors
/// When nobody answers, or the server refuses.
pub fn attach(socket: &Path, disk: &str) -> io::Result<(UnixStream, u64)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ATTACH_WAIT))?;
    stream.set_write_timeout(Some(ATTACH_WAIT))?;
    if read_u64(&mut stream)? != INIT_MAGIC || read_u64(&mut stream)? != OPTION_MAGIC {
        return Err(unexpected("not an NBD server"));
    }
    stream.read_exact(&mut [0; 2])?;
    let mut hello = CLIENT_FLAGS.to_be_bytes().to_vec();
    hello.extend(OPTION_MAGIC.to_be_bytes());
    hello.extend(OPTION_GO.to_be_bytes());
    hello.extend((4 + disk.len() as u32 + 2).to_be_bytes());
    hello.extend((disk.len() as u32).to_be_bytes());
    hello.extend(disk.as_bytes());
    hello.extend([0; 2]);
    stream.write_all(&hello)?;
    let mut size = None;
    while let Some(info) = option_reply(&mut stream)? {
        // Of the kinds of information only `NBD_INFO_EXPORT`, 0, has a meaning here.
        if info.len() >= 10 && info[..2] == [0, 0] {
            size = Some(u64::from_be_bytes(info[2..10].try_into().expect("eight bytes")));
        }
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    let size = size.ok_or_else(|| unexpected("the server told no size"))?;
    Ok((stream, size))
}

/// An information, or nothing when the server has told all.
fn option_reply(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    if read_u64(stream)? != OPTION_REPLY_MAGIC || read_u32(stream)? != OPTION_GO {
        return Err(unexpected("not a reply to an option"));
    }
    let (kind, length) = (read_u32(stream)?, read_u32(stream)?);
    if length > REFUSAL_MAX {
        return Err(unexpected(format!("a reply of {length} bytes to an option")));
    }
    let mut data = vec![0; length as usize];
    stream.read_exact(&mut data)?;
    match kind {
        REPLY_ACK => Ok(None),
        REPLY_INFO => Ok(Some(data)),
        _ => Err(unexpected(format!("refused with {kind:#x}: {}", String::from_utf8_lossy(&data)))),
    }
}

/// A request's bytes; `data` is what is to be written.
pub fn request(command: Command, cookie: u64, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let kind: u16 = match command {
        Command::Read => 0,
        Command::Write => 1,
        Command::Disconnect => 2,
        Command::Trim => 4,
    };
    let mut bytes = Vec::with_capacity(28 + data.len());
    bytes.extend(REQUEST_MAGIC.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The head of the next answer; what was read follows it on the stream.
///
/// # Errors
/// When the server is gone, or sends something else.
pub fn reply(stream: &mut impl Read) -> io::Result<Reply> {
    if read_u32(stream)? != REPLY_MAGIC {
        return Err(unexpected("not a simple reply"));
    }
    Ok(Reply { error: read_u32(stream)?, cookie: read_u64(stream)? })
}

/// One request that brings no data, and its answer; nothing else may be under way. Gives the protocol's error, or zero.
///
/// # Errors
/// When the server is gone, or answers something else.
pub fn call(
    stream: &mut UnixStream,
    command: Command,
    offset: u64,
    length: u32,
    data: &[u8],
) -> io::Result<u32> {
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.write_all(&request(command, 1, offset, length, data))?;
    Ok(reply(stream)?.error)
}

/// Reads bytes; nothing else may be under way.
///
/// # Errors
/// When the server is gone, or answers with an error.
pub fn read(stream: &mut UnixStream, offset: u64, data: &mut [u8]) -> io::Result<()> {
    match call(stream, Command::Read, offset, data.len() as u32, &[])? {
        0 => stream.read_exact(data),
        error => Err(unexpected(format!("a read at {offset} failed with error {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_the_protocol_has_it() {
        let bytes = request(Command::Write, 0x0102, 4096, 2, b"ab");
        let expected = [
            [0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1].as_slice(),
            &[0, 0, 0, 0, 0, 0, 1, 2],
            &[0, 0, 0, 0, 0, 0, 16, 0],
            &[0, 0, 0, 2, b'a', b'b'],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn a_reply_is_read_and_anything_else_refused() {
        let bytes = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(reply(&mut &bytes[..]).expect("a reply"), Reply { error: 5, cookie: 9 });
        reply(&mut &[0; 16][..]).expect_err("no magic");
        reply(&mut &bytes[..15]).expect_err("it is cut");
    }
}
