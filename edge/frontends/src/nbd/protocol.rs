//! Numbers and byte layouts of NBD; all big-endian. No state.
//!
//! Names are the specification's without `NBD_`. Decoders take exactly the bytes of one header and never fail but by
//! saying that the bytes are none.

use crate::limits::{NAME_MAX, REQUEST_LEN_MAX};

/// Sent first by the server.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Sent second by the server, and before every option by the client: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before every simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before every chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Handshake flag of both sides: options have replies.
pub const FLAG_FIXED_NEWSTYLE: u16 = 1;
/// Handshake flag of both sides: no 124 zeroes after `OPT_EXPORT_NAME`.
pub const FLAG_NO_ZEROES: u16 = 2;

/// Options.
pub mod option {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod reply {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Types of information about an export.
pub mod info {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags.
pub mod flag {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub mod command {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod command_flag {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types of chunks, and the flag of the last.
pub mod chunk {
    #![allow(missing_docs, reason = "the specification's names")]
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const OFFSET_HOLE: u16 = 2;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// `base:allocation`: the range takes no space.
pub const STATE_HOLE: u32 = 1;
/// `base:allocation`: the range reads as zeroes.
pub const STATE_ZERO: u32 = 2;
/// `qemu:dirty-bitmap:…`: the range may have changed.
pub const STATE_DIRTY: u32 = 1;
/// The metadata context that every export has.
pub const ALLOCATION_CONTEXT: &str = "base:allocation";
/// The number that we give it.
pub const ALLOCATION_CONTEXT_ID: u32 = 1;
/// The metadata contexts that tell of changes; a name follows.
pub const BITMAP_CONTEXT: &str = "qemu:dirty-bitmap:";

/// The smallest request: a sector.
pub const BLOCK_SIZE_MIN: u32 = 512;
/// What requests had better be multiples of: a block of the datastore.
pub const BLOCK_SIZE_PREFERRED: u32 = 4096;

/// Why a request failed, as NBD counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the specification's names")]
#[repr(u32)]
pub enum Errno {
    NotPermitted = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
    Overflow = 75,
    NotSupported = 95,
    Shutdown = 108,
}

/// Bytes of a request before its payload.
pub const REQUEST_SIZE: usize = 28;
/// Bytes of an option before its data.
pub const OPTION_SIZE: usize = 16;
/// Bytes of the client's flags.
pub const CLIENT_FLAGS_SIZE: usize = 4;

/// One request without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHeader {
    /// See [`command_flag`].
    pub flags: u16,
    /// See [`command`].
    pub command: u16,
    /// The client's own; comes back in the reply.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

impl RequestHeader {
    /// From the bytes on the wire; nothing if they do not start as a request does.
    #[inline]
    pub fn decode(bytes: &[u8; REQUEST_SIZE]) -> Option<RequestHeader> {
        if u32_at(bytes, 0) != REQUEST_MAGIC {
            return None;
        }
        Some(RequestHeader {
            flags: u16_at(bytes, 4),
            command: u16_at(bytes, 6),
            cookie: u64_at(bytes, 8),
            offset: u64_at(bytes, 16),
            len: u32_at(bytes, 24),
        })
    }

    /// Bytes of data that the request moves in either direction.
    #[inline]
    pub fn payload_len(&self) -> u64 {
        match self.command {
            command::READ | command::WRITE => u64::from(self.len),
            _ => 0,
        }
    }

