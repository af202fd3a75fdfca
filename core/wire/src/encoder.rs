//! Messages to frames.

use crate::frame::Header;
use crate::kind::Kind;
use crate::message::Message;
use crate::payload::Payload;
use crate::{Body, Version};
use base::bytes::Writer;
use base::checksum::crc32c;

/// Memory for bodies above this is given back to the allocator.
const FIELDS_KEPT: usize = 64 << 10;

/// Encodes messages. Kept per connection for the memory that bodies are put together in.
#[derive(Debug)]
pub struct Encoder {
    version: Version,
    fields: Writer,
}

impl Encoder {
    /// For a connection on which that version was agreed on.
    pub fn new(version: Version) -> Encoder {
        Encoder { version, fields: Writer::default() }
    }

    /// Appends header and body of the message's frame to `out`. The payload, which must be sent right after them, stays
    /// where it is.
    ///
    /// The message must be as its type promises (ranges within their part, as many checksums as blocks, lists within
    /// their limits): a program that makes another one is stopped here.
    pub fn encode<'m, T: Body>(&mut self, message: &'m Message<T>, out: &mut Vec<u8>) -> Payload<'m> {
        let body = &message.body;
        let (kind, payload) = (body.kind(), body.payload());
        assert_eq!(body.check(), Ok(()), "a {} message is as its type promises", kind.shape().name);
        self.fields.clear();
        body.encode_fields(self.version, &mut self.fields);
        let fields = self.fields.as_bytes();
        assert!(
            fields.len() <= kind.shape().body_size_max as usize,
            "a message's limits keep its body within its own"
        );
        let header = Header {
            kind: kind.code(),
            body_size: fields.len() as u32,
            payload_size: payload.size() as u32,
            session: message.session,
            sequence: message.sequence,
            stamp: message.stamp,
            token: message.token,
            body_checksum: crc32c(fields),
        };
        out.extend_from_slice(&header.encode(self.version));
        out.extend_from_slice(fields);
        if fields.len() > FIELDS_KEPT {
            self.fields = Writer::default();
        }
        payload
    }
}
