//! Whether every byte of an export was written, by the server's own map (`base:allocation`).

use super::address::Address;
use super::handshake::{
    HandshakeError, REP_ACK, ReadWrite, Secured, broken, protocol, read_reply, read_u16, read_u32, read_u64,
    secured, send_option,
};
use std::io::{self, Read};

const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_SET_META_CONTEXT: u32 = 10;
const REP_META_CONTEXT: u32 = 4;
const CONTEXT: &str = "base:allocation";
const REQUEST_MAGIC: u32 = 0x2560_9513;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
pub(super) const COMMAND_DISCONNECT: u16 = 2;
const COMMAND_BLOCK_STATUS: u16 = 7;
const CHUNK_DONE: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
/// Nothing is stored there, or what is read is zero.
const HOLE_OR_ZERO: u32 = 3;
/// Bytes that one request asks about.
const ASKED_MAX: u64 = 1 << 30;
/// A chunk of a map is short; what claims more is no server.
const CHUNK_MAX: u32 = 4 << 20;
/// A map of more pieces than this is not read to its end: twice as many as a full disk of 64 TiB has, of which a server tells 128 MiB
/// at once.
const REQUESTS_MAX: usize = 1_000_000;

/// True if the server says of every byte that it was written; false also if it has no map.
///
/// # Errors
/// When it cannot be reached, or breaks the protocol.
pub fn is_written(address: &Address) -> Result<bool, HandshakeError> {
    match secured(address)? {
        Secured::Plain(mut socket) => ask(&mut socket, address),
        Secured::Tls(mut socket, mut session) => {
            ask(&mut rustls::Stream::new(&mut *session, &mut socket), address)
        }
    }
}

fn ask(stream: &mut impl ReadWrite, address: &Address) -> Result<bool, HandshakeError> {
    let broken = broken(address);
    send_option(stream, OPT_STRUCTURED_REPLY, &[]).map_err(&broken)?;
    if read_reply(stream, address, OPT_STRUCTURED_REPLY)?.0 != REP_ACK || !has_map(stream, address)? {
        return Ok(false);
    }
    let (size, _) = super::handshake::go(stream, address)?;
    let mut offset = 0;
    for _ in 0..REQUESTS_MAX {
        if offset >= size {
            send(stream, COMMAND_DISCONNECT, 0, 0).map_err(&broken)?;
            return Ok(true);
        }
        let asked = (size - offset).min(ASKED_MAX);
        send(stream, COMMAND_BLOCK_STATUS, offset, asked as u32).map_err(&broken)?;
        match written_bytes(stream, address)? {
            0 => return Ok(false),
            told => offset += told,
        }
    }
    Ok(false)
}

fn has_map(stream: &mut impl ReadWrite, address: &Address) -> Result<bool, HandshakeError> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let body = [text(&address.export), 1u32.to_be_bytes().to_vec(), text(CONTEXT)].concat();
    send_option(stream, OPT_SET_META_CONTEXT, &body).map_err(broken(address))?;
    let mut found = false;
    loop {
        match read_reply(stream, address, OPT_SET_META_CONTEXT)? {
            (REP_META_CONTEXT, _) => found = true,
            (REP_ACK, _) => return Ok(found),
            (_, _) => return Ok(false),
        }
    }
}

/// Sends a request with cookie 0.
pub(super) fn send(stream: &mut impl ReadWrite, command: u16, offset: u64, length: u32) -> io::Result<()> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&0u16.to_be_bytes());
    bytes.extend_from_slice(&command.to_be_bytes());
    bytes.extend_from_slice(&0u64.to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    stream.write_all(&bytes)?;
    stream.flush()
}

/// Bytes from the request's start on of which the answer says that they were written: 0 if it has a hole, or is none.
fn written_bytes(stream: &mut impl ReadWrite, address: &Address) -> Result<u64, HandshakeError> {
    let broken = broken(address);
    let mut written = 0;
    loop {
        if read_u32(stream).map_err(&broken)? != CHUNK_MAGIC {
            return Err(protocol(address, "malformed reply about allocated space"));
        }
        let flags = read_u16(stream).map_err(&broken)?;
        let kind = read_u16(stream).map_err(&broken)?;
        read_u64(stream).map_err(&broken)?;
        let length = read_u32(stream).map_err(&broken)?;
        if length > CHUNK_MAX {
            return Err(protocol(address, format!("a map has a part of {length} bytes")));
        }
        let mut body = Vec::new();
        stream.take(u64::from(length)).read_to_end(&mut body).map_err(&broken)?;
        if kind == CHUNK_BLOCK_STATUS {
            let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
            let parts = body.get(4..).unwrap_or_default().chunks_exact(8);
            for (length, state) in parts.map(|part| (word(&part[..4]), word(&part[4..]))) {
                if state & HOLE_OR_ZERO != 0 {
                    return Ok(0);
                }
                written += u64::from(length);
            }
        }
        if flags & CHUNK_DONE != 0 {
            return Ok(written);
        }
    }
}