    /// As bytes on the wire.
    pub fn encode(&self) -> [u8; REQUEST_SIZE] {
        let mut bytes = [0; REQUEST_SIZE];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.len.to_be_bytes());
        bytes
    }
}

/// Number and data length of an option; nothing if the bytes do not start as one does.
pub fn decode_option(bytes: &[u8; OPTION_SIZE]) -> Option<(u32, u32)> {
    (u64_at(bytes, 0) == OPTION_MAGIC).then(|| (u32_at(bytes, 8), u32_at(bytes, 12)))
}

/// The data of `OPT_INFO` and `OPT_GO`.
#[derive(Debug, PartialEq, Eq)]
pub struct InfoRequest<'a> {
    /// The export.
    pub name: &'a str,
    /// Whether block sizes were asked for.
    pub wants_block_size: bool,
    /// Whether the name as the server knows it was asked for.
    pub wants_name: bool,
    /// Whether a description was asked for.
    pub wants_description: bool,
}

/// Reads the data of `OPT_INFO` and `OPT_GO`; nothing if it is malformed.
pub fn decode_info(data: &[u8]) -> Option<InfoRequest<'_>> {
    let (name, rest) = take_string(data)?;
    let (count, requests) = rest.split_first_chunk::<2>()?;
    if requests.len() != usize::from(u16::from_be_bytes(*count)) * 2 {
        return None;
    }
    let wants = |wanted: u16| requests.chunks_exact(2).any(|pair| u16_at(pair, 0) == wanted);
    Some(InfoRequest {
        name,
        wants_block_size: wants(info::BLOCK_SIZE),
        wants_name: wants(info::NAME),
        wants_description: wants(info::DESCRIPTION),
    })
}

/// The data of `OPT_LIST_META_CONTEXT` and `OPT_SET_META_CONTEXT`.
#[derive(Debug, PartialEq, Eq)]
pub struct MetaRequest<'a> {
    /// The export.
    pub name: &'a str,
    /// The names of contexts, or of namespaces, that it asks for.
    pub queries: Vec<&'a str>,
}

/// Reads the data of `OPT_LIST_META_CONTEXT` and `OPT_SET_META_CONTEXT`; nothing if it is malformed.
pub fn decode_meta(data: &[u8]) -> Option<MetaRequest<'_>> {
    let (name, rest) = take_string(data)?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut queries = Vec::new();
    // The data's length bounds the loop: a query takes at least the four bytes of its length.
    for _ in 0..u32::from_be_bytes(*count) {
        let query;
        (query, rest) = take_string(rest)?;
        queries.push(query);
    }
    rest.is_empty().then_some(MetaRequest { name, queries })
}

/// A string with its length before it, and what follows.
fn take_string(data: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = data.split_first_chunk::<4>()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)?;
    Some((decode_name(text)?, rest))
}

/// A name as the specification wants it: UTF-8, at most 4,096 bytes, no NUL.
pub fn decode_name(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (bytes.len() <= NAME_MAX && !text.contains('\0')).then_some(text)
}

/// What the server says first.
pub fn put_greeting(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
}

/// A reply to an option, with its data in parts.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let len: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(len as u32).to_be_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The block sizes of every export.
pub fn put_block_sizes(out: &mut Vec<u8>, option: u32) {
    let sizes = [BLOCK_SIZE_MIN, BLOCK_SIZE_PREFERRED, REQUEST_LEN_MAX].map(u32::to_be_bytes);
    put_option_reply(
        out,
        option,
        reply::INFO,
        &[&info::BLOCK_SIZE.to_be_bytes(), &sizes[0], &sizes[1], &sizes[2]],
    );
}

/// A simple reply; `error` 0 is success. For a read, the data follows.
#[inline]
pub fn put_simple_reply(out: &mut Vec<u8>, error: u32, cookie: u64) {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// The head of a chunk with `len` bytes of payload.
#[inline]
pub fn put_chunk(out: &mut Vec<u8>, flags: u16, kind: u16, cookie: u64, len: u32) {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// A chunk that says why the request failed, the last of its reply.
pub fn put_error_chunk(out: &mut Vec<u8>, cookie: u64, error: Errno, text: &str) {
    assert!(text.len() <= NAME_MAX, "our own texts are short");
    put_chunk(out, chunk::DONE, chunk::ERROR, cookie, 6 + text.len() as u32);
    out.extend_from_slice(&(error as u32).to_be_bytes());
    out.extend_from_slice(&(text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_from_its_bytes_and_another_magic_is_none() {
        let header =
            RequestHeader { flags: 1, command: command::WRITE, cookie: 7 << 40, offset: 1 << 45, len: 4096 };
        let mut bytes = header.encode();
        assert_eq!(RequestHeader::decode(&bytes), Some(header));
        bytes[3] ^= 1;
        assert_eq!(RequestHeader::decode(&bytes), None);
    }

    #[test]
    fn lengths_that_reach_beyond_the_data_are_malformed() {
        let go = |len: u32, name: &str, count: u16, extra: &[u8]| {
            let mut data = len.to_be_bytes().to_vec();
            data.extend_from_slice(name.as_bytes());
            data.extend_from_slice(&count.to_be_bytes());
            data.extend_from_slice(extra);
            decode_info(&data).map(|request| (request.name.to_owned(), request.wants_block_size))
        };
        assert_eq!(go(3, "abc", 1, &[0, 3]), Some(("abc".to_owned(), true)));
        assert_eq!(go(3, "abc", 0, &[]), Some(("abc".to_owned(), false)));
        assert_eq!(go(4, "abc", 0, &[]), None);
        assert_eq!(go(u32::MAX, "abc", 0, &[]), None);
        assert_eq!(go(3, "abc", 2, &[0, 3]), None);
        assert_eq!(go(3, "abc", 1, &[0, 3, 0]), None);
        assert_eq!(go(3, "a\0c", 0, &[]), None);
        assert_eq!(decode_name(&[b'a'; NAME_MAX + 1]), None);
        assert_eq!(decode_name(&[0xff]), None);
    }

    #[test]
    fn queries_are_told_apart_and_a_huge_count_is_malformed() {
        let meta = |count: u32, queries: &[&str]| {
            let mut data = 1u32.to_be_bytes().to_vec();
            data.push(b'd');
            data.extend_from_slice(&count.to_be_bytes());
            for query in queries {
                data.extend_from_slice(&(query.len() as u32).to_be_bytes());
                data.extend_from_slice(query.as_bytes());
            }
            decode_meta(&data).map(|request| request.queries.join(" "))
        };
        assert_eq!(meta(0, &[]), Some(String::new()));
        assert_eq!(meta(2, &["x-other:1", "base:allocation"]), Some("x-other:1 base:allocation".to_owned()));
        assert_eq!(meta(1, &["base:"]), Some("base:".to_owned()));
        assert_eq!(meta(u32::MAX, &["base:"]), None);
        assert_eq!(meta(0, &["base:"]), None);
    }
}
