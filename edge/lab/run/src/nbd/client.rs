//! One connection to an export that asks one thing after the other: its map, reads, writes. For what is copied or looked at, not for what
//! is measured.

use super::address::Address;
use super::handshake::{
    HandshakeError, REP_ACK, ReadWrite, Secured, broken, go, protocol, read_reply, read_u16, read_u32,
    read_u64, secured, send_option,
};

const OPT_STRUCTURED_REPLY: u32 = 8;
const OPT_SET_META_CONTEXT: u32 = 10;
const REP_META_CONTEXT: u32 = 4;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const CHUNK_MAGIC: u32 = 0x668e_33ef;
const COMMAND_READ: u16 = 0;
const COMMAND_WRITE: u16 = 1;
const COMMAND_DISCONNECT: u16 = 2;
const COMMAND_FLUSH: u16 = 3;
const COMMAND_WRITE_ZEROES: u16 = 6;
const COMMAND_BLOCK_STATUS: u16 = 7;
const CHUNK_DONE: u16 = 1;
const CHUNK_NONE: u16 = 0;
const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_OFFSET_HOLE: u16 = 2;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = 1 << 15;
/// A chunk is short, unless it has what was read; what claims more is no server.
const CHUNK_MAX: u32 = 4 << 20;

/// Bytes that one read or write moves at most: every server takes so many.
pub const REQUEST_BYTES: usize = 1 << 20;
/// Bytes that one question about blocks covers at most.
pub const ASKED_MAX: u64 = 1 << 30;
/// `base:allocation`: the range takes no space.
pub const STATE_HOLE: u32 = 1;
/// `base:allocation`: the range reads as zeroes.
pub const STATE_ZERO: u32 = 2;
/// `qemu:dirty-bitmap:…`: the range may have changed.
pub const STATE_DIRTY: u32 = 1;

/// Bytes of one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// How many.
    pub length: u64,
    /// As the metadata context counts it.
    pub state: u32,
}

/// A connection.
pub struct Client {
    stream: Box<dyn ReadWrite + Send>,
    address: Address,
    size: u64,
    flags: u16,
    has_map: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Attaches to an export, and selects a metadata context if one is named and the server has it.
    ///
    /// # Errors
    /// When it cannot be reached or is refused.
    pub fn open(address: &Address, context: Option<&str>) -> Result<Client, HandshakeError> {
        let mut stream: Box<dyn ReadWrite + Send> = match secured(address)? {
            Secured::Plain(socket) => Box::new(socket),
            Secured::Tls(socket, session) => Box::new(rustls::StreamOwned::new(*session, socket)),
        };
        let has_map = match context {
            Some(context) => select(&mut stream, address, context)?,
            None => false,
        };
        let (size, flags) = go(&mut stream, address)?;
        Ok(Client { stream, address: address.clone(), size, flags, has_map })
    }

    /// The export's bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Whether the server takes zeroes without their bytes.
    pub fn takes_zeroes(&self) -> bool {
        self.flags & 1 << 6 != 0
    }

    /// Whether the metadata context was selected.
    pub fn has_map(&self) -> bool {
        self.has_map
    }

    /// The states of the first bytes of a range, or of all of them: at least one run.
    ///
    /// # Errors
    /// When the server fails, or there is no map.
    pub fn map(&mut self, offset: u64, length: u64) -> Result<Vec<Run>, HandshakeError> {
        let length = length.min(ASKED_MAX);
        self.send(COMMAND_BLOCK_STATUS, offset, length as u32)?;
        let mut runs = Vec::new();
        self.answer("a question about blocks", &mut |kind, body| {
            if kind == CHUNK_BLOCK_STATUS {
                let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
                let parts = body.get(4..).unwrap_or_default().chunks_exact(8);
                runs.extend(
                    parts.map(|part| Run { length: u64::from(word(&part[..4])), state: word(&part[4..]) }),
                );
            }
            Ok(())
        })?;
        match runs.iter().any(|run| run.length > 0) {
            true => Ok(runs),
            false => Err(protocol(&self.address, "it tells nothing about the blocks it was asked about")),
        }
    }

