//! Bytes to messages, as they come.

use crate::frame::{HEADER_SIZE, Header};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::limits::{GUEST_PAYLOAD_SIZE_MAX, INBOX_SIZE, PAYLOAD_AT_ONCE};
use crate::message::Message;
use crate::payload::take_buffers;
use crate::{Body, Flaw, Version, WireError};
use base::Pool;
use base::bytes::Reader;
use base::checksum::crc32c;
use base::request::Buffers;

/// What the space for a receive is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whatever comes.
    Any,
    /// A payload that was announced, and nothing beyond: the receive may wait until all of it is there.
    All,
}

/// What a look at the received bytes gave.
#[derive(Debug)]
pub enum Step<T> {
    /// The next message.
    Message(Message<T>),
    /// More bytes are needed; there is space for them.
    NeedsBytes,
    /// The pool has no buffers for the payload of the next message, this many bytes. Nothing is lost, and there is no space
    /// to receive more: try again when buffers have come back.
    NeedsBuffers(usize),
}

/// The state between two bytes.
#[derive(Debug)]
enum State<K> {
    /// The inbox begins with a frame, whose header and body stay there until both are there.
    Head,
    /// As before, header and body are there and the pool had no buffers for the payload.
    Waiting,
    /// The payload of the frame whose body stands in `fields` is coming; `filled` bytes of it are there.
    Payload { header: Header, kind: K, payload: Buffers, filled: usize },
    /// What came was no message.
    Dead(WireError),
}

/// Turns the bytes of one direction of one connection into messages.
///
/// The owner of the connection alternates: [`Decoder::step`] until it asks for bytes, then a receive into
/// [`Decoder::space`], told by [`Decoder::received`]. Bytes may come in any pieces. Payloads stand in buffers of the pool,
/// of 1 MiB each and the last one shorter; one that is announced is received where it belongs, one that came together with
/// other messages is copied there. At most [`INBOX_SIZE`](crate::limits::INBOX_SIZE) (or one longer body) and one payload
/// are held at a time, whatever the peer sends.
#[derive(Debug)]
pub struct Decoder<T: Body> {
    version: Version,
    pool: Pool,
    inbox: Inbox,
    /// The body of the frame whose payload is coming.
    fields: Vec<u8>,
    state: State<T::Kind>,
}

impl<T: Body> Decoder<T> {
    /// For a connection on which that version was agreed on. The pool must be able to hold the largest payload, or it would
    /// be waited for without end.
    pub fn new(version: Version, pool: Pool) -> Decoder<T> {
        assert!(pool.bytes_max() >= GUEST_PAYLOAD_SIZE_MAX, "a pool holds the largest payload");
        Decoder { version, pool, inbox: Inbox::new(), fields: Vec::new(), state: State::Head }
    }

    /// The next message of what was received so far.
    ///
    /// # Errors
    /// When what came is no message. No later call gives anything else.
    pub fn step(&mut self) -> Result<Step<T>, WireError> {
        let step = self.advance();
        if let Err(error) = &step {
            self.state = State::Dead(*error);
        }
        step
    }

    fn advance(&mut self) -> Result<Step<T>, WireError> {
        match &mut self.state {
            State::Head | State::Waiting => self.begin(),
            State::Payload { header, kind, payload, filled } => {
                *filled += drain(&mut self.inbox, payload, *filled);
                if *filled < header.payload_size as usize {
                    return Ok(Step::NeedsBytes);
                }
                let message = read_message(header, *kind, &self.fields, std::mem::take(payload))?;
                self.fields.clear();
                self.fields.shrink_to(INBOX_SIZE);
                self.state = State::Head;
                Ok(Step::Message(message))
            }
            State::Dead(error) => Err(*error),
        }
    }

    /// Looks at the frame that begins in the inbox, as far as it is there. Most are there as a whole.
    fn begin(&mut self) -> Result<Step<T>, WireError> {
        let bytes = self.inbox.bytes();
        let Some((head, rest)) = bytes.split_first_chunk::<HEADER_SIZE>() else {
            return Ok(Step::NeedsBytes);
        };
        let header = Header::decode(head, self.version)?;
        let kind = check_header::<T>(&header)?;
        let body_size = header.body_size as usize;
        let Some((fields, rest)) = rest.split_at_checked(body_size) else {
            self.inbox.reserve(HEADER_SIZE + body_size);
            return Ok(Step::NeedsBytes);
        };
        let computed = crc32c(fields);
        if computed != header.body_checksum {
            let (kind, stored) = (kind.shape().name, header.body_checksum);
            return Err(WireError::BodyChecksum { kind, stored, computed });
        }
        let payload_size = header.payload_size as usize;
        let Some(mut payload) = take_buffers(&self.pool, payload_size) else {
            self.state = State::Waiting;
            return Ok(Step::NeedsBuffers(payload_size));
        };
        let filled = fill(&mut payload, 0, rest);
        if filled < payload_size {
            self.fields.clear();
            self.fields.extend_from_slice(fields);
            self.inbox.consume(HEADER_SIZE + body_size + filled);
            self.state = State::Payload { header, kind, payload, filled };
            return Ok(Step::NeedsBytes);
        }
        let message = read_message(&header, kind, fields, payload)?;
        self.inbox.consume(HEADER_SIZE + body_size + filled);
        self.state = State::Head;
        Ok(Step::Message(message))
    }

