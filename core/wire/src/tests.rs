//! Messages there and back, whole and damaged.

mod flow;
mod golden;
mod hostile;
mod random;
mod samples;

use crate::body::Coded;
use crate::{Answer, Body, Decoder, Encoder, Message, Request, Step, Version, WireError};
use base::Pool;
use base::request::{Pieces, Reply};

/// A pool that holds the largest payload and some more.
pub(crate) fn pool() -> Pool {
    Pool::new(80 << 20)
}

/// The whole frame of a message.
pub(crate) fn frame<T: Body>(message: &Message<T>) -> Vec<u8> {
    frame_of_version(Version::LATEST, message)
}

/// The same of a version.
pub(crate) fn frame_of_version<T: Body>(version: Version, message: &Message<T>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload = Encoder::new(version).encode(message, &mut bytes);
    payload.buffers().for_each(|buffer| bytes.extend_from_slice(buffer));
    bytes
}

/// All messages in `bytes`, given to a decoder in pieces of the lengths that `cuts` says, over and over.
pub(crate) fn decode_cut<T: Body>(
    bytes: &[u8],
    cuts: &[usize],
    pool: &Pool,
) -> Result<Vec<Message<T>>, WireError> {
    decode_version(Version::LATEST, bytes, cuts, pool)
}

/// The same of a version.
pub(crate) fn decode_version<T: Body>(
    version: Version,
    bytes: &[u8],
    cuts: &[usize],
    pool: &Pool,
) -> Result<Vec<Message<T>>, WireError> {
    let mut decoder = Decoder::new(version, pool.clone());
    let mut messages = Vec::new();
    let mut rest = bytes;
    for &cut in cuts.iter().cycle() {
        loop {
            match decoder.step()? {
                Step::Message(message) => messages.push(message),
                Step::NeedsBytes => break,
                Step::NeedsBuffers(size) => panic!("the pool has no {size} bytes"),
            }
        }
        if rest.is_empty() {
            assert!(!decoder.is_within_message(), "the bytes end with a message");
            return Ok(messages);
        }
        let taken = decoder.take(&rest[..rest.len().min(cut)]);
        assert!(taken > 0, "a decoder that needs bytes has space for some");
        rest = &rest[taken..];
    }
    unreachable!("there is at least one cut");
}

/// All messages in `bytes`, as fast as they are taken.
pub(crate) fn decode<T: Body>(bytes: &[u8], pool: &Pool) -> Result<Vec<Message<T>>, WireError> {
    decode_cut(bytes, &[usize::MAX], pool)
}

/// What a message says, in a form that two messages can be compared in, however their data is cut into buffers.
pub(crate) trait Shown: Body + Clone {
    /// All but the payload.
    fn shown(&self) -> String;
}

impl Shown for Request {
    fn shown(&self) -> String {
        let mut request = self.clone();
        if let Request::Write { data, .. }
        | Request::Guest { request: base::request::Request::Write { data, .. }, .. } = &mut request
        {
            data.clear();
        }
        format!("{request:?}")
    }
}

impl Shown for Answer {
    fn shown(&self) -> String {
        let mut runs = Vec::new();
        let mut put = |pieces: &Pieces| crate::payload::runs(pieces, |run| runs.push(run));
        let rest = match self {
            Answer::Data { pieces, checksums } => {
                put(pieces);
                format!("{checksums:?}")
            }
            Answer::Guest(Ok(Reply::Data(pieces))) => {
                put(pieces);
                String::new()
            }
            other => format!("{other:?}"),
        };
        format!("{:?} {runs:?} {rest}", self.kind())
    }
}

/// Fails unless the two messages say the same.
pub(crate) fn assert_same<T: Shown>(found: &Message<T>, expected: &Message<T>) {
    let outside = |message: &Message<T>| (message.session, message.sequence, message.stamp, message.token);
    assert_eq!(outside(found), outside(expected));
    assert_eq!(found.body.shown(), expected.body.shown());
    let bytes = |message: &Message<T>| -> Vec<u8> {
        message.body.payload().buffers().flat_map(|buffer| buffer.iter().copied()).collect()
    };
    assert!(bytes(found) == bytes(expected), "the payload differs");
}