    /// Reads at an offset.
    ///
    /// # Errors
    /// When the server fails.
    pub fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), HandshakeError> {
        for (index, part) in bytes.chunks_mut(REQUEST_BYTES).enumerate() {
            let at = offset + (index * REQUEST_BYTES) as u64;
            self.send(COMMAND_READ, at, part.len() as u32)?;
            self.read_part(at, part)?;
        }
        Ok(())
    }

    /// Writes at an offset.
    ///
    /// # Errors
    /// When the server fails.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), HandshakeError> {
        for (index, part) in bytes.chunks(REQUEST_BYTES).enumerate() {
            let at = offset + (index * REQUEST_BYTES) as u64;
            self.send(COMMAND_WRITE, at, part.len() as u32)?;
            self.stream.write_all(part).and_then(|()| self.stream.flush()).map_err(broken(&self.address))?;
            self.answer("a write", &mut |_, _| Ok(()))?;
        }
        Ok(())
    }

    /// Makes a range read as zeroes.
    ///
    /// # Errors
    /// When the server fails.
    pub fn zero(&mut self, offset: u64, length: u64) -> Result<(), HandshakeError> {
        let mut at = offset;
        while at < offset + length {
            let part = (offset + length - at).min(if self.takes_zeroes() {
                ASKED_MAX
            } else {
                REQUEST_BYTES as u64
            });
            if self.takes_zeroes() {
                self.send(COMMAND_WRITE_ZEROES, at, part as u32)?;
                self.answer("a write of zeroes", &mut |_, _| Ok(()))?;
            } else {
                self.write(at, &vec![0; part as usize])?;
            }
            at += part;
        }
        Ok(())
    }

    /// Makes what was written stable, and leaves.
    ///
    /// # Errors
    /// When the server fails.
    pub fn close(mut self) -> Result<(), HandshakeError> {
        if self.flags & 4 != 0 && !self.is_read_only() {
            self.send(COMMAND_FLUSH, 0, 0)?;
            self.answer("a flush", &mut |_, _| Ok(()))?;
        }
        self.leave()
    }

    /// Leaves.
    fn leave(&mut self) -> Result<(), HandshakeError> {
        self.send(COMMAND_DISCONNECT, 0, 0)
    }

    /// Sends a request with cookie 0.
    fn send(&mut self, command: u16, offset: u64, length: u32) -> Result<(), HandshakeError> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend_from_slice(&0u16.to_be_bytes());
        bytes.extend_from_slice(&command.to_be_bytes());
        bytes.extend_from_slice(&0u64.to_be_bytes());
        bytes.extend_from_slice(&offset.to_be_bytes());
        bytes.extend_from_slice(&length.to_be_bytes());
        let sent = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
        sent.map_err(broken(&self.address))
    }

    /// The reply to a read, in the place of its bytes.
    fn read_part(&mut self, offset: u64, part: &mut [u8]) -> Result<(), HandshakeError> {
        let address = self.address.clone();
        let broken = broken(&address);
        let magic = read_u32(&mut self.stream).map_err(&broken)?;
        if magic == SIMPLE_REPLY_MAGIC {
            self.simple("a read")?;
            return self.stream.read_exact(part).map_err(&broken);
        }
        let end = offset + part.len() as u64;
        self.chunks(magic, "a read", &mut |kind, body| {
            let at = body.get(..8).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")));
            let (from, length) = match (kind, at) {
                (CHUNK_OFFSET_DATA, Some(at)) => (at, body.len() as u64 - 8),
                (CHUNK_OFFSET_HOLE, Some(at)) if body.len() == 12 => {
                    (at, u64::from(u32::from_be_bytes(body[8..].try_into().expect("four bytes"))))
                }
                (CHUNK_NONE, _) => return Ok(()),
                _ => return Err("an unknown part of a read"),
            };
            if from < offset || from.checked_add(length).is_none_or(|to| to > end) {
                return Err("bytes that were not asked for");
            }
            let target = &mut part[(from - offset) as usize..][..length as usize];
            match kind {
                CHUNK_OFFSET_DATA => target.copy_from_slice(&body[8..]),
                _ => target.fill(0),
            }
            Ok(())
        })
    }

    /// The reply to a request without bytes of its own.
    fn answer(&mut self, what: &str, take: &mut Take<'_>) -> Result<(), HandshakeError> {
        let magic = read_u32(&mut self.stream).map_err(broken(&self.address))?;
        match magic {
            SIMPLE_REPLY_MAGIC => self.simple(what),
            magic => self.chunks(magic, what, take),
        }
    }

    fn simple(&mut self, what: &str) -> Result<(), HandshakeError> {
        let error = read_u32(&mut self.stream).map_err(broken(&self.address))?;
        read_u64(&mut self.stream).map_err(broken(&self.address))?;
        match error {
            0 => Ok(()),
            error => Err(protocol(&self.address, format!("{what} failed with error {error}"))),
        }
    }

    /// The chunks of a structured reply, the first of whose magic numbers has been read.
    fn chunks(&mut self, mut magic: u32, what: &str, take: &mut Take<'_>) -> Result<(), HandshakeError> {
        let address = self.address.clone();
        let broken = broken(&address);
        let mut failure = None;
        loop {
            if magic != CHUNK_MAGIC {
                return Err(protocol(&address, format!("malformed reply to {what}")));
            }
            let flags = read_u16(&mut self.stream).map_err(&broken)?;
            let kind = read_u16(&mut self.stream).map_err(&broken)?;
            read_u64(&mut self.stream).map_err(&broken)?;
            let length = read_u32(&mut self.stream).map_err(&broken)?;
            if length > CHUNK_MAX {
                return Err(protocol(&address, format!("a part of {length} bytes in the reply to {what}")));
            }
            let mut body = vec![0; length as usize];
            self.stream.read_exact(&mut body).map_err(&broken)?;
            if kind & CHUNK_ERROR != 0 {
                let text = String::from_utf8_lossy(body.get(6..).unwrap_or_default()).into_owned();
                failure.get_or_insert(format!("{what} failed: {text}"));
            } else if let Err(found) = take(kind, &body) {
                return Err(protocol(&address, found));
            }
            if flags & CHUNK_DONE != 0 {
                return failure.map_or(Ok(()), |failure| Err(protocol(&address, failure)));
            }
            magic = read_u32(&mut self.stream).map_err(&broken)?;
        }
    }
}

