//! What requests and answers have in common as bodies of frames.

use crate::Version;
use crate::flaw::Flaw;
use crate::kind::Kind;
use crate::payload::Payload;
use base::WriteId;
use base::bytes::{Reader, Writer};
use base::request::Buffers;

/// What is said in one direction of a channel: [`Request`](crate::Request) or [`Answer`](crate::Answer).
pub trait Body: Coded {}

impl<T: Coded> Body for T {}

/// How a body is turned into bytes and back. In a private module: no other crate can add a body.
pub trait Coded: Sized {
    /// The kinds of frames of this direction.
    type Kind: Kind;

    /// The kind of frame that carries this.
    fn kind(&self) -> Self::Kind;

    /// Whether it is as its type promises. The encoder asserts it, the decoder refuses what is not.
    fn check(&self) -> Result<(), Flaw>;

    /// Appends the body of the frame, as that version has it.
    fn encode_fields(&self, version: Version, w: &mut Writer);

    /// The payload of the frame.
    fn payload(&self) -> Payload<'_>;

    /// Reads what `encode_fields` wrote, and takes the payload.
    fn decode_fields(kind: Self::Kind, r: &mut Reader<'_>, payload: Buffers) -> Result<Self, Flaw>;
}

pub(crate) fn put_id(w: &mut Writer, id: WriteId) {
    w.u32(id.epoch);
    w.u64(id.sequence);
}

pub(crate) fn take_id(r: &mut Reader<'_>) -> WriteId {
    WriteId { epoch: r.u32(), sequence: r.u64() }
}

pub(crate) fn put_zeroes(w: &mut Writer, count: usize) {
    w.pad_to(w.len() + count);
}

pub(crate) fn take_reserved(r: &mut Reader<'_>, count: usize) -> Result<(), Flaw> {
    match r.reserved(count) {
        true => Ok(()),
        false => Err(Flaw::Fields("reserved bytes are set")),
    }
}

pub(crate) fn take_flag(r: &mut Reader<'_>) -> Result<bool, Flaw> {
    match r.u8() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Flaw::Fields("a flag is neither 0 nor 1")),
    }
}

/// Checks that exactly `count` items of `size` bytes follow, `max` at most, so that nothing is set aside on a mere word.
pub(crate) fn check_list(r: &Reader<'_>, count: usize, size: usize, max: usize) -> Result<(), Flaw> {
    if count > max {
        return Err(Flaw::Fields("a list is longer than allowed"));
    }
    match r.remaining() == count * size {
        true => Ok(()),
        false => Err(Flaw::Fields("a list's length and that of the body contradict each other")),
    }
}
