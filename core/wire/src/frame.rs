//! The header of a frame: 64 bytes before every body and payload (docs/formats/wire.md).

use crate::{Version, WireError};
use base::bytes::Reader;
use base::checksum::crc32c;

/// Bytes of a header.
pub const HEADER_SIZE: usize = 64;
/// The first four bytes of a frame.
pub const MAGIC: [u8; 4] = *b"DRYF";
/// Where the header's own checksum stands: behind all that it covers.
pub const HEADER_CHECKSUM_AT: usize = HEADER_SIZE - 4;

/// What stands in the header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The code of the message's kind.
    pub kind: u8,
    /// Bytes of the body.
    pub body_size: u32,
    /// Bytes of the payload.
    pub payload_size: u32,
    /// As in the message.
    pub session: u64,
    /// As in the message.
    pub sequence: u64,
    /// As in the message.
    pub stamp: u64,
    /// As in the message.
    pub token: u32,
    /// CRC-32C of the body.
    pub body_checksum: u32,
}

impl Header {
    /// Its bytes, in a frame of that version.
    pub fn encode(&self, version: Version) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&version.number().to_le_bytes());
        bytes[6] = self.kind;
        bytes[8..12].copy_from_slice(&self.body_size.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_size.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.session.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.stamp.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.token.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.body_checksum.to_le_bytes());
        let checksum = crc32c(&bytes[..HEADER_CHECKSUM_AT]);
        bytes[HEADER_CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in these bytes, on a connection of that version. Neither its kind nor its lengths are looked at.
    ///
    /// # Errors
    /// When they are no header, are damaged, or are one of another version.
    pub fn decode(bytes: &[u8; HEADER_SIZE], version: Version) -> Result<Header, WireError> {
        let mut r = Reader::new(bytes);
        let magic = r.u32();
        if magic != u32::from_le_bytes(MAGIC) {
            return Err(WireError::Magic { found: magic });
        }
        let found = r.u16();
        let (kind, flags) = (r.u8(), r.u8());
        let header = Header {
            kind,
            body_size: r.u32(),
            payload_size: r.u32(),
            session: r.u64(),
            sequence: r.u64(),
            stamp: r.u64(),
            token: r.u32(),
            body_checksum: r.u32(),
        };
        let is_clear = r.reserved(12) && flags == 0;
        let (stored, computed) = (r.u32(), crc32c(&bytes[..HEADER_CHECKSUM_AT]));
        assert!(r.finish().is_ok() && r.remaining() == 0, "the fields fill a header");
        if stored != computed {
            return Err(WireError::HeaderChecksum { stored, computed });
        }
        if found != version.number() {
            return Err(WireError::Version { found, agreed: version.number() });
        }
        if !is_clear {
            return Err(WireError::ReservedHeader);
        }
        Ok(header)
    }
}
