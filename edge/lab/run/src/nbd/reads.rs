//! Parts of an export, read once before a run.

use super::address::Address;
use super::coverage::{COMMAND_DISCONNECT, send};
use super::handshake::{
    HandshakeError, ReadWrite, Secured, broken, go, protocol, read_u32, read_u64, secured,
};

const COMMAND_READ: u16 = 0;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Bytes of one request: every server takes so many.
const REQUEST_BYTES: u64 = 1 << 20;

/// Reads parts (offset, bytes) of an export.
///
/// # Errors
/// When it cannot be reached, breaks the protocol, or cannot read.
pub fn read(address: &Address, parts: &[(u64, u64)]) -> Result<Vec<Vec<u8>>, HandshakeError> {
    match secured(address)? {
        Secured::Plain(mut socket) => ask(&mut socket, address, parts),
        Secured::Tls(mut socket, mut session) => {
            ask(&mut rustls::Stream::new(&mut *session, &mut socket), address, parts)
        }
    }
}

fn ask(
    stream: &mut impl ReadWrite,
    address: &Address,
    parts: &[(u64, u64)],
) -> Result<Vec<Vec<u8>>, HandshakeError> {
    let broken = broken(address);
    go(stream, address)?;
    let mut found = Vec::new();
    for &(offset, size) in parts {
        let mut bytes = vec![0; size as usize];
        for (index, part) in bytes.chunks_mut(REQUEST_BYTES as usize).enumerate() {
            let at = offset + index as u64 * REQUEST_BYTES;
            send(stream, COMMAND_READ, at, part.len() as u32).map_err(&broken)?;
            if read_u32(stream).map_err(&broken)? != REPLY_MAGIC {
                return Err(protocol(address, "malformed reply to a read"));
            }
            let error = read_u32(stream).map_err(&broken)?;
            read_u64(stream).map_err(&broken)?;
            if error != 0 {
                return Err(protocol(address, format!("a read at byte {at} failed with error {error}")));
            }
            stream.read_exact(part).map_err(&broken)?;
        }
        found.push(bytes);
    }
    send(stream, COMMAND_DISCONNECT, 0, 0).map_err(&broken)?;
    Ok(found)
}