/// What takes the chunks of a reply, by kind; or says what is wrong with one.
type Take<'a> = dyn FnMut(u16, &[u8]) -> Result<(), &'static str> + 'a;

/// Whether the server has the context.
fn select(stream: &mut impl ReadWrite, address: &Address, context: &str) -> Result<bool, HandshakeError> {
    send_option(stream, OPT_STRUCTURED_REPLY, &[]).map_err(broken(address))?;
    if read_reply(stream, address, OPT_STRUCTURED_REPLY)?.0 != REP_ACK {
        return Ok(false);
    }
    let text = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let body = [text(&address.export), 1u32.to_be_bytes().to_vec(), text(context)].concat();
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

/// Reads parts (offset, bytes) of an export.
///
/// # Errors
/// When it cannot be reached, breaks the protocol, or cannot read.
pub fn read(address: &Address, parts: &[(u64, u64)]) -> Result<Vec<Vec<u8>>, HandshakeError> {
    let mut client = Client::open(address, None)?;
    let mut found = Vec::new();
    for &(offset, size) in parts {
        let mut bytes = vec![0; size as usize];
        client.read(offset, &mut bytes)?;
        found.push(bytes);
    }
    client.leave()?;
    Ok(found)
}

/// A map of more pieces than this is not read to its end: twice as many as a full disk of 64 TiB has, of which a server tells 128 MiB
/// at once.
const QUESTIONS_MAX: usize = 1_000_000;

/// True if the server says of every byte that it was written; false also if it has no map.
///
/// # Errors
/// When it cannot be reached, or breaks the protocol.
pub fn is_written(address: &Address) -> Result<bool, HandshakeError> {
    let mut client = Client::open(address, Some("base:allocation"))?;
    if !client.has_map() {
        return Ok(false);
    }
    let mut offset = 0;
    for _ in 0..QUESTIONS_MAX {
        if offset >= client.size() {
            client.leave()?;
            return Ok(true);
        }
        let runs = client.map(offset, client.size() - offset)?;
        if runs.iter().any(|run| run.state & (STATE_HOLE | STATE_ZERO) != 0) {
            return Ok(false);
        }
        offset += runs.iter().map(|run| run.length).sum::<u64>();
    }
    Ok(false)
}