    /// Gives `each` the places where the next bytes go, in order, and says what they are for. There are none while buffers are
    /// waited for, after an error, and while the inbox is full of what [`Decoder::step`] was not asked for. None is empty.
    ///
    /// The memory stays where it is until the decoder is used again: a kernel may write to it meanwhile.
    pub fn space(&mut self, mut each: impl FnMut(&mut [u8])) -> Reach {
        match &mut self.state {
            State::Head => {}
            State::Waiting | State::Dead(_) => return Reach::Any,
            State::Payload { payload, filled, .. } => {
                assert!(self.inbox.is_empty(), "a payload takes all that came with it");
                let mut skip = *filled;
                let mut rest = 0;
                for buffer in payload {
                    let part = skip.min(buffer.len());
                    skip -= part;
                    if part < buffer.len() {
                        rest += buffer.len() - part;
                        each(&mut buffer.bytes_mut()[part..]);
                    }
                }
                if rest >= PAYLOAD_AT_ONCE {
                    return Reach::All;
                }
            }
        }
        let space = self.inbox.space();
        if !space.is_empty() {
            each(space);
        }
        Reach::Any
    }

    /// `n` bytes came to where [`Decoder::space`] said, and nothing else was done with the decoder since.
    pub fn received(&mut self, n: usize) {
        let mut rest = n;
        if let State::Payload { header, filled, .. } = &mut self.state {
            let part = rest.min(header.payload_size as usize - *filled);
            *filled += part;
            rest -= part;
        }
        self.inbox.received(rest);
    }

    /// Takes as many of `bytes` as there is space for and says how many: for bytes that came elsewhere.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        self.space(|slice| {
            let (head, tail) = rest.split_at(rest.len().min(slice.len()));
            slice[..head.len()].copy_from_slice(head);
            rest = tail;
        });
        let taken = bytes.len() - rest.len();
        self.received(taken);
        taken
    }

    /// Whether a message has begun and not ended: a connection that closes now was cut off.
    pub fn is_within_message(&self) -> bool {
        match &self.state {
            State::Head => !self.inbox.is_empty(),
            State::Waiting | State::Payload { .. } => true,
            State::Dead(_) => false,
        }
    }
}

/// The kind of the frame, if one of its kind and size may come.
fn check_header<T: Body>(header: &Header) -> Result<T::Kind, WireError> {
    let kind = T::Kind::from_code(header.kind).ok_or(WireError::Kind { found: header.kind })?;
    let shape = kind.shape();
    if header.body_size > shape.body_size_max {
        let (found, max) = (header.body_size, shape.body_size_max);
        return Err(WireError::BodySize { kind: shape.name, found, max });
    }
    if header.payload_size > shape.payload_size_max {
        let (found, max) = (header.payload_size, shape.payload_size_max);
        return Err(WireError::PayloadSize { kind: shape.name, found, max });
    }
    Ok(kind)
}

/// The message of a frame that is there as a whole.
fn read_message<T: Body>(
    header: &Header,
    kind: T::Kind,
    fields: &[u8],
    payload: Buffers,
) -> Result<Message<T>, WireError> {
    let kind_name = kind.shape().name;
    match read_body(kind, fields, payload) {
        Ok(body) => Ok(Message {
            session: header.session,
            sequence: header.sequence,
            stamp: header.stamp,
            token: header.token,
            body,
        }),
        Err(Flaw::Fields(flaw)) => Err(WireError::Body { kind: kind_name, flaw }),
        Err(Flaw::Payload { block }) => Err(WireError::PayloadChecksum { kind: kind_name, block }),
    }
}

/// The body in these bytes, which must be all used and make sense.
fn read_body<T: Body>(kind: T::Kind, fields: &[u8], payload: Buffers) -> Result<T, Flaw> {
    let mut r = Reader::new(fields);
    let body = T::decode_fields(kind, &mut r, payload)?;
    r.finish()?;
    if r.remaining() > 0 {
        return Err(Flaw::Fields("its body is longer than its fields"));
    }
    body.check()?;
    Ok(body)
}

/// Moves bytes of the inbox to where a payload is not filled, and says how many.
fn drain(inbox: &mut Inbox, payload: &mut Buffers, filled: usize) -> usize {
    let moved = fill(payload, filled, inbox.bytes());
    inbox.consume(moved);
    moved
}

/// Copies as many of `bytes` to a payload as it has room for behind the first `filled` bytes, and says how many.
fn fill(payload: &mut Buffers, filled: usize, bytes: &[u8]) -> usize {
    let (mut skip, mut rest) = (filled, bytes);
    for buffer in payload {
        let from = skip.min(buffer.len());
        skip -= from;
        let part = rest.len().min(buffer.len() - from);
        if part > 0 {
            buffer.bytes_mut()[from..from + part].copy_from_slice(&rest[..part]);
            rest = &rest[part..];
        }
    }
    bytes.len() - rest.len()
}
